"""JPL 88-11, Appendix A: identities A.1 to A.4, one entry for each equation.

Their letters are in the vocabulary, Φ = φ S, Ψ = ψ S, L = Δ_φ G, and so are most of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np

from linkwise.algebra.symbols import (
    Delta_phi,
    Delta_psi,
    G,
    H,
    L,
    phi,
    psi,
)
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.jpl_88_11.links import body_axes
from linkwise_ledger.jpl_88_11.section_4 import check_of_filter, check_rigid
from linkwise_ledger.jpl_88_11.sweeps import riccati
from linkwise_ledger.recursion import paths
from linkwise_ledger.section import Section


class Way(NamedTuple):
    """The way from a link m inward to a link k."""

    case: Case
    k: int
    m: int

    def phi(self, i: int, j: int) -> Array:
        """φ(i,j)."""
        return self.case.block(phi, i, j)

    def psi(self, i: int, j: int) -> Array:
        """ψ(i,j)."""
        return self.case.block(psi, i, j)

    def gained(self, i: int) -> Array:
        """L(i) H(i)."""
        return self.case.block(L, i) @ self.case.block(H, i)

    def total(self, term: Callable[[int, int], Array]) -> Array:
        """Σ of terms of i and i + 1 over i = m ... k - 1."""
        i, total = self.m, np.zeros((6, 6))
        while i != self.k:
            above = self.case.parent(i)
            i, total = above, total + term(i, above)
        return total

    def telescope(self, first: Block, last: Block) -> Array:
        """Σ first(k,i+1) last(i+1,m) - first(k,i) last(i,m)."""
        k, m = self.k, self.m
        return self.total(lambda i, p: first(k, p) @ last(p, m) - first(k, i) @ last(i, m))

    def through_gain(self, first: Block, last: Block) -> Array:
        """Σ first(k,i+1) L(i) H(i) last(i,m)."""
        return self.total(lambda i, p: first(self.k, p) @ self.gained(i) @ last(i, self.m))

    @property
    def difference(self) -> Array:
        """φ(k,m) - ψ(k,m)."""
        return self.phi(self.k, self.m) - self.psi(self.k, self.m)


Block: TypeAlias = Callable[[int, int], Array]


@cache
def ways(case: Case) -> tuple[Way, ...]:
    """For all pairs of a link k and a link m beyond it."""
    return tuple(Way(case, k, m) for k, m in paths(case) if k != m)


APPENDIX_A = Section()
APPENDIX_A.algebra("""(a.1)  hinge inertia
    printed  D = H P Hᵀ
    means    D = H P H* + N
(a.2)  Kalman gain
    printed  G = P Hᵀ D⁻¹
    means    G = P H* D⁻¹
(a.3)  φ without I
    printed  φ̃ = φ - I
    means    φ̃ = φ - I
""")


@APPENDIX_A("""(a.4)  steps
    printed  Δ_φ = diag[φ(2,1), ..., φ(N+1,N)]
    means    Δ_φ, from each body to the inboard side of its hinge; E_φ = S Δ_φ
""")
def _(case: Case) -> float:
    values = [case.block(Delta_phi, k) for k in case.outward]
    return apart(values, [case.dense.step[k].shift for k in case.outward])


@APPENDIX_A("""(a.5)  steps of the filter
    printed  Δ_ψ = diag[ψ(2,1), ..., ψ(N+1,N)]
    means    Δ_ψ = Δ_φ Π̄; E_ψ = S Δ_ψ
""")
def _(case: Case) -> float:
    at = riccati(body_axes(case))
    return apart(
        [case.block(Delta_psi, k) for k in case.outward], [at.psi[k] for k in case.outward]
    )


APPENDIX_A("""(a.6)  Identities A.1: Φ from φ
    holds    Φ = φ S
""")(check_rigid)
APPENDIX_A("""(a.7)  Identities A.1: Ψ from ψ
    holds    Ψ = ψ S
""")(check_of_filter)
APPENDIX_A.algebra("""(a.8)  Identities A.1: ψ̃ from Ψ
    holds    Ψ Δ_ψ = ψ̃
(a.9)  Identities A.1: φ̃ from Φ
    holds    Φ Δ_φ = φ̃
(a.10)  Identities A.1: ψ is a resolvent
    holds    ψ⁻¹ = I - S Δ_ψ
(a.11)  Identities A.1: φ is a resolvent
    holds    φ⁻¹ = I - S Δ_φ
""")


@APPENDIX_A("""(a.12)  Identities A.1: gain of the filter
    holds    L = Δ_φ G
""")
def _(case: Case) -> float:
    at = riccati(body_axes(case))
    return max(apart(at.L[k], case.block(Delta_phi @ G, k)) for k in case.outward)


APPENDIX_A.algebra("""(a.13)  Identities A.1: gains propagated
    holds    φ̃ G = Φ L
(a.14)  Identities A.2: φ from ψ
    holds    φ = ψ (I + S L H φ)
(a.15)  Identities A.2: ψ from φ
    holds    ψ = (I - Ψ L H) φ
(a.16)  Identities A.2: Φ from Ψ
    holds    Φ = Ψ (I + L H Φ)
(a.17)  Identities A.2: Ψ from Φ
    holds    Ψ = (I - Ψ L H) Φ
(a.18)  difference of φ and ψ
    holds    φ - ψ = Ψ L H φ = ψ S L H φ
""")
APPENDIX_A.unchecked("""(a.19)  a sum that telescopes
    printed  T(k,m) = Σ_{i=m..k-1} [ψ(k,i+1) φ(i+1,m) - ψ(k,i) φ(i,m)], k > m
    means    the same, i on the way from m to k
""")
APPENDIX_A.on_each(ways)("""(a.20)  its value
    holds    T(k,m) = ψ(k,k) φ(k,m) - ψ(k,m) φ(m,m) = φ(k,m) - ψ(k,m)
""")(lambda w: (w.telescope(w.psi, w.phi), w.difference))


@APPENDIX_A.on_each(ways)("""(a.21)  its value by gains
    holds    T(k,m) = Σ ψ(k,i+1) {φ(i+1,m) - [φ(i+1,i) - L(i) H(i)] φ(i,m)} = Σ_{i=m..k-1} ψ(k,i+1)
             L(i) H(i) φ(i,m)
""")
def _(w: Way) -> Errors:
    def opened(i: int, p: int) -> Array:
        step = w.phi(p, i) - w.gained(i)
        return w.psi(w.k, p) @ (w.phi(p, w.m) - step @ w.phi(i, w.m))

    yield w.telescope(w.psi, w.phi), w.total(opened)
    yield w.telescope(w.psi, w.phi), w.through_gain(w.psi, w.phi)


APPENDIX_A.on_each(ways)("""App. A, blocks of (a.18)  from (a.20) and (a.21)
    holds    φ(k,m) - ψ(k,m) = Σ_{i=m..k-1} ψ(k,i+1) L(i) H(i) φ(i,m)
""")(lambda w: (w.difference, w.through_gain(w.psi, w.phi)))
APPENDIX_A.algebra("""(a.22)  Identities A.3: φ from ψ, other side
    holds    φ = (I + Φ L H) ψ
(a.23)  Identities A.3: ψ from φ, other side
    holds    ψ = φ (I - S L H ψ)
(a.24)  Identities A.3: Φ from Ψ, other side
    holds    Φ = (I + Φ L H) Ψ
(a.25)  Identities A.3: Ψ from Φ, other side
    holds    Ψ = Φ (I - L H Ψ)
(a.26)  Identities A.3: gains between φ and ψ
    holds    Φ L H ψ = Ψ L H φ
(a.27)  Identities A.3: gains between Φ and Ψ
    holds    Φ L H Ψ = Ψ L H Φ
(a.28)  difference of φ and ψ, other side
    holds    φ - ψ = Φ L H ψ = φ S L H ψ
""")
APPENDIX_A.unchecked("""(a.29)  another sum that telescopes
    printed  T'(k,m) = Σ_{i=m..k-1} [φ(k,i+1) ψ(i+1,m) - φ(k,i) ψ(i,m)], k > m
    means    the same, i on the way from m to k
""")
APPENDIX_A.on_each(ways)("""(a.30)  its value
    holds    T'(k,m) = φ(k,k) ψ(k,m) - φ(k,m) ψ(m,m) = ψ(k,m) - φ(k,m)
""")(lambda w: (w.telescope(w.phi, w.psi), -w.difference))


@APPENDIX_A.on_each(ways)("""(a.31)  its value by gains
    holds    T'(k,m) = Σ φ(k,i+1) [ψ(i+1,i) - φ(i+1,i)] ψ(i,m) = -Σ_{i=m..k-1} φ(k,i+1) L(i) H(i)
             ψ(i,m)
""")
def _(w: Way) -> Errors:
    def opened(i: int, p: int) -> Array:
        return w.phi(w.k, p) @ (w.psi(p, i) - w.phi(p, i)) @ w.psi(i, w.m)

    yield w.telescope(w.phi, w.psi), w.total(opened)
    yield w.telescope(w.phi, w.psi), -w.through_gain(w.phi, w.psi)


APPENDIX_A.on_each(ways)("""App. A, blocks of (a.28)  from (a.30) and (a.31)
    holds    φ(k,m) - ψ(k,m) = Σ_{i=m..k-1} φ(k,i+1) L(i) H(i) ψ(i,m)
""")(lambda w: (w.difference, w.through_gain(w.phi, w.psi)))
APPENDIX_A.algebra("""(a.32)  Identities A.4: coloring of H ψ
    holds    H φ = (I + H Φ L) H ψ
(a.33)  Identities A.4: coloring of H Ψ
    holds    H Φ = (I + H Φ L) H Ψ
(a.34)  Identities A.4: H Ψ from H Φ
    holds    H Ψ = H Φ (I - L H Ψ)
(a.35)  Identities A.4: whitening of H φ
    holds    H ψ = (I - H Ψ L) H φ
(a.36)  Identities A.4: whitening of H Φ
    holds    H Ψ = (I - H Ψ L) H Φ
(a.37)  Identities A.4: H Φ from H Ψ
    holds    H Φ = H Ψ (I + L H Φ)
(a.38)  Identities A.4: gains between H Φ and H Ψ
    holds    H Φ L H Ψ = H Ψ L H Φ
(a.39)  Identities A.4: Φ L from Ψ L
    holds    Φ L = Ψ L (I + H Φ L)
(a.40)  Identities A.4: Ψ L from Φ L
    holds    Ψ L = (I - Ψ L H) Φ L
(a.41)  Identities A.4: Ψ L from Φ L, other side
    holds    Ψ L = Φ L (I - H Ψ L)
(a.42)  Identities A.4: Φ L from Ψ L, other side
    holds    Φ L = (I + Φ L H) Ψ L
(a.43)  Identities A.4: gains between Φ L and Ψ L
    holds    Ψ L H Φ L = Φ L H Ψ L
""")
