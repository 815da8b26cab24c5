"""Validation judges what moves: a body with all that is welded to it."""

from __future__ import annotations

import pytest

import linkwise as lw
from linkwise.model.hinges import Locked, Pin
from linkwise.spatial.inertia import SpatialInertia

SOUND = SpatialInertia.from_com(2.0, (0.0, 0.0, 0.1), (0.03, 0.04, 0.05))
DUMMY = SpatialInertia.from_com(1e-6, (0.0, 0.0, 0.0), (1e-9, 1e-9, 5e-9))
HEAVY = SpatialInertia.from_com(1.0, (0.0, 0.0, 0.0), (0.1, 0.1, 9.0))


def _arm(part: SpatialInertia, *, as_node: bool, moving: bool = True) -> lw.Mechanism:
    b = lw.Builder("arm")
    b.body("link", "world", Pin() if moving else Locked(), inertia=SOUND)
    if as_node:
        b.node("part", "link", inertia=part, kind="link")
    else:
        b.body("part", "link", Locked(), inertia=part)
    return b.build()


@pytest.mark.parametrize("as_node", [True, False])
def test_an_impossible_part_of_a_possible_whole_is_a_warning(as_node: bool):
    (finding,) = _arm(DUMMY, as_node=as_node).validate()
    assert finding.severity == "warning"
    assert finding.where == ("node 'part'" if as_node else "body 'part'")
    assert finding.code == "triangle"
    assert "It is welded to body 'link', and the sum is possible." in finding.reason


@pytest.mark.parametrize("as_node", [True, False])
def test_an_impossible_whole_is_an_error_that_names_the_part(as_node: bool):
    (finding,) = _arm(HEAVY, as_node=as_node).validate()
    assert (finding.severity, finding.where, finding.code) == ("error", "body 'link'", "triangle")
    assert ("node 'part'" if as_node else "body 'part'") in finding.reason


def test_what_is_welded_to_the_ground_does_not_move():
    result = [f for f in _arm(HEAVY, as_node=True, moving=False).validate() if f.code == "triangle"]
    assert [(f.severity, f.where) for f in result] == [("warning", "node 'part'")]
    assert "It is welded to the ground" in result[0].reason


def test_a_body_of_its_own_is_still_an_error():
    b = lw.Builder("arm")
    b.body("link", "world", Pin(), inertia=HEAVY)
    (finding,) = b.build().validate()
    assert (finding.severity, finding.where) == ("error", "body 'link'")
    assert "welded" not in finding.reason


def test_the_dummy_link_of_anymal():
    """Its base, 1e-6 kg, hangs on the ground or on the first body: a warning that names it."""
    import importlib.metadata

    try:
        files = importlib.metadata.files("example-robot-data") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    (path,) = [
        f.locate()
        for f in files
        if str(f).endswith("anymal_b_simple_description/robots/anymal.urdf")
    ]
    for base in ("fixed", "free"):
        findings = lw.load(str(path), base=base).validate()
        assert [f.severity for f in findings] == ["warning"]
        assert "'base'" in findings[0].where
