"""Argument checks shared by all public functions.

Each check returns the value in the form used for computing, or raises an error that says what was
requested, what was found, what is allowed and what to do. Valid calls pay little: most functions
check here only what a kernel did not accept.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import operator
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from os import fspath
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast, get_origin

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import ModelError, RowError, ShapeError, unknown_name

Array: TypeAlias = NDArray[np.float64]
"""A float64 array. Functions of a hinge also run on arrays of dtype object (see `stack`)."""

ArrayLike: TypeAlias = Array | Sequence[float] | Sequence[Sequence[float]] | float

LARGEST = 2**53
"""Whole numbers up to this one are exact as floats."""

T = TypeVar("T")


def shown(value: object, longest: int = 60) -> str:
    """A value as printed in a message, shortened if it is long."""
    try:
        text = repr(value)
    except Exception:  # a failing repr must not hide the error
        text = f"a {type(value).__name__}"
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 3] + "..."


# ------------------------------------------------------------------------------------- arrays


def is_tracked(value: Any) -> bool:
    """Whether Torch follows what is computed with an array: it requires a gradient, say."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return False
    return bool(
        value.requires_grad
        or torch._C._are_functorch_transforms_active()
        or torch.autograd.forward_ad._current_level >= 0
        or torch.compiler.is_compiling()
    )


def untracked(value: Any) -> Any:
    """An array, or the numbers alone of a tensor that Torch differentiates."""
    return value.detach() if is_tracked(value) else value


def numbers(row: Any) -> Any:
    """The entries of a row as numbers of Python; a tensor that Torch differentiates stays."""
    return row if is_tracked(row) else row.tolist()


def gradient_is_lost(what: str) -> ShapeError:
    """The error for a tensor whose gradient a function does not follow."""
    return ShapeError(
        f"{what} is a tensor of Torch that requires a gradient, which this function does not "
        "follow. lw.convert.to_torch makes a differentiable function of any expression, formula or "
        "named quantity; x.detach() leaves the gradient out."
    )


def is_tracer(value: Any) -> bool:
    """Whether a value is the symbol of an array inside a transformation of JAX."""
    jax: Any = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.core.Tracer)


def has_no_numbers(what: str) -> ShapeError:
    """The error for a value that JAX traces."""
    return ShapeError(
        f"{what} is being traced by JAX, inside jit, vmap or grad, and has no numbers yet. "
        "lw.convert.to_jax makes a function that JAX can trace."
    )


def floats(value: Any, what: str) -> Array:
    """`value` as a float64 array of any shape; raises if it is not made of numbers."""
    if is_tracked(value):
        raise gradient_is_lost(what)
    if type(value) is not np.ndarray and (missing := _masked(value)):
        raise ShapeError(
            f"{what} is a masked array with {missing} entries masked; a missing entry has no value "
            "to compute with. Fill it (array.filled(x)), or drop the rows."
        )
    try:
        if value is not None and not np.iscomplexobj(value):  # NumPy takes None for NaN
            return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        pass
    if is_tracer(value):
        raise has_no_numbers(what)
    raise ShapeError(
        f"{what} must be made of real numbers, in rows of equal length; found {shown(value)}."
    )


def _masked(value: Any) -> int:
    """How many entries of an array, or of the arrays of a list, are masked."""
    if isinstance(value, list | tuple):
        return sum(_masked(x) for x in cast("Sequence[Any]", value) if not isinstance(x, float))
    if not isinstance(value, np.ma.MaskedArray):
        return 0
    return int(np.count_nonzero(np.ma.getmaskarray(cast(Any, value))))


def constant(value: ArrayLike, shape: tuple[int, ...], what: str) -> Array:
    """A read-only float64 copy of `value` with exactly `shape` and finite entries."""
    array = np.array(floats(value, what))
    if array.shape != shape:
        raise ShapeError(f"{what} has shape {array.shape}; it must have shape {shape}.")
    if not np.isfinite(array).all():
        raise ShapeError(f"{what} must be finite; found {array.tolist()}.")
    array.setflags(write=False)
    return array


def unit(value: ArrayLike, what: str) -> Array:
    """A read-only unit 3-vector along `value`; entries that are exactly 0 or ±1 stay exact."""
    axis = constant(value, (3,), what)
    length = float(np.sqrt(axis @ axis)) if float(np.abs(axis).max()) < 1e150 else math.inf
    if length == 0.0 or not np.isfinite(length):
        # Its square overflows or underflows, or it is zero: scale first and try again.
        largest = float(np.abs(axis).max())
        if largest == 0.0:
            raise ShapeError(f"{what} is the zero vector; give a direction of any other length.")
        axis = axis / largest
        length = float(np.sqrt(axis @ axis))
    # A unit vector to rounding is kept, so that it stays the same bit for bit.
    if abs(length - 1.0) >= 4e-16:
        axis = axis / length
    axis.setflags(write=False)
    return axis


def rows(
    value: Any,
    size: int | tuple[int, ...],
    what: str,
    *,
    finite: bool = True,
    stacked: bool = True,
    hint: str = "",
) -> Array:
    """An array (..., size) of numbers; symbols that formulas are traced with pass as they are.

    Args:
        value: What was given.
        size: Length of a row, or the shape of the last axes.
        what: Its name in messages.
        finite: False if infinities are allowed, as in limits.
        stacked: False if only one row is allowed.
        hint: What the numbers of a row are, for the message.
    """
    plain = type(value) is np.ndarray and cast(Any, value).dtype.kind in "fO"
    array = cast(Array, value) if plain else floats(value, what)
    last = (size,) if isinstance(size, int) else size
    if array.shape[-len(last) :] != last or (not stacked and array.shape != last):
        several = f" or ({', '.join(['...', *map(str, last)])})" if stacked else ""
        message = f"{what} has shape {array.shape}; it must have shape {last}{several}"
        raise ShapeError(f"{message}: {hint}." if hint else f"{message}.")
    if array.dtype.kind == "f":
        # The sum of squares shows in one look that all are finite; large ones are looked at again.
        square = float(np.vdot(array, array))
        if not math.isfinite(square):
            right = np.isfinite(array).all() if finite else not np.isnan(array).any()
            if not right:
                kind = "finite" if finite else "numbers"
                raise ShapeError(f"{what} must be {kind}; found {shown(array.tolist())}.")
    return array


def row(i: Any, length: int | None, what: str) -> int:
    """The number of one state of a batch.

    Args:
        i: What was given; negative ones count from the end.
        length: How many states there are; None where it is one state and no batch.
        what: What is indexed, in messages.
    """
    if length is None:
        raise RowError(f"{what} holds a single state and cannot be indexed; found [{shown(i)}].")
    try:
        return range(length)[operator.index(i)]
    except (TypeError, IndexError):
        raise RowError(
            f"{what} holds {length} states; an index is a whole number from {-length} to "
            f"{length - 1}; found {shown(i)}."
        ) from None


def places(index: Any, shape: tuple[int, ...], what: str) -> Any:
    """An index into the leading axes of a stack: whole numbers, slices and arrays of them.

    Args:
        index: What was given.
        shape: The shape of the stack; () for a single one.
        what: What is indexed, in messages.
    """
    if not shape:
        raise RowError(f"{what} is not a stack and cannot be indexed; found [{shown(index)}].")
    single = not isinstance(index, tuple)
    inner: tuple[Any, ...] = (index,) if single else cast(Any, index)
    try:
        if not any(x is Ellipsis for x in inner):  # it would reach the axes of a single entry
            np.broadcast_to(0.0, shape)[index]
            return index
    except (IndexError, TypeError, ValueError, MemoryError):
        pass
    raise RowError(f"{what} is a stack of shape {shape}; it cannot be indexed by [{shown(index)}].")


# ------------------------------------------------------------------------------------ numbers


def number(
    value: Any,
    what: str,
    *,
    least: float = -math.inf,
    above: float | None = None,
    most: float = math.inf,
    below: float | None = None,
    finite: bool = True,
) -> float:
    """A single real number within bounds.

    Args:
        value: What was given.
        what: Its name in messages, with its unit.
        least: The smallest allowed value.
        above: An exclusive lower bound.
        most: The largest allowed value.
        below: An exclusive upper bound.
        finite: False if infinities are allowed.
    """
    if type(value) is not float:
        odd = value is None or isinstance(value, str | bytes | bool)
        array = None if odd else floats(value, what)
        if array is None or array.shape not in ((), (1,)):
            raise ModelError(f"{what} is {shown(value)}; it must be a single number.")
        value = float(array.reshape(()))
    inside = least <= value <= most
    inside = inside and (above is None or value > above) and (below is None or value < below)
    if inside and (not finite or math.isfinite(value)):
        return value
    bounds = [f"at least {least:g}"] if least > -math.inf else []
    bounds += [f"more than {above:g}"] if above is not None else []
    bounds += [f"at most {most:g}"] if most < math.inf else []
    bounds += [f"less than {below:g}"] if below is not None else []
    kind = "a finite number" if finite and math.isinf(value) else "a number"
    if above == 0.0 and below is None and most == math.inf:
        kind, bounds = "a positive number", []
    raise ModelError(f"{what} is {value!r}; it must be {', '.join([kind, *bounds])}.")


def count(value: Any, what: str, *, least: int = 0, most: int = LARGEST) -> int:
    """A whole number within bounds."""
    try:
        integer = None if type(value) in (bool, np.bool_) else operator.index(value)
    except TypeError:
        integer = None
    if integer is not None and least <= integer <= most:
        return integer
    bounds = f"at least {least}" + (f", at most {most}" if most != LARGEST else "")
    raise ModelError(f"{what} is {shown(value)}; it must be a whole number, {bounds}.")


def itemsize(dtype: Any) -> int:
    """The bytes of one number, float64 or float32, given by NumPy's type or its name."""
    with contextlib.suppress(TypeError, ValueError):
        given = np.dtype(dtype)
        if dtype is not None and given in (np.dtype(np.float64), np.dtype(np.float32)):
            return given.itemsize
    raise ModelError(f"dtype is {shown(dtype)}; it must be float64 or float32.")


def generator(seed: Any, *, stream: int | None = None) -> np.random.Generator:
    """The random generator of a seed: a whole number, a generator, or None for a new one.

    Args:
        seed: What was given.
        stream: A number that gives two users of one seed different draws.
    """
    if isinstance(seed, np.random.Generator):
        return seed
    if seed is not None:
        seed = count(seed, "seed", most=2**128)
    return np.random.default_rng(seed if seed is None or stream is None else [seed, stream])


# ------------------------------------------------------------------- names, options and paths


def name(value: Any, what: str) -> str:
    """A name: a string that is not empty."""
    if isinstance(value, str) and value:
        return value
    its_name = getattr(value, "name", None)
    hint = f" The name of this one is {its_name!r}." if isinstance(its_name, str) else ""
    raise ModelError(f"{what} must be a name (a string); found {shown(value)}.{hint}")


def names(value: Any, what: str) -> tuple[str, ...]:
    """One name or several, as a tuple."""
    if isinstance(value, str):
        return (name(value, what),)
    try:
        each = tuple(cast("Iterable[object]", value))
    except TypeError:
        each = (cast(object, value),)
    return tuple(name(one, what) for one in each)


def origin_of(hint: Any) -> Any:
    """The class of a generic type, such as `np.ndarray` of an array of any kind of numbers."""
    origin = get_origin(hint)
    while hasattr(origin, "__value__"):  # since NumPy 2.5, NDArray is an alias with a name
        origin = get_origin(origin.__value__)
    return origin


def option(value: Any, allowed: Collection[str], what: str) -> str:
    """One of a few strings."""
    if isinstance(value, str) and value in allowed:
        return value
    if isinstance(value, str):
        raise unknown_name(what, value, allowed, owner="the options")
    words = ", ".join(repr(word) for word in allowed)
    raise ModelError(f"{what} must be one of {words}; found {shown(value)}.")


def path(value: Any, what: str) -> Path:
    """A file's path: a string or a `Path`."""
    text = value if isinstance(value, str) else ""
    if hasattr(value, "__fspath__"):
        text = str(fspath(value))
    if text and "\0" not in text:
        return Path(text)
    raise ModelError(
        f"{what} must be the path of a file (a string or a Path); found {shown(value)}."
    )


# ------------------------------------------------------------------------------------ objects


def is_a(kind: type[T] | tuple[type[T], ...], value: object, what: str, advice: str = "") -> T:
    """The value itself; raises unless it is of a kind."""
    if isinstance(value, kind):
        return value
    kinds = kind if isinstance(kind, tuple) else (kind,)
    needed = " or ".join(one.__name__ for one in kinds)
    article = "an" if needed[0] in "AEIOUaeiou" else "a"
    hint = f" {advice}" if advice else ""
    raise ModelError(f"{what} must be {article} {needed}; found {shown(value)}.{hint}")


def all_are(kind: type[T] | tuple[type[T], ...], values: Any, what: str) -> tuple[T, ...]:
    """Several objects of one kind, as a tuple."""
    if isinstance(values, kind):
        raise ModelError(f"{what} must be a list; found a single one.")
    try:
        each = () if isinstance(values, str) else tuple(cast("Iterable[object]", values))
    except TypeError:
        each = (cast(object, values),)
    if isinstance(values, str):
        each = (cast(object, values),)
    return tuple(is_a(kind, one, f"each of {what}") for one in each)


def mapping(value: Any, what: str, example: str) -> Mapping[Any, Any]:
    """A dictionary."""
    if isinstance(value, Mapping):
        return cast("Mapping[Any, Any]", value)
    raise ModelError(f"{what} must be a dictionary, like {example}; found {shown(value)}.")


def function(value: Any, what: str) -> Callable[..., Any]:
    """Something that can be called."""
    if callable(value):
        return value
    raise ModelError(f"{what} must be a function; found {shown(value)}.")


def check_arguments(function: Callable[..., Any], what: str, names: str) -> None:
    """Refuse a function that cannot be called with these arguments.

    Args:
        function: What was given.
        what: Its name in messages.
        names: Its arguments, in order, as "t, q, v".
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions have none
        return
    try:
        signature.bind(*names.split(", "))
    except TypeError:
        raise ModelError(
            f"{what} is a function of {signature}; it is called with ({names}), so write it as "
            f"lambda {names}: ..."
        ) from None


def flag(value: Any, what: str) -> bool:
    """True or False."""
    if value is True or value is False or type(value) is np.bool_:
        return bool(value)
    raise ModelError(f"{what} must be True or False; found {shown(value)}.")
