"""The course: its statements in its own order, slide by slide.

A number is what stands over the equals signs of a display, where there is one: they point into the
book that the course follows. All other displays go by the title of their slide.
"""

from linkwise_ledger.entry import Entry
from linkwise_ledger.soa_course.hinge import HINGES
from linkwise_ledger.soa_course.node import NODES
from linkwise_ledger.soa_course.operator import OPERATORS, RESOLVENT
from linkwise_ledger.soa_course.sweep import SWEEPS
from linkwise_ledger.soa_course.velocity import VELOCITIES

ENTRIES: tuple[Entry, ...] = (*HINGES, *VELOCITIES, *OPERATORS, *RESOLVENT, *SWEEPS, *NODES)

PRINTED: tuple[str, ...] = (
    *("1.3", "1.6", "1.37", "1.41", "3.5", "3.7", "3.12", "3.14", "3.15", "3.19a"),
    *("3.35", "3.36", "3.37", "3.38", "3.39", "3.41", "3.44", "3.46", "3.47"),
)
"""The numbers that the paper cites."""
