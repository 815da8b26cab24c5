"""Rare events by subset simulation.

    P(y > b) = P(y > b₁) P(y > b₂ | y > b₁) ... P(y > b | y > b_m)

Levels b₁ < b₂ < ... are quantiles of the samples, so that each factor is about `share`, or less
where values tie. Samples of the next level come from chains of equal length that start at all
samples beyond the level, and at no others, in standard normal coordinates z of all variables:

    z' = √(1 − β²) z + β ξ,   accepted if y(z') stays beyond the level

Source: Au, Beck, Estimation of small failure probabilities in high dimensions by subset simulation
(2001); the proposal is that of Papaioannou, Betz, Zwirglmaier, Straub, MCMC algorithms for subset
simulation (2015).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.arguments import count, number
from linkwise.errors import ModelError
from linkwise.spatial.array import Array
from linkwise.study import counter
from linkwise.study.journal import journal
from linkwise.study.response import Response, response
from linkwise.study.statistics import Estimate
from linkwise.study.study import Study
from linkwise.study.variable import extra

BETA = 0.6
"""Length of the steps of the chains."""

MOST_LEVELS = 30


@dataclass(frozen=True, slots=True, eq=False)
class RareEvent:
    """The probability of a rare event.

    Attributes:
        probability: The estimate with its interval, from the coefficient of variation.
        levels: The bounds of each level.
        chances: The probability of being above each of them.
        cases: How many cases were computed.
        values: What varies in the samples beyond the last bound, by name (n,).
    """

    probability: Estimate
    levels: tuple[float, ...]
    chances: tuple[float, ...]
    cases: int
    values: dict[str, Array]

    def __str__(self) -> str:
        return f"{self.probability}; {len(self.levels)} levels, {self.cases} cases computed"


def rare_event(
    study: Study,
    name: str,
    *,
    above: float,
    cases: int = 1000,
    share: float = 0.1,
    seed: int = 0,
    folder: str | os.PathLike[str] | None = None,
    workers: Any = None,
) -> RareEvent:
    """The probability that a column of a study is above a bound, by subset simulation.

    Failed cases count as being above every bound. What varies in the samples beyond the bound is
    returned. With a folder, answers are stored there: the same call goes on where it was killed and
    ends with the same bits, and another bound uses the levels that are there.

    Args:
        study: The study; its sampler must be "random" and its noise off.
        name: The column.
        above: The bound.
        cases: Of each level.
        share: Of the samples that go on from each level.
        seed: Of the chains.
        folder: Where answers are stored; None for nowhere.
        workers: What computes the cases, as for `Study.run`.
    """
    bound, cases = number(above, "above"), count(cases, "cases", least=20)
    share = number(share, "share", above=0.0, most=0.5)
    if study.sampling.sampler != "random" or study.sampling.proposal:
        raise ModelError("subset simulation needs a study with sampler='random' without propose.")
    request: dict[str, Any] = {
        "search": "rare_event",
        "study": {k: x for k, x in study.description.items() if k != "cases"},
        "column": name,
        "cases": cases,
        "share": share,
        "seed": seed,
    }
    with journal(folder, request) as kept, response(study, name, workers, kept) as column:
        return _subset(study, name, column, bound, cases, share, seed)


def _subset(
    study: Study, name: str, column: Response, bound: float, cases: int, share: float, seed: int
) -> RareEvent:
    """Levels until the bound."""
    special = extra("scipy", "scipy.special", "subset simulation")
    d, drawn = len(study.names), 0

    def normal(stream: str, n: int) -> Array:
        nonlocal drawn
        u = counter.uniform(seed, stream, drawn, drawn + n * d)
        drawn += n * d
        return special.ndtri(u).reshape(n, d)

    def responses(z: Array) -> Array:
        x = study.sampling.at(special.ndtr(z))
        y = column({k: x[:, i] for i, k in enumerate(study.names)})
        return np.where(np.isfinite(y), y, np.inf)

    z = normal("rare", cases)
    y = responses(z)
    computed, chance, variance = cases, 1.0, 0.0
    levels, chances = list[float](), list[float]()
    chain = 1  # samples of a chain that follow each other
    while True:
        order, kept = np.argsort(-y, kind="stable"), max(1, round(share * len(y)))
        level = float(min(bound, (y[order[kept - 1]] + y[order[kept]]) / 2))
        level = bound if not np.isfinite(level) else level
        beyond = y > level
        p = float(beyond.mean())
        if p == 0.0 or len(levels) > MOST_LEVELS:
            raise ModelError(
                f"{name!r} does not come closer to {bound:g} than {float(y.max()):g}: the event "
                "may be impossible."
            )
        chance *= p
        variance += (1.0 - p) / (p * len(y)) * (1.0 + _dependence(beyond, chain))
        levels.append(level)
        chances.append(chance)
        if level >= bound:
            break
        seeds = order[: int(beyond.sum())]  # where values tie, fewer than `kept`
        z, y, chain = z[seeds], y[seeds], cases // len(seeds)
        chains, values = [z], [y]
        for _ in range(chain - 1):
            step = np.sqrt(1.0 - BETA**2) * z + BETA * normal("rare", len(z))
            new = responses(step)
            computed += len(step)
            move = new > level
            z, y = np.where(move[:, None], step, z), np.where(move, new, y)
            chains.append(z)
            values.append(y)
        z, y = np.stack(chains, axis=1).reshape(-1, d), np.stack(values, axis=1).ravel()
    spread = float(np.sqrt(variance))
    ends = chance * np.exp(-1.96 * spread), min(1.0, chance * np.exp(1.96 * spread))
    x = study.sampling.at(special.ndtr(z[beyond]))
    return RareEvent(
        Estimate(chance, *ends, 0.95, float(computed)),
        tuple(levels),
        tuple(chances),
        computed,
        {k: x[:, i] for i, k in enumerate(study.names)},
    )


def _dependence(beyond: Any, length: int) -> float:
    """γ = 2 Σ_k (1 − k/n) ρ_k of the indicator along chains of a length."""
    if length < 2:
        return 0.0
    hit = beyond.reshape(-1, length).astype(np.float64)
    p = float(hit.mean())
    if not 0.0 < p < 1.0:
        return 0.0
    gamma = 0.0
    for k in range(1, length):
        rho = float((hit[:, :-k] * hit[:, k:]).mean() - p * p) / (p - p * p)
        gamma += 2.0 * (1.0 - k / length) * rho
    return max(gamma, 0.0)
