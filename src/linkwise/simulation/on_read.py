"""Values that are computed when they are first read: channels and reports of recordings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

import numpy as np

T = TypeVar("T")


class OnRead(Generic[T]):
    """A value that is computed once, by the first call; numbers may overflow in it."""

    __slots__ = ("_compute", "_value")

    def __init__(self, compute: Callable[[], T]) -> None:
        self._compute: Callable[[], T] | None = compute
        self._value: T

    def __call__(self) -> T:
        """The value."""
        if self._compute is not None:
            with np.errstate(over="ignore", invalid="ignore"):  # a motion that diverges is reported
                self._value = self._compute()
            self._compute = None  # and what it holds
        return self._value


class FieldOnRead:
    """A field of a dataclass that may be given as an `OnRead`, and is read as its value."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            raise AttributeError(self._name)  # then the field has no default
        value: object = instance.__dict__[self._name]
        if isinstance(value, OnRead):
            computed = cast("OnRead[Any]", value)()
            instance.__dict__[self._name] = computed
            return computed
        return value

    def __set__(self, instance: Any, value: object) -> None:
        instance.__dict__[self._name] = value
