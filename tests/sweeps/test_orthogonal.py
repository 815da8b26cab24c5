"""Least squares by orthogonal columns, against NumPy's."""

import numpy as np
import pytest

from linkwise.codegen.scalar.graph import Graph, Scalar
from linkwise.sweeps.factored import orthogonal


@pytest.mark.parametrize("seed", range(5))
def test_it_solves_least_squares(seed: int):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    A, right = rng.standard_normal((n + int(rng.integers(0, 4)), n)), rng.standard_normal
    expected = right((n, 3))
    doubled = np.concatenate([A, 2.0 * A])  # rows that say the same twice
    for matrix in (A, doubled):
        np.testing.assert_allclose(
            orthogonal(matrix).solve(matrix @ expected), expected, atol=1e-11
        )
    b = right((len(A), 2))
    np.testing.assert_allclose(
        orthogonal(A).solve(b), np.linalg.lstsq(A, b, rcond=None)[0], atol=1e-10
    )


def test_errors_grow_with_the_condition_and_not_with_its_square():
    """Columns 1e-6 of an angle apart: by normal equations four digits would be left."""
    A = np.array([[1.0, 1.0, 1.0], [1e-6, 0.0, 0.0], [0.0, 1e-6, 0.0], [0.0, 0.0, 1e-6]])
    x = np.array([[1.0], [-2.0], [3.0]])
    np.testing.assert_allclose(orthogonal(A).solve(A @ x), x, atol=1e-8)
    normal = np.linalg.solve(A.T @ A, A.T @ (A @ x))
    assert np.abs(normal - x).max() > 1e-6


def test_zero_columns_are_refused_and_structure_is_kept():
    with pytest.raises(ZeroDivisionError):
        orthogonal(np.array([[1.0, 0.0], [2.0, 0.0]]))
    graph = Graph()
    A = np.full((4, 2), 0.0, dtype=object)  # two blocks that do not meet
    for i, j in ((0, 0), (1, 0), (2, 1), (3, 1)):
        A[i, j] = Scalar(graph, graph.input(f"a[{i}]"))
    result = orthogonal(A)
    between = result.upper[0, 1]
    value = graph.value[between.node] if isinstance(between, Scalar) else between
    assert value == 0.0
