"""Triangles of joints, against all rows at once."""

import numpy as np
import pytest

from linkwise.identification.compressed import Triangles, settled


@pytest.mark.parametrize("samples", [6, 60])
def test_triangles_stand_for_all_rows(samples: int) -> None:
    """Few rows, rows that are not known, columns that are zero for a joint or of another size."""
    rng, rows, count = np.random.default_rng(0), 3, 7
    W = rng.standard_normal((samples, rows, count)) * 10.0 ** np.arange(-3, 4)
    W[:, 2, :4] = 0.0
    known = np.where(rng.random((samples, rows)) < 0.8, 1.0, 0.0)
    y, sigma = rng.standard_normal((samples, rows)), np.array([0.5, 2.0, 0.01])
    triangles = Triangles.of(W, y, known)
    flat = (known[..., None] * W).reshape(-1, count)
    assert np.allclose(triangles.scale, np.linalg.norm(flat, axis=0))
    weight = (known / sigma)[..., None]
    A, right = (weight * W).reshape(-1, count), (weight[..., 0] * y).ravel()
    plain = np.linalg.lstsq(A, right, rcond=None)[0]
    x, factor = triangles.solved(sigma)
    assert np.allclose(x / triangles.scale, plain, rtol=1e-9)
    inner = (A / triangles.scale).T @ (A / triangles.scale)
    assert np.allclose(factor.T @ factor, inner, rtol=1e-9, atol=1e-9 * inner.max())
    off = ((known * (y - W @ plain)) ** 2).sum(axis=0)
    assert np.allclose(triangles.squares(x), off, rtol=1e-8, atol=1e-10) and off.max() > 0.1


def test_weights_settle_where_they_are_those_of_the_residuals() -> None:
    rng = np.random.default_rng(1)
    W, sigma = rng.standard_normal((300, 2, 4)), np.array([0.1, 3.0])
    y = W @ np.array([1.0, -2.0, 0.5, 3.0]) + sigma * rng.standard_normal((300, 2))
    triangles = Triangles.of(W, y, np.ones((300, 2)))
    x, _, deviation = settled(triangles, lambda squares: np.sqrt(squares / 298.0), 50)
    assert np.allclose(np.sqrt(triangles.squares(x) / 298.0), deviation, rtol=1e-6)
    assert np.allclose(deviation, sigma, rtol=0.15)
    assert np.allclose(x / triangles.scale, [1.0, -2.0, 0.5, 3.0], atol=0.05)
