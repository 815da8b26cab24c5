"""Which properties of joints are kept, but do not act when the mechanism moves?

Dampers and springs act in simulations and rollouts. Dry friction, limits of position, speed and
effort, and springs of ball joints are data: `Recording.report` tells where they would have
mattered. A file that has them moves otherwise in its own simulator, so each kind is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np

from linkwise.io.report import Reporter
from linkwise.io.xml import Element
from linkwise.model.drive import Drive
from linkwise.model.hinges import Hinge
from linkwise.model.hinges.plain import is_plain

Driven = tuple[Element, str, Hinge, Drive]
"""Where a joint stands, its name, its hinge and what is in it."""

NAMED: Final = 4
"""Joints named in one item; of more, how many."""


def _nonzero(field: str) -> Callable[[Hinge, Drive], bool]:
    return lambda hinge, drive: bool(drive.array(field, hinge).any())


def _finite(*names: str) -> Callable[[Hinge, Drive], bool]:
    return lambda hinge, drive: any(np.isfinite(drive.array(x, hinge)).any() for x in names)


_KINDS: Final[dict[str, tuple[Callable[[Hinge, Drive], bool], str]]] = {
    "dry friction": (_nonzero("friction"), "does not act"),
    "position limits": (
        _finite("lower", "upper"),
        "act in lw.simulate(limits='stop') and (limits='spring') only",
    ),
    "largest turns": (lambda _, drive: bool(np.isfinite(drive.max_angle)), "do not act"),
    "effort limits": (_finite("effort"), "do not act: joint forces are applied as given"),
    "speed limits": (_finite("velocity"), "do not act"),
    "springs": (
        lambda hinge, drive: not is_plain(hinge) and _nonzero("stiffness")(hinge, drive),
        "do not act where v is not the rate of q",
    ),
}


def report_drives(joints: Iterable[Driven], reporter: Reporter) -> None:
    """Note each kind of property that does not act, once, with the joints that have it."""
    listed = [(element, name, hinge, drive) for element, name, hinge, drive in joints if hinge.nv]
    for kind, (present, what) in _KINDS.items():
        found = [(element, name) for element, name, hinge, drive in listed if present(hinge, drive)]
        if not found:
            continue
        names = ", ".join(f"'{name}'" for _, name in found[:NAMED])
        more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
        reporter.note(found[0][0], "kept", f"{kind} of {names}{more} {what}", "motion")
