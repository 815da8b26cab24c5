"""Bare calls: a public function that goes straight to the machine code it needs.

Most functions of a mechanism are one kernel. Which one depends on the mechanism and on the choices
among the arguments (nodes, axes, a method), not on the arrays. A function finds it once, with all
checks, and keeps the bare call of the kernel with the mechanism; later calls with the same choices
begin with it:

    @begins_bare("node", "frame")
    def velocity(mech, q, v, node, *, frame="node", **options):
        kernel = ...
        keep_bare_call(mech, "velocity", (node, frame), kernel.quick)
        return kernel(q, v, **options)

A bare call takes the arrays in the order of the signature and returns None for what it does not
serve: other arrays than those of one state, and states without a result. Then the function itself
does the work.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from linkwise.front_door import KEPT, checked

F = TypeVar("F", bound=Callable[..., Any])

_CALL = """
def call({signature}):
    if not options:
        try:
            bare = {mech}._memo[{name!r}][{key}]
            if bare is not None:
                result = {bare}
                if result is not None:
                    return result
        except (AttributeError, KeyError, TypeError):  # the function reports it
            pass
    return function({given}, **options)
"""


def begins_bare(*choices: str) -> Callable[[F], F]:
    """A function f(mech, arrays, ...) whose calls begin with a bare call, where one is kept.

    Calls with other keywords than the choices never do. Arguments are checked as `open_front_door`
    checks those of other functions.

    Args:
        choices: Names of the arguments on which the kernel depends, besides the mechanism.
    """

    def around(function: F) -> F:
        slow = checked(function)
        namespace: dict[str, Any] = {"function": slow, "__name__": __name__}
        text = _text(function.__name__, inspect.signature(function), choices, namespace)
        exec(text, namespace)
        call = wraps(function)(namespace["call"])
        setattr(call, KEPT, True)
        return cast(F, call)

    return around


def _text(
    name: str, signature: inspect.Signature, choices: tuple[str, ...], namespace: dict[str, Any]
) -> str:
    """The source of the call; defaults are put into the namespace."""
    words, arrays, given = list[str](), list[str](), list[str]()
    optional, keywords = "", False
    mech, *rest = signature.parameters.values()
    for x in rest:
        only = x.kind is x.KEYWORD_ONLY
        if x.kind is x.VAR_KEYWORD or (only and x.name not in choices):
            continue  # among the options
        word = x.name
        if x.default is not x.empty:
            namespace[f"default_{x.name}"] = x.default
            word = f"{x.name}=default_{x.name}"
        words += ["*"] if only and not keywords else []
        keywords = keywords or only
        words.append(word)
        given.append(f"{x.name}={x.name}" if only else x.name)
        if x.name not in choices:
            arrays.append(x.name)
            optional = x.name if x.default is None else ""
    bare = f"bare({', '.join(arrays)})"
    if optional:  # the last one may be left out
        bare = f"bare({', '.join(arrays[:-1])}) if {optional} is None else {bare}"
    return _CALL.format(
        signature=", ".join([mech.name, *words, "**options"]),
        mech=mech.name,
        name=name,
        key=choices[0] if len(choices) == 1 else f"({', '.join(choices)})",
        bare=bare,
        given=", ".join([mech.name, *given]),
    )
