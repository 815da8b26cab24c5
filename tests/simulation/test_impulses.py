"""Impulses of contacts, limits and friction together obey their laws in every step, or say so."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import UnsolvedWarning
from linkwise.simulation import Ground, ground_contacts, put_on_ground

STEP, MU = 1e-3, 0.5


@pytest.fixture(scope="module")
def falling():
    """A quadruped slides on its feet and sinks to the ends of its joints."""
    mech = lw.models.quadruped()
    feet = ground_contacts(mech, Ground(friction=MU), bodies=[x.name for x in mech.nodes])
    v = np.zeros(mech.nv)
    v[3] = 1.0
    return mech, feet, put_on_ground(mech, contacts=feet), v


def run(falling, **options):
    mech, feet, q, v = falling
    return lw.rollout(
        mech, q, v, duration=0.3, step=STEP, integrator="implicit", contacts=feet, **options
    )


def after(runs):
    """Velocities after each step, in the axes before it (n, nv)."""
    q, v = runs.q, runs.v[1:].copy()
    pose = lw.forward_kinematics(runs.mech, q, "trunk").rot
    turn = pose[:-1].transpose(0, 2, 1) @ pose[1:]
    for part in (slice(0, 3), slice(3, 6)):
        v[:, part] = (turn @ v[:, part, None])[..., 0]
    return v


def broken(falling, runs):
    """By how much the laws of contacts and limits are broken [m/s], with numbers of the test."""
    mech, feet, *_ = falling
    q, v, worst = runs.q[:-1], after(runs), 0.0
    for i, foot in enumerate(feet):
        pose = lw.forward_kinematics(mech, q, foot.body)
        J = lw.jacobian(mech, q, foot.body)
        axes = pose.rot
        centre = pose.p + axes @ np.array(foot.point)
        gap = centre[:, 2] - foot.radius
        twist = (J @ v[..., None])[..., 0]
        turning, linear = (
            (axes @ twist[:, part, None])[..., 0] for part in (slice(3), slice(3, 6))
        )
        arm = centre - pose.p - [0.0, 0.0, foot.radius]
        u = linear + np.cross(turning, arm)
        force = runs.contact_forces[1:, i]
        room = np.where(gap > 0.0, gap / STEP, np.maximum(0.2 * gap / STEP, -1.0))
        closing, push = u[:, 2] + room, force[:, 2]
        assert (push >= 0.0).all()
        worst = max(worst, -closing.min(), np.abs(closing[push > 0.0]).max())
        size, slip = np.hypot(*force[:, :2].T), np.hypot(*u[:, :2].T)
        assert (size <= MU * push * (1.0 + 1e-9)).all()
        sticks = size < MU * push * (1.0 - 1e-6)
        worst = max(worst, slip[sticks].max(initial=0.0))
        slides = (push > 0.0) & ~sticks
        along = -(force[slides, :2] * u[slides, :2]).sum(axis=1) / size[slides]
        worst = max(worst, (slip[slides] - along).max(initial=0.0))
    for k in range(7, mech.nq):
        room = np.stack([q[:, k] - mech.lower[k], mech.upper[k] - q[:, k]])
        room = np.where(room > 0.0, room, 0.2 * room) / STEP
        worst = max(worst, (-room[0] - v[:, k - 1]).max(), (v[:, k - 1] - room[1]).max())
    return worst


def test_the_laws_hold_in_every_step(falling):
    runs = run(falling)
    mech = falling[0]
    assert np.abs(runs.contact_forces).max() > 1000.0  # joints stop while feet touch
    assert (runs.q[-1, 7:] < mech.lower[7:] + 1e-6).any()
    assert broken(falling, runs) < 2e-4
    assert 0.0 < runs.unsolved[-1] <= 1e-4
    assert (runs.residual <= runs.unsolved).all()


def test_steps_that_are_cut_short_say_so(falling):
    with pytest.warns(UnsolvedWarning, match="'quadruped' did not find the impulses"):
        runs = run(falling, sweeps=2)
    assert runs.unsolved[-1] > 1e-3
    assert broken(falling, runs) > 1.0
    with pytest.raises(lw.errors.ModelError, match="solves for no impulses"):
        lw.rollout(falling[0], falling[2], duration=0.1, sweeps=20)
