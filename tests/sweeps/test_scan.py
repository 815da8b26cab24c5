"""Scans: dense matrices, sweeps and scans agree; depth, accuracy, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import J, bias, mass, tau, v, vdot, vector
from linkwise.algebra.derivation import random_dense
from linkwise.algebra.differential import differentiate
from linkwise.algebra.expr import Expr
from linkwise.algebra.space import JOINT
from linkwise.errors import ExpressionError, LoweringError, SingularHingeError
from linkwise.sweeps.interpret import run
from linkwise.sweeps.lower import lower
from linkwise.sweeps.scan import element
from linkwise.sweeps.scan.path import heavy_paths
from linkwise.sweeps.scan.run import scanned
from tests.algebra import trees
from tests.algebra.expressions import random_expression
from tests.cases import TREES, close, state, tree
from tests.sweeps.extended import LONG, Pins
from tests.sweeps.test_interpret import OPERATORS

FORWARD = lw.derive(mass.inv @ (tau - bias)).result
INVERSE = mass @ vdot + bias
EPS = float(np.finfo(np.float64).eps)
LOOPABLE = [x for x in OPERATORS if lower(x).loopable]


def both(expr: Expr, mech: lw.Mechanism, **given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By scans, and by the reference."""
    q, v_, x = state(mech)
    program, values = lower(expr), {"tau": x, "vdot": x, **given}
    nodes = [node.name for node in mech.nodes][:2]
    scan, sweep = (f(program, mech, q, v_, nodes=nodes, values=values) for f in (scanned, run))
    return scan, sweep


def residual(mech: lw.Mechanism, vdot: np.ndarray) -> float:
    """How well accelerations fulfil the equations of motion, row by row."""
    q, v_, x = state(mech)
    M, force = run(lower(mass), mech, q), run(lower(bias), mech, q, v_)
    size = np.abs(M) @ np.abs(vdot) + np.abs(force) + np.abs(x)
    return float((np.abs(M @ vdot + force - x) / size).max())


def chain(n: int, seed: int = 0, **options: object) -> lw.Mechanism:
    """Without branches, as far as `random_tree` lets it."""
    return lw.models.random_tree(n, seed, branching=0.0, **options)


def serial(n: int) -> lw.Mechanism:
    """Equal links on pins about y, x and z in turn."""
    b, parent = lw.Builder(f"serial_{n}"), "world"
    rod = lw.SpatialInertia.solid_box(1.0, (0.1, 0.1, 0.2)).moved(lw.Pose.translation((0, 0, 0.1)))
    for k in range(n):
        axis = ((0, 1, 0), (1, 0, 0), (0, 0, 1))[k % 3]
        b.body(f"link_{k}", parent, lw.hinges.Pin(axis), inboard=(0, 0, 0.2 * (k > 0)), inertia=rod)
        parent = f"link_{k}"
    return b.build()


# ----------------------------------------------------------------------------------- agreement


@pytest.mark.parametrize("operator", LOOPABLE, ids=str)
def test_columns_are_the_matrix(operator: Expr) -> None:
    mech = trees.branched(7)
    dense = random_dense(mech, [operator], 7, [mech.bodies[-1].name, mech.bodies[1].name])
    nodes, given = [node.name for node in dense.nodes], dense.values
    got = scanned(lower(operator), mech, dense.q, dense.v, nodes=nodes, values=given)
    close(got, dense.matrix(operator))


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("expr", [FORWARD, INVERSE, lw.derive(J @ mass.inv @ J.T).result])
def test_every_hinge(name: str, expr: Expr) -> None:
    close(*both(expr, tree(name)))


@pytest.mark.parametrize("seed", range(20))
def test_random_expressions(seed: int) -> None:
    expr = random_expression(np.random.default_rng(seed))
    mech = (trees.branched, trees.floating, trees.every_hinge, trees.serial)[seed % 4](seed)
    dense = random_dense(mech, [expr], seed, [mech.bodies[-1].name, mech.bodies[0].name])
    program, nodes = lower(expr), [node.name for node in dense.nodes]
    if trees.condition(dense) > 1e4 or not program.loopable:
        pytest.skip("ill-conditioned, or constrained")
    given = dense.q, dense.v
    scan, sweep = (
        f(program, mech, *given, nodes=nodes, values=dense.values) for f in (scanned, run)
    )
    scale = float(trees.magnitude(dense, expr).max(initial=1e-300))
    close(scan, sweep, scale=scale)


@pytest.mark.parametrize("wrt", ["q", "v"])
def test_derivatives(wrt: str) -> None:
    """Derivatives of forward dynamics along a direction are affine recursions too."""
    mech, u = tree("every hinge, armature"), vector("u", JOINT)
    expr = lw.derive(differentiate(FORWARD, wrt) @ u).result
    plan = lw.plan(expr, schedule="scan")
    assert not [group for group in plan.groups if group.kind == "sweep"]
    close(*both(expr, mech, u=np.linspace(-1.0, 1.0, mech.nv)))


def test_branches_of_branches() -> None:
    """Paths hand over to paths: a binary tree has as many levels as a body has ancestors."""
    b = lw.Builder("binary")
    rod = lw.SpatialInertia.solid_box(1.0, (0.1, 0.2, 0.3)).moved(lw.Pose.translation((0, 0, 0.2)))
    for k in range(1, 32):
        parent = "world" if k == 1 else f"body_{k // 2}"
        axis = ((1, 0, 0), (0, 1, 0), (0.6, 0, 0.8))[k % 3]
        b = b.body(f"body_{k}", parent, lw.hinges.Pin(axis), inboard=(0.1, 0, 0.3), inertia=rod)
    mech = b.build()
    assert len(heavy_paths(mech).levels) == 5
    close(*both(FORWARD, mech))
    close(*both(INVERSE, mech))


def test_massless_frames() -> None:
    """A body without inertia, as between two pins of a universal joint, joins the next one."""
    b, parent = lw.Builder("frames"), "world"
    rod = lw.SpatialInertia.solid_box(1.0, (0.1, 0.2, 0.3)).moved(lw.Pose.translation((0, 0, 0.1)))
    for i in range(9):
        b = b.body(f"frame_{i}", parent, lw.hinges.Pin((1, 0, 0)), inboard=(0, 0, 0.2))
        b = b.body(f"link_{i}", f"frame_{i}", lw.hinges.Pin((0, 1, 0)), inertia=rod)
        parent = f"link_{i}"
    close(*both(FORWARD, b.build()))


# ------------------------------------------------------------------------------------ accuracy


@pytest.mark.parametrize(
    ("n", "options"),
    [
        (150, {}),
        (60, {"drives": False, "mass_ratio": 1e6}),
        (60, {"mass_ratio": 1e9}),
        (100, {"floating": True}),
    ],
)
def test_equations_of_motion_are_fulfilled(n: int, options: dict[str, object]) -> None:
    for seed in (1, 2):
        mech = chain(n, seed, **options)
        scan, sweep = (residual(mech, x) for x in both(FORWARD, mech))
        assert scan < 100.0 * max(sweep, 1e-15)


@pytest.mark.skipif(np.finfo(LONG).eps > 1e-18, reason="no extended precision here")
@pytest.mark.parametrize(
    ("n", "options"),
    [
        (3000, {}),
        (300, {"mass_ratio": 1e9}),
        (300, {"drives": False, "mass_ratio": 1e6}),
    ],
    ids=["long", "stiff", "stiff, no armature"],
)
def test_beside_extended_precision(n: int, options: dict[str, object]) -> None:
    """Accelerations are as near the exact ones as those of the sweep, and so are residuals."""
    mech = chain(n, hinges=("pin",), **options)
    scan, sweep = both(FORWARD, mech)
    q, v_, x = state(mech)
    exact = Pins(mech, q, v_)
    vdot = exact.forward(x)
    ours, theirs = (float(np.abs(y - vdot).max() / np.abs(vdot).max()) for y in (scan, sweep))
    assert ours < max(theirs, n * EPS)
    ours, theirs = (float(np.abs(exact.inverse(y) - x).max()) for y in (scan, sweep))
    assert ours < 10.0 * theirs


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_long_chain(seed: int) -> None:
    """n links transmit forces as large as the bias, and each rounds them once."""
    n = 1000
    mech = serial(n)
    q, v_, x = state(mech, seed)
    program = lower(FORWARD), lower(INVERSE), lower(bias)
    scan = scanned(program[0], mech, q, v_, values={"tau": x})
    size = np.abs(scanned(program[2], mech, q, v_)).max()
    back = scanned(program[1], mech, q, v_, values={"vdot": scan})
    assert np.abs(back - x).max() < n * EPS * size
    close(scan, run(program[0], mech, q, v_, values={"tau": x}), 1e-10)


# ------------------------------------------------------------------------------------ elements


def square(x: np.ndarray) -> np.ndarray:
    return x @ element.star(x)


def test_prefixes_are_what_a_loop_gives() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 6, 17):
        elements = tuple(rng.standard_normal((3, n, 6, 6)))
        got = element.prefixes(elements, element.kalman)
        S, total = np.zeros((1, 6, 6)), None
        for i in range(n):
            one = tuple(x[i : i + 1] for x in elements)
            total = one if total is None else element.kalman(total, one)
            A, lower, upper = one  # the definition, on the state itself
            through = np.linalg.inv(np.eye(6) + S @ square(upper)) @ S
            S = square(lower) + A @ through @ element.star(A)
            close(square(got[1][i]), S[0])
            close(got[0][i], total[0][0])
            for x, y in zip(got[1:], total[1:], strict=True):
                close(square(x[i]), square(y[0]))


def test_root_of_a_singular_matrix() -> None:
    x = np.random.default_rng(0).standard_normal((4, 6, 2))
    close(square(element.root(square(x))), square(x))
    assert not element.root(np.zeros((1, 6, 6))).any()


def test_root_of_a_nearly_singular_matrix() -> None:
    """A first pivot that is nearly used up comes with entries as large as its root."""
    for small in (1e-13, 1e-15, 1e-17):
        x = np.eye(6)
        x[1] = x[0] + np.sqrt(small) * x[5]
        matrix = square(x)[None]
        close(square(element.root(matrix)), matrix, 1e-14)


def test_depth_is_logarithmic() -> None:
    plan = lw.plan(FORWARD, schedule="scan")
    assert plan.depth == 4
    assert [element.rounds(n) for n in (1, 2, 3, 1024, 1_000_000)] == [0, 1, 2, 19, 38]
    assert plan.rounds(1024) == 76


# ------------------------------------------------------------------------------- the front door


def test_kernel_by_scans() -> None:
    mech = tree("every hinge, armature")
    scan = lw.compile(mass.inv @ (tau - bias), mech, target="numpy", schedule="scan")
    sweep = lw.compile(mass.inv @ (tau - bias), mech, target="numpy")
    close(scan(*state(mech)), sweep(*state(mech)))
    assert "scan 1 over k = tips … base, of Kalman elements" in scan.explain()
    assert "rounds of scans" in scan.explain()


def test_plan_of_inverse_dynamics() -> None:
    text = str(lw.plan(INVERSE, schedule="scan"))
    assert text.count("affine maps") == 3 and "Kalman" not in text
    assert text.endswith("3 scans one after another, each in 2 log₂ N rounds")


def test_refused() -> None:
    arm = lw.models.seven_dof_arm()
    with pytest.raises(ExpressionError, match="must be 'sweep' or 'scan'"):
        lw.plan(FORWARD, schedule="tree")  # pyright: ignore
    with pytest.raises(ExpressionError, match="on the targets 'cuda' and 'numpy'"):
        lw.compile(FORWARD, arm, schedule="scan")
    with pytest.raises(LoweringError, match="belongs to constraints"):
        lw.plan(lw.algebra.Q.T @ lw.algebra.lam, schedule="scan")
    with pytest.raises(ExpressionError, match="array code"):
        lw.compile(lambda at: at.value(v), arm, target="numpy", schedule="scan")


def test_nothing_resists_a_hinge() -> None:
    b = lw.Builder("free").body("first", hinge=lw.hinges.Pin(), inertia=lw.SpatialInertia.zero())
    mech = b.build()
    with pytest.raises(SingularHingeError, match="'first'"):
        scanned(lower(FORWARD), mech, np.zeros(1), values={"tau": np.zeros(1)})


@pytest.mark.parametrize("schedule", ["sweep", "scan"])
def test_status(schedule: str) -> None:
    """Rows without a result get the codes of compiled kernels; the others are right."""
    arm = lw.models.seven_dof_arm()
    numpy = lw.compile(FORWARD, arm, target="numpy", schedule=schedule)
    cpu = lw.compile(FORWARD, arm)
    q, v_, x = (np.stack([y] * 4) for y in state(arm))
    q[1, 2], v_[2], x[3, 0] = np.nan, 1e200, np.inf
    ours, theirs = np.full(4, -1, np.int32), np.full(4, -1, np.int32)
    got, expected = numpy(q, v_, x, status=ours), cpu(q, v_, x, status=theirs)
    assert ours.tolist() == theirs.tolist() == [0, 1, 2, 1]
    close(got[0], expected[0])
    assert np.isnan(got[1:]).all()
    one = np.full((), -1, np.int32)
    assert np.isnan(numpy(q[1], v_[1], x[1], status=one)).all() and one == 1


def test_status_names_the_body() -> None:
    """Nothing resists a pin whose only mass has moved onto its axis; quaternions have a length."""
    b = lw.Builder("slide").body("arm", hinge=lw.hinges.Pin((0, 0, 1)))
    point = lw.SpatialInertia.point(1.0, (0, 0, 0))
    mech = b.body("slider", "arm", lw.hinges.Prismatic((1, 0, 0)), inertia=point).build()
    kernel = lw.compile(FORWARD, mech, target="numpy", schedule="scan")
    codes, zero = np.zeros(2, np.int32), np.zeros(2)
    kernel(np.array([[0.3, 0.5], [0.3, 0.0]]), zero, zero, status=codes)
    assert codes[0] == 0 and "'arm'" in kernel.describe(int(codes[1]))

    mech = tree("floating")
    kernel = lw.compile(FORWARD, mech, target="numpy", schedule="scan")
    q, v_, x = state(mech)
    q[:] *= 2.0
    code = np.zeros((), np.int32)
    assert np.isnan(kernel(q, v_, x, status=code)).all()
    assert "quaternion" in kernel.describe(int(code))
