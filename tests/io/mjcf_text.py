"""Small MJCF texts, and a way to read them without files."""

from __future__ import annotations

from typing import Any

from linkwise.io.mjcf import read_mjcf, write_mjcf
from linkwise.io.report import Reporter, Strict
from linkwise.io.xml import parse_xml
from linkwise.model.mechanism import Mechanism
from linkwise.model.report import LoadReport

BALL = '<geom type="sphere" size="0.1"/>'


def read(text: str, *, strict: Strict = False, **options: Any) -> Mechanism:
    """The mechanism of a `<mujoco>` text; its lines count from the root tag as 1."""
    return read_mjcf(parse_xml(text, "m.xml"), "m.xml", Reporter("m.xml", strict), **options)


def model(*lines: str) -> str:
    """A model with each piece on a line of its own, the first on line 2."""
    return "\n".join(["<mujoco>", *lines, "</mujoco>"])


def world(*lines: str, before: str = "", after: str = "") -> str:
    """A model with pieces in the world, the first on line 4; `before` stands on line 2."""
    return model(before, "<worldbody>", *lines, "</worldbody>", after)


def body(name: str, *inside: str, **attributes: str) -> str:
    """A body on one line."""
    given = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f'<body name="{name}"{given}>{"".join(inside)}</body>'


def again(mech: Mechanism, **options: Any) -> tuple[Mechanism, LoadReport]:
    """Written and read back, with the report of writing."""
    reporter = Reporter("out.xml")
    return read(write_mjcf(mech, reporter), **options), reporter.report()
