"""Single elements and blocks of the inverse mass matrix, without the rest of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkwise.dynamics.kernels import Status, check_mechanism
from linkwise.dynamics.quantity import expression
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.pipeline import compile
from linkwise.spatial.array import Array, ArrayLike
from linkwise.sweeps.result_part import Names, ResultPart, choice

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel


def mass_matrix_inverse_block(
    mech: Mechanism,
    q: ArrayLike,
    rows: Names,
    columns: Names | None = None,
    *,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Some rows and columns of the inverse of the mass matrix.

    Expression:
        𝓜⁻¹ = (I − H ψ K)* D⁻¹ (I − H ψ K), of which only the named rows and columns are computed:
        beside the articulated inertias, one way in from each column's body and one way out to each
        row's body. A single element is the acceleration of one freedom per force on another.
    Source: 004 Lemma 13, JPL 88-11 Theorem 4.1.
    Departs: the element is had by two half sweeps along the path between the two bodies, so it
        needs no table of products ψ(i, j).

    Args:
        mech: The mechanism; loops and couplings are left open. Armature is included.
        rows: Hinges or bodies by name, or freedoms by their number in v; one or several.
        columns: The same for the columns; by default the rows.

    Returns:
        (r, c) or (batch, r, c): as many rows and columns as the named hinges have freedoms.

    Raises:
        UnknownNameError: A hinge or body that the mechanism does not have.
        ExpressionError: A freedom that it does not have, or hinges that are locked.
        SingularHingeError: Nothing resists the hinge of some body, which is named.
    """
    check_mechanism(mech)
    part = choice(rows, rows if columns is None else columns, False)
    found = _kernel(mech, part)
    if out is status is threads is None:
        return found(q)
    return found(q, out=out, status=status, threads=threads)


@once_per_mechanism
def _kernel(mech: Mechanism, part: ResultPart) -> Kernel:
    expr = expression("mass_matrix_inverse")
    return compile(expr, mech, rows=part.rows, columns=part.columns)
