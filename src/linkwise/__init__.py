"""Linkwise: the mechanics of multibody systems as spatial operator algebra.

    import linkwise as lw

Nothing here needs more than NumPy to be imported. The algebra, the sample mechanisms and the
converters are imported on first use, so that `import linkwise` stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

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
from linkwise.spatial import Pose, SpatialInertia

if TYPE_CHECKING:
    from linkwise import algebra, convert, models
    from linkwise.pipeline import compile, derive, plan, prove

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
    "compile",
    "convert",
    "derive",
    "load",
    "models",
    "plan",
    "prove",
    "save",
]

_LAZY_MODULES = ("algebra", "convert", "models")
_LAZY_FUNCTIONS = ("compile", "derive", "plan", "prove")


def __getattr__(name: str) -> Any:
    if name in _LAZY_MODULES:
        return importlib.import_module(f"linkwise.{name}")
    if name in _LAZY_FUNCTIONS:
        return getattr(importlib.import_module("linkwise.pipeline"), name)
    raise AttributeError(f"module 'linkwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
