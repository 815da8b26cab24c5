"""The course, scatter and gather recursions, and other numbers for the bodies."""

from __future__ import annotations

from functools import cache

import numpy as np

from linkwise.algebra.expr import Expr
from linkwise.algebra.space import BODY
from linkwise.algebra.symbols import E_phi, H, V, phi, phi_tilde, v
from linkwise.dynamics.quantity import x_body as x
from linkwise.dynamics.renumbering import Renumbering, renumbering
from linkwise.models import chain
from linkwise.pipeline import compile
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.recursion import drawn, inward, outward, paths, split, stacked
from linkwise_ledger.section import Section, same
from linkwise_ledger.soa_course.operator import both, tips_first
from linkwise_ledger.soa_course.velocity import (
    body,
    check_recursion,
    check_split,
    one_by_one,
    turned,
    worst,
)

# ------------------------------------------------------------------------------------- checks


def _given(case: Case) -> list[Array]:
    return split(case, drawn(case, BODY), BODY)


def _product(case: Case, operator: Expr) -> Array:
    return case.matrix(operator) @ drawn(case, BODY)


def _check_strict_by_step(case: Case, *, scatter: bool) -> float:
    """ȳ is one step of y = φ* x, or of y = φ x."""
    y = split(case, _product(case, phi.T if scatter else phi), BODY)
    known, step = dict(enumerate(y)), outward if scatter else inward
    blocks_at = {k: step(case, E_phi, k, known) for k in case.outward}
    complete = (E_phi.T @ phi.T, phi_tilde.T) if scatter else (E_phi @ phi, phi_tilde)
    errors = [apart(stacked(case, blocks_at), _product(case, operator)) for operator in complete]
    return max(errors)


def _sums(case: Case, *, scatter: bool) -> dict[int, Array]:
    """y(k) as the sum over all bodies on the way to the base, or over k and what hangs on it."""
    given, y = _given(case), {k: np.zeros(6) for k in case.outward}
    for j, k in paths(case):  # k hangs on j, or is it
        if scatter:
            y[k] = y[k] + case.block(phi, j, k).T @ given[j]
        else:
            y[j] = y[j] + case.block(phi, j, k) @ given[k]
    return y


def _check_sums(case: Case, *, scatter: bool) -> float:
    """The sum, the sum with the last step taken out, and the recursion."""
    y, given = _sums(case, scatter=scatter), _given(case)
    step = outward if scatter else inward
    parted = {k: step(case, E_phi, k, y) + given[k] for k in case.outward}
    complete = _product(case, phi.T if scatter else phi)
    return max(apart(stacked(case, y), complete), apart(stacked(case, parted), complete))


@cache
def _operations(n: int) -> int:
    return compile(phi.T @ x, chain(n), cache=False).ops.total()


def _mixed(case: Case) -> Renumbering:
    """Neither the tip first nor the base first."""
    first, second, *rest = (b.name for b in case.mech.bodies)
    return renumbering(case.mech, [second, first, *rest])


def _check_reversed_resolvent(case: Case) -> float:
    """φ is upper triangular with the base first, lower with the tips first."""
    computed = case.matrix(phi)
    triangular = np.array_equal(np.triu(computed), computed)
    other = tips_first(case, computed)
    return 0.0 if triangular and np.array_equal(np.tril(other), other) else 1.0


# ------------------------------------------------------------------------------------ entries

_LOOP = "V(n+1) = 0; for k = n … 1: V(k) = φ*(k+1,k) V(k+1) + H*(k) β(k)"

SWEEPS = Section()


@SWEEPS("""Base-to-tips scatter recursion  y = φ* x for any x
    printed  y = φ* x:  y(n+1) = 0; for k = n … 1: y(k) = φ*(k+1,k) y(k+1) + x(k)
    holds    for k = base … tips: y(k) = φ*(p,k) y(p) + x(k)
""")
def _check_scatter(case: Case) -> float:
    """y(k) = φ*(k+1, k) y(k+1) + x(k), against the product with the matrix."""
    given, y = _given(case), dict[int, Array]()
    for k in case.outward:
        y[k] = outward(case, E_phi, k, y) + given[k]
    return apart(stacked(case, y), _product(case, phi.T))


SWEEPS("""(3.37, 3.38, 3.46)  why: a sum with its last step taken out
    printed  y(k) = Σ_j=n^k φ*(j,k) x(j) = φ*(k+1,k) Σ_j=n^(k+1) φ*(j,k+1) x(j) + x(k) = φ*(k+1,k)
             y(k+1) + x(k)
    holds    the sum over the bodies from the base to k
""")(lambda case: _check_sums(case, scatter=True))
SWEEPS("""Scatter recursion example  velocities are a scatter
    printed  y = V, x = H* θ̇: V = φ* H* θ̇,  V(n+1) = 0; for k = n … 1: V(k) = φ*(k+1,k) V(k+1) +
             H*(k) β(k)
    holds    V = φ* x, x = H* v
    note     θ̇ means β. The slide is shown twice.
""")(both(check_recursion, _check_scatter))


@SWEEPS("""Computational Implications  cost of φ* x
    printed  cost of φ* x: O(N), linear in n
    holds    the number of scalar operations of the compiled φ* x grows by the same for each body
""")
def _(case: Case) -> float:
    low, mid, high = (_operations(n) for n in (8, 12, 16))
    return 0.0 if high - mid == mid - low > 0 else 1.0


@SWEEPS("""Kane's partial velocities  what the elements of φ* H* are
    printed  V = φ* H* θ̇; elements of φ* H*: Kane's partial velocities
    holds    column i of φ* H* is V while hinge velocity i is one and the others zero
""")
def _(case: Case) -> float:
    """Columns of φ* H* are velocities while one hinge moves at unit speed, measured."""
    columns, pairs = case.matrix(phi.T @ H.T), list[tuple[Array, Array]]()
    for i, at in enumerate(one_by_one(case)):
        ours = split(case, columns[:, i], BODY)
        for k in case.outward:
            name = body(case, k)
            pairs.append((turned(at.pose[name], ours[k]), at.velocity[name]))
    return worst(pairs)


@SWEEPS("""Tips-to-base gather recursion  y = φ x for any x
    printed  y = φ x:  y(0) = 0; for k = 1 … n: y(k) = φ(k,k-1) y(k-1) + x(k)
    holds    for k = tips … base: y(k) = Σ_c φ(k,c) y(c) + x(k)
    note     On a tree the sum goes over the children.
""")
def _check_gather(case: Case) -> float:
    given, y = _given(case), dict[int, Array]()
    for k in case.inward:
        y[k] = inward(case, E_phi, k, y) + given[k]
    return apart(stacked(case, y), _product(case, phi))


SWEEPS("""(3.37, 3.38, 3.44)  why: a sum with its last step taken out
    printed  y(k) = Σ_j=1^k φ(k,j) x(j) = φ(k,k-1) Σ_j=1^(k-1) φ(k-1,j) x(j) + x(k) = φ(k,k-1)
             y(k-1) + x(k)
    holds    the sum over all bodies that hang on k
""")(lambda case: _check_sums(case, scatter=False))


@SWEEPS("""O(N) scatter recursion for φ̃* x  ȳ = φ̃* x
    printed  ȳ ≜ φ̃* x:  ȳ(k) = φ*(k+1,k) [ȳ(k+1) + x(k+1)]
    holds    ȳ(k) = φ*(p,k) [ȳ(p) + x(p)]
""")
def _(case: Case) -> float:
    given, y = _given(case), dict[int, Array]()
    for k in case.outward:
        p = case.parent(k)
        y[k] = np.zeros(6) if p < 0 else outward(case, E_phi, k, {p: y[p] + given[p]})
    return apart(stacked(case, y), _product(case, phi_tilde.T))


SWEEPS("""O(N) scatter recursion for φ̃* x: example  V⁺ is one
    printed  V⁺ = φ̃* H* θ̇
    holds    V⁺ = φ̃* x, x = H* v
""")(both(check_split, same(E_phi.T @ V, phi_tilde.T @ H.T @ v)))
SWEEPS("""O(N) scatter recursion for φ̃* x: derivation  one step of y
    printed  ȳ ≜ φ̃* x = E_φ* y where y = φ* x; thus ȳ(k) = φ*(k+1,k) y(k+1)
    holds    ȳ(k) = φ*(p,k) y(p)
""")(lambda case: _check_strict_by_step(case, scatter=True))


@SWEEPS("""O(N) gather recursion for φ̃ x  ȳ = φ̃ x
    printed  ȳ ≜ φ̃ x:  ȳ(k) = φ(k,k-1) [ȳ(k-1) + x(k-1)]
    holds    ȳ(k) = Σ_c φ(k,c) [ȳ(c) + x(c)]
""")
def _(case: Case) -> float:
    given, y = _given(case), dict[int, Array]()
    for k in case.inward:
        y[k] = inward(case, E_phi, k, {c: y[c] + given[c] for c in case.children(k)})
    return apart(stacked(case, y), _product(case, phi_tilde))


SWEEPS("""O(N) gather recursion for φ̃ x: derivation  one step of y
    printed  ȳ ≜ φ̃ x = E_φ y where y = φ x; thus ȳ(k) = φ(k,k-1) y(k-1)
    holds    ȳ(k) = Σ_c φ(k,c) y(c)
""")(lambda case: _check_strict_by_step(case, scatter=False))
SWEEPS("""Reversed body indices  numbers from the base
    printed  1 is the base; parent < child
    means    our own order of the bodies
""")(lambda case: 0.0 if all(case.parent(k) < k for k in case.outward) else 1.0)


@SWEEPS.chains("""Reversed body indices impact on E_φ  E_φ with the base as 1
    printed  E_φR: φ(k,k+1), …, φ(n-2,n-1), φ(n-1,n) above the diagonal
    instead  E_φR: φ(1,2), …, φ(n-2,n-1), φ(n-1,n) above the diagonal
    note     The first row has k where 1 belongs, twice; evaluated with k = 2.
""")
def _(case: Case, *, printed: bool = False) -> float:
    E, n = case.matrix(E_phi), case.mech.n_bodies
    expected = np.zeros_like(E)
    for k in range(n - 1):
        j = 1 if printed and k == 0 else k  # printed: a φ(k, k+1) with any k in the first row
        expected[6 * k : 6 * k + 6, 6 * k + 6 : 6 * k + 12] = case.dense.step[j + 1].shift
    return apart(E, expected)


@SWEEPS("""Reversed body indices impact on E_φ: pattern  what stays
    printed  E_φ: nilpotent, now with φ(parent,child) above the diagonal
    holds    E_φ is upper triangular with the base first; E_φ^n = 0
""")
def _(case: Case) -> float:
    E, n = case.matrix(E_phi), case.mech.n_bodies
    for i in range(n):
        for k in range(n):
            block = E[6 * i : 6 * i + 6, 6 * k : 6 * k + 6]
            if block.any() != (case.parent(k) == i):
                return 1.0
    nilpotent = not np.linalg.matrix_power(E, n).any()
    return 0.0 if nilpotent and np.array_equal(E, np.triu(E, 1)) else 1.0


SWEEPS("""Reversed body indices impact on φ  its resolvent
    printed  φ ≜ (I - E_φ)⁻¹ still exists, is now upper-triangular; y = φ* x is a scatter, y = φ x a
             gather
    holds    φ is upper triangular with the base first, lower with the tips first
""")(both(_check_reversed_resolvent, _check_scatter, _check_gather))


@SWEEPS("""What about randomized indices?  any order
    printed  φ ≜ (I - E_φ)⁻¹ still exists, no longer triangular; y = φ* x is a scatter, y = φ x a
             gather
    holds    with a permutation P of the bodies E_φ becomes P E_φ P*, φ becomes P φ P*
""")
def _(case: Case) -> Errors:
    there, n = _mixed(case), case.mech.n_bodies
    E, computed = (there.body_matrix(case.matrix(e)) for e in (E_phi, phi))
    patterned = any(np.array_equal(part(E), E) for part in (np.tril, np.triu))
    given = drawn(case, BODY).reshape(n, 6)
    yield 1.0 if patterned else 0.0
    yield np.linalg.inv(np.eye(6 * n) - E), computed
    for matrix, operator in ((computed, phi), (computed.T, phi.T)):
        y = matrix @ there.body_vector(given).ravel()
        ours = _product(case, operator).reshape(n, 6)
        yield y.reshape(n, 6), there.body_vector(ours)
