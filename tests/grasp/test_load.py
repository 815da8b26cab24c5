"""Loads: 003, (56)-(62) and (72), (73), against mechanisms that really carry the load."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise.spatial.rotation import log as rotation_log, random_rotation, skew
from linkwise.tasks.representation import EulerAngles
from tests.cases import close


def some_load(rng: np.random.Generator) -> tuple[lw.SpatialInertia, lw.Pose]:
    """A lopsided box, put down askew."""
    box = lw.SpatialInertia.solid_box(3.0, (0.2, 0.3, 0.1))
    ours = lw.Pose.rotation(random_rotation(rng), rng.uniform(-0.1, 0.1, 3))
    return box.moved(ours), lw.Pose.rotation(random_rotation(rng), rng.uniform(-0.2, 0.2, 3))


def test_energy_of_a_load() -> None:
    """(56), (60): ½ V* Λ_L V is the energy of the centre of mass and of the turning about it."""
    rng = np.random.default_rng(1)
    load, pose = some_load(rng)
    Lambda = lw.grasp.load_inertia(load, pose)
    r, J_com = pose.apply(load.com), pose.rot @ load.J_com @ pose.rot.T
    for _ in range(5):
        w, v = rng.standard_normal((2, 3))
        v_C = v + np.cross(w, r)
        energy = 0.5 * (float(load.mass) * v_C @ v_C + w @ J_com @ w)
        V = np.concatenate([w, v])
        assert np.isclose(0.5 * V @ Lambda @ V, energy, rtol=1e-13)


def test_signs_of_58_and_59() -> None:
    """Both are right as printed, with r from the operational point to the centre of mass."""
    rng = np.random.default_rng(2)
    m, J = 2.5, lw.SpatialInertia.solid_box(2.5, (0.1, 0.2, 0.3)).J_com
    r, (w, v_C) = rng.standard_normal(3), rng.standard_normal((2, 3))
    eye, none = np.eye(3), np.zeros((3, 3))
    X = np.block([[eye, skew(r)], [none, eye]])  # (58): (v, ω) of the point from those of C
    v = (X @ np.concatenate([v_C, w]))[:3]
    assert np.allclose(v, v_C + np.cross(w, -r), atol=1e-15)  # the point is at -r from C
    printed = np.block([[m * eye, -m * skew(r)], [-m * skew(r).T, J + m * skew(r).T @ skew(r)]])
    centre = np.block([[m * eye, none], [none, J]])
    back = np.linalg.inv(X)
    close(printed, back.T @ centre @ back, 1e-14)
    ours = lw.grasp.load_inertia(lw.SpatialInertia.from_com(m, r, J))
    swap = [3, 4, 5, 0, 1, 2]
    close(ours, printed[np.ix_(swap, swap)], 1e-14)


ARMS = {"puma560": "flange", "redundant": "hand"}


@cache
def arm(name: str) -> lw.Mechanism:
    """One of each, so that its kernels are made once."""
    return lw.models.puma560() if name == "puma560" else lw.models.seven_dof_arm()


@pytest.mark.parametrize("name, frame", [("puma560", "node"), ("redundant", "world")])
def test_lemmas_3_and_4(name: str, frame: str) -> None:
    """(62), (72): against the mechanism with the load built in, in three states."""
    node = ARMS[name]
    mech, rng = arm(name), np.random.default_rng(3)
    load, pose = some_load(rng)
    q = np.stack([mech.random(rng) for _ in range(3)])
    effect = lw.grasp.load_effect(mech, q, load, node=node, pose=pose, frame=frame)
    loaded = mech.with_payload(node, load, pose=pose)
    close(effect.mass_matrix, lw.mass_matrix(loaded, q))
    close(effect.inertia, lw.operational_space(loaded, q, node, frame=frame).inertia, 1e-9)
    one = lw.grasp.load_effect(mech, q[1], load, node=node, pose=pose, frame=frame)
    close(one.inertia, effect.inertia[1], 1e-13)
    assert "3 kg" in str(one) and "3 states" in str(effect)


def test_lemma_3_where_motions_are_lost() -> None:
    """A PUMA with its wrist straight has five motions; the load counts in those."""
    mech = arm("puma560")
    q = mech.random(4)
    q[4] = 0.0
    load, pose = some_load(np.random.default_rng(4))
    effect = lw.grasp.load_effect(mech, q, load, node="flange", pose=pose)
    loaded = mech.with_payload("flange", load, pose=pose)
    space = lw.operational_space(loaded, q, "flange")
    assert effect.effector.rank == space.rank == 5
    close(effect.inertia, space.inertia, 1e-9)
    # Without the projection it is another matrix: the load would resist what does not exist.
    plain = effect.effector.inertia + effect.load
    assert np.abs(plain - space.inertia).max() > 1e-3


def position_inertia(mech: lw.Mechanism, q: np.ndarray, node: str) -> np.ndarray:
    return np.linalg.inv(
        lw.dynamics.operational_inertia_inverse(mech, q, node, frame="world")[3:, 3:]
    )


def test_lemma_3_needs_all_of_the_load_in_the_task() -> None:
    """For the position alone it holds for a point mass at the point, and for nothing else."""
    mech, node = arm("redundant"), "hand"
    q = mech.random(5)
    bare = position_inertia(mech, q, node)
    point = mech.with_payload(node, lw.SpatialInertia.point(2.0))
    close(position_inertia(point, q, node), bare + 2.0 * np.eye(3), 1e-10)
    for other in (
        lw.SpatialInertia.solid_sphere(2.0, 0.2),  # turns with the hand
        lw.SpatialInertia.point(2.0, (0.0, 0.0, 0.2)),  # is somewhere else
    ):
        heavy = position_inertia(mech.with_payload(node, other), q, node)
        assert np.abs(heavy - bare - 2.0 * np.eye(3)).max() > 0.01


def test_what_is_refused() -> None:
    mech = arm("puma560")
    with pytest.raises(lw.ModelError, match="must be a SpatialInertia"):
        lw.grasp.load_inertia(3.0)  # type: ignore[arg-type]
    with pytest.raises(lw.ModelError, match="must be a SpatialInertia"):
        lw.grasp.load_effect(mech, mech.neutral(), np.eye(6), node="flange")  # type: ignore[arg-type]
    with pytest.raises(lw.ModelError, match="flange"):
        lw.grasp.load_effect(mech, mech.neutral(), lw.SpatialInertia.point(1.0), node="flangge")
    with pytest.raises(lw.ShapeError):
        lw.grasp.load_effect(mech, np.zeros(4), lw.SpatialInertia.point(1.0), node="flange")


def test_energy_in_other_coordinates() -> None:
    """(60), (61): T_L = ½ ẋ* Λ_L(x) ẋ, Λ_L(x) = E⁻* Λ_L E⁻¹, with rates of Euler angles."""
    rng = np.random.default_rng(6)
    load, pose = some_load(rng)
    Lambda, angles = lw.grasp.load_inertia(load, pose), EulerAngles("zyx")
    x, rates, v = np.array([0.4, -0.7, 1.1]), rng.standard_normal(3), rng.standard_normal(3)
    # ω of the frame by differences of its rotation: E is not asked for it.
    h = 1e-6
    ahead, back = (angles.place(x + s * h * rates) for s in (1.0, -1.0))
    w = rotation_log(ahead @ back.T) / (2.0 * h)
    inverse = np.eye(6)
    inverse[:3, :3] = np.linalg.inv(angles.matrix(x))
    ours = inverse.T @ Lambda @ inverse
    V, x_dot = np.append(w, v), np.append(rates, v)
    assert np.isclose(x_dot @ ours @ x_dot, V @ Lambda @ V, rtol=1e-8)
