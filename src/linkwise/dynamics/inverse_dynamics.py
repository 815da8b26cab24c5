"""Inverse dynamics: joint forces that cause given accelerations."""

from __future__ import annotations

from typing import Any, Unpack

from linkwise.bare_call import begins_bare
from linkwise.dynamics.constrained import obeyed
from linkwise.dynamics.kernels import (
    Forces,
    Loops,
    Options,
    acting,
    begun,
    check_mechanism,
    is_closed,
    named,
    pushed,
    tree_of,
)
from linkwise.dynamics.quantity import Frame, check_frame
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike


@begins_bare("loops")
def inverse_dynamics(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    v: ArrayLike,
    vdot: ArrayLike,
    *,
    forces: Forces | None = None,
    forces_frame: Frame = "node",
    loops: Loops = "closed",
    **options: Unpack[Options],
) -> Array:
    """Joint forces that cause given joint accelerations.

    Expression:
        τ = 𝓜 v̇ + C − J* f,   `mass @ vdot + bias - J.T @ f`
    with the armature of the mechanism in 𝓜, and without J* f unless `forces` are given.

    Derived form, 2 passes, O(n), the recursion of Newton and Euler:
        N v̇ + H φ (b + M φ* (a + H* v̇))

    With loops or couplings, these are forces with which `forward_dynamics` gives v̇. Many sets of
    joint forces do that, since loops can carry loads. The result is the set with which they carry
    none, λ = 0, from all hinges; `lw.loops.drive_forces` finds those of selected drives.
    Accelerations that break a loop or coupling have no such forces and raise.

    Damping, friction, springs and limits of the hinges are not part of it.

    Args:
        vdot: Joint accelerations (nv,) or (batch, nv) [m/s² or rad/s²]; with loops or couplings,
            J_c v̇ + γ = 0 (`lw.loops.full_acceleration`, `lw.loops.independent_coordinates`).

    Returns:
        Joint forces (nv,) or (batch, nv) [N or N m].

    Raises:
        ClosureError: v̇ breaks a loop or coupling, which is named. In a batch its row is NaN
            instead, reported by a warning or by `status`.
    """
    check_frame(forces_frame, "forces_frame")
    check_mechanism(mech)
    tree = tree_of(mech)

    def tree_forces(**options: Any) -> Array:
        if acting(forces):
            arrays = {"q": q, "v": v, "vdot": vdot}
            name = "inverse_dynamics_with_forces"
            return pushed(tree, name, arrays, forces, forces_frame, options)
        return named(tree, "inverse_dynamics")(q, v, vdot, **options)

    if is_closed(mech, loops):
        return obeyed(mech, q, v, vdot, tree_forces, options)
    begun(mech, "inverse_dynamics", loops, named(tree, "inverse_dynamics"))
    return tree_forces(**options)
