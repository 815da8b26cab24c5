"""The errors of loops and couplings as one kernel, for hinges whose nearest pose has a formula.

With X_ab = (R, p) the pose of node b seen from a, as in `model.closure.loop_error`:

    weld   e = (log R, p)
    ball   e = (0, R* p)
    pin    e = (log T* R, T* p),   T = exp(θ u~),   θ = angle(u · r, tr R − u* R u),   r~ = R − R*

T is the turn about the axis u that is nearest to R: it makes tr T* R largest. A nonholonomic hinge
can reach all poses of its hull, a soft finger those of a ball.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.codegen.formula import Formula
from linkwise.codegen.stages import MOST_BODIES
from linkwise.dynamics.kernels import written
from linkwise.dynamics.quantity import expression
from linkwise.model.body import Loop
from linkwise.model.closure import closure_nodes, constant_directions, coupling_error
from linkwise.model.hinges import Locked, Pin, Spherical
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial import rotation
from linkwise.spatial.choice import root, where
from linkwise.spatial.vector import skew

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel
    from linkwise.codegen.writing import Writing


@once_per_mechanism
def error_kernel(mech: Mechanism, per_row: bool) -> Kernel | None:
    """The kernel of `constraint_error`: of rows, or of loops; None where there is no formula."""
    if not all(map(_is_known, mech.loops)) or not mech.loops or mech.n_bodies > MOST_BODIES:
        return None
    return written(mech, _OF_ROWS if per_row else _OF_LOOPS)


def _is_known(loop: Loop) -> bool:
    hinge = loop.hinge.hull
    if isinstance(hinge, Locked):
        return hinge.of is None  # else its pose is not that of a weld
    return isinstance(hinge, Spherical | Pin)


def errors_of_loops(at: Writing) -> Any:
    """e of all loops (loops, 6)."""
    nodes = closure_nodes(at.mech)
    poses = at.value(expression("node_poses"), nodes=nodes).reshape(-1, 2, 3, 4)
    return np.array([_error(x, a, b) for x, (a, b) in zip(at.mech.loops, poses, strict=True)])


def _of_rows(at: Writing) -> Any:
    """S e of all loops, then the couplings (m,)."""
    rows = list[Any]()
    for loop, e in zip(at.mech.loops, errors_of_loops(at), strict=True):
        S = constant_directions(loop.hinge)
        assert S is not None
        rows += (S @ e).tolist()
    return np.array(rows + [coupling_error(at.mech, x, at.q[None])[0] for x in at.mech.couplings])


_OF_LOOPS, _OF_ROWS = Formula(errors_of_loops), Formula(_of_rows)


def _error(loop: Loop, a: Any, b: Any) -> Any:
    """e (6,) of a loop from the poses of its nodes (3, 4)."""
    R, p = a[:, :3].T @ b[:, :3], a[:, :3].T @ (b[:, 3] - a[:, 3])
    hinge = loop.hinge.hull
    if isinstance(hinge, Spherical):
        return np.concatenate([np.zeros(3), R.T @ p])
    if isinstance(hinge, Pin):
        u = np.array(hinge.axis)
        r = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
        x, y = np.trace(R) - u @ R @ u, u @ r
        size = root(x * x + y * y)
        over = 1.0 / where(size, size, 1.0)  # the axes are opposite: every turn is as near
        cosine, sine = where(size, over * x, 1.0), over * y
        across = np.outer(u, u)
        T = cosine * (np.eye(3) - across) + sine * skew(u) + across
        R, p = T.T @ R, T.T @ p
    return np.concatenate([rotation.log(R[None])[0], p])
