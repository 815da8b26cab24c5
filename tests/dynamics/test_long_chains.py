"""Chains of many links: the same functions, as loops over the bodies."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import J, mass, tau, vdot
from linkwise.codegen import evaluated
from linkwise.codegen.formula import Formula
from linkwise.codegen.rest import triangles
from linkwise.codegen.scalar import status
from tests.cases import close, state


@pytest.fixture(scope="module")
def chain() -> lw.Mechanism:
    return lw.models.chain(300)


def test_forces_and_accelerations(chain):
    q, v, tau = state(chain)
    vdot = lw.forward_dynamics(chain, q, v, tau)
    size = np.abs(lw.mass_matrix(chain, q)) @ np.abs(vdot)
    close(lw.inverse_dynamics(chain, q, v, vdot), tau, 1e-12, scale=float(size.max()))
    close(lw.bias_force(chain, q, 0.0 * v), lw.gravity_force(chain, q), 1e-12)


def test_poses_and_energies(chain):
    q, v, _ = state(chain, 1)
    poses = chain.poses(q)
    tip = chain.bodies[-1].name
    close(lw.forward_kinematics(chain, q).matrix, poses.matrix, 1e-12)
    close(lw.forward_kinematics(chain, q, tip).matrix, poses[-1].matrix, 1e-12)
    J = lw.jacobian(chain, q, tip, frame="world")
    close(lw.node_velocity(chain, q, v, tip, frame="world"), J @ v, 1e-11)
    energy = lw.energy(chain, q, v)
    close(energy.kinetic, 0.5 * v @ lw.mass_matrix(chain, q) @ v, 1e-12)
    center = chain.center_of_mass(q)
    close(energy.potential, -chain.total_mass * chain.gravity @ center, 1e-11)


@pytest.mark.parametrize("pushed", [False, True])
def test_derivatives_of_forward_dynamics_are_kernels(pushed, monkeypatch) -> None:
    """Nothing is computed entry by entry, which would take seconds for a hundred bodies."""

    def refused(*_: object) -> None:
        raise AssertionError("an entry was multiplied by itself")

    monkeypatch.setattr(evaluated.Lane, "__mul__", refused)
    mech = lw.models.chain(70)
    q, v, tau, d = 0.1 * np.random.default_rng(0).standard_normal((4, 70))
    given = {"forces": {mech.bodies[-1].name: np.arange(6.0)}} if pushed else {}
    ours = lw.forward_dynamics_derivatives(mech, q, v, tau, **given)
    vdot = lw.forward_dynamics(mech, q, v, tau, **given)
    inverse = lw.inverse_dynamics_derivatives(mech, q, v, vdot, **given)
    for x, expected in ((ours.q, inverse.q), (ours.v, inverse.v)):
        assert np.abs(expected).max() > 1e-2
        np.testing.assert_allclose(inverse.vdot @ x, -expected, atol=1e-8 * np.abs(expected).max())
    np.testing.assert_allclose(inverse.vdot @ ours.tau, np.eye(70), atol=1e-8)
    batch = lw.forward_dynamics_derivatives(mech, np.stack([q, q + d]), v, tau, **given)
    np.testing.assert_allclose(batch.q[0], ours.q, rtol=1e-9, atol=1e-9 * np.abs(ours.q).max())
    assert np.abs(batch.q[1] - ours.q).max() > 1e-3


def test_what_a_formula_changes_in_a_value_is_kept() -> None:
    mech = lw.models.chain(70)

    def first_is_zero(at):
        rows = at.value(mass @ vdot)
        rows[0] = 0.0 * rows[0] + 2.0
        return rows

    q, x = 0.1 * np.random.default_rng(0).standard_normal((2, 70))
    result = lw.compile(first_is_zero, mech)(q, x)
    assert result[0] == 2.0
    np.testing.assert_allclose(result[1:], (lw.mass_matrix(mech, q) @ x)[1:], rtol=1e-9)


def test_the_rest_of_a_formula_is_straight_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a formula makes of its expressions is compiled, and gives what NumPy gives."""
    compiled, plain = lw.models.chain(70), lw.models.chain(70)
    q = 0.3 * np.random.default_rng(1).standard_normal((4, 70))
    q[1], q[3, 5] = 0.0, np.nan
    codes = np.zeros((2, 4), np.int32)
    tip = compiled.nodes[-1].name
    space = lw.operational_space(compiled, q, tip, status=codes[0])
    monkeypatch.setattr(evaluated, "rest_of", lambda *given: None)
    expected = lw.operational_space(plain, q, tip, status=codes[1])
    assert codes.tolist() == [[0, 0, 0, status.INPUT]] * 2
    assert space.rank[:3].tolist() == expected.rank[:3].tolist()
    for ours, theirs in ((space.inertia, expected.inertia), (space.inverse, expected.inverse)):
        assert np.isnan(ours[3]).all() and np.abs(theirs[:3]).max() > 1e-3
        np.testing.assert_allclose(ours[:3], theirs[:3], atol=1e-9 * np.abs(theirs[:3]).max())
    J, M = lw.jacobian(plain, q[0], tip), lw.mass_matrix(plain, q[0])
    np.testing.assert_allclose(space.inverse[0], J @ np.linalg.solve(M, J.T), rtol=1e-8, atol=1e-9)
    one = lw.operational_space(compiled, q[0], tip)
    np.testing.assert_allclose(one.inertia, space.inertia[0], rtol=1e-12)


def test_a_formula_is_cut_where_expressions_depend_on_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pieces before and behind are compiled, and give what NumPy and dense matrices give."""
    compiled, plain = lw.models.chain(70), lw.models.chain(70)
    q = 0.3 * np.random.default_rng(2).standard_normal((3, 70))
    tip, along = compiled.nodes[-1].name, np.array([0.6, 0.0, 0.8])

    def push(at):
        J_tip = at.value(J)[3:]
        first = at.value(mass.inv @ tau, tau=J_tip.T @ along)
        return first, at.value(mass @ vdot, vdot=2.0 * first), J_tip @ first

    formula = Formula(push, (), ("answer", "force", "motion"))
    ours = lw.compile(formula, compiled, nodes=[tip])
    evaluation = ours.device.machine.evaluated
    assert evaluation is not None and len(evaluation.rest.steps) == 3
    results = ours(q)
    monkeypatch.setattr(evaluated, "rest_of", lambda *given: None)
    expected = lw.compile(formula, plain, nodes=[tip])(q)
    for name, x in expected.items():
        np.testing.assert_allclose(results[name], x, rtol=1e-9, atol=1e-9 * np.abs(x).max())
    rows = lw.jacobian(plain, q[0], tip)[3:]
    np.testing.assert_allclose(results["force"][0], 2.0 * rows.T @ along, rtol=1e-8, atol=1e-8)
    effort = rows @ np.linalg.solve(lw.mass_matrix(plain, q[0]), rows.T @ along)
    np.testing.assert_allclose(results["motion"][0], effort, rtol=1e-7)


def test_triangles_of_long_rows_are_those_of_their_products() -> None:
    W = np.random.default_rng(3).standard_normal((4, 6, 90))
    W[1, 2] = W[1, 3]  # dependent rows
    lower = triangles(W)
    assert not np.triu(lower, 1).any()
    products = W @ W.swapaxes(1, 2)
    np.testing.assert_allclose(lower @ lower.swapaxes(1, 2), products, rtol=1e-12, atol=1e-12)
