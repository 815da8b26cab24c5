"""Flexible bodies are drawn where they are: along their nodes, bent."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.plot.skeleton import bones
from linkwise.viewer.scene import frame_poses, scene_of

LINK = {"area": 3e-4, "bending": 2.5e-9, "young": 70e9, "density": 2700.0}


def arm():
    """Two flexible links, of which the first also twists and bends upwards."""
    upper = lw.flexible.beam(1.0, **LINK, modes=4)
    lower = lw.flexible.beam(0.8, **LINK, modes=2, directions=("y", "rz"))
    b = lw.Builder("arm", gravity=(0, 0, 0))
    pin = lw.hinges.Pin((0, 0, 1))
    b = upper.add_to(b, "upper", "world", pin, drive=lw.Drive(armature=0.2))
    b = lower.add_to(b, "lower", "upper.tip", pin, drive=lw.Drive(armature=0.2))
    return b.build(), {"upper": upper, "lower": lower}


def bent(mech, seed=0):
    rng = np.random.default_rng(seed)
    return mech.random(rng)


def nodes_in_the_world(mech, beams, q):
    """All nodes of the beams, and their roots, by `FlexibleBody.shape`."""
    points = []
    for name, body in beams.items():
        pose = mech.pose(q, name)
        points += [pose.p, *pose.apply(body.shape(q[mech.q_slice(f"{name}.modes")]))]
    return np.array(points)


def test_rods_of_the_viewer_go_from_node_to_node():
    mech, beams = arm()
    q = bent(mech)
    scene, poses = scene_of(mech), frame_poses(mech, q)
    rods = [part for part in scene.parts if part.body >= mech.n_bodies]
    nodes = nodes_in_the_world(mech, beams, q)
    assert len(rods) == len(nodes) - len(beams)
    straight = nodes_in_the_world(mech, beams, mech.neutral())
    assert np.abs(nodes - straight).max() > 0.05
    for part in rods:
        pose = poses[part.body]
        # A rod is around the line from its frame to the end of its way.
        middle = pose.apply(part.mesh.vertices.mean(axis=0))
        ends = np.array([pose.p, 2.0 * middle - pose.p])
        gaps = np.linalg.norm(nodes[:, None] - ends, axis=-1).min(axis=0)
        assert gaps[0] < 1e-12 and gaps[1] < 0.02  # its length is that of the straight beam


def test_skeletons_are_bent():
    mech, beams = arm()
    q = bent(mech, 1)
    links = bones(mech, q).links.reshape(-1, 3)
    nodes = nodes_in_the_world(mech, beams, q)
    near = np.linalg.norm(nodes[:, None] - links, axis=-1).min(axis=1)
    np.testing.assert_allclose(near, 0.0, atol=1e-12)


def test_pictures_follow_the_modes():
    mech, _ = arm()
    q = np.zeros(mech.nq)
    q[mech.q_slice("upper.modes").start] = 0.3
    straight, other = (lw.viewer.picture(mech, x, size=(160, 120)) for x in (0.0 * q, q))
    assert (np.abs(straight.astype(int) - other).max(axis=-1) > 24).mean() > 0.01


def test_vibrations():
    """Frequencies are those of the matrix A; a motion to look at is bent by a tenth of its size."""
    mech, _ = arm()
    q = mech.neutral()
    q[mech.q_slice("lower")] = 0.7
    natural = lw.simulation.vibrations(mech, q)
    poles = np.linalg.eigvals(lw.linearize(mech, q, 0 * q, 0 * q, passive=True).A)
    exact = np.sort(poles.imag[poles.imag > 1.0]) / (2 * np.pi)
    np.testing.assert_allclose([x.frequency for x in natural], exact, rtol=1e-6)
    mass = lw.mass_matrix(mech, q)
    shapes = np.stack([x.shape for x in natural])
    form = shapes @ mass @ shapes.T
    scale = np.sqrt(np.diag(form))
    np.testing.assert_allclose(form / np.outer(scale, scale), np.eye(len(natural)), atol=1e-6)
    first = natural[0]
    moved = [np.abs(mech.poses(x).p - mech.poses(q).p).max() for x in first.q]
    assert 0.03 < max(moved) < 0.3 and first.t[-1] == 2.0
    np.testing.assert_allclose(first.q[-1], q, atol=1e-12)
    assert "Hz" in repr(first)


def test_an_unstable_posture_has_no_frequency():
    mech = lw.models.pendulum(1)
    natural = lw.simulation.vibrations(mech, [np.pi])
    down = lw.simulation.vibrations(mech, [0.0])
    rates = sorted([natural[0].rate, down[0].rate])
    assert rates[0] == 0.0 and rates[1] > 1.0
    with pytest.raises(lw.ShapeError, match="one posture"):
        lw.simulation.vibrations(mech, [[0.0]])


@pytest.mark.prove
def test_example_flexible_arm(tmp_path):
    """One law leaves a vibration, the other none; its pages are complete."""
    pytest.importorskip("viser")
    path = Path(__file__).parents[2] / "examples" / "flexible_arm.py"
    left = runpy.run_path(str(path))["main"](tmp_path)
    assert left["stiff"] > 0.005 and left["damped"] < 0.0005
    assert len(list(tmp_path.glob("flexible_arm_*.html"))) == 4
