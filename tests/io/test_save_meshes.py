"""Meshes of a mechanism that is saved to another folder, as another format, or with its shells."""

from __future__ import annotations

from pathlib import Path

import pytest

import linkwise as lw
from linkwise.io.mesh_path import resolve_mesh
from tests.io.urdf_text import INERTIAL

FLAT = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0.5 0.5 0.00001\nf 1 2 3\nf 1 3 4\nf 1 2 5\n"
SOLID = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"
MODEL = """<mujoco><compiler meshdir="assets"/><asset><mesh name="m" file="part.obj" {}/></asset>
<worldbody><body name="a"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><joint/>
<geom type="mesh" mesh="m" contype="0" conaffinity="0"/></body></worldbody></mujoco>"""


def _robot(folder: Path, text: str = SOLID, extra: str = "") -> lw.Mechanism:
    (folder / "robot" / "assets").mkdir(parents=True)
    (folder / "robot" / "assets" / "part.obj").write_text(text)
    (folder / "robot" / "model.xml").write_text(MODEL.format(extra))
    return lw.load(folder / "robot" / "model.xml")


@pytest.mark.parametrize("target", ["robot/saved", "robot/deep/er/saved", "saved", "other/saved"])
@pytest.mark.parametrize("suffix", [".xml", ".urdf"])
def test_paths_lead_from_the_new_file_to_the_mesh(tmp_path: Path, target: str, suffix: str):
    mech = _robot(tmp_path)
    path = tmp_path / f"{target}{suffix}"
    path.parent.mkdir(parents=True, exist_ok=True)
    assert len(lw.save(mech, path)) == 0
    (shape,) = lw.load(path).body("a").geometry
    assert shape.file is not None
    result = resolve_mesh(shape.file, path, roots=[tmp_path])
    assert result == (tmp_path / "robot" / "assets" / "part.obj").resolve()


@pytest.mark.oracle
@pytest.mark.parametrize("target", ["robot/saved.xml", "other/saved.xml"])
def test_mujoco_finds_the_meshes(tmp_path: Path, target: str):
    pytest.importorskip("mujoco")
    from tests.oracles.mujoco_oracle import read_model

    path = tmp_path / target
    path.parent.mkdir(exist_ok=True)
    lw.save(_robot(tmp_path), path)
    assert read_model(path).nmesh == 1


@pytest.mark.oracle
def test_shells_stay_shells(tmp_path: Path):
    """MuJoCo refuses a flat mesh as a solid, also where the body has its inertia."""
    pytest.importorskip("mujoco")
    from tests.oracles.mujoco_oracle import read_model

    mech = _robot(tmp_path, FLAT, 'inertia="shell"')
    path = tmp_path / "robot" / "saved.xml"
    lw.save(mech, path)
    assert 'inertia="shell"' in path.read_text()
    assert read_model(path).nmesh == 1
    (shape,) = lw.load(path).body("a").geometry
    assert shape.mesh_inertia == "shell"


@pytest.mark.parametrize("suffix", [".xml", ".urdf"])
def test_a_mesh_that_is_not_found_is_reported(tmp_path: Path, suffix: str):
    mech = _robot(tmp_path)
    (tmp_path / "robot" / "assets" / "part.obj").unlink()
    (item,) = lw.save(mech, tmp_path / f"saved{suffix}")
    assert item.affects == "appearance"
    assert item.reason == ("mesh file 'assets/part.obj' is not found; its path is written as it is")


def test_packages_stay_in_urdf_and_become_paths_in_mjcf(tmp_path: Path):
    package = tmp_path / "arm_description"
    (package / "urdf").mkdir(parents=True)
    (package / "meshes").mkdir()
    (package / "meshes" / "part.obj").write_text(SOLID)
    (package / "urdf" / "arm.urdf").write_text(
        f'<robot name="arm"><link name="base"/><link name="a">{INERTIAL}<visual><geometry>'
        '<mesh filename="package://arm_description/meshes/part.obj"/></geometry></visual></link>'
        '<joint name="j" type="continuous"><parent link="base"/><child link="a"/></joint></robot>'
    )
    mech = lw.load(package / "urdf" / "arm.urdf")
    lw.save(mech, tmp_path / "saved.urdf")
    lw.save(mech, tmp_path / "saved.xml")
    files = [lw.load(tmp_path / f"saved{x}").body("a").geometry[0].file for x in (".urdf", ".xml")]
    assert files == ["package://arm_description/meshes/part.obj", "arm_description/meshes/part.obj"]


def test_meshes_beside_an_included_file(tmp_path: Path):
    (tmp_path / "parts" / "list").mkdir(parents=True)
    (tmp_path / "parts" / "part.obj").write_text(SOLID)
    (tmp_path / "parts" / "list" / "assets.xml").write_text(
        '<mujoco><asset><mesh name="m" file="../part.obj"/></asset></mujoco>'
    )
    (tmp_path / "model.xml").write_text(
        '<mujoco><include file="parts/list/assets.xml"/><worldbody><body name="a"><joint/>'
        '<geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    )
    mech = lw.load(tmp_path / "model.xml")
    assert mech.total_mass == pytest.approx(1000.0 / 6.0)
    assert mech.body("a").geometry[0].file == "parts/part.obj"
    (tmp_path / "outside.obj").write_text(SOLID)
    (tmp_path / "parts" / "list" / "assets.xml").write_text(
        '<mujoco><asset><mesh name="m" file="../../../outside.obj"/></asset></mujoco>'
    )
    with pytest.raises(lw.ParseError, match=r"assets\.xml:1: .*lies outside the model's directory"):
        lw.load(tmp_path / "model.xml")
