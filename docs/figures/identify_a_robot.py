"""Draw docs/_static/identify_a_robot.png: the fit that docs/how_to/identify_a_robot.md computes.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/identify_a_robot.py
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

from pages import names_of, save

import linkwise as lw


def main() -> None:
    """Forces, residuals and parameters."""
    names = names_of("how_to/identify_a_robot.md")
    axes = lw.plot.identification(names["fit"], *names["data"])
    save(axes[0].figure, "identify_a_robot.png")


if __name__ == "__main__":
    main()
