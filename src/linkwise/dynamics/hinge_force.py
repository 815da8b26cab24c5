"""Forces between bodies: what goes through each hinge, the part that no joint force feels too."""

from __future__ import annotations

from collections.abc import Mapping

from linkwise.dynamics.body_frame import BodyFrame, check_body_frame, forces_seen
from linkwise.dynamics.kernels import Status, acting, called, check_mechanism, named, pushed
from linkwise.dynamics.quantity import Frame, check_frame
from linkwise.dynamics.stacked import flat_out, six_each
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike


def hinge_forces(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    *,
    tau: ArrayLike | None = None,
    vdot: ArrayLike | None = None,
    forces: Mapping[str, ArrayLike] | None = None,
    forces_frame: Frame = "node",
    frame: BodyFrame = "body",
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """The spatial force on each body through its hinge, with the part that constrains its motion.

    Expression, of joint forces:
        z + P λ,   z = ψ (K τ + M φ* a + b − B f),   λ = ψ* H* D⁻¹ (τ − H z)
    It is read off the articulated-body filter: three passes, the same as forward dynamics, and no
    inverse dynamics afterwards. It equals the Newton-Euler force below for v̇ = 𝓜⁻¹ (τ − C + J* f).

    Expression, of joint accelerations:
        φ (M φ* (H* v̇ + a) + b − B f): two passes.
    Source: 000 section 3 (f = φ M α ...), JPL 88-11 (3.17) and algorithm FD3; 004 section 7 has
    z and λ as filtered and smoothed estimates.

    F(k) acts from the parent (or the ground) on body k. Its part along the hinge is the joint force
    less what the rotor takes: H F = τ − N v̇, with N the armature; the rest constrains. For a free
    base all six numbers are joint forces.

    Args:
        mech: The mechanism; loops and couplings are left open.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
        tau: Joint forces (nv,) or (batch, nv) [N or N m]; or else
        vdot: Joint accelerations (nv,) or (batch, nv).
        forces: Forces that act on the mechanism from outside, by node: (moment, force), (6,) or
            (batch, 6) [N m, N], about the node's origin.
        forces_frame: Axes of `forces`: those of the "node" or of the "world".
        frame: Where the result is taken, and in which axes:

            * "body": about the origin of the body frame, in its axes.
            * "hinge": about that of the hinge frame O on the body, in its axes: what a load cell
              in the hinge shows. The same as "body" for a body frame at the hinge.
            * "world": about the origin of the body frame, in world axes.
            * "inertial": about the origin of the world, in its axes.
        out: Where to put the result.
        status: For a batch, int32 (batch,): receives a code for each state, 0 where all is well.
        threads: Processor cores for a batch; by default as many as are worth it.

    Returns:
        (n_bodies, 6) or (batch, n_bodies, 6), (moment, force) [N m, N], in the order of
        `mech.bodies`.

    Raises:
        ModelError: Neither or both of `tau` and `vdot` are given, or a frame that there is not.
        SingularHingeError: Nothing resists the hinge of some body, which is named.
        UnknownNameError: A node that the mechanism does not have.
    """
    plain = frame == "body" and forces_frame == "node"
    if plain and tau is not None and vdot is forces is out is status is threads is None:
        return six_each(named(mech, "hinge_forces")(q, v, tau))  # most calls
    check_frame(forces_frame, "forces_frame")
    check_body_frame(frame, "")
    if (vdot is None) == (tau is None):
        found = "neither" if tau is None else "both"
        raise ModelError(
            f"hinge_forces was given {found} of tau and vdot; give tau= for the joint forces, or "
            "vdot= for the joint accelerations."
        )
    check_mechanism(mech)
    name = "hinge_forces" if vdot is None else "hinge_forces_of_motion"
    arrays = {"q": q, "v": v, "tau": tau, "vdot": vdot}
    asked = {"out": flat_out(out, mech.n_bodies), "status": status, "threads": threads}
    if acting(forces):
        rows = pushed(mech, f"{name}_with_forces", arrays, forces, forces_frame, asked)
    else:
        rows = called(named(mech, name), arrays, asked)
    return forces_seen(mech, q, six_each(rows, out), frame)
