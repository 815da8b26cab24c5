"""Random trees with random loops and couplings that hold by construction.

A tree is put in a drawn state first. Node b of each loop is then placed where its hinge wants it:
at the pose of node a times hinge.pose(θ), with θ drawn too. Offsets of couplings are what they have
to be. Loops take any two bodies, so that they share hinges and stand inside of each other.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import linkwise as lw
from linkwise.model.body import Coupling, Loop, Node
from linkwise.models.random_tree import HINGE_KINDS, _random_pose
from linkwise.spatial.array import Array

MOVING = tuple(kind for kind in HINGE_KINDS if kind != "locked")

LIGHT = ("spherical", "pin", "translation", "cylindrical")
"""Hinges whose kernels are made quickly, with freedoms enough for several loops."""

KINDS = tuple(kind for kind in HINGE_KINDS if kind not in ("free", "rolling_ball"))
"""A loop by a free hinge asks for nothing; a rolling ball is nonholonomic."""


def looped(
    seed: int,
    kinds: tuple[str, ...],
    *,
    n: int = 9,
    couplings: int = 0,
    hinges: tuple[str, ...] = MOVING,
    ground: bool = False,
) -> tuple[lw.Mechanism, Array]:
    """A mechanism with one loop of each kind, and a configuration in which all of them hold.

    Args:
        seed: Of the random generator.
        kinds: Hinges of the loops.
        n: Number of bodies.
        couplings: How many couplings between hinges of one coordinate, of second degree.
        hinges: Kinds of hinge in the tree.
        ground: Whether the first loop ends on the world.
    """
    rng = np.random.default_rng([seed, 1988])
    tree = lw.models.random_tree(n, seed, hinges=hinges)
    q = tree.random(rng)
    nodes, loops = list(tree.nodes), list[Loop]()
    for i, kind in enumerate(kinds):
        hinge = HINGE_KINDS[kind](rng)
        free = np.full(hinge.nq, np.inf)
        theta = hinge.random(rng, -free, free)
        a, b = (tree.bodies[int(k)].name for k in rng.choice(n, 2, replace=False))
        at_a = _random_pose(rng)
        X_WB = tree.pose(q, a) @ at_a @ hinge.pose(theta)
        if ground and i == 0:
            b, at_b = "world", X_WB
        else:
            at_b = tree.pose(q, b).inverse() @ X_WB
        nodes += [Node(f"a_{i}", a, at_a), Node(f"b_{i}", b, at_b)]
        loops.append(Loop(f"{kind}_{i}", f"a_{i}", f"b_{i}", hinge))
    return replace(
        tree,
        name=f"looped_{seed}",
        nodes=tuple(nodes),
        loops=tuple(loops),
        couplings=tuple(_couplings(tree, q, couplings, rng)),
    ), q


def _couplings(
    tree: lw.Mechanism, q: Array, count: int, rng: np.random.Generator
) -> list[Coupling]:
    """The last hinges of one coordinate each follow two of the first ones."""
    plain = [body.hinge_name for body in tree.bodies if body.hinge.nq == 1]
    assert not count or len(plain) >= count + 2
    result = list[Coupling]()
    for i in range(count):
        dependent, *others = plain[-1 - i], *plain[:2]
        terms = tuple((name, tuple(rng.uniform(-1.0, 1.0, 2))) for name in others)
        bare = Coupling(f"coupling_{i}", dependent, terms)
        known = {name: q[tree.coordinate(name)] for name in others}
        offset = float(q[tree.coordinate(dependent)] - bare.value(known))
        result.append(replace(bare, offset=offset))
    return result


def null_space(J: Array, rank: int) -> Array:
    """Orthonormal columns (n, n - rank) with J times them zero."""
    return np.linalg.svd(J)[2][rank:].T


def triangle(gap: float, *, bar: float = 0.5, mass: float = 1.0) -> lw.Mechanism:
    """Two bars on pins `gap` apart whose ends are joined by a pin; bars of `bar` metres."""
    b = lw.Builder("triangle")
    rod = lw.SpatialInertia.solid_cylinder(mass, 0.02, bar).moved(
        lw.Pose.translation((0.0, 0.0, 0.5 * bar))
    )
    pin = lw.hinges.Pin((0.0, 1.0, 0.0))
    for name, x in (("left", 0.0), ("right", gap)):
        b.body(name, hinge=pin, inboard=(x, 0.0, 0.0), inertia=rod)
        b.node(f"{name} end", name, (0.0, 0.0, bar))
    b.loop("apex", "left end", "right end", pin)
    return b.build()
