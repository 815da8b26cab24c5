"""The object-level framework: its statements in its own order."""

from linkwise_ledger.entry import Entry
from linkwise_ledger.object_level.augmented import AUGMENTED
from linkwise_ledger.object_level.example import COORDINATION, EXAMPLE
from linkwise_ledger.object_level.inertial import INERTIAL
from linkwise_ledger.object_level.macro_mini import MACRO_MINI
from linkwise_ledger.object_level.multi_arm import SEVERAL
from linkwise_ledger.object_level.operational import OPERATIONAL
from linkwise_ledger.object_level.reduced import BOUNDS, REDUCED
from linkwise_ledger.object_level.redundancy import REDUNDANCY

ENTRIES: tuple[Entry, ...] = (
    *OPERATIONAL,
    *REDUNDANCY,
    *INERTIAL,
    *MACRO_MINI,
    *REDUCED,
    *EXAMPLE,
    *BOUNDS,
    *COORDINATION,
    *AUGMENTED,
    *SEVERAL,
)
"""Sections 2, 3, 4, 5 with its example in the midst, 6 and 7."""

_BEFORE = {
    22: "Theorem 1",
    40: "Lemma 1",
    41: "Lemma 2",
    46: "Theorem 2",
    52: "Corollary 1",
    62: "Lemma 3",
    63: "Theorem 3",
    72: "Lemma 4",
    75: "Theorem 4",
}
"""Which statement stands before which equation."""

PRINTED: tuple[str, ...] = tuple(
    number for i in range(1, 77) for number in (*([_BEFORE[i]] if i in _BEFORE else []), f"({i})")
)
"""The numbers that the paper prints, in its order."""
