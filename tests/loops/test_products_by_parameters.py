"""Products with derivatives by numbers of the mechanism that stay inputs, against differences."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import bias, mass, tau, vdot
from linkwise.codegen.scalar.parameters import nominal
from linkwise.errors import ExpressionError
from tests.flexible.cases import mechanism

STEP = 1e-3
WEIGHTS = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}  # differences of order eight
FORWARD, INVERSE = mass.inv @ (tau - bias), mass @ vdot + bias
ARM = lw.models.seven_dof_arm()
LAW = lw.control_law(ARM, lw.Task.position("hand"), kp=4.0, kv=2.0)
PARAMETERS = ("gravity", "inertia", "armature", "payload:hand", "payload")


def energies(at):
    """Energies with all numbers as inputs, as a user would write it."""
    names = ("kinetic_energy", "potential_energy")
    exprs = [lw.dynamics.expression(name) for name in names]
    return np.concatenate([at.value(x, parameters=at.parameters_of(x)) for x in exprs])


# What is differentiated, and a kernel of the same that has the parameters.
OF = {
    "forward dynamics": (FORWARD, FORWARD),
    "inverse dynamics": (INVERSE, INVERSE),
    "forward dynamics by name": ("forward_dynamics", FORWARD),
    "energy by name": ("energy", energies),
    "a law": (LAW, LAW.expression["torque"]),
}


def inputs(mech, kernel, rng):
    given = {}
    for name, size in kernel.signature.inputs:
        given[name] = rng.uniform(0.2, 1.0, size)
        if name == "q":
            given[name] = mech.random(rng)
        elif name in ("gravity", "inertia"):
            given[name] = nominal(mech, name) * rng.uniform(0.9, 1.1, size)
        elif name.startswith("payload"):
            given[name] = np.array([1.0, 0.1, -0.1, 0.2, 0.3, 0.3, 0.3, 0.01, 0.02, 0.03])
    return given


def slope(kernel, given, name, d):
    rates = [
        w * (np.ravel(run(kernel, given, name, k * d)) - np.ravel(run(kernel, given, name, -k * d)))
        for k, w in WEIGHTS.items()
    ]
    return sum(rates) / STEP


def run(kernel, given, name, d):
    moved = {**given, name: given[name] + STEP * d}
    return kernel(*(moved[x] for x in kernel.arguments))


def check(product_of, plain, parameter, wrt):
    """Both products by names, against differences of a kernel with these inputs."""
    rng = np.random.default_rng(4)
    mech, nodes = plain.mech, plain.request.nodes
    options = {"parameters": [parameter], "nodes": nodes}
    push = lw.compile(lw.jvp(product_of, *wrt), mech, **options)
    pull = lw.compile(lw.vjp(product_of, *wrt), mech, **options)
    given = inputs(mech, plain, rng)
    assert push.arguments == (*plain.arguments, *(f"d{x}" for x in wrt))
    assert pull.arguments == (*plain.arguments, "weight")
    rates = {x: rng.standard_normal(len(given[x])) * 0.1 for x in wrt}
    expected = {x: slope(plain, given, x, d) for x, d in rates.items()}
    assert all(np.abs(x).max() > 1e-4 for x in expected.values())
    total = sum(expected.values())
    along = np.ravel(push(**given, **{f"d{x}": d for x, d in rates.items()}))
    np.testing.assert_allclose(along, total, atol=1e-8 * np.abs(total).max())
    weight = rng.standard_normal(len(along))
    gradient = pull(**given, weight=weight)
    for x, d in rates.items():
        assert gradient[x].shape == d.shape
        bound = 1e-8 * np.abs(weight) @ np.abs(expected[x])
        assert abs(gradient[x] @ d - weight @ expected[x]) < bound


@pytest.mark.parametrize("parameter", PARAMETERS)
@pytest.mark.parametrize("name", OF)
def test_products_by_parameters(name, parameter):
    of, same = OF[name]
    nodes = ("hand",) if parameter == "payload" else ()
    mech = ARM
    if of is LAW:
        mech, nodes = LAW.kernel.mech, LAW.kernel.request.nodes
    if of is LAW and parameter == "payload":
        parameter = "payload:hand"  # the law has nodes of its own
    plain = lw.compile(same, mech, nodes=nodes, parameters=[parameter])
    by_velocity = ("v",) if name != "energy by name" or parameter != "gravity" else ()
    check(of, plain, parameter, (parameter, *by_velocity))


@pytest.mark.parametrize("parameter", ["gravity", "inertia"])
def test_a_kernel_of_expressions(parameter):
    plain = lw.compile(FORWARD, ARM, parameters=[parameter])
    for of in (plain, lw.compile(FORWARD, ARM)):
        check(of, plain, parameter, (parameter, "tau"))


def test_quantities_with_loops_held():
    mech = lw.models.four_bar()
    of = lw.loops.closed_expression(mech, "forward_dynamics")
    nodes = lw.loops.closure_nodes(mech)
    plain = lw.compile(of, mech, nodes=nodes, parameters=["gravity"])
    rng = np.random.default_rng(2)
    given = inputs(mech, plain, rng) | {"q": lw.loops.assemble(mech, mech.random(seed=3)).q}
    d, weight = rng.standard_normal(3), rng.standard_normal(mech.nv)
    expected = slope(plain, given, "gravity", d)
    pull = lw.compile(lw.vjp("forward_dynamics", "gravity"), mech, parameters=["gravity"])
    gradient = pull(**given, weight=weight)["gravity"]
    assert np.abs(expected).max() > 1e-2
    assert abs(gradient @ d - weight @ expected) < 1e-8 * np.abs(weight) @ np.abs(expected)


@pytest.mark.parametrize("wrt", ["q", "gravity"])
def test_long_mechanisms(wrt):
    chain = lw.models.chain(66)
    plain = lw.compile(FORWARD, chain, parameters=["gravity"])
    rng = np.random.default_rng(1)
    given = {name: 0.1 * rng.standard_normal(size) for name, size in plain.signature.inputs}
    given["gravity"] = np.array([0.5, 1.0, -3.0])
    d, weight = rng.standard_normal((2, chain.nv))
    d = d[: len(given[wrt])]
    expected = slope(plain, given, wrt, d)
    pull = lw.compile(lw.vjp(FORWARD, wrt), chain, parameters=["gravity"])
    assert pull.arguments == ("q", "v", "tau", "gravity", "weight")
    gradient = pull(**given, weight=weight)[wrt]
    assert abs(gradient @ d - weight @ expected) < 1e-7 * np.abs(weight) @ np.abs(expected)


def test_errors_say_what_to_do():
    with pytest.raises(ExpressionError, match=r"parameters=\['gravity'\]"):
        lw.compile(lw.vjp(FORWARD, "gravity"), ARM)
    for of in ("center_of_mass", lw.compile(energies, ARM)):
        with pytest.raises(ExpressionError, match=r"array code that does not take them"):
            lw.compile(lw.vjp(of, "inertia"), ARM, parameters=["inertia"])
    with pytest.raises(ExpressionError, match=r"lw.dynamics.expression\('forward_dynamics'\)"):
        lw.compile("forward_dynamics", ARM, parameters=["gravity"])
    with pytest.raises(ExpressionError, match="does not depend on it"):
        lw.compile(lw.vjp(INVERSE, "q"), ARM, parameters=["locked"])


def test_inertias_of_flexible_bodies():
    """An input has ten numbers for the frame of each body, the algebra for each part."""
    mech = mechanism(1)
    columns = lw.compile(lw.differentiate(INVERSE, "inertia"), mech).signature.shape[1]
    assert columns == 10 * sum(1 + len(body.lumps) for body in mech.bodies) > 10 * mech.n_bodies
    plain = lw.compile(INVERSE, mech, parameters=["inertia"])
    check(INVERSE, plain, "inertia", ("inertia",))
