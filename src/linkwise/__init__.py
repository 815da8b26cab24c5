"""Linkwise: the mechanics of multibody systems as spatial operator algebra.

import linkwise as lw

The names below are imported when they are first used, so that `import linkwise` stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linkwise import convert, models
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

__version__ = "0.1.0"

_HOME = {
    "linkwise.errors": ("LinkwiseError", "ModelError", "ParseError", "ShapeError"),
    "linkwise.io.load": ("load",),
    "linkwise.io.save": ("save",),
    "linkwise.model": (
        "Body",
        "Builder",
        "Coupling",
        "Drive",
        "Finding",
        "Geometry",
        "LoadReport",
        "Loop",
        "Mechanism",
        "Node",
    ),
    "linkwise.model.hinges": (
        "CustomHinge",
        "Cylindrical",
        "Free",
        "Gimbal",
        "Helical",
        "Hinge",
        "Locked",
        "Pin",
        "Planar",
        "Prismatic",
        "RollingBall",
        "Screws",
        "Spherical",
        "Translation",
        "Universal",
    ),
    "linkwise.spatial": ("Pose", "SpatialInertia"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}
_MODULES = ("convert", "models")

__all__ = [  # noqa: PLE0604
    *sorted(_MODULE_OF),
    *_MODULES,
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"linkwise.{name}")
    if name in _MODULE_OF:
        value = getattr(importlib.import_module(_MODULE_OF[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'linkwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
