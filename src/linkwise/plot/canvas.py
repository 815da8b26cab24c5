"""Figures and axes of Matplotlib, and their colours on light and on dark paper."""

from __future__ import annotations

import importlib
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from linkwise.arguments import count, is_a, number, shown
from linkwise.errors import MissingExtraError, ModelError
from linkwise.spatial.array import Array


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours of one look.

    Attributes:
        name: What it is called.
        paper: Background.
        ink: Text, and the skeletons of robots.
        faint: Ticks, grids, remarks.
        colors: For what is shown, in order.
        map: Matplotlib's name of the colours of maps, from small to large.
        beyond: Of a map where there is no value.
    """

    name: str
    paper: str
    ink: str
    faint: str
    colors: tuple[str, ...]
    map: str
    beyond: str

    def color(self, i: int) -> str:
        """The i-th colour, beginning again after the last."""
        return self.colors[i % len(self.colors)]


LIGHT = Theme(
    "light",
    paper="#fbfaf7",
    ink="#23303d",
    faint="#707b85",
    colors=("#c8553d", "#2f6690", "#588157", "#8d6a9f"),
    map="viridis",
    beyond="#e7e4dc",
)
DARK = Theme(
    "dark",
    paper="#161b22",
    ink="#e8e4da",
    faint="#8b959f",
    colors=("#ef7f63", "#6fb1e0", "#8fc184", "#c39ad6"),
    map="viridis",
    beyond="#2a313a",
)

ThemeLike: TypeAlias = Theme | str


def themed(theme: ThemeLike) -> Theme:
    """A theme, or the theme of a name; raises for an unknown one."""
    if isinstance(theme, Theme):
        return theme
    chosen = {"light": LIGHT, "dark": DARK}.get(theme)
    if chosen is None:
        raise ModelError(
            f"theme is {theme!r}; it must be 'light', 'dark' or a linkwise.plot.Theme."
        )
    return chosen


Axes: TypeAlias = Any
"""Matplotlib's Axes; a core install has no types for it."""
Figure: TypeAlias = Any
Dimension: TypeAlias = Literal[2, 3]

SIZE = 4.6
"""Width and height of one panel [inch]."""


def matplotlib(module: str, purpose: str) -> Any:
    """A module of Matplotlib, or one that comes with it; raises with the extra's name."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError(purpose, package="matplotlib", extra="plot") from None


def panels(
    rows: int = 1,
    columns: int = 1,
    *,
    dimension: Dimension = 2,
    theme: ThemeLike = "light",
    size: tuple[float, float] | None = None,
) -> tuple[Figure, list[Axes]]:
    """A figure with panels side by side, row by row.

    Args:
        rows: How many, one above the other.
        columns: How many in a row.
        dimension: 2 for plane panels, 3 for space.
        theme: "light", "dark" or a `Theme`.
        size: Of the figure, width and height [inch].

    Returns:
        The figure, and its axes in a list.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    look = themed(theme)
    if dimension not in (2, 3):
        raise ModelError(f"dimension is {dimension!r}; it must be 2 or 3.")
    if dimension == 3:
        matplotlib("mpl_toolkits.mplot3d", "a figure")
    rows, columns = count(rows, "rows", least=1), count(columns, "columns", least=1)
    if size is not None:
        size = number(size[0], "width [inch]", above=0.0), number(size[1], "height", above=0.0)
    figure = new_figure((SIZE * columns, SIZE * rows) if size is None else size, look)
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
    space = {"projection": "3d"} if dimension == 3 else {}
    axes = [figure.add_subplot(rows, columns, i + 1, **space) for i in range(rows * columns)]
    for ax in axes:
        style(ax, look)
    return figure, axes


_OFF_SCREEN = ContextVar("off_screen", default=False)


@contextmanager
def off_screen() -> Generator[None]:
    """Figures made within are for files alone: no window, and pyplot does not know of them.

    What the user has open, and how Matplotlib shows it, stays as it is.
    """
    token = _OFF_SCREEN.set(True)
    try:
        yield
    finally:
        _OFF_SCREEN.reset(token)


def new_figure(size: tuple[float, float], theme: Theme) -> Figure:
    """An empty figure of width and height [inch].

    Matplotlib chooses how it is shown. Where that needs a display and there is none, and within
    `off_screen`, the figure is made by itself: it can be saved all the same.
    """
    look = {"figsize": size, "facecolor": theme.paper, "layout": "constrained"}
    if not _OFF_SCREEN.get():
        pyplot = matplotlib("matplotlib.pyplot", "a figure")
        try:
            return pyplot.figure(**look)
        except Exception:  # window systems raise various errors
            pass
    agg = matplotlib("matplotlib.backends.backend_agg", "a figure")
    figure = matplotlib("matplotlib.figure", "a figure").Figure(**look)
    agg.FigureCanvasAgg(figure)
    return figure


def axes_for(ax: Axes | None, dimension: Dimension, theme: Theme) -> Axes:
    """The axes that are given, or new ones; raises if they are of another dimension."""
    if ax is None:
        return panels(dimension=dimension, theme=theme)[1][0]
    check_axes(ax)
    if is_space(ax) != (dimension == 3):
        kind = "in space" if is_space(ax) else "plane"
        raise ModelError(
            f"the Axes is {kind}, and the picture is of {dimension} dimensions; give a plane, "
            "like plane='xz', for plane Axes, and none for Axes with projection='3d'."
        )
    return ax


def axes_given(given: object, count: int) -> list[Axes]:
    """Plane axes that a caller gave, one or several; raises unless there are `count`."""
    many = isinstance(given, Iterable)
    boards = list(cast("Iterable[Axes]", given)) if many else [cast(Axes, given)]
    if len(boards) != count:
        raise ModelError(
            f"{len(boards)} Axes were given, and the picture has {count} panels; give as many, or "
            "none for a new figure."
        )
    for board in boards:
        check_axes(board)
    if any(is_space(board) for board in boards):
        raise ModelError("the Axes is in space, and the picture is plane.")
    return boards


def check_axes(ax: object) -> None:
    """Raise for what is not Axes of Matplotlib."""
    kind = matplotlib("matplotlib.axes", "a figure").Axes
    is_a(kind, ax, "ax", "Make them with lw.plot.panels or matplotlib.pyplot.subplots.")


def tint(color: str | None, default: str) -> str:
    """A colour that Matplotlib knows, or the default."""
    if color is None:
        return default
    if not matplotlib("matplotlib.colors", "a figure").is_color_like(color):
        raise ModelError(
            f"color is {shown(color)}; give a colour of Matplotlib, like 'tab:blue' or '#c8553d'."
        )
    return color


def opacity(alpha: float) -> float:
    """How solid something is drawn, from 0 to 1."""
    return number(alpha, "alpha", least=0.0, most=1.0)


def is_space(ax: Axes) -> bool:
    """Whether axes are of three dimensions."""
    return hasattr(ax, "get_zlim")


def style(ax: Axes, theme: Theme) -> None:
    """Colours of axes, ticks and grid."""
    ticks = matplotlib("matplotlib.ticker", "a figure").MaxNLocator
    ax.set_facecolor(theme.paper)
    ax.tick_params(colors=theme.faint, labelsize=8)
    ax.title.set_color(theme.ink)
    ax.title.set_fontsize(10)
    for axis in (ax.xaxis, ax.yaxis, *((ax.zaxis,) if is_space(ax) else ())):
        axis.label.set_color(theme.ink)
        axis.label.set_fontsize(9)
    if is_space(ax):
        for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
            axis.set_pane_color((0.0, 0.0, 0.0, 0.0))
            axis.line.set_color(theme.faint)
            axis._axinfo["grid"].update(color=theme.beyond, linewidth=0.6)
            axis.set_major_locator(ticks(4))
        return
    ax.grid(True, color=theme.faint, alpha=0.15, linewidth=0.6)
    ax.set_axisbelow(True)
    for name, spine in ax.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color(theme.faint)


def metres(ax: Axes, names: str = "xyz") -> None:
    """Labels of axes in metres, and one length of a metre on all of them."""
    ax.set_xlabel(f"{names[0]} [m]")
    ax.set_ylabel(f"{names[1]} [m]")
    if is_space(ax):
        ax.set_zlabel(f"{names[2]} [m]")
        return
    ax.margins(0.08)
    if ax.get_aspect() == "auto":
        ax.set_aspect("equal", adjustable="datalim")


def hold(ax: Axes, points: Array) -> None:
    """In space, make room for points (k, 3) too: a cube, so that metres are of one length."""
    if not is_space(ax):
        return
    ax.auto_scale_xyz(*points.T, had_data=True)  # together with everything drawn before
    spans = (ax.xy_dataLim.intervalx, ax.xy_dataLim.intervaly, ax.zz_dataLim.intervalx)
    low, high = np.array(spans).T
    middle, half = 0.5 * (low + high), 0.52 * max(float((high - low).max()), 1e-9)
    for bounds, centre in zip((ax.set_xlim, ax.set_ylim, ax.set_zlim), middle, strict=True):
        bounds(centre - half, centre + half)
    ax.set_box_aspect((1.0, 1.0, 1.0), zoom=0.9)  # room for labels, which no layout looks after


def once(ax: Axes, name: str) -> bool:
    """Whether nothing of this name was drawn yet; artists are named by `set_gid`."""
    return all(child.get_gid() != name for child in ax.get_children())


def legend(ax: Axes, theme: Theme) -> None:
    """The labels that were given, outside of nothing and without a frame."""
    if ax.get_legend_handles_labels()[1]:
        ax.legend(frameon=False, fontsize=8, labelcolor=theme.ink, loc="best")
