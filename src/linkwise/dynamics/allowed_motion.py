"""Accelerations that loops and couplings allow: J_c v̇ + γ = 0, to rounding.

No joint forces cause others while loops and couplings hold.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen.scalar import status as trouble
from linkwise.dynamics.closure_kernels import closed_kernel, run
from linkwise.dynamics.kernels import Status
from linkwise.dynamics.velocity_space import scale
from linkwise.errors import ClosureError
from linkwise.model import closure
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats

OBEYED = 1e-6
"""Part of a velocity, or of an acceleration, that may be off the constraints."""


def obeyed(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    vdot: ArrayLike,
    compute: Callable[..., Array],
    *,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """What `compute` gives, for accelerations that obey loops and couplings.

    Args:
        compute: Called with out, status and threads.
        threads: Processor cores for a batch.

    Raises:
        ClosureError: A single state breaks a loop or coupling, which is named.
    """
    arrays = {"q": q, "v": v, "vdot": vdot}
    try:
        lead = np.broadcast_shapes(*(np.shape(x)[:-1] for x in arrays.values()))
    except ValueError:  # the kernel tells what does not fit
        return compute(out=out, status=status, threads=threads)
    if not lead and status is None:
        rows = run(mech, "constraint_acceleration", arrays)
        off = breaking(mech, v, vdot, rows)
        if off.any():
            raise broken_rows(mech, rows)
        return compute(out=out, threads=threads)
    codes = np.zeros(lead, np.int32)
    rows = run(mech, "constraint_acceleration", arrays, options={"status": codes})
    own = np.zeros(lead, np.int32) if status is None else status
    result = compute(out=out, status=own, threads=threads)
    off = breaking(mech, v, vdot, rows)
    np.copyto(own, codes, where=own == 0)
    np.copyto(own, np.int32(trouble.broken(mech)), where=(own == 0) & off)
    result[own != 0] = np.nan
    if status is None:
        closed_kernel(mech, "constraint_acceleration").warn(own.reshape(-1))
    return result


def breaking(mech: Mechanism, v: ArrayLike, vdot: ArrayLike, rows: Array) -> NDArray[np.bool_]:
    """Which accelerations break loops: J_c v̇ + γ is not zero beside what it is made of."""
    measure = scale(mech)
    speed, rate = (np.linalg.norm(floats(x, "v") / measure.columns, axis=-1) for x in (v, vdot))
    size = measure.length * (rate + speed**2)
    return np.linalg.norm(rows * measure.rows, axis=-1) > OBEYED * size


def broken_rows(mech: Mechanism, rows: Array) -> ClosureError:
    """The error for J_c v̇ + γ (m,) that is not zero; names the worst row."""
    row = int(np.argmax(np.abs(rows * scale(mech).rows)))
    name = closure.constraint_names(mech)[row]
    return ClosureError(
        f"vdot breaks {name!r} of {mech.name!r} by {abs(float(rows[row])):.3g} (rad/s² or m/s²): "
        "no joint forces cause it while loops and couplings hold. "
        "lw.loops.independent_coordinates and "
        'lw.loops.full_acceleration give accelerations that obey them; loops="open" leaves them '
        "open."
    )


__all__ = ["OBEYED", "breaking", "broken_rows", "obeyed"]
