"""The cone of forces that a contact can hold, by its edges and by its extreme forces.

Edges are an inner approximation: each curved limit is replaced by the hull of points on it, so that
what is held by the edges is held indeed. With n sides a circle of radius 1 loses 1 - cos(π/n) of
it: 7.6 % for 8 sides, 1.9 % for 16. Extreme forces are exact, in one direction at a time.
"""

from __future__ import annotations

import itertools
from typing import cast

import numpy as np

from linkwise.errors import ModelError
from linkwise.grasp.contact import Contact
from linkwise.spatial.array import Array


def edges(contact: Contact, sides: int) -> tuple[Array, Array]:
    """Forces whose non-negative sums a contact can hold.

    Args:
        contact: The contact.
        sides: Of the polygon that stands for a circle, at least 3.

    Returns:
        Rays (k, 6) with a normal force of 1 N each, and lines (m, 6), forces that are held whatever
        the normal force is, both ways; in the contact's frame.
    """
    if not isinstance(cast(object, sides), int | np.integer) or sides < 3:
        raise ModelError(
            f"a cone with {sides!r} sides was asked for; it needs a whole number, at least 3."
        )
    if contact.two_sided:
        return np.zeros((0, 6)), np.array(contact.passed)
    first, second, normal = contact.axes
    turn = 2.0 * np.pi * np.arange(sides) / sides
    ring = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    parts, lines = [_slip(contact, ring, sides)], list[Array]()
    arm = contact.twist_arm
    if contact.kind not in ("point", "frictionless"):
        if np.isinf(arm):
            lines.append(np.append(normal, np.zeros(3)))
        elif not _elliptic(contact):
            spin = np.append(normal, np.zeros(3))
            parts.append(np.stack([arm * spin, -arm * spin]) if arm > 0.0 else np.zeros((1, 6)))
    across = [second] if contact.kind == "edge" else [first, second]
    if contact.kind in ("edge", "rigid"):
        bends = np.stack([np.append(x, np.zeros(3)) for x in across])
        if np.isinf(contact.tip_arm):
            lines += list(bends)
        elif contact.kind == "edge":
            parts.append(contact.tip_arm * np.concatenate([bends, -bends]))
        else:
            parts.append(contact.tip_arm * ring @ bends)
    push = np.append(np.zeros(3), normal)
    rays = [push + sum(choice, np.zeros(6)) for choice in itertools.product(*parts)]
    return np.unique(np.round(rays, 15), axis=0), np.reshape(lines, (-1, 6))


def _slip(contact: Contact, ring: Array, sides: int) -> Array:
    """Tangential forces, with the moment of the elliptic law, for a normal force of 1 N."""
    if contact.kind == "frictionless" or contact.friction == 0.0:
        return np.zeros((1, 6))
    first, second, normal = contact.axes
    tangents = np.zeros((2, 6))
    tangents[:, 3:] = first, second
    flat = contact.friction * ring @ tangents
    if not _elliptic(contact):
        return flat
    spin = contact.twist_arm * np.append(normal, np.zeros(3))
    rings = [np.stack([spin, -spin])]
    for height in np.linspace(-0.5, 0.5, sides // 2 + 1)[1:-1] * np.pi:
        rings.append(np.cos(height) * flat + np.sin(height) * spin)
    return np.concatenate(rings)


def extreme(contact: Contact, V: Array) -> Array:
    """The force (6,) of a contact that does the most work along V (6,), exactly.

    With a normal force of 1 N; for a contact without limits, of norm 1. Forces that are held
    whatever the normal force is (`edges`: lines) are left out.
    """
    if contact.two_sided:
        along = contact.passed.T @ (contact.passed @ V)
        return along / max(float(np.linalg.norm(along)), np.finfo(np.float64).tiny)
    turn, move = contact.axes @ V[:3], contact.axes @ V[3:]
    moment, force = np.zeros(3), np.array([0.0, 0.0, 1.0])
    arm = contact.twist_arm
    if contact.kind != "frictionless":
        if _elliptic(contact):
            # max f_t·v_t + m ω under |f_t/μ|² + (m/γ)² ≤ 1 is along (μ v_t, γ ω).
            whole = np.array(
                [contact.friction * move[0], contact.friction * move[1], arm * turn[2]]
            )
            whole = whole / max(float(np.linalg.norm(whole)), np.finfo(np.float64).tiny)
            force[:2], moment[2] = contact.friction * whole[:2], arm * whole[2]
        else:
            size = max(float(np.hypot(move[0], move[1])), np.finfo(np.float64).tiny)
            force[:2] = contact.friction * move[:2] / size
            if 0.0 < arm < np.inf:
                moment[2] = arm * np.sign(turn[2])
    if np.isfinite(contact.tip_arm):
        bend = np.array([0.0 if contact.kind == "edge" else turn[0], turn[1]])
        size = max(float(np.linalg.norm(bend)), np.finfo(np.float64).tiny)
        moment[:2] = contact.tip_arm * bend / size
    return np.concatenate([moment @ contact.axes, force @ contact.axes])


def _elliptic(contact: Contact) -> bool:
    within = 0.0 < contact.twist_arm < np.inf
    return contact.law == "ellipse" and contact.friction > 0.0 and within
