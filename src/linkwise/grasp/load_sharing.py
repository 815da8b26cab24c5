"""How the arms share the force that the object needs.

The contacts must apply w = 𝓜_o v̇_o + C_o to the object, Σ A_i* λ_i = w. Contact forces have more
components than that; the remainder squeezes the object. There are two ways to choose:

    "internal_force"   the forces that only move the object (`Grasp.internal_forces`: of least norm,
                       by equal shares, or by the virtual linkage), plus a given squeeze
    "effort"           the least Σ (τ_j / limit_j)², with whatever squeeze results

The shares of 003 (67) follow, F_i = Λ_i ẍ + μ_i + p_i + the contact force of arm i seen from the
point: each arm moves itself and transmits the rest through its contact.

Source: 003, section 6, with its references: least actuator activity (Khatib 1988), internal forces
by the virtual linkage (Williams and Khatib 1993).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from linkwise.arguments import number
from linkwise.errors import ModelError, unknown_name
from linkwise.grasp.arms import MultiArm
from linkwise.grasp.contact import Contact, block_diagonal
from linkwise.grasp.grasp import Grasp
from linkwise.grasp.held_object import HeldState
from linkwise.grasp.internal_force import Split
from linkwise.model.hinges import Locked
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

Share: TypeAlias = Literal["internal_force", "effort"]

Internal: TypeAlias = Mapping[str, float] | ArrayLike | None
"""Members of the virtual linkage by name, contact forces (contacts, 6) that cancel, or none."""

CANCELS = 1e-9
"""Internal forces cancel if their resultant is below this fraction of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Sharing:
    """A way to share, prepared for a mechanism.

    Attributes:
        mech: The mechanism.
        grasp: The contacts; None for "effort".
        gain: (contacts 6, contacts 6): from any contact forces to those that are shared.
        internal: The squeeze (contacts, 6) that is added.
    """

    mech: Mechanism
    grasp: Grasp | None
    gain: Array
    internal: Array

    @staticmethod
    def of(
        mech: Mechanism,
        parts: MultiArm,
        share: Share,
        grasp: Grasp | None,
        split: Split,
        internal: Internal,
    ) -> Sharing:
        """Check the options and prepare the gain."""
        if share not in get_args(Share):
            raise ModelError(f"share is {share!r}; it must be 'internal_force' or 'effort'.")
        count = len(mech.loops)
        if share == "effort":
            if internal is not None or grasp is not None:
                raise ModelError(
                    "share is 'effort', which determines the squeeze, but internal forces or a "
                    "grasp were given. Use share='internal_force'."
                )
            return Sharing(mech, None, np.zeros((6, 6 * count)), np.zeros((count, 6)))
        grasp = _rigid(mech) if grasp is None else grasp
        _check_grasp(mech, parts, grasp)
        S = grasp.passed
        some = (np.linalg.pinv(S @ grasp.map()) @ S).reshape(6, count, 6)
        gain = grasp.internal_forces(some, split=split).motion.reshape(6, -1)
        return Sharing(mech, grasp, grasp.map() @ gain, squeeze(grasp, internal))

    def squeezed(self, internal: Internal) -> Array:
        """The squeeze (contacts, 6) for one call: the given one, else the prepared one."""
        if internal is None:
            return self.internal
        if self.grasp is None:
            raise ModelError("internal forces were given to a controller with share='effort'.")
        return squeeze(self.grasp, internal)

    def multipliers(self, state: HeldState, wrench: Array, offset: Array, internal: Array) -> Array:
        """λ (rows,) with Σ A* λ = w in the possible motions of the object.

        Args:
            state: Arms and object.
            wrench: w (n_o,).
            offset: Joint forces of all arms before contact forces (nv,).
            internal: The squeeze (contacts, 6).
        """
        rows = sum(len(arm.rows) for arm in state.arms)
        A, B = np.zeros((rows, len(wrench))), np.zeros((rows, self.mech.nv))
        for arm in state.arms:
            A[arm.rows] = arm.numbers.A
            B[np.ix_(arm.rows, arm.columns)] = arm.numbers.B
        some = np.linalg.lstsq(A.T, wrench, rcond=None)[0]
        if self.grasp is not None:
            S = block_diagonal(state.loops)
            moving = (S.T @ some) @ self.gain
            return np.asarray(S @ (moving + internal.ravel()), dtype=np.float64)
        limit = self.mech.effort_limit
        weight = np.where(np.isfinite(limit), 1.0 / limit, 1.0)
        kernel = np.linalg.svd(A.T)[2][np.linalg.matrix_rank(A) :].T
        effort = weight[:, None] * (B.T @ kernel)
        inside = np.linalg.lstsq(effort, -weight * (offset + B.T @ some), rcond=None)[0]
        return np.asarray(some + kernel @ inside, dtype=np.float64)


def squeeze(grasp: Grasp, internal: Internal) -> Array:
    """Contact forces (contacts, 6) that cancel, from the argument `internal`."""
    if internal is None:
        return np.zeros((len(grasp), 6))
    if isinstance(internal, Mapping):
        linkage = grasp.virtual_linkage()
        inside = np.zeros(linkage.dimension)
        for name, value in internal.items():
            if name not in linkage.names:
                raise unknown_name("member", name, linkage.names, owner="the virtual linkage")
            inside[linkage.names.index(name)] = number(
                value, f"the internal force {name!r} [N, N m]"
            )
        return linkage.contact_forces(np.zeros(6), inside)
    f = grasp.check_forces(internal)
    if f.ndim != 2:
        raise ModelError(f"internal forces have shape {f.shape}; give ({len(grasp)}, 6).")
    scale = np.array([1.0 / grasp.force_space().length] * 3 + [1.0] * 3)
    off = np.abs((f.ravel() @ grasp.map()) * scale).max()
    if off > CANCELS * max(float(np.abs(f).max()), 1.0):
        raise ModelError(
            f"the internal forces do not cancel: a resultant of {off:.4g} N remains. Use the part "
            "grasp.internal_forces(forces).internal, or members of grasp.virtual_linkage()."
        )
    return f


def _rigid(mech: Mechanism) -> Grasp:
    """The grasp of a mechanism whose contacts are all rigid."""
    other = [loop.name for loop in mech.loops if not isinstance(loop.hinge, Locked)]
    if other:
        raise ModelError(
            f"the contact {other[0]!r} of {mech.name!r} is not rigid; describe the contacts with "
            "grasp=lw.Grasp.of(mech, lw.grasp.Contact(...)), or use share='effort'."
        )
    return Grasp.of(mech, Contact("rigid"))


def _check_grasp(mech: Mechanism, parts: MultiArm, grasp: Grasp) -> None:
    names = tuple(loop.name for loop in mech.loops)
    if grasp.mech is not mech or grasp.names != names:
        raise ModelError(
            f"the given grasp is not that of {mech.name!r} with its contacts {', '.join(names)}; "
            "make it with lw.Grasp.of(mech, ...)."
        )
    if not np.all(parts.sign > 0.0) or grasp.body != parts.object_bodies[0]:
        raise ModelError(
            f"the contacts of {mech.name!r} are not all loops from an arm to the body "
            f"{parts.object_bodies[0]!r}, which internal forces need; reverse the loops, or use "
            "share='effort'."
        )
