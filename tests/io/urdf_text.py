"""Small URDF texts, and a way to read them without files."""

from __future__ import annotations

from typing import Any

from linkwise.io.report import Reporter, Strict
from linkwise.io.urdf.read import read_urdf
from linkwise.io.urdf.write import write_urdf
from linkwise.io.xml import parse_xml
from linkwise.model.mechanism import Mechanism
from linkwise.model.report import LoadReport

INERTIAL = (
    '<inertial><origin xyz="0.1 0 0.2"/><mass value="2"/>'
    '<inertia ixx="0.03" ixy="0.001" ixz="0" iyy="0.04" iyz="0" izz="0.05"/></inertial>'
)


def read(text: str, *, strict: Strict = False, **options: Any) -> Mechanism:
    """The mechanism of a `<robot>` text; its lines count from the robot tag as 1."""
    return read_urdf(parse_xml(text, "r.urdf"), "r.urdf", Reporter("r.urdf", strict), **options)


def link(name: str, inside: str = INERTIAL) -> str:
    return f'<link name="{name}">{inside}</link>'


def joint(name: str, kind: str, parent: str, child: str, inside: str = "") -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f"{inside}</joint>"
    )


def robot(*lines: str) -> str:
    """A robot with each piece on a line of its own, the first on line 2."""
    return "\n".join(['<robot name="r">', *lines, "</robot>"])


def arm(kind: str, inside: str = "", *more: str) -> str:
    """Two links and one joint, on lines 2 to 4; further pieces from line 5."""
    return robot(link("base"), link("tip"), joint("j", kind, "base", "tip", inside), *more)


def again(mech: Mechanism) -> tuple[Mechanism, LoadReport]:
    """Written and read back, with the report of writing."""
    reporter = Reporter("out.urdf")
    return read(write_urdf(mech, reporter)), reporter.report()
