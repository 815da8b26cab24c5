"""Files of flexible bodies: modal data as JSON or NPZ.

Both hold `format` ("linkwise flexible body 1"), `positions`, `modes`, `stiffness`, `masses`,
`inertias`, `damping`, `second` and `tip`, with the shapes and units of `FlexibleBody`; the last
four may be missing. JSON has nested lists, NPZ arrays.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from linkwise.arguments import is_a
from linkwise.atomic_file import write_file
from linkwise.errors import ModelError, ParseError
from linkwise.flexible.flexible_body import FlexibleBody

FORMAT = "linkwise flexible body 1"
NEEDED = ("positions", "modes", "stiffness", "masses")
OPTIONAL = ("inertias", "damping", "second", "tip")


def save(body: FlexibleBody, path: str | Path) -> None:
    """Write a flexible body.

    Args:
        body: The body.
        path: The file, `.json` or `.npz`.
    """
    is_a(FlexibleBody, body, "body")
    target = _target(path)
    data: dict[str, Any] = {name: getattr(body, name) for name in (*NEEDED, *OPTIONAL)}
    if target.suffix == ".json":
        lists = {name: np.asarray(x).tolist() for name, x in data.items()}
        write_file(target, json.dumps({"format": FORMAT, **lists}))
        return
    stream = io.BytesIO()
    np.savez(stream, format=FORMAT, **data)
    write_file(target, stream.getvalue())


def load(path: str | Path) -> FlexibleBody:
    """Read a flexible body.

    Args:
        path: The file, `.json` or `.npz`.

    Raises:
        ParseError: It is not such a file, or an entry is missing.
    """
    target = _target(path)
    try:
        if target.suffix == ".json":
            data: Any = json.loads(target.read_text(encoding="utf-8"))
        else:
            with np.load(target, allow_pickle=False) as stored:
                data = {name: stored[name] for name in stored.files}
    except (OSError, ValueError) as problem:
        reason = f"it cannot be read as a flexible body: {problem}"
        raise ParseError(reason, file=str(target)) from problem
    entries = cast("Mapping[str, Any]", data if isinstance(data, Mapping) else {})
    if str(entries.get("format")) != FORMAT:
        reason = f"it has no entry format = {FORMAT!r}: it is not a flexible body."
        raise ParseError(reason, file=str(target))
    missing = [name for name in NEEDED if name not in entries]
    if missing:
        reason = f"it has no entry {missing[0]!r}; it needs {', '.join(NEEDED)}."
        raise ParseError(reason, file=str(target))
    known = {name: entries[name] for name in (*NEEDED, *OPTIONAL) if name in entries}
    known["tip"] = int(np.asarray(known.get("tip", -1)))
    return FlexibleBody(**known)


def _target(path: str | Path) -> Path:
    target = Path(path).expanduser()
    if target.suffix not in (".json", ".npz"):
        raise ModelError(f"'{target.name}' must end in .json or .npz.")
    return target
