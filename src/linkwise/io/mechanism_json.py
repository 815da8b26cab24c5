"""A whole mechanism as JSON: every part with the fields of its class, numbers with all digits.

    {"format": "linkwise mechanism 1", "name": "arm", "bodies": [{"name": "upper", ...}], ...}

A part is an object with the fields of its dataclass (`Body`, `Node`, `Loop`, `Coupling`, `Drive`,
`Geometry`, `Actuator` ...), by their types; a hinge also has its class as `kind`. Fields that have
their default are left out. Infinite numbers are the texts "inf" and "-inf"; the heights of a grid
are rows of numbers. What is read is what was written, bit by bit.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, cast

import numpy as np

from linkwise.arguments import origin_of
from linkwise.errors import LinkwiseError, ModelError, ParseError, unknown_name
from linkwise.io.report import Reporter
from linkwise.model import hinges
from linkwise.model.grid import Grid
from linkwise.model.hinges import Hinge
from linkwise.model.hinges.modified import Reversed
from linkwise.model.mechanism import Mechanism
from linkwise.model.report import LoadReport
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose

FORMAT = "linkwise mechanism 1"

_ALL: dict[str, Any] = {**vars(hinges), "Reversed": Reversed}
KINDS: dict[str, type[Hinge]] = {
    name: kind
    for name, kind in _ALL.items()
    if isinstance(kind, type) and issubclass(kind, Hinge) and dataclasses.is_dataclass(kind)
}
del KINDS["CustomHinge"]
"""Hinges by the name of their class; those of functions cannot be written."""

ROUNDING = 1e-12
"""Numbers that a class makes exact again, as the length of an axis, stay as they were written."""


# ------------------------------------------------------------------------------------- writing


def written(mech: Mechanism) -> str:
    """The text of a mechanism.

    Raises:
        ModelError: A hinge is made of functions.
    """
    for owner in (*mech.bodies, *mech.loops):
        if _has_functions(owner.hinge):
            raise ModelError(
                f"{owner.name!r} of {mech.name!r} has the hinge {owner.hinge.describe()!r}, which "
                "is made of functions; a file cannot hold them. Save the mechanism without it."
            )
    parts = _written(mech)
    blocks = list[str]()
    for name, value in {"format": FORMAT, **parts}.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            rows = ",\n  ".join(_text(x) for x in cast("list[Any]", value))
            blocks.append(f'"{name}": [\n  {rows}\n ]')
        else:
            blocks.append(f'"{name}": {_text(value)}')
    return "{\n " + ",\n ".join(blocks) + "\n}\n"


def _text(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


def _has_functions(hinge: Any) -> bool:
    if isinstance(hinge, Reversed):
        return _has_functions(hinge.hinge)
    held = getattr(hinge, "of", None)  # of a lock
    return type(hinge) not in KINDS.values() or (held is not None and _has_functions(held))


def _written(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | np.floating):
        x = float(cast("float", value))
        return x if math.isfinite(x) else str(x)
    if isinstance(value, np.ndarray):
        return _written(cast("Array", value).tolist())
    if isinstance(value, Grid):
        return value.heights.tolist()
    if isinstance(value, tuple | list):
        return [_written(x) for x in cast("tuple[Any, ...]", value)]
    kind: Any = type(cast("object", value))
    out: dict[str, Any] = {"kind": kind.__name__} if issubclass(kind, Hinge) else {}
    for field in dataclasses.fields(cast("Any", kind)):
        part, default = _written(getattr(value, field.name)), _default(kind, field.name)
        if default is dataclasses.MISSING or part != default[0]:
            out[field.name] = part
    return out


@cache
def _default(kind: Any, name: str) -> Any:
    """The default of a field as it is written, in a tuple; `MISSING` if it has none."""
    field = next(x for x in dataclasses.fields(kind) if x.name == name)
    if field.default is not dataclasses.MISSING:
        return (_written(field.default),)
    if field.default_factory is not dataclasses.MISSING:
        return (_written(field.default_factory()),)
    return dataclasses.MISSING


# ------------------------------------------------------------------------------------- reading


def read(text: str | bytes, path: str, reporter: Reporter) -> Mechanism:
    """The mechanism of a text.

    Args:
        text: What `written` made.
        path: The file, for messages and for the places of meshes.
        reporter: Raises for what the mechanism does not use, where it is strict.

    Raises:
        ParseError: It is not such a text; names the place.
    """
    try:
        data: Any = json.loads(text)
    except json.JSONDecodeError as problem:
        reason = f"this is not JSON: {problem.msg}, column {problem.colno}"
        raise ParseError(reason, file=path, line=problem.lineno) from None
    except (ValueError, RecursionError) as problem:
        raise ParseError(f"this is not JSON: {problem}", file=path) from None
    if not isinstance(data, dict) or cast("Any", data).get("format") != FORMAT:
        reason = f'this is not a mechanism: its first entry must be "format": "{FORMAT}"'
        raise ParseError(reason, file=path)
    entries = {k: x for k, x in cast("dict[str, Any]", data).items() if k != "format"}
    try:
        mech = _record(entries, Mechanism, "")
    except RecursionError:
        raise ParseError("its parts are nested too deeply", file=path) from None
    except LinkwiseError as problem:
        raise ParseError(str(problem), file=path) from problem
    for item in mech.load_report:
        reporter.note(item.element, item.effect, item.reason, item.affects)
    return dataclasses.replace(mech, load_report=LoadReport(path, mech.load_report.items))


def _read(value: Any, kind: Any, place: str) -> Any:
    """A value of a type from JSON."""
    if kind is Any:
        return value
    origin, arguments = origin_of(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _one_of(value, arguments, place)
    if origin is Literal:
        return value if value in arguments else _wrong(place, _choices(arguments), value)
    if origin is tuple:
        items = cast("list[Any]", value) if isinstance(value, list) else None
        if items is not None and len(arguments) == 2 and arguments[1] is Ellipsis:
            return tuple(_read(x, arguments[0], f"{place}[{i}]") for i, x in enumerate(items))
        if items is None or len(items) != len(arguments):
            count = "" if Ellipsis in arguments else f" of {len(arguments)}"
            return _wrong(place, f"a list{count}", value)
        pairs = zip(items, arguments, strict=True)
        return tuple(_read(x, k, f"{place}[{i}]") for i, (x, k) in enumerate(pairs))
    if kind is Grid:
        return Grid(_array(value, place))
    if kind is Hinge:
        return _hinge(value, place)
    if dataclasses.is_dataclass(kind):
        return _record(value, kind, place)
    if origin is np.ndarray:
        return _array(value, place)
    return _plain(value, kind, place)


def _one_of(value: Any, kinds: tuple[Any, ...], place: str) -> Any:
    """A value of one of several types: None, a number or a list of numbers, a part."""
    if type(None) in kinds:
        if value is None:
            return None
        kinds = tuple(x for x in kinds if x is not type(None))
    lists = [x for x in kinds if typing.get_origin(x) is tuple]
    single = [x for x in kinds if x not in lists]
    chosen = lists if lists and (isinstance(value, list) or not single) else single
    return _read(value, chosen[0], place)


def _plain(value: Any, kind: type, place: str) -> Any:
    if kind is float:
        return _number(value, place)
    fine = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    names = {str: "a text", int: "a whole number", bool: "true or false"}
    return value if fine else _wrong(place, names[kind], value)


def _number(value: Any, place: str) -> float:
    if isinstance(value, str) and value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _wrong(place, "a number", value)
    try:
        number = float(value)
    except OverflowError:
        return _wrong(place, "a number", value)
    return number if math.isfinite(number) else _wrong(place, "a number", value)


def _array(value: Any, place: str) -> Array:
    """Nested lists of numbers, of equal length."""

    def numbers(x: Any, place: str) -> Any:
        if isinstance(x, list):
            items = enumerate(cast("list[Any]", x))
            return [numbers(y, f"{place}[{i}]") for i, y in items]
        return _number(x, place)

    try:
        return np.array(numbers(value, place), dtype=np.float64)
    except ValueError:
        return _wrong(place, "lists of equal length", value)


def _hinge(value: Any, place: str) -> Any:
    entries = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    kind = entries.get("kind")
    if not isinstance(kind, str):
        return _wrong(place, 'a hinge, like {"kind": "Pin", "axis": [0, 0, 1]}', value)
    if kind not in KINDS:
        raise unknown_name("kind of hinge", kind, KINDS, owner=place)
    return _record({k: x for k, x in entries.items() if k != "kind"}, KINDS[kind], place)


def _record(value: Any, kind: Any, place: str) -> Any:
    """A part from the entries of an object."""
    if not isinstance(value, dict):
        return _wrong(place, f"an object with the fields of {kind.__name__}", value)
    fields = _fields(kind)
    entries = cast("dict[str, Any]", value)
    for name in entries:
        if name not in fields:
            raise unknown_name("entry", name, fields, owner=place or "the mechanism")
    given = {
        name: _read(x, fields[name], f"{place}.{name}" if place else name)
        for name, x in entries.items()
    }
    missing = [
        name for name in fields if name not in given and _default(kind, name) is dataclasses.MISSING
    ]
    if missing:
        raise ModelError(f"{place or 'the mechanism'} has no entry {missing[0]!r}.")
    try:
        made = kind(**given)
    except LinkwiseError as problem:
        raise ModelError(f"{place}: {problem}" if place else str(problem)) from problem
    if kind is SpatialInertia or kind is Pose:
        return made
    exact = {name: x for name, x in given.items() if _is_rounding(getattr(made, name), x)}
    for name, x in exact.items():
        object.__setattr__(made, name, x)
    kept: dict[str, Any] = getattr(made, "__dict__", {})
    for name in [x for x in kept if exact and x not in fields]:  # computed from other digits
        del kept[name]
    return made


def _is_rounding(made: Any, given: Any) -> bool:
    """Whether numbers differ, and by rounding alone."""
    if not isinstance(given, float | tuple) or made == given:
        return False
    try:
        a, b = (np.asarray(x, dtype=np.float64) for x in (made, cast("Any", given)))
    except (TypeError, ValueError):  # parts, not numbers
        return False
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=ROUNDING, atol=ROUNDING))


@cache
def _fields(kind: Any) -> Mapping[str, Any]:
    """The type of each field."""
    hints = typing.get_type_hints(kind)
    return {x.name: hints[x.name] for x in dataclasses.fields(kind) if x.init}


def _wrong(place: str, allowed: str, value: Any) -> Any:
    shown = json.dumps(value, ensure_ascii=False)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    raise ModelError(f"{place} is {shown}; it must be {allowed}.")


def _choices(names: tuple[Any, ...]) -> str:
    return " or ".join(json.dumps(x) for x in names)
