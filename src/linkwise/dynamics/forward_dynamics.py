"""Forward dynamics: accelerations caused by forces."""

from __future__ import annotations

from typing import Literal, TypeAlias, Unpack

from linkwise.arguments import flag
from linkwise.bare_call import begins_bare
from linkwise.dynamics.actuator_force import NamedCommands, with_actuator_force
from linkwise.dynamics.closure import run
from linkwise.dynamics.closure_rank import accelerated
from linkwise.dynamics.constrained import check_closing
from linkwise.dynamics.joint_force import with_passive_force
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
    refuse,
    side_by_side,
    tree_of,
)
from linkwise.dynamics.quantity import METHODS, Frame, check_frame
from linkwise.dynamics.rccfd import RCCFD
from linkwise.errors import ModelError, unknown_name
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

Method: TypeAlias = Literal["FD1", "FD2", "FD3", "FD4", "RCCFD1", "RCCFD2", "RCCFD3"]
"""The algorithms of JPL 88-11, Parts I and II."""


@begins_bare("method", "loops")
def forward_dynamics(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    forces: Forces | None = None,
    forces_frame: Frame = "node",
    passive: bool = False,
    controls: NamedCommands | None = None,
    activations: NamedCommands | None = None,
    method: Method | None = None,
    loops: Loops = "closed",
    closing: ArrayLike | None = None,
    **options: Unpack[Options],
) -> Array:
    """Joint accelerations caused by joint forces, with loops and couplings held.

    Expression:
        v̇ = 𝓜⁻¹ (τ − C + J* f),   `mass.inv @ (tau - bias + J.T @ f)`
    with the armature of the mechanism (or rotors behind gears) in 𝓜, and without J* f unless
    `forces` are given.

    Derived form, 3 passes, O(n):
        (I - H ψ K)* D⁻¹ (τ - H ψ (b + K τ + M φ* a))
    Source: JPL 88-11, Theorem 4.1 and algorithms FD1 to FD4; 000 Lemma 4.3.
    Departs: gravity enters as the acceleration of the base; `forces` act on the mechanism, where
    f(0) of the sources is the force of the tip on its surroundings.

    Loops and couplings, the mimic joints of a URDF among them, are held by forces λ, of which Ω λ =
    −(J_c 𝓜⁻¹ (τ − C) + γ) with J_c = Q J + Y, γ = J̇_c v and Ω = J_c 𝓜⁻¹ J_c*:
        v̇ = 𝓜⁻¹ (τ − C + J_c* λ),   O(n) + O(m³) for m rows of constraints
    Source: JPL 88-11-II, RCCFD1 to RCCFD3, for arms that hold an object; 000 section 5,
    application 3.
    Departs: any loops, any blocked directions; λ acts on node b of a loop, as f(0) on the object.

    Rows of the constraints may depend on others: accelerations are still unique, since Ω is made
    definite by 1e-13 of its diagonal and the residual is solved for once more. Where the
    constraints do not hold at (q, v), J_c v̇ + γ is zero nevertheless; see
    `lw.loops.project_position`, `lw.loops.project_velocity` and `closing`. Near singular
    configurations digits are lost with the square of the condition of J_c: about 4e-16 times it.
    Rows that nearly depend on others, as parallel axes with rounded digits do, are taken as they
    are and may lock a linkage. `lw.loops.mobility` reports both. Where fewer rows are independent
    than in configurations nearby, accelerations are not unique: a `RankWarning`, or the status of
    the state, reports it.

    With passive=True the dampers, springs and carried weight of the mechanism act as well, by
    `lw.passive_force`, and with `controls` its actuators. Coulomb friction, limits and contacts act
    in steps of time only.

    Args:
        passive: Whether `lw.passive_force` is added to tau, as simulations and rollouts do.
        controls: Commands of the actuators, whose forces are added to tau: (a,) or (batch, a), or
            numbers by name; default: they do not act.
        activations: Activations of the actuators that have one, likewise, in their order: a state,
            which acts instead of their commands. `rec["activation"]` of a recording has them.
        method: An algorithm to run as written: "FD1" to "FD4" for trees (with loops or couplings,
            pass loops="open"), "RCCFD1" to "RCCFD3" with loops or couplings held. Default: the
            cheapest form that is derived. All agree up to round-off.
        closing: The value of J_c v̇ + γ (m,) or (batch, m), in the order of
            `lw.loops.constraint_names`: −2 a J_c v − a² e is Baumgarte's; default: zero.

    Returns:
        Joint accelerations (nv,) or (batch, nv).

    Raises:
        ShapeError: An array does not fit; says which.
        SingularHingeError: Nothing resists the hinge of some body, which is named. In a batch its
            row is NaN instead, reported by a warning or by `status`.
        UnknownNameError: An unknown node or method.
    """
    if passive is not False and flag(passive, "passive"):
        tau = with_passive_force(mech, q, v, tau)
    if controls is not None:
        tau = with_actuator_force(mech, q, v, tau, controls, activations)
    elif activations is not None:
        raise ModelError("activations were given without controls, without which none act.")
    if method is not None and str(method) not in (*METHODS, *RCCFD):
        raise unknown_name("method", method, (*METHODS, *RCCFD), owner="forward dynamics")
    name = method or "forward_dynamics"
    check_frame(forces_frame, "forces_frame")
    check_mechanism(mech)
    arrays = {"q": q, "v": v, "tau": tau}
    if is_closed(mech, loops):
        if method in METHODS:
            advice = "Leave method out, or choose one of RCCFD1 to RCCFD3."
            refuse(mech, f"forward_dynamics(..., method={method!r})", advice)
        check_closing(mech, closing)
        return accelerated(mech, arrays, forces, forces_frame, closing, options, name)
    if method in RCCFD:
        raise ModelError(f"{method} holds loops or couplings, and there are none to hold.")
    if closing is not None:
        raise ModelError(f"closing was given, but {mech.name!r} has no loops or couplings to hold.")
    tree = tree_of(mech)
    if acting(forces):
        return pushed(tree, f"{name}_with_forces", arrays, forces, forces_frame, options)
    kernel = begun(mech, "forward_dynamics", (method, loops), named(tree, name))
    return kernel(q, v, tau, **options)


def tip_force_correction(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    forces: Forces,
    *,
    forces_frame: Frame = "node",
    loops: Loops = "closed",
    **options: Unpack[Options],
) -> Array:
    """The change of the joint accelerations due to forces at nodes, whatever the joints do.

    Expression:
        Δv̇ = 𝓜⁻¹ J* f,   `mass.inv @ J.T @ f`
    with the armature of the mechanism in 𝓜.

    Derived form, 2 passes, O(n), without J:
        (I - H ψ K)* D⁻¹ H ψ B f
    Source: 000 section 5, application 1, (5.3).
    Departs: f acts on the mechanism, hence the sign.

    It depends only on q: accelerations without contact, for any velocities and joint forces, are
    corrected by adding it. With loops or couplings the constraints push back, by
    J_c* λ with Ω λ = −J_c 𝓜⁻¹ J* f.

    Returns:
        Change of the joint accelerations (nv,) or (batch, nv).

    Raises:
        ModelError: No force is given.
        ShapeError: An array does not fit; says which.
        UnknownNameError: A node that the mechanism does not have.
    """
    check_mechanism(mech)
    if not is_closed(mech, loops):
        tree = tree_of(mech)
        return pushed(tree, "tip_force_correction", {"q": q}, forces, forces_frame, options)
    side_by_side(forces, tuple(forces) if acting(forces) else ())  # raises for none
    return run(
        mech, "tip_force_correction", {"q": q},
        forces=forces, forces_frame=forces_frame, options=options,
    )  # fmt: skip
