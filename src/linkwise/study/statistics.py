"""Estimates from the cases of a study, each with its confidence interval.

Failed cases have no numbers. A probability of failure counts them as failures, unless they are left
out; quantiles and means are those of the cases that have numbers, and say how many that are.
Cases of a study with `propose` have weights w = density / density that was drawn from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.arguments import flag, number
from linkwise.brief import brief
from linkwise.errors import ModelError, unknown_name
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.study.results import Results
from linkwise.study.variable import extra


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its confidence interval.

    Attributes:
        value: The estimate.
        low: The lower end of the interval; infinite if the cases do not bound it.
        high: The upper end, likewise.
        level: The probability that such an interval contains the true value.
        cases: How many cases it is made from; for weighted ones their effective number.
    """

    value: float
    low: float
    high: float
    level: float
    cases: float

    def __str__(self) -> str:
        share = f"{100 * self.level:g} %"
        return (
            f"{self.value:.6g} ({self.low:.6g} to {self.high:.6g}, {share}, {self.cases:.0f} cases)"
        )


def column(results: Results, name: str) -> tuple[Array, Array, Any]:
    """A column, its weights, and which cases failed."""
    names = [name, "failed"]
    weighted = "log_weight" in results.columns
    table = results.table([*names, *(["log_weight"] if weighted else [])])
    x = np.asarray(table.column(name).to_numpy(), np.float64)
    failed = np.asarray(table.column("failed").to_numpy(zero_copy_only=False), bool)
    weight = np.exp(table.column("log_weight").to_numpy()) if weighted else np.ones(len(x))
    return x, weight, failed


def mean(results: Results, name: str, *, level: float = 0.95) -> Estimate:
    """The mean of a column, with a normal interval.

    Args:
        results: The results of a study.
        name: The column.
        level: Of the confidence interval.
    """
    level = number(level, "level", above=0.0, below=1.0)
    x, weight, failed = column(results, name)
    fine: Any = ~failed & ~np.isnan(x)
    x, weight = x[fine], weight[fine]
    if len(x) < 2:
        raise ModelError(f"{name!r} has {len(x)} cases with numbers; a mean needs two.")
    value, width = _weighted(weight, x, complete=bool(fine.all()))
    width *= float(extra("scipy", "scipy.special", "an interval").ndtri(0.5 + 0.5 * level))
    return Estimate(value, value - width, value + width, level, _effective(weight))


def quantile(
    results: Results, name: str, q: ArrayLike = 0.5, *, level: float = 0.95
) -> Estimate | list[Estimate]:
    """Quantiles of a column, with intervals from order statistics that hold for any distribution.

    The number of cases below the q-quantile is binomial; its quantiles are the ranks of the ends.
    Where there are too few cases for a rank, that end is infinite: the largest of 20 cases is no
    upper bound of the 0.99-quantile.

    Args:
        results: The results of a study.
        name: The column.
        q: Between 0 and 1, a number or several.
        level: Of the confidence interval.
    """
    level = number(level, "level", above=0.0, below=1.0)
    x, weight, failed = column(results, name)
    fine: Any = ~failed & ~np.isnan(x)
    x, weight = x[fine], weight[fine]
    if not len(x):
        raise ModelError(f"{name!r} has no case with a number.")
    shares = _shares(q)
    ends = _ends(shares, _effective(weight), level)
    rows = zip(*_ranked(x, weight, shares, ends), strict=True)
    result = [Estimate(*row, level, _effective(weight)) for row in rows]
    return result if np.ndim(q) else result[0]


def _ends(shares: Array, n: float, level: float) -> tuple[Array, Array]:
    """Shares below the ends of the intervals of quantiles, from n equal cases.

    Infinite where no rank is far enough out: the interval is open on that side.
    """
    binomial: Any = extra("scipy", "scipy.stats", "an interval").binom
    count = round(n)
    low, high = (binomial.ppf(p, count, shares) for p in (0.5 - level / 2, 0.5 + level / 2))
    return (
        np.where(low < 1.0, -np.inf, low / n),
        np.where(high + 1.0 > count, np.inf, (high + 1.0) / n),
    )


def _ranked(
    x: Array, weight: Array, shares: Array, ends: tuple[Array, Array]
) -> tuple[list[float], list[float], list[float]]:
    """Quantiles and the ends of their intervals: order statistics, or infinite."""
    order = np.argsort(x, kind="stable")
    ranked, share = x[order], np.cumsum(weight[order]) / weight.sum()
    value, low, high = (
        np.where(
            np.isinf(p), p, ranked[np.minimum(np.searchsorted(share, p, side="left"), len(x) - 1)]
        ).tolist()
        for p in (shares, *ends)
    )
    return value, low, high


@np.errstate(over="ignore", invalid="ignore")  # of numbers that diverge: infinite, without interval
def _weighted(weight: Array, x: Array, *, complete: bool) -> tuple[float, float]:
    """The mean of x and its standard error, from cases of a proposal with weights.

    E[w x] under the proposal is E[x]; where cases are left out, E[w x] / E[w] is the mean of those
    that are not.
    """
    y = weight * x
    value = float(y.mean())
    if not complete:
        value = float(y.sum() / weight.sum())
        y = value + weight * (x - value) / weight.mean()
    return value, float(y.std(ddof=1) / np.sqrt(len(y)))


def _effective(weight: Array) -> float:
    """(Σ w)² / Σ w²: as many equal weights have this variance."""
    return float(weight.sum() ** 2 / (weight @ weight)) if weight.any() else 0.0


def probability(
    results: Results,
    name: str,
    *,
    above: float | None = None,
    below: float | None = None,
    count_failed: bool = True,
    level: float = 0.95,
) -> Estimate:
    """The probability that a column is above or below a bound, with its interval.

    The interval is that of Clopper and Pearson, which holds for any number of cases; for weighted
    cases a normal one, and where the event happened never or always, that of Clopper and Pearson
    for their effective number.

    Args:
        results: The results of a study.
        name: The column.
        above: The event is a number above this one; NaN of a case that did not fail is none.
        below: Or one below this one; with both, either.
        count_failed: Whether failed cases count as the event; else they are left out.
        level: Of the confidence interval.
    """
    level = number(level, "level", above=0.0, below=1.0)
    if above is None and below is None:
        raise ModelError("neither above nor below is given: what is the event?")
    x, weight, failed = column(results, name)
    hit = np.zeros(len(x), bool)
    with np.errstate(invalid="ignore"):
        if above is not None:
            hit |= x > number(above, "above")
        if below is not None:
            hit |= x < number(below, "below")
    if flag(count_failed, "count_failed"):
        hit |= failed
    else:
        hit, weight = hit[~failed], weight[~failed]
    if not len(hit):
        raise ModelError(f"{name!r} has no case to count.")
    return chance(hit, weight, level, complete=len(hit) == len(x))


def chance(hit: Any, weight: Array, level: float, *, complete: bool = True) -> Estimate:
    """The probability of an event from cases (n,) in which it happened."""
    n: float = len(hit)
    weighted = bool((weight != 1.0).any())
    if weighted and hit.any() == hit.all():
        n = _effective(weight)
    elif weighted:
        value, width = _weighted(weight, hit, complete=complete)
        width *= float(extra("scipy", "scipy.special", "an interval").ndtri(0.5 + 0.5 * level))
        return Estimate(value, max(0.0, value - width), min(1.0, value + width), level,
                        _effective(weight))  # fmt: skip
    k = n if hit.all() else int(hit.sum())
    beta: Any = extra("scipy", "scipy.stats", "an interval").beta
    low = float(beta.ppf(0.5 - level / 2, k, n - k + 1)) if k else 0.0
    high = float(beta.ppf(0.5 + level / 2, k + 1, n - k)) if k < n else 1.0
    return Estimate(k / n, low, high, level, float(n))


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """Quantiles of a trajectory at each time, with pointwise confidence intervals.

    Attributes:
        t: Times (k,) [s].
        q: The quantiles' shares (m,).
        values: The quantiles (m, k).
        low: Lower ends of their intervals (m, k); infinite where the cases do not bound them.
        high: Upper ends (m, k), likewise.
        level: Of the intervals, at each time.
        cases: How many cases they are made from.
        left_out: Cases with gaps: failed, ended early or not computed yet.
    """

    t: Array
    q: Array
    values: Array
    low: Array
    high: Array
    level: float
    cases: int
    left_out: int


def band(
    results: Results,
    name: str,
    *,
    q: ArrayLike = (0.05, 0.5, 0.95),
    entry: str | None = None,
    level: float = 0.95,
) -> Band:
    """Quantiles of a trajectory at each time, with their confidence intervals.

    Args:
        results: The results of a study.
        name: The trajectory, as in `keep`.
        q: Between 0 and 1, several.
        entry: The label of its entry; default: the first one.
        level: Of the confidence intervals.
    """
    level = number(level, "level", above=0.0, below=1.0)
    array = results.trajectory(name)
    labels = [str(x) for x in array.entry.values]
    if entry is not None and entry not in labels:
        raise unknown_name("entry", entry, labels, owner=f"trajectory {name!r}")
    values: Array = array[:, :, 0 if entry is None else labels.index(entry)].values
    weight = np.ones(len(values))
    if "log_weight" in results.columns:
        weight[results["case"].astype(np.int64)] = np.exp(results["log_weight"])
    fine: Any = np.isfinite(values).all(axis=1)
    if not fine.any():
        raise ModelError(f"trajectory {name!r} has no case without gaps.")
    values, weight = values[fine], weight[fine]
    shares = _shares(q)
    ends = _ends(shares, _effective(weight), level)
    lines = np.transpose([_ranked(x, weight, shares, ends) for x in values.T], (1, 2, 0))
    count = int(fine.sum())
    middle, low, high = lines
    return Band(array.time.values, shares, middle, low, high, level, count, len(fine) - count)


def _shares(q: ArrayLike) -> Array:
    shares = np.atleast_1d(floats(q, "q"))
    if not ((shares > 0.0) & (shares < 1.0)).all():
        raise ModelError("q must be between 0 and 1, both excluded.")
    return shares
