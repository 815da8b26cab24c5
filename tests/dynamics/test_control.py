"""Control laws: against dense matrices, and as closed loops."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import A_V, B_V, H, M, bias, phi
from linkwise.algebra.dense import Dense
from linkwise.errors import ModelError, ShapeError
from tests.cases import close, state, states, tree
from tests.dense_kinematics import mass_matrix

CORIOLIS = H @ phi @ (M @ phi.T @ A_V + B_V @ phi.T @ H.T)
ARM = lw.models.puma560()


def desired(t, phase):
    """A motion of an arm and its derivatives."""
    return 0.5 * np.sin(t + phase), 0.5 * np.cos(t + phase), -0.5 * np.sin(t + phase)


def closed_loop(mech, law, start, times, motion):
    """States (times, 2 n) of the arm under a law τ(q, v, q_d, v_d, v̇_d)."""
    solve_ivp, n = pytest.importorskip("scipy.integrate").solve_ivp, mech.nv

    def rate(t, y):
        tau = law(y[:n], y[n:], *motion(t))
        return np.concatenate([y[n:], lw.forward_dynamics(mech, y[:n], y[n:], tau)])

    result = solve_ivp(
        rate, (0.0, times[-1]), start, method="DOP853", rtol=1e-10, atol=1e-11, t_eval=times
    )
    assert result.success
    return result.y.T


def test_computed_torque_is_inverse_dynamics_of_what_is_wanted():
    mech = tree("every hinge, armature")
    q, v, x = state(mech)
    q_d, v_d, _ = state(mech, 1)
    kp, kv = np.linspace(1.0, 2.0, mech.nv), 3.0
    tau = lw.computed_torque(mech, q, v, q_d, v_d, x, kp=kp, kv=kv)
    acceleration = x + kv * (v_d - v) + kp * mech.difference(q, q_d)
    close(tau, mass_matrix(mech, q) @ acceleration + Dense(mech, q, v)(bias), 1e-11)


@pytest.mark.parametrize("at", ["actual", "desired"])
@pytest.mark.parametrize("first", ["actual", "desired"])
@pytest.mark.parametrize("second", ["actual", "desired"])
def test_wen_bayard_by_dense_matrices(first, second, at):
    """Both velocities, each where it belongs; on a tree with ball joints it matters which."""
    mech = tree("every hinge, armature")
    q, v, x = state(mech)
    q_d, v_d, _ = state(mech, 1)
    kp, kv = 2.0, np.diag(np.linspace(1.0, 2.0, mech.nv))
    where = q if at == "actual" else q_d
    one, two = (v if which == "actual" else v_d for which in (first, second))
    expected = (
        mass_matrix(mech, where) @ x
        + Dense(mech, where, one)(CORIOLIS) @ two
        + Dense(mech, where)(bias)
        + kp * mech.difference(q, q_d)
        + kv @ (v_d - v)
    )
    tau = lw.papers.wen_bayard(
        mech, q, v, q_d, v_d, x, kp=kp, kv=kv, coriolis=(first, second), at=at
    )
    close(tau, expected, 1e-11)


def test_on_the_motion_itself_all_laws_ask_for_the_same():
    mech = tree("every hinge, armature")
    q, v, vdot = state(mech, 2)
    needed = lw.inverse_dynamics(mech, q, v, vdot)
    gains = {"kp": 100.0, "kv": 20.0}
    close(lw.computed_torque(mech, q, v, q, v, vdot, **gains), needed, 1e-11)
    for first in ("actual", "desired"):
        law = lw.papers.wen_bayard(mech, q, v, q, v, vdot, **gains, coriolis=(first, "desired"))
        close(law, needed, 1e-11)


def test_computed_torque_decouples():
    """ë + K_v ė + K_p e = 0 for each joint by itself: e(t) is that of a critical oscillator."""
    rate, phase = np.linspace(3.0, 6.0, 6), np.arange(6.0)
    gains = {"kp": rate**2, "kv": 2.0 * rate}
    q_d, v_d, _ = desired(0.0, phase)
    e0, edot0 = np.linspace(-0.3, 0.4, 6), np.linspace(0.5, -0.5, 6)
    times = np.linspace(0.0, 1.5, 16)
    result = closed_loop(
        ARM,
        lambda q, v, *motion: lw.computed_torque(ARM, q, v, *motion, **gains),
        np.concatenate([q_d - e0, v_d - edot0]),
        times,
        lambda t: desired(t, phase),
    )
    t = times[:, None]
    e = (e0 + (edot0 + rate * e0) * t) * np.exp(-rate * t)
    positions = np.array([desired(t, phase)[0] for t in times])
    close(positions - result[:, :6], e, 1e-8, scale=1.0)


def test_pd_gravity_holds_still_and_goes_where_it_should():
    q_d = np.array([0.4, -0.6, 0.9, 0.3, 0.5, -0.2])
    gains = {"kp": 200.0, "kv": 60.0}
    held = lw.pd_gravity(ARM, q_d, np.zeros(6), q_d, **gains)
    close(lw.forward_dynamics(ARM, q_d, np.zeros(6), held), np.zeros(6), 1e-12, scale=10.0)
    assert np.abs(held).max() > 10.0  # it is heavy
    times = np.linspace(0.0, 8.0, 5)
    result = closed_loop(
        ARM,
        lambda q, v, *_: lw.pd_gravity(ARM, q, v, q_d, **gains),
        np.concatenate([q_d + 0.3, np.zeros(6)]),
        times,
        lambda t: (),
    )
    close(result[-1], np.concatenate([q_d, np.zeros(6)]), 1e-5, scale=1.0)
    energies = lw.papers.tracking_energy(
        ARM, result[:, :6], result[:, 6:], q_d, np.zeros(6), kp=200.0
    )
    assert (np.diff(energies) < 0.0).all()


@pytest.mark.parametrize("name", ["every hinge, armature", "pins"])
def test_the_energy_of_the_error_falls_as_it_should(name):
    """d/dt (½ ė* 𝓜 ė + ½ e* K_p e) = - ė* K_v ė, whatever the state: on quaternions too."""
    mech = tree(name)
    kv = np.linspace(1.0, 2.0, mech.nv)
    # A quarter of a turn of each other at most: quaternions have a difference then.
    for seed in range(4):
        q, v, _ = state(mech, seed)
        _, v_d, vdot_d = state(mech, 10 + seed)
        q_d = mech.integrate(q, 0.3 * v_d, 1.0)
        tau = lw.papers.wen_bayard(mech, q, v, q_d, v_d, vdot_d, kp=5.0, kv=kv)
        vdot = lw.forward_dynamics(mech, q, v, tau)

        def energy(s, q=q, v=v, vdot=vdot, q_d=q_d, v_d=v_d, vdot_d=vdot_d):
            """Along the two motions, to second order in time."""
            moved = mech.integrate(q, v + 0.5 * s * vdot, s), v + s * vdot
            aim = mech.integrate(q_d, v_d + 0.5 * s * vdot_d, s), v_d + s * vdot_d
            return lw.papers.tracking_energy(mech, *moved, *aim, kp=5.0)

        def rate(h):
            return (energy(h) - energy(-h)) / (2.0 * h)

        result = (4.0 * rate(5e-5) - rate(1e-4)) / 3.0
        slower = v_d - v
        size = float(slower @ mass_matrix(mech, q) @ slower)
        close(result, -float(slower @ (kv * slower)), 1e-6, scale=max(size, 1.0) * 10.0)


@pytest.mark.parametrize("seed", range(3))
def test_wen_bayard_brings_an_arm_to_its_motion(seed):
    rng, phase = np.random.default_rng(seed), np.arange(6.0)
    strength = np.array([200.0, 300.0, 100.0, 20.0, 20.0, 20.0])
    gains = {"kp": strength, "kv": 0.3 * strength}
    q_d, v_d, _ = desired(0.0, phase)
    start = np.concatenate([q_d, v_d]) + rng.uniform(-0.5, 0.5, 12)
    times = np.linspace(0.0, 3.0, 13)
    result = closed_loop(
        ARM,
        lambda q, v, *motion: lw.papers.wen_bayard(ARM, q, v, *motion, **gains),
        start,
        times,
        lambda t: desired(t, phase),
    )
    motions = [np.array(part) for part in zip(*(desired(t, phase) for t in times), strict=True)]
    energies = lw.papers.tracking_energy(
        ARM, result[:, :6], result[:, 6:], *motions[:2], kp=strength
    )
    assert (np.diff(energies) < 0.0).all() and energies[-1] < 1e-3 * energies[0]


def test_batches_are_their_rows():
    mech = tree("every hinge, armature")
    (q, v, x), gains = states(mech, 4), {"kp": 2.0, "kv": 1.0}
    q_d, v_d = q[::-1], v[::-1]
    laws = (
        lambda *a: lw.pd_gravity(mech, *a[:4], **gains),
        lambda *a: lw.computed_torque(mech, *a, **gains),
        lambda *a: lw.papers.wen_bayard(mech, *a, **gains),
    )
    for law in laws:
        together = law(q, v, q_d, v_d, x)
        for i in range(4):
            close(together[i], law(q[i], v[i], q_d[i], v_d[i], x[i]), 1e-12)
        # One target for all.
        close(law(q, v, q_d[0], v_d[0], x[0])[2], law(q[2], v[2], q_d[0], v_d[0], x[0]), 1e-12)


def test_what_is_refused():
    zero, gains = np.zeros(6), {"kp": 1.0, "kv": 1.0}
    with pytest.raises(ShapeError, match=r"kp has shape \(5,\).*a number, \(6,\) or \(6, 6\)"):
        lw.computed_torque(ARM, zero, zero, zero, zero, zero, kp=np.ones(5), kv=1.0)
    with pytest.raises(ModelError, match="kv is not finite"):
        lw.pd_gravity(ARM, zero, zero, zero, kp=1.0, kv=np.nan)
    with pytest.raises(ShapeError, match="vdot_d has shape"):
        lw.computed_torque(ARM, zero, zero, zero, zero, np.zeros(5), **gains)
    with pytest.raises(ModelError, match="must be 'actual' or 'desired'"):
        lw.papers.wen_bayard(ARM, zero, zero, zero, zero, zero, **gains, at="now")
    with pytest.raises(ModelError, match="two of them"):
        lw.papers.wen_bayard(ARM, zero, zero, zero, zero, zero, **gains, coriolis=("actual",))
    with pytest.raises(ModelError, match="q is not finite"):
        lw.papers.wen_bayard(ARM, zero + np.nan, zero, zero, zero, zero, **gains)
    with pytest.raises(ShapeError, match="v has 2 rows; the batch has 3"):
        lw.computed_torque(ARM, np.zeros((3, 6)), np.zeros((2, 6)), zero, zero, zero, **gains)
    ball = tree("every hinge, armature")
    q, v, _ = state(ball)
    with pytest.raises(ModelError, match="not of unit length"):
        lw.pd_gravity(ball, 1.1 * q, v, q, **gains)
