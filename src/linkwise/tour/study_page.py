"""The report of a study: one HTML file with its request, its failures and all its columns."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from linkwise.atomic_file import write_file
from linkwise.errors import MissingExtraError
from linkwise.plot.canvas import Figure, Theme
from linkwise.plot.study import (
    study_band,
    study_distribution,
    study_indices,
    study_probability,
    study_scatter,
)
from linkwise.study.results import Results
from linkwise.study.sensitivity import sensitivity
from linkwise.study.statistics import Estimate, mean, quantile
from linkwise.tour.page import Block, Listing, Missing, Section, Table, Words, page
from linkwise.tour.visit import Draw, picture

MOST = 12
"""Columns with a picture; all are in the table."""


@np.errstate(over="ignore", invalid="ignore")  # of cases that diverge
def study_page(results: Results, path: str | os.PathLike[str]) -> Path:
    """Write the report of a study as one file that needs no network.

    Args:
        results: The results of a study.
        path: The file.
    """
    manifest = results.folder.manifest
    request = manifest["request"]
    columns = [x for x in manifest["columns"] if np.isfinite(results[x]).sum() > 1]
    sections = [
        Section("What was studied", "request", _request(manifest)),
        Section("Results", "results", _table(results, columns)),
        Section("Distributions", "distributions",
                [_drawn(_histogram(results, x), f"Distribution of {x}.") for x in columns[:MOST]]),
        Section("Probabilities", "probabilities",
                [_drawn(_probability(results, x),
                        f"Probability that {x} is above a bound; failed cases count as above.")
                 for x in columns[:MOST]]),
        Section("What matters", "dependence", _dependence(results, columns)),
        *([Section("Over time", "time", _bands(results))] if manifest["trajectories"] else []),
        Section("Failures", "failures", _failures(results)),
    ]  # fmt: skip
    figures = {
        "cases": f"{results.done:,}",
        "failed": f"{results.failed:,}",
        "variables": str(len(_names(request))),
        "columns": str(len(manifest["columns"])),
    }
    lede = f"{results.done:,} of {results.cases:,} cases by {request['sampler']!r} samples, " \
           f"seed {request['seed']}."  # fmt: skip
    versions = ", ".join(f"{k} {x}" for k, x in manifest["versions"].items())
    footer = [f"Versions: {versions}.", f"Request: `{manifest['digest'][:16]}`."]
    title = f"Study {results.folder.path.name}"
    text = page(title, lede, figures, sections, footer, kind="a study")
    write_file(path, text)
    return Path(path)


def _request(manifest: Mapping[str, Any]) -> list[Block]:
    request: dict[str, Any] = manifest["request"]
    vary = tuple((name, _varied(request, name)) for name in _names(request))
    rest = {k: x for k, x in request.items() if k != "vary"}
    return [
        Table(("variable", "distribution"), vary, "What varies."),
        Listing(json.dumps(rest, indent=1, ensure_ascii=False), "The request."),
    ]


def _names(request: Mapping[str, Any]) -> list[str]:
    """What varies."""
    vary = request["vary"]
    return list(vary["columns"] if request["sampler"] == "table" else vary)


def _varied(request: Mapping[str, Any], name: str) -> str:
    return "a table" if request["sampler"] == "table" else str(request["vary"][name])


def _table(results: Results, columns: list[str]) -> list[Block]:
    rows = list[tuple[str, ...]]()
    for name in columns:
        average = mean(results, name)
        low, middle, high = cast("list[Estimate]", quantile(results, name, [0.05, 0.5, 0.95]))
        width = (average.high - average.low) / 2
        cells = (average.value, low.value, middle.value, high.value)
        mean_cell = f"{cells[0]:.5g} ± {width:.2g}"
        rows.append((f"`{name}`", mean_cell, *(f"{x:.5g}" for x in cells[1:])))
    head = ("column", "mean, 95 %", "5 %", "median", "95 %")
    return [Table(head, tuple(rows), "Cases that failed are not among them.")]


def _histogram(results: Results, name: str) -> Draw:
    def draw(theme: Theme) -> Figure:
        return study_distribution(results, name, theme=theme).figure

    return draw


def _probability(results: Results, name: str) -> Draw:
    def draw(theme: Theme) -> Figure:
        return study_probability(results, name, theme=theme).figure

    return draw


def _scatter(results: Results, x: str, y: str) -> Draw:
    def draw(theme: Theme) -> Figure:
        return study_scatter(results, x, y, theme=theme).figure

    return draw


def _bands(results: Results) -> list[Block]:
    """The first entries of trajectories over time."""
    blocks = list[Block]()
    for name, about in results.folder.manifest["trajectories"].items():
        for entry in about["labels"][: MOST // 4]:
            blocks.append(
                _drawn(
                    lambda theme, n=name, e=entry: (
                        study_band(results, n, entry=e, theme=theme).figure
                    ),
                    f"{name}, {entry}: 5 %, 50 % and 95 % of the cases over time.",
                )
            )
    return blocks


def _drawn(draw: Draw, caption: str) -> Block:
    try:
        return picture(draw, caption)
    except MissingExtraError:
        return Missing(caption, "plot")


def _dependence(results: Results, columns: list[str]) -> list[Block]:
    """Indices where the design has them; else the variable with the largest rank correlation."""
    blocks = list[Block]()
    request = results.folder.manifest["request"]
    names = _names(request)
    for column in columns[: MOST // 2]:
        if request["sampler"] in ("saltelli", "morris"):
            indices = sensitivity(results, column)
            blocks.append(_drawn(lambda theme, i=indices: study_indices(i, theme=theme).figure,
                                 f"Indices of {column}."))  # fmt: skip
            continue
        y = np.asarray(results[column])
        shares = {x: abs(_rank_correlation(np.asarray(results[x]), y)) for x in names}
        best = max(shares, key=lambda x: shares[x])
        text = f"{column} over {best}, with rank correlation {shares[best]:.2f} the largest."
        blocks.append(_drawn(_scatter(results, best, column), text))
    return blocks or [Words("There is no column with numbers.")]


def _rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    fine = np.isfinite(a) & np.isfinite(b)
    ranks = [np.argsort(np.argsort(x[fine], kind="stable")).astype(float) for x in (a, b)]
    if fine.sum() < 3 or any(np.ptp(x) == 0.0 for x in (a[fine], b[fine])):
        return 0.0
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _failures(results: Results) -> list[Block]:
    if not results.failed:
        return [Words("No case failed.")]
    rows = tuple((reason, f"{count:,}") for reason, count in results.reasons(20))
    return [Table(("reason", "cases"), rows, "Why cases failed.")]
