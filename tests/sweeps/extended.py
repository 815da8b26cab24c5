"""Forward and inverse dynamics of trees of pins in extended precision: a plain reference.

The textbook recursions, one body after another, in any type of NumPy; 80-bit numbers have 19
digits, three more than those under test. Numbers of the mechanism are taken as exact.
"""

from __future__ import annotations

import numpy as np

import linkwise as lw

LONG = np.longdouble


class Pins:
    """A tree of pins in one state."""

    def __init__(self, mech: lw.Mechanism, q: np.ndarray, v: np.ndarray) -> None:
        n, bodies = mech.n_bodies, mech.bodies
        self.n, self.parent, self.v = n, [int(p) for p in mech.parent], v.astype(LONG)
        axis = np.array([b.hinge.axis for b in bodies], LONG)
        inboard, outboard = (
            [(np.array(x.rot, LONG), np.array(x.p, LONG)) for x in part]
            for part in ([b.inboard for b in bodies], [b.outboard for b in bodies])
        )
        c, s = np.cos(q.astype(LONG)), np.sin(q.astype(LONG))
        self.E, self.H = np.empty((n, 6, 6), LONG), np.empty((n, 6), LONG)
        for k in range(n):
            h = axis[k]
            turn = c[k] * np.eye(3) + (1 - c[k]) * np.outer(h, h) + s[k] * skew(h)
            (rot, p), (rot_out, p_out) = inboard[k], outboard[k]
            self.E[k] = shift(rot @ turn @ rot_out, rot @ turn @ p_out + p)
            self.H[k] = np.concatenate([h, np.zeros(3)]) @ shift(rot_out, p_out)
        self.M = np.asarray(mech.inertias.matrix).astype(LONG)
        self.N = np.array([np.ravel(b.drive.armature)[0] for b in bodies], LONG)
        self.V, self.a, self.b = (np.zeros((n, 6), LONG) for _ in range(3))
        up = np.concatenate([np.zeros(3), -np.asarray(mech.gravity)]).astype(LONG)
        for k, p in enumerate(self.parent):
            moved = self.H[k] * self.v[k]
            self.V[k] = moved + (self.E[k].T @ self.V[p] if p >= 0 else 0)
            cross = np.zeros((6, 6), LONG)
            cross[:3, :3] = cross[3:, 3:] = skew(self.V[k, :3])
            cross[3:, :3] = skew(self.V[k, 3:])
            self.a[k] = cross @ moved + (0 if p >= 0 else self.E[k].T @ up)
            self.b[k] = -cross.T @ (self.M[k] @ self.V[k])

    def inverse(self, vdot: np.ndarray) -> np.ndarray:
        """mass vdot + bias."""
        A = np.zeros((self.n, 6), LONG)
        for k, p in enumerate(self.parent):
            above = self.E[k].T @ A[p] if p >= 0 else 0
            A[k] = above + self.H[k] * vdot[k] + self.a[k]
        f = (self.M @ A[:, :, None])[:, :, 0] + self.b
        for k, p in reversed(list(enumerate(self.parent))):
            if p >= 0:
                f[p] += self.E[k] @ f[k]
        return (self.H * f).sum(axis=1) + self.N * vdot

    def forward(self, tau: np.ndarray) -> np.ndarray:
        """mass⁻¹ (tau - bias)."""
        n, P, z = self.n, self.M.copy(), self.b.copy()
        D, eps, G = np.zeros(n, LONG), np.zeros(n, LONG), np.zeros((n, 6), LONG)
        for k, p in reversed(list(enumerate(self.parent))):
            z[k] += P[k] @ self.a[k]
            seen = P[k] @ self.H[k]
            D[k] = self.H[k] @ seen + self.N[k]
            G[k], eps[k] = seen / D[k], tau[k] - self.H[k] @ z[k]
            if p >= 0:
                P[p] += self.E[k] @ (P[k] - np.outer(G[k], seen)) @ self.E[k].T
                z[p] += self.E[k] @ (z[k] + G[k] * eps[k])
        A, vdot = np.zeros((n, 6), LONG), np.zeros(n, LONG)
        for k, p in enumerate(self.parent):
            above = self.E[k].T @ A[p] if p >= 0 else np.zeros(6, LONG)
            vdot[k] = eps[k] / D[k] - G[k] @ above
            A[k] = above + self.H[k] * vdot[k] + self.a[k]
        return vdot


def skew(p: np.ndarray) -> np.ndarray:
    """The matrix of p ×."""
    x, y, z = p
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]], LONG)


def shift(rot: np.ndarray, p: np.ndarray) -> np.ndarray:
    """φ of a pose."""
    return np.block([[rot, skew(p) @ rot], [np.zeros((3, 3), LONG), rot]])
