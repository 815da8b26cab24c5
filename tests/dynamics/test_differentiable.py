"""Every named quantity by every variable: its derivative is that of differences, or an error.

The error names a symbol of the expression. Nothing is zero by omission.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import vector
from linkwise.algebra.differential import differentiate
from linkwise.algebra.differential_rules import SERVO, SPACES
from linkwise.algebra.space import CONSTRAINT
from linkwise.dynamics.closure import CLOSED, Setting
from linkwise.dynamics.quantity import QUANTITIES
from linkwise.tasks.quantity import TASK
from tests.algebra.test_differential import STENCIL
from tests.algebra.test_differential_rules import Varied, ways

WRT = tuple(x for x in SPACES if x not in ("a_g", *SERVO))
STEP = {"q": 2e-3, "v": 0.02, "inertia": 2e-2, "payload": 2e-2, "armature": 0.5, "gravity": 1.0}
SINGULAR = {"operational_inertia"}
"""Of two nodes: singular on this tree. `tests/tasks/test_derivatives.py` has it."""


def quantities():
    """Name and expression of all, in the axes of nodes and of the world."""
    J, of_bodies = lw.algebra.J, ("catter", "gather")  # x is a vector of JOINT in all others
    exprs = dict[lw.algebra.Expr, str]()
    for name, make in QUANTITIES.items():
        if name not in SINGULAR and not any(x in name for x in of_bodies):
            exprs |= {make(lw.algebra.rot_W @ J): f"{name}, world", make(J): name}
    return exprs


def applied(expr):
    """The expression, applied to a vector if it is an operator."""
    return expr if expr.is_vector else expr @ vector(f"of {expr.domain}", expr.domain)


NO_RULE = r"(.+) cannot be differentiated by (\w+): there is no rule"


def checked(state: Varied, exprs: dict, wrt: str, bound: float) -> tuple[int, set[str]]:
    """The number of derivatives that were compared, and the symbols that have no rule."""
    way, refused, kept = ways(state, wrt), set[str](), {}
    for expr in exprs:
        try:
            kept[expr] = differentiate(applied(expr), wrt)
        except lw.errors.ExpressionError as error:
            match = re.match(
                r"(.+) cannot be differentiated by (\w+): there is no rule", str(error)
            )
            assert match and match[2] == wrt, f"{exprs[expr]}: {error}"
            refused.add(match[1])
    rng, here = np.random.default_rng(2), state.at(wrt)
    for space in dict.fromkeys(expr.domain for expr in kept if not expr.is_vector):  # in order
        state.values[f"of {space}"] = rng.standard_normal(here.size(space))
    here = state.at(wrt)
    steps = [
        (c / STEP[wrt], state.at(wrt, s * STEP[wrt] * way))
        for c, s in zip(STENCIL, range(-4, 5), strict=True)
        if s
    ]
    for expr, A in kept.items():
        expected = sum(c * there(applied(expr)) for c, there in steps)
        ours = here.matrix(A) @ way
        size = max(float(np.abs(expected).max(initial=0.0)), 1.0)
        apart = np.abs(ours - expected).max(initial=0.0)
        assert apart < bound * size, f"{exprs[expr]} by {wrt}"
    return len(kept), refused


SLOW = {"gravity": (), "inertia": pytest.mark.nightly}


@pytest.mark.parametrize(
    "wrt", [pytest.param(x, marks=SLOW.get(x, pytest.mark.prove)) for x in WRT]
)
def test_trees(wrt):
    state, rng = Varied("branched"), np.random.default_rng(1)
    mech = state.mech
    state.values |= {n: rng.standard_normal(mech.nv) for n in ("tau", "vdot", "w")}
    state.values |= {"f": rng.standard_normal(12), "x": rng.standard_normal(mech.nv)}
    count, refused = checked(state, quantities(), wrt, 1e-8)
    assert count + (40 if wrt == "payload" else 0) >= 60
    assert not refused if wrt != "payload" else refused <= {"P", "weight", "R", "P⁺"}, refused


def to_well_conditioned(state: Varied, setting: Setting) -> None:
    """Take that of 20 random positions in which the closures are furthest from singular.

    Round-off of Λ grows with the condition number of Λ⁻¹, and a difference divides it by the
    step. With a number of 7e5, differences of `consistent_inverse` differ by 2e-7 from each other.
    """

    def condition(q: np.ndarray) -> float:
        state.q, A = q, setting.jacobian
        return float(np.linalg.cond(state.at("q").matrix(A @ lw.algebra.mass.inv @ A.T)))

    state.q = min((state.mech.random(seed) for seed in range(20)), key=condition)
    assert condition(state.q) < 2e5


@pytest.mark.prove
@pytest.mark.parametrize("wrt", ["q", "v"])
@pytest.mark.parametrize("name", ["loops", "couplings"])
def test_closed_chains(name, wrt):
    state, rng = Varied(name), np.random.default_rng(1)
    setting = Setting(bool(state.mech.loops), bool(state.mech.couplings))
    to_well_conditioned(state, setting)
    for n in ("tau", "vdot"):
        state.values[n] = rng.standard_normal(state.mech.nv)
    skip = {"tip_force_correction", "task_joint_force"}
    table = {**CLOSED, **TASK}
    exprs = {make(setting): n for n, make in table.items() if n not in skip}
    here = state.at("q")
    if np.linalg.matrix_rank(here(setting.jacobian)) < here.size(CONSTRAINT):
        # Λ of rows that depend on each other is a pseudo-inverse
        exprs = {e: n for e, n in exprs.items() if "⁻¹ (" not in str(e)}
    count, refused = checked(state, exprs, wrt, 2e-8)
    assert count >= 5 and not refused
