"""A program means what its statements say: every number in them counts, however it is run.

Lowering gives most terms the number 1. Here each gets another one. A run that takes a statement for
the definition of its target, and does not read it, then gives other numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import (
    D,
    E_psi,
    Expr,
    G,
    H,
    J,
    K,
    M,
    Omega,
    P_plus,
    Pi_bar,
    R,
    Upsilon,
    Xi,
    b,
    bias,
    f,
    mass,
    phi,
    psi,
    tau,
    v,
    vdot,
)
from linkwise.algebra.derivation import random_dense
from linkwise.codegen.c.selftest import evaluate
from linkwise.codegen.cpu.build import loaded, signature_of, unit
from linkwise.codegen.cpu.device import Processor
from linkwise.codegen.cpu.machine import object_code
from linkwise.codegen.kernel import Kernel
from linkwise.codegen.request import Request
from linkwise.codegen.rolled.roll import roll
from linkwise.codegen.scalar.trace import trace
from linkwise.dynamics.closure import CLOSED, Setting
from linkwise.model.closure import closure_nodes
from linkwise.pipeline import derive
from linkwise.spatial.array import Array
from linkwise.sweeps.interpret import run
from linkwise.sweeps.lower import lower
from linkwise.sweeps.program import Program, Term
from tests.dynamics.test_printed_closed import armed_four_bar
from tests.dynamics.test_printed_expressions import SMALL
from tests.loops.embedding_cases import coupled_tree

NODES = ("tool", "other")

FORWARD = derive(mass.inv @ (tau - bias)).result

EXPRESSIONS: dict[str, Expr] = {
    "forward dynamics": FORWARD,
    "the bare tree": derive((H @ phi @ M @ phi.T @ H.T).inv @ (tau - bias)).result,
    "inverse dynamics": mass @ vdot + 2.0 * bias + J.T @ f,
    "articulated blocks": H @ ((P_plus + Pi_bar + E_psi) @ b + psi @ K @ tau + G @ D @ tau),
    "outward recursions": (Upsilon + Omega + 0.5 * Xi) @ b + H.T @ D.inv @ tau,
    "composites": (D + H @ R @ H.T).inv @ v,
    "a number": 0.5 * v.T @ mass @ v - tau.T @ vdot + f.T @ J @ v,
    "a number times a vector": mass @ tau @ (v.T @ mass @ v),
}
"""Between them every kind of statement that has terms."""


def renumbered(program: Program, number: Callable[[int, Term], float]) -> Program:
    """The program with other numbers: by how many terms stand before, and the term."""
    count, passes = 0, []
    for step in program.passes:
        statements = []
        for statement in step.statements:
            terms = list[Term]()
            for term in statement.terms:
                terms.append(replace(term, number=number(count, term)))
                count += 1
            statements.append(replace(statement, terms=tuple(terms)))
        passes.append(replace(step, statements=tuple(statements)))
    return replace(program, passes=tuple(passes))


def drawn(program: Program, seed: int) -> Program:
    """With all numbers changed; less is subtracted in P⁺, so that D stays positive definite."""
    rng = np.random.default_rng(seed)

    def number(_: int, term: Term) -> float:
        less = term.number < 0.0 or (term.operand is None and len(term.left) == 3)
        return term.number * (rng.uniform(0.9, 0.95) if less else rng.uniform(1.1, 1.15))

    return renumbered(program, number)


def state(mech: lw.Mechanism, expr: Expr, nodes: tuple[str, ...]) -> dict[str, Array]:
    dense = random_dense(mech, [expr], 3, nodes)
    return {"q": dense.q, "v": dense.v, **dense.values}


def interpreted(program: Program, mech, given: dict[str, Array], nodes) -> Array:
    return run(program, mech, given["q"], given["v"], nodes=nodes, values=given)


def traced(program: Program, mech, given: dict[str, Array], nodes) -> Array:
    """By the scalar graph, the same for all targets with straight code."""
    result = trace(program, mech, nodes)
    arrays = [given[name][None] for name, _ in result.inputs]
    return evaluate(result, arrays, "float64")[0].reshape(result.shape)


def rolled(program: Program, mech: lw.Mechanism, given: dict[str, Array], nodes) -> Array:
    """By machine code with loops over the bodies."""
    request = Request((program.expr,), mech, tuple(nodes), rolled=True, derive=False)
    loops = roll(program, mech, nodes)
    text = unit(loops, 8)
    code = Processor(request, signature_of(loops, 8), loaded(text, object_code(text)))
    kernel = Kernel(request, "cpu", code)
    return kernel(*(given[name] for name in kernel.arguments))


def check(expr: Expr, mech, given: dict[str, Array], nodes, way: Callable[..., Array]) -> None:
    """A way to run programs agrees with the interpreter on one that no definition gives."""
    program = lower(expr)
    other, first = drawn(program, 7), interpreted(program, mech, given, nodes)
    expected = interpreted(other, mech, given, nodes)
    scale = np.abs(first).max()
    assert scale > 1e-3 and np.abs(expected - first).max() > 1e-2 * scale, "the numbers matter"
    np.testing.assert_allclose(way(other, mech, given, nodes), expected, atol=1e-10 * scale)


@pytest.mark.few(4)
@pytest.mark.parametrize("way", [traced, rolled])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_compiled_code_reads_every_number_as_the_interpreter_does(name: str, way):
    expr = EXPRESSIONS[name]
    check(expr, SMALL, state(SMALL, expr, NODES), NODES, way)


def test_closed_chains_and_aggregates_read_every_number():
    mech = armed_four_bar()
    expr = lw.derive(CLOSED["forward_dynamics"](Setting())).result
    nodes = closure_nodes(mech)
    check(expr, mech, state(mech, expr, nodes), nodes, traced)
    embedded = lw.loops.embed(coupled_tree(1))
    assert max(len(x.bodies) for x in embedded.bodies) > 1
    given = {"q": embedded.mech.random(0), "v": np.ones(embedded.nv), "tau": np.ones(embedded.nv)}
    check(FORWARD, embedded, given, (), traced)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_no_number_is_left_unread(name: str):
    """One after another, in the interpreter: each makes a difference."""
    expr = EXPRESSIONS[name]
    program, given = lower(expr), state(SMALL, expr, NODES)
    first = interpreted(program, SMALL, given, NODES)
    terms = [(s, term) for s in program.statements for term in s.terms]
    for i, (statement, term) in enumerate(terms):
        other = renumbered(program, lambda n, x, i=i: x.number * (0.9 if n == i else 1.0))
        off = np.abs(interpreted(other, SMALL, given, NODES) - first).max()
        assert off > 1e-6 * np.abs(first).max(), f"{statement.target}: {term}"


def gained(mech: lw.Mechanism, q: Array, x: Array, c: float) -> Array:
    """G x with G(k) = c P H* D⁻¹, and P⁺ = P - G H P, from its recursion."""
    P, out = mech.inertias.matrix.copy(), list[Array]()
    for k in reversed(range(mech.n_bodies)):
        body, at = mech.bodies[k], mech.v_slice(mech.bodies[k].hinge_name)
        q_k = q[mech.q_slice(body.hinge_name)]
        H_k = body.hinge.hinge_map(q_k) @ body.outboard.shift
        gain = c * P[k] @ H_k.T @ np.linalg.inv(H_k @ P[k] @ H_k.T + np.diag(mech.armature[at]))
        out.insert(0, gain @ x[at])
        if mech.parent[k] >= 0:
            E = body.pose(q_k).shift
            P[mech.parent[k]] += E @ (P[k] - gain @ H_k @ P[k]) @ E.T
    return np.concatenate(out)


@pytest.mark.parametrize("way", [interpreted, traced, rolled])
def test_the_number_of_a_gain_counts(way):
    """Lowering writes G(k) = 1 · P H* D⁻¹; with another number, P⁺ of the body has it too."""
    program, given = lower(G @ tau), state(SMALL, G @ tau, ())
    q, x = given["q"], given["tau"]
    np.testing.assert_allclose(way(program, SMALL, given, ()), gained(SMALL, q, x, 1.0), atol=1e-12)
    (gain,) = [s.terms[0] for s in program.statements if s.target.block and s.target.key is G]
    half = renumbered(program, lambda _, term: 0.5 if term is gain else term.number)
    expected = gained(SMALL, q, x, 0.5)
    assert np.abs(2.0 * expected - gained(SMALL, q, x, 1.0)).max() > 1e-2, "P⁺ changes as well"
    np.testing.assert_allclose(way(half, SMALL, given, ()), expected, atol=1e-12)
