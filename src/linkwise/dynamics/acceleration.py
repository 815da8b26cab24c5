"""Accelerations of bodies and nodes, of a motion or caused by forces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack

import numpy as np

from linkwise.codegen.formula import Formula
from linkwise.dynamics.body_vector import flat_options, six_each
from linkwise.dynamics.forward_dynamics import forward_dynamics
from linkwise.dynamics.kernels import (
    HELD,
    BatchOptions,
    Forces,
    Loops,
    Nodes,
    Options,
    Status,
    acting,
    called,
    check_mechanism,
    is_closed,
    kernel,
    named,
    node_names,
    one_call_of,
    pushed,
    pushed_nodes,
    tree_of,
    written,
)
from linkwise.dynamics.quantity import Frame, check_frame, expression
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.vector import cross, six

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

Kind: TypeAlias = Literal["rate", "classical", "spatial"]
"""The linear part of an acceleration: see `node_acceleration`."""


def body_accelerations(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    *,
    vdot: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    forces: Forces | None = None,
    forces_frame: Frame = "node",
    loops: Loops = "closed",
    **options: Unpack[Options],
) -> Array:
    """Spatial accelerations of all bodies, of given joint accelerations or caused by forces.

    Expression:
        α = φ* (H* v̇ + a − a_g),   `phi.T @ (H.T @ vdot + a - a_g)`
    and with v̇ = 𝓜⁻¹ (τ − C + J* f) if `tau` is given instead of `vdot`, or the v̇ with loops and
    couplings held (`forward_dynamics`). A given `vdot` is not checked against them.

    Derived form for `tau`, 3 passes, O(n):
        φ* (a - a_g) + ψ* H* D⁻¹ (τ - H ψ (b + K τ + M φ* a))
    Source: JPL 88-11, (3.15) and algorithm FD2 (5.6).
    Departs: these are true accelerations relative to the ground. The sources, and Linkwise inside,
    let the base accelerate upwards instead of weighing the bodies; that part, φ* a_g, is removed.

    α(k) is the rate of change of the velocity V(k) = (ω, v) of the body frame, component by
    component in the body's axes: the linear part is v̇ there. The origin of the frame is
    accelerated by v̇ + ω × v, which `node_acceleration` gives.

    Args:
        vdot: Joint accelerations (nv,) or (batch, nv) [m/s² or rad/s²]; either these or `tau`.
        forces: External forces by node name, with `tau`: (moment, force), (6,) or (batch, 6)
            [N m, N], about the node's origin.

    Returns:
        (n_bodies, 6) or (batch, n_bodies, 6), (angular, linear) [rad/s², m/s²], each about the
        origin of its body frame and in its axes. `node_acceleration` also has world axes.

    Raises:
        ModelError: Neither or both of `vdot` and `tau` are given, or `forces` with `vdot`.
    """
    plain = vdot is not None and type(forces_frame) is str and forces_frame == "node"
    plain = plain and loops is HELD
    if plain and tau is forces is None and not options:  # most calls
        return six_each(named(mech, "body_accelerations")(q, v, vdot))
    check_mechanism(mech)
    check_frame(forces_frame, "forces_frame")
    given = _cause("body_accelerations", vdot, tau, forces)
    kernel_options = flat_options(options, mech.n_bodies)
    if is_closed(mech, loops) and tau is not None:
        status = options.get("status")
        vdot = forward_dynamics(
            mech, q, v, tau, forces=forces, forces_frame=forces_frame,
            status=status, threads=options.get("threads"),
        )  # fmt: skip
        given, forces = {"vdot": vdot}, None
        kernel_options = {**kernel_options, "status": _ignored(vdot, status)}
    mech = tree_of(mech)
    arrays = {"q": q, "v": v, **given}
    if acting(forces):
        name = "body_accelerations_of_forces_with_forces"
        rows = pushed(mech, name, arrays, forces, forces_frame, kernel_options)
    else:
        name = "body_accelerations_of_forces" if "tau" in given else "body_accelerations"
        rows = called(named(mech, name), arrays, kernel_options)
    return six_each(rows, options.get("out"))


def node_acceleration(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    node: Nodes,
    *,
    vdot: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    forces: Forces | None = None,
    forces_frame: Frame = "node",
    frame: Frame = "node",
    kind: Kind = "rate",
    loops: Loops = "closed",
    **options: Unpack[BatchOptions],
) -> Array:
    """Accelerations of nodes, for instance of the tip of an arm.

    Expression:
        B* α with α = φ* (H* v̇ + a − a_g), or rot_W B* α in world axes;
    v̇ = 𝓜⁻¹ (τ − C + J* f) if `tau` is given instead of `vdot`, or the v̇ with loops and couplings
    held (`forward_dynamics`). A given `vdot` is not checked against them.
    Source: JPL 88-11, algorithm FD2 (5.7).
    Departs: without the acceleration that represents gravity.

    With V = (ω, v) the velocity of the node in its axes, and v̇ the rate of change of its components
    there, the linear part of the result is, in the axes of `frame`,

        kind="classical"   v̇ + ω × v   the acceleration of the node's origin in space
        kind="spatial"     v̇           what φ* propagates, as FD2 has it
        kind="rate"        the rate of change of what `node_velocity` gives in the same frame,
                           J v̇ + J̇ v: the spatial one for "node", the classical one for "world"

    and the angular part is ω̇ in all. An accelerometer shows the classical one less gravity.

    Args:
        vdot: Joint accelerations (nv,) or (batch, nv) [m/s² or rad/s²]; either these or `tau`.
        forces: External forces by node name, with `tau`: (moment, force), (6,) or (batch, 6)
            [N m, N], about the node's origin.
        frame: Axes of the result: those of each "node" or of the "world".
        kind: "rate", "classical" or "spatial".

    Returns:
        (6 k,) for k nodes, or (batch, 6 k), (angular, linear) [rad/s², m/s²].

    Raises:
        ModelError: Neither or both of `vdot` and `tau` are given, `forces` with `vdot`, or an
            unknown kind.
        UnknownNameError: A node that the mechanism does not have.
    """
    strings = type(kind) is type(frame) is type(forces_frame) is str
    plain = strings and kind == "rate" and frame == forces_frame == "node" and loops is HELD
    if plain and forces is None and not options:  # most calls
        if type(node) is str and (vdot is None) != (tau is None):
            name = "node_acceleration" if tau is None else "node_acceleration_of_forces"
            result = one_call_of(mech, name, node, "node")(q, v, vdot if tau is None else tau)
            if result is not None:
                return result
    if type(kind) is not str or kind not in ("rate", "classical", "spatial"):
        raise ModelError(f"kind is {kind!r}; it must be 'rate', 'classical' or 'spatial'.")
    check_frame(frame)
    check_frame(forces_frame, "forces_frame")
    given = _cause("node_acceleration", vdot, tau, forces)
    check_mechanism(mech)
    names = node_names(node)
    for name in names:
        mech.node(name)  # raises for an unknown name
    if is_closed(mech, loops) and tau is not None:
        vdot = forward_dynamics(
            mech, q, v, tau, forces=forces, forces_frame=forces_frame, **options
        )
        given, forces = {"vdot": vdot}, None
        options["status"] = _ignored(vdot, options.get("status"))
    mech = tree_of(mech)
    arrays = {"q": q, "v": v, **given}
    classical = kind == "classical" or (kind == "rate" and frame == "world")
    nodes = pushed_nodes(forces) if acting(forces) else ()
    kernel = _kernel(mech, names, "tau" in given, frame, classical, nodes, forces_frame)
    if acting(forces):
        return pushed(mech, "", arrays, forces, forces_frame, options, kernel)
    return called(kernel, arrays, options)


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
    if pushed_at:  # other nodes than those whose acceleration is computed
        caused = expression("forward_dynamics_with_forces", frame=forces_frame)
        name, given["vdot"] = "node_acceleration", at.value(caused, nodes=pushed_at)
    each = at.value(expression(name, frame=frame), **given).reshape(-1, 6)
    if classical:
        V = at.value(expression("node_velocity", frame=frame)).reshape(-1, 6)
        each = six(each[:, :3], each[:, 3:] + cross(V[:, :3], V[:, 3:]))
    return each.ravel()


def _ignored(vdot: Array, status: Status | None) -> Status | None:
    """A status to be ignored: errors were reported when the accelerations were computed."""
    single = vdot.ndim == 1 and status is None
    return None if single else np.zeros(vdot.shape[:-1], dtype=np.int32)


def _cause(
    function: str, vdot: ArrayLike | None, tau: ArrayLike | None, forces: Forces | None
) -> dict[str, ArrayLike]:
    """The cause of the accelerations, by the name its kernel has for it."""
    if (vdot is None) == (tau is None):
        given = "neither" if tau is None else "both"
        raise ModelError(
            f"{function} was given {given} of vdot and tau; give vdot= for the joint "
            "accelerations, or tau= for the joint forces that cause them."
        )
    if vdot is not None:
        if acting(forces):
            raise ModelError(
                f"{function} was given joint accelerations and forces at {', '.join(forces)}; "
                "forces change nothing where the accelerations are given. Give tau= instead of "
                "vdot."
            )
        return {"vdot": vdot}
    assert tau is not None
    return {"tau": tau}
