"""Every public function documents every argument, with the shared ones taken from one table."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

import linkwise as lw
from linkwise.documented import STANDARD, documented

PLACES = (
    *(lw, lw.algebra, lw.convert, lw.dynamics, lw.estimation, lw.grasp, lw.hinges, lw.inertial),
    *(lw.loops, lw.models, lw.papers, lw.plot, lw.simulation, lw.tasks, lw.viewer),
)


def functions() -> dict[str, Callable[..., Any]]:
    members = {name: getattr(place, name) for place in PLACES for name in place.__all__}
    return {name: value for name, value in members.items() if inspect.isfunction(value)}


def entries(text: str) -> list[str]:
    section = text.partition("\nArgs:\n")[2]
    return re.findall(r"^    \*{0,2}(\w+): ", re.split(r"^\S", section, flags=re.M)[0], re.M)


@pytest.mark.parametrize("name", sorted(functions()))
def test_every_argument_is_documented_in_order(name: str) -> None:
    function = functions()[name]
    assert entries(inspect.getdoc(function) or "") == [*inspect.signature(function).parameters]


def test_the_table_is_used() -> None:
    assert STANDARD["threads"] in (lw.mass_matrix.__doc__ or "")


def sample(mech: Any, x: Any, q: Any = None, **options: Any) -> None:
    """One line.

    Args:
        x: A number,
            on two lines.
        **options: The rest.

    Returns:
        Nothing.
    """


def short(q: Any) -> None:
    """One line."""


def plain(x: Any) -> None:
    """One line."""


def test_missing_entries_are_added_in_the_order_of_the_signature() -> None:
    documented(sample)
    assert sample.__doc__ == (
        f"One line.\n\nArgs:\n    mech: {STANDARD['mech']}\n    x: A number,\n"
        "        on two lines.\n"
        f"    q: {STANDARD['q']}\n    **options: The rest.\n\nReturns:\n    Nothing."
    )


def test_a_section_is_made_where_there_is_none() -> None:
    documented(short)
    assert short.__doc__ == f"One line.\n\nArgs:\n    q: {STANDARD['q']}\n"


def test_other_functions_stay_as_they_are() -> None:
    documented(plain)
    assert plain.__doc__ == "One line."
