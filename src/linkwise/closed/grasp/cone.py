"""The cone of forces that a contact can hold, by its edges and by its support.

Inner approximation: each curved limit is replaced by the hull of points on it, so that what is held
by the edges is held indeed. With n sides a circle of radius 1 loses 1 - cos(π/n) of it: 7.6 % for 8
sides, 1.9 % for 16.
"""

from __future__ import annotations

import itertools

import numpy as np

from linkwise.closed.grasp.contact import Contact
from linkwise.errors import ModelError
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
    if sides < 3:
        raise ModelError(f"a cone with {sides} sides was asked for; it needs at least 3.")
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


def support(contact: Contact, V: Array) -> float:
    """The most work, exactly, that a force of the contact does along V (6,) [W].

    With a normal force of at most 1 N; for a contact without limits, a force of norm 1. inf where
    a force without a limit works along V.
    """
    if contact.two_sided:
        return float(np.linalg.norm(contact.passed @ V))
    turn, move = contact.axes @ V[:3], contact.axes @ V[3:]
    total = float(move[2])
    if contact.kind == "frictionless":
        return max(total, 0.0)
    slip = contact.friction * float(np.hypot(move[0], move[1]))
    if contact.kind != "point":
        twist = contact.twist_arm * abs(float(turn[2])) if turn[2] else 0.0
        slip = float(np.hypot(slip, twist)) if _elliptic(contact) else slip + twist
    if contact.kind in ("edge", "rigid"):
        bend = abs(float(turn[1])) if contact.kind == "edge" else float(np.hypot(turn[0], turn[1]))
        slip += contact.tip_arm * bend if bend else 0.0
    return max(total + slip, 0.0)


def _elliptic(contact: Contact) -> bool:
    within = 0.0 < contact.twist_arm < np.inf
    return contact.law == "ellipse" and contact.friction > 0.0 and within
