"""Arguments of commands: a robot, joint vectors, and files that results go to."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from linkwise import models
from linkwise.atomic_file import check_writable
from linkwise.errors import ModelError, WriteError, unknown_name
from linkwise.io.load import load
from linkwise.io.report import Strict
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

VECTORS = """joint vectors:
  neutral, random, random:7           for --q and --v (random within the limits, with that seed)
  0.1,0.2,-0.3                        all numbers, in the order that `linkwise info` shows
  elbow=0.5,shoulder=-1               some by the names of hinges; the others stay as they are
  A vector that begins with a minus is written with =, as in --q=-0.5,0,0
"""


def positions(mech: Mechanism, text: str | None, option: str = "--q") -> Array:
    """Joint positions (nq,) from text; neutral if there is none.

    Raises:
        ModelError: Text that is no such vector; says what it was and what is allowed.
    """
    if text is None or text == "neutral":
        return mech.couple(mech.neutral())
    seed = _seed(text, option)
    if seed is not None:
        return mech.random(seed)
    q = mech.couple(_filled(mech.neutral(), text, option, mech.coordinate_names, _starts(mech, 0)))
    return mech.check_q(q)


def velocities(mech: Mechanism, text: str | None, option: str) -> Array:
    """Joint velocities, forces ... (nv,) from text; zero if there is none.

    Raises:
        ModelError: Text that is no such vector.
    """
    if text is None or text == "neutral":
        return np.zeros(mech.nv)
    seed = _seed(text, option)
    if seed is not None:
        return mech.random_velocity(seed)
    return _filled(np.zeros(mech.nv), text, option, mech.velocity_names, _starts(mech, 1))


def _starts(mech: Mechanism, which: int) -> dict[str, slice]:
    """Hinges and bodies with one coordinate, by name."""
    places = (mech.q_slice, mech.v_slice)[which]
    slices = dict[str, slice]()
    for body in mech.bodies:
        slices.setdefault(body.name, places(body.hinge_name))
    for body in mech.bodies:
        slices[body.hinge_name] = places(body.hinge_name)
    return slices


def _seed(text: str, option: str) -> int | None:
    word, _, number = text.partition(":")
    if word != "random":
        return None
    try:
        return int(number) if number else 0
    except ValueError:
        raise ModelError(f"{option} is {text!r}; write random, or random:7 for a seed.") from None


def _filled(
    vector: Array, text: str, option: str, names: tuple[str, ...], hinges: dict[str, slice]
) -> Array:
    out = np.array(vector)
    parts = [part for part in text.replace(",", " ").split() if part]
    if not any("=" in part for part in parts):
        values = [_number(part, option, text) for part in parts]
        if len(values) != len(out):
            count = "1 number" if len(values) == 1 else f"{len(values)} numbers"
            raise ModelError(
                f"{option} has {count}, {text!r}; there are {len(out)}: "
                f"{', '.join(names) or 'none'}. Some of them: {option} NAME=VALUE,NAME=VALUE."
            )
        return np.array(values)
    for part in parts:
        name, equals, value = part.partition("=")
        if not equals:
            raise ModelError(f"{option} mixes numbers and NAME=VALUE in {text!r}; use one of them.")
        number = _number(value, option, text)
        if name in names:
            out[names.index(name)] = number
        elif name in hinges:
            place = hinges[name]
            if place.stop != place.start + 1:
                which = ", ".join(names[place]) or "none"
                count = place.stop - place.start
                raise ModelError(f"{option} names {name!r}, which has {count} numbers: {which}.")
            out[place] = number
        else:
            known = [*names, *hinges]
            raise unknown_name("coordinate", name, known, owner=f"the robot of {option}")
    return out


def _number(text: str, option: str, full: str) -> float:
    try:
        value = float(text)
    except ValueError:
        where = "" if text == full else f" in {full!r}"
        raise ModelError(
            f"{option} has {text!r}{where}, which is not a number; write 0.1,0.2 or NAME=VALUE, "
            "neutral, random or random:7."
        ) from None
    if not np.isfinite(value):
        raise ModelError(f"{option} has {text!r} in {full!r}; all numbers are finite.")
    return value


def check_places(targets: Mapping[str, str | None], *sources: str | None) -> None:
    """Refuse files that cannot be written, that two results would share, or that are read.

    Args:
        targets: Files by the options that name them, like {"--report": "tour.html"}; None for none.
        sources: What is read: a robot's file, a recording; names of no file are passed over.

    Raises:
        ModelError: Says which option, which file, and why.
    """
    taken = list[tuple[str, Path]]()
    for option, text in targets.items():
        if text is None:
            continue
        path = Path(text)
        for source in sources:
            if source is not None and _same(path, Path(source)):
                raise ModelError(
                    f"{option} {text} would overwrite {source}, which is read; choose another name."
                )
        for other, place in taken:
            if _same(path, place):
                raise ModelError(
                    f"{option} and {other} both name {text}; one would overwrite the other."
                )
        taken.append((option, path))
        check_place(option, path)


def check_place(option: str, path: Path) -> None:
    """Refuse a file that cannot be written; nothing is left of the trial.

    Raises:
        ModelError: It is a folder, its folder is missing, or the system does not let us write it.
    """
    if os.path.isdir(path):
        raise ModelError(f"{option} {path} is a folder; give the name of a file, like run.html.")
    if not os.path.isdir(path.parent):
        raise ModelError(
            f"{option} {path}: there is no folder {str(path.parent)!r}; make it first."
        )
    try:
        check_writable(path)
    except WriteError as error:
        raise ModelError(f"{option} {path} cannot be written: {error.reason}.") from None


def _same(a: Path, b: Path) -> bool:
    """Whether two names are of one file; a device may be named twice."""
    if os.path.exists(a) and os.path.exists(b):
        return os.path.isfile(a) and os.path.samefile(a, b)
    try:
        return os.path.realpath(a) == os.path.realpath(b)
    except ValueError:  # a null byte: no file has such a name
        return False


def add_roots(parser: Any) -> None:
    """The option `--roots`, the argument of `lw.load` of that name."""
    parser.add_argument(
        "--roots",
        metavar="FOLDER",
        action="append",
        default=[],
        help="folder in which meshes and included files may lie, too; may be repeated",
    )


def open_robot(
    text: str, *, base: str = "auto", strict: Strict = False, roots: Sequence[str] = ()
) -> Mechanism:
    """Load a file, or build `puma560`, `chain(7)` ... where there is no such file.

    Raises:
        ModelError: Neither a file nor a built-in mechanism.
        ParseError: The file cannot be read.
    """
    looks_like_a_file = os.path.exists(text) or os.sep in text or "." in os.path.basename(text)
    if looks_like_a_file:
        if base not in ("auto", "fixed", "free"):
            raise ModelError(f"base is {base!r}; allowed: auto, fixed, free.")
        return load(text, base=base, strict=strict, roots=roots)
    name, _, numbers = text.partition("(")
    known = [n for n in dir(models) if inspect.isfunction(getattr(models, n))]
    if name not in known:
        raise unknown_name(
            "file or built-in mechanism", name, known, owner="this folder or linkwise"
        )
    try:
        values = [int(x) for x in numbers.rstrip(")").split(",") if x.strip()]
        return getattr(models, name)(*values)
    except (TypeError, ValueError) as error:
        signature = inspect.signature(getattr(models, name))
        raise ModelError(
            f"cannot build {text!r}: {str(error).rstrip('.')}. It is {name}{signature}."
        ) from None
