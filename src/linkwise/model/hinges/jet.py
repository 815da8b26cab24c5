"""Second-order Taylor series along a motion, to differentiate NumPy formulas exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from linkwise.spatial.array import Array


def level_of(x: Any) -> int:
    """The highest level of jets in an array; -1 without any."""
    if x is None or np.asarray(x).dtype != object:
        return -1
    return max((e.level for e in np.asarray(x).flat if isinstance(e, Jet)), default=-1)


def _call(name: str, x: Any) -> Any:
    """The function `name` of a float, or of a symbol that has it as a method."""
    return getattr(x, name)() if hasattr(x, name) else getattr(np, name)(x)


@dataclass(frozen=True, slots=True)
class Jet:
    """x(t) = c0 + c1 t + c2 t² + O(t³). NumPy calls the methods for arrays of dtype object.

    The coefficients of a jet may be jets along another motion. `level` distinguishes the two: a jet
    of a lower level is a constant for one of a higher level.
    """

    c0: Any
    c1: Any = 0.0
    c2: Any = 0.0
    level: int = 0

    __array_priority__ = 100.0

    @staticmethod
    def line(x: Array, rate: Array, level: int) -> Any:
        """Array of jets x + rate t, of a level above those of x and the rate."""
        jets = np.empty(np.shape(x), dtype=object)
        for index in np.ndindex(jets.shape):
            jets[index] = Jet(x[index], rate[index], level=level)
        return jets

    @staticmethod
    def derivatives(jets: Any, level: int) -> tuple[Array, Array, Array]:
        """Value, first and second derivative at t = 0 of an array, along the motion of a level."""
        shape = np.shape(jets)
        flat = [Jet.raised(x, level) for x in np.asarray(jets, dtype=object).flat]
        parts = ([x.c0 for x in flat], [x.c1 for x in flat], [2.0 * x.c2 for x in flat])
        value, first, second = (np.array(part).reshape(shape) for part in parts)
        return value, first, second

    @staticmethod
    def slope(formula: Callable[..., Any], *moved: tuple[Array, Array | None]) -> Any:
        """The derivative of the array that a formula makes of arrays x, each along its rate.

        The formula may take such derivatives itself. Arrays have one leading axis more in it.

        Args:
            formula: Takes the arrays, as jets.
            moved: For each x (..., n) its rate, or None where it is held.
        """
        level = 1 + max(level_of(e) for pair in moved for e in pair)
        lines = list[Any]()
        for x, rate in moved:
            rate = np.zeros(np.shape(x)) if rate is None else np.broadcast_to(rate, np.shape(x))
            lines.append(Jet.line(x[None], rate[None], level))
        return Jet.derivatives(formula(*lines), level)[1][0]

    @staticmethod
    def raised(x: Any, level: int) -> Jet:
        """A number, or a jet of a lower level, as a constant of a level."""
        return x if isinstance(x, Jet) and x.level == level else Jet(x, level=level)

    def _meet(self, other: Any) -> tuple[Jet, Jet]:
        """Both at the higher of their levels."""
        level = max(self.level, other.level) if isinstance(other, Jet) else self.level
        return Jet.raised(self, level), Jet.raised(other, level)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return cast("Any", np.add)(other, self)  # entry by entry
        x, y = self._meet(other)
        return Jet(x.c0 + y.c0, x.c1 + y.c1, x.c2 + y.c2, x.level)

    def __neg__(self) -> Jet:
        return Jet(-self.c0, -self.c1, -self.c2, self.level)

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return cast("Any", np.multiply)(other, self)
        x, y = self._meet(other)
        return Jet(
            x.c0 * y.c0,
            x.c0 * y.c1 + x.c1 * y.c0,
            x.c0 * y.c2 + x.c1 * y.c1 + x.c2 * y.c0,
            x.level,
        )

    __radd__ = __add__
    __rmul__ = __mul__

    def _chain(self, f: Any, f_1: Any, f_2: Any) -> Jet:
        """f(x(t)) from f and its two derivatives at c0."""
        return Jet(f, f_1 * self.c1, f_1 * self.c2 + 0.5 * f_2 * self.c1 * self.c1, self.level)

    def __truediv__(self, other: Any) -> Jet:
        x, y = self._meet(other)
        return x * y.reciprocal()

    def __rtruediv__(self, other: Any) -> Jet:
        return self.reciprocal() * other

    def __pow__(self, power: float) -> Jet:
        if power in (0, 1, 2):  # the general rule divides by x, which may be zero
            return (Jet(self.c0**0, level=self.level), self, self * self)[int(power)]
        c = self.c0
        return self._chain(
            c**power, power * c ** (power - 1), power * (power - 1) * c ** (power - 2)
        )

    def reciprocal(self) -> Jet:
        """1 / x."""
        r = 1.0 / self.c0
        return self._chain(r, -r * r, 2.0 * r * r * r)

    def square(self) -> Jet:
        """x²."""
        return self * self

    def sqrt(self) -> Jet:
        """√x."""
        s = _call("sqrt", self.c0)
        return self._chain(s, 0.5 / s, -0.25 / (s * self.c0))

    def sin(self) -> Jet:
        """The sine."""
        s, c = _call("sin", self.c0), _call("cos", self.c0)
        return self._chain(s, c, -s)

    def cos(self) -> Jet:
        """The cosine."""
        s, c = _call("sin", self.c0), _call("cos", self.c0)
        return self._chain(c, -s, -c)

    def tan(self) -> Jet:
        """The tangent."""
        return self.sin() / self.cos()

    def exp(self) -> Jet:
        """The exponential."""
        e = _call("exp", self.c0)
        return self._chain(e, e, e)

    def arctan(self) -> Jet:
        """The arc tangent."""
        r = 1.0 / (1.0 + self.c0 * self.c0)
        return self._chain(_call("arctan", self.c0), r, -2.0 * self.c0 * r * r)
