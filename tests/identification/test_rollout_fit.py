"""Through rollouts: friction, loops, and what the length of steps does to estimates."""

import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import TroubleWarning
from linkwise.identification import identify_rollout, model
from linkwise.identification.rollout_fit import RolloutFit, _base
from linkwise.identification.rollout_windows import Windows
from linkwise.identification.rows import base_of
from linkwise.spatial.array import Array
from tests.identification.test_measured import arm

SAMPLE = 0.01


def rubbing(scale: float, damping: float, *friction: float) -> lw.Mechanism:
    mech = arm(scale, damping)
    for name, value in zip(("upper", "lower"), friction, strict=True):
        mech = mech.with_drive(name, friction=value)
    return mech


def recorded(mech: lw.Mechanism, q: Array, tau: Array, finer: int) -> Array:
    """Positions of a motion in much finer implicit steps."""
    run = lw.rollout(
        mech, q, np.zeros(mech.nv), tau=np.repeat(tau[:-1], finer, axis=0),
        duration=SAMPLE * (len(tau) - 1), step=SAMPLE / finer, record_every=finer,
        integrator="implicit", contacts=(),
    )  # fmt: skip
    return run.q


@pytest.mark.prove
def test_friction_through_rollouts() -> None:
    """Coulomb friction that sticks and slips, from positions with noise alone."""
    kinds, truth = ("inertia", "damping", "friction"), rubbing(1.0, 0.4, 0.6, 0.3)
    t = SAMPLE * np.arange(301)
    tau = np.stack([10.0 + 8.0 * np.sin(3.0 * t), 3.0 * np.sin(5.0 * t)], axis=-1)
    clean = recorded(truth, np.array([-1.0, 0.3]), tau, 400)
    right = base_of(truth, kinds, [0, 1]).matrix @ model.nominal(truth, kinds)
    fits = list[RolloutFit]()
    for seed in range(3):
        q = clean + 1e-3 * np.random.default_rng(seed).standard_normal(clean.shape)
        guess = rubbing(1.25, 0.2, 0.2, 0.2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TroubleWarning)
            fit = identify_rollout(guess, t, q, tau, parameters=kinds, window=20)
        if not fit.converged:
            continue
        fits.append(fit)
        assert fits[-1].step_error <= 0.2
        assert np.isclose(fits[-1].noise, 1e-3, rtol=0.15)
        assert np.isclose(fits[-1].parameters["f(upper)"], 0.6, atol=0.05)
        assert np.isclose(fits[-1].parameters["f(lower)"], 0.3, atol=0.02)
    assert len(fits) >= 2
    off = np.array([(fit.estimate - right) / fit.deviation for fit in fits])
    assert np.mean(off**2) < 1.8 and np.abs(off).max() < 4.5


@pytest.mark.prove
def test_a_linkage_through_rollouts() -> None:
    """Loops held by implicit steps; the motor turns the crank."""
    kinds, mech = ("inertia", "damping"), lw.models.four_bar()
    mech = mech.with_drive("crank_pin", damping=0.3)
    t = SAMPLE * np.arange(241)
    tau = np.zeros((len(t), 3))
    tau[:, 0] = 1.5 * np.sin(4.0 * t) + 1.0 * np.sin(9.0 * t) + 0.8
    clean = recorded(mech, np.zeros(3), tau, 200)
    q = clean + 1e-3 * np.random.default_rng(0).standard_normal(clean.shape)
    guess = model.with_numbers(mech, kinds, 1.2 * model.nominal(mech, kinds))
    fit = identify_rollout(guess, t, q, tau, parameters=kinds, window=30)
    problem = Windows.of(mech, kinds, t, q, tau, 30, "implicit")
    right = _base(mech, kinds, problem).matrix @ model.nominal(mech, kinds)
    assert fit.converged and fit.mech.loops == mech.loops
    assert np.isclose(fit.noise, 1e-3, rtol=0.15)
    assert np.abs((fit.estimate - right) / fit.deviation).max() < 4.0
    assert fit.before > 2.0 * fit.noise


def test_long_steps_are_halved_or_reported() -> None:
    truth, t = arm(), 0.05 * np.arange(61)
    tau = np.stack([10.0 + 6.0 * np.sin(3.0 * t), 2.0 * np.sin(5.0 * t)], axis=-1)
    run = lw.rollout(
        truth, [-1.0, 0.3], [0.0, 0.0], tau=np.repeat(tau[:-1], 50, axis=0),
        duration=3.0, step=1e-3, record_every=50,
    )  # fmt: skip
    q = run.q + 1e-4 * np.random.default_rng(0).standard_normal(run.q.shape)
    fit = identify_rollout(truth, t, q, tau, parameters=["damping"], window=10)
    assert fit.substeps > 1 and fit.step_error <= 0.2
    off = [
        (fit.parameters[f"d({x})"] - 0.4) / s
        for x, s in zip(("upper", "lower"), fit.deviation, strict=True)
    ]
    assert np.abs(off).max() < 4.0
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        coarse = identify_rollout(
            truth,
            t,
            run.q + 1e-9 * (q - run.q),
            tau,
            parameters=["damping"],
            window=10,
            integrator="euler",
        )
    assert coarse.substeps == 64 and coarse.step_error > 0.2
    assert any(issubclass(x.category, TroubleWarning) for x in heard)


def test_steps_have_what_acts() -> None:
    t = SAMPLE * np.arange(20)
    with pytest.raises(
        lw.ModelError, match="loops or couplings, which do not act in steps of 'rk4'"
    ):
        mech = lw.models.four_bar()
        identify_rollout(mech, t, np.zeros((20, 3)), np.zeros((20, 3)), integrator="rk4", window=5)


def rods(*ends: tuple[float, float, float]) -> lw.Mechanism:
    """Thin rods about axes of different directions: inertias on the border of the possible."""
    build, before, at = lw.Builder("rods", gravity=(0.0, 0.0, -9.81)), "world", (0.0, 0.0, 0.0)
    for i, end in enumerate(ends):
        d, mass = np.array(end), 1.3 - 0.3 * i
        about = mass / 12.0 * (d @ d * np.eye(3) - np.outer(d, d))
        name, axis = f"rod_{i}", ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0))[i]
        build.body(
            name, before, lw.hinges.Pin(axis), inboard=at, drive=lw.Drive(damping=0.3),
            inertia=lw.SpatialInertia.from_com(mass, 0.5 * d, about),
        )  # fmt: skip
        before, at = name, end
    return build.build()


@pytest.mark.parametrize("noise", [1e-3, 1e-5])
@pytest.mark.parametrize("factor", [0.7, 1.0, 1.37])
@pytest.mark.parametrize("kind", ["plane", "space"])
def test_thin_rods(kind: str, factor: float, noise: float) -> None:
    """Logarithms of what bodies without thickness lack are no obstacle, at the truth or far off."""
    if kind == "plane":
        truth = lw.models.pendulum(2)
        truth = truth.with_drive("pin_1", damping=0.3).with_drive("pin_2", damping=0.3)
    else:
        truth = rods((0.37, 0.21, -0.3), (0.3, -0.1, 0.25))
    kinds, t = ("inertia", "damping"), SAMPLE * np.arange(201)
    pushes = [(6.0 + 3.0 * np.sin(3.0 * t + i)) / (i + 1) * np.sin((2 + i) * t) for i in range(2)]
    tau = np.stack(pushes, axis=-1)
    run = lw.rollout(truth, [0.3, 0.3], [0.0, 0.0], tau=tau[:-1], duration=2.0, step=SAMPLE)
    q = run.q + noise * np.random.default_rng(0).standard_normal(run.q.shape)
    guess = model.with_numbers(truth, kinds, factor * model.nominal(truth, kinds))
    with warnings.catch_warnings():
        warnings.simplefilter("error", TroubleWarning)
        fit = identify_rollout(guess, t, q, tau, parameters=kinds, window=20)
    right = base_of(truth, kinds, [0, 1]).matrix @ model.nominal(truth, kinds)
    assert fit.converged and np.isclose(fit.noise, noise, rtol=0.1)
    assert np.abs((fit.estimate - right) / fit.deviation).max() < 3.5
