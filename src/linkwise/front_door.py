"""Argument checks of public functions: an error that names the wrong argument.

A valid call pays next to nothing: the function runs, and only if it fails with an error other than
one of Linkwise are its arguments compared with the declared types. A wrong argument is named; if
all fit, the error is passed on. Flags, which would be accepted silently (`passive="no"` is true),
are checked before the call if they are given by keyword.
"""

from __future__ import annotations

import builtins
import collections.abc
import inspect
import math
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sized
from functools import cache, wraps
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

import numpy as np

from linkwise import arguments
from linkwise.documented import STANDARD, documented
from linkwise.errors import LinkwiseError, ModelError, ShapeError

F = TypeVar("F", bound=Callable[..., Any])

OF_CODE = (AttributeError, TypeError, ValueError, LookupError, ArithmeticError, AssertionError)
"""Errors that wrong arguments cause inside functions."""

FUNCTION: Any = get_origin(Callable[[], None])

Masked: Any = np.ma.MaskedArray

KEPT = "__checked__"
"""Mark of a function that has been through `checked`."""


Sizes = Mapping[str, int | str | None]
"""Row length of arguments by name: a number, or the name of an attribute of the object; None for a
single number."""


def open_front_door(
    namespace: MutableMapping[str, Any],
    names: Iterable[str] | None = None,
    *,
    records: Collection[str] = (),
    careful: Collection[str] = (),
    sizes: Sizes | None = None,
    texts: Mapping[str, str] = STANDARD,
) -> None:
    """Check the calls of all public functions and classes of a module.

    Docstrings of functions are completed by the arguments that many share: see `documented`.

    Args:
        namespace: The module's globals.
        names: Its public names; default: all without a leading underscore.
        records: Classes that users fill in: all arguments of their constructors are checked, so
            that no wrong type, NaN or mask is stored.
        careful: Functions, and methods as "Class.method", that take a microsecond and check their
            arguments themselves.
        sizes: Arguments of methods that are rows of numbers; they are checked before the call.
        texts: What arguments mean that functions do not document themselves.
    """
    for name in list(namespace) if names is None else names:
        value = namespace.get(name)
        if name.startswith("_") or value is open_front_door:
            continue
        if inspect.isclass(value):
            check_class(value, record=name in records, sizes=sizes, careful=careful)
        elif inspect.isfunction(value) and value.__module__.startswith("linkwise"):
            documented(value, texts)
            namespace[name] = value if name in careful else checked(value)
    if names is None:
        public = sorted(name for name, value in namespace.items() if _is_public(name, value))
        namespace["__all__"] = public
    if "__all__" in namespace:
        namespace["__dir__"] = namespace["__all__"].copy


def _is_public(name: str, value: object) -> bool:
    hidden = name.startswith("_") or isinstance(value, types.ModuleType)
    return not hidden and value is not open_front_door


def check_class(
    cls: Any, *, record: bool = False, sizes: Sizes | None = None, careful: Collection[str] = ()
) -> None:
    """Check the calls of a class: its constructor and its public methods, also inherited ones."""
    if KEPT in vars(cls) or issubclass(cls, BaseException):
        return
    for base in cls.__bases__:
        check_class(base, sizes=sizes)
    if not cls.__module__.startswith("linkwise") or getattr(cls, "_is_protocol", False):
        return
    members = cast("dict[str, Any]", dict(cast(Any, vars(cls))))
    for name, member in members.items():
        if (name != "__init__" and name.startswith("_")) or f"{cls.__name__}.{name}" in careful:
            continue
        if isinstance(member, staticmethod | classmethod):
            one = cast(Any, member)
            setattr(cls, name, type(one)(checked(one.__func__)))
        elif inspect.isfunction(member):
            first = name == "__init__"
            around = sized(member, {} if first or sizes is None else sizes)
            setattr(cls, name, checked(around, keeps=record and first))
    setattr(cls, KEPT, True)


def sized(method: F, sizes: Sizes) -> F:
    """The method with checks of those arguments that are rows of numbers."""
    named = [
        (place, name, sizes[name])
        for place, name in enumerate(_signature(method).parameters)
        if name in sizes
    ]
    if not named:
        return method

    @wraps(method)
    def call(*args: Any, **options: Any) -> Any:
        given = list(args)
        for place, name, size in named:
            if place < len(given):
                given[place] = _row(given[0], given[place], name, size)
            elif name in options:
                options[name] = _row(given[0], options[name], name, size)
        try:
            return method(*given, **options)
        except (ValueError, IndexError):
            rows: list[Any] = [given[i] if i < len(given) else options.get(x) for i, x, _ in named]
            shapes = [np.shape(x) for x in rows if np.ndim(x)]
            if not _broadcast([shape[:-1] for shape in shapes]):
                raise ShapeError(
                    f"the stacks given to {method.__qualname__} cannot be combined: their shapes "
                    f"are {', '.join(map(str, shapes))}."
                ) from None
            raise

    return cast(F, call)


def _row(owner: Any, value: Any, name: str, size: int | str | None) -> Any:
    if size is None:
        return arguments.number(value, name)
    return arguments.rows(value, getattr(owner, size) if isinstance(size, str) else size, name)


def _broadcast(shapes: list[tuple[int, ...]]) -> bool:
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


def checked(function: F, *, keeps: bool = False) -> F:
    """The function with checks that name a wrong argument.

    Args:
        function: Any function with annotations.
        keeps: Check all arguments, not only after a failure, and refuse NaN.
    """
    if hasattr(function, KEPT):
        return function

    # Results may have masked entries; a generator fails outside this call.
    computes = keeps or function.__name__ != "__init__"
    yields = inspect.isgeneratorfunction(function)

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        for value in args if computes else ():
            if isinstance(value, Masked):
                arguments.floats(value, f"an argument of {function.__name__}")
        if yields:
            _check_kinds(function, args, options)
        elif options:
            _check_options(function, options, masks=not computes)
        try:
            result = function(*args, **options)
            if keeps:  # after its own, more specific checks
                _refuse_nan(function, _check_kinds(function, args, options))
            return result
        except LinkwiseError:
            raise
        except (*OF_CODE, RuntimeError) as error:
            _name_tensor(function, args, options, error)
            if isinstance(error, OF_CODE):
                _name_argument(function, args, options, error)
            raise

    setattr(call, KEPT, True)
    # The same function in its module and in the packages around it.
    places = function.__module__.split(".")
    for depth in range(1, len(places) + 1):
        module = sys.modules.get(".".join(places[:depth]))
        if vars(module).get(function.__name__) is function:
            setattr(module, function.__name__, call)
    return cast(F, call)


# -------------------------------------------------------------------------------- before a call


def _check_options(
    function: Callable[..., Any], options: Mapping[str, Any], *, masks: bool
) -> None:
    for name, value in options.items():
        if isinstance(value, Masked) and not masks:
            arguments.floats(value, name)
    for name, hint in _choices(function).items():
        if name in options and not fits(options[name], hint):
            raise ModelError(_sentence(function, name, hint, options[name]))


@cache
def _choices(function: Callable[..., Any]) -> dict[str, Any]:
    """The parameters that are bool, or bool and None."""
    return {
        name: hint
        for name, hint in hints(function).items()
        if bool in _parts(hint) and all(x in (bool, types.NoneType) for x in _parts(hint))
    }


NUMBERS: Any = (float, np.floating, np.ndarray, list, tuple)


def _refuse_nan(function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Raise for a number or an array that is NaN, or has masked entries."""
    for name, value in given.items():
        if isinstance(value, NUMBERS):
            try:
                array = np.asarray(arguments.floats(value, name))
            except ShapeError:
                if isinstance(value, Masked):
                    raise
                continue  # names or objects, which the function checks
            if np.isnan(array).any():
                owner = function.__qualname__.removesuffix(".__init__")
                entry = np.argwhere(np.isnan(array))[0].tolist()
                where = f"entry {entry} of {array.shape} is" if entry else "it is"
                raise ModelError(f"{name} of {owner} must not be NaN; {where}.")


# ------------------------------------------------------------------------------ after a failure


def _name_tensor(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    options: Mapping[str, Any],
    error: Exception,
) -> None:
    """Raise for the first argument that Torch differentiates, where NumPy could not read it."""
    if "torch" not in sys.modules or type(error).__module__.startswith("torch"):
        return
    try:
        given = _signature(function).bind(*args, **options).arguments
    except TypeError:
        return  # Python reports a wrong signature
    for name, value in given.items():
        inside: Any = cast("Any", value).values() if isinstance(value, dict) else value
        many = isinstance(value, dict | list | tuple)
        if any(map(arguments.is_tracked, inside if many else (inside,))):
            raise arguments.gradient_is_lost(f"{name} of {function.__name__}") from error


def _name_argument(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    options: Mapping[str, Any],
    error: Exception,
) -> None:
    """Raise for the first argument of a wrong type or shape."""
    given, declared = _check_kinds(function, args, options, error), hints(function)
    mech = given.get("mech", given.get("self"))
    for name, value in given.items():
        hint = declared.get(name)
        if value is None or hint is None or not (_is_array(hint) or float in _parts(hint)):
            continue
        if not _passes(arguments.floats, value):
            continue  # traced symbols, or an allowed string
        if name == "q" and hasattr(mech, "check_q"):
            cast(Any, mech).check_q(value)
        elif name in PER_VELOCITY and hasattr(mech, "check_v"):
            cast(Any, mech).check_v(value, name)
        array = arguments.floats(value, name)
        if not np.isfinite(array).all():
            raise ModelError(f"{name} of {function.__name__} is not finite.") from error
        sizes = np.abs(array[array != 0.0])
        extreme = sizes[(sizes > TOO_LARGE) | (sizes < 1.0 / TOO_LARGE)]
        if extreme.size and isinstance(error, ArithmeticError | np.linalg.LinAlgError):
            raise ModelError(
                f"{name} of {function.__name__} has entries of {extreme[0]:.3g}: the result "
                "is not finite."
            ) from error
        if array.size == 0 and not isinstance(error, AssertionError):
            raise ShapeError(
                f"{name} of {function.__name__} has shape {array.shape}: it is empty."
            ) from error


def _check_kinds(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    options: Mapping[str, Any],
    error: Exception | None = None,
) -> dict[str, Any]:
    """The arguments by name; raises for the first of a wrong type."""
    try:
        given = _signature(function).bind(*args, **options).arguments
    except TypeError:
        return {}  # Python reports a wrong signature
    declared = hints(function)
    for name, value in given.items():
        hint = declared.get(name)
        if hint is not None and not fits(value, hint):
            raise ModelError(_sentence(function, name, hint, value)) from error
    return given


TOO_LARGE = 1e100
"""Squares of such numbers may be finite; products of four are not."""

PER_VELOCITY = ("v", "vdot", "tau", "nu", "eps", "v_d", "vdot_d", "tau0")
"""Names of arguments with one entry per velocity."""


def _is_array(hint: Any) -> bool:
    return any(arguments.origin_of(part) is np.ndarray for part in _parts(hint))


def _sentence(function: Callable[..., Any], name: str, hint: Any, value: object) -> str:
    owner = function.__qualname__.removesuffix(".__init__")
    return f"{name} of {owner} must be {in_words(hint)}; found {arguments.shown(value)}."


# --------------------------------------------------------------------------- what is declared


_signature = cache(inspect.signature)


@cache
def hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The declared type of each parameter; one that cannot be resolved is left out."""
    kinds = dict[str, Any]()
    for name, parameter in _signature(function).parameters.items():
        text = parameter.annotation
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        try:
            hint = eval(text, {}, _Names(function)) if isinstance(text, str) else text
        except Exception:  # a name that only the type checker imports
            continue
        if hint is not inspect.Parameter.empty and hint is not Any:
            kinds[name] = hint
    return kinds


class _Names(dict[str, Any]):
    """Names of annotations: of the function's module, of typing, and public ones of Linkwise."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def __missing__(self, name: str) -> Any:
        inner = getattr(self.function, "__wrapped__", self.function)
        for place in (inner.__globals__, vars(typing), vars(collections.abc)):
            if name in place:
                return place[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        # Names imported for the type checker only are mostly public.
        public = getattr(sys.modules["linkwise"], name, None)
        if public is None:
            raise KeyError(name)
        return public


def _parts(hint: Any) -> tuple[Any, ...]:
    """The members of a union."""
    if hint is None:
        return (types.NoneType,)
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(part for one in get_args(hint) for part in _parts(one))
    return (hint,)


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a declared type, as far as can be checked."""
    return any(_fits(value, part) for part in _parts(hint))


def _fits(value: Any, hint: Any) -> bool:
    origin, inner = arguments.origin_of(hint), get_args(hint)
    if hint is Any:
        return True
    if hint is types.NoneType:
        return value is None
    if origin is Literal:
        return isinstance(value, type(inner[0])) and value in inner
    if hint is bool:
        return value is True or value is False or type(value) is np.bool_
    if hint is int:
        return _passes(arguments.count, value, least=-arguments.LARGEST)
    if hint is float:
        giant = isinstance(value, int) and abs(value) > arguments.LARGEST
        return not giant and (_passes(arguments.number, value, finite=False) or _is_nan(value))
    if origin is np.ndarray:
        return _passes(arguments.floats, value) or is_traced(value)
    if hint is str:
        return isinstance(value, str)
    if origin in (collections.abc.Mapping, dict):
        return isinstance(value, Mapping) and all(
            fits(k, inner[0]) and fits(x, inner[1])
            for k, x in cast("Mapping[Any, Any]", value).items()
        )
    if origin is tuple and len(inner) > 1 and inner[-1] is not Ellipsis:
        items = list(cast("Iterable[Any]", value)) if _several(value) else []
        return len(items) == len(inner) and all(map(fits, items, inner))
    if inspect.isclass(origin) and issubclass(origin, collections.abc.Iterable):
        if not _several(value):
            return False
        each = cast("Iterable[Any]", value) if isinstance(value, Sized) else ()
        return all(fits(x, part) for part in inner[:1] for x in each)
    if origin is FUNCTION:
        return callable(value)
    kind = origin or hint
    if not inspect.isclass(kind) or getattr(kind, "_is_protocol", False):
        return True
    return isinstance(value, kind)


def is_traced(value: Any) -> bool:
    """Whether a value is an array of traced symbols."""
    return isinstance(value, np.ndarray) and cast(Any, value).dtype.kind == "O"


def _several(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return cast(Any, value).ndim > 0
    return isinstance(value, collections.abc.Iterable) and not isinstance(value, str | bytes)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and math.isnan(cast(float, value))


def _passes(check: Callable[..., object], value: object, **bounds: Any) -> bool:
    try:
        check(value, "", **bounds)
    except LinkwiseError:
        return False
    return True


# ------------------------------------------------------------------------------------- in words


def in_words(hint: Any) -> str:
    """A declared type in words."""
    words = list[str]()
    for part in _parts(hint):
        word = _word(part)
        if word not in words:
            words.append(word)
    if ARRAY in words:  # rows and numbers are arrays, too
        words = [w for w in words if w == ARRAY or not w.startswith(("a number", "several"))]
    return " or ".join(words)


ARRAY = "an array of real numbers"


def _word(hint: Any) -> str:
    origin, inner = arguments.origin_of(hint), get_args(hint)
    plain = {
        types.NoneType: "None",
        bool: "True or False",
        int: "a whole number",
        float: "a number",
        str: "a string",
    }
    if hint in plain:
        return plain[hint]
    if origin is Literal:
        return "one of " + ", ".join(repr(x) for x in inner)
    if origin is np.ndarray:
        return ARRAY
    if origin in (collections.abc.Mapping, dict):
        return "a dictionary"
    if origin is FUNCTION:
        return "a function"
    if inspect.isclass(origin) and issubclass(origin, collections.abc.Iterable):
        return f"several, each {in_words(inner[0])}" if inner else "several"
    name = getattr(origin or hint, "__name__", str(hint))
    article = "an" if name[0] in "AEIOU" else "a"
    advice = ", which lw.load, lw.Builder or lw.models makes" if name == "Mechanism" else ""
    return f"{article} {name}{advice}"
