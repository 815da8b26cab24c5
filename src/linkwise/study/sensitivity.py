"""Which variables matter: Sobol and Morris indices, by SALib from the designs of `sampling.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.arguments import number
from linkwise.errors import ModelError
from linkwise.spatial.array import Array
from linkwise.study.results import Results
from linkwise.study.sampling import LEVELS
from linkwise.study.variable import extra


@dataclass(frozen=True, slots=True, eq=False)
class Sensitivity:
    """Indices of each variable, with half widths of their confidence intervals.

    Attributes:
        column: What they are about.
        names: The variables.
        kind: "sobol" or "morris".
        first: Sobol: the share of the variance by each variable alone. Morris: μ*, the mean size
            of its elementary effects (d,).
        total: Sobol: the share with all its interactions. Morris: σ, the spread of its effects.
        first_error: Half width of the interval of `first` (d,).
        total_error: Half width of that of `total` (d,); NaN for Morris.
    """

    column: str
    names: tuple[str, ...]
    kind: str
    first: Array
    total: Array
    first_error: Array
    total_error: Array

    def __str__(self) -> str:
        heads = ("first order", "total") if self.kind == "sobol" else ("mu*", "sigma")
        wide = max(len(x) for x in self.names)
        lines = [f"{self.column:<{wide}}  {heads[0]:>18}  {heads[1]:>18}"]
        for i in np.argsort(-self.total, kind="stable"):
            pairs = ((self.first, self.first_error), (self.total, self.total_error))
            cells = [f"{x[i]:.4g} ± {e[i]:.2g}" for x, e in pairs]
            lines.append(f"{self.names[i]:<{wide}}  {cells[0]:>18}  {cells[1]:>18}")
        return "\n".join(lines)


def sensitivity(results: Results, name: str, *, level: float = 0.95) -> Sensitivity:
    """Sobol indices of a study with the sampler "saltelli", Morris indices of one with "morris".

    Groups with a case that failed or is missing are left out.

    Args:
        results: The results of a study.
        name: The column that the indices are about.
        level: Of the confidence intervals.

    Raises:
        ModelError: The study has another sampler, or too few cases.
    """
    level = number(level, "level", above=0.0, below=1.0)
    request = results.folder.manifest["request"]
    sampler, names = request["sampler"], tuple(request["vary"])
    sizes = {"saltelli": len(names) + 2, "morris": len(names) + 1}
    if sampler not in sizes:
        raise ModelError(
            f"the study has the sampler {sampler!r}; indices need sampler='saltelli' (Sobol) or "
            "'morris'."
        )
    size, y = sizes[sampler], np.full(results.cases, np.nan)
    y[results["case"].astype(np.int64)] = results[name]  # chunks may be missing in between
    y = y.reshape(-1, size)
    fine: Any = np.isfinite(y).all(axis=1)
    y = y[fine]
    if len(y) < 4:
        raise ModelError(f"{len(y)} groups of cases are complete; indices need at least 4.")
    problem = {"num_vars": len(names), "names": list(names), "bounds": [[0.0, 1.0]] * len(names)}
    if sampler == "saltelli":
        analyze: Any = extra("SALib", "SALib.analyze.sobol", "Sobol indices").analyze
        indices = analyze(problem, y.ravel(), calc_second_order=False, conf_level=level, seed=0)
        one, two, *errors = (np.asarray(indices[x]) for x in ("S1", "ST", "S1_conf", "ST_conf"))
        return Sensitivity(name, names, "sobol", one, two, errors[0], errors[1])
    morris: Any = extra("SALib", "SALib.analyze.morris", "Morris indices").analyze
    study = results.study
    u = study.sampling.uniforms(0, len(fine) * size).reshape(-1, size, len(names))[fine]
    indices = morris(problem, u.reshape(-1, len(names)), y.ravel(), conf_level=level,
                   num_levels=LEVELS, seed=0)  # fmt: skip
    # SALib divides by the step of its grid, p / (2 (p - 1)); steps here are 1/2.
    scale = LEVELS / (2.0 * (LEVELS - 1.0)) / 0.5
    keys = ("mu_star", "sigma", "mu_star_conf")
    one, two, error = (scale * np.asarray(indices[x], np.float64) for x in keys)
    return Sensitivity(name, names, "morris", one, two, error, np.full(len(names), np.nan))
