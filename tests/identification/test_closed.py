"""Mechanisms with loops and couplings: known parameters come back, within the stated confidence."""

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise.dynamics.regressor import BaseParameters, independent
from linkwise.identification import closed, model, rows
from linkwise.identification.estimate import Identification
from linkwise.identification.rows import Rows, base_and_equations
from linkwise.spatial.array import Array

Motion = tuple[Array, Array, Array]


def moved(mech: lw.Mechanism, q: Array, drive: Array, speed: Array, rate: Array) -> Motion:
    """States (samples, ...) whose first velocities follow the given ones, by the textbook."""
    free = drive.shape[1]
    states = list[tuple[Array, Array, Array]]()
    for here, there, faster in zip(drive, speed, rate, strict=True):
        q = q.copy()
        q[:free] = here
        for _ in range(30):
            J = lw.loops.constraint_jacobian(mech, q)[:, free:]
            q[free:] -= np.linalg.pinv(J) @ lw.loops.constraint_error(mech, q)
        X = lw.loops.independent_coordinates(mech, q, prefer=mech.velocity_names[:free])
        v = X.velocity(there)
        states.append((q, v, X.acceleration(v, faster)))
    return tuple(np.stack(x) for x in zip(*states, strict=True))  # pyright: ignore


def waves(t: Array, *frequencies: float) -> Motion:
    """Angles, speeds and accelerations (samples, 1)."""
    parts = [(np.sin(w * t), w * np.cos(w * t), -w * w * np.sin(w * t)) for w in frequencies]
    out = [sum(x)[:, None] / len(frequencies) for x in zip(*parts, strict=True)]  # pyright: ignore
    return out[0], out[1], out[2]


def reduced(mech: lw.Mechanism, motion: Motion, first: int) -> Array:
    """Joint forces with motors at the first velocities alone: X* of those of the tree."""
    q, v, vdot = motion
    tree = lw.inverse_dynamics(mech, q, v, vdot, loops="open")
    tree += mech.damping * v + mech.friction * np.sign(v)
    tau = np.zeros_like(v)
    for k, state in enumerate(q):
        X = lw.loops.independent_coordinates(mech, state, prefer=mech.velocity_names[:first]).map
        tau[k, :first] = X.T @ tree[k]
    return tau


@cache
def linkage() -> tuple[lw.Mechanism, Motion, Array]:
    """A four-bar linkage whose crank is driven."""
    mech = lw.models.four_bar()
    mech = mech.with_drive(mech.bodies[0].hinge_name, damping=0.02, friction=0.05)
    t = np.linspace(0.0, 10.0, 300)
    motion = moved(mech, np.zeros(mech.nq), *(2.5 * x for x in waves(t, 1.3, 2.9, 5.1)))
    return mech, motion, reduced(mech, motion, 1)


def scaled(mech: lw.Mechanism, kinds: tuple[str, ...], factor: float) -> lw.Mechanism:
    return model.with_numbers(mech, kinds, factor * model.nominal(mech, kinds))


def true_base(
    mech: lw.Mechanism, kinds: tuple[str, ...], motion: Motion, driven: list[int]
) -> tuple[tuple[str, ...], Array]:
    rows = Rows.of(mech, motion, list(range(mech.nv)), driven)
    base = base_and_equations(kinds, rows)[0]
    return base.names, base.matrix @ model.nominal(mech, kinds)


def test_a_linkage_from_the_force_of_its_crank() -> None:
    mech, motion, tau = linkage()
    kinds = ("inertia", "damping")
    fit = lw.identify(scaled(mech, kinds, 1.4), *motion, tau, parameters=kinds)
    names, truth = true_base(mech, kinds, motion, [0])
    assert fit.joints == (mech.velocity_names[0],) and fit.names == names
    assert np.allclose(fit.estimate, truth, atol=1e-8)
    assert np.abs(truth).max() > 0.1 and fit.mech.loops == mech.loops
    assert max(fit.validate(*motion, tau).values()) < 1e-6
    # forward dynamics of the result, loops held, are those of the truth
    q, v, vdot = (x[::37] for x in motion)
    lost = (0.02 * v + 0.05 * np.sign(v)) * [1.0, 0.0, 0.0]
    again = lw.forward_dynamics(fit.mech, q, v, tau[::37] - lost)
    assert np.allclose(again, vdot, rtol=1e-4, atol=1e-4 * np.abs(vdot).max())
    # what the tree needs is another thing: the loop carries the rest
    opened = lw.identify(mech, *motion, tau, parameters=kinds, loops="open")
    assert opened.noise.max() > 1e3 * fit.noise.max()


def test_a_mechanism_fits_exact_forces_of_all_kinds() -> None:
    """Friction and dampers that are zero do not end the search for a mechanism."""
    _, motion, tau = linkage()
    kinds = ("inertia", "damping", "friction")
    fit = lw.identify(lw.models.four_bar(), *motion, tau, parameters=kinds)
    assert fit.distance < 1.0
    drive = fit.mech.damping, fit.mech.friction
    assert np.allclose(drive, [[0.02, 0.0, 0.0], [0.05, 0.0, 0.0]], atol=1e-4)
    assert min(np.min(x) for x in drive) >= 0.0


def test_columns_are_differences_of_dense_projections() -> None:
    """Against numbers of X* τ, one parameter after the other, X by independent coordinates."""
    mech, motion, _ = linkage()
    q, v, vdot = (x[::60] for x in motion)
    rows = Rows.of(mech, (q, v, vdot), [0, 1, 2], [0])
    W, _ = rows.equations(("inertia",), (q, v, vdot), np.zeros_like(v))
    zero = reduced(scaled(mech, ("inertia",), 0.0), (q, v, vdot), 1)
    for c in range(W.shape[-1]):
        one = model.with_numbers(mech, ("inertia",), np.eye(W.shape[-1])[c])
        column = reduced(one, (q, v, vdot), 1) - zero
        assert np.allclose(W[:, 0, c], column[:, 0], atol=1e-10)


def inside(fits: list[Identification], truth: Array) -> tuple[float, float]:
    off = np.array([(fit.estimate - truth) / fit.deviation for fit in fits])
    return float(np.mean(np.abs(off) < 1.96)), float(np.mean(off**2))


@pytest.mark.prove
def test_confidence_of_a_linkage() -> None:
    mech, motion, tau = linkage()
    kinds = ("inertia", "friction")
    _, truth = true_base(mech, kinds, motion, [0])
    fits = list[Identification]()
    for seed in range(30):
        rng, noisy = np.random.default_rng(seed), tau.copy()
        noisy[:, 0] += 0.02 * np.std(tau[:, 0]) * rng.standard_normal(len(tau))
        noisy[:, 0] -= 0.02 * motion[1][:, 0]  # the damper is not identified, and not in the model
        fits.append(lw.identify(_undamped(mech), *motion, noisy, parameters=kinds))
    share, square = inside(fits, truth)
    assert 0.92 <= share <= 0.98 and 0.8 < square < 1.2


def _undamped(mech: lw.Mechanism) -> lw.Mechanism:
    return mech.with_drive(mech.bodies[0].hinge_name, damping=0.0)


@cache
def parallelogram() -> tuple[lw.Mechanism, Motion, Array]:
    """A planar five-bar linkage with motors at its two links on the ground, and at one elbow."""
    b = lw.Builder("five_bar", gravity=(0.0, -9.81, 0.0))
    rod = lw.SpatialInertia.solid_box(1.0, (0.5, 0.05, 0.05))
    rod = rod.moved(lw.Pose.translation((0.25, 0.0, 0.0)))
    pin = lw.hinges.Pin((0, 0, 1))
    b = b.body("left", "world", pin, inertia=rod)
    b = b.body("right", "world", pin, inertia=rod, inboard=(0.4, 0.0, 0.0))
    b = b.body("over_left", "left", pin, inertia=rod, inboard=(0.5, 0.0, 0.0))
    b = b.body("over_right", "right", pin, inertia=rod, inboard=(0.5, 0.0, 0.0))
    b = b.node("a", "over_left", (0.5, 0.0, 0.0)).node("b", "over_right", (0.5, 0.0, 0.0))
    mech = b.loop("meet", "a", "b", lw.hinges.Pin((0, 0, 1))).build()
    q = lw.loops.assemble(mech, np.array([2.0, 1.1, -0.9, 0.9])).q
    t = np.linspace(0.0, 10.0, 400)
    left, right = waves(t, 1.1, 3.1, 5.3), waves(t, 1.7, 2.3, 4.1)
    both = [0.5 * np.concatenate(x, axis=1) for x in zip(left, right, strict=True)]
    both[0] = both[0] + q[:2]
    motion = moved(mech, q, *both)
    return mech, motion, reduced(mech, motion, 2)


def test_more_motors_than_degrees_of_freedom() -> None:
    """Two rows, three noises: the weights of all three are found."""
    mech, motion, tau = parallelogram()
    rows = Rows.of(mech, motion, [0, 1, 2, 3], [0, 1, 2])
    assert rows.motions is not None and len(rows.places) == 2
    kinds = ("inertia",)
    names, truth = true_base(mech, kinds, motion, [0, 1, 2])
    X = np.stack(
        [
            lw.loops.independent_coordinates(mech, q, prefer=mech.velocity_names[:2]).map
            for q in motion[0]
        ]
    )
    elbow = 2.0 * np.sin(np.arange(len(tau)) / 7.0)
    shared = tau.copy()
    shared[:, 2] = elbow
    shared[:, :2] -= X[:, 2] * elbow[:, None]
    exact = lw.identify(scaled(mech, kinds, 0.7), *motion, shared, parameters=kinds)
    assert exact.names == names and np.allclose(exact.estimate, truth, atol=1e-7)
    sigma, fits = np.array([0.5, 0.1, 0.3, 0.0]), list[Identification]()
    for seed in range(25):
        noise = sigma * np.random.default_rng(seed).standard_normal(tau.shape)
        fits.append(lw.identify(mech, *motion, shared + noise, parameters=kinds))
    share, square = inside(fits, truth)
    assert 0.91 <= share <= 0.99 and 0.75 < square < 1.3
    # by hand: weights of the true noise
    columns, _ = rows.equations(kinds, motion, np.zeros_like(tau))
    base = base_and_equations(kinds, rows)[0]
    maps = rows.motions.maps
    V = np.swapaxes(maps, 1, 2) @ (sigma[:, None] ** 2 * maps)
    back = np.linalg.inv(np.linalg.cholesky(V))
    A = (back @ columns[..., base.columns]).reshape(-1, len(names))
    best = np.sqrt(np.diag(np.linalg.inv(A.T @ A)))
    assert np.allclose(np.mean([fit.deviation for fit in fits], axis=0), best, rtol=0.1)
    with pytest.raises(lw.ModelError, match="more driven hinges than degrees of freedom"):
        lw.identify(mech, *motion, shared, parameters=kinds, robust=True)


def test_unmeasured_hinges_of_a_linkage_stand_still() -> None:
    """Forces of the left motor are unknown: the motions in which it stands still are left."""
    mech, motion, tau = parallelogram()
    tau = np.where(np.arange(4) == 0, np.nan, tau)
    some = [name for name in mech.hinge_index if name != mech.bodies[0].hinge_name]
    fit = lw.identify(mech, *motion, tau, parameters=["inertia"], measured=some)
    assert fit.joints == (mech.velocity_names[1],)
    assert fit.error.max() < 1e-9 and max(fit.validate(*motion, tau).values()) < 1e-6
    with pytest.raises(lw.ModelError, match="cannot move while the others stand still"):
        one = [mech.bodies[1].hinge_name]
        lw.identify(mech, *motion, tau, parameters=["inertia"], measured=one)


def test_couplings_are_held() -> None:
    """A gear between two joints, with one motor."""
    b = lw.Builder("geared", gravity=(0.0, -9.81, 0.0))
    rod = lw.SpatialInertia.solid_box(1.0, (0.5, 0.05, 0.05))
    rod = rod.moved(lw.Pose.translation((0.2, 0.1, 0.0)))
    pin = lw.hinges.Pin((0, 0, 1))
    b = b.body("one", "world", pin, inertia=rod).body(
        "two", "one", pin, inertia=rod, inboard=(0.5, 0, 0)
    )
    mech = b.couple("gear", "two", {"one": -2.0}).build()
    t = np.linspace(0.0, 10.0, 300)
    x, v, vdot = (2.0 * np.concatenate([x, -2.0 * x], axis=1) for x in waves(t, 1.1, 2.7, 4.9))
    tau = reduced(mech, (x, v, vdot), 1)
    fit = lw.identify(scaled(mech, ("inertia",), 1.5), x, v, vdot, tau, parameters=["inertia"])
    names, truth = true_base(mech, ("inertia",), (x, v, vdot), [0])
    assert fit.names == names and np.allclose(fit.estimate, truth, atol=1e-8)
    assert fit.mech.couplings == mech.couplings


def test_noisy_states_move_to_allowed_ones() -> None:
    mech, motion, _ = linkage()
    rng = np.random.default_rng(0)
    noisy = tuple(
        x + s * rng.standard_normal(x.shape) for x, s in zip(motion, (1e-3, 1e-2, 0.1), strict=True)
    )
    q, v, vdot = closed.obeying(mech, *noisy)
    assert np.abs(lw.loops.constraint_error(mech, q)).max() < 1e-10
    J, gamma = lw.loops.constraint_jacobian(mech, q), lw.loops.constraint_bias(mech, q, v)
    assert np.abs(np.einsum("sij,sj->si", J, v)).max() < 1e-10
    assert np.abs(np.einsum("sij,sj->si", J, vdot) + gamma).max() < 1e-8
    for exact, given, near in zip(motion, noisy, (q, v, vdot), strict=True):
        assert np.mean((near - exact) ** 2) < 0.7 * np.mean((given - exact) ** 2)
    same = closed.obeying(mech, *motion)
    assert all(np.allclose(x, y, atol=1e-9) for x, y in zip(same, motion, strict=True))
    with pytest.raises(lw.ClosureError, match="of the measured velocities"):
        closed.obeying(mech, motion[0], motion[1] * [1.0, -1.0, 1.0], motion[2])


def test_positions_of_a_linkage_are_enough() -> None:
    mech, motion, tau = linkage()
    t = np.linspace(0.0, 10.0, 300)
    rng = np.random.default_rng(1)
    q = motion[0] + 1e-6 * rng.standard_normal(motion[0].shape)
    made = lw.identification.smoothed(mech, t, q, tau, bandwidth=5.9)
    fit = lw.identify(
        mech, made.q, made.v, made.vdot, made.tau, parameters=["inertia", "damping", "friction"]
    )
    assert fit.error.max() < 0.05
    parts = lw.identification.cross_validate(
        mech, *motion, tau, folds=2, parameters=["inertia", "damping"]
    )
    assert parts.error.max() < 0.2


def test_parts_of_a_recording_share_their_base_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    """The choice among columns that depend on each other differs; the numbers are the same."""
    mech, motion, tau = linkage()
    kinds = ("inertia", "damping", "friction")
    guess = scaled(mech, kinds, 1.3)
    names, truth = true_base(mech, kinds, motion, [0])
    first, calls = lw.identify(guess, *motion, tau, parameters=kinds), list[int]()

    def chosen(W: Array, columns: list[str], small: float) -> BaseParameters:
        calls.append(len(calls))
        if len(calls) % 2:
            return independent(W, columns, small)
        base = independent(W[:, ::-1], columns[::-1], small)  # the last of each
        return BaseParameters(base.matrix[:, ::-1], W.shape[1] - 1 - base.columns, base.names)

    monkeypatch.setattr(rows, "independent", chosen)
    parts = lw.identification.cross_validate(guess, *motion, tau, folds=3, parameters=kinds)
    assert np.allclose(parts.estimate, parts.estimate[0], atol=1e-8)
    calls[:] = [0]
    fit = lw.identify(guess, *motion, tau, parameters=kinds)
    assert first.names == names and names[2] not in fit.names
    assert np.allclose(fit.in_terms_of(first), truth, atol=1e-8)
    assert np.allclose(first.in_terms_of(fit), fit.estimate, atol=1e-8)
    more = lw.identify(guess, *motion, tau, parameters=("inertia", "damping"))
    with pytest.raises(lw.ModelError, match="other forces or base parameters"):
        more.in_terms_of(fit)
