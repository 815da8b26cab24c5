"""Flexible bodies: modal data, beams and frames of beams."""

from linkwise.flexible.beam import (
    beam as beam,
    frame as frame,
)
from linkwise.flexible.flexible_body import FlexibleBody as FlexibleBody
from linkwise.flexible.modal_file import (
    load as load,
    save as save,
)
from linkwise.flexible.nastran import load_nastran as load_nastran
from linkwise.flexible.separate import (
    separate as separate,
    separate_q as separate_q,
)
from linkwise.front_door import open_front_door

open_front_door(globals(), records=("FlexibleBody",))
