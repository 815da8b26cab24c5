"""The ladder of references: every way to evaluate an expression agrees with the one before it.

Matrices multiplied out = sweeps of the expression as it stands = sweeps of its cheapest form =
machine code for one state = for batches of odd sizes = in single precision = with loops over
bodies = emitted C = CUDA source compiled for the processor. Differences are bounded by rounding and
condition (`rounding.py`), state by state; statuses agree wherever rounding does not decide them.
"""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import J, bias, f, mass, tau
from linkwise.algebra.armature import no_armature
from linkwise.algebra.dense import STATE_BLOCKS
from linkwise.algebra.derivation import leaves
from linkwise.algebra.role import Memoryless, Shift
from linkwise.codegen.scalar import status
from linkwise.dynamics.quantity import QUANTITIES, expression
from linkwise.errors import ExpressionError, LoweringError
from tests.algebra import trees
from tests.algebra.expressions import random_expression
from tests.codegen.cuda_on_host import OnHost
from tests.codegen.rungs import C_COMPILER, CPP_COMPILER, DENSE, FEW, STATES, Case, built

pytestmark = pytest.mark.shipped

FORWARD = mass.inv @ (tau - bias)
MECHANISMS = {
    "tree": lambda: lw.models.random_tree(4, 1),
    "floating": lambda: lw.models.random_tree(3, 2, floating=True),
    "chain": lambda: lw.models.chain(4),
    "limb": lambda: trees.serial(4),
    "welded": lambda: trees.welded(3),
}
USUAL = {name: list(MECHANISMS)[i % 3] for i, name in enumerate(QUANTITIES)}
USUAL["operational_inertia"] = "floating"
"""The mechanism that `make prove` climbs with for each quantity; the others are for the night."""

SINGULAR = [("operational_inertia", which) for which in ("tree", "chain", "welded")]
"""Where six directions cannot be accelerated independently."""

KERNELS = {
    "cpu": {},
    "rolled": {"rolled": True},
    "c": {"target": "c"},
    "cuda": {"target": "cuda"},
}
"""Ways to compile, as options of `lw.compile`; the card's source is made when it is asked for."""


def agree(rung, result, expected, bound, rows):
    """Results of a rung, on some rows, within a bound for each entry."""
    apart = np.abs(result - expected)[rows]
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
    fine = codes == 0
    same_trouble("scalar", codes, right)
    assert fine.sum() >= least, f"only {fine.sum()} of {STATES} states have a result"
    agree("scalar", scalar, right.value, 2.0 * right.error, fine)  # both round
    slow(case, scalar, right, [i for i in DENSE if fine[i]])
    for count in FEW:
        result, batch_codes = straight.batch(count)
        np.testing.assert_array_equal(batch_codes, codes[:count])
        agree(f"batch of {count}", result, scalar[:count], 2.0 * right.error[:count], fine[:count])
        assert np.isnan(result[~fine[:count]]).all()
    looped = case.bound(looped=True)
    rolled = case.kernel(rolled=True)
    for rung, (result, other_codes) in {
        "rolled": rolled.one_by_one(),
        "rolled batch": rolled.batch(STATES),
    }.items():
        same_trouble(rung, other_codes, looped)
        both = fine & (other_codes == 0)
        agree(rung, result, scalar, right.error + looped.error, both)
    single(case, right)
    emitted = {
        "C": (C_COMPILER, case.c_function, "c"),
        "CUDA": (CPP_COMPILER, case.cuda_on_host, "cuda"),
    }
    for rung, (compiler, evaluated, place) in emitted.items():
        if compiler is not None:
            (folder / place).mkdir()
            result, other_codes = evaluated(folder / place)
            same_trouble(rung, other_codes, right)
            both = fine & (other_codes == 0)
            agree(rung, result, scalar, 2.0 * right.error, both)
            assert np.isnan(result[other_codes != 0]).all()


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
        for rung, result in rungs.items():
            agree(f"{rung} against matrices", result, dense, error, slice(None))


def single(case, right):
    """Single precision, straight and with loops, batches and one by one."""
    low, looped = case.bound(4), case.bound(4, looped=True)
    straight, rolled = case.kernel(np.float32), case.kernel(np.float32, rolled=True)
    for rung, (result, codes), bound in (
        ("float32", straight.one_by_one(DENSE), low),
        ("float32 batch", straight.batch(STATES), low),
        ("float32 rolled", rolled.batch(STATES), looped),
    ):
        states = list(DENSE) if len(result) == len(DENSE) else list(range(STATES))
        assert result.dtype == np.float32
        fine = (codes == 0) & ~bound.fails[states]
        agree(rung, result, right.value[states], bound.error[states], fine)
        sure = ~bound.unsure[states]
        np.testing.assert_array_equal((codes != 0)[sure], bound.fails[states][sure], err_msg=rung)


def nodes_of(mech):
    return [mech.bodies[-1].name, mech.bodies[0].name]


# ------------------------------------------------------------------------- named quantities


@pytest.mark.few(4, 36)
@pytest.mark.parametrize(
    ("name", "which"),
    [
        pytest.param(
            *(name, which),
            marks=() if USUAL[name] == which else pytest.mark.nightly,
        )
        for name in QUANTITIES
        for which in MECHANISMS
        if (name, which) not in SINGULAR
    ],
)
def test_named_quantities(name, which, tmp_path):
    mech = MECHANISMS[which]()
    number = list(QUANTITIES).index(name) + list(MECHANISMS).index(which)
    frame = "world" if number % 2 else "node"
    expr = expression(name, frame=frame)
    nodes = nodes_of(mech)[: 1 if name == "operational_inertia" else 2]
    climb(Case(expr, mech, nodes, seed=number), tmp_path)


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", lw.models.HINGE_KINDS)
def test_every_hinge(kind, tmp_path):
    """A body on that hinge, and another one on it; a welded body carries one on a pin."""
    hinges = (kind, "pin") if kind == "locked" else (kind,)
    climb(Case(FORWARD, lw.models.random_tree(2, 1, hinges=hinges)), tmp_path)


# ----------------------------------------------------------------------- random expressions

SIMPLE = ("pin", "prismatic", "helical", "cylindrical", "universal")
SMALL = (
    lambda seed: lw.models.random_tree(3, seed, hinges=SIMPLE),
    lambda seed: lw.models.random_tree(2, seed, hinges=SIMPLE, floating=True),
    lambda seed: lw.models.random_tree(3, seed, hinges=("spherical", "pin", "locked")),
    lambda seed: lw.models.chain(3),
)
QUICK = (7, 12, 20, 26, 28, 35, 42, 47, 59)
"""Draws that take few operations and a few seconds through all rungs."""


def is_own(expr):
    """Whether there is an operator in it that is not one of the mechanism."""
    blocks = (leaf.role for leaf in leaves(expr) if isinstance(leaf.role, Memoryless | Shift))
    return any(key.source not in (*STATE_BLOCKS, "phi") for key in blocks)


@pytest.mark.few(2, 16)
@pytest.mark.parametrize(
    "seed", [x if x in QUICK else pytest.param(x, marks=pytest.mark.slow) for x in range(60)]
)
def test_random_expressions(seed, tmp_path):
    expr = random_expression(np.random.default_rng(seed), 5, sums=1)
    mech = SMALL[seed % len(SMALL)](seed % 23)
    form = expr if mech.armature.any() else no_armature(expr).result
    if is_own(form):  # its values are no numbers of the mechanism, and no vectors
        for options in KERNELS.values():
            with pytest.raises(ExpressionError, match=r"[QCF] is an operator that the mechanism"):
                _ = lw.compile(expr, mech, nodes=nodes_of(mech), **options).ops
    elif not is_own(expr):
        climb(Case(expr, mech, nodes_of(mech), seed, vanishing=True), tmp_path, least=1)
    else:  # a product with the armature, which this mechanism has not
        assert not lw.compile(expr, mech, nodes=nodes_of(mech)).ops


# ---------------------------------------------------------------------- refused, and trouble


def test_an_inverse_that_needs_pivots_is_for_the_interpreter():
    """(J 𝓜⁻¹ J* + J τ f*)⁻¹ f: not symmetric, so kernels refuse it and the interpreter does it."""
    mech = lw.models.puma560()
    expr = (J @ mass.inv @ J.T + J @ tau @ f.T).inv @ f
    case = Case(expr, mech, ["link_6"])
    for options in KERNELS.values():
        with pytest.raises(LoweringError, match=r"it is not symmetric.*The interpreter evaluates"):
            _ = lw.compile(expr, mech, nodes=["link_6"], **options).ops
    dense, error = case.dense(0)
    assert np.abs(case.by_numpy([0])[0] - dense).max() <= error


def test_a_matrix_that_is_singular_everywhere(tmp_path):
    """Four hinges cannot accelerate a body in six directions."""
    mech = lw.models.chain(4)
    expr = expression("operational_inertia")
    case = Case(expr, mech, [mech.bodies[-1].name])
    kernels = {"straight": case.kernel(), "rolled": case.kernel(rolled=True)}
    answers = {rung: kernel.batch(STATES) for rung, kernel in kernels.items()}
    answers["one by one"] = kernels["straight"].one_by_one()
    if CPP_COMPILER is not None:
        answers["CUDA"] = case.cuda_on_host(tmp_path)
    for rung, (result, codes) in answers.items():
        assert (codes == status.MATRIX).all(), rung
        assert np.isnan(result).all(), rung
    with pytest.raises(LoweringError, match="singular in nearly every one"):
        lw.compile(expr, mech, nodes=case.nodes, target="c")  # there is nothing to test itself with


def two_bodies():
    """A trunk that floats, and an arm on it."""
    inertia = lw.SpatialInertia.from_com(2.0, (0.1, 0.0, 0.2), (0.1, 0.2, 0.3))
    b = lw.Builder("trunk and arm")
    b.body("trunk", "world", lw.hinges.Free(), inertia=inertia)
    b.body("arm", "trunk", lw.hinges.Pin((0.0, 1.0, 0.0)), inertia=inertia)
    return b.build()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_target_gives_the_same_status(dtype, tmp_path):
    mech = two_bodies()
    options = {"parameters": ["armature"], "dtype": dtype}
    rng, count = np.random.default_rng(0), 9
    q = np.array([mech.random(rng) for _ in range(count)])
    armature = np.full((count, mech.nv), 0.1)
    rows = [q, *rng.standard_normal((2, count, mech.nv)), armature]
    rows[1][1, 3] = np.nan
    rows[2][2, 6] = -np.inf
    q[3, :4] *= 1.01
    armature[4, 6] = -1e3  # D of the arm; what it carries of the trunk is spoilt
    armature[5, :6] = -1e3
    rows[2][6] = 0.9 * np.finfo(dtype).max
    armature[7, 0] = np.inf
    expected = [0, 1, 1, status.quaternion(0), status.hinge(1), status.hinge(0), 2, 1, 0]
    rows = [x.astype(dtype) for x in rows]
    for rolled in (False, True):
        kernel = lw.compile(FORWARD, mech, rolled=rolled, **options)
        codes, code = np.empty(count, np.int32), np.empty((), np.int32)
        out = kernel(*rows, status=codes)
        assert codes.tolist() == expected
        assert (np.isnan(out).all(axis=1) == (codes != 0)).all()
        for i in range(count):
            kernel(*(x[i] for x in rows), status=code)
            assert code == expected[i]
    if C_COMPILER is not None:
        made = lw.compile(FORWARD, mech, target="c", **options).named("rung")
        function, out = built(made, tmp_path), np.empty(mech.nv, dtype)
        for i in range(count):
            pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*(x[i] for x in rows), out)]
            assert function(*pointers) == expected[i]
            assert np.isnan(out).all() == (expected[i] != 0)
    if CPP_COMPILER is not None:
        made = lw.compile(FORWARD, mech, target="cuda", **options)
        host = OnHost(made.device.emitted, len(rows), tmp_path, CPP_COMPILER)
        out, codes, trouble = host(rows, mech.nv, count)
        assert codes.tolist() == expected and trouble == (7, 1)
        assert (np.isnan(out).all(axis=1) == (codes != 0)).all()
