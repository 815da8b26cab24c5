"""Linkwise: the mechanics of multibody systems as spatial operator algebra.

    import linkwise as lw

Nothing here needs more than NumPy to be imported; what is heavy is imported on first use.
"""

from linkwise import algebra, convert, models
from linkwise.errors import LinkwiseError, ModelError, ParseError, ShapeError
from linkwise.io.load import load
from linkwise.io.save import save
from linkwise.model import (
    Body,
    Builder,
    Coupling,
    Drive,
    Finding,
    Geometry,
    LoadReport,
    Loop,
    Mechanism,
    Node,
)
from linkwise.model.hinges import (
    CustomHinge,
    Cylindrical,
    Free,
    Gimbal,
    Helical,
    Hinge,
    Locked,
    Pin,
    Planar,
    Prismatic,
    RollingBall,
    Screws,
    Spherical,
    Translation,
    Universal,
)
from linkwise.pipeline import derive, plan, prove
from linkwise.spatial import Pose, SpatialInertia

__version__ = "0.1.0"

__all__ = [
    "Body",
    "Builder",
    "Coupling",
    "CustomHinge",
    "Cylindrical",
    "Drive",
    "Finding",
    "Free",
    "Geometry",
    "Gimbal",
    "Helical",
    "Hinge",
    "LinkwiseError",
    "LoadReport",
    "Locked",
    "Loop",
    "Mechanism",
    "ModelError",
    "Node",
    "ParseError",
    "Pin",
    "Planar",
    "Pose",
    "Prismatic",
    "RollingBall",
    "Screws",
    "ShapeError",
    "SpatialInertia",
    "Spherical",
    "Translation",
    "Universal",
    "algebra",
    "convert",
    "derive",
    "load",
    "models",
    "plan",
    "prove",
    "save",
]
