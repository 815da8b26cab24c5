"""Joint forces that go with contact forces, and the force on the object that a motion needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.arguments import rows
from linkwise.dynamics import inverse_dynamics, jacobian
from linkwise.dynamics.closure import relative_poses
from linkwise.errors import ModelError, ShapeError
from linkwise.grasp.grasp import Grasp, check_grasp
from linkwise.model.body import WORLD
from linkwise.model.hinges import Free
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike


@dataclass(frozen=True, slots=True, eq=False)
class GraspEffort:
    """τ = offset + map f: joint forces of the fingers from contact forces.

    Attributes:
        names: Names of the velocities whose forces these are (n,).
        map: (n, 6 ℓ), f being the contact forces in the contacts' frames.
        offset: What the motion asks for without any contact (n,) [N m or N].
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


def grasp_effort(
    grasp: Grasp, q: ArrayLike, v: ArrayLike | None = None, vdot: ArrayLike | None = None
) -> GraspEffort:
    """Joint forces that a motion with contact forces needs.

    Expression:
        τ = 𝓜 v̇ + C + J_a* f(0)      (001-II, 2.10a), f(0) on the object, J_a of the fingers' nodes

    Args:
        grasp: The grasp, of a mechanism.
        q: Joint positions (nq,) [m or rad].
        v: Joint velocities (nv,); by default at rest.
        vdot: Joint accelerations (nv,) of the fingers and the object alike; by default none.

    Raises:
        ModelError: The grasp has no mechanism.
    """
    mech, q, tau = _motion(grasp, q, v, vdot, "grasp_effort")
    if tau.ndim > 1:
        raise ShapeError(f"grasp_effort takes one state; found a batch of shape {tau.shape[:-1]}.")
    assert grasp.body is not None
    loops = {
        loop.name: (loop, X_ab)
        for loop, X_ab in zip(mech.loops, relative_poses(mech, q), strict=True)
    }
    nodes = [loops[name][0].node_a for name in grasp.names]
    J_a = np.reshape(jacobian(mech, q, nodes), (-1, 6, mech.nv))
    columns = list[Array]()
    for i, (name, contact) in enumerate(grasp.contacts.items()):
        loop, X_ab = loops[name]
        X_AO = X_ab @ (mech.node(loop.node_b).pose.inverse() @ contact.pose)
        # The force on a is -φ f, so its joints have to give J_a* φ f more.
        columns.append(J_a[i].T @ X_AO.shift)
    whole = np.concatenate(columns, axis=1)
    own = np.ones(mech.nv, dtype=bool)
    if grasp.body != WORLD:
        own[mech.v_slice(grasp.body)] = False  # of the object: nothing drives it
    names = tuple(np.array(mech.velocity_names)[own].tolist())
    return GraspEffort(names, whole[own], tau[own], mech.effort_limit[own])


def needed_wrench(
    grasp: Grasp, q: ArrayLike, v: ArrayLike | None = None, vdot: ArrayLike | None = None
) -> Array:
    """What contacts have to do to the object for a motion: f_C = M(C) α_C + b_C, with gravity.

    Source: 001-II, (2.4) and (2.9).

    Args:
        grasp: The grasp, of a mechanism in which the object hangs on a free hinge.
        q: Joint positions (nq,) [m or rad].
        v: Joint velocities (nv,); by default at rest.
        vdot: Joint accelerations (nv,); by default none.

    Returns:
        (moment, force) (6,) at the origin of the object's frame, in its axes [N m, N].

    Raises:
        ModelError: The grasp has no mechanism; the object is not on a free hinge.
    """
    mech, _, tau = _motion(grasp, q, v, vdot, "needed_wrench")
    assert grasp.body is not None
    if grasp.body == WORLD:
        raise ModelError(
            f"contacts of {mech.name!r} are on the ground, which no force moves; what it takes to "
            "move it was asked for."
        )
    body = mech.body(grasp.body)
    if not isinstance(body.hinge, Free):
        raise ModelError(
            f"the object {body.name!r} is joined to {body.parent!r} by a hinge "
            f"'{body.hinge.describe()}'; what its contacts have to do is only told by the motion "
            "where it hangs on a free hinge."
        )
    # τ of the free hinge is the force at O in O's axes; the body frame is at `outboard` of O.
    return body.outboard.inverse().shift_force(tau[mech.v_slice(body.name)])


def mechanism_of(grasp: Grasp, asked: str) -> Mechanism:
    """The mechanism of a grasp; raises if there is none."""
    check_grasp(grasp, asked)
    if grasp.mech is None:
        raise ModelError(
            f"{asked} needs a mechanism, and this grasp has none; make it with "
            "Grasp.of(mech, {loop: contact})."
        )
    return grasp.mech


def _motion(
    grasp: Grasp, q: ArrayLike, v: ArrayLike | None, vdot: ArrayLike | None, asked: str
) -> tuple[Mechanism, Array, Array]:
    """The mechanism, q, and the joint forces of the motion as if no loop were there."""
    mech = mechanism_of(grasp, asked)
    still = np.zeros(mech.nv)
    v = still if v is None else mech.check_v(v)
    vdot = still if vdot is None else mech.check_v(vdot, "vdot")
    q = mech.check_q(q)
    return mech, q, np.asarray(inverse_dynamics(mech, q, v, vdot, loops="open"))
