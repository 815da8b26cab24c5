"""Meshes of model files: found, read, coloured, and confined."""

import base64
import json
import struct

import numpy as np
import pytest

import linkwise as lw
from linkwise.viewer.collada import read_collada
from linkwise.viewer.scene import scene_of
from linkwise.viewer.shapes import box


def write_stl(path, mesh, scale=1.0):
    corners = (scale * mesh.vertices[mesh.faces]).astype("<f4")
    data = b"\0" * 80 + struct.pack("<I", len(corners))
    for triangle in corners:
        data += b"\0" * 12 + triangle.tobytes() + b"\0\0"
    path.write_bytes(data)


URDF = """<robot name="arm">
  <link name="base"><visual><geometry>
    <mesh filename="{base}" scale="{scale}"/></geometry></visual></link>
  <link name="tip">
    <inertial><mass value="1"/><origin xyz="0 0 0.2"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><origin xyz="0 0 1"/><geometry><mesh filename="{tip}"/></geometry></visual></link>
  <joint name="j" type="continuous">
    <parent link="base"/><child link="tip"/><axis xyz="0 0 1"/></joint>
</robot>"""


def urdf(folder, base, tip, scale="1 1 1"):
    path = folder / "robot.urdf"
    path.write_text(URDF.format(base=base, tip=tip, scale=scale))
    return path


def test_stl_of_a_package(tmp_path):
    package = tmp_path / "arm_description"
    (package / "meshes").mkdir(parents=True)
    write_stl(package / "meshes" / "a.stl", box((100.0, 200.0, 300.0)))
    write_stl(package / "meshes" / "b.stl", box((0.1, 0.1, 0.1)))
    path = urdf(
        package,
        "package://arm_description/meshes/a.stl",
        "package://arm_description/meshes/b.stl",
        "0.001 0.001 0.001",
    )
    scene = scene_of(lw.load(path))
    assert not scene.missing and not scene.generated
    ground, tip = scene.parts
    assert ground.body == -1 and np.allclose(np.ptp(ground.mesh.vertices, axis=0), (0.1, 0.2, 0.3))
    assert tip.body == 0 and np.allclose(tip.mesh.vertices.mean(axis=0), (0, 0, 1), atol=1e-6)


def test_missing_mesh_becomes_a_generated_shape_and_is_told(tmp_path):
    write_stl(tmp_path / "a.stl", box((1.0, 1.0, 1.0)))
    scene = scene_of(lw.load(urdf(tmp_path, "a.stl", "gone.stl")))
    assert scene.generated == ("tip",)
    assert list(scene.missing) == ["gone.stl"] and "missing" in scene.missing["gone.stl"]
    assert [part.body for part in scene.parts][:1] == [-1] and 0 in {p.body for p in scene.parts}


@pytest.mark.parametrize(
    "uri", ["../secret.stl", "file:///etc/passwd", "package://x/../../secret.stl", "/secret.stl"]
)
def test_meshes_outside_of_the_model_are_not_opened(tmp_path, uri):
    (tmp_path / "model").mkdir()
    write_stl(tmp_path / "secret.stl", box((1.0, 1.0, 1.0)))
    uri = uri.replace("/secret.stl", f"{tmp_path}/secret.stl") if uri == "/secret.stl" else uri
    write_stl(tmp_path / "model" / "a.stl", box((1.0, 1.0, 1.0)))
    scene = scene_of(lw.load(urdf(tmp_path / "model", "a.stl", uri)))
    assert list(scene.missing) == [uri] and scene.generated == ("tip",)


@pytest.mark.parametrize("content", [b"", b"solid nothing", b"\0" * 90, b"v 1 2\nf 1 2 3"])
def test_broken_mesh_is_told(tmp_path, content):
    (tmp_path / "a.stl").write_bytes(content)
    write_stl(tmp_path / "b.stl", box((1.0, 1.0, 1.0)))
    scene = scene_of(lw.load(urdf(tmp_path, "b.stl", "a.stl")))
    assert "a.stl" in scene.missing and scene.generated == ("tip",)


pytest.importorskip("collada")
DAE = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
  <asset><unit name="centimeter" meter="0.01"/><up_axis>{up}</up_axis></asset>
  <library_effects><effect id="red-fx"><profile_COMMON><technique sid="c"><phong>
    <diffuse><color>1 0.5 0 1</color></diffuse></phong></technique></profile_COMMON></effect>
  </library_effects>
  <library_materials><material id="red"><instance_effect url="#red-fx"/></material>
  </library_materials>
  <library_geometries><geometry id="g"><mesh>
    <source id="p">
      <float_array id="pa" count="12">0 0 0 100 0 0 100 200 0 0 200 0</float_array>
      <technique_common><accessor source="#pa" count="4" stride="3"><param name="X" type="float"/>
      <param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common>
    </source>
    <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
    {faces}
  </mesh></geometry></library_geometries>
  <library_visual_scenes><visual_scene id="s"><node>
    <translate>0 0 300</translate><rotate>0 0 1 90</rotate><scale>2 1 1</scale>
    <instance_geometry url="#g"><bind_material><technique_common>
      <instance_material symbol="m" target="#red"/></technique_common></bind_material>
    </instance_geometry>
  </node></visual_scene></library_visual_scenes>
  <scene><instance_visual_scene url="#s"/></scene>
</COLLADA>"""
POLYGON = """<polylist material="m" count="1"><input semantic="VERTEX" source="#v" offset="0"/>
  <input semantic="NORMAL" source="#p" offset="1"/><vcount>4</vcount>
  <p>0 0 1 0 2 0 3 0</p></polylist>"""
TRIANGLES = """<triangles material="m" count="2"><input semantic="VERTEX" source="#v" offset="0"/>
  <p>0 1 2 0 2 3</p></triangles>"""


@pytest.mark.parametrize("faces", [POLYGON, TRIANGLES])
def test_collada_in_metres_with_z_up(tmp_path, faces):
    """x 0..1 m stretched to 2 and turned to y; y 0..2 m turned to -x; 3 m up."""
    path = tmp_path / "a.dae"
    path.write_text(DAE.format(up="Z_UP", faces=faces))
    ((mesh, color),) = read_collada(path)
    assert color == (255, 128, 0) and len(mesh.faces) == 2
    assert np.allclose(mesh.bounds, ((-2, 0, 3), (0, 2, 3)), atol=1e-6)


def test_collada_with_y_up_is_put_upright(tmp_path):
    path = tmp_path / "a.dae"
    path.write_text(DAE.format(up="Y_UP", faces=TRIANGLES))
    ((mesh, _),) = read_collada(path)
    # y becomes z, z becomes -y.
    assert np.allclose(mesh.bounds, ((-2, -3, 0), (0, -3, 2)), atol=1e-6)


@pytest.mark.parametrize(
    "faces",
    [
        TRIANGLES.replace("0 1 2 0 2 3", "0 1 9"),
        TRIANGLES.replace("#v", "#gone"),
        TRIANGLES.replace("0 1 2 0 2 3", "0 1 x"),
        POLYGON.replace("0 0 1 0 2 0 3 0", "0 0 1"),
    ],
)
def test_broken_collada_is_an_error_that_says_so(tmp_path, faces):
    path = tmp_path / "a.dae"
    path.write_text(DAE.format(up="Z_UP", faces=faces))
    with pytest.raises(lw.ParseError):
        read_collada(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('semantic="VERTEX"', 'semantic="NORMAL"'),  # next() without an answer
        ("0 1 2 0 2 3", "0 1 99999999999999999999999"),  # no int64
        ('meter="0.01"', 'meter="nan"'),
        ('meter="0.01"', 'meter="1e308"'),
        ('meter="0.01"', 'meter="1e37"'),  # finite here, not in the numbers of a page
        ("<scale>2 1 1</scale>", "<scale>1e200 1e200 1</scale>"),
        ("<rotate>0 0 1 90</rotate>", "<rotate>0 0 1</rotate>"),
        ("1 0.5 0 1", "nan 0 inf 1"),
    ],
)
def test_broken_collada_becomes_a_generated_shape(tmp_path, old, new):
    text = DAE.format(up="Z_UP", faces=TRIANGLES)
    assert old in text
    (tmp_path / "a.dae").write_text(text.replace(old, new))
    write_stl(tmp_path / "b.stl", box((1.0, 1.0, 1.0)))
    scene = scene_of(lw.load(urdf(tmp_path, "b.stl", "a.dae")))
    if old.startswith("1 0.5"):  # a colour is no reason to show nothing
        assert not scene.missing
        return
    assert list(scene.missing) == ["a.dae"] and scene.generated == ("tip",)
    assert all(np.isfinite(part.mesh.vertices).all() for part in scene.parts)


def test_a_reader_that_fails_in_an_unknown_way_is_told(tmp_path, monkeypatch):
    def broken(path):
        raise RuntimeError("out of luck")

    monkeypatch.setattr("linkwise.viewer.mesh_file.read_mesh_file", broken)
    write_stl(tmp_path / "a.stl", box((1.0, 1.0, 1.0)))
    scene = scene_of(lw.load(urdf(tmp_path, "a.stl", "a.stl")))
    assert scene.missing == {"a.stl": "it cannot be read: RuntimeError: out of luck"}


def test_scale_beyond_the_numbers_of_a_page(tmp_path):
    write_stl(tmp_path / "a.stl", box((1.0, 1.0, 1.0)))
    write_stl(tmp_path / "b.stl", box((1.0, 1.0, 1.0)))
    scene = scene_of(lw.load(urdf(tmp_path, "a.stl", "b.stl", "1e39 1 1")))
    assert "not finite" in scene.missing["a.stl"]
    assert all(np.isfinite(part.mesh.vertices).all() for part in scene.parts)


def test_other_formats_get_bytes_and_open_nothing_besides(tmp_path):
    """A glTF file whose triangles lie in a file beside it, which nobody has asked for."""
    pytest.importorskip("trimesh")
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], dtype="<f4").tobytes()
    data = points + np.array([0, 1, 2], dtype="<u4").tobytes()
    gltf = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3",
             "min": [0, 0, 0], "max": [1, 1, 0]},
            {"bufferView": 1, "componentType": 5125, "count": 3, "type": "SCALAR"},
        ],
        "bufferViews": [
            {"buffer": 0, "byteOffset": 0, "byteLength": 36},
            {"buffer": 0, "byteOffset": 36, "byteLength": 12},
        ],
    }  # fmt: skip
    inline = "data:application/octet-stream;base64," + base64.b64encode(data).decode()
    (tmp_path / "beside.bin").write_bytes(data)
    for name, uri in (("whole", inline), ("parts", "beside.bin")):
        held = {**gltf, "buffers": [{"byteLength": 48, "uri": uri}]}
        (tmp_path / f"{name}.gltf").write_text(json.dumps(held))
    scene = scene_of(lw.load(urdf(tmp_path, "whole.gltf", "parts.gltf")))
    assert list(scene.missing) == ["parts.gltf"] and scene.generated == ("tip",)
    assert "files beside it are not opened" in scene.missing["parts.gltf"]


@pytest.mark.parametrize(
    "shape",
    ['cylinder radius="-1" length="1"', 'sphere radius="-1"', 'box size="1 1 -1"',
     'capsule radius="1" length="-1"'],
)  # fmt: skip
def test_shapes_of_negative_size_are_refused_with_their_line(tmp_path, shape):
    write_stl(tmp_path / "a.stl", box((1.0, 1.0, 1.0)))
    path = urdf(tmp_path, "a.stl", "a.stl")
    text = path.read_text()
    old = '<mesh filename="a.stl"/>'
    assert text.count(old) == 1
    path.write_text(text.replace(old, f"<{shape}/>"))
    with pytest.raises(lw.ParseError, match=r"robot\.urdf:\d+: .*sizes are positive numbers"):
        lw.load(path)
