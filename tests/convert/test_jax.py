"""Functions of JAX: values, derivatives, and how they are called."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import bias, mass, tau, vdot
from linkwise.errors import ExpressionError, ModelError, ShapeError, TroubleWarning

jax = pytest.importorskip("jax")
jnp = jax.numpy
pytestmark = pytest.mark.prove

FORWARD = mass.inv @ (tau - bias)
PLAIN = ["pin", "prismatic", "helical", "universal"]  # q̇ = v
TREE = lw.models.random_tree(4, 2, mass_ratio=3.0, hinges=PLAIN)
FLOATING = lw.models.random_tree(3, 5, mass_ratio=3.0, floating=True)
CLOSED = lw.models.four_bar()


@pytest.fixture(autouse=True)
def double_precision():
    """64 bits, for the time of a test."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def state(mech, count=None, seed=0):
    rng = np.random.default_rng(seed)
    lead = () if count is None else (count,)
    q = np.array([mech.random(rng) for _ in range(count or 1)]).reshape(*lead, -1)
    return q, *rng.standard_normal((2, *lead, mech.nv))


def near(a, b, part=1e-11):
    """Equal up to a part of the largest entry, which is not zero."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape, (a.shape, b.shape)
    size = np.abs(b).max()
    assert size > 1e-6 and np.abs(a - b).max() < part * size


def tangent(mech, q, jacobian):
    """The derivative by velocities of the hinges, from that by entries of q: J(q) N(q)."""
    h = 1e-6
    steps = np.eye(mech.nv)
    columns = [(mech.integrate(q, h * e) - mech.integrate(q, -h * e)) / (2 * h) for e in steps]
    return np.asarray(jacobian) @ np.array(columns).T


# ---------------------------------------------------------------------------------------- values


@pytest.mark.parametrize("mech", [TREE, FLOATING, CLOSED], ids=lambda mech: mech.name)
@pytest.mark.parametrize("lead", [(), (1,), (7,), (3, 5), (2, 1, 9), (0,)])
def test_values_with_any_leading_axes(mech, lead):
    q, v, tau = state(mech, 135)
    count = int(np.prod(lead))
    q, v, tau = (x[:count].reshape(*lead, x.shape[-1]) for x in (q, v, tau))
    f = lw.convert.to_jax("forward_dynamics", mech)
    result = f(q, v, tau)
    assert result.shape == (*lead, mech.nv) and result.dtype == np.float64
    if count:
        flat = [x.reshape(count, -1) for x in (q, v, tau)]
        near(result.reshape(count, -1), lw.forward_dynamics(mech, *flat), 1e-9)


def test_leading_axes_are_broadcast():
    q, v, tau = state(TREE, 6)
    f = lw.convert.to_jax("forward_dynamics", TREE)
    each = lw.forward_dynamics(
        TREE, q[:, None].repeat(6, 1).reshape(36, -1), np.tile(v, (6, 1)), tau[0]
    )
    near(f(q[:, None], v, tau[0]).reshape(36, -1), each)
    near(
        jax.vmap(jax.vmap(f, (None, 0, None)), (0, None, None))(q, v, tau[0]),
        f(q[:, None], v, tau[0]),
    )


def test_large_batches_run_on_several_threads():
    q, v, tau = np.random.default_rng(1).standard_normal((3, 30_011, TREE.nv))
    f = jax.jit(lw.convert.to_jax("forward_dynamics", TREE))
    for _ in range(3):
        near(f(q, v, tau), lw.forward_dynamics(TREE, q, v, tau), 1e-10)


def test_float32_and_other_numbers():
    q, v, tau = state(TREE)
    f = lw.convert.to_jax("forward_dynamics", TREE)
    expected = lw.forward_dynamics(TREE, q, v, tau)
    single = [jnp.asarray(x, jnp.float32) for x in (q, v, tau)]
    assert f(*single).dtype == np.float32
    near(f(*single), expected, 1e-4)
    near(jax.jacfwd(f)(*single), jax.jacfwd(f)(q, v, tau), 1e-3)
    near(f(list(q), list(v), tau=list(tau)), expected)
    full = np.arange(TREE.nv)
    near(f(q, full, full), lw.forward_dynamics(TREE, q, 1.0 * full, 1.0 * full))


def test_several_results_nodes_parameters_and_parts():
    q, v, tau = state(TREE)
    both = lw.convert.to_jax({"M": mass, "c": bias}, TREE)(q=q, v=v)
    near(both["M"], lw.mass_matrix(TREE, q))
    near(both["c"], lw.bias_force(TREE, q, v))
    node = TREE.nodes[0].name
    near(lw.convert.to_jax("jacobian", TREE, nodes=[node])(q), lw.jacobian(TREE, q, node))
    row = lw.convert.to_jax(mass, TREE, rows=[1])(q)
    near(row, lw.mass_matrix(TREE, q)[1:2])
    f = lw.convert.to_jax(mass @ vdot + bias, TREE, parameters=["gravity"])
    given = {"q": q, "v": v, "vdot": tau}
    at = jax.jacfwd(lambda g: f(**given, gravity=g))(jnp.array(TREE.gravity))
    rest = lw.inverse_dynamics(TREE.with_gravity([0.0, 0.0, 0.0]), q, v, tau)
    near(rest + np.asarray(at) @ [1.0, 2.0, 3.0], f(**given, gravity=jnp.array([1.0, 2.0, 3.0])))


# ----------------------------------------------------------------------------------- derivatives


def test_jacobians_are_those_of_the_library():
    q, v, tau = state(TREE)
    f = lw.convert.to_jax("forward_dynamics", TREE)
    expected = lw.forward_dynamics_derivatives(TREE, q, v, tau)
    for jacobian in (jax.jacfwd, jax.jacrev):
        for ours, theirs in zip(jax.jit(jacobian(f, (0, 1, 2)))(q, v, tau), expected, strict=True):
            near(ours, theirs)


def test_kernels_of_all_jacobians_are_differentiated():
    q, v, tau = state(TREE)
    f = lw.convert.to_jax("forward_dynamics", TREE)
    all_three = lw.convert.to_jax("forward_dynamics_derivatives", TREE)
    expected = lw.forward_dynamics_derivatives(TREE, q, v, tau)
    for name, jacobian in all_three(q, v, tau).items():
        near(jacobian, getattr(expected, name))
    second = jax.jacfwd(lambda q: all_three(q, v, tau)["v"])(q)
    near(second, jax.jacfwd(jax.jacrev(f, 1))(q, v, tau), 1e-10)
    with pytest.raises(ModelError, match="by name"):
        lw.convert.to_jax("forward_dynamics_derivatives", CLOSED)


def test_jacobians_by_quaternions():
    q, v, tau = state(FLOATING)
    f = lw.convert.to_jax("forward_dynamics", FLOATING)
    expected = lw.forward_dynamics_derivatives(FLOATING, q, v, tau)
    for jacobian in (jax.jacfwd, jax.jacrev):
        by_q, by_v, by_tau = jacobian(f, (0, 1, 2))(q, v, tau)
        near(tangent(FLOATING, q, by_q), expected.q, 1e-8)
        near(by_v, expected.v)
        near(by_tau, expected.tau)
        assert np.abs(by_q[:, :4] @ q[:4]).max() < 1e-12 * np.abs(by_q).max()
    near(f(q * np.array([3.0] * 4 + [1.0] * (FLOATING.nq - 4)), v, tau), f(q, v, tau))


CHECKED = {
    "tree": (TREE, "forward_dynamics"),
    "floating": (FLOATING, "inverse_dynamics"),
    "closed": (CLOSED, "forward_dynamics"),
    "ball": (
        lw.models.random_tree(2, 9, mass_ratio=3.0, hinges=["spherical", "pin"]),
        "mass_matrix",
    ),
}


@pytest.mark.parametrize("case", CHECKED)
def test_first_and_second_derivatives_against_differences(case):
    from jax.test_util import check_grads

    mech, name = CHECKED[case]
    f = lw.convert.to_jax(name, mech)
    given = state(mech, seed=3)[: 1 if name == "mass_matrix" else 3]
    check_grads(f, given, order=2, atol=2e-5, rtol=2e-5, eps=1e-4)


@pytest.mark.parametrize("name", ["gravity", "armature"])
@pytest.mark.parametrize("of", [FORWARD, mass @ vdot + bias], ids=str)
def test_derivatives_by_parameters(of, name):
    from jax.test_util import check_grads

    mech = lw.models.pendulum(2)
    f = lw.convert.to_jax(of, mech, parameters=[name])
    numbers = np.array([0.5, -0.3, -9.0] if name == "gravity" else [0.2, 0.3])
    check_grads(f, (*state(mech, seed=3), numbers), order=2, atol=2e-5, rtol=2e-5, eps=1e-4)


@pytest.mark.parametrize("mech", [TREE, FLOATING], ids=lambda mech: mech.name)
def test_hessians_agree_however_they_are_taken(mech):
    q, v, tau = state(mech)
    f = lw.convert.to_jax("forward_dynamics", mech)

    def cost(q, v):
        return jnp.sin(f(q, v, tau)).sum()

    mixed = jax.jit(jax.hessian(cost, (0, 1)))(q, v)
    near(mixed[0][0], mixed[0][0].T)
    near(mixed[0][1], mixed[1][0].T)
    for outer in (jax.jacfwd, jax.jacrev):
        for inner in (jax.jacfwd, jax.jacrev):
            near(outer(inner(cost))(q, v), mixed[0][0])


def test_gradients_of_batches_with_shared_inputs():
    q, v, tau = state(TREE, 11)
    f = lw.convert.to_jax("forward_dynamics", TREE)

    def cost(q, v, tau):
        return (f(q, v, tau) ** 2).sum()

    shared = jax.grad(cost, (0, 1, 2))(q, v[0], tau)
    single = [jax.grad(cost, (0, 1, 2))(q[i], v[0], tau[i]) for i in range(11)]
    near(shared[0], [x[0] for x in single])
    near(shared[1], sum(x[1] for x in single))
    near(shared[2], [x[2] for x in single])
    near(jax.vmap(jax.grad(cost), (0, None, 0))(q, v[0], tau), shared[0])
    near(
        jax.vmap(jax.hessian(cost), (0, None, 0))(q, v[0], tau)[4],
        jax.hessian(cost)(q[4], v[0], tau[4]),
    )


def test_rollouts_are_differentiated():
    q, v, tau = state(TREE)
    f, h = lw.convert.to_jax("forward_dynamics", TREE), 1e-2

    def last(v):
        def step(x, _):
            q, v = x
            v = v + h * f(q, v, tau)
            return (q + h * v, v), None

        return jax.lax.scan(step, (jnp.asarray(q), v), None, length=20)[0][0].sum()

    slope = jax.jit(jax.grad(last))(v)
    steps = [(last(v + e) - last(v - e)) / 2e-6 for e in 1e-6 * np.eye(TREE.nv)]
    near(slope, steps, 1e-7)


# ------------------------------------------------------------------------------------- promises


def test_states_without_a_result_are_nan_and_have_a_code():
    q, v, tau = state(FLOATING, 600)
    q[17, :4] = 0.0
    v[400, 0] = np.inf
    f = lw.convert.to_jax("forward_dynamics", FLOATING, status=True)
    result, codes = jax.jit(f)(q, v, tau)
    bad = np.flatnonzero(codes)
    assert list(bad) == [17, 400] and codes.shape == (600,) and codes.dtype == np.int32
    assert np.isnan(result[bad]).all() and np.isfinite(np.delete(result, bad, 0)).all()
    with pytest.warns(TroubleWarning, match="in the gradient of"):
        gradient = jax.vmap(jax.grad(lambda q, v: f(q, v, 1.0 * v)[0].sum()))(q, v)
    assert np.isnan(gradient[bad]).any(1).all() and np.isfinite(np.delete(gradient, bad, 0)).all()


def test_nothing_but_machine_code_runs():
    q, v, tau = (jnp.asarray(x) for x in state(TREE, 64))
    f = lw.convert.to_jax("forward_dynamics", TREE)
    compiled = jax.jit(jax.vmap(jax.grad(lambda *x: f(*x).sum()))).lower(q, v, tau).compile()
    text = compiled.as_text()
    assert "linkwise_cpu_many" in text and "callback" not in text
    calls = list[str]()
    sys.setprofile(lambda frame, event, arg: calls.append(frame.f_code.co_filename))
    try:
        compiled(q, v, tau).block_until_ready()
    finally:
        sys.setprofile(None)
    assert calls and not any("linkwise" in file for file in calls)


def test_arrays_are_not_copied():
    q, v, tau = (jnp.asarray(x) for x in state(TREE, 64))
    f = jax.jit(lw.convert.to_jax("forward_dynamics", TREE))
    text = f.lower(q, v, tau).compile().as_text()
    entry = text[text.index("ENTRY") :]
    assert "custom-call" in entry and "copy" not in entry and "fusion" not in entry


def test_other_functions_name_the_one_that_can_be_traced():
    q, kernel = TREE.neutral(), lw.compile(mass, TREE)
    v, options = np.zeros(TREE.nv), {"duration": 0.1, "step": 0.01}
    for call in (
        lambda q: lw.forward_dynamics(TREE, q, q, q),
        lambda q: kernel(q),
        lambda q: lw.rollout(TREE, q, v, tau=v, **options).q,
        lambda q: lw.linearize(TREE, q, v, v, step=0.01).A,
    ):
        with pytest.raises(ShapeError, match=r"q is being traced .* lw\.convert\.to_jax"):
            jax.jit(call)(q)


def test_control_laws():
    arm = lw.models.pendulum(2)
    law = lw.control_law(arm, lw.Task.joints([arm.bodies[1].hinge_name]), kp=4.0, kv=2.0)
    rng = np.random.default_rng(0)
    given = [rng.uniform(0.5, 1.0, size) for _, size in law.kernel.signature.inputs]
    f = lw.convert.to_jax(law, arm)
    near(f(*given), law.kernel(*given))
    slope = jax.jacfwd(f)(*given)
    expected = lw.compile(lw.jvp(law, "q"), arm)
    for k, e in enumerate(np.eye(arm.nv)):
        near(slope[:, k], expected(*given, e))


def test_errors_say_what_fits():
    q, v, tau = state(TREE, 3)
    f = lw.convert.to_jax("forward_dynamics", TREE)
    with pytest.raises(ShapeError, match="this function takes q, v, tau"):
        f(q, v)
    with pytest.raises(ShapeError, match=rf"v has shape \(3, {TREE.nv - 1}\)"):
        f(q, v[:, 1:], tau)
    with pytest.raises(ShapeError, match="cannot be broadcast"):
        f(q, v[:2], tau)
    with pytest.raises(ShapeError, match="complex"):
        f(q, v + 1j, tau)
    with pytest.raises(ExpressionError, match="by name"):
        lw.convert.to_jax("forward_dynamics", TREE, rows=[0])
    with pytest.raises(lw.errors.UnknownNameError, match="forward_dynamics"):
        lw.convert.to_jax("forward_dynamic", TREE)
    long = lw.models.chain(80)
    g, (q, v, tau) = lw.convert.to_jax("forward_dynamics", long), state(long)
    near(g(q, v, tau), lw.forward_dynamics(long, q, v, tau), 1e-8)
    with pytest.raises(ExpressionError, match="straight code would be too long"):
        jax.grad(lambda q: g(q, v, tau).sum())(q)


def gimbal(inertia):
    """A body on a gimbal hinge, which is locked where the second angle is a right one."""
    part = lw.SpatialInertia.solid_box(inertia, (0.1, 0.2, 0.3))
    return lw.Builder("gimbal").body("rotor", hinge=lw.hinges.Gimbal(), inertia=part).build()


@pytest.mark.parametrize("count", [3, 5000])
def test_singular_states_are_reported_and_the_others_are_right(count):
    """Values and gradients, once for each machine code; a large batch has several chunks."""
    mech = gimbal(1.0 + count)  # machine code that no other test has met
    f, (q, v, force) = lw.convert.to_jax("forward_dynamics", mech), state(mech, count)
    q = np.array(q)
    q[count // 2, 1] = np.pi / 2
    good = np.arange(count) != count // 2

    def cost(q, v, force):
        return jnp.sum(f(q, v, force) ** 2)

    each = jax.jit(jax.vmap(jax.grad(cost)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = np.asarray(each(q[good], v[good], force[good]))
        assert np.isfinite(f(q[good], v[good], force[good])).all()
    with pytest.warns(TroubleWarning, match=r"state has no result in 𝓜⁻¹ .*hinge of body 'rotor'"):
        values = np.asarray(f(q, v, force))
    assert np.isnan(values[~good]).all() and np.isfinite(values[good]).all()
    with pytest.warns(TroubleWarning, match=r"no result in the gradient of 𝓜⁻¹ .*status=True"):
        slopes = np.asarray(each(q, v, force))
    assert np.isnan(slopes[~good]).all()
    near(slopes[good], plain)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        each(q, v, force).block_until_ready()  # reported before
        codes = lw.convert.to_jax("forward_dynamics", mech, status=True)(q, v, force)[1]
    assert np.flatnonzero(codes).tolist() == [count // 2]


def test_jax_raises_where_it_looks_for_nan():
    mech = gimbal(2.0)
    f, (q, v, force) = lw.convert.to_jax("forward_dynamics", mech), state(mech)
    q = np.array(q)
    q[1] = np.pi / 2
    slope = jax.jit(jax.grad(lambda q: jnp.sum(f(q, v, force))))
    with jax.debug_nans(True), warnings.catch_warnings():
        warnings.simplefilter("ignore", TroubleWarning)
        with pytest.raises(FloatingPointError):
            f(q, v, force).block_until_ready()
        with pytest.raises(FloatingPointError):
            slope(q).block_until_ready()
    with jax.disable_jit():
        near(f(1.0 + 0.0 * q, v, force), lw.forward_dynamics(mech, 1.0 + 0.0 * q, v, force))
