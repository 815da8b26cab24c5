"""Measured samples: which are complete, and what acts from outside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.joint_force import equivalent_force
from linkwise.dynamics.kernels import Forces, acting
from linkwise.dynamics.quantity import Frame
from linkwise.errors import ModelError, ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats

ARRAYS = ("q", "v", "vdot", "tau", "applied")


def known_forces(
    mech: Mechanism,
    q: ArrayLike,
    applied: ArrayLike | None,
    forces: Forces | None,
    frame: Frame,
) -> Array:
    """Joint forces (samples, nv) of everything outside that is known."""
    places = floats(q, "q")
    if places.ndim != 2 or places.shape[1] != mech.nq:
        raise ShapeError(f"q has shape {places.shape}; it must be (samples, {mech.nq}).")
    shape = (len(places), mech.nv)
    total = np.zeros(shape) if applied is None else floats(applied, "applied")
    if total.shape != shape:
        raise ShapeError(f"applied has shape {total.shape}; it must be {shape}.")
    return total + forces_from_outside(mech, places, forces, frame) if acting(forces) else total


def complete_samples(
    mech: Mechanism, *given: ArrayLike, places: Sequence[int] | None = None
) -> tuple[list[Array], NDArray[np.bool_]]:
    """q, v, v̇, τ and perhaps known forces of all samples without a gap, and which these are.

    Of τ, only the columns at `places` count, by default all.
    """
    arrays = list[Array]()
    for name, size, x in zip(ARRAYS, (mech.nq, *[mech.nv] * 4), given, strict=False):
        array = floats(x, name)
        if array.ndim != 2 or array.shape[1] != size:
            raise ShapeError(f"{name} has shape {array.shape}; it must be (samples, {size}).")
        arrays.append(array)
    if len({len(x) for x in arrays}) > 1:
        sizes = ", ".join(
            f"{len(x)} of {name}" for name, x in zip(ARRAYS[:4], arrays, strict=False)
        )
        raise ShapeError(
            f"arrays have different numbers of samples: {sizes}. Give as many of each."
        )
    if not len(arrays[0]):
        raise ShapeError("arrays have no samples; give at least one.")
    counted = list(arrays)
    if places is not None:
        counted[3:] = [x[:, list(places)] for x in arrays[3:]]
    good = np.all([np.isfinite(x).all(axis=1) for x in counted], axis=0)
    if not good.any():
        often = [int((~np.isfinite(x)).any(axis=1).sum()) for x in counted]
        sizes = ", ".join(f"{n} in {name}" for name, n in zip(ARRAYS, often, strict=False) if n)
        raise ModelError(
            f"every sample has a number that is not finite ({sizes} of {len(good)}). Leave out "
            "joints that were not measured (measured=...), or fill gaps "
            "(lw.identification.smoothed)."
        )
    return [x[good] for x in arrays], good


def even_step(t: Array) -> float:
    """The time between samples [s]; raises unless it is the same for all."""
    if len(t) < 2:
        raise ModelError(f"{len(t)} samples are too few: a motion has at least two. Record longer.")
    steps = np.diff(t)
    step = float(np.median(steps))
    if not step > 0.0 or np.abs(steps - step).max() > 1e-3 * step:
        worst = int(np.argmax(np.abs(steps - step)))
        raise ModelError(
            f"times are not evenly spaced: {steps[worst]:.4g} s from sample {worst} to the next, "
            f"and {step:.4g} s mostly. Resample the measurements first, such as by numpy.interp."
        )
    return step


def forces_from_outside(mech: Mechanism, q: ArrayLike, forces: Forces, frame: Frame) -> Array:
    """J* f (samples, nv); NaN where a force or a position is."""
    places, total = floats(q, "q"), np.zeros((len(floats(q, "q")), mech.nv))
    for name, given in forces.items():
        f = floats(given, f"the force on {name!r}")
        if f.shape != (len(places), 6):
            raise ShapeError(
                f"the force on {name!r} has shape {f.shape}; it must be ({len(places)}, 6)."
            )
        good = np.isfinite(places).all(axis=1) & np.isfinite(f).all(axis=1)
        part = np.full_like(total, np.nan)
        part[good] = equivalent_force(mech, places[good], {name: f[good]}, frame=frame)
        total = total + part
    return total
