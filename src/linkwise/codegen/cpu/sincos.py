"""Sine and cosine together, as LLVM instructions on scalars or vectors.

x = k π/2 + r with |r| ≤ π/4: k by rounding, r by subtracting k π/2 in three parts (Cody and Waite),
then the Taylor polynomials of sine and cosine, exchanged and signed by the quadrant. Good to 2
units in the last place for |x| < 1e5 rad (single precision: 4e3); beyond, the caller takes the C
library's functions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Format:
    """Constants for one kind of number."""

    # π/2 in three parts; the first two are short, so that k times them is exact
    parts: tuple[float, float, float]
    sine: tuple[float, ...]  # coefficients of r³, r⁵, ... in sin r.
    cosine: tuple[float, ...]  # coefficients of r², r⁴, ... in cos r.
    largest: float  # angles beyond this go to the C library [rad]
    rounding: float  # adding and subtracting 1.5 times the largest power of 2 rounds to an integer


def _taylor(first: int, terms: int) -> tuple[float, ...]:
    """(-1)^n / (2n + first)! for n = 1, 2, ..."""
    return tuple((-1.0) ** n / math.factorial(2 * n + first) for n in range(1, terms + 1))


DOUBLES: Final = Format(
    parts=(1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21),
    sine=_taylor(1, 8),
    cosine=_taylor(0, 9),
    largest=1e5,
    rounding=1.5 * 2.0**52,
)
FLOATS: Final = Format(
    parts=(1.5703125, 4.837512969970703125e-4, 7.549789948768648e-8),
    sine=_taylor(1, 5),
    cosine=_taylor(0, 5),
    largest=4e3,
    rounding=1.5 * 2.0**23,
)


def emit_sincos(
    build: Any, x: Any, constant: Any, integer: Any, int_type: Any, form: Format
) -> tuple[Any, Any]:
    """Instructions for (sin x, cos x)."""
    magic = constant(form.rounding)
    shifted = build.fadd(build.fmul(x, constant(2.0 / math.pi)), magic)
    k = build.fsub(shifted, magic)
    r = x
    for part in form.parts:
        r = build.fsub(r, build.fmul(k, constant(part)))
    r2 = build.fmul(r, r)
    sine = build.fadd(r, build.fmul(build.fmul(r, r2), _horner(build, r2, form.sine, constant)))
    cosine = build.fadd(constant(1.0), build.fmul(r2, _horner(build, r2, form.cosine, constant)))
    quadrant = build.bitcast(shifted, int_type)  # its low bits are k
    odd = build.icmp_signed("!=", build.and_(quadrant, integer(1)), integer(0))
    first = build.select(odd, cosine, sine)
    second = build.select(odd, sine, cosine)
    flip_sine = build.icmp_signed("!=", build.and_(quadrant, integer(2)), integer(0))
    next_quadrant = build.add(quadrant, integer(1))
    flip_cosine = build.icmp_signed("!=", build.and_(next_quadrant, integer(2)), integer(0))
    return (
        build.select(flip_sine, build.fneg(first), first),
        build.select(flip_cosine, build.fneg(second), second),
    )


def _horner(build: Any, x: Any, coefficients: tuple[float, ...], constant: Any) -> Any:
    """c_0 + c_1 x + c_2 x² + ..."""
    value = constant(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        value = build.fadd(build.fmul(value, x), constant(c))
    return value
