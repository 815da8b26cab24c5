"""Freedoms that are left, rows that are redundant, configurations that are singular."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, ShapeError
from linkwise.model.body import Loop
from tests.closed.linkages import LINKAGES, linkage, parallelogram, rank_of
from tests.closed.random_loops import looped, triangle

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
    found = lw.mobility(mech, q)
    assert (found.velocities, found.rows, found.rank, found.freedoms) == (nv, rows, rank, freedoms)
    assert found.gruebler == nv - rows and found.redundant == rows - rank
    assert not found.singular and found.motions == freedoms
    assert found.unique_accelerations
    assert found.unique_forces == found.well_posed == (rows == rank)
    assert found.error < 1e-11 and found.condition < 1e4


@pytest.mark.parametrize("name", LINKAGES)
def test_rank_by_differences(name):
    """The rank of the derivative of the errors themselves, by central differences of 1e-5.

    Rounding and truncation leave 1e-10; singular values of these linkages are above 1e-3.
    """
    mech, q = linkage(name)
    h, columns = 1e-5, []
    for unit in np.eye(mech.nv):
        ahead, behind = (lw.constraint_error(mech, mech.integrate(q, unit, s)) for s in (h, -h))
        columns.append((ahead - behind) / (2.0 * h))
    values = np.linalg.svd(np.stack(columns, axis=1), compute_uv=False)
    assert not ((values > 1e-8) & (values < 1e-4)).any(), "the test cannot tell"
    assert lw.mobility(mech, q).rank == int((values > 1e-6).sum())


@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_rank_does_not_depend_on_units(size):
    """Linkages of micrometres and of kilometres: metres and radians are never compared."""
    mech = lw.models.four_bar(
        ground=0.4 * size, crank=0.1 * size, coupler=0.5 * size, rocker=0.4 * size
    )
    found = lw.mobility(mech, mech.neutral())
    assert (found.rank, found.freedoms, found.singular) == (2, 1, False)


def test_redundant_rows_are_said():
    mech, q = linkage("four_bar")
    found = lw.mobility(mech, q)
    assert found.redundancies == (
        "nothing moves loop 'coupler_rocker' by turning about x, turning about z, moving along y",
    )
    assert str(found).splitlines() == [
        "four_bar: 1 freedom in a tree of 3, 5 rows of rank 2; Grübler's count is -2",
        "  redundant rows: 3; " + found.redundancies[0],
        "  accelerations are unique, constraint forces are not unique (those of least norm are "
        "taken)",
    ]
    assert repr(found) == "<Mobility of 'four_bar': 1 freedom, rank 2>"


def test_a_linkage_that_is_redundant_only_where_it_is_closed():
    """Bennett's bars have pins that are nowhere parallel: a step off, all rows are independent."""
    mech, q = linkage("bennett")
    assert lw.mobility(mech, q).redundancies == ("3 combinations of the rows of loop 'fourth'",)
    off = mech.integrate(q, np.array([0.01, -0.02, 0.02]))
    assert rank_of(lw.constraint_jacobian(mech, off)) == 3


def test_a_loop_said_twice_is_redundant():
    mech, q = looped(6, ("spherical",), n=4, hinges=("spherical", "pin", "translation"))
    (loop,) = mech.loops
    again = replace(mech, loops=(loop, Loop("again", loop.node_a, loop.node_b, loop.hinge)))
    once, twice = lw.mobility(mech, q), lw.mobility(again, q)
    assert once.rank == 3 and twice.rank == 3 and twice.redundant == 3
    assert twice.redundancies == (
        f"3 combinations of the rows of loop {loop.name!r}, loop 'again'",
    )
    assert twice.freedoms == once.freedoms and not twice.singular


def test_a_folded_parallelogram_is_singular():
    """Two branches meet: two independent velocities, of which either goes on, but not both."""
    mech, q = parallelogram()
    assert np.abs(lw.constraint_error(mech, q)).max() < 1e-15
    found = lw.mobility(mech, q)
    assert (found.rank, found.generic_rank) == (1, 2)
    assert found.singular and found.freedoms == 2 and found.motions == 1
    assert "singular: rank 1 here, 2 nearby" in str(found)
    near = lw.mobility(mech, lw.assemble(mech, q, hold={"crank": 0.5 * np.pi + 1e-5}).q)
    assert not near.singular and near.condition > 1e4
    assert "near a singular configuration" in str(near)
    assert not lw.mobility(mech, q, nearby=0).singular  # not looked for


def test_a_stretched_triangle_shakes():
    """Bars of 0.5 m a metre apart: no motion at all, but one velocity to first order."""
    found = lw.mobility(triangle(1.0), np.array([0.5 * np.pi, -0.5 * np.pi]))
    assert found.singular and found.freedoms == 1 and found.motions == 0


def test_open_loops_are_said():
    mech, q = linkage("four_bar")
    found = lw.mobility(mech, q + np.array([0.0, 0.01, 0.0]))
    assert found.error > 1e-3 and "loops are open" in str(found)
    assert found.rank == 2


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
    found = lw.mobility(tilted, tilted.neutral())
    assert found.rank == 2 and found.error > 1e-8


def test_what_no_mass_resists_has_no_acceleration():
    light = triangle(0.7)
    light = replace(
        light,
        loops=(),
        bodies=tuple(replace(b, inertia=lw.SpatialInertia.zero()) for b in light.bodies),
    )
    found = lw.mobility(light, np.zeros(2))
    assert not found.unique_accelerations and not found.well_posed
    assert "no mass resists" in str(found)


def test_without_constraints_all_is_free():
    arm = lw.models.puma560()
    found = lw.mobility(arm, arm.random(0))
    assert (found.rows, found.rank, found.freedoms, found.gruebler) == (0, 0, 6, 6)
    assert found.well_posed and found.condition == 1.0 and not found.singular


def test_no_freedom_is_left():
    mech = triangle(0.7)
    found = lw.mobility(mech, lw.assemble(mech).required())
    assert found.freedoms == 0 and found.unique_accelerations and not found.singular


def test_bad_arguments():
    mech, q = linkage("four_bar")
    with pytest.raises(ShapeError, match="this is about one state"):
        lw.mobility(mech, np.stack([q, q]))
    with pytest.raises(ModelError, match="nearby is -1"):
        lw.mobility(mech, q, nearby=-1)
    with pytest.raises(ModelError, match="tolerance is 2"):
        lw.mobility(mech, q, tolerance=2.0)
