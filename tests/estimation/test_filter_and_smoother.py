"""The filter and the smoother give what conditioning explicit Gaussians gives, on every tree."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra.dense import Dense
from linkwise.estimation import RandomField
from linkwise.estimation.evaluate import FEW
from linkwise.estimation.operator import BLOCKS, ESTIMATES
from tests.estimation.fields import MECHANISMS, NOISES, bound, close, field, measurement, reference

EACH = [(name, noise) for name in MECHANISMS for noise in NOISES]


@pytest.mark.few(12)
@pytest.mark.parametrize(("name", "noise"), EACH)
def test_filter_is_conditioning_on_what_is_outboard(name, noise):
    """z(k) = E[X(k) | T outboard of k], P(k) its covariance; z⁺ and P⁺ with T(k) as well."""
    here, ref, T = field(name, noise), reference(name, noise), measurement(field(name).mech)
    result, limit = here.filter(T), bound(name, noise)
    state = ref.covariance(ref.X, ref.X)
    before, after = (ref.covariance(ref.X - z, ref.X - z) for z in (ref.z, ref.z_plus))
    D = ref.covariance(ref.eps, ref.eps)
    for k, (s, j) in enumerate(zip(ref.body, ref.joint, strict=True)):
        scale = float(np.abs(state[s, s]).max())
        close(result.P[k], before[s, s], limit, scale)
        close(result.P_plus[k], after[s, s], limit, scale)
        close(result.D[k], D[j, j], limit, scale)

    # T as a vector on (W, n): any one that the model can give.
    draw = np.linalg.lstsq(ref.T, T, rcond=None)[0]
    for name_of, expected in (("z", ref.z), ("z_plus", ref.z_plus), ("eps", ref.eps)):
        expected = expected @ draw
        value = getattr(result, name_of)
        close(value.ravel(), expected, limit, float(np.abs(ref.X @ draw).max()))


@pytest.mark.few(12)
@pytest.mark.parametrize(("name", "noise"), EACH)
def test_smoother_is_conditioning_on_all(name, noise):
    """f = E[X | T], Ŵ = E[W | T], and α, θ̈ are the accelerations that T causes."""
    here, ref, T = field(name, noise), reference(name, noise), measurement(field(name).mech)
    result, batch, limit = here.smooth(T), here.batch(T), 10 * bound(name, noise)
    mass = ref.covariance(ref.T, ref.T)
    vdot = np.linalg.solve(mass, T)
    alpha = ref.phi.T @ ref.H.T @ vdot
    close(result.vdot, vdot, limit)
    close(batch.vdot, vdot, limit)
    close(result.alpha.ravel(), alpha, limit)
    for estimate in (result, batch):
        close(estimate.f.ravel(), ref.phi @ ref.M @ alpha, limit)
        close(estimate.W_hat.ravel(), ref.M @ alpha, limit)
    close(result.f, result.filter.z + np.einsum("kij,kj->ki", result.filter.P, result.alpha), limit)
    state = ref.covariance(ref.X, ref.X)
    error = state - state @ ref.H.T @ np.linalg.solve(mass, ref.H @ state)
    close(batch.error, error, limit, float(np.abs(state).max(initial=0.0)))
    for block, s in zip(result.error, ref.body, strict=True):
        close(block, error[s, s], limit, float(np.abs(state[s, s]).max()))


SLOW = [name for name in MECHANISMS if name not in ("pendulum", "puma560", "a body without mass")]
"""Mechanisms whose compiled dynamics take a while."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=pytest.mark.slow) if x in SLOW else x for x in MECHANISMS],
)
def test_smoother_is_forward_dynamics(name):
    """With armature as its noise and T = τ - C, the smoother gives the joint accelerations."""
    here = field(name)
    v, tau = here.mech.random_velocity(3), measurement(here.mech)
    T = tau - lw.bias_force(here.mech, here.q, v)
    expected = lw.forward_dynamics(here.mech, here.q, v, tau)
    close(here.smooth(T).vdot, expected, 10 * bound(name, "armature"))
    close(here.covariance("T"), lw.mass_matrix(here.mech, here.q), 1e-13)
    close(
        here.covariance("vdot"),
        lw.mass_matrix_inverse(here.mech, here.q),
        10 * bound(name, "armature"),
    )


@pytest.mark.parametrize("entry", [*BLOCKS, *ESTIMATES], ids=lambda entry: entry.name)
@pytest.mark.parametrize("name", ["every hinge", "welds"])
def test_operators_are_their_expressions(entry, name):
    """What runs is what is shown: blocks and vectors against explicit matrices."""
    here, T = field(name), measurement(field(name).mech)
    dense = Dense(here.mech, here.q, values={"tau": T})
    full = dense.matrix(here.expression(entry.name))
    if entry in ESTIMATES:
        close(here.apply(entry.name, T).ravel(), full @ T, bound(name, "armature"))
        return
    expression = here.expression(entry.name)
    rows, columns = (here.numbers.places(x) for x in (expression.range, expression.domain))
    for block, r, c in zip(here.blocks(entry.name), rows, columns, strict=True):
        close(block, full[r, c], 1e-12, float(np.abs(full).max()))


def test_gains_step_by_step():
    """The predictor-corrector form of 004 (9.4)-(9.14), on the blocks that can be read."""
    here, T = field("every hinge"), measurement(field("every hinge").mech)
    smoother = here.smooth(T)
    kalman, mech = smoother.filter, here.mech
    phi, H = here.blocks("phi"), here.blocks("H")
    for k in range(mech.n_bodies):
        children = mech.children[k]
        s = mech.v_slice(mech.bodies[k].hinge_name)
        z = sum((phi[c] @ kalman.z_plus[c] for c in children), np.zeros(6))
        P = sum((phi[c] @ kalman.P_plus[c] @ phi[c].T for c in children), mech.inertias[k].matrix)
        close(kalman.z[k], z, 1e-12, float(np.abs(kalman.z).max()))
        close(kalman.P[k], P, 1e-12)
        close(kalman.eps[s], T[s] - H[k] @ kalman.z[k], 1e-12, 1.0)
        close(kalman.z_plus[k], kalman.z[k] + kalman.G[k] @ kalman.eps[s], 1e-12, 1.0)
        close(kalman.K[k], phi[k] @ kalman.G[k], 1e-13)
        close(kalman.psi[k], phi[k] @ (np.eye(6) - kalman.G[k] @ H[k]), 1e-13, 1.0)
        close(kalman.nu[s], np.linalg.solve(kalman.D[k], kalman.eps[s]), 1e-12)
        p = int(mech.parent[k])
        above = phi[k].T @ smoother.alpha[p] if p >= 0 else np.zeros(6)
        scale = float(np.abs(smoother.alpha).max())
        close(smoother.vdot[s], kalman.nu[s] - kalman.G[k].T @ above, 1e-12, scale)
        close(smoother.alpha[k], above + H[k].T @ smoother.vdot[s], 1e-12, scale)
        below = kalman.psi[k].T @ smoother.Upsilon[p] @ kalman.psi[k] if p >= 0 else 0.0
        expected = below + H[k].T @ np.linalg.inv(kalman.D[k]) @ H[k]
        close(smoother.Upsilon[k], expected, 1e-11, float(np.abs(smoother.Upsilon).max()))


@pytest.mark.few(1)
@pytest.mark.parametrize("noise", NOISES)
def test_batches_are_their_rows(noise):
    """Compiled kernels give what the sweeps give one by one."""
    here = field("fork", noise)
    T = np.random.default_rng(1).standard_normal((FEW + 1, here.mech.nv))
    many, single = here.smooth(T), [here.smooth(row) for row in T]
    few = here.smooth(T[:2])
    close(few.f, many.f[:2], 1e-11)
    for name in ("alpha", "vdot", "f", "W_hat"):
        close(getattr(many, name), np.stack([getattr(one, name) for one in single]), 1e-11)
    for name in ("z", "z_plus", "eps", "nu", "white", "log_likelihood"):
        expected = np.stack([getattr(one.filter, name) for one in single])
        close(getattr(many.filter, name), expected, 1e-11)


@pytest.mark.parametrize(("name", "noise"), EACH)
def test_log_likelihood(name, noise):
    """Innovations give the density of a Gaussian with covariance 𝓜 + N."""
    here, ref, T = field(name, noise), reference(name, noise), measurement(field(name).mech)
    mass = ref.covariance(ref.T, ref.T)
    log_det = float(np.linalg.slogdet(mass)[1])
    expected = -0.5 * (T @ np.linalg.solve(mass, T) + log_det + len(T) * np.log(2 * np.pi))
    close(here.log_likelihood(T), expected, 10 * bound(name, noise), max(1.0, abs(expected)))


def test_white_innovations_have_the_norm_of_the_measurement():
    """|L⁻¹ ε|² = T* 𝓜⁻¹ T: whitening keeps all there is to know."""
    here, T = field("every hinge"), measurement(field("every hinge").mech)
    white = here.filter(T).white
    close(white @ white, T @ here.batch(T).vdot, 1e-11)


def test_without_noise_joint_forces_are_known_exactly():
    """H 𝒫 = 0 (004 10.6), and with noise it is not."""
    for noise, known in (("no noise", True), ("noise", False)):
        here = field("every hinge", noise)
        H, error = here.blocks("H"), here.smooth(measurement(here.mech)).error
        left = max(np.abs(h @ e).max(initial=0.0) for h, e in zip(H, error, strict=True))
        assert bool(left < 1e-11 * np.abs(error).max()) is known


def test_with_noise_the_rotor_takes_its_share():
    """H f = T - N θ̈: what the estimate leaves of T is the force on the armature."""
    here = field("every hinge", "noise")
    T = measurement(here.mech)
    smoother, H = here.smooth(T), here.blocks("H")
    held = np.concatenate([h @ f for h, f in zip(H, smoother.f, strict=True)])
    close(held, T - 0.3 * smoother.vdot, 1e-12)


def test_smoothing_never_adds_doubt():
    """P ≥ P⁺ and P ≥ 𝒫 as matrices; diagonal blocks of the state's covariance are above both."""
    here = field("every hinge")
    kalman = here.filter(measurement(here.mech))
    R = np.stack(here.covariance_blocks("X"))
    error = np.stack(here.covariance_blocks("X - f"))
    for larger, smaller in ((R, kalman.P), (kalman.P, kalman.P_plus), (kalman.P, error)):
        slack = 1e-12 * np.abs(larger).max()
        assert np.linalg.eigvalsh(larger - smaller).min() > -slack
    assert np.trace(kalman.P - error, axis1=1, axis2=2).max() > 0.1


def test_noise_stands_for_armature():
    """Noise of a bare mechanism is armature of a geared one, in all that is computed."""
    geared = lw.models.puma560()
    q, T = geared.random(1), measurement(geared)
    bare = RandomField(geared, q, noise=None)
    noisy = RandomField(geared, q, noise=geared.armature.copy())
    close(noisy.covariance("T"), bare.covariance("T") + np.diag(geared.armature), 1e-15)
    expected = lw.forward_dynamics(geared.with_gravity((0, 0, 0)), q, np.zeros(6), T)
    close(noisy.smooth(T).vdot, expected, 1e-13)
    assert np.abs(bare.smooth(T).vdot - expected).max() > 0.1 * np.abs(expected).max()
