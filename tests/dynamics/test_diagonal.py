"""Diagonalised equations of motion, against dense factors and by integrating both forms."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import A_V, B_V, E_phi, H, M, bias
from linkwise.algebra.dense import Dense
from linkwise.algebra.family import lyapunov, riccati
from linkwise.dynamics.quantity import articulated_inertia_rate, hinge_inertia_rate
from linkwise.errors import (
    LoweringError,
    ModelError,
    ShapeError,
    SingularHingeError,
    TroubleWarning,
)
from linkwise.sweeps.interpret import run
from tests.cases import close, state, states, tree
from tests.dense_kinematics import mass_matrix

NAMES = ("every hinge, armature", pytest.param("floating", marks=pytest.mark.slow))


def upper_root(A):
    """The upper triangular root with a positive diagonal: there is one only."""
    return np.linalg.cholesky(A[::-1, ::-1])[::-1, ::-1]


def dense_coriolis(mech, q, v):
    """c = l⁻¹ C - l̇* v, with l̇ = l Φ(l⁻¹ 𝓜̇ l⁻*), Φ: upper triangle, half of the diagonal.

    𝓜̇ by central differences of the mass matrix, extrapolated twice: good to about 1e-10.
    """

    def rate(h):
        ahead, behind = (mass_matrix(mech, mech.integrate(q, v, s)) for s in (h, -h))
        return (ahead - behind) / (2.0 * h)

    h = 2e-3
    first = [(4.0 * rate(h / 2**i / 2) - rate(h / 2**i)) / 3.0 for i in (0, 1)]
    root = upper_root(mass_matrix(mech, q))
    inner = np.linalg.solve(root, (16.0 * first[1] - first[0]) / 15.0)
    inner = np.linalg.solve(root, inner.T).T
    root_rate = root @ (np.triu(inner, 1) + 0.5 * np.diag(np.diag(inner)))
    c = Dense(mech.with_gravity((0.0, 0.0, 0.0)), q, v)(bias)
    return np.linalg.solve(root, c) - root_rate.T @ v


@pytest.mark.parametrize("name", NAMES)
def test_the_change_of_variables(name):
    """ν = l* v and ε = l⁻¹ τ with the one upper triangular l of l l* = 𝓜; and both ways back."""
    mech = tree(name)
    q, v, tau = state(mech)
    root = upper_root(mass_matrix(mech, q))
    nu, eps = lw.papers.diagonal_velocity(mech, q, v), lw.papers.innovations(mech, q, tau)
    # The dense factor has lost as many digits as the condition of 𝓜 has.
    bound = max(1e-12, 20.0 * np.finfo(float).eps * np.linalg.cond(mass_matrix(mech, q)))
    close(nu, root.T @ v, bound)
    close(root @ eps, tau, bound)
    close(lw.papers.velocity_from_diagonal(mech, q, nu), v, 1e-11)
    close(lw.papers.force_from_innovations(mech, q, eps), tau, 1e-11)
    close(0.5 * nu @ nu, lw.dynamics.kinetic_energy(mech, q, v), 1e-12)
    close(nu @ eps, v @ tau, 1e-11, scale=float(np.abs(v) @ np.abs(tau)))


@pytest.mark.parametrize("name", NAMES)
def test_the_coriolis_term(name):
    mech = tree(name)
    q, v, _ = state(mech, 1)
    nu = lw.papers.diagonal_velocity(mech, q, v)
    c = lw.papers.diagonal_coriolis(mech, q, nu)
    close(c, dense_coriolis(mech, q, v), 1e-8)  # what the differences are good for
    assert np.abs(c).max() > 0.01
    # It does no work, and is quadratic.
    close(nu @ c, 0.0, 1e-12, scale=float(np.abs(nu) @ np.abs(c)))
    close(lw.papers.diagonal_coriolis(mech, q, -3.0 * nu), 9.0 * c, 1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_the_rate_is_that_of_forward_dynamics(name):
    """ν̇ = d/dt (l* v) along the motion, gravity and forces included."""
    mech = tree(name)
    q, v, tau = state(mech, 2)
    nu = lw.papers.diagonal_velocity(mech, q, v)
    result = lw.papers.diagonal_dynamics(mech, q, nu, tau)
    vdot = lw.forward_dynamics(mech, q, v, tau)

    def rate(h):
        ahead, behind = (
            lw.papers.diagonal_velocity(
                mech, mech.integrate(q, v + 0.5 * s * vdot, s), v + s * vdot
            )
            for s in (h, -h)
        )
        return (ahead - behind) / (2.0 * h)

    close(result, (4.0 * rate(1e-4) - rate(2e-4)) / 3.0, 1e-7)


def test_a_pendulum_has_no_coupling():
    """One pin: D is constant, so is ν for a free swing without gravity."""
    mech = lw.models.pendulum(1)
    q, nu = np.array([0.7]), np.array([1.3])
    assert abs(lw.papers.diagonal_coriolis(mech, q, nu)[0]) < 1e-15


def test_double_pendulum_by_hand():
    """Two point masses on rods: D of the first hinge is m l² (2 - cos²), of the second m l²."""
    b = lw.Builder("two points")
    for i in (1, 2):
        point = lw.SpatialInertia.from_com(1.0, (0.0, 0.0, -1.0), np.zeros((3, 3)))
        place = lw.Pose.identity() if i == 1 else lw.Pose.translation((0.0, 0.0, -1.0))
        parent = "world" if i == 1 else "rod_1"
        b.body(f"rod_{i}", parent, lw.hinges.Pin((0.0, 1.0, 0.0)), inboard=place, inertia=point)
    mech, q = b.build(), np.array([0.3, 0.8])
    cosine = np.cos(q[1])
    D = np.ravel(lw.papers.innovations_factors(mech, q).D)
    close(D, np.array([2.0 - cosine**2, 1.0]), 1e-13)
    v = np.array([0.4, -1.1])
    expected = [np.sqrt(2.0 - cosine**2) * v[0], v[1] + (1.0 + cosine) * v[0]]
    close(lw.papers.diagonal_velocity(mech, q, v), np.array(expected), 1e-13)


def trajectories(mech, q, v, tau, span):
    """Where v̇ = 𝓜⁻¹ (τ - C) leads, and where ν̇ = ε - c does."""
    solve_ivp, nq = pytest.importorskip("scipy.integrate").solve_ivp, mech.nq
    options = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-12}

    def plain(_, y):
        q, v = mech.normalise(y[:nq]), y[nq:]  # the stages of a step are off the manifold
        return np.concatenate([mech.qdot(q, v), lw.forward_dynamics(mech, q, v, tau)])

    def diagonal(_, y):
        q, nu = mech.normalise(y[:nq]), y[nq:]
        rate = mech.qdot(q, lw.papers.velocity_from_diagonal(mech, q, nu))
        return np.concatenate([rate, lw.papers.diagonal_dynamics(mech, q, nu, tau)])

    first = solve_ivp(plain, (0.0, span), np.concatenate([q, v]), **options)
    nu = lw.papers.diagonal_velocity(mech, q, v)
    second = solve_ivp(diagonal, (0.0, span), np.concatenate([q, nu]), **options)
    assert first.success and second.success
    return first.y[:, -1], second.y[:, -1]


def compare_trajectories(mech, q, v, tau, span):
    first, second = trajectories(mech, q, v, tau, span)
    assert np.abs(first[: mech.nq] - q).max() > 0.3  # it has gone somewhere
    close(second[: mech.nq], first[: mech.nq], 1e-9)
    back = lw.papers.velocity_from_diagonal(mech, second[: mech.nq], second[mech.nq :])
    close(back, first[mech.nq :], 1e-9)


def test_both_forms_of_a_double_pendulum_go_the_same_way():
    compare_trajectories(
        lw.models.pendulum(2), np.array([1.2, -0.7]), np.array([0.5, 1.0]), np.zeros(2), 2.0
    )


def test_both_forms_of_a_tree_with_a_ball_joint_go_the_same_way():
    """A branched tree: a ball joint carries an arm of its own, and has armature."""
    mech = lw.models.random_tree(
        4, 12, hinges=("spherical", "pin", "universal"), branching=0.6, drives=True
    )
    kinds = {type(body.hinge).__name__ for body in mech.bodies}
    assert "Spherical" in kinds and mech.armature.any()
    assert max(len(children) for children in mech.children) > 1
    q, v, tau = state(mech, 0)
    compare_trajectories(mech, q, 0.5 * v, 0.3 * tau, 0.3)


def test_batches():
    mech = tree("every hinge, armature")
    q, v, tau = states(mech, 5)
    nu = lw.papers.diagonal_velocity(mech, q, v)
    together = (
        nu,
        lw.papers.velocity_from_diagonal(mech, q, nu),
        lw.papers.innovations(mech, q, tau),
        lw.papers.force_from_innovations(mech, q, tau),
        lw.papers.diagonal_coriolis(mech, q, nu),
        lw.papers.diagonal_dynamics(mech, q, nu, tau),
    )
    for i in range(5):
        alone = (
            lw.papers.diagonal_velocity(mech, q[i], v[i]),
            lw.papers.velocity_from_diagonal(mech, q[i], nu[i]),
            lw.papers.innovations(mech, q[i], tau[i]),
            lw.papers.force_from_innovations(mech, q[i], tau[i]),
            lw.papers.diagonal_coriolis(mech, q[i], nu[i]),
            lw.papers.diagonal_dynamics(mech, q[i], nu[i], tau[i]),
        )
        for many, one in zip(together, alone, strict=True):
            close(many[i], one, 1e-11)
    # One position and many velocities; one velocity and many positions; an array to fill.
    close(
        lw.papers.diagonal_velocity(mech, q[0], v)[2],
        lw.papers.diagonal_velocity(mech, q[0], v[2]),
        1e-12,
    )
    close(
        lw.papers.diagonal_coriolis(mech, q, nu[0])[3],
        lw.papers.diagonal_coriolis(mech, q[3], nu[0]),
        1e-11,
    )
    out = np.empty_like(nu)
    assert lw.papers.diagonal_dynamics(mech, q, nu, tau, out=out) is out
    close(out, together[-1], 1e-14)


def test_trouble():
    mech = tree("every hinge, armature")
    q, v, tau = states(mech, 3)
    q[1, 0] = np.nan
    status = np.zeros(3, dtype=np.int32)
    result = lw.papers.diagonal_dynamics(mech, q, v, tau, status=status)
    assert status.tolist() == [0, 1, 0]
    assert np.isnan(result[1]).all() and np.isfinite(result[[0, 2]]).all()
    for call in (lw.papers.diagonal_velocity, lw.papers.innovations, lw.papers.diagonal_coriolis):
        with pytest.raises(ModelError, match="q is not finite"):
            call(mech, q[1], v[1])
        with pytest.raises(ShapeError, match="has shape"):
            call(mech, q[0], v[0, :-1])
        with pytest.raises(ModelError, match="is not finite"):
            call(mech, q[0], v[0] + np.nan)
        with pytest.raises(ShapeError, match="has 2 rows; the batch has 3"):
            call(mech, q, v[:2])
    with pytest.raises(ShapeError, match=r"out is float64 \(2,\)"):
        lw.papers.innovations(mech, q[0], tau[0], out=np.empty(2))


def test_the_rates_of_the_riccati_recursion_are_sweeps():
    """Ṗ and Ḋ by the interpreter against matrices: a Lyapunov core with terms E X F*."""
    mech = tree("every hinge, armature")
    q, v, _ = state(mech, 3)
    dense = Dense(mech, q, v)
    for quantity in (articulated_inertia_rate, hinge_inertia_rate):
        expr = quantity()
        close(run(lw.plan(expr), mech, q, v), dense(expr), 1e-13)
    text = str(lw.plan(articulated_inertia_rate()))
    assert "- Σ_c ψ(k,c) (P A_V)(c) K*(k,c)" in text
    f = riccati(E_phi, M, H)
    with pytest.raises(LoweringError, match="has to be memoryless"):
        lw.plan(lyapunov(f.E_psi, f.E_psi @ f.P @ B_V))
    with pytest.raises(LoweringError, match="has to be memoryless"):
        lw.plan(lyapunov(f.E_psi, B_V @ f.P + A_V @ f.K.T @ f.P))


def test_long_chains_take_loops():
    """The same from loops over bodies: O(n), and no code that grows."""
    mech = lw.models.chain(100)
    q, v, _ = state(mech, 0)
    nu = lw.papers.diagonal_velocity(mech, q, v)
    close(0.5 * nu @ nu, lw.dynamics.kinetic_energy(mech, q, v), 1e-12)
    c = lw.papers.diagonal_coriolis(mech, q, nu)
    close(nu @ c, 0.0, 1e-11, scale=float(np.abs(nu) @ np.abs(c)))


def test_gravity_asks_more_of_a_configuration_than_the_coupling_does():
    """Which way is down matters to gravity alone: without that angle its rows are NaN, and told."""
    box = lw.SpatialInertia.solid_box(1.0, (0.1, 0.2, 0.3))
    off = box.moved(lw.Pose.translation((0.1, 0.0, 0.2)))
    mech = lw.Builder("top").body("top", hinge=lw.hinges.Spherical(), inertia=off).build()
    q = np.stack([mech.random(seed=i) for i in range(3)])
    q[1] *= 1.3
    nu, tau = np.random.default_rng(0).standard_normal((2, 3, 3))
    with pytest.warns(TroubleWarning, match="row 1: the quaternion"):
        result = lw.papers.diagonal_dynamics(mech, q, nu, tau)
    assert np.isnan(result).any(axis=1).tolist() == [False, True, False]
    status = np.zeros(3, dtype=np.int32)
    lw.papers.diagonal_dynamics(mech, q, nu, tau, status=status)
    assert (status != 0).tolist() == [False, True, False]
    with pytest.raises(ModelError, match="quaternion"):
        lw.papers.diagonal_dynamics(mech, q[1], nu[1], tau[1])


def test_a_singular_hinge_is_named_by_all():
    """A mass on a slide through the axis it turns about: nothing resists turning where it is."""
    builder = lw.Builder("slide").body("arm", hinge=lw.hinges.Pin((0, 0, 1)))
    mass_point = lw.SpatialInertia.point(2.0, (0, 0, 0))
    mech = builder.body("mass", "arm", lw.hinges.Prismatic((1, 0, 0)), inertia=mass_point).build()
    q, x = np.array([[0.1, 0.0], [0.1, 0.5]]), np.ones(2)
    for call in (
        *(lw.papers.diagonal_velocity, lw.papers.velocity_from_diagonal, lw.papers.innovations),
        *(lw.papers.force_from_innovations, lw.papers.diagonal_coriolis),
        lambda *given, **options: lw.papers.diagonal_dynamics(*given, x, **options),
    ):
        with pytest.raises(SingularHingeError, match="hinge of body 'arm' is singular"):
            call(mech, q[0], x)
        with pytest.warns(TroubleWarning, match="row 0: the hinge of body 'arm' is singular"):
            result = call(mech, q, x)
        np.testing.assert_allclose(result[1], call(mech, q[1], x), rtol=1e-13)
        assert np.isnan(result[0]).all()
