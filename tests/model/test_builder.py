"""Building: order, graphs, spanning trees, and all that can go wrong."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import linkwise as lw
from linkwise import errors
from linkwise.errors import LinkwiseError, ModelError, UnknownNameError, unknown_name
from linkwise.spatial.inertia import trusted_inertia
from tests.dense_kinematics import loop_gap, mass_matrix
from tests.effort import calls

ROD = lw.SpatialInertia.from_com(1.0, (0.0, 0.0, 0.5), (0.1, 0.1, 0.01))
Y = (0.0, 1.0, 0.0)


def two_links() -> lw.Builder:
    b = lw.Builder("two links")
    b.body("upper", "world", lw.hinges.Pin(Y), hinge_name="shoulder", inertia=ROD)
    b.body("lower", "upper", lw.hinges.Pin(Y), hinge_name="elbow", inboard=(0, 0, 1), inertia=ROD)
    return b.node("hand", "lower", (0, 0, 1))


def test_two_links():
    mech = two_links().build()
    assert [b.name for b in mech.bodies] == ["upper", "lower"]
    assert mech.parent.tolist() == [-1, 0]
    assert (mech.nq, mech.nv, mech.n_bodies) == (2, 2, 2)
    assert mech.coordinate_names == ("shoulder", "elbow")
    assert mech.q_slice("elbow") == mech.q_slice("lower") == slice(1, 2)
    hand = mech.pose(np.array([np.pi / 2, -np.pi / 2]), "hand")
    np.testing.assert_allclose(hand.p, [1.0, 0.0, 1.0], atol=1e-15)


def test_bodies_in_any_order():
    b = lw.Builder("upside down")
    b.body("c", "b", lw.hinges.Pin(), inertia=ROD)
    b.body("a", "world", lw.hinges.Pin(), inertia=ROD)
    b.body("b", "a", lw.hinges.Pin(), inertia=ROD)
    mech = b.build()
    assert [x.name for x in mech.bodies] == ["a", "b", "c"]
    assert mech.parent.tolist() == [-1, 0, 1]


def test_body_frame_away_from_the_hinge():
    """The same physics whether the body frame is at the hinge or not."""
    away = lw.Pose.rpy((0.3, -0.2, 0.5), (0.1, 0.2, 0.3))
    b = lw.Builder("away")
    b.body("upper", "world", lw.hinges.Pin(Y), outboard=away, inertia=ROD.moved(away.inverse()))
    b.body(
        "lower",
        "upper",
        lw.hinges.Pin(Y),
        inboard=away.inverse() @ lw.Pose.translation((0, 0, 1)),
        inertia=ROD,
    )
    b.node("hand", "lower", (0, 0, 1))
    moved, plain = b.build(), two_links().build()
    q = plain.random(3)
    np.testing.assert_allclose(moved.pose(q, "hand").p, plain.pose(q, "hand").p, atol=1e-14)
    np.testing.assert_allclose(mass_matrix(moved, q), mass_matrix(plain, q), atol=1e-13)
    np.testing.assert_allclose(moved.center_of_mass(q), plain.center_of_mass(q), atol=1e-14)


def test_graph_is_cut_at_the_joint_of_most_freedom():
    """A ring of pins with one ball: the ball becomes the loop, wherever it was given."""
    b = lw.Builder("ring")
    for name in ("a", "b", "c"):
        b.body(name, None, inertia=ROD)
    b.joint("ball", "world", "c", lw.hinges.Spherical(), at_a=(1, 0, 0))
    b.joint("j1", "world", "a", lw.hinges.Pin(Y))
    b.joint("j2", "a", "b", lw.hinges.Pin(Y), at_a=(0, 0, 1))
    b.joint("j3", "b", "c", lw.hinges.Pin(Y), at_a=(0, 0, 1), at_b=(0, 0, 1))
    mech = b.build()
    assert mech.nv == 3
    assert [x.name for x in mech.loops] == ["ball"]
    assert mech.loops[0].rows == 3
    assert mech.node("ball.a").body == "world"
    np.testing.assert_array_equal(mech.node("ball.a").pose.p, [1, 0, 0])


def test_joints_given_against_the_tree_are_reversed():
    """The same four-bar, its joints written in either direction."""

    def four_bar(flip: bool) -> lw.Mechanism:
        b = lw.Builder("four bar")
        for name in ("crank", "rod", "rocker"):
            b.body(name, None, inertia=ROD)
        edges = [
            ("j1", "world", "crank", (0, 0, 0), (0, 0, 0)),
            ("j2", "crank", "rod", (0, 0, 1), (0, 0, 0)),
            ("j3", "rod", "rocker", (0, 0, 1), (0, 0, 1)),
            ("j4", "world", "rocker", (0, 0, 0), (0, 0, 0)),
        ]
        for name, x, y, at_x, at_y in edges:
            if flip:
                b.joint(name, y, x, lw.hinges.Pin(Y), at_a=at_y, at_b=at_x)
            else:
                b.joint(name, x, y, lw.hinges.Pin(Y), at_a=at_x, at_b=at_y)
        return b.build()

    forth, back = four_bar(False), four_bar(True)
    q = np.array([0.3, -0.7, 1.1])
    for body in ("crank", "rod", "rocker"):
        np.testing.assert_allclose(
            back.pose(-q, body).matrix, forth.pose(q, body).matrix, atol=1e-14
        )
    assert isinstance(back.hinge("j1").hinge, lw.hinges.Pin)
    assert forth.loops[0].name == back.loops[0].name == "j4"


def test_parent_reached_only_through_its_child():
    """b hangs on a by its own words, but only b is joined to the world."""
    b = lw.Builder("backwards")
    b.body("a", None, inertia=ROD)
    b.body("b", "a", lw.hinges.Universal(), inboard=(0, 0, 1), outboard=(0.1, 0, 0), inertia=ROD)
    b.joint("root", "world", "b", lw.hinges.Pin(Y), at_b=(0, 0.2, 0))
    mech = b.build()
    assert [x.name for x in mech.bodies] == ["b", "a"]
    q = mech.random(1)
    # Pose of b in a, as it was written down.
    expected = (
        lw.Pose.translation((0, 0, 1))
        @ lw.hinges.Universal().pose(q[mech.q_slice("a")])
        @ lw.Pose.translation((0.1, 0, 0))
    )
    result = mech.pose(q, "a").inverse() @ mech.pose(q, "b")
    np.testing.assert_allclose(result.matrix, expected.matrix, atol=1e-14)


def test_loops_between_any_nodes_and_couplings():
    b = two_links()
    b.node("anchor", "world", (1, 0, 1))
    b.loop("tie", "anchor", "hand", lw.hinges.Spherical())
    b.couple("gear", "elbow", {"shoulder": -1.0}, offset=0.2)
    mech = b.build()
    assert mech.loop("tie").rows == 3
    q = mech.random(5)
    assert q[1] == pytest.approx(0.2 - q[0])
    gap = loop_gap(mech, np.array([np.pi / 2, -np.pi / 2]), mech.loop("tie"))
    np.testing.assert_allclose(gap, 0.0, atol=1e-14)


def test_couplings_of_couplings_and_polynomials():
    b = lw.Builder("cam")
    for i, name in enumerate(("a", "b", "c")):
        b.body(name, "world", lw.hinges.Pin(), inertia=ROD, inboard=(i, 0, 0))
    b.couple("second", "c", {"b": 2.0, "a": (0.0, 3.0)}, offset=1.0)
    b.couple("first", "b", {"a": -1.0})
    mech = b.build()
    q = mech.couple(np.array([[0.5, 9.0, 9.0], [1.0, 0.0, 0.0]]))
    np.testing.assert_allclose(q, [[0.5, -0.5, 0.75], [1.0, -1.0, 2.0]])


def three_pins(*couplings) -> lw.Builder:
    b = lw.Builder("tied")
    for name in ("a", "b", "c[0]"):
        b.body(name, "world", lw.hinges.Pin(), inertia=ROD)
    for i, (dependent, terms) in enumerate(couplings):
        b.couple(f"tie_{i}", dependent, terms)
    return b


def test_a_single_coordinate_may_be_written_with_its_index():
    """As "b" or "b[0]"; a hinge that is really called "c[0]" is that hinge."""
    mech = three_pins(("b", {"c[0]": 2.0}), ("c[0]", {"a[0]": 3.0})).build()
    np.testing.assert_allclose(mech.couple(np.array([1.0, 0.0, 0.0])), [1.0, 6.0, 3.0])
    assert mech.coordinate("c[0]") == 2
    assert mech.lock(["a", "b", "c[0]"]).couplings == ()
    assert "made to follow others 2 times" in broken(
        lambda: three_pins(("b", {"a": 1.0}), ("b[0]", {"c[0]": 1.0}))
    )
    assert "in a cycle" in broken(lambda: three_pins(("b", {"a[0]": 1.0}), ("a", {"b[0]": 1.0})))
    assert "'a' occurs in 2 of its terms" in broken(
        lambda: three_pins(("b", {"a": 1.0, "a[0]": 1.0}))
    )


def test_long_chains_of_couplings_take_linear_effort():
    def gears(n: int) -> lw.Builder:
        b = lw.Builder("gears")
        for i in range(n):
            b.body(f"g{i}", "world", lw.hinges.Pin(), inertia=ROD)
        for i in range(1, n):
            b.couple(f"c{i}", f"g{i - 1}", {f"g{i}": -1.0})
        return b

    assert np.abs(gears(1500).build().random(0)).min() > 0.0
    once, twice = (calls(gears(n).build) for n in (300, 600))
    assert once > 300 and twice < 2.2 * once


# ------------------------------------------------------------------------------- mistakes


def broken(make) -> str:
    with pytest.raises(ModelError) as caught:
        make().build()
    return str(caught.value)


def test_unknown_parent_names_the_near_ones():
    text = broken(lambda: two_links().body("hand_2", "lowr", lw.hinges.Pin()))
    assert "no body called 'lowr'" in text
    assert "did you mean 'lower'" in text


def test_many_or_long_unknown_names_are_found_quickly(monkeypatch):
    """Near names are looked for only where it takes no time."""
    compared = []
    look = errors.difflib.get_close_matches
    monkeypatch.setattr(
        errors.difflib, "get_close_matches", lambda *a, **k: compared.append(a) or look(*a, **k)
    )
    b = lw.Builder("typo")
    for i in range(3000):
        b.body(f"link_{i}", f"lnik_{i}", lw.hinges.Pin())
    findings = b.validate()
    assert 1 <= len(compared) < 30
    assert len(findings) == 3000
    assert "did you mean 'link_0'" in findings[0].reason
    letters = "".join(chr(0x100 + i * 7 % 150) for i in range(20_000))
    with pytest.raises(UnknownNameError, match=r"called 'Ā.{70,80}\.\.\.' in.*known: ") as caught:
        raise unknown_name("link", letters, [letters[1:], "a"], owner="the file")
    assert len(str(caught.value)) < 400


def test_all_findings_at_once():
    b = two_links().body("x", "nowhere", lw.hinges.Pin()).body("upper", "world", lw.hinges.Pin())
    findings = b.validate()
    assert {f.code for f in findings} >= {"unknown-body", "duplicate-name"}
    text = broken(lambda: b)
    assert "nowhere" in text
    assert "'upper'" in text


def test_circle_of_parents():
    b = lw.Builder("circle").body("a", "b", lw.hinges.Pin()).body("b", "a", lw.hinges.Pin())
    assert [f.code for f in b.validate()] == ["cyclic"]
    assert "closes a cycle" in broken(lambda: b)


def test_disconnected():
    b = two_links().body("lost", None, inertia=ROD)
    assert [f.code for f in b.validate()] == ["disconnected"]
    assert "Free hinge" in broken(lambda: b)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda b: b.node("hand", "upper"), "'hand': the name is used 2 times"),
        (lambda b: b.node("upper", "upper"), "'upper': the name is used 2 times"),
        (lambda b: b.node("tool", "lowr"), "did you mean 'lower'"),
        (lambda b: b.node("world", "lower"), "kept for the ground"),
        (lambda b: b.body("x", "lower", lw.hinges.Pin(), hinge_name="elbow"), "hinge 'elbow'"),
        (lambda b: b.body("", "lower", lw.hinges.Pin()), "name is empty"),
        (lambda b: b.joint("self", "lower", "lower", lw.hinges.Pin()), "joins 'lower' to itself"),
        (lambda b: b.loop("l", "hand", "hand"), "onto itself"),
        (lambda b: b.loop("l", "hand", "hond"), "did you mean 'hand'"),
        (
            lambda b: b.loop("l", "hand", "upper", lw.hinges.Free()),
            "leaves all six directions free",
        ),
        (lambda b: b.couple("c", "elbow", {"sholder": 1.0}), "did you mean 'shoulder'"),
        (lambda b: b.couple("c", "elbow", {"elbow": 1.0}), "in a cycle"),
        (lambda b: b.couple("c", "elbow", {}), "no terms"),
        (lambda b: b.couple("c", "elbow[1]", {"shoulder": 1}), "does not name one of the 1"),
        (lambda b: b.couple("c", "elbow", {"shoulder": np.nan}), "not finite"),
        (
            lambda b: b.body("x", "lower", lw.hinges.Pin(), drive=lw.Drive(damping=(1.0, 2.0))),
            "damping has 2 entries; a pin hinge takes 1",
        ),
    ],
)
def test_structural_mistakes(change, text):
    assert text in broken(lambda: change(two_links()))


def test_mistakes_said_at_once():
    with pytest.raises(ModelError, match="no hinge; give one"):
        lw.Builder().body("a", "world")
    with pytest.raises(ModelError, match="no parent"):
        lw.Builder().body("a", None, lw.hinges.Pin())
    with pytest.raises(ModelError, match="armature of a drive is not a number"):
        lw.Drive(armature=float("nan"))
    with pytest.raises(lw.ShapeError, match="gravity has shape"):
        lw.Builder(gravity=(0, 9.81))
    with pytest.raises(ModelError, match="a box has 3 sizes; 1 were given"):
        lw.Geometry("", "box", (1.0,), lw.Pose.identity())


def test_lookups_by_wrong_name():
    mech = two_links().build()
    for ask in (mech.body, mech.hinge, mech.node, mech.q_slice, mech.v_slice, mech.loop):
        with pytest.raises(UnknownNameError, match="two links"):
            ask("sholder")
    with pytest.raises(UnknownNameError, match="did you mean 'shoulder'"):
        mech.hinge("sholder")


def test_a_mechanism_cannot_be_changed():
    mech = two_links().build()
    with pytest.raises(AttributeError):
        mech.name = "other"  # type: ignore[misc]
    for array in (mech.gravity, mech.armature, mech.parent, mech.inertias.mass, mech.lower):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


COPIES = [lambda m: m, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]


@pytest.mark.parametrize("changed", COPIES)
def test_no_array_of_a_mechanism_can_be_written(changed):
    b = two_links().body("spare", None, inertia=ROD + ROD)
    turned = lw.Pose.translation((1, 2, 3)) @ lw.Pose.rpy((0.1, 0.2, 0.3))
    b.joint("wrist", "lower", "spare", lw.hinges.Pin(), at_a=turned, at_b=turned)
    mech = b.node("tool", "spare", turned, inertia=ROD.scaled(2.0)).build()
    assert mech.lower.size == mech.nq  # caches filled before the copy
    mech = changed(mech.mount(mech, at="tool", prefix="mini_").lock(["elbow"]).merge_locked())
    parts = [p for body in mech.bodies for p in (body.inboard, body.outboard, body.inertia)]
    parts += [p for node in mech.nodes for p in (node.pose, node.inertia) if p is not None]
    arrays = [getattr(p, name) for p in parts for name in p.__slots__]
    arrays += [mech.gravity, mech.lower, mech.bodies[0].hinge.screws, mech.inertias.J]
    assert not any(array.flags.writeable for array in arrays)
    assert isinstance(lw.Mechanism("list", list(mech.bodies)).bodies, tuple)
    with pytest.raises(TypeError):
        mech.body_index["other"] = 0


def test_numbers_that_overflow_are_refused():
    huge = trusted_inertia(np.array(1e300), np.full(3, np.inf), np.eye(3))
    text = broken(lambda: lw.Builder("x").body("a", "world", lw.hinges.Pin(), inertia=huge))
    assert "body 'a': its inertia is not finite" in text
    stack = two_links().build().poses(np.zeros(2))
    text = broken(lambda: lw.Builder("x").body("a", "world", lw.hinges.Pin(), inboard=stack))
    assert "its pose is a stack" in text
    far = lw.Builder("far").body("a", "world", lw.hinges.Pin(), inboard=(1.5e308, 0, 0))
    mech = far.body("b", "a", lw.hinges.Pin(), inboard=(1.5e308, 0, 0)).build()
    with np.errstate(over="ignore"), pytest.raises(ModelError, match="too far away"):
        mech.poses(mech.neutral())


@pytest.mark.parametrize(
    ("add", "text"),
    [
        (
            lambda b: b.body(3, "world", lw.hinges.Pin()),
            "the name of a body is 3; it must be a str",
        ),
        (lambda b: b.body("x", "world", "pin"), "hinge 'x' is 'pin'; it must be a Hinge"),
        (lambda b: b.body("x", "world", lw.hinges.Pin), "hinge 'x' is .*; it must be a Hinge"),
        (
            lambda b: b.body("x", "world", lw.hinges.Pin(), inertia=2.0),
            "inertia of body 'x' is 2.0",
        ),
        (lambda b: b.body("x", "world", lw.hinges.Pin(), drive=None), "drive of hinge 'x' is None"),
        (
            lambda b: b.body("x", "world", lw.hinges.Pin(), geometry="cube"),
            "a shape of body 'x' is 'c'",
        ),
        (lambda b: b.body("x", None, drive=lw.Drive(damping=1.0)), "a drive but no parent"),
        (lambda b: b.body("x", None, hinge_name="h"), "a drive but no parent"),
        (lambda b: b.node("n", "upper", inertia=1), "inertia of node 'n' is 1"),
        (lambda b: b.loop("l", "upper", "world", "ball"), "hinge 'l' is 'ball'"),
        (lambda b: b.couple("c", "elbow", {"shoulder": "2x"}), "coefficients of 'shoulder' must"),
        (lambda b: b.couple("c", "elbow", {"shoulder": 1}, offset="x"), "offset of coupling 'c'"),
        (lambda b: lw.Drive(damping="x"), "damping of a drive must be made of real numbers"),
        (lambda b: lw.Drive(damping=np.ones((2, 2))), r"damping of a drive has shape \(2, 2\)"),
    ],
)
def test_wrong_types_are_named_and_leave_the_builder_as_it_was(add, text):
    b = two_links()
    with pytest.raises(LinkwiseError, match=text):
        add(b)
    assert b.build().n_bodies == 2


def test_coefficients_may_be_numpy_numbers():
    mech = two_links().couple("gear", "elbow", {"shoulder": np.int64(2)}).build()
    assert mech.couplings[0].terms == (("shoulder", (2.0,)),)
