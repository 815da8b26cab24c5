"""Internal forces: what every split keeps, the virtual linkage, ranks that are known."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, ShapeError
from tests.grasp.grasps import block, contact, disc, frame, random_grasp

SPLITS = ("minimum_norm", "equal_shares", "virtual_linkage")
POINT = np.array([0.05, -0.1, 0.2])


def passed_forces(grasp, seed, lead=()):
    """Random contact forces that the contacts pass."""
    S = grasp.passed
    lam = np.random.default_rng(seed).standard_normal((*lead, len(S)))
    return (lam @ S).reshape(*lead, len(grasp), 6)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("count", [2, 3, 4, 6])
def test_what_every_split_keeps(split, count):
    grasp = random_grasp(count, count, ("rigid",))
    f = passed_forces(grasp, 1, (3,))
    forces = grasp.internal_forces(f, POINT, split=split)
    np.testing.assert_allclose(forces.motion + forces.internal, f, atol=1e-12)
    np.testing.assert_allclose(grasp.object_force(forces.internal, POINT), 0, atol=1e-11)
    np.testing.assert_allclose(forces.resultant, grasp.object_force(f, POINT), atol=1e-13)
    # Splitting again changes nothing: the moving part has no internal part, and the other way.
    again = grasp.internal_forces(forces.motion, POINT, split=split)
    np.testing.assert_allclose(again.internal, 0, atol=1e-11)
    inside = grasp.internal_forces(forces.internal, POINT, split=split)
    np.testing.assert_allclose(inside.motion, 0, atol=1e-11)


def test_minimum_norm_is_the_least_and_depends_on_the_metric():
    grasp = disc(3, "rigid")
    f = passed_forces(grasp, 2)
    short, long = (grasp.internal_forces(f, length=x) for x in (0.05, 0.5))
    for result, length in ((short, 0.05), (long, 0.5)):
        weights = np.array([1 / length**2] * 3 + [1.0] * 3)
        # Orthogonal in the metric, so any internal force added makes it larger.
        assert abs((result.motion * weights * result.internal).sum()) < 1e-12
        for internal in grasp.force_space().internal:
            more = result.motion + 0.1 * internal
            assert (weights * more**2).sum() > (weights * result.motion**2).sum()
    assert np.abs(short.motion - long.motion).max() > 0.05  # two answers to one question
    heavy = grasp.internal_forces(f, weights=[1, 1, 1e6])
    assert np.abs(heavy.motion[2]).max() < 1e-3


def test_pseudo_inverse_of_the_source():
    """With the metric 1 (length 1 m): f_motion = A (A* A)⁻¹ f_C, the dual of (2.8a)."""
    grasp = random_grasp(3, 3, ("rigid",))
    f, A = passed_forces(grasp, 3), grasp.map(POINT)
    want = A @ np.linalg.solve(A.T @ A, A.T @ f.ravel())
    forces = grasp.internal_forces(f, POINT, length=1.0)
    np.testing.assert_allclose(forces.motion.ravel(), want, atol=1e-13)


def test_equal_shares():
    grasp = random_grasp(4, 4, ("rigid",))
    forces = grasp.internal_forces(passed_forces(grasp, 4), POINT, split="equal_shares")
    for i, one in enumerate(grasp.contacts.values()):
        seen = (lw.Pose.translation(-POINT) @ one.pose).shift_force(forces.motion[i])
        np.testing.assert_allclose(seen, forces.resultant / 4, atol=1e-12)


def test_a_squeeze_of_a_block():
    """Two points push with 7 N: that is internal, whatever else they do."""
    grasp = block("point")
    lift = np.zeros((2, 6))
    for i, one in enumerate(grasp.contacts.values()):
        lift[i, 3:] = one.pose.rot.T @ [0, 0, 2.0]
    squeeze = np.array([[0, 0, 0, 0, 0, 7.0]] * 2)
    for split in ("minimum_norm", "virtual_linkage"):
        forces = grasp.internal_forces(lift + squeeze, split=split)
        np.testing.assert_allclose(forces.internal, squeeze, atol=1e-12)
        np.testing.assert_allclose(forces.motion, lift, atol=1e-12)
    linkage = grasp.virtual_linkage()
    resultant, inside = linkage.split(lift + squeeze)
    assert linkage.names[0] == "left-right"
    assert inside[0] == pytest.approx(7.0)  # positive: the bar pulls its ends together
    np.testing.assert_allclose(inside[1:], 0, atol=1e-12)
    np.testing.assert_allclose(resultant, [0, 0, 0, 0, 0, 4.0], atol=1e-12)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 7])
@pytest.mark.parametrize("flat", [False, True])
def test_virtual_linkage(count, flat):
    """6 ℓ - 6 internal forces; there and back; bars carry no resultant; flat trusses bend."""
    grasp = disc(count, "rigid") if flat else random_grasp(count, count, ("rigid",))
    linkage = grasp.virtual_linkage(POINT)
    assert linkage.dimension == 6 * count - 6
    bars = len(linkage.bars)
    bending = [name for name in linkage.names if name.startswith("transverse")]
    assert bars + len(bending) == max(3 * count - 6, 1)
    # In a plane 2 ℓ - 3 bars are independent (Maxwell); a triangle is always flat.
    assert bars == (2 * count - 3 if flat else max(3 * count - 6, 1))
    f = passed_forces(grasp, count, (2,))
    resultant, inside = linkage.split(f)
    np.testing.assert_allclose(resultant, grasp.object_force(f, POINT), atol=1e-12)
    np.testing.assert_allclose(linkage.contact_forces(resultant, inside), f, atol=1e-10)
    alone = linkage.contact_forces(np.zeros(6), inside)
    np.testing.assert_allclose(grasp.object_force(alone, POINT), 0, atol=1e-10)
    names = list(grasp.names)
    for k, (a, b) in enumerate(linkage.bars):  # a bar alone: two opposite forces along it
        unit = np.zeros(linkage.dimension)
        unit[k] = 1.0
        forces = linkage.contact_forces(np.zeros(6), unit)
        i, j = names.index(a), names.index(b)
        e = grasp.points[j] - grasp.points[i]
        e = e / np.linalg.norm(e)
        pairs = zip(forces[:, 3:], grasp.contacts.values(), strict=True)
        world = [f @ one.pose.rot.T for f, one in pairs]
        np.testing.assert_allclose(world[i], e, atol=1e-9)
        np.testing.assert_allclose(world[j], -e, atol=1e-9)
        others = [x for x in range(count) if x not in (i, j)]
        np.testing.assert_allclose(np.array(world)[others], 0, atol=1e-9)
        np.testing.assert_allclose(forces[:, :3], 0, atol=1e-9)


def test_motion_of_the_linkage_has_no_tension_and_no_moment():
    grasp = random_grasp(8, 4, ("rigid",))
    linkage = grasp.virtual_linkage()
    f = linkage.contact_forces([0.1, 0.2, -0.3, 4.0, 5.0, -6.0], np.zeros(linkage.dimension))
    np.testing.assert_allclose(f[:, :3], 0, atol=1e-12)
    tensions = linkage.split(f)[1]
    np.testing.assert_allclose(tensions, 0, atol=1e-11)


@pytest.mark.parametrize(
    ("grasp", "rank", "dimension"),
    [
        (disc(3, "rigid"), 6, 12),  # 6 ℓ - 6
        (disc(5, "rigid"), 6, 24),
        (block("point"), 5, 1),
        (block("soft_finger"), 6, 2),
        (disc(3, "point"), 6, 3),
        (disc(3, "soft_finger"), 6, 6),
        (block("edge"), 6, 4),
        (block("frictionless"), 1, 1),
        (disc(3, "frictionless"), 2, 1),
        (disc(4, "frictionless"), 2, 2),
    ],
    ids=lambda x: x.names[0] + str(len(x)) if isinstance(x, lw.Grasp) else str(x),
)
def test_ranks(grasp, rank, dimension):
    space = grasp.force_space()
    assert (space.rank, space.dimension) == (rank, dimension)
    assert len(space.unresisted) == 6 - rank
    S, A = grasp.passed, grasp.map()
    np.testing.assert_allclose(S @ A @ space.unresisted.T, 0, atol=1e-12)
    for internal in space.internal:
        np.testing.assert_allclose(grasp.object_force(internal), 0, atol=1e-12)
        np.testing.assert_allclose(S.T @ (S @ internal.ravel()), internal.ravel(), atol=1e-12)
    assert f"rank {rank} of 6" in str(space)


def test_what_two_points_do_not_resist_is_said():
    message = str(block("point").force_space())
    assert "turning about" in message
    assert "1, 0, 0) through (0, 0, 0) m" in message


def test_clear_refusals():
    grasp = block("point")
    with pytest.raises(ModelError, match=r"contact 'left'.*kind 'point' does not transmit"):
        grasp.internal_forces(np.ones((2, 6)))
    with pytest.raises(ModelError, match="left, right do not transmit"):
        grasp.internal_forces(np.zeros((2, 6)), split="equal_shares")
    with pytest.raises(ModelError, match="split is 'half'"):
        grasp.internal_forces(np.zeros((2, 6)), split="half")
    with pytest.raises(ShapeError, match="2 positive numbers"):
        grasp.internal_forces(np.zeros((2, 6)), weights=[1, -1])
    with pytest.raises(ModelError, match="length is 0"):
        grasp.force_space(length=0.0)
    with pytest.raises(ModelError, match="without friction"):
        block("frictionless").virtual_linkage()
    with pytest.raises(ModelError, match="has 1"):
        lw.Grasp({"a": contact("rigid")}).virtual_linkage()
    with pytest.raises(ModelError, match="'a' and 'b' are at one point"):
        lw.Grasp({"a": contact("rigid"), "b": contact("rigid")}).virtual_linkage()
    line = {f"c{i}": contact("rigid", pose=frame((0, 0, 1), (0.1 * i, 0, 0))) for i in range(3)}
    with pytest.raises(ModelError, match="3 contacts are on one line"):
        lw.Grasp(line).virtual_linkage()
    # The metric split has no trouble there.
    forces = lw.Grasp(line).internal_forces(passed_forces(lw.Grasp(line), 0))
    np.testing.assert_allclose(lw.Grasp(line).object_force(forces.internal), 0, atol=1e-12)
    with pytest.raises(ShapeError, match=r"the internal force has shape \(5,\)"):
        block("rigid").virtual_linkage().contact_forces(np.zeros(6), np.zeros(5))


def test_results_are_told_in_words():
    grasp = disc(3, "soft_finger")
    forces = np.zeros((3, 6))
    forces[:, 5] = 10.0
    message = str(grasp.internal_forces(forces))
    assert message.startswith(
        "resultant (0, 0, 0, 0, 0, 0) N m, N\ncontact 1: moves (0, 0, 0, 0, 0, 0)"
    )
    assert "squeezes (0, 0, 0, 0, 0, 10)" in message
    assert "2 states" in str(grasp.internal_forces(np.stack([forces, forces])))
    message = str(grasp.virtual_linkage())
    assert "12 internal forces: tensions of 3 bars (finger_1-finger_2, " in message
    assert "1 bar (left-right), and 5 moments" in str(block("soft_finger").virtual_linkage())
