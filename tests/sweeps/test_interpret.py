"""The interpreter: the dot test of every operator, columns, edge cases, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import (
    BODY,
    JOINT,
    NODE,
    ONE,
    VOCABULARY,
    B,
    D,
    Expr,
    H,
    I,
    J,
    M,
    R,
    Space,
    a,
    b,
    bias,
    f,
    mass,
    memoryless,
    phi,
    phi_tilde,
    psi,
    shift,
    tau,
    v,
    vdot,
    vector,
)
from linkwise.algebra.dense import Dense
from linkwise.algebra.derivation import random_dense
from linkwise.algebra.expr import Identity
from linkwise.algebra.family import resolvent
from linkwise.algebra.space import CONSTRAINT
from linkwise.errors import ShapeError, SingularHingeError
from linkwise.model.hinges import Locked, Pin
from linkwise.pipeline import derive, plan
from linkwise.sweeps.cost import cost
from linkwise.sweeps.interpret import run
from linkwise.sweeps.lower import lower
from linkwise.sweeps.numbers import generalised_solve
from tests.algebra import trees
from tests.algebra.expressions import LETTERS, UNARMED

OPERATORS = [
    letter
    for letter in dict.fromkeys([*VOCABULARY.values(), *LETTERS, *UNARMED])
    if not letter.is_vector and not isinstance(letter, Identity)
]


def swept(expr: Expr, dense, **values) -> np.ndarray:
    nodes = [node.name for node in dense.nodes]
    given = {**dense.values, **values}
    return run(plan(expr), dense.mech, dense.q, dense.v, nodes=nodes, values=given)


def probe(name: str, space: Space) -> Expr:
    return vector(name, space)


@pytest.mark.few(20)
@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_dot_test(operator):
    """⟨A x, y⟩ = ⟨x, A* y⟩ with both sides swept, and A x as the matrix has it."""
    for seed, draw in enumerate((trees.branched, trees.floating, trees.welded, trees.serial)):
        mech = draw(seed + 3)
        if CONSTRAINT in (operator.range, operator.domain):
            ends = mech.bodies[-1].name, mech.bodies[0].name
            mech = replace(mech, loops=(lw.Loop("ring", *ends, lw.hinges.Spherical()),))
        rng = np.random.default_rng(seed)
        nodes = [mech.bodies[-1].name, mech.bodies[0].name, mech.bodies[-1].name]
        dense = random_dense(mech, [operator], seed, nodes)
        x = rng.standard_normal(dense.size(operator.domain))
        y = rng.standard_normal(dense.size(operator.range))
        there = swept(operator @ probe("x", operator.domain), dense, x=x)
        back = swept(operator.T @ probe("y", operator.range), dense, y=y)
        size = np.abs(y) @ np.abs(dense.matrix(operator)) @ np.abs(x)
        assert size > 0.0 or str(operator) != "Q0"  # Y has rows of couplings only
        assert abs(there @ y - x @ back) <= 1e-12 * size
        assert np.abs(there - dense.matrix(operator) @ x).max(initial=0.0) <= 1e-11 * max(
            size, 1e-300
        )


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_columns_are_the_matrix(operator):
    mech = trees.branched(7)
    dense = random_dense(mech, [operator], 7, [mech.bodies[-1].name, mech.bodies[1].name])
    want, got = dense.matrix(operator), swept(operator, dense)
    assert got.shape == want.shape
    off, size = np.abs(got - want), np.abs(want)  # empty for Q and Y of a tree
    assert off.max(initial=0.0) <= 1e-11 * size.max(initial=1e-300)


# ------------------------------------------------------------------------------- edge cases


def test_identity_and_zero():
    mech = trees.branched(2)
    dense = random_dense(mech, [tau], 2)
    n = mech.nv
    assert np.array_equal(swept(tau, dense), dense.values["tau"])
    assert np.array_equal(swept(0.0 * tau, dense), np.zeros(n))
    assert np.array_equal(swept(D @ D.inv, dense), np.eye(n))
    assert np.array_equal(swept(0.0 * D, dense), np.zeros((n, n)))
    assert np.array_equal(swept(3.0 * (D @ D.inv) @ tau, dense), 3.0 * dense.values["tau"])


def test_a_mechanism_that_cannot_move():
    """Bodies, but no freedom: vectors of length zero, matrices without rows."""
    builder = lw.Builder("still")
    builder.body("block", hinge=Locked(), inertia=lw.SpatialInertia.solid_sphere(1.0, 0.1))
    builder.body("top", "block", Locked(), inertia=lw.SpatialInertia.solid_sphere(1.0, 0.1))
    mech = builder.build()
    dense = random_dense(mech, [tau, f], 0, ["top"])
    for expr in (mass.inv @ (tau - bias), mass, mass.inv, J, J @ mass.inv @ J.T):
        for form in (expr, derive(expr).result):
            want, got = dense(expr), swept(form, dense)
            assert got.shape == want.shape
            assert np.abs(got - want).max(initial=0.0) == 0.0


def test_a_mechanism_without_bodies():
    mech = lw.Builder("empty").build()
    node_free = [mass, mass.inv, mass.inv @ (tau - bias), M @ phi, v.T @ mass @ v]
    for expr in node_free:
        got = run(plan(expr), mech, np.zeros(0), values={"tau": np.zeros(0)})
        rows = 1 if expr.range.name == "ONE" else 0
        assert got.shape[0] == rows


def test_nodes_on_the_ground_do_not_move():
    builder = lw.Builder("arm")
    ball = lw.SpatialInertia.solid_sphere(1.0, 0.1).moved(lw.Pose.translation((0.3, 0.0, 0.0)))
    builder.body("arm", hinge=Pin((0.0, 0.0, 1.0)), inertia=ball)
    builder.node("bench", "world", lw.Pose.translation((1.0, 0.0, 0.0)))
    builder.node("hand", "arm", lw.Pose.translation((0.6, 0.0, 0.0)))
    mech = builder.build()
    for nodes in (["bench"], ["bench", "hand"], ["hand", "bench"], ["hand", "hand"], []):
        dense = random_dense(mech, [f, v], 1, nodes)
        for expr in (J, J.T, J @ mass.inv @ J.T, J @ v, J.T @ f, B @ B.T @ b, f.T @ J @ v):
            want, got = dense(expr), swept(expr, dense)
            assert got.shape == want.shape
            assert np.allclose(got, want, atol=1e-13)


def test_gravity_and_velocity_enter_by_the_biases():
    mech = trees.branched(4)
    q, qd = mech.random(4), mech.random_velocity(4)
    still = run(plan(bias), mech, q)
    moving = run(plan(bias), mech, q, qd)
    assert np.abs(still).max() > 1e-2 and np.abs(moving - still).max() > 1e-3
    # Without gravity a mechanism at rest has no bias.
    assert np.abs(run(plan(bias), mech, q, values={"a": np.zeros(6 * mech.n_bodies)})).max() < 1e-14


def test_given_biases_are_used():
    mech = trees.branched(4)
    q, rng = mech.random(4), np.random.default_rng(0)
    given = {s: rng.standard_normal(6 * mech.n_bodies) for s in ("a", "b")}
    dense = lw.algebra.dense.Dense(mech, q, values=given)
    for expr in (a, b, bias, mass.inv @ bias):
        got = run(plan(expr), mech, q, values=given)
        assert np.allclose(got, dense(expr), rtol=1e-9, atol=1e-9)


def test_a_number_of_ones_own():
    """A vector of the space ONE is a scale that is given when the expression is evaluated."""
    mech, gain = trees.branched(4), vector("s", ONE)
    values = {"s": np.array([2.5]), "tau": np.ones(mech.nv)}
    dense = lw.algebra.dense.Dense(mech, mech.random(4), values=values)
    for expr in (gain, tau @ gain, tau @ gain @ gain, gain.T @ tau.T @ mass @ tau):
        got = run(plan(expr), mech, dense.q, values=values)
        assert np.allclose(got, dense(expr), rtol=1e-12)


def test_deep_chains_do_not_recurse():
    mech = lw.models.chain(1500)
    program = plan(derive(mass.inv @ (tau - bias)).result)
    out = run(program, mech, mech.random(0), values={"tau": np.zeros(1500)})
    assert np.isfinite(out).all()


def test_armature_is_part_of_the_inverse():
    mech = lw.models.chain(4, armature=0.3)
    q, torque = mech.random(1), np.arange(4.0)
    got = run(plan(mass.inv @ tau), mech, q, values={"tau": torque})
    matrix = run(plan(mass), mech, q)
    bare = run(plan(H @ phi @ M @ phi.T @ H.T), mech, q)
    assert np.allclose(matrix, bare + 0.3 * np.eye(4), atol=1e-14)
    assert np.allclose(matrix @ got, torque, atol=1e-12)


# --------------------------------------------------------------------------------- refusals


def test_a_massless_tip_is_named():
    builder = lw.Builder("loose")
    builder.body("upper", hinge=Pin(), inertia=lw.SpatialInertia.solid_sphere(1.0, 0.1))
    builder.body("loose", "upper", Pin((1.0, 0.0, 0.0)))
    mech = builder.build()
    with pytest.raises(SingularHingeError, match="'loose'"):
        run(plan(mass.inv @ tau), mech, mech.neutral(), values={"tau": np.zeros(2)})


def test_wrong_shapes_are_named():
    mech = lw.models.chain(3)
    with pytest.raises(ShapeError, match="τ has shape"):
        run(plan(mass.inv @ tau), mech, mech.neutral(), values={"tau": np.zeros(4)})
    with pytest.raises(ShapeError):
        run(plan(mass), mech, np.zeros(5))
    weight = memoryless("W", BODY, BODY)
    for wrong in (np.zeros((2, 6, 6)), np.zeros((3, 6, 5))):
        with pytest.raises(ShapeError, match="W has"):
            run(plan(weight @ a), mech, mech.neutral(), values={"W": wrong})
        with pytest.raises(ShapeError, match="W has"):
            lw.algebra.dense.Dense(mech, mech.neutral(), values={"W": wrong})(weight)
    with pytest.raises(lw.errors.ModelError, match="no_such"):
        run(plan(J), mech, mech.neutral(), nodes=["no_such"])


def test_own_operators_over_nodes_and_bodies():
    weight = memoryless("W", NODE, NODE, definite=True)
    step, gain = shift("F"), memoryless("C", JOINT, BODY)
    mech = trees.branched(3)
    for expr in (
        J.T @ weight @ J @ v,
        weight.inv @ J @ v,
        (weight + J @ mass.inv @ J.T).inv @ f,
        gain @ resolvent(step) @ M @ resolvent(step).T @ gain.T @ vdot,
        gain @ (I - step).inv @ b,
    ):
        dense = random_dense(mech, [expr], 3, [mech.bodies[-1].name, mech.bodies[0].name])
        want, got = dense(expr), swept(expr, dense)
        assert np.abs(got - want).max() <= 1e-9 * np.abs(want).max()


# -------------------------------------------------------------------------------- schedule


def passes(expr: Expr) -> list[str]:
    return [step.direction for step in plan(expr).passes]


def test_fewest_passes():
    up, down = "tip_to_base", "base_to_tip"
    assert passes(H @ phi @ b) == [down, up]  # b comes from the velocities
    assert passes(J.T @ f) == [up]
    assert passes(J @ v) == [down]
    assert passes(mass @ vdot) == [down, up]
    assert passes(phi @ M @ phi.T @ H.T @ vdot) == [down, up]
    assert passes(mass.inv @ tau) == [up, down]
    assert passes(psi.T @ H.T @ D.inv @ H @ psi @ B @ f) == [up, down]
    assert passes(phi @ M @ B @ f + psi @ B @ f) == [up]


def test_equal_parts_are_computed_once():
    x = phi.T @ H.T @ vdot
    once = len(plan(M @ x).statements)
    twice = plan(M @ x + 2.0 * (phi @ M @ x) + phi @ x)
    assert len(twice.statements) <= once + 4
    names = [s.target.name for s in twice.statements]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("expr", [mass.inv @ (tau - bias - J.T @ f), J @ mass.inv @ J.T, mass])
def test_every_quantity_is_given_before_it_is_read(expr):
    program = plan(expr)
    known = set()
    for step in program.passes:
        ours = {s.target.ident for s in step.statements}
        done = set(known)
        for statement in step.statements:
            for ident, place in statement.needs():
                if place == "k" and ident in ours and ident != statement.target.ident:
                    assert ident in done, f"{statement.target} reads {ident[0]} too early"
            done.add(statement.target.ident)
        known = done
    assert program.result.ident in known


def test_the_lower_half_is_the_mirror_of_the_upper_one():
    """Only of X + Y + Y* with nothing of Y on the diagonal: M of φ M + M φ* stands there twice."""
    mirrored, full = R + phi_tilde @ R + R @ phi_tilde.T, phi @ M + M @ phi.T
    assert plan(mirrored).mirrored and not plan(full).mirrored
    for expr in (mirrored, full):
        dense = random_dense(trees.floating(3), [expr], 3)
        result, expected = run(plan(expr), dense.mech, dense.q), dense(expr)
        assert np.abs(expected[:6, 6:]).max() > 0.1
        np.testing.assert_allclose(result, expected, atol=1e-11 * np.abs(expected).max())


def test_cost_counts_freedoms():
    program = plan(mass.inv @ tau)
    assert cost(program, lw.models.chain(10)).work > cost(program, lw.models.chain(5)).work
    assert cost(program).passes == 2


def test_rows_that_depend_on_each_other_are_solved():
    """Rows of very different units, one of them twice and one of zeros: A x = b is fulfilled."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((3, 5)) * np.array([[1e-3], [1.0], [1e4]])
    J = np.vstack([rows, rows[1], np.zeros(5)])
    A, b = J @ J.T, J @ rng.standard_normal((5, 2))
    result = generalised_solve(A, b, "A")
    scale = np.abs(J).sum(axis=1, keepdims=True) + 1e-300
    np.testing.assert_allclose((A @ result)[:4] / scale[:4], b[:4] / scale[:4], rtol=1e-9)
    np.testing.assert_allclose(result[1], result[3], rtol=1e-6)  # shared, which has the least norm
    exact = np.linalg.solve(rows[1:] @ rows[1:].T, b[1:3])
    np.testing.assert_allclose(generalised_solve(rows[1:] @ rows[1:].T, b[1:3], "A"), exact)


@pytest.mark.parametrize("expr", [phi + phi @ M, phi + psi, H @ (phi + phi @ M) @ H.T], ids=str)
def test_a_resolvent_may_stand_alone_in_a_sum(expr):
    """φ + φ M is one recursion, φ (1 + M)."""
    mech = lw.models.random_tree(4, 1)
    q = mech.random(seed=1)
    expected = Dense(mech, q)(expr)
    assert np.abs(expected).max() > 1.0
    np.testing.assert_allclose(run(lower(expr), mech, q), expected, rtol=0.0, atol=1e-13)
