"""A plugin for pytest: runs the nearest tests first, until a mutant has been tried enough.

$MUTANT is JSON: the test to begin with, `first`, if one is known, the `names` that near tests
contain with their weights, for how many seconds of the processor tests are started, `before` the
mutant's function has been entered and `after` that, and where to write whether it was, `told`.
"""

from __future__ import annotations

import inspect
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.mutation.nearest import words
from tools.mutation.operators import ENTERED

_mutant: dict[str, Any] = json.loads(os.environ.get("MUTANT", "{}"))
_entered: list[float] = []


def spoken(item: pytest.Item) -> frozenset[str]:
    """The names in the text of a test and in its parameters."""
    try:
        text = inspect.getsource(item.function)  # type: ignore[attr-defined]
    except (OSError, TypeError, AttributeError):
        text = ""
    params = getattr(getattr(item, "callspec", None), "params", {})
    texts = {value for value in params.values() if isinstance(value, str)}
    return words(f"{text} {item.nodeid} {str(params)[:2000]}") | texts


def pytest_sessionstart() -> None:
    """Lets kernels be shared among mutants that have no part in making them."""
    if _mutant["shared"]:
        from linkwise.codegen.cpu import digest

        digest.package = lambda: "shared by mutants"  # type: ignore[assignment]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests that speak of the mutant first; of one function, further parameters count less."""

    def score(item: pytest.Item) -> float:
        result = spoken(item)
        return sum(w for name, w in _mutant["names"].items() if name in result)

    seen, scores = dict[str, int](), dict[str, float]()
    for item in items:
        name = item.nodeid.split("[")[0]
        seen[name] = seen.get(name, -1) + 1
        scores[item.nodeid] = -score(item) * 0.7 ** (seen[name] // 4)
    items.sort(key=lambda item: (item.nodeid != _mutant["first"], scores[item.nodeid]))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Stops when there was enough."""
    yield
    used = time.process_time()
    if not _entered and ENTERED in os.environ:
        _entered.append(used)
    if _entered and used - _entered[0] > _mutant["after"]:
        item.session.shouldstop = "the mutant has been tried enough"
    if not _entered and used > _mutant["before"]:
        item.session.shouldstop = "no test enters the function"


def pytest_sessionfinish() -> None:
    """Tells whether the function was entered."""
    Path(_mutant["told"]).write_text(str(bool(_entered)), encoding="utf-8")
