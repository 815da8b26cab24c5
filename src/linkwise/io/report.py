"""What was used approximately, or not at all, while a file was read or written?"""

from __future__ import annotations

import os
from typing import Final, Literal

from linkwise.errors import ModelError, ParseError
from linkwise.io.xml import Element
from linkwise.model.report import Affects, Effect, LoadItem, LoadReport

Strict = bool | Literal["motion"]
SaveReport = LoadReport
"""Saving reports in the same form as loading."""

MAX_ITEMS: Final = 10_000
"""Items kept in one report; a longer list is cut with a last item that says so."""


_SAID: Final[dict[Effect, str]] = {
    "approximate": "only approximated",
    "ignored": "ignored",
    "kept": "kept, but does not act",
}


class Reporter:
    """Collects report items, and raises on the first one that `strict` does not tolerate.

    Args:
        source: The file that is read or written.
        strict: False collects all; True raises on the first item; "motion" raises on the first
            item for which the mechanism moves otherwise than the file says.
    """

    def __init__(self, source: str | os.PathLike[str], strict: Strict = False) -> None:
        if strict not in (True, False, "motion"):
            raise ModelError(f"strict={strict!r} was asked; allowed are False, True and 'motion'")
        self.source = os.fspath(source)
        self.strict: Strict = strict
        self._items: list[LoadItem] = []

    def note(
        self, element: Element | str, effect: Effect, reason: str, affects: Affects = "other"
    ) -> None:
        """Add an item about an element (or about a thing named by text, when writing).

        Raises:
            ParseError: `strict` does not tolerate such an item.
        """
        if isinstance(element, Element):
            file, line, label = element.file, element.line, element.label
        else:
            file, line, label = self.source, None, element
        item = LoadItem(file, line, label, effect, reason, affects)
        if self.strict is True or (self.strict == "motion" and affects == "motion"):
            raise ParseError(
                f"{label} is {_SAID[effect]} (affects {affects}): {reason}; "
                f"strict={self.strict!r} refuses this",
                file=file,
                line=line,
            )
        if len(self._items) < MAX_ITEMS:
            self._items.append(item)
        elif len(self._items) == MAX_ITEMS:
            self._items.append(
                LoadItem(file, line, label, "ignored", "the report is cut here", "other")
            )

    def report(self) -> LoadReport:
        """Everything noted so far, in the order of the files' lines."""
        files = {item.file: i for i, item in reversed(list(enumerate(self._items)))}
        items = sorted(self._items, key=lambda item: (files[item.file], item.line or 0))
        return LoadReport(self.source, tuple(items))
