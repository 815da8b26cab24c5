"""Forward dynamics: accelerations caused by forces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from linkwise.dynamics.kernels import Status, acting, named, pushed
from linkwise.dynamics.open_chain_quantity import METHODS
from linkwise.dynamics.quantity import Frame, check_frame
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
    frame: Frame = "node",
    method: Method | None = None,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Joint accelerations caused by joint forces.

    Expression:
        v̇ = 𝓜⁻¹ (τ − C + J* f),   `mass.inv @ (tau - bias + J.T @ f)`
    with the armature of the mechanism in 𝓜 (or rotors behind gears), and without J* f
    unless `forces` are given.

    Derived form:
        (I − H ψ K)* D⁻¹ [τ − H ψ (K τ + M φ* a + b)] or equal: three passes, O(n)
    Source: JPL 88-11, Theorem 4.1 and algorithms FD1 to FD4; 000 Lemma 4.3.
    Departs: gravity enters as the acceleration of the base; `forces` act on the mechanism, where
    f(0) of the sources is what the tip does to its surroundings.

    Damping, friction, springs and limits of the hinges are not part of it: add their forces to tau.
    Nor are loops and couplings, the mimic joints of a URDF among them: each hinge moves by itself
    here. `lw.constrained_forward_dynamics` holds them, and `lw.embed` builds them in.

    Args:
        mech: The mechanism; loops and couplings are left open.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
        tau: Joint forces (nv,) or (batch, nv) [N or N m].
        forces: Forces that act on the mechanism from outside, by node: (moment, force), (6,) or
            (batch, 6) [N m, N], about the node's origin.
        frame: Axes of `forces`: those of the "node" or of the "world".
        method: "FD1", "FD2", "FD3" or "FD4", to run that algorithm as it is written
            (`open_chain_quantity.py`); by default the cheapest form that is derived. All agree up
            to round-off.
        out: Where to put the result.
        status: For a batch, int32 (batch,): receives a code for each state, 0 where all is well.
        threads: Processor cores for a batch; by default as many as are worth it.

    Returns:
        Joint accelerations (nv,) or (batch, nv).

    Raises:
        ShapeError: An array does not fit; says which.
        SingularHingeError: Nothing resists the hinge of some body, which is named. In a batch its
            row is NaN instead, and a warning or `status` tells.
        UnknownNameError: A node that the mechanism does not have, or a method that there is not.
    """
    try:
        quick = mech.kept.get("quick forward_dynamics")
    except AttributeError:
        quick = None  # no mechanism: told below
    if (
        quick is not None and frame == "node" and forces is out is status is method is None
    ):  # most calls: one state
        result = quick(q, v, tau)
        if result is not None:
            return result
    if method is not None and method not in METHODS:
        raise unknown_name("method", method, METHODS, owner="forward dynamics")
    name = method or "forward_dynamics"
    check_frame(frame)
    asked: dict[str, Any] = {"out": out, "status": status, "threads": threads}
    if acting(forces):
        arrays = {"q": q, "v": v, "tau": tau}
        return pushed(mech, f"{name}_with_forces", arrays, forces, frame, asked)
    found = named(mech, name)
    if out is status is threads is None:
        return found(q, v, tau)
    return found(q, v, tau, **asked)


def tip_force_correction(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    forces: Mapping[str, ArrayLike],
    *,
    frame: Frame = "node",
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """What forces at nodes add to the joint accelerations, whatever the joints do.

    Expression:
        Δv̇ = 𝓜⁻¹ J* f,   `mass.inv @ J.T @ f`
    with the armature of the mechanism in 𝓜.

    Derived form:
        (I − H ψ K)* D⁻¹ H ψ B f: two passes, O(n); neither J nor its product with f is made.
    Source: 000 section 5, application 1, (5.3).
    Departs: f acts on the mechanism, hence the sign.

    It depends on q alone: what was computed for no contact, with any velocities and joint forces,
    is corrected by adding it.

    Args:
        mech: The mechanism; loops and couplings are left open.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        forces: Forces that act on the mechanism, by node: (moment, force), (6,) or (batch, 6)
            [N m, N], about the node's origin.
        frame: Axes of `forces`: those of the "node" or of the "world".
        out: Where to put the result.
        status: For a batch, int32 (batch,): receives a code for each state, 0 where all is well.
        threads: Processor cores for a batch; by default as many as are worth it.

    Returns:
        Change of the joint accelerations (nv,) or (batch, nv).

    Raises:
        ModelError: No force is given.
        ShapeError: An array does not fit; says which.
        UnknownNameError: A node that the mechanism does not have.
    """
    asked = {"out": out, "status": status, "threads": threads}
    return pushed(mech, "tip_force_correction", {"q": q}, forces, frame, asked)


__all__ = ["Method", "forward_dynamics", "tip_force_correction"]
