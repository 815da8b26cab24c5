"""Inverse dynamics: forces that cause given accelerations, and what is needed at none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from linkwise.dynamics.allowed_motion import obeyed
from linkwise.dynamics.kernels import Status, acting, check_mechanism, named, one_state, pushed
from linkwise.dynamics.loops import HELD, Loops, is_closed, tree_of
from linkwise.dynamics.quantity import OWN_AXES, Frame, check_frame
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike


def inverse_dynamics(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    v: ArrayLike,
    vdot: ArrayLike,
    *,
    forces: Mapping[str, ArrayLike] | None = None,
    forces_frame: Frame = "node",
    loops: Loops = "closed",
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Joint forces that cause given joint accelerations.

    Expression:
        τ = 𝓜 v̇ + C − J* f,   `mass @ vdot + bias - J.T @ f`
    with the armature of the mechanism in 𝓜, and without J* f unless `forces` are given.

    Derived form, 2 passes, O(n), the recursion of Newton and Euler:
        N v̇ + H φ (b + M φ* (a + H* v̇))

    With loops or couplings, the forces are those with which `forward_dynamics` gives v̇. Many sets
    of joint forces do that, since loops can carry loads. These are the ones with which they carry
    none, λ = 0, from all hinges; `lw.loops.constrained_inverse_dynamics` finds those of chosen
    drives. Accelerations that break a loop or coupling have no such forces and raise.

    Damping, friction, springs and limits of the hinges are not part of it.

    Args:
        vdot: Joint accelerations (nv,) or (batch, nv) [m/s² or rad/s²]; with loops or couplings,
            J_c v̇ + γ = 0 (`lw.loops.full_acceleration`, `lw.loops.independent_coordinates`).
        forces_frame: Axes of `forces`: those of the "node" or of the "world".

    Returns:
        Joint forces (nv,) or (batch, nv) [N or N m].

    Raises:
        ClosureError: v̇ breaks a loop or coupling, which is named. In a batch its row is NaN
            instead, and a warning or `status` tells.
    """
    quick = one_state(mech).inverse_dynamics
    plain = forces_frame is OWN_AXES and loops is HELD and forces is out is status is None
    if plain and quick is not None:  # most calls: one state
        result = quick(q, v, vdot)
        if result is not None:
            return result
    check_frame(forces_frame, "forces_frame")
    check_mechanism(mech)

    def tree_forces(**asked: Any) -> Array:
        if acting(forces):
            arrays = {"q": q, "v": v, "vdot": vdot}
            return pushed(tree, "inverse_dynamics_with_forces", arrays, forces, forces_frame, asked)
        asked = {key: value for key, value in asked.items() if value is not None}
        found = named(tree, "inverse_dynamics")
        one_state(tree).inverse_dynamics = found.quick
        return found(q, v, vdot, **asked)

    tree = tree_of(mech)
    if is_closed(mech, loops):
        return obeyed(mech, q, v, vdot, tree_forces, out=out, status=status, threads=threads)
    return tree_forces(out=out, status=status, threads=threads)


def bias_force(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    v: ArrayLike,
    *,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Joint forces that keep all joint accelerations at zero: Coriolis, centrifugal, gravity.

    Expression:
        C = H φ (M φ* a + b),   `bias`

    With loops or couplings it is the same term of 𝓜 v̇ + C = τ + J_c* λ.

    Returns:
        Joint forces (nv,) or (batch, nv) [N or N m].
    """
    found = named(mech, "bias_force")
    if out is status is threads is None:
        return found(q, v)
    return found(q, v, out=out, status=status, threads=threads)


def gravity_force(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    *,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Joint forces that hold the mechanism at rest against gravity.

    Expression:
        H φ M φ* a_g,   `H @ phi @ M @ phi.T @ a_g`
    where a_g is the acceleration against gravity of the bodies on the ground. It is `bias_force` at
    v = 0, and the gradient of `potential_energy`. With loops or couplings these forces hold it at
    rest as well, and the loops carry nothing; `lw.loops.holding_forces` finds those of chosen
    drives.

    Returns:
        Joint forces (nv,) or (batch, nv) [N or N m].
    """
    found = named(mech, "gravity_force")
    if out is status is threads is None:
        return found(q)
    return found(q, out=out, status=status, threads=threads)
