"""Pictures for the page: drawn with `linkwise.plot` on light and on dark paper, and packed."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from linkwise.plot.canvas import Figure, matplotlib, off_screen
from linkwise.plot.theme import DARK, LIGHT, Theme
from linkwise.tour.block import Picture

Draw: TypeAlias = Callable[[Theme], Figure]
Form: TypeAlias = Literal["png", "svg"]

DOTS = 160
"""Of a picture of dots [1/inch]: two for each that the page shows."""


def picture(draw: Draw, caption: str, form: Form = "svg") -> Picture:
    """Draw it for light and for dark paper.

    Args:
        draw: Makes the figure in a theme.
        caption: What it shows, which is also what it says to those who cannot see it.
        form: "svg" for lines, "png" for surfaces of many small faces.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    library = matplotlib("matplotlib", "a picture")
    packed, size = list[str](), (0, 0)
    for theme in (LIGHT, DARK):
        with library.rc_context(_look(theme)), warnings.catch_warnings(), off_screen():
            warnings.simplefilter("ignore")  # of letters that a font has not: boxes, no failure
            figure = draw(theme)
            packed.append(_packed(figure, form, theme))
            size = (round(96 * figure.get_figwidth()), round(96 * figure.get_figheight()))
    return Picture(packed[0], packed[1], caption, *size)


def _look(theme: Theme) -> dict[str, Any]:
    return {
        "font.size": 10.0,
        "svg.hashsalt": "linkwise",
        "text.color": theme.ink,
        "axes.labelcolor": theme.ink,
        "xtick.color": theme.faint,
        "ytick.color": theme.faint,
        "legend.frameon": False,
        "figure.facecolor": theme.paper,
        "axes.facecolor": theme.paper,
    }


def _packed(figure: Figure, form: Form, theme: Theme) -> str:
    """A data address."""
    with io.BytesIO() as file:
        bare = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
        figure.savefig(file, format=form, dpi=DOTS, facecolor=theme.paper, metadata=bare)
        data = file.getvalue()
    kind = "image/svg+xml" if form == "svg" else "image/png"
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
