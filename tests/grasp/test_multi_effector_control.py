"""Control of an object that arms hold: 003, (67)-(69), (76), and the forces inside the grasp."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise.spatial.array import Array
from tests.grasp.multi_effector_systems import accelerated_by, contacts, moving, pumas

UNIT_MASS = 1e-8
"""[m/s²]: what is asked of (69)."""

FORCES = 1e-8
"""[N]: contact forces of a closed chain, some 100 N large, with a condition of 1e4 or so."""


@cache
def grasp() -> lw.Grasp:
    return lw.Grasp.of(pumas(), lw.grasp.Contact("rigid"))


CHOICES = {
    "no squeeze": {},
    "effort": {"share": "effort"},
    "virtual linkage": {"split": "virtual_linkage", "internal": {"grasp_1-grasp_2": 20.0}},
    "equal shares": {"split": "equal_shares", "internal": {"twist": 1.5}},
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", CHOICES)
def test_unit_mass(name: str) -> None:
    """(67)-(69): ẍ = F*, whatever the shares; contact forces are those that were chosen."""
    mech, expected = pumas(), np.array([0.3, -0.5, 1.0, 0.7, -2.0, 0.4])
    q, v = moving(mech, 1)
    tau = lw.grasp.ObjectController(mech, point="rim_1", **CHOICES[name]).torque(q, v, expected)  # type: ignore
    assert np.abs(accelerated_by(mech, q, v, tau.tau, "rim_1") - expected).max() < UNIT_MASS
    assert not tau.tau[lw.grasp.multi_arm_parts(mech).object_rows].any()
    augmented = lw.grasp.augmented_object(mech, q, v, point="rim_1")
    assert np.allclose(tau.total, augmented.force(expected), atol=FORCES)
    assert np.allclose(tau.total, sum(tau.shares.values()), atol=1e-10)
    for arm in augmented.arms.values():
        assert np.allclose(tau.shares[arm.name], arm.force(tau.tau[arm.rows]), atol=FORCES)
    measured = grasp().contact_forces(q, v, tau.tau)
    assert np.abs(measured - contacts(tau)).max() < FORCES
    if name == "virtual linkage":
        inside = grasp().virtual_linkage().split(measured)[1]
        assert np.allclose(inside, [20.0] + [0.0] * 5, atol=FORCES)
    if name == "no squeeze":
        assert np.abs(grasp().internal_forces(measured).internal).max() < FORCES
    assert "contact grasp_1" in str(tau)


def test_given_contact_forces_as_a_squeeze() -> None:
    """Forces (contacts, 6) that cancel come on top of what moves the object."""
    mech = pumas()
    q, v = moving(mech, 2)
    rng = np.random.default_rng(0)
    squeeze = grasp().internal_forces(10.0 * rng.standard_normal((2, 6))).internal
    tau = lw.grasp.ObjectController(mech, internal=squeeze).torque(q, v, np.zeros(6))
    inside = grasp().internal_forces(grasp().contact_forces(q, v, tau.tau)).internal
    assert np.abs(squeeze).max() > 1.0
    assert np.abs(inside - squeeze).max() < FORCES


def test_least_effort() -> None:
    """It is what `load_distribution` finds for contacts without limits, and a minimum."""
    pytest.importorskip("scipy")
    mech, expected = pumas(), np.array([0.3, -0.5, 1.0, 0.7, -2.0, 0.4])
    q, v = moving(mech, 3)
    result = lw.grasp.ObjectController(mech, share="effort").torque(q, v, expected)
    vdot = lw.forward_dynamics(mech, q, v, result.tau)
    effort = grasp().effort(q, v, vdot)
    wrench = grasp().needed_wrench(q, v, vdot)
    best = grasp().load_distribution(wrench, objective="effort", effort=effort)
    assert best.feasible and best.efforts is not None
    arms = lw.grasp.multi_arm_parts(mech).arm_rows
    assert np.allclose(result.tau[arms], best.efforts, atol=1e-5)
    limit = mech.effort_limit[arms]

    def activity(tau: Array) -> float:
        return float(((tau[arms] / limit) ** 2).sum())

    least = activity(result.tau)
    assert least < activity(lw.grasp.ObjectController(mech).torque(q, v, expected).tau)
    for k, basis in enumerate(grasp().force_space().internal):
        squeeze = 0.5 * basis + grasp().internal_forces(contacts(result)).internal
        other = lw.grasp.ObjectController(mech, internal=squeeze).torque(q, v, expected)
        assert activity(other.tau) > least + 1e-9, k


def test_forces_on_the_surroundings() -> None:
    """An object that is pushed back by what it pushes goes where it was told."""
    mech = pumas()
    q, v = moving(mech, 5)
    expected, push = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5]), np.array([1.0, 2, 3, 4, 5, 6])
    tau = lw.grasp.ObjectController(mech).torque(q, v, expected, applied=push)
    vdot = lw.forward_dynamics(mech, q, v, tau.tau, forces={"object": -push}, forces_frame="world")
    J = lw.jacobian(mech, q, "object", frame="world")
    moved = J @ vdot + lw.dynamics.jacobian_bias(mech, q, v, "object", frame="world")
    assert np.abs(moved - expected).max() < UNIT_MASS


@pytest.mark.slow
def test_soft_fingers() -> None:
    """Contacts that let the object tip on the hand: the same, for the forces that they pass."""
    kind = lw.grasp.Contact("soft_finger", friction=0.5, torsion=0.01)
    mech = lw.models.multi_arm(2, arm="puma560", grasp=kind.hinge)
    held = lw.Grasp.of(mech, kind)
    q, v = moving(mech, 8)
    expected = np.array([0.3, -0.5, 1.0, 0.7, -2.0, 0.4])
    squeeze = {"grasp_1-grasp_2": 30.0}
    tau = lw.grasp.ObjectController(mech, grasp=held, internal=squeeze).torque(q, v, expected)
    assert np.abs(accelerated_by(mech, q, v, tau.tau) - expected).max() < UNIT_MASS
    measured = held.contact_forces(q, v, tau.tau)
    assert np.abs(measured - contacts(tau)).max() < FORCES
    inside = held.internal_forces(measured).internal
    assert np.allclose(held.virtual_linkage().split(inside)[1][0], 30.0, atol=1e-7)


def test_controller_is_a_spring_and_a_damper() -> None:
    """F* = ẍ_d + k_v (ẋ_d - ẋ) + k_p e, with e in the axes of the world; batches; other gains."""
    mech = pumas()
    kp = np.diag([90.0, 80, 70, 60, 50, 40])
    carry = lw.grasp.ObjectController(mech, kp, 12.0, point=(0.1, 0.0, 0.05))
    q, v = (np.stack(x) for x in zip(*(moving(mech, seed) for seed in (6, 7)), strict=True))
    turn, way = np.array([0.02, -0.03, 0.01]), np.array([0.1, 0.2, -0.1])
    here = carry.pose(q)
    target = lw.Pose(lw.spatial.rotation.exp(turn) @ here.rot, here.p + way)
    goal = lw.Goal(target, np.arange(6.0), 0.1 * np.arange(6.0))
    moving_at = lw.grasp.augmented_object(mech, q, v, point=(0.1, 0.0, 0.05)).velocity
    error = np.append(turn, way)
    expected = 0.1 * np.arange(6.0) + 12.0 * (np.arange(6.0) - moving_at) + error @ kp
    report = carry.explain(q, v, goal)
    assert np.abs(report.acceleration - expected).max() < 1e-9
    one = lw.Goal(lw.Pose(target.rot[1], target.p[1]), goal.velocity, goal.acceleration)
    assert np.allclose(carry(q[1], v[1], one), report.tau[1], atol=1e-9)
    squeezed = carry.explain(q[0], v[0], here[0], internal={"grasp_1-grasp_2": 7.0})
    f = grasp().contact_forces(q[0], v[0], squeezed.tau)
    split = grasp().internal_forces(f).internal
    assert np.allclose(grasp().virtual_linkage().split(split)[1][0], 7.0, atol=1e-7)


def test_closed_loop() -> None:
    """Two PUMAs for a tenth of a second: the error goes away as e(0) (1 + ω t) exp(-ω t) does."""
    mech, omega = pumas(), 20.0
    carry = lw.grasp.ObjectController(
        mech, omega**2, 2.0 * omega, internal={"grasp_1-grasp_2": 15.0}
    )
    q = mech.neutral()
    e = np.array([0.0, 0.0, 0.02, 0.01, -0.02, 0.015])  # one axis: angles add
    here = carry.pose(q)
    target = lw.Pose(lw.spatial.rotation.exp(e[:3]) @ here.rot, here.p + e[3:])
    motion = lw.simulate(
        mech, q, np.zeros(mech.nv), tau=lambda t, q, v: carry(q, v, target), duration=0.1, step=0.01
    )
    left = carry.error(motion.q, target)
    expected = e * ((1.0 + omega * motion.t) * np.exp(-omega * motion.t))[:, None]
    assert np.abs(left - expected).max() < 2e-6  # a step of 0.01 s: (ω h)⁵ / 120 of 0.02 a step
    assert np.abs(left[-1]).max() < 0.5 * np.abs(e).max()
    forces = grasp().contact_forces(motion.q, motion.v, motion.tau)
    inside = grasp().internal_forces(forces).internal
    assert np.allclose(grasp().virtual_linkage().split(inside)[1][:, 0], 15.0, atol=1e-6)


def test_what_is_refused() -> None:
    mech = pumas()
    q, v = mech.neutral(), np.zeros(mech.nv)
    make = lw.grasp.ObjectController
    for gain in (0.0, -1.0, [1.0] * 5 + [0.0], -np.eye(6)):
        with pytest.raises(lw.ModelError, match="kp of the object 'object'"):
            make(mech, gain, 1.0)
        with pytest.raises(lw.ModelError, match="kv of the object 'object'"):
            make(mech, 1.0, gain)
    with pytest.raises(lw.ShapeError, match="kp of the object"):
        make(mech, np.ones(4), 1.0)
    with pytest.raises(lw.ModelError, match="no arm holds anything"):
        make(lw.models.puma560(), 1.0, 1.0)
    with pytest.raises(lw.ModelError, match="share is 'equal'"):
        make(mech, 1.0, 1.0, share="equal")  # type: ignore[arg-type]
    with pytest.raises(lw.ModelError, match="split is 'half'"):
        make(mech, 1.0, 1.0, split="half")  # type: ignore[arg-type]
    with pytest.raises(lw.ModelError, match="compensate is 'all'"):
        make(mech, 1.0, 1.0, compensate="all")  # type: ignore[arg-type]
    with pytest.raises(lw.ModelError, match="posture is a float"):
        make(mech, 1.0, 1.0, posture=1.0)  # type: ignore[arg-type]
    with pytest.raises(lw.ModelError, match="no member called 'grasp_1-grasp_3'"):
        make(mech, 1.0, 1.0, internal={"grasp_1-grasp_3": 1.0})
    with pytest.raises(lw.ModelError, match="must be a single number"):
        make(mech, 1.0, 1.0, internal={"grasp_1-grasp_2": "much"})  # type: ignore[dict-item]
    with pytest.raises(lw.ModelError, match="do not cancel: a resultant of 3 N"):
        make(mech, 1.0, 1.0, internal=np.stack([3.0 * np.eye(6)[5], np.zeros(6)]))
    with pytest.raises(lw.ShapeError, match=r"must have shape \(2, 6\)"):
        make(mech, 1.0, 1.0, internal=np.zeros((3, 6)))
    with pytest.raises(lw.ModelError, match="which determines the squeeze"):
        make(mech, 1.0, 1.0, share="effort", internal={"grasp_1-grasp_2": 1.0})
    soft = lw.models.multi_arm(2, arm="puma560", grasp=lw.hinges.SoftFinger())
    with pytest.raises(lw.ModelError, match=r"'grasp_1' of .* is not rigid; describe"):
        make(soft, 1.0, 1.0)
    with pytest.raises(lw.ModelError, match="not that of"):
        make(soft, 1.0, 1.0, grasp=grasp())
    carry = make(mech, 1.0, 1.0)
    with pytest.raises(lw.ModelError, match=r"it must be a lw\.Pose"):
        carry(q, v, np.zeros(3))  # type: ignore[arg-type]
    with pytest.raises(lw.ShapeError, match=r"velocity of the goal has shape \(3,\)"):
        carry(q, v, lw.Goal(carry.pose(q), velocity=np.zeros(3)))
    with pytest.raises(lw.ShapeError, match="goal has positions of shape"):
        carry(q, v, carry.pose(np.stack([q] * 3)))
    with pytest.raises(lw.ShapeError, match=r"applied has shape \(2,\)"):
        carry(q, v, carry.pose(q), applied=[1.0, 2.0])
    with pytest.raises(lw.ShapeError, match=r"acceleration has shape \(3,\)"):
        lw.grasp.ObjectController(mech).torque(q, v, np.zeros(3))
    with pytest.raises(lw.ModelError, match="acceleration is not finite"):
        lw.grasp.ObjectController(mech).torque(q, v, np.full(6, np.nan))
    with pytest.raises(lw.ShapeError, match=r"tau0 has shape \(6,\)"):
        lw.grasp.ObjectController(mech).torque(q, v, np.zeros(6), tau0=np.zeros(6))
