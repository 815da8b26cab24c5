"""Scans of mechanisms with flexible bodies and motors: dense = interpreter = kernels = scan."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import J, bias, mass, role, tau, vdot, vector
from linkwise.algebra.dense import STATE_BLOCKS, Dense
from linkwise.algebra.derivation import leaves, random_dense
from linkwise.algebra.differential import differentiate
from linkwise.algebra.space import JOINT
from linkwise.model.body import Lump
from linkwise.sweeps.interpret import run
from linkwise.sweeps.lower import lower
from linkwise.sweeps.scan.run import scanned
from tests.algebra import trees
from tests.algebra.expressions import random_expression
from tests.cases import close
from tests.flexible.cases import inertia, mechanism, node, place
from tests.flexible.test_every_hinge import KINDS, mechanism as on_hinge
from tests.model.hinge_cases import HINGES
from tests.sweeps.test_interpret import OPERATORS

FORWARD = lw.derive(mass.inv @ (tau - bias)).result
INVERSE = mass @ vdot + bias
ROTOR = lw.SpatialInertia.from_com(0.2, (0, 0, 0.01), (1e-3, 2e-3, 2e-3))


def is_own(expr):
    """Whether no operator is given by values: these have the sizes of rigid bodies."""
    for key in (x.role for x in leaves(expr)):
        given = isinstance(key, role.Shift) and key.source != "phi"
        if given or (isinstance(key, role.Memoryless) and key.source not in STATE_BLOCKS):
            return False
    return True


def own_expression(seed):
    """A random expression in operators of the mechanism."""
    drawn = (random_expression(np.random.default_rng(1000 * seed + i)) for i in range(1000))
    return next(x for x in drawn if is_own(x))


LOOPABLE = [x for x in OPERATORS if lower(x).loopable and is_own(x)]


def random_mechanism(seed, n=12):
    """A tree in which rigid bodies, flexible ones and motors follow each other at random."""
    rng = np.random.default_rng(seed)
    b, names = lw.Builder(f"random {seed}"), ["world"]
    kinds = [HINGES[name] for name in sorted(KINDS.values())]
    for i in range(n):
        parent = names[int(rng.integers(max(0, len(names) - 3), len(names)))]
        name, modes = f"body_{i}", int(rng.integers(1, 4))
        given = {"inboard": place(rng), "inertia": inertia(rng)}
        if rng.random() < 0.4:
            lumps = [Lump(node(rng, modes), inertia(rng)) for _ in range(int(rng.integers(1, 4)))]
            b.body(name, parent, node(rng, modes), lumps=lumps, outboard=place(rng), **given)
        else:
            hinge = kinds[int(rng.integers(len(kinds)))]
            b.body(name, parent, hinge, drive=lw.Drive(armature=0.1 * (hinge.nv > 0)), **given)
            if hinge.nq == hinge.nv == 1 and rng.random() < 0.5:
                b.motor(name, ROTOR, ratio=9.0)
        names.append(name)
    b.node("hand", names[-1], place(rng))
    return b.node("elbow", names[3], place(rng)).build()


def both(expr, mech, seed=0, **given):
    """By scans, and by the interpreter, which other tests compare with dense matrices."""
    rng = np.random.default_rng(seed)
    q, v, x = mech.random(rng), mech.random_velocity(rng), rng.standard_normal(mech.nv)
    program, values = lower(expr), {"tau": x, "vdot": x, **given}
    names = [x.name for x in mech.nodes]
    return [f(program, mech, q, v, nodes=names, values=values) for f in (scanned, run)]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("expr", [FORWARD, INVERSE, lw.derive(J @ mass.inv @ J.T).result])
def test_random_mechanisms(seed, expr):
    mech = random_mechanism(seed)
    assert mech.flexible
    close(*both(expr, mech, seed), 1e-9)


def drawn(expr, mech, seed, nodes):
    """Dense matrices, and q and v of the mechanism, with values for all operands."""
    rng = np.random.default_rng(seed)  # `random_dense` draws the same ones
    q, v = mech.random(rng), mech.random_velocity(rng)
    return random_dense(mech, [expr], seed, nodes), q, v


@pytest.mark.few(2)
@pytest.mark.parametrize("operator", LOOPABLE, ids=str)
def test_columns_are_the_matrix(operator):
    mech = mechanism(1, base=lw.hinges.Free())
    dense, q, v = drawn(operator, mech, 7, ["hand", "thorn"])
    nodes = [x.name for x in dense.nodes]
    scan, sweep = (
        f(lower(operator), mech, q, v, nodes=nodes, values=dense.values) for f in (scanned, run)
    )
    close(scan, sweep, 1e-9)
    matrix = dense.matrix(operator)
    if matrix.shape == scan.shape:  # not of joints with the bodies inboard of them
        close(scan, matrix, 1e-9)


@pytest.mark.parametrize("name", sorted(KINDS.values()))
def test_every_hinge(name):
    mech = on_hinge(len(name), HINGES[name])
    for expr in (FORWARD, INVERSE):
        close(*both(expr, mech), 1e-8)


@pytest.mark.parametrize("seed", range(12))
def test_random_expressions(seed):
    expr = own_expression(seed)
    mech = random_mechanism(seed, 6)
    dense, q, v = drawn(expr, mech, seed, ["hand", "elbow"])
    program, nodes = lower(expr), [x.name for x in dense.nodes]
    if trees.condition(dense) > 1e4 or not program.loopable:
        pytest.skip("ill-conditioned, or constrained")
    scan, sweep = (f(program, mech, q, v, nodes=nodes, values=dense.values) for f in (scanned, run))
    close(scan, sweep, scale=float(trees.magnitude(dense, expr).max(initial=1e-300)))


@pytest.mark.parametrize("wrt", ["q", "v"])
def test_derivatives(wrt):
    mech = random_mechanism(3)
    expr = lw.derive(differentiate(FORWARD, wrt) @ vector("u", JOINT)).result
    close(*both(expr, mech, u=np.linspace(-1.0, 1.0, mech.nv)), 1e-8)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(4))
def test_the_ladder(seed):
    """Dense matrices, the interpreter, a compiled kernel and a scan."""
    mech = random_mechanism(seed)
    rng = np.random.default_rng(seed)
    q, v, x = mech.random(rng), mech.random_velocity(rng), rng.standard_normal(mech.nv)
    dense = Dense(mech, q, v)
    exact = np.linalg.solve(dense(mass), x - dense(bias))
    interpreter, kernel, scan = (
        lw.compile(FORWARD, mech, target=target, **options)
        for target, options in (("numpy", {}), ("cpu", {}), ("numpy", {"schedule": "scan"}))
    )
    for compiled in (interpreter, kernel, scan):
        given = {"q": q, "v": v, "tau": x}
        close(compiled(*[given[name] for name in compiled.arguments]), exact, 1e-9)
    assert "Kalman elements" in scan.explain()


def test_long_flexible_arm():
    """Fifty flexible links with motors, as one path."""
    link = lw.flexible.beam(
        0.5, area=1e-4, bending=1e-9, young=7e10, density=2700.0, modes=1, directions=("y", "rz")
    )
    b, parent = lw.Builder("arm"), "world"
    for i in range(50):
        link.add_to(b, f"link_{i}", parent, lw.hinges.Pin((0, 0, 1)), inertia=ROTOR)
        b.motor(f"link_{i}", ROTOR, ratio=20.0)
        parent = f"link_{i}.tip"
    mech = b.build()
    assert mech.bodies[1].lumps[0].hinge is mech.bodies[3].lumps[0].hinge  # all are taken at once
    q, v = 1e-2 * np.random.default_rng(0).standard_normal((2, mech.nv))
    scan, sweep = (f(lower(FORWARD), mech, q, v, values={"tau": v}) for f in (scanned, run))
    close(scan, sweep, 1e-9)
