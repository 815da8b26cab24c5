"""Regulators: the Riccati equation, the closed loop on the nonlinear mechanism, bad input."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.control.lqr import riccati
from linkwise.errors import UnknownNameError
from linkwise.spatial.array import Array
from tests.cases import tree


def cart_pole(damping: float = 0.0) -> lw.Mechanism:
    build = lw.Builder("cart_pole")
    cart = lw.SpatialInertia.solid_box(1.0, (0.3, 0.2, 0.1))
    pole = lw.SpatialInertia.solid_box(0.3, (0.02, 0.02, 0.5))
    pole = pole.moved(lw.Pose.translation((0.0, 0.0, 0.25)))
    build.body("cart", "world", lw.hinges.Prismatic((1, 0, 0)), inertia=cart)
    drive = lw.Drive(damping=damping)
    build.body("pole", "cart", lw.hinges.Pin((0, 1, 0)), inertia=pole, drive=drive)
    return build.build()


UPRIGHT = np.zeros(2)


def stable_subspace(A: Array, B: Array, Q: Array, R: Array) -> Array:
    """K by the eigenvectors of the Hamiltonian matrix: another way to the same gain."""
    S = B @ np.linalg.solve(R, B.T)
    values, vectors = np.linalg.eig(np.block([[A, -S], [-Q, -A.T]]))
    half = vectors[:, values.real < 0.0]
    P = np.real(half[len(A) :] @ np.linalg.inv(half[: len(A)]))
    return np.linalg.solve(R, B.T @ P)


def by_least_squares(A: Array, B: Array, Q: Array, R: Array, S: Array, x: Array) -> float:
    """The least cost over a horizon: one dense quadratic problem for all forces at once."""
    steps, n, m = len(A), A.shape[1], B.shape[2]
    free, moved = [x], [np.zeros((n, steps * m))]
    for k in range(steps):
        free.append(A[k] @ free[-1])
        block = A[k] @ moved[-1]
        block[:, k * m : (k + 1) * m] += B[k]
        moved.append(block)
    weights = [Q] * steps + [S]
    H = np.kron(np.eye(steps), R) + sum(J.T @ W @ J for J, W in zip(moved, weights, strict=True))
    g = sum(J.T @ W @ f for J, W, f in zip(moved, weights, free, strict=True))
    constant = sum(f @ W @ f for W, f in zip(weights, free, strict=True))
    return float(0.5 * (constant - g @ np.linalg.solve(H, g)))


def test_endless_gain_is_that_of_the_stable_subspace() -> None:
    mech, Q, R = cart_pole(damping=0.2), np.diag([3.0, 1.0, 0.5, 0.2]), np.array([[0.1]])
    made = lw.lqr(mech, UPRIGHT, Q=Q, R=R, driven=["cart"])
    A, B = made.A, made.B[:, :1]
    # The damper is in the model: its slope is that of forward dynamics with the damper's force.
    bare = lw.linearize(mech, UPRIGHT, np.zeros(2), np.zeros(2), passive=False)
    assert np.allclose(A - bare.A, -0.2 * np.outer(bare.B[:, 1], [0, 0, 0, 1]), atol=1e-14)
    assert np.allclose(made.gain[0], stable_subspace(A, B, Q, R)[0], rtol=1e-9)
    assert (made.gain[1] == 0.0).all()
    assert made.poles is not None and made.poles.real.max() < -0.1


@pytest.mark.parametrize("integrator", ["rk4", "euler"])
def test_motion_pays_what_the_cost_says(integrator: str) -> None:
    """On the mechanism itself, near the state: Σ ½ (x* Q x + u* R u) = ½ x* P x."""
    mech, Q, R, step = cart_pole(), np.diag([2.0, 1.0, 0.1, 0.1]), 0.3, 0.02
    made = lw.lqr(mech, UPRIGHT, Q=Q, R=R, driven=["cart"], step=step, integrator=integrator)
    x = 1e-4 * np.array([1.0, -2.0, 1.0, 0.5])
    runs = lw.rollout(
        mech, x[:2], x[2:], controller=(made.law, UPRIGHT), duration=20.0, step=step,
        integrator=integrator,
    )  # fmt: skip
    states = np.concatenate([runs.q, runs.v], axis=1)
    forces = made.law(runs.q, runs.v)
    paid = 0.5 * np.einsum("ki,ij,kj->", states, Q, states) + 0.5 * R * (forces**2).sum()
    assert np.abs(states[-1]).max() < 1e-6 * np.abs(x).max()
    assert paid == pytest.approx(0.5 * x @ made.cost @ x, rel=1e-6)


def test_horizon_is_the_least_cost_of_all_forces_at_once() -> None:
    """Along a motion of a floating tree with every hinge: each step has its own A and B."""
    mech, steps, step = tree("floating"), 3, 0.01
    rng = np.random.default_rng(2)
    q = np.array([mech.random(rng) for _ in range(steps)])
    v = 0.2 * rng.standard_normal((steps, mech.nv))
    tau = 0.1 * rng.standard_normal((steps, mech.nv))
    made = lw.lqr(mech, q, v, tau, Q=1.3, R=0.2, final=7.0, step=step, horizon=steps)
    n, x = 2 * mech.nv, rng.standard_normal(2 * mech.nv)
    Q, R, S = 1.3 * np.eye(n), 0.2 * np.eye(mech.nv), 7.0 * np.eye(n)
    least = by_least_squares(made.A, made.B, Q, R, S, x)
    assert 0.5 * x @ made.cost[0] @ x == pytest.approx(least, rel=1e-9)
    assert made.gain.shape == (steps, mech.nv, n)


def test_long_horizon_comes_to_the_endless_gain() -> None:
    mech = cart_pole()
    given = {"Q": 1.0, "R": 0.1, "driven": ["cart"], "step": 0.02}
    endless = lw.lqr(mech, UPRIGHT, **given)
    finite = lw.lqr(mech, UPRIGHT, **given, horizon=2000)
    assert np.allclose(finite.gain[0], endless.gain, rtol=1e-9)
    Q, R = np.eye(4), np.array([[0.1]])
    gains, _ = riccati(endless.A, endless.B[:, :1], Q, R, endless.cost, 1)
    assert np.allclose(gains[0], endless.gain[:1], rtol=1e-9)  # a fixed point


def test_rollout_takes_gains_for_each_step() -> None:
    """From a start beside a motion, following it costs what the recursion says."""
    mech, step = cart_pole(), 0.01
    tau = np.zeros((100, 2))
    tau[:, 0] = np.sin(0.1 * np.arange(100))
    way = lw.rollout(mech, [0.0, 2.0], tau=tau, duration=1.0, step=step)
    made = lw.lqr(
        mech, way.q[:-1], way.v[:-1], tau, Q=100.0, R=1e-3, driven=["cart"], step=step, horizon=100
    )
    x = 1e-4 * np.array([1.0, -2.0, 0.5, 1.0])
    led = lw.rollout(
        mech,
        x[:2] + way.q[0],
        x[2:],
        controller=(made.law, made.q),
        inputs=made.inputs,
        duration=1.0,
        step=step,
    )
    states = np.concatenate([led.q - way.q, led.v - way.v], axis=1)
    forces = np.einsum("kij,kj->ki", made.gain, states[:-1])
    paid = 0.5 * 100.0 * (states**2).sum() + 0.5 * 1e-3 * (forces**2).sum()
    assert paid == pytest.approx(0.5 * x @ made.cost[0] @ x, rel=1e-3)


def test_law_regulates_on_the_manifold() -> None:
    """A free body is turned back by more than a right angle, in simulate as in rollout."""
    box = lw.SpatialInertia.solid_box(2.0, (0.4, 0.3, 0.1))
    build = lw.Builder("box", gravity=(0.0, 0.0, 0.0))
    mech = build.body("box", "world", lw.hinges.Free(), inertia=box).build()
    rest = mech.neutral()
    made = lw.lqr(mech, rest, Q=10.0, R=1.0)
    turned = mech.integrate(rest, np.array([0.9, -1.1, 0.8, 0.0, 0.0, 0.0]))
    runs = lw.rollout(mech, turned, controller=(made.law, rest), duration=10.0, step=0.01)
    assert np.abs(mech.difference(rest, runs.q[-1])).max() < 1e-2
    held = {"controller": (made.law, rest), "control_step": 0.01}
    rec = lw.simulate(mech, turned, **held, duration=1.0, step=0.01, integrator="rk4")
    assert np.allclose(rec["q"][-1], runs.q[100], atol=1e-9)


def test_law_is_its_formula_and_goes_to_c() -> None:
    mech = tree("every hinge, armature")
    rng = np.random.default_rng(0)
    K = rng.standard_normal((mech.nv, 2 * mech.nv))
    q, q0 = mech.random(rng), mech.random(rng)
    v, v0, tau0 = rng.standard_normal((3, mech.nv))
    law = lw.dynamics.StateFeedback.of(mech, K, q0, v0, tau0)
    error = np.concatenate([mech.difference(q0, q), v - v0])
    assert np.allclose(law(q, v), tau0 - K @ error, rtol=1e-12, atol=1e-12)
    assert np.allclose(law(q, v, q, velocity=v), tau0, rtol=1e-12)
    assert "gain" in law.export_c("hold").header
    with pytest.raises(UnknownNameError, match="kp"):
        law(q, v, kp=1.0)


def test_bad_questions() -> None:
    mech = cart_pole()
    with pytest.raises(lw.ModelError, match="'pole' needs a joint force"):
        lw.lqr(mech, [0.0, 1.5], Q=1.0, R=1.0, driven=["cart"])
    with pytest.raises(lw.ModelError, match="R has the eigenvalue 0"):
        lw.lqr(mech, UPRIGHT, Q=1.0, R=0.0)
    with pytest.raises(lw.ShapeError, match=r"Q has shape \(3,\); it must be a number, \(4,\)"):
        lw.lqr(mech, UPRIGHT, Q=[1, 2, 3], R=1.0)
    with pytest.raises(UnknownNameError, match="wheel"):
        lw.lqr(mech, UPRIGHT, Q=1.0, R=1.0, driven=["wheel"])
    with pytest.raises(lw.ModelError, match="step is missing"):
        lw.lqr(mech, UPRIGHT, Q=1.0, R=1.0, horizon=10)
    with pytest.raises(lw.ShapeError, match="give horizon"):
        lw.lqr(mech, np.zeros((3, 2)), Q=1.0, R=1.0)
    with pytest.raises(lw.ModelError, match="tau is not finite at 'pole'"):
        lw.lqr(mech, UPRIGHT, tau=[0.0, np.nan], Q=1.0, R=1.0)
    two, ball = lw.Builder("two"), lw.SpatialInertia.solid_sphere(1.0, 0.1)
    two.body("a", "world", lw.hinges.Prismatic((1, 0, 0)), inertia=ball)
    two.body("b", "world", lw.hinges.Prismatic((0, 1, 0)), inertia=ball)
    with pytest.raises(lw.ModelError, match=r"no gain stabilises 'two'.* involves 'b'"):
        lw.lqr(two.build(), UPRIGHT, Q=1.0, R=1.0, driven=["a"])


def free_flyer_driven_at(count: int) -> tuple[lw.Mechanism, list[str]]:
    mech = lw.models.free_flyer()
    return mech, [body.hinge_name for body in mech.bodies[1 : 1 + count]]


@pytest.mark.parametrize("step", [None, 0.01])
def test_drift_that_no_joint_moves_is_named(step: float | None) -> None:
    """Momentum of the whole is kept: several modes with the eigenvalue zero."""
    mech, driven = free_flyer_driven_at(1)
    with pytest.raises(lw.ModelError, match=r"no gain stabilises 'free_flyer'.* cannot move it"):
        lw.lqr(mech, mech.neutral(), Q=1.0, R=1.0, driven=driven, step=step)


@pytest.mark.parametrize("step", [None, 0.05])
@pytest.mark.parametrize("Q", [0.0, [0.0, 1.0, 0.0, 1.0]])
def test_motion_without_weight_is_named(Q: object, step: float | None) -> None:
    two, ball = lw.Builder("two"), lw.SpatialInertia.solid_sphere(1.0, 0.1)
    two.body("a", "world", lw.hinges.Prismatic((1, 0, 0)), inertia=ball)
    two.body("b", "world", lw.hinges.Prismatic((0, 1, 0)), inertia=ball)
    with pytest.raises(lw.ModelError, match=r"Q does not weigh it. It involves '(a|b)'"):
        lw.lqr(two.build(), UPRIGHT, Q=Q, R=1.0, step=step)  # type: ignore[arg-type]


def test_unstable_motion_without_weight_is_stabilised() -> None:
    made = lw.lqr(cart_pole(), UPRIGHT, Q=[1.0, 0.0, 1.0, 0.0], R=1.0)
    assert made.poles is not None and made.poles.real.max() < 0.0


def test_states_that_do_not_stay_are_refused() -> None:
    mech = cart_pole()
    with pytest.raises(lw.ModelError, match=r"v of 'pole' is 2.*at rest"):
        lw.lqr(mech, UPRIGHT, [0.0, 2.0], Q=1.0, R=1.0)
    tilted = np.array([0.0, 0.5])
    held = lw.inverse_dynamics(mech, tilted, np.zeros(2), np.zeros(2))
    assert np.abs(held).max() > 0.1
    with pytest.raises(lw.ModelError, match=r"not an equilibrium with this tau: 'pole' needs"):
        lw.lqr(mech, tilted, tau=np.zeros(2), Q=1.0, R=1.0)
    given = lw.lqr(mech, tilted, tau=held * (1.0 + 1e-6), Q=1.0, R=1.0)
    assert np.allclose(given.gain, lw.lqr(mech, tilted, Q=1.0, R=1.0).gain, rtol=1e-4)
    # along a motion, both may be anything
    moving = lw.lqr(mech, tilted, [0.0, 2.0], np.zeros(2), Q=1.0, R=1.0, step=0.01, horizon=5)
    assert np.isfinite(moving.gain).all()
