"""Calls public functions with nonsense for one argument at a time, and judges what comes back."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import inspect
import io
import signal
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

import numpy as np

import linkwise as lw
import linkwise_ledger as ledger
from tests.front_door import objects, samples

SECONDS = 20
"""After this time a call counts as hanging."""


@cache
def still() -> lw.Mechanism:
    """A mechanism without degrees of freedom."""
    part = lw.SpatialInertia.solid_box(1.0, (1, 1, 1))
    return lw.Builder("still").body("rock", "world", lw.hinges.Locked(), inertia=part).build()


def public() -> dict[str, Any]:
    """Every public function and class by name; one that has two names is listed once."""
    result, seen = dict[str, Any](), set[int]()
    places = [("", lw), *(("", getattr(lw, name)) for name in samples.FLAT), ("ledger.", ledger)]
    places += [(f"{name}.", getattr(lw, name)) for name in samples.NAMESPACES]
    for prefix, place in places:
        for name in place.__all__:
            value = getattr(place, name)
            usable = (
                inspect.isfunction(value)
                or hasattr(value, "cache_info")
                or (inspect.isclass(value) and not issubclass(value, BaseException))
            )
            if usable and id(value) not in seen:
                seen.add(id(value))
                result[prefix + name] = value
    return result


@cache
def walked() -> tuple[str, ...]:
    """The names of all that is walked: functions, constructors, and methods of public objects."""
    functions = {name for name in set(public()) & set(samples.SAMPLES) if possible(name)}
    owners = filter(possible, objects.OBJECTS)
    every = {name for owner in owners for name, _ in objects.methods(owner)}
    return tuple(sorted(functions | (every - set(objects.LEFT_OUT))))


@cache
def installed(module: str) -> bool:
    """Whether an extra, or another library, is there."""
    return importlib.util.find_spec(module) is not None


def possible(name: str) -> bool:
    """Whether what a name needs is installed."""
    return all(installed(module) for start, module in NEEDS.items() if name.startswith(start))


NEEDS = {
    "plot.": "matplotlib",
    "view": "viser",
    "convert.mujoco": "mujoco",
    "convert.Layout": "mujoco",
    "convert.to_sympy": "sympy",
    "convert.Symbolic": "sympy",
    "convert.to_casadi": "casadi",
    "nonlinear_program": "casadi",
    "NonlinearProgram": "casadi",
    "convert.to_jax": "jax",
    "convert.to_torch": "torch",
    "convert.TorchFunction": "torch",
    "convert.pinocchio": "pinocchio",
    "convert.drake": "pydrake",
}
"""What has to be installed for names that begin so."""


def called(name: str) -> tuple[Any, samples.Call]:
    """A function or a bound method by its name, and its right arguments."""
    if name in samples.SAMPLES:
        return public()[name], samples.SAMPLES[name]()
    owner = name.rpartition(".")[0]
    bound = dict(objects.methods(owner))[name]
    return bound, objects.sample(name, bound) or samples.call()


class Anything:
    """An object that is nothing in particular."""


def nonsense(value: Any) -> Iterator[tuple[str, Any]]:
    """What is given instead of a right value, with a word for it."""
    yield "None", None
    yield "a word", "nonsense"
    yield "an empty word", ""
    yield "an object", Anything()
    yield "a negative number", -1.0
    yield "zero", 0
    yield "NaN", np.nan
    yield "infinity", np.inf
    yield "a fraction", 2.5
    yield "a giant", 10**30
    yield "an empty list", []
    yield "an empty dictionary", {}
    yield "a strange dictionary", {"nowhere": "nothing"}
    yield "names", ["nowhere", "nobody"]
    yield "numbers", [1.0, 2.0, 3.0, 4.0, 5.0]
    yield "ragged rows", [[1.0], [1.0, 2.0]]
    yield "four axes", np.zeros((2, 3, 1, 2))
    yield "words", np.array(["a", "b"])
    yield "complex numbers", np.array([1j, 2.0])
    yield "bytes", b"nonsense"
    yield "a function", len
    yield "a class", dict
    if isinstance(value, lw.Mechanism):
        yield "another mechanism", still()
        yield "no bodies", lw.Builder("empty").build()
    elif isinstance(value, np.ndarray | float | int | tuple | list) and not isinstance(value, bool):
        try:
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            return
        yield "NaN in it", np.full_like(array, np.nan)
        if not array.size:
            return
        yield "masked", np.ma.masked_array(array, mask=np.ones(array.shape, bool))
        yield "huge", np.full_like(array, 1e300)
        yield "tiny", np.full_like(array, 1e-300)
        yield "one longer", np.concatenate([array.ravel(), [0.0]])
        yield "a batch of none", np.zeros((0, *array.shape))
        yield "a batch of two", np.stack([array, array])
        yield "a batch of masked", np.ma.masked_array(np.stack([array] * 2), mask=True)


@dataclass(frozen=True)
class Outcome:
    """What one call did: "error", "signature", "result", or a failure in words."""

    name: str
    parameter: str
    given: str
    kind: str
    text: str = ""

    @property
    def fine(self) -> bool:
        return self.kind in ("error", "signature", "result")

    def __str__(self) -> str:
        return f"{self.name}({self.parameter} = {self.given}): {self.kind} {self.text}"


class Hangs(BaseException):
    """A call that does not end."""


def _ring(*_: Any) -> None:
    raise Hangs


def walk(name: str, *, part: int = 1, chosen: int = 0) -> Iterator[Outcome]:
    """The right call, and calls with one argument that is wrong: one in `part` of them."""
    function, (args, options) = called(name)
    signature = inspect.signature(function)
    right = dict(signature.bind(*args, **options).arguments)
    yield judged(name, "", "all right", function, right, signature)
    for i, (parameter, word, wrong) in enumerate(cases(right, signature)):
        if i % part == chosen:
            yield judged(name, parameter, word, function, {**right, parameter: wrong}, signature)


def cases(right: dict[str, Any], signature: inspect.Signature) -> Iterator[tuple[str, str, Any]]:
    """Parameter, word and value of each wrong argument, also of options that are left out."""
    for parameter, declared in signature.parameters.items():
        if declared.kind in (declared.VAR_KEYWORD, declared.VAR_POSITIONAL):
            continue
        for word, wrong in nonsense(right.get(parameter)):
            if word in ("a function", "a class") and parameter in CALLBACKS:
                continue  # it is called, and fails in its own words
            yield parameter, word, wrong


def judged(
    name: str,
    parameter: str,
    given: str,
    function: Any,
    arguments: dict[str, Any],
    signature: inspect.Signature,
) -> Outcome:
    """One call and what came of it."""
    bound = inspect.BoundArguments(signature, dict(arguments))
    said = [name, parameter, given]
    old = signal.signal(signal.SIGALRM, _ring)
    signal.alarm(SECONDS)
    try:
        with (
            warnings.catch_warnings(record=True) as warned,
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.chdir(samples.folder()),
        ):
            warnings.simplefilter("always")
            result = finished(function(*bound.args, **bound.kwargs))
    except lw.LinkwiseError as error:
        text = str(error)
        return Outcome(*said, "error" if len(text) > 15 else "says too little", text)
    except Hangs:
        return Outcome(*said, "hangs")
    except Exception as error:  # whatever it is, it is what is looked for
        return Outcome(*said, type(error).__name__, " ".join(str(error).split())[:120])
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)
    means = f"{name}({parameter})" in NAN_MEANS or parameter in UNCHECKED
    if not warned and not means and has_nan(result):
        return Outcome(*said, "silent NaN", type(result).__name__)
    if given.endswith("masked") and parameter:
        return Outcome(*said, "a mask is ignored", type(result).__name__)
    return Outcome(*said, "result", "with a warning" if warned else "")


def finished(result: Any) -> Any:
    """A result to the end: what iterators yield; servers and figures are closed."""
    if inspect.isgenerator(result):
        return list(islice(result, 20))
    if isinstance(result, lw.viewer.Viewer):
        result.close()
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    return result


CALLBACKS = ("tau", "forces", "potential", "progress", "controller", "watch", "events", "contacts",
             "change", "check", "check_printed", "observe", "reset")  # fmt: skip
"""Arguments that may be functions of the user."""

NAN_MEANS = {
    "Channel(values)": "there is no value at that time",
    "Channel.of(values)": "there is no value at that time",
    "Recording.with_channel(values)": "there is no value at that time",
    "smoothed(tau)": "there is no measurement: gaps of joint forces stay gaps",
    "Recording.of(step)": "the step is not known",
    "Recording.of(wall)": "the time it took is not known",
    "Recording.of(worst_loop)": "the worst loop is not known",
    **{f"{x}(measured)": "there is no measurement" for x in (
        "Filter.tick", "Filter.run", "Tracker.tick", "Tracker.late")},
    **{f"Renumbering.{x}": "states without a result stay so in another order" for x in (
        "q(q)", "joint_vector(x)", "joint_matrix(A)", "body_vector(x)", "body_matrix(A)",
        "columns(J)")},
}  # fmt: skip
"""Arguments in which NaN has a meaning, each with it."""

UNCHECKED = ("status",)
"""With a status array, rows without a result are NaN and have a code."""


def has_nan(result: Any, depth: int = 0) -> bool:
    """Whether a NaN is somewhere in a result."""
    if isinstance(result, float | np.floating):
        return bool(np.isnan(result))
    if isinstance(result, np.ma.MaskedArray):
        return bool(np.isnan(result.filled(0.0)).any())
    if isinstance(result, np.ndarray):
        return result.dtype.kind == "f" and bool(np.isnan(result).any())
    if depth > 3 or isinstance(result, lw.Mechanism | lw.simulation.Report | str):
        return False  # a report has NaN where there is nothing to report about
    if isinstance(result, dict):
        return any(has_nan(x, depth + 1) for x in result.values())
    if isinstance(result, tuple | list):
        return any(has_nan(x, depth + 1) for x in result)
    if dataclasses.is_dataclass(result):
        fields = (f.name for f in dataclasses.fields(result))
        return any(has_nan(getattr(result, x, None), depth + 1) for x in fields)
    return False
