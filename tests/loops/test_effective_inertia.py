"""What a mechanism with closed loops weighs at its nodes."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.dynamics import closure
from linkwise.errors import ModelError, TroubleWarning
from tests.cases import LINKAGES, linkage, parallelogram, rank_of
from tests.dense_kinematics import mass_matrix
from tests.effort import calls
from tests.loops.random_loops import looped, triangle

NODES = {
    "four_bar": "coupler_end",
    "peaucellier": "pen",
    "bennett": "bar_2",
    "stewart": "centre",
    "dual_arm": "object",
    "nested": "body_7",
    "couplings": "body_8",
}


def dense(mech, q, J):
    """J Z (Z* 𝓜 Z)⁻¹ Z* J*: the inverse of the mass matrix in minimal coordinates."""
    J_c = lw.loops.constraint_jacobian(mech, q)
    free = np.linalg.svd(J_c)[2][rank_of(J_c) :].T
    inside = np.linalg.inv(free.T @ mass_matrix(mech, q) @ free)
    return J @ free @ inside @ free.T @ J.T


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("name", "frame"),
    [*((name, "node") for name in LINKAGES), ("four_bar", "world"), ("bennett", "world")],
)
def test_against_minimal_coordinates(name, frame):
    mech, q = linkage(name)
    J = lw.jacobian(mech, q, NODES[name], frame=frame)
    expected = dense(mech, q, J)
    space = lw.operational_space(mech, q, NODES[name], frame=frame)
    # The condition of 𝓜 in these linkages is up to 1e5.
    assert np.abs(space.inverse - expected).max() < 1e-11 * np.abs(expected).max()
    assert (
        space.inverse == lw.dynamics.operational_inertia_inverse(mech, q, NODES[name], frame=frame)
    ).all()
    assert (space.inertia == lw.operational_space(mech, q, NODES[name], frame=frame).inertia).all()
    # A pseudo-inverse: what it is of the motions that exist, nothing of the others.
    there, lost = space.directions, space.lost
    assert np.abs(space.inertia @ space.inverse @ there - there).max() < 1e-8
    assert np.abs(space.inertia @ lost).max(initial=0.0) < 1e-9 * np.abs(space.inertia).max()
    assert np.abs(space.inverse @ lost).max(initial=0.0) < 1e-11 * np.abs(space.inverse).max()


def test_ranks():
    """What the descriptions of the models say about their nodes."""
    assert lw.operational_space(*linkage("four_bar"), "coupler_end").rank == 1
    assert lw.operational_space(*linkage("stewart"), "centre").rank == 6
    both = lw.operational_space(*linkage("dual_arm"), ["object", "arm_1_hand"])
    assert both.rank == 6 and both.inverse.shape == (12, 12)  # the hand is welded to the object


def test_the_pen_moves_along_one_line():
    """Peaucellier's pen goes along x of the world, and its bar turns."""
    mech, q = linkage("peaucellier")
    space = lw.operational_space(mech, q, "pen", frame="world")
    (motion,) = space.directions.T
    assert space.rank == 1
    assert np.abs(motion[[0, 2, 4, 5]]).max() < 1e-12 and abs(motion[3]) > 0.01


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["four_bar", "bennett", "stewart"])
def test_a_push_is_answered(name):
    """At rest a force adds the acceleration Λ_c⁻¹ f, by constrained forward dynamics."""
    mech, q = linkage(name)
    node, rest, none = NODES[name], np.zeros(mech.nv), np.zeros(mech.nv)
    f = np.random.default_rng(8).standard_normal(6)
    pushed = lw.forward_dynamics(mech, q, rest, none, forces={node: f})
    alone = lw.forward_dynamics(mech, q, rest, none)
    expected = lw.jacobian(mech, q, node) @ (pushed - alone)
    result = lw.dynamics.operational_inertia_inverse(mech, q, node) @ f
    # The reference solves with Ω, whose condition is the square of that of J_c: 1e6 and more.
    assert np.abs(result - expected).max() < 1e-8 * np.abs(expected).max()


def test_energy_of_a_crank():
    """Of one freedom the inertia about an axis is twice the energy at unit speed."""
    mech, q = linkage("four_bar")
    X = lw.loops.independent_coordinates(mech, q, prefer=["crank"]).map[:, 0]
    energy = lw.dynamics.kinetic_energy(mech, q, X)
    inverse = lw.dynamics.operational_inertia_inverse(mech, q, "crank")
    assert abs(inverse[1, 1] * 2.0 * energy - 1.0) < 1e-11


def test_an_open_mechanism_is_its_own_operational_space():
    arm = lw.models.puma560()
    q, hand = arm.random(3), arm.bodies[-1].name
    closed, plain = lw.operational_space(arm, q, hand), lw.operational_space(arm, q, hand)
    assert np.abs(closed.inertia - plain.inertia).max() < 1e-9 * np.abs(plain.inertia).max()
    assert np.abs(closed.inverse - plain.inverse).max() < 1e-12 * np.abs(plain.inverse).max()
    assert closed.rank == plain.rank
    assert np.abs(closed.singular_values - plain.singular_values).max() < 1e-12
    assert abs(closed.condition / plain.condition - 1.0) < 1e-8


def test_what_cannot_move_has_rank_zero():
    mech = triangle(0.7)
    space = lw.operational_space(mech, lw.loops.assemble(mech).required(), "left end")
    assert space.rank == 0 and (space.inertia == 0.0).all()
    # Zero to rounding: the double projection leaves 1e-16 of the open mechanism's.
    assert np.abs(space.inverse).max() < 1e-20
    ground = lw.operational_space(lw.models.four_bar(), np.zeros(3), "ground")
    assert ground.rank == 0 and (ground.inverse == 0.0).all()


def test_a_singular_configuration_is_finite():
    mech, q = parallelogram()
    space = lw.operational_space(mech, q, "coupler_end")
    expected = dense(mech, q, lw.jacobian(mech, q, "coupler_end"))
    assert np.isfinite(space.inertia).all()
    assert np.abs(space.inverse - expected).max() < 1e-11 * np.abs(expected).max()


def test_batches_are_rows():
    mech, q = linkage("stewart")
    many = lw.loops.project_position(mech, np.stack([mech.neutral(), q])).required()
    space = lw.operational_space(mech, many, "centre")
    assert len(space) == 2 and space.inertia.shape == (2, 6, 6)
    for i in range(2):
        one = lw.operational_space(mech, many[i], "centre")
        assert np.abs(space[i].inertia - one.inertia).max() < 1e-12 * np.abs(one.inertia).max()
        assert space[i].rank == one.rank == 6
    assert lw.operational_space(mech, np.zeros((0, mech.nq)), "centre").inertia.shape == (0, 6, 6)


@pytest.mark.parametrize("name", ["four_bar", "dual_arm"])
def test_rows_of_long_mechanisms_are_an_input(name: str, monkeypatch: pytest.MonkeyPatch):
    mech, q = linkage(name)
    expected = lw.operational_space(mech, q, NODES[name])
    monkeypatch.setattr(closure, "MOST_BODIES", 0)
    again = mech.with_gravity((0.0, 0.0, -1.0))  # without kernels yet
    for state in (q, q.tolist()):
        space = lw.operational_space(again, state, NODES[name])
        assert space.rank == expected.rank
        size = np.abs(expected.inverse).max()
        assert np.abs(space.inverse - expected.inverse).max() < 1e-11 * size
    for count in (0, 2):
        states = np.repeat(q[None], count, axis=0)
        assert len(lw.operational_space(again, states, NODES[name])) == count


def ball_and_plane():
    """A loop whose blocked directions are inputs of kernels."""
    return looped(3, ("rolling_ball",), n=5, hinges=("pin", "translation"))


@pytest.mark.parametrize("kind", ["short", "long", "without a formula"])
def test_states_that_are_not_finite_are_reported(kind: str, monkeypatch: pytest.MonkeyPatch):
    mech, q = ball_and_plane() if kind == "without a formula" else linkage("four_bar")
    if kind == "long":
        monkeypatch.setattr(closure, "MOST_BODIES", 0)
        mech = mech.with_gravity((0.0, 0.0, -2.0))  # without kernels yet
    node, still, codes = mech.bodies[1].name, np.zeros(mech.nv), np.zeros(3, np.int32)
    states, chosen = np.stack([q, np.nan * q, q]), [mech.bodies[0].hinge_name]

    def check(result, expected=(0, 1, 0)):
        assert codes.tolist() == list(expected)
        assert np.isnan(result[1]).all() and np.isfinite(result[[0, 2]]).all()

    check(lw.operational_space(mech, states, node, status=codes).inertia)
    check(lw.operational_inertia(mech, states, node, status=codes), (3, 1, 3))
    vdot = lw.forward_dynamics(mech, q, still, still)
    given = {"tau": still, "vdot": vdot, "prescribed": chosen}
    check(lw.hybrid_dynamics(mech, states, still, **given, status=codes).vdot)
    with pytest.warns(TroubleWarning, match="row 1: an input is not finite"):
        space = lw.tasks.task_space(mech, states, lw.Task.position(node))
    assert np.isnan(space.inertia[1]).all() and space.rank[1] == 0 < space.rank[2]
    with pytest.raises(ModelError, match="q is not finite"):
        lw.operational_space(mech, states[1], node)


def test_no_states_of_a_loop_without_a_formula():
    mech, _ = ball_and_plane()
    none = np.zeros((0, mech.nq))
    assert lw.loops.constraint_jacobian(mech, none).shape == (0, 3, mech.nv)
    assert lw.operational_space(mech, none, "body_5").inertia.shape == (0, 6, 6)


def test_one_kernel_with_the_rank_of_each_state():
    mech, q = linkage("dual_arm")
    lw.operational_space(mech, q, "object")
    assert calls(lambda: lw.operational_space(mech, q, "object")) < 60


def test_bad_arguments():
    mech, q = linkage("four_bar")
    with pytest.raises(ModelError, match="needs a node"):
        lw.operational_space(mech, q, [])
    with pytest.raises(ModelError, match="did you mean 'coupler_end'"):
        lw.operational_space(mech, q, "coupler_and")
    with pytest.raises(ModelError, match="length is 0"):
        lw.operational_space(mech, q, "crank", length=0.0)
