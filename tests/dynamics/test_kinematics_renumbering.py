"""Bodies in another order: every quantity is the same, at other places."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import E_phi, phi
from linkwise.algebra.dense import Dense
from linkwise.errors import ModelError, ShapeError, UnknownNameError
from linkwise.model.derived import renumber
from tests.cases import close, state, tree

NAMES = ["every hinge, armature", "no armature"]


def shuffled(mech: lw.Mechanism, seed: int) -> list[str]:
    names = [body.name for body in mech.bodies]
    return [names[i] for i in np.random.default_rng(seed).permutation(len(names))]


@pytest.mark.parametrize("name", NAMES)
def test_a_renumbered_mechanism_gives_permuted_results(name):
    mech = tree(name)
    other = renumber(mech, shuffled(mech, 3))
    order = [body.name for body in other.bodies]
    assert order != [body.name for body in mech.bodies]
    there = lw.dynamics.renumbering(mech, order)
    q, v, tau = state(mech)
    q_2, v_2, tau_2 = there.q(q), there.joint_vector(v), there.joint_vector(tau)
    close(other.check_q(q_2), q_2, 0.0)
    vdot = lw.forward_dynamics(mech, q, v, tau)
    close(lw.forward_dynamics(other, q_2, v_2, tau_2), there.joint_vector(vdot), 1e-10)
    close(lw.mass_matrix(other, q_2), there.joint_matrix(lw.mass_matrix(mech, q)), 1e-12)
    V = lw.dynamics.body_velocities(mech, q, v)
    close(lw.dynamics.body_velocities(other, q_2, v_2), there.body_vector(V), 1e-12)
    J = lw.jacobian(mech, q, "tool")
    close(lw.jacobian(other, q_2, "tool"), there.columns(J), 1e-12)
    x = np.random.default_rng(4).standard_normal((mech.n_bodies, 6))
    for of in (lw.dynamics.scatter, lw.dynamics.gather):
        close(of(other, q_2, there.body_vector(x)), there.body_vector(of(mech, q, x)), 1e-12)


@pytest.mark.parametrize("order", ["tips first", "any"])
@pytest.mark.parametrize("name", NAMES)
def test_operators_in_any_order(name, order):
    """E_φ stays nilpotent and φ its resolvent; only with tips or base first is φ triangular."""
    mech = tree(name)
    q = state(mech)[0]
    first, second, *rest = (body.name for body in mech.bodies)
    mixed = [second, first, *rest]  # one child before its parent, others behind theirs
    there = lw.dynamics.renumbering(mech, order if order == "tips first" else mixed)
    dense, n = Dense(mech, q), mech.n_bodies
    P = there.body_permutation
    E = there.body_matrix(dense(E_phi))
    close(E, P @ dense(E_phi) @ P.T, 0.0)
    assert not np.linalg.matrix_power(E, n).any()
    close(there.body_matrix(dense(phi)), np.linalg.inv(np.eye(6 * n) - E), 1e-12)
    is_lower, is_upper = (not (E - part(E)).any() for part in (np.tril, np.triu))
    assert (is_lower, is_upper) == ((True, False) if order == "tips first" else (False, False))
    x = np.random.default_rng(6).standard_normal((n, 6))
    gathered = np.linalg.solve(np.eye(6 * n) - E, there.body_vector(x).ravel())
    close(there.body_vector(lw.dynamics.gather(mech, q, x)).ravel(), gathered, 1e-12)


def test_there_and_back():
    mech = tree("every hinge, armature")
    q, v, _ = state(mech)
    there = lw.dynamics.renumbering(mech, shuffled(mech, 7))
    back, A = there.back(), lw.mass_matrix(mech, q)
    batch = np.random.default_rng(8).standard_normal((3, mech.n_bodies, 6))
    assert np.array_equal(back.q(there.q(q)), q)
    assert np.array_equal(back.joint_vector(there.joint_vector(v)), v)
    assert np.array_equal(back.joint_matrix(there.joint_matrix(A)), A)
    assert np.array_equal(back.body_vector(there.body_vector(batch)), batch)
    assert np.array_equal(there.joint_permutation @ v, there.joint_vector(v))
    assert np.array_equal(back.joint_permutation, there.joint_permutation.T)
    assert np.array_equal(back.body_permutation, there.body_permutation.T)
    assert lw.dynamics.renumbering(mech).order == tuple(b.name for b in reversed(mech.bodies))


def test_bad_input_is_told():
    mech = tree("pins")
    names = [body.name for body in mech.bodies]
    with pytest.raises(ModelError, match="names each of the 6 bodies once; 'body_6' is missing"):
        lw.dynamics.renumbering(mech, names[:-1])
    with pytest.raises(ModelError, match="'body_1' is named twice"):
        lw.dynamics.renumbering(mech, [*names, "body_1"])
    with pytest.raises(UnknownNameError, match=r"no body called 'bdy_1'.*did you mean"):
        lw.dynamics.renumbering(mech, ["bdy_1", *names[1:]])
    with pytest.raises(ModelError, match="order is 'random'; it must be 'tips first'"):
        lw.dynamics.renumbering(mech, "random")
    there = lw.dynamics.renumbering(mech)
    with pytest.raises(ShapeError, match=r"q has shape \(5,\); it must be \(\.\.\., 6\)"):
        there.q(np.zeros(5))
    with pytest.raises(ShapeError, match=r"the joint matrix has shape \(6,\)"):
        there.joint_matrix(np.zeros(6))
    with pytest.raises(ShapeError, match=r"the body vector has shape \(36,\)"):
        there.body_vector(np.zeros(36))
