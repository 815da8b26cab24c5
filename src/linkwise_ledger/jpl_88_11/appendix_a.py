"""JPL 88-11, Appendix A: identities A.1 to A.4, one entry for each equation.

Their letters are in the vocabulary, Φ = φ S, Ψ = ψ S, L = Δ_φ G, and so are most of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

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
from linkwise_ledger.entry import Check
from linkwise_ledger.jpl_88_11.links import body_axes
from linkwise_ledger.jpl_88_11.section_4 import check_of_filter, check_rigid
from linkwise_ledger.jpl_88_11.sweeps import riccati
from linkwise_ledger.recursion import paths
from linkwise_ledger.section import Section

Way: TypeAlias = list[tuple[int, int]]
"""Pairs (i, i + 1) on the way from link m to link k."""

Term: TypeAlias = Callable[[Case, int, int, int, int], Array]
"""A term of a sum over the way from m to k: of (case, k, m, i, i + 1)."""


# ------------------------------------------------------------- blocks, and sums along a way


def _way(case: Case, k: int, m: int) -> Way:
    """From m inward to k."""
    parts: Way = []
    while m != k:
        parts.append((m, case.parent(m)))
        m = case.parent(m)
    return parts


def _sum(term: Term) -> Callable[[Case, int, int], Array]:
    """Σ of terms over i = m ... k - 1."""

    def total(case: Case, k: int, m: int) -> Array:
        zero = np.zeros((6, 6))
        return sum((term(case, k, m, i, above) for i, above in _way(case, k, m)), zero)

    return total


def _everywhere(*sides: Callable[[Case, int, int], Array]) -> Check:
    """The check that all sides agree for all pairs of a link k and a link m beyond it."""

    def check(case: Case) -> float:
        errors = [0.0]
        for k, m in paths(case):
            if k != m:
                values = [side(case, k, m) for side in sides]
                errors += [apart(values[0], other) for other in values[1:]]
        return max(errors)

    return check


def _phi(case: Case, k: int, m: int) -> Array:
    return case.block(phi, k, m)


def _psi(case: Case, k: int, m: int) -> Array:
    return case.block(psi, k, m)


def _gained(case: Case, i: int) -> Array:
    """L(i) H(i)."""
    return case.block(L, i) @ case.block(H, i)


def _telescope(case: Case, k: int, m: int, i: int, above: int) -> Array:
    """Of (a.19): ψ(k,i+1) φ(i+1,m) - ψ(k,i) φ(i,m)."""
    ahead = _psi(case, k, above) @ _phi(case, above, m)
    return ahead - _psi(case, k, i) @ _phi(case, i, m)


def _opened(case: Case, k: int, m: int, i: int, above: int) -> Array:
    """ψ(k,i+1) {φ(i+1,m) - [φ(i+1,i) - L(i) H(i)] φ(i,m)}."""
    step = _phi(case, above, i) - _gained(case, i)
    return _psi(case, k, above) @ (_phi(case, above, m) - step @ _phi(case, i, m))


def _through_gain(case: Case, k: int, m: int, i: int, above: int) -> Array:
    """Of (a.21): ψ(k,i+1) L(i) H(i) φ(i,m)."""
    return _psi(case, k, above) @ _gained(case, i) @ _phi(case, i, m)


def _telescope_too(case: Case, k: int, m: int, i: int, above: int) -> Array:
    """Of (a.29): φ(k,i+1) ψ(i+1,m) - φ(k,i) ψ(i,m)."""
    ahead = _phi(case, k, above) @ _psi(case, above, m)
    return ahead - _phi(case, k, i) @ _psi(case, i, m)


def _opened_too(case: Case, k: int, m: int, i: int, above: int) -> Array:
    """φ(k,i+1) [ψ(i+1,i) - φ(i+1,i)] ψ(i,m)."""
    step = _psi(case, above, i) - _phi(case, above, i)
    return _phi(case, k, above) @ step @ _psi(case, i, m)


def _through_gain_too(case: Case, k: int, m: int, i: int, above: int) -> Array:
    """φ(k,i+1) L(i) H(i) ψ(i,m)."""
    return _phi(case, k, above) @ _gained(case, i) @ _psi(case, i, m)


def _difference(case: Case, k: int, m: int) -> Array:
    """φ(k,m) - ψ(k,m)."""
    return _phi(case, k, m) - _psi(case, k, m)


def _less(case: Case, k: int, m: int) -> Array:
    return -_difference(case, k, m)


def _less_through_gain(case: Case, k: int, m: int) -> Array:
    return -_sum(_through_gain_too)(case, k, m)


APPENDIX_A = Section()
APPENDIX_A.algebra("""(a.1)  hinge inertia
    printed  D = H P Hᵀ
    means    D = H P H* + N
""")
APPENDIX_A.algebra("""(a.2)  Kalman gain
    printed  G = P Hᵀ D⁻¹
    means    G = P H* D⁻¹
""")
APPENDIX_A.algebra("""(a.3)  φ without I
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
""")
APPENDIX_A.algebra("""(a.18)  difference of φ and ψ
    printed  φ - ψ = Ψ L H φ = ψ S L H φ
    holds    φ - ψ = Ψ L H φ = ψ S L H φ
""")
APPENDIX_A.unchecked("""(a.19)  a sum that telescopes
    printed  T(k,m) = Σ_{i=m..k-1} [ψ(k,i+1) φ(i+1,m) - ψ(k,i) φ(i,m)], k > m
    means    the same, i on the way from m to k
""")
APPENDIX_A("""(a.20)  its value
    holds    T(k,m) = ψ(k,k) φ(k,m) - ψ(k,m) φ(m,m) = φ(k,m) - ψ(k,m)
""")(_everywhere(_sum(_telescope), _difference))
APPENDIX_A("""(a.21)  its value by gains
    holds    T(k,m) = Σ ψ(k,i+1) {φ(i+1,m) - [φ(i+1,i) - L(i) H(i)] φ(i,m)} = Σ_{i=m..k-1} ψ(k,i+1)
             L(i) H(i) φ(i,m)
""")(_everywhere(_sum(_telescope), _sum(_opened), _sum(_through_gain)))
APPENDIX_A("""App. A, blocks of (a.18)  from (a.20) and (a.21)
    holds    φ(k,m) - ψ(k,m) = Σ_{i=m..k-1} ψ(k,i+1) L(i) H(i) φ(i,m)
""")(_everywhere(_difference, _sum(_through_gain)))
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
""")
APPENDIX_A.algebra("""(a.28)  difference of φ and ψ, other side
    printed  φ - ψ = Φ L H ψ = φ S L H ψ
    holds    φ - ψ = Φ L H ψ = φ S L H ψ
""")
APPENDIX_A.unchecked("""(a.29)  another sum that telescopes
    printed  T'(k,m) = Σ_{i=m..k-1} [φ(k,i+1) ψ(i+1,m) - φ(k,i) ψ(i,m)], k > m
    means    the same, i on the way from m to k
""")
APPENDIX_A("""(a.30)  its value
    holds    T'(k,m) = φ(k,k) ψ(k,m) - φ(k,m) ψ(m,m) = ψ(k,m) - φ(k,m)
""")(_everywhere(_sum(_telescope_too), _less))
APPENDIX_A("""(a.31)  its value by gains
    holds    T'(k,m) = Σ φ(k,i+1) [ψ(i+1,i) - φ(i+1,i)] ψ(i,m) = -Σ_{i=m..k-1} φ(k,i+1) L(i) H(i)
             ψ(i,m)
""")(_everywhere(_sum(_telescope_too), _sum(_opened_too), _less_through_gain))
APPENDIX_A("""App. A, blocks of (a.28)  from (a.30) and (a.31)
    holds    φ(k,m) - ψ(k,m) = Σ_{i=m..k-1} φ(k,i+1) L(i) H(i) ψ(i,m)
""")(_everywhere(_difference, _sum(_through_gain_too)))
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
