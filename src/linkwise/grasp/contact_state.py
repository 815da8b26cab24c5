"""Contact forces and contact motions of a mechanism in a state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from linkwise.dynamics import node_velocity
from linkwise.dynamics.closure import (
    closure_nodes,
    constraint_names,
    constraint_sizes,
    loop_coordinates,
    relative_poses,
)
from linkwise.dynamics.constrained import constraint_forces
from linkwise.dynamics.quantity import Frame
from linkwise.errors import ShapeError
from linkwise.grasp.effort import mechanism_of
from linkwise.grasp.grasp import Grasp
from linkwise.model import closure
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.spatial.pose import Pose


def contact_forces(
    grasp: Grasp,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    forces: Mapping[str, ArrayLike] | None = None,
    forces_frame: Frame = "node",
    multipliers: ArrayLike | None = None,
) -> Array:
    """f(0): the forces of the fingers on the object while the grasp holds.

    Expression:
        f_i = S_i* λ_i,   Ω λ = -(J_c v̇_f + γ)     so that H(0) f(0) = 0
    Source: 001-II, (a.7) and (b.9d).

    Args:
        grasp: The grasp, of a mechanism.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        v: Joint velocities (nv,) or (batch, nv).
        tau: Joint forces (nv,) or (batch, nv).
        forces: Further forces at nodes, as in `constrained_forward_dynamics`.
        forces_frame: Axes of those.
        multipliers: λ (m,) or (batch, m), where they are known already; then v and tau do not
            matter.

    Returns:
        (ℓ, 6) or (batch, ℓ, 6): (moment, force) on the object, in the contacts' frames [N m, N]. Of
        least norm in λ where contacts carry the load in more than one way.

    Raises:
        ModelError: The grasp has no mechanism.
        ShapeError: An array does not fit; says which.
    """
    mech = mechanism_of(grasp, "contact_forces")
    q = mech.check_q(q)
    if multipliers is None:
        lam = np.asarray(
            constraint_forces(mech, q, v, tau, forces=forces, forces_frame=forces_frame)
        )
    else:
        lam = _multipliers(mech, multipliers)
    lead = _lead(q=q, multipliers=lam)
    q, lam = np.broadcast_to(q, (*lead, mech.nq)), np.broadcast_to(lam, (*lead, lam.shape[-1]))
    starts = np.cumsum([0, *constraint_sizes(mech)])
    poses, index = relative_poses(mech, q), {loop.name: i for i, loop in enumerate(mech.loops)}
    found = list[Array]()
    for name, contact in grasp.contacts.items():
        i = index[name]
        S = closure.blocked(mech.loops[i].hinge, poses[i], np.zeros((*lead, 6))).S
        part = lam[..., starts[i] : starts[i + 1]]
        at_node = (np.swapaxes(S, -1, -2) @ part[..., None])[..., 0]
        # A contact that slid is away from node b: the same force, seen from there.
        moved = contact.pose.inverse() @ mech.node(mech.loops[i].node_b).pose
        found.append(at_node if _is_identity(moved) else moved.shift_force(at_node))
    return np.stack(found, axis=-2)


@dataclass(frozen=True, slots=True, eq=False)
class ContactState:
    """Configuration and motion of the contacts.

    Attributes:
        parameters: Θ(0) by contact (..., nq of its hinge): an angle for an edge, a quaternion for a
            soft finger or a point.
        rates: W(0) by contact (..., nv of its hinge), the velocities that it leaves free.
        sliding: S V_ab by contact (..., rows): the velocity that it blocks; zero, up to rounding,
            where the grasp holds.
    """

    parameters: Mapping[str, Array]
    rates: Mapping[str, Array]
    sliding: Mapping[str, Array]


def contact_state(grasp: Grasp, q: ArrayLike, v: ArrayLike) -> ContactState:
    """Θ(0) and W(0) of 001-II, Appendix A: how the object is turned on its fingers, and how fast.

    Expression:
        V_ab = V⁻ - V⁺ = H(0)* W(0),   Θ̇(0) = F(Θ) W(0)           (a.4)-(a.6)
    Θ is found from the relative pose, not integrated, so that it does not drift; for a soft finger
    it is all of the attitude, though only two velocities are free.

    Args:
        grasp: The grasp, of a mechanism.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        v: Joint velocities (nv,) or (batch, nv).
    """
    mech = mechanism_of(grasp, "contact_state")
    q, v = mech.check_q(q), mech.check_v(v)
    lead = _lead(q=q, v=v)
    q, v = np.broadcast_to(q, (*lead, mech.nq)), np.broadcast_to(v, (*lead, mech.nv))
    V = np.reshape(node_velocity(mech, q, v, closure_nodes(mech)), (*lead, -1, 2, 6))
    poses, theta = relative_poses(mech, q), loop_coordinates(mech, q)
    rates, sliding = dict[str, Array](), dict[str, Array]()
    for i, loop in enumerate(mech.loops):
        if loop.name not in grasp.contacts:
            continue
        V_ab = V[..., i, 1, :] - poses[i].shift_velocity(V[..., i, 0, :])
        H = loop.hinge.hinge_map(theta[loop.name])
        S = closure.blocked(loop.hinge, poses[i], V_ab).S
        gram = H @ np.swapaxes(H, -1, -2)
        found = np.linalg.solve(gram, H @ V_ab[..., None])[..., 0]
        rates[loop.name] = np.asarray(found, dtype=np.float64)
        sliding[loop.name] = (S @ V_ab[..., None])[..., 0]
    return ContactState({name: theta[name] for name in grasp.names}, rates, sliding)


def _multipliers(mech: Mechanism, given: ArrayLike) -> Array:
    """λ (..., m); raises for another shape."""
    lam, names = floats(given, "multipliers"), constraint_names(mech)
    if lam.ndim not in (1, 2) or lam.shape[-1] != len(names):
        raise ShapeError(
            f"multipliers have shape {lam.shape}; {mech.name!r} has {len(names)} rows of loops and "
            f"couplings, so they must have shape ({len(names)},) or (batch, {len(names)})."
        )
    return lam


def _lead(**given: Array) -> tuple[int, ...]:
    """The batch that arrays share; raises if they share none."""
    try:
        return np.broadcast_shapes(*(x.shape[:-1] for x in given.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {x.shape}" for name, x in given.items())
        raise ShapeError(f"{shapes}: each must be one state, or all one batch of states.") from None


def _is_identity(pose: Pose) -> bool:
    return not pose.p.any() and bool((pose.rot == np.eye(3)).all())
