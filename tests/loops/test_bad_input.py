"""Closed chains given what cannot be: each answer is an error that names it, or a finite number."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ClosureError, SingularHingeError, TroubleWarning, UnknownNameError
from linkwise.spatial.array import Array

PIN = lw.hinges.Pin((0, 1, 0))
BALL = lw.SpatialInertia.solid_sphere(1.0, 0.1)


def bars(*, apart: float = 1.0, lengths: tuple[float, float] = (0.5, 0.5)) -> lw.Builder:
    """Two bars on the ground, their ends to be joined."""
    b = lw.Builder("bars")
    for name, at, length in zip(("left", "right"), (0.0, apart), lengths, strict=True):
        b.body(
            name,
            "world",
            PIN,
            inboard=(at, 0, 0),
            inertia=BALL.moved(lw.Pose.translation((0.1, 0, 0.2))),
        )
        b.node(f"{name} end", name, (0, 0, length))
    return b


FUNCTIONS: dict[str, Callable[[lw.Mechanism, Any, Any, Any], Any]] = {
    "loop_errors": lambda m, q, v, tau: lw.loops.constraint_error(m, q, per="loop"),
    "constraint_error": lambda m, q, v, tau: lw.loops.constraint_error(m, q),
    "constraint_jacobian": lambda m, q, v, tau: lw.loops.constraint_jacobian(m, q),
    "constraint_bias": lambda m, q, v, tau: lw.loops.constraint_bias(m, q, v),
    "constraint_inertia_inverse": lambda m, q, v, tau: lw.loops.constraint_inertia_inverse(m, q),
    "forward_dynamics": lw.forward_dynamics,
    "constraint_forces": lw.loops.constraint_forces,
    "project_position": lambda m, q, v, tau: lw.loops.project_position(m, q).required(),
    "project_velocity": lambda m, q, v, tau: lw.loops.project_velocity(m, q, v),
    "drive_forces": lambda m, q, v, tau: lw.loops.drive_forces(m, q, v, v).tau,
}
"""What takes a state, with an array as result."""

BY_VELOCITY = (
    *("constraint_bias", "forward_dynamics", "constraint_forces"),
    *("project_velocity", "drive_forces"),
)
BY_FORCE = ("forward_dynamics", "constraint_forces")


@pytest.fixture(scope="module")
def linkage() -> lw.Mechanism:
    return lw.models.four_bar()


def rest(mech: lw.Mechanism) -> tuple[Array, Array, Array]:
    return mech.neutral(), np.zeros(mech.nv), np.zeros(mech.nv)


# ------------------------------------------------------------------------ what cannot be built

REFUSED: dict[str, tuple[Callable[[lw.Builder], Any], str]] = {
    "missing node": (
        lambda b: b.loop("c", "left end", "rihgt end"),
        "loop 'c': no node or body called 'rihgt end' in this mechanism; did you mean 'right end'",
    ),
    "itself": (
        lambda b: b.loop("c", "left end", "left end"),
        "loop 'c': it closes node 'left end' onto itself. Give two different nodes.",
    ),
    "six freedoms": (
        lambda b: b.loop("c", "left end", "right end", lw.hinges.Free()),
        "loop 'c': a free hinge leaves all six directions free, so nothing is closed. Leave the "
        "loop out.",
    ),
    "name taken": (
        lambda b: b.loop("c", "left end", "right end").loop("c", "left", "right"),
        "loop 'c': the name is used 2 times. Rename all but one.",
    ),
    "circle of couplings": (
        lambda b: b.couple("one", "left", {"right": 1.0}).couple("two", "right", {"left": 1.0}),
        "couplings: the couplings of left, right follow each other in a cycle. Leave one of these "
        "hinges independent.",
    ),
    "follows itself": (
        lambda b: b.couple("one", "left", {"left": 2.0}),
        "couplings: the couplings of left follow each other in a cycle. Leave one of these hinges "
        "independent.",
    ),
    "follows twice": (
        lambda b: b.couple("one", "left", {"right": 1.0}).couple("two", "left", {"right": 2.0}),
        "hinge 'left': it is made to follow others 2 times. Keep one coupling.",
    ),
    "follows nothing": (
        lambda b: b.couple("one", "left", {}),
        "coupling 'one': it has no terms. Lock the hinge instead.",
    ),
    "follows what is not there": (
        lambda b: b.couple("one", "left", {"rihgt": 1.0}),
        "coupling 'one': no hinge called 'rihgt' in this mechanism; did you mean 'right'?",
    ),
    "not finite": (
        lambda b: b.couple("one", "left", {"right": [1.0, np.inf]}),
        "coupling 'one': a coefficient is not finite.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_when_built(name: str):
    add, text = REFUSED[name]
    with pytest.raises(lw.ModelError) as caught:
        builder = bars()
        add(builder)
        builder.build()
    assert text in str(caught.value)


def test_a_loop_inside_one_body_is_a_finding_and_does_no_harm():
    b = bars()
    b.node("middle", "left", (0, 0, 0.2))
    b.loop("c", "left end", "middle", PIN)
    mech = b.build()
    (finding,) = mech.validate()
    assert finding.reason == "both its nodes are on 'left', so it closes nothing that moves."
    q, v, tau = rest(mech)
    free = lw.forward_dynamics(mech, q, v, tau)
    np.testing.assert_allclose(lw.forward_dynamics(mech, q, v, tau), free, atol=1e-15)
    np.testing.assert_array_equal(lw.loops.constraint_forces(mech, q, v, tau), np.zeros(5))


# ------------------------------------------------------------------------- what cannot be closed


def test_loops_that_cannot_close_are_named():
    b = bars(apart=3.0)  # bars of half a metre reach one
    b.loop("gap", "left end", "right end", PIN)
    mech = b.build()
    with pytest.raises(ClosureError, match=r"loop 'gap' of 'bars' is still off by 2(\.0*)? "):
        lw.loops.project_position(mech, mech.neutral() + 0.1).required()
    assembly = lw.loops.assemble(mech, seed=0)
    assert not assembly.converged
    assert assembly.position_error["gap"] == pytest.approx(2.0, abs=1e-3)
    assert "loop 'gap' stays open by 2" in assembly.message
    with pytest.raises(ClosureError, match="'gap'"):
        assembly.required()


def test_an_open_loop_is_said_by_mobility(linkage: lw.Mechanism):
    report = str(lw.loops.mobility(linkage, np.array([0.5, 0.2, 0.1])))
    assert "loops are open: a row is off by" in report


# ------------------------------------------------------------------------------ what is no state


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_that_are_none(name: str, linkage: lw.Mechanism):
    of = FUNCTIONS[name]
    q, v, tau = rest(linkage)
    bad = np.array([0.0, np.nan, 0.0])
    with pytest.raises(lw.ModelError, match="q is not finite"):
        of(linkage, bad, v, tau)
    if name in BY_VELOCITY:
        with pytest.raises(lw.ModelError, match="v is not finite"):
            of(linkage, q, bad, tau)
    if name in BY_FORCE:
        with pytest.raises(lw.ModelError, match="tau is not finite"):
            of(linkage, q, v, bad)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_shapes(name: str, linkage: lw.Mechanism):
    of = FUNCTIONS[name]
    q, v, tau = rest(linkage)
    for bad in (np.zeros(4), np.zeros((2, 2, 3)), None, "x", np.zeros(3, dtype=complex)):
        with pytest.raises(lw.ShapeError):
            of(linkage, bad, v, tau)
    if name in BY_VELOCITY:
        with pytest.raises(lw.ShapeError):
            of(linkage, q, np.zeros(2), tau)
        with pytest.raises(lw.ShapeError):
            of(linkage, np.zeros((3, 3)), np.zeros((2, 3)), tau)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_no_mechanism(name: str):
    with pytest.raises(lw.ModelError, match=r"mech is a str, 'arm\.urdf'; lw\.load makes"):
        FUNCTIONS[name]("arm.urdf", np.zeros(3), np.zeros(3), np.zeros(3))  # type: ignore[arg-type]


def test_quaternions_off_the_sphere():
    mech = lw.models.stewart()
    q, v, tau = rest(mech)
    q[mech.q_slice("platform")] *= 1.1
    for of in (FUNCTIONS["constraint_jacobian"], FUNCTIONS["forward_dynamics"]):
        with pytest.raises(lw.ModelError, match=r"the quaternion of (hinge|body) 'platform'"):
            of(mech, q, v, tau)


def test_what_is_wanted_of_the_rows(linkage: lw.Mechanism):
    q, v, tau = rest(linkage)
    with pytest.raises(lw.ShapeError, match=r"closing has shape \(3,\); 'four_bar' takes \(5,\)"):
        lw.forward_dynamics(linkage, q, v, tau, closing=np.zeros(3))
    with pytest.raises(lw.ModelError, match=r"closing is not finite at 'coupler_rocker\[1\]'"):
        lw.loops.constraint_forces(linkage, q, v, tau, closing=[0, np.nan, 0, 0, 0])


def test_forces_at_nodes_that_are_not_there(linkage: lw.Mechanism):
    with pytest.raises(UnknownNameError, match="no node or body called 'cuopler'"):
        lw.forward_dynamics(linkage, *rest(linkage), forces={"cuopler": np.zeros(6)})


def test_a_hinge_inside_a_loop_is_said_to_be_one(linkage: lw.Mechanism):
    q, zero, loop = linkage.neutral(), np.zeros(linkage.nv), linkage.loops[0].name
    ways: tuple[Callable[[], object], ...] = (
        lambda: linkage.q_slice(loop),
        lambda: linkage.hinge(loop),
        lambda: lw.loops.assemble(linkage, hold=[loop]),
        lambda: lw.loops.independent_coordinates(linkage, q, prefer=[loop]),
        lambda: lw.loops.drive_forces(linkage, q, zero, zero, actuated=[loop]),
    )
    for ask in ways:
        with pytest.raises(
            UnknownNameError, match=rf"'{loop}' is a loop, .*lw\.loops\.loop_coordinates"
        ):
            ask()


def test_names_are_told_once():
    """Bodies and hinges of one name: each is known once."""
    mech = bars().build()
    with pytest.raises(UnknownNameError) as caught:
        mech.q_slice("zzz")
    assert str(caught.value).endswith("known: 'left', 'right'.")


# --------------------------------------------------------------------------------------- batches


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_batch_with_one_bad_row(name: str, linkage: lw.Mechanism):
    """Refused with the name of the entry, or its row alone is NaN and a warning tells."""
    of = FUNCTIONS[name]
    q, v, tau = rest(linkage)
    v = lw.loops.project_velocity(linkage, q, np.ones(linkage.nv))
    assert np.abs(v).max() > 0.1, "it moves"
    batch = np.stack([q, q, q])
    batch[1, 1] = np.nan
    with warnings.catch_warnings(record=True) as message:
        warnings.simplefilter("always")
        try:
            result = of(linkage, batch, v, tau)
        except lw.ModelError as error:
            assert "q is not finite" in str(error)
            return
    assert [w for w in message if issubclass(w.category, TroubleWarning)]
    assert np.isnan(result[1]).any()
    alone = of(linkage, q, v, tau)
    np.testing.assert_array_equal(result[[0, 2]], np.stack([alone, alone]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_empty_batch(name: str, linkage: lw.Mechanism):
    q, v, tau = rest(linkage)
    one = np.shape(FUNCTIONS[name](linkage, q, v, tau))
    assert np.shape(FUNCTIONS[name](linkage, np.zeros((0, 3)), v, tau)) == (0, *one)


# --------------------------------------------------------------------------- nothing to be closed


@pytest.mark.parametrize("batch", [(), (2,)])
def test_a_tree_is_a_closed_chain_without_rows(batch: tuple[int, ...]):
    mech = lw.models.pendulum(3)
    rng = np.random.default_rng(0)
    q, v, tau = rng.standard_normal((3, *batch, 3))
    empty = {
        "loop_errors": (0, 6),
        "constraint_error": (0,),
        "constraint_jacobian": (0, 3),
        "constraint_bias": (0,),
        "constraint_inertia_inverse": (0, 0),
        "constraint_forces": (0,),
    }
    for name, shape in empty.items():
        assert np.shape(FUNCTIONS[name](mech, q, v, tau)) == (*batch, *shape)
    free = lw.forward_dynamics(mech, q, v, tau)
    np.testing.assert_array_equal(lw.forward_dynamics(mech, q, v, tau), free)
    np.testing.assert_array_equal(lw.loops.project_position(mech, q).required(), q)
    np.testing.assert_allclose(lw.loops.project_velocity(mech, q, v), v, rtol=1e-14)
    assert lw.loops.constraint_names(mech) == () and lw.loops.closure_nodes(mech) == ()
    assert np.all(lw.loops.assemble(mech, q).converged)


# ------------------------------------------------------------------------------------ singular Ω


def parallelogram() -> lw.Mechanism:
    """Equal bars; laid flat it may go on as a parallelogram or cross over: a change point."""
    b = lw.Builder("parallelogram")
    rod = BALL.moved(lw.Pose.translation((0.25, 0, 0)))
    b.body("left", "world", PIN, inertia=rod)
    b.body("top", "left", PIN, inboard=(0.5, 0, 0), inertia=rod)
    b.body("right", "world", PIN, inboard=(1.0, 0, 0), inertia=rod)
    b.node("top end", "top", (1.0, 0, 0))
    b.node("right end", "right", (0.5, 0, 0))
    b.loop("c", "top end", "right end", PIN)
    return b.build()


def test_at_a_change_point_accelerations_are_finite_and_the_rank_is_said():
    mech = parallelogram()
    flat = mech.neutral()
    assert np.abs(lw.loops.constraint_error(mech, flat)).max() < 1e-15
    upright = lw.loops.project_position(mech, np.array([-1.0, 1.0, -1.0])).required()
    ranks = [
        np.linalg.matrix_rank(lw.loops.constraint_jacobian(mech, q), 1e-9) for q in (upright, flat)
    ]
    assert ranks == [2, 1]
    assert lw.loops.mobility(mech, upright).degrees_of_freedom == 1
    assert lw.loops.mobility(mech, flat).degrees_of_freedom == 2
    for q in (flat, flat + 1e-9, upright):
        vdot = lw.forward_dynamics(mech, q, np.zeros(3), np.ones(3))
        forces = lw.loops.constraint_forces(mech, q, np.zeros(3), np.ones(3))
        assert np.isfinite(vdot).all() and np.isfinite(forces).all()
    # Flat, the bars fall as if the loop held them lengthwise only: rows that say nothing have none.
    vdot = lw.forward_dynamics(mech, flat, np.zeros(3), np.ones(3))
    assert np.abs(lw.loops.constraint_jacobian(mech, flat) @ vdot).max() < 1e-12


def test_a_loop_closed_twice_is_held_by_half_the_force_each():
    """λ of least norm; what the mechanism does is as with one loop."""
    single, double = bars(), bars()
    for b, names in ((single, ("c",)), (double, ("c", "d"))):
        for name in names:
            b.loop(name, "left end", "right end", lw.hinges.Spherical())
    one, two = single.build(), double.build()
    start = np.array([np.pi / 2, -np.pi / 2])  # both lie on the ground, ends together
    q = lw.loops.project_position(one, start + 1e-3).required()
    state = (q, np.zeros(2), np.array([0.3, -0.2]))
    forces = lw.loops.constraint_forces(two, *state)
    size = np.abs(forces).max()  # large: the bars are nearly flat
    np.testing.assert_allclose(forces[:3], forces[3:], rtol=0.0, atol=1e-9 * size)
    expected = lw.loops.constraint_forces(one, *state)
    np.testing.assert_allclose(2.0 * forces[:3], expected, rtol=0.0, atol=1e-9 * size)
    np.testing.assert_allclose(
        lw.forward_dynamics(two, *state),
        lw.forward_dynamics(one, *state),
        atol=1e-10,
    )


def test_a_loop_from_ground_to_ground_changes_nothing():
    """Ω = 0: no force can do anything about it, and none is made up."""
    b = bars()
    b.node("here", "world")
    b.node("there", "world", (1, 0, 0))
    b.loop("c", "here", "there", PIN)
    mech = b.build()
    q, v, tau = rest(mech)
    assert not lw.loops.constraint_inertia_inverse(mech, q).any()
    np.testing.assert_array_equal(lw.loops.constraint_forces(mech, q, v, tau), np.zeros(5))
    free = lw.forward_dynamics(mech, q, v, tau)
    np.testing.assert_array_equal(lw.forward_dynamics(mech, q, v, tau), free)
    with pytest.raises(ClosureError, match="loop 'c'"):
        lw.loops.project_position(mech, q).required()


def test_a_tree_that_nothing_resists_is_named():
    """Closed, the light bar would be carried; open, its hinge moves nothing, and that is said."""
    b = lw.Builder("light")
    b.body("heavy", "world", PIN, inertia=BALL)
    b.body("light", "world", PIN)
    b.loop("c", "heavy", "light")
    mech = b.build()
    with pytest.raises(SingularHingeError, match="'light'"):
        lw.forward_dynamics(mech, *rest(mech))


# ----------------------------------------------------------------------------------- any size


def held_chain(size: float) -> tuple[lw.Mechanism, Array]:
    """Three links on ball joints, welded to the ground at their end, of any size [m]."""
    b = lw.Builder("chain", gravity=(0, 0, -9.81 * size))
    solid = lw.SpatialInertia.solid_box(10.0 * size**3, size * np.array([0.1, 0.12, 0.4]))
    parent = "world"
    for name in ("one", "two", "three"):
        at = (0, 0, 0) if parent == "world" else (0, 0, 0.4 * size)
        inertia = solid.moved(lw.Pose.translation((0.02 * size, 0, 0.2 * size)))
        b.body(name, parent, lw.hinges.Spherical(), inboard=at, inertia=inertia)
        parent = name
    b.node("end", "three", (0, 0, 0.4 * size))
    q = b.build().random(3)
    b.node("anchor", "world", b.build().pose(q, "end"))
    b.loop("weld", "anchor", "end")
    return b.build(), q


def test_rank_does_not_depend_on_the_size_of_a_mechanism():
    """Lengths times s, masses s³ and gravity s: the same angles, whether a millimetre or a mile."""
    mech, q = held_chain(1.0)
    state = q, np.zeros(9), np.zeros(9)
    expected = lw.forward_dynamics(mech, *state)
    assert np.abs(expected).max() > 1.0
    for size in (1e-5, 1e4):
        scaled, _ = held_chain(size)
        vdot = lw.forward_dynamics(scaled, *state)
        np.testing.assert_allclose(vdot, expected, atol=1e-9 * np.abs(expected).max())
        rows = lw.loops.constraint_jacobian(scaled, q) @ vdot / np.repeat([1.0, size], 3)
        assert np.abs(rows).max() < 1e-9 * np.abs(expected).max()


def test_errors_are_per_row_or_per_loop():
    mech = lw.models.four_bar()
    with pytest.raises(lw.ModelError, match="per is 'body'; it must be 'row' or 'loop'"):
        lw.loops.constraint_error(mech, mech.neutral(), per="body")
