"""Kernels as differentiable functions of the entries of their inputs, to any order."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import J, bias, mass, tau, v, vdot
from linkwise.codegen import tangents
from linkwise.codegen.kernel import kernel
from linkwise.dynamics.closure import closed_kernel
from linkwise.errors import ExpressionError
from linkwise.pipeline import requested

FORWARD, INVERSE = mass.inv @ (tau - bias), mass @ vdot + bias
STEP = 1e-3
WEIGHTS = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}  # differences of order eight


def requests():
    tree = lw.models.random_tree(4, 2, mass_ratio=3.0)
    floating = lw.models.random_tree(3, 5, mass_ratio=3.0, floating=True)
    linkage = lw.models.four_bar()
    return {
        "tree": (requested(FORWARD, tree), tree),
        "floating": (requested({"vdot": FORWARD, "M": mass}, floating), floating),
        "nodes": (requested(J @ v, floating, nodes=(floating.bodies[-1].name,)), floating),
        "linkage": (closed_kernel(linkage, "forward_dynamics").request, linkage),
        "inertia": (requested(FORWARD, tree, parameters=("inertia",)), tree),
    }


SMALL = ("inertia", "payload:tip", "armature")  # their rates
PARAMETERS = {
    "gravity": ("gravity",),
    "inertia": ("inertia",),
    "armature": ("armature",),
    "payload": ("payload:tip",),
    "locked": ("locked",),
    "all": ("armature", "payload:tip", "gravity", "inertia"),
}


def inputs(request, mech, rng):
    made, each = kernel(request), {}
    for name, size in made.signature.inputs:
        if name == "q":
            each[name] = mech.random(rng)
        elif name in ("inertia", "payload:tip"):
            each[name] = made.nominal(name)
        elif name == "locked":
            each[name] = np.eye(size)[1]
        elif name == "armature":
            each[name] = rng.uniform(0.1, 0.2, size)
        else:
            each[name] = rng.standard_normal(size)
    return made, each


def differences(function, x, rate):
    """The derivative of a function along a direction."""
    terms = [
        w * (function(x + k * STEP * rate) - function(x - k * STEP * rate))
        for k, w in WEIGHTS.items()
    ]
    return sum(terms) / STEP


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["linkage", "floating", "tree", "nodes", "inertia"])
def test_derivatives_are_those_of_differences(name):
    assert_derivatives(*requests()[name])


@pytest.mark.parametrize(
    ("of", "name"),
    [(FORWARD, name) for name in PARAMETERS]
    + [(INVERSE, name) for name in PARAMETERS if name != "locked"],
)
def test_derivatives_by_parameters(of, name):
    """The matrix that is solved with depends on fewer parameters than the right-hand side."""
    tree = lw.models.random_tree(3, 2, mass_ratio=3.0).with_node("tip", "body_3")
    assert_derivatives(requested(of, tree, parameters=PARAMETERS[name]), tree)


def assert_derivatives(base, mech):
    rng = np.random.default_rng(3)
    request = tangents.value(base)
    function, given = inputs(request, mech, rng)
    wrt = tuple(name for name in function.arguments if name != "locked")
    assert np.allclose(function(*given.values()), _flat(kernel(base)(*given.values())), rtol=1e-12)
    push = kernel(tangents.pushforward(base, wrt))
    pull = kernel(tangents.pullback(base, wrt))
    rates = [rng.standard_normal(len(given[n])) * (0.1 if n in SMALL else 1.0) for n in wrt]
    along = push(*given.values(), *rates)
    weight = rng.standard_normal(len(along))
    gradient = pull(*given.values(), weight)
    start = 0
    total = np.zeros_like(along)
    for name, d in zip(wrt, rates, strict=True):
        x = given[name]

        def moved(x, name=name):
            return function(**{**given, name: x})

        expected = differences(moved, x, d)
        total += expected
        part = gradient[start : start + len(x)]
        start += len(x)
        assert weight @ expected == pytest.approx(part @ d, rel=1e-7, abs=1e-7)
    assert np.abs(total).max() > 1e-3
    assert np.allclose(along, total, rtol=1e-7, atol=1e-7 * np.abs(total).max())


def _flat(result):
    parts = result.values() if isinstance(result, dict) else [result]
    return np.concatenate([np.ravel(x) for x in parts])


@pytest.mark.prove
def test_second_derivatives_are_derivatives_of_the_first():
    base, mech = requests()["floating"]
    base = requested(FORWARD, mech)
    rng = np.random.default_rng(5)
    first = tangents.pullback(base, ("q", "v"))
    gradient, given = inputs(first, mech, rng)
    rates = [rng.standard_normal(len(x)) for x in given.values()]
    along = kernel(tangents.pushforward(first, gradient.arguments))(*given.values(), *rates)
    expected = differences(
        lambda s: gradient(
            *(x + (s - 1.0) * d for x, d in zip(given.values(), rates, strict=True))
        ),
        np.float64(1.0),
        1.0,
    )
    assert np.allclose(along, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
    # the matrix of second derivatives is symmetric, by entries of quaternions too
    hessian = kernel(tangents.pushforward(tangents.pullback(base, ("q",)), ("q",)))
    q, other = given["q"], [given[n] for n in ("v", "tau", "weight")]
    H = np.array([hessian(q, *other, e) for e in np.eye(mech.nq)])
    assert np.abs(H).max() > 0.1
    assert np.allclose(H, H.T, atol=1e-11 * np.abs(H).max())
    # four orders of names do not collide
    deep = tangents.pullback(tangents.pullback(first, ("weight",)), ("weight_2",))
    assert kernel(deep).arguments == ("q", "v", "tau", "weight", "weight_2", "weight_3")


def test_derivatives_of_a_solution_cost_twice_the_solution():
    request = tangents.value(requested(FORWARD, lw.models.puma560()))
    wrt = ("q", "v", "tau")
    one = kernel(request).ops.total()
    for derivative in (tangents.pullback(request, wrt), tangents.pushforward(request, wrt)):
        assert kernel(derivative).ops.total() < 2.2 * one


def test_the_length_of_a_quaternion_does_not_matter():
    base, mech = requests()["nodes"]
    rng = np.random.default_rng(8)
    function, given = inputs(tangents.value(base), mech, rng)
    q, speed = given.values()
    longer = q.copy()
    longer[:4] *= 1.7
    assert np.allclose(function(q, speed), function(longer, speed), rtol=1e-13)
    gradient = kernel(tangents.pullback(base, ("q",)))(q, speed, rng.standard_normal(6))
    assert abs(gradient[:4] @ q[:4]) < 1e-14 < 1e-3 < np.abs(gradient).max()


def test_what_has_no_derivative_is_refused():
    chain = lw.models.pendulum(70)
    with pytest.raises(ExpressionError, match=r"too long.*lw\.differentiate"):
        tangents.pullback(requested(FORWARD, chain), ("q",))
