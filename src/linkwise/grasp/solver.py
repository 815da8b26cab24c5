"""SciPy, asked for once."""

from __future__ import annotations

import importlib
from typing import Any

from linkwise.errors import MissingExtraError


def scipy(module: str, asked: str) -> Any:
    """A module of SciPy; raises with the extra's name where it is missing."""
    try:
        return importlib.import_module(f"scipy.{module}")
    except ImportError:
        raise MissingExtraError(asked, package="scipy", extra="optimize") from None
