"""Grasps for the tests: a block between two fingers, a disc between n, and random ones."""

from __future__ import annotations

import numpy as np

import linkwise as lw
from linkwise.spatial.rotation import random_rotation

KINDS = {
    "rigid": {},
    "rigid patch": {"two_sided": False, "extent": 0.02},
    "edge": {"extent": 0.03},
    "soft_finger": {"torsion": 0.02},
    "soft_finger separate": {"torsion": 0.02, "law": "separate"},
    "point": {},
    "frictionless": {},
}
"""One contact of every kind, by name, with what it needs."""


def contact(name: str, **more) -> lw.grasp.Contact:
    return lw.grasp.Contact(name.split()[0], **{**KINDS[name], **more})


def frame(normal, at) -> lw.Pose:
    """A pose at a point whose z axis is the normal and whose y axis is as near to z as can be."""
    z = np.asarray(normal, dtype=float) / np.linalg.norm(normal)
    up = np.array([0.0, 0.0, 1.0]) if abs(z[2]) < 0.9 else np.array([0.0, 1.0, 0.0])
    x = np.cross(up, z) / np.linalg.norm(np.cross(up, z))
    return lw.Pose.rotation(np.stack([x, np.cross(z, x), z], axis=1), at)


def block(name: str, *, half: float = 0.1, **more) -> lw.Grasp:
    """Two fingers on the faces x = ∓half, pushing towards each other."""
    left, right = frame((1, 0, 0), (-half, 0, 0)), frame((-1, 0, 0), (half, 0, 0))
    return lw.Grasp(
        {"left": contact(name, pose=left, **more), "right": contact(name, pose=right, **more)}
    )


def disc(count: int, name: str, *, radius: float = 0.1, **more) -> lw.Grasp:
    """Fingers all round a disc, pushing inwards."""
    contacts = {}
    for i in range(count):
        out = np.array([np.cos(2 * np.pi * i / count), np.sin(2 * np.pi * i / count), 0.0])
        contacts[f"finger_{i + 1}"] = contact(name, pose=frame(-out, radius * out), **more)
    return lw.Grasp(contacts)


def random_grasp(seed: int, count: int, kinds: tuple[str, ...], **more) -> lw.Grasp:
    """Contacts anywhere, turned anyhow, kinds in turn."""
    rng = np.random.default_rng(seed)
    contacts = {}
    for i in range(count):
        pose = lw.Pose.rotation(random_rotation(rng), 0.2 * rng.standard_normal(3))
        normal = tuple(rng.standard_normal(3))
        axis = tuple(np.cross(normal, rng.standard_normal(3)))
        turned = {"pose": pose, "normal": normal, "axis": axis}
        contacts[f"c{i + 1}"] = contact(kinds[i % len(kinds)], **turned, **more)
    return lw.Grasp(contacts)
