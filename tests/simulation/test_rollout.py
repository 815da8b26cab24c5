"""Compiled rollouts against their segments run in NumPy, and what they say of trouble."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.cpu import device
from linkwise.dynamics.passive import passive
from linkwise.errors import LoweringError, ModelError, ShapeError, SimulationError, TroubleWarning
from linkwise.model.hinges import Free, Pin, Planar, Prismatic, Spherical
from linkwise.simulation.motion_request import COMPILED, MotionRequest
from linkwise.simulation.rollout_kernel import motion_kernel
from linkwise.simulation.stepwise import stepwise
from tests.codegen.segments_in_numpy import Interpreted
from tests.waiting import until

INTEGRATORS = sorted(COMPILED)


def mixed() -> lw.Mechanism:
    """A free base, a ball joint, a planar one, pins and a slide, with dampers and springs."""
    rng = np.random.default_rng(5)

    def inertia() -> lw.SpatialInertia:
        mass = rng.uniform(0.5, 2.0)
        return lw.SpatialInertia.solid_box(mass, rng.uniform(0.1, 0.4, 3)).moved(
            lw.Pose.translation(rng.normal(0.0, 0.1, 3))
        )

    b = lw.Builder("mixed").body("base", hinge=Free(), inertia=inertia())
    b = b.body("ball", parent="base", hinge=Spherical(), inertia=inertia(), inboard=(0.2, 0.0, 0.1))
    b = b.body(
        "arm",
        parent="ball",
        hinge=Pin(axis=(0, 1, 0)),
        inertia=inertia(),
        inboard=(0.0, 0.3, 0.0),
        drive=lw.Drive(damping=0.3, stiffness=2.0, rest=0.4),
    )
    b = b.body(
        "slide",
        parent="arm",
        hinge=Prismatic(axis=(1, 0, 0)),
        inertia=inertia(),
        drive=lw.Drive(damping=0.7, stiffness=5.0, rest=-0.1, armature=0.2),
    )
    return b.body("puck", parent="base", hinge=Planar(), inertia=inertia()).build()


def states(mech: lw.Mechanism, count: int) -> tuple[Any, Any]:
    q = np.stack([mech.random(seed=s) for s in range(count)])
    return q, np.stack([mech.random_velocity(seed=s) for s in range(count)])


def interpreted(mech: lw.Mechanism, name: str, q: Any, v: Any, tau: Any, step: float) -> Any:
    """q and v after all steps, by the segments in NumPy."""
    kernel = lw.rollout(mech, q[0], v[0], duration=0.0, integrator=name).kernel
    run = Interpreted(kernel.stepping, q, v, step)
    for n in range(tau.shape[1]):
        run.step({"tau": tau[:, n]})
    assert not run.status.any()
    return run.shown()


@pytest.mark.few(6)
@pytest.mark.parametrize("name", INTEGRATORS)
@pytest.mark.parametrize("count", [1, 3, 8, 21])
def test_batches_equal_segments_in_numpy(name: str, count: int) -> None:
    mech = mixed()
    q, v = states(mech, count)
    tau = np.random.default_rng(1).normal(size=(count, 6, mech.nv))
    runs = lw.rollout(mech, q, v, duration=0.012, step=2e-3, tau=tau, integrator=name)
    q1, v1 = interpreted(mech, name, q, v, tau, 2e-3)
    # Fused multiplications and another sine: rounding, grown over six steps.
    assert np.abs(runs.q[:, -1] - q1).max() < 1e-13
    assert np.abs(runs.v[:, -1] - v1).max() < 1e-12 * max(1.0, np.abs(v1).max())


def test_long_code_in_parts_is_right() -> None:
    mech = lw.models.humanoid()  # more than 4000 nodes
    q, v = states(mech, 9)
    tau = np.random.default_rng(2).normal(size=(9, 3, mech.nv))
    runs = lw.rollout(mech, q, v, duration=0.003, tau=tau)
    q1, v1 = interpreted(mech, "rk4", q, v, tau, 1e-3)
    assert np.abs(runs.q[:, -1] - q1).max() < 1e-13
    assert np.abs(runs.v[:, -1] - v1).max() < 1e-12 * np.abs(v1).max()


def test_single_precision_is_near() -> None:
    mech = lw.models.seven_dof_arm()
    q, v = states(mech, 5)
    exact = lw.rollout(mech, q, v, duration=0.05)
    near = lw.rollout(mech, q, v, duration=0.05, dtype=np.float32)
    assert near.q.dtype == np.float32
    assert 0.0 < np.abs(near.q - exact.q).max() < 1e-4


def test_forces_held_for_all_for_each_step_and_for_each_motion() -> None:
    mech = lw.models.seven_dof_arm()
    q, v = states(mech, 4)
    one = np.random.default_rng(3).normal(size=mech.nv)
    many = np.random.default_rng(4).normal(size=(4, 5, mech.nv))
    constant = lw.rollout(mech, q, v, duration=0.005, tau=one)
    spread = lw.rollout(mech, q, v, duration=0.005, tau=np.broadcast_to(one, (4, 5, mech.nv)))
    assert np.array_equal(constant.q, spread.q)
    batch = lw.rollout(mech, q, v, duration=0.005, tau=many)
    for i in range(4):
        alone = lw.rollout(mech, q[i], v[i], duration=0.005, tau=many[i])
        assert np.abs(alone.q - batch.q[i]).max() < 1e-14
    from_one = lw.rollout(mech, q[0], v[0], duration=0.005, tau=many)
    assert from_one.q.shape == (4, 6, mech.nq)
    assert np.abs(from_one.q[0] - batch.q[0]).max() < 1e-14


def test_records_are_those_of_all_steps() -> None:
    mech = lw.models.puma560()
    q, v = states(mech, 3)
    tau = np.random.default_rng(6).normal(size=(3, 10, mech.nv))
    every = lw.rollout(mech, q, v, duration=0.01, tau=tau)
    some = lw.rollout(mech, q, v, duration=0.01, tau=tau, record_every=4)
    assert np.allclose(some.t, [0.0, 4e-3, 8e-3, 10e-3], atol=1e-15)
    assert np.array_equal(some.q, every.q[:, [0, 4, 8, 10]])
    assert np.array_equal(some.v, every.v[:, [0, 4, 8, 10]])


def test_threads_make_no_difference() -> None:
    mech = lw.models.seven_dof_arm()
    q, v = states(mech, 37)
    one = lw.rollout(mech, q, v, duration=0.02, threads=1)
    two = lw.rollout(mech, q, v, duration=0.02, threads=2)
    assert np.array_equal(one.q, two.q)


@pytest.mark.parametrize(("batch", "threads"), [(1, None), (64, None), (64, 1)])
def test_long_rollouts_can_be_stopped(
    batch: int, threads: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control-C comes through, and nothing goes on behind: these steps would take an hour."""
    mech = lw.models.puma560()
    q, v = np.tile(mech.neutral(), (batch, 1)), np.zeros((batch, mech.nv))
    steps = 4_000_000_000 // batch
    lw.rollout(mech, q, v, duration=0.001)  # compiled
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    killer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    begun, ended, spread = list[int](), list[int](), device.spread

    def watched(part: Callable[[int, int], None], *more: Any) -> None:
        def one(begin: int, end: int) -> None:
            begun.append(begin)
            if len(begun) == 1:
                killer.start()
            part(begin, end)
            ended.append(begin)

        spread(one, *more)

    monkeypatch.setattr(device, "spread", watched)
    with pytest.raises(KeyboardInterrupt):
        lw.rollout(mech, q, v, duration=steps * 1e-3, record_every=steps, threads=threads)
    signal.signal(signal.SIGINT, before)
    assert begun
    until(lambda: sorted(ended) == sorted(begun))


def test_dampers_and_springs_act_unless_told_otherwise() -> None:
    spring = lw.Drive(damping=0.5, stiffness=20.0, rest=0.3)
    rod = lw.SpatialInertia.from_com(1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    b = lw.Builder("wheel").body("wheel", hinge=Pin(axis=(0, 0, 1)), inertia=rod, drive=spring)
    wheel = b.build()
    runs = lw.rollout(wheel, [0.8], [0.0], duration=2.0, step=1e-3)
    # 0.1 q̈ + 0.5 q̇ + 20 (q − 0.3) = 0
    rate, omega = 2.5, np.sqrt(200.0 - 2.5**2)
    t = runs.t
    exact = 0.3 + 0.5 * np.exp(-rate * t) * (np.cos(omega * t) + rate / omega * np.sin(omega * t))
    assert np.abs(runs.q[:, 0] - exact).max() < 1e-9
    free = lw.rollout(wheel, [0.8], [1.0], duration=0.01, passive=False)
    assert np.allclose(free.q[:, 0], 0.8 + free.t, atol=1e-14)


@pytest.mark.parametrize("name", [x for x in INTEGRATORS if x in lw.simulation.INTEGRATORS])
def test_springs_of_reversed_hinges_act(name: str) -> None:
    """A universal joint from its other side, without gravity: all that moves it is its spring."""
    box = lw.SpatialInertia.solid_box(1.0, (0.1, 0.2, 0.3))
    drive = lw.Drive(stiffness=(3.0, 5.0), rest=(0.2, -0.1), damping=0.1)
    b = lw.Builder("cardan", gravity=(0.0, 0.0, 0.0))
    mech = b.body("rod", hinge=lw.hinges.Universal().reversed(), inertia=box, drive=drive).build()
    q, h = np.array([0.5, 0.3]), 1e-4
    pull = lw.forward_dynamics(mech, q, np.zeros(2), [-3.0 * 0.3, -5.0 * 0.4])
    runs = lw.rollout(mech, q, np.zeros(2), duration=h, step=h, integrator=name)
    assert runs.v[-1] == pytest.approx(h * pull, rel=0.01)  # h d/I of the damper: 0.3 %
    kept = lw.simulate(mech, q, np.zeros(2), duration=0.05, step=1e-3, integrator=name)
    rolled = lw.rollout(mech, q, np.zeros(2), duration=0.05, step=1e-3, integrator=name)
    assert rolled.q[-1] == pytest.approx(kept.q[-1], abs=1e-11)
    assert rolled.kernel is not None  # plain numbers are compiled, from either side


def test_a_motion_that_grows_without_bounds_is_told() -> None:
    mech = lw.models.seven_dof_arm()
    q, v = mech.random(seed=0), mech.random_velocity(seed=0)
    with pytest.raises(SimulationError, match=r"without bounds.*t = "):
        lw.rollout(mech, q, 1e6 * v, duration=100.0, step=0.05)
    many = np.stack([v, 1e6 * v, v])
    with pytest.warns(TroubleWarning, match="1 of 3 motions.*number 1"):
        runs = lw.rollout(mech, np.stack([q] * 3), many, duration=0.5, step=0.01)
    assert runs.status[0] == runs.status[2] == 0 != runs.status[1]
    failed = int(runs.failed_step[1])
    assert np.isfinite(runs.q[1, : failed + 1]).all()
    assert np.isnan(runs.q[1, failed + 1 :]).all()
    alone = lw.rollout(mech, q, v, duration=0.5, step=0.01)
    assert np.abs(runs.q[[0, 2]] - alone.q).max() < 1e-12


def test_turning_too_far_in_one_step_names_the_body() -> None:
    mech = lw.models.satellite() if hasattr(lw.models, "satellite") else mixed()
    q, v = mech.random(seed=0), np.zeros(mech.nv)
    v[:3] = (0.0, 0.0, 400.0)
    with pytest.raises(SimulationError, match="half a turn in one step"):
        lw.rollout(mech, q, v, duration=0.03, step=0.01)


def test_bad_input_is_answered() -> None:
    mech = lw.models.seven_dof_arm()
    q, v = mech.random(seed=0), mech.random_velocity(seed=0)
    with pytest.raises(ModelError, match="integrator='rk5'"):
        lw.rollout(mech, q, v, duration=0.001, integrator="rk5")
    with pytest.raises(ModelError, match=r"duration=0\.0025 is 2\.5 steps of 0\.001 s"):
        lw.rollout(mech, q, v, duration=0.0025)
    with pytest.raises(ModelError, match="step is 0"):
        lw.rollout(mech, q, v, duration=0.0, step=0)
    with pytest.raises(ModelError, match="record_every is 0"):
        lw.rollout(mech, q, v, duration=0.001, record_every=0)
    with pytest.raises(ShapeError, match="tau has shape"):
        lw.rollout(mech, q, v, duration=0.004, tau=np.zeros((3, 7)))
    with pytest.raises(ModelError, match="tau is not finite"):
        lw.rollout(mech, q, v, duration=0.004, tau=np.full(7, np.nan))
    with pytest.raises(ShapeError, match="batches differ"):
        lw.rollout(mech, np.stack([q] * 3), np.stack([v] * 2), duration=0.001)
    with pytest.raises(ModelError, match="target='tpu'"):
        lw.rollout(mech, q, v, duration=0.001, target="tpu")
    with pytest.raises(ModelError, match="dtype"):
        lw.rollout(mech, q, v, duration=0.001, dtype=np.int32)


@pytest.mark.parametrize("threads", [1.5, "x", 0, -1])
def test_threads_that_mean_nothing_are_refused(threads: Any) -> None:
    mech = lw.models.pendulum()
    with pytest.raises(ModelError, match=r"threads is .*; it must be a whole number, at least 1"):
        lw.rollout(mech, [0.1], [0.0], duration=0.001, threads=threads)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_rollouts_are_copied_and_pickled(copied: Any) -> None:
    """All but the kernel, which is machine code of this process."""
    done = lw.rollout(lw.models.pendulum(), [0.1], [0.0], duration=0.005)
    again = copied(done)
    assert again.kernel is None and done.kernel is not None
    assert str(again) == str(done) and repr(done) == f"<Rollout of {done}>"
    for name in ("t", "q", "v", "status", "failed_step"):
        assert np.array_equal(getattr(again, name), getattr(done, name)), name


class Rolling(lw.hinges.RollingBall):
    """The hinge of a user, whose rule has branches: it cannot be traced."""

    def integrate(self, q, v, dt=1.0):
        return super().integrate(np.asarray(q, np.float64), np.asarray(v, np.float64), float(dt))


@pytest.mark.parametrize(
    "hinge", [lw.hinges.RollingBall(0.1), Rolling(0.1)], ids=["traced", "branches"]
)
def test_what_is_not_compiled_is_moved_step_by_step(hinge) -> None:
    ball = lw.SpatialInertia.solid_sphere(1.0, 0.1)
    mech = lw.Builder("rolling").body("ball", hinge=hinge, inertia=ball).build()
    compiled = type(hinge) is lw.hinges.RollingBall
    with nullcontext() if compiled else pytest.raises(LoweringError, match="cannot be traced"):
        motion_kernel(MotionRequest(mech))
    v = np.array([0.3, 2.0, 0.0])
    runs = lw.rollout(mech, mech.neutral(), v, duration=0.1, step=0.01, record_every=4)
    assert (runs.kernel is not None) == compiled
    assert np.allclose(runs.t, [0.0, 0.04, 0.08, 0.1])
    # On level ground nothing acts: the centre goes on with ω × r.
    way = mech.pose(runs.q[-1], "ball").p - mech.pose(runs.q[0], "ball").p
    assert np.allclose(way[:2], [0.1 * 0.1 * 2.0, -0.1 * 0.1 * 0.3], atol=1e-12)


def test_steps_one_by_one_are_the_compiled_ones() -> None:
    mech = mixed()
    q, v = states(mech, 2)
    tau = np.random.default_rng(1).normal(size=(2, 6, mech.nv))
    for name in (x for x in INTEGRATORS if x in lw.simulation.INTEGRATORS):
        quick = lw.rollout(mech, q, v, duration=0.006, tau=tau, integrator=name, record_every=2)
        slow = stepwise(mech, name, q, v, {"tau": tau}, 1e-3, 6, 2, passive(mech), None)
        records = np.concatenate([quick.q[:, 1:], quick.v[:, 1:]], axis=-1)
        assert np.abs(slow.records - records).max() < 1e-11, name


def test_a_law_in_steps_one_by_one_is_the_compiled_one() -> None:
    """With torques of the null space, which laws and rollouts call by two names."""
    mech = lw.models.seven_dof_arm()
    hand = lw.Task.position("hand")
    law = lw.control_law(mech, hand, kp=100.0, kv=20.0, internal=True)
    q, v = np.array([0.3, 0.6, -0.2, 1.2, 0.4, 0.7, 0.1]), np.full(7, 0.2)
    goal, inner = lw.tasks.task_position(mech, q, hand) + 0.1, np.arange(7.0)
    held = {**law.inputs, "goal": goal, "tau0": inner}
    del held["tau"]
    quick = lw.rollout(mech, q, v, duration=0.006, controller=(law, goal), inputs={"tau0": inner})
    slow = stepwise(mech, "rk4", q[None], v[None], held, 1e-3, 6, 6, passive(mech), law.kernel)
    assert np.abs(slow.records[0, -1] - [*quick.q[-1], *quick.v[-1]]).max() < 1e-11
    without = lw.rollout(mech, q, v, duration=0.006, controller=(law, goal))
    assert np.abs(without.v[-1] - quick.v[-1]).max() > 1e-3


def test_a_long_chain_rolls_out() -> None:
    mech = lw.models.chain(200)
    with pytest.raises(LoweringError, match="200 bodies"):
        motion_kernel(MotionRequest(mech))
    runs = lw.rollout(mech, mech.neutral(), np.zeros(mech.nv), duration=0.003, record_every=3)
    assert runs.q.shape == (2, mech.nq) and np.isfinite(runs.q).all()


def test_a_control_law_in_the_loop_is_that_of_python() -> None:
    mech = lw.models.seven_dof_arm()
    law = lw.control_law(mech, lw.Task.pose("hand"), kp=100.0, kv=20.0)
    q = np.array([0.3, 0.6, -0.2, 1.2, 0.4, 0.7, 0.1])
    goal = law.goal(
        lw.tasks.task_position(mech, q, lw.Task.pose("hand"))
        @ lw.Pose.translation((0.05, 0.08, -0.06))
    )
    runs = lw.rollout(mech, q, np.zeros(7), duration=0.12, step=2e-3, controller=(law, goal))
    there, speed = q, np.zeros(7)
    for _ in range(60):
        one = lw.rollout(mech, there, speed, duration=0.002, step=2e-3, tau=law(there, speed, goal))
        there, speed = one.q[-1], one.v[-1]
    assert np.abs(runs.q[-1] - there).max() < 1e-12
    assert np.abs(runs.q[-1] - q).max() > 0.01


def test_gains_and_goals_may_differ_from_motion_to_motion_and_in_time() -> None:
    mech = lw.models.seven_dof_arm()
    hand = lw.Task.position("hand")
    law = lw.control_law(mech, hand, kp=100.0, kv=20.0)
    q = np.array([0.3, 0.6, -0.2, 1.2, 0.4, 0.7, 0.1])
    x = lw.tasks.task_position(mech, q, hand)
    path = x + np.linspace(0.0, 0.1, 40)[:, None] * np.array([1.0, 0.0, 0.0])
    goals = np.stack([path, path[::-1]])
    stiff = np.array([[[50.0] * 3], [[400.0] * 3]])
    both = lw.rollout(
        mech, q, np.zeros(7), duration=0.04, controller=(law, goals), inputs={"kp": stiff}
    )
    for i in range(2):
        alone = lw.rollout(
            mech,
            q,
            np.zeros(7),
            duration=0.04,
            controller=(law, goals[i]),
            inputs={"kp": stiff[i, 0]},
        )
        assert np.abs(alone.q - both.q[i]).max() < 1e-13
    assert np.abs(both.q[0, -1] - both.q[1, -1]).max() > 1e-3


def test_laws_that_do_not_fit_are_refused() -> None:
    mech = lw.models.seven_dof_arm()
    q, v = mech.random(seed=0), np.zeros(7)
    law = lw.control_law(mech, lw.Task.position("hand"), kp=100.0, kv=20.0)
    with pytest.raises(ModelError, match="the goal is missing"):
        lw.rollout(mech, q, v, duration=0.001, controller=law)
    with pytest.raises(ModelError, match="both given"):
        lw.rollout(mech, q, v, duration=0.001, controller=(law, np.zeros(3)), tau=np.zeros(7))
    with pytest.raises(ModelError, match="made apart"):
        lw.rollout(lw.models.seven_dof_arm(), q, v, duration=0.001, controller=(law, np.zeros(3)))
    with pytest.raises(ModelError, match="no input called 'kq'"):
        lw.rollout(mech, q, v, duration=0.001, controller=(law, np.zeros(3)), inputs={"kq": 1.0})
    with pytest.raises(ShapeError, match="one row for each of the 4 steps"):
        lw.rollout(mech, q, v, duration=0.004, controller=(law, np.zeros((3, 3))))
    with pytest.raises(ModelError, match="inputs are those of a control law"):
        lw.rollout(mech, q, v, duration=0.004, inputs={"kp": 1.0})
    with pytest.raises(ModelError, match="no Python between its steps"):
        lw.rollout(mech, q, v, duration=0.004, controller=lambda t, q, v: v)  # type: ignore[arg-type]
