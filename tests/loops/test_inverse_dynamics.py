"""Joint forces of the driven hinges, and forces of the loops."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ClosureError, ModelError, ShapeError, UnknownNameError
from tests.cases import DRIVEN, LINKAGES, linkage, parallelogram, rank_of
from tests.dense_kinematics import mass_matrix


def motion(name: str, seed: int = 0):
    """A mechanism in a state, with accelerations that obey."""
    mech, q = linkage(name)
    rng = np.random.default_rng(seed)
    here = lw.loops.independent_coordinates(mech, q)
    v = here.velocity(rng.standard_normal(len(here)))
    rate = rng.standard_normal(len(here))
    return mech, q, v, here, rate


def balance(mech, q, v, vdot, result) -> float:
    """How far τ + missing + J_c* λ is from 𝓜 v̇ + C, with a mass matrix made densely."""
    needed = mass_matrix(mech, q) @ vdot + lw.bias_force(mech, q, v)
    given = result.tau + result.missing
    given = given + lw.loops.constraint_jacobian(mech, q).T @ result.constraint_forces
    return float(np.abs(given - needed).max() / np.abs(needed).max())


@pytest.mark.parametrize("drives", ["all", "enough", "too few"])
@pytest.mark.parametrize("name", LINKAGES)
def test_forces_balance_and_drive(name, drives):
    """Newton's law of the tree holds, and forward dynamics gives the motion back."""
    mech, q, v, here, rate = motion(name)
    vdot = here.acceleration(v, rate)
    names = {"all": None, "enough": here.names, "too few": here.names[1:]}[drives]
    forces = lw.loops.drive_forces(mech, q, v, vdot, actuated=names)
    assert balance(mech, q, v, vdot, forces) < 1e-11
    undriven = np.setdiff1d(
        np.arange(mech.nv), [mech.velocity_names.index(x) for x in forces.actuated]
    )
    assert (forces.tau[undriven] == 0.0).all()
    assert forces.degrees_of_freedom == len(here)
    few = drives == "too few"
    assert forces.rank == len(here) - few and forces.achievable != few
    assert forces.squeezing == len(forces.actuated) - forces.rank
    if name == "nested":  # the kernel of forward dynamics takes long to make
        return
    back = lw.forward_dynamics(mech, q, v, forces.tau)
    off = np.abs(back - vdot).max() / np.abs(vdot).max()
    if few:
        assert off > 1e-3
        return
    # The reference solves with Ω, whose condition is the square of that of J_c.
    assert off < 1e-8
    lam = lw.loops.constraint_forces(mech, q, v, forces.tau)
    assert np.abs(forces.constraint_forces - lam).max() < 1e-7 * np.abs(lam).max()


@pytest.mark.parametrize("name", LINKAGES)
def test_the_least_of_all(name):
    """With all driven: τ has no part that moves nothing, λ none that is redundant."""
    mech, q, v, here, rate = motion(name, seed=1)
    w = np.random.default_rng(3).uniform(0.1, 10.0, mech.nv)
    forces = lw.loops.drive_forces(mech, q, v, rate, independent=here, weights=w)
    J_c = lw.loops.constraint_jacobian(mech, q)
    rank = LINKAGES[name] or rank_of(J_c)
    # τ + J_c* μ does as well for any μ. Least Σ w τ²: w τ is orthogonal to the range of J_c*.
    blocked = np.linalg.svd(J_c)[2][:rank]
    assert np.abs(blocked @ (w * forces.tau)).max() < 1e-10 * np.abs(w * forces.tau).max()
    redundant = np.linalg.svd(J_c.T)[2][rank:]
    assert np.abs(redundant @ forces.constraint_forces).max(initial=0.0) < 1e-10 * (
        1.0 + np.abs(forces.constraint_forces).max()
    )


def test_what_is_missing_is_the_least():
    """Fewer drives than motions: least squares of what is left over, in one unit."""
    mech, q, v, here, rate = motion("stewart", seed=2)
    names = ["slider_1", "slider_3", "slider_4"]
    forces = lw.loops.drive_forces(mech, q, v, rate, independent=here, actuated=names)
    columns = lw.dynamics.velocity_space.scale(mech).columns
    J_c = lw.loops.constraint_jacobian(mech, q) * columns
    free = np.linalg.svd(J_c)[2][18:].T
    vdot = here.acceleration(v, rate)
    request = free.T @ (columns * lw.inverse_dynamics(mech, q, v, vdot))
    act = (columns[:, None] * free)[[mech.v_slice(x).start for x in names]].T
    tau, (left,), rank, _ = np.linalg.lstsq(act, request, rcond=None)
    assert forces.rank == rank == 3 and not forces.achievable
    mine = [forces.tau[mech.v_slice(x)][0] for x in names]
    assert np.abs(np.array(mine) - tau).max() < 1e-10 * np.abs(tau).max()
    assert abs(np.linalg.norm(columns * forces.missing) ** 2 - left) < 1e-9 * left


@pytest.mark.parametrize("name", ["four_bar", "peaucellier"])
def test_holding_by_virtual_work(name):
    """The crank's torque at rest is the slope of the potential energy over its angle."""
    mech, q = linkage(name)
    forces = lw.loops.holding_forces(mech, q, actuated=DRIVEN[name])
    assert forces.achievable
    crank, h, heights = mech.q_slice("crank").start, 1e-4, []
    for s in (h, -h):
        guess = q.copy()
        guess[crank] += s
        there = lw.loops.assemble(mech, guess, hold=["crank"]).required()
        heights.append(lw.dynamics.potential_energy(mech, there))
    slope = (heights[0] - heights[1]) / (2.0 * h)
    # Truncation h² / 6 times the third derivative, of the order of the energy.
    assert abs(forces.tau[mech.v_slice("crank").start] - slope) < 1e-6 * max(1.0, abs(slope))
    assert abs(slope) > 1e-3


def test_legs_carry_a_platform():
    """At neutral all legs are alike and carry the platform together: a sixth of it each."""
    mech = lw.models.stewart()
    q = mech.neutral()
    forces = lw.loops.holding_forces(mech, q, actuated=DRIVEN["stewart"])
    push = forces.tau[[mech.v_slice(x).start for x in DRIVEN["stewart"]]]
    assert np.abs(push - push[0]).max() < 1e-10 * push[0] and push[0] > 0.0
    # By virtual work of a step straight up, all sliders alike by symmetry.
    up = lw.loops.independent_coordinates(mech, q, prefer=["platform"]).velocity(
        [0, 0, 0, 0, 0, 1.0]
    )
    lifted = lw.gravity_force(mech, q) @ up
    assert abs(push[0] * up[mech.v_slice("slider_1")][0] * 6.0 - lifted) < 1e-9 * lifted


def test_arms_share_a_load():
    """Both arms alike: halves, and a dear drive is spared."""
    mech = lw.models.dual_arm()
    q = mech.neutral()
    arms = [body.hinge_name for body in mech.bodies if body.name != "object"]
    even = lw.loops.holding_forces(mech, q, actuated=arms)
    assert even.achievable and even.squeezing == 6
    first, second = (
        np.array([even.tau[mech.v_slice(x).start] for x in arms if x.startswith(f"arm_{k}_")])
        for k in (1, 2)
    )
    assert np.abs(first - second).max() < 1e-9 * np.abs(first).max()
    dear = max(arms, key=lambda x: abs(even.tau[mech.v_slice(x).start]))
    spared = lw.loops.holding_forces(mech, q, actuated=arms, weights={dear: 100.0})
    at = mech.v_slice(dear).start
    assert abs(spared.tau[at]) < 0.5 * abs(even.tau[at]) and spared.achievable


def test_outside_forces_are_met():
    """A push at the platform changes the legs' forces by the Jacobian's transpose."""
    mech, q = linkage("stewart")
    f = np.array([1.0, -2.0, 3.0, 10.0, 20.0, -30.0])
    names = DRIVEN["stewart"]
    bare, pushed = (
        lw.loops.holding_forces(mech, q, actuated=names, forces=x).tau
        for x in (None, {"centre": f})
    )
    X = lw.loops.independent_coordinates(mech, q, prefer=names).map
    expected = -(lw.jacobian(mech, q, "centre") @ X).T @ f
    at = [mech.v_slice(x).start for x in names]
    assert np.abs((pushed - bare)[at] - expected).max() < 1e-11 * np.abs(expected).max()


def test_batches_are_rows():
    mech, q, v, here, rate = motion("dual_arm")
    vdot = here.acceleration(v, rate)
    many = [np.stack([q, q]), np.stack([v, 0.0 * v]), np.stack([vdot, 0.0 * vdot])]
    forces = lw.loops.drive_forces(mech, *many)
    assert len(forces) == 2 and forces.achievable.shape == (2,)
    first = lw.loops.drive_forces(mech, q, v, vdot)
    rest = lw.loops.holding_forces(mech, q)
    for i, one in enumerate((first, rest)):
        assert np.abs(forces[i].tau - one.tau).max() < 1e-11 * np.abs(one.tau).max()
        assert np.abs(forces[i].constraint_forces - one.constraint_forces).max() < 1e-9
    assert lw.loops.holding_forces(mech, np.zeros((0, mech.nq))).tau.shape == (0, mech.nv)


def test_no_drive_and_no_loop():
    mech, q, v, here, rate = motion("four_bar")
    none = lw.loops.drive_forces(mech, q, v, rate, independent=here, actuated=[])
    assert (none.tau == 0.0).all() and none.rank == 0 and not none.achievable
    arm = lw.models.puma560()
    q, v, vdot = arm.random(0), arm.random_velocity(1), arm.random_velocity(2)
    open_ = lw.loops.drive_forces(arm, q, v, vdot)
    expected = lw.inverse_dynamics(arm, q, v, vdot)
    assert np.abs(open_.tau - expected).max() < 1e-13 * np.abs(expected).max()
    assert open_.constraint_forces.shape == (0,)


def test_a_singular_configuration_is_finite():
    """Flat, a parallelogram's crank acts on one of two velocities; with the rocker, on both."""
    mech, q = parallelogram()
    one = lw.loops.holding_forces(mech, q, actuated=["crank"])
    both = lw.loops.holding_forces(mech, q, actuated=["crank", "rocker"])
    assert one.rank == 1 and one.degrees_of_freedom == 2 and both.rank == 2
    assert both.achievable and not one.achievable
    assert np.isfinite(one.tau).all() and np.isfinite(one.constraint_forces).all()
    still = np.zeros(3)
    assert balance(mech, q, still, still, both) < 1e-12


def test_motions_that_break_loops_are_refused():
    mech, q, v, here, rate = motion("four_bar")
    vdot = here.acceleration(v, rate)
    with pytest.raises(ClosureError, match="v breaks loop 'coupler_rocker' of 'four_bar'"):
        lw.loops.drive_forces(mech, q, v + np.array([0.1, 0.0, 0.0]), vdot)
    with pytest.raises(ClosureError, match="vdot breaks loop 'coupler_rocker'"):
        lw.loops.drive_forces(mech, q, v, 0.0 * vdot)
    with pytest.raises(ClosureError, match="in state 1 of the batch"):
        lw.loops.drive_forces(mech, np.stack([q, q]), v, np.stack([vdot, vdot + 1.0]))
    mech, q, v, here, rate = motion("couplings")
    dependent = np.zeros(mech.nv)
    dependent[mech.v_slice(mech.couplings[0].dependent)] = 1.0
    with pytest.raises(ClosureError, match="v breaks"):
        lw.loops.drive_forces(mech, q, v + dependent, here.acceleration(v, rate))


def test_bad_arguments():
    mech, q = linkage("four_bar")
    with pytest.raises(UnknownNameError, match="motor"):
        lw.loops.holding_forces(mech, q, actuated=["motor"])
    with pytest.raises(ShapeError, match="there are 1 driven"):
        lw.loops.holding_forces(mech, q, actuated=["crank"], weights=[1.0, 2.0])
    with pytest.raises(ModelError, match="positive"):
        lw.loops.holding_forces(mech, q, actuated=["crank"], weights=[-1.0])
    with pytest.raises(ModelError, match="'rocker', which is not driven"):
        lw.loops.holding_forces(mech, q, actuated=["crank"], weights={"rocker": 1.0})
    with pytest.raises(ModelError, match="independent is 'crank'; it must be"):
        lw.loops.drive_forces(mech, q, np.zeros(3), np.zeros(3), independent="crank")
    with pytest.raises(ModelError, match="tolerance is 'x'"):
        lw.loops.holding_forces(mech, q, tolerance="x")
