"""MJCF equalities: constrained accelerations against MuJoCo, whose equalities are made rigid."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from _pytest.mark import ParameterSet
from tools.corpus import find_mjcf, mjcf_roots

import linkwise as lw
from linkwise.io.mjcf import write_mjcf
from linkwise.io.report import Reporter
from tests.io.mjcf_text import body, read, world
from tests.oracles.mujoco_equality import EqualityCase, EqualityGap, equality_gap
from tests.oracles.mujoco_oracle import parse_model, read_model

pytestmark = pytest.mark.oracle
mujoco = pytest.importorskip("mujoco")

SPAN = 1e-10
"""Angle between what two Jacobians allow: rounding of 1e-16, by how nearly rows repeat (1e-5)."""

RIGID = 1e-9
"""Relative, of accelerations: rounding of 1e-16, by the condition of J M⁻¹ J* (up to 1e6 here)."""

SOLVER = 1e-7
"""The same for MuJoCo's Newton solver with R scaled by 1e-9."""


def check(gap: EqualityGap) -> None:
    assert gap.residual < 1e-11, "MuJoCo found no state in which the equalities hold"
    assert gap.error < 1e-11
    assert gap.rank[0] == gap.rank[1]
    assert gap.span < SPAN
    assert gap.velocity < 1e-11
    assert gap.rigid < RIGID
    assert gap.solver < SOLVER


# -------------------------------------------------------------------------- files of packages


def _with_equality() -> dict[str, str]:
    """Model files of the installed packages that say `<equality>`."""
    result = {
        name: path
        for name, path in find_mjcf().items()
        if "<equality>" in Path(path).read_text("utf-8", errors="replace")
    }
    ours = Path(mujoco.__file__).parent / "testdata" / "model.xml"
    return {**result, "mujoco/testdata/model.xml": str(ours)} if ours.exists() else result


FILES = _with_equality()


def test_the_packages_have_equalities():
    assert {Path(name).name for name in FILES} >= {
        "manipulator.xml",
        "quadruped.xml",
        "stacker.xml",
    }


def some(names: Iterable[str], quick: Iterable[str]) -> list[ParameterSet]:
    """All names, those that are not quick to compile for the slow run only."""
    short = set(quick)
    return [pytest.param(n, marks=() if n in short else pytest.mark.slow) for n in names]


@pytest.mark.parametrize("name", some(FILES, ["dm_control/suite/manipulator.xml"]))
def test_accelerations_of_a_package_model(name: str):
    mech = lw.load(FILES[name], roots=mjcf_roots(name, FILES[name]))
    assert mech.loops or mech.couplings
    check(equality_gap(EqualityCase(mech, read_model(FILES[name]))))


# ---------------------------------------------------------------------------------- own files

ROD = '<geom type="capsule" size="0.03" fromto="0 0 0 0.4 0 0" mass="{0}"/>'
HINGE = '<joint name="{0}" axis="{1}" ref="{2}" armature="{3}"/>'


def chain(prefix: str, links: int, *inside: str, **place: str) -> str:
    """A chain of rods in space; `inside` is in its last one."""
    axes = ("0 1 0", "0.3 0 1", "1 0.2 0", "0 1 0.5")
    text = "".join(inside)
    for k in reversed(range(links)):
        ours = HINGE.format(f"{prefix}{k}", axes[k % 4], 10 * k - 15, 0.02 * (k % 2))
        at = place if k == 0 else {"pos": "0.4 0 0", "euler": f"{20 * k} 10 {-15 * k}"}
        text = body(f"{prefix}_{k}", ours, ROD.format(0.5 + 0.3 * k), text, **at)
    return text


def pieces(*texts: str, equality: str = "", tendon: str = "") -> str:
    after = f"<tendon>{tendon}</tendon><equality>{equality}</equality>"
    return world(*texts, before='<option gravity="1 2 -9"/>', after=after)


SITE = '<site name="{0}" pos="0.4 0.02 0.01" euler="{1}"/>'
FREE = '<geom type="box" size="0.1 0.2 0.05" mass="1.5"/>'
LEFT = chain("a", 4, SITE.format("sa", "10 20 30"), pos="0 0 1")
RIGHT = chain("b", 4, SITE.format("sb", "-40 5 0"), pos="0.3 0.9 1", euler="0 0 -60")
OBJECT = body("o", "<freejoint name='o'/>", FREE, SITE.format("so", "5 5 5"), pos="1 1 1")
BALLS = body(
    "p",
    '<joint name="p" type="ball" armature="0.01"/>',
    ROD.format(1),
    body("s", '<joint name="s" type="slide" axis="1 0.2 0"/>', ROD.format(0.7), pos="0.4 0 0"),
    pos="0 -0.5 1",
)
PLANE = '<joint name="{0}" axis="0 1 0"/><geom type="capsule" size="0.02" fromto="0 0 0 {1}"/>'
FOUR_BAR = (
    body("crank", PLANE.format("k", "0 0 0.1"), body("bar", PLANE.format("l", "0.4 0 0.3"),
         pos="0 0 0.1")),
    body("rocker", PLANE.format("r", "0 0 0.4"), pos="0.4 0 0"),
)  # fmt: skip
SHAFTS = tuple(
    body(f"g{i}", HINGE.format(f"g{i}", "0 0 1", 5 * i, 0.01), FREE, pos=f"{i} 0 0")
    for i in range(5)
)
TENDONS = (
    '<fixed name="sum"><joint joint="g0" coef="0.5"/><joint joint="g1" coef="0.5"/></fixed>'
    '<fixed name="out"><joint joint="g2" coef="1"/></fixed>'
)

OWN = {
    "weld": pieces(LEFT, RIGHT, equality='<weld body1="a_3" body2="b_3"/>'),
    "weld with relpose": pieces(
        LEFT, OBJECT, equality='<weld body1="a_3" body2="o" relpose="0.5 0 0.1 0.9 0.1 0.2 0.3"/>'
    ),
    "weld to the ground": pieces(chain("a", 8), equality='<weld body1="a_7"/>'),
    "weld without torque": pieces(
        LEFT, RIGHT, equality='<weld body1="a_3" body2="b_3" torquescale="0"/>'
    ),
    "weld of sites": pieces(LEFT, RIGHT, equality='<weld site1="sa" site2="sb"/>'),
    "connect": pieces(LEFT, RIGHT, equality='<connect body1="a_3" body2="b_3" anchor="0.4 0 0"/>'),
    "connect to the ground": pieces(LEFT, equality='<connect body1="a_3" anchor="0.4 0 0"/>'),
    "connect of sites": pieces(LEFT, OBJECT, equality='<connect site1="sa" site2="so"/>'),
    "ball joints and slides": pieces(
        LEFT, BALLS, equality='<connect body1="a_3" body2="s" anchor="0.4 0 0"/>'
    ),
    "two hands on an object": pieces(
        LEFT,
        RIGHT,
        OBJECT,
        equality='<weld body1="a_3" body2="o"/><connect body1="b_3" body2="o" anchor="0.4 0 0"/>',
    ),
    "two independent loops": pieces(
        LEFT,
        RIGHT,
        OBJECT,
        BALLS,
        equality='<connect body1="a_3" anchor="0.4 0 0"/><connect body1="b_3" body2="s" '
        'anchor="0.4 0 0"/>',
    ),
    "nested loops": pieces(
        chain("a", 8),
        RIGHT,
        equality='<connect body1="a_3" body2="b_1" anchor="0.2 0 0"/>'
        '<connect body1="a_7" body2="b_3" anchor="0.4 0 0"/>',
    ),
    "a planar linkage closed in space": pieces(
        *FOUR_BAR, equality='<connect body1="bar" body2="rocker" anchor="0.4 0 0.3"/>'
    ),
    "closed twice": pieces(
        LEFT, RIGHT, equality='<connect body1="a_3" body2="b_3" anchor="0.4 0 0"/>' * 2
    ),
    "polynomial": pieces(
        *SHAFTS, equality='<joint joint1="g0" joint2="g1" polycoef="0.1 2 -0.3 0.4 0.05"/>'
    ),
    "chain of gears": pieces(
        *SHAFTS,
        equality="".join(
            f'<joint joint1="g{i}" joint2="g{i - 1}" polycoef="0.1 {r}"/>'
            for i, r in enumerate((-2, 1.5, -0.5, 3), start=1)
        ),
    ),
    "differential": pieces(
        *SHAFTS, equality='<tendon tendon1="out" tendon2="sum"/>', tendon=TENDONS
    ),
    "joint held": pieces(LEFT, equality='<joint joint1="a1" polycoef="0.2 0 0 0 0"/>'),
    "loop and gears": pieces(
        LEFT,
        RIGHT,
        equality='<connect body1="a_3" body2="b_3" anchor="0.4 0 0"/>'
        '<joint joint1="a1" joint2="b1" polycoef="0.05 -1.3 0.2"/>',
    ),
}
"""One file for each kind of equality, and how they meet."""

RANKS = {
    "a planar linkage closed in space": (3, 2),
    "closed twice": (6, 3),
    "joint held": (6, 1),
    "weld without torque": (3, 3),
}
"""Rows and rank where they are not what meets the eye."""


QUICK = (
    "weld with relpose",
    "connect to the ground",
    "a planar linkage closed in space",
    "polynomial",
    "chain of gears",
    "differential",
    "joint held",
)


@pytest.mark.parametrize("name", some(OWN, QUICK))
def test_accelerations_of_own_files(name: str):
    mech, model = read(OWN[name]), parse_model(OWN[name])
    assert {item.effect for item in mech.load_report.affecting("motion")} <= {"kept"}
    for seed in range(2):
        gap = equality_gap(EqualityCase(mech, model, seed))
        check(gap)
        rows, rank = RANKS.get(name, (gap.rows[1], gap.rows[1]))
        assert (gap.rows[0], gap.rank[0]) == (rows, rank)


def test_the_softness_of_mujoco_is_what_is_left():
    """R scaled down by ten brings MuJoCo's own solver ten times nearer to our accelerations."""
    case = EqualityCase(
        read(OWN["connect to the ground"]), parse_model(OWN["connect to the ground"])
    )
    ours = case.ours()
    gaps = [float(np.abs(ours - case.solved(s)).max()) for s in (1e-3, 1e-4, 1e-5)]
    assert gaps[0] > 1e-6  # soft enough to be seen
    np.testing.assert_allclose(np.array(gaps[:-1]) / gaps[1:], 10.0, rtol=0.05)


def test_of_points_and_poses_mujoco_knows_the_rate():
    """J̇ v of connect and weld by differences, as used for polynomials, is MuJoCo's own."""
    for name in ("weld with relpose", "connect to the ground"):
        case = EqualityCase(read(OWN[name]), parse_model(OWN[name]))
        assert np.abs(case.rate()).max() > 0.1
        np.testing.assert_allclose(-case.rate(), case.required, atol=1e-9)


def test_an_inactive_equality_is_reported_and_not_held():
    text = pieces(LEFT, equality='<connect body1="a_3" anchor="0.4 0 0" active="false"/>')
    mech = read(text)
    assert [
        item.reason for item in mech.load_report.affecting("motion") if item.effect != "kept"
    ] == ["it is not active"]
    q, v, tau = mech.random(0), mech.random_velocity(1), np.ones(mech.nv)
    free = lw.forward_dynamics(mech, q, v, tau)
    np.testing.assert_array_equal(lw.forward_dynamics(mech, q, v, tau), free)


@pytest.mark.parametrize("name", some(("four_bar", "stewart", "dual_arm"), ["four_bar"]))
def test_samples_written_as_mjcf_move_as_in_mujoco(name: str):
    """Balls and welds are connect and weld, a pin two points on its axis: six rows of rank 5."""
    reporter = Reporter("out.xml")
    text = write_mjcf(getattr(lw.models, name)(), reporter)
    assert not reporter.report().affecting("motion")
    case = EqualityCase(read(text), parse_model(text), spread=0.1)
    check(equality_gap(case))


def test_a_linkage_moves_the_same_after_a_round_trip():
    mech = lw.models.four_bar()
    back = read(write_mjcf(mech, Reporter("out.xml")))
    q = lw.loops.assemble(mech, hold={"crank_pin": 0.7}).required()
    v = lw.loops.project_velocity(mech, q, np.array([3.0, 0.0, 0.0]))
    tau = np.array([1.0, 0.2, -0.3])
    ours, theirs = (lw.forward_dynamics(m, q, v, tau) for m in (mech, back))
    assert [b.hinge_name for b in back.bodies] == [b.hinge_name for b in mech.bodies]
    np.testing.assert_allclose(theirs, ours, rtol=1e-9)
