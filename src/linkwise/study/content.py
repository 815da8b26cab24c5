"""What a study is made of, as JSON: equal content, equal text; and the differences of two texts."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import inspect
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from types import CodeType, FunctionType
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


def _function(function: Callable[..., Any], seen: set[int] | None = None) -> dict[str, Any]:
    """Name and checksum of a function: its source text, defaults, and what it uses.

    That is numbers, and functions and classes of the user, which are followed; those of installed
    packages are not.
    """
    seen = set() if seen is None else seen
    if isinstance(function, functools.partial):
        bound = cast("functools.partial[Any]", function)
        given = {"args": bound.args, "keywords": bound.keywords}
        return _function(bound.func, seen) | described(given)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    parts: list[Any] = [name]
    code: Any = getattr(function, "__code__", None)
    owner: Any = getattr(function, "__self__", None)  # of a bound method
    if owner is None and code is None and not isinstance(function, type):
        owner = function  # an object that can be called
    if owner is not None and not inspect.ismodule(owner):
        parts.append(described(getattr(owner, "__dict__", type(owner).__qualname__)))
        if _is_own(type(owner)):
            parts.append(_used(type(owner), seen))
    parts.append(_source(type(function) if owner is function else function))
    if code is not None:
        parts.append(described([getattr(function, "__defaults__", None),
                                getattr(function, "__kwdefaults__", None)]))  # fmt: skip
        plain, followed = dict[str, Any](), dict[str, Any]()
        for key, x in _names(function).items():
            if _is_plain(x):
                plain[key] = x
            elif _is_own(x) or _is_own(type(x)):
                followed[key] = x
        parts.append(described(plain))
        if followed:
            parts.append({k: _used(x, seen) for k, x in sorted(followed.items())})
    text = json.dumps(parts, sort_keys=True)
    return {"function": name, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def _used(thing: Any, seen: set[int]) -> Any:
    """The content of a function, class or object that a function uses; each is followed once."""
    if id(thing) in seen:
        return getattr(thing, "__qualname__", type(thing).__qualname__)
    seen.add(id(thing))
    if isinstance(thing, FunctionType):
        return _function(thing, seen)
    if not isinstance(thing, type):
        numbers = {k: x for k, x in getattr(thing, "__dict__", {}).items() if _is_plain(x)}
        return [_used(type(thing), seen), described(numbers)]
    bases = [_used(x, seen) for x in thing.__bases__ if _is_own(x)]
    inner = cast("Mapping[str, Any]", vars(thing)).items()
    methods = {k: _used(x, seen) for k, x in inner if isinstance(x, FunctionType)}
    return [_source(thing), bases, methods]


def _source(thing: Any) -> str | None:
    """The source text of a function or class; where there is none, the checksum of its code."""
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):
        code = getattr(thing, "__code__", None)
        return None if code is None else hashlib.sha256(repr(_compiled(code)).encode()).hexdigest()


def _compiled(code: CodeType) -> tuple[Any, ...]:
    """The instructions of a function with their numbers and names."""
    numbers = [_compiled(x) if isinstance(x, CodeType) else x for x in code.co_consts]
    return code.co_code, numbers, code.co_names


def _names(function: Any) -> dict[str, Any]:
    """What the names in a function mean that are not its own, those of modules of the user too."""
    code: CodeType = function.__code__
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    values = dict[str, Any]()
    for name, cell in cells:
        with contextlib.suppress(ValueError):  # a name without a value yet
            values[name] = cell.cell_contents
    used = _words(code)
    values |= {x: function.__globals__[x] for x in used if x in function.__globals__}
    for name, x in list(values.items()):
        if inspect.ismodule(x) and _is_of_user(x.__name__):
            values |= {f"{name}.{y}": getattr(x, y) for y in used if hasattr(x, y)}
    return values


def _words(code: CodeType) -> list[str]:
    """Names in a function and the functions in it."""
    inner = [y for x in code.co_consts if isinstance(x, CodeType) for y in _words(x)]
    return sorted({*code.co_names, *inner})


def _is_own(x: Any) -> bool:
    """Whether something is a function or a class of the user."""
    return isinstance(x, FunctionType | type) and _is_of_user(x.__module__ or "")


def _is_of_user(module: str) -> bool:
    """Whether a module is neither Python's nor Linkwise's nor installed."""
    root = module.partition(".")[0]
    if root == "linkwise" or root in sys.stdlib_module_names:
        return False
    file: str = getattr(sys.modules.get(module), "__file__", None) or ""
    return not {"site-packages", "dist-packages"} & set(Path(file).parts)


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
