"""OBJ files: what MuJoCo sees of them, what is left out, and what is refused."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from linkwise.errors import ParseError
from linkwise.io.load import load
from linkwise.io.mjcf import mesh, obj_file, triangles
from linkwise.io.mjcf.mesh_file import read_mesh_file
from tests.oracles.mujoco_inertia import AXES
from tests.oracles.mujoco_oracle import agreement, read_model

TETRA = "v 0 0 0\nv 1 0 0\nv 0 2 0\nv 0 0 3\n"
FACES = "f 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"
OTHER = "v 7 0 0\nv 9 0 0\nv 7 2 0\nv 7 0 5\n"
OTHER_FACES = "f 5 7 6\nf 5 6 8\nf 6 7 8\nf 7 5 8\n"
# A box whose upper and lower faces are bent quads, in both directions.
BENT = (
    "v 0 0 0.2\nv 1 0 -0.1\nv 1 1 0.1\nv 0 1 -0.2\nv 0 0 1\nv 1 0 1.3\nv 1 1 1.1\nv 0 1 1.4\n"
    "f 1 4 3 2\nf 5 6 7 8\nf 1 2 6 5\nf 2 3 7 6\nf 3 4 8 7\nf 4 1 5 8\n"
)


def _prism(corners: int) -> str:
    """A prism over a polygon that is convex and flat, up to single precision."""
    angle = np.sort(np.random.default_rng(corners).uniform(0.0, 2.0 * np.pi, corners))
    lines = [f"v {np.cos(a):.9f} {np.sin(a):.9f} {height}" for height in (0.0, 1.0) for a in angle]
    lines.append("f " + " ".join(str(i) for i in range(corners, 0, -1)))
    lines.append("f " + " ".join(str(i) for i in range(corners + 1, 2 * corners + 1)))
    for i in range(corners):
        j = (i + 1) % corners
        lines.append(f"f {i + 1} {j + 1} {j + 1 + corners} {i + 1 + corners}")
    return "\n".join(lines)


FILES = {
    "bent quads": BENT,
    "two objects": f"o one\n{TETRA}{FACES}o two\n{OTHER}{OTHER_FACES}",
    "two groups": f"g one\n{TETRA}{FACES}g two\n{OTHER}{OTHER_FACES}",
    "an empty object first": f"o none\n{TETRA}{OTHER}o two\n{OTHER_FACES}o one\n{FACES}",
    "faces before vertices": f"{FACES}{TETRA}",
    "old line ends": f"o one\n{TETRA}{FACES}o two\n{OTHER}{OTHER_FACES}".replace("\n", "\r"),
    **{f"polygon of {n}": _prism(n) for n in (5, 6, 13, 100)},
}  # fmt: skip


def _model(folder: Path, text: str, inertia: str = "legacy") -> Path:
    (folder / "m.obj").write_text(text)
    path = folder / "model.xml"
    path.write_text(
        f"<mujoco><asset><mesh name='m' file='m.obj' inertia='{inertia}'/></asset><worldbody>"
        "<body name='a'><joint axis='1 2 3'/><geom type='mesh' mesh='m'/></body>"
        "</worldbody></mujoco>"
    )
    return path


@pytest.mark.oracle
@pytest.mark.parametrize("inertia", ["legacy", "shell"])
@pytest.mark.parametrize("name", FILES)
def test_inertia_agrees_with_mujoco(name: str, inertia: str, tmp_path: Path):
    pytest.importorskip("mujoco")
    path = _model(tmp_path, FILES[name], inertia)
    rows = agreement(load(path), read_model(path))
    assert rows.bodies == 1
    assert rows.inertia < 1e-12, rows
    assert rows.axes < AXES, rows


def test_objects_that_are_left_out_are_named(tmp_path: Path):
    report = load(_model(tmp_path, FILES["two objects"])).load_report
    (item,) = [item for item in report if "objects" in item.reason]
    assert item.affects == "motion"
    assert item.element == '<mesh name="m">'
    assert item.reason == (
        "m.obj: of its 2 objects and groups only the first, 'one', gives the inertia, as in "
        "MuJoCo; left out: 'two'"
    )
    with pytest.raises(ParseError, match="left out: 'two'"):
        load(tmp_path / "model.xml", strict="motion")


def test_large_polygons_are_reported(tmp_path: Path):
    report = load(_model(tmp_path, FILES["polygon of 5"])).load_report
    reasons = [item.reason for item in report if "polygons" in item.reason]
    assert reasons == [
        "m.obj: 2 polygons of five or more corners are cut as fans; if they are not flat and "
        "convex, MuJoCo cuts them otherwise (line 11, 12): triangulate the mesh"
    ]


def test_the_viewer_gets_every_object(tmp_path: Path):
    _model(tmp_path, FILES["two objects"])
    assert len(read_mesh_file(str(tmp_path / "m.obj")).faces) == 8
    assert len(read_mesh_file(str(tmp_path / "m.obj"), like_mujoco=True).faces) == 4


@pytest.mark.parametrize("index", ["0", "5", "-5", "99999999999", "-99999999999", "9" * 400])
def test_an_index_out_of_range_is_refused_with_its_line(index: str, tmp_path: Path):
    path = _model(tmp_path, f"{TETRA}{FACES}f 1 2 {index}\n")
    with pytest.raises(ParseError, match="which does not exist: there are 4") as caught:
        load(path)
    assert caught.value.file == str(tmp_path / "m.obj")
    assert caught.value.line == 9


@pytest.mark.parametrize(
    ("limit", "reason"),
    [("MAX_FACES", "more than 3 faces"), ("MAX_VERTICES", "more than 3 vertices")],
)
def test_a_file_beyond_the_limits_is_refused_with_its_line(
    limit: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = _model(tmp_path, TETRA + FACES)
    load(path)
    monkeypatch.setattr(obj_file, limit, 3)
    with pytest.raises(ParseError, match=reason) as caught:
        load(path)
    assert caught.value.line == (8 if limit == "MAX_FACES" else 4)


@pytest.mark.prove
def test_memory_is_bounded_by_the_size_of_the_file(tmp_path: Path):
    """Short lines are the worst, eight bytes a face; the largest file has a million of them."""
    text = TETRA + FACES * 25_000
    path = _model(tmp_path, text)
    tracemalloc.start()
    try:
        load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200 * 100_000  # bytes a face; 100 faces a block take the rest
    assert 200 * triangles.MAX_FACES <= 200e6
    assert mesh.BLOCK < triangles.MAX_FACES
