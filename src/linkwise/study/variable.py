"""What varies from case to case: a distribution, an interval, a list of values, a number."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias, cast

import numpy as np

from linkwise.arguments import mapping, name as checked_name, number, shown
from linkwise.errors import MissingExtraError, ModelError
from linkwise.spatial.array import Array, floats

Varied: TypeAlias = Any
"""A frozen distribution of `scipy.stats`, (low, high), a list of values, or a number."""

NAMED = tuple(
    f"scipy.stats._{x}" for x in ("continuous_distns", "discrete_distns", "new_distributions")
)
"""Modules whose distributions are known by their names and parameters."""

DATA = ("_hpdf", "_hbins", "xk", "pk")
"""Attributes of distributions of SciPy that are made of data: histograms and lists of values."""

GRID = np.linspace(0.0005, 0.9995, 1000)
"""Quantiles that tell distributions apart that have the same name."""

EXAMPLE = "{'payload:hand': (0.0, 2.0), 'friction': scipy.stats.lognorm(0.3, scale=0.5)}"


def extra(package: str, module: str, purpose: str, *, named: str = "study") -> Any:
    """A module of an extra; raises with the name of that extra."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(purpose, package=package, extra=named) from None


@dataclass(frozen=True, slots=True)
class Variable:
    """One quantity that varies, as its quantile function on (0, 1).

    Attributes:
        name: Its name: an address of the work, or any name that a function of the study takes.
        values: Equally likely values, in a list; () for a distribution.
        distribution: A frozen distribution of SciPy, or None.
        bounds: (low, high) of a uniform distribution.
    """

    name: str
    values: tuple[float, ...] = ()
    distribution: Any = None
    bounds: tuple[float, float] = (0.0, 1.0)

    def at(self, u: Array) -> Array:
        """Its quantiles at u between 0 and 1, of the shape of u."""
        if self.values:
            place = np.minimum((u * len(self.values)).astype(np.int64), len(self.values) - 1)
            return np.array(self.values)[place]
        if self.distribution is None:
            low, high = self.bounds
            return low + u * (high - low)
        quantile = getattr(self.distribution, "ppf", None) or self.distribution.icdf
        return np.asarray(quantile(u), np.float64)

    def log_density(self, x: Array) -> Array:
        """The logarithm of its density."""
        if self.values:
            raise ModelError(f"{self.name!r} is a list of values and has no density.")
        if self.distribution is None:
            low, high = self.bounds
            inside = (x >= low) & (x <= high)
            return np.where(inside, -np.log(high - low), -np.inf)
        density = getattr(self.distribution, "logpdf", None) or self.distribution.logpmf
        return np.asarray(density(x), np.float64)

    @property
    def text(self) -> str:
        """What it is, for manifests: equal text, equal distribution."""
        if self.values:
            return str(list(self.values))
        if self.distribution is None:
            return f"uniform({self.bounds[0]!r}, {self.bounds[1]!r})"
        inner: Any = getattr(self.distribution, "dist", None)
        if inner is None:
            known = type(self.distribution).__module__ in NAMED
            name = type(self.distribution).__qualname__
            return repr(self.distribution) if known else f"{name}(sha256={self._digest()})"
        given = [repr(x) for x in self.distribution.args]
        given += [f"{k}={x!r}" for k, x in sorted(self.distribution.kwds.items())]
        has_data = any(hasattr(inner, x) for x in DATA)
        if has_data or type(inner).__module__ not in NAMED:
            given.append(f"sha256={self._digest()}")
        return f"{inner.name}({', '.join(given)})"

    def _digest(self) -> str:
        """A checksum of the numbers that a distribution is made of, and of its quantiles.

        Quantiles count with eleven digits: their last ones depend on the version of SciPy.
        """
        inner: Any = getattr(self.distribution, "dist", self.distribution)
        content = hashlib.sha256()
        for name in DATA:
            if hasattr(inner, name):
                content.update(np.ascontiguousarray(getattr(inner, name), "<f8").tobytes())
        content.update(" ".join(f"{x:.10e}" for x in self.at(GRID)).encode())
        return content.hexdigest()


def variables(vary: Mapping[str, Varied]) -> tuple[Variable, ...]:
    """What varies, checked.

    Raises:
        ModelError: Not a dictionary, or a value that is none of these.
    """
    return tuple(variable(name, given) for name, given in mapping(vary, "vary", EXAMPLE).items())


def variable(name: object, given: Varied) -> Variable:
    """One quantity that varies."""
    name = checked_name(name, "each name in vary")
    if isinstance(given, Variable):
        return Variable(name, given.values, given.distribution, given.bounds)
    if any(hasattr(given, x) for x in ("ppf", "icdf")) and not hasattr(given, "freeze"):
        return _distributed(name, given)
    if isinstance(given, tuple):
        pair = cast("tuple[Any, ...]", given)
        if len(pair) != 2:
            raise ModelError(f"vary[{name!r}] is {shown(pair)}; a tuple is (low, high).")
        low, high = (number(x, f"vary[{name!r}]") for x in pair)
        if not low < high:
            raise ModelError(f"vary[{name!r}] is {shown(pair)}; low must be less than high.")
        return Variable(name, bounds=(low, high))
    if hasattr(given, "ppf") or hasattr(given, "rvs"):
        raise ModelError(
            f"vary[{name!r}] is {shown(given)}; give a frozen distribution with its "
            "parameters, like scipy.stats.norm(1.0, 0.1), or a list of values."
        )
    array = floats(cast("Sequence[float]", given), f"vary[{name!r}]")
    if array.ndim > 1 or not array.size or not np.isfinite(array).all():
        raise ModelError(
            f"vary[{name!r}] is {shown(given)}; it must be a distribution of scipy.stats, "
            "(low, high), a list of finite numbers, or a number."
        )
    return Variable(name, tuple(array.ravel().tolist()))


def _distributed(name: str, distribution: Any) -> Variable:
    middle = Variable(name, distribution=distribution).at(np.array([0.5]))
    if middle.shape != (1,) or not np.isfinite(middle).all():
        raise ModelError(
            f"vary[{name!r}] has no finite median: {shown(middle.tolist())}; its parameters must "
            "be single numbers that its distribution allows."
        )
    return Variable(name, distribution=distribution)
