"""Velocities that determine all others."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ShapeError, UnknownNameError
from tests.cases import DRIVEN, LINKAGES, linkage, parallelogram, rank_of
from tests.loops.random_loops import triangle


@pytest.mark.parametrize("name", LINKAGES)
def test_velocities_from_independent_ones(name):
    mech, q = linkage(name)
    coordinates = lw.loops.independent_coordinates(mech, q)
    J = lw.loops.constraint_jacobian(mech, q)
    assert len(coordinates) == mech.nv - (LINKAGES[name] or rank_of(J))
    chosen = np.random.default_rng(1).standard_normal(len(coordinates))
    v = coordinates.velocity(chosen)
    assert (v[coordinates.indices] == chosen).all()
    assert np.abs(J @ v).max() < 1e-12 * np.abs(v).max() * coordinates.condition
    assert coordinates.names == tuple(mech.velocity_names[j] for j in coordinates.indices)
    assert sorted([*coordinates.indices, *coordinates.dependent]) == list(range(mech.nv))
    assert coordinates.condition < 100.0  # pivots choose well
    many = coordinates.velocity(np.stack([chosen, 2.0 * chosen]))
    assert np.abs(many[1] - 2.0 * v).max() < 1e-13 * np.abs(v).max()


@pytest.mark.parametrize("name", LINKAGES)
def test_accelerations_by_differences(name):
    """v̇ = X v̇_i + x against the difference of v along the motion, of second order in 1e-4.

    The constraints' γ is not used: only how X changes from place to place.
    """
    mech, q = linkage(name)
    here = lw.loops.independent_coordinates(mech, q)
    rng = np.random.default_rng(2)
    slow, rate = 0.5 * rng.standard_normal((2, len(here)))
    v = here.velocity(slow)
    vdot = here.acceleration(v, rate)
    h, ends = 1e-4, []
    for s in (h, -h):
        there = lw.loops.project_position(mech, mech.integrate(q, v + 0.5 * s * vdot, s)).required()
        moved = lw.loops.independent_coordinates(mech, there, prefer=here.names)
        assert moved.names == here.names
        ends.append(moved.velocity(slow + s * rate))
    result = (ends[0] - ends[1]) / (2.0 * h)
    # Truncation is h² times third derivatives of the motion, which grow with the condition cubed.
    assert np.abs(result - vdot).max() < 1e-6 * max(1.0, np.abs(vdot).max())
    assert np.abs(
        lw.loops.constraint_jacobian(mech, q) @ vdot + lw.loops.constraint_bias(mech, q, v)
    ).max() < (1e-11 * max(1.0, np.abs(vdot).max()))
    assert (here.bias(v)[here.indices] == 0.0).all()


@pytest.mark.parametrize("name", DRIVEN)
def test_driven_ones_can_be_preferred(name):
    mech, q = linkage(name)
    coordinates = lw.loops.independent_coordinates(mech, q, prefer=DRIVEN[name])
    expected = [mech.v_slice(x).start for x in DRIVEN[name]]
    assert coordinates.indices.tolist() == sorted(expected) and coordinates.rejected == ()


def test_dependent_ones_are_rejected():
    mech, q = linkage("four_bar")
    coordinates = lw.loops.independent_coordinates(mech, q, prefer=["rocker", "crank"])
    assert coordinates.names == ("rocker_pin",) and coordinates.rejected == ("crank_pin",)
    both = lw.loops.independent_coordinates(*linkage("stewart"), prefer=["platform", "slider_2"])
    assert set(both.names) == {f"platform.{x}" for x in _six()} and both.rejected == ("slider_2",)
    one = lw.loops.independent_coordinates(*linkage("stewart"), prefer="platform.v_z")
    assert "platform.v_z" in one.names


def _six() -> list[str]:
    return [f"{kind}_{axis}" for kind in ("omega", "v") for axis in "xyz"]


def test_a_velocity_that_cannot_be_is_never_chosen():
    """At a dead centre the rocker stands still: the crank moves on, the rocker does not lead."""
    mech = lw.models.four_bar()
    # Crank and coupler in one line: they reach 0.6 m to the rocker's end, 0.4 m from D.
    angle = np.arccos((0.6**2 + 0.4**2 - 0.4**2) / (2.0 * 0.6 * 0.4))  # at A, over the ground
    q = lw.loops.assemble(mech, [0.5 * np.pi - angle, 0.0, 0.0], hold=["crank"]).required()
    coordinates = lw.loops.independent_coordinates(mech, q, prefer=["rocker"])
    # The closed configuration is a double root: found to the square root of rounding only.
    assert coordinates.rejected == ("rocker_pin",) or coordinates.condition > 1e4
    assert lw.loops.independent_coordinates(mech, q).names != ("rocker_pin",)


@pytest.mark.parametrize(("ratio", "leads"), [(0.7e-6, False), (1.5e-6, True)])
def test_a_velocity_that_hardly_moves_depends_on_others(ratio, leads):
    """The free velocities are (1, r) / √(1 + r²): r is what is left of the slow hinge."""
    ball = lw.SpatialInertia.solid_sphere(1.0, 0.1)
    b = lw.Builder("gear")
    for name in ("fast", "slow"):
        b.body(name, "world", lw.hinges.Pin((0, 0, 1)), hinge_name=f"{name}_pin", inertia=ball)
    b.couple("gear", "slow_pin", {"fast_pin": ratio})
    coordinates = lw.loops.independent_coordinates(b.build(), np.zeros(2), prefer=["slow"])
    assert coordinates.names == (("slow_pin",) if leads else ("fast_pin",))
    assert coordinates.rejected == (() if leads else ("slow_pin",))


def test_a_singular_configuration_has_more():
    mech, q = parallelogram()
    coordinates = lw.loops.independent_coordinates(mech, q)
    assert len(coordinates) == 2 and np.isfinite(coordinates.map).all()
    v = coordinates.velocity([0.3, -0.2])
    assert np.abs(lw.loops.constraint_jacobian(mech, q) @ v).max() < 1e-14
    assert np.isfinite(coordinates.acceleration(v, [0.0, 0.0])).all()


def test_none_or_all():
    mech = triangle(0.7)
    none = lw.loops.independent_coordinates(mech, lw.loops.assemble(mech).required())
    assert len(none) == 0 and none.map.shape == (2, 0) and none.condition == 1.0
    assert (none.velocity(np.zeros(0)) == 0.0).all()
    arm = lw.models.puma560()
    every = lw.loops.independent_coordinates(arm, arm.random(0))
    assert (every.map == np.eye(6)).all() and every.names == arm.velocity_names
    assert (every.bias(np.ones(6)) == 0.0).all()


def test_bad_arguments():
    mech, q = linkage("four_bar")
    with pytest.raises(UnknownNameError, match="did you mean 'crank"):
        lw.loops.independent_coordinates(mech, q, prefer=["crnk"])
    with pytest.raises(ShapeError, match=r"it must have shape \(1,\)"):
        lw.loops.independent_coordinates(mech, q).velocity([1.0, 2.0])
