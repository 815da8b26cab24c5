"""Pages inside a notebook."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

from linkwise.arguments import count
from linkwise.spatial.array import ArrayLike
from linkwise.viewer.export import html_page

STYLE = "border:1px solid #d8d5cc;border-radius:6px;display:block"


def frame_of(url: str, height: int = 480) -> str:
    """A frame with the page of a running viewer."""
    return (
        f'<iframe src="{html.escape(url, quote=True)}" width="100%" height="{int(height)}" '
        f'style="{STYLE}"></iframe>'
    )


@dataclass(frozen=True, slots=True)
class Embedded3D:
    """A page that needs no server, shown by a notebook where this is the value of a cell.

    Attributes:
        page: The HTML.
        height: Of the frame [pixel].
    """

    page: str
    height: int = 480

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.page, quote=True)}" width="100%" '
            f'height="{int(self.height)}" style="{STYLE}"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<3-D page of {len(self.page) / 1e6:.1f} MB>"


def embedded(
    subject: Any, q: ArrayLike | None = None, *, height: int = 480, **options: Any
) -> Embedded3D:
    """A mechanism or a recording inside a notebook; it stays when the notebook is saved.

    Args:
        subject: A mechanism or a recording.
        q: Joint positions (nq,), or (k, nq).
        height: Of the frame [pixel].
        options: As of `lw.viewer.export_html`.
    """
    height = count(height, "height [pixel]", least=1)
    return Embedded3D(html_page(subject, q, **options), height)
