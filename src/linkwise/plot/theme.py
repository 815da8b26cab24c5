"""Colours of pictures: on light paper, and on dark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from linkwise.errors import ModelError


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
    """A theme by itself or by its name; raises for one that there is not."""
    if isinstance(theme, Theme):
        return theme
    chosen = {"light": LIGHT, "dark": DARK}.get(theme)
    if chosen is None:
        raise ModelError(
            f"theme is {theme!r}; it must be 'light', 'dark' or a linkwise.plot.Theme."
        )
    return chosen
