"""Grasps of mechanisms: contact forces, contact motions, and the instant at which one slips."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest

import linkwise as lw
from linkwise.grasp.contact_motion import GraspEffort
from linkwise.grasp.load_distribution import _weak  # pyright: ignore[reportPrivateUsage]
from linkwise.model import closure
from linkwise.spatial import quaternion
from tests.grasp.grasps import contact, frame

MASS, MU, GAMMA, G = 0.8, 0.5, 0.01, 9.81


def gripper(hinge: lw.hinges.Hinge, *, half: float = 0.05) -> lw.Mechanism:
    """A carriage that rises, two fingers on it that close along x, a block between them."""
    b = lw.Builder("gripper", gravity=(0, 0, -G))
    cube = lw.SpatialInertia.solid_box(MASS, (2 * half, 0.06, 0.08))
    small = lw.SpatialInertia.solid_sphere(0.1, 0.02)
    b.body("carriage", hinge=lw.hinges.Prismatic((0, 0, 1)), inertia=lw.SpatialInertia.point(1.0))
    b.body("block", hinge=lw.hinges.Free(), inertia=cube)
    for name, x in (("left", -half), ("right", half)):
        b.body(
            f"{name} finger",
            "carriage",
            lw.hinges.Prismatic((1, 0, 0)),
            inboard=(x, 0, 0),
            inertia=small,
        )
        towards = frame((-x, 0, 0), (0, 0, 0))
        b.node(f"{name} tip", f"{name} finger", towards)
        b.node(f"{name} face", "block", lw.Pose.rotation(towards.rot, (x, 0, 0)))
        b.loop(name, f"{name} tip", f"{name} face", hinge)
    return b.build()


def held(mech: lw.Mechanism, one: lw.grasp.Contact) -> lw.Grasp:
    return lw.Grasp.of(mech, one)


TOTAL = 1.0 + MASS + 2 * 0.1


def driven(mech, push, rise):
    """Joint forces: a push of both fingers and an acceleration of the carriage, over time."""

    def tau(t, q, v):
        out = np.zeros(mech.nv)
        out[mech.v_slice("carriage")] = TOTAL * (G + rise(t))
        out[mech.v_slice("left finger")] = push(t)
        out[mech.v_slice("right finger")] = -push(t)
        return out

    return tau


@pytest.mark.parametrize("name", ["soft_finger", "point", "rigid", "edge"])
def test_contact_forces_of_a_held_block(name):
    """Half of the weight each, and the push: by hand."""
    one = contact(name)
    mech = gripper(one.hinge)
    grasp = held(mech, one)
    q, v = mech.neutral(), np.zeros(mech.nv)
    tau = driven(mech, lambda t: 20.0, lambda t: 1.5)(0.0, q, v)
    f = grasp.contact_forces(q, v, tau)
    for i, c in enumerate(grasp.contacts.values()):
        world = c.pose.rot @ f[i, 3:]
        np.testing.assert_allclose(world[2], MASS * (G + 1.5) / 2, rtol=1e-10)
        assert f[i, 5] == pytest.approx(20.0)
    needed = grasp.needed_wrench(q, v, block_rising(mech, 1.5))
    np.testing.assert_allclose(grasp.object_force(f), needed, atol=1e-9)
    np.testing.assert_allclose(needed, [0, 0, 0, 0, 0, MASS * (G + 1.5)], atol=1e-12)


def block_rising(mech, a):
    vdot = np.zeros(mech.nv)
    vdot[mech.v_slice("carriage")] = a
    vdot[mech.v_slice("block")] = (0, 0, 0, 0, 0, a)
    return vdot


def test_frictionless_fingers_carry_no_weight():
    """A sliding contact passes its push alone: the block falls between the fingers."""
    one = contact("frictionless")
    mech = gripper(one.hinge)
    grasp, q, v = held(mech, one), mech.neutral(), np.zeros(mech.nv)
    tau = driven(mech, lambda t: 20.0, lambda t: 0.0)(0.0, q, v)
    tau[0] -= MASS * G  # the carriage does not carry it
    f = grasp.contact_forces(q, v, tau)
    np.testing.assert_allclose(f[:, 5], 20.0, rtol=1e-10)
    np.testing.assert_allclose(np.delete(f, 5, axis=1), 0.0, atol=1e-10)
    vdot = lw.forward_dynamics(mech, q, v, tau)
    assert vdot[mech.v_slice("block")][5] == pytest.approx(-G)
    # Where it has slid by 1 cm the push acts there, and turns the block.
    slid = q.copy()
    slid[mech.q_slice("block")][6] = -0.01
    moved = lw.Grasp.of(mech, one, slid)
    f = moved.contact_forces(slid, v, tau)
    np.testing.assert_allclose(moved.points[:, 2], 0.01, atol=1e-12)
    np.testing.assert_allclose(np.delete(f, 5, axis=1), 0.0, atol=1e-9)
    # One finger alone turns it by its lever arm; both together do not.
    single = np.where(np.arange(2)[:, None] == 0, f, 0.0)
    assert f[0, 5] > 10.0
    np.testing.assert_allclose(abs(moved.object_force(single)[1]), 0.01 * f[0, 5], rtol=1e-9)
    np.testing.assert_allclose(moved.object_force(f)[1], 0.0, atol=1e-9)


@pytest.mark.parametrize("name", ["soft_finger", "point"])
def test_slip_instant_as_the_acceleration_grows(name):
    """μ F = m (g + k t)/2 at t = (2 μ F / m - g) / k."""
    push, rate = 12.0, 40.0
    one = contact(name, friction=MU)
    mech = gripper(one.hinge)
    grasp = held(mech, one)
    motion = lw.simulate(
        mech,
        mech.neutral(),
        np.zeros(mech.nv),
        tau=driven(mech, lambda t: push, lambda t: rate * t),
        duration=0.5,
        step=0.01,
        watch=grasp.watch(),
    )
    want = (2 * MU * push / MASS - G) / rate
    assert motion.stopped
    crossing = motion.events[0]
    assert crossing.name in ("left slips", "right slips")
    assert abs(crossing.t - want) < 2e-9  # enclosed to 1e-9 s


def test_slip_instant_as_the_squeeze_fades():
    push, rate = 12.0, 5.0
    one = contact("soft_finger", friction=MU, torsion=GAMMA)
    mech = gripper(one.hinge)
    motion = lw.simulate(
        mech,
        mech.neutral(),
        np.zeros(mech.nv),
        tau=driven(mech, lambda t: push - rate * t, lambda t: 0.0),
        duration=2.0,
        step=0.02,
        watch=held(mech, one).watch(reserve=0.5),
    )
    # μ (F - c t) - m g / 2 = 0.5 N is left.
    want = (push - (MASS * G / 2 + 0.5) / MU) / rate
    assert abs(motion.events[0].t - want) < 2e-9


def test_twist_and_break_instants():
    """By the separate laws: a moment about the line spins both; a push that ends lets go."""
    push = 30.0
    one = contact("soft_finger separate", friction=MU, torsion=GAMMA)
    mech = gripper(one.hinge)
    grasp = held(mech, one)
    # The block cannot turn about x, as the fingers do not: both hold a moment in equal parts.
    q, v = mech.neutral(), np.zeros(mech.nv)
    tau = driven(mech, lambda t: push, lambda t: 0.0)(0.0, q, v)
    tau[mech.v_slice("block")][0] = 2 * GAMMA * push + 1e-9
    margins = grasp.margins(grasp.contact_forces(q, v, tau))
    assert margins.of("left", "twist") == pytest.approx(-1e-9 / 2 / GAMMA, abs=1e-9)
    assert margins.of("right", "twist") == pytest.approx(margins.of("left", "twist"), abs=1e-9)
    motion = lw.simulate(
        mech,
        q,
        v,
        tau=driven(mech, lambda t: 30.0 - 100.0 * t, lambda t: -G),
        duration=1.0,
        step=0.02,
        watch=grasp.watch(),
    )
    # In free fall nothing hangs on friction: the grasp ends when the push does.
    assert motion.events[0].t == pytest.approx(0.3, abs=1e-7)


def test_watch_names_every_limit():
    one = contact("soft_finger separate")
    mech = gripper(one.hinge)
    names = set(held(mech, one).watch())
    assert names == {
        f"{side} {what}" for side in ("left", "right") for what in ("breaks", "slips", "twists")
    }
    with pytest.raises(lw.ModelError, match=r"two-sided contacts \(left, right\).* no limits"):
        held(gripper(lw.hinges.Locked()), contact("rigid")).watch()


@functools.cache
def arms(name: str) -> tuple[lw.Mechanism, lw.Grasp]:
    """Three arms hold an object; made once, with its kernels."""
    one = contact(name)
    mech = lw.models.multi_arm(3, arm="puma560", grasp=one.hinge)
    return mech, lw.Grasp.of(mech, one)


def soft_arms(seed: int = 0, name: str = "soft_finger"):
    """In motion, under random joint forces."""
    mech, grasp = arms(name)
    q = mech.neutral()
    rng = np.random.default_rng(seed)
    J = lw.loops.constraint_jacobian(mech, q)
    v = rng.standard_normal(mech.nv)
    v = v - np.linalg.pinv(J) @ (J @ v)
    return mech, grasp, q, v, 5.0 * rng.standard_normal(mech.nv)


def test_power_balance_of_soft_fingers():
    """Contact forces do no work in the motions that are left (001-II, a.7): energy comes from τ."""
    mech, grasp, q, v, tau = soft_arms()
    tau[mech.v_slice("object")] = 0.0
    f = grasp.contact_forces(q, v, tau)
    state = grasp.contact_state(q, v)
    power = 0.0
    for i, (name, one) in enumerate(grasp.contacts.items()):
        V_ab = one.hinge.hinge_map(state.parameters[name]).T @ state.rates[name]
        power += abs(f[i] @ V_ab)
        assert np.abs(state.rates[name]).max() > 1e-2  # it does move
        np.testing.assert_allclose(state.sliding[name], 0.0, atol=1e-12)
    assert power < 1e-11
    vdot = lw.forward_dynamics(mech, q, v, tau)
    h = 1e-5

    def energy(t):
        state = mech.integrate(mech.integrate(q, v, t), vdot, 0.5 * t * t), v + t * vdot
        return lw.energy(mech, *state).total

    measured = (energy(h) - energy(-h)) / (2 * h)
    assert measured == pytest.approx(tau @ v, rel=1e-6)


def test_contact_parameters_follow_their_rates():
    """Θ̇ = F(Θ) W (a.4): W from velocities, Θ from poses, along a motion; every attitude is used."""
    mech, grasp, q, v, tau = soft_arms(3)
    motion = lw.simulate(mech, q, v, tau=tau, duration=0.02, step=1e-3)
    k, h = 10, 1e-3
    states = [grasp.contact_state(motion.q[i], motion.v[i]) for i in (k - 1, k, k + 1)]
    for name in grasp.names:
        before, now, after = (s.parameters[name] for s in states)
        hinge = mech.loop(name).hinge
        rate = quaternion.log(quaternion.multiply(quaternion.conjugate(before), after)) / (2 * h)
        np.testing.assert_allclose(
            rate, hinge.hinge_map(now)[:, :3].T @ states[1].rates[name], atol=2e-3
        )
        assert abs(rate[2]) < 2e-3  # the twist about the normal is not there, up to h²


def test_a_batch_is_its_rows():
    mech, grasp, q, v, tau = soft_arms(1)
    qs, vs, taus = np.stack([q, q]), np.stack([v, 0.5 * v]), np.stack([tau, -tau])
    both = grasp.contact_forces(qs, vs, taus)
    for i in range(2):
        np.testing.assert_allclose(both[i], grasp.contact_forces(qs[i], vs[i], taus[i]), atol=1e-9)
    lam = lw.loops.constraint_forces(mech, q, v, tau)
    np.testing.assert_allclose(grasp.contact_forces(q, v, tau, multipliers=lam), both[0], atol=1e-9)
    state = grasp.contact_state(qs, vs)
    np.testing.assert_allclose(
        state.rates["grasp_2"][1], 0.5 * state.rates["grasp_2"][0], atol=1e-12
    )


def test_effort_of_contact_forces():
    """τ = 𝓜 v̇ + C + J* f(0) (2.10a): forward dynamics under that τ gives v̇ and f back."""
    mech, grasp, q, v, tau = soft_arms(2)
    tau[mech.v_slice("object")] = 0.0
    vdot = lw.forward_dynamics(mech, q, v, tau)
    f = grasp.contact_forces(q, v, tau)
    effort = grasp.effort(q, v, vdot)
    arms = np.ones(mech.nv, dtype=bool)
    arms[mech.v_slice("object")] = False
    np.testing.assert_allclose(effort.of(f), tau[arms], atol=1e-8)
    assert len(effort.names) == 18
    assert (effort.limit < np.inf).all()
    needed = grasp.needed_wrench(q, v, vdot)
    np.testing.assert_allclose(grasp.object_force(f), needed, atol=1e-8)


def test_least_effort_with_limits():
    pytest.importorskip("scipy")
    mech, _ = arms("soft_finger")
    grasp = lw.Grasp.of(mech, contact("soft_finger", friction=0.6))
    q = mech.neutral()
    effort = grasp.effort(q)
    needed = grasp.needed_wrench(q) + np.array([0.5, 1.0, -1.0, 15.0, -5.0, 5.0])
    least = grasp.load_distribution(needed, objective="effort", effort=effort)
    plain = grasp.load_distribution(needed, effort=effort)
    assert least.feasible
    assert plain.feasible

    def cost(result):
        return float(((result.efforts / effort.limit) ** 2).sum())

    assert cost(least) < cost(plain)
    for result in (least, plain):
        assert result.margins.smallest >= 0.0
        assert (np.abs(result.efforts) <= effort.limit * (1 + 1e-9)).all()
        np.testing.assert_allclose(grasp.object_force(result.forces), needed, atol=1e-7)
    # Steps along internal forces that keep the cones cost more.
    rng, tried = np.random.default_rng(0), 0
    for _ in range(500):
        mix = rng.standard_normal(least.space.dimension) * 10.0 ** rng.uniform(-3, 1)
        forces = least.forces + np.tensordot(mix, least.space.internal, axes=1)
        if grasp.margins(forces).smallest >= 0.0:
            tried += 1
            other = float(((effort.of(forces) / effort.limit) ** 2).sum())
            assert other >= cost(least) * (1 - 1e-7)
    assert tried > 5
    # With a twentieth of their strength the joints cannot carry the arms.
    tired = dataclasses.replace(effort, limit=0.05 * effort.limit)
    refused = grasp.load_distribution(needed, effort=tired)
    assert not refused.feasible
    assert "joints need at least" in refused.reason
    assert "arm_" in refused.reason


def test_joints_within_a_millionth_of_the_worst_are_named():
    limit = np.array([2.0, 2.0, 4.0])
    effort = GraspEffort(("a", "b", "c"), np.eye(3, 6), np.zeros(3), limit)
    torques = 3.0 * limit * (1.0 - np.array([0.5e-6, 1.5e-6, 0.0]))
    reason = _weak(effort, np.concatenate([torques, np.zeros(3)]), 3.0)
    assert reason.endswith("need at least 3 of their limits while the contacts hold: a, c.")


@pytest.mark.parametrize("name", ["soft_finger", "frictionless"])
def test_acceleration_terms_of_the_new_hinges(name):
    """γ = J̇_c v by differences of J_c along the motion."""
    mech, _, q, v, _ = soft_arms(5, name)
    h = 1e-4

    def rows(t):
        return lw.loops.constraint_jacobian(mech, mech.integrate(q, v, t)) @ v

    slope = (8 * (rows(h) - rows(-h)) - (rows(2 * h) - rows(-2 * h))) / (12 * h)
    np.testing.assert_allclose(lw.loops.constraint_bias(mech, q, v), slope, atol=1e-9)


def test_a_soft_grasp_is_put_together():
    """From a configuration nearby; the twist is no error of position, so none is asked for."""
    mech, _ = arms("soft_finger")
    rng = np.random.default_rng(6)
    off = mech.integrate(mech.neutral(), 0.05 * rng.standard_normal(mech.nv))
    assert np.abs(lw.loops.constraint_error(mech, off)).max() > 1e-3
    closed = lw.loops.assemble(mech, off).q
    np.testing.assert_allclose(lw.loops.constraint_error(mech, closed), 0.0, atol=1e-12)
    np.testing.assert_allclose(
        lw.loops.constraint_error(mech, off, per="loop")[:, :3], 0.0, atol=1e-12
    )


def test_objects_that_are_not_free():
    b = lw.Builder("door")
    b.body("door", hinge=lw.hinges.Pin(), inertia=lw.SpatialInertia.solid_sphere(1, 0.1))
    b.body("finger", hinge=lw.hinges.Free(), inertia=lw.SpatialInertia.solid_sphere(1, 0.1))
    b.node("knob", "door", (0.1, 0, 0))
    b.loop("touch", "finger", "knob", lw.hinges.Spherical())
    grasp = lw.Grasp.of(b.build(), contact("point"))
    with pytest.raises(lw.ModelError, match="'door' is joined to 'world' by a hinge 'pin z'"):
        grasp.needed_wrench(grasp.mech.neutral())


def test_a_hand_against_a_wall():
    """The object may be the ground: efforts are there, a motion of it is not."""
    b = lw.Builder("wall", gravity=(0, 0, 0))
    b.body("finger", hinge=lw.hinges.Prismatic((1, 0, 0)), inertia=lw.SpatialInertia.point(1.0))
    b.node("tip", "finger", frame((1, 0, 0), (0.1, 0, 0)))
    b.node("spot", "world", frame((1, 0, 0), (0.1, 0, 0)))
    b.loop("push", "tip", "spot", lw.hinges.Spherical())
    mech = b.build()
    grasp = lw.Grasp.of(mech, contact("point"))
    f = grasp.contact_forces(mech.neutral(), np.zeros(1), np.array([3.0]))
    np.testing.assert_allclose(f, [[0, 0, 0, 0, 0, 3.0]], atol=1e-12)
    np.testing.assert_allclose(grasp.effort(mech.neutral()).of(f), [3.0], atol=1e-12)
    with pytest.raises(lw.ModelError, match="on the ground"):
        grasp.needed_wrench(mech.neutral())


@pytest.mark.parametrize(
    "hinge", [lw.hinges.PointOnPlane(0.2, (1, 2, -0.5)), lw.hinges.PointOnPlane(0.1).reversed()]
)
def test_what_a_sliding_contact_blocks(hinge):
    """The formulas in the pose, against the hinge's own coordinates: S H* = 0, rate -S Ḣ* W."""
    rng = np.random.default_rng(1)
    free = np.full(hinge.nq, np.inf)
    for _ in range(20):
        q, W = hinge.random(rng, -free, free), rng.standard_normal(5)
        H = hinge.hinge_map(q)
        result = closure.blocked(hinge, hinge.pose(q), H.T @ W)
        np.testing.assert_allclose(np.linalg.norm(result.S), 1.0, atol=1e-14)
        np.testing.assert_allclose(result.S @ H.T, 0.0, atol=1e-14)
        np.testing.assert_allclose(result.rate, -result.S @ hinge.bias(q, W), atol=1e-13)


def test_contacts_of_different_kinds():
    """A point on one side, a soft finger on the other: the soft one alone resists a twist."""
    b = lw.Builder("mixed", gravity=(0, 0, 0))
    b.body(
        "block",
        hinge=lw.hinges.Free(),
        inertia=lw.SpatialInertia.solid_box(MASS, (0.1, 0.06, 0.08)),
    )
    kinds = {"left": contact("point"), "right": contact("soft_finger")}
    for name, x in (("left", -0.05), ("right", 0.05)):
        b.node(f"{name} tip", "world", frame((-x, 0, 0), (x, 0, 0)))
        b.node(f"{name} face", "block", frame((-x, 0, 0), (x, 0, 0)))
        b.loop(name, f"{name} tip", f"{name} face", kinds[name].hinge)
    mech = b.build()
    grasp = lw.Grasp.of(mech, kinds)
    f = grasp.contact_forces(mech.neutral(), np.zeros(6), np.array([0.1, 0, 0, 0, 0, -2.0]))
    np.testing.assert_allclose(f[0, :3], 0.0, atol=1e-12)
    assert f[1, 2] == pytest.approx(0.1)  # its normal is -x
    for i, one in enumerate(grasp.contacts.values()):
        np.testing.assert_allclose(one.pose.rot @ f[i, 3:], [0, 0, 1.0], atol=1e-12)
