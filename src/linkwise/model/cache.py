"""What is left of an object when its cached properties are taken away."""

from __future__ import annotations

from functools import cached_property
from typing import Any


def without_caches(thing: object) -> dict[str, Any]:
    """The state to pickle or copy: cached properties are found again, and read-only again."""
    return {
        key: value
        for key, value in vars(thing).items()
        if not isinstance(getattr(type(thing), key, None), cached_property)
    }
