"""Forward dynamics: accelerations caused by forces."""

from __future__ import annotations

from collections.abc import Mapping

from linkwise.dynamics.kernels import Status, kernel, pushed
from linkwise.dynamics.quantity import Frame
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike


def forward_dynamics(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    forces: Mapping[str, ArrayLike] | None = None,
    frame: Frame = "node",
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Joint accelerations caused by joint forces.

    Expression:
        v̇ = 𝓜⁻¹ (τ − C + J* f),   `mass.inv @ (tau - bias + J.T @ f)`
    with 𝓜 + N for 𝓜 where the mechanism has armature (or rotors behind gears), and without J* f
    unless `forces` are given.

    Derived form:
        (I − H ψ K)* D⁻¹ [τ − H ψ (K τ + P a + b)] or equal: three passes, O(n)
    Source: JPL 88-11, Theorem 4.1 and algorithm FD4; 000 Lemma 4.3.
    Departs: gravity enters as the acceleration of the base.

    Damping, friction, springs and limits of the hinges are not part of it: add their forces to tau.

    Args:
        mech: The mechanism; loops and couplings are left open.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
        tau: Joint forces (nv,) or (batch, nv) [N or N m].
        forces: Forces that act on the mechanism from outside, by node: (moment, force), (6,) or
            (batch, 6) [N m, N], about the node's origin.
        frame: Axes of `forces`: those of the "node" or of the "world".
        out: Where to put the result.
        status: For a batch, int32 (batch,): receives a code for each state, 0 where all is well.
        threads: Processor cores for a batch; by default as many as are worth it.

    Returns:
        Joint accelerations (nv,) or (batch, nv).

    Raises:
        ShapeError: An array does not fit; says which.
        SingularHingeError: Nothing resists the hinge of some body, which is named. In a batch its
            row is NaN instead, and a warning or `status` tells.
        UnknownNameError: A node that the mechanism does not have.
    """
    quick = mech.kept.get("quick forward_dynamics")
    if quick is not None and forces is out is status is None:  # most calls: one state
        result = quick(q, v, tau)
        if result is not None:
            return result
    if forces:
        arrays = {"q": q, "v": v, "tau": tau}
        asked = {"out": out, "status": status, "threads": threads}
        return pushed(mech, "forward_dynamics_with_forces", arrays, forces, frame, asked)
    found = mech.kept.get("forward_dynamics") or kernel(mech, "forward_dynamics")
    if out is status is threads is None:
        return found(q, v, tau)
    return found(q, v, tau, out=out, status=status, threads=threads)
