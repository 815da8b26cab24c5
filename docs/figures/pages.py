"""Runs the Python blocks of a page, so that a figure shows what the page computes."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python[ \t]*\n(?P<code>.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)

PAPER, INK, FAINT = "#fbfaf7", "#23303d", "#707b85"
COLORS = ("#c8553d", "#2f6690", "#588157", "#8d6a9f")


def names_of(page: str, before: str = "") -> dict[str, Any]:
    """The names that the blocks of docs/<page> define, or only those before a heading."""
    text = (DOCS / page).read_text(encoding="utf-8")
    if before:
        text = text[: text.index(f"\n## {before}\n")]
    names: dict[str, Any] = {"__name__": "__docs__"}
    with contextlib.redirect_stdout(io.StringIO()):
        for block in BLOCK.finditer(text):
            exec(compile(block["code"], page, "exec"), names)
    return names


def save(figure: Any, name: str) -> None:
    """Write docs/_static/<name>, without a date in it."""
    figure.savefig(DOCS / "_static" / name, dpi=96, facecolor=PAPER, metadata={"Software": None})
