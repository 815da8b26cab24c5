"""Joint vectors typed in a terminal: all numbers in a row, or some of them by name."""

from __future__ import annotations

import numpy as np

from linkwise.errors import ModelError, unknown_name
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

HELP = """joint vectors:
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
            f"{option} has {text!r}{where}, which is no number; write 0.1,0.2 or NAME=VALUE, "
            "neutral, random or random:7."
        ) from None
    if not np.isfinite(value):
        raise ModelError(f"{option} has {text!r} in {full!r}; all numbers are finite.")
    return value
