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
from linkwise.algebra import (
    J,
    X,
    bias,
    damping,
    diagonal,
    mass,
    stiffness,
    tau,
    v,
    vdot,
    vector,
    weight,
)
from linkwise.algebra.expr import Expr
from linkwise.codegen.kernel import Kernel
from linkwise.dynamics.momentum import FORMULAS
from linkwise.errors import LoweringError
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import moved_numbers
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


@pytest.mark.parametrize("name", ["four-bar", "gears"])
@pytest.mark.parametrize("about", ["com", "world"])
def test_momentum(name: str, about: str) -> None:
    """That of the tree with all velocities; its rate by the matrix and the bias."""
    e = lw.loops.embed(lw.models.four_bar() if name == "four-bar" else cases.differential_wrist())
    mech, rng = e.mech, np.random.default_rng(2)
    q = lw.loops.project_position(mech, cases.near(mech, 1)).required()
    u, d, x = rng.standard_normal((3, e.nv))
    momentum, matrix, rate = (
        lw.compile(FORMULAS[what, about], e) for what in ("momentum", "matrix", "bias")
    )
    full = lw.loops.full_velocity(e, q, u)
    expected = lw.momentum(mech, q, full, about=about)
    close(momentum(q, u), expected, 1e-12)
    close(matrix(q) @ u, expected, 1e-12)
    assert np.abs(expected).max() > 1e-3
    vdot = lw.loops.full_acceleration(e, q, u, x)
    changed = lw.momentum(mech, q, what="matrix", about=about) @ vdot
    changed = changed + lw.momentum(mech, q, full, what="bias", about=about)
    close(matrix(q) @ x + rate(q, u), changed, 1e-11)
    product, gradient = (lw.compile(f("momentum", "q"), e) for f in (lw.jvp, lw.vjp))
    along = lw.loops.full_velocity(e, q, d)

    def at(s: float) -> Array:
        there = lw.loops.project_position(mech, mech.integrate(q, s * along)).required()
        return lw.momentum(mech, there, lw.loops.full_velocity(e, there, u))

    h, w = 1e-3, rng.standard_normal(6)
    slope = (8.0 * (at(h) - at(-h)) - at(2.0 * h) + at(-2.0 * h)) / (12.0 * h)
    ours = product(q, u, d)
    close(ours, slope, 1e-7)
    close(gradient(q, u, w)["q"] @ d, w @ ours, 1e-12)


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


def bodies_of(e: lw.loops.Embedded) -> list[int]:
    """The bodies in the order of the aggregates."""
    return [k for group in e.bodies for k in group.bodies]


def heavier(mech: lw.Mechanism, k: int, numbers: Array) -> lw.Mechanism:
    """With ten numbers added to the inertia of body k."""
    m, h, J = mech.bodies[k].inertia.mass, mech.bodies[k].inertia.h, mech.bodies[k].inertia.J
    xx, yy, zz, xy, xz, yz = numbers[4:]
    more = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    inertia = lw.SpatialInertia(m + numbers[0], h + numbers[1:4], J + more)
    bodies = list(mech.bodies)
    bodies[k] = replace(bodies[k], inertia=inertia)
    return replace(mech, bodies=tuple(bodies))


def dense(mech: lw.Mechanism, e: lw.loops.Embedded, q: Array, u: Array, *x: Array) -> list[Array]:
    """τ for each u̇, kinetic and potential energy of the constrained system, solved densely."""
    here = reference(mech, q, e.independent, u, np.zeros(mech.nv))
    energy = lw.energy(mech, q, here.X @ u)
    forces = [here.mass @ vdot + here.bias for vdot in x]
    return [*forces, np.array([energy.kinetic]), np.array([energy.potential])]


PARAMETERS: list[tuple[str, Expr]] = [
    ("joint forces", mass @ vdot + bias),
    ("accelerations", mass.inv @ (tau - bias)),
    ("kinetic energy", 0.5 * v.T @ mass @ v),
    ("potential energy", weight.T @ X),
]


@some
@pytest.mark.parametrize("wrt", ["inertia", "payload", "armature"])
def test_numbers_of_the_mechanism(name: str, wrt: str) -> None:
    """All but u̇ is linear in them: exact differences of the constrained system, solved densely."""
    e, (q, u, x), rng = embedded(name), state(name), np.random.default_rng(8)
    mech, given = e.mech, {"q": q, "v": u, "vdot": x, "tau": x}
    order, k = bodies_of(e), len(mech.bodies) - 1
    d, place = 0.1 * rng.standard_normal(10), slice(0, 10)
    if wrt == "payload":
        other = heavier(mech, k, moved_numbers(mech.node(mech.bodies[k].name).pose) @ d)
    elif wrt == "inertia":
        other, at = heavier(mech, k, d), order.index(k)
        place = slice(10 * at, 10 * at + 10)
    else:
        single = [i for i, name in enumerate(mech.velocity_names) if name in mech.hinge_index]
        more = np.zeros(mech.nv)
        free = [i for i in single if i in e.independent]
        more[free] = rng.uniform(0.1, 1.0, len(free))
        other, place, d = with_armature(mech, more), slice(None), more[e.independent]
    here = reference(mech, q, e.independent, u, np.zeros(mech.nv))
    vdot = np.linalg.solve(here.mass, x - here.bias)
    before, after = (dense(m, e, q, u, x, vdot) for m in (mech, other))
    force, inertial, *energies = (y - x for x, y in zip(before, after, strict=True))
    rates = [force, -np.linalg.solve(here.mass, inertial), *energies]
    for (_, expr), expected in zip(PARAMETERS, rates, strict=True):
        if wrt == "armature" and expr is PARAMETERS[-1][1]:
            continue  # does not depend on it
        derivative = lw.differentiate(expr, wrt)
        nodes = (mech.bodies[k].name,) if wrt == "payload" else ()
        A = called(lw.compile(derivative, e, nodes=nodes), **given)
        assert np.abs(expected).max() > 1e-6
        close(A[:, place] @ d, expected, 1e-8)
        w = rng.standard_normal(len(A))
        back = lw.compile(derivative.T @ vector("w", expr.range), e, nodes=nodes)
        close(called(back, **given, w=w), A.T @ w, 1e-11)


def with_armature(mech: lw.Mechanism, more: Array) -> lw.Mechanism:
    """With other armature, by velocities: for hinges of one degree of freedom."""
    bodies = list(mech.bodies)
    for k, body in enumerate(bodies):
        extra = more[mech.v_start[k] : mech.v_start[k + 1]].max(initial=0.0)
        drive = replace(body.drive, armature=body.drive.armature + extra)
        bodies[k] = replace(body, drive=drive)
    return replace(mech, bodies=tuple(bodies))


@some
def test_dampers_and_springs_of_independent_hinges(name: str) -> None:
    e, (q, u, x) = embedded(name), state(name)
    force = tau - bias - diagonal(v) @ damping - diagonal(vdot) @ stiffness
    for wrt, along in (("damping", u), ("stiffness", x)):
        A = lw.compile(lw.differentiate(mass.inv @ force, wrt), e)
        ours = called(A, q=q, v=u, vdot=x, tau=x, damping=0.0 * u, stiffness=0.0 * u)
        none = np.zeros(e.mech.nv)
        here = reference(e.mech, q, e.independent, u, none)
        close(ours, -np.linalg.solve(here.mass, np.diag(along)), 1e-8)
