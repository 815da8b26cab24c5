"""Pictures with Matplotlib, the extra `plot`; nothing of it is imported by `import linkwise`.

`lw.plot` and `import linkwise.plot` are the same. Each function draws into the Axes it is given, or
makes a figure, and returns the Axes; where a picture has several panels, a list of them.
"""

from linkwise.front_door import open_front_door
from linkwise.plot.canvas import DARK, LIGHT, Theme, panels
from linkwise.plot.energy_budget import energy_budget
from linkwise.plot.estimation import consistency, estimates
from linkwise.plot.history import history
from linkwise.plot.identification import identification, identification_report
from linkwise.plot.inertial import belted_ellipsoid, shape
from linkwise.plot.operator import mass_matrix, operator
from linkwise.plot.skeleton import skeleton
from linkwise.plot.study import (
    study_band,
    study_design,
    study_distribution,
    study_indices,
    study_probability,
    study_rare_event,
    study_scatter,
)
from linkwise.plot.trajectory import trajectory

__all__ = [
    "DARK",
    "LIGHT",
    "Theme",
    "belted_ellipsoid",
    "consistency",
    "energy_budget",
    "estimates",
    "history",
    "identification",
    "identification_report",
    "mass_matrix",
    "operator",
    "panels",
    "shape",
    "skeleton",
    "study_band",
    "study_design",
    "study_distribution",
    "study_indices",
    "study_probability",
    "study_rare_event",
    "study_scatter",
    "trajectory",
]

open_front_door(globals(), __all__, records=("Theme",))
