"""Matrices in loops against NumPy: products, turns, factors, and functions of columns."""

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.formula import Formula
from linkwise.codegen.matrices import Matrices
from linkwise.codegen.writing import Writing
from linkwise.spatial.array import Array
from tests.codegen.rungs import C_COMPILER, built

SIZES = [(3, 4, 5), (8, 8, 8), (13, 21, 10), (1, 9, 17)]
NAMES = ("product", "turned", "less", "upper", "factor", "pivots", "columns", "scaled")


def _write(at: Writing, n: int, k: int, m: int) -> Any:
    work = Matrices(at)
    a, b = at.read("A", n * k).reshape(n, k), at.read("B", k * m).reshape(k, m)
    c, s = at.read("C", n * m).reshape(n, m), at.read("P", m * m).reshape(m, m)
    A, B, third, S = work.matrix(a), work.matrix(b), work.matrix(c), work.symmetric(s)
    given = work.vector(b[:, 0])

    def function(at: Writing, d: Any, x: Any) -> Any:
        return [d[0] * x[0] + at.scalar(x[-1]).sin(), *(2.0 * d)]

    product = work.product(A, B)
    turned = work.product(A, third, turned=True)
    less = work.product(A, B, less_than=third)
    upper = work.mirrored(work.product(work.turned(B), B, upper=True))
    lower = work.blank(work.room(m, m))
    pivots = work.factor(S, lower)
    columns = work.each(function, third, given, work.room(n + 1, m))
    scaled = work.scaled(work.turned(B), work.vector(s[0]))
    parts = work.results(
        product.entries, turned.entries, less.entries, upper.mirrored_entries, lower.entries,
        pivots, columns.entries, scaled.entries,
    )  # fmt: skip
    shapes = [(n, m), (k, m), (n, m), (m, m), (m, m), (m,), (n + 1, m), (m, k)]
    return tuple(x.reshape(shape) for x, shape in zip(parts, shapes, strict=True))


def _right(A: Array, B: Array, third: Array, S: Array) -> dict[str, Array]:
    lower = np.linalg.cholesky(S)
    columns = np.vstack([third[0] * B[0, 0] + np.sin(B[-1, 0]), 2.0 * third])
    results = (
        A @ B,
        A.T @ third,
        third - A @ B,
        B.T @ B,
        lower,
        np.diag(lower) ** 2,
        columns,
        (B * S[0]).T,
    )
    return dict(zip(NAMES, results, strict=True))


def _given(rng: Any, n: int, k: int, m: int) -> tuple[Array, ...]:
    S = rng.standard_normal((m, m))
    sizes = (n, k), (k, m), (n, m)
    return (*(rng.standard_normal(size) for size in sizes), S @ S.T + np.eye(m))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_one_and_many(size: tuple[int, int, int], dtype: Any) -> None:
    """A state by itself, and a batch that is not a multiple of a register."""
    formula, rng = Formula(_write, size, NAMES), np.random.default_rng(0)
    kernel = lw.compile(formula, lw.models.pendulum(1), dtype=dtype)
    states = [_given(rng, *size) for _ in range(11)]
    assert kernel.arguments == ("A", "B", "C", "P")
    flat = [[x.ravel() for x in state] for state in states]
    batch = kernel(*[np.array(x) for x in zip(*flat, strict=True)])
    tol = 1e-12 if dtype is np.float64 else 1e-4
    for i, state in enumerate(states):
        one = kernel(*flat[i])
        for name, right in _right(*state).items():
            assert np.abs(right).max() > 0.0
            assert np.allclose(one[name], right, rtol=tol, atol=10 * tol), name
            assert np.allclose(batch[name][i], right, rtol=tol, atol=10 * tol), name


@pytest.mark.skipif(C_COMPILER is None, reason="needs a C compiler")
@pytest.mark.parametrize("size", SIZES[1:3])
def test_in_c(size: tuple[int, int, int], tmp_path: Path) -> None:
    formula, rng = Formula(_write, size, NAMES), np.random.default_rng(0)
    mech = lw.models.pendulum(1)
    made = lw.compile(formula, mech, target="c").named("matrices")
    code, state = built(made, tmp_path), _given(rng, *size)
    right = np.concatenate([x.ravel() for x in _right(*state).values()])
    out = np.zeros(right.size)
    arrays = [np.ascontiguousarray(x) for x in (*state, out)]
    pointers = [x.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for x in arrays]
    assert code(*pointers) == 0
    assert np.allclose(arrays[-1], right, rtol=1e-12, atol=1e-11)


def test_operations_are_those_of_the_products() -> None:
    """Multiplications of A B: all of them, in whole registers of eight columns."""

    def write(at: Writing) -> Any:
        work = Matrices(at)
        A, B = (work.matrix(at.read(x, 144).reshape(12, 12)) for x in "AB")
        return work.results(work.product(A, B).entries)[0]

    kernel = lw.compile(Formula(write), lw.models.pendulum(1), cache=False)
    assert kernel.ops["mul"] == 12 * 12 * 16
    assert kernel.ops["add"] == 12 * 11 * 16


def test_entries_that_are_not_finite() -> None:
    """Large inputs are copied by functions; also what nothing reads is looked at."""

    def write(at: Writing) -> Any:
        work, q = Matrices(at), at.q
        P = work.symmetric(at.read("P", 900).reshape(30, 30))
        return work.results(work.product(P, P).entries)[0] + q[0]

    mech = lw.models.pendulum(1)
    kernel, rng = lw.compile(Formula(write), mech, cache=False), np.random.default_rng(0)
    P = rng.standard_normal((30, 30))
    right = (np.triu(P) + np.triu(P, 1).T) @ (np.triu(P) + np.triu(P, 1).T) + 0.5
    assert kernel.arguments == ("q", "P")
    assert np.allclose(kernel([0.5], P.ravel()), right.ravel(), rtol=1e-12, atol=1e-11)
    for i, j in ((0, 29), (17, 5), (29, 29)):
        P[i, j], kept = np.nan, P[i, j]
        with pytest.raises(lw.ModelError, match="P is not finite"):
            kernel([0.5], P.ravel())
        P[i, j] = kept
