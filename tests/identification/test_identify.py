"""Known parameters come back from noisy forces, within the stated confidence."""

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import UnknownNameError
from linkwise.identification import model, pseudo_inertia
from linkwise.identification.rows import base_of
from linkwise.spatial.array import Array

KINDS = ("inertia", "armature", "damping", "friction")


@cache
def arm() -> lw.Mechanism:
    """The PUMA 560 with friction and dampers in its joints."""
    mech = lw.models.puma560()
    for i, body in enumerate(mech.bodies):
        mech = mech.with_drive(body.hinge_name, damping=0.5 + 0.1 * i, friction=1.0 + 0.2 * i)
    return mech


@cache
def motion() -> lw.identification.SmoothMotion:
    return lw.identification.exciting_motion(
        arm(), duration=10.0, step=0.02, parameters=KINDS, tries=30, rounds=0
    )


def forces(mech: lw.Mechanism, q: Array, v: Array, vdot: Array) -> Array:
    """By another way than the regressor: inverse dynamics with friction."""
    clean = lw.inverse_dynamics(mech, q, v, vdot)
    return clean + mech.damping * v + mech.friction * np.sign(v)


@cache
def guess() -> lw.Mechanism:
    """What one knows before: inertias that are wrong by up to a third."""
    rng, mech = np.random.default_rng(5), arm()
    values = model.nominal(mech, KINDS) * 1.0
    for k in range(mech.n_bodies):
        values[10 * k : 10 * k + 10] *= rng.uniform(0.7, 1.3)
    values[10 * mech.n_bodies :] *= 0.5
    return model.with_numbers(mech, KINDS, values)


def test_exact_forces_give_exact_parameters() -> None:
    m = motion()
    fit = lw.identify(guess(), m.q, m.v, m.vdot, forces(arm(), m.q, m.v, m.vdot), parameters=KINDS)
    truth = model.nominal(arm(), KINDS)
    base = base_of(arm(), KINDS, list(range(6)))
    assert np.abs(truth[base.columns]).max() > 0.1
    assert np.allclose(fit.estimate, base.matrix @ truth, rtol=1e-6, atol=1e-8)
    assert np.allclose(fit.consistent, fit.estimate, rtol=1e-4, atol=1e-5)
    assert fit.condition < 100.0
    # and the mechanism of the result moves as the true one, in states it has not seen
    rng = np.random.default_rng(1)
    q, v, tau = arm().random(rng), rng.standard_normal(6), rng.standard_normal(6)
    ours, theirs = (lw.forward_dynamics(x, q, v, tau) for x in (fit.mech, arm()))
    assert np.allclose(ours, theirs, rtol=1e-3, atol=1e-3)


@pytest.mark.prove
def test_confidence_holds_on_twenty_seeds() -> None:
    """Of all true base parameters about 95 % are inside their 95 % intervals."""
    m, truth = motion(), model.nominal(arm(), KINDS)
    clean, start = forces(arm(), m.q, m.v, m.vdot), guess()
    noise = 0.02 * np.std(clean, axis=0)
    base = base_of(arm(), KINDS, list(range(6)))
    truth_b, inside, worst = base.matrix @ truth, 0, 0.0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        tau = clean + noise * rng.standard_normal(clean.shape)
        fit = lw.identify(start, m.q, m.v, m.vdot, tau, parameters=KINDS)
        low, high = fit.interval().T
        inside += int(((low <= truth_b) & (truth_b <= high)).sum())
        worst = max(worst, float(np.abs(fit.noise / noise - 1.0).max()))
        for k in range(6):
            ten = model.nominal(fit.mech, ("inertia",))[10 * k : 10 * k + 10]
            assert pseudo_inertia.is_consistent(ten)
        assert fit.distance < 1.0
        assert (fit.mech.friction >= 0.0).all() and (fit.mech.armature >= 0.0).all()
    total = 20 * len(truth_b)
    assert 0.92 <= inside / total <= 0.98
    assert worst < 0.2


@pytest.mark.prove
def test_plain_regression_is_the_same() -> None:
    """Against NumPy's least squares on Pinocchio-like columns: differences of inverse dynamics."""
    m, mech = motion(), arm()
    rng = np.random.default_rng(3)
    tau = forces(mech, m.q, m.v, m.vdot)
    tau = tau + 0.1 * rng.standard_normal(tau.shape)
    fit = lw.identify(mech, m.q, m.v, m.vdot, tau, parameters=("inertia",), weighted=False)
    base = base_of(mech, ("inertia",), list(range(6)))
    columns, zero = list[Array](), model.with_numbers(mech, ("inertia",), np.zeros(60))
    at_zero = lw.inverse_dynamics(zero, m.q, m.v, m.vdot)
    for c in base.columns:
        unit = np.zeros(60)
        unit[c] = 1.0
        one = model.with_numbers(mech, ("inertia",), unit)
        columns.append((lw.inverse_dynamics(one, m.q, m.v, m.vdot) - at_zero).ravel())
    passive = mech.damping * m.v + mech.friction * np.sign(m.v)
    moved = np.abs(m.v) > 1e-3
    rows = moved.ravel()
    y = (tau - passive - at_zero)[moved]
    b = np.linalg.lstsq(np.stack(columns, axis=1)[rows], y, rcond=None)[0]
    assert fit.names == base.names
    assert np.allclose(fit.estimate, b, rtol=1e-7, atol=1e-8)


@pytest.mark.prove
def test_outliers_and_gaps() -> None:
    m = motion()
    tau = forces(arm(), m.q, m.v, m.vdot)
    rng = np.random.default_rng(0)
    tau = tau + 0.05 * rng.standard_normal(tau.shape)
    clean = lw.identify(guess(), m.q, m.v, m.vdot, tau, parameters=KINDS)
    bad = tau.copy()
    bad[rng.choice(len(bad), 25, replace=False)] += 200.0
    bad[7, 2] = np.nan
    plain = lw.identify(guess(), m.q, m.v, m.vdot, bad, parameters=KINDS)
    robust = lw.identify(guess(), m.q, m.v, m.vdot, bad, parameters=KINDS, robust=True)
    assert plain.gaps == 1 and plain.samples == len(bad) - 1

    def off(fit: lw.identification.Identification) -> float:
        return float(np.linalg.norm((fit.estimate - clean.estimate) / clean.deviation))

    assert robust.outliers >= 100
    assert np.allclose(robust.noise, 0.05, rtol=0.2) and (plain.noise > 10.0 * robust.noise).all()
    assert off(robust) < 0.2 * off(plain)


@pytest.mark.prove
def test_positions_alone_are_enough() -> None:
    """Measured positions and forces with noise: smoothed, differentiated, identified."""
    m, mech = motion(), arm()
    rng = np.random.default_rng(4)
    q = m.q + 1e-5 * rng.standard_normal(m.q.shape)
    tau = forces(mech, m.q, m.v, m.vdot)
    tau = tau + 0.05 * rng.standard_normal(tau.shape)
    made = lw.identification.smoothed(mech, m.t, q, tau, bandwidth=5.0)
    assert made.tau is not None
    assert np.abs(made.v - m.v[made.kept]).max() < 0.02 * np.abs(m.v).max()
    assert np.abs(made.vdot - m.vdot[made.kept]).max() < 0.05 * np.abs(m.vdot).max()
    fit = lw.identify(guess(), made.q, made.v, made.vdot, made.tau, parameters=KINDS)
    error = fit.validate(m.q, m.v, m.vdot, forces(mech, m.q, m.v, m.vdot))
    before = lw.identify(
        guess(), made.q, made.v, made.vdot, made.tau, parameters=("offset",)
    ).validate(m.q, m.v, m.vdot, forces(mech, m.q, m.v, m.vdot))
    assert max(error.values()) < 0.06
    assert min(before[n] / error[n] for n in error) > 2.0


def test_free_coordinates_are_inertias() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(10)
    ten, slopes = pseudo_inertia.parameters(x)
    assert pseudo_inertia.is_consistent(ten) and np.allclose(pseudo_inertia.coordinates(ten), x)
    h = 1e-6
    for k in range(10):
        plus, minus = (pseudo_inertia.parameters(x + s * h * np.eye(10)[k])[0] for s in (1, -1))
        assert np.allclose((plus - minus) / (2 * h), slopes[:, k], rtol=1e-7, atol=1e-7)
    box = lw.SpatialInertia.solid_box(2.0, (0.4, 0.3, 0.1))
    J = pseudo_inertia.pseudo_inertia(lw.codegen.scalar.parameters.numbers(box))
    assert np.allclose(J, 2.0 * np.diag([0.16 / 12, 0.09 / 12, 0.01 / 12, 1.0]))


def test_bad_questions() -> None:
    m, mech = motion(), arm()
    tau = forces(mech, m.q, m.v, m.vdot)
    with pytest.raises(UnknownNameError, match="mass"):
        lw.identify(mech, m.q, m.v, m.vdot, tau, parameters=["mass"])
    with pytest.raises(UnknownNameError, match=r"'spring'.*known: 'inertia'.*'stiffness'"):
        lw.identify(mech, m.q, m.v, m.vdot, tau, parameters=["spring"])
    with pytest.raises(lw.ShapeError, match=r"tau has shape \(6,\)"):
        lw.identify(mech, m.q, m.v, m.vdot, tau[0])
    with pytest.raises(lw.ModelError, match="does not show all base parameters"):
        still, bare = np.zeros_like(m.v), mech
        for body in mech.bodies:
            bare = bare.with_drive(body.hinge_name, friction=0.0)
        lw.identify(bare, m.q, still, still, tau, parameters=["inertia"])
    with pytest.raises(lw.ModelError, match="not evenly spaced"):
        lw.identification.smoothed(mech, m.t**1.1, m.q, bandwidth=1.0)
    with pytest.raises(lw.ModelError, match="at most 10 Hz"):
        lw.identification.smoothed(mech, m.t, m.q, bandwidth=20.0)
