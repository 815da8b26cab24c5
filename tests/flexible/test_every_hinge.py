"""Flexible bodies on every hinge: dense = interpreter = kernel = C, and operation counts."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import J, bias, mass, vdot
from linkwise.algebra.dense import Dense
from linkwise.algebra.space import JOINT
from linkwise.model.body import Lump
from linkwise.sweeps.interpret import run
from linkwise.sweeps.lower import lower
from tests.codegen.test_c import compiled
from tests.flexible.cases import inertia, node, place
from tests.model.hinge_cases import HINGES as CASES

EXACT = 1e-12
KINDS = {type(hinge): name for name, hinge in CASES.items()}
"""The last hinge of each class."""


def mechanism(seed, hinge, modes=2, lumps=2):
    """A flexible body on this hinge, with a motor where that is possible, and a rigid one on it."""
    rng = np.random.default_rng(seed)
    b = lw.Builder("every hinge")
    b.body("base", "world", lw.hinges.Pin((1, 0, 0)), inertia=inertia(rng))
    b.body("root", "base", hinge, inboard=place(rng), inertia=inertia(rng))
    if hinge.nq == hinge.nv == 1:
        b.motor(
            "root", lw.SpatialInertia.from_com(0.2, (0, 0, 0.01), (1e-3, 2e-3, 2e-3)), ratio=9.0
        )
    parts = [Lump(node(rng, modes, turns=j > 0), inertia(rng)) for j in range(lumps)]
    b.body("tip", "root", node(rng, modes), inboard=place(rng), inertia=inertia(rng), lumps=parts)
    b.body("leaf", "tip", hinge, inboard=place(rng), inertia=inertia(rng))
    return b.build()


def same(value, reference, tolerance=EXACT):
    assert np.abs(reference).max() > 0.0
    np.testing.assert_allclose(value, reference, rtol=0.0, atol=tolerance * np.abs(reference).max())


@pytest.mark.few(2)
@pytest.mark.parametrize("name", sorted(KINDS.values()))
def test_dense_interpreter_kernel_and_c_agree(name, tmp_path):
    hinge = CASES[name]
    mech = mechanism(len(name), hinge)
    rng = np.random.default_rng(7)
    q, v = mech.random(rng), mech.random_velocity(rng)
    reference = Dense(mech, q, v)(bias)
    same(run(lower(bias), mech, q, v), reference)
    same(lw.compile(bias, mech)(q, v), reference)
    code, result = compiled(tmp_path, lw.compile(bias, mech, target="c"))((q, v), (mech.nv,))
    assert code == 0
    same(result, reference)
    tau = rng.standard_normal(mech.nv)
    vdot = np.linalg.solve(Dense(mech, q, v)(mass), tau - reference)
    same(lw.forward_dynamics(mech, q, v, tau), vdot, 1e-8)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", sorted(KINDS.values()))
@pytest.mark.parametrize(
    "expr", [mass, J, mass @ vdot + bias, J @ mass.inv @ J.T], ids=("mass", "J", "inverse", "felt")
)
def test_other_quantities_agree(name, expr):
    """Dense matrices, sweeps and compiled kernels; on a leaf behind a flexible body."""
    hinge = CASES[name]
    mech = mechanism(len(name), hinge)
    rng = np.random.default_rng(8)
    q, v, x = mech.random(rng), mech.random_velocity(rng), mech.random_velocity(rng)
    nodes = ["leaf"] if expr is not mass else []
    dense = Dense(mech, q, v, nodes=nodes, values={"vdot": x})(expr)
    program, values = lower(expr), {"vdot": x}
    tolerance = 1e-8 if expr.range is expr.domain is not JOINT else EXACT
    same(run(program, mech, q, v, nodes=nodes, values=values), dense, tolerance)
    kernel = lw.compile(expr, mech, nodes=nodes)
    given = {"q": q, "v": v, "vdot": x}
    same(kernel(*[given[n] for n in kernel.arguments]), dense, tolerance)


@pytest.mark.prove
def test_costs_are_linear_in_lumps_and_bodies():
    """Operations of mass and bias: each lump adds as many; so does each flexible body."""

    def operations(lumps, bodies):
        rng = np.random.default_rng(0)
        b, parent = lw.Builder("chain"), "world"
        for i in range(bodies):
            root = {"inboard": place(rng), "inertia": inertia(rng)}
            b.body(f"root_{i}", parent, lw.hinges.Pin((0, 1, 0)), **root)
            parts = [Lump(node(rng, 2), inertia(rng)) for _ in range(lumps)]
            b.body(f"tip_{i}", f"root_{i}", node(rng, 2), inertia=inertia(rng), lumps=parts)
            parent = f"tip_{i}"
        return lw.compile(bias, b.build(), target="c").ops.total()

    by_lumps = [operations(n, 2) for n in (2, 3, 4)]
    assert np.ptp(np.diff(by_lumps)) == 0
    by_bodies = [operations(2, n) for n in (2, 3, 4)]
    np.testing.assert_allclose(*np.diff(by_bodies), rtol=0.02)
