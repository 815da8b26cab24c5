"""Errors of loops the short way, and states put back to where loops hold after a step."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.simulation.loop_keeper import Gap, settled
from linkwise.spatial import quaternion


def hinged(hinge):
    """Two free bodies, one joined to the other by a hinge in a loop, and turned frames there."""
    b = lw.Builder("hinged")
    inertia = lw.SpatialInertia.solid_box(1.0, (0.2, 0.3, 0.4))
    for name in ("one", "two"):
        b.body(name, hinge=lw.hinges.Free(), inertia=inertia)
    b.node("a", "one", lw.Pose.rpy((0.3, -0.7, 1.1), (0.1, 0.2, -0.1)))
    b.node("b", "two", lw.Pose.rpy((-0.2, 0.4, 2.0), (0.0, -0.2, 0.3)))
    b.loop("loop", "a", "b", hinge)
    return b.build()


@pytest.mark.parametrize(
    "hinge",
    [
        lw.hinges.Locked(),
        lw.hinges.Spherical(),
        lw.hinges.Pin((0.0, 1.0, 0.0)),
        lw.hinges.Pin((0.6, 0.0, -0.8)),
        lw.hinges.Universal((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
        lw.hinges.Prismatic((0.0, 0.0, 1.0)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("size", [1e-9, 1e-3, 0.3])
def test_errors_of_loops_the_short_way(hinge, size):
    """Against the search, with the hinge somewhere and the loop open by some size."""
    mech = hinged(hinge)
    rng = np.random.default_rng(7)
    wide = np.full(hinge.nq, np.inf)
    loop = mech.loops[0]
    for _ in range(5):
        q = mech.random(rng)
        theta = hinge.random(rng, -wide, wide)
        # Body two where the hinge puts it, then moved by a little.
        one = mech.pose(q, "a") @ hinge.pose(theta) @ mech.node("b").pose.inverse()
        q[mech.q_slice("two")] = lw.hinges.Free().integrate(
            np.concatenate([quaternion.from_matrix(one.rot), one.p]),
            size * rng.standard_normal(6),
        )
        gap = Gap(mech, q)
        np.testing.assert_allclose(gap.rows, lw.loops.constraint_error(mech, q), atol=1e-12)
        np.testing.assert_allclose(
            gap.loops, lw.loops.constraint_error(mech, q, per="loop"), atol=1e-12
        )
        assert gap.size > 0.01 * size
        off = gap.drift
        assert off.where == loop.name
        assert off.distance == pytest.approx(np.linalg.norm(gap.loops[0, 3:]))
        assert off.angle == pytest.approx(np.linalg.norm(gap.loops[0, :3]))


@pytest.mark.parametrize("name", ["four_bar", "peaucellier", "stewart", "biped"])
def test_a_state_settles_where_projection_puts_it(name):
    """The short way against the long one, with redundant constraints and without."""
    mech = getattr(lw.models, name)()
    rng = np.random.default_rng(1)
    v = lw.loops.project_velocity(mech, mech.neutral(), rng.standard_normal(mech.nv))
    closed = lw.loops.project_position(mech, mech.integrate(mech.neutral(), 0.1 * v)).required()
    # Drift as a step makes it: small, and along no pattern.
    q = mech.integrate(closed, 1e-8 * rng.standard_normal(mech.nv))
    off = lw.loops.project_velocity(mech, closed, v) + 1e-8 * rng.standard_normal(mech.nv)
    result = settled(mech, q, off, Gap(mech, q))
    far = lw.loops.project_position(mech, q, weight="mass").required()
    # Both are the nearest, up to the square of the drift and to what counts as closed.
    np.testing.assert_allclose(mech.difference(result[0], far), 0.0, atol=3e-12)
    np.testing.assert_allclose(result[1], lw.loops.project_velocity(mech, far, off), atol=1e-11)
    assert result[2].size < 1e-12
    # From far away the long way is taken.
    q = mech.integrate(closed, 1e-2 * rng.standard_normal(mech.nv))
    result = settled(mech, q, off, Gap(mech, q))
    assert np.abs(lw.loops.constraint_error(mech, result[0])).max() < 1e-10
