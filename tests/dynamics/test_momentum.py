"""Momentum and the centre of mass: by bodies, by differences, against Pinocchio and MuJoCo."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import V
from linkwise.algebra.dense import Dense
from linkwise.errors import ModelError, ShapeError
from tests.cases import close, state, tree
from tests.dynamics.test_oracles import MJCF, ROBOTS, ROTATED, robot

POINT = np.array([0.3, -0.2, 0.5])


@cache
def forest() -> lw.Mechanism:
    """Two trees on the ground, one of them free."""
    first = lw.models.random_tree(3, 2, hinges=("pin", "spherical"))
    return first.mount(lw.models.random_tree(2, 5, floating=True), at="world", prefix="other_")


def mechanism(name):
    return forest() if name == "forest" else tree(name)


NAMES = ["every hinge, armature", "every hinge, others", "floating", "forest"]


def by_bodies(mech, q, v, about):
    """Σ m_k (c_k − o) × ċ_k + J_k ω_k and Σ m_k ċ_k, body by body."""
    velocity = Dense(mech, q, v)(V).reshape(-1, 6)
    total = np.zeros(6)
    for k, body in enumerate(mech.bodies):
        pose, inertia = mech.pose(q, body.name), mech.inertias[k]
        spin = pose.rot @ velocity[k, :3]
        arm = pose.rot @ inertia.com
        linear = float(inertia.mass) * (pose.rot @ velocity[k, 3:] + np.cross(spin, arm))
        ours = pose.rot @ inertia.J_com @ velocity[k, :3]
        total += np.concatenate([ours + np.cross(pose.p + arm - about, linear), linear])
    return total


@pytest.mark.few(2)
@pytest.mark.parametrize("name", NAMES)
def test_momentum_is_that_of_the_bodies(name):
    mech = mechanism(name)
    q, v, _ = state(mech, 3)
    com = mech.center_of_mass(q)
    for about, point in (("world", np.zeros(3)), ("com", com), (POINT, POINT)):
        expected = by_bodies(mech, q, v, point)
        # Moments about far points cancel: the scale is that about the origin.
        scale = np.abs(by_bodies(mech, q, v, np.zeros(3))).max() * (1 + np.abs(com).max())
        close(lw.momentum(mech, q, v, about=about), expected, 1e-12, scale=scale)
        A = lw.momentum(mech, q, about=about, what="matrix")
        close(A @ v, expected, 1e-12, scale=scale)
    close(lw.center_of_mass(mech, q), com, 1e-13, scale=1.0)


@pytest.mark.parametrize("name", NAMES)
def test_rates(name):
    """ḣ at v̇ = 0, and velocity and acceleration of the centre of mass, by differences."""
    mech = mechanism(name)
    q, v, _ = state(mech, 4)
    h = 1e-4

    def slope(of):
        def at(t):
            return of(mech.integrate(q, v, t))

        return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)

    size = (1 + np.abs(v).max()) ** 2
    for about in ("com", POINT):
        rate = slope(lambda x, about=about: lw.momentum(mech, x, v, about=about))
        scale = np.abs(lw.momentum(mech, q, about=about, what="matrix")).max() * size
        close(lw.momentum(mech, q, v, about=about, what="bias"), rate, 1e-8, scale=scale)
    J = lw.center_of_mass(mech, q, what="jacobian")
    scale = np.abs(J).max() * size
    moving = lw.center_of_mass(mech, q, v, what="velocity")
    close(moving, slope(lambda x: lw.center_of_mass(mech, x)), 1e-8, scale=scale)
    close(J @ v, moving, 1e-12, scale=scale)
    slow = slope(lambda x: lw.center_of_mass(mech, x, v, what="velocity"))
    close(lw.center_of_mass(mech, q, v, what="bias"), slow, 1e-8, scale=scale)


def test_forces_from_outside_are_the_rate_of_momentum():
    """A free mechanism falls: whatever the joints do, only gravity changes its momentum."""
    mech = lw.models.random_tree(4, 4, floating=True, drives=False)  # rotors would take a share
    q, v, tau = state(mech, 5)
    tau[mech.v_slice(mech.bodies[0].hinge_name)] = 0.0  # nothing pushes the base
    vdot = lw.forward_dynamics(mech, q, v, tau)
    rate = lw.momentum(mech, q, what="matrix") @ vdot + lw.momentum(mech, q, v, what="bias")
    weight = mech.total_mass * mech.gravity
    close(rate, np.concatenate([np.zeros(3), weight]), 1e-10, scale=np.abs(tau).max() + 10)


def test_centroidal_inertia():
    """One rigid body: locked at q, the momentum of a turn about the centre of mass."""
    mech = tree("floating")
    q, _, _ = state(mech, 6)
    result = lw.dynamics.centroidal_inertia(mech, q)
    locked = mech.lock({b.hinge_name: q[mech.q_slice(b.hinge_name)] for b in mech.bodies[1:]})
    q_0 = q[mech.q_slice(mech.bodies[0].hinge_name)]
    A = lw.momentum(locked, q_0, what="matrix")
    pose = mech.pose(q, mech.bodies[0].name)
    arm = mech.center_of_mass(q) - pose.p
    for i, spin in enumerate(np.eye(3)):
        still = np.cross(arm, spin)  # velocity of the base with the centre of mass at rest
        v = np.concatenate([pose.rot.T @ spin, pose.rot.T @ still])
        close(A @ v, np.concatenate([result[:3, i], np.zeros(3)]), 1e-11)
    close(result[3:, 3:], mech.total_mass * np.eye(3), 1e-13)


@pytest.mark.oracle
@pytest.mark.parametrize("short", ROBOTS)
def test_pinocchio(short):
    pin = pytest.importorskip("pinocchio")
    it = robot(short)
    mech, q, v = it.mech, it.q, it.v
    model, data = it.model, it.data
    A = np.array(pin.ccrba(model, data, it.q_pin, it.v_pin))
    ours = lw.momentum(mech, q, what="matrix")
    close(ours, A[ROTATED] @ it.T, 1e-11)
    close(lw.momentum(mech, q, v), data.hg.vector[ROTATED], 1e-11, scale=np.abs(A).max())
    result = data.Ig.matrix()[np.ix_(ROTATED, ROTATED)]
    close(lw.dynamics.centroidal_inertia(mech, q), result, 1e-11)
    pin.dccrba(model, data, it.q_pin, it.v_pin)
    bias = (data.dAg @ it.v_pin)[ROTATED]
    scale = np.abs(data.dAg).max() * np.abs(it.v_pin).sum()
    close(lw.momentum(mech, q, v, what="bias"), bias, 1e-11, scale=scale)
    zero = np.zeros(model.nv)
    com = pin.centerOfMass(model, data, it.q_pin, it.v_pin, zero)
    close(lw.center_of_mass(mech, q), com, 1e-12)
    close(lw.center_of_mass(mech, q, v, what="velocity"), data.vcom[0], 1e-11)
    close(lw.center_of_mass(mech, q, v, what="bias"), data.acom[0], 1e-10)
    J = pin.jacobianCenterOfMass(model, data, it.q_pin)
    close(lw.center_of_mass(mech, q, what="jacobian"), J @ it.T, 1e-11)


@pytest.mark.oracle
def test_mujoco(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "robot.xml"
    path.write_text(MJCF, encoding="utf-8")
    mech, model = lw.load(path), mujoco.MjModel.from_xml_string(MJCF)
    data, layout = mujoco.MjData(model), lw.convert.mujoco_layout(mech, model)
    q, v, _ = state(mech, 4)
    data.qpos[:], data.qvel[:] = layout.q_to(q), layout.v_to(q, v)
    mujoco.mj_forward(model, data)
    mujoco.mj_subtreeVel(model, data)
    close(lw.center_of_mass(mech, q), data.subtree_com[0], 1e-12)
    close(lw.center_of_mass(mech, q, v, what="velocity"), data.subtree_linvel[0], 1e-11)
    result = lw.momentum(mech, q, v)  # armature is no part of either
    close(result[:3], data.subtree_angmom[0], 1e-10)
    jac = np.zeros((3, model.nv))
    mujoco.mj_jacSubtreeCom(model, data, jac, 1)
    T = np.stack([layout.v_to(q, e) for e in np.eye(mech.nv)], axis=-1)
    close(lw.center_of_mass(mech, q, what="jacobian"), jac @ T, 1e-11)


def test_batches_out_and_trouble():
    mech = tree("floating")
    states = [state(mech, seed) for seed in range(4)]
    q, v = (np.stack(part) for part in list(zip(*states, strict=True))[:2])
    codes, out = np.full(4, 7, np.int32), np.empty((4, 6))
    result = lw.momentum(mech, q, v, about=POINT, out=out, status=codes)
    assert result is out and not codes.any()
    A = lw.momentum(mech, q, about=POINT, what="matrix")
    for i in range(4):
        close(A[i] @ v[i], result[i], 1e-12)
        close(lw.momentum(mech, q[i], about=POINT, what="matrix"), A[i], 1e-12)
    broken = q.copy()
    broken[2, :4] *= 1.5
    codes = np.zeros(4, np.int32)
    some = lw.momentum(mech, broken, v, status=codes)
    assert codes[2] != 0 and np.isnan(some[2]).all() and np.isfinite(some[[0, 1, 3]]).all()
    close(some[0], lw.momentum(mech, q[0], v[0]), 1e-12)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda m, q, v: lw.momentum(m, q, v, about="hand"), ModelError, "about is 'hand'"),
        (lambda m, q, v: lw.momentum(m, q, v, about=(1.0, 2.0)), ShapeError, "about has shape"),
        (lambda m, q, v: lw.momentum(m, q, v[:-1]), ShapeError, "v has shape"),
        (lambda m, q, v: lw.momentum(m, q, v, out=np.empty(5)), ShapeError, "out is float64"),
    ],
)
def test_wrong_input(call, kind, text):
    mech = tree("floating")
    q, v, _ = state(mech)
    with pytest.raises(kind, match=text):
        call(mech, q, v)


def test_no_mass():
    b = lw.Builder("frame")
    b.body("frame", "world", lw.hinges.Pin())
    with pytest.raises(ModelError, match="has no mass"):
        lw.center_of_mass(b.build(), np.zeros(1))
