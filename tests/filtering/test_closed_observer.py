"""Pushes on mechanisms with loops, from momenta: what loops carry is left out."""

import ctypes
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise import filtering
from linkwise.spatial.array import Array
from tests.codegen.rungs import built
from tests.filtering import test_nonholonomic as nonholonomic
from tests.filtering.test_closed import beginning, linkage, swing

GAIN = 40.0


def free_of_loops(mech: lw.Mechanism, q: Array) -> Array:
    """P* = 1 − J* (J 𝓜⁻¹ J*)⁻¹ J 𝓜⁻¹, densely."""
    M = lw.mass_matrix(lw.dynamics.tree_of(mech), q)
    J = lw.loops.constraint_jacobian(mech, q)
    back = np.linalg.solve(M, J.T).T
    return np.eye(mech.nv) - J.T @ np.linalg.pinv(back @ J.T, rcond=1e-9) @ back


def followed(mech: lw.Mechanism, h: float) -> tuple[float, Array, Array]:
    """The largest error of r against the recursion that it should obey; the last r and its q."""
    q, v, tau = beginning(mech, 1)
    push = 0.6 * np.random.default_rng(3).standard_normal(mech.nv)
    run = lw.rollout(
        mech, q, v, tau=tau + push, duration=0.06, step=h / 4, record_every=4, integrator="implicit"
    )
    observer = filtering.momentum_observer(mech, gain=GAIN, step=h)
    seen, expected, worst = observer.start(run.q[0], run.v[0]), np.zeros(mech.nv), 0.0
    for q, v in zip(run.q[1:], run.v[1:], strict=True):
        seen = observer.tick(seen, q, v, tau)
        expected = free_of_loops(mech, q) @ (expected + GAIN * h * push) / (1.0 + GAIN * h)
        worst = max(worst, float(np.abs(seen.force - expected).max()))
    assert np.abs(push - free_of_loops(mech, q) @ push).max() > 0.1  # loops carry a part
    assert np.abs(expected).max() > 0.5
    return worst, seen.force, run.q[-1]


@pytest.mark.parametrize("mech", [linkage(), swing()], ids=lambda x: x.name)
def test_a_push_is_followed(mech: lw.Mechanism) -> None:
    errors = [followed(mech, h)[0] for h in (1e-3, 5e-4)]
    assert errors[1] < 0.02 and errors[1] < 0.6 * errors[0]  # of the order of the step
    _, force, q = followed(mech, 1e-3)
    assert np.allclose(free_of_loops(mech, q) @ force, force, atol=1e-8)


def test_batches_are_single_observers() -> None:
    mech, rng = swing(), np.random.default_rng(0)
    observer = filtering.momentum_observer(mech, gain=GAIN, step=1e-3)
    states = [beginning(mech, seed) for seed in range(3)]
    q, v, tau = (np.stack(x) for x in zip(*states, strict=True))
    off = v + 0.1 * rng.standard_normal(v.shape)  # velocities with noise break couplings
    many = observer.tick(observer.start(q, v), q, off, tau)
    for i in range(3):
        one = observer.tick(observer.start(q[i], v[i]), q[i], off[i], tau[i])
        assert np.allclose(one.force, many.force[i], rtol=1e-10, atol=1e-12)
        assert np.allclose(free_of_loops(mech, q[i]) @ one.force, one.force, atol=1e-8)


def test_the_observer_in_c(tmp_path: Path) -> None:
    mech, (q, v, tau) = linkage(), beginning(linkage(), 2)
    observer = filtering.momentum_observer(mech, gain=GAIN, step=1e-3)
    before = observer.start(q, v)
    names = {"q": q, "v": v, "tau": tau, "momentum": before.momentum, "gain": observer.gain}
    names |= {"step": np.array([1e-3]), "drift": before.drift}
    given = [np.ascontiguousarray(names[x], dtype=np.float64) for x in observer.kernel.arguments]
    expected = np.concatenate(list(observer.kernel(*given).values()))
    out, code = np.zeros(len(expected)), built(observer.export_c("observer"), tmp_path)
    pointers = [a.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for a in (*given, out)]
    assert code(*pointers) == 0
    assert np.abs(expected[3:6]).max() > 1e-3
    assert np.allclose(out, expected, rtol=1e-9, atol=1e-10)


def test_loops_take_one_gain() -> None:
    with pytest.raises(lw.ModelError, match="give one number for all"):
        filtering.momentum_observer(linkage(), gain=[10.0, 20.0, 30.0], step=1e-3)
    opened = filtering.momentum_observer(
        linkage(), gain=[10.0, 20.0, 30.0], step=1e-3, loops="open"
    )
    assert not opened.mech.loops


def rolled(mech: lw.Mechanism, q: Array, v: Array) -> tuple[Array, Array]:
    """The last r of an observer, and the push that it should show."""
    rng, h = np.random.default_rng(2), 1e-4
    push, tau = 2.0 * rng.standard_normal(mech.nv), rng.standard_normal(mech.nv)
    run = lw.rollout(mech, q, v, tau=tau + push, duration=0.03, step=h)
    observer = filtering.momentum_observer(mech, gain=GAIN, step=h)
    seen, expected = observer.start(run.q[0], run.v[0]), np.zeros(mech.nv)
    for q, v in zip(run.q[1:], run.v[1:], strict=True):
        seen = observer.tick(seen, q, v, tau)
        P = free_of_loops(mech, q) if mech.loops else np.eye(mech.nv)
        expected = P @ (expected + GAIN * h * push) / (1.0 + GAIN * h)
    return seen.force, expected


@pytest.mark.parametrize("kind", nonholonomic.KINDS)
def test_pushes_on_hinges_that_are_no_sums_of_velocities(kind: str) -> None:
    """With armature, dampers and springs."""
    q, v, _ = nonholonomic.beginning(kind)
    force, expected = rolled(nonholonomic.mechanism(kind), q, v)
    assert np.allclose(force, expected, atol=1e-4) and np.abs(expected).max() > 1.0


def test_a_push_on_a_ball_that_rolls_in_a_loop() -> None:
    mech = nonholonomic.pushed_ball()
    q, v, _ = nonholonomic.closed_beginning(mech)
    force, expected = rolled(mech, q, v)
    assert np.allclose(force, expected, atol=0.01) and np.abs(expected).max() > 0.5
