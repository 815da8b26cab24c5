"""Composite and articulated inertias, the factors of the mass matrix, and its determinant."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import BODY, E_phi, H, M, N, R, phi
from linkwise.algebra.dense import Dense
from linkwise.algebra.family import riccati
from linkwise.errors import ModelError, ShapeError, SingularHingeError, TroubleWarning
from linkwise.spatial.pose import Pose
from linkwise.sweeps.interpret import run
from tests.cases import TREES, close, state, states, tree
from tests.dense_kinematics import mass_matrix
from tests.dynamics.oracle_state import MUJOCO, PINOCCHIO, in_mujoco, in_pinocchio
from tests.oracles.pinocchio_oracle import SWAPPED


def family(mech):
    return riccati(E_phi, M, H, N if mech.armature.any() else None)


@cache
def small() -> lw.Mechanism:
    """A ball, a slide and two pins, branched, with armature."""
    kinds = ("spherical", "prismatic", "pin", "pin")
    return lw.models.random_tree(4, 5, hinges=kinds, branching=0.5)


def composite(mech, q):
    """By hand: the inertias of the subtree, moved to each body."""
    poses, result = mech.poses(q), np.zeros((mech.n_bodies, 6, 6))
    for k in reversed(range(mech.n_bodies)):
        result[k] += mech.inertias[k].matrix
        p = int(mech.parent[k])
        if p >= 0:
            X = Pose(poses.rot[p], poses.p[p]).inverse() @ Pose(poses.rot[k], poses.p[k])
            result[p] += X.shift @ result[k] @ X.shift.T
    return result


def test_composite_inertias():
    mech = small()
    q, _, _ = states(mech, 3)
    result = lw.dynamics.composite_inertias(mech, q)
    assert result.shape == (3, 4, 6, 6)
    for i in range(3):
        close(result[i], composite(mech, q[i]), 1e-13)
        close(lw.dynamics.composite_inertias(mech, q[i]), result[i], 1e-14)
    # The base carries everything: its composite has the mass of the whole.
    roots = [k for k in range(mech.n_bodies) if mech.parent[k] < 0]
    assert np.isclose(sum(result[0, k, 5, 5] for k in roots), float(mech.total_mass))
    out = np.empty_like(result)
    assert lw.dynamics.composite_inertias(mech, q, out=out) is out
    close(out, result, 1e-15)


@pytest.mark.parametrize("name", TREES)
def test_composite_and_articulated_on_every_tree(name):
    """By the interpreter, with what the operators mean: blocks of φ M φ*, and of its inverse."""
    mech = tree(name)
    q, _, _ = state(mech)
    result = run(lw.plan(R), mech, q)
    expected = composite(mech, q)
    for k in range(mech.n_bodies):
        s = slice(6 * k, 6 * k + 6)
        close(result[s, s], expected[k], 1e-12)
    dense = Dense(mech, q)
    full = dense.matrix(phi @ M @ phi.T)
    close([full[s, s] for s in dense.slices(BODY)], expected, 1e-12)
    P = run(lw.plan(family(mech).P), mech, q)
    for k, s in enumerate(dense.slices(BODY)):
        # Between the body's own inertia and that of all it carries.
        gap = 1e-11 * np.abs(expected[k]).max()
        assert np.linalg.eigvalsh(expected[k] - P[s, s]).min() > -gap
        assert np.linalg.eigvalsh(P[s, s] - mech.inertias[k].matrix).min() > -gap


def test_articulated_inertia_is_what_an_acceleration_meets():
    """P⁻¹ is how a lone subtree, cut off from its parent, yields to a force at its root."""
    mech = small()
    q, _, _ = state(mech)
    P = lw.dynamics.articulated_inertias(mech, q)
    for k, body in enumerate(mech.bodies):
        floating = _subtree(mech, k)
        q_sub = np.concatenate([[1.0, 0, 0, 0, 0, 0, 0], *_positions(mech, q, floating)])
        yielding = lw.dynamics.operational_inertia_inverse(floating, q_sub, body.name)
        close(P[k] @ yielding, np.eye(6), 1e-10)


def _subtree(mech, k):
    """The body on a free hinge, with all it carries as it is; gravity does not matter."""
    builder, inside = lw.Builder("subtree", gravity=(0, 0, 0)), {mech.bodies[k].name}
    for i, body in enumerate(mech.bodies):
        if i == k:
            builder.body(body.name, hinge=lw.hinges.Free(), inertia=mech.inertias[k])
        elif body.parent in inside:
            inside.add(body.name)
            builder.body(
                body.name,
                parent=body.parent,
                hinge=body.hinge,
                hinge_name=body.hinge_name,
                inboard=body.inboard,
                outboard=body.outboard,
                inertia=mech.inertias[i],
                drive=body.drive,
            )
    return builder.build()


def _positions(mech, q, floating):
    return [q[mech.q_slice(body.hinge_name)] for body in floating.bodies[1:]]


def test_factors():
    mech = small()
    q, _, _ = states(mech, 2)
    F, dense = family(mech), Dense(mech, q[1])
    factors, batch = (
        lw.papers.innovations_factors(mech, q[1]),
        lw.papers.innovations_factors(mech, q),
    )
    joints, bodies = dense.slices(lw.algebra.JOINT), dense.slices(BODY)
    for k, body in enumerate(mech.bodies):
        nv, ours = body.hinge.nv, bodies[k]
        assert factors.D[k].shape == (nv, nv) and factors.K[k].shape == (6, nv)
        assert batch.G[k].shape == (2, 6, nv)
        close(factors.D[k], dense.matrix(F.D)[joints[k], joints[k]], 1e-12)
        close(factors.G[k], dense.matrix(F.G)[ours, joints[k]], 1e-12)
        close(factors.P[k], dense.matrix(F.P)[ours, ours], 1e-12)
        close(factors.P_plus[k], dense.matrix(F.P_plus)[ours, ours], 1e-12)
        p = int(mech.parent[k])
        if p >= 0:
            close(factors.K[k], dense.matrix(F.K)[bodies[p], joints[k]], 1e-12)
            close(factors.psi[k], dense.matrix(F.E_psi)[bodies[p], ours], 1e-12)
        close(batch.D[k][1], factors.D[k], 1e-13)
    D = np.zeros((mech.nv, mech.nv))
    for s, block in zip(joints, factors.D, strict=True):
        D[s, s] = block
    A = mass_matrix(mech, q[1])
    close(factors.coloring @ D @ factors.coloring.T, A, 1e-12)
    close(factors.whitening @ factors.coloring, np.eye(mech.nv), 1e-12)
    close(factors.whitening.T @ np.linalg.inv(D) @ factors.whitening @ A, np.eye(mech.nv), 1e-10)
    assert np.array_equal(np.tril(factors.coloring, -1), np.zeros((mech.nv, mech.nv)))
    assert factors.log_det == lw.dynamics.log_det_mass_matrix(mech, q[1])


@pytest.mark.parametrize("name", ["every hinge, armature", "no armature", "floating"])
def test_logarithm_of_the_determinant(name):
    mech = tree(name)
    q, _, _ = states(mech, 3)
    result = lw.dynamics.log_det_mass_matrix(mech, q)
    for i in range(3):
        sign, expected = np.linalg.slogdet(mass_matrix(mech, q[i]))
        assert sign == 1.0
        close(result[i], expected, 1e-11, scale=float(mech.nv))
    assert isinstance(lw.dynamics.log_det_mass_matrix(mech, q[0]), float)


def test_determinants_too_large_for_a_number():
    """A chain of 400 links of a tonne: the determinant itself overflows."""
    heavy = lw.models.chain(400)
    result = lw.dynamics.log_det_mass_matrix(heavy, np.zeros(400))
    assert np.isfinite(result) and abs(result) > 700.0
    sign, expected = np.linalg.slogdet(lw.mass_matrix(heavy, np.zeros(400)))
    assert sign == 1.0 and abs(result - expected) < 1e-6 * abs(expected)


def test_trouble_is_told():
    """A point mass straight above a hinge that turns about the vertical: nothing resists it."""
    point = lw.SpatialInertia.from_com(1.0, (0.0, 0.0, 1.0), np.zeros((3, 3)))
    builder = lw.Builder("plumb")
    builder.body("post", hinge=lw.hinges.Pin(axis=(0, 0, 1)), inertia=lw.SpatialInertia.zero())
    builder.body("arm", parent="post", hinge=lw.hinges.Pin(axis=(0, 1, 0)), inertia=point)
    mech = builder.build()
    np.testing.assert_allclose(
        lw.dynamics.log_det_mass_matrix(mech, [0.3, 0.5]), 2 * np.log(np.sin(0.5))
    )
    for call in (lw.dynamics.articulated_inertias, lw.dynamics.log_det_mass_matrix):
        with pytest.raises(SingularHingeError, match="hinge of body 'post' is singular"):
            call(mech, [0.0, 0.0])
    both = [[0.0, 0.0], [0.3, 0.5]]
    with pytest.warns(TroubleWarning, match="1 of 2 states") as caught:
        result = lw.dynamics.log_det_mass_matrix(mech, both)
    assert np.isnan(result).tolist() == [True, False]
    assert {warning.filename for warning in caught} == {__file__}
    status = np.zeros(2, dtype=np.int32)
    lw.dynamics.log_det_mass_matrix(mech, both, status=status)
    assert status[0] and not status[1]
    rod = lw.SpatialInertia.from_com(1.0, (0.1, 0.2, -0.5), (0.1, 0.1, 0.02))
    builder = lw.Builder("ball").body("arm", hinge=lw.hinges.Pin(), inertia=rod)
    ball = builder.body("hand", parent="arm", hinge=lw.hinges.Spherical(), inertia=rod).build()
    q = ball.neutral() * 1.1
    for call in (
        lw.dynamics.composite_inertias,
        lw.dynamics.articulated_inertias,
        lw.dynamics.log_det_mass_matrix,
    ):
        with pytest.raises(ModelError, match="quaternion"):
            call(ball, q)
    with pytest.raises(ModelError, match="off the manifold"):
        lw.papers.innovations_factors(ball, q)
    with pytest.raises(ShapeError, match="q has shape"):
        lw.dynamics.composite_inertias(ball, q[:2])


# ------------------------------------------------------------------------------------- oracles


@pytest.mark.oracle
@pytest.mark.parametrize("name", PINOCCHIO)
def test_with_pinocchio(name):
    """Composite inertias of crba, articulated ones of aba, at the joints there.

    Its aba leaves P⁺ behind, except for joints on the ground.
    """
    import pinocchio as pin

    it = in_pinocchio(name)
    force = it.layout.force_to(it.q, it.x)
    pin.aba(it.model, it.data, it.q_pin, it.v_pin, force, pin.Convention.LOCAL)
    R_found = run(lw.plan(R), it.mech, it.q)
    F = family(it.mech)
    P_found, plus = (run(lw.plan(x), it.mech, it.q) for x in (F.P, F.P_plus))
    articulated = [np.array(Y) for Y in it.data.Yaba]
    pin.crba(it.model, it.data, it.q_pin, pin.Convention.LOCAL)
    composites = [Y.matrix() for Y in it.data.Ycrb]
    for k, body in enumerate(it.mech.bodies):
        if not body.hinge.nv:
            continue
        s, joint = slice(6 * k, 6 * k + 6), it.joint(body.name)
        shift = it.mech.body(body.name).outboard.shift  # from the body frame to the hinge frame
        left = P_found if it.model.parents[joint] == 0 else plus
        size = float(np.abs(P_found[s, s]).max())  # beyond a free hinge nothing is left of it
        for ours, theirs in ((R_found, composites), (left, articulated)):
            moved = shift @ ours[s, s] @ shift.T
            close(moved, theirs[joint][np.ix_(SWAPPED, SWAPPED)], 1e-10, scale=size)


@pytest.mark.oracle
@pytest.mark.parametrize("source", MUJOCO)
def test_with_mujoco(source):
    """Composite inertias of MuJoCo: ten numbers about the centre of the tree, in world axes."""
    it = in_mujoco(source)
    result = run(lw.plan(R), it.mech, it.q)
    for k, body in enumerate(it.mech.bodies):
        number = it.model.body(body.name).id
        ten = np.array(it.data.crb[number])
        xx, yy, zz, xy, xz, yz = ten[:6]
        J = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        theirs = lw.SpatialInertia(ten[9], ten[6:9], J).matrix
        at = Pose(np.eye(3), it.data.subtree_com[it.model.body_rootid[number]])
        X = at.inverse() @ it.mech.pose(it.q, body.name)
        moved = X.shift @ result[6 * k : 6 * k + 6, 6 * k : 6 * k + 6] @ X.shift.T
        close(moved, theirs, 1e-10)
