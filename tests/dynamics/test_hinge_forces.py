"""Forces through hinges: balance of every body, joint forces, Pinocchio, MuJoCo."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import B, D, H, K, M, N, P, a, b, f, phi, psi, rot_W, tau
from linkwise.algebra.dense import Dense
from linkwise.dynamics.quantity import _hinge_forces as hinge_forces
from linkwise.errors import ModelError, SingularHingeError
from linkwise.spatial.vector import cross_force
from linkwise.sweeps.cost import cost
from linkwise.sweeps.interpret import run
from tests.cases import TREES, close, state, states, tree
from tests.dense_kinematics import body_jacobians, mass_matrix
from tests.dynamics.oracle_state import (
    MUJOCO,
    PINOCCHIO,
    in_mujoco,
    in_pinocchio,
    spatial_force,
)

NODES = ("body_2", "tool")
PUSH = np.array([1.0, -2.0, 0.5, 3.0, -1.0, 2.0, 0.5, 0.1, -0.7, 4.0, 2.0, -5.0])


def evaluated(mech, name, q, v, nodes=(), frame="node", **values):
    """A named quantity by the interpreter."""
    expr = lw.dynamics.expression(name, frame=frame)
    return run(lw.plan(expr), mech, q, v, nodes=nodes, values=values)


@cache
def small() -> lw.Mechanism:
    """A ball, a slide and a pin, branched, with armature."""
    kinds = ("spherical", "prismatic", "pin")
    mech = lw.models.random_tree(3, 5, hinges=kinds, branching=0.5)
    return mech.with_node("tool", mech.bodies[-1].name, lw.Pose.rpy((0.3, 0.5, -1), (0.1, 0.2, 0)))


def unbalanced(mech, q, v, vdot, through, pushes, frame) -> float:
    """What Newton and Euler miss at any body: F + weight + push − Σ F(child) − (M V)˙.

    All at the body frame, in its axes; relative to the largest force there is.
    """
    poses, V = mech.poses(q), body_jacobians(mech, q) @ v
    rates = lw.dynamics.expression("body_accelerations")
    alpha = run(lw.plan(rates), mech, q, v, values={"vdot": vdot}).reshape(-1, 6)
    worst, size = 0.0, 1e-9
    for k, body in enumerate(mech.bodies):
        inertia = mech.inertias[k]
        down = poses.rot[k].T @ mech.gravity
        weight = np.concatenate([np.cross(inertia.h, down), inertia.mass * down])
        total = through[k] + weight
        for c in mech.children[k]:
            child = mech.bodies[c]
            total = total - child.pose(q[mech.q_slice(child.hinge_name)]).shift @ through[c]
        for node, six in zip(NODES, pushes.reshape(2, 6), strict=True):
            if mech.node(node).body == body.name:
                turn = np.eye(3) if frame == "node" else mech.pose(q, node).rot.T
                total = total + mech.node(node).pose.shift @ np.kron(np.eye(2), turn) @ six
        momentum_rate = inertia.matrix @ alpha[k] + cross_force(V[k], inertia.matrix @ V[k])
        worst = max(worst, float(np.abs(total - momentum_rate).max()))
        size = max(size, float(np.abs(through[k]).max()), float(np.abs(momentum_rate).max()))
    return worst / size


@pytest.mark.parametrize("frame", ["node", "world"])
@pytest.mark.parametrize("name", TREES)
def test_every_body_is_in_balance(name, frame):
    mech = tree(name)
    q, v, x = state(mech)
    given = {"tau": x, "f": PUSH}
    result = evaluated(mech, "hinge_forces_with_forces", q, v, NODES, frame, **given)
    vdot = evaluated(mech, "forward_dynamics_with_forces", q, v, NODES, frame, **given)
    assert unbalanced(mech, q, v, vdot, result.reshape(-1, 6), PUSH, frame) < 1e-11
    # Along the hinge it is the joint force, less what the rotor takes.
    dense = Dense(mech, q, v)
    along, rotor = dense.matrix(H) @ result, dense.matrix(N) @ vdot
    size = float(np.abs(result).max() + np.abs(x).max() + np.abs(rotor).max())
    close(along + rotor, x, 1e-12, scale=size)
    of_motion = evaluated(
        mech, "hinge_forces_of_motion_with_forces", q, v, NODES, frame, vdot=vdot, f=PUSH
    )
    close(of_motion, result, 1e-11)


@pytest.mark.parametrize("push", [None, B @ f, B @ rot_W.T @ f], ids=str)
def test_what_is_derived_costs_no_more_than_by_hand(push):
    """z + P λ with z = ψ (K τ + M φ* a + b − B f) and λ = ψ* H* D⁻¹ (τ − H z), and it is proved."""
    z = psi @ (K @ tau + M @ phi.T @ a + (b if push is None else b - push))
    by_hand = z + P @ psi.T @ H.T @ D.inv @ (tau - H @ z)
    derived = lw.derive(hinge_forces(push))
    assert cost(lw.plan(derived.result)) <= cost(lw.plan(by_hand))
    assert derived.replay()
    assert lw.prove(by_hand, derived.result).proved


def test_compiled_in_batches_with_forces():
    mech = small()
    q, v, x = states(mech, 4)
    forces = dict(zip(NODES, PUSH.reshape(2, 6), strict=True))
    result = lw.hinge_forces(mech, q, v, tau=x, forces=forces, forces_frame="world")
    assert result.shape == (4, 3, 6)
    vdot = lw.forward_dynamics(mech, q, v, x, forces=forces, forces_frame="world")
    for i in range(4):
        assert unbalanced(mech, q[i], v[i], vdot[i], result[i], PUSH, "world") < 1e-12
    close(
        lw.hinge_forces(mech, q, v, vdot=vdot, forces=forces, forces_frame="world"), result, 1e-11
    )
    out = np.empty((4, 3, 6))
    assert lw.hinge_forces(mech, q, v, tau=x, out=out) is out
    close(out[1], lw.hinge_forces(mech, q[1], v[1], tau=x[1]), 1e-13)


def test_a_pendulum_at_rest_hangs_on_its_hinge():
    """By hand: the hinge of a rod of 2 kg carries 2 g, and nothing holds it but its joint."""
    rod = lw.SpatialInertia.from_com(2.0, (0.0, 0.0, -0.5), (0.1, 0.1, 0.01))
    mech = lw.Builder("rod").body("rod", hinge=lw.hinges.Pin(axis=(0, 1, 0)), inertia=rod).build()
    forces = lw.hinge_forces(mech, [0.0], [0.0], tau=[0.0])
    np.testing.assert_allclose(forces, [[0, 0, 0, 0, 0, 2 * 9.81]], rtol=0, atol=1e-14)
    # Held out level by a joint force m g l; its x axis points down then.
    held = lw.hinge_forces(mech, [-np.pi / 2], [0.0], vdot=[0.0])
    np.testing.assert_allclose(np.abs(held), [[0, 9.81, 0, 2 * 9.81, 0, 0]], rtol=0, atol=1e-13)
    # Swinging through the bottom at 3 rad/s: m ω² l more.
    swung = lw.hinge_forces(mech, [0.0], [3.0], tau=[0.0])
    np.testing.assert_allclose(swung[0, 5], 2 * 9.81 + 2 * 9.0 * 0.5, rtol=1e-14)


def test_in_other_frames():
    """Turned and moved by poses; and the power on every body is the same wherever it is taken."""
    mech = tree("floating")
    q, v, x = state(mech)
    rates = states(mech, 8)[1]
    F, V = lw.hinge_forces(mech, q, v, tau=x), lw.dynamics.body_velocities(mech, q, rates)
    power, poses = (F * V).sum(axis=-1), mech.poses(q)
    for frame in ("hinge", "world", "inertial"):
        seen = lw.hinge_forces(mech, q, v, tau=x, frame=frame)
        moving = lw.dynamics.body_velocities(mech, q, rates, frame=frame)
        close((seen * moving).sum(axis=-1), power, 1e-11)
        for k in range(mech.n_bodies):
            if frame == "world":
                close(seen[k], np.kron(np.eye(2), poses.rot[k]) @ F[k], 1e-12)
            elif frame == "inertial":
                close(seen[k], poses[k].shift @ F[k], 1e-12)
        many, out = np.stack([q, q]), np.empty((2, mech.n_bodies, 6))
        assert lw.hinge_forces(mech, many, v, tau=x, frame=frame, out=out) is out
        close(out, np.stack([seen, seen]), 1e-12)
    status = np.empty(2, dtype=np.int32)
    forces = lw.hinge_forces(
        mech, np.stack([q, np.nan * q]), v, tau=x, frame="world", status=status
    )
    assert status.tolist() == [0, 1] and np.isnan(forces[1]).all() and np.isfinite(forces[0]).all()


def test_what_cannot_be_meant():
    mech = small()
    q, v, x = state(mech)
    with pytest.raises(ModelError, match="hinge_forces was given neither of tau and vdot"):
        lw.hinge_forces(mech, q, v)
    with pytest.raises(ModelError, match="both of tau and vdot"):
        lw.hinge_forces(mech, q, v, tau=x, vdot=x)
    with pytest.raises(TypeError, match="positional"):  # is it tau or vdot?
        lw.hinge_forces(mech, q, v, x)  # type: ignore[misc]
    for name, word in (("frame", "node"), ("forces_frame", "hinge")):
        with pytest.raises(ModelError, match=f"^{name} is '{word}'; it must be"):
            lw.hinge_forces(mech, q, v, tau=x, **{name: word})
    empty = lw.Builder("empty").body("arm", hinge=lw.hinges.Pin(), inertia=lw.SpatialInertia.zero())
    with pytest.raises(SingularHingeError, match="arm"):
        lw.hinge_forces(empty.build(), [0.0], [0.0], tau=[1.0])


# ------------------------------------------------------------------------------------- oracles


@pytest.mark.oracle
@pytest.mark.parametrize("name", PINOCCHIO)
def test_with_pinocchio(name):
    import pinocchio as pin

    it = in_pinocchio(name)
    vdot = evaluated(it.mech, "forward_dynamics", it.q, it.v, tau=it.x)
    pin.rnea(it.model, it.data, it.q_pin, it.v_pin, it.accelerated(vdot))
    result = evaluated(it.mech, "hinge_forces", it.q, it.v, tau=it.x).reshape(-1, 6)
    size = float(np.abs(result).max())
    for ours, body in zip(result, it.mech.bodies, strict=True):
        if body.hinge.nv:
            theirs = it.placed(body.name).actInv(it.data.f[it.joint(body.name)])
            close(ours, spatial_force(theirs.vector), 1e-10, scale=size)


@pytest.mark.oracle
@pytest.mark.parametrize("source", MUJOCO)
def test_with_mujoco(source):
    """cfrc_int: about the centre of mass of the tree, in world axes."""
    it = in_mujoco(source)
    result = evaluated(it.mech, "hinge_forces", it.q, it.v, tau=it.tau).reshape(-1, 6)
    size, compared = float(np.abs(result).max()), 0
    for k in range(1, it.model.nbody):
        name = it.model.body(k).name
        if name not in it.mech.body_index:
            continue
        moment, force = np.split(np.array(it.data.cfrc_int[k]), 2)
        at, pose = it.data.subtree_com[it.model.body_rootid[k]], it.mech.pose(it.q, name)
        moment = moment + np.cross(at - pose.p, force)
        theirs = np.concatenate([pose.rot.T @ moment, pose.rot.T @ force])
        close(result[it.mech.body_index[name]], theirs, 1e-10, scale=size)
        compared += 1
    assert compared == it.mech.n_bodies


def test_no_inverse_dynamics_is_needed():
    """The same force by forward dynamics, then inverse dynamics: one pass more, more operations."""
    mech = small()
    q, v, x = state(mech)
    kernel = lw.dynamics.kernel(mech, "hinge_forces")
    forward = lw.dynamics.kernel(mech, "forward_dynamics")
    backward = lw.dynamics.kernel(mech, "hinge_forces_of_motion")
    assert len(kernel.program.passes) == 3
    assert kernel.ops.total() < forward.ops.total() + backward.ops.total()
    A = mass_matrix(mech, q)
    vdot = forward(q, v, x)
    assert np.abs(A @ vdot).max() > 0.0
    close(kernel(q, v, x), backward(q, v, vdot), 1e-11)
