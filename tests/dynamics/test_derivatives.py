"""Derivatives of inverse and forward dynamics: against differences, Pinocchio, and each other."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import LinkwiseError
from tests.algebra.test_differential import STENCIL
from tests.cases import TREES, close, state, states, tree
from tests.dynamics.test_oracles import ROBOTS, robot


def differences(function, mech, h=1e-3):
    """∂ function(δ) at δ = 0, for δ (nv,)."""
    steps = zip(STENCIL, range(-4, 5), strict=True)
    weights = [(weight / h, s * h) for weight, s in steps if weight]
    return np.stack(
        [sum(c * function(s * e) for c, s in weights) for e in np.eye(mech.nv)], axis=-1
    )


@pytest.mark.few(2)
@pytest.mark.parametrize("name", TREES)
def test_differences(name):
    mech = tree(name)
    q, v, x = state(mech, 2)
    inverse = lw.inverse_dynamics_derivatives(mech, q, v, x)
    scale = float(np.abs(inverse.q).max())
    moved = differences(lambda d: lw.inverse_dynamics(mech, mech.integrate(q, d), v, x), mech)
    close(inverse.q, moved, 1e-9)
    moved = differences(lambda d: lw.inverse_dynamics(mech, q, v + d, x), mech)
    close(inverse.v, moved, 1e-9, scale=scale)
    close(inverse.vdot, lw.mass_matrix(mech, q), 1e-14)
    forward = lw.forward_dynamics_derivatives(mech, q, v, x)
    close(forward.tau, lw.mass_matrix_inverse(mech, q), 1e-9)
    vdot = lw.forward_dynamics(mech, q, v, x)
    there = lw.inverse_dynamics_derivatives(mech, q, v, vdot)
    for result, expected in ((forward.q, there.q), (forward.v, there.v)):
        residual = inverse.vdot @ result + expected
        assert np.abs(residual).max() < 1e-9 * np.abs(expected).max()


@pytest.mark.parametrize("name", ["every hinge, others", "floating"])
def test_linearization(name):
    """A small motion from a state that is a little off goes where A says."""
    mech, h = tree(name), 1e-5
    q, v, tau = state(mech, 1)
    result = lw.linearize(mech, q, v, tau)
    nv = mech.nv
    assert result.A.shape == (2 * nv, 2 * nv) and result.B.shape == (2 * nv, nv)

    def rate(d, e):
        """Velocity of δq, for q displaced by d and v by e: from differences over a short time."""
        rates = list[np.ndarray]()
        for t in (-h, h):
            here, there = mech.integrate(q, t * v), mech.integrate(q, d)
            there = mech.integrate(there, t * (v + e))
            rates.append(mech.difference(here, there))
        return (rates[1] - rates[0]) / (2 * h)

    step = 1e-5
    for j, unit in enumerate(step * np.eye(nv)):
        column = (rate(unit, 0 * unit) - rate(-unit, 0 * unit)) / (2 * step)
        close(result.A[:nv, j], column, 1e-4, scale=float(np.abs(v).max()) + 1.0)
    close(result.A[:nv, nv:], np.eye(nv))
    d = lw.forward_dynamics_derivatives(mech, q, v, tau)
    assert np.array_equal(result.A[nv:], np.hstack([d.q, d.v]))
    assert np.array_equal(result.B, np.vstack([np.zeros((nv, nv)), d.tau]))


def test_batches_and_status():
    mech = tree("floating")
    q, v, x = states(mech, 5)
    every = lw.forward_dynamics_derivatives(mech, q, v, x)
    for i in range(5):
        one = lw.forward_dynamics_derivatives(mech, q[i], v[i], x[i])
        for name in ("q", "v", "tau"):
            close(getattr(every, name)[i], getattr(one, name), 1e-12)
    codes = np.zeros(5, dtype=np.int32)
    v[3] = np.nan
    result = lw.inverse_dynamics_derivatives(mech, q, v, x, status=codes)
    assert codes[3] and not codes[[0, 1, 2, 4]].any()
    assert np.isfinite(result.q[4]).all()


@pytest.mark.oracle
@pytest.mark.few(1)
@pytest.mark.parametrize("short", ROBOTS)
def test_pinocchio(short):
    import pinocchio as pin

    it = robot(short)
    q, v, x, T = it.q, it.v, it.x, it.T
    theirs = pin.computeRNEADerivatives(it.model, it.data, it.q_pin, it.v_pin, it.x_pin)
    ours = lw.inverse_dynamics_derivatives(it.mech, q, v, x)
    close(ours.q, T.T @ theirs[0] @ T, 1e-10)
    close(ours.v, T.T @ theirs[1] @ T, 1e-10)
    force = it.layout.force_to(q, x)
    theirs = pin.computeABADerivatives(it.model, it.data, it.q_pin, it.v_pin, force)
    ours = lw.forward_dynamics_derivatives(it.mech, q, v, x)
    back = np.linalg.inv(T)
    close(ours.q, back @ theirs[0] @ T, 1e-9)
    close(ours.v, back @ theirs[1] @ T, 1e-9)
    close(ours.tau, back @ theirs[2] @ back.T, 1e-9)


def curve(q):
    """A pose that depends on two coordinates, on both at once."""
    a, b = q[..., 0], q[..., 1]
    c, s = np.cos(a * b + a), np.sin(a * b + a)
    none = np.zeros_like(c)
    rows = ([c, -s, none], [s, c, none], [none, none, none + 1.0])
    rot = np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
    return rot, np.stack([a * a, np.sin(b), a * b], axis=-1)


def test_custom_hinge():
    """A hinge given by its pose alone: H and all its derivatives come from tracing it."""
    rod = lw.SpatialInertia.solid_cylinder(1.0, 0.05, 0.4).moved(
        lw.Pose.translation((0.1, 0.2, 0.3))
    )
    b = lw.Builder("custom")
    b.body("one", hinge=lw.hinges.Pin((0, 1, 0)), inertia=rod)
    hinge = lw.hinges.CustomHinge("curve", (("a", "rad"), ("b", "m")), curve)
    b.body("two", "one", hinge, inboard=(0.1, 0.0, 0.3), inertia=rod)
    mech = b.build()
    q, v, x = state(mech, 2)
    ours = lw.inverse_dynamics_derivatives(mech, q, v, x)
    close(ours.q, differences(lambda d: lw.inverse_dynamics(mech, q + d, v, x), mech), 1e-9)
    close(ours.v, differences(lambda d: lw.inverse_dynamics(mech, q, v + d, x), mech), 1e-9)
    forward = lw.forward_dynamics_derivatives(mech, q, v, x)
    close(forward.q, differences(lambda d: lw.forward_dynamics(mech, q + d, v, x), mech), 1e-9)


@pytest.mark.parametrize(
    "function", [lw.forward_dynamics_derivatives, lw.inverse_dynamics_derivatives]
)
def test_matrices_that_are_not_finite_are_reported(function):
    with pytest.raises(LinkwiseError, match="not finite"):
        function(lw.models.pendulum(2), [0.1, 0.2], [1e200, 1e200], [0.0, 0.0])
