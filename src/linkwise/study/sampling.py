"""Which values the variables have in which case: one function of the number of the case.

| sampler | values | can be extended |
| --- | --- | --- |
| random | independent draws from counters (`counter.py`) | yes |
| sobol | a scrambled Sobol sequence, best with a power of two of cases | yes |
| latin | a Latin hypercube: each variable has one case in each of n equal strata | no |
| grid | all combinations of lists, the last variable fastest | no |
| table | rows that were given | by more rows |
| saltelli | A, AB₁ .. AB_d, B for Sobol indices, (d + 2) cases for each base point | yes |
| morris | trajectories of d + 1 cases, one variable changed at a time | yes |
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from linkwise.arguments import count
from linkwise.errors import ModelError, unknown_name
from linkwise.spatial.array import Array
from linkwise.study import counter
from linkwise.study.variable import Variable, extra

Sampler: TypeAlias = Literal["random", "sobol", "latin", "grid", "table", "saltelli", "morris"]
SAMPLERS = ("random", "sobol", "latin", "grid", "table", "saltelli", "morris")

EXTENSIBLE = ("random", "sobol", "table", "saltelli", "morris")
"""Samplers whose cases stay the same when there are more."""

LEVELS = 4
"""Of a Morris design: variables take quantiles 1/8, 3/8, 5/8 and 7/8 of their distributions."""

MOST = (1 << 32) - 1
"""Cases of a study: the counters of its noise have 32 bits for the number of a case."""

BITS = 30
"""Of numbers of Sobol sequences, which have at most 2³⁰ points."""


@dataclass(frozen=True, slots=True, eq=False)
class Sampling:
    """The values of all variables by case number.

    Attributes:
        variables: What varies.
        sampler: How.
        cases: How many cases there are.
        seed: Of all random numbers.
        correlation: Correlation of the variables' normal scores (d, d); None for none.
        proposal: Distributions that are drawn from instead, by the place of the variable.
        table: Rows that were given (cases, d), for "table".
    """

    variables: tuple[Variable, ...]
    sampler: Sampler
    cases: int
    seed: int
    correlation: Array | None = None
    proposal: Mapping[int, Variable] = field(default_factory=dict[int, Variable])
    table: Array | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(x.name for x in self.variables)

    def uniforms(self, begin: int, end: int) -> Array:
        """Numbers between 0 and 1 for cases begin..end (n, d), before correlation."""
        n, d = end - begin, len(self.variables)
        match self.sampler:
            case "random":
                columns = [counter.uniform(self.seed, x, begin, end) for x in self.names]
                return np.stack(columns).T if d else np.zeros((n, 0))
            case "sobol":
                return _sobol(d, self.seed, begin, end)
            case "latin":
                cases = np.arange(begin, end)
                strata = [counter.permuted(self.seed, x, cases, self.cases) for x in self.names]
                within = [counter.uniform(self.seed, x, begin, end) for x in self.names]
                both = zip(strata, within, strict=True)
                return np.stack([(s + u) / self.cases for s, u in both], axis=1)
            case "saltelli":
                return _saltelli(d, self.seed, begin, end)
            case "morris":
                return _morris(self.names, self.seed, begin, end)
            case _:
                raise AssertionError(f"{self.sampler} has no random numbers")

    def values(self, begin: int, end: int) -> Array:
        """Values of the variables in cases begin..end (n, d)."""
        if self.sampler == "table":
            assert self.table is not None
            return self.table[begin:end]
        if self.sampler == "grid":
            return _grid(self.variables, begin, end)
        return self.at(self.uniforms(begin, end))

    def at(self, u: Array) -> Array:
        """Values for numbers between 0 and 1 (n, d): correlated, then quantiles."""
        u = self._correlated(u)
        drawn = [self.proposal.get(i, x) for i, x in enumerate(self.variables)]
        columns = [x.at(u[:, i]) for i, x in enumerate(drawn)]
        return np.stack(columns).T if columns else u  # each variable in one piece

    def log_weights(self, values: Array) -> Array:
        """Logarithms of the densities over those that were drawn from (n,)."""
        total = np.zeros(len(values))
        for i, proposal in self.proposal.items():
            x = values[:, i]
            total += self.variables[i].log_density(x) - proposal.log_density(x)
        return total

    def _correlated(self, u: Array) -> Array:
        """A Gaussian copula: u = Φ(L Φ⁻¹(u)), L L* the correlation."""
        if self.correlation is None:
            return u
        special = extra("scipy", "scipy.special", "correlated draws")
        factor, z = np.linalg.cholesky(self.correlation), special.ndtri(u)
        total = np.zeros_like(z)
        for k in range(z.shape[1]):  # by columns: a case's sum has the same order in any batch
            total += z[:, k, None] * factor[:, k]
        return special.ndtr(total)


def checked_correlation(
    names: tuple[str, ...], given: Mapping[tuple[str, str], float] | None
) -> Array | None:
    """The matrix of pairs of names and their correlations.

    Raises:
        ModelError: A pair or number that is not allowed, or numbers that contradict each other.
        UnknownNameError: A name that does not vary.
    """
    if not given:
        return None
    matrix = np.eye(len(names))
    for pair, value in given.items():
        if not isinstance(pair, tuple) or len(pair) != 2 or not -1.0 < float(value) < 1.0:  # pyright: ignore[reportUnnecessaryIsInstance, reportUnnecessaryComparison]
            raise ModelError(
                f"correlate has {pair!r}: {value!r}; it is {{('a', 'b'): number}} with a number "
                "between -1 and 1."
            )
        for name in pair:
            if name not in names:
                raise unknown_name("variable", name, names, owner="vary")
        if pair[0] == pair[1] or (pair[1], pair[0]) in given:
            raise ModelError(
                f"correlate has {pair!r}; give the correlation of two variables, once for each "
                "pair."
            )
        i, j = (names.index(x) for x in pair)
        matrix[i, j] = matrix[j, i] = float(value)
    if np.linalg.eigvalsh(matrix)[0] < 1e-10:
        raise ModelError(
            "correlate has numbers that contradict each other: their matrix is not positive "
            "definite. Use smaller correlations."
        )
    return matrix


def checked_cases(
    sampler: Sampler, cases: int | None, variables: tuple[Variable, ...], rows: int | None = None
) -> int:
    """The number of cases, as the sampler allows it.

    Args:
        rows: Of a table.

    Raises:
        ModelError: The sampler has another number of cases, or needs a multiple.
    """
    known = grid_size(variables) if sampler == "grid" else rows
    cases = known if cases is None else cases
    if cases is None:
        raise ModelError("cases is missing: how many cases the study has.")
    points = 1 << BITS
    d = len(variables)
    group = {"saltelli": d + 2, "morris": d + 1}.get(sampler, 1)
    most = {"sobol": points, "saltelli": points * group}.get(sampler, MOST)
    cases = count(cases, "cases", least=1, most=min(most, MOST))
    if known is not None and (cases > known or (sampler == "grid" and cases != known)):
        raise ModelError(f"cases is {cases}; this {sampler} has {known}. Leave it out.")
    if cases % group:
        raise ModelError(
            f"cases is {cases}; {sampler!r} with {d} variables needs a multiple of {group}: "
            f"{max(1, cases // group) * group} or {(cases // group + 1) * group}."
        )
    return cases


def grid_size(variables: tuple[Variable, ...]) -> int:
    """The number of combinations; raises for a variable that is not a list."""
    for x in variables:
        if not x.values:
            raise ModelError(
                f"vary[{x.name!r}] is {x.text}; a grid needs lists of values, like "
                "np.linspace(0.0, 1.0, 11)."
            )
    return math.prod(len(x.values) for x in variables)


def _grid(variables: tuple[Variable, ...], begin: int, end: int) -> Array:
    places, columns = np.arange(begin, end), list[Array]()
    for x in reversed(variables):
        columns.append(np.array(x.values)[places % len(x.values)])
        places = places // len(x.values)
    return np.stack(columns[::-1], axis=1)


def _sobol(d: int, seed: int, begin: int, end: int) -> Array:
    if not d:
        return np.zeros((end - begin, 0))
    qmc: Any = extra("scipy", "scipy.stats.qmc", "a Sobol sequence")
    engine = qmc.Sobol(d, scramble=True, bits=BITS, rng=np.random.Generator(np.random.Philox(seed)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # parts of a sequence are not powers of two
        drawn = engine.random(end) if begin == 0 else engine.fast_forward(begin).random(end - begin)
    low = 2.0**-31  # scrambled numbers may be 0
    return np.clip(drawn, low, 1.0 - low)


def _saltelli(d: int, seed: int, begin: int, end: int) -> Array:
    """Rows A, AB₁ .. AB_d, B of each base point; AB_i is A with column i of B."""
    cases = np.arange(begin, end)
    base, place = cases // (d + 2), cases % (d + 2)
    first = int(base[0]) if len(base) else 0
    both = _sobol(2 * d, seed, first, int(base[-1]) + 1 if len(base) else first)[base - first]
    a, b = both[:, :d], both[:, d:]
    from_b = (place[:, None] == np.arange(1, d + 1)) | (place == d + 1)[:, None]
    return np.where(from_b, b, a)


def _morris(names: tuple[str, ...], seed: int, begin: int, end: int) -> Array:
    """Trajectories through levels of a grid: variables change one after another, in random order.

    Point j of trajectory k has the first j variables of its order changed by half the levels.
    """
    d, rows = len(names), list[Array]()
    for k in range(begin // (d + 1), -(-end // (d + 1))):
        draw = counter.words(seed, "morris", k * 3 * d, (k + 1) * 3 * d)
        order = np.argsort(draw[:d], kind="stable")
        level = (draw[d : 2 * d] % np.uint64(LEVELS)).astype(np.int64)
        turn = (level + LEVELS // 2) % LEVELS
        path = np.tile(level, (d + 1, 1))
        for j, i in enumerate(order):
            path[j + 1 :, i] = turn[i]
        rows.append((path + 0.5) / LEVELS)
    first = begin // (d + 1) * (d + 1)
    return np.concatenate(rows or [np.zeros((0, d))])[begin - first : end - first]
