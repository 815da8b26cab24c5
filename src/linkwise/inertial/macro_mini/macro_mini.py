"""A mechanism as two: a macro on the ground and the mini that it carries.

The hinge between them is the `split`. All bodies outboard of it form the mini, all others the
macro; the frame R_M of the mini's base is the body frame of the link that carries it.

    V_0 = V V_M + diag(S_M, S_M) V_m        velocities at the operational point, (36)
    J_0 = [V J_M   J_m]                     (37),  V = [[1, 0], [-p̃_m, 1]], angular part first (38)
    A = [[A_11, A_21*], [A_21, A_22]]       (39)

Source: 003, section 5.1 and 5.2.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import rows
from linkwise.brief import brief, degrees_of_freedom
from linkwise.dynamics.kernels import check_mechanism, kernel
from linkwise.errors import ModelError, unknown_name
from linkwise.model import derived
from linkwise.model.body import WORLD
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.rotation import skew

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class MacroMini:
    """A mechanism and the two it consists of.

    Attributes:
        mech: The whole.
        split: Name of the hinge that carries the mini.
        node: The operational point, a node or body of the mini.
        carrier: The link of the macro that the mini is on; its body frame is R_M.
        macro: The macro alone: the bodies that are not outboard of the split.
        mini: The mini alone, with R_M as its world. Its gravity is not rotated; use `mini_at` for
            effects of gravity.
        macro_v: Indices of the macro's velocities in v of the whole (n_M,).
        mini_v: Indices of the mini's velocities in v (n_m,).
        macro_q: Indices of the macro's coordinates in q.
        mini_q: Indices of the mini's coordinates in q.
    """

    mech: Mechanism
    split: str
    node: str
    carrier: str
    macro: Mechanism
    mini: Mechanism
    macro_v: Places
    mini_v: Places
    macro_q: Places
    mini_q: Places

    def mini_at(self, q: ArrayLike) -> Mechanism:
        """The mini alone, on a fixed base at its pose on the macro.

        Args:
            q: Joint positions of the whole (nq,) [m or rad].
        """
        q = rows(self.mech.check_q(q), self.mech.nq, "q", stacked=False)
        base = self.macro.pose(q[self.macro_q], self.carrier)
        first = dataclasses.replace(self.mini.bodies[0], inboard=base @ self.mini.bodies[0].inboard)
        return derived.replaced(self.mini, bodies=(first, *self.mini.bodies[1:]))

    def at(self, q: ArrayLike) -> MacroMiniState:
        """Kinematics and inertia of both in a state (nq,), or in several (batch, nq)."""
        q = self.mech.check_q(q)
        inner, outer = q[..., self.macro_q], q[..., self.mini_q]
        base = self.macro.pose(inner, self.carrier)
        arm = base.rot @ self.mini.pose(outer, self.node).p[..., None]  # p_m in world axes
        V = np.zeros((*q.shape[:-1], 6, 6))
        V[..., range(6), range(6)] = 1.0
        V[..., 3:, :3] = -skew(arm[..., 0])
        turn = np.zeros(V.shape)
        turn[..., :3, :3] = turn[..., 3:, 3:] = base.rot
        J_M = kernel(self.macro, "jacobian", self.carrier, frame="world")(inner)
        J_m = turn @ kernel(self.mini, "jacobian", self.node, frame="world")(outer)
        A = kernel(self.mech, "mass_matrix")(q)
        A_m = kernel(self.mini, "mass_matrix")(outer)
        first, second = self.macro_v[:, None], self.mini_v[:, None]
        return MacroMiniState(
            V,
            J_M,
            J_m,
            A[..., first, self.macro_v],
            A[..., second, self.macro_v],
            A[..., second, self.mini_v],
            A_m,
        )

    def __str__(self) -> str:
        return (
            f"{self.mech.name}: a mini with {degrees_of_freedom(len(self.mini_v))} from hinge "
            f"{self.split!r} to {self.node!r}, carried by {self.carrier!r} of a macro with "
            f"{degrees_of_freedom(len(self.macro_v))}"
        )


@brief
@dataclass(frozen=True, slots=True, eq=False)
class MacroMiniState:
    """Kinematics and inertia of a macro and its mini; for a batch, arrays have it in front.

    Spatial quantities are in world axes, angular part first.

    Attributes:
        shift: V (6, 6) of (38), from velocities of R_M to those of a point fixed to the macro where
            the operational point is.
        macro_jacobian: J_M (6, n_M), of R_M, from the model of the macro alone.
        mini_jacobian: J_m (6, n_m), of the operational point, from the model of the mini alone.
        inertia_11: A_11 (n_M, n_M): the macro carrying the mini with its joints locked.
        inertia_21: A_21 (n_m, n_M).
        inertia_22: A_22 (n_m, n_m).
        mini_inertia: A_m (n_m, n_m), from the model of the mini alone.
    """

    shift: Array
    macro_jacobian: Array
    mini_jacobian: Array
    inertia_11: Array
    inertia_21: Array
    inertia_22: Array
    mini_inertia: Array

    @property
    def jacobian(self) -> Array:
        """J_0 = [V J_M  J_m] (6, n_M + n_m) of (37), the macro's velocities first."""
        return np.concatenate([self.shift @ self.macro_jacobian, self.mini_jacobian], axis=-1)

    @property
    def freed_inertia(self) -> Array:
        """A_11 - A_21* A_22⁻¹ A_21 (n_M, n_M): the macro, with the mini's joints free.

        Its inverse is Ā_11 of (44), a block of A⁻¹.
        """
        reaction = np.linalg.solve(self.inertia_22, self.inertia_21)
        return self.inertia_11 - np.swapaxes(self.inertia_21, -1, -2) @ reaction


def macro_mini(mech: Mechanism, split: str, node: str) -> MacroMini:
    """Split a mechanism into a macro and the mini at its end.

    `macro.mount(mini, at="flange")` puts a mini with its own model on a macro.

    Args:
        mech: The mechanism; loops and couplings are left open, those between the two raise.
        split: The hinge that carries the mini, by its name or that of its body.
        node: The operational point: a node or body of the mini.

    Raises:
        UnknownNameError: The mechanism has no such hinge or node.
        ModelError: The node is not outboard of the split; nothing moves inboard of it; or a loop or
            coupling connects the two.
    """
    check_mechanism(mech)
    k = _body_of(mech, split)
    name = mech.bodies[k].hinge_name
    way = path_to(mech, node)
    if k not in way:
        hinges = [mech.bodies[i].hinge_name for i in way if mech.bodies[i].hinge.nv]
        raise ModelError(
            f"{split!r} cannot separate macro and mini, because {node!r} is not outboard of it: "
            f"the path to it passes {', '.join(map(repr, hinges)) or 'no moving hinge'}. Use one "
            "of these as the split."
        )
    if not any(mech.bodies[i].hinge.nv for i in way[: way.index(k)]):
        raise ModelError(
            f"{split!r} cannot separate macro and mini, because nothing moves between the ground "
            "and it: a macro has at least one degree of freedom (003, (35)). Use a hinge farther "
            "out."
        )
    return _split(mech, k, name, node)


@once_per_mechanism
def _split(mech: Mechanism, k: int, name: str, node: str) -> MacroMini:
    mini = derived.extract(mech, mech.bodies[k].name, None)
    outer = {body.name for body in mini.bodies}
    inner = [body for body in mech.bodies if body.name not in outer]
    macro = derived.replaced(
        mech,
        name=f"{mech.name}:macro",
        bodies=tuple(inner),
        nodes=tuple(x for x in mech.nodes if x.body not in outer),
        loops=tuple(x for x in mech.loops if x not in mini.loops),
        couplings=tuple(x for x in mech.couplings if x not in mini.couplings),
    )
    places = [
        np.concatenate([np.zeros(0, dtype=np.int64), *(np.arange(size)[at(x.name)] for x in part)])
        for size, at in ((mech.nv, mech.v_slice), (mech.nq, mech.q_slice))
        for part in (macro.bodies, mini.bodies)
    ]
    return MacroMini(mech, name, node, mech.bodies[k].parent, macro, mini, *places)


def path_to(mech: Mechanism, node: str) -> list[int]:
    """Indices of the bodies from the ground to a node."""
    way, k = list[int](), mech.body_index[mech.node(node).body]
    while k >= 0:
        way.append(k)
        k = int(mech.parent[k])
    return way[::-1]


def _body_of(mech: Mechanism, name: object) -> int:
    k = -1
    if isinstance(name, str) and name != WORLD:
        k = mech.hinge_index.get(name, mech.body_index.get(name, -1))
    if k < 0:
        known = [*mech.hinge_index, *(b.name for b in mech.bodies)]
        raise unknown_name("hinge or body", name, known, owner=f"mechanism {mech.name!r}")
    return k
