"""Second-order Taylor series along a motion, to differentiate NumPy formulas exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.spatial.array import Array


def _call(name: str, x: Any) -> Any:
    """The function `name` of a float, or of a symbol that has it as a method."""
    return getattr(x, name)() if hasattr(x, name) else getattr(np, name)(x)


@dataclass(frozen=True, slots=True)
class Jet:
    """x(t) = c0 + c1 t + c2 t² + O(t³). NumPy calls the methods for arrays of dtype object."""

    c0: Any
    c1: Any = 0.0
    c2: Any = 0.0

    __array_priority__ = 100.0

    @staticmethod
    def line(x: Array, rate: Array) -> Any:
        """Array of jets x + rate t."""
        jets = np.empty(np.shape(x), dtype=object)
        for index in np.ndindex(jets.shape):
            jets[index] = Jet(x[index], rate[index])
        return jets

    @staticmethod
    def derivatives(jets: Any) -> tuple[Array, Array, Array]:
        """Value, first and second derivative at t = 0 of an array of jets and constants."""
        flat = [x if isinstance(x, Jet) else Jet(x) for x in np.asarray(jets, dtype=object).flat]
        shape = np.shape(jets)
        parts = ([x.c0 for x in flat], [x.c1 for x in flat], [2.0 * x.c2 for x in flat])
        value, first, second = (np.array(part).reshape(shape) for part in parts)
        return value, first, second

    def __add__(self, other: Any) -> Jet:
        o = other if isinstance(other, Jet) else Jet(other)
        return Jet(self.c0 + o.c0, self.c1 + o.c1, self.c2 + o.c2)

    def __neg__(self) -> Jet:
        return Jet(-self.c0, -self.c1, -self.c2)

    def __sub__(self, other: Any) -> Jet:
        return self + (-other)

    def __rsub__(self, other: Any) -> Jet:
        return (-self) + other

    def __mul__(self, other: Any) -> Jet:
        o = other if isinstance(other, Jet) else Jet(other)
        return Jet(
            self.c0 * o.c0,
            self.c0 * o.c1 + self.c1 * o.c0,
            self.c0 * o.c2 + self.c1 * o.c1 + self.c2 * o.c0,
        )

    __radd__ = __add__
    __rmul__ = __mul__

    def _chain(self, f: Any, f_1: Any, f_2: Any) -> Jet:
        """f(x(t)) from f and its two derivatives at c0."""
        return Jet(f, f_1 * self.c1, f_1 * self.c2 + 0.5 * f_2 * self.c1 * self.c1)

    def __truediv__(self, other: Any) -> Jet:
        return self * (other if isinstance(other, Jet) else Jet(other)).reciprocal()

    def __rtruediv__(self, other: Any) -> Jet:
        return self.reciprocal() * other

    def __pow__(self, power: float) -> Jet:
        if power in (0, 1, 2):  # the general rule divides by x, which may be zero
            return (Jet(self.c0**0), self, self * self)[int(power)]
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
