"""Document 001, Part I with its appendices: its statements in its own order.

The document works in inertial axes, on chains numbered from the tip. What it says about velocities,
accelerations and forces is tried in those axes on arms that move (`motion.py`); what it says about
operators is tried on Linkwise's own, in the axes of the bodies and on trees of any hinges; its
loops are run as they are printed, on both (`links.py`).
"""

from linkwise.ledger.document_001.section_2 import SECTION_2
from linkwise.ledger.document_001.section_3 import SECTION_3
from linkwise.ledger.document_001.section_4 import SECTION_4
from linkwise.ledger.document_001.section_5 import SECTION_5
from linkwise.ledger.document_001.sliding import SLIDING
from linkwise.ledger.entry import Entry

ENTRIES: tuple[Entry, ...] = (*SECTION_2, *SLIDING, *SECTION_3, *SECTION_4, *SECTION_5)
