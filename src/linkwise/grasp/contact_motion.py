"""Contacts of a mechanism in a state: their forces, motions, margins and the joint efforts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linkwise.arguments import rows
from linkwise.dynamics import inverse_dynamics, jacobian, node_velocity
from linkwise.dynamics.closure import (
    closure_nodes,
    constraint_names,
    constraint_sizes,
    loop_coordinates,
    relative_poses,
)
from linkwise.dynamics.constrained import constraint_forces
from linkwise.dynamics.quantity import Frame
from linkwise.errors import ModelError, ShapeError, unknown_name
from linkwise.grasp.contact import LIMITS
from linkwise.model import closure
from linkwise.model.body import WORLD
from linkwise.model.hinges import Free
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats

if TYPE_CHECKING:
    from linkwise.grasp.grasp import Grasp

FAILURES = {"press": "breaks", "slip": "slips", "twist": "twists", "tip": "tips"}
"""What a contact does when a limit is passed."""


@dataclass(frozen=True, slots=True, eq=False)
class ContactState:
    """Configuration and motion of the contacts.

    Attributes:
        parameters: Θ(0) by contact (..., nq of its hinge): an angle for an edge, a quaternion for a
            soft finger or a point.
        rates: W(0) by contact (..., nv of its hinge), the velocities that it leaves free.
        sliding: S V_ab by contact (..., rows): the velocity that it blocks; zero up to rounding
            while the grasp holds.
    """

    parameters: Mapping[str, Array]
    rates: Mapping[str, Array]
    sliding: Mapping[str, Array]


@dataclass(frozen=True, slots=True, eq=False)
class GraspEffort:
    """τ = offset + map f: joint forces of the fingers from contact forces.

    Attributes:
        names: Names of the velocities on which τ acts (n,).
        map: (n, 6 ℓ), for contact forces f in the contacts' frames.
        offset: Joint forces of the motion without any contact (n,) [N m or N].
        limit: Largest |τ| (n,), inf where there is none.
    """

    names: tuple[str, ...]
    map: Array
    offset: Array
    limit: Array

    def of(self, forces: Array) -> Array:
        """τ (..., n) of contact forces (..., ℓ, 6)."""
        f = rows(forces, (self.map.shape[-1] // 6, 6), "the contact force")
        return self.offset + f.reshape(*f.shape[:-2], -1) @ self.map.T


@dataclass(frozen=True, slots=True, eq=False)
class GraspMargins:
    """Margins of each contact against each limit.

    Attributes:
        names: Names of the contacts, ℓ of them.
        values: (..., ℓ, 4) in newtons, in the order of `limits`: positive where the contact holds,
            inf for a limit that it does not have.
        limits: "press", "slip", "twist", "tip".
    """

    names: tuple[str, ...]
    values: Array
    limits: tuple[str, ...] = LIMITS

    @property
    def smallest(self) -> Array:
        """The smallest margin of all (...) [N]."""
        return self.values.min(axis=(-2, -1))

    @property
    def holds(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Whether all contacts hold (...)."""
        return self.smallest >= 0.0

    def of(self, contact: str, limit: str) -> Array:
        """One margin (...) [N].

        Raises:
            UnknownNameError: No contact or no limit of that name.
        """
        if contact not in self.names:
            raise unknown_name("contact", contact, self.names, owner="the grasp")
        if limit not in self.limits:
            raise unknown_name("limit", limit, self.limits, owner="the margins of a contact")
        return self.values[..., self.names.index(contact), self.limits.index(limit)]

    @property
    def weakest(self) -> tuple[str, str]:
        """Contact and limit of the smallest margin, over the whole batch if there is one."""
        i = np.unravel_index(int(np.argmin(self.values)), self.values.shape)
        return self.names[i[-2]], self.limits[i[-1]]

    def __str__(self) -> str:
        if self.values.ndim > 2:
            return f"margins of {', '.join(self.names)}, {len(self.values)} states"
        lines = [f"{'contact':12}" + "".join(f"{limit:>10}" for limit in self.limits) + "   [N]"]
        for name, row in zip(self.names, self.values, strict=True):
            cells = "".join(f"{x:10.3f}" if np.isfinite(x) else f"{'-':>10}" for x in row)
            over = [FAILURES[limit] for limit, x in zip(self.limits, row, strict=True) if x < 0.0]
            lines.append(f"{name:12}{cells}   {', '.join(over) or 'holds'}")
        return "\n".join(lines)


def contact_forces(
    grasp: Grasp,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    forces: Mapping[str, ArrayLike] | None,
    forces_frame: Frame,
    multipliers: ArrayLike | None,
) -> Array:
    """f_i = S_i* λ_i, seen from where each contact is."""
    mech = grasp.mechanism("contact_forces")
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
    result = list[Array]()
    for name, contact in grasp.contacts.items():
        i = index[name]
        S = closure.blocked(mech.loops[i].hinge, poses[i], np.zeros((*lead, 6))).S
        part = lam[..., starts[i] : starts[i + 1]]
        at_node = (np.swapaxes(S, -1, -2) @ part[..., None])[..., 0]
        # A contact that slid is away from node b: the same force, seen from there.
        moved = contact.pose.inverse() @ mech.node(mech.loops[i].node_b).pose
        same = not moved.p.any() and bool((moved.rot == np.eye(3)).all())
        result.append(at_node if same else moved.shift_force(at_node))
    return np.stack(result, axis=-2)


def contact_state(grasp: Grasp, q: ArrayLike, v: ArrayLike) -> ContactState:
    """Θ(0) and W(0) from the relative poses and velocities."""
    mech = grasp.mechanism("contact_state")
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
        W = np.linalg.solve(gram, H @ V_ab[..., None])[..., 0]
        rates[loop.name] = np.asarray(W, dtype=np.float64)
        sliding[loop.name] = (S @ V_ab[..., None])[..., 0]
    return ContactState({name: theta[name] for name in grasp.names}, rates, sliding)


def effort(grasp: Grasp, q: ArrayLike, v: ArrayLike | None, vdot: ArrayLike | None) -> GraspEffort:
    """τ = 𝓜 v̇ + C + J_a* f(0)."""
    mech, q, tau = _open_motion(grasp, q, v, vdot, "effort")
    if tau.ndim > 1:
        raise ShapeError(f"Grasp.effort takes one state; found a batch of shape {tau.shape[:-1]}.")
    assert grasp.body is not None
    poses = dict(zip((loop.name for loop in mech.loops), relative_poses(mech, q), strict=True))
    nodes = [mech.loop(name).node_a for name in grasp.names]
    J_a = np.reshape(jacobian(mech, q, nodes), (-1, 6, mech.nv))
    columns = list[Array]()
    for i, (name, contact) in enumerate(grasp.contacts.items()):
        node_b = mech.node(mech.loop(name).node_b)
        X_AO = poses[name] @ (node_b.pose.inverse() @ contact.pose)
        # The force on a is -φ f, so its joints must supply J_a* φ f more.
        columns.append(J_a[i].T @ X_AO.shift)
    driven = np.ones(mech.nv, dtype=bool)
    if grasp.body != WORLD:
        driven[mech.v_slice(grasp.body)] = False  # nothing drives the object
    names = tuple(np.array(mech.velocity_names)[driven].tolist())
    map_ = np.concatenate(columns, axis=1)[driven]
    return GraspEffort(names, map_, tau[driven], mech.effort_limit[driven])


def needed_wrench(grasp: Grasp, q: ArrayLike, v: ArrayLike | None, vdot: ArrayLike | None) -> Array:
    """The force of the object's free hinge, moved to the object's frame."""
    mech, _, tau = _open_motion(grasp, q, v, vdot, "needed_wrench")
    assert grasp.body is not None
    if grasp.body == WORLD:
        raise ModelError(
            f"contacts of {mech.name!r} are on the ground, which no force moves; needed_wrench "
            "needs contacts on a body that moves."
        )
    body = mech.body(grasp.body)
    if not isinstance(body.hinge, Free):
        raise ModelError(
            f"the object {body.name!r} is joined to {body.parent!r} by a hinge "
            f"'{body.hinge.describe()}'; the motion determines the wrench of its contacts only if "
            "the object is on a free hinge."
        )
    # τ of the free hinge is the force at O in O's axes; the body frame is at `outboard` of O.
    return body.outboard.inverse().shift_force(tau[mech.v_slice(body.name)])


def watch(
    grasp: Grasp, reserve: float, forces: Mapping[str, ArrayLike] | None, forces_frame: Frame
) -> dict[str, Callable[[float, Array, Array, Array], float]]:
    """Margins by name as functions of (t, q, v, tau)."""
    grasp.mechanism("watch")
    last: list[tuple[tuple[bytes, bytes, bytes], GraspMargins]] = []

    def margins(q: Array, v: Array, tau: Array) -> GraspMargins:
        key = (q.tobytes(), v.tobytes(), tau.tobytes())
        if not last or last[0][0] != key:
            f = contact_forces(grasp, q, v, tau, forces, forces_frame, None)
            last[:] = [(key, grasp.margins(f))]
        return last[0][1]

    def watched(i: int, k: int) -> Callable[[float, Array, Array, Array], float]:
        return lambda t, q, v, tau: float(margins(q, v, tau).values[i, k]) - reserve

    result = dict[str, Callable[[float, Array, Array, Array], float]]()
    for i, (name, contact) in enumerate(grasp.contacts.items()):
        for k in np.flatnonzero(np.isfinite(contact.margins(np.zeros(6)))):
            result[f"{name} {FAILURES[LIMITS[k]]}"] = watched(i, int(k))
    if not result:
        raise ModelError(
            f"Grasp.watch found only two-sided contacts ({', '.join(grasp.names)}), which have no "
            "limits to watch. A contact that can be lost has `two_sided=False`."
        )
    return result


def _open_motion(
    grasp: Grasp, q: ArrayLike, v: ArrayLike | None, vdot: ArrayLike | None, function: str
) -> tuple[Mechanism, Array, Array]:
    """The mechanism, q, and the joint forces of the motion with all loops open."""
    mech = grasp.mechanism(function)
    rest = np.zeros(mech.nv)
    v = rest if v is None else mech.check_v(v)
    vdot = rest if vdot is None else mech.check_v(vdot, "vdot")
    q = mech.check_q(q)
    return mech, q, np.asarray(inverse_dynamics(mech, q, v, vdot, loops="open"))


def _multipliers(mech: Mechanism, value: ArrayLike) -> Array:
    """λ (..., m); raises for another shape."""
    lam, names = floats(value, "multipliers"), constraint_names(mech)
    if lam.ndim not in (1, 2) or lam.shape[-1] != len(names):
        raise ShapeError(
            f"multipliers have shape {lam.shape}; {mech.name!r} has {len(names)} rows of loops and "
            f"couplings, so they must have shape ({len(names)},) or (batch, {len(names)})."
        )
    return lam


def _lead(**arrays: Array) -> tuple[int, ...]:
    """The batch shape that arrays share; raises if they share none."""
    try:
        return np.broadcast_shapes(*(x.shape[:-1] for x in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {x.shape}" for name, x in arrays.items())
        raise ShapeError(f"{shapes}: each must be one state, or all one batch of states.") from None
