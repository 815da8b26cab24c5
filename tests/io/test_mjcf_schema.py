"""Every element and attribute of MuJoCo's schema is used, refused, or reported for what it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import linkwise.io.mjcf
from linkwise.io.mjcf.ignored import ATTRIBUTES, USED, meaning

pytestmark = pytest.mark.oracle
mujoco = pytest.importorskip("mujoco")

AFFECTS = ("motion", "control", "contact", "appearance", "other")


def schema() -> list[tuple[tuple[str, ...], list[str]]]:
    """Path of tags below <mujoco> and attributes of every element that MuJoCo reads."""
    result = list[tuple[tuple[str, ...], list[str]]]()
    path = list[str]()
    for line in mujoco.mj_printSchema(False, True).splitlines():
        start = re.match(r"( *)([\w()]+) \([!*?R]\) *(.*)", line)
        if start is None:
            result[-1][1].extend(line.split())
            continue
        path[len(start[1]) // 3 :] = [start[2].replace("(world)", "")]
        result.append((tuple(path[1:]), start[3].split()))
    return result


def test_the_schema_is_read():
    paths = dict(schema())
    assert len(paths) > 150
    assert "gravcomp" in paths["body",]
    assert "springyield" in paths["body", "joint"]
    assert "kp" in paths["actuator", "position"]
    assert sum(map(len, paths.values())) > 1500


@pytest.mark.parametrize(("path", "attributes"), schema()[1:], ids=lambda x: "/".join(x[:6]))
def test_every_element_and_attribute_is_classified(path: tuple[str, ...], attributes: list[str]):
    result = meaning(path)
    assert result is not None, f"<{'/'.join(path)}> is in no table"
    if isinstance(result, str):
        assert result in (*AFFECTS, "refused")
        return
    unknown = [name for name in attributes if name not in result]
    assert not unknown, f"attributes of <{'/'.join(path)}> in no table: {unknown}"
    assert all(value is USED or value in AFFECTS for value in result.values())


def test_what_is_called_used_is_looked_at():
    """Every attribute marked as used stands in the text of some reader."""
    folder = Path(linkwise.io.mjcf.__file__).parent
    text = "".join(file.read_text() for file in folder.glob("*.py") if file.stem != "ignored")
    for tag, table in ATTRIBUTES.items():
        for name, affects in table.items():
            assert affects is not USED or f'"{name}"' in text or f"'{name}'" in text, (tag, name)
