"""Forward dynamics: accelerations caused by forces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from linkwise.dynamics import closure_kernels
from linkwise.dynamics.closure_rank import accelerated
from linkwise.dynamics.kernels import (
    Status,
    acting,
    check_mechanism,
    named,
    one_state,
    pushed,
    side_by_side,
)
from linkwise.dynamics.loops import HELD, Loops, is_closed, refuse, tree_of
from linkwise.dynamics.open_chain_quantity import METHODS
from linkwise.dynamics.quantity import OWN_AXES, Frame, check_frame
from linkwise.errors import unknown_name
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

Method: TypeAlias = Literal["FD1", "FD2", "FD3", "FD4"]
"""The algorithms of JPL 88-11, Part I."""


def forward_dynamics(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    forces: Mapping[str, ArrayLike] | None = None,
    forces_frame: Frame = "node",
    method: Method | None = None,
    loops: Loops = "closed",
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Joint accelerations caused by joint forces.

    Expression:
        v̇ = 𝓜⁻¹ (τ − C + J* f),   `mass.inv @ (tau - bias + J.T @ f)`
    with the armature of the mechanism in 𝓜 (or rotors behind gears), and without J* f
    unless `forces` are given.

    Derived form, 3 passes, O(n):
        (I - H ψ K)* D⁻¹ (τ - H ψ (b + K τ + M φ* a))
    Source: JPL 88-11, Theorem 4.1 and algorithms FD1 to FD4; 000 Lemma 4.3.
    Departs: gravity enters as the acceleration of the base; `forces` act on the mechanism, where
    f(0) of the sources is what the tip does to its surroundings.

    Loops and couplings, the mimic joints of a URDF among them, are held: then it is
    `lw.loops.constrained_forward_dynamics`. With loops="open" each hinge moves by itself. Where
    loops are singular, so that v̇ is not unique, a `RankWarning` or the status of the state tells.

    Damping, friction, springs and limits of the hinges are not part of it: add their forces to tau.

    Args:
        forces_frame: Axes of `forces`: those of the "node" or of the "world".
        method: "FD1", "FD2", "FD3" or "FD4", to run that algorithm as it is written
            (`open_chain_quantity.py`); by default the cheapest form that is derived. All agree up
            to round-off. They are algorithms of trees: with loops or couplings, pass loops="open".

    Returns:
        Joint accelerations (nv,) or (batch, nv).

    Raises:
        ShapeError: An array does not fit; says which.
        SingularHingeError: Nothing resists the hinge of some body, which is named. In a batch its
            row is NaN instead, and a warning or `status` tells.
        UnknownNameError: A node that the mechanism does not have, or a method that there is not.
    """
    quick = one_state(mech).forward_dynamics
    plain = forces_frame is OWN_AXES and loops is HELD and forces is out is status is method is None
    if plain and quick is not None:  # most calls: one state
        result = quick(q, v, tau)
        if result is not None:
            return result
    if method is not None and str(method) not in METHODS:
        raise unknown_name("method", method, METHODS, owner="forward dynamics")
    name = method or "forward_dynamics"
    check_frame(forces_frame, "forces_frame")
    check_mechanism(mech)
    asked: dict[str, Any] = {"out": out, "status": status, "threads": threads}
    arrays = {"q": q, "v": v, "tau": tau}
    if is_closed(mech, loops):
        if method is not None:
            refuse(mech, f"forward_dynamics(..., method={method!r})", "Leave method out.")
        return accelerated(mech, arrays, forces, forces_frame, options=asked)
    mech = tree_of(mech)
    if acting(forces):
        return pushed(mech, f"{name}_with_forces", arrays, forces, forces_frame, asked)
    found = named(mech, name)
    if method is None:
        one_state(mech).forward_dynamics = found.quick
    if out is status is threads is None:
        return found(q, v, tau)
    return found(q, v, tau, **asked)


def tip_force_correction(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    forces: Mapping[str, ArrayLike],
    *,
    forces_frame: Frame = "node",
    loops: Loops = "closed",
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """What forces at nodes add to the joint accelerations, whatever the joints do.

    Expression:
        Δv̇ = 𝓜⁻¹ J* f,   `mass.inv @ J.T @ f`
    with the armature of the mechanism in 𝓜.

    Derived form, 2 passes, O(n), without J:
        (I - H ψ K)* D⁻¹ H ψ B f
    Source: 000 section 5, application 1, (5.3).
    Departs: f acts on the mechanism, hence the sign.

    It depends on q alone: what was computed for no contact, with any velocities and joint forces,
    is corrected by adding it. With loops or couplings the constraints push back, by
    J_c* λ with Ω λ = −J_c 𝓜⁻¹ J* f.

    Args:
        forces: See `forward_dynamics`; at least one.
        forces_frame: See `forward_dynamics`.
        loops: See `forward_dynamics`.

    Returns:
        Change of the joint accelerations (nv,) or (batch, nv).

    Raises:
        ModelError: No force is given.
        ShapeError: An array does not fit; says which.
        UnknownNameError: A node that the mechanism does not have.
    """
    asked = {"out": out, "status": status, "threads": threads}
    check_mechanism(mech)
    if is_closed(mech, loops):
        side_by_side(forces, tuple(forces) if acting(forces) else ())  # raises for none
        return closure_kernels.run(
            mech, "tip_force_correction", {"q": q}, forces=forces, frame=forces_frame, options=asked
        )
    return pushed(tree_of(mech), "tip_force_correction", {"q": q}, forces, forces_frame, asked)


__all__ = ["Method", "forward_dynamics", "tip_force_correction"]
