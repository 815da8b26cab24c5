"""Frames whose elements close loops, beside the theory of beams that are held at both ends."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

import linkwise as lw
from linkwise.flexible import frame

YOUNG, DENSITY, AREA, I, STIFF = 70e9, 2700.0, 1e-4, 1e-9, 10.0
L, WIDTH, PARTS = 1.0, 0.3, 12
PLANE = ("x", "y", "rz")


def built(*members, **options):
    """A plane frame of members, each (corners' names and places, flexible or stiff, parts)."""
    nodes, pairs, table, known = [], [], [], {}

    def node(place):
        key = tuple(np.round(place, 9).tolist())
        if key not in known:
            known[key] = len(nodes)
            nodes.append((*key, 0.0))
        return known[key]

    for start, end, stiff, parts in members:
        ids = [node(x) for x in np.linspace(start, end, parts + 1)]
        pairs += pairwise(ids)
        row = (STIFF, STIFF, STIFF, STIFF) if stiff else (AREA, I, I, 2 * I)
        table += [row] * parts
    given = {"sections": table, "young": YOUNG, "density": DENSITY, "directions": PLANE}
    return frame(nodes, pairs, **{**given, **options}), known


def leaves(**options):
    """Two leaf springs along x between a stiff bar at the root and one at the far end."""
    half = 0.5 * WIDTH
    b = (0.0, half), (0.0, -half), (L, half), (L, -half)
    members = [
        ((0.0, 0.0), b[0], True, 1),
        ((0.0, 0.0), b[1], True, 1),
        (b[0], b[2], False, PARTS),
        (b[1], b[3], False, PARTS),
        (b[2], (L, 0.0), True, 1),
        ((L, 0.0), b[3], True, 1),
    ]
    _, known = built(*members, modes=1)
    return built(*members, modes=1, tip_node=known[(L, 0.0)], **options)[0]


def test_parallel_leaf_springs():
    """k = 2 · 12 E I / L³; the bar moves along a parabola, by 3/5 w² / L."""
    load = 50.0
    body = leaves(tip=lw.SpatialInertia.point(load))
    bar = DENSITY * STIFF * WIDTH
    moving = load + bar + 2.0 * 13.0 / 35.0 * DENSITY * AREA * L
    exact = np.sqrt(24.0 * YOUNG * I / L**3 / moving) / (2.0 * np.pi)
    np.testing.assert_allclose(body.frequencies[0], exact, rtol=2e-3)
    shape = body.modes[body.tip, 3:, 0]
    second = np.asarray(body.second)[body.tip, :, 0, 0]
    np.testing.assert_allclose(0.5 * second[0], -0.6 * shape[1] ** 2 / L, rtol=2e-3)
    assert abs(second[1]) < 1e-6 * abs(second[0])


def test_a_beam_held_at_both_ends():
    """A stiff frame holds a beam, which stretches: S is that of least energy.

    By Clapeyron a force at x = a is carried by tension in front and pressure behind, in the ratio
    of compliances; its work on displacements of second order is that of these forces on the
    shortening, ½ ∫ β² dx: S_x(a) = -(1 - a/L) ∫₀ᵃ β² dx + (a/L) ∫ₐᴸ β² dx.
    """
    members = [
        ((0.0, 0.0), (0.0, -WIDTH), True, 1),
        ((0.0, -WIDTH), (L, -WIDTH), True, 1),
        ((L, -WIDTH), (L, 0.0), True, 1),
        ((0.0, 0.0), (L, 0.0), False, PARTS),
    ]
    body, _ = built(*members, modes=1)
    exact = 4.7300407449**2 / (2 * np.pi) * np.sqrt(YOUNG * I / (DENSITY * AREA * L**4))
    np.testing.assert_allclose(body.frequencies[0], exact, rtol=2e-3)
    beam = np.flatnonzero(body.positions[:, 1] == 0.0)[: 2 * PARTS]
    x, fine, k = body.positions[beam, 0], np.linspace(0.0, L, 4001), 4.7300407449 / L
    ratio = (np.cosh(k * L) - np.cos(k * L)) / (np.sinh(k * L) - np.sin(k * L))

    def shape(x):
        return np.cosh(k * x) - np.cos(k * x) - ratio * (np.sinh(k * x) - np.sin(k * x))

    scale = body.modes[beam, 4, 0] @ shape(x) / (shape(x) @ shape(x))
    square = (scale * np.gradient(shape(fine), fine)) ** 2
    until = np.concatenate([[0.0], np.cumsum(0.5 * (square[1:] + square[:-1]) * np.diff(fine))])
    before = np.interp(x, fine, until)
    expected = -(1.0 - x / L) * before + x / L * (until[-1] - before)
    second = np.asarray(body.second)[beam, 0, 0, 0]
    np.testing.assert_allclose(second, expected, atol=1e-3 * np.abs(expected).max())


def test_rings_are_connected_in_any_order():
    """A square ring, listed from both sides: the same body, as stiff as it is."""
    corners = [(0.0, 0.0), (L, 0.0), (L, L), (0.0, L)]
    sides = [(corners[i], corners[(i + 1) % 4], False, 4) for i in range(4)]
    ring, known = built(*sides, modes=2)
    back = [(b, a, stiff, n) for a, b, stiff, n in reversed(sides)]
    other, places = built(*[sides[0], *back[:3]], modes=2, tip_node=-1)
    np.testing.assert_allclose(ring.frequencies, other.frequencies, rtol=1e-9)
    assert len(known) == len(places) == 16
    open_frame, _ = built(*sides[:3], modes=2)
    assert ring.frequencies[0] > 1.5 * open_frame.frequencies[0]
    spun = ring.add_to(lw.Builder("ring"), "ring", "world", lw.hinges.Pin()).build()
    assert not [x for x in spun.validate() if x.severity == "error"]
