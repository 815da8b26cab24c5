"""Draw the figures of docs/how_to/show_and_plot.md: those that the page itself makes.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/plots.py
"""

from __future__ import annotations

from typing import Any

import matplotlib

matplotlib.use("Agg")

import contextlib
import tempfile

from pages import DOCS, names_of

import linkwise.plot as lp
from linkwise.plot.matrix_picture import boards_for, draw_matrix
from linkwise.plot.operator import edge_of, mathematics


def save(figure: Any, name: str) -> None:
    """Write docs/_static/plots_<name>.png on its own paper, without a date in it."""
    path = DOCS / "_static" / f"plots_{name}.png"
    figure.savefig(path, dpi=96, facecolor=figure.get_facecolor(), metadata={"Software": None})


def operators(names: dict[str, Any]) -> None:
    """Two operators of the page side by side."""
    from linkwise.algebra import K, phi
    from linkwise.algebra.dense import Dense

    dense = Dense(names["man"], names["q"])
    edges = [(edge_of(dense, x.range), edge_of(dense, x.domain)) for x in (phi, K)]
    boards = boards_for(edges, lp.LIGHT)
    for board, expr, (rows, columns), labels in zip(
        boards, (phi, K), edges, (names["shifts"], names["gains"]), strict=True
    ):
        draw_matrix(
            board, dense.matrix(expr), rows, columns, lp.LIGHT, title=mathematics(expr),
            named_rows=board is boards[0],
        )  # fmt: skip
        board.set_xlabel(labels.get_xlabel(), color=lp.LIGHT.faint, fontsize=8)
    save(boards[0].figure, "operators")


def main() -> None:
    """All figures."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        names = names_of("how_to/show_and_plot.md", "The tour")
    save(names["histories"][0].figure, "history")
    save(names["chosen"][0].figure, "channels")
    save(names["budget"][0].figure, "energy")
    operators(names)
    save(names["pair"][0].figure, "mass")


if __name__ == "__main__":
    main()
