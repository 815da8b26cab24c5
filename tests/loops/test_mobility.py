"""Freedoms that are left, rows that are redundant, configurations that are singular."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, ShapeError
from linkwise.model.body import Loop
from tests.cases import LINKAGES, linkage, parallelogram, rank_of
from tests.loops.random_loops import looped, triangle

COUNTS = {
    # nv, rows, rank, freedoms as the models' own descriptions say
    "four_bar": (3, 5, 2, 1),
    "peaucellier": (7, 15, 6, 1),
    "bennett": (3, 5, 2, 1),
    "stewart": (24, 18, 18, 6),
    "dual_arm": (20, 12, 12, 8),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_of_known_linkages(name):
    mech, q = linkage(name)
    nv, rows, rank, freedoms = COUNTS[name]
    mobility = lw.loops.mobility(mech, q)
    assert (mobility.velocities, mobility.rows, mobility.rank, mobility.degrees_of_freedom) == (
        nv,
        rows,
        rank,
        freedoms,
    )
    assert mobility.gruebler == nv - rows and mobility.redundant == rows - rank
    assert not mobility.singular and mobility.motions == freedoms
    assert mobility.unique_accelerations
    assert mobility.unique_forces == mobility.well_posed == (rows == rank)
    assert mobility.error < 1e-11 and mobility.condition < 1e4


@pytest.mark.parametrize("name", LINKAGES)
def test_rank_by_differences(name):
    """The rank of the derivative of the errors themselves, by central differences of 1e-5.

    Rounding and truncation leave 1e-10; singular values of these linkages are above 1e-3.
    """
    mech, q = linkage(name)
    h, columns = 1e-5, []
    for unit in np.eye(mech.nv):
        ahead, behind = (
            lw.loops.constraint_error(mech, mech.integrate(q, unit, s)) for s in (h, -h)
        )
        columns.append((ahead - behind) / (2.0 * h))
    values = np.linalg.svd(np.stack(columns, axis=1), compute_uv=False)
    assert not ((values > 1e-8) & (values < 1e-4)).any(), "the test cannot tell"
    assert lw.loops.mobility(mech, q).rank == int((values > 1e-6).sum())


@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_rank_does_not_depend_on_units(size):
    """Linkages of micrometres and of kilometres: metres and radians are never compared."""
    mech = lw.models.four_bar(
        ground=0.4 * size, crank=0.1 * size, coupler=0.5 * size, rocker=0.4 * size
    )
    mobility = lw.loops.mobility(mech, mech.neutral())
    assert (mobility.rank, mobility.degrees_of_freedom, mobility.singular) == (2, 1, False)


def test_redundant_rows_are_said():
    mech, q = linkage("four_bar")
    mobility = lw.loops.mobility(mech, q)
    assert mobility.redundancies == (
        "nothing moves loop 'coupler_rocker' by turning about x, turning about z, moving along y",
    )
    assert str(mobility).splitlines() == [
        "four_bar: 1 degree of freedom in a tree of 3, 5 rows of rank 2; Grübler's count is -2",
        "  redundant rows: 3; " + mobility.redundancies[0],
        "  accelerations are unique, constraint forces are not unique (those of least norm are "
        "taken)",
    ]
    assert repr(mobility) == "<Mobility of 'four_bar': 1 degree of freedom, rank 2>"


def test_a_linkage_that_is_redundant_only_where_it_is_closed():
    """Bennett's bars have pins that are nowhere parallel: a step off, all rows are independent."""
    mech, q = linkage("bennett")
    assert lw.loops.mobility(mech, q).redundancies == (
        "3 combinations of the rows of loop 'fourth'",
    )
    off = mech.integrate(q, np.array([0.01, -0.02, 0.02]))
    assert rank_of(lw.loops.constraint_jacobian(mech, off)) == 3


def test_a_loop_said_twice_is_redundant():
    mech, q = looped(6, ("spherical",), n=4, hinges=("spherical", "pin", "translation"))
    (loop,) = mech.loops
    again = replace(mech, loops=(loop, Loop("again", loop.node_a, loop.node_b, loop.hinge)))
    once, twice = lw.loops.mobility(mech, q), lw.loops.mobility(again, q)
    assert once.rank == 3 and twice.rank == 3 and twice.redundant == 3
    assert twice.redundancies == (
        f"3 combinations of the rows of loop {loop.name!r}, loop 'again'",
    )
    assert twice.degrees_of_freedom == once.degrees_of_freedom and not twice.singular


def test_a_folded_parallelogram_is_singular():
    """Two branches meet: two independent velocities, of which either goes on, but not both."""
    mech, q = parallelogram()
    assert np.abs(lw.loops.constraint_error(mech, q)).max() < 1e-15
    mobility = lw.loops.mobility(mech, q)
    assert (mobility.rank, mobility.generic_rank) == (1, 2)
    assert mobility.singular and mobility.degrees_of_freedom == 2 and mobility.motions == 1
    assert "singular: rank 1 here, 2 nearby" in str(mobility)
    near = lw.loops.mobility(mech, lw.loops.assemble(mech, q, hold={"crank": 0.5 * np.pi + 1e-5}).q)
    assert not near.singular and near.condition > 1e4
    assert "near a singular configuration" in str(near)
    assert not lw.loops.mobility(mech, q, nearby=0).singular  # not looked for


def test_a_stretched_triangle_shakes():
    """Bars of 0.5 m a metre apart: no motion at all, but one velocity to first order."""
    mobility = lw.loops.mobility(triangle(1.0), np.array([0.5 * np.pi, -0.5 * np.pi]))
    assert mobility.singular and mobility.degrees_of_freedom == 1 and mobility.motions == 0


def test_open_loops_are_said():
    mech, q = linkage("four_bar")
    mobility = lw.loops.mobility(mech, q + np.array([0.0, 0.01, 0.0]))
    assert mobility.error > 1e-3 and "loops are open" in str(mobility)
    assert mobility.rank == 2


def test_rows_that_are_nearly_closed_are_not_counted_twice():
    """Out of its plane by 1e-6, a redundant row of a linkage is independent by 1e-6: no freedom."""
    tilted = replace(
        lw.models.four_bar(),
        nodes=tuple(
            replace(node, pose=node.pose @ lw.Pose.rpy((1e-7, 0.0, 2e-7)))
            if node.name == "rocker_end"
            else node
            for node in lw.models.four_bar().nodes
        ),
    )
    mobility = lw.loops.mobility(tilted, tilted.neutral())
    assert mobility.rank == 2 and mobility.error > 1e-8


def swing(
    eps: float,
    middle: lw.hinges.Hinge | None = None,
    bolt: lw.hinges.Hinge | None = None,
    turned: float = 0.0,
) -> lw.Mechanism:
    """A four-bar linkage with one axis out of parallel by `eps` [rad], or one frame by `turned`."""
    pin = lw.hinges.Pin((0, 1, 0))
    rod = lw.SpatialInertia.solid_cylinder(1.0, 0.02, 0.5).moved(lw.Pose.translation((0, 0, 0.25)))
    b = lw.Builder("swing")
    b.body("left", hinge=pin, inertia=rod)
    b.body("right", hinge=lw.hinges.Pin((eps, 1, 0)), inboard=(0.6, 0, 0), inertia=rod)
    b.body("seat", "left", middle or pin, inboard=(0, 0, 0.5), inertia=rod)
    b.node("seat end", "seat", lw.Pose.rpy((0, 0.6, 0), (0, 0, 0.6)))
    b.node("right end", "right", lw.Pose.rpy((turned, 0.3, 0), (0, 0, 0.5)))
    b.loop("bolt", "seat end", "right end", bolt or pin)
    return b.build()


@pytest.mark.parametrize("eps", [1e-2, 1e-5, 1e-8, 1e-10])
def test_axes_that_are_nearly_parallel_are_doubtful(eps):
    """Mobility counts the plane's freedom, the dynamics takes the rows as they are: it is told."""
    mech, plane = swing(eps), swing(0.0)
    q = lw.loops.assemble(mech, q0=[0.3, 0.3, 1.2], tolerance=max(eps, 1e-12)).q
    result, tau = lw.loops.mobility(mech, q), np.array([1.0, 0.0, 0.0])
    assert (result.rank, result.degrees_of_freedom, result.doubtful) == (2, 1, 1)
    assert 0.1 * eps < result.doubt < eps
    assert not result.unique_accelerations and not result.well_posed and result.inertia
    assert "doubtful: 1 row nearly depends on others (relative singular value" in str(result)
    assert "takes it as it is, and then 0 degrees of freedom are left" in str(result)
    assert "accelerations are unique only with the doubtful rows" in str(result)
    # And so it is: locked, where in the plane it moves.
    locked, moving = (lw.forward_dynamics(m, q, 0.0 * tau, tau) for m in (mech, plane))
    assert np.abs(moving).max() > 1.0
    assert np.abs(locked).max() < 1e-3 * np.abs(moving).max()


def test_a_rounded_angle_of_a_frame_is_doubtful():
    """rpy = -1.5708 for -pi/2: off by 3.7e-6 rad, and so is the axis of the loop's pin."""
    mech = swing(0.0, turned=3.7e-6)
    mobility = lw.loops.mobility(
        mech, lw.loops.assemble(mech, q0=[0.3, 0.3, 1.2], tolerance=1e-5).q
    )
    assert mobility.error > 1e-6 and mobility.degrees_of_freedom == 1
    assert (
        mobility.doubtful == 1
        and 1e-7 < mobility.doubt < 1e-5
        and not mobility.unique_accelerations
    )


def test_hinges_that_block_less_take_the_doubt_away():
    """What the report advises: a ball for one pin and a cylindrical hinge for another."""
    plane, tau = swing(0.0), np.array([1.0, 0.0, 0.0, 0.0])
    q = lw.loops.assemble(plane, q0=[0.3, 0.3, 1.2]).required()
    expected = lw.forward_dynamics(plane, q, np.zeros(3), tau[:3])
    mech = swing(1e-5, lw.hinges.Cylindrical((0, 1, 0)), lw.hinges.Spherical())
    q = lw.loops.assemble(mech, q0=[*q, 0.0]).required()
    mobility = lw.loops.mobility(mech, q)
    assert (mobility.degrees_of_freedom, mobility.doubtful, mobility.redundant) == (
        1,
        0,
        0,
    ) and mobility.well_posed
    given = lw.forward_dynamics(mech, q, np.zeros(4), tau)
    # An axis off by 1e-5 changes the motion by about as much.
    assert np.abs(given[:3] - expected).max() < 1e-4 * np.abs(expected).max()


@pytest.mark.parametrize("name", LINKAGES)
def test_linkages_that_are_redundant_exactly_are_not_doubtful(name):
    mobility = lw.loops.mobility(*linkage(name))
    assert mobility.doubtful == 0 and mobility.doubt == 0.0 and "doubt" not in str(mobility)


@pytest.mark.parametrize("off", [0.0, 1e-12, 1e-10, 1e-9, 1e-7, 1e-6, 1e-5])
def test_doubt_is_told_where_accelerations_change(off):
    """Bennett's linkage off its closed place by so much: a combination of rows gets independent."""
    mech, q = linkage("bennett")
    tau, still = np.array([1.0, 0.0, 0.0]), np.zeros(3)
    near = q + off * np.array([1.0, -2.0, 2.0])
    mobility = lw.loops.mobility(mech, near)
    closed, moved = (lw.forward_dynamics(mech, x, still, tau) for x in (q, near))
    changed = np.abs(moved - closed).max() / np.abs(closed).max()
    assert mobility.degrees_of_freedom == 1 and mobility.doubtful == int(changed > 1e-4)


@pytest.mark.parametrize("angle", [1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7])
def test_digits_are_lost_with_the_square_of_the_condition(angle):
    """A parallelogram nearly flat, against its own freedom: v = z y with a constant z.

    So z* 𝓜 z ẏ = z* (τ - C), exactly, and without J_c.
    """
    pin, t = lw.hinges.Pin((0, 1, 0)), lw.Pose.rpy((0.0, 0.25 * np.pi, 0.0))
    bar = lw.SpatialInertia.solid_cylinder(1.0, 0.02, 0.5)
    bar = bar.moved(lw.Pose.rpy((0, 0.5 * np.pi, 0), (0.25, 0, 0)))
    b = lw.Builder("flat")
    b.body("left", hinge=pin, inertia=bar)
    b.body("top", "left", pin, inboard=(0.5, 0, 0), inertia=bar)
    b.body("right", hinge=pin, inboard=(1.0, 0, 0), inertia=bar)
    b.node("top end", "top", lw.Pose.translation((1.0, 0, 0)) @ t)
    b.node("right end", "right", lw.Pose.translation((0.5, 0, 0)) @ t)
    b.loop("bolt", "top end", "right end", pin)
    mech, z, tau = b.build(), np.array([1.0, -1.0, 1.0]), np.array([1.0, 0.3, 0.0])
    q = angle * z
    rate = z @ (tau - lw.bias_force(mech, q, z)) / (z @ lw.mass_matrix(mech, q) @ z)
    given, result = (
        lw.forward_dynamics(mech, q, z, tau),
        lw.loops.mobility(mech, q),
    )
    assert result.rank == 2 and 0.1 < result.condition * angle < 10.0
    assert np.abs(given - rate * z).max() < result.accuracy * abs(rate)
    assert ("digits are lost with its square" in str(result)) == (angle < 3e-4)


def test_what_no_mass_resists_has_no_acceleration():
    light = triangle(0.7)
    light = replace(
        light,
        loops=(),
        bodies=tuple(replace(b, inertia=lw.SpatialInertia.zero()) for b in light.bodies),
    )
    mobility = lw.loops.mobility(light, np.zeros(2))
    assert not mobility.unique_accelerations and not mobility.well_posed
    assert "no mass resists" in str(mobility)


def test_without_constraints_all_is_free():
    arm = lw.models.puma560()
    mobility = lw.loops.mobility(arm, arm.random(0))
    assert (mobility.rows, mobility.rank, mobility.degrees_of_freedom, mobility.gruebler) == (
        0,
        0,
        6,
        6,
    )
    assert mobility.well_posed and mobility.condition == 1.0 and not mobility.singular


def test_no_freedom_is_left():
    mech = triangle(0.7)
    mobility = lw.loops.mobility(mech, lw.loops.assemble(mech).required())
    assert (
        mobility.degrees_of_freedom == 0 and mobility.unique_accelerations and not mobility.singular
    )


def test_bad_arguments():
    mech, q = linkage("four_bar")
    with pytest.raises(ShapeError, match="this takes one state"):
        lw.loops.mobility(mech, np.stack([q, q]))
    with pytest.raises(ModelError, match="nearby is -1"):
        lw.loops.mobility(mech, q, nearby=-1)
    with pytest.raises(ModelError, match="nearby is 'x'"):
        lw.loops.mobility(mech, q, nearby="x")
    for tolerance in (2.0, 0.0, -1e-9, np.nan, "x", None):
        with pytest.raises(ModelError, match=f"tolerance is {tolerance!r}; it must be a"):
            lw.loops.mobility(mech, q, tolerance=tolerance)
    with pytest.raises(ModelError, match="tolerance is 'x'"):
        lw.loops.independent_coordinates(mech, q, tolerance="x")
