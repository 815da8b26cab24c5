"""Results of many entries for one state: stored as they come, and looked at in the end.

The same numbers as for a register of states, whose entries are stored together, and the same
status. Those of one piece, of parts, and with few entries that are not zero.
"""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen import stages
from linkwise.codegen.cpu import ir, llvm
from linkwise.codegen.cpu.emit import Emitter
from linkwise.codegen.cpu.llvm import GraphBody
from linkwise.dynamics.derivatives import INVERSE_DERIVATIVES
from linkwise.dynamics.regressor import FORMULAS
from tests.cases import close

TREES = {
    "arm": lambda: lw.models.random_tree(3, 7),
    "legs": lw.models.quadruped,
}
WRITTEN = {"derivatives": INVERSE_DERIVATIVES, "regressor": FORMULAS["torque"]}


def kernel(mech, formula):
    return lw.compile(formula, mech, cache=False)


def body(made):
    return GraphBody(Emitter(ir.Module(), 8, 1), stages.graph(made.request), at_once=True)


def parted(result):
    return list(result.values()) if isinstance(result, dict) else [result]


def values(result):
    return np.concatenate([np.ravel(x) for x in parted(result)])


@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("formula", WRITTEN)
def test_one_state_is_as_several(name, formula, parts, monkeypatch):
    if parts:
        monkeypatch.setattr(llvm, "LONGEST", 500)
    mech, rng = TREES[name](), np.random.default_rng(0)
    made = kernel(mech, WRITTEN[formula])
    assert body(made).at_once
    q = np.stack([mech.random(rng) for _ in range(8)])
    v, x = rng.standard_normal((2, 8, mech.nv))
    every, codes = made(q, v, x), np.zeros((), np.int32)
    one = made(q[3], v[3], x[3], status=codes)
    close(values(one), np.concatenate([part[3].ravel() for part in parted(every)]), 1e-13)
    assert codes == 0
    for bad, code in (((q[3], v[3] * 1e200, x[3]), 2), ((q[3], v[3], x[3] * np.nan), 1)):
        result = made(*bad, status=codes)
        assert codes == code and np.isnan(values(result)).all()


def test_entries_are_looked_at_in_memory_where_few_are_zero():
    arm, legs = (body(kernel(tree(), INVERSE_DERIVATIVES)) for tree in TREES.values())
    assert arm.at_once and arm.by_rows and legs.at_once
    sparse = body(kernel(TREES["legs"](), FORMULAS["torque"]))
    assert sparse.at_once and not sparse.by_rows
    part = GraphBody(Emitter(ir.Module(), 8, 1), arm.traced)  # of other code, as loops over islands
    assert not part.at_once and not part.by_rows
    small = body(lw.compile(lw.algebra.mass, lw.models.puma560(), cache=False))
    assert not small.at_once and not small.by_rows
