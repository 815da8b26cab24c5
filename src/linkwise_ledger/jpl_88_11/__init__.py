"""JPL 88-11, Part I with its appendices: its statements in its own order.

The paper works in inertial axes, on chains numbered from the tip. What it says about velocities,
accelerations and forces is tried in those axes on arms that move; what it says about operators is
tried on Linkwise's own, in the axes of the bodies and on trees of any hinges; its loops are run as
they are printed, on both.

    motion.py       an arm that moves: velocities, accelerations and forces by differences
    links.py        the blocks that loops go over, in world axes and in those of the bodies
    operators.py    the blocks, stacked
    sweeps.py       the loops of the algorithms
    newton_euler.py the loops of section 2, and weights
"""

from linkwise_ledger.entry import Entry
from linkwise_ledger.jpl_88_11.appendix_a import APPENDIX_A
from linkwise_ledger.jpl_88_11.appendix_b import APPENDIX_B
from linkwise_ledger.jpl_88_11.decompositions import DECOMPOSITIONS
from linkwise_ledger.jpl_88_11.innovations import INNOVATIONS
from linkwise_ledger.jpl_88_11.motion_equation import MOTION_EQUATIONS
from linkwise_ledger.jpl_88_11.section_2 import SECTION_1, SECTION_2, SLIDING
from linkwise_ledger.jpl_88_11.section_3 import SECTION_3
from linkwise_ledger.jpl_88_11.section_4 import SECTION_4
from linkwise_ledger.jpl_88_11.section_5 import SECTION_5
from linkwise_ledger.jpl_88_11.spatial_dynamics import SPATIAL

ENTRIES: tuple[Entry, ...] = (
    *SECTION_1,
    *SECTION_2,
    *SPATIAL,
    *SLIDING,
    *SECTION_3,
    *MOTION_EQUATIONS,
    *SECTION_4,
    *INNOVATIONS,
    *SECTION_5,
    *APPENDIX_A,
    *DECOMPOSITIONS,
    *APPENDIX_B,
)


def _numbers(section: str, last: int) -> tuple[str, ...]:
    return tuple(f"({section}.{i})" for i in range(1, last + 1))


PRINTED: tuple[str, ...] = (
    *_numbers("2", 32),
    *_numbers("3", 23),
    *_numbers("4", 23),
    *("(4.21b)", "(4.22b)"),
    *_numbers("5", 17),
    *_numbers("a", 51),
    *_numbers("b", 10),
    *("Fact 4.1", "Fact 4.2", "Theorem 4.1", "Identity 5.1", "Lemma A.1", "Corollary A.1"),
    *("RNE", "RSD", "FD1", "FD2", "FD3", "FD4", "Table 1.1"),
)
"""Every number that Part I prints, taken from its text; section 4 goes on within section 5."""

GROUPS = (*(f"Identities A.{i}" for i in range(1, 6)), "Identity A.6", "Identity A.7")
"""What Appendix A calls its equations by the block: in the titles of the entries."""
