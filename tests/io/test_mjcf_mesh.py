"""Mesh files and the inertia of meshes, against MuJoCo and against solids that are known."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from linkwise.errors import MissingExtraError, ParseError
from linkwise.io.load import load
from linkwise.io.mjcf.mesh_file import read_mesh_file
from tests.oracles.mujoco_inertia import AXES
from tests.oracles.mujoco_oracle import agreement, read_model

# An L-shaped prism: closed, oriented outward, neither convex nor centred nor symmetric.
PROFILE = [(0, 0), (3, 0), (3, 1), (1, 1), (1, 2), (0, 2)]
CAP = [(0, 1, 3), (1, 2, 3), (0, 3, 5), (3, 4, 5)]


def prism() -> tuple[np.ndarray, np.ndarray]:
    lower = [(x, y, -0.25) for x, y in PROFILE]
    upper = [(x + 0.5, y, 1.0) for x, y in PROFILE]
    faces = [(c, b, a) for a, b, c in CAP] + [(a + 6, b + 6, c + 6) for a, b, c in CAP]
    for i in range(6):
        j = (i + 1) % 6
        faces += [(i, j, j + 6), (i, j + 6, i + 6)]
    return 0.1 * np.array(lower + upper, dtype=np.float64), np.array(faces)


def write_stl(path: Path) -> None:
    vertices, faces = prism()
    data = bytes(80) + struct.pack("<I", len(faces))
    for face in faces:
        data += struct.pack("<12fH", *[0.0] * 3, *vertices[face].ravel(), 0)
    path.write_bytes(data)


def write_text_stl(path: Path) -> None:
    vertices, faces = prism()
    lines = ["solid l"]
    for face in faces:
        lines += ["facet normal 0 0 0", "outer loop"]
        lines += [f"vertex {' '.join(map(repr, v))}" for v in vertices[face].tolist()]
        lines += ["endloop", "endfacet"]
    path.write_text("\n".join([*lines, "endsolid l"]))


def write_obj(path: Path) -> None:
    vertices, faces = prism()
    lines = ["# an L", *(f"v {x!r} {y!r} {z!r}" for x, y, z in vertices.tolist()), "vn 0 0 1"]
    lines += [f"f {a + 1}//1 {b + 1}//1 {c + 1}//1" for a, b, c in faces]
    path.write_text("\n".join(lines))


def write_msh(path: Path) -> None:
    vertices, faces = prism()
    data = struct.pack("<4i", len(vertices), 0, 0, len(faces))
    data += vertices.astype("<f4").tobytes() + faces.astype("<i4").tobytes()
    path.write_bytes(data)


WRITERS = {"l.stl": write_stl, "l.obj": write_obj, "l.msh": write_msh}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, write in WRITERS.items():
        write(tmp_path / name)
    return tmp_path


def model(folder: Path, mesh: str, geom: str = 'type="mesh" mesh="l"', compiler: str = "") -> Path:
    path = folder / "model.xml"
    path.write_text(
        f"<mujoco><compiler {compiler}/><asset><mesh name='l' {mesh}/></asset><worldbody>"
        "<body name='a'><joint axis='1 2 3'/>"
        f"<geom pos='0.1 0.2 0.3' euler='10 20 30' {geom}/></body></worldbody></mujoco>"
    )
    return path


def inline() -> str:
    vertices, faces = prism()
    return (
        f'vertex="{" ".join(map(repr, vertices.ravel().tolist()))}" '
        f'face="{" ".join(map(str, faces.ravel().tolist()))}"'
    )


VERTICES = inline().split(" face=")[0]

PRIMITIVES = ("sphere", "capsule", "cylinder", "ellipsoid", "box")

MESHES = {
    **{f"{file} {mode}": (f'file="{file}" inertia="{mode}"', {})
       for file in WRITERS for mode in ("legacy", "exact", "convex", "shell")},
    "inline": (inline(), {}),
    "inline exact": (inline() + ' inertia="exact"', {}),
    "points only": (VERTICES, {}),
    "scaled": ('file="l.stl" scale="2 0.5 3" inertia="exact"', {}),
    "mirrored": ('file="l.obj" scale="2 -0.5 3" inertia="exact"', {}),
    "mirrored legacy": ('file="l.stl" scale="-1 1 1"', {}),
    "moved": ('file="l.obj" refpos="1 2 3" refquat="1 2 0 1" scale="1 2 3"', {}),
    "given mass": ('file="l.obj"', {"geom": 'type="mesh" mesh="l" mass="3"'}),
    "density": ('file="l.obj"', {"geom": 'type="mesh" mesh="l" density="3"'}),
    "stripped path": ('file="some/where/l.obj"', {"compiler": 'strippath="true"'}),
    **{f"{kind} fitted by {rule}": (
        'file="l.obj"',
        {"geom": f'type="{kind}" mesh="l" fitscale="1.5"', "compiler": f'fitaabb="{rule}"'},
    ) for kind in PRIMITIVES for rule in ("true", "false")},
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("name", MESHES)
def test_agrees_with_mujoco(name: str, folder: Path):
    pytest.importorskip("mujoco")
    if "convex" in name or "points" in name:
        pytest.importorskip("scipy")
    mesh, options = MESHES[name]
    path = model(folder, mesh, **options)
    rows = agreement(load(path), read_model(path))
    # A bounding box depends on the axes, which MuJoCo finds to about ten digits.
    tolerance = 1e-9 if "fitted by true" in name else 1e-13
    assert rows.worst < tolerance, rows
    assert rows.inertia < 10 * tolerance, rows
    assert rows.axes < AXES, rows


def test_all_formats_hold_the_same_triangles(tmp_path: Path):
    vertices, faces = prism()
    expected = vertices.astype(np.float32).astype(np.float64)[faces]
    for name, write in {**WRITERS, "text.stl": write_text_stl}.items():
        write(tmp_path / name)
        mesh = read_mesh_file(str(tmp_path / name))
        assert np.array_equal(mesh.vertices[mesh.faces], expected), name


def test_polygons_and_indices_from_the_end_in_an_obj(tmp_path: Path):
    path = tmp_path / "quad.obj"
    path.write_text("v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf -4 -3 -2 -1\n")
    assert read_mesh_file(str(path)).faces.tolist() == [[0, 1, 2], [0, 2, 3]]


def test_exact_inertia_of_a_box_is_that_of_a_box(tmp_path: Path):
    from linkwise.spatial.inertia import SpatialInertia

    corners = [(x, y, z) for x in (0, 2) for y in (0, 3) for z in (0, 4)]
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    lines = [f"v {x} {y} {z}" for x, y, z in corners]
    lines += ["f " + " ".join(str(i + 1) for i in quad) for quad in quads]
    (tmp_path / "box.obj").write_text("\n".join(lines))
    path = model(tmp_path, 'file="box.obj" inertia="exact"')
    path.write_text(path.read_text().replace("pos='0.1 0.2 0.3' euler='10 20 30'", ""))
    result = load(path).body("a").inertia
    box = SpatialInertia.solid_box(24000.0, (2.0, 3.0, 4.0))
    assert float(result.mass) == pytest.approx(24000.0, rel=1e-14)
    assert np.abs(result.com - (1.0, 1.5, 2.0)).max() < 1e-14
    assert np.abs(result.J_com - box.J).max() < 1e-9


BROKEN = {
    "short.stl": (b"\0" * 90, "this is not an STL file: 90 bytes do not fit 0 triangles"),
    "empty.stl": (b"", "this is not an STL file: 0 bytes do not fit 0 triangles"),
    "odd.stl": (b"solid x vertex 1 2 3", "the text STL file has a facet without three vertices"),
    "word.stl": (b"solid x vertex 1 2 x", "the mesh has a coordinate that is not a number"),
    "nan.stl": (b"solid" + b" vertex nan 2 3" * 6 + b" vertex 1 2 3" * 3,
                "the mesh has a vertex that is not finite"),
    "head.msh": (b"\1\2", "this is not an MSH file: its header is missing"),
    "size.msh": (struct.pack("<4i", 2**30, 0, 0, 1),
                 "this is not an MSH file: its size does not fit its header"),
    "minus.msh": (struct.pack("<4i", -1, 0, 0, 1),
                  "this is not an MSH file: its size does not fit its header"),
    "few.msh": (struct.pack("<4i9f", 3, 0, 0, 0, *range(9)),
                "the mesh has 3 vertices; it needs 4 or more"),
    "index.obj": (b"v 0 0 0\n" * 4 + b"f 1 2 9\n",
                  "a face names vertex 9, which does not exist: there are 4, counted from 1 "
                  "(negative ones back from the last)"),
    "word.obj": (b"v 0 0 0\n" * 4 + b"f 1 2 x\n", "'x' is not an index of a vertex"),
    "two.obj": (b"v 0 0 0\n" * 4 + b"f 1 2\n", "a face has fewer than 3 corners"),
    "point.obj": (b"v 0 0\n", "a vertex has fewer than 3 numbers"),
    "other.dae": (b"", "the mesh has the type '.dae'; read are .stl, .obj and .msh"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused(name: str, tmp_path: Path):
    data, reason = BROKEN[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ParseError) as caught:
        load(model(tmp_path, f'file="{name}"'))
    assert caught.value.reason == reason
    assert caught.value.file == str(tmp_path / name)


def test_a_flat_mesh_has_no_volume(tmp_path: Path):
    (tmp_path / "flat.obj").write_text("v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3 4\n")
    with pytest.raises(ParseError, match=r"the volume of the mesh is 0 m³; check the orientation"):
        load(model(tmp_path, 'file="flat.obj"'))
    shell = load(model(tmp_path, 'file="flat.obj" inertia="shell"'))
    assert float(shell.total_mass) == pytest.approx(1000.0)  # density times area


def test_faces_turned_against_each_other_are_refused_where_it_matters(tmp_path: Path):
    vertices, faces = prism()
    faces[0] = faces[0][[0, 2, 1]]
    numbers = " ".join(map(repr, vertices.ravel().tolist()))
    text = f'vertex="{numbers}" face="{" ".join(map(str, faces.ravel().tolist()))}"'
    with pytest.raises(ParseError, match="inertia='exact' needs faces of one orientation"):
        load(model(tmp_path, text + ' inertia="exact"'))
    load(model(tmp_path, text))


def test_a_mesh_that_is_missing_matters_only_for_inertia(tmp_path: Path):
    path = model(tmp_path, 'file="gone.obj"')
    with pytest.raises(ParseError) as caught:
        load(path)
    assert str(caught.value) == (
        f"{path}:1: <mesh name=\"l\">: the mesh file 'gone.obj' does not exist, and the inertia of "
        "a body depends on it; put it there or give the body an <inertial>"
    )
    heavy = "<inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/><joint"
    path.write_text(path.read_text().replace("<joint", heavy))
    mech = load(path)
    assert [i.reason for i in mech.load_report] == ["the mesh file does not exist"]
    assert mech.body("a").geometry[0].file == "gone.obj"


def test_meshes_stay_in_the_allowed_folders(tmp_path: Path):
    write_obj(tmp_path / "l.obj")
    inside = tmp_path / "inside"
    inside.mkdir()
    path = model(inside, 'file="../l.obj"')
    with pytest.raises(ParseError) as caught:
        load(path)
    assert caught.value.reason == (
        "<mesh name=\"l\">: file '../l.obj' lies outside the model's directory; allowed are files "
        "below it and below the directories given as roots=(...)"
    )
    assert load(path, roots=[tmp_path]).nv == 1
    (inside / "link.obj").symlink_to(tmp_path / "l.obj")
    with pytest.raises(ParseError, match="lies outside the model's directory"):
        load(model(inside, 'file="link.obj"'))


def test_the_convex_hull_needs_an_extra(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "scipy.spatial", None)
    with pytest.raises(MissingExtraError) as caught:
        load(model(folder, 'file="l.obj" inertia="convex"'))
    assert "linkwise[mesh]" in str(caught.value)
    assert '<mesh name="l">' in str(caught.value)


def test_meshes_made_by_mujoco_are_named_where_inertia_needs_them(tmp_path: Path):
    with pytest.raises(ParseError, match="meshes made by 'builtin' or a plugin are not supported"):
        load(model(tmp_path, 'builtin="sphere" params="2"'))


def test_the_shell_of_a_mesh_is_said_in_its_asset(folder: Path):
    path = model(folder, 'file="l.obj"', 'type="mesh" mesh="l" shellinertia="true"')
    with pytest.raises(ParseError, match="'shellinertia' of a mesh belongs in its asset"):
        load(path)
