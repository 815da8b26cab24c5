"""How the arms share the force that the object needs.

The contacts have to put w = 𝓜_o v̇_o + C_o on the object, Σ A_i* λ_i = w. There are more contact
forces than that: what is left over squeezes the object. Two ways to choose:

    "internal_force"   the forces that only move the object (`internal_forces`: of least norm, by
                       equal shares, or by the virtual linkage), and a squeeze that is given
    "effort"           the least Σ (τ_j / limit_j)², whatever the squeeze: all actuators together
                       do as little as they can

The shares of 003 (67) follow from them, F_i = Λ_i ẍ + μ_i + p_i + the contact force of arm i seen
from the point: each arm moves itself, and the rest of what it gives goes through its contact.

Source: 003, section 6, with its references: least actuator activity (Khatib 1988), internal forces
by the virtual linkage (Williams and Khatib 1993).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from linkwise.dynamics.closure import blocked_directions
from linkwise.errors import ModelError, unknown_name
from linkwise.grasp import Contact, Grasp
from linkwise.grasp.contact import block_diagonal
from linkwise.grasp.internal_force import Split
from linkwise.grasp.multi_arm.held_object import MultiArm
from linkwise.grasp.multi_effector.held_state import HeldState
from linkwise.model.hinges import Locked
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

Share: TypeAlias = Literal["internal_force", "effort"]

Internal: TypeAlias = Mapping[str, float] | ArrayLike | None
"""Members of the virtual linkage by name, contact forces (contacts, 6) that cancel, or none."""

CANCELS = 1e-9
"""Internal forces whose resultant is above this part of them do not cancel."""


@dataclass(frozen=True, slots=True, eq=False)
class Sharing:
    """A way to share, made once for a mechanism.

    Attributes:
        mech: The mechanism.
        share: "internal_force" or "effort".
        grasp: The contacts; None for "effort".
        gain: (6, contacts 6): contact forces for a unit of each force on the object.
        internal: The squeeze (contacts, 6) that is added.
    """

    mech: Mechanism
    share: Share
    grasp: Grasp | None
    gain: Array
    internal: Array

    @staticmethod
    def of(
        mech: Mechanism,
        parts: MultiArm,
        *,
        share: Share,
        grasp: Grasp | None,
        split: Split,
        internal: Internal,
    ) -> Sharing:
        """Check what was asked for, and prepare it."""
        if share not in get_args(Share):
            raise ModelError(f"share is {share!r}; it must be 'internal_force' or 'effort'.")
        count = len(mech.loops)
        if share == "effort":
            if internal is not None or grasp is not None:
                raise ModelError(
                    "the least effort was asked for and internal forces or a grasp were given; it "
                    "takes whatever squeeze costs least. Use share='internal_force'."
                )
            return Sharing(mech, share, None, np.zeros((6, 6 * count)), np.zeros((count, 6)))
        found = _rigid(mech) if grasp is None else grasp
        _check_grasp(mech, parts, found)
        S = found.passed
        some = (np.linalg.pinv(S @ found.map()) @ S).reshape(6, count, 6)
        gain = found.internal_forces(some, split=split).motion.reshape(6, -1)
        return Sharing(mech, share, found, gain, squeeze(found, internal))

    def squeezed(self, internal: Internal) -> Array:
        """The squeeze (contacts, 6) for one call: that which is given, else that of always."""
        if internal is None:
            return self.internal
        if self.grasp is None:
            raise ModelError("internal forces were given to a controller with share='effort'.")
        return squeeze(self.grasp, internal)

    def multipliers(
        self, q: Array, state: HeldState, wrench: Array, offset: Array, internal: Array
    ) -> Array:
        """λ (rows,) with Σ A* λ = w in the motions that the object has.

        Args:
            q: Joint positions (nq,).
            state: Arms and object there.
            wrench: w (n_o,).
            offset: Joint forces of all arms before contact forces (nv,).
            internal: The squeeze (contacts, 6).
        """
        rows = sum(len(arm.rows) for arm in state.arms)
        A, B = np.zeros((rows, len(wrench))), np.zeros((rows, self.mech.nv))
        for arm in state.arms:
            A[arm.rows] = arm.A
            B[np.ix_(arm.rows, arm.columns)] = arm.B
        some = np.linalg.lstsq(A.T, wrench, rcond=None)[0]
        if self.grasp is not None:
            S = block_diagonal(blocked_directions(self.mech, q))
            moving = (S.T @ some) @ self.grasp.map() @ self.gain
            return np.asarray(S @ (moving + internal.ravel()), dtype=np.float64)
        limit = self.mech.effort_limit
        weight = np.where(np.isfinite(limit), 1.0 / limit, 1.0)
        kernel = np.linalg.svd(A.T)[2][np.linalg.matrix_rank(A) :].T
        effort = weight[:, None] * (B.T @ kernel)
        inside = np.linalg.lstsq(effort, -weight * (offset + B.T @ some), rcond=None)[0]
        return np.asarray(some + kernel @ inside, dtype=np.float64)


def squeeze(grasp: Grasp, internal: Internal) -> Array:
    """Contact forces (contacts, 6) that cancel, from what was given."""
    if internal is None:
        return np.zeros((len(grasp), 6))
    if isinstance(internal, Mapping):
        linkage = grasp.virtual_linkage()
        inside = np.zeros(linkage.dimension)
        for name, value in internal.items():
            if name not in linkage.names:
                raise unknown_name("member", name, linkage.names, owner="the virtual linkage")
            inside[linkage.names.index(name)] = _number(name, value)
        return linkage.contact_forces(np.zeros(6), inside)
    f = grasp.check_forces(internal)
    if f.ndim != 2:
        raise ModelError(f"internal forces have shape {f.shape}; give ({len(grasp)}, 6).")
    scale = np.array([1.0 / grasp.force_space().length] * 3 + [1.0] * 3)
    off = np.abs((f.ravel() @ grasp.map()) * scale).max()
    if off > CANCELS * max(float(np.abs(f).max()), 1.0):
        raise ModelError(
            f"internal forces were given that do not cancel: {off:.4g} N is left of them. Take the "
            "part grasp.internal_forces(forces).internal, or members of grasp.virtual_linkage()."
        )
    return f


def _number(name: str, value: Any) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = np.nan
    if not np.isfinite(found):
        raise ModelError(f"the internal force {name!r} is {value!r}; it must be a number [N, N m].")
    return found


def _rigid(mech: Mechanism) -> Grasp:
    """The grasp of a mechanism whose contacts are all rigid."""
    other = [loop.name for loop in mech.loops if not isinstance(loop.hinge, Locked)]
    if other:
        raise ModelError(
            f"the contact {other[0]!r} of {mech.name!r} is not rigid; say what the contacts are: "
            "grasp=lw.Grasp.of(mech, lw.grasp.Contact(...)), or share='effort'."
        )
    return Grasp.of(mech, Contact("rigid"))


def _check_grasp(mech: Mechanism, parts: MultiArm, grasp: Grasp) -> None:
    names = tuple(loop.name for loop in mech.loops)
    if grasp.mech is not mech or grasp.names != names:
        raise ModelError(
            f"the grasp that was given is not that of {mech.name!r} with its contacts "
            f"{', '.join(names)}; make it with lw.Grasp.of(mech, ...)."
        )
    if not np.all(parts.sign > 0.0) or grasp.body != parts.object_bodies[0]:
        raise ModelError(
            f"the contacts of {mech.name!r} are not all loops from an arm to the body "
            f"{parts.object_bodies[0]!r}, which internal forces need; turn the loops round, or use "
            "share='effort'."
        )
