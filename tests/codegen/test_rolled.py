"""Rolled kernels: loops over bodies agree with the interpreter and with straight code."""

from __future__ import annotations

import re

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import (
    H,
    J,
    K,
    M,
    Omega,
    P,
    V,
    bias,
    f,
    mass,
    phi,
    psi,
    tau,
    v,
    vdot,
)
from linkwise.algebra.dense import Dense
from linkwise.algebra.derivation import random_dense
from linkwise.algebra.expr import identity
from linkwise.algebra.space import ONE
from linkwise.codegen import stages
from linkwise.codegen.cpu.build import loaded, signature_of, unit
from linkwise.codegen.cpu.device import Processor
from linkwise.codegen.cpu.machine import object_code
from linkwise.codegen.kernel import Kernel, kernel
from linkwise.codegen.request import Request
from linkwise.codegen.rolled.body_class import classes
from linkwise.codegen.rolled.roll import roll
from linkwise.codegen.scalar import status
from linkwise.codegen.stages import worth_rolling
from linkwise.errors import ExpressionError, LoweringError, ModelError, SingularHingeError
from linkwise.model import Builder, Drive
from linkwise.model.hinges import (
    Gimbal,
    Helical,
    Locked,
    Pin,
    Planar,
    Prismatic,
    RollingBall,
    Screws,
    Universal,
)
from linkwise.pipeline import derive, plan
from linkwise.spatial import Pose, SpatialInertia
from linkwise.sweeps.interpret import run
from tests.algebra import trees
from tests.algebra.expressions import random_expression

pytestmark = pytest.mark.shipped

NAMED = {
    "forward dynamics": mass.inv @ (tau - bias),
    "the bare tree": (H @ phi @ M @ phi.T @ H.T).inv @ (tau - bias),
    "inverse dynamics": mass @ vdot + bias,
    "bias": bias,
    "external forces": mass.inv @ (tau - bias + J.T @ f),
    "velocities": V,
    "kinetic energy": 0.5 * v.T @ mass @ v,
    "an odd one": H @ psi @ P @ phi.T @ M @ phi @ K @ tau,
    "a number times a vector": mass @ tau @ (v.T @ mass @ v),
    "mass matrix": mass,
    "inverse mass matrix": mass.inv,
    "Jacobian": J,
    "its adjoint": J.T,
    "compliance": J @ mass.inv @ J.T,
    "Omega": Omega,
    "momentum row": v.T @ mass,
    "a number and one": 3.0 * identity(ONE) + 0.5 * v.T @ mass @ v,
}
"""Vectors, matrices, numbers and rows; quantities at bodies, hinges and nodes."""


def compiled(expr, mech, nodes=(), *, coarse=False, dtype=np.float64):
    """A rolled kernel; if coarse, with every number of a body a column of the table.

    That is as far as its kind of hinge allows.
    """
    size, nodes = np.dtype(dtype).itemsize, tuple(nodes)
    request = Request((expr,), mech, nodes, itemsize=size, rolled=True, cache=False)
    if not coarse:
        return kernel(request)
    loops = roll(stages.program(request), mech, nodes, (), itemsize=size, most_classes=0)
    text = unit(loops, size)
    code = loaded(text, object_code(text))
    return Kernel(request, "cpu", Processor(request, signature_of(loops, size), code))


def inputs(kernel, dense):
    arrays = {"q": dense.q, "v": dense.v, **dense.values}
    return [np.asarray(arrays[name]) for name in kernel.arguments]


def agree(result, expected, bound=1e-10):
    expected = np.asarray(expected)
    scale = max(1e-9, float(np.abs(expected).max(initial=0.0)))
    assert result.shape == expected.shape
    np.testing.assert_allclose(result / scale, expected / scale, atol=bound)


def nodes_of(mech):
    return [mech.bodies[-1].name, mech.bodies[0].name]


# ------------------------------------------------------------------------------ named quantities


@pytest.mark.few(4)
@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("coarse", [False, True])
def test_every_quantity_on_trees(name, coarse):
    """All hinges over three trees; with no classes to spare, every number is a column."""
    expr = NAMED[name]
    mechs = [
        lw.models.random_tree(6, 4, floating=True),
        lw.models.random_tree(7, 11, hinges=["pin"] * 3 + ["prismatic", "locked"]),
        lw.models.chain(5),
    ]
    for seed, mech in enumerate(mechs):
        dense = random_dense(mech, [expr], seed, nodes_of(mech))
        kernel = compiled(expr, mech, nodes_of(mech), coarse=coarse)
        agree(kernel(*inputs(kernel, dense)), dense(expr), 1e-9)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(3))
def test_every_hinge(seed):
    """As many bodies as there are kinds of hinges; forward dynamics against the interpreter."""
    mech = lw.models.random_tree(2 * len(lw.models.HINGE_KINDS), seed)
    expr = NAMED["forward dynamics"]
    program = plan(derive(expr).result)
    dense = random_dense(mech, [expr], seed)
    kernel = lw.compile(expr, mech, rolled=True, cache=False)
    want = run(program, mech, dense.q, dense.v, values=dense.values)
    agree(kernel(*inputs(kernel, dense)), want, 1e-9)


def test_one_body_and_many_roots():
    for mech in (lw.models.random_tree(1, 3), forest()):
        for name in ("forward dynamics", "mass matrix", "kinetic energy"):
            dense = random_dense(mech, [NAMED[name]], 1, nodes_of(mech))
            kernel = compiled(NAMED[name], mech, nodes_of(mech))
            agree(kernel(*inputs(kernel, dense)), dense(NAMED[name]))


def forest():
    """Three trees beside each other, one of them a single body."""
    b = Builder("forest")
    inertia = SpatialInertia.from_com(2.0, (0.1, 0.0, 0.2), (0.1, 0.2, 0.3))
    for i, parent in enumerate(["world", "world", "a0", "a0", "a3", "world"]):
        hinge = Pin((0.0, 1.0, 0.0) if i % 2 else (1.0, 0.0, 0.0))
        b.body(f"a{i}", parent, hinge, inboard=Pose.translation((0.1 * i, 0, 0.3)), inertia=inertia)
    return b.build()


def test_extreme_mass_ratios():
    mech = lw.models.random_tree(9, 5, mass_ratio=1e6)
    for name in ("forward dynamics", "inverse dynamics"):
        dense = random_dense(mech, [NAMED[name]], 2)
        straight = lw.compile(NAMED[name], mech, rolled=False, cache=False)
        rolled = lw.compile(NAMED[name], mech, rolled=True, cache=False)
        arrays = inputs(rolled, dense)
        agree(rolled(*arrays), straight(*arrays), 1e-8)


def test_bodies_without_inertia_carry_others():
    """Between two turns there is often a massless body: its sums are not zero."""
    b = Builder("massless")
    heavy = SpatialInertia.from_com(1.0, (0.0, 0.1, 0.2), (0.1, 0.1, 0.1))
    parent = "world"
    for i in range(8):
        axis = (0.0, 0.0, 1.0) if i % 2 else (1.0, 0.0, 0.0)
        more = {"inertia": heavy} if i % 2 else {}
        b.body(f"b{i}", parent, Pin(axis), inboard=Pose.translation((0, 0, 0.1)), **more)
        parent = f"b{i}"
    mech = b.build()
    dense = random_dense(mech, [NAMED["forward dynamics"]], 0)
    kernel = compiled(NAMED["forward dynamics"], mech)
    agree(kernel(*inputs(kernel, dense)), dense(NAMED["forward dynamics"]), 1e-9)


# ----------------------------------------------------------------------------- dense and random


@pytest.mark.prove
def test_small_dense_matrices_between_loops():
    mech = lw.models.random_tree(8, 3, floating=True)
    nodes = [mech.bodies[-1].name]
    for expr in (
        (J @ mass.inv @ J.T).inv,
        (J @ mass.inv @ J.T).inv @ J @ mass.inv @ tau,
        (J @ mass.inv @ J.T).inv @ f,
        (J @ mass.inv @ J.T).inv @ J,
    ):
        dense = random_dense(mech, [expr], 4, nodes)
        kernel = compiled(expr, mech, nodes)
        agree(kernel(*inputs(kernel, dense)), dense(expr), 1e-8)


DRAWS = (trees.branched, trees.floating, trees.welded, trees.every_hinge, trees.serial)


@pytest.mark.prove
@pytest.mark.parametrize("start", [0, 25, pytest.param(50, marks=pytest.mark.slow)])
def test_random_expressions(start):
    used = 0
    for seed in range(start, start + 25):
        expr = random_expression(np.random.default_rng(seed), 6, sums=1)
        mech = DRAWS[seed % len(DRAWS)](seed % 23)
        dense = random_dense(mech, [expr], seed, nodes_of(mech))
        if trees.condition(dense) > 1e4:
            continue
        try:
            kernel = lw.compile(expr, mech, nodes=nodes_of(mech), rolled=True, cache=False)
        except (ExpressionError, LoweringError):
            continue  # operators of one's own, matrices without symmetry
        want, size = dense.matrix(expr), trees.magnitude(dense, expr)
        bound = 1e-9 * np.abs(want).max(initial=0.0) + 2e-13 * size.max(initial=0.0)
        result = kernel(*inputs(kernel, dense)).reshape(want.shape)
        assert np.abs(result - want).max(initial=0.0) <= bound, f"seed {seed}: {expr}"
        used += 1
    assert used >= 8


# ---------------------------------------------------------------------------- batches, precision


@pytest.mark.few(4)
@pytest.mark.parametrize("name", ["forward dynamics", "mass matrix", "external forces"])
@pytest.mark.parametrize("count", [1, 7, 8, 19])
def test_batches_of_any_size(name, count):
    mech = lw.models.random_tree(6, 8, floating=True)
    kernel = compiled(NAMED[name], mech, nodes_of(mech))
    rng = np.random.default_rng(count)
    arrays = {
        "q": np.array([mech.random(rng) for _ in range(count)]),
        "v": rng.standard_normal((count, mech.nv)),
        "tau": rng.standard_normal((count, 2 * mech.nv))[:, : mech.nv],  # rows that are apart
        "f": rng.standard_normal(12),  # one row for all states
    }
    given = [arrays[n] for n in kernel.arguments]
    result = kernel(*given)
    for i in range(count):
        one = [x[i] if x.ndim == 2 else x for x in given]
        agree(result[i], kernel(*one), 1e-13)
        agree(
            result[i],
            Dense(
                mech,
                one[0],
                one[1] if len(one) > 1 else None,
                nodes=nodes_of(mech),
                values=dict(zip(kernel.arguments, one, strict=True)),
            )(NAMED[name]),
            1e-9,
        )


def test_single_precision():
    mech = lw.models.chain(40)
    for name in ("forward dynamics", "inverse dynamics"):
        kernel = compiled(NAMED[name], mech, dtype=np.float32)
        exact = compiled(NAMED[name], mech)
        rng = np.random.default_rng(0)
        arrays = [mech.random(rng), *rng.standard_normal((2, mech.nv))]
        given = [x.astype(np.float32) for x in arrays]
        want = exact(*(x.astype(np.float64) for x in given))
        many = kernel(*(np.tile(x, (17, 1)) for x in given))
        assert many.dtype == np.float32
        for result in (kernel(*given), many[0], many[-1]):
            agree(result, want, 2e-3 if name == "forward dynamics" else 1e-5)


# ---------------------------------------------------------------------------------------- trouble


def test_trouble_names_the_body():
    mech = lw.models.random_tree(6, 4, floating=True)
    kernel = compiled(NAMED["forward dynamics"], mech)
    dense = random_dense(mech, [NAMED["forward dynamics"]], 0)
    q, qd, force = inputs(kernel, dense)
    bad = q.copy()
    bad[:4] *= 1.01
    with pytest.raises(ModelError, match="quaternion of body 'body_1'"):
        kernel(bad, qd, force)
    with pytest.raises(ModelError, match="tau is not finite"):
        kernel(q, qd, np.full(mech.nv, np.nan))
    rows = np.tile(q, (11, 1))
    rows[3, :4] *= 1.01
    rows[8, 0] = np.inf
    codes = np.empty(11, np.int32)
    result = kernel(rows, qd, force, status=codes)
    assert codes.tolist() == [0, 0, 0, status.quaternion(0), 0, 0, 0, 0, status.INPUT, 0, 0]
    assert np.isnan(result[[3, 8]]).all()
    agree(result[[0, 10]], np.tile(kernel(q, qd, force), (2, 1)), 1e-13)


def test_a_hinge_that_moves_nothing():
    heavy = SpatialInertia.from_com(1.0, (0.0, 0.1, 0.2), (0.1, 0.1, 0.1))
    b = Builder("idle")
    b.body("arm", "world", Pin((0.0, 1.0, 0.0)), inertia=heavy)
    b.body("geared", "arm", Pin((0.0, 0.0, 1.0)), drive=Drive(armature=0.1))
    b.body("idle", "arm", Pin((0.0, 0.0, 1.0)))
    mech = b.build()
    with pytest.raises(SingularHingeError, match="in every state"):  # known beforehand
        compiled(NAMED["forward dynamics"], mech.without_armature())
    for coarse in (False, True):  # armature is a column
        kernel = compiled(NAMED["forward dynamics"], mech, coarse=coarse)
        with pytest.raises(SingularHingeError, match="hinge of body 'idle'"):
            kernel(*np.zeros((3, 3)))
        codes = np.empty(9, np.int32)
        kernel(*np.zeros((3, 9, 3)), status=codes)
        assert (codes == status.hinge(2)).all()


def test_a_singular_matrix_over_nodes():
    """Two freedoms cannot be accelerated in six directions: no inverse, whatever the column."""
    mech = lw.models.chain(2)
    tip = [mech.bodies[-1].name]
    for expr in ((J @ mass.inv @ J.T).inv @ f, (J @ mass.inv @ J.T).inv @ J):
        kernel = compiled(expr, mech, tip)
        dense = random_dense(mech, [expr], 0, tip)
        code = np.empty((), np.int32)
        kernel(*inputs(kernel, dense), status=code)
        assert code == status.MATRIX


# ------------------------------------------------------------------------------------------- size


def instructions(kernel):
    """Instructions of the module, without the entry from Python."""
    text = kernel.source.split("@fast(")[0]
    return len(re.findall(r"^  \S", text, flags=re.MULTILINE))


def test_code_does_not_grow_with_the_mechanism():
    """Instructions of the module, for chains from 32 to 3,200 links; scratch memory is linear."""
    expr = NAMED["forward dynamics"]
    kernels = [
        lw.compile(expr, lw.models.chain(n), rolled=True, cache=False) for n in (32, 320, 3200)
    ]
    sizes = [instructions(k) for k in kernels]
    assert sizes[0] == sizes[1] == sizes[2]
    work = [k.device.machine.work for k in kernels]
    assert work[2] - work[1] == 10 * (work[1] - work[0])
    assert kernels[2].ops["mul"] - kernels[1].ops["mul"] == 10 * (
        kernels[1].ops["mul"] - kernels[0].ops["mul"]
    )


def test_constants_of_equal_bodies_are_folded():
    """A chain of two kinds of links has no table, and no more operations than straight code."""
    mech = lw.models.chain(12)
    program = plan(derive(NAMED["forward dynamics"]).result)
    rolled = roll(program, mech)
    assert rolled.table.size == 0
    straight = lw.compile(NAMED["forward dynamics"], mech, rolled=False, cache=False).ops
    # Straight code has only the inertia that hinges feel (`sweeps/felt_inertia.py`).
    assert rolled.ops["mul"] < 1.3 * straight["mul"]
    assert rolled.ops["inv"] == straight["inv"] + 1  # the tip has nothing to fold here
    mixed = roll(program, mech, most_classes=0)
    assert len(mixed.codes) == 2 and mixed.table.size > 0


def test_large_mechanisms_are_rolled_by_themselves():
    small, large = lw.models.chain(7), lw.models.chain(300)
    for expr in (NAMED["forward dynamics"], mass):
        program = plan(derive(expr).result)
        assert not worth_rolling(program, small)
        assert worth_rolling(program, large)
    program = plan(derive(mass.inv).result)  # 170,000 operations, and 340,000
    assert not worth_rolling(program, lw.models.chain(30))
    assert worth_rolling(program, lw.models.chain(45))
    kernel = lw.compile(NAMED["inverse dynamics"], large)
    assert instructions(kernel) < 20_000
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.uniform(-1, 1, (3, 300))
    program = plan(derive(NAMED["inverse dynamics"]).result)
    agree(kernel(q, qd, qdd), run(program, large, q, qd, values={"vdot": qdd}))


def test_parameters_stay_inputs():
    mech = lw.models.chain(9, armature=0.01)
    expr = NAMED["forward dynamics"]
    names = ("gravity", "inertia", "armature", "locked", "payload:tip")
    rolled = lw.compile(expr, mech, parameters=names, rolled=True, cache=False)
    straight = lw.compile(expr, mech, parameters=names, rolled=False, cache=False)
    rng = np.random.default_rng(3)
    arrays = [mech.random(rng), *rng.standard_normal((2, mech.nv))]
    numbers = [rolled.nominal(name).copy() for name in names]
    numbers[0] += 1.0
    numbers[3][4] = 1.0
    numbers[4][:] = [0.5, 0.05, 0.0, 0.0, 0.02, 0.02, 0.02, 0.0, 0.0, 0.0]
    agree(rolled(*arrays, *numbers), straight(*arrays, *numbers), 1e-9)


def test_hinges_that_differ_in_their_numbers():
    """Axes, radii, normals and held angles as columns: two hinges of a kind, one piece of code."""
    rng = np.random.default_rng(7)

    def axis():
        return tuple(rng.standard_normal(3))

    kinds = [
        lambda: Universal(axis(), axis()).reversed(),
        lambda: Gimbal((axis(), axis(), axis())).reversed(),
        lambda: Screws((tuple(rng.standard_normal(6)),)),
        lambda: Helical(axis(), float(rng.uniform(0.1, 0.3))),
        lambda: Planar(axis()),
        lambda: RollingBall(float(rng.uniform(0.5, 1.0))),
        lambda: Locked(Pin(axis()), (float(rng.uniform(-1, 1)),)),
        lambda: Prismatic(axis()),
    ]
    b, parent = Builder("columns"), "world"
    for i in range(3 * len(kinds)):
        hinge = kinds[i % len(kinds)]()
        moments = rng.uniform(0.2, 0.3, 3)
        inertia = SpatialInertia.from_com(1.0, rng.uniform(-0.1, 0.1, 3), moments)
        pose = Pose.rpy(rng.uniform(-1, 1, 3), rng.uniform(-0.2, 0.2, 3))
        b.body(f"b{i}", parent, hinge, inboard=pose, inertia=inertia)
        parent = f"b{i - i % 3}"
    mech = b.build()
    program = plan(derive(NAMED["forward dynamics"]).result)
    rolled = roll(program, mech, most_classes=0)
    assert len(rolled.codes) == len(kinds) + 1  # the root by itself
    dense = random_dense(mech, [NAMED["forward dynamics"]], 1)
    kernel = compiled(NAMED["forward dynamics"], mech, coarse=True)
    agree(kernel(*inputs(kernel, dense)), dense(NAMED["forward dynamics"]), 1e-9)


def test_a_large_tree():
    """Many hinges of many kinds: one call and batches against the interpreter."""
    mech = lw.models.random_tree(250, 6, hinges=["pin", "pin", "prismatic", "spherical", "locked"])
    expr = NAMED["forward dynamics"]
    kernel = lw.compile(expr, mech, cache=False)
    dense = random_dense(mech, [expr], 3)
    want = run(plan(derive(expr).result), mech, dense.q, dense.v, values=dense.values)
    arrays = inputs(kernel, dense)
    agree(kernel(*arrays), want, 1e-8)
    many = kernel(*(np.tile(x, (9, 1)) for x in arrays))
    agree(many, np.tile(want, (9, 1)), 1e-8)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 9.9e4, 1e6, 1e12])
def test_angles_of_any_size(scale):
    """Sines and cosines are taken beforehand for one state, in the loop for many."""
    mech = lw.models.chain(11)
    q = scale * np.random.default_rng(0).uniform(-1, 1, (9, 11))
    kernel = compiled(NAMED["bias"], mech)
    many = kernel(q, np.ones(11))
    for i in range(9):
        want = Dense(mech, q[i], np.ones(11))(NAMED["bias"])
        agree(kernel(q[i], np.ones(11)), want, 1e-12)
        agree(many[i], want, 1e-12)


def test_a_body_that_is_to_be_alone_shares_no_code():
    """Links 2 and 3 of a chain, each with a node, are of a class unless one is to be alone."""
    mech = lw.models.chain(4).with_node("a", "link_2").with_node("b", "link_3")
    nodes = [mech.node("a"), mech.node("b")]
    for alone, expected in (((), [[0], [1, 2], [3]]), ((1,), [[0], [1], [2], [3]])):
        result = classes(mech, nodes, alone=alone, most=0)
        assert sorted(list(map(int, kind.bodies)) for kind in result) == expected
