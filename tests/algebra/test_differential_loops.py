"""Derivatives of what loops and couplings require: against differences of the dense reference.

Rules are tested in extended precision. Solutions with rows that depend on each other are not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import CONSTRAINT, JOINT, NODE, vector
from linkwise.algebra.dense import Dense
from linkwise.algebra.differential import differentiate
from linkwise.algebra.symbols import Q, Y, kappa, kappa_g
from linkwise.dynamics.closure import closed_expression
from linkwise.model.closure import closure_nodes, constraint_sizes
from tests.algebra.test_differential import State
from tests.loops.random_loops import LIGHT, looped

x, y, u, w = vector("x", NODE), vector("y", CONSTRAINT), vector("u", JOINT), vector("w", JOINT)


def sliding() -> tuple[lw.Mechanism, np.ndarray]:
    """Loops whose blocked directions turn: a universal joint, and points on planes both ways."""
    mech, q = looped(7, ("universal", "planar", "planar"), n=5)
    planes = [lw.hinges.PointOnPlane(normal=(0.0, 0.6, 0.8)), lw.hinges.PointOnPlane().reversed()]
    hinges = [mech.loops[0].hinge, *planes]
    loops = [replace(loop, hinge=h) for loop, h in zip(mech.loops, hinges, strict=True)]
    return replace(mech, loops=tuple(loops)), q


CASES = {
    "constant directions": looped(2, ("pin", "locked", "planar"), n=5, hinges=LIGHT),
    "turning directions": sliding(),
    "couplings": looped(4, ("spherical",), n=7, couplings=2, hinges=("pin", "prismatic", "gimbal")),
    "ground": looped(5, ("locked",), n=4, hinges=LIGHT, ground=True),
}


class Closed(State):
    """A mechanism with loops that are open, with values for all vectors."""

    def __init__(self, mech: lw.Mechanism, q: np.ndarray) -> None:
        rng = np.random.default_rng(3)
        self.mech, self.nodes, rows = mech, closure_nodes(mech), sum(constraint_sizes(mech))
        self.q = mech.integrate(q, 0.1 * rng.standard_normal(mech.nv))
        self.v, size = rng.standard_normal(mech.nv), 6 * len(self.nodes)
        self.values = {
            **{name: rng.standard_normal(mech.nv) for name in ("tau", "u", "w")},
            **{"x": rng.standard_normal(size), "y": rng.standard_normal(rows)},
        }


@pytest.mark.parametrize("name", CASES)
def test_rows_of_constraints(name):
    state = Closed(*CASES[name])
    here, way = state.dense(), state.values["u"]
    exprs = [
        Q @ x,
        Q.T @ y,
        Y @ w,
        Y.T @ y,
        kappa,
        kappa_g,
        closed_expression(state.mech, "constraint_bias"),
    ]
    for wrt in ("q", "v"):
        for expr, expected in zip(exprs, state.along(exprs, wrt, way), strict=True):
            A = differentiate(expr, wrt)
            size = max(float(np.abs(expected).max()), 1.0)
            assert np.abs(here(A @ u) - expected).max() < 1e-13 * size, (wrt, expr)


@pytest.mark.parametrize(
    "name", [pytest.param("turning directions", marks=pytest.mark.prove), "ground"]
)
def test_constrained_dynamics_by_kernels(name):
    """The derivative of what `lw.forward_dynamics` computes: dense, compiled, and its adjoint."""
    state = Closed(*CASES[name])
    mech, way = state.mech, state.values["u"]
    given = {"q": state.q, "v": state.v, **state.values}
    dynamics = closed_expression(mech, "forward_dynamics")
    for wrt in ("q", "v"):
        A = differentiate(dynamics, wrt)
        (expected,) = state.along([dynamics], wrt, way, Dense)
        dense = state.dense()(A @ u)
        assert np.abs(dense - expected).max() < 1e-7 * np.abs(expected).max()
        for expr in (A @ u, A.T @ w):
            kernel = lw.compile(expr, mech, nodes=state.nodes)
            result = kernel(*(given[n] for n in kernel.arguments))
            assert np.abs(result - state.dense()(expr)).max() < 1e-8 * np.abs(expected).max()


def cubic() -> Closed:
    """Couplings whose rows have curvature, without the loop."""
    mech, q = CASES["couplings"]
    bent = [replace(c, terms=tuple((n, (*x, 0.3)) for n, x in c.terms)) for c in mech.couplings]
    return Closed(replace(mech, loops=(), couplings=tuple(bent)), q)


TWICE = {
    "Q x": Q @ x,
    "Q* y": Q.T @ y,
    "Y u": Y @ w,
    "Y* y": Y.T @ y,
    "kappa": kappa,
    "kappa_g": kappa_g,
}


@pytest.mark.parametrize(
    "name, quantity",
    [
        ("constant directions", "Q* y"),
        ("cubic", "Y* y"),
        *(
            pytest.param(name, x, marks=pytest.mark.prove)
            for name, x in [
                *(("turning directions", x) for x in ("Q x", "Q* y", "kappa", "kappa_g")),
                *(("constant directions", x) for x in ("Q x", "kappa")),
                *(("cubic", x) for x in ("Y u", "kappa")),
                ("ground", "kappa_g"),
            ]
        ),
    ],
)
def test_second_derivatives_of_rows(name, quantity):
    """Along a direction and in reverse, by q and v: against differences in extended precision."""
    state = cubic() if name == "cubic" else Closed(*CASES[name])
    here, way, expr, moved = state.dense(), state.values["w"], TWICE[quantity], 0.0
    weights = {CONSTRAINT: y, NODE: x, JOINT: w}
    for wrt in ("q", "v"):
        A = differentiate(expr, wrt)
        for once in (A @ u, A.T @ weights[A.range]):
            for again in ("q", "v"):
                (expected,) = state.along([once], again, way)
                ours = here.matrix(differentiate(once, again)) @ way
                size = float(np.abs(expected).max(initial=0.0))
                moved = max(moved, size)
                assert np.abs(ours - expected).max() < 1e-12 * max(size, 1.0), (wrt, again)
    if quantity != "kappa_g":  # gravity turns with a body that is fixed to the ground's node
        assert moved > 1e-2


@pytest.mark.prove
def test_third_derivatives_of_rows():
    """Forms are closed under differentiation."""
    loops, couplings = Closed(*CASES["turning directions"]), cubic()
    for state, expr, wrt in ((loops, Q @ x, "q"), (loops, kappa, "q"), (couplings, kappa, "v")):
        once = differentiate(differentiate(expr, wrt) @ u, wrt) @ w
        (expected,) = state.along([once], "q", state.values["w"])
        ours = state.dense().matrix(differentiate(once, "q")) @ state.values["w"]
        assert np.abs(expected).max() > 1e-2
        assert np.abs(ours - expected).max() < 1e-11 * np.abs(expected).max()


@pytest.mark.prove
def test_second_derivatives_of_constrained_dynamics():
    """Those of v̇ with couplings held: along two directions, also by a kernel, and in reverse."""
    state = cubic()
    dynamics = closed_expression(state.mech, "forward_dynamics")
    given = {"q": state.q, "v": state.v, **state.values}
    A = differentiate(dynamics, "q")
    for once in (A @ u, A.T @ w):
        B = differentiate(once, "q")
        (expected,) = state.along([once], "q", state.values["u"], Dense)
        dense = state.dense()(B @ u)
        assert np.abs(dense - expected).max() < 1e-6 * np.abs(expected).max()
        if once is A @ u:
            kernel = lw.compile(B @ u, state.mech, nodes=state.nodes)
            result = kernel(*(given[n] for n in kernel.arguments))
            assert np.abs(result - dense).max() < 1e-8 * np.abs(dense).max()


def test_loops_without_a_formula_are_named():
    state = Closed(*looped(3, ("screws",), n=3, hinges=LIGHT))
    with pytest.raises(lw.ModelError, match="loop 'screws_0' was requested"):
        state.dense()(differentiate(Q @ x, "q") @ u)
