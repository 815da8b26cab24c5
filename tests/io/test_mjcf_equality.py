"""Equalities of MJCF as loops and couplings: what they ask is what MuJoCo computes as violation."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.errors import ParseError
from linkwise.model.hinges import Locked, Spherical
from linkwise.model.mechanism import Mechanism
from linkwise.spatial import quaternion
from tests.io.mjcf_text import BALL, again, body, read, world
from tests.io.round_trip import differences
from tests.oracles.mujoco_oracle import parse_model, to_mujoco

SITES = '<site name="{0}" pos="0.1 0.2 0.3" quat="1 2 3 4"/>'


def tree(equality: str, before: str = "", tendon: str = "") -> str:
    """Two arms of two joints each, a free body and a post, with references that are not zero."""
    joint = '<joint name="{0}" type="{1}" axis="0 1 0.3" pos="0.1 0 0" ref="{2}"/>'
    left = body(
        "left_tip", joint.format("b", "hinge", "-20"), BALL, SITES.format("lt"), pos="1 0 0"
    )
    right = body(
        "right_tip", joint.format("d", "hinge", "0"), BALL, SITES.format("rt"), pos="0 1 0"
    )
    return world(
        body("left", joint.format("a", "hinge", "30"), BALL, left, pos="0 0 1", euler="10 20 30"),
        body("right", joint.format("c", "slide", "0.4"), BALL, right, pos="0 2 1"),
        body("ball", "<freejoint name='f'/>", BALL, pos="1 2 3", quat="1 2 0 1"),
        body("post", BALL, SITES.format("ps"), pos="3 0 0", euler="0 0 40"),
        before=before,
        after=f"<tendon>{tendon}</tendon><equality>{equality}</equality>",
    )


def violation(text: str, mech: Mechanism, q: np.ndarray) -> np.ndarray:
    """Rows of all equalities as MuJoCo sees them."""
    import mujoco

    model = parse_model(text)
    data = mujoco.MjData(model)
    data.qpos[:] = to_mujoco(mech, model, q)
    mujoco.mj_forward(model, data)
    rows = data.efc_type[: data.nefc] == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    return np.array(data.efc_pos[: data.nefc][rows])


def random_q(mech: Mechanism, seed: int = 0) -> np.ndarray:
    return mech.normalise(np.random.default_rng(seed).uniform(-2, 2, mech.nq))


def loop_gap(mech: Mechanism, q: np.ndarray, rows: int) -> np.ndarray:
    """Node a minus node b in the world; for a weld also the axis of half the turn between them."""
    loop = mech.loops[0]
    a, b = mech.pose(q, loop.node_a), mech.pose(q, loop.node_b)
    turn = quaternion.from_matrix(b.rot.T @ a.rot)[1:]
    return np.concatenate([a.p - b.p, turn])[:rows]


LOOPS = {
    "connect": ('<connect name="e" body1="left_tip" body2="right_tip" anchor="0.3 0.1 0"/>', 3),
    "connect to the world": ('<connect name="e" body1="left_tip" anchor="0.3 0.1 0"/>', 3),
    "connect to a post": ('<connect body1="left_tip" body2="post" anchor="0.3 0.1 0"/>', 3),
    "connect sites": ('<connect site1="lt" site2="rt"/>', 3),
    "connect a free body": ('<connect body1="ball" body2="left" anchor="0.3 0.1 0"/>', 3),
    "weld": ('<weld body1="left_tip" body2="right_tip"/>', 6),
    "weld with anchor": ('<weld body1="left_tip" body2="ball" anchor="0.1 0.2 0.3"/>', 6),
    "weld with relpose": (
        '<weld body1="left_tip" body2="right_tip" relpose="1 2 3 0.5 0.1 -0.3 0.2"/>',
        6,
    ),
    "weld with both": (
        '<weld body1="left" body2="ball" relpose="1 2 3 1 0.1 0 0" anchor="0.1 0.2 0.3"/>',
        6,
    ),
    "weld to the world": ('<weld body1="left_tip"/>', 6),
    "weld sites": ('<weld site1="lt" site2="ps"/>', 6),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", LOOPS)
def test_loops_ask_what_mujoco_asks(name: str):
    pytest.importorskip("mujoco")
    element, rows = LOOPS[name]
    text = tree(element)
    mech = read(text)
    assert isinstance(mech.loops[0].hinge, Spherical if rows == 3 else Locked)
    for seed in range(3):
        q = random_q(mech, seed)
        theirs = violation(text, mech, q)
        ours = loop_gap(mech, q, rows)
        assert np.abs(ours[:3] - theirs[:3]).max() < 1e-13
        # The sign of a quaternion is free: MuJoCo's residual of a turn may be either.
        gaps = [np.abs(ours[3:] - s * theirs[3:]).max(initial=0.0) for s in (1, -1)]
        assert min(gaps) < 1e-13
    back, _ = again(mech)
    assert max(differences(mech, back).values()) < 1e-12


FIRST = '<fixed name="t"><joint joint="a" coef="2"/><joint joint="c" coef="-3"/></fixed>'
SECOND = '<fixed name="u"><joint joint="b" coef="0.5"/><joint joint="d" coef="1"/></fixed>'

COUPLINGS = {
    "identity": '<joint joint1="a" joint2="b"/>',
    "linear": '<joint joint1="a" joint2="c" polycoef="0.1 2"/>',
    "quartic": '<joint joint1="b" joint2="a" polycoef="0.1 2 -0.3 0.4 0.05"/>',
    "quadratic": '<joint joint1="a" joint2="c" polycoef="0.1 2 0.7 0 0"/>',
    "tendon": '<tendon tendon1="t"/>',
    "tendon with offset": '<tendon tendon1="t" polycoef="0.3 0 0 0 0"/>',
    "two tendons": '<tendon tendon1="t" tendon2="u" polycoef="0.3 2 0 0 0"/>',
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", COUPLINGS)
def test_couplings_ask_what_mujoco_asks(name: str):
    pytest.importorskip("mujoco")
    text = tree(COUPLINGS[name], tendon=FIRST + SECOND)
    mech = read(text)
    (coupling,) = mech.couplings
    scale = None
    for seed in range(4):
        q = random_q(mech, seed)
        followed = {n: q[mech.coordinate(n)] for n, _ in coupling.terms}
        ours = q[mech.coordinate(coupling.dependent)] - coupling.value(followed)
        theirs = violation(text, mech, q)[0]
        scale = theirs / ours if scale is None else scale  # of the dependent joint in a tendon
        assert abs(scale * ours - theirs) < 1e-12
    assert scale == pytest.approx(2.0 if "tendon" in name else 1.0, rel=1e-12)
    back, report = again(mech)
    assert max(differences(mech, back).values()) < 1e-12
    assert not report.affecting("motion")


@pytest.mark.oracle
def test_a_joint_held_is_a_weld_at_its_value():
    pytest.importorskip("mujoco")
    text = tree('<joint joint1="a" polycoef="0.25 0 0 0 0"/>')
    mech = read(text)
    q = random_q(mech)
    q[mech.q_slice("a")] = np.deg2rad(30) + 0.25
    assert np.abs(violation(text, mech, q)).max() < 1e-15
    assert np.abs(loop_gap(mech, q, 6)).max() < 1e-15
    q[mech.q_slice("a")] += 0.1
    assert np.abs(loop_gap(mech, q, 6)).max() > 0.01


def test_inactive_and_disabled_equalities_are_reported():
    mech = read(tree('<connect body1="left" anchor="0 0 0" active="false"/>'))
    assert not mech.loops
    (item,) = [i for i in mech.load_report.affecting("motion") if i.effect != "kept"]
    assert (item.element, item.effect, item.reason) == ("<connect>", "ignored", "it is not active")
    flag = '<option><flag equality="disable"/></option>'
    mech = read(tree('<connect body1="left" anchor="0 0 0"/>', before=flag))
    assert not mech.loops
    assert [i.reason for i in mech.load_report.affecting("motion") if i.effect != "kept"] == [
        "equalities are disabled"
    ]


def test_equalities_that_a_mechanism_cannot_hold_are_reported():
    spatial = '<spatial name="s"><site site="lt"/><site site="rt"/></spatial>'
    for element, reason in {
        '<flex flex="x"/>': "equality constraints of type 'flex' are not supported",
        '<tendon tendon1="s"/>': "only linear equalities of fixed tendons are supported",
    }.items():
        result = read(tree(element, tendon=spatial)).load_report.affecting("motion")
        assert [item.reason for item in result if item.effect != "kept"] == [reason]


def test_softness_and_torque_scale_are_reported():
    mech = read(tree('<weld body1="left" torquescale="2" solref="0.01 1"/>'))
    reasons = {item.reason: item.affects for item in mech.load_report}
    assert "'torquescale' 2 weighs soft constraints; this one holds exactly" in reasons
    assert reasons["attribute 'solref': it does not act"] == "motion"
    mech = read(tree('<weld body1="left" torquescale="0"/>'))
    assert isinstance(mech.loops[0].hinge, Spherical)


def test_joints_of_a_chain_of_couplings_follow_each_other_only_once():
    chain = '<joint joint1="a" joint2="b"/><joint joint1="a" joint2="d" polycoef="0 2"/>'
    mech = read(tree(chain))
    # a follows b; of the second equality a is taken, so d is solved for: d = (a - ...) / 2.
    assert [c.dependent for c in mech.couplings] == ["a", "d"]
    q = mech.couple(random_q(mech))
    a, b, d = (q[mech.coordinate(n)] for n in "abd")
    turn = np.deg2rad
    assert a - turn(30) == pytest.approx(b - turn(-20), abs=1e-14)
    assert a - turn(30) == pytest.approx(2 * d, abs=1e-14)


REFUSED = {
    '<connect body1="lft" anchor="0 0 0"/>': "m.xml:9: <connect>: no body called 'lft' in this "
    "model; did you mean 'left' or 'left_tip'?",
    '<connect site1="lt" site2="zz"/>': "m.xml:9: <connect>: no site called 'zz' in this model; "
    "known: 'lt', 'rt', 'ps'.",
    '<connect body1="left"/>': "m.xml:9: <connect>: attribute 'site1' is missing",
    '<joint joint1="a" joint2="x"/>': "m.xml:9: <joint>: no joint called 'x' in this model; "
    "known: 'a', 'b', 'c', 'd', 'f'.",
    '<joint joint1="f"/>': "m.xml:9: <joint>: joint 'f' is a free joint; a hinge or slide is "
    "needed",
    '<joint joint1="a" joint2="a"/>': "m.xml:9: <joint>: the two joints are the same one",
    '<joint joint1="a" joint2="b" polycoef="0 1 1 0 0"/>'
    '<joint joint1="b" joint2="a" polycoef="0 1 1 0 0"/>': "m.xml:9: <joint>: joint 'b' would "
    "follow twice, or in a cycle, which couplings cannot express",
    '<tendon tendon1="x"/>': "m.xml:9: <tendon>: no tendon called 'x' in this model; it has no "
    "tendon.",
    '<weld body1="left" relpose="1 2 3"/>': "m.xml:9: <weld>: 'relpose' is '1 2 3', which has 3 "
    "numbers; it takes 7 finite numbers",
}


@pytest.mark.parametrize("element", REFUSED)
def test_refused(element: str):
    with pytest.raises(ParseError) as caught:
        read(tree(element))
    assert str(caught.value) == REFUSED[element]
