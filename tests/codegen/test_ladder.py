"""The ladder of references: every way to evaluate an expression agrees with the one before it.

Matrices multiplied out = sweeps of the expression as it stands = sweeps of its cheapest form =
machine code for one state = for batches of odd sizes = in single precision = with loops over
bodies = emitted C = CUDA source compiled for the processor. Differences are bounded by rounding and
condition (`rounding.py`), state by state; statuses agree wherever rounding does not decide them.
"""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import J, N, bias, f, mass, tau
from linkwise.dynamics.quantity import QUANTITIES, expression
from linkwise.errors import LoweringError
from tests.algebra import trees
from tests.codegen.rungs import C_COMPILER, CPP_COMPILER, DENSE, FEW, STATES, Case

MECHANISMS = {
    "tree": lambda: lw.models.random_tree(5, 3),
    "floating": lambda: lw.models.random_tree(4, 2, floating=True),
    "chain": lambda: lw.models.chain(4),
    "limb": lambda: trees.serial(4),
    "welded": lambda: trees.welded(3),
}
NAMED = [(name, which) for name in QUANTITIES for which in MECHANISMS]
USUAL = [pair for i, pair in enumerate(NAMED) if i % len(MECHANISMS) == (i // 5) % 3]
"""Each quantity on one of the first three mechanisms; the others are marked slow."""

SINGULAR = [("operational_inertia", "chain"), ("operational_inertia", "welded")]
"""Where six directions cannot be accelerated independently."""


def agree(rung, found, expected, bound, rows):
    """Results of a rung, on some rows, within a bound for each entry."""
    apart = np.abs(found - expected)[rows]
    wrong = ~(apart <= bound[rows])
    with np.errstate(all="ignore"):
        worst = (apart / bound[rows])[wrong].max(initial=0.0)
    assert not wrong.any(), f"{rung}: {worst:.1e} times what rounding explains"


def same_trouble(rung, codes, right):
    """Trouble where the checks of the graph fail, unless rounding decides it."""
    sure = ~right.unsure
    np.testing.assert_array_equal((codes != 0)[sure], right.fails[sure], err_msg=rung)


def climb(case, folder, *, least=3):
    """All rungs of one case; at least so many states have to be fine."""
    right = case.bound()
    straight = case.kernel()
    scalar, codes = straight.one_by_one()
    same_trouble("scalar", codes, right)
    fine = codes == 0
    assert fine.sum() >= least, f"only {fine.sum()} of {STATES} states have a result"
    agree("scalar", scalar, right.value, 2.0 * right.error, fine)  # both round
    slow(case, scalar, right, [i for i in DENSE if fine[i]])
    for count in FEW:
        found, batch_codes = straight.batch(count)
        np.testing.assert_array_equal(batch_codes, codes[:count])
        agree(f"batch of {count}", found, scalar[:count], 2.0 * right.error[:count], fine[:count])
        assert np.isnan(found[~fine[:count]]).all()
    whole = case.bound(whole=True)
    rolled = case.kernel(rolled=True)
    for rung, (found, other_codes) in {
        "rolled": rolled.one_by_one(),
        "rolled batch": rolled.batch(STATES),
    }.items():
        same_trouble(rung, other_codes, whole)
        both = fine & (other_codes == 0)
        agree(rung, found, scalar, right.error + whole.error, both)
    single(case, right)
    emitted = {
        "C": (C_COMPILER, case.c_function, "c"),
        "CUDA": (CPP_COMPILER, case.cuda_on_host, "cuda"),
    }
    for rung, (compiler, evaluated, place) in emitted.items():
        if compiler is not None:
            (folder / place).mkdir()
            found, other_codes = evaluated(folder / place)
            same_trouble(rung, other_codes, right)
            both = fine & (other_codes == 0)
            agree(rung, found, scalar, 2.0 * right.error, both)
            assert np.isnan(found[other_codes != 0]).all()


def slow(case, scalar, right, states):
    """Matrices and interpreters."""
    by_numpy = case.by_numpy(states)
    for row, i in enumerate(states):
        dense, error = case.dense(i)
        error = error + right.error[i]
        rungs = {"numpy": by_numpy[row], "scalar": scalar[i]}
        try:
            rungs["interpreter"] = case.interpreted(i)
        except LoweringError as refused:  # derivation has to come first
            assert "cannot invert" in str(refused)
        for rung, found in rungs.items():
            agree(f"{rung} against matrices", found[None], dense[None], error[None], [0])


def single(case, right):
    """Single precision, straight and with loops, batches and one by one."""
    low, looped = case.bound(4), case.bound(4, whole=True)
    straight, rolled = case.kernel(np.float32), case.kernel(np.float32, rolled=True)
    for rung, (found, codes), bound in (
        ("float32", straight.one_by_one(DENSE), low),
        ("float32 batch", straight.batch(STATES), low),
        ("float32 rolled", rolled.batch(STATES), looped),
    ):
        states = list(DENSE) if len(found) == len(DENSE) else list(range(STATES))
        assert found.dtype == np.float32
        fine = (codes == 0) & ~bound.fails[states]
        agree(rung, found, right.value[states], bound.error[states], fine)
        sure = ~bound.unsure[states]
        np.testing.assert_array_equal((codes != 0)[sure], bound.fails[states][sure], err_msg=rung)


def nodes_of(mech):
    return [mech.bodies[-1].name, mech.bodies[0].name]


# ------------------------------------------------------------------------- named quantities


@pytest.mark.parametrize(
    ("name", "which"),
    [
        pytest.param(*pair, marks=() if pair in USUAL else pytest.mark.slow)
        for pair in NAMED
        if pair not in SINGULAR
    ],
)
def test_named_quantities(name, which, tmp_path):
    mech, number = MECHANISMS[which](), NAMED.index((name, which))
    frame = "world" if number % 2 else "node"
    expr = expression(name, armature=number % 3 != 0, frame=frame)
    nodes = nodes_of(mech)[: 1 if name == "operational_inertia" else 2]
    climb(Case(expr, mech, nodes, seed=number), tmp_path)


@pytest.mark.parametrize("kind", lw.models.HINGE_KINDS)
def test_every_hinge(kind, tmp_path):
    """A branch of two bodies on one, each on that hinge or a pin."""
    mech = lw.models.random_tree(3, 5, hinges=(kind, "pin", kind))
    expr = (mass + N).inv @ (tau - bias + J.T @ f)
    climb(Case(expr, mech, [mech.bodies[-1].name]), tmp_path)
