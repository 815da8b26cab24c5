"""Pictures of what was identified, and how well."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from io import BytesIO
from pathlib import Path

import numpy as np

from linkwise.arguments import path
from linkwise.atomic_file import write_file
from linkwise.errors import ModelError
from linkwise.identification.estimate import Identification
from linkwise.plot.canvas import Axes, ThemeLike, axes_given, legend, off_screen, panels, themed
from linkwise.plot.time_panel import short
from linkwise.spatial.array import ArrayLike

MOST = 24
"""Parameters that are shown: those that are known least."""


def identification(
    fit: Identification,
    q: ArrayLike,
    v: ArrayLike,
    vdot: ArrayLike,
    tau: ArrayLike,
    *,
    applied: ArrayLike | None = None,
    ax: Axes | Sequence[Axes] | None = None,
    theme: ThemeLike = "light",
) -> list[Axes]:
    """Draw joint forces, their residuals, and the parameters with confidence intervals.

    The first panel compares measured forces with those of the identified mechanism, both relative
    to the spread of the joint. The second has the residuals in standard deviations, next to a
    normal distribution: outliers and a wrong model show as tails. The third has the 95 % intervals
    of the base parameters relative to their values; those that are known least are at the top.

    Args:
        fit: What `lw.identify` returned.
        q: Joint positions (samples, nq) [m or rad].
        v: Joint velocities (samples, nv) [m/s or rad/s].
        vdot: Joint accelerations (samples, nv) [m/s² or rad/s²].
        tau: Measured joint forces (samples, nv) [N or N m], or currents.
        applied: As in `lw.identify`.
        ax: Where to draw: three Axes; by default a new figure.

    Returns:
        The three Axes.

    Raises:
        ModelError: It is no identification; another number of Axes.
        MissingExtraError: Matplotlib is not installed.
    """
    look = themed(theme)
    if not isinstance(fit, Identification):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(f"fit is a {type(fit).__name__}; lw.identify makes one.")
    predicted, measured = fit.compared(q, v, vdot, tau, applied=applied)
    if not np.isfinite(predicted).all():
        raise ModelError("the forces of the identified mechanism are not finite for this motion.")
    boards = panels(1, 3, theme=look, size=(13.0, 4.4))[1] if ax is None else axes_given(ax, 3)
    spread = np.maximum(np.std(measured, axis=0), 1e-300)
    for j, joint in enumerate(fit.joints):
        dots = {"color": look.color(j), "ms": 1.5, "alpha": 0.6, "label": short(joint)}
        boards[0].plot(predicted[:, j] / spread[j], measured[:, j] / spread[j], ".", **dots)
    ends = np.array([-1.0, 1.0]) * np.abs(predicted / spread).max(initial=1.0)
    boards[0].plot(ends, ends, color=look.ink, lw=0.8)
    boards[0].set(xlabel="force of the mechanism / spread", ylabel="measured force / spread")
    legend(boards[0], look)
    misses = ((measured - predicted) / np.maximum(fit.noise, 1e-300)).ravel()
    x = np.linspace(-5.0, 5.0, 101)
    boards[1].hist(np.clip(misses, -5, 5), bins=50, density=True, color=look.color(1), alpha=0.5)
    boards[1].plot(x, np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi), color=look.ink, lw=1.2)
    boards[1].set(xlabel="residual / standard deviation", ylabel="density")
    share = 1.96 * fit.deviation / np.maximum(np.abs(fit.estimate), 1e-300)
    order = np.argsort(share)[-MOST:]
    rows = np.arange(len(order))
    boards[2].barh(rows, 100.0 * share[order], color=look.color(0), alpha=0.7)
    boards[2].set_yticks(rows, [short(fit.names[int(i)]) for i in order.tolist()], fontsize=7)
    boards[2].set(xscale="log", xlabel="95 % interval, ± % of the value")
    return boards


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em }}
table {{ border-collapse: collapse }} td, th {{ padding: .2em 1em; text-align: right }}
td:first-child, th:first-child {{ text-align: left }} tr:nth-child(even) {{ background: #f4f4f4 }}
img {{ max-width: 100% }}
</style></head><body><h1>{title}</h1><p>{about}</p>
<img alt="{alt}" src="data:image/png;base64,{image}">
<h2>Joints</h2>{joints}<h2>Base parameters</h2>{base}<h2>Numbers of the mechanism</h2>{numbers}
</body></html>
"""


def identification_report(
    fit: Identification,
    q: ArrayLike,
    v: ArrayLike,
    vdot: ArrayLike,
    tau: ArrayLike,
    *,
    applied: ArrayLike | None = None,
    file: str | Path,
) -> Path:
    """Write what was identified, and how well, as one HTML file with its pictures.

    Args:
        fit: What `lw.identify` returned.
        q: Joint positions (samples, nq) [m or rad].
        v: Joint velocities (samples, nv) [m/s or rad/s].
        vdot: Joint accelerations (samples, nv) [m/s² or rad/s²].
        tau: Measured joint forces (samples, nv) [N or N m], or currents.
        applied: As in `lw.identify`.
        file: The HTML file.

    Returns:
        The path of the file.

    Raises:
        ModelError: It is no identification.
        MissingExtraError: Matplotlib is not installed.
    """
    place, picture = Path(path(file, "file")), BytesIO()
    with off_screen():
        board = identification(fit, q, v, vdot, tau, applied=applied)[0]
        board.figure.savefig(picture, format="png", dpi=130)
    low, high = fit.interval().T
    joints = [
        (joint, f"{noise:.4g}", f"{100.0 * error:.2g} %", str(int(memory)))
        for joint, noise, error, memory in zip(
            fit.joints, fit.noise, fit.error, fit.memory, strict=True
        )
    ]
    base = [
        (name, *(f"{x:.6g}" for x in row))
        for name, *row in zip(
            fit.names, fit.estimate, fit.deviation, low, high, fit.consistent, strict=True
        )
    ]
    text = PAGE.format(
        title=escape(f"Identification of {fit.mech.name}"),
        about=escape(" ".join(str(fit).splitlines()[:2])),
        alt="Measured and predicted forces, residuals, and confidence intervals",
        image=base64.b64encode(picture.getvalue()).decode("ascii"),
        joints=_table(("joint", "residual", "of its force", "correlated samples"), joints),
        base=_table(("base parameter", "estimate", "deviation", "95 % from", "to", "used"), base),
        numbers=_table(("number", "value"), [(k, f"{x:.6g}") for k, x in fit.parameters.items()]),
    )
    write_file(place, text.encode("utf-8"))
    return place


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(x)}</th>" for x in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(x)}</td>" for x in row) + "</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{body}</table>"
