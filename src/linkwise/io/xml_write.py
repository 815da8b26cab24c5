"""How is an element tree written as XML text that reads back as the same tree?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from linkwise.errors import ModelError
from linkwise.io.xml import Element
from linkwise.spatial.array import Array

# XML 1.0 has no way to write these characters, not even as references.
_UNWRITABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]",
)


def xml_text(root: Element, comment: str = "") -> str:
    """XML text of a tree, indented by two spaces, with `comment` before the root element.

    Raises:
        ModelError: A name or text holds a character that XML cannot hold.
    """
    lines = ['<?xml version="1.0" encoding="utf-8"?>']
    if comment:
        lines.append(f"<!-- {comment.replace('--', '- -')} -->")
    stack: list[tuple[Element | str, int]] = [(root, 0)]
    while stack:
        item, depth = stack.pop()
        indent = "  " * depth
        if isinstance(item, str):
            lines.append(f"{indent}</{item}>")
            continue
        start = item.tag + "".join(f" {key}={_quoted(v)}" for key, v in item.attrib.items())
        if item.children:
            lines.append(f"{indent}<{start}>")
            stack.append((item.tag, depth))
            stack.extend((child, depth + 1) for child in reversed(item.children))
        elif item.text:
            lines.append(f"{indent}<{start}>{escape(_writable(item.text))}</{item.tag}>")
        else:
            lines.append(f"{indent}<{start}/>")
    return "\n".join(lines) + "\n"


def make(tag: str, attrib: dict[str, str] | None = None, *children: Element | None) -> Element:
    """An element to write; children that are None are skipped."""
    return Element(tag, attrib or {}, [child for child in children if child is not None])


def digits(value: float) -> str:
    """The shortest decimal that reads back as the same number; whole numbers without a point."""
    value = float(value)
    if not np.isfinite(value):
        raise ModelError(f"a model file cannot hold the number {value}")
    integer = value.is_integer() and abs(value) < 1e15
    return repr(int(value)) if integer else repr(value)


def row(values: Iterable[float] | Array | Sequence[float]) -> str:
    """Numbers separated by blanks; see `digits`."""
    return " ".join(digits(float(value)) for value in values)


def _quoted(text: str) -> str:
    # Without these references a reader turns line breaks in an attribute into blanks.
    return quoteattr(_writable(text), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def _writable(text: str) -> str:
    match = _UNWRITABLE.search(text)
    if match:
        raise ModelError(
            f"{text!r} contains the character {match.group()!r}, which XML cannot hold; rename it"
        )
    return text
