"""Document 001, Appendix A: identities A.1 to A.4, one entry for each equation.

Their letters are in the vocabulary, Φ = φ S, Ψ = ψ S, L = Δ_φ G, and so are most of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np

from linkwise.algebra.symbols import (
    Delta_phi,
    Delta_psi,
    G,
    H,
    L,
    Phi,
    Psi,
    S,
    phi,
    psi,
)
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Check, Entry, definition, holds
from linkwise_ledger.jpl_88_11.links import body_axes
from linkwise_ledger.jpl_88_11.section_4 import check_of_filter, check_rigid
from linkwise_ledger.jpl_88_11.sweeps import riccati
from linkwise_ledger.literal import each, rule_named
from linkwise_ledger.recursion import paths

Way: TypeAlias = list[tuple[int, int]]
"""Pairs (i, i + 1) on the way from link m to link k."""

Term: TypeAlias = Callable[[Case, int, int, int, int], Array]
"""A term of a sum over the way from m to k: of (case, k, m, i, i + 1)."""


def _group(group: str, rows: Iterable[tuple[str, str, str]]) -> tuple[Entry, ...]:
    """Equations that are in the table of rules under their numbers."""
    return tuple(
        holds(f"(a.{n})", f"{group}: {title}", printed, "the same", rule_named(f"a.{n}"))
        for n, title, printed in rows
    )


# ------------------------------------------------------------- blocks, and sums along a way


def _steps(case: Case) -> float:
    """Δ_φ has the steps φ(k+1, k), that of the base to the ground included."""
    found = [case.block(Delta_phi, k) for k in case.outward]
    return apart(found, [case.dense.step[k].shift for k in case.outward])


def _articulated_steps(case: Case) -> float:
    at = riccati(body_axes(case))
    return apart(
        [case.block(Delta_psi, k) for k in case.outward], [at.psi[k] for k in case.outward]
    )


def _gain(case: Case) -> float:
    """L(k) of (4.6) is φ(k+1, k) G(k)."""
    at = riccati(body_axes(case))
    return max(apart(at.L[k], case.block(Delta_phi @ G, k)) for k in case.outward)


def _way(case: Case, k: int, m: int) -> Way:
    """From m inward to k."""
    found: Way = []
    while m != k:
        found.append((m, case.parent(m)))
        m = case.parent(m)
    return found


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


DEFINITIONS = (
    definition("(a.1)", "hinge inertia", "D = H P Hᵀ", "D", rule_named("D = H P H* + N")),
    definition("(a.2)", "Kalman gain", "G = P Hᵀ D⁻¹", "G", rule_named("G = P H* D⁻¹")),
    definition("(a.3)", "φ without I", "φ̃ = φ - I", "φ̃", rule_named("φ̃ is φ without I")),
    definition(
        "(a.4)",
        "steps",
        "Δ_φ = diag[φ(2,1), ..., φ(N+1,N)]",
        "Δ_φ, from each body to the inboard side of its hinge; E_φ = S Δ_φ",
        _steps,
    ),
    definition(
        "(a.5)",
        "steps of the filter",
        "Δ_ψ = diag[ψ(2,1), ..., ψ(N+1,N)]",
        "Δ_ψ = Δ_φ Π̄; E_ψ = S Δ_ψ",
        _articulated_steps,
    ),
)

A_1 = (
    holds("(a.6)", "Identities A.1: Φ from φ", "Φ = φ S", "the same", check_rigid),
    holds("(a.7)", "Identities A.1: Ψ from ψ", "Ψ = ψ S", "the same", check_of_filter),
    *_group(
        "Identities A.1",
        (
            ("8", "ψ̃ from Ψ", "Ψ Δ_ψ = ψ̃"),
            ("9", "φ̃ from Φ", "Φ Δ_φ = φ̃"),
            ("10", "ψ is a resolvent", "ψ⁻¹ = I - S Δ_ψ"),
            ("11", "φ is a resolvent", "φ⁻¹ = I - S Δ_φ"),
        ),
    ),
    holds("(a.12)", "Identities A.1: gain of the filter", "L = Δ_φ G", "the same", _gain),
    *_group("Identities A.1", (("13", "gains propagated", "φ̃ G = Φ L"),)),
)

A_2 = (
    *_group(
        "Identities A.2",
        (
            ("14", "φ from ψ", "φ = ψ (I + S L H φ)"),
            ("15", "ψ from φ", "ψ = (I - Ψ L H) φ"),
            ("16", "Φ from Ψ", "Φ = Ψ (I + L H Φ)"),
            ("17", "Ψ from Φ", "Ψ = (I - Ψ L H) Φ"),
        ),
    ),
    holds(
        "(a.18)",
        "difference of φ and ψ",
        "φ - ψ = Ψ L H φ = ψ S L H φ",
        "φ - ψ = ψ K H φ",
        each((phi - psi, Psi @ L @ H @ phi), (phi - psi, psi @ S @ L @ H @ phi)),
    ),
    definition(
        "(a.19)",
        "a sum that telescopes",
        "T(k,m) = Σ_{i=m..k-1} [ψ(k,i+1) φ(i+1,m) - ψ(k,i) φ(i,m)], k > m",
        "the same, i on the way from m to k",
    ),
    holds(
        "(a.20)",
        "its value",
        "T(k,m) = ψ(k,k) φ(k,m) - ψ(k,m) φ(m,m) = φ(k,m) - ψ(k,m)",
        "the same",
        _everywhere(_sum(_telescope), _difference),
    ),
    holds(
        "(a.21)",
        "its value by gains",
        "T(k,m) = Σ ψ(k,i+1) {φ(i+1,m) - [φ(i+1,i) - L(i) H(i)] φ(i,m)} "
        "= Σ_{i=m..k-1} ψ(k,i+1) L(i) H(i) φ(i,m)",
        "the same",
        _everywhere(_sum(_telescope), _sum(_opened), _sum(_through_gain)),
    ),
    holds(
        "App. A, blocks of (a.18)",
        "from (a.20) and (a.21)",
        "φ(k,m) - ψ(k,m) = Σ_{i=m..k-1} ψ(k,i+1) L(i) H(i) φ(i,m)",
        "the same",
        _everywhere(_difference, _sum(_through_gain)),
    ),
)

A_3 = (
    *_group(
        "Identities A.3",
        (
            ("22", "φ from ψ, other side", "φ = (I + Φ L H) ψ"),
            ("23", "ψ from φ, other side", "ψ = φ (I - S L H ψ)"),
            ("24", "Φ from Ψ, other side", "Φ = (I + Φ L H) Ψ"),
            ("25", "Ψ from Φ, other side", "Ψ = Φ (I - L H Ψ)"),
            ("26", "gains between φ and ψ", "Φ L H ψ = Ψ L H φ"),
            ("27", "gains between Φ and Ψ", "Φ L H Ψ = Ψ L H Φ"),
        ),
    ),
    holds(
        "(a.28)",
        "difference of φ and ψ, other side",
        "φ - ψ = Φ L H ψ = φ S L H ψ",
        "φ - ψ = φ K H ψ",
        each((phi - psi, Phi @ L @ H @ psi), (phi - psi, phi @ S @ L @ H @ psi)),
    ),
    definition(
        "(a.29)",
        "another sum that telescopes",
        "T'(k,m) = Σ_{i=m..k-1} [φ(k,i+1) ψ(i+1,m) - φ(k,i) ψ(i,m)], k > m",
        "the same, i on the way from m to k",
    ),
    holds(
        "(a.30)",
        "its value",
        "T'(k,m) = φ(k,k) ψ(k,m) - φ(k,m) ψ(m,m) = ψ(k,m) - φ(k,m)",
        "the same",
        _everywhere(_sum(_telescope_too), _less),
    ),
    holds(
        "(a.31)",
        "its value by gains",
        "T'(k,m) = Σ φ(k,i+1) [ψ(i+1,i) - φ(i+1,i)] ψ(i,m) "
        "= -Σ_{i=m..k-1} φ(k,i+1) L(i) H(i) ψ(i,m)",
        "the same",
        _everywhere(_sum(_telescope_too), _sum(_opened_too), _less_through_gain),
    ),
    holds(
        "App. A, blocks of (a.28)",
        "from (a.30) and (a.31)",
        "φ(k,m) - ψ(k,m) = Σ_{i=m..k-1} φ(k,i+1) L(i) H(i) ψ(i,m)",
        "the same",
        _everywhere(_difference, _sum(_through_gain_too)),
    ),
)

A_4 = _group(
    "Identities A.4",
    (
        ("32", "coloring of H ψ", "H φ = (I + H Φ L) H ψ"),
        ("33", "coloring of H Ψ", "H Φ = (I + H Φ L) H Ψ"),
        ("34", "H Ψ from H Φ", "H Ψ = H Φ (I - L H Ψ)"),
        ("35", "whitening of H φ", "H ψ = (I - H Ψ L) H φ"),
        ("36", "whitening of H Φ", "H Ψ = (I - H Ψ L) H Φ"),
        ("37", "H Φ from H Ψ", "H Φ = H Ψ (I + L H Φ)"),
        ("38", "gains between H Φ and H Ψ", "H Φ L H Ψ = H Ψ L H Φ"),
        ("39", "Φ L from Ψ L", "Φ L = Ψ L (I + H Φ L)"),
        ("40", "Ψ L from Φ L", "Ψ L = (I - Ψ L H) Φ L"),
        ("41", "Ψ L from Φ L, other side", "Ψ L = Φ L (I - H Ψ L)"),
        ("42", "Φ L from Ψ L, other side", "Φ L = (I + Φ L H) Ψ L"),
        ("43", "gains between Φ L and Ψ L", "Ψ L H Φ L = Φ L H Ψ L"),
    ),
)

APPENDIX_A: tuple[Entry, ...] = (*DEFINITIONS, *A_1, *A_2, *A_3, *A_4)
