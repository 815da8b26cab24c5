"""Any well-typed expression has sweeps: dense matrices, interpreter and derived form agree."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import (
    BODY,
    NODE,
    B,
    D,
    E_phi,
    H,
    I,
    J,
    K,
    M,
    N,
    a,
    b,
    f,
    mass,
    memoryless,
    phi,
    psi,
    v,
)
from linkwise.algebra.budget import Budget
from linkwise.algebra.derivation import random_dense
from linkwise.algebra.expr import Expr, Product, product
from linkwise.errors import ExpressionError, LoweringError
from linkwise.pipeline import derive, plan
from linkwise.sweeps.cost import cost
from linkwise.sweeps.interpret import run
from linkwise.sweeps.program import Program
from tests.algebra import trees
from tests.algebra.expressions import random_expression
from tests.effort import at_most, calls

DRAWS = (trees.branched, trees.floating, trees.welded, trees.every_hinge, trees.serial)


def agreement(expr: Expr, seed: int, *, derived: bool, budget: Budget | None = None) -> bool:
    """Whether all references agree on one expression; False where the draw is ill-conditioned."""
    mech = DRAWS[seed % len(DRAWS)](seed % 23)
    nodes = [mech.bodies[-1].name, mech.bodies[0].name]
    dense = random_dense(mech, [expr], seed, nodes)
    if trees.condition(dense) > 1e4:
        return False
    want, size = dense.matrix(expr), trees.magnitude(dense, expr)
    # 1e-9 of the result, and a thousand roundings of what it is the (cancelling) sum of.
    bound = 1e-9 * np.abs(want).max(initial=0.0) + 2e-13 * size.max(initial=0.0)
    # A dense inverse rounds where the sweeps have exact zeros: one rounding of all factors' norms.
    factors = expr.factors if isinstance(expr, Product) else (expr,)
    bound += 2e-16 * np.prod([np.linalg.norm(dense.matrix(x), 2) for x in factors])
    forms = [expr, derive(expr, budget=budget).result] if derived else [expr]
    for form in forms:
        program = plan(form)
        assert len(program.statements) < 500, f"seed {seed}: {expr} takes too long"
        got = run(program, mech, dense.q, dense.v, nodes=nodes, values=dense.values)
        apart = np.abs(got.reshape(want.shape) - want).max(initial=0.0)
        assert apart <= bound, f"seed {seed}: {expr} differs by {apart:.1e} as {form}"
    return True


def many(seeds: range, *, derived: bool) -> None:
    used = sum(
        agreement(random_expression(np.random.default_rng(seed)), seed, derived=derived)
        for seed in seeds
    )
    assert used > 0.9 * len(seeds)


@pytest.mark.few(1)
@pytest.mark.parametrize("start", range(0, 600, 100))
def test_dense_and_sweeps_agree(start):
    many(range(start, start + 100), derived=False)


@pytest.mark.few(1)
@pytest.mark.parametrize("start", range(0, 120, 40))
def test_dense_sweeps_and_derived_form_agree(start):
    many(range(start, start + 40), derived=True)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("start", range(600, 5600, 500))
def test_thousands_agree(start):
    many(range(start, start + 500), derived=False)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("start", range(600, 2600, 250))
def test_thousands_of_derived_forms_agree(start):
    many(range(start, start + 250), derived=True)


# ------------------------------------------------------------------------------ linear work


def executed(program: Program, mech: lw.Mechanism) -> int:
    """Statements carried out: one for each body, whatever the number of bodies."""
    return sum(len(step.statements) for step in program.passes) * mech.n_bodies


@pytest.mark.parametrize("seed", range(12))
def test_work_is_linear(seed):
    """Statements do not know the number of bodies; operations of vectors grow linearly with it."""
    rng = np.random.default_rng(seed)
    expr = random_expression(rng, 8, sums=2)
    expr = expr if expr.is_vector else expr @ _vector(expr)
    program = plan(expr)
    short, long = lw.models.chain(20), lw.models.chain(40)
    assert executed(program, long) == 2 * executed(program, short)
    few, many = cost(program, short), cost(program, long)
    assert few.passes == many.passes
    assert many.work == pytest.approx(2.0 * few.work)


def _vector(expr: Expr) -> Expr:
    from linkwise.algebra import INBOARD, S, vdot

    choices = {"JOINT": vdot, "BODY": a, "NODE": f, "INBOARD": S.T @ b}
    assert INBOARD.name in choices
    return choices[expr.domain.name]


def test_statements_carried_out_by_the_interpreter(monkeypatch):
    from linkwise.sweeps import interpret

    counted = [0]
    execute = interpret.Interpreter.execute

    def counting(self, statement, k):
        counted[0] += 1
        return execute(self, statement, k)

    monkeypatch.setattr(interpret.Interpreter, "execute", counting)
    program = plan(derive(mass.inv @ (lw.algebra.tau - lw.algebra.bias)).result)
    counts = []
    for n in (15, 30):
        mech, counted[0] = lw.models.chain(n), 0
        run(program, mech, mech.random(0), mech.random_velocity(0), values={"tau": np.ones(n)})
        counts.append(counted[0])
    assert counts[1] == 2 * counts[0] == 2 * executed(program, lw.models.chain(15))


def test_effort_of_forward_dynamics_is_linear():
    program = plan(derive(mass.inv @ (lw.algebra.tau - lw.algebra.bias)).result)
    spent = []
    for n in (25, 100):
        mech = lw.models.chain(n)
        q, qd, tau = mech.random(0), mech.random_velocity(0), np.ones(n)
        spent.append(calls(lambda x=(mech, q, qd), u=tau: run(program, *x, values={"tau": u})))
    assert spent[0] > 25 and spent[1] < 4.2 * spent[0], "four times the bodies, four times the work"


# --------------------------------------------------------------------- no meaning, no hanging


def test_inverses_that_no_recursion_gives_are_refused():
    for expr in (
        (M + phi).inv @ a,
        (H @ phi @ M @ phi.T @ H.T + D).inv @ (H @ phi).T.T @ a,
        (phi + psi).inv,
        (mass + I).inv @ v,
    ):
        try:
            plan(expr)
        except LoweringError as error:
            assert "cannot invert" in str(error) and "Rewrite" in str(error)
        else:
            assert agreement(expr, 3, derived=False)


def test_a_missing_value_is_named():
    mech = lw.models.chain(3)
    for program in (plan(mass @ lw.algebra.tau), plan(J.T @ f), plan(memoryless("Q", BODY, BODY))):
        with pytest.raises(ExpressionError, match="no value was given for"):
            run(program, mech, mech.neutral())


def test_long_products_are_lowered():
    """Two hundred factors: no recursion limit, and no more statements than factors need."""
    expr = product([H, *[M, phi, psi.T, phi.T] * 50, b])
    program = plan(expr)
    assert len(program.statements) < 450
    mech = lw.models.chain(3)
    values = {"b": np.ones(18)}
    dense = random_dense(mech, [expr], 0)
    dense.values.update(values)
    got = run(program, mech, dense.q, dense.v, values=values)
    want = dense(expr)
    assert np.abs(got - want).max() < 1e-9 * np.abs(want).max()


def test_products_of_many_sums_do_not_explode():
    """Twenty factors of three terms are 3²⁰ words, if anybody multiplied them out."""
    factor = M + phi @ M + M @ psi.T
    expr = product([H, *[factor, I - phi, phi + psi.T] * 7, a])
    with at_most(1e7):
        program = plan(expr)
        assert len(program.statements) < 400
        form = derive(expr).result
    mech = lw.models.chain(3)
    dense = random_dense(mech, [expr], 0)
    want = dense(expr)
    size = trees.magnitude(dense, expr).max()
    for one in (program, plan(form)):
        got = run(one, mech, dense.q, dense.v, values=dense.values)
        assert np.abs(got - want).max() < 1e-9 * np.abs(want).max() + 1e-13 * size


def test_inverses_of_long_sums_are_refused_in_time():
    expr = (I + product([M + phi + psi.T] * 20)).inv @ b
    with at_most(1e7), pytest.raises(LoweringError, match="cannot invert"):
        plan(expr)


def test_scaled_inverses():
    for expr in (
        (2.0 * (I - E_phi)).inv @ b,
        (3.0 * I + 3.0 * (H @ phi @ K)).inv @ v,
        (0.5 * mass + 0.5 * N).inv @ v,
        (-mass).inv @ v,
        (2.0 * M).inv @ b,
    ):
        assert agreement(expr, 2, derived=True)


def test_inverses_of_sums_of_mass_operators():
    """Payloads in the core, damping beside the mass operator: a Riccati recursion of their own."""
    load = memoryless("Q", BODY, BODY, definite=True)
    for expr in (
        (H @ phi @ (M + load) @ phi.T @ H.T).inv @ v,
        (mass + H @ phi @ load @ phi.T @ H.T).inv @ v,
        (mass + 2.0 * N + D).inv @ v,
        (I + mass).inv @ v,
        (0.1 * I + 3.0 * mass).inv @ v,
        J @ (mass + 0.5 * I).inv @ J.T @ f,
        (M + load).inv @ b,
        (M.inv + load.inv).inv @ b,
        (2.0 * I - lw.algebra.Pi).inv @ b,
        (D + H @ M @ H.T).inv @ v,
    ):
        for seed in (1, 2, 5):
            assert agreement(expr, seed, derived=True), expr
        assert derive(expr).replay()


def test_what_is_not_block_diagonal_is_not_taken_for_it():
    """a a* and B W B* reach from body to body, or have no block at a body."""
    for expr in ((M + a @ a.T).inv @ b, (M + B @ B.T).inv @ b, (D + v @ v.T).inv @ v):
        with pytest.raises(LoweringError):
            plan(expr)
    assert (a @ b.T).causality == "mixed"


@pytest.mark.few(1)
@pytest.mark.parametrize("budget", [Budget(1, 1), Budget(0, 0), Budget(2, 40)])
def test_a_tiny_budget_ends_politely(budget):
    for seed in range(10):
        expr = random_expression(np.random.default_rng(seed), 8, sums=2)
        with at_most(1e7):
            derivation = derive(expr, budget=budget)
        assert derivation.replay()
        agreement(expr, seed, derived=True, budget=budget)


def test_small_dense_inverses_over_nodes():
    """The operational-space inertia, and a product of two inverses."""
    assert (J @ mass.inv @ J.T).range is NODE
    mech = trees.floating(4)
    nodes = [mech.bodies[-1].name]
    for expr in (
        (J @ mass.inv @ J.T).inv,
        (J @ mass.inv @ J.T).inv @ J @ mass.inv @ lw.algebra.tau,
        (I + B.T @ M @ B).inv @ (J @ mass.inv @ J.T).inv @ f,
    ):
        dense = random_dense(mech, [expr], 4, nodes)
        got = run(plan(expr), mech, dense.q, dense.v, nodes=nodes, values=dense.values)
        want = dense(expr)
        assert np.abs(got - want).max() < 1e-9 * np.abs(want).max()
