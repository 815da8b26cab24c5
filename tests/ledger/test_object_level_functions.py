"""Document 003: what the functions of the library compute is what the ledger holds to be right.

The ledger has dense matrices, poses and energies; the functions have compiled sweeps. Both are
asked of the same manipulators, and every number of the table on the ledger's page is one of them.
"""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise import models
from linkwise.model.body import Loop
from linkwise.model.hinges import Free, Locked
from linkwise.spatial import quaternion
from linkwise.spatial.vector import blocks
from linkwise_ledger.case import Case, apart
from linkwise_ledger.object_level import PRINTED
from linkwise_ledger.object_level.example import Example
from linkwise_ledger.object_level.held import Held, grasped
from linkwise_ledger.object_level.macro_mini import serial
from linkwise_ledger.object_level.manipulator import SWAP
from linkwise_ledger.object_level.multi_arm import inverse, reflected
from linkwise_ledger.object_level.subject import arm, six_joints

CASE = Case("one pin", models.chain(1), 1)
"""A pin, and a gantry of six joints on it: the smallest of redundant manipulators compiles fast."""
TASK = lw.Task.pose("effector")
CLOSE = 1e-9


def test_task_space_is_17_22_and_27():
    m = arm(CASE)
    space = lw.tasks.task_space(m.mech, m.q, TASK)
    assert apart(SWAP @ space.inertia @ SWAP, m.Lambda_0) < CLOSE
    assert apart(SWAP @ space.inverse @ SWAP, m.seen_response) < CLOSE
    J_bar = m.A_inv @ m.J_0.T @ m.Lambda_0
    assert apart(space.consistent_inverse @ SWAP, J_bar) < CLOSE
    tau0 = m.drawn(m.n)
    assert apart(space.null_torque(tau0), tau0 - m.J_0.T @ (J_bar.T @ tau0)) < CLOSE


def test_task_dynamics_is_9_24_and_25():
    m = arm(CASE)
    dynamics = lw.tasks.task_dynamics(m.mech, m.q, m.v, TASK)
    assert apart(SWAP @ dynamics.coriolis, m.mu_0) < CLOSE
    assert apart(SWAP @ dynamics.gravity, m.p_0) < CLOSE
    assert apart(SWAP @ dynamics.bias, m.bent) < CLOSE


def test_coordinates_are_those_of_3_4_and_7():
    m = arm(CASE)
    dynamics = lw.tasks.coordinate_dynamics(m.mech, m.q, m.v, TASK, orientation="euler_zyx")
    order = [3, 4, 5, 2, 1, 0]  # yaw, pitch, roll, position there; position, roll, pitch, yaw here
    assert apart(dynamics.jacobian[order], m.seen_jacobian) < CLOSE
    assert apart(dynamics.inertia[np.ix_(order, order)], m.Lambda) < CLOSE
    assert apart(dynamics.coriolis[order], m.mu) < CLOSE
    assert apart(dynamics.gravity[order], m.p) < CLOSE
    assert apart(dynamics.bias[order], m.x_bent) < CLOSE


def test_task_torque_moves_the_effector_as_asked():
    # (23) and (27): ϑ̇ is seen along the motion that the torque causes.
    m = arm(CASE)
    expected, tau0 = m.drawn(6), m.A @ m.drawn(m.n, 1) + m.b + m.g
    tau = lw.tasks.task_torque(m.mech, m.q, m.v, TASK, SWAP @ expected, tau0=tau0)
    assert apart(m.twist_rate(m.forward(tau)), expected) < CLOSE


def test_effective_mass_and_inertia_are_30_and_31():
    m = arm(CASE)
    u = np.array([0.6, -0.48, 0.64])
    force, moment = np.concatenate([u, 0.0 * u]), np.concatenate([0.0 * u, u])
    mass = lw.inertial.effective_mass(m.mech, m.q, "effector", u)
    inertia = lw.inertial.effective_mass(m.mech, m.q, "effector", u, what="rotation")
    assert float(mass) == pytest.approx(1.0 / (force @ m.seen_response @ force), rel=CLOSE)
    assert float(inertia) == pytest.approx(1.0 / (moment @ m.seen_response @ moment), rel=CLOSE)


def test_belted_ellipsoid_is_34():
    m = arm(CASE)
    response = m.seen_response[:3, :3]
    points = lw.inertial.ellipsoid(0.5 * (response + response.T), resolution=12).points
    left = np.einsum("ki,ij,kj->k", points, response, points) / np.linalg.norm(points, axis=1)
    assert apart(left, np.ones(len(points))) < CLOSE


def test_reduced_inertia_is_41_42_and_46():
    s = serial(CASE)
    split = s.combined.mech.bodies[CASE.mech.n_bodies].name
    reduced = lw.papers.reduced_inertia(s.combined.mech, s.combined.q, TASK, split=split)
    assert apart(SWAP @ reduced.coupling @ SWAP, s.added) < CLOSE
    assert apart(SWAP @ reduced.mini_inverse @ SWAP, s.seen_mobility_m) < CLOSE
    assert reduced.ratios[-1] == pytest.approx(1.0, abs=CLOSE), "one pin leaves directions"
    assert reduced.ratios[0] < 0.99


def test_the_example_has_eta_at_the_mass_of_link_2():
    # The printed form, η at m_3, is a tenth off.
    x = Example(1)
    position = lw.Task.position("end_effector", "xy")
    Lambda = lw.tasks.task_space(x.combined.mech, x.combined.q, position).inertia
    assert apart(x.turn.T @ Lambda @ x.turn, x.Lambda) < CLOSE
    assert apart(x.turn.T @ Lambda @ x.turn, x.printed) > 1e-2


@cache
def _two_arms() -> tuple[Held, lw.Mechanism, np.ndarray, np.ndarray]:
    """An arm of seven pins and one of six joints with an object, as one mechanism with loops."""
    six, q = six_joints(1)
    seven = models.seven_dof_arm().without_armature()
    posture = np.array([0.3, 0.6, -0.4, 1.1, 0.5, 0.7, -0.2])
    h = grasped([(seven, "hand", posture), (six, "hand", q)], 0.2 * np.arange(-3.0, 4.0), 1)
    first, second = h.arms
    forest = first.mech.mount(second.mech, at="world", prefix="arm_2_")
    rot, p = first.pose.rot, first.pose.p
    inertia = lw.SpatialInertia.from_com(h.m, rot.T @ h.r, rot.T @ h.I_C @ rot)
    b = lw.Builder("held", gravity=first.mech.gravity)
    b.body("load", "world", Free(), inertia=inertia)
    for i in range(2):
        b.node(f"grasp_{i}", "load")
    both = forest.mount(b.build(), at="world")
    tips = (first.node, f"arm_2_{second.node}")
    loops = tuple(Loop(f"loop_{i}", tip, f"grasp_{i}", Locked()) for i, tip in enumerate(tips))
    free = np.concatenate([quaternion.from_matrix(rot), p])
    twist = blocks(rot, 0 * rot, 0 * rot, rot).T @ (SWAP @ h.theta)
    q = np.concatenate([first.q, second.q, free])
    return h, replace(both, loops=loops), q, np.concatenate([first.v, second.v, twist])


@pytest.mark.slow
def test_augmented_object_is_63_to_66():
    h, mech, q, v = _two_arms()
    augmented = lw.grasp.augmented_object(mech, q, v)
    to_x = h.to_twist  # from ẋ to ϑ
    assert apart(to_x.T @ SWAP @ augmented.inertia @ SWAP @ to_x, h.Lambda) < CLOSE
    mu = to_x.T @ SWAP @ augmented.coriolis - h.Lambda @ (h.arms[0].turning @ h.theta)
    assert apart(mu, h.mu) < CLOSE
    assert apart(to_x.T @ SWAP @ augmented.gravity, h.p) < CLOSE


@pytest.mark.slow
def test_reflected_load_is_74_and_75():
    h, mech, q, _ = _two_arms()
    result = lw.grasp.reflected_load(mech, q, h.arms[0].node)
    assert apart(result.mass_matrix, reflected(h, 0)) < CLOSE
    assert apart(result.consistent_inverse() @ SWAP @ h.to_twist, inverse(h, 0)) < CLOSE


def _numbers(cell: str) -> list[str]:
    """(63)-(67), (70), Theorem 3: one by one."""
    result: list[str] = []
    for word in cell.split(", "):
        ends = re.fullmatch(r"\((\d+)\)-\((\d+)\)", word)
        result += [f"({i})" for i in range(int(ends[1]), int(ends[2]) + 1)] if ends else [word]
    return result


def test_the_table_has_every_number_and_functions_that_exist():
    page = Path(__file__).parents[2] / "docs" / "evidence" / "ledger.md"
    rows = re.findall(r"^\| (.+?) \| (`lw\..+) \|$", page.read_text(encoding="utf-8"), re.M)
    numbers = [number for cell, _ in rows for number in _numbers(cell)]
    assert sorted(numbers) == sorted(PRINTED)
    for name in re.findall(r"`lw\.(\w+)`", " ".join(functions for _, functions in rows)):
        assert hasattr(lw, name), name
