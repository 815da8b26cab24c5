"""Regressors: linear in the inertial parameters, the same as Pinocchio's, and their base."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ClosureError, ModelError
from tests.cases import close, state, states, tree
from tests.dynamics.test_oracles import ROBOTS, robot


def other(mech, seed=5):
    """The mechanism with a box welded to every body."""
    rng = np.random.default_rng(seed)
    for body in mech.bodies:
        size = rng.uniform(0.1, 0.5, 3)
        part = lw.SpatialInertia.solid_box(rng.uniform(0.5, 2.0), tuple(size))
        part = part.moved(lw.Pose.translation(rng.uniform(-1, 1, 3)))
        mech = mech.with_payload(body.name, part, name=f"box on {body.name}")
    return mech


@pytest.mark.parametrize("name", ["every hinge, armature", "floating"])
def test_linear_in_the_parameters(name):
    mech = tree(name)
    q, v, x = state(mech)
    torque = lw.regressor(mech, q, v, x)
    energy = lw.regressor(mech, q, v, of="energy")
    momentum = lw.regressor(mech, q, v, of="momentum")
    for it in (mech, other(mech)):
        pi = lw.dynamics.inertial_parameters(it)
        close(torque @ pi + it.armature * x, lw.inverse_dynamics(it, q, v, x), 1e-12)
        rotors = 0.5 * it.armature @ (v * v)
        close((energy @ pi)[0] + rotors, lw.energy(it, q, v).total, 1e-12)
        close(momentum @ pi, lw.momentum(it, q, v, about="world"), 1e-12)


def test_batches():
    mech = tree("floating")
    q, v, x = states(mech, 3)
    every = lw.regressor(mech, q, v, x)
    assert every.shape == (3, mech.nv, 10 * mech.n_bodies)
    close(every[2], lw.regressor(mech, q[2], v[2], x[2]), 1e-13)


@pytest.mark.parametrize("of", ["torque", "energy", "momentum"])
@pytest.mark.parametrize("name", ["every hinge, others", "pins"])
def test_base_parameters(name, of):
    mech = tree(name)
    base = lw.dynamics.base_parameters(mech, of=of)
    q, v, x = states(mech, 150)
    Y = lw.regressor(mech, q, v, x if of == "torque" else None, of=of)
    pi = lw.dynamics.inertial_parameters(mech)
    assert 0 < len(base.columns) < len(pi) and len(base.names) == len(base.columns)
    close(Y[..., base.columns] @ (base.matrix @ pi), Y @ pi, 1e-8)
    W = Y.reshape(-1, len(pi))
    W = W / np.maximum(np.linalg.norm(W, axis=0), 1e-9)
    assert np.linalg.matrix_rank(W, tol=1e-9 * np.sqrt(len(pi))) == len(base.columns)


def test_base_parameters_of_a_pendulum():
    """One pin: the moment about it, and the first moments across it.

    Its momentum about the origin has the products of inertia with the axis, its energy the height
    of the pin.
    """
    part = lw.SpatialInertia.solid_box(2.0, (0.1, 0.2, 0.3))
    pin, high = lw.hinges.Pin((0, 1, 0)), (0.0, 0.0, 0.5)
    mech = lw.Builder("one").body("link", "world", pin, inboard=high, inertia=part).build()
    force = ("mcx(link)", "mcz(link)", "Jyy(link)")
    assert lw.dynamics.base_parameters(mech).names == force
    assert lw.dynamics.base_parameters(mech, of="energy").names == ("m(link)", *force)
    momentum = lw.dynamics.base_parameters(mech, of="momentum").names
    assert momentum == (*force, "Jxy(link)", "Jyz(link)")


@pytest.mark.oracle
@pytest.mark.parametrize("short", ROBOTS)
def test_pinocchio(short):
    import pinocchio as pin

    it = robot(short)
    theirs = pin.computeJointTorqueRegressor(it.model, it.data, it.q_pin, it.v_pin, it.x_pin)
    ours = lw.regressor(it.mech, it.q, it.v, it.x)
    order = [0, 1, 2, 3, 4, 7, 5, 8, 9, 6]  # m, mc, Ixx Ixy Iyy Ixz Iyz Izz
    names = [body.hinge_name for body in it.mech.bodies]
    for j, name in enumerate(it.model.names[1:]):
        k = names.index(name) if name in names else 0
        block = ours[:, 10 * k : 10 * k + 10][:, order]
        close(block, it.T.T @ theirs[:, 10 * j : 10 * j + 10], 1e-10, scale=np.abs(theirs).max())


def test_bad_input():
    mech = tree("pins")
    q, v, x = state(mech)
    with pytest.raises(lw.ModelError, match="of is 'mass'; it must be 'torque'"):
        lw.regressor(mech, q, v, x, of="mass")
    with pytest.raises(lw.ModelError, match="of is 'mass'; it must be 'torque'"):
        lw.dynamics.base_parameters(mech, of="mass")
    with pytest.raises(lw.ModelError, match="vdot is missing"):
        lw.regressor(mech, q, v)
    with pytest.raises(lw.ModelError, match="vdot is given"):
        lw.regressor(mech, q, v, x, of="energy")


def test_loops_are_held():
    """By accelerations that obey them; `loops="open"` takes any."""
    mech = lw.models.four_bar()
    q = lw.loops.assemble(mech, mech.random(seed=3)).q
    _, v, x = state(mech)
    v = lw.loops.project_velocity(mech, q, v)
    vdot = lw.forward_dynamics(mech, q, v, x)
    pi = lw.dynamics.inertial_parameters(mech)
    Y = lw.regressor(mech, q, v, vdot)
    tau = lw.inverse_dynamics(mech, q, v, vdot)
    assert np.abs(tau).max() > 0.1
    close(Y @ pi + mech.armature * vdot, tau, 1e-12)
    with pytest.raises(ClosureError, match="vdot breaks"):
        lw.regressor(mech, q, v, vdot + 1.0)
    Y = lw.regressor(mech, q, v, vdot + 1.0, loops="open")
    open_tau = lw.inverse_dynamics(mech, q, v, vdot + 1.0, loops="open")
    close(Y @ pi + mech.armature * (vdot + 1.0), open_tau, 1e-12)
    batch, codes = np.tile(vdot, (2, 1)), np.zeros(2, np.int32)
    batch[1] += 1.0
    Y = lw.regressor(mech, q, v, batch, status=codes)
    assert codes[0] == 0 and codes[1]
    assert np.isfinite(Y[0]).all() and np.isnan(Y[1]).all()
    with pytest.raises(ModelError, match=r"its\s+rows are those of all hinges"):
        lw.regressor(lw.loops.embed(mech), q, v[:1], v[:1])
