"""Derivatives of inverse and forward dynamics: against differences, Pinocchio, and each other."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.dynamics import derivatives
from linkwise.dynamics.path_dependent import path_dependent
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


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["every hinge, others", "floating"])
def test_linearization(name):
    """A small motion from a state that is a little off goes where A says."""
    mech, h = tree(name), 1e-5
    q, v, tau = state(mech, 1)
    result = lw.linearize(mech, q, v, tau, passive=False)
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


def flying():
    """Two bodies, one free: small."""
    mech = lw.models.random_tree(2, 4, floating=True, hinges=("pin",))
    return mech.with_node("tool", mech.bodies[-1].name, lw.Pose.rpy((0.3, 0.5, -1), (0.1, 0.2, 0)))


PUSHED = [(flying, "world"), (flying, "node"), (lambda: tree("every hinge, armature"), "world")]


@pytest.mark.parametrize(
    "made, frame", [PUSHED[0], *(pytest.param(*x, marks=pytest.mark.prove) for x in PUSHED[1:])]
)
def test_forces_at_nodes(made, frame):
    """Held in their axes while the mechanism moves."""
    mech, rng = made(), np.random.default_rng(3)
    q, v, x = state(mech, 2)
    nodes = ("tool", mech.bodies[0].name)
    given = {"forces": dict(zip(nodes, 9.0 * rng.standard_normal((2, 6)), strict=True))}
    given["forces_frame"] = frame
    for function, of in (
        (lw.inverse_dynamics_derivatives, lw.inverse_dynamics),
        (lw.forward_dynamics_derivatives, lw.forward_dynamics),
    ):
        ours, without = function(mech, q, v, x, **given), function(mech, q, v, x)
        moved = differences(lambda d, of=of: of(mech, mech.integrate(q, d), v, x, **given), mech)
        assert np.abs(without.q - moved).max() > 1e-3 * np.abs(moved).max()
        close(ours.q, moved, 1e-9)
        turned = differences(lambda d, of=of: of(mech, q, v + d, x, **given), mech)
        close(ours.v, turned, 1e-9, scale=float(np.abs(moved).max()))
        assert np.array_equal(ours[2], without[2])
    codes, pair = np.zeros(2, np.int32), np.stack([v, np.full(mech.nv, np.nan)])
    both = lw.forward_dynamics_derivatives(mech, q, pair, x, **given, status=codes, threads=2)
    assert not codes[0] and codes[1] and np.isnan(both.q[1]).all()
    close(both.q[0], ours.q, 1e-12)
    formula = derivatives.PUSHED[derivatives.FORWARD_DERIVATIVES, frame]
    single = lw.compile(formula, mech, nodes=sorted(nodes), dtype=np.float32)
    force = np.concatenate([given["forces"][n] for n in sorted(nodes)])
    few = single(*(a.astype("f4") for a in (q, v, x, force)))
    close(few["q"], ours.q, 1e-4)
    if path_dependent(mech):  # a rolling ball moves
        with pytest.raises(lw.ModelError, match="nonholonomic"):
            lw.linearize(mech, q, v, x, **given, passive=False)
        return
    model = lw.linearize(mech, q, v, x, **given, passive=False)
    assert np.array_equal(model.A[mech.nv :], np.hstack(ours[:2]))


def test_out():
    """An earlier result receives the next one, parts of one array or not; others are refused."""
    mech = flying()
    for q, v, x in (state(mech, 1), states(mech, 3)):
        for function in (lw.inverse_dynamics_derivatives, lw.linearize):
            expected = function(mech, q, v, x)
            early = function(mech, q, v, 0.0 * x)
            apart = tuple(np.empty_like(y) for y in early)
            for out in (early, apart):
                later = function(mech, q, v, x, out=out)
                assert all(y is z for y, z in zip(later, out, strict=True))
                assert all(np.array_equal(y, z) for y, z in zip(later, expected, strict=True))
        early = lw.linearize(mech, q, v, x, step=1e-3)
        later = lw.linearize(mech, q, v, x + 1.0, step=1e-3, out=early)
        assert later.A is early.A
        assert np.array_equal(later.A, lw.linearize(mech, q, v, x + 1.0, step=1e-3).A)
    with pytest.raises(LinkwiseError, match="a record of 3 arrays, q, v, vdot"):
        lw.inverse_dynamics_derivatives(mech, q, v, x, out=np.empty(3))
    with pytest.raises(LinkwiseError, match=r"A of out has shape \(2, 2\)"):
        lw.linearize(mech, q, v, x, out=(np.empty((2, 2)), np.empty((2, 2))))
    with pytest.raises(LinkwiseError, match="without external forces"):
        lw.linearize(mech, q, v, x, step=1e-3, forces={"tool": np.ones(6)})
    with pytest.raises(LinkwiseError, match=r"forces has shape|force on 'tool' has shape"):
        lw.linearize(mech, q, v, x, forces={"tool": np.ones(5)})


def test_batches_and_status():
    mech = tree("floating")
    q, v, x = states(mech, 5)
    every = lw.forward_dynamics_derivatives(mech, q, v, x)
    for i in range(5):
        one = lw.forward_dynamics_derivatives(mech, q[i], v[i], x[i])
        rounding = np.finfo(float).eps * np.linalg.cond(lw.mass_matrix(mech, q[i]))
        for name in ("q", "v", "tau"):
            close(getattr(every, name)[i], getattr(one, name), float(rounding))
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
