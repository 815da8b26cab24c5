"""Loops that are singular in a configuration are told of; those that are redundant are not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.scalar import status
from linkwise.errors import RankWarning
from linkwise.spatial.array import Array
from tests.cases import LINKAGES, linkage

PIN = lw.hinges.Pin((0, 1, 0))
RIGHT = 0.5 * np.pi


def bars(ground: float, crank: float, coupler: float, rocker: float) -> lw.Mechanism:
    return lw.models.four_bar(ground=ground, crank=crank, coupler=coupler, rocker=rocker)


def flat(e: float) -> Array:
    """Bars 1, 2, 1 on one line, turned by e as a parallelogram."""
    return np.array([RIGHT + e, -RIGHT - e, RIGHT + e])


def crank_and_slider() -> lw.Mechanism:
    b = lw.Builder("crank and slider")
    rod = lw.SpatialInertia.solid_cylinder(0.5, 0.02, 0.3)
    b.body("crank", hinge=PIN, inertia=rod)
    b.body("rod", "crank", PIN, inboard=(0.1, 0, 0), inertia=rod)
    b.body("piston", hinge=lw.hinges.Prismatic((1, 0, 0)), inertia=rod)
    b.node("end", "rod", (0.4, 0, 0))
    b.loop("gudgeon", "end", "piston", PIN)
    return b.build()


def moved(mech: lw.Mechanism, q: Array, **options: Any) -> Array:
    return lw.forward_dynamics(mech, q, np.zeros(mech.nv), np.eye(mech.nv)[0], **options)


@pytest.mark.parametrize("first", [0.3, 0.0])
def test_a_flat_parallelogram_is_told(first: float) -> None:
    """Also where the first state of all is the singular one."""
    mech = bars(2.0, 1.0, 2.0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if first == 0.0 else "error")
        moved(mech, flat(first))
    with pytest.warns(RankWarning, match="'four_bar' are singular: .* not unique") as message:
        here = moved(mech, flat(0.0))
    assert message[0].filename == __file__ and np.isfinite(here).all()
    with pytest.warns(RankWarning, match="singular"):
        lw.forward_dynamics(mech, flat(0.0), np.zeros(3), np.ones(3))
    mobility = lw.loops.mobility(mech, flat(0.0))
    assert mobility.singular and not mobility.unique_accelerations and not mobility.well_posed
    assert "accelerations are not unique (the rank drops here" in str(mobility)


def test_beside_it_the_numbers_are_those_of_the_limit() -> None:
    """v̇ = (1, −1, 1) a, with a from the energy of the parallelogram; no warning, no jump."""
    mech = bars(2.0, 1.0, 2.0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        far, near = moved(mech, flat(1e-3)), moved(mech, flat(1e-8))
    way = np.array([1.0, -1.0, 1.0])
    mass = lw.mass_matrix(
        mech,
        flat(0.0),
    )
    force = np.eye(3)[0] - lw.gravity_force(mech, flat(0.0))
    limit = way * float(way @ force) / float(way @ mass @ way)
    np.testing.assert_allclose(near, limit, rtol=1e-5)
    np.testing.assert_allclose(far, limit, rtol=1e-2)


def test_a_status_for_each_state_of_a_batch() -> None:
    mech = bars(2.0, 1.0, 2.0, 1.0)
    q = np.array([flat(0.3), flat(0.0), flat(-0.2), flat(0.0)])
    codes = np.ones(4, np.int32)
    result = moved(mech, q, status=codes)
    code = status.singular(mech)
    assert codes.tolist() == [0, code, 0, code]
    assert "singular here" in status.describe(code, mech)
    np.testing.assert_allclose(result[0], moved(mech, q[0]), rtol=1e-9)
    assert np.isfinite(result).all()
    with pytest.warns(RankWarning, match="singular in 2 of 4 states"):
        again = moved(mech, q)
    np.testing.assert_array_equal(again, result)
    code_alone = np.zeros((), np.int32)
    moved(mech, q[1], status=code_alone)
    assert code_alone == code


def test_a_rhombus_that_is_folded_is_told() -> None:
    mech = bars(0.5, 0.5, 0.5, 0.5)
    with pytest.warns(RankWarning, match="singular"):
        moved(mech, flat(0.0))
    assert lw.loops.mobility(mech, flat(0.0)).singular


@pytest.mark.few(3)
@pytest.mark.parametrize("name", LINKAGES)
def test_what_is_redundant_everywhere_is_no_trouble(name: str) -> None:
    """Planar and overconstrained linkages, a platform on six legs, arms that hold an object."""
    mech, q = linkage(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        moved(mech, q)
        for i in range(3):
            step = 0.02 * np.random.default_rng(i).standard_normal(mech.nv)
            other = lw.loops.project_position(mech, mech.integrate(q, step)).required()
            moved(mech, other, forces={mech.bodies[-1].name: np.ones(6)})


@pytest.mark.parametrize("angle", [0.0, np.pi])
def test_dead_centres_of_a_slider_are_no_singularities(angle: float) -> None:
    """The piston stands still there; the loop is as good as anywhere."""
    mech = crank_and_slider()
    q = lw.loops.assemble(mech, hold={mech.bodies[0].hinge_name: angle}).required()
    assert abs(lw.loops.constraint_error(mech, q)).max() < 1e-10
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        at = moved(mech, q)
    assert np.abs(at).max() > 1.0 and not lw.loops.mobility(mech, q).singular


def test_a_first_state_with_open_loops_does_not_mislead() -> None:
    """A Bennett linkage has another rank where its loop is open."""
    mech, q = linkage("bennett")
    mech = mech.without()  # a copy that knows nothing yet
    moved(mech, q + 0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        moved(mech, q)
