"""Polynomials in sines and cosines, and which of their equal forms is the shortest.

A polynomial is a dictionary: exponents of the generators, and a fraction for each. Some generators
are pairs, the sine and the cosine of an angle.

    even powers of sines removed       s² = 1 - c²
    even powers of cosines removed     c² = 1 - s²
    sums of angles                     c₁ c₂ - s₁ s₂ = cos(q₁ + q₂),   c² = ½ + ½ cos 2q
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any, TypeAlias

Monomial: TypeAlias = tuple[int, ...]
Polynomial: TypeAlias = dict[Monomial, Fraction]
Terms: TypeAlias = dict[tuple[Monomial, tuple[int, ...], bool], Fraction]
"""Powers, the multiples of the angles and whether it is their sine; () for neither sine nor cosine.
"""

ROUNDING = 1e-13
"""Relative size of what rounding may leave of a term that cancels."""

COMPARED = 60
"""Terms of the shortest form, above which forms are compared by their number only."""

SHORT = 1000
"""Largest denominator of a fraction that a number is recognised as."""


@dataclass(frozen=True, slots=True)
class Generators:
    """What the generators are.

    Attributes:
        formulas: Of each generator, in SymPy.
        pairs: Places of sine and cosine, and their angle in SymPy.
        sympy: The module.
    """

    formulas: Sequence[Any]
    pairs: Sequence[tuple[int, int, Any]]
    sympy: Any

    def shortest(self, p: Polynomial) -> Any:
        """The shortest of the forms, as a formula of SymPy."""
        sines, cosines = [s for s, _, _ in self.pairs], [c for _, c, _ in self.pairs]
        powers = [
            {(m, (), False): x for m, x in without_squares(p, first, second).items()}
            for first, second in ((sines, cosines), (cosines, sines))
        ]
        forms = sorted([self._angles(p), *powers], key=len)
        if len(forms[0]) > COMPARED:
            return self._sum(forms[0])
        best = min(map(self._sum, forms), key=self._length)
        if best.has(self.sympy.Float):  # factors of decimal numbers say nothing
            return best
        return min((best, self.sympy.factor(best)), key=self._length)

    def _length(self, formula: Any) -> int:
        return int(self.sympy.count_ops(formula))

    def _product(self, powers: Monomial) -> Any:
        factors = [self.formulas[i] ** n for i, n in enumerate(powers) if n]
        return self.sympy.Mul(*factors)

    def _sum(self, terms: Terms) -> Any:
        sp, largest = self.sympy, max(map(abs, terms.values()), default=Fraction(0))
        each = list[Any]()
        for (powers, multiples, is_sine), number in terms.items():
            factors = [self._number(number, largest), self._product(powers)]
            if multiples:
                angles = (n * x for n, (_, _, x) in zip(multiples, self.pairs, strict=True))
                factors.append((sp.sin if is_sine else sp.cos)(sp.Add(*angles)))
            each.append(sp.Mul(*factors))
        return sp.Add(*each)

    def _number(self, x: Fraction, largest: Fraction) -> Any:
        """A fraction where it is a short one, else a decimal number; zero for rounding errors."""
        sp, short = self.sympy, x.limit_denominator(SHORT)
        if abs(short - x) <= ROUNDING * abs(x):
            return sp.Rational(short.numerator, short.denominator)
        if abs(x) < ROUNDING * largest:
            return sp.Integer(0)
        return sp.Float(float(x))

    def _angles(self, p: Polynomial) -> Terms:
        """With cosines and sines of sums of angles, each once."""
        places = [i for s, c, _ in self.pairs for i in (s, c)]
        total = Terms()
        for powers, number in p.items():
            rest = tuple(0 if i in places else n for i, n in enumerate(powers))
            turns = tuple((powers[s], powers[c]) for s, c, _ in self.pairs)
            for (multiples, is_sine), part in waves(turns).items():
                key = (rest, multiples, is_sine)
                total[key] = total.get(key, Fraction(0)) + number * part
        return {key: number for key, number in total.items() if number}


def without_squares(p: Polynomial, squared: Sequence[int], other: Sequence[int]) -> Polynomial:
    """With x² = 1 - y² for the pairs of places (x, y)."""
    out = Polynomial()
    for powers, number in p.items():
        terms = {powers: number}
        for x, y in zip(squared, other, strict=True):
            expanded = Polynomial()
            for monomial, value in terms.items():
                half, odd = divmod(monomial[x], 2)
                for k in range(half + 1):
                    new = list(monomial)
                    new[x], new[y] = odd, monomial[y] + 2 * k
                    key = tuple(new)
                    part = value * comb(half, k) * (-1) ** k
                    expanded[key] = expanded.get(key, Fraction(0)) + part
            terms = expanded
        for monomial, value in terms.items():
            out[monomial] = out.get(monomial, Fraction(0)) + value
    return {monomial: value for monomial, value in out.items() if value}


def waves(turns: Sequence[tuple[int, int]]) -> dict[tuple[tuple[int, ...], bool], Fraction]:
    """Π sin(xᵢ)^aᵢ cos(xᵢ)^bᵢ as a sum of sines (True) and cosines (False) of Σ nᵢ xᵢ."""
    # A product of exponentials: (multiples, phase) with the phase in quarter turns.
    exponentials: dict[tuple[tuple[int, ...], int], Fraction] = {((), 0): Fraction(1)}
    for a, b in turns:
        new = dict[tuple[tuple[int, ...], int], Fraction]()
        for (multiples, phase), value in exponentials.items():
            for i in range(a + 1):  # sin = (e - ē) / 2i: a quarter turn back, and back again
                for j in range(b + 1):
                    n = (a - 2 * i) + (b - 2 * j)
                    size = value * comb(a, i) * comb(b, j) / 2 ** (a + b)
                    key = ((*multiples, n), (phase - a + 2 * i) % 4)
                    new[key] = new.get(key, Fraction(0)) + size
        exponentials = new
    out = dict[tuple[tuple[int, ...], bool], Fraction]()
    for (multiples, phase), value in exponentials.items():
        # The sum is real: the real part of each, cos(x + phase π/2).
        sign, is_sine = ((1, False), (-1, True), (-1, False), (1, True))[phase]
        if next((n for n in multiples if n), 0) < 0:
            multiples = tuple(-n for n in multiples)
            sign = -sign if is_sine else sign
        if is_sine and not any(multiples):
            continue
        key = (multiples, is_sine)
        out[key] = out.get(key, Fraction(0)) + sign * value
    return {key: value for key, value in out.items() if value}
