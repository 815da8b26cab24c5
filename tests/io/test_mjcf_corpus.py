"""Every MJCF of gymnasium and dm_control, against MuJoCo and against its own round trip."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tools.corpus import find_mjcf, mjcf_roots

from linkwise.errors import ParseError
from linkwise.io.load import load
from linkwise.io.save import save
from tests.io.mjcf_text import again
from tests.io.round_trip import differences
from tests.oracles.mujoco_oracle import agreement, dynamics_gap, read_model, shape_gap

pytestmark = pytest.mark.oracle
pytest.importorskip("mujoco")

FILES = find_mjcf()

REFUSED = {
    "build_fruitfly/assets/drosophila.xml": r":437: .*'assets/labrum_right_lower\.msh' does not "
    "exist, and the inertia of a body depends on it",
    "build_fruitfly/floor.xml": r"fruitfly\.xml:239: .*'thorax_body\.msh' does not exist",
    "build_fruitfly/fruitfly.xml": r"fruitfly\.xml:239: .*'thorax_body\.msh' does not exist",
    "model_with_invalid_filenames.xml": r":7: <include>: the included file "
    r"'invalid_included_name\.xml' does not exist",
    "mujoco/testing/assets/model_with_assets.xml": r":9: <include>: the included file "
    r"'included\.xml' does not exist",
}
"""Files that name files which are not in the package, with what is said about them."""

HERE_ONLY = {
    "dog_v2/scene.xml": "repeated name 'grid' in texture",
    "included_with_invalid_filenames.xml": "invalid_mesh_name.stl",
    "test_model.xml": "mass and inertia of moving bodies",
}
"""Files that load here and that MuJoCo refuses, with its reason."""


def _in(name: str, table: dict[str, str]) -> str | None:
    return next((key for key in table if name.endswith(key)), None)


GOOD = [name for name in FILES if _in(name, REFUSED) is None]


def _load(name: str):
    return load(FILES[name], roots=mjcf_roots(name, FILES[name]))


def test_the_corpus_is_there():
    assert len(FILES) >= 77
    assert len(GOOD) >= 72


@pytest.mark.few(15)
@pytest.mark.parametrize("name", [n for n in GOOD if _in(n, HERE_ONLY) is None])
def test_agrees_with_mujoco(name: str):
    rows = agreement(_load(name), read_model(FILES[name]))
    assert rows.dof[0] == rows.dof[1]
    assert rows.worst < 1e-12, rows
    assert rows.inertia < 1e-11, rows
    assert rows.axes < 1e-7, rows
    assert rows.drive < 1e-11, rows


@pytest.mark.few(15)
@pytest.mark.parametrize("name", [n for n in GOOD if _in(n, HERE_ONLY) is None])
def test_mass_matrix_and_gravity_agree_with_mujoco(name: str):
    mech = _load(name)
    if mech.nv == 0:
        assert mech.n_bodies == 0
        return
    mass, gravity = dynamics_gap(mech, read_model(FILES[name]))
    # Small meshes: MuJoCo keeps their principal axes to about eight digits.
    assert mass < 1e-9
    assert gravity < 1e-12


@pytest.mark.prove
def test_shapes_agree_with_mujoco():
    total = 0
    for name in GOOD:
        if _in(name, HERE_ONLY) is None:
            pose, size, count = shape_gap(_load(name), read_model(FILES[name]))
            # Shapes fitted to small meshes stand along the axes MuJoCo finds for them.
            fitted = any(part in name for part in ("dog", "arm.xml"))
            assert pose < (1e-5 if fitted else 1e-12), name
            assert size < 1e-12, name
            total += count
    assert total > 1000


@pytest.mark.few(24)
@pytest.mark.parametrize("name", GOOD)
def test_round_trip(name: str):
    mech = _load(name)
    back, report = again(mech)
    result = differences(mech, back)
    assert max(result.values()) < 1e-12, result
    assert not report.affecting("motion")
    for one, two in zip(mech.bodies, back.bodies, strict=True):
        assert one.hinge.kind == two.hinge.kind
        assert [g.shape for g in one.geometry] == [g.shape for g in two.geometry]
    assert {n.name: n.kind for n in mech.nodes} == {n.name: n.kind for n in back.nodes}


@pytest.mark.parametrize("name", [n for n in FILES if _in(n, REFUSED)])
def test_files_that_miss_files_are_refused_by_name(name: str):
    with pytest.raises(ParseError, match=REFUSED[str(_in(name, REFUSED))]):
        _load(name)
    with pytest.raises(ValueError, match="opening file"):
        read_model(FILES[name])


@pytest.mark.parametrize("name", [n for n in FILES if _in(n, HERE_ONLY)])
def test_what_mujoco_refuses_and_why(name: str):
    with pytest.raises(ValueError, match=HERE_ONLY[str(_in(name, HERE_ONLY))]):
        read_model(FILES[name])


@pytest.mark.prove
def test_what_is_written_is_what_mujoco_reads(tmp_path: Path):
    """A saved file means the same to MuJoCo, mesh files beside it."""
    for name in [n for n in GOOD if _in(n, HERE_ONLY) is None][::3]:
        mech = _load(name)
        folder = tmp_path / name.replace("/", "_")
        folder.mkdir()
        for body in (*mech.bodies, *mech.nodes):
            for shape in body.geometry:
                if shape.file and ".." not in shape.file:
                    target = folder / shape.file
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(Path(FILES[name]).parent / shape.file, target)
        save(mech, folder / "saved.xml")
        rows = agreement(mech, read_model(folder / "saved.xml"))
        assert rows.dof[0] == rows.dof[1], name
        assert rows.worst < 1e-12, (name, rows)
        assert rows.drive < 1e-12, (name, rows)


def test_kept_fixed_links_are_bodies_and_come_back():
    name = next(n for n in GOOD if n.endswith("jaco_hand.xml"))
    mech = load(FILES[name], keep_fixed=True)
    assert mech.n_bodies == 7  # the hand with its six finger parts, three of them on joints
    assert mech.nv == 3
    rows = agreement(mech, read_model(FILES[name]))
    assert rows.pose < 1e-12, rows
    back, _ = again(mech, keep_fixed=True)
    assert max(differences(mech, back).values()) < 1e-12


def test_files_of_a_neighbour_need_its_folder():
    name = next(n for n in GOOD if n.endswith("dog_v2/dog.xml"))
    with pytest.raises(ParseError, match="lies outside the model's directory; allowed are files "):
        load(FILES[name])
