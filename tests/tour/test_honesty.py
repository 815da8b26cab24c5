"""What the tour says of itself: whose checks they are, what was left out, what is wrong."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError
from linkwise.tour import guide as guides, motion
from linkwise.tour.algebra import algebra
from linkwise.tour.robot import effective_mass, robot, small
from linkwise.tour.text import tree_rows
from linkwise.tour.visit import Visit

BALL = lw.SpatialInertia.solid_sphere(1.0, 0.1)


def visited(mech, *stations) -> Visit:
    visit = Visit(mech, quick=True, pictures=False)
    visit.go(stations)
    return visit


def looked(visit: Visit) -> None:
    """A station that shows what stands in, and checks it."""
    visit.check(f"{small(visit).name} is there", 0.0, 0.0)


EMPTY = lw.Builder("empty").build()
STATUE = lw.Builder("statue").body("block", "world", lw.hinges.Locked(), inertia=BALL).build()


@pytest.mark.parametrize(
    ("mech", "said"),
    [
        (lw.models.chain(50), "chain_50 has 50 bodies"),
        (EMPTY, "empty has no body"),
        (STATUE, "statue has no hinge that moves"),
    ],
)
def test_a_stand_in_is_named_and_its_checks_are_not_those_of_the_robot(mech, said, capsys):
    visit = visited(mech, looked)
    out = " ".join(capsys.readouterr().out.split())
    assert said in out and "the built-in `puma560` replaces it here" in out
    assert [check.of_robot for check in visit.checks] == [False]
    assert guides.passed(visit, of_robot=True) == "none"
    assert guides.passed(visit, of_robot=False) == "1 of 1"
    page = guides.written(visit, 1.0)
    assert "replace this robot at these stations: looked" in page


def test_checks_of_the_robot_and_of_examples_are_counted_apart(capsys):
    visit = visited(lw.models.pendulum(), robot, algebra, motion.closed_chain)
    mine = [check.claim for check in visit.checks if check.of_robot]
    other = [check.claim for check in visit.checks if not check.of_robot]
    assert any("sweeps against matrices" in claim for claim in mine)
    assert any("random tree" in claim for claim in other)
    assert any("loop stays closed" in claim for claim in other)
    text = guides.summary(visit, 1.0)
    assert f"of {visit.mech.name}: {len(mine)} of {len(mine)}" in text
    assert f"of built-in examples: {len(other)} of {len(other)}" in text
    assert "whatever the robot is" in capsys.readouterr().out


def test_every_error_of_the_robot_is_a_check_that_fails(capsys):
    b = lw.Builder("bad")
    thin = lw.SpatialInertia.from_com(1.0, J_com=(0.1, 0.1, 0.9))
    b.body("a", "world", lw.hinges.Pin((0, 1, 0)), inertia=thin)
    mech = b.body("b", "a", lw.hinges.Pin((0, 1, 0)), inertia=thin).build()
    errors = [finding for finding in mech.validate() if finding.severity == "error"]
    visit = visited(mech, robot)
    assert len(errors) == visit.failed == 2
    assert {check.claim for check in visit.checks if not check.good} == {
        f"errors of {error.where}, found by validation: {error.code}" for error in errors
    }


def test_energy_that_drifts_fails(monkeypatch, capsys):
    mech = lw.models.pendulum()
    coarse = lw.simulate(mech, [2.5], duration=2.0, step=0.2, integrator="euler")
    assert coarse.report.relative_drift > 1e-2
    monkeypatch.setattr(motion, "_refined", lambda *a: coarse)
    visit = visited(mech, motion.let_go)
    assert visit.failed == 1
    assert "'adaptive'" in capsys.readouterr().out


def test_steps_become_shorter_until_energy_is_kept():
    """Steps of 0.2 s lose too much, a quarter of them does not."""
    mech, start = lw.models.pendulum(), (np.array([2.5]), np.zeros(1))
    lost = [lw.simulate(mech, *start, duration=2.0, step=h) for h in (0.2, 0.05)]
    assert [rec.report.relative_drift < 1e-4 for rec in lost] == [False, True]
    rec = motion._refined(mech, *start, 2.0, 0.2)
    assert rec.step == 0.05 and rec.duration == 2.0


def test_branches_of_a_tree_are_drawn_below_each_other():
    b = lw.Builder("tree")
    parents = {"base": "world", "left": "base", "a": "left", "b": "left", "right": "base"}
    for name, parent in {**parents, "c": "right", "d": "right", "e": "d"}.items():
        b.body(name, parent, lw.hinges.Pin((0, 0, 1)), inertia=BALL)
    drawn = [row[1] for row in tree_rows(b.build())]
    lines = "base,├ left,│ ├ a,│ └ b,└ right,  ├ c,  └ d,    e"
    assert drawn == lines.split(",")


def test_nothing_compared_is_nothing_checked(capsys):
    """A body that spins about its own point: no force moves the node."""
    mech = lw.Builder("top").body("disc", "world", lw.hinges.Pin((0, 0, 1)), inertia=BALL).build()
    visit = visited(mech, effective_mass)
    assert visit.checks == [] and visit.notes == []
    assert "blocked" in capsys.readouterr().out


def test_a_world_without_bodies_has_no_checks_of_its_own(capsys):
    assert [check for check in visited(EMPTY, robot).checks if check.of_robot] == []


def test_stations_that_were_skipped_are_counted(capsys):
    def tired(visit: Visit) -> None:
        raise ModelError("not today.")

    visit = visited(lw.models.pendulum(), tired, motion.closed_chain)
    assert visit.notes == ["tired: not today."]
    assert "1 station skipped" in guides.summary(visit, 1.0)
    assert "1 station was skipped or ended early" in guides.lede(visit)


def test_warnings_of_numpy_are_a_sentence_and_others_are_passed_on(capsys):
    def rough(visit: Visit) -> None:
        np.sqrt(np.array([-1.0]))
        np.sqrt(np.array([-2.0]))
        warnings.warn("an old name", DeprecationWarning, stacklevel=1)

    with pytest.warns(DeprecationWarning, match="an old name") as heard:
        visited(lw.models.pendulum(), rough)
    assert {w.category for w in heard} == {DeprecationWarning}
    captured = capsys.readouterr()
    assert captured.out.count("NumPy warned here: invalid value encountered in sqrt.") == 1
    assert captured.err == ""
