"""Which geoms of a model would collide?

Contacts act in a simulation where the user gives them (`lw.simulate(contacts=...)`); those of the
file do not. Two geoms collide if they are on different bodies, one of which moves, and if their
masks meet: (contype₁ & conaffinity₂) | (contype₂ & conaffinity₁) ≠ 0. (MuJoCo also leaves out a
body and its parent, and welded bodies; a model in which only these meet is reported all the same.)
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.io.mjcf.compiler import Options
from linkwise.io.mjcf.geom import Geom
from linkwise.io.mjcf.tree import BodyRecord
from linkwise.io.report import Reporter
from linkwise.io.xml import number


def report_contacts(
    records: Sequence[BodyRecord],
    geoms: Sequence[Sequence[Geom]],
    options: Options,
    reporter: Reporter,
) -> None:
    """Note, once, the geoms that can touch another one."""
    if not options.contacts:
        return
    moving = list[bool]()
    for record in records:
        above = record.parent >= 0 and moving[record.parent]
        moving.append(above or bool(record.joints))
    masks: dict[tuple[int, int], set[int]] = {}  # bodies by the masks of their geoms
    for k, own in enumerate(geoms):
        for geom in own:
            masks.setdefault(_mask(geom), set()).add(k)
    touching = [
        geom for k, own in enumerate(geoms) for geom in own if _touches(k, geom, masks, moving)
    ]
    if touching:
        some = "1 geom" if len(touching) == 1 else f"{len(touching)} geoms"
        reason = (
            f"contacts of {some} do not act: bodies pass through each other and through the "
            "ground, but for contacts given to lw.simulate"
        )
        reporter.note(touching[0].element, "kept", reason, "motion")


def _mask(geom: Geom) -> tuple[int, int]:
    return int(number(geom.element, "contype", 1.0)), int(number(geom.element, "conaffinity", 1.0))


def _touches(
    k: int, geom: Geom, masks: dict[tuple[int, int], set[int]], moving: Sequence[bool]
) -> bool:
    """Whether some geom of another body meets this one, and one of the two moves."""
    contype, conaffinity = _mask(geom)
    for (other_type, other_affinity), bodies in masks.items():
        if contype & other_affinity or other_type & conaffinity:
            if any(other != k and (moving[k] or moving[other]) for other in bodies):
                return True
    return False
