"""Forces between bodies: what goes through each hinge, the part that no joint force feels too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.codegen.formula import Formula
from linkwise.dynamics.allowed_motion import obeyed
from linkwise.dynamics.body_frame import BodyFrame, check_body_frame, forces_seen
from linkwise.dynamics.closure import loop_forces, relative_poses
from linkwise.dynamics.constrained import constraint_forces
from linkwise.dynamics.forward_dynamics import forward_dynamics
from linkwise.dynamics.kernels import (
    Status,
    acting,
    called,
    check_mechanism,
    kernel,
    named,
    pushed,
    pushed_nodes,
    written,
)
from linkwise.dynamics.kinematics import forward_kinematics
from linkwise.dynamics.loops import Loops, is_closed, tree_of
from linkwise.dynamics.quantity import Frame, check_frame
from linkwise.dynamics.stacked import flat_out, six_each
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike, floats

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


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
    loops: Loops = "closed",
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """The spatial force on each body through its hinge, with the part that constrains its motion.

    Expression:
        φ (M φ* (H* v̇ + a) + b − B f), with v̇ = 𝓜⁻¹ (τ − C + J* f) if `tau` is given

    Derived form for `tau`, 3 passes, O(n), the same as forward dynamics:
        ψ (b + K τ + M φ* a) + P ψ* H* D⁻¹ (τ - H ψ (b + K τ + M φ* a))
    Source: 000 section 3 (f = φ M α ...), JPL 88-11 (3.17) and algorithm FD3; 004 section 7 has
    z and λ as filtered and smoothed estimates.

    F(k) acts from the parent (or the ground) on body k. Its part along the hinge is the joint force
    less what the rotor takes: H F = τ − N v̇, with N the armature; the rest constrains. For a free
    base all six numbers are joint forces.

    With loops or couplings and `tau`, the accelerations are those with them held, and what the
    loops carry acts on the bodies: the forces of `lw.loops.constraint_forces`, which are the least
    ones where rows are redundant (`lw.loops.mobility`). With `vdot` the loops carry nothing, as in
    `inverse_dynamics`.

    Args:
        tau: Joint forces (nv,) or (batch, nv) [N or N m]; or else
        frame: Where the result is taken, and in which axes:

            * "body": about the origin of the body frame, in its axes.
            * "hinge": about that of the hinge frame O on the body, in its axes: what a load cell
              in the hinge shows. The same as "body" for a body frame at the hinge.
            * "world": about the origin of the body frame, in world axes.
            * "inertial": about the origin of the world, in its axes.
        loops: "closed" holds loops and couplings; "open" leaves them open.
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
    check_mechanism(mech)
    plain = frame == "body" and forces_frame == "node" and not is_closed(mech, loops)
    if plain and tau is not None and vdot is forces is out is status is threads is None:
        return six_each(named(tree_of(mech), "hinge_forces")(q, v, tau))  # most calls
    check_frame(forces_frame, "forces_frame")
    check_body_frame(frame, "")
    if (vdot is None) == (tau is None):
        found = "neither" if tau is None else "both"
        raise ModelError(
            f"hinge_forces was given {found} of tau and vdot; give tau= for the joint forces, or "
            "vdot= for the joint accelerations."
        )
    if is_closed(mech, loops):
        if vdot is not None:
            motion = vdot

            def tree_forces(**asked: Any) -> Array:
                given: dict[str, Any] = {"forces": forces, "forces_frame": forces_frame}
                return hinge_forces(
                    mech, q, v, vdot=motion, frame=frame, loops="open", **given, **asked
                )

            return obeyed(mech, q, v, vdot, tree_forces, out=out, status=status, threads=threads)
        assert tau is not None
        given: dict[str, Any] = {"forces": forces, "forces_frame": forces_frame}
        vdot = forward_dynamics(mech, q, v, tau, **given, status=status, threads=threads)
        lam = constraint_forces(mech, q, v, tau, **given)
        forces = _with_loops(mech, q, lam, forces, forces_frame)
        status = None if vdot.ndim == 1 and status is None else np.zeros(vdot.shape[:-1], np.int32)
    mech = tree_of(mech)
    name = "hinge_forces" if vdot is None else "hinge_forces_of_motion"
    arrays = {"q": q, "v": v, "tau": tau, "vdot": vdot}
    asked = {"out": flat_out(out, mech.n_bodies), "status": status, "threads": threads}
    if acting(forces):
        name, nodes = f"{name}_with_forces", pushed_nodes(forces)
        found = _kernel(mech, name, nodes, forces_frame, frame)
        rows = pushed(mech, name, arrays, forces, forces_frame, asked, found)
    else:
        rows = called(_kernel(mech, name, (), "node", frame), arrays, asked)
    return six_each(rows, out)


@once_per_mechanism
def _kernel(
    mech: Mechanism, name: str, nodes: tuple[str, ...], forces_frame: Frame, frame: BodyFrame
) -> Any:
    if frame == "body":
        return kernel(mech, name, nodes, frame=forces_frame)
    return written(mech, Formula(_flat, (name, forces_frame, frame)), nodes)


def _flat(at: Writing, name: str, forces_frame: Frame, frame: BodyFrame) -> Any:
    return forces_seen(at, name, forces_frame, frame).ravel()


def _with_loops(
    mech: Mechanism,
    q: ArrayLike,
    lam: Array,
    forces: Mapping[str, ArrayLike] | None,
    frame: Frame,
) -> dict[str, ArrayLike]:
    """Forces from outside, and those that the loops put on their nodes."""
    found: dict[str, Any] = dict(forces or {})
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
            found[node] = wrench + found[node] if node in found else wrench
    return found
