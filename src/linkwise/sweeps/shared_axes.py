"""Bodies in the axes of another body: along a limb, nothing is turned from body to body.

Every operator of the algebra may be written in other frames. With a frame for each body that moves
with it, and φ(k) the shift from body k to that frame,

    H(k) -> H(k) φ⁻¹(k)     M(k) -> φ(k) M(k) φ*(k)     φ(p,k) -> φ(p) φ(p,k) φ⁻¹(k)

and joint forces, accelerations and matrices over joints stay what they are. Where k takes the frame
of its parent, its shift is the identity: recursions over columns cost nothing there, and H(k) and
M(k) cost more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algebra import role
from linkwise.algebra.expr import Symbol
from linkwise.algebra.space import JOINT, ONE
from linkwise.model.hinges.screw_hinges import AxisHinge
from linkwise.spatial.inertia import SpatialInertia, trusted_inertia
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.vector import cross_force, cross_velocity
from linkwise.sweeps.bodies import Bodies, first
from linkwise.sweeps.structured_block import Structured, WorldBlock, mirrored

if TYPE_CHECKING:
    from linkwise.sweeps.interpret import Interpreter
    from linkwise.sweeps.program import Program, Statement


@dataclass(frozen=True, slots=True, eq=False)
class NoShift(Structured):
    """φ between bodies in the same frame."""

    @property
    def T(self) -> NoShift:
        """The adjoint: itself."""
        return self

    @property
    def dense(self) -> Any:
        """(6, 6)."""
        return np.eye(6)

    def __matmul__(self, x: Any) -> Any:
        return x

    def __rmatmul__(self, x: Any) -> Any:
        return x


class SharedAxes(Bodies):
    """Bodies of which some are written in the frame of their parent.

    Attributes:
        shared: Whether each body is.
    """

    def __init__(
        self, mech: Any, nodes: Sequence[Any], node_body: Sequence[int], shared: Sequence[bool]
    ) -> None:
        super().__init__(mech, nodes, node_body)
        self.shared = shared
        self._frames = dict[int, Pose]()
        self._inertias = dict[int, Any]()
        self._maps = dict[int, Any]()

    def frame(self, run: Interpreter, k: int) -> Pose | None:
        """X of body k seen from its frame; None where that is its own."""
        return self._from_frame(run, k) if k >= 0 and self.shared[k] else None

    def _from_frame(self, run: Interpreter, k: int) -> Pose:
        """X of body k seen from the frame of its parent."""
        if k not in self._frames:
            pose, above = run.arithmetic.pose(k), self.frame(run, int(self.mech.parent[k]))
            if above is not None:
                pose = trusted_pose(above.rot @ pose.rot, above.rot @ pose.p + above.p)
            self._frames[k] = pose
        return self._frames[k]

    def operator(self, run: Interpreter, leaf: Symbol) -> list[Any] | None:
        """The blocks of a memoryless operator; None for others."""
        if isinstance(leaf.role, role.Memoryless) and leaf.role.source == "M":
            return [first(self.inertia(run, k).matrix, 2) for k in range(self.mech.n_bodies)]
        return super().operator(run, leaf)

    def inertia(self, run: Interpreter, k: int) -> SpatialInertia:
        """M(k) in its frame."""
        frame, inertia = self.frame(run, k), run.arithmetic.inertia(k)
        if frame is None:
            return inertia
        if k not in self._inertias:
            run.arithmetic.enter(k)
            self._inertias[k] = moved(inertia, frame)
        return self._inertias[k]

    def special(self, run: Interpreter, statement: Statement, k: int) -> Any:
        """What a special statement gives at body k."""
        what, frame, numbers = statement.special, self.frame(run, k), run.arithmetic
        if what == "phi(q)":
            return NoShift() if frame is not None else numbers.shift(self._from_frame(run, k))
        if frame is None or what in ("cross", "swap"):
            return super().special(run, statement, k)
        if what == "H(q)":
            return self._hinge_map(run, k)
        if what in ZERO:
            return super().special(run, statement, k)
        V = run.blocks_of(statement.reads[0][0])[k][None, :, 0]
        if what == "A_V":
            return cross_velocity(V, self._hinge_map(run, k)).T
        if what == "a":
            part = slice(self.mech.v_start[k], self.mech.v_start[k + 1])
            return cross_velocity(V, (self._hinge_map(run, k).T @ numbers.v[part])[None]).T
        M_k = self.inertia(run, k)
        if what == "B_V":
            return first(M_k.coriolis_factor(V), 2)
        return cross_force(V, M_k.apply(V)).T

    def _hinge_map(self, run: Interpreter, k: int) -> Any:
        """H(k) in its frame (nv, 6)."""
        if k not in self._maps:
            frame, body = self._from_frame(run, k), self.mech.bodies[k]
            H = body.hinge.hinge_map(body.hinge.neutral()) @ body.outboard.shift
            self._maps[k] = (WorldBlock(frame.rot, frame.p) @ H.T).T
        return self._maps[k]


def moved(inertia: SpatialInertia, pose: Pose) -> SpatialInertia:
    """φ M φ*, with a leading axis.

    With c = rot h and s = c + m p / 2:  J_A = rot J rot* + 2 (p·s) 1 - p s* - s p*,  h_A = c + m p.
    """
    rot, p = pose.rot, pose.p
    m, h, J = (first(np.asarray(x), n) for n, x in enumerate((inertia.mass, inertia.h, inertia.J)))
    c, half = rot @ h, rot @ J
    s = c + (0.5 * m) * p
    turned = np.empty((3, 3), dtype=object)
    for i in range(3):
        for j in range(i, 3):
            turned[i, j] = half[i] @ rot[j]
    products = np.outer(p, s)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        turned[i, i] = turned[i, i] + 2.0 * (products[j, j] + products[k, k])
    for i, j in ((0, 1), (0, 2), (1, 2)):
        turned[i, j] = turned[i, j] - (products[i, j] + products[j, i])
    return trusted_inertia(np.array([m]), (c + m * p)[None], mirrored(turned)[None])


ZERO = {"H_rate", "bias_rate_q", "bias_rate_v"}
"""Statements that give zero where hinge maps are constant, as those of bodies in a shared frame."""

SPECIALS = {"", "phi(q)", "H(q)", "a", "b", "A_V", "B_V", "cross", "swap", "a_g"} | ZERO
"""Statements that mean the same in all frames."""

MADE = {"a", "b", "a_g", "H", "M", "N", "phi", "A_V", "B_V"}
"""Leaves over bodies that are."""


def may_share(program: Program) -> bool:
    """Whether nothing of a program is seen from a body: its inputs and results are over joints."""
    results = [program.result, *(quantity for _, quantity in program.more)]
    spaces = {x for r in results for x in (r.rows, r.columns)}
    spaces |= {x.range for x in program.inputs if _source(x) not in MADE}
    return spaces <= {JOINT, ONE} and {s.special for s in program.statements} <= SPECIALS


def _source(leaf: Symbol) -> str:
    return getattr(leaf.role, "source", "")


def shared_limbs(program: Program, bodies: Bodies) -> SharedAxes | None:
    """Bodies in the frame of the first one of their limb; None where that cannot be cheaper.

    It may be for matrices over joints, whose columns travel along limbs.
    """
    mech = bodies.mech
    results = [program.result, *(quantity for _, quantity in program.more)]
    if all(quantity.columns is ONE for quantity in results):
        return None
    parents = mech.parent.tolist()
    shared = [
        isinstance(body.hinge, AxisHinge) and p >= 0 and parents[p] >= 0
        for p, body in zip(parents, mech.bodies, strict=True)
    ]
    return SharedAxes(mech, bodies.nodes, bodies.node_body, shared) if any(shared) else None
