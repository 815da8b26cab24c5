"""Derivatives of kernels: against differences and the algebra, for expressions and formulas."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import J, bias, mass, tau, v, vdot, vector
from linkwise.codegen.formula import Formula
from linkwise.codegen.scalar.graph import Graph
from linkwise.codegen.sensitivity import pulled, pushed
from linkwise.errors import ExpressionError
from tests.cases import close

FORWARD = mass.inv @ (tau - bias)


def every_operation(at):
    """A result that goes through every operation of a graph."""
    q, v = at.q, at.v
    up = q[0] * q[0] + 2.0
    root = up.sqrt()
    chosen = at.scalar(v[0]).graph.gate(at.scalar(v[0]).node, at.scalar(v[1] * q[1]).node)
    gated = type(at.scalar(v[0]))(at.graph, chosen)
    return [root.sin() / up, (v[1] - root).cos() * v[0], -gated + 1.0 / up]


EVERY = Formula(every_operation)


def called(formula, mech, given, nodes=()):
    kernel = lw.compile(formula, mech, nodes=nodes)
    return kernel(*(given[name] for name in kernel.arguments))


def state(mech, seed=0):
    rng = np.random.default_rng(seed)
    q, speed = mech.random(rng), mech.random_velocity(rng)
    x, dq, dv, dx = rng.standard_normal((4, mech.nv))
    return {"q": q, "v": speed, "tau": x, "vdot": x, "dq": dq, "dv": dv, "dtau": dx, "dvdot": dx}


def moved(mech, given, wrt, h):
    """The inputs after a step along their directions."""
    there = dict(given)
    for name in wrt:
        d = h * given[f"d{name}"]
        there[name] = mech.integrate(given["q"], d) if name == "q" else given[name] + d
    return there


def differences(of, mech, given, wrt, nodes=(), h=1e-5):
    there, back = (called(of, mech, moved(mech, given, wrt, s * h), nodes) for s in (1, -1))
    return (np.ravel(there) - np.ravel(back)) / (2 * h)


CASES = {
    "forward dynamics": (lw.models.random_tree(4, 2, mass_ratio=3.0), FORWARD, ("q", "v", "tau")),
    "floating": (
        lw.models.random_tree(3, 5, mass_ratio=3.0, floating=True),
        mass @ vdot + bias,
        ("q", "v", "vdot"),
    ),
    "a matrix": (lw.models.puma560(), mass, ("q",)),
    "a number": (lw.models.puma560(), v.T @ mass @ v, ("q", "v")),
    "every operation": (lw.models.pendulum(2), EVERY, ("q", "v")),
}


@pytest.mark.parametrize("name", CASES)
def test_along_a_direction_and_in_reverse(name):
    mech, of, wrt = CASES[name]
    given = state(mech, 3)
    expected = differences(of, mech, given, wrt)
    size = np.abs(expected).max()
    assert size > 1e-2
    along = np.ravel(called(lw.jvp(of, *wrt), mech, given))
    assert np.abs(along - expected).max() < 1e-8 * max(size, 1.0)
    weight = np.random.default_rng(1).standard_normal(len(along))
    gradient = called(lw.vjp(of, *wrt), mech, {**given, "weight": weight})
    assert list(gradient) == list(wrt)
    total = sum(gradient[n] @ given[f"d{n}"] for n in wrt)
    assert abs(total - weight @ along) < 1e-12 * np.abs(weight) @ np.abs(along)


def test_the_algebra_gives_the_same():
    mech = CASES["forward dynamics"][0]
    given = state(mech)
    d = lw.forward_dynamics_derivatives(mech, given["q"], given["v"], given["tau"])
    along = called(lw.jvp(FORWARD, "q", "v", "tau"), mech, given)
    expected = d.q @ given["dq"] + d.v @ given["dv"] + d.tau @ given["dtau"]
    assert np.abs(along - expected).max() < 1e-11 * np.abs(expected).max()


def test_closed_chains():
    """Of accelerations with the loop held, which are a function of any q."""
    mech = lw.models.four_bar()
    of = lw.loops.closed_expression(mech, "forward_dynamics")
    nodes = lw.loops.closure_nodes(mech)
    given = state(mech, 2)
    given["q"] = lw.loops.assemble(mech, given["q"]).q
    expected = differences(of, mech, given, ("q", "v", "tau"), nodes)
    along = called(lw.jvp(of, "q", "v", "tau"), mech, given, nodes)
    assert np.abs(expected).max() > 1e-2
    assert np.abs(along - expected).max() < 1e-7 * np.abs(expected).max()


def test_twice():
    """The Hessian of the kinetic energy by velocities is the mass matrix."""
    mech = lw.models.puma560()
    given = state(mech)
    energy = 0.5 * (v.T @ mass @ v)
    twice = lw.jvp(lw.vjp(energy, "v"), "v")
    result = called(twice, mech, {**given, "weight": np.ones(1)})
    expected = lw.mass_matrix(mech, given["q"]) @ given["dv"]
    assert np.abs(result - expected).max() < 1e-12 * np.abs(expected).max()


def through_the_graph(expr):
    """The same quantity as a formula, which only its graph can differentiate."""
    return Formula(lambda at: at.value(expr))


def test_products_with_derivatives_of_forward_dynamics_cost_at_most_two_and_a_half_of_it():
    arm = lw.models.seven_dof_arm()
    plain = sum(lw.compile(FORWARD, arm).ops.values())
    for product in (lw.jvp, lw.vjp):
        algebra = lw.compile(product(FORWARD, "q", "v", "tau"), arm)
        graph = lw.compile(product(through_the_graph(FORWARD), "q", "v", "tau"), arm)
        assert algebra.arguments == graph.arguments
        assert sum(algebra.ops.values()) <= 2.5 * plain < sum(graph.ops.values())


@pytest.mark.parametrize("product", [lw.jvp, lw.vjp])
@pytest.mark.parametrize(
    ("expr", "wrt"), [(FORWARD, ("tau", "q")), (mass @ vdot + bias, ("q", "vdot")), (J @ v, ("q",))]
)
def test_the_form_with_fewer_operations_runs(product, expr, wrt):
    mech = lw.models.random_tree(4, 2, mass_ratio=3.0)
    nodes = (mech.bodies[-1].name,)
    chosen = lw.compile(product(expr, *wrt), mech, nodes=nodes)
    graph = lw.compile(product(through_the_graph(expr), *wrt), mech, nodes=nodes)
    assert chosen.arguments == graph.arguments
    assert chosen.ops.total() <= graph.ops.total()
    given = {**state(mech, 1), "weight": np.ones(6 if expr.range is J.range else mech.nv)}
    ours, expected = (k(*(given[name] for name in k.arguments)) for k in (chosen, graph))
    if product is lw.jvp:
        ours, expected = {"": ours}, {"": expected}
    for name, x in expected.items():
        assert np.abs(x).max() > 1e-3
        np.testing.assert_allclose(ours[name], x, atol=1e-11 * np.abs(x).max())


@pytest.mark.parametrize("product", [lw.jvp, lw.vjp])
@pytest.mark.parametrize(("of", "name"), [(FORWARD, ""), ("forward_dynamics", "by name")])
def test_kernels_report_which_form_runs_and_what_each_takes(product, of, name):
    arm = lw.models.seven_dof_arm()
    kernel = lw.compile(product(of, "q", "v"), arm)
    graph = lw.compile(product(through_the_graph(FORWARD), "q", "v"), arm)
    algebra = [lw.differentiate(FORWARD, x) for x in ("q", "v")]
    if product is lw.jvp:
        by_hand = sum((A @ vector(f"d{i}", v.range) for i, A in enumerate(algebra)), 0.0 * tau)
        plain = lw.compile(by_hand, arm).ops.total()
    else:
        w = vector("w", v.range)
        plain = lw.compile({str(i): A.T @ w for i, A in enumerate(algebra)}, arm).ops.total()
    form = kernel.derivative_form
    assert (form.taken, form.algebra) == ("algebra", kernel.ops.total())
    assert form.algebra == pytest.approx(plain, rel=0.02)
    assert form.graph == graph.ops.total() > form.algebra
    text = f"the algebra, {form.algebra} operations; the scalar graph would take {form.graph}"
    assert text in kernel.explain()


def test_why_there_is_only_one_form_is_reported():
    linkage, arm = lw.models.four_bar(), lw.models.seven_dof_arm()
    graph = lw.compile(lw.jvp("forward_dynamics", "q"), linkage)  # several expressions in a loop
    assert graph.derivative_form.taken == "graph"
    assert "the algebra has no form of it here" in graph.explain()
    loops = lw.compile(lw.jvp(FORWARD, "q"), lw.models.chain(70))
    assert (loops.derivative_form.taken, loops.derivative_form.graph) == ("algebra", None)
    assert "as loops over bodies" in loops.explain()
    assert lw.compile(FORWARD, arm).derivative_form is None
    assert lw.compile(EVERY, lw.models.pendulum(2)).derivative_form is None
    assert "operations for one state" in lw.compile(EVERY, lw.models.pendulum(2)).explain()


def test_the_plan_of_a_derivative_says_which_form_runs():
    arm, product = lw.models.seven_dof_arm(), lw.jvp("forward_dynamics", "q", "v")
    kernel, plan = lw.compile(product, arm), lw.plan(product, mech=arm)
    assert plan.form == kernel.derivative_form and plan.form.algebra < plan.form.graph
    assert str(plan).startswith(str(kernel.derivative_form))
    A, B = (lw.differentiate(FORWARD, x) for x in ("q", "v"))
    summed = lw.derive(A @ vector("dq", v.range) + B @ vector("dv", v.range)).result
    assert str(plan.program) == str(lw.plan(summed))
    spin = lw.plan(lw.vjp(v.T @ mass @ v, "v"), mech=arm)
    assert spin.form.taken == "graph" and spin.program is None
    long = lw.plan(lw.vjp("forward_dynamics", "q"), mech=lw.models.chain(70))
    assert "as loops over bodies" in str(long) and "for k = tips" in str(long)
    with pytest.raises(ExpressionError, match=r"lw\.plan\(\.\.\., mech=mech\)"):
        lw.plan(product)
    with pytest.raises(ExpressionError, match="Leave out mech"):
        lw.plan(FORWARD, mech=arm)
    with pytest.raises(ExpressionError, match=r"Only formulas by lw\.jvp"):
        lw.plan(EVERY, mech=arm)


def test_a_second_derivative_has_a_direction_of_its_own():
    arm, rng = lw.models.random_tree(3, 4, floating=True), np.random.default_rng(0)
    once = lw.compile(lw.jvp("forward_dynamics", "q"), arm)
    twice = lw.compile(lw.jvp(lw.jvp("forward_dynamics", "q"), "q"), arm)
    assert twice.arguments == ("q", "v", "tau", "dq", "dq_2")
    q, (u, x, d, e) = arm.random(rng), rng.standard_normal((4, arm.nv))
    h = 1e-3
    steps = ((8.0, h), (-8.0, -h), (-1.0, 2.0 * h), (1.0, -2.0 * h))
    slope = sum(w * once(arm.integrate(q, s * e), u, x, d) for w, s in steps) / (12.0 * h)
    close(twice(q, u, x, d, e), slope, 1e-7)


def test_nodes_without_influence_have_no_rate():
    graph = Graph()
    x, y = graph.input("x"), graph.input("y")
    out = graph.mul(x, x)
    one, none = graph.constant(1.0), graph.constant(0.0)
    assert pushed(graph, [out], {y: one}) == [none]
    assert pulled(graph, [out], [one], [y]) == [none]


def test_bad_input():
    arm = lw.models.pendulum(2)
    with pytest.raises(lw.errors.ExpressionError, match="name at least one input"):
        lw.jvp(FORWARD)
    with pytest.raises(lw.errors.ExpressionError, match="'f' was requested; the kernel takes q"):
        lw.compile(lw.vjp(FORWARD, "f"), arm)
    with pytest.raises(lw.errors.LinkwiseError):
        lw.vjp("nonsense", "q")
    with pytest.raises(ExpressionError, match="which has an input 'weight' already"):
        lw.compile(lw.vjp(lw.vjp(FORWARD, "q"), "q"), arm)


def test_a_jacobian_of_a_node_turns_with_it():
    mech = CASES["floating"][0]
    given = state(mech)
    node = (mech.bodies[-1].name,)
    expected = differences(J @ v, mech, given, ("q", "v"), node)
    along = called(lw.jvp(J @ v, "q", "v"), mech, given, node)
    assert np.abs(along - expected).max() < 1e-8 * max(np.abs(expected).max(), 1.0)


@pytest.mark.prove
def test_large_mechanisms_use_the_algebra():
    """Straight code of a hundred bodies would be too long: expressions run as loops over bodies."""
    chain = lw.models.chain(100)
    rng = np.random.default_rng(0)
    q, v, tau, dq, w = 0.1 * rng.standard_normal((5, chain.nv))
    along = lw.compile(lw.jvp(FORWARD, "q"), chain)(q=q, v=v, tau=tau, dq=dq)
    gradient = lw.compile(lw.vjp(FORWARD, "q", "tau"), chain)(q=q, v=v, tau=tau, weight=w)
    assert abs(w @ along - gradient["q"] @ dq) < 1e-9 * abs(w @ along)
    h = 1e-5
    moved = [lw.forward_dynamics(chain, q + s * h * dq, v, tau) for s in (1, -1)]
    assert np.abs((moved[0] - moved[1]) / (2 * h) - along).max() < 1e-7 * np.abs(along).max()


def test_what_has_no_loops_over_bodies_is_refused_by_name():
    chain = lw.models.chain(66)
    limit = r" was requested for 'chain_66' of 66 bodies; .*about 64 bodies.*Only expressions"
    with pytest.raises(ExpressionError, match="derivative of 'momentum'" + limit):
        lw.compile(lw.jvp("momentum", "q"), chain)
    with pytest.raises(ExpressionError, match="derivative of momentum derivatives" + limit):
        lw.dynamics.momentum_derivatives(chain, *np.zeros((3, 66)))


def test_goals_and_gains_of_laws():
    """Inputs of the kernel of a law, like q and v."""
    arm = lw.models.pendulum(2)
    law = lw.control_law(arm, lw.Task.joints([arm.bodies[1].hinge_name]), kp=1.0, kv=1.0)
    kernel, rng = law.kernel, np.random.default_rng(0)
    given = {name: rng.uniform(0.5, 1.0, size) for name, size in kernel.signature.inputs}
    names = ("q", "v", "goal", "kp", "kv")
    gradient = lw.compile(lw.vjp(law.expression["torque"], *names), kernel.mech)
    weight, h = rng.standard_normal(arm.nv), 1e-6
    ours = gradient(**given, weight=weight)
    for name in names:
        for i, e in enumerate(np.eye(len(given[name]))):
            up, down = (kernel(**{**given, name: given[name] + s * h * e}) for s in (1.0, -1.0))
            expected = weight @ (up - down) / (2 * h)
            assert abs(expected) > 1e-4
            assert abs(ours[name][i] - expected) < 1e-7 * max(abs(expected), 1.0), name


def test_raw_coordinates():
    mech = lw.models.quadruped()
    given, four = state(mech), slice(0, 4)
    rng = np.random.default_rng(1)
    dq, weight = rng.standard_normal(mech.nq), rng.standard_normal(mech.nv)

    def moved(step):
        q = given["q"] + step * dq
        q[four] /= np.linalg.norm(q[four])
        return lw.forward_dynamics(mech, q, given["v"], given["tau"])

    along = called(lw.jvp(FORWARD, "q", raw_q=True), mech, given | {"dq": dq})
    h = 1e-5
    expected = (8 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12 * h)
    assert np.abs(along).max() > 1.0
    np.testing.assert_allclose(along, expected, atol=1e-8 * np.abs(expected).max())
    gradient = called(lw.vjp(FORWARD, "q", raw_q=True), mech, given | {"weight": weight})["q"]
    assert gradient.shape == (mech.nq,)
    np.testing.assert_allclose(gradient @ dq, weight @ along, rtol=1e-11)
    np.testing.assert_allclose(gradient[four] @ given["q"][four], 0.0, atol=1e-12)
    by_velocity = called(lw.vjp(FORWARD, "q"), mech, given | {"weight": weight})["q"]
    rates = mech.qdot(given["q"], given["dq"])
    np.testing.assert_allclose(gradient @ rates, by_velocity @ given["dq"], rtol=1e-11)
    embedded = lw.loops.embed(lw.models.four_bar())
    with pytest.raises(ExpressionError, match="raw_q was given"):
        lw.compile(lw.jvp(mass @ vdot, "q", raw_q=True), embedded)


REQUESTS = [
    (mass @ vdot + bias, ("vdot",)),
    (mass @ vdot + bias, ("q",)),
    (FORWARD, ("tau", "q")),
    (FORWARD, ("v",)),
    ("forward_dynamics", ("q",)),
    ("inverse_dynamics", ("vdot", "v")),
]


@pytest.mark.parametrize("product", [lw.jvp, lw.vjp])
@pytest.mark.parametrize(("of", "wrt"), REQUESTS, ids=str)
def test_arguments_do_not_depend_on_the_number_of_bodies(product, of, wrt):
    """Loops over bodies take what straight code takes, in its order, and give the derivative."""
    long = lw.models.chain(66)
    kernel = lw.compile(product(of, *wrt), long)
    short = lw.compile(product(of, *wrt), lw.models.chain(5))
    assert kernel.arguments == short.arguments
    given = {name: 0.1 * x for name, x in state(long, 1).items()}
    quantity = of if not isinstance(of, str) else lw.dynamics.expression(of)
    plain = lw.compile(quantity, long)
    moving = [moved(long, given, wrt, s * 1e-4) for s in (1, -1, 2, -2)]
    a, b, c, d = (plain(*(there[x] for x in plain.arguments)) for there in moving)
    expected = (8 * (a - b) - (c - d)) / 12e-4
    weight = np.random.default_rng(2).standard_normal(long.nv)
    result = kernel(*({**given, "weight": weight}[x] for x in kernel.arguments))
    assert np.abs(expected).max() > 1e-3
    if product is lw.jvp:
        np.testing.assert_allclose(result, expected, atol=1e-7 * np.abs(expected).max())
    else:
        total = sum(result[x] @ given[f"d{x}"] for x in wrt)
        assert abs(total - weight @ expected) < 1e-7 * np.abs(weight) @ np.abs(expected)
