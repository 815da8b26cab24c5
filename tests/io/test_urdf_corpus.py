"""Every URDF of example-robot-data, against Pinocchio and against its own round trip."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.corpus import find_urdf

from linkwise.errors import ParseError
from linkwise.io.load import load
from linkwise.io.save import save
from tests.io.round_trip import differences
from tests.io.urdf_text import again, arm, read
from tests.oracles.pinocchio_oracle import agreement, mimic_agreement

pytestmark = pytest.mark.oracle
pytest.importorskip("pinocchio")

FILES = find_urdf()

BROKEN = {
    "ur3.urdf": r"ur3\.urdf:6: <robot>: it has no <link>",
    "falcon.urdf": r"falcon\.urdf:180: .*its child: no link called 'Z_propeller'",
    "alex_psyonic_hands.urdf": r":1037: .*'Left_index_q2' cannot follow it: no joint called "
    r"'index_q1' in the file; did you mean 'Left_index_q1' or 'Right_index_q1'",
}
"""Files that contradict themselves, with what is said about them."""


def _last(name: str) -> str:
    return name.rsplit("/", 1)[-1]


each = pytest.mark.parametrize("name", [n for n in FILES if _last(n) not in BROKEN])


def test_the_corpus_is_there():
    assert len(FILES) >= 60  # 77 in release 5 of the package, 69 in release 6


@pytest.mark.few(15)
@each
def test_agrees_with_pinocchio(name: str):
    rows = agreement(load(FILES[name]), FILES[name])
    assert rows.dof[0] == rows.dof[1]
    assert rows.frames > 0
    assert rows.worst < 1e-12, rows


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "name",
    [
        name
        for name, path in FILES.items()
        if _last(name) not in BROKEN and "<mimic" in Path(path).read_text("utf-8")
    ],
)
def test_mimics_agree_with_pinocchio(name: str):
    mech = load(FILES[name])
    if not mech.couplings:
        pytest.skip("the mimics of this file are on fixed joints")
    try:
        result = mimic_agreement(mech, FILES[name])
    except ValueError as error:
        if "is not in the kinematic tree" not in str(error):
            raise
        pytest.skip("Pinocchio wants the followed joint to come first in the tree")
    assert result.dof[0] == result.dof[1]
    assert result.worst < 1e-12, result


@pytest.mark.few(4)
@pytest.mark.parametrize("name", [n for n in list(FILES)[::6] if _last(n) not in BROKEN])
def test_free_base_agrees_with_pinocchio(name: str):
    mech = load(FILES[name], base="free")
    rows = agreement(mech, FILES[name], free=True)
    assert rows.dof[0] == rows.dof[1]
    assert rows.worst < 1e-12, rows


@pytest.mark.few(10)
@each
def test_round_trip(name: str):
    mech = load(FILES[name])
    back, report = again(mech)
    result = differences(mech, back)
    assert max(result.values()) < 1e-12, result
    assert not report.affecting("motion")
    for one, two in zip(mech.bodies, back.bodies, strict=True):
        assert one.drive == two.drive
        assert one.hinge.kind == two.hinge.kind
        assert len(one.geometry) == len(two.geometry)


@pytest.mark.parametrize("name", [n for n in FILES if _last(n) in BROKEN])
def test_broken_files_are_refused_by_name(name: str):
    with pytest.raises(ParseError, match=BROKEN[_last(name)]):
        load(FILES[name])


@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic", "floating", "planar"])
def test_joint_types_agree_with_pinocchio(kind: str, tmp_path):
    axis = "0 0 1" if kind == "planar" else "0.3 0.5 -0.7"
    inside = f'<origin xyz="1 2 3" rpy="0.4 0.5 0.6"/><axis xyz="{axis}"/>'
    limit = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'
    path = tmp_path / "r.urdf"
    path.write_text(arm(kind, inside + limit))
    rows = agreement(read(path.read_text()), path)
    assert rows.dof[0] == rows.dof[1]
    assert rows.worst < 1e-14, rows


@pytest.mark.prove
def test_what_is_written_is_what_pinocchio_reads(tmp_path):
    """A saved file means the same to another reader: twelve robots, every joint type they have."""
    for name in list(FILES)[::7]:
        if _last(name) in BROKEN:
            continue
        mech = load(FILES[name])
        path = tmp_path / "saved.urdf"
        save(mech, path)
        rows = agreement(mech, path)
        assert rows.dof[0] == rows.dof[1]
        assert rows.worst < 1e-12, (name, rows)
