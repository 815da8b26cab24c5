"""Pictures with Matplotlib, the extra `plot`; nothing of it is imported by `import linkwise`.

`lw.plot` and `import linkwise.plot` are the same. Each function draws into the Axes it is given, or
makes a figure, and returns the Axes.
"""

from linkwise.plot.canvas import panels
from linkwise.plot.inertial import belted_ellipsoid, shape
from linkwise.plot.inertial_map import inertial_map
from linkwise.plot.skeleton import skeleton
from linkwise.plot.theme import DARK, LIGHT, Theme

__all__ = [
    "DARK",
    "LIGHT",
    "Theme",
    "belted_ellipsoid",
    "inertial_map",
    "panels",
    "shape",
    "skeleton",
]
