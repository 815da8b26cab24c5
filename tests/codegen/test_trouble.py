"""States in trouble: the code says what and where, and the rest of the batch does not notice."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import D, J, bias, mass, tau
from linkwise.codegen.scalar import status
from linkwise.errors import (
    ModelError,
    ShapeError,
    SingularHingeError,
    TooLargeError,
    TroubleWarning,
)

FORWARD = mass.inv @ (tau - bias)


def states(mech, count, seed=0):
    rng = np.random.default_rng(seed)
    q = np.array([mech.random(rng) for _ in range(count)])
    return q, rng.standard_normal((count, mech.nv)), rng.standard_normal((count, mech.nv))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("count", [1, 5, 16, 37])
def test_every_kind_of_trouble_stays_in_its_row(dtype, count):
    mech = lw.models.quadruped()
    kernel = lw.compile(FORWARD, mech, dtype=dtype)
    q, v, force = (x.astype(dtype) for x in states(mech, count))
    clean = kernel(q, v, force)
    for row in {0, count // 2, count - 1}:
        for value in (np.nan, np.inf, -np.inf):
            for which, entry in ((0, 9), (1, 3), (2, 17)):
                arrays = [q.copy(), v.copy(), force.copy()]
                arrays[which][row, entry] = value
                codes = np.full(count, -1, np.int32)
                result = kernel(*arrays, status=codes)
                assert codes[row] == status.INPUT
                assert np.isnan(result[row]).all()
                others = np.arange(count) != row
                assert (codes[others] == 0).all()
                np.testing.assert_array_equal(result[others], clean[others])
        turned = q.copy()
        turned[row, :4] *= 1.01
        codes = np.full(count, -1, np.int32)
        result = kernel(turned, v, force, status=codes)
        assert codes[row] == status.quaternion(0)
        assert np.count_nonzero(codes) == 1
        assert "quaternion of body 'trunk'" in kernel.describe(codes[row])


def test_a_single_state_raises_and_names_the_body():
    mech = lw.models.quadruped()
    kernel = lw.compile(FORWARD, mech)
    q, v, force = (x[0] for x in states(mech, 1))
    with pytest.raises(ModelError, match=r"the quaternion of body 'trunk' .*normalise"):
        kernel(np.concatenate([2.0 * q[:4], q[4:]]), v, force)
    bad = v.copy()
    bad[5] = np.nan
    with pytest.raises(ModelError, match=r"v is not finite at .floating_base.v_z. \(entry 5\)"):
        kernel(q, bad, force)
    with pytest.raises(TooLargeError, match="the result is not finite: numbers are too large"):
        kernel(q, 1e200 * np.ones_like(v), force)
    code = np.zeros((), np.int32)
    assert np.isnan(kernel(q, bad, force, status=code)).all()
    assert code == status.INPUT
    with pytest.warns(TroubleWarning, match=r"2 of 3 states .* row 0: an input is not finite"):
        kernel(np.stack([q, q, q]), np.stack([bad, v, bad]), force)


def test_a_hinge_is_singular_by_rounding_error_too():
    """Two pins on one line, nothing between them: D is zero but for rounding, at any angle."""
    b = lw.Builder("twice")
    axis = (0.48, 0.6, 0.64)
    b.body("inner", "world", lw.hinges.Pin(axis), inboard=(0.3, 0.1, 0.2))
    b.body(
        "outer",
        "inner",
        lw.hinges.Pin(axis),
        inertia=lw.SpatialInertia.from_com(1.7, (0.31, 0.17, 0.23), (0.11, 0.13, 0.17)),
    )
    mech = b.build()
    for dtype in (np.float64, np.float32):
        kernel = lw.compile(mass.inv @ tau, mech, dtype=dtype)
        q = np.random.default_rng(1).uniform(-3, 3, (50, 2)).astype(dtype)
        codes = np.zeros(50, np.int32)
        kernel(q, np.ones(2, dtype), status=codes)
        assert set(codes.tolist()) <= {status.hinge(0), status.RESULT}
        assert (codes == status.hinge(0)).sum() > 40


@pytest.mark.prove
def test_light_bodies_between_heavy_ones_are_no_trouble():
    for seed in range(6):
        mech = lw.models.random_tree(9, seed, mass_ratio=1e8)
        kernel = lw.compile(FORWARD, mech)
        codes = np.zeros(20, np.int32)
        kernel(*states(mech, 20, seed), status=codes)
        assert not codes.any(), kernel.describe(codes.max())


def test_a_singular_matrix_over_nodes_has_its_own_code():
    """The tip of a stretched arm cannot be pushed along it: J 𝓜⁻¹ J* has no inverse."""
    mech = lw.models.seven_dof_arm()
    kernel = lw.compile((J @ mass.inv @ J.T).inv, mech, nodes=[mech.bodies[-1].name])
    q = np.array([mech.random(i) for i in range(9)])
    q[4] = 0.0
    codes = np.zeros(9, np.int32)
    kernel(q, status=codes)
    np.testing.assert_array_equal(np.flatnonzero(codes), [4])
    with pytest.raises(SingularHingeError, match="a matrix that has to be inverted is singular"):
        kernel(q[4])


def test_status_and_out_have_to_fit():
    mech = lw.models.pendulum(2)
    kernel = lw.compile(FORWARD, mech)
    q, v, force = states(mech, 4)
    with pytest.raises(ShapeError, match=r"status is .*contiguous array of int32 \(4,\)"):
        kernel(q, v, force, status=np.zeros(4))
    with pytest.raises(ShapeError, match=r"out is float64 \(2, 4\); it must be .* \(4, 2\)"):
        kernel(q, v, force, out=np.zeros((2, 4)))
    locked = np.zeros((4, 2))
    locked.setflags(write=False)
    with pytest.raises(ShapeError, match="read-only"):
        kernel(q, v, force, out=locked)
    with pytest.raises(ShapeError, match="threads is 0"):
        kernel(q, v, force, threads=0)
    with pytest.raises(ShapeError, match="q is not an array of real numbers"):
        kernel("abc", v, force)


@pytest.mark.parametrize("rolled", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_body_that_is_named_is_the_first_in_trouble(rolled, dtype):
    """D = 0 at a hinge makes NaN of all that carry it; they are not the ones to look at."""
    mech = lw.models.chain(4)
    kernel = lw.compile(
        mass.inv @ (tau - bias), mech, parameters=["armature"], rolled=rolled, dtype=dtype
    )
    q, v, force = (x.astype(dtype) for x in states(mech, 9))
    armature = np.zeros((9, mech.nv), dtype)
    armature[4, 3] = -1e6
    armature[5, 2] = -1e6
    plain = kernel(q, v, force, np.zeros(mech.nv, dtype))
    codes = np.empty(9, np.int32)
    result = kernel(q, v, force, armature, status=codes)
    assert codes.tolist() == [0, 0, 0, 0, status.hinge(3), status.hinge(2), 0, 0, 0]
    np.testing.assert_array_equal(result[[3, 6]], plain[[3, 6]])
    # The pivot of the tip is zero to the last bit: what follows is not small, it is NaN.
    tip = lw.compile(D, mech, dtype=dtype)(q[0])[-1, -1]
    one = np.zeros(mech.nv, dtype)
    one[3] = -tip
    code = np.empty((), np.int32)
    kernel(q[0], v[0], force[0], one, status=code)
    assert code == status.hinge(3)
