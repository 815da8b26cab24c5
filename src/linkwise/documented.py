"""The arguments that many public functions share, documented once.

A function's docstring describes only the arguments that are special about it. `open_front_door`
completes the docstring of every public function from the table STANDARD, so that `help()`, Sphinx
and notebooks show each argument, in the order of the signature. A function's own entry always wins.
Methods are completed where they carry the decorator `@documented`.

Options that many functions share are a `TypedDict`: `**options: Unpack[Options]` in the source
becomes one keyword argument for each of its keys in the signature that `help()` shows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from inspect import CO_VARKEYWORDS, Parameter, cleandoc, signature, unwrap
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

STANDARD = {
    "mech": "The mechanism.",
    "embedded": "The mechanism with its loops and couplings built in (`lw.loops.embed`).",
    "grasp": "The grasp.",
    "expr": "The expression.",
    "q": "Joint positions (nq,) or (batch, nq) [m or rad].",
    "v": "Joint velocities (nv,) or (batch, nv) [m/s or rad/s].",
    "vdot": "Joint accelerations (nv,) or (batch, nv) [m/s² or rad/s²].",
    "tau": "Joint forces (nv,) or (batch, nv) [N or N m].",
    "node": "Name of a node or body, or several names; the results are stacked in their order.",
    "tasks": "One task or several, whose rows are stacked.",
    "forces": "External forces by node name: (moment, force), (6,) or (batch, 6) [N m, N], about "
    "the node's origin.",
    "forces_frame": 'Axes of `forces`: those of each "node" or of the "world".',
    "loops": '"closed" holds loops and couplings; "open" leaves them open.',
    "passive": "Whether springs, dampers and friction of the mechanism act as well.",
    "seed": "A seed for the random numbers, or a generator.",
    "dtype": "float64 or float32.",
    "out": "Array that receives the result.",
    "status": "For a batch, an int32 array (batch,) that receives a code for each state; 0 means "
    "success.",
    "threads": "Processor cores for a batch; default: chosen from the batch size.",
    "theme": '"light", "dark" or a `Theme`.',
    "ascii": "The name in ASCII, for code and generated source; default: `name`.",
    "tex": "The name in LaTeX; default: `name`.",
    "ax": "The axes to draw on; default: a new figure.",
}
"""What each shared argument means: the text that follows its name in an Args section."""

OF_TREES = {
    **STANDARD,
    "mech": "The mechanism; its loops and couplings are left open unless there is an argument "
    "`loops`.",
}
"""The same for namespaces of quantities of trees."""

OF_CONVERSIONS = {
    **STANDARD,
    **dict.fromkeys(("nodes", "rows", "columns", "parameters", "derive"), "As in `lw.compile`."),
}
"""The same for functions that turn what `lw.compile` takes into something else."""

_ENTRY = re.compile(r"^    (\*{0,2}\w+): ", re.MULTILINE)
_UNINDENTED = re.compile(r"^\S", re.MULTILINE)
_LATER = re.compile(r"^(Returns|Raises|Yields|Warns|Examples?|Notes?|References):$", re.MULTILINE)


def documented(function: F, texts: Mapping[str, str] = STANDARD) -> F:
    """Complete the signature and the Args section of a function, in place.

    Arguments without an entry, either in the docstring or in the table, stay undocumented. So does
    a function that has no docstring.

    Args:
        function: The function.
        texts: What each shared argument means.
    """
    code, text = unwrap(function).__code__, function.__doc__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if code.co_flags & CO_VARKEYWORDS:
        names = _unpack(function, code.co_varnames[len(names)], names)
    if text and not texts.keys().isdisjoint(names):
        function.__doc__ = _complete(cleandoc(text), names, texts)
    return function


def _unpack(function: Callable[..., Any], last: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Give `**last: Unpack[X]` the keys of the `TypedDict` X as keyword arguments."""
    match = re.fullmatch(r"Unpack\[(\w+)\]", str(function.__annotations__.get(last)))
    if match is None:
        return names
    keys: dict[str, Any] = unwrap(function).__globals__[match[1]].__annotations__
    full = signature(function)
    before = [x for x in full.parameters.values() if x.kind is not Parameter.VAR_KEYWORD]
    more = [
        Parameter(key, Parameter.KEYWORD_ONLY, default=None, annotation=hint.__forward_arg__)
        for key, hint in keys.items()
    ]
    function.__signature__ = full.replace(parameters=[*before, *more])
    return (*names, *keys)


def _complete(text: str, names: tuple[str, ...], texts: Mapping[str, str]) -> str:
    """A clean docstring with entries for all of these names, as far as they are known."""
    before, header, after = text.partition("\nArgs:\n")
    entries = {name: texts[name] for name in names if name in texts}
    if header:
        end = _UNINDENTED.search(after)
        section, after = (after[: end.start()], after[end.start() :]) if end else (after, "")
        _, *parts = _ENTRY.split(section)
        entries.update(zip(parts[::2], map(str.rstrip, parts[1::2]), strict=True))
    elif later := _LATER.search(before):
        before, after = before[: later.start()], before[later.start() :]
    order = [name for name in names if name in entries] + [x for x in entries if x not in names]
    section = "\n".join([f"    {name}: {entries[name]}" for name in order])
    rest = f"\n\n{after}" if after else "\n"
    return f"{before.rstrip()}\n\nArgs:\n{section}{rest}"
