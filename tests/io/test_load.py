"""What `lw.load` takes: paths, packages, text, xacro; and what it says about other formats."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import LinkwiseError, MissingExtraError
from tests.io.mjcf_text import BALL, body, world
from tests.io.urdf_text import INERTIAL, arm, joint, link, robot

ARM = arm("continuous")
MJCF = world(body("a", "<joint/>", BALL))

XACRO = """<?xml version="1.0"?>
<robot name="tower" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:include filename="parts.xacro"/>
  <xacro:arg name="count" default="2"/>
  <link name="link0"/>
  <xacro:segments n="$(arg count)"/>
</robot>"""
PARTS = f"""<robot xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:macro name="segments" params="n">
    <xacro:if value="${{n > 1}}"><xacro:segments n="${{n - 1}}"/></xacro:if>
    <link name="link${{n}}">{INERTIAL}</link>
    <joint name="joint${{n}}" type="continuous">
      <parent link="link${{n - 1}}"/><child link="link${{n}}"/><axis xyz="0 0 1"/>
    </joint>
  </xacro:macro>
</robot>"""


def test_a_tilde_means_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "arm.urdf").write_text(ARM)
    assert lw.load("~/arm.urdf").nv == 1
    assert lw.load(Path("~/arm.urdf")).nv == 1
    lw.save(lw.load("~/arm.urdf"), "~/again.urdf")
    assert (tmp_path / "again.urdf").is_file()


@pytest.mark.parametrize("text", [ARM, f"\n  {ARM}", f"\ufeff{ARM}", MJCF], ids=range(4))
def test_text_is_read_like_a_file(text: str):
    assert lw.load(text).nv == 1


def test_messages_about_text_have_its_line():
    with pytest.raises(lw.ParseError, match=r"^<string>:1: <robot"):
        lw.load("<robot name='r'/>")


def test_a_missing_file_is_a_file_not_found_error(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="there is no such file; check the path") as caught:
        lw.load(tmp_path / "none.urdf")
    again = pickle.loads(pickle.dumps(caught.value))
    for error in (caught.value, again):
        assert isinstance(error, lw.ParseError) and isinstance(error, LinkwiseError)
        assert str(error) == f"{tmp_path}/none.urdf: there is no such file; check the path"
        assert error.filename == str(tmp_path / "none.urdf")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """src/robots/arm_description with a URDF in one package and its mesh in another."""
    for package in ("arm_description", "arm_meshes"):
        folder = tmp_path / "src" / "robots" / package
        folder.mkdir(parents=True)
        (folder / "package.xml").write_text(f"<package><name>{package}</name></package>")
    mesh = '<visual><geometry><mesh filename="package://arm_meshes/a.stl"/></geometry></visual>'
    model = tmp_path / "src" / "robots" / "arm_description" / "arm.urdf"
    model.write_text(
        robot(link("a"), link("b", INERTIAL + mesh), joint("j", "continuous", "a", "b"))
    )
    (tmp_path / "src" / "robots" / "arm_meshes" / "a.stl").write_text("")
    return tmp_path


def test_packages_are_found_by_the_paths_of_ros(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    name = "package://arm_description/arm.urdf"
    monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)
    with pytest.raises(FileNotFoundError, match="add it to ROS_PACKAGE_PATH"):
        lw.load(name)
    monkeypatch.setenv("ROS_PACKAGE_PATH", f"/nowhere{os.pathsep}{workspace / 'src'}")
    mech = lw.load(name)
    assert mech.nv == 1
    assert not [item for item in mech.load_report if "missing" in item.reason]
    monkeypatch.delenv("ROS_PACKAGE_PATH")
    (workspace / "share").symlink_to(workspace / "src" / "robots")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(workspace))
    assert lw.load(name).nv == 1
    monkeypatch.delenv("AMENT_PREFIX_PATH")
    assert lw.load(name, roots=workspace / "src" / "robots").nv == 1


def test_a_package_cannot_be_left(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(workspace / "src"))
    with pytest.raises(FileNotFoundError):
        lw.load("package://arm_meshes/../arm_description/arm.urdf")


@pytest.mark.parametrize("suffix", [".urdf.xacro", ".urdf"])
def test_xacro_is_expanded(tmp_path: Path, suffix: str):
    pytest.importorskip("xacrodoc")
    (tmp_path / f"tower{suffix}").write_text(XACRO)
    (tmp_path / "parts.xacro").write_text(PARTS)
    assert lw.load(tmp_path / f"tower{suffix}").nv == 2
    mech = lw.load(tmp_path / f"tower{suffix}", xacro_args={"count": "3"})
    assert [body.name for body in mech.bodies] == ["link1", "link2", "link3"]
    assert np.isfinite(lw.mass_matrix(mech, np.zeros(3))).all()


def test_xacro_errors_name_the_file(tmp_path: Path):
    pytest.importorskip("xacrodoc")
    (tmp_path / "tower.xacro").write_text(XACRO)
    with pytest.raises(
        lw.ParseError, match=r"tower\.xacro: xacro cannot expand this file: .*parts"
    ):
        lw.load(tmp_path / "tower.xacro")


def test_xacro_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "xacrodoc", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'linkwise\[xacro\]'"):
        lw.load(XACRO)


def test_arguments_of_xacro_without_xacro():
    with pytest.raises(lw.ParseError, match="this is not a xacro file"):
        lw.load(ARM, xacro_args={"count": "3"})


@pytest.mark.parametrize("file", ["robot.usd", "robot.usdz", "robot.txt"])
def test_usd(tmp_path: Path, file: str):
    (tmp_path / file).write_text("#usda 1.0")
    with pytest.raises(lw.ParseError, match="USD files are not supported; export the robot as"):
        lw.load(tmp_path / file)


def test_sdf():
    with pytest.raises(lw.ParseError, match=r"SDF is not supported\. Convert it to URDF or MJCF"):
        lw.load("<sdf version='1.7'><model name='m'/></sdf>")


def test_builders_and_kernels_print_one_line():
    builder = lw.Builder("arm").body("a", "world", lw.hinges.Pin((0, 0, 1)))
    assert repr(builder) == "<Builder 'arm': 1 body, 1 joint>"
    mech = lw.models.pendulum(2)
    kernel = lw.compile(lw.algebra.mass, mech, target="numpy")
    assert repr(kernel) == "<Kernel of 'pendulum_2' for 'numpy': (q) -> array (2, 2)>"
    source = lw.compile(lw.algebra.mass, mech, target="c")
    assert repr(source) == "<C source 'pendulum_2_kernel' of 'pendulum_2', float64>"
