"""Parts of a result: rows, columns and diagonal blocks, in every form and for every target."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import D, G, H, I, J, P, R, Upsilon, V, mass, to_W
from linkwise.algebra.dense import Dense
from linkwise.errors import ExpressionError, LinkwiseError, LoweringError
from tests.codegen.cuda_on_host import OnHost
from tests.codegen.rungs import C_COMPILER, CPP_COMPILER, built


@cache
def robot() -> lw.Mechanism:
    """Hinges of one, two, three and six freedoms, branched, with armature."""
    return lw.models.random_tree(4, 8, hinges=("pin", "universal", "spherical"), floating=True)


def names(mech):
    moving = [body.name for body in mech.bodies if body.hinge.nv]
    return moving[0], moving[len(moving) // 2], moving[-1]


def state(mech):
    return {"q": mech.random(1), "v": mech.random_velocity(1)}


def part(mech, expr, rows, columns, nodes, given):
    """The same part of the whole matrix, by plain indexing."""
    dense = Dense(mech, given["q"], given["v"], nodes=nodes)
    full = dense(expr)
    if rows is not None:
        full = full[np.concatenate([at(mech, dense, expr.range, x) for x in rows])]
    if columns is not None:
        full = full[:, np.concatenate([at(mech, dense, expr.domain, x) for x in columns])]
    return full


def at(mech, dense, space, name):
    if isinstance(name, int):
        return [name]
    if space.block == "node":
        k = [node.name for node in dense.nodes].index(name)
    else:
        k = mech.body_index[name]
    return np.r_[dense.slices(space)[k]]


CASES = {
    "a block of the inverse": (mass.inv, (2, 1), (0,)),
    "single elements": (mass.inv, (7, 0, 6), (1, 5)),
    "the mass matrix": (mass, (0,), (2,)),
    "a velocity": (V, (2, 0), None),
    "Jacobian": (J, ("node",), (2,)),
    "compliance": (J @ mass.inv @ J.T, ("node",), ("other",)),
    "its inverse": ((I + J @ mass.inv @ J.T).inv, None, ("node",)),
}


def parts(mech, name):
    """Names for the numbers of the table, but for single elements."""
    expr, rows, columns = CASES[name]
    first, middle, last = names(mech)
    nodes = [last, first]
    known = {"node": nodes[0], "other": nodes[1]}
    result = []
    for expected in (rows, columns):
        if expected is None or name == "single elements":
            result.append(expected)
        else:
            bodies = (first, middle, last)
            result.append(tuple(known.get(x) or bodies[x] for x in expected))
    return expr, *result, nodes


@pytest.mark.few(4)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("form", ["numpy", "straight", "loops"])
def test_rows_and_columns(name, form):
    mech = robot()
    expr, rows, columns, nodes = parts(mech, name)
    given = state(mech)
    expected = part(mech, expr, rows, columns, nodes, given)
    how = {"numpy": {"target": "numpy"}}.get(form, {"rolled": form == "loops", "cache": False})
    kernel = lw.compile(expr, mech, nodes=nodes, rows=rows, columns=columns, **how)
    arrays = [given[x] for x in kernel.arguments]
    result = kernel(*arrays)
    assert result.shape == expected.shape
    bound = 1e-10 * np.abs(expected).max()  # a condition number of 10⁴ or so, squared
    np.testing.assert_allclose(result, expected, rtol=0, atol=bound)
    if form != "numpy":  # states side by side in a vector register, and some left over
        many = kernel(*(np.stack([x] * 9) for x in arrays))
        np.testing.assert_allclose(many, np.stack([expected] * 9), rtol=0, atol=bound)


MEMORYLESS = (P, D, R, G, H @ P @ H.T, Upsilon, to_W)
BLOCKS = [(expr, form) for expr in MEMORYLESS for form in ("numpy", "straight")]
BLOCKS += [(expr, "loops") for expr in (D, Upsilon)]  # one of each sweep: loops take seconds


@pytest.mark.few(8)
@pytest.mark.parametrize(("expr", "form"), BLOCKS, ids=str)
def test_blocks(expr, form):
    mech, given = robot(), state(robot())
    how = {"numpy": {"target": "numpy"}}.get(form, {"rolled": form == "loops", "cache": False})
    dense = Dense(mech, given["q"], given["v"])
    full, scale = dense(expr), np.abs(dense(expr)).max()
    places = list(zip(dense.slices(expr.range), dense.slices(expr.domain), strict=True))
    for rows in (None, names(mech)[::-1]):
        kernel = lw.compile(expr, mech, rows=rows, blocks=True, **how)
        result = kernel(*(given[x] for x in kernel.arguments))
        order = range(mech.n_bodies) if rows is None else [mech.body_index[x] for x in rows]
        assert len(result) == len(order)
        for k, block in zip(order, result, strict=True):
            expected = np.zeros(block.shape)
            ours = full[places[k]]
            expected[: ours.shape[0], : ours.shape[1]] = ours
            np.testing.assert_allclose(block, expected, rtol=0, atol=1e-12 * scale)


def test_what_is_not_needed_is_not_computed():
    """The velocity of the first body of a chain needs one hinge, whatever comes behind it."""
    operations = []
    for n in (3, 20):
        mech = lw.models.chain(n)
        kernel = lw.compile(V, mech, rows=mech.bodies[0].name, target="numpy")
        operations.append(kernel.ops.total())
    assert operations[0] == operations[1]
    mech = lw.models.chain(20)
    full = lw.compile(mass.inv, mech, target="numpy").ops.total()
    single = lw.compile(mass.inv, mech, rows=4, columns=15, target="numpy").ops.total()
    inertias = lw.compile(P, mech, rows=mech.bodies[0].name, blocks=True, target="numpy")
    assert single < inertias.ops.total() + 20 * 60 < 0.5 * full  # the path costs little


def test_targets(tmp_path):
    """C and CUDA text compute the same part, and say which."""
    mech = lw.models.puma560()
    given, last, first = mech.random(2), mech.bodies[5].name, mech.bodies[1].name
    expected = lw.compile(mass.inv, mech)(given)[5:6, 1:2]
    source = lw.compile(mass.inv, mech, rows=last, columns=first, target="c")
    assert source.shape == (1, 1) and f"the rows of {last}, the columns of {first}" in source.header
    blocks = lw.compile(P, mech, rows=(last, first), blocks=True, target="c")
    assert blocks.shape == (2, 6, 6) and "its diagonal blocks" in blocks.header
    assert "a matrix, 12 x 6, row by row" in blocks.header and "_OUT_SIZE 72\n" in blocks.header
    card = lw.compile(mass.inv, mech, rows=last, columns=first, target="cuda")
    assert card.signature.shape == (1, 1)
    if C_COMPILER is not None:
        function, out = built(source.named("rung"), tmp_path), np.zeros(1)
        assert function(ctypes.c_void_p(given.ctypes.data), ctypes.c_void_p(out.ctypes.data)) == 0
        np.testing.assert_allclose(out, expected[0], rtol=1e-10)
    if CPP_COMPILER is not None:
        host = OnHost(card.device.emitted, 1, tmp_path, str(CPP_COMPILER))
        out, codes, _ = host([given[None]], 1, 1)
        np.testing.assert_allclose(out, expected, rtol=1e-10)
        assert not codes.any()


def test_kernels_of_other_parts_are_other_kernels():
    mech = lw.models.chain(3)
    q = mech.random(0)
    full = lw.mass_matrix_inverse(mech, q)
    for i in range(3):
        kernel = lw.compile(mass.inv, mech, rows=i, columns=0)  # kept on disk
        np.testing.assert_allclose(kernel(q), full[i : i + 1, :1], rtol=1e-12)
    assert "of y: the rows of 2, the columns of 0" in kernel.explain()


def test_long_chains_in_loops():
    mech = lw.models.chain(300)
    q, e = 0.1 * mech.random(0), np.zeros(300)
    e[250] = 1.0
    kernel = lw.compile(mass.inv, mech, rows=(10, 250), columns=(250,), cache=False)
    column = lw.forward_dynamics(mech.with_gravity((0.0, 0.0, 0.0)), q, np.zeros(300), e)
    np.testing.assert_allclose(kernel(q)[:, 0], column[[10, 250]], rtol=1e-9)
    assert kernel.ops.total() < 300 * 1000


@pytest.mark.parametrize(
    ("expr", "options", "kind", "text"),
    [
        (mass.inv, {"rows": "elbow"}, LinkwiseError, "no body or hinge called 'elbow'"),
        (mass.inv, {"rows": 99}, ExpressionError, "99 is out of range: there are 6 velocities"),
        (mass.inv, {"rows": ()}, ExpressionError, "rows is empty"),
        (mass.inv, {"rows": 1.5}, ExpressionError, "names of bodies, hinges or nodes"),
        (V, {"columns": 0}, ExpressionError, "one number where columns names"),
        (mass, {"blocks": True}, ExpressionError, "not block diagonal"),
        (P, {"blocks": True, "columns": 0}, ExpressionError, "only rows= goes with it"),
        (J, {"rows": "link_1"}, LinkwiseError, "no node called 'link_1'"),
    ],
)
def test_wrong_parts(expr, options, kind, text):
    with pytest.raises(kind, match=text):
        lw.compile(expr, lw.models.puma560(), **options)


@pytest.mark.parametrize("rolled", [True, False])
def test_each_row_is_written_once(rolled):
    mech = lw.models.chain(3)
    for rows in ((0, 0), (mech.bodies[0].name, mech.bodies[0].hinge_name)):
        with pytest.raises(LoweringError, match="rows names something twice"):
            lw.compile(mass.inv, mech, rows=rows, rolled=rolled)
