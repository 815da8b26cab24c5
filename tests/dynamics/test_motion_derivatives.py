"""Derivatives of Jacobians, momentum and energies: against differences, and Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import JOINT, vector
from linkwise.dynamics import expression
from tests.cases import close, state, states, tree
from tests.dynamics.test_derivatives import differences
from tests.dynamics.test_oracles import ROTATED, robot

SMALL = lw.models.random_tree(3, 4, hinges=("spherical", "pin", "prismatic"), mass_ratio=3.0)


@pytest.mark.parametrize("frame, about", [("node", None), ("world", None), ("world", "world")])
def test_jacobian_derivative(frame, about):
    q, node = SMALL.random(seed=1), SMALL.bodies[-1].name
    ours = lw.dynamics.jacobian_derivative(SMALL, q, node, frame=frame, about=about)

    def moved(d):
        return lw.jacobian(SMALL, SMALL.integrate(q, d), node, frame=frame, about=about).ravel()

    expected = differences(moved, SMALL).reshape(ours.shape)
    assert np.abs(expected).max() > 0.1
    close(ours, expected, 1e-10)
    every = np.stack([q, SMALL.random(seed=2)])
    batch = lw.dynamics.jacobian_derivative(SMALL, every, node, frame=frame, about=about)
    close(batch[0], ours, 1e-14)


@pytest.mark.parametrize("about", ["com", "world"])
def test_momentum_derivatives(about):
    q, v, vdot = state(SMALL, 2)
    ours = lw.dynamics.momentum_derivatives(SMALL, q, v, vdot, about=about)

    def momentum(q, v):
        return lw.momentum(SMALL, q, v, about=about)

    def rate(q, v, part=1.0):
        A = lw.momentum(SMALL, q, what="matrix", about=about)
        return part * A @ vdot + lw.momentum(SMALL, q, v, what="bias", about=about)

    move = SMALL.integrate
    close(ours.q, differences(lambda d: momentum(move(q, d), v), SMALL), 1e-10)
    close(ours.v, lw.momentum(SMALL, q, what="matrix", about=about), 1e-13)
    close(ours.rate_q, differences(lambda d: rate(move(q, d), v), SMALL), 1e-10)
    close(ours.rate_v, differences(lambda d: rate(q, v + d), SMALL), 1e-10)
    again = lw.dynamics.momentum_derivatives(SMALL, q, v, 2.0 * vdot, about=about, out=ours)
    assert again.rate_q is ours.rate_q
    close(
        ours.rate_q,
        differences(lambda d: 2.0 * rate(move(q, d), v) - rate(move(q, d), v, 0.0), SMALL),
        1e-10,
    )
    codes = np.zeros(3, np.int32)
    q, v, vdot = states(SMALL, 3)
    vdot[1] = np.nan
    every = lw.dynamics.momentum_derivatives(SMALL, q, v, vdot, about=about, status=codes)
    assert codes.tolist() == [0, 1, 0] and np.isfinite(every.rate_q[2]).all()


@pytest.mark.parametrize(
    "name",
    [
        "small",
        *(pytest.param(x, marks=pytest.mark.prove) for x in ("every hinge, others", "floating")),
    ],
)
def test_energies(name):
    """Gradients and Hessians: of the potential one, the gravity force and its derivative."""
    mech = SMALL if name == "small" else tree(name)
    q, v, _ = state(mech, 3)
    u = vector("u", JOINT)
    way = 0.2 * np.random.default_rng(0).standard_normal(mech.nv)
    for energy, arrays in (("potential_energy", (q,)), ("kinetic_energy", (q, v))):
        row = lw.differentiate(expression(energy), "q")
        gradient = lw.compile(row.T, mech)(*arrays)
        of = getattr(lw.dynamics, energy)
        expected = differences(
            lambda d, of=of, a=arrays: of(mech, mech.integrate(q, d), *a[1:]), mech
        )
        close(np.ravel(gradient), np.ravel(expected), 1e-9)
        hessian = lw.compile(lw.differentiate(row.T, "q") @ u, mech)

        def moved(d, row=row, a=arrays):
            return np.ravel(lw.compile(row.T, mech)(mech.integrate(q, d), *a[1:]))

        expected = differences(moved, mech) @ way
        close(hessian(*arrays, u=way), expected, 1e-9)
    gravity = lw.compile(lw.differentiate(expression("potential_energy"), "q").T, mech)(q)
    close(np.ravel(gravity), lw.dynamics.gravity_force(mech, q), 1e-12)


@pytest.mark.oracle
@pytest.mark.prove
@pytest.mark.parametrize("short", ["panda.urdf", "solo12.urdf"])
def test_pinocchio(short):
    import pinocchio as pin

    it = robot(short)
    mech, T, nv = it.mech, it.T, it.mech.nv
    ours = lw.dynamics.momentum_derivatives(mech, it.q, it.v, it.x)
    theirs = pin.computeCentroidalDynamicsDerivatives(
        it.model, it.data, it.q_pin, it.v_pin, it.x_pin
    )
    each = (ours.q, ours.rate_q, ours.rate_v, ours.v)
    for x, y in zip(each, theirs, strict=True):
        close(x, (y @ T)[ROTATED], 1e-12)
    name = mech.bodies[-1].name
    pin.computeJointJacobians(it.model, it.data, it.q_pin)
    pin.computeJointKinematicHessians(it.model, it.data)
    pin.updateFramePlacements(it.model, it.data)
    frame = it.model.getFrameId(name)
    for axes, ref in (("node", pin.LOCAL), ("world", pin.LOCAL_WORLD_ALIGNED)):
        tensor = pin.getFrameKinematicHessian(it.model, it.data, frame, ref)
        # Its numbers come column by column, under a shape that says row by row.
        tensor = tensor.ravel().reshape(6, nv, nv, order="F")[ROTATED]
        hessian = np.einsum("iab,aj,bk->ijk", tensor, T, T)
        ours = lw.dynamics.jacobian_derivative(mech, it.q, name, frame=axes)
        close(ours, hessian, 1e-12)
