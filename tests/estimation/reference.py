"""Estimation by conditioning explicit Gaussians: no filter, no Riccati equation, no algebra.

The whole problem is one Gaussian vector (W, n) with covariance diag(M, N), and everything else is a
matrix applied to it. E[x | y] = C_xy C_yy⁻¹ y is all that is used of probability.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

import linkwise as lw


class Reference:
    """The random field of a mechanism as explicit matrices on (W, n)."""

    def __init__(self, mech: lw.Mechanism, q: np.ndarray, noise: np.ndarray | None = None):
        self.mech, n, nv = mech, mech.n_bodies, mech.nv
        parent = mech.parent.tolist()
        self.body = [slice(6 * k, 6 * k + 6) for k in range(n)]
        self.joint = [mech.v_slice(body.hinge_name) for body in mech.bodies]
        step, H, M = np.zeros((6 * n, 6 * n)), np.zeros((nv, 6 * n)), np.zeros((6 * n, 6 * n))
        for k, body in enumerate(mech.bodies):
            q_k = q[mech.q_slice(body.hinge_name)]
            H[self.joint[k], self.body[k]] = body.hinge.hinge_map(q_k) @ body.outboard.shift
            M[self.body[k], self.body[k]] = mech.inertias[k].matrix
            if parent[k] >= 0:
                step[self.body[parent[k]], self.body[k]] = body.pose(q_k).shift
        self.H, self.M, self.phi = H, M, np.linalg.inv(np.eye(6 * n) - step)
        self.N = np.diag(np.zeros(nv) if noise is None else noise)
        self.source = np.block([[M, np.zeros((6 * n, nv))], [np.zeros((nv, 6 * n)), self.N]])

        # Each vector of the problem as a matrix on (W, n).
        self.W = np.eye(6 * n, 6 * n + nv)
        self.X = self.phi @ self.W
        self.T = H @ self.X + np.eye(nv, 6 * n + nv, 6 * n)

    def outboard(self, k: int) -> list[int]:
        """Measurements strictly outboard of body k."""
        below, result = {k}, list[int]()
        for j, p in enumerate(self.mech.parent.tolist()):
            if p in below:
                below.add(j)
                result.extend(range(self.joint[j].start, self.joint[j].stop))
        return result

    def covariance(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """E[x y*] of x = A (W, n) and y = B (W, n)."""
        return A @ self.source @ B.T

    def given(self, A: np.ndarray, rows: list[int] | None = None) -> np.ndarray:
        """E[x | T], or given some rows of T only, as a matrix on (W, n)."""
        T = self.T if rows is None else self.T[rows]
        # Units of the joints differ: scaled so that each measurement has variance one.
        scale = 1.0 / np.sqrt(np.diag(self.covariance(T, T)))
        T = scale[:, None] * T
        return np.linalg.solve(self.covariance(T, T), self.covariance(T, A)).T @ T

    @cached_property
    def z(self) -> np.ndarray:
        """E[X(k) | measurements outboard of k]."""
        parts = [self.given(self.X[s], self.outboard(k)) for k, s in enumerate(self.body)]
        return np.concatenate(parts)

    @cached_property
    def z_plus(self) -> np.ndarray:
        """E[X(k) | measurements outboard of k and at k]."""
        at = [list(range(s.start, s.stop)) for s in self.joint]
        rows = [self.outboard(k) + at[k] for k in range(len(at))]
        pairs = zip(self.body, rows, strict=True)
        return np.concatenate([self.given(self.X[s], r) for s, r in pairs])

    @cached_property
    def eps(self) -> np.ndarray:
        """T(k) less its prediction from the measurements outboard of k."""
        parts = [self.given(self.T[s], self.outboard(k)) for k, s in enumerate(self.joint)]
        return self.T - np.concatenate([np.zeros((0, self.T.shape[1])), *parts])

    @cached_property
    def vectors(self) -> dict[str, np.ndarray]:
        """All vectors that have a covariance, as matrices on (W, n)."""
        f, W_hat = self.given(self.X), self.given(self.W)
        mass = self.covariance(self.T, self.T)
        vdot = np.linalg.solve(mass, self.T)
        D = self.covariance(self.eps, self.eps)
        result = {"W": self.W, "X": self.X, "T": self.T, "z": self.z, "X - z": self.X - self.z}
        result |= {"eps": self.eps, "nu": np.linalg.solve(D, self.eps)}
        result |= {"alpha": self.phi.T @ self.H.T @ vdot, "vdot": vdot, "f": f, "X - f": self.X - f}
        result |= {"f - z": f - self.z, "W_hat": W_hat, "W - W_hat": self.W - W_hat}
        return result

    def condition(self) -> float:
        """Of the covariance of T, with its units scaled away."""
        mass = self.covariance(self.T, self.T)
        size = np.sqrt(np.diag(mass))
        return float(np.linalg.cond(mass / np.outer(size, size))) if len(mass) else 1.0
