"""The inverse of a small matrix, kept as factors."""

import numpy as np
import pytest

from linkwise.sweeps.factored import factored


def matrices(n: int, condition: float = 10.0) -> tuple[np.ndarray, np.ndarray]:
    """A positive definite matrix of a given condition, and something to apply its inverse to."""
    rng = np.random.default_rng(n)
    turn = np.linalg.qr(rng.standard_normal((n, n)))[0]
    return turn @ np.diag(np.geomspace(1.0, condition, n)) @ turn.T, rng.standard_normal((n, 4))


@pytest.mark.parametrize("dtype", [float, object])
@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_products(n, dtype):
    A, x = matrices(n)
    result, x_ = factored(A.astype(dtype)), x.astype(dtype)
    np.testing.assert_allclose(A @ result.matrix.astype(float), np.eye(n), rtol=0, atol=1e-13)
    np.testing.assert_allclose((result @ x_).astype(float), np.linalg.solve(A, x), rtol=1e-12)
    np.testing.assert_allclose((x_.T @ result).astype(float), np.linalg.solve(A, x).T, rtol=1e-12)
    expected = x.T @ np.linalg.solve(A, x)
    np.testing.assert_allclose(result.congruence(x_).astype(float), expected, rtol=1e-11)
    np.testing.assert_allclose((2.0 * result).astype(float), 2.0 * np.linalg.inv(A), rtol=1e-11)


def test_a_difference_keeps_its_digits():
    """P - P H* D⁻¹ H P is zero where the hinge leaves everything free, whatever the condition."""
    P = matrices(6, 1e10)[0]
    by_factors = P - factored(P).congruence(P)
    by_inverse = P - P @ np.linalg.inv(P) @ P
    assert np.abs(by_factors).max() < 1e-14 * np.abs(P).max()
    assert np.abs(by_inverse).max() > 1e-9 * np.abs(P).max()


def test_locked_freedoms_are_as_if_they_were_not_there():
    A, x = matrices(4)
    kept = [0, 2]
    result = factored(A, np.array([1.0, 0.0, 1.0, 0.0])) @ x
    np.testing.assert_allclose(result[kept], np.linalg.solve(A[np.ix_(kept, kept)], x[kept]))
    assert not result[[1, 3]].any()


def test_a_matrix_that_is_zero_has_no_inverse():
    with pytest.raises(ZeroDivisionError):
        factored(np.zeros((2, 2)))
