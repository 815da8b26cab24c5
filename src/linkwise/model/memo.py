"""What is computed once per mechanism and kept with it: kernels, derived mechanisms, tables."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from functools import cached_property, wraps
from typing import Any, TypeVar, TypeVarTuple, cast

Owner = TypeVar("Owner")
Rest = TypeVarTuple("Rest")
Made = TypeVar("Made")

_SLOT = "_memo"
"""Attribute of a mechanism that holds it; only this file uses it."""

_MAKING = threading.RLock()
"""Held while a value is computed: threads that need the same one wait."""

_CLOCK = threading.local()
"""How long each thread has been computing."""


def once_per_mechanism(
    function: Callable[[Owner, *Rest], Made],
) -> Callable[[Owner, *Rest], Made]:
    """A function of a mechanism and hashable arguments, called once for each of them.

    Its results stay with the mechanism, not with copies of it. One thread computes, others wait.
    Arguments are positional and have no defaults, so that equal calls look alike.
    """
    call = cast("Callable[..., Any]", function)

    def make(mech: Any, arguments: tuple[Any, ...]) -> Any:
        try:
            memo: dict[object, dict[object, Any]] = mech.__dict__.setdefault(_SLOT, {})
            hash(arguments)
        except (
            AttributeError,
            TypeError,
        ):  # not a mechanism, or not hashable: the function reports it
            return call(mech, *arguments)
        with _MAKING:
            values = memo.setdefault(function, {})
            if arguments not in values:
                before, began = time_compiling(), time.monotonic()
                values[arguments] = call(mech, *arguments)
                _CLOCK.seconds = before + time.monotonic() - began  # including what it needed
            return values[arguments]

    @wraps(function)
    def known(mech: Any, *arguments: Any) -> Any:
        try:
            return mech._memo[function][arguments]
        except (AttributeError, KeyError, TypeError):
            return make(mech, arguments)

    return cast("Any", known)


def is_kept(function: Callable[[Owner, *Rest], Made], mech: Owner, *arguments: *Rest) -> bool:
    """Whether a function made by `once_per_mechanism` has been called with these arguments."""
    values = vars(mech).get(_SLOT, {}).get(getattr(function, "__wrapped__", None), {})
    return arguments in values


def keep_bare_call(
    mech: Any, function: str, choices: Hashable, call: Callable[..., Any] | None
) -> None:
    """Let a function of a mechanism begin with this call (`bare_call.begins_bare`).

    Args:
        mech: The mechanism.
        function: Name of the function.
        choices: Those that the call is for, in the order of `begins_bare`; one alone as it is.
        call: The bare call; None where there is none.
    """
    calls = mech.__dict__.setdefault(_SLOT, {}).setdefault(function, {})
    try:
        calls[choices] = call
    except TypeError:  # names in a list, which is no key
        return


def drop_bare_calls(mech: Any, function: str) -> None:
    """Forget the calls that a function of a mechanism begins with."""
    mech.__dict__.get(_SLOT, {}).pop(function, None)


def time_compiling() -> float:
    """How long [s] this thread has been compiling; take the difference to time a task."""
    return float(getattr(_CLOCK, "seconds", 0.0))


def without_caches(thing: object) -> dict[str, Any]:
    """The state to pickle or copy: cached properties are computed again, and read-only again."""
    return {
        key: value
        for key, value in vars(thing).items()
        if key != _SLOT and not isinstance(getattr(type(thing), key, None), cached_property)
    }
