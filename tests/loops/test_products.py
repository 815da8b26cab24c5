"""Products with derivatives of quantities by name and of control laws, against differences."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import lam
from linkwise.errors import ExpressionError, LinkwiseError, ModelError, UnknownNameError
from linkwise.loops.named import requested_by

TREE = lw.models.random_tree(4, 2, mass_ratio=3.0)
LOOP = lw.models.four_bar()


def energies(mech, q, v):
    e = lw.energy(mech, q, v)
    return np.array([e.kinetic, e.potential])


NAMED = {
    "forward_dynamics": (TREE, lw.forward_dynamics, ("q", "v", "tau")),
    "inverse_dynamics": (TREE, lw.inverse_dynamics, ("q", "v", "vdot")),
    "mass_matrix": (TREE, lw.mass_matrix, ("q",)),
    "energy": (TREE, energies, ("q", "v")),
    "momentum": (TREE, lw.momentum, ("q", "v")),
    "center_of_mass": (TREE, lw.center_of_mass, ("q",)),
}


def state(mech, seed=0):
    rng = np.random.default_rng(seed)
    x = dict(zip(("v", "tau", "dq", "dv", "dtau"), rng.standard_normal((5, mech.nv)), strict=True))
    return {"q": mech.random(rng), "vdot": x["tau"], "dvdot": x["dtau"], **x}


def differences(mech, function, given, wrt, h=1e-3):
    """Eighth-order central differences along the directions."""
    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}

    def at(step):
        q = mech.integrate(given["q"], step * given["dq"]) if "q" in wrt else given["q"]
        rest = [given[x] + step * given[f"d{x}"] for x in wrt if x != "q"]
        return np.ravel(function(mech, q, *rest))

    return sum(w * (at(i * h) - at(-i * h)) for i, w in weights.items()) / h


@pytest.mark.parametrize("name", NAMED)
def test_quantities_by_name(name):
    mech, function, wrt = NAMED[name]
    given = state(mech)
    expected = differences(mech, function, given, wrt)
    assert np.abs(expected).max() > 1e-2
    along = lw.compile(lw.jvp(name, *wrt), mech)
    rate = np.ravel(along(*(given[x] for x in along.arguments)))
    np.testing.assert_allclose(rate, expected, atol=1e-9 * np.abs(expected).max())
    back = lw.compile(lw.vjp(name, *wrt), mech)
    weight = np.random.default_rng(1).standard_normal(len(rate))
    gradient = back(**{x: {**given, "weight": weight}[x] for x in back.arguments})
    total = sum(gradient[x] @ given[f"d{x}"] for x in wrt)
    assert abs(total - weight @ rate) < 1e-12 * np.abs(weight) @ np.abs(rate)


def test_a_quantity_of_a_node():
    given, node = state(TREE), TREE.bodies[-1].name
    kernel = lw.compile(lw.jvp("node_velocity", "q"), TREE, nodes=(node,))
    v = given["v"]
    expected = differences(TREE, lambda m, q: lw.jacobian(m, q, node) @ v, given, ("q",))
    assert np.abs(expected).max() > 1e-2
    ours = kernel(given["q"], v, given["dq"])
    np.testing.assert_allclose(ours, expected, atol=1e-9 * np.abs(expected).max())
    with pytest.raises(ModelError, match="needs a node"):
        lw.compile(lw.jvp("node_velocity", "q"), TREE)


def test_loops_are_held():
    q = lw.loops.assemble(LOOP, LOOP.random(seed=3)).q
    given = {**state(LOOP, 1), "q": q}
    given["v"] = lw.loops.project_velocity(LOOP, q, given["v"])
    d = lw.forward_dynamics_derivatives(LOOP, q, given["v"], given["tau"])
    expected = d.q @ given["dq"] + d.tau @ given["dtau"]
    kernel = lw.compile(lw.jvp("forward_dynamics", "q", "tau"), LOOP)
    ours = kernel(*(given[x] for x in kernel.arguments))
    assert np.abs(expected).max() > 1e-1
    np.testing.assert_allclose(ours, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("gains", [{}, {"kp": 4.0, "kv": 2.0}])
def test_a_control_law(gains):
    arm = lw.models.seven_dof_arm()
    law = lw.control_law(arm, lw.Task.position("hand"), **gains)
    names = ("q", "v", "goal", "kp", "kv") if gains else ("q", "v", "closing")
    kernel, rng = lw.compile(lw.vjp(law, *names), arm), np.random.default_rng(0)
    given = {name: rng.uniform(0.5, 1.0, size) for name, size in law.kernel.signature.inputs}
    weight, h = rng.standard_normal(arm.nv), 1e-6
    gradient = kernel(**given, weight=weight)
    for name in names:
        for i, e in enumerate(np.eye(len(given[name]))):
            up, down = (law.kernel(**{**given, name: given[name] + s * h * e}) for s in (1.0, -1.0))
            expected = weight @ (up - down) / (2 * h)
            assert abs(gradient[name][i] - expected) < 1e-6 * max(abs(expected), 1.0), name
        assert np.abs(gradient[name]).max() > 1e-3
    of_kernel = lw.compile(lw.vjp(law.kernel, *names), law.kernel.mech)(**given, weight=weight)
    np.testing.assert_array_equal(of_kernel["q"], gradient["q"])
    with pytest.raises(ModelError, match="was compiled for another mechanism, 'four_bar'"):
        lw.compile(lw.vjp(law, "q"), LOOP)
    with pytest.raises(ExpressionError, match="a derivative by 'tau' was requested; the kernel"):
        lw.compile(lw.vjp(law, "tau"), arm)
    for expr in (law.expression["torque"], lw.vjp(law.expression["torque"], "q")):
        with pytest.raises(LinkwiseError, match="take the law itself"):
            lw.compile(expr, arm)


def test_a_law_is_taken_for_its_kernel():
    arm = lw.models.seven_dof_arm()
    law = lw.control_law(arm, lw.Task.position("hand"), kp=4.0, kv=2.0)
    assert requested_by(law, arm) == law.kernel.request
    assert requested_by(law.kernel, law.kernel.mech) == law.kernel.request
    more = requested_by(law, arm, parameters=["gravity"])
    assert more.parameters == ("gravity",) and more.quantity == law.kernel.request.quantity
    with pytest.raises(ExpressionError, match="given with rows, nodes; these belong"):
        requested_by(law, arm, rows=[0], nodes=["hand"])
    with pytest.raises(ModelError, match="was compiled for another mechanism, 'four_bar'"):
        requested_by(law, LOOP)
    with pytest.raises(ExpressionError, match=r"compiled already: call it, or law\.kernel"):
        lw.compile(law, arm)


def test_vectors_over_rows_need_rows():
    kernel, rows = lw.compile(lam.T @ lam, LOOP), sum(lw.loops.constraint_sizes(LOOP))
    assert kernel(LOOP.neutral(), np.full(rows, 2.0)) == pytest.approx(4.0 * rows)
    with pytest.raises(LinkwiseError, match="is about rows of loops, couplings or tasks"):
        lw.compile(lam.T @ lam, TREE)


def test_bad_input():
    with pytest.raises(UnknownNameError, match="no quantity called 'nonsense'"):
        lw.jvp("nonsense", "q")
    with pytest.raises(ExpressionError, match="it must be an expression, a formula, the name"):
        lw.vjp(3, "q")
    with pytest.raises(ExpressionError, match="name at least one input"):
        lw.vjp("energy")
