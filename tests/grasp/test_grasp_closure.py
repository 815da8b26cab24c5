"""Force closure: known grasps, certificates that are checked by hand, radii against searches."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError
from linkwise.grasp.force_closure import edges, extreme
from tests.grasp.grasps import block, contact, disc, frame, random_grasp

pytest.importorskip("scipy")


def check_squeeze(grasp, result):
    """It cancels, and every contact with limits holds it with room to spare."""
    np.testing.assert_allclose(grasp.object_force(result.squeeze), 0.0, atol=1e-9)
    assert grasp.margins(result.squeeze).smallest > 1e-6
    push = [
        f[3:] @ np.array(c.normal)
        for f, c in zip(result.squeeze, grasp.contacts.values(), strict=True)
    ]
    assert max(push) == pytest.approx(1.0)


def check_escape(grasp, result):
    """No force that a contact holds works against the escape; the witness works along it."""
    A = grasp.map().reshape(-1, 6, 6)
    for i, one in enumerate(grasp.contacts.values()):
        rays, lines = edges(one, 64)
        V = A[i] @ result.escape
        assert (rays @ V >= -1e-9 * np.linalg.norm(V)).all()
        np.testing.assert_allclose(lines @ V, 0.0, atol=1e-9)
    assert result.witness @ result.escape > 0


def test_two_soft_fingers_hold_and_two_points_do_not():
    """001-II, Appendix A, case 3: two soft fingers are statically stable, two points are not."""
    soft = block("soft_finger").force_closure()
    assert soft.closed
    assert "margin" in str(soft)
    check_squeeze(block("soft_finger"), soft)

    point = block("point").force_closure()
    assert not point.closed
    assert point.rank == 5
    check_escape(block("point"), point)
    # What they let go is the turn about the line through them, the x axis.
    np.testing.assert_allclose(point.escape[1:], 0.0, atol=1e-12)
    assert "turning about" in str(point)


def test_three_points_hold():
    """ "At least three contact points are needed for a stable grasp"."""
    grasp = disc(3, "point")
    closure = grasp.force_closure()
    assert closure.closed
    check_squeeze(grasp, closure)


def test_three_points_with_little_friction_on_a_triangle():
    """On the sides of an equilateral triangle, at their middles: the pushes meet in the centre.

    Without friction the turn about the axis is free. With any friction it is not.
    """
    slick, rough = disc(3, "frictionless"), disc(3, "point", friction=0.05)
    closure = slick.force_closure()
    assert not closure.closed
    check_escape(slick, closure)
    assert rough.force_closure().closed


def test_all_fingers_on_one_side_only_push():
    contacts = {
        f"c{i}": contact("soft_finger", pose=frame((0, 0, 1), (0.1 * i, 0.1 * i * i, 0)))
        for i in range(3)
    }
    grasp = lw.Grasp(contacts)
    closure = grasp.force_closure()
    assert not closure.closed
    assert closure.rank == 6  # every force can be made, were it not for the limits
    check_escape(grasp, closure)


def test_form_closure_of_a_box():
    """Without friction: seven pushes can hold a body in space, six cannot."""
    # Two contacts on each face near opposite edges fix turns as well as slides.
    contacts = {}
    for axis in range(3):
        for side in (-1.0, 1.0):
            for k in (-1.0, 1.0):
                at = np.zeros(3)
                at[axis], at[(axis + 1) % 3] = side, 0.5 * k
                out = np.zeros(3)
                out[axis] = side
                contacts[f"{'xyz'[axis]}{side:+.0f}{k:+.0f}"] = contact(
                    "point", pose=frame(-out, at)
                )
    box = lw.Grasp(contacts)
    held = box.force_closure(friction=False)
    assert held.closed
    for drop in range(0, 12, 3):
        names = [n for i, n in enumerate(contacts) if i % 12 != drop][:6]
        six = lw.Grasp({n: contacts[n] for n in names})
        assert not six.force_closure(friction=False).closed


def test_rigid_contacts_hold_alone():
    grasp = lw.Grasp({"weld": contact("rigid", pose=frame((0, 1, 1), (0.2, 0.1, 0)))})
    assert grasp.force_closure().closed
    assert grasp.force_closure(friction=False).closed


def brute_force_radius(grasp, length, seeds):
    """The smallest work of the extreme forces over directions, from some that were thought of."""
    rng = np.random.default_rng(0)
    scale = np.array([1 / length] * 3 + [1.0] * 3)
    A = grasp.map().reshape(-1, 6, 6)
    contacts = list(grasp.contacts.values())

    def radius(y):
        y = y / np.linalg.norm(y)
        moved = [A[i] @ (scale * y) for i in range(len(contacts))]
        return max(max(extreme(c, V) @ V, 0.0) for c, V in zip(contacts, moved, strict=True))

    starts = np.concatenate([rng.standard_normal((200, 6)), np.eye(6), seeds])
    values = [radius(y) for y in starts]
    best = starts[int(np.argmin(values))]
    value, step = min(values), 0.3
    best = best / np.linalg.norm(best)
    while step > 3e-4:
        trials = best + step * rng.standard_normal((30, 6))
        result = [radius(y) for y in trials]
        if min(result) < value:
            value, best = min(result), trials[int(np.argmin(result))]
            best = best / np.linalg.norm(best)
        else:
            step *= 0.6
    return value


def thirty_degrees():
    """The weakest direction of three points on a disc with μ = 0.5, found by hand.

    The object tips about an axis through one finger, which then moves along its normal only, and
    backs away from the others: they do -s/2 + μ √3/2, that one s; both are 1/(2 √3) if s is.
    """
    s = 0.5 / np.sqrt(3.0)
    k, turn = np.sqrt(1.0 - s * s), np.deg2rad(30.0)
    away = -s * np.array([np.cos(2 * np.pi / 3), np.sin(2 * np.pi / 3), 0.0])
    return np.array([[k * np.sin(turn), -k * np.cos(turn), 0.0, *away]])


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("grasp", "seeds", "want"),
    [
        (block("soft_finger"), np.eye(6), 0.2),  # γ / length = 0.02 / 0.1, about the line
        (disc(3, "point"), thirty_degrees(), 0.5 / np.sqrt(3.0)),
    ],
    ids=["soft", "points"],
)
def test_margin_against_a_search(grasp, seeds, want):
    """The exact radius is between the two bounds."""
    closure = grasp.force_closure()
    exact = brute_force_radius(grasp, closure.length, seeds)
    assert exact == pytest.approx(want, rel=1e-3)  # the search finds nothing weaker
    assert closure.margin <= exact + 1e-9
    assert exact <= closure.margin_most + 1e-9
    assert closure.margin_most - closure.margin <= 0.031 * exact


@pytest.mark.parametrize("seed", range(8))
def test_certificates_of_random_grasps(seed):
    """Either answer comes with a proof."""
    kinds = ("soft_finger", "point", "edge", "frictionless")
    grasp = random_grasp(seed, 3 + seed % 3, kinds[seed % 2 :])
    closure = grasp.force_closure(sides=6)
    if closure.closed:
        check_squeeze(grasp, closure)
        assert 0 < closure.margin <= closure.margin_most + 1e-12
    else:
        check_escape(grasp, closure)


def test_both_answers_were_among_the_random_ones():
    kinds = ("soft_finger", "point", "edge", "frictionless")
    closed = [
        random_grasp(s, 3 + s % 3, kinds[s % 2 :]).force_closure(sides=6).closed for s in range(8)
    ]
    assert any(closed)
    assert not all(closed)


@pytest.mark.parametrize("count", [2, 3, 7])
def test_points_without_friction_are_frictionless_contacts(count):
    """μ = 0 asks for no more and no less than the kind "frictionless"."""
    smooth, slick = disc(count, "point", friction=0.0), disc(count, "frictionless")
    closure = smooth.force_closure()
    assert not closure.closed
    check_escape(slick, closure)
    space, expected = smooth.force_space(), slick.force_space()
    assert (space.rank, space.dimension) == (expected.rank, expected.dimension)
    assert closure.rank == expected.rank == min(count - 1, 2)


def test_without_friction_the_twist_of_a_soft_finger_is_left():
    """Push and twist of three normals in a plane: two forces and two moments in that plane."""
    assert disc(3, "soft_finger", friction=0.0).force_space().rank == 4
    patches = disc(3, "rigid patch", friction=0.0)
    assert patches.force_space().rank == 5  # bending moments make all three, but no twist is held
    forces = np.zeros((3, 6))
    forces[:, 5], forces[0, 2] = 10.0, 0.1
    margins = patches.margins(forces)
    assert margins.of("finger_1", "twist") == pytest.approx(-0.1 / 0.02)  # m_n / r
    assert margins.of("finger_2", "twist") == 0.0


def test_a_grasp_too_flat_for_a_hull_has_a_small_margin(monkeypatch):
    """Where Qhull gives up, the bounds that need no hull are given."""
    from scipy import spatial

    def fails(*_, **__):
        raise spatial.QhullError("flat")

    exact = 0.5 / np.sqrt(3.0)  # see `thirty_degrees`
    monkeypatch.setattr(spatial, "ConvexHull", fails)
    closure = disc(3, "point").force_closure()
    assert closure.closed
    assert closure.margin == 0.0
    assert exact <= closure.margin_most <= 1.0  # that of a push along its normal


def test_form_closure_is_called_so():
    assert str(disc(3, "point").force_closure(friction=False)).startswith("no form closure")
    weld = lw.Grasp({"weld": contact("rigid", pose=frame((0, 1, 1), (0.2, 0.1, 0)))})
    assert str(weld.force_closure(friction=False)).startswith("form closure")
    assert str(weld.force_closure()).startswith("force closure")


def test_impossible_questions():
    with pytest.raises(ModelError, match="length is -1"):
        block("point").force_closure(length=-1)
    with pytest.raises(ModelError, match="at least 3"):
        block("point").force_closure(sides=2)
    with pytest.raises(ModelError, match="a whole number"):
        block("point").force_closure(sides="six")


def test_without_scipy(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(ImportError, match=r"pip install 'linkwise\[optimize\]'"):
        block("point").force_closure()
