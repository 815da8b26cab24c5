"""Writing a model file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from linkwise.atomic_file import write_file
from linkwise.errors import ModelError
from linkwise.front_door import open_front_door
from linkwise.io.mesh_path import move_meshes
from linkwise.io.report import Reporter, SaveReport, Strict, check_strict
from linkwise.model.mechanism import Mechanism
from linkwise.model.report import LoadItem

SHOWN = 5
"""Losses named in a warning; all are in the report."""

_SUFFIXES = {".urdf": "urdf", ".xml": "mjcf", ".mjcf": "mjcf", ".json": "json"}


def save(
    mech: Mechanism,
    path: str | os.PathLike[str],
    *,
    format: Literal["urdf", "mjcf", "json"] | None = None,
    strict: Strict = False,
) -> SaveReport:
    """Write a mechanism to a file; loading it again gives the same physics, unless it warns.

    JSON holds the whole mechanism, with flexible bodies and all digits; only hinges made of
    functions are refused. What a robot format cannot express is left out: a sliding loop in MJCF,
    gravity in URDF. If that changes how the mechanism moves, a `UserWarning` names what was lost;
    the report has the rest, limits and appearance, and what was written in another form.

    Args:
        mech: The mechanism.
        path: The file (`~` is your home folder); replaced once the new text is complete.
        format: Default: given by the suffix, `.urdf`, `.json`, or `.xml` and `.mjcf` for MJCF.
        strict: "motion" refuses a loss that changes how the mechanism moves, True anything that
            the report would name; the file is then not written.

    Returns:
        What was written in another form, or not at all.

    Raises:
        ModelError: The format has no way to express the mechanism, or `strict` refuses what is
            lost; says why and what to do.
        WriteError: The file cannot be written; an existing one is unchanged.
    """
    target = Path(path).expanduser()
    kind = format or _SUFFIXES.get(target.suffix.lower())
    check_strict(strict)
    reporter = Reporter(path)
    if mech.flexible and kind != "json":
        name = mech.bodies[mech.flexible[0]].name
        raise ModelError(
            f"body {name!r} of {mech.name!r} is flexible or has a geared rotor; robot files have "
            "rigid bodies only. Save it as .json, which has everything; or give rotors as "
            "Drive.rotor_inertia, and lock the modes of flexible bodies: mech.lock."
        )
    if kind in ("urdf", "mjcf", "json"):
        mech = move_meshes(mech, target, reporter, packages=kind != "mjcf")
    if kind == "urdf":
        from linkwise.io.urdf.write import write_urdf

        text = write_urdf(mech, reporter)
    elif kind == "mjcf":
        from linkwise.io.mjcf.write import write_mjcf

        text = write_mjcf(mech, reporter)
    elif kind == "json":
        from linkwise.io.mechanism_json import written

        text = written(mech)
    else:
        raise ModelError(
            f"the suffix of '{target.name}' does not name a format; use .urdf, .xml (MJCF) or "
            ".json, or give format='urdf', 'mjcf' or 'json'"
        )
    report = reporter.report()
    lost = [item for item in report.affecting("motion") if item.effect == "ignored"]
    refused = list(report) if strict is True else lost if strict == "motion" else []
    if refused:
        raise ModelError(
            f"'{target.name}' would not say all about {mech.name!r}, and strict={strict!r} refuses "
            f"this:{_listed(refused)}\nSave it as .json, which has everything."
        )
    write_file(target, text)
    if lost:
        warnings.warn(
            f"'{target.name}' does not move like {mech.name!r}; this could not be written:"
            f"{_listed(lost)}",
            stacklevel=2,
        )
    return report


def _listed(items: Sequence[LoadItem]) -> str:
    """A line for each of the first items."""
    shown = "".join(f"\n  {item.element}: {item.reason}" for item in items[:SHOWN])
    return shown + (f"\n  and {len(items) - SHOWN} more" if len(items) > SHOWN else "")


open_front_door(globals(), ("save",))
