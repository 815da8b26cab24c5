"""`lw.differentiate` of expressions on mechanisms with their loops built in.

Three references: the scalar graph of the expression itself (`lw.jvp`), differences of the whole
constrained system solved densely along closed configurations, and everyday functions. The first
agrees to rounding; fourth-order differences of a solution of condition up to 1e6 to 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import J, X, bias, mass, tau, v, vdot, vector, weight
from linkwise.algebra.expr import Expr
from linkwise.codegen.kernel import Kernel
from linkwise.errors import LoweringError
from linkwise.spatial.array import Array
from tests.cases import close
from tests.loops import embedding_cases as cases
from tests.loops.embedding_cases import closed, near, reference

CASES: dict[str, Callable[[], lw.Mechanism]] = {
    "four-bar": lw.models.four_bar,
    "parallelogram": cases.parallelogram_arm,
}
MORE: dict[str, Callable[[], lw.Mechanism]] = {
    **CASES,
    "coupled tree": lambda: cases.coupled_tree(1, 4),
    "four-bars": lambda: cases.four_bar_chain(2, 0.3),
    "universal loop": cases.universal_loop,
    "geared four-bar": cases.geared_four_bar,
    "differential": cases.differential_wrist,
}
some = pytest.mark.parametrize(
    "name", [n if n in CASES else pytest.param(n, marks=pytest.mark.prove) for n in MORE]
)
QUANTITIES: dict[str, tuple[Expr, tuple[str, ...]]] = {
    "joint forces": (mass @ vdot + bias, ("q", "v", "gravity")),
    "accelerations": (mass.inv @ (tau - bias), ("q", "v")),
    "velocities of a node": (J @ v, ("q", "v")),
    "potential energy": (weight.T @ X, ("q", "gravity")),
    "kinetic energy": (0.5 * v.T @ mass @ v, ("q", "v")),
}


@cache
def embedded(name: str) -> lw.loops.Embedded:
    return lw.loops.embed(MORE[name]())


@cache
def state(name: str) -> tuple[Array, Array, Array]:
    """q, u and u̇."""
    e, rng = embedded(name), np.random.default_rng(3)
    return near(e.mech, 3), *rng.standard_normal((2, e.nv))


def called(kernel: Kernel, **given: Array) -> Array:
    return kernel(*(given[name] for name in kernel.arguments))


@some
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_the_algebra_gives_what_the_graph_gives(name: str, quantity: str) -> None:
    e, (q, u, x), rng = embedded(name), state(name), np.random.default_rng(4)
    expr, variables = QUANTITIES[quantity]
    nodes = (e.mech.bodies[-1].name,) if "node" in quantity else ()
    given = {"q": q, "v": u, "vdot": x, "tau": x, "gravity": e.mech.gravity}
    for wrt in variables:
        A = called(lw.compile(lw.differentiate(expr, wrt), e, nodes=nodes), **given)
        d = rng.standard_normal(A.shape[1])
        parameters = [wrt] if wrt == "gravity" else []
        along = lw.compile(lw.jvp(expr, wrt), e, nodes=nodes, parameters=parameters)
        close(A @ d, called(along, **given, **{f"d{wrt}": d}), 1e-12)


@some
def test_joint_forces_are_those_of_the_constrained_system(name: str) -> None:
    """𝓜_r u̇ + C_r of a dense solution, along a configuration that stays closed."""
    e, (q, u, x) = embedded(name), state(name)
    mech, none = e.mech, np.zeros(e.mech.nv)
    d = np.random.default_rng(5).standard_normal(e.nv)
    along = reference(mech, q, e.independent, u, none).X @ d

    def force(t: float) -> Array:
        moved = mech.integrate(q, along, t)
        moved = closed(mech, moved) if mech.loops else moved
        here = reference(mech, moved, e.independent, u, none)
        return here.mass @ x + here.bias

    h = 1e-3
    slope = (8.0 * (force(h) - force(-h)) - force(2.0 * h) + force(-2.0 * h)) / (12.0 * h)
    A = lw.compile(lw.differentiate(mass @ vdot + bias, "q"), e)(q, u, x)
    close(A @ d, slope, 1e-6)


def test_directions_gradients_and_second_derivatives() -> None:
    e, (q, u, x) = embedded("four-bar"), state("four-bar")
    given = {"q": q, "v": u, "vdot": x, "tau": x}
    A = lw.differentiate(mass.inv @ (tau - bias), "q")
    ours = lw.forward_dynamics_derivatives(e, q, u, x)
    d, w = np.random.default_rng(6).standard_normal((2, e.nv))
    close(called(lw.compile(A, e), **given), ours.q, 1e-11)
    close(called(lw.compile(A @ vector("d", v.range), e), **given, d=d), ours.q @ d, 1e-11)
    close(called(lw.compile(A.T @ vector("w", v.range), e), **given, w=w), w @ ours.q, 1e-11)
    B = lw.differentiate(mass @ vdot + bias, "q") @ vector("d", v.range)
    twice = called(lw.compile(lw.differentiate(B, "q"), e), **given, d=d)
    along = called(lw.compile(lw.jvp(B, "q"), e), **given, d=d, dq=w)
    close(twice @ w, along, 1e-11)
    energy = lw.differentiate(v.T @ mass @ v, "q")
    plain = called(lw.compile(energy, e, target="numpy"), **given)  # the interpreter, on numbers
    close(plain, called(lw.compile(energy, e), **given), 1e-12)


def four_bar(driven: str) -> lw.loops.Embedded:
    mech = lw.models.four_bar()
    bodies = tuple(
        replace(body, drive=lw.Drive(armature=0.3)) if body.hinge_name == driven else body
        for body in mech.bodies
    )
    return lw.loops.embed(replace(mech, bodies=bodies), independent=mech.bodies[0].hinge_name)


def test_armature_that_follows_in_a_varying_ratio_is_refused_by_name() -> None:
    first, *_, last = (body.hinge_name for body in lw.models.four_bar().bodies)
    A = lw.differentiate(mass @ vdot + bias, "q")
    e = four_bar(first)
    q, u, x = e.mech.neutral(), np.array([0.7]), np.array([0.4])
    close(lw.compile(A, e)(q, u, x), lw.inverse_dynamics_derivatives(e, q, u, x).q, 1e-12)
    with pytest.raises(LoweringError, match=r"'four_bar', .* armature N as constant.*lw\.vjp"):
        lw.compile(A, four_bar(last))


@pytest.mark.parametrize("wrt", ["inertia", "armature"])
def test_numbers_of_the_mechanism_are_refused_by_name(wrt: str) -> None:
    message = r"(Y\[|diag|inertia).* has no blocks for 'four_bar', .*attribute mech"
    with pytest.raises(LoweringError, match=message):
        lw.compile(lw.differentiate(mass @ vdot + bias, wrt), lw.loops.embed(lw.models.four_bar()))
