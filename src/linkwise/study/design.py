"""Parameter design: the values of design variables that are best over what varies, by Optuna."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.arguments import count, mapping, number, shown
from linkwise.errors import ModelError, unknown_name
from linkwise.spatial.array import Array
from linkwise.study.journal import journal
from linkwise.study.response import response
from linkwise.study.study import Study
from linkwise.study.variable import extra

WORST = 1e300
"""The objective of designs whose cases fail: the search takes finite numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """The best values that were found.

    Attributes:
        values: By name.
        objective: What they reach.
        trials: How many designs were tried.
        history: The objective of each trial (trials,).
    """

    values: dict[str, float]
    objective: float
    trials: int
    history: Array

    def __str__(self) -> str:
        text = ", ".join(f"{k} = {x:.6g}" for k, x in self.values.items())
        return f"{text}: {self.objective:.6g} after {self.trials} designs"


def optimize(
    study: Study,
    name: str,
    design: Mapping[str, tuple[float, float]],
    *,
    statistic: str | Callable[[Array], float] = "mean",
    trials: int = 50,
    seed: int = 0,
    folder: str | os.PathLike[str] | None = None,
    workers: Any = None,
) -> Design:
    """Minimise a statistic of a column over design variables, with the same draws for each design.

        lw.study.optimize(study, "error", {"kp": (50, 400), "kv": (5, 60)}, statistic="q95")

    Failed cases, and those without a number, count as infinite. With a folder, answers are stored
    there, and `designs.jsonl` with what was tried: the same call goes on where it was killed and
    ends with the same design, and more trials extend it.

    Args:
        study: The study. It varies the design variables too; their draws are replaced.
        name: The column.
        design: (low, high) of design variables, by name.
        statistic: "mean", "max", "q95" or another quantile, or a function of the values (cases,).
        trials: How many designs to try.
        seed: Of the search.
        folder: Where answers are stored; None for nowhere.
        workers: What computes the cases of a design, as for `Study.run`.

    Raises:
        ModelError: No design has a finite statistic.
    """
    search: Any = extra("optuna", "optuna", "parameter design", named="design")
    for key in mapping(design, "design", "{'kp': (50.0, 400.0)}"):
        if key not in study.names:
            raise unknown_name("variable", key, study.names, owner="the study")
    trials = count(trials, "trials", least=1)
    reduce = _statistic(statistic)
    values = study.values()

    bounds = {
        k: (number(a, f"design[{k!r}]"), number(b, f"design[{k!r}]"))
        for k, (a, b) in design.items()
    }
    search.logging.set_verbosity(search.logging.ERROR)  # an objective that raises ends it
    done: Any = search.create_study(sampler=search.samplers.TPESampler(seed=seed))
    request: dict[str, Any] = {
        "search": "optimize",
        "study": study.description,
        "column": name,
        "design": bounds,
        "statistic": statistic,
        "seed": seed,
    }
    with journal(folder, request) as kept, response(study, name, workers, kept) as column:

        def objective(trial: Any) -> float:
            chosen = {k: trial.suggest_float(k, a, b) for k, (a, b) in bounds.items()}
            each = {k: np.full(study.cases, x) for k, x in chosen.items()}
            y = column(values | each)
            value = float(reduce(np.where(np.isnan(y), np.inf, y)))
            reached = WORST if np.isnan(value) else max(-WORST, min(value, WORST))
            kept.note(trial.number, {"design": chosen, "objective": reached})
            return reached

        done.optimize(objective, n_trials=trials)
    if done.best_value >= WORST:
        raise ModelError(
            f"{name!r} has no finite statistic in any of {len(done.trials)} designs: cases fail or "
            "have no number in each. Look at study.evaluate(...).reasons, or use a quantile, which "
            "some failed cases may not change."
        )
    history = np.array([x.value for x in done.trials], np.float64)
    return Design(dict(done.best_params), float(done.best_value), len(history), history)


def _statistic(statistic: str | Callable[[Array], float]) -> Callable[[Array], float]:
    if callable(statistic):
        return statistic
    if statistic in ("mean", "max"):
        return {"mean": np.mean, "max": np.max}[statistic]
    if statistic.startswith("q") and statistic[1:].isdigit():
        share = float(f"0.{statistic[1:]}")
        return lambda y: float(np.quantile(y, share, method="higher"))
    raise ModelError(
        f"statistic is {shown(statistic)}; it must be 'mean', 'max', 'q95' (any digits after 0.) "
        "or a function."
    )
