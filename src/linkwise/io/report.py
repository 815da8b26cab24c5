"""What was used approximately, or not at all, while a file was read or written?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Final, Literal

import numpy as np

from linkwise.errors import ModelError, ParseError
from linkwise.io.xml import Element
from linkwise.model.drive import Drive
from linkwise.model.hinges import Hinge
from linkwise.model.report import Affects, Effect, LoadItem, LoadReport

Strict = bool | Literal["motion"]
SaveReport = LoadReport
"""Saving reports in the same form as loading."""

MAX_ITEMS: Final = 10_000
"""Items kept in one report; a longer list is cut with a last item that says so."""

_EFFECTS: Final[dict[Effect, str]] = {
    "approximate": "only approximated",
    "ignored": "ignored",
    "kept": "kept, but does not act",
}


def check_strict(strict: object) -> None:
    """Raise unless it is one of the three."""
    if strict not in (True, False, "motion"):
        raise ModelError(f"strict is {strict!r}; allowed are False, True and 'motion'")


class Reporter:
    """Collects report items, and raises on the first one that `strict` does not allow.

    Args:
        source: The file that is read or written.
        strict: False collects all; True raises on the first item; "motion" raises on the first
            item that makes the mechanism move differently from what the file says.
    """

    def __init__(self, source: str | os.PathLike[str], strict: Strict = False) -> None:
        check_strict(strict)
        self.source = os.fspath(source)
        self.strict: Strict = strict
        self._items: list[LoadItem] = []

    def note(
        self, element: Element | str, effect: Effect, reason: str, affects: Affects = "other"
    ) -> None:
        """Add an item about an element (or about a thing named by text, when writing).

        Raises:
            ParseError: `strict` does not allow such an item.
        """
        if isinstance(element, Element):
            file, line, label = element.file, element.line, element.label
        else:
            file, line, label = self.source, None, element
        item = LoadItem(file, line, label, effect, reason, affects)
        if self.strict is True or (self.strict == "motion" and affects == "motion"):
            raise ParseError(
                f"{label} is {_EFFECTS[effect]} (affects {affects}): {reason}; "
                f"strict={self.strict!r} refuses this",
                file=file,
                line=line,
            )
        if len(self._items) < MAX_ITEMS:
            self._items.append(item)
        elif len(self._items) == MAX_ITEMS:
            self._items.append(
                LoadItem(file, line, label, "ignored", "the report is cut here", "other")
            )

    def report(self) -> LoadReport:
        """Everything noted so far, in the order of the files' lines."""
        files = {item.file: i for i, item in reversed(list(enumerate(self._items)))}
        items = sorted(self._items, key=lambda item: (files[item.file], item.line or 0))
        return LoadReport(self.source, tuple(items))


Driven = tuple[Element, str, Hinge, Drive]
"""A joint: its element, name, hinge and drive."""

NAMED: Final = 4
"""Joints named in one item; further ones are counted."""


def _nonzero(field: str) -> Callable[[Hinge, Drive], bool]:
    return lambda hinge, drive: bool(drive.array(field, hinge).any())


def _finite(*names: str) -> Callable[[Hinge, Drive], bool]:
    return lambda hinge, drive: any(np.isfinite(drive.array(x, hinge)).any() for x in names)


_KINDS: Final[dict[str, tuple[Callable[[Hinge, Drive], bool], str]]] = {
    "dry friction": (
        _nonzero("friction"),
        "acts in lw.rollout, lw.simulate and lw.Simulator with integrator='implicit' only",
    ),
    "position limits": (
        _finite("lower", "upper"),
        "act in lw.simulate(limits='stop') and (limits='spring'), and in lw.rollout, lw.simulate "
        "and lw.Simulator with integrator='implicit', only",
    ),
    "largest turns": (
        lambda _, drive: bool(np.isfinite(drive.max_angle)),
        "act in lw.rollout, lw.simulate and lw.Simulator with integrator='implicit' only",
    ),
    "effort limits": (_finite("effort"), "bound actuators only: joint forces are applied as given"),
    "speed limits": (_finite("velocity"), "do not act"),
    "springs": (
        lambda hinge, drive: _nonzero("stiffness")(hinge, drive) and not drive.has_spring(hinge),
        "do not act: v is not the rate of q, and only springs of ball joints act there",
    ),
}


def report_drives(joints: Iterable[Driven], reporter: Reporter) -> None:
    """Note each kind of property that does not act, once, with the joints that have it."""
    listed = [(element, name, hinge, drive) for element, name, hinge, drive in joints if hinge.nv]
    for kind, (present, what) in _KINDS.items():
        owners = [
            (element, name) for element, name, hinge, drive in listed if present(hinge, drive)
        ]
        if not owners:
            continue
        names = ", ".join(f"'{name}'" for _, name in owners[:NAMED])
        more = f" and {len(owners) - NAMED} more" if len(owners) > NAMED else ""
        reporter.note(owners[0][0], "kept", f"{kind} of {names}{more} {what}", "motion")
