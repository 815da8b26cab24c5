"""A parser of arguments whose errors are one line."""

from __future__ import annotations

import argparse
import re
import sys
from itertools import pairwise
from typing import Any, NoReturn

_WANTS = re.compile(r"argument (?P<options>[-\w/]+): expected one argument")
_MINUS = re.compile(r"-[\d.]")


class Parser(argparse.ArgumentParser):
    """Says what is wrong and where help is; commands are parsers of this kind, too."""

    _given: tuple[str, ...] = ()

    def parse_args(self, *args: Any, **more: Any) -> Any:
        """As usual; unknown arguments are reported together with their command."""
        options, unknown = self.parse_known_args(*args, **more)
        if unknown:
            self._end(f"unrecognized arguments: {' '.join(unknown)}", f" {options.command}")
        return options

    def parse_known_args(self, *args: Any, **more: Any) -> Any:
        """As usual; remembers what was given."""
        self._given = tuple(sys.argv[1:] if not args or args[0] is None else args[0])
        return super().parse_known_args(*args, **more)

    def error(self, message: str) -> NoReturn:
        """One line to the terminal, and exit status 2.

        Numbers that begin with a minus look like an option: then the line says how to write them.
        """
        wants = _WANTS.search(message)
        options = wants["options"].split("/") if wants is not None else []
        for option, value in pairwise(self._given):
            if option in options and _MINUS.match(value):
                message = f"{option} {value}: what begins with a minus is written {option}={value}"
        self._end(message)

    def _end(self, message: str, command: str = "") -> NoReturn:
        self.exit(2, f"linkwise: {message}; see {self.prog}{command} --help\n")
