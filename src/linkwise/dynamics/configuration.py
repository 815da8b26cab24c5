"""Steps on the manifold of configurations: from q with a velocity, and the velocity between two.

Each hinge has an exact rule (`model/hinges`); here they are one kernel of the mechanism.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.arguments import is_tracked, number
from linkwise.bare_call import begins_bare
from linkwise.codegen.formula import Formula
from linkwise.codegen.scalar import status
from linkwise.codegen.scalar.arithmetic import QUATERNION_SLACK
from linkwise.dynamics.kernels import written
from linkwise.errors import ShapeError
from linkwise.model.hinges import Hinge
from linkwise.model.hinges.modified import is_plain
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import keep_bare_call, once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


@begins_bare("dt")
def integrate(mech: Mechanism, q: ArrayLike, v: ArrayLike, dt: float = 1.0) -> Array:
    """Coordinates after velocities were held for a time: exact for each hinge.

    Args:
        q: Joint positions (..., nq) [m or rad].
        v: Joint velocities (..., nv) [m/s or rad/s].
        dt: The time [s].

    Returns:
        q ⊕ v dt (..., nq), with quaternions of unit length.
    """
    if isinstance(dt, float) and dt == 1.0:
        keep_bare_call(mech, "integrate", dt, written(mech, INTEGRATED).quick)
        return _called(mech, INTEGRATED, q, v)
    time: Any = dt
    time = time.reshape(1) if is_tracked(time) else np.array([number(time, "dt")])
    return _called(mech, TIMED, q, v, time)


@begins_bare()
def difference(mech: Mechanism, q0: ArrayLike, q1: ArrayLike) -> Array:
    """The velocities that, held for one second, lead from one configuration to another.

    Args:
        q0: Joint positions to start from (..., nq) [m or rad].
        q1: Joint positions to reach (..., nq) [m or rad].

    Returns:
        q1 ⊖ q0 (..., nv) [m/s or rad/s]; turns of quaternions go the short way.
    """
    keep_bare_call(mech, "difference", (), written(mech, DIFFERENCE).quick)
    return _called(mech, DIFFERENCE, q0, q1)


def _called(mech: Mechanism, formula: Formula, *arrays: Any) -> Array:
    """One state, or states with any leading axes; raises for other arrays."""
    kernel = written(mech, formula)
    quick = kernel.quick and kernel.quick(*arrays)
    if quick is not None:
        return quick
    if any(map(is_tracked, arrays)):
        return kernel(*arrays)
    names, sizes = kernel.arguments, [size for _, size in kernel.signature.inputs]
    given = [
        mech.check_q(x) if n[0] == "q" else mech.check_v(x) if n == "v" else x
        for n, x in zip(names, arrays, strict=True)
    ]
    try:
        lead = np.broadcast_shapes(*(x.shape[:-1] for x in given))
    except ValueError:
        shapes = " and ".join(f"{n} {x.shape}" for n, x in zip(names, given, strict=True))
        raise ShapeError(f"{shapes} do not fit: their leading axes differ.") from None
    rows = [
        x if x.ndim == 1 else np.broadcast_to(x, (*lead, size)).reshape(-1, size)
        for x, size in zip(given, sizes, strict=True)
    ]
    return kernel(*rows).reshape(*lead, *kernel.signature.shape)


def integrated(at: Writing, timed: bool) -> Any:
    """q ⊕ v, or q ⊕ v dt, as a formula."""
    q, v = coordinates(at), at.v
    return moved(at.mech, q, at.read("dt", 1) * v if timed else v)


def moved(mech: Mechanism, q: Any, step: Any) -> Any:
    """q ⊕ step (nq,), in a formula."""
    plain, others = places(mech)
    out = q.copy()
    out[plain[0]] = q[plain[0]] + step[plain[1]]
    for hinge, i, j in others:
        out[i] = hinge.integrate(q[None, i], step[None, j])[0]
    return out


def missing(mech: Mechanism, q0: Any, q1: Any) -> Any:
    """q1 ⊖ q0 (nv,), in a formula."""
    out = np.empty(mech.nv, dtype=object)
    plain, others = places(mech)
    out[plain[1]] = q1[plain[0]] - q0[plain[0]]
    for hinge, i, j in others:
        out[j] = hinge.difference(q0[None, i], q1[None, i])[0]
    return out


def between(at: Writing, q0: str = "q0", q1: str = "q1") -> Any:
    """q1 ⊖ q0, as a formula.

    Args:
        at: The formula.
        q0: Name of the input to start from.
        q1: Name of the input to reach.
    """
    return missing(at.mech, coordinates(at, q0), coordinates(at, q1))


def coordinates(at: Writing, name: str = "q") -> Any:
    """Coordinates (nq,) as an input of a formula: quaternions must have unit length."""
    q, slack = at.read(name, at.mech.nq), QUATERNION_SLACK[at.itemsize]
    for k, body in enumerate(at.mech.bodies):
        if body.hinge.quaternion is not None:
            four = q[int(at.mech.q_start[k]) :][body.hinge.quaternion]
            at.check(status.quaternion(k), (four * four).sum(), 1.0 - slack, 1.0 + slack)
    return q


@once_per_mechanism
def places(
    mech: Mechanism,
) -> tuple[tuple[list[int], list[int]], list[tuple[Hinge, slice, slice]]]:
    """Entries of q and v that are added as numbers; the other hinges, with their places."""
    plain, others = (list[int](), list[int]()), list[tuple[Hinge, slice, slice]]()
    q, v = mech.q_start.tolist(), mech.v_start.tolist()
    for k, body in enumerate(mech.bodies):
        if is_plain(body.hinge):
            plain[0].extend(range(q[k], q[k + 1]))
            plain[1].extend(range(v[k], v[k + 1]))
        else:
            others.append((body.hinge, slice(q[k], q[k + 1]), slice(v[k], v[k + 1])))
    return plain, others


INTEGRATED, TIMED = Formula(integrated, (False,)), Formula(integrated, (True,))
DIFFERENCE = Formula(between)
