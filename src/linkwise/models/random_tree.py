"""Random trees with every hinge, for tests that must hold on any mechanism."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from linkwise.arguments import count
from linkwise.errors import ModelError, unknown_name
from linkwise.model import Builder, Drive, Geometry, Mechanism
from linkwise.model.hinges import (
    Cylindrical,
    Free,
    Gimbal,
    Helical,
    Hinge,
    Locked,
    Pin,
    Planar,
    Prismatic,
    RollingBall,
    Screws,
    Spherical,
    Translation,
    Universal,
)
from linkwise.models.shapes import BLUE, IVORY, MOST_BODIES, ORANGE, STEEL, capsule, solid
from linkwise.spatial import Pose, SpatialInertia, rotation
from linkwise.spatial.array import Array

Rng = np.random.Generator
_SIZE = 0.2  # typical distance between a body and its hinges [m]


def random_tree(
    n: int,
    seed: int,
    *,
    hinges: Sequence[str] | None = None,
    branching: float = 0.4,
    floating: bool = False,
    mass_ratio: float = 10.0,
    drives: bool = True,
) -> Mechanism:
    """A tree of n bodies drawn at random; the same arguments give the same tree.

                 ┌─o body_3 ─o body_5 •          parents, hinges, frames, inertias and
        world o body_1                           drives are all random; • tips of branches
                 └─o body_2 ─o body_4 •          are the nodes "tip_4", "tip_5"

    It always has these properties:

    * Body 1 hangs on the world, each other body on one with a smaller number. From n = 3 on some
      body has two or more children.
    * Hinges come from a shuffled pack that is dealt out before it is shuffled again: with at
      least as many bodies as kinds every kind occurs. Axes, pitches and radii are random.
    * Inertias are those of eight points of positive mass, so they are possible and satisfy the
      triangle inequality strictly. No body is heavier than `mass_ratio` times another.
    * Half of the body frames are at the hinge, half away from it, all turned at random.
    * With `drives`, about half of the hinges have armature, damping and friction, some of those
      with plain coordinates a spring and ranges around zero.

    Args:
        n: Number of bodies, at least 1. Degrees of freedom depend on the hinges dealt.
        seed: Of the random generator.
        hinges: Kinds to deal, by name, from `HINGE_KINDS`; all of them by default. Repeat a name to
            make it more frequent; leave out "locked" for trees without welds.
        branching: Chance from 0 to 1 that a body hangs on a random earlier one, not on the last.
        floating: Put body 1 on a free hinge.
        mass_ratio: Bound of the ratio of masses, at least 1.
        drives: False for hinges without armature, damping, friction, springs and ranges.

    Raises:
        ModelError: an argument is out of its range, or a kind of hinge is unknown.
    """
    n = count(n, "the number of bodies of random_tree", least=1, most=MOST_BODIES)
    if mass_ratio < 1.0 or not 0.0 <= branching <= 1.0:
        raise ModelError(
            f"random_tree was given mass_ratio {mass_ratio} and branching {branching}; the ratio "
            "must be at least 1, branching between 0 and 1."
        )
    kinds = list(HINGE_KINDS) if hinges is None else list(hinges)
    for kind in kinds:
        if kind not in HINGE_KINDS:
            raise unknown_name("kind of hinge", kind, HINGE_KINDS, owner="lw.models.random_tree")
    if not kinds:
        raise ModelError("random_tree was given no kind of hinge; give at least one.")
    rng = np.random.default_rng(seed)
    parents, dealt = _parents(n, branching, rng), _deal(n, kinds, rng)
    inboards = [_random_pose(rng) for _ in range(n)]
    outer_hinges: list[list[Array]] = [[] for _ in range(n)]
    for k in range(1, n):
        outer_hinges[parents[k]].append(inboards[k].p)
    b = Builder(f"random_tree_{n}_{seed}")
    for k in range(n):
        hinge = Free() if floating and k == 0 else HINGE_KINDS[dealt[k]](rng)
        outboard = Pose.identity() if rng.random() < 0.5 else _random_pose(rng)
        inertia = _random_inertia(rng, mass_ratio)
        b.body(
            f"body_{k + 1}",
            "world" if k == 0 else f"body_{parents[k] + 1}",
            hinge,
            hinge_name=f"hinge_{k + 1}",
            inboard=inboards[k],
            outboard=outboard,
            inertia=inertia,
            drive=_random_drive(rng, hinge) if drives else Drive(),
            geometry=_shape(inertia, [outboard.inverse().p, *outer_hinges[k]], k),
        )
    for k in sorted(set(range(n)) - set(parents[1:])):
        b.node(f"tip_{k + 1}", f"body_{k + 1}", _random_pose(rng))
    return b.build()


def _parents(n: int, branching: float, rng: Rng) -> list[int]:
    """Index of each body's parent, -1 for the first."""
    parents = [-1]
    for k in range(1, n):
        parents.append(int(rng.integers(k)) if rng.random() < branching else k - 1)
    if n >= 3 and parents == list(range(-1, n - 1)):
        # Still a chain: hang one body lower, so that its new parent has two children.
        k = int(rng.integers(2, n))
        parents[k] = int(rng.integers(k - 1))
    return parents


def _deal(n: int, kinds: list[str], rng: Rng) -> list[str]:
    """n kinds from packs that are each shuffled anew."""
    dealt: list[str] = []
    while len(dealt) < n:
        dealt.extend(kinds[int(i)] for i in rng.permutation(np.arange(len(kinds))))
    return dealt[:n]


def _random_pose(rng: Rng) -> Pose:
    """Turned at random, half to one and a half `_SIZE` away in a random direction."""
    away = rotation.random_rotation(rng)[:, 0] * _SIZE * rng.uniform(0.5, 1.5)
    return Pose.rotation(rotation.random_rotation(rng), away)


def _random_inertia(rng: Rng, mass_ratio: float) -> SpatialInertia:
    """Eight points around a centre away from the frame's origin, scaled to a random mass."""
    mass = mass_ratio ** float(rng.random())
    weight = rng.uniform(0.5, 1.5, 8)
    weight *= mass / weight.sum()
    # Along and against each axis of a random frame at least once: never a rod, never a sheet.
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    spread = 0.13 * _SIZE * rng.uniform(0.7, 1.3, (8, 3)) * corners
    points = rng.uniform(-0.5 * _SIZE, 0.5 * _SIZE, 3) + spread @ rotation.random_rotation(rng).T
    com = weight @ points / mass
    r = points - com
    J_com = (weight * (r**2).sum(axis=1)).sum() * np.eye(3) - (weight * r.T) @ r
    return SpatialInertia.from_com(mass, com, 0.5 * (J_com + J_com.T))


def _random_drive(rng: Rng, hinge: Hinge) -> Drive:
    if hinge.nv == 0 or rng.random() < 0.5:
        return Drive()
    plain = hinge.nq == hinge.nv  # no quaternion: springs and ranges mean something for each entry
    spring, ranged = plain and rng.random() < 0.3, plain and rng.random() < 0.5
    return Drive(
        armature=float(rng.uniform(0.01, 0.2)),
        damping=float(rng.uniform(0.0, 0.5)),
        friction=float(rng.uniform(0.0, 0.2)),
        stiffness=float(rng.uniform(1.0, 10.0)) if spring else 0.0,
        lower=-float(rng.uniform(0.5, 2.0)) if ranged else -np.inf,
        upper=float(rng.uniform(0.5, 2.0)) if ranged else np.inf,
        effort=float(rng.uniform(10.0, 100.0)),
    )


def _shape(inertia: SpatialInertia, hinges: list[Array], k: int) -> tuple[Geometry, ...]:
    """The ellipsoid with the same inertia, and sticks that join it to the hinges around it."""
    moments, axes = inertia.principal()
    second = 0.5 * moments.sum() - moments  # m ⟨x²⟩ along each principal axis
    semi_axes = np.sqrt(5.0 * second / float(inertia.mass))
    pose = Pose.rotation(axes, inertia.com)
    rgba = (IVORY, BLUE, STEEL, ORANGE)[k % 4]
    return (
        solid("body", "ellipsoid", tuple(semi_axes.tolist()), pose, rgba),
        *(capsule(f"stick_{i}", p, inertia.com, 0.01, rgba) for i, p in enumerate(hinges)),
    )


def _axis(rng: Rng) -> tuple[float, float, float]:
    x, y, z = rotation.random_rotation(rng)[:, 0]
    return (float(x), float(y), float(z))


def _frame(rng: Rng) -> list[tuple[float, float, float]]:
    """Three perpendicular axes."""
    rot: Array = rotation.random_rotation(rng)
    return [(float(a[0]), float(a[1]), float(a[2])) for a in rot.T]


def _universal(rng: Rng) -> Hinge:
    first, second, _ = _frame(rng)
    return Universal(first, second)


def _gimbal(rng: Rng) -> Hinge:
    first, second, third = _frame(rng)
    return Gimbal((first, second, third))


def _screws(rng: Rng) -> Hinge:
    """Two screws: unit axes, each with a random moment (offset and pitch)."""
    rows = np.hstack([rotation.random_rotation(rng)[:2], rng.uniform(-_SIZE, _SIZE, (2, 3))])
    return Screws(tuple(tuple(row) for row in rows.tolist()))


HINGE_KINDS: dict[str, Callable[[Rng], Hinge]] = {
    "pin": lambda rng: Pin(_axis(rng)),
    "prismatic": lambda rng: Prismatic(_axis(rng)),
    "helical": lambda rng: Helical(_axis(rng), float(rng.uniform(0.01, 0.1))),
    "cylindrical": lambda rng: Cylindrical(_axis(rng)),
    "universal": _universal,
    "planar": lambda rng: Planar(_axis(rng)),
    "spherical": lambda rng: Spherical(),
    "gimbal": _gimbal,
    "translation": lambda rng: Translation(),
    "free": lambda rng: Free(),
    "locked": lambda rng: Locked(),
    "rolling_ball": lambda rng: RollingBall(float(rng.uniform(0.05, 0.3))),
    "screws": _screws,
}
"""Kinds of hinge that `random_tree` deals, and how each is drawn."""
