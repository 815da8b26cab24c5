"""The augmented object: 003, (63)-(71), against arms alone, dense equations and closed chains."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.effort import calls
from tests.grasp.multi_effector_systems import (
    accelerated,
    close,
    driven,
    grasped,
    in_a_plane,
    moving,
    pumas,
    redundant,
)
from tests.grasp.random_systems import random_system
from tests.loops.dense_kkt import dense_motion


@pytest.mark.prove
def test_parts_are_those_of_each_arm_alone() -> None:
    """(63), (65), (66): Λ_i, μ_i, p_i of an arm whose hand reaches to the point; and of a body."""
    mech, point = pumas(), np.array([0.05, -0.1, 0.2])
    q, v = moving(mech, 1)
    X_P = mech.pose(q, "object") @ lw.Pose.translation(point)
    augmented = lw.grasp.augmented_object(mech, q, v, point=point)
    for k, arm in list(enumerate(augmented.arms.values(), start=1))[
        1:
    ]:  # the second; both are alike
        loose, hand = mech.without("grasp_1", "grasp_2"), mech.node(f"arm_{k}_flange").body
        single = loose.extract(arm.name)
        single = single.with_node("point", hand, mech.pose(q, hand).inverse() @ X_P)
        ours = np.concatenate([q[mech.q_slice(body.name)] for body in single.bodies])
        alone = lw.tasks.task_dynamics(single, ours, v[arm.rows], lw.Task.pose("point"))
        close(arm.inertia, alone.space.inertia)
        close(arm.coriolis, alone.coriolis)
        close(arm.gravity, alone.gravity)
        close(arm.jacobian, alone.space.jacobian)
        close(arm.consistent_inverse, alone.space.consistent_inverse)
        assert arm.rank == 6 and arm.contacts == (f"grasp_{k}",)
    # Newton and Euler for the disc of 4 kg, whose centre is at -R p of the point.
    body, rot = mech.inertia("object"), X_P.rot
    r, w, m = -rot @ point, augmented.velocity[:3], 4.0
    J = rot @ body.J_com @ rot.T
    inward = np.cross(w, np.cross(w, r))  # what is left of the centre's acceleration at ẍ = 0
    force = m * inward
    close(augmented.object.coriolis, np.append(np.cross(w, J @ w) + np.cross(r, force), force))
    weight = np.array([0.0, 0.0, m * 9.81])
    close(augmented.object.gravity, np.append(np.cross(r, weight), weight))
    close(
        augmented.inertia,
        augmented.object.inertia + sum(x.inertia for x in augmented.arms.values()),
    )
    # All of the energy is in the motion of the object, where no arm is redundant.
    energy = 0.5 * augmented.velocity @ augmented.inertia @ augmented.velocity
    assert np.isclose(energy, lw.dynamics.kinetic_energy(mech, q, v), rtol=1e-11)


@pytest.mark.parametrize("name", ["in a plane", pytest.param("space", marks=pytest.mark.slow)])
def test_closed_chain(name: str) -> None:
    """(64), (71): Λ_⊕ is the effective inertia, ẍ that of the closed chain; a batch of three.

    Redundant arms: four and three axes and an object in a plane; twice seven axes in space.
    """
    mech, home = in_a_plane() if name == "in a plane" else (redundant(), redundant().neutral())
    size = 3 if name == "in a plane" else 6
    each = (moving(mech, seed, home) for seed in (1, 2, 3))
    q, v = (np.stack(x) for x in zip(*each, strict=True))
    tau = np.stack([driven(mech, seed) for seed in (1, 2, 3)])
    augmented = lw.grasp.augmented_object(mech, q, v)
    close(augmented.inertia, lw.operational_space(mech, q, "object", frame="world").inertia)
    vdot, total = lw.forward_dynamics(mech, q, v, tau), augmented.total_force(tau)
    for i in range(3):
        one = lw.grasp.augmented_object(mech, q[i], v[i])
        close(one.coriolis, augmented.coriolis[i], bound=1e-12)
        close(augmented[i].acceleration(total[i]), accelerated(mech, q[i], v[i], vdot[i]))
        close(one.force(one.acceleration(total[i])), total[i])
    assert (
        list(augmented.rank) == [size] * 3 and len(augmented) == 3 and "3 states" in str(augmented)
    )
    assert str(augmented[0]).count("\n") == 4 and f"{size} of 6" in str(augmented[0])


def test_a_random_system() -> None:
    """Two arms of three axes with balls at their tips: against all equations at once, densely."""
    check_random(4, grasps=("spherical",), links=(3, 3), swapped=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_many_random_systems(seed: int) -> None:
    kinds = (("locked",), ("spherical", "pin"), ("universal", "locked"), ("pin",))
    links = ((6, 9), (6, 6), (5, 7), (4, 8))[seed // 2]
    check_random(
        seed, arms=2 + seed % 3, grasps=kinds[seed % 4], links=links, swapped=seed % 2 == 0
    )


def check_random(seed: int, **kinds: object) -> None:
    s = random_system(seed, **kinds)  # type: ignore[arg-type]
    tau = driven(s.mech, seed)
    augmented = lw.grasp.augmented_object(s.mech, s.q, s.v)
    assert augmented.rank <= min(arm.rank for arm in augmented.arms.values())  # (70)
    expected = accelerated(s.mech, s.q, s.v, dense_motion(s.mech, s.q, s.v, tau, s.theta).vdot)
    # Differences of the dense reference are good to 1e-9 or so.
    close(augmented.acceleration(augmented.total_force(tau)), expected, bound=1e-8)


def test_an_object_in_a_plane() -> None:
    """On a planar hinge, three motions; one of the arms has a fourth axis."""
    mech, q = in_a_plane()
    v = lw.loops.project_velocity(mech, q, np.random.default_rng(0).standard_normal(mech.nv))
    full, tau = lw.grasp.augmented_object(mech, q, v), driven(mech, 2)
    assert (full.rank, [arm.rank for arm in full.arms.values()]) == (3, [3, 3])
    assert np.abs(full.directions[[0, 1, 5]]).max() < 1e-12
    theta = {loop.name: np.zeros(0) for loop in mech.loops}
    expected = accelerated(mech, q, v, dense_motion(mech, q, v, tau, theta).vdot)
    close(full.acceleration(full.total_force(tau)), expected, bound=1e-8)
    arm = full.arm("grasp_1")
    null = arm.null_torque(np.arange(4.0))
    assert np.abs(null).max() > 0.1 and np.abs(arm.force(null)).max() < 1e-12
    assert np.abs(full.arm("grasp_2").null_torque(np.arange(3.0))).max() < 1e-12


def test_points_by_name_and_by_place() -> None:
    mech = pumas()
    q, v = moving(mech, 5)
    named = lw.grasp.augmented_object(mech, q, v, point="rim_1")
    placed = lw.grasp.augmented_object(mech, q, v, point=mech.node("rim_1").pose.p)
    close(named.inertia, placed.inertia, bound=1e-14)
    close(named.inertia, lw.operational_space(mech, q, "rim_1", frame="world").inertia @ np.eye(6))


@pytest.mark.slow
def test_a_body_fixed_to_the_object_counts_as_it() -> None:
    mech = redundant()
    q, v = moving(mech, 5)
    lid = mech.with_payload("rim_2", lw.SpatialInertia.point(0.5), name="tag", pose=(0.1, 0, 0))
    heavier = lw.grasp.augmented_object(lid, q, v, point="tag")
    close(heavier.inertia, lw.operational_space(lid, q, "tag", frame="world").inertia)


def test_what_is_refused() -> None:
    mech = pumas()
    q = mech.neutral()
    with pytest.raises(lw.ModelError, match="has no loops, so no arm holds anything"):
        puma = lw.models.puma560()
        lw.grasp.augmented_object(puma, puma.neutral())
    with pytest.raises(lw.ModelError, match=r"'arm_1_flange' is on .* must be on the object"):
        lw.grasp.augmented_object(mech, q, point="arm_1_flange")
    with pytest.raises(lw.ModelError, match="no node"):
        lw.grasp.augmented_object(mech, q, point="rim_9")
    with pytest.raises(lw.ShapeError, match=r"must have shape \(3,\)"):
        lw.grasp.augmented_object(mech, q, point=(1.0, 2.0))
    with pytest.raises(lw.ShapeError, match="q"):
        lw.grasp.augmented_object(mech, q[:-1])
    with pytest.raises(lw.ShapeError, match="their batches differ"):
        lw.grasp.augmented_object(mech, np.stack([q] * 2), np.zeros((3, mech.nv)))
    with pytest.raises(lw.ModelError, match=r"tolerance is 2.0"):
        lw.grasp.augmented_object(mech, q, tolerance=2.0)
    augmented = lw.grasp.augmented_object(mech, q)
    with pytest.raises(lw.ModelError, match=r"'grasp_3'.*did you mean 'grasp_"):
        augmented.arm("grasp_3")
    with pytest.raises(lw.ShapeError, match=r"must have shape \(6,\)"):
        augmented.force(np.zeros(5))
    with pytest.raises(lw.ShapeError, match=r"must have shape \(6,\).*: give tau\[..., arm.rows\]"):
        augmented.arm("grasp_1").force(np.zeros(mech.nv))
    with pytest.raises(lw.ShapeError, match="has no length"):
        len(augmented)
    lid = random_system(0, articulated=True, arms=2).mech
    with pytest.raises(lw.ModelError, match=r"several moving bodies .*'lid'"):
        lw.grasp.augmented_object(lid, lid.neutral())
    with pytest.raises(lw.errors.SingularHingeError, match="'light'"):
        b = lw.Builder("light")
        b.body("light", hinge=lw.hinges.Pin((0, 0, 1)))
        lw.grasp.augmented_object(*grasped(b, {}, ["light"]))
    empty = lw.grasp.augmented_object(mech, np.zeros((0, mech.nq)))
    assert empty.inertia.shape == (0, 6, 6)
    assert empty.arm("grasp_1").consistent_inverse.shape == (0, 6, 6)


def test_later_calls_are_one_kernel_and_still_look_at_the_loops() -> None:
    mech, rng = lw.models.dual_arm(), np.random.default_rng(0)
    start = mech.integrate(mech.neutral(), 0.05 * rng.standard_normal(mech.nv))
    q = lw.loops.project_position(mech, start).required()
    v = lw.loops.project_velocity(mech, q, rng.standard_normal(mech.nv))
    first = lw.grasp.augmented_object(mech, q, v)
    assert calls(lambda: lw.grasp.augmented_object(mech, q, v)) < 40
    again = lw.grasp.augmented_object(mech, q, v)
    batch = lw.grasp.augmented_object(mech, np.stack([q, q]), v)
    for other in (again, batch[1]):
        assert other.rank == first.rank == 6
        for name in ("inertia", "coriolis", "gravity", "velocity"):
            expected = getattr(first, name)
            np.testing.assert_allclose(getattr(other, name), expected, rtol=1e-9, atol=1e-9)
        for one, expected in zip(other.arms.values(), first.arms.values(), strict=True):
            np.testing.assert_allclose(one.consistent_inverse, expected.consistent_inverse, 1e-9)
    with pytest.raises(lw.ClosureError, match="is open by"):
        lw.grasp.augmented_object(mech, start, v)
    with pytest.raises(lw.ClosureError, match="pull loop"):
        lw.grasp.augmented_object(mech, q, v + 1.0)
    with pytest.raises(lw.ShapeError, match="q has shape"):
        lw.grasp.augmented_object(mech, q[1:], v)
