"""The variational integrator compiled into rollouts, against its step in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.dynamics.passive import passive
from linkwise.errors import SimulationError
from linkwise.simulation.motion_request import MotionRequest
from linkwise.simulation.rollout_kernel import motion_kernel
from linkwise.simulation.stepwise import stepwise
from linkwise.simulation.variational.step import enter, leave, step
from tests.simulation.moving import distance, reference, tumbling
from tests.simulation.test_rollout import mixed


def flying() -> lw.Mechanism:
    """A free body with a ball joint and a pin; nothing pulls at it."""
    return tumbling().with_gravity((0.0, 0.0, 0.0))


def test_rollout_is_the_step_in_numpy():
    """Free, ball, planar and plain hinges with dampers, springs, armature and joint forces."""
    mech, h = mixed(), 1e-3
    q, v = mech.random(seed=1), mech.random_velocity(seed=1)
    tau = np.random.default_rng(0).standard_normal((30, mech.nv))
    runs = lw.rollout(mech, q, v, duration=30 * h, step=h, tau=tau, integrator="variational")
    drives, p = passive(mech), enter(mech, q, v)
    for i in range(30):
        done = step(mech, lambda t, q, v, i=i: tau[i] + drives.force(q, v), i * h, q, p, h)
        q, p = done.q, done.p
    assert runs.q[-1] == pytest.approx(q, abs=1e-13)
    assert runs.v[-1] == pytest.approx(leave(mech, q, p), abs=1e-11)


TURNING = {
    "free": (lw.hinges.Free(), (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)),
    "reversed free": (lw.hinges.Free().reversed(), (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)),
    "ball": (lw.hinges.Spherical(), (0.1, 0.3, 0.6)),
    "planar": (lw.hinges.Planar(), (0.7, 0.2, 0.1)),
    "point on plane": (lw.hinges.PointOnPlane(0.2), (0.1, 0.3, 0.6, 0.2, 0.4)),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", TURNING)
def test_armature_in_turning_axes_is_that_of_forward_dynamics(name: str):
    """N v̇ and no more: on the way to one motion the error falls by 2², in both forms of a step."""
    hinge, armature = TURNING[name]
    inertia = lw.SpatialInertia.from_com(1.0, (0.1, 0.05, -0.02), (0.05, 0.04, 0.02))
    b = lw.Builder(name).body("post", hinge=lw.hinges.Pin((0, 0, 1)), inertia=inertia)
    drive = lw.Drive(armature=armature)
    mech = b.body("load", parent="post", hinge=hinge, inertia=inertia, drive=drive).build()
    q, v = mech.random(seed=2), 2.0 * mech.random_velocity(seed=2)
    exact = reference(mech, q, v, 0.16)
    errors = list[float]()
    for h in (8e-3, 4e-3):
        steps = round(0.16 / h)
        done = lw.rollout(mech, q, v, duration=steps * h, step=h, integrator="variational")
        held = {"tau": np.zeros(mech.nv)}
        given = (mech, "variational", q[None], v[None], held, h, steps, steps, None, None)
        slow = stepwise(*given).records[0, -1]
        assert np.abs(slow - np.concatenate([done.q[-1], done.v[-1]])).max() < 1e-11
        errors.append(distance(mech, (done.q[-1], done.v[-1]), exact))
    assert errors[0] < 0.05
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.15)


def test_momentum_is_kept():
    mech = flying()
    q, v = mech.random(seed=1), mech.random_velocity(seed=1)
    done = lw.rollout(
        mech, q, v, duration=2.0, integrator="variational", passive=False, record_every=100
    )
    result = lw.momentum(mech, done.q, done.v, about="world")
    # 2000 steps with rounding of 1e-16 in each.
    assert np.abs(result - result[0]).max() < 1e-12 * np.abs(result[0]).max()
    assert np.abs(mech.difference(q, done.q[-1])).max() > 0.5


@pytest.mark.parametrize("frame", ["node", "world"])
def test_forces_at_nodes_act(frame: lw.dynamics.Frame):
    """A constant push changes the linear momentum of what flies by h f a step."""
    mech = flying()
    request = MotionRequest(mech, "variational", nodes=("arm",), forces_frame=frame)
    kernel = motion_kernel(request)
    q, v = mech.neutral(), np.zeros(mech.nv)
    v[6:] = 0.5
    push = np.array([0.0, 0.0, 0.0, 3.0, 4.0, 5.0])
    held = {"tau": np.zeros(mech.nv), "f": push}
    before = lw.momentum(mech, q, v)
    done = kernel(q, v, held, step=1e-3, steps=50, every=50)
    assert done.status.tolist() == [0]
    change = (lw.momentum(mech, done.q[0, -1], done.v[0, -1]) - before)[3:]
    if frame == "world":
        assert change == pytest.approx(0.05 * push[3:], abs=1e-12)
    else:  # the axes have turned with the arm, by a degree or two
        assert change == pytest.approx(0.05 * push[3:], rel=0.05)
        assert np.abs(change - 0.05 * push[3:]).max() > 1e-6


def test_dampers_and_springs_may_be_stiff():
    """x'' = −c x' − k x by the midpoint rule is a matrix; hc and h²k are far above one here."""
    b = lw.Builder("slider", gravity=(0.0, 0.0, 0.0))
    drive = lw.Drive(damping=5e4, stiffness=4e7, armature=1.0)
    inertia = lw.SpatialInertia.solid_sphere(1.0, 0.1)
    b.body("cart", hinge=lw.hinges.Prismatic((1, 0, 0)), inertia=inertia, drive=drive)
    mech, h, steps = b.build(), 1e-2, 20
    rate = np.array([[0.0, 1.0], [-2e7, -2.5e4]])
    one = np.linalg.solve(np.eye(2) - 0.5 * h * rate, np.eye(2) + 0.5 * h * rate)
    exact = np.linalg.matrix_power(one, steps) @ [0.1, 1.0]
    done = lw.rollout(mech, [0.1], [1.0], duration=steps * h, step=h, integrator="variational")
    assert done.q[-1, 0] == pytest.approx(exact[0], rel=1e-9)
    assert done.v[-1, 0] == pytest.approx(exact[1], rel=1e-9)


def test_single_precision_is_near():
    mech = lw.models.seven_dof_arm()
    q = mech.neutral() + 0.3
    exact = lw.rollout(mech, q, np.zeros(7), duration=0.2, integrator="variational")
    near = lw.rollout(
        mech, q, np.zeros(7), duration=0.2, integrator="variational", dtype=np.float32
    )
    assert 0.0 < np.abs(near.q - exact.q).max() < 1e-4


def test_steps_that_are_not_solved_are_told():
    mech = lw.models.seven_dof_arm()
    q, v = mech.neutral() + 0.3, 3.0 * mech.random_velocity(seed=1)
    with pytest.raises(SimulationError, match="a variational step is not solved"):
        lw.rollout(mech, q, v, duration=15.0, step=0.3, integrator="variational")


def test_turns_that_are_too_long_are_told():
    b = lw.Builder("spinner", gravity=(0.0, 0.0, 0.0))
    b.body("top", hinge=lw.hinges.Spherical(), inertia=lw.SpatialInertia.solid_sphere(1.0, 0.1))
    mech = b.build()
    with pytest.raises(SimulationError, match="body 'top' turns by more than half a turn"):
        lw.rollout(
            mech, mech.neutral(), [0, 0, 40.0], duration=0.3, step=0.1, integrator="variational"
        )


def test_hinges_that_nothing_resists_are_told():
    """A bead on a rod without mass, at its axis."""
    b = lw.Builder("nothing")
    b.body("rod", hinge=lw.hinges.Pin((0, 0, 1)), inertia=lw.SpatialInertia.zero())
    bead = lw.SpatialInertia.point(1.0)
    b.body("bead", parent="rod", hinge=lw.hinges.Prismatic((1, 0, 0)), inertia=bead)
    mech = b.build()
    with pytest.raises(SimulationError, match="the hinge of body 'rod' is singular"):
        lw.rollout(mech, mech.neutral(), np.zeros(2), duration=0.003, integrator="variational")
