"""Nothing in a URDF is dropped in silence: what no reader looks at is in the report.

The text below has every element and attribute of the specification (urdf.xsd). An attribute and a
child that nobody knows are put into each of its elements in turn, and have to be reported there,
unless the element is itself reported as a whole.
"""

from __future__ import annotations

import re

import pytest

from linkwise.io.report import Reporter
from linkwise.io.urdf.read import read_urdf
from linkwise.io.xml import Element, parse_xml

TEXT = """<robot name="r" version="1.0">
<material name="red">
<color rgba="1 0 0 1"/>
<texture filename="t.png"/>
</material>
<link name="a"/>
<link name="b">
<inertial>
<origin xyz="0 0 0" rpy="0 0 0"/>
<mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
</inertial>
<visual name="v">
<origin xyz="0 0 0" rpy="0 0 0"/>
<geometry>
<box size="1 1 1"/>
</geometry>
<material name="red">
<color rgba="1 0 0 1"/>
<texture filename="t.png"/>
</material>
</visual>
<visual><geometry>
<cylinder radius="1" length="1"/>
</geometry></visual>
<visual><geometry>
<sphere radius="1"/>
</geometry></visual>
<visual><geometry>
<mesh filename="m.stl" scale="1 1 1"/>
</geometry></visual>
<collision name="c">
<origin xyz="0 0 0" rpy="0 0 0"/>
<geometry>
<capsule radius="1" length="1"/>
</geometry>
</collision>
</link>
<link name="c"/>
<joint name="j" type="revolute">
<origin xyz="0 0 0" rpy="0 0 0"/>
<parent link="a"/>
<child link="b"/>
<axis xyz="0 0 1"/>
<calibration rising="1" falling="2" reference_position="0"/>
<dynamics damping="1" friction="1"/>
<limit lower="0" upper="1" effort="1" velocity="1"/>
<safety_controller soft_lower_limit="0" soft_upper_limit="1" k_position="1" k_velocity="1"/>
</joint>
<joint name="k" type="continuous">
<parent link="b"/>
<child link="c"/>
<mimic joint="j" multiplier="1" offset="0"/>
</joint>
<transmission name="t" type="simple">
<type>x</type>
<actuator name="m">
<mechanicalReduction>1</mechanicalReduction>
</actuator>
<joint name="j">
<hardwareInterface>x</hardwareInterface>
</joint>
</transmission>
<gazebo reference="b">
<kp>1</kp>
</gazebo>
<sensor name="s" update_rate="1">
<parent link="b"/>
<camera><image width="1" height="1" format="f" hfov="1" near="1" far="2"/></camera>
<ray><horizontal samples="1" resolution="1" min_angle="1" max_angle="2"/></ray>
</sensor>
</robot>"""

WHOLE = ("calibration", "safety_controller", "transmission", "gazebo", "sensor", "texture")
"""Elements that are reported as a whole, with all that stands in them."""


def report(root: Element) -> list[tuple[int | None, str, str]]:
    reporter = Reporter("r.urdf")
    read_urdf(root, "r.urdf", reporter)
    return [(i.line, i.element, i.reason) for i in reporter.report()]


def _inside_a_whole(path: str) -> bool:
    return any(tag in path.split("/") for tag in WHOLE)


def elements() -> list[tuple[str, int]]:
    """Path of tags and place in the walk of each element."""
    root = parse_xml(TEXT, "r.urdf")
    paths = {id(root): "robot"}
    result = list[tuple[str, int]]()
    for index, element in enumerate(root.walk()):
        for child in element.children:
            paths[id(child)] = f"{paths[id(element)]}/{child.tag}"
        result.append((paths[id(element)], index))
    return result


def test_every_whole_element_is_reported():
    items = report(parse_xml(TEXT, "r.urdf"))
    for tag in ("calibration", "safety_controller", "transmission", "gazebo", "sensor"):
        assert any(re.match(f"<{tag}[ >]", element) for _, element, _ in items), tag
    assert sum("textures are not kept" in reason for _, _, reason in items) == 2


@pytest.mark.parametrize("added", ["attribute", "child"])
@pytest.mark.parametrize(
    ("path", "index"), [e for e in elements() if not _inside_a_whole(e[0])], ids=lambda x: str(x)
)
def test_what_nobody_knows_is_reported_where_it_stands(path: str, index: int, added: str):
    before = report(parse_xml(TEXT, "r.urdf"))
    root = parse_xml(TEXT, "r.urdf")
    element = list(root.walk())[index]
    if added == "attribute":
        element.attrib["unheard"] = "1"
    else:
        element.children.append(Element("unheard", line=element.line, file=element.file))
    new = [item for item in report(root) if item not in before]
    assert new, f"{added} of <{path}>"
    assert all(line == element.line for line, _, _ in new)
    assert any("unheard" in text + reason for _, text, reason in new)
