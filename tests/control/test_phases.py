"""Phases, loops and couplings in trajectories, against dense matrices and differences."""

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.control import Bound, Cost, Foothold, Phase
from linkwise.control.optimize import problem_of
from linkwise.control.solver import Iteration, Limits
from linkwise.errors import LinkwiseError
from linkwise.spatial.array import Array
from tests.control.expansions import expansion

STEP = 0.02
RECOVERY = 0.2  # part of the error of a loop that a step closes


def hopper() -> lw.Mechanism:
    """A trunk that slides up and along, with a leg of two pins."""
    build = lw.Builder("hopper")
    box = lw.SpatialInertia.solid_box(3.0, (0.2, 0.2, 0.1))
    leg = lw.SpatialInertia.solid_box(0.4, (0.04, 0.04, 0.3))
    leg = leg.moved(lw.Pose.translation((0.0, 0.0, -0.15)))
    build.body("along", "world", lw.hinges.Prismatic((1, 0, 0)), inertia=box)
    build.body("up", "along", lw.hinges.Prismatic((0, 0, 1)), inertia=box)
    pin = lw.hinges.Pin((0, 1, 0))
    build.body("thigh", "up", pin, inertia=leg, drive=lw.Drive(damping=0.2))
    build.body("shank", "thigh", pin, inboard=(0, 0, -0.3), inertia=leg)
    build.node("foot", "shank", (0, 0, -0.3))
    return build.build()


def geared() -> lw.Mechanism:
    """Two pins, the second of which follows the first."""
    build = lw.Builder("geared")
    rod = lw.SpatialInertia.solid_box(0.4, (0.04, 0.04, 0.3))
    rod = rod.moved(lw.Pose.translation((0.0, 0.0, -0.15)))
    build.body("first", "world", lw.hinges.Pin((0, 1, 0)), inertia=rod)
    build.body("second", "first", lw.hinges.Pin((0, 1, 0)), inboard=(0, 0, -0.3), inertia=rod)
    build.couple("gear", "second", {"first": (0.7, 0.3)})
    return build.build()


def iteration(mech: lw.Mechanism, q: Array, v: Array, **given: Any) -> tuple[Any, Iteration]:
    p = problem_of(
        mech, q, v, costs=[Cost.effort(weight=1.0)], step=STEP, limits=(), passive=False, **given
    )
    return p, Iteration(p.program, p.data, p.step, Limits(1, 1e-9, 1e-5))


def stepped(p: Any, it: Iteration, q: Array, v: Array, tau: Array) -> tuple[Array, Array, Array]:
    """q and v after the first step, and its derivative, from the kernel of expansions."""
    mech = p.mech
    row, rest = it.trajectory, mech.neutral()
    row[0, : it.nx], row[1, it.nx : it.nx + it.m] = np.concatenate([q, v]), tau
    row[1, : it.nx] = np.concatenate([rest, np.zeros(mech.nv)])
    F, G, W, gap = expansion(it)
    slope = G @ W + np.pad(F, ((0, 0), (0, len(tau))))
    return mech.integrate(rest, gap[: mech.nv]), gap[mech.nv :], slope


def dense(mech: lw.Mechanism, q: Array, v: Array, tau: Array) -> Array:
    """v' of a step that holds loops and couplings, from dense matrices."""
    M = lw.mass_matrix(mech, q)
    bias = lw.inverse_dynamics(mech, q, v, np.zeros(mech.nv), loops="open")
    J, gamma = lw.loops.constraint_jacobian(mech, q), lw.loops.constraint_bias(mech, q, v)
    end = -0.5 * STEP * gamma - RECOVERY * lw.loops.constraint_error(mech, q) / STEP
    K = np.block([[M, -J.T], [J, np.zeros((len(J), len(J)))]])
    right = np.concatenate([M @ v + STEP * (tau - bias), end])
    return np.asarray(np.linalg.lstsq(K, right, rcond=1e-12)[0][: mech.nv], dtype=np.float64)


@pytest.mark.parametrize("make", [lw.models.four_bar, geared])
def test_step_with_loops_is_that_of_dense_matrices(make: Any) -> None:
    mech: lw.Mechanism = make()
    rng = np.random.default_rng(0)
    q = lw.loops.assemble(mech, mech.neutral()).q
    v = lw.loops.project_velocity(mech, q, rng.normal(size=mech.nv))
    tau = rng.normal(size=mech.nv)
    p, it = iteration(mech, q, v, horizon=1)
    q_to, v_to, slope = stepped(p, it, q, v, tau)
    assert np.abs(v_to - dense(mech, q, v, tau)).max() < 1e-7
    free = v + STEP * lw.forward_dynamics(mech, q, v, tau, loops="open")
    assert np.abs(v_to - free).max() > 1e-3  # the rows do something
    assert np.abs(lw.loops.constraint_error(mech, q_to)).max() < 10 * STEP**3
    _check_slope(p, it, (q, v, tau), slope)


def _check_slope(p: Any, it: Iteration, at: tuple[Array, Array, Array], slope: Array) -> None:
    mech, size = p.mech, 1e-6
    n, columns = mech.nv, list[Array]()
    for e in size * np.eye(3 * n):
        ends = [
            stepped(p, it, mech.integrate(at[0], s * e[:n]), at[1] + s * e[n : 2 * n],
                    at[2] + s * e[2 * n :])
            for s in (1.0, -1.0)
        ]  # fmt: skip
        moved = mech.difference(ends[1][0], ends[0][0]), ends[0][1] - ends[1][1]
        columns.append(np.concatenate(moved) / (2 * size))
    assert np.abs(np.stack(columns, axis=1) - slope).max() < 1e-6 * np.abs(slope).max()


def test_kernels_on_disk_are_known_by_dampers() -> None:
    """Two mechanisms that differ in a damper alone, one after the other."""
    costs, ends = [Cost.effort(weight=1.0), Cost.velocity(weight=1.0)], list[Array]()
    for damping in (0.0, 5.0):
        build = lw.Builder("damped")
        box = lw.SpatialInertia.solid_box(1.0, (0.1, 0.1, 0.1))
        drive = lw.Drive(damping=damping)
        build.body("slider", "world", lw.hinges.Prismatic((1, 0, 0)), inertia=box, drive=drive)
        ends.append(
            lw.optimize(build.build(), [0.0], [1.0], costs=costs, step=0.05, horizon=5).v[-1]
        )
    assert ends[1][0] < 0.6 * ends[0][0]


def test_contacts_hold_open_and_land() -> None:
    mech, rng = hopper(), np.random.default_rng(1)
    q, v = np.array([0.1, 0.5, 0.5, -0.9]), rng.normal(size=4)
    tau, foot = rng.normal(size=4), lw.Task.position("foot")
    J = lw.tasks.task_jacobian(mech, q, foot)
    M = lw.mass_matrix(mech, q)
    bias = lw.inverse_dynamics(mech, q, v, np.zeros(4))
    free = v + STEP * np.linalg.solve(M, tau - bias)
    for phases, held in (([Phase(1)], False), ([Phase(1, ["foot"])], True)):
        p, it = iteration(mech, q, v, phases=phases)
        _, v_to, slope = stepped(p, it, q, v, tau)
        if held:  # the foot moves at the start: γ and the momentum along the ground
            assert np.abs(J @ v_to).max() < 0.1 * np.abs(J @ v).max()
            rest = M @ v_to - (M @ v + STEP * (tau - bias))
            force = np.linalg.lstsq(J.T, rest, rcond=None)[0]
            assert np.abs(J.T @ force - rest).max() < 1e-9  # only the foot is pushed
        else:
            assert np.abs(v_to - free).max() < 1e-10
        _check_slope(p, it, (q, v, tau), slope)


def test_landing_takes_the_velocity_of_the_foot() -> None:
    """An impact without rebound: of all velocities with J v' = 0 the nearest in kinetic energy."""
    mech = hopper()
    q, v = np.array([0.0, 0.5, 0.5, -0.9]), np.array([0.4, -1.5, 0.0, 0.0])
    p, it = iteration(mech, q, v, phases=[Phase(1), Phase(1, ["foot"])])
    inputs = it._held  # pyright: ignore[reportPrivateUsage]
    inputs["hold"][0], inputs["curve"][0] = 1.0, 0.0  # lands in the first step
    _, v_to, _ = stepped(p, it, q, v, np.zeros(4))
    J, M = lw.tasks.task_jacobian(mech, q, lw.Task.position("foot")), lw.mass_matrix(mech, q)
    assert np.abs(J @ v_to).max() < 1e-7 and np.abs(J @ v).max() > 1.0
    damped = np.array([0.0, 0.0, 0.2, 0.0]) * v
    bias = lw.inverse_dynamics(mech, q, v, np.zeros(4))
    free = v - STEP * np.linalg.solve(M, bias + damped)
    inverse = np.linalg.solve(M, J.T)
    assert np.abs(v_to - (free - inverse @ np.linalg.pinv(J @ inverse) @ J @ free)).max() < 1e-7


@pytest.mark.prove
def test_hop_obeys_the_ground() -> None:
    mech = hopper()
    start = np.array([0.0, 0.6 * np.cos(0.6), 0.6, -1.2])
    feet, friction = [Foothold("foot", friction=0.5)], 0.5
    motion = lw.optimize(
        mech, start, step=STEP, driven=["thigh", "shank"], violation=1e-4, iterations=500,
        phases=[Phase(12, feet), Phase(8), Phase(15, feet)],
        costs=[Cost.posture(start + np.array([0.05, 0, 0, 0]), weight=1.0, final=10.0),
               Cost.velocity(weight=0.05, final=1.0), Cost.effort(weight=1e-2)],
    )  # fmt: skip
    assert motion.status == 0
    foot, force = lw.forward_kinematics(mech, motion.q, "foot").p, motion.forces["foot"]
    weight = 9.81 * mech.total_mass
    assert (force[12:20] == 0.0).all() and np.abs(force[:12, 2]).min() > 0.0
    assert force[:, 2].min() > -2e-4 * weight
    assert (np.linalg.norm(force[:, :2], axis=1) - friction * force[:, 2]).max() < 2e-3 * weight
    assert np.abs(foot[:13] - foot[0]).max() < 1e-3 and np.abs(foot[20:, 2]).max() < 1e-3
    assert foot[13:20, 2].min() > -1.1e-4 and foot[13:20, 2].max() > 0.002
    # momentum balance: what the ground and gravity give is what the mechanism has
    M = lw.mass_matrix(mech, motion.q[0])
    assert np.isclose(M[0, 0], mech.total_mass)
    for k in (3, 15, 25):
        jac = [lw.tasks.task_jacobian(mech, motion.q[k], lw.Task.position("foot"))]
        M, bias = lw.mass_matrix(mech, motion.q[k]), lw.inverse_dynamics(
            mech, motion.q[k], motion.v[k], np.zeros(4)
        )  # fmt: skip
        damped = motion.tau[k] - np.array([0, 0, 0.2, 0]) * motion.v[k]
        left = M @ (motion.v[k + 1] - motion.v[k]) / STEP
        assert np.abs(left - (damped - bias + jac[0].T @ force[k])).max() < 1e-6


@pytest.mark.prove
def test_closed_chain_is_optimised_within_its_loop() -> None:
    mech = lw.models.four_bar()
    crank = mech.bodies[0].hinge_name
    start = mech.neutral()
    goal = start[0] + 0.8
    motion = lw.optimize(
        mech, start, step=0.01, horizon=60, driven=[crank], limits=(), passive=False,
        costs=[Cost.effort(weight=1e-2), Cost.velocity(weight=1e-3, final=1.0)],
        bounds=Bound.on_position(goal, goal, hinges=[crank], when="final"),
    )  # fmt: skip
    assert motion.status == 0 and abs(motion.q[-1, 0] - goal) < 1.1e-5
    assert np.abs(lw.loops.constraint_error(mech, motion.q)).max() < 1e-4
    assert np.ptp(motion.q, axis=0)[1:].max() > 0.1
    # the same joint forces in another program, which holds the loop by the same equation
    run = lw.rollout(
        mech, start, tau=motion.tau, duration=0.6, step=0.01, integrator="implicit", passive=False
    )
    assert np.abs(run.q - motion.q).max() < 1e-7


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"phases": [Phase(2, ["hand"])]}, "hand"),
        ({"phases": [Phase(2)], "horizon": 3}, "leave out horizon"),
        ({"phases": [Phase(2, ["foot"])], "integrator": "rk4"}, "euler"),
        ({"phases": ["stance"]}, "phases"),
        ({"costs": Cost.force(weight=1.0), "horizon": 2}, "without contacts"),
        ({"phases": [Phase(1, ["foot"]), Phase(1, [Foothold("foot", friction=0.1)])]}, "differ"),
    ],
)
def test_bad_phases_are_named(change: dict[str, Any], words: str) -> None:
    options: dict[str, Any] = {"costs": Cost.effort(weight=1.0), "step": STEP} | change
    with pytest.raises(LinkwiseError, match=words):
        lw.optimize(hopper(), np.zeros(4), **options)


def test_open_loops_and_bad_contacts_are_refused() -> None:
    mech = lw.models.four_bar()
    with pytest.raises(LinkwiseError, match="open by"):
        lw.optimize(mech, mech.neutral() + 0.3, costs=Cost.effort(weight=1.0), step=STEP, horizon=2)
    for wrong in ({"friction": -1.0}, {"place": (0.0, 1.0)}, {"height": np.nan}):
        with pytest.raises(LinkwiseError):
            Foothold("foot", **wrong)  # type: ignore[arg-type]
    with pytest.raises(LinkwiseError):
        Phase(0)
