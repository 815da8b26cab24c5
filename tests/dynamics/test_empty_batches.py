"""Batches without a state, dictionaries without a force, points that do not fit."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError

BOX = lw.SpatialInertia.solid_box(1.3, (0.1, 0.2, 0.3))
F = np.ones(6)


def forest():
    """Two trees, one of them welded to the ground below a ball."""
    builder = lw.Builder("forest").body("arm", hinge=lw.hinges.Pin((0, 0, 1)), inertia=BOX)
    builder.body("post", hinge=lw.hinges.Locked(), inertia=BOX)
    at = lw.Pose.translation((0.1, 0.2, 0.0))
    return builder.body("ball", "post", lw.hinges.Spherical(), inboard=at, inertia=BOX).build()


MECH = forest()

CALLS = {
    "forces at nodes": lambda q, v, w: lw.forward_dynamics(MECH, q, v, w, forces={"ball": F}),
    "body accelerations": lambda q, v, w: lw.dynamics.body_accelerations(MECH, q, v, tau=w),
    "node acceleration": lambda q, v, w: lw.node_acceleration(
        MECH, q, v, ["ball", "world"], vdot=w, kind="classical"
    ),
    "hinge forces": lambda q, v, w: lw.hinge_forces(MECH, q, v, tau=w),
    "articulated inertias": lambda q, v, w: lw.dynamics.articulated_inertias(MECH, q),
    "determinant": lambda q, v, w: lw.dynamics.log_det_mass_matrix(MECH, q),
    "momentum": lambda q, v, w: lw.momentum(MECH, q, v),
    "momentum matrix": lambda q, v, w: lw.momentum(MECH, q, what="matrix"),
    "momentum bias": lambda q, v, w: lw.momentum(MECH, q, v, about="world", what="bias"),
    "center of mass": lambda q, v, w: lw.center_of_mass(MECH, q, what="jacobian"),
    "diagonal": lambda q, v, w: lw.papers.diagonal_dynamics(MECH, q, v, w),
    "operational inertia": lambda q, v, w: lw.operational_inertia(MECH, q, "ball"),
    "velocity": lambda q, v, w: lw.dynamics.body_velocities(MECH, q, v, frame="world"),
    "jacobian": lambda q, v, w: lw.jacobian(MECH, q, "ball", frame="arm", about="world"),
    "jacobian rate": lambda q, v, w: lw.jacobian_dot(MECH, q, v, "ball", frame="arm"),
    "force about a point": lambda q, v, w: lw.dynamics.compensating_force(
        MECH, q, {"ball": F}, about="world"
    ),
    "control": lambda q, v, w: lw.papers.wen_bayard(MECH, q, v, q, v, w, kp=1.0, kv=1.0),
    "hybrid": lambda q, v, w: (
        lw.hybrid_dynamics(MECH, q, v, tau={"arm": w[..., :1]}, vdot={"ball": w[..., 1:]}).tau
    ),
}


@pytest.mark.filterwarnings("ignore::linkwise.errors.RankWarning")
@pytest.mark.parametrize("name", CALLS)
def test_a_batch_without_a_state(name):
    rng = np.random.default_rng(0)
    q = np.stack([MECH.random(seed=i) for i in range(2)])
    v, w = rng.standard_normal((2, 2, MECH.nv))
    some, none = CALLS[name](q, v, w), CALLS[name](q[:0], v[:0], w[:0])
    assert len(some) == 2
    assert none.shape == (0, *some.shape[1:])


def test_rows_of_hybrid_dynamics_that_do_not_fit():
    with pytest.raises(lw.ShapeError, match="one batch"):
        lw.hybrid_dynamics(
            MECH,
            MECH.neutral(),
            np.zeros(4),
            tau={"arm": np.zeros((0, 1)), "ball": np.zeros((2, 3))},
            vdot={},
        )


@pytest.mark.parametrize("options", [{}, {"frame": "ball"}, {"about": "world"}])
@pytest.mark.parametrize("function", [lw.dynamics.equivalent_force, lw.dynamics.compensating_force])
def test_no_force(function, options):
    with pytest.raises(ModelError, match="no force was given"):
        function(MECH, MECH.neutral(), {}, **options)


def test_determinant_of_nothing():
    assert lw.dynamics.log_det_mass_matrix(lw.Builder("nothing").build(), []) == 0.0
    post = lw.Builder("post").body("post", hinge=lw.hinges.Locked(), inertia=BOX).build()
    assert lw.dynamics.log_det_mass_matrix(post, []) == 0.0
    assert lw.momentum(post, [], what="matrix").shape == (6, 0)


def test_points_that_do_not_fit():
    q = np.stack([MECH.random(seed=i) for i in range(3)])
    with pytest.raises(lw.ShapeError, match="about has 2 rows; the batch has 3"):
        lw.momentum(MECH, q, about=np.zeros((2, 3)), what="matrix")
    with pytest.raises(ModelError, match="about is not finite"):
        lw.momentum(MECH, q[0], about=[0.0, np.nan, 0.0], what="matrix")
    with pytest.warns(lw.errors.TroubleWarning, match="3 of 3 states .* an input is not finite"):
        assert np.isnan(lw.momentum(MECH, q, about=[0.0, np.nan, 0.0], what="matrix")).all()
    assert lw.momentum(MECH, q[0], about=np.zeros((2, 3)), what="matrix").shape == (2, 6, 4)


def test_the_code_of_one_state():
    q, rest = MECH.random(seed=0), np.zeros(MECH.nv)
    q[1:] *= 1.3
    status = np.zeros((), dtype=np.int32)
    result = lw.node_acceleration(MECH, q, rest, "ball", vdot=rest, frame="world", status=status)
    assert status != 0
    assert np.isnan(result).all()
