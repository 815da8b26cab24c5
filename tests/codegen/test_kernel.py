"""Compiled kernels against dense matrices: one state, batches of odd sizes, every kind of hinge."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import H, J, K, M, P, bias, f, mass, phi, psi, tau, vdot
from linkwise.algebra.dense import Dense
from linkwise.errors import ExpressionError, ModelError, ShapeError, UnknownNameError

pytestmark = pytest.mark.shipped

EXPRESSIONS = {
    "forward dynamics": mass.inv @ (tau - bias),
    "the bare tree": (H @ phi @ M @ phi.T @ H.T).inv @ (tau - bias),
    "inverse dynamics": mass @ vdot + bias,
    "mass matrix": mass,
    "inverse mass matrix": mass.inv,
    "Jacobian": J,
    "operational-space compliance": J @ mass.inv @ J.T,
    "external forces": mass.inv @ (tau - bias + J.T @ f),
    "an odd one": H @ psi @ P @ phi.T @ M @ phi @ K @ tau,
}


def values(mech, rng, nodes):
    return {
        "tau": rng.standard_normal(mech.nv),
        "vdot": rng.standard_normal(mech.nv),
        "f": rng.standard_normal(6 * len(nodes)),
    }


def agree(result, expected, bound=1e-9):
    scale = max(1e-9, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(result / scale, expected / scale, atol=bound)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_kernels_agree_with_matrices(name):
    expr = EXPRESSIONS[name]
    for seed in range(4 if expr.is_vector else 2):  # matrices take longer to compile
        mech = lw.models.random_tree(6 if expr.is_vector else 4, seed)
        nodes = [mech.bodies[-1].name, mech.bodies[2].name]
        kernel = lw.compile(expr, mech, nodes=nodes)
        rng = np.random.default_rng(seed)
        q, v, given = mech.random(rng), mech.random_velocity(rng), values(mech, rng, nodes)
        arrays = {"q": q, "v": v, **given}
        result = kernel(**{k: arrays[k] for k in kernel.arguments})
        agree(result, Dense(mech, q, v, nodes=nodes, values=given)(expr))
        again = kernel(**{k: arrays[k] for k in kernel.arguments})
        np.testing.assert_array_equal(result, again)


@pytest.mark.few(2)
@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 33])
def test_batches_of_any_size_equal_single_states(count):
    mech = lw.models.random_tree(5, 3)
    kernel = lw.compile(EXPRESSIONS["forward dynamics"], mech)
    rng = np.random.default_rng(count)
    q = np.array([mech.random(rng) for _ in range(count)])
    v, tau_ = rng.standard_normal((2, count, mech.nv))
    batch = kernel(q, v, tau_)
    assert batch.shape == (count, mech.nv)
    for i in range(count):
        agree(batch[i], kernel(q[i], v[i], tau_[i]), 1e-12)
    one_force = kernel(q, v, tau_[0])  # an array without the batch axis serves all states
    agree(one_force[-1], kernel(q[-1], v[-1], tau_[0]), 1e-12)
    strided = kernel(np.repeat(q, 2, axis=1)[:, ::2], np.asfortranarray(v), tau_)
    np.testing.assert_array_equal(strided, batch)


def test_matrices_come_in_batches():
    mech = lw.models.seven_dof_arm()
    kernel = lw.compile(mass, mech)
    q = np.array([mech.random(i) for i in range(5)])
    out = kernel(q)
    assert out.shape == (5, 7, 7)
    for i in range(5):
        agree(out[i], Dense(mech, q[i])(mass), 1e-12)


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 100.0, 9.9e4, 1e6, 1e12])
def test_angles_of_any_size(scale):
    """The tip of a pendulum: sines and cosines of the compiled code against the C library."""
    mech = lw.models.pendulum(1)
    kernel = lw.compile(mass.inv @ (tau - bias), mech)
    angles = scale * np.random.default_rng(0).uniform(-1, 1, (64, 1))
    result = kernel(angles, np.zeros((64, 1)), np.zeros((64, 1)))
    for i in range(64):
        expected = Dense(mech, angles[i], values={"tau": np.zeros(1)})(mass.inv @ (tau - bias))
        np.testing.assert_allclose(result[i], expected, rtol=1e-13, atol=1e-13)


def test_explain_and_counts():
    kernel = lw.compile(mass.inv @ (tau - bias), lw.models.pendulum(2))
    text = kernel.explain()
    for part in ("whitened propagation", "for k = tips … base", "operations for one state"):
        assert part in text
    assert kernel.ops["mul"] > 0
    assert "define void" in kernel.source


@pytest.mark.oracle
def test_operation_counts_of_panda():
    """Counts that no noise can touch: an arm of seven links with ±90° twists."""
    from importlib import metadata

    try:
        files = metadata.files("example-robot-data") or []
    except metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    path = next(str(x.locate()) for x in files if x.name == "panda.urdf")
    panda = lw.load(path)
    fingers = [b.hinge_name for b in panda.bodies if "finger" in b.name]
    arm = panda.without(*(c.name for c in panda.couplings)).lock(fingers).merge_locked()
    forward = lw.compile(mass.inv @ (tau - bias), arm).ops
    inverse = lw.compile(mass @ vdot + bias, arm).ops
    assert forward["mul"] + forward["add"] + forward["sub"] <= 1900
    assert inverse["mul"] + inverse["add"] + inverse["sub"] <= 1000


def test_bad_input_is_named():
    mech = lw.models.pendulum(2)
    kernel = lw.compile(mass.inv @ (tau - bias), mech)
    q = np.zeros(2)
    with pytest.raises(ShapeError, match="tau is missing; this kernel takes q, v, tau"):
        kernel(q, q)
    with pytest.raises(ShapeError, match=r"v has shape \(3,\); it must be \(2,\) or \(batch, 2\)"):
        kernel(q, np.zeros(3), q)
    with pytest.raises(ModelError, match="tau is not finite"):
        kernel(q, q, np.array([0.0, np.nan]))
    with pytest.raises(ShapeError, match="force is not known"):
        kernel(q, q, q, force=q)
    with pytest.raises(ShapeError, match="v has 3 rows; the batch has 4"):
        kernel(np.zeros((4, 2)), np.zeros((3, 2)), q)


def test_what_cannot_be_compiled_is_told():
    mech = lw.models.pendulum(2)
    with pytest.raises(ModelError, match="dtype is 'foo'; it must be float64 or float32"):
        lw.compile(mass, mech, dtype="foo")
    with pytest.raises(ExpressionError, match="takes a mechanism, not None"):
        lw.compile(mass, None)
    with pytest.raises(ModelError, match="rolled of compile must be True or False or None"):
        lw.compile(mass, mech, rolled="yes")
    with pytest.raises(UnknownNameError, match="no target called 'gpu'"):
        lw.compile(mass, mech, target="gpu")


@pytest.mark.parametrize("expr", [mass.inv, mass.inv @ (tau - bias), bias], ids=str)
def test_sweeps_in_numpy_take_what_the_kernel_takes(expr):
    mech = lw.models.pendulum(2)
    kernel = lw.compile(expr, mech, target="numpy")
    assert kernel.arguments == lw.compile(expr, mech).arguments
