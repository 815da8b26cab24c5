"""Loops closed by threads, screws and offset hinges: errors, steps, filters."""

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import filtering, hinges
from linkwise.control import Cost
from linkwise.errors import ClosureError, ModelError
from linkwise.model import closure
from linkwise.model.free_group import free_group
from linkwise.spatial.array import Array
from linkwise.spatial.pose import exp

PITCH = 0.03
MASS = lw.SpatialInertia.solid_box(40.0, (0.3, 0.2, 0.1))


def offset(q: Array) -> tuple[Any, Any]:
    """A slider whose outboard axes are turned and moved."""
    s = q[..., 0]
    rot = hinges.Gimbal().pose(np.array([0.3, 0.5, -0.2])).rot
    return np.broadcast_to(rot, (*s.shape, 3, 3)), np.stack(
        [s, 0.0 * s + 0.2, 0.0 * s + 0.1], axis=-1
    )


BALL = hinges.Screws(((1, 0, 0, 0, 0, 0.3), (0, 1, 0, 0, 0, 0), (0, 0, 1, -0.3, 0, 0)))
THREAD = hinges.Screws(((0, 0, 1, 0.1, 0.2, 0.1),))
HINGES = {
    "weld": hinges.Locked(),
    "held pin": hinges.Locked(hinges.Pin((0, 1, 0)), (0.7,)),
    "pin": hinges.Pin((1, 2, 3)),
    "pin beside": hinges.Screws(((0, 0, 2, 0, -0.2, 0),)),
    "slider": hinges.Prismatic(),
    "offset slider": hinges.CustomHinge("offset", (("s", "m"),), offset),
    "thread": hinges.Helical((0, 0.6, 0.8), 0.1),
    "thread beside": THREAD,
    "thread beside, reversed": THREAD.reversed(),
    "cylinder": hinges.Cylindrical((1, 1, 0)),
    "two ways": hinges.Screws(((0, 0, 0, 1, 0, 0), (0, 0, 0, 0, 1, 0))),
    "plane": hinges.Planar(),
    "winding plane": hinges.Screws(
        ((0, 0, 1, 0.3, 0, 0.1), (0, 0, 0, 1, 0, 0), (0, 0, 0, 0, 1, 0))
    ),
    "three ways": hinges.Translation(),
    "ball beside": BALL,
    "ball beside, reversed": BALL.reversed(),
    "scara": hinges.Screws(
        ((0, 0, 1, 0.2, 0, 0.3), (0, 0, 0, 1, 0, 0), (0, 0, 0, 0, 1, 0), (0, 0, 0, 0, 0, 1))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HINGES)
def test_errors_are_those_of_the_poses(name: str) -> None:
    """S e of poses that are e away from one that is reached, many turns on."""
    hinge, rng, size = HINGES[name], np.random.default_rng(0), 1e-5
    S, group = closure.constant_directions(hinge), free_group(hinge)
    assert S is not None and group is not None
    for _ in range(10):
        q = hinge.neutral()
        if hinge.nv:
            q = hinge.integrate(q, 4.0 * rng.standard_normal(hinge.nv))
        for one in np.eye(6):
            X = hinge.pose(q) @ exp(size * one)
            y = S @ group.error(X.rot.T.astype(object), X.rot.T @ X.p)
            assert np.allclose(y.astype(float) / size, S @ one, atol=1e-3)


def test_hinges_that_turn_about_two_axes_have_none() -> None:
    two = hinges.Screws(((0, 0, 1, 0, 0, 0), (1, 0, 0, 0, 0, 0)))
    assert free_group(two) is None and free_group(hinges.Universal()) is None


def test_a_loop_by_a_held_hinge_is_closed_in_its_pose() -> None:
    held = hinges.Locked(hinges.Pin((0, 1, 0)), (0.7,))
    b = lw.Builder("bent").body("bar", "world", hinges.Free(), inertia=MASS)
    mech = b.loop("weld", "world", "bar", held).build()
    q = mech.neutral()
    q[:] = [np.cos(0.35), 0.0, np.sin(0.35), 0.0, 0.0, 0.0, 0.0]
    assert np.allclose(lw.loops.constraint_error(mech, q), 0.0, atol=1e-12)
    assert np.abs(lw.loops.constraint_error(mech, mech.neutral())).max() > 0.6
    run = lw.rollout(mech, q, duration=0.1, step=0.01, integrator="implicit")
    assert np.allclose(run.q[-1], q, atol=1e-9)


def jack() -> lw.Mechanism:
    """A shaft that turns, and a table that it lifts by a thread."""
    b = lw.Builder("jack")
    inertia = lw.SpatialInertia.solid_cylinder(2.0, 0.05, 0.3)
    b.body("shaft", "world", hinges.Pin((0, 0, 1)), inertia=inertia)
    b.body("table", "world", hinges.Prismatic((0, 0, 1)), inertia=MASS)
    b.node("imu", "table", (0.1, 0.0, 0.0))
    return b.loop("thread", "table", "shaft", hinges.Helical((0, 0, 1), -PITCH)).build()


def test_a_thread_lifts_in_implicit_steps() -> None:
    """Many turns up and down: (I + m p²) θ̈ = τ − m g p, and s = p θ, in steps of first order."""
    mech, tau, h = jack(), np.array([20.0, 0.0]), 1e-3
    turning = 0.5 * 2.0 * 0.05**2 + 40.0 * PITCH**2
    rate = (20.0 + 40.0 * mech.gravity[2] * PITCH) / turning
    run = lw.rollout(
        mech, [0.0, 0.0], tau=tau[None], duration=1.0, step=h, integrator="implicit", passive=False
    )
    assert run.q[-1, 0] > 8.0 * np.pi
    assert run.q[-1, 0] == pytest.approx(0.5 * rate, rel=2e-3)
    assert run.v[-1, 0] == pytest.approx(rate, rel=1e-8)
    assert np.allclose(run.q[:, 1], PITCH * run.q[:, 0], rtol=0.0, atol=1e-9)
    assert np.allclose(lw.loops.constraint_error(mech, run.q), 0.0, atol=1e-9)
    # where the thread is half a turn off, no turn is missed
    with pytest.raises(ClosureError, match=r"is open by 0\.094"):
        lw.rollout(mech, [np.pi, 0.0], duration=0.1, step=h, integrator="implicit")


def test_derivatives_and_optima_of_a_thread() -> None:
    mech, tau, d = jack(), np.zeros((10, 2)), np.zeros((10, 2))
    tau[:, 0], d[3, 0] = 14.0, 1e-4

    def run(tau: Array) -> Any:
        options: Any = {"duration": 0.1, "step": 0.01, "integrator": "implicit"}
        return lw.rollout(mech, [0.0, 0.0], tau=tau, **options)

    slope = (run(tau + d).q[:, 1].sum() - run(tau - d).q[:, 1].sum()) / 2e-4
    assert slope > 1e-3
    gradient = run(tau).gradient(q=np.tile([0.0, 1.0], (11, 1)))
    assert gradient.tau[3, 0] == pytest.approx(slope, rel=1e-6)
    goal = np.array([5.0, 5.0 * PITCH])
    best = lw.optimize(
        mech, [0.0, 0.0], step=0.02, horizon=50, driven=["shaft"],
        costs=[Cost.posture(goal, final=1e4), Cost.effort(weight=1e-4)],
    )  # fmt: skip
    assert np.allclose(best.q[-1], goal, atol=1e-3)
    assert np.allclose(best.q[:, 1], PITCH * best.q[:, 0], atol=1e-8)


def test_a_thread_in_place_of_a_body_on_a_thread() -> None:
    """An arm with a nut on a skew thread, and the same with the nut on a hinge of the tree."""
    rod = lw.SpatialInertia.solid_box(1.0, (0.4, 0.1, 0.1)).moved(lw.Pose.translation((0.2, 0, 0)))
    thread, rng = hinges.Screws(((0, 0.6, 0.8, 0.1, 0.18, 0.04),)), np.random.default_rng(0)
    axes = np.eye(3)[np.arange(6) % 3] + 0.2 * rng.standard_normal((6, 3))
    nut = lw.SpatialInertia.solid_box(2.0, (0.2, 0.1, 0.3))

    def arm() -> lw.Builder:
        b, parent = lw.Builder("arm"), "world"
        for i, axis in enumerate(axes):
            pin, place = hinges.Pin(tuple(axis)), (0.3, 0.0, 0.1)
            b.body(f"l{i}", parent, pin, inertia=rod, inboard=place)
            parent = f"l{i}"
        return b

    q, tau = 0.4 * rng.standard_normal(6), 3.0 * rng.standard_normal(6)
    tip = lw.forward_kinematics(arm().build(), q, "l5")
    direct = arm().node("post", "world", tip).loop("nut", "post", "l5", thread).build()
    direct = direct.with_payload("l5", nut)
    apart = arm().body("nut", "world", thread, inertia=nut, inboard=tip)
    apart = apart.loop("weld", "nut", "l5").build()
    v = lw.loops.project_velocity(direct, q, rng.standard_normal(6))
    wide = np.append(q, 0.0)
    J = lw.loops.constraint_jacobian(apart, wide)
    turn = np.linalg.lstsq(J[:, 6:], -J[:, :6] @ v, rcond=None)[0]
    v_wide = np.append(v, turn).astype(np.float64)
    assert np.abs(J @ v_wide).max() < 1e-9 < 0.1 < np.abs(v).max()
    offs = list[float]()
    for step in (1e-3, 2.5e-4):
        options: Any = {"duration": 0.03, "step": step, "integrator": "implicit"}
        one = lw.rollout(direct, q, v, tau=tau[None], **options)
        two = lw.rollout(apart, wide, v_wide, tau=np.append(tau, 0.0)[None], **options)
        offs.append(np.abs(one.q[-1] - two.q[-1, :6]).max())
        for end in (one.q[-1], two.q[-1, :6]):  # by a search for the coordinate of the thread
            assert np.abs(lw.loops.constraint_error(direct, end)).max() < 1e-5
    assert np.abs(one.q[-1] - q).max() > 0.05
    assert offs[1] < 0.4 * offs[0] < 1e-4


def test_hinges_without_a_formula_are_refused() -> None:
    two = hinges.Screws(((0, 0, 1, 0, 0, 0), (1, 0, 0, 0, 0, 0)))
    b = lw.Builder("skew").body("bar", "world", hinges.Free(), inertia=MASS)
    mech = b.loop("joint", "world", "bar", two).build()
    with pytest.raises(ModelError, match=r"hinge of kind Screws.*close the loop by a weld"):
        lw.rollout(mech, mech.neutral(), duration=0.1, step=0.01, integrator="implicit")
    with pytest.raises(ModelError, match="close the loop by a weld"):
        cell = filtering.gyroscope("bar", noise=0.1)
        filtering.kalman_filter(mech, [cell], step=0.01)


@pytest.mark.parametrize("method", ["extended", "unscented"])
def test_filters_hold_a_thread(method: str) -> None:
    """The estimate is that of a filter of the shaft alone, with the table as its armature."""
    mech, rng, step = jack(), np.random.default_rng(0), 0.01
    inertia = lw.SpatialInertia.solid_cylinder(2.0, 0.05, 0.3)
    drive = lw.Drive(armature=40.0 * PITCH**2)
    alone = lw.Builder("shaft").body(
        "shaft", "world", hinges.Pin((0, 0, 1)), inertia=inertia, drive=drive
    )
    few, small = (
        filtering.kalman_filter(
            x, [filtering.encoders(x, ["shaft"], noise=0.05)], step=step, method=method, force=force
        )
        for x, force in ((mech, [0.5, 0.0]), (alone.build(), 0.5))
    )
    x = few.start([0.0, 0.0], position=[0.1, 100.0], velocity=[0.3, 100.0])
    y = small.start([0.0], position=0.1, velocity=0.3)
    weight = 40.0 * mech.gravity[2] * PITCH
    for k in range(40):
        seen = {"encoders": [0.002 * k * k + 0.05 * rng.standard_normal()]}
        x = few.tick(x, [16.0, 0.0], seen)
        y = small.tick(y, [16.0 + weight], seen)
    assert y.q[0] > 1.0
    assert np.allclose([x.q[0], x.v[0]], [y.q[0], y.v[0]], rtol=1e-5)
    assert np.allclose(x.q[1], PITCH * x.q[0], atol=1e-7)
    assert np.allclose(x.P[:1, :1], y.P[:1, :1], rtol=1e-4)
    assert np.allclose(x.P[2, 2], y.P[1, 1], rtol=1e-4)
    assert np.allclose(x.P[1, 1], PITCH**2 * x.P[0, 0], rtol=1e-4)
