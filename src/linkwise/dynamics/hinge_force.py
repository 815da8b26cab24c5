"""Forces between bodies: the load of each hinge, with the part that no joint force balances."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from linkwise.codegen.formula import Formula
from linkwise.dynamics.body_vector import (
    BodyFrame,
    check_body_frame,
    flat_options,
    forces_seen,
    six_each,
)
from linkwise.dynamics.closure import loop_forces, relative_poses
from linkwise.dynamics.constrained import constraint_forces, obeyed
from linkwise.dynamics.forward_dynamics import forward_dynamics
from linkwise.dynamics.kernels import (
    HELD,
    Forces,
    Loops,
    Options,
    acting,
    called,
    check_mechanism,
    is_closed,
    kernel,
    one_call_of,
    pushed,
    pushed_nodes,
    tree_of,
    written,
)
from linkwise.dynamics.kinematics import forward_kinematics
from linkwise.dynamics.quantity import Frame, check_frame
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike, floats


def hinge_forces(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    *,
    tau: ArrayLike | None = None,
    vdot: ArrayLike | None = None,
    forces: Forces | None = None,
    forces_frame: Frame = "node",
    frame: BodyFrame = "body",
    loops: Loops = "closed",
    **options: Unpack[Options],
) -> Array:
    """The spatial force on each body through its hinge, with the part that constrains its motion.

    Expression:
        φ (M φ* (H* v̇ + a) + b − B f), with v̇ = 𝓜⁻¹ (τ − C + J* f) if `tau` is given

    Derived form for `tau`, 3 passes, O(n), the same as forward dynamics:
        ψ (b + K τ + M φ* a) + P ψ* H* D⁻¹ (τ - H ψ (b + K τ + M φ* a))
    Source: 000 section 3 (f = φ M α ...), JPL 88-11 (3.17) and algorithm FD3; 004 section 7 has
    z and λ as filtered and smoothed estimates.

    F(k) acts from the parent (or the ground) on body k. Its part along the hinge is the joint force
    less the share of the rotor: H F = τ − N v̇, with N the armature; the rest constrains. For a free
    base all six numbers are joint forces.

    With loops or couplings and `tau`, the accelerations are those with them held, and the loads of
    the loops act on the bodies: the forces of `lw.loops.constraint_forces`, which are the least
    ones where rows are redundant (`lw.loops.mobility`). With `vdot` the loops carry nothing, as in
    `inverse_dynamics`.

    Args:
        tau: Joint forces (nv,) or (batch, nv) [N or N m]; either these or `vdot`.
        frame: Where the result is taken, and in which axes:

            * "body": about the origin of the body frame, in its axes.
            * "hinge": about that of the hinge frame O on the body, in its axes: what a load cell
              in the hinge shows. The same as "body" for a body frame at the hinge.
            * "world": about the origin of the body frame, in world axes.
            * "inertial": about the origin of the world, in its axes.

    Returns:
        (n_bodies, 6) or (batch, n_bodies, 6), (moment, force) [N m, N], in the order of
        `mech.bodies`.

    Raises:
        ModelError: Neither or both of `tau` and `vdot` are given, or an unknown frame.
        SingularHingeError: Nothing resists the hinge of some body, which is named.
        UnknownNameError: A node that the mechanism does not have.
    """
    strings = type(frame) is type(forces_frame) is str
    plain = strings and frame == "body" and forces_frame == "node" and loops is HELD
    if plain and tau is not None and vdot is forces is None and not options:  # most calls
        result = one_call_of(mech, "hinge_forces", (), "node")(q, v, tau)
        if result is not None:
            return result.reshape(-1, 6)
    check_mechanism(mech)
    check_frame(forces_frame, "forces_frame")
    check_body_frame(frame)
    if (vdot is None) == (tau is None):
        given = "neither" if tau is None else "both"
        raise ModelError(
            f"hinge_forces was given {given} of tau and vdot; give tau= for the joint forces, or "
            "vdot= for the joint accelerations."
        )
    if is_closed(mech, loops):
        push: dict[str, Any] = {"forces": forces, "forces_frame": forces_frame}
        if tau is None:
            assert vdot is not None

            def tree_forces(**options: Any) -> Array:
                tree: dict[str, Any] = {"vdot": vdot, "frame": frame, "loops": "open"}
                return hinge_forces(mech, q, v, **tree, **push, **options)

            return obeyed(mech, q, v, vdot, tree_forces, options)
        status, threads = options.get("status"), options.get("threads")
        vdot = forward_dynamics(mech, q, v, tau, **push, status=status, threads=threads)
        lam = constraint_forces(mech, q, v, tau, **push)
        forces = _with_loops(mech, q, lam, forces, forces_frame)
        single = vdot.ndim == 1 and status is None  # errors were reported above
        options["status"] = None if single else np.zeros(vdot.shape[:-1], np.int32)
    mech = tree_of(mech)
    name = "hinge_forces" if vdot is None else "hinge_forces_of_motion"
    arrays = {"q": q, "v": v, "tau": tau, "vdot": vdot}
    kernel_options = flat_options(options, mech.n_bodies)
    if acting(forces):
        name, nodes = f"{name}_with_forces", pushed_nodes(forces)
        with_forces = _kernel(mech, name, nodes, forces_frame, frame)
        rows = pushed(mech, name, arrays, forces, forces_frame, kernel_options, with_forces)
    else:
        rows = called(_kernel(mech, name, (), "node", frame), arrays, kernel_options)
    return six_each(rows, options.get("out"))


@once_per_mechanism
def _kernel(
    mech: Mechanism, name: str, nodes: tuple[str, ...], forces_frame: Frame, frame: BodyFrame
) -> Any:
    if frame == "body":
        return kernel(mech, name, nodes, frame=forces_frame)
    return written(mech, Formula(forces_seen, (name, forces_frame, frame)), nodes)


def _with_loops(
    mech: Mechanism, q: ArrayLike, lam: Array, forces: Forces | None, frame: Frame
) -> dict[str, ArrayLike]:
    """External forces, and those that the loops put on their nodes."""
    total: dict[str, Any] = dict(forces or {})
    q, on_b = floats(q, "q"), loop_forces(mech, q, lam)
    for loop, X_ab in zip(mech.loops, relative_poses(mech, q), strict=True):
        pair = {loop.node_b: on_b[loop.name], loop.node_a: -X_ab.shift_force(on_b[loop.name])}
        for node, wrench in pair.items():
            if mech.node(node).body == "world":
                continue
            if frame == "world":
                rot = forward_kinematics(mech, q, node).rot
                parts = (wrench[..., :3, None], wrench[..., 3:, None])
                wrench = np.concatenate([(rot @ part)[..., 0] for part in parts], axis=-1)
            total[node] = wrench + total[node] if node in total else wrench
    return total
