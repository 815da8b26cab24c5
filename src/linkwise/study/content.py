"""What a study is made of, as JSON: equal content, equal text; and the differences of two texts."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, cast

import numpy as np

from linkwise.codegen.cpu.digest import UnknownContentError, digest
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.planned import Planner
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose
from linkwise.study.variable import Variable, extra
from linkwise.tasks.law import ControlLaw

SHORT = 24
"""Arrays up to this size are written out; of larger ones the checksum counts."""


def described(thing: Any) -> Any:
    """Content as JSON: numbers, text, lists and dictionaries; checksums of what is long."""
    if thing is None or isinstance(thing, bool | int | str):
        return thing
    if isinstance(thing, float | np.floating):
        value = float(cast("Any", thing))
        return value if math.isfinite(value) else repr(value)
    if isinstance(thing, np.integer | np.bool_):
        return cast("Any", thing).item()
    if isinstance(thing, Mechanism):
        return {"mechanism": thing.name, "digest": mechanism_digest(thing)}
    if isinstance(thing, ControlLaw):
        expressions = {name: str(x) for name, x in thing.expression.items()}
        tasks = [described(x) for x in thing.tasks]
        return {"law": expressions, "tasks": tasks, "inputs": described(thing.inputs)}
    if isinstance(thing, Planner):
        return described(thing.description)
    if isinstance(thing, Variable):
        return thing.text
    if isinstance(thing, Pose):
        return {"rot": described(np.asarray(thing.rot)), "p": described(np.asarray(thing.p))}
    if isinstance(thing, np.ndarray):
        return _array(cast("Array", thing))
    if isinstance(thing, Mapping):
        pairs = cast("Mapping[Any, Any]", thing).items()
        return {str(k): described(x) for k, x in pairs}
    if isinstance(thing, Sequence | Set) and not isinstance(thing, bytes):
        return [described(x) for x in cast("Sequence[Any]", thing)]
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        parts = {f.name: getattr(thing, f.name) for f in dataclasses.fields(thing)}
        public = {name: x for name, x in parts.items() if not name.startswith("_")}
        return {"kind": type(thing).__name__} | {k: described(x) for k, x in public.items()}
    if callable(thing):
        return _function(thing)
    pickled = extra("cloudpickle", "cloudpickle", "a study").dumps(thing)
    return {"kind": type(thing).__name__, "sha256": hashlib.sha256(pickled).hexdigest()}


def mechanism_digest(mech: Mechanism) -> str:
    """A fingerprint of a mechanism with everything that acts on it."""
    try:
        return digest(mech, tuple(x.geometry for x in (*mech.bodies, *mech.nodes)))
    except UnknownContentError:  # a hinge with its own functions
        return hashlib.sha256(
            extra("cloudpickle", "cloudpickle", "a study").dumps(mech)
        ).hexdigest()


def fingerprint(description: Any) -> str:
    """The checksum of a description."""
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()


def _array(array: Array) -> Any:
    if array.size <= SHORT:
        return described(array.tolist())
    shape = list(array.shape)
    return {"shape": shape, "sha256": hashlib.sha256(array.tobytes()).hexdigest()}


def _function(function: Callable[..., Any]) -> dict[str, Any]:
    """Name and checksum of a function: its source text, defaults, and the numbers that it uses.

    Other functions that it calls are not followed.
    """
    if isinstance(function, functools.partial):
        bound = cast("functools.partial[Any]", function)
        given = {"args": bound.args, "keywords": bound.keywords}
        return _function(bound.func) | described(given)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    parts: list[Any] = [name]
    code: Any = getattr(function, "__code__", None)
    owner: Any = getattr(function, "__self__", None)  # of a bound method
    if owner is None and code is None and not isinstance(function, type):
        owner = function  # an object that can be called
    if owner is not None and not inspect.ismodule(owner):
        parts.append(described(getattr(owner, "__dict__", type(owner).__qualname__)))
    try:
        parts.append(inspect.getsource(type(function) if owner is function else function))
    except (OSError, TypeError):
        parts.append(None if code is None else hashlib.sha256(code.co_code).hexdigest())
    if code is not None:
        parts.append(described([getattr(function, "__defaults__", None),
                                getattr(function, "__kwdefaults__", None)]))  # fmt: skip
        used: dict[str, Any] = dict(inspect.getclosurevars(function).nonlocals)
        used |= inspect.getclosurevars(function).globals
        simple = {k: x for k, x in used.items() if _is_plain(x)}
        parts.append(described(simple))
    text = json.dumps(parts, sort_keys=True)
    return {"function": name, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def _is_plain(x: Any) -> bool:
    if isinstance(x, list | tuple):
        return all(_is_plain(y) for y in cast("Sequence[Any]", x))
    kinds = bool | int | float | str | np.ndarray | np.generic | Mechanism | Pose | ControlLaw
    return x is None or isinstance(x, kinds)


def differences(old: Any, new: Any, place: str = "") -> Iterator[str]:
    """Where two descriptions differ, as lines "vary.mass: uniform(0.0, 1.0), now ..."."""
    if isinstance(old, dict) and isinstance(new, dict):
        one, two = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
        for key in dict.fromkeys((*one, *two)):
            inner = f"{place}.{key}" if place else key
            if key not in one:
                yield f"{inner}: not there before, now {_brief(two[key])}"
            elif key not in two:
                yield f"{inner}: {_brief(one[key])} before, now not there"
            else:
                yield from differences(one[key], two[key], inner)
    elif old != new:
        yield f"{place}: {_brief(old)} before, now {_brief(new)}"


def _brief(x: Any) -> str:
    text = json.dumps(x, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:97]}..."
