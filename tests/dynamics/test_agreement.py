"""Every quantity against Pinocchio, MuJoCo and dense algebra: docs/evidence/agreement.md.

Here a few robots and trees; all of the corpus is `slow`. Differences are relative to the largest
entry of a quantity.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tools import agreement
from tools.corpus import find_mjcf, find_urdf

import linkwise as lw
from linkwise.model.derived import replaced
from tests.oracles import dense_quantity, mujoco_quantity, pinocchio_quantity
from tests.oracles.agreement_case import urdf_case
from tests.oracles.compared_quantity import BOUND, Quantity, apart, compared
from tests.oracles.interpreted import Interpreted, interpreted

pytestmark = pytest.mark.oracle
pytest.importorskip("pinocchio")
pytest.importorskip("mujoco")

URDF, MJCF = find_urdf(), find_mjcf()


def unexplained(result: Any) -> list[Any]:
    """What is off by more than the bound, and by our fault as far as is known."""
    over = [one for one in result if one.apart > BOUND]
    return [one for one in over if one.off is None or one.off[0] > BOUND]


def checked(reference: str, table: tuple[Quantity, ...], least: int, **where: Any) -> None:
    judged = agreement.judge(agreement.Job(reference, where.pop("model", "tree"), **where))
    assert not judged.why, judged.why
    assert len(judged.comparisons) == len(table)
    assert sum(not np.isnan(one.apart) for one in judged.comparisons) >= least  # it was compared
    assert not unexplained(judged.comparisons), unexplained(judged.comparisons)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["panda.urdf", "bolt.urdf", "hyq_no_sensors.urdf"])
def test_robots_with_pinocchio(name):
    path = next(path for file, path in URDF.items() if file.endswith("/" + name))
    table = pinocchio_quantity.TABLE
    checked("Pinocchio", table, len(table), path=path, free=name != "panda.urdf")


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["half_cheetah.xml", "suite/acrobot.xml", "assets/ant.xml"])
def test_robots_with_mujoco(name):
    model = next(file for file in MJCF if file.endswith(name))
    table = mujoco_quantity.TABLE
    checked("MuJoCo", table, len(table) - 1, model=model, path=MJCF[model])


@pytest.mark.prove
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_trees_of_every_hinge(seed):
    """Seeds 1 and 3 deal all kinds that a reference has, 3 on a free base."""
    few = 3  # what Pinocchio leaves out: the Coriolis matrix, the energy of some rotors
    table = pinocchio_quantity.TABLE
    checked("Pinocchio", table, len(table) - few, seed=seed)
    checked("MuJoCo", mujoco_quantity.TABLE, len(mujoco_quantity.TABLE), seed=seed)


@pytest.mark.prove
@pytest.mark.parametrize("seed", [2, 4])
def test_trees_with_dense_algebra(seed):
    table = dense_quantity.TABLE
    checked("dense algebra", table, len(table) - 2, seed=seed)


def test_every_public_quantity_is_in_a_table():
    """Of the functions that give a number for a state, none is forgotten."""
    tables = (pinocchio_quantity.TABLE, mujoco_quantity.TABLE, dense_quantity.TABLE)
    listed = {q.ours.partition("(")[0] for table in tables for q in table}
    missing = {name for name in lw.dynamics.__all__ if name[0].islower()} - listed - ELSEWHERE
    assert not missing, missing


ELSEWHERE = {
    # no functions of a state
    *("expression", "kernel", "hybrid_expression", "hybrid_kernel", "renumbering"),
    "with_hinge_frames",
    # the tree itself, the parameters of its bodies
    *("tree_of", "inertial_parameters", "base_parameters"),
    # compared with Pinocchio in their own tests
    *("inverse_dynamics_derivatives", "forward_dynamics_derivatives", "linearize", "regressor"),
    *("inverse_dynamics_second_derivatives", "forward_dynamics_second_derivatives"),
    *("momentum_derivatives", "jacobian_derivative"),
    # of the manifold, not of the motion
    *("integrate", "difference"),
    # made of others, and compared with them in their own tests
    *("energy", "whole_inertia", "innovations_factors", "operational_space", "passive_force"),
    *("pd_gravity", "computed_torque", "wen_bayard", "tracking_energy"),
    *("diagonal_velocity", "velocity_from_diagonal", "innovations", "force_from_innovations"),
    *("diagonal_coriolis", "diagonal_dynamics", "jacobian_gram", "inverse_kinematics"),
}


def test_a_wrong_value_is_seen():
    """One part in a billion, a wrong shape, and a number that is none."""
    value = np.array([[3.0, -4.0], [0.5, 1e-3]])
    assert apart(value, value) == 0.0
    off = value.copy()
    off[1, 1] += 4e-9
    assert apart(off, value) == pytest.approx(1e-9)
    assert apart(value[0], value) == apart(value * np.nan, value) == np.inf
    assert apart(np.full(2, 1e-18), np.zeros(2)) == np.inf
    wrong = Quantity("one", "one", "two", lambda it: 1.0, lambda it: 1.0 + 1e-9)
    assert unexplained(compared((wrong,), None, "any"))
    blamed = Quantity(
        "one", "one", "two", lambda it: 1.0, lambda it: 1.1, truth=lambda it: np.longdouble(1.0)
    )
    assert not unexplained(compared((blamed,), None, "any"))


@pytest.mark.prove
def test_small_changes_of_the_robot_are_seen():
    """A few parts in a billion: longer by that, every pose and Jacobian differs; heavier, forces.

    It shows that what differences are measured by is not so large that all would pass.
    """
    path = next(path for file, path in URDF.items() if file.endswith("/panda.urdf"))
    with interpreted():
        it = urdf_case(path, free=False)
        plain = it.mech
        it.mech = _changed(plain, lambda b: replace(b, inboard=_longer(b.inboard)))
        moved = {one.quantity for one in compared(pinocchio_quantity.TABLE, it, "") if _over(one)}
        it.mech = _changed(plain, lambda b: replace(b, inertia=_heavier(b.inertia)))
        heavy = {one.quantity for one in compared(pinocchio_quantity.TABLE, it, "") if _over(one)}
    every = {q.name for q in pinocchio_quantity.TABLE}
    assert moved == every
    assert every - heavy == {q.name for q in pinocchio_quantity.TABLE if q.ours in MASSLESS}


MASSLESS = {
    *("forward_kinematics", "relative_pose", "body_velocities", "node_velocity", "jacobian"),
    *("jacobian_dot", "jacobian_bias", "equivalent_force", "body_accelerations"),
    *("node_acceleration(kind='spatial')", "node_acceleration(kind='classical')"),
}
"""What does not change when bodies are heavier."""


def _over(one: Any) -> bool:
    return one.apart > BOUND


def _longer(pose: lw.Pose) -> lw.Pose:
    return lw.Pose(pose.rot, pose.p * (1.0 + 1e-8))


def _heavier(inertia: lw.SpatialInertia) -> lw.SpatialInertia:
    more = 1.0 + 1e-8
    return lw.SpatialInertia(inertia.mass * more, inertia.h * more, inertia.J * more)


def _changed(mech: lw.Mechanism, how: Any) -> lw.Mechanism:
    return replaced(mech, bodies=tuple(how(body) for body in mech.bodies))


def test_the_interpreter_is_what_runs():
    """And machine code outside of it, to the same numbers."""
    mech = lw.models.random_tree(3, 5, hinges=("pin", "spherical"))
    q, v = mech.random(0), mech.random_velocity(1)
    with interpreted():
        vdot = lw.forward_dynamics(mech, q, v, v)
        assert isinstance(lw.dynamics.kernel(mech, "forward_dynamics"), Interpreted)
    again = mech.with_gravity(mech.gravity)
    assert apart(lw.forward_dynamics(again, q, v, v), vdot) < 1e-13
    assert not isinstance(lw.dynamics.kernel(again, "forward_dynamics"), Interpreted)


@pytest.mark.few(0, 30)
@pytest.mark.slow
@pytest.mark.parametrize("job", agreement.jobs(), ids=lambda job: f"{job.reference}, {job.model}")
def test_the_whole_corpus(job):
    """Machine code too, for the few robots that are compiled."""
    judged = agreement.judge(job)
    assert not unexplained(judged.comparisons), unexplained(judged.comparisons)
