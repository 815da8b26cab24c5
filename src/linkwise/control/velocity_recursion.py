"""The Riccati step where velocities are chosen instead of joint forces: equation (5) of `shooting`.

With k = m rows of D, n of δx, a step takes about

    k (n + m)                  E = √(R + ρ) D
    ½ k (n + m)²               Q = Q₀ + E* E, of which the upper half
    m³ / 6 + m² n + ½ m n²     L Δ L* = Q_yy, K_y = −L⁻* Δ⁻¹ L⁻¹ Q_yx, P = Q_xx + Q_xy K_y
    m² n                       K = D_x + D_y K_y, from E

fused multiplications and additions, which is less than with joint forces: there are no products
with P, and none with the inverse of the mass matrix before that.
"""

from __future__ import annotations

import numpy as np

from linkwise.codegen.stepping.stepping import Segment, Sketch, part
from linkwise.control.recursion import Recursion, run_of_rows
from linkwise.control.shooting import sum_products, symmetric
from linkwise.spatial.choice import root
from linkwise.sweeps.factored import factored
from linkwise.sweeps.sparse import times


class VelocityRecursion(Recursion):
    """The segments of such a step. The register "W" has D, then E."""

    def _couples(self, i: int) -> bool:
        del i  # there is no C
        return False

    @property
    def memory(self) -> tuple[tuple[str, int], ...]:
        """Registers and their sizes."""
        both = dict(super().memory)
        del both["S"], both["T"]
        more = {"K_y": self.m * self.n + self.side, "root": self.m, "unroot": self.m}
        return tuple((both | more).items())

    def _value(self) -> Segment:
        """√(R + ρ), and what Q and Q_z are without products of D."""
        n, m, w = self.n, self.m, self.wide
        s = Sketch("value")
        D = s.read("W", m * w).reshape(m, w)[:, : n + m]
        F, G, gap, l_z, l_zz, cost = self._expansion(s)
        P, ahead, (rho,) = self._upper(s), s.read("ahead", n), s.read("rho", 1)
        pulled = ahead - s.read("p", n)
        roots = [root(l_zz[n + i, n + i] + rho) for i in range(m)]
        s.write("root", roots)
        s.write("unroot", [1.0 / x for x in roots])
        both = np.concatenate([F, G], axis=1)
        q_z = times(both.T, ahead[:, None])[:, 0] + times(D.T, l_z[n:, None])[:, 0]
        q_z[:n] = q_z[:n] + l_z[:n]
        Q = np.full((w, w), 0.0, dtype=object)
        Q[: n + m, : n + m] = symmetric(both.T, times(P, both))
        Q[:n, :n] = Q[:n, :n] + l_zz[:n, :n]
        self._put_q(s, Q, q_z)
        s.write("known", self._known(gap, ahead, pulled, cost))
        return s.segment()

    def _spreads(self) -> list[Segment]:
        """E = √(R + ρ) D in the place of D."""
        w, s = self.wide, Sketch("scaled")
        row = s.read(part("W", 0, w), w)
        s.write(part("W", 0, w), list(s.read(part("root", 0), 1) * row))
        return [run_of_rows(s, [(i * w, i, i * w) for i in range(self.m)])]

    def _products(self) -> list[Segment]:
        """Q = Q₀ + E* E."""
        starts = range(0, self.n + self.m, self.side)
        return [self._product([(i, j) for i in starts for j in starts if j >= i], [("W", "W")])]

    def _gains(self) -> Segment:
        """The factors of Q_yy, k, p and the sums."""
        n, m, w = self.n, self.m, self.wide
        s = Sketch("gains")
        q_z, q_yy, q_xy = self._blocks(s)
        e_y = np.array([s.read(part("W", i * w + n, m), m) for i in range(m)], dtype=object)
        q_y, (rho,) = q_z[n:], s.read("rho", 1)
        inverse = factored(q_yy)
        y = -(inverse @ q_y[:, None])[:, 0]
        k = s.read("unroot", m) * sum_products(e_y, y)
        self._put_factors(s, inverse)
        s.write(part("gain", self.first + m * n, m), list(k))
        s.write("p", list(q_z[:n] + sum_products(q_xy, y)))
        gained = q_y @ y
        second = gained + rho * (k @ k)  # −k* Q_uu k
        self._put_sums(s, inverse, -gained, second)
        return s.segment()

    def _columns(self) -> list[Segment]:
        """K_y = −L⁻* Δ⁻¹ L⁻¹ Q_yx, and K = D_x + D_y K_y, two columns at a time."""
        n, m, w = self.n, self.m, self.wide
        count = 2 - n % 2
        s = Sketch("lifted")
        K_y = [s.read(part("K_y", i * n, count), count) for i in range(m)]
        unroot = s.read("unroot", m)
        for i in range(m):
            total = s.read(part("W", i * w, count), count)
            E = s.read(part("W", i * w + n, m), m)
            for j in range(m):
                total = total + E[j] * K_y[j]
            s.write(part("gain", self.first + i * n, count), list(unroot[i] * total))
        rows = [(*[j] * m, 0, *[j, 0] * m, *[j] * m) for j in range(0, n, count)]
        return [self._solved("K_y", 0), run_of_rows(s, rows)]

    def _remainder(self) -> Segment:
        """P = Q_xx + Q_xy K_y."""
        return self._with_gains("K_y", 0)
