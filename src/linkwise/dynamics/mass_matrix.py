"""The mass matrix and its inverse; inertias of bodies with all they carry."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from linkwise.arguments import is_tracked
from linkwise.bare_call import begins_bare
from linkwise.codegen.formula import Formula
from linkwise.dynamics.kernels import (
    BatchOptions,
    Options,
    begun,
    check_mechanism,
    named,
    written,
)
from linkwise.dynamics.mass_root import root_of
from linkwise.dynamics.quantity import expression
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.pipeline import compile
from linkwise.spatial.array import Array, ArrayLike
from linkwise.sweeps.result_part import Names, ResultPart, choice

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel
    from linkwise.codegen.writing import Writing


@begins_bare()
def mass_matrix(mech: Mechanism | Embedded, q: ArrayLike, **options: Unpack[Options]) -> Array:
    """The mass matrix: kinetic energy is ½ v* 𝓜 v.

    Expression:
        𝓜 = H φ M φ* H* + N,   `mass`, with the armature N of the mechanism.

    Returns:
        The symmetric matrix (nv, nv), or (batch, nv, nv).
    """
    return begun(mech, "mass_matrix")(q, **options)


@begins_bare()
def mass_matrix_inverse(
    mech: Mechanism | Embedded, q: ArrayLike, **options: Unpack[Options]
) -> Array:
    """The inverse of the mass matrix, computed without the mass matrix.

    Expression:
        𝓜⁻¹ = (I − H ψ K)* D⁻¹ (I − H ψ K),   `mass.inv`, with the armature in D.
    Source: 000 Lemma 4.3.

    To apply it to a vector, `mass_matrix_inverse_product` is cheaper: O(n) instead of O(n²).

    Returns:
        The symmetric matrix (nv, nv), or (batch, nv, nv).

    Raises:
        SingularHingeError: Nothing resists the hinge of some body, which is named.
    """
    return begun(mech, "mass_matrix_inverse")(q, **options)


@begins_bare()
def mass_matrix_inverse_product(
    mech: Mechanism | Embedded, q: ArrayLike, x: ArrayLike, **options: Unpack[Options]
) -> Array:
    """The inverse of the mass matrix times a vector, without either matrix.

    Expression:
        𝓜⁻¹ x,   `mass.inv @ x`, with the armature of the mechanism in 𝓜.
    Derived form, 2 passes, O(n):
        (I - H ψ K)* D⁻¹ (I - H ψ K) x
    Source: 000 Lemma 4.3.

    Args:
        x: Joint forces, or another vector over the joints, (nv,) or (batch, nv) [N or N m].

    Returns:
        (nv,) or (batch, nv): the accelerations that x causes at rest and without gravity.

    Raises:
        SingularHingeError: Nothing resists the hinge of some body, which is named.
    """
    return begun(mech, "mass_matrix_inverse_product")(q, x, **options)


def mass_matrix_inverse_block(
    mech: Mechanism,
    q: ArrayLike,
    rows: Names,
    columns: Names | None = None,
    **options: Unpack[Options],
) -> Array:
    """Some rows and columns of the inverse of the mass matrix, without the rest of it.

    Expression:
        𝓜⁻¹ = (I − H ψ K)* D⁻¹ (I − H ψ K), of which only the named rows and columns are computed:
        besides the articulated inertias, one path in from each column's body and one out to each
        row's body. A single element is the acceleration of one joint per force on another.
    Source: 004 Lemma 13, JPL 88-11 Theorem 4.1.
    Departs: two half sweeps along the path between the two bodies give the element, so that no
        table of products ψ(i, j) is needed.

    Args:
        mech: The mechanism; loops and couplings are left open. Armature is included.
        rows: Hinges or bodies by name, or joint velocities by their index in v; one or several.
        columns: The same for the columns; default: the rows.

    Returns:
        (r, c) or (batch, r, c): one row and column for each velocity of the named hinges.

    Raises:
        UnknownNameError: A hinge or body that the mechanism does not have.
        ExpressionError: An index that it does not have, or hinges that are locked.
        SingularHingeError: Nothing resists the hinge of some body, which is named.
    """
    check_mechanism(mech)
    part = choice(rows, rows if columns is None else columns, False)
    return _block_kernel(mech, part)(q, **options)


@once_per_mechanism
def _block_kernel(mech: Mechanism, part: ResultPart) -> Kernel:
    expr = expression("mass_matrix_inverse")
    return compile(expr, mech, rows=part.rows, columns=part.columns)


def log_det_mass_matrix(mech: Mechanism, q: ArrayLike, **options: Unpack[BatchOptions]) -> Any:
    """Logarithm of the determinant of the mass matrix, a number or (batch,).

    Expression:
        Σ log det D(k),   since 𝓜 = (I + H φ K) D (I + H φ K)* and I + H φ K has determinant 1;
    with the armature of the mechanism in 𝓜. One pass, O(n), without a matrix.
    Source: 000 Lemma 4.1.

    Raises:
        SingularHingeError: Nothing resists the hinge of some body, which is named. In a batch its
            entry is NaN instead, reported by a warning or by `status`.
    """
    factors = written(mech, DETERMINANTS)(q, **options)
    if is_tracked(factors):
        return factors.log().sum(-1)
    if factors.ndim == 1:
        return sum(map(math.log, factors.tolist()), 0.0)
    return np.log(factors).sum(axis=-1)[()]


def determinants(at: Writing) -> Any:
    """det D in factors of a dozen joints each, so that no product over- or underflows."""
    pivots = [s[i, i] * s[i, i] for _, s in root_of(at).blocks for i in range(len(s))]
    return np.array([math.prod(pivots[i : i + 12]) for i in range(0, len(pivots), 12)])


DETERMINANTS = Formula(determinants)


@begins_bare()
def composite_inertias(mech: Mechanism, q: ArrayLike, **options: Unpack[Options]) -> Array:
    """Inertia of each body with everything it carries, as if no hinge beyond its own could move.

    Expression:
        R = E_φ R E_φ* + M, the diagonal blocks of φ M φ*,   `R`
    Source: 004 Lemma 1.

    Returns:
        (n_bodies, 6, 6) or (batch, n_bodies, 6, 6), each about the origin of its body frame and in
        its axes, angular part first. Armature is not included.
    """
    return begun(mech, "composite_inertias")(q, **options)


@begins_bare("inboard")
def articulated_inertias(
    mech: Mechanism, q: ArrayLike, *, inboard: bool = False, **options: Unpack[Options]
) -> Array:
    """Inertia of each body with everything it carries, its hinges giving way.

    Expression:
        P = E_φ P⁺ E_φ* + M,   P⁺ = P − P H* D⁻¹ H P,   D = H P H*,   `P`, `P_plus`
    with D = H P H* + N and the armature N of the mechanism.
    Source: 000 (4.1); 004 Lemma 3, where P is the covariance of the estimation error.

    Args:
        inboard: P⁺ instead of P: as felt on the inboard side of the body's hinge.

    Returns:
        (n_bodies, 6, 6) or (batch, n_bodies, 6, 6), each about the origin of its body frame and in
        its axes, angular part first.

    Raises:
        SingularHingeError: Nothing resists the hinge of some body, which is named.
    """
    name = "articulated_inertias_inboard" if inboard else "articulated_inertias"
    return begun(mech, "articulated_inertias", inboard, named(mech, name))(q, **options)
