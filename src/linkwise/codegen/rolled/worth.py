"""Which kernels get loops over bodies instead of straight code."""

from __future__ import annotations

from linkwise.algebra.space import BODY, JOINT, ONE
from linkwise.model.mechanism import Mechanism
from linkwise.sweeps.cost import cost
from linkwise.sweeps.program import Program
from linkwise.sweeps.result_part import entries

MOST_OPERATIONS, MOST_OF_A_MATRIX = 150_000, 250_000
"""Estimated operations (before folding) of straight code, for a vector and for a matrix."""

MOST_BODIES = 64
"""Bodies of a mechanism whose kernels may be straight code."""


def worth_rolling(program: Program, mech: Mechanism) -> bool:
    """Whether straight code would be too long: it is a little quicker, but slow to compile."""
    if program.constrained:
        return False  # no loops for what belongs to constraints
    if mech.n_bodies > MOST_BODIES:
        return True
    most = MOST_OPERATIONS if program.result.columns is ONE else MOST_OF_A_MATRIX
    share, columns = 1.0, program.chosen.columns
    if columns is not None and program.result.columns in (JOINT, BODY):
        width = mech.nv if program.result.columns is JOINT else 6 * mech.n_bodies
        share = len(entries(columns, program.result.columns, mech, ())) / max(width, 1)
    return mech.n_bodies > 0 and share * cost(program, mech).work > most
