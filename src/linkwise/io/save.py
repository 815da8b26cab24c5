"""Writing a model file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from linkwise.errors import ModelError
from linkwise.io.report import Reporter, SaveReport
from linkwise.model.mechanism import Mechanism

_SUFFIXES = {".urdf": "urdf", ".xml": "mjcf", ".mjcf": "mjcf"}


def save(
    mech: Mechanism,
    path: str | os.PathLike[str],
    *,
    format: Literal["urdf", "mjcf"] | None = None,
) -> SaveReport:
    """Write a mechanism to a file; loading it again gives the same physics.

    Args:
        mech: The mechanism.
        path: The file; an existing one is replaced once the new text is complete.
        format: By default told by the suffix: `.urdf`, or `.xml` and `.mjcf` for MJCF.

    Returns:
        What was written in another form, or not at all.

    Raises:
        ModelError: The format has no way to express the mechanism; says why and what to do.
    """
    target = Path(path)
    kind = format or _SUFFIXES.get(target.suffix.lower())
    reporter = Reporter(path)
    if kind == "urdf":
        from linkwise.io.urdf.write import write_urdf

        text = write_urdf(mech, reporter)
    elif kind == "mjcf":
        from linkwise.io.mjcf.write import write_mjcf

        text = write_mjcf(mech, reporter)
    else:
        raise ModelError(
            f"to save '{target.name}' a format is needed: end it in .urdf or .xml (MJCF), "
            "or give format='urdf' or 'mjcf'"
        )
    target.write_text(text, encoding="utf-8", newline="\n")
    return reporter.report()
