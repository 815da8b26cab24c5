"""Sizes that no shape has are refused, with file and line."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from linkwise.cli import main
from linkwise.errors import ModelError, ParseError
from linkwise.model.geometry import Geometry
from linkwise.spatial.pose import Pose
from tests.io.mjcf_text import body, read as read_mjcf, world
from tests.io.urdf_text import INERTIAL, joint, link, read as read_urdf, robot

URDF = [
    '<box size="1 -1 1"/>',
    '<sphere radius="-0.1"/>',
    '<cylinder radius="0.1" length="-1"/>',
    '<capsule radius="-0.1" length="1"/>',
    '<ellipsoid a="1" b="1" c="-1"/>',
    '<sphere radius="nan"/>',
    '<box size="inf 1 1"/>',
    '<mesh filename="m.stl" scale="1 0 1"/>',
]

MJCF = [
    '<geom type="sphere" size="-0.1"/>',
    '<geom type="box" size="0.1 0 0.1"/>',
    '<geom type="capsule" size="0.1 -1"/>',
    '<geom type="cylinder" size="nan 1"/>',
    '<geom type="ellipsoid" size="1 1 -1"/>',
    '<geom type="sphere"/>',
]


@pytest.mark.parametrize("role", ["visual", "collision"])
@pytest.mark.parametrize("shape", URDF)
def test_urdf(shape: str, role: str):
    text = robot(link("a"), link("b", f"<{role}><geometry>{shape}</geometry></{role}>"))
    with pytest.raises(ParseError) as caught:
        read_urdf(text)
    assert (caught.value.file, caught.value.line) == ("r.urdf", 3)


FLAT = ['<box size="0 1 1"/>', '<sphere radius="0"/>', '<cylinder radius="0.1" length="0"/>']


@pytest.mark.parametrize(("role", "affects"), [("visual", "appearance"), ("collision", "contact")])
@pytest.mark.parametrize("shape", FLAT)
def test_urdf_shapes_of_size_zero_are_left_out_and_reported(shape: str, role: str, affects: str):
    """urdfdom takes them, and files have them; there is nothing to draw or to touch."""
    kept = "<visual><geometry><sphere radius='1'/></geometry></visual>"
    inside = f"{INERTIAL}<{role}><geometry>{shape}</geometry></{role}>{kept}"
    text = robot(link("a"), link("b", inside), joint("j", "continuous", "a", "b"))
    mech = read_urdf(text)
    assert [x.shape for x in mech.body("b").geometry] == ["sphere"]
    assert mech.load_report is not None
    (item,) = [x for x in mech.load_report.items if "no volume" in x.reason]
    assert (item.effect, item.affects, item.line) == ("ignored", affects, 3)
    with pytest.raises(ParseError, match=r"r\.urdf:3: .*no volume"):
        read_urdf(text, strict=True)


@pytest.mark.parametrize("geom", MJCF)
def test_mjcf(geom: str):
    with pytest.raises(ParseError) as caught:
        read_mjcf(world(body("a", "<joint/>", geom)))
    assert (caught.value.file, caught.value.line) == ("m.xml", 4)


def test_planes_and_height_fields():
    with pytest.raises(ParseError, match=r"m\.xml:4: .*sizes are positive"):
        read_mjcf(world('<geom type="plane" size="-1 1 1"/>'))
    with pytest.raises(ParseError, match=r"m\.xml:2: .*4 positive numbers"):
        read_mjcf(world("", before='<asset><hfield name="h" size="1 1 0 1"/></asset>'))


@pytest.mark.parametrize(
    ("shape", "size"),
    [("box", (1.0, -1.0, 1.0)), ("sphere", (math.nan,)), ("cylinder", (1.0, 0.0))],
)
def test_shapes_that_are_built(shape: str, size: tuple[float, ...]):
    with pytest.raises(ModelError, match="sizes are positive numbers"):
        Geometry("", shape, size, Pose.identity())  # type: ignore[arg-type]


def test_what_may_be_zero():
    Geometry("floor", "plane", (0.0, 0.0), Pose.identity())
    Geometry("ball", "capsule", (1.0, 0.0), Pose.identity())


def test_info_prints_a_line_for_a_bad_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """No traceback, whatever the mesh has in it."""
    (tmp_path / "model.xml").write_text(
        "<mujoco><asset><mesh name='m' file='m.obj'/></asset><worldbody><body><joint/>"
        "<geom type='mesh' mesh='m'/></body></worldbody></mujoco>"
    )
    for text in (
        "v 0 0 0\nf 1 99999999999999999999 1\n",
        "f -1 -1 -1\n",
        "v 1e999 0 0\nv 0 0 0\nv 0 0 1\nv 0 1 0\nf 1 2 3\n",
        "v a b c\n",
        "f " + "1 " * 2000,
        "\x00\xff",
    ):
        (tmp_path / "m.obj").write_text(text, encoding="latin-1")
        assert main(["info", str(tmp_path / "model.xml")]) == 2
        error = capsys.readouterr().err
        assert error.startswith("linkwise: ")
        assert "m.obj" in error
        assert "Traceback" not in error
