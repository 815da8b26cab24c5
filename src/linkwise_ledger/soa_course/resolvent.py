"""Document 002, "Explicit velocity expression": nilpotent matrices, φ, φ̃, and V⁺."""

from __future__ import annotations

import numpy as np

from linkwise.algebra.space import BODY
from linkwise.algebra.symbols import E_phi, H, I, V, phi, phi_tilde, v
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Entry, definition, holds, same
from linkwise_ledger.literal import each, split
from linkwise_ledger.soa_course.measure import body, measured, turned
from linkwise_ledger.soa_course.operator import (
    BETA,
    PLUS,
    both,
    check_shift_matrix,
    tips_first,
)
from linkwise_ledger.soa_course.velocity import check_recursion, check_split, worst
from linkwise_ledger.standard import check_resolvent, check_shift, check_transition

# ------------------------------------------------------------------------------------- checks


def _check_solved_velocities(case: Case) -> float:
    """(I - E_φ*)⁻¹ H* v against measured velocities."""
    at, one = measured(case), np.eye(case.dense.size(BODY))
    inverse = np.asarray(np.linalg.inv(one - case.matrix(E_phi).T), dtype=np.float64)
    solved = inverse @ case.matrix(H).T @ case.v
    found, names = split(case, solved, BODY), [body(case, k) for k in case.outward]
    return worst(
        [(turned(at.pose[n], x), at.velocity[n]) for n, x in zip(names, found, strict=True)]
    )


def _block(A: Array, i: int, j: int) -> Array:
    """The block at the bodies i and j of the document."""
    return A[6 * i - 6 : 6 * i, 6 * j - 6 : 6 * j]


def _check_depends(case: Case) -> float:
    """Blocks that depend on the configuration: E_φ everywhere, as every hinge moves something."""
    other = type(case)(case.name, case.mech, case.seed + 100)
    changed = [
        apart(case.block(E_phi, case.parent(k), k), other.block(E_phi, case.parent(k), k)) > 1e-6
        for k in case.outward
        if case.parent(k) >= 0 and case.mech.bodies[k].hinge.nv > 0
    ]
    return 0.0 if all(changed) else 1.0


def _nilpotent(case: Case) -> Array:
    """A matrix U with U^n = 0 that is not triangular."""
    rng, n = np.random.default_rng(case.seed), case.mech.n_bodies
    change, _ = np.linalg.qr(rng.standard_normal((n, n)))
    return change @ np.tril(rng.standard_normal((n, n)), -1) @ change.T


def _series(nil: Array, terms: int) -> Array:
    total, power = np.eye(len(nil)), np.eye(len(nil))
    for _ in range(terms - 1):
        power = power @ nil
        total = total + power
    return total


def _check_series(case: Case) -> float:
    """(I - U)⁻¹ = I + U + … + U^(n-1), for a drawn U and for E_φ."""
    errors, n = list[float](), case.mech.n_bodies
    for nil in (_nilpotent(case), case.matrix(E_phi)):
        errors.append(apart(np.linalg.inv(np.eye(len(nil)) - nil), _series(nil, n)))
    return max(errors)


def _check_series_proof(case: Case) -> float:
    """U W = W U = W - I, and so (I - U) W = I."""
    errors, n = list[float](), case.mech.n_bodies
    for nil in (_nilpotent(case), case.matrix(E_phi)):
        W, one = _series(nil, n), np.eye(len(nil))
        errors += [apart(nil @ W, W @ nil), apart(nil @ W, W - one), apart((one - nil) @ W, one)]
    return max(errors)


def _check_powers(case: Case) -> float:
    """E_φ^m has blocks on the m-th sub-diagonal only, and none of those is zero."""
    E, n = tips_first(case, case.matrix(E_phi)), case.mech.n_bodies
    power = np.eye(6 * n)
    for m in range(1, n):
        power = power @ E
        for i in range(1, n + 1):
            for j in range(1, n + 1):
                if _block(power, i, j).any() != (i - j == m):
                    return 1.0
    return 0.0


def _check_nilpotent(case: Case) -> float:
    E = case.matrix(E_phi)
    return float(np.abs(np.linalg.matrix_power(E, case.mech.n_bodies)).max())


def _check_shift_structure(case: Case) -> float:
    """Strictly lower triangular, square, singular, only the first sub-diagonal, 6×6 blocks."""
    E, n = tips_first(case, case.matrix(E_phi)), case.mech.n_bodies
    singular = np.linalg.matrix_rank(E) == 6 * (n - 1)
    shape = E.shape == (6 * n, 6 * n) and np.array_equal(E, np.tril(E, -1)) and singular
    return max(0.0 if shape else 1.0, check_shift_matrix(case), _check_depends(case))


def _check_triangle(case: Case) -> float:
    """φ as printed: I on the diagonal, φ(i, j) below it, zeros above."""
    found, n = tips_first(case, case.matrix(phi)), case.mech.n_bodies
    poses = [case.mech.pose(case.q, case.mech.bodies[n - i].name) for i in range(1, n + 1)]
    expected = np.zeros_like(found)
    for i in range(n):
        for j in range(i + 1):
            block = (poses[i].inverse() @ poses[j]).shift
            expected[6 * i : 6 * i + 6, 6 * j : 6 * j + 6] = block
    return apart(found, expected)


def _check_resolvent_structure(case: Case) -> float:
    """The m-th sub-diagonal of φ is E_φ^m; the determinant is one."""
    E, found = (tips_first(case, case.matrix(x)) for x in (E_phi, phi))
    n, power, pairs = case.mech.n_bodies, np.eye(len(E)), list[float]()
    for m in range(n):
        for j in range(1, n - m + 1):
            pairs.append(apart(_block(found, j + m, j), _block(power, j + m, j)))
        power = power @ E
    return max(*pairs, abs(float(np.linalg.det(found)) - 1.0))


# ------------------------------------------------------------------------------------ entries


RESOLVENT: tuple[Entry, ...] = (
    holds(
        "Nilpotent matrices & inverses",
        "resolvent of a nilpotent matrix",
        "U^n = 0: (I - U)⁻¹ = I + U + U² + … + U^(n-1)",
        "the same",
        _check_series,
    ),
    holds(
        "Derivation of nilpotent relative inverse",
        "why",
        "U W = W U = U + … + U^n = W - I  ⇒  I = (I - U) W  ⇒  (I - U)⁻¹ = W",
        "the same, W = I + U + … + U^(n-1)",
        _check_series_proof,
    ),
    holds(
        "E_φ is nilpotent: powers",
        "each power moves the sub-diagonal down",
        "E_φ^m: nonzero on its m-th sub-diagonal only",
        "block (i, j) of E_φ^m is zero unless i - j = m, with the bodies numbered from the tip",
        _check_powers,
    ).on_chains(),
    holds(
        "E_φ is nilpotent",
        "the last power",
        "E_φ^n = 0",
        "E_φ^n = 0",
        _check_nilpotent,
    ),
    holds(
        "Structural properties of E_φ",
        "pattern of E_φ",
        "E_φ: square, strictly lower triangular, nilpotent, so singular; nonzero are only "
        "φ(k+1,k), in the first sub-diagonal, which depend on θ",
        "the same, with the bodies numbered from the tip",
        both(_check_shift_structure, _check_nilpotent),
    ).on_chains(),
    holds(
        "The φ spatial operator",
        "resolvent of E_φ",
        "φ ≜ (I - E_φ)⁻¹ = I + E_φ + E_φ² + … + E_φ^(n-1)",
        "φ = (I - E_φ)⁻¹",
        both(check_resolvent, _check_series),
    ),
    holds(
        "The φ spatial operator: matrix",
        "pattern of φ",
        "φ lower triangular with I on the diagonal and φ(i,j) below it",
        "the same, with the bodies numbered from the tip",
        _check_triangle,
    ).on_chains(),
    holds(
        "Structural properties of φ",
        "sub-diagonals of φ",
        "φ: square, lower triangular, invertible; I on the diagonal, then E_φ, E_φ² … on the "
        "sub-diagonals",
        "the m-th sub-diagonal of φ is E_φ^m, with the bodies numbered from the tip",
        _check_resolvent_structure,
    ).on_chains(),
    holds(
        "Structural properties of φ: matrix",
        "φ and its matrix",
        "φ = (I, 0 …; φ(2,1), I …; …) (I - E_φ)⁻¹",
        "φ = (I, 0 …; φ(2,1), I …; …) = (I - E_φ)⁻¹",
        check_resolvent,
        note="Scan: an equals sign is lost, as in the ranges of five loops.",
    ),
    holds(
        "Structural properties of φ: elements",
        "elements of φ are shifts",
        "φ(i,j) = φ(i,i-1) ⋯ φ(j+1,j) = [[I, l~(i,j)], [0, I]]",
        "the same, in the axes of the world",
        both(check_shift, check_transition),
    ),
    holds(
        "(3.35, 3.36)",
        "velocities, solved",
        "V = (I - E_φ*)⁻¹ H* θ̇ = φ* H* θ̇",
        "V = φ* H* v",
        _check_solved_velocities,
        note=BETA,
    ),
    holds(
        "Explicit operator expression for body spatial velocities",
        "the boxed result",
        "V = φ* H* θ̇",
        "V = φ* H* v",
        both(_check_solved_velocities, check_recursion),
        note=BETA,
    ),
    definition(
        "Spatial operator φ̃",
        "φ without its diagonal",
        "φ̃ ≜ φ - I; zeros on the diagonal",
        "φ̃ = φ - I",
        lambda case: max(
            case.residual(phi_tilde, phi - I),
            max(float(np.abs(case.block(phi_tilde, k)).max()) for k in case.outward),
        ),
    ),
    holds(
        "(3.41)",
        "φ̃ by one step",
        "φ̃ = E_φ φ = φ E_φ; I = (I - E_φ) φ = φ - E_φ φ  ⇒  φ - I = φ̃ = E_φ φ",
        "φ̃ = E_φ φ = φ E_φ",
        each(
            (phi_tilde, E_phi @ phi), (phi_tilde, phi @ E_phi), (phi - E_phi @ phi, I + 0.0 * phi)
        ),
    ),
    holds(
        "Operator expression for V⁺",
        "claim",
        "V⁺ = φ̃* H* θ̇",
        "V⁺ = φ̃* H* v",
        both(check_split, same(E_phi.T @ V, phi_tilde.T @ H.T @ v)),
        note=PLUS,
    ),
    holds(
        "(3.15, 3.39, 3.41)",
        "its derivation",
        "V⁺ = E_φ* V = E_φ* φ* H* θ̇ = φ̃* H* θ̇",
        "the same with v for θ̇",
        both(check_split, same(E_phi.T @ phi.T @ H.T @ v, phi_tilde.T @ H.T @ v)),
        note=PLUS,
    ),
)
