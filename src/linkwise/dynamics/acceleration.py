"""Accelerations of bodies and nodes, of a motion or caused by forces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from linkwise.codegen.formula import Formula
from linkwise.dynamics.forward_dynamics import forward_dynamics
from linkwise.dynamics.kernels import (
    Nodes,
    Status,
    acting,
    called,
    check_mechanism,
    kernel,
    named,
    node_names,
    pushed,
    pushed_nodes,
    written,
)
from linkwise.dynamics.loops import Loops, is_closed, tree_of
from linkwise.dynamics.quantity import Frame, check_frame, expression
from linkwise.dynamics.stacked import flat_out, six_each
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.vector import cross, six

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

Kind: TypeAlias = Literal["rate", "classical", "spatial"]
"""What the linear part of an acceleration is: see `node_acceleration`."""


def body_accelerations(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    *,
    vdot: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    forces: Mapping[str, ArrayLike] | None = None,
    forces_frame: Frame = "node",
    loops: Loops = "closed",
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Spatial accelerations of all bodies, of given joint accelerations or caused by forces.

    Expression:
        α = φ* (H* v̇ + a − a_g),   `phi.T @ (H.T @ vdot + a - a_g)`
    and with v̇ = 𝓜⁻¹ (τ − C + J* f) if `tau` is given instead of `vdot`, or the v̇ with loops and
    couplings held (`forward_dynamics`). What `vdot` says is taken as it is.

    Derived form for `tau`, 3 passes, O(n):
        φ* (a - a_g) + ψ* H* D⁻¹ (τ - H ψ (b + K τ + M φ* a))
    Source: JPL 88-11, (3.15) and algorithm FD2 (5.6).
    Departs: these are true accelerations against the ground. The sources, and Linkwise inside, let
    the base accelerate upwards instead of weighing the bodies; that part, φ* a_g, is taken off.

    α(k) is the rate of change of the velocity V(k) = (ω, v) of the body frame, component by
    component in the body's axes: the linear part is v̇ there, and the origin of the frame is
    accelerated by v̇ + ω × v, which `node_acceleration` gives.

    Args:
        vdot: Joint accelerations (nv,) or (batch, nv); or else

    Returns:
        (n_bodies, 6) or (batch, n_bodies, 6), (angular, linear) [rad/s², m/s²], each about the
        origin of its body frame and in its axes. `node_acceleration` has world axes too.

    Raises:
        ModelError: Neither or both of `vdot` and `tau` are given, or `forces` with `vdot`.
    """
    plain = vdot is not None and forces_frame == "node" and loops == "closed"
    if plain and tau is forces is out is status is threads is None:  # most calls
        return six_each(named(mech, "body_accelerations")(q, v, vdot))
    check_mechanism(mech)
    check_frame(forces_frame, "forces_frame")
    given = _cause("body_accelerations", vdot, tau, forces)
    if is_closed(mech, loops) and tau is not None:
        vdot = forward_dynamics(
            mech,
            q,
            v,
            tau,
            forces=forces,
            forces_frame=forces_frame,
            status=status,
            threads=threads,
        )
        given, forces, status = {"vdot": vdot}, None, _unseen(vdot, status)
    mech = tree_of(mech)
    asked = {"out": flat_out(out, mech.n_bodies), "status": status, "threads": threads}
    arrays = {"q": q, "v": v, **given}
    if "tau" not in given:
        rows = called(named(mech, "body_accelerations"), arrays, asked)
    elif acting(forces):
        name = "body_accelerations_of_forces_with_forces"
        rows = pushed(mech, name, arrays, forces, forces_frame, asked)
    else:
        rows = called(named(mech, "body_accelerations_of_forces"), arrays, asked)
    return six_each(rows, out)


def node_acceleration(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    node: Nodes,
    *,
    vdot: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    forces: Mapping[str, ArrayLike] | None = None,
    forces_frame: Frame = "node",
    frame: Frame = "node",
    kind: Kind = "rate",
    loops: Loops = "closed",
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Accelerations of nodes, the tip of an arm for one.

    Expression:
        B* α with α = φ* (H* v̇ + a − a_g), or rot_W B* α in world axes;
    v̇ = 𝓜⁻¹ (τ − C + J* f) if `tau` is given instead of `vdot`, or the v̇ with loops and couplings
    held (`forward_dynamics`). What `vdot` says is taken as it is.
    Source: JPL 88-11, algorithm FD2 (5.7).
    Departs: without the acceleration that stands for gravity.

    With V = (ω, v) the velocity of the node in its axes, and v̇ the rate of change of its components
    there, the linear part of the result is, in the axes that `frame` says,

        kind="classical"   v̇ + ω × v   how the node's origin is accelerated in space
        kind="spatial"     v̇           what φ* propagates, as FD2 has it
        kind="rate"        the rate of change of what `node_velocity` gives in the same frame,
                           J v̇ + J̇ v: the spatial one for "node", the classical one for "world"

    and the angular part ω̇ in all. An accelerometer shows the classical one less gravity.

    Args:
        vdot: Joint accelerations (nv,) or (batch, nv); or else
        frame: Axes of the result: those of each "node" or of the "world".
        kind: "rate", "classical" or "spatial".

    Returns:
        (6 k,) for k nodes, or (batch, 6 k), (angular, linear) [rad/s², m/s²].

    Raises:
        ModelError: Neither or both of `vdot` and `tau` are given, `forces` with `vdot`, or a kind
            that there is not.
        UnknownNameError: A node that the mechanism does not have.
    """
    if kind not in ("rate", "classical", "spatial"):
        raise ModelError(f"kind is {kind!r}; it must be 'rate', 'classical' or 'spatial'.")
    check_frame(frame)
    check_frame(forces_frame, "forces_frame")
    given = _cause("node_acceleration", vdot, tau, forces)
    check_mechanism(mech)
    names = node_names(node)
    for name in names:
        mech.node(name)  # raises for one that is not there
    if is_closed(mech, loops) and tau is not None:
        vdot = forward_dynamics(
            mech,
            q,
            v,
            tau,
            forces=forces,
            forces_frame=forces_frame,
            status=status,
            threads=threads,
        )
        given, forces, status = {"vdot": vdot}, None, _unseen(vdot, status)
    mech = tree_of(mech)
    arrays = {"q": q, "v": v, **given}
    asked: dict[str, Any] = {"status": status, "threads": threads}
    classical = kind == "classical" or (kind == "rate" and frame == "world")
    nodes = pushed_nodes(forces) if acting(forces) else ()
    found = _kernel(mech, names, "tau" in given, frame, classical, nodes, forces_frame)
    if acting(forces):
        return pushed(mech, "", arrays, forces, forces_frame, asked, found)
    return called(found, arrays, asked)


@once_per_mechanism
def _kernel(
    mech: Mechanism,
    names: tuple[str, ...],
    caused: bool,
    frame: Frame,
    classical: bool,
    pushed_at: tuple[str, ...],
    forces_frame: Frame,
) -> Any:
    name = "node_acceleration_of_forces" if caused else "node_acceleration"
    if not classical and not pushed_at:
        return kernel(mech, name, names, frame=frame)
    options = (name, frame, classical, pushed_at, forces_frame)
    return written(mech, Formula(_accelerated, options), names)


def _accelerated(
    at: Writing,
    name: str,
    frame: Frame,
    classical: bool,
    pushed_at: tuple[str, ...],
    forces_frame: Frame,
) -> Any:
    given = dict[str, Any]()
    if pushed_at:  # at other nodes than those that are looked at
        caused = expression("forward_dynamics_with_forces", frame=forces_frame)
        name, given["vdot"] = "node_acceleration", at.value(caused, nodes=pushed_at)
    each = at.value(expression(name, frame=frame), **given).reshape(-1, 6)
    if classical:
        V = at.value(expression("node_velocity", frame=frame)).reshape(-1, 6)
        each = six(each[:, :3], each[:, 3:] + cross(V[:, :3], V[:, 3:]))
    return each.ravel()


def _unseen(vdot: Array, status: Status | None) -> Status | None:
    """Codes that nobody looks at: trouble was told when the accelerations were found."""
    single = vdot.ndim == 1 and status is None
    return None if single else np.zeros(vdot.shape[:-1], dtype=np.int32)


def _cause(
    asked: str,
    vdot: ArrayLike | None,
    tau: ArrayLike | None,
    forces: Mapping[str, ArrayLike] | None,
) -> dict[str, ArrayLike]:
    """What causes the accelerations, by the name its kernel has for it."""
    if (vdot is None) == (tau is None):
        found = "neither" if tau is None else "both"
        raise ModelError(
            f"{asked} was given {found} of vdot and tau; give vdot= for the joint "
            "accelerations, or tau= for the joint forces that cause them."
        )
    if vdot is not None:
        if acting(forces):
            raise ModelError(
                f"{asked} was given joint accelerations and forces at {', '.join(forces)}; forces "
                "change nothing where the accelerations are given. Give tau= instead of vdot."
            )
        return {"vdot": vdot}
    assert tau is not None
    return {"tau": tau}
