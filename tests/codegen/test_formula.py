"""Formulas: array code on top of expressions, one kernel on every path."""

import math
import pickle
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import J, R, mass, to_W, v
from linkwise.codegen.cuda.plan import planned
from linkwise.codegen.cuda.source import emit_cuda
from linkwise.codegen.formula import Formula
from linkwise.codegen.request import Request
from linkwise.codegen.scalar import orthogonal
from linkwise.spatial import choice
from tests.codegen.cuda_on_host import OnHost

pytestmark = pytest.mark.shipped


def _center(at: Any) -> Any:
    """The centre of mass, from composite inertias in the world."""
    roots = [body.name for k, body in enumerate(at.mech.bodies) if at.mech.parent[k] < 0]
    full = at.value(to_W.inv.T @ R @ to_W.inv, rows=roots, blocks=True).sum(axis=0)
    return np.array([full[2, 4], full[0, 5], full[1, 3]]) / at.mech.total_mass


def _choices(at: Any, bound: float) -> Any:
    """One of everything that `choice` has, of two inputs."""
    (x,), (y,) = at.read("x", 1), at.read("y", 1)
    return np.array(
        [
            choice.where(x, y, 2.0 * y),
            choice.maximum(x, y),
            choice.minimum(x, y),
            choice.clip(x, -bound, bound),
            choice.absolute(x),
            choice.angle(y, x),
            choice.norm([x, y]),
        ]
    )


def _speed(at: Any) -> Any:
    V, inertia = at.value(J @ v, mass)
    return choice.norm(V[3:]), inertia[0]


def _expected(x: Any, y: Any, bound: float) -> Any:
    parts: list[Any] = [
        np.where(x > 0.0, y, 2.0 * y),
        np.maximum(x, y),
        np.minimum(x, y),
        np.clip(x, -bound, bound),
        np.abs(x),
        np.arctan2(y, x),
        np.hypot(x, y),
    ]
    return np.stack(parts, axis=-1)


POINTS = [(1.0, 2.0), (-1.0, 1e-9), (-3.0, -4.0), (0.5, -1e5), (1e-9, 1e-9), (-1.0, 0.0)]


def test_choices_are_what_numpy_makes_of_them() -> None:
    mech = lw.models.pendulum(1)
    kernel = lw.compile(Formula(_choices, (0.7,)), mech)
    x, y = np.array(POINTS).T
    batch = kernel(x=x[:, None], y=y[:, None])
    assert np.array_equal(batch, [kernel(x=[a], y=[b]) for a, b in POINTS])
    assert batch == pytest.approx(_expected(x, y, 0.7), rel=4e-15, abs=1e-300)
    half = lw.compile(Formula(_choices, (0.7,)), mech, dtype=np.float32)
    assert half(x=x[:, None], y=y[:, None]) == pytest.approx(_expected(x, y, 0.7), rel=2e-6)


def test_an_angle_is_good_to_rounding_everywhere() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(2, 500)) * 10.0 ** rng.uniform(-9, 9, (2, 500))
    result = [choice.angle(float(b), float(a)) for a, b in zip(x, y, strict=True)]
    assert result == pytest.approx(np.arctan2(y, x), rel=1e-15)
    assert choice.angle(0.0, 0.0) == 0.0
    assert choice.angle(0.0, -1.0) == math.pi


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["seven_dof_arm", "humanoid", "dual_arm"])
def test_a_formula_is_one_kernel(name: str) -> None:
    mech = getattr(lw.models, name)()
    kernel = lw.compile(Formula(_center), mech)
    states = np.stack([mech.random(seed=i) for i in range(9)])
    masses = mech.inertias.mass
    places = [lw.forward_kinematics(mech, states, body.name) for body in mech.bodies]
    centers = [X.apply(c) for X, c in zip(places, mech.inertias.com, strict=True)]
    expected = np.tensordot(masses, np.array(centers), (0, 0)) / masses.sum()
    assert np.abs(expected).max() > 0.01
    assert kernel(states) == pytest.approx(expected, abs=1e-14)
    assert kernel(states[4]) == pytest.approx(expected[4], abs=1e-14)
    again = pickle.loads(pickle.dumps(kernel))
    assert np.array_equal(again(states), kernel(states))


def test_large_mechanisms_are_evaluated_by_the_same_function() -> None:
    mech = lw.models.chain(200)
    formula = Formula(_speed, (), ("speed", "row"))
    last = mech.bodies[-1].name
    together: Any = lw.compile(formula, mech, nodes=[last])
    assert together.device.machine.evaluated is not None
    q = np.stack([mech.random(seed=i) for i in range(3)])
    u = np.random.default_rng(0).normal(size=(3, mech.nv))
    result = together(q, u)
    V = lw.node_velocity(mech, q, u, last)
    assert result["speed"] == pytest.approx(np.linalg.norm(V[:, 3:], axis=1), rel=1e-12)
    assert result["row"] == pytest.approx(lw.mass_matrix(mech, q)[:, 0], rel=1e-12)
    q[1, 7] = np.nan
    status = np.zeros(3, np.int32)
    assert np.isnan(together(q, u, status=status)["speed"]).tolist() == [False, True, False]
    assert status.tolist() == [0, 1, 0]


def test_trouble_of_an_expression_is_that_of_the_formula() -> None:
    mech = lw.models.humanoid()
    kernel = lw.compile(Formula(_center), mech)
    q = mech.random(seed=2)
    q[:4] *= 1.5
    with pytest.raises(lw.ModelError, match="quaternion"):
        kernel(q)


def _newton(at: Any, most: int) -> Any:
    """√x by Newton's method, and what is left of the last step."""
    (x,) = at.read("x", 1)

    def once(at: Any, y: Any, given: Any) -> Any:
        after = 0.5 * (y[0] + given[0] / y[0])
        return [after], choice.absolute(after - y[0]) - 1e-12 * after

    (y,), again = at.loop(once, [x], [x], most=most)
    return np.array([y, again])


def test_a_loop_ends_for_each_state_by_itself() -> None:
    kernel = lw.compile(Formula(_newton, (60,)), lw.models.pendulum(1))
    x = 10.0 ** np.linspace(-6.0, 6.0, 21)
    batch = kernel(x[:, None])
    assert batch[:, 0] == pytest.approx(np.sqrt(x), rel=1e-15)
    assert (batch[:, 1] <= 0.0).all()
    # Neighbours that take more rounds change nothing.
    assert np.array_equal(batch, [kernel([e]) for e in x])


def test_a_loop_ends_after_the_most_rounds() -> None:
    kernel = lw.compile(Formula(_newton, (2,)), lw.models.pendulum(1))
    assert kernel([100.0]) == pytest.approx([0.5 * (50.5 + 100.0 / 50.5), 24.25990099], rel=1e-9)


def _decomposed(at: Any, m: int, n: int) -> Any:
    return orthogonal.singular(at, at.read("w", m * n).reshape(m, n))


@pytest.mark.parametrize(("m", "n"), [(1, 3), (3, 3), (6, 7), (6, 4), (5, 19)])
def test_singular_values_of_every_rank(m: int, n: int) -> None:
    kernel = lw.compile(Formula(_decomposed, (m, n), ("U", "values")), lw.models.pendulum(1))
    rng = np.random.default_rng(m)
    for rank in range(min(m, n) + 1):
        W = 10.0 ** rng.uniform(-3, 3) * rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))
        W[:, 0] = 0.0 if rank % 2 else W[:, 0]  # zeros on the way
        result = kernel(W.ravel())
        expected = np.zeros(m)
        expected[: min(m, n)] = np.linalg.svd(W, compute_uv=False)
        scale = expected[0] or 1.0
        assert result["values"] == pytest.approx(expected, abs=3e-15 * scale)
        assert result["U"].T @ result["U"] == pytest.approx(np.eye(m), abs=5e-15)
        rows = result["U"].T @ W  # orthogonal, the longest first
        assert rows @ rows.T == pytest.approx(np.diag(expected**2), abs=1e-14 * scale**2)


def test_small_singular_values_keep_their_digits() -> None:
    kernel = lw.compile(Formula(_decomposed, (4, 4), ("U", "values")), lw.models.pendulum(1))
    rng = np.random.default_rng(8)
    sizes = np.array([1.0, 1e-5, 1e-10, 1e-15])
    W = sizes[:, None] * np.linalg.qr(rng.normal(size=(4, 4)))[0]
    assert kernel(W.ravel())["values"] == pytest.approx(sizes, rel=1e-14)


@pytest.mark.parametrize("apart", [0.0, 1e-11, 1e-9, 1e-7, 1e-5])
def test_rows_are_orthogonal_where_singular_values_nearly_agree(apart: float) -> None:
    """Small cosines do not mean small turns there: a sweep can bring back what was turned away."""
    kernel = lw.compile(Formula(_decomposed, (6, 6), ("U", "values")), lw.models.pendulum(1))
    rng = np.random.default_rng(6)
    for _ in range(20):
        left, right = (np.linalg.qr(rng.normal(size=(6, 6)))[0] for _ in "lr")
        sizes = np.repeat([1.0, 0.3], 3) * (1.0 + apart * rng.normal(size=6))
        result = kernel(((left * sizes) @ right).ravel())
        assert result["values"] == pytest.approx(np.sort(sizes)[::-1], rel=4e-15)
        rows = result["U"].T @ (left * sizes)
        assert rows @ rows.T == pytest.approx(np.diag(result["values"] ** 2), abs=1e-14)


def _independent(at: Any, m: int, n: int) -> Any:
    W, A = at.read("w", m * n).reshape(m, n), at.read("a", 2 * n).reshape(2, n)
    rows, exists, beside = orthogonal.independent(at, W, 1e-9, 1e-6, W @ np.ones((n, 1)))
    others = orthogonal.complement(at, rows, exists)
    full = orthogonal.packed(rows, exists), orthogonal.packed(others.rows, others.exists)
    return rows, exists, orthogonal.across(at, A, rows, exists), beside, *full


@pytest.mark.parametrize(("m", "n"), [(1, 3), (3, 3), (6, 4), (5, 9)])
def test_independent_rows_of_every_rank(m: int, n: int) -> None:
    names = ("rows", "exists", "rest", "beside", "front", "others")
    kernel = lw.compile(Formula(_independent, (m, n), names), lw.models.pendulum(1))
    rng = np.random.default_rng(m + n)
    for rank in range(min(m, n) + 1):
        for least in (1.0, 1e-7):  # the smallest of the independent directions
            W = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))
            left, size, right = np.linalg.svd(W, full_matrices=False)
            size = np.where(np.arange(len(size)) < rank, 1.0, 0.0)
            size[max(rank - 1, 0)] *= least
            W, A = 30.0 * (left * size) @ right, rng.normal(size=(2, n))
            result = kernel(W.ravel(), A.ravel())
            V, exists = result["rows"], result["exists"]
            assert exists.sum() == rank and set(exists.tolist()) <= {0.0, 1.0}
            assert V @ V.T == pytest.approx(np.diag(exists), abs=3e-15)
            span = right[:rank].T @ right[:rank]
            assert V.T @ V == pytest.approx(span, abs=3e-15 / least)
            assert result["rest"] == pytest.approx(A - A @ V.T @ V, abs=1e-14)
            # Of W x = W (1, ..., 1) the least solution is that part of it.
            assert V.T @ result["beside"] == pytest.approx(span.sum(1)[:, None], abs=1e-14 / least)
            front, others = result["front"], result["others"]
            assert np.array_equal(front[:rank], V[exists > 0.0]) and not front[rank:].any()
            assert not others[n - rank :].any()
            both = np.concatenate([front[:rank], others[: n - rank]])
            assert both @ both.T == pytest.approx(np.eye(n), abs=3e-15)
    below = kernel(np.full(m * n, 1e-17), np.ones(2 * n))  # nothing but rounding
    assert not below["exists"].any() and not below["rows"].any() and (below["rest"] == 1.0).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_formulas_are_exported_to_c(tmp_path: Path, dtype: Any) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    mech = lw.models.seven_dof_arm()
    cases = {
        "roots": Formula(_newton, (60,)),
        "singular": Formula(_decomposed, (3, 5), ("U", "values")),
        "center": Formula(_center),
        "choices": Formula(_choices, (0.7,)),
    }
    for name, formula in cases.items():
        text = lw.compile(formula, mech, target="c", dtype=dtype).named(name)
        text.write(tmp_path)
        flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1"]
        run = [compiler, *flags, f"-D{name.upper()}_SELFTEST", f"{name}.c", "-lm", "-o", name]
        subprocess.run(run, cwd=tmp_path, check=True)
        message = subprocess.run([tmp_path / name], capture_output=True, text=True, check=False)
        assert message.returncode == 0, message.stdout
    assert "round0" in (tmp_path / "roots.c").read_text()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_loops_on_a_card(tmp_path: Path, dtype: str) -> None:
    """The text for a card, compiled for this computer, gives what the processor's kernel gives."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    mech, rng = lw.models.seven_dof_arm(), np.random.default_rng(4)
    cases: dict[str, tuple[Formula, list[Any]]] = {
        "roots": (Formula(_newton, (60,)), [rng.uniform(0.1, 50.0, (41, 1))]),
        "singular": (Formula(_decomposed, (3, 5), ("U", "values")), [rng.normal(size=(41, 15))]),
        "choices": (Formula(_choices, (0.7,)), [rng.normal(size=(41, 1)) for _ in range(2)]),
    }
    for name, (formula, arrays) in cases.items():
        request = Request(formula, mech, itemsize=np.dtype(dtype).itemsize)
        traced, codes, shape = planned(request)
        source = emit_cuda(traced, codes, shape, dtype=dtype, title=[name])
        (tmp_path / name).mkdir()
        on_host: Any = OnHost(source, len(traced.inputs), tmp_path / name, compiler)
        width = len(traced.outputs)
        result, status, _ = on_host(arrays, width, 41)
        flat = Formula(_flat, (formula,))
        expected = lw.compile(flat, mech, dtype=dtype)(*[a.astype(dtype) for a in arrays])
        bound = 2e-13 if dtype == "float64" else 2e-5
        assert not status.any()
        assert result == pytest.approx(expected, abs=float(bound * np.abs(expected).max()))


def _flat(at: Any, formula: Formula) -> Any:
    result = formula.write(at, *formula.options)
    parts = result if formula.names else [result]
    return np.concatenate([np.ravel(np.asarray(x, dtype=object)) for x in parts])


def _as_it_is(at: Any, size: int) -> Any:
    return at.read("x", size)


@pytest.mark.parametrize("size", [3, 6000])
def test_results_may_be_inputs(size: int) -> None:
    kernel, x = (
        lw.compile(Formula(_as_it_is, (size,)), lw.models.pendulum(1)),
        np.arange(size) + 1.0,
    )
    for given in (x, np.stack([x + i for i in range(17)])):
        out = np.zeros_like(given)
        assert np.array_equal(kernel(given, out=out), given) and np.array_equal(out, given)
