"""Mesh references: which file they mean, and that they cannot leave the allowed folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from linkwise.errors import ParseError
from linkwise.io.load import load
from linkwise.io.mesh_path import resolve_mesh
from tests.io.urdf_text import robot


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """robots/arm_description/{package.xml, urdf/arm.urdf, meshes/a.stl}, robots/secret.stl."""
    package = tmp_path / "robots" / "arm_description"
    for folder in ("urdf", "meshes"):
        (package / folder).mkdir(parents=True)
    for file in ("package.xml", "urdf/arm.urdf", "urdf/b.stl", "meshes/a.stl", "meshes/key.pem"):
        (package / file).write_text("")
    (tmp_path / "robots" / "secret.stl").write_text("")
    return package / "urdf" / "arm.urdf"


@pytest.mark.parametrize(
    ("uri", "file"),
    [
        ("b.stl", "urdf/b.stl"),
        ("./b.stl", "urdf/b.stl"),
        ("../meshes/a.stl", "meshes/a.stl"),
        ("..\\meshes\\a.stl", "meshes/a.stl"),
        ("package://arm_description/meshes/a.stl", "meshes/a.stl"),
        ("package://arm_description/urdf/../meshes/a.stl", "meshes/a.stl"),
        ("model://arm_description/meshes/a.stl", "meshes/a.stl"),
    ],
)
def test_found(model: Path, uri: str, file: str):
    assert resolve_mesh(uri, model) == (model.parent.parent / file).resolve()


def test_file_uri_inside_the_package(model: Path):
    uri = f"file://{model.parent.parent}/meshes/a.stl"
    assert resolve_mesh(uri, model).name == "a.stl"


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("../../secret.stl", "leaves the allowed folders"),
        ("/home/secret.stl", "leaves the allowed folders"),
        ("file:///etc/secret.stl", "leaves the allowed folders"),
        ("package://arm_description/../secret.stl", "leaves the allowed folders"),
        ("package://../secret.stl", "leaves the allowed folders"),
        ("package://other/meshes/a.stl", "is missing"),
        ("package:///", "names no mesh file type"),
        ("meshes/none.stl", "is missing"),
        ("../meshes/key.pem", "names no mesh file type"),
        ("https://example.org/a.stl", "is not a path or package://"),
        ("", "is not a path or package://"),
        ("a\0.stl", "is not a path or package://"),
        ("x" * 5000 + ".stl", "is missing"),
    ],
)
def test_refused(model: Path, uri: str, reason: str):
    with pytest.raises(ParseError) as caught:
        resolve_mesh(uri, model)
    assert reason in caught.value.reason
    assert caught.value.file == str(model)


def test_links_out_of_the_package_are_not_followed(model: Path):
    (model.parent / "out.stl").symlink_to(model.parents[2] / "secret.stl")
    (model.parent / "loop.stl").symlink_to(model.parent / "loop.stl")
    with pytest.raises(ParseError, match="leaves the allowed folders"):
        resolve_mesh("out.stl", model)
    with pytest.raises(ParseError, match="is missing"):
        resolve_mesh("loop.stl", model)


def test_roots_allow_more(model: Path, tmp_path: Path):
    other = tmp_path / "elsewhere" / "hand_description"
    other.mkdir(parents=True)
    (other / "h.stl").write_text("")
    for roots in ([other], [other.parent]):
        assert resolve_mesh("package://hand_description/h.stl", model, roots).name == "h.stl"
    assert resolve_mesh("h.stl", model, [other]).name == "h.stl"
    with pytest.raises(ParseError, match="leaves the allowed folders"):
        resolve_mesh("package://hand_description/../../robots/secret.stl", model, [other])


def test_loading_reports_what_cannot_be_followed_and_opens_nothing(model: Path):
    shapes = "".join(
        f'<visual><geometry><mesh filename="{uri}"/></geometry></visual>'
        for uri in ("../meshes/a.stl", "../meshes/none.stl", "../../secret.stl", "b.stl")
    )
    model.write_text(robot(f'<link name="a">{shapes}</link>'))
    (model.parent / "b.stl").chmod(0)
    mech = load(model)
    assert [i.reason.split(";")[0] for i in mech.load_report] == [
        "mesh file '../meshes/none.stl' is missing",
        "mesh reference '../../secret.stl' leaves the allowed folders",
    ]
    assert {i.affects for i in mech.load_report} == {"appearance"}
    files = [shape.file for shape in mech.nodes[0].geometry]
    assert files == ["../meshes/a.stl", "../meshes/none.stl", "../../secret.stl", "b.stl"]
