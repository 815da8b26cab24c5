"""The mechanisms that tests share, states of them, and how near numbers have to be.

A new case is one entry of `TREES` or `LINKAGES`; every test over these runs on it.
"""

from __future__ import annotations

from functools import cache

import numpy as np

import linkwise as lw
from linkwise.spatial.array import Array
from tests.algebra.trees import MOVING
from tests.loops.random_loops import LIGHT, looped

BOUNDS = {
    "matrices": 1e-11,  # recursions and explicit matrices of one mechanism
    "libraries": 1e-10,  # Pinocchio and MuJoCo round otherwise
    "closed chains": 1e-10,  # three to four digits are lost by the condition of the constraints
    "embedding": 1e-9,  # of a constrained system that is solved by least squares
    "kernels": 1e-9,  # of expressions as written, inverses of large matrices among them
}
"""Largest differences, of the largest entry."""

TREES = {
    "every hinge, armature": (5, 1, {}),
    "every hinge, others": (5, 8, {}),
    "no armature": (4, 3, {"drives": False}),
    "floating": (4, 4, {"floating": True}),
    "mass ratio of a million": (5, 5, {"mass_ratio": 1e6, "hinges": MOVING}),
    "pins": (6, 6, {"hinges": ("pin",), "branching": 0.7}),
}


@cache
def tree(name: str) -> lw.Mechanism:
    """One of the random trees, with a node away from its body and one on the ground."""
    n, seed, options = TREES[name]
    mech = lw.models.random_tree(n, seed, **options)
    mech = mech.with_gravity((0.3, -9.0, 2.0))
    mech = mech.with_node("tool", mech.bodies[-1].name, lw.Pose.rpy((0.3, 0.5, -1), (0.1, 0.2, 0)))
    return mech.with_node("post", "world", lw.Pose.rpy((0.1, 0.2, 0.3), (1.0, 2.0, 3.0)))


def state(mech: lw.Mechanism, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v and something for the joints: forces or accelerations."""
    rng = np.random.default_rng(seed)
    return mech.random(rng), mech.random_velocity(rng), 3.0 * rng.standard_normal(mech.nv)


def states(mech: lw.Mechanism, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A batch of them."""
    drawn = [state(mech, seed) for seed in range(count)]
    q, v, x = (np.stack(part) for part in zip(*drawn, strict=True))
    return q, v, x


def close(
    result: object,
    expected: object,
    bound: float | str = "matrices",
    scale: float | None = None,
    least: float = 1e-300,
) -> None:
    """Equal up to a bound, or one of `BOUNDS`, of the largest entry expected (or of a scale).

    The scale is at least `least`.
    """
    ours, theirs = np.asarray(result), np.asarray(expected)
    assert ours.shape == theirs.shape
    size = float(np.abs(theirs).max(initial=0.0)) if scale is None else scale
    apart = float(np.abs(ours - theirs).max(initial=0.0))
    most = BOUNDS[bound] if isinstance(bound, str) else bound
    assert apart <= most * max(size, least), f"{apart} of {size}, more than {most}"


# ------------------------------------------------------------------------------------ closed chains

LINKAGES: dict[str, int | None] = {
    "four_bar": 2,
    "peaucellier": 6,
    "bennett": 2,
    "stewart": 18,
    "dual_arm": 12,
    "nested": None,
    "couplings": None,
}
"""Each with the rank of its constraints where its description says it."""

DRIVEN = {
    "four_bar": ("crank",),
    "peaucellier": ("crank",),
    "bennett": ("bar_1",),
    "stewart": tuple(f"slider_{k}" for k in range(1, 7)),
}
"""As many drives as freedoms."""


@cache
def linkage(name: str) -> tuple[lw.Mechanism, Array]:
    """A mechanism, and a configuration with closed loops."""
    if name == "nested":
        return looped(3, ("spherical", "pin", "planar"), n=7, hinges=LIGHT)
    if name == "couplings":
        return looped(4, ("spherical",), n=8, couplings=2, hinges=("pin", "prismatic"))
    mech = bennett() if name == "bennett" else getattr(lw.models, name)()
    step = 0.1 * np.random.default_rng(3).standard_normal(mech.nv)
    q = lw.loops.project_position(mech, mech.integrate(mech.neutral(), step)).required()
    q.setflags(write=False)
    return mech, q


def bennett(*, first: float = 0.4, second: float = 0.6, twist: float = 0.5) -> lw.Mechanism:
    """Four bars in space on four pins that are nowhere parallel, and move all the same.

    Opposite bars are equal, lengths a and b with twists α and β: a / sin α = b / sin β (Bennett
    1903). Half angles then follow tan θ₁/2 tan θ₂/2 = sin ½(β + α) / sin ½(β - α), and opposite
    angles add up to a full turn. Three pins are in the tree, the fourth is the loop: five rows of
    rank two. Off the closed configurations the rank is three, unlike that of a planar linkage.
    """
    other = float(np.arcsin(second * np.sin(twist) / first))
    theta_1 = 1.1
    ratio = np.sin(0.5 * (other + twist)) / np.sin(0.5 * (other - twist))
    theta_2 = 2.0 * np.arctan(ratio / np.tan(0.5 * theta_1))
    angles = (theta_1, theta_2, -theta_1, -theta_2)
    bars = [
        lw.Pose.translation((length, 0.0, 0.0)) @ lw.Pose.rpy((angle, 0.0, 0.0))
        for length, angle in ((first, twist), (second, other), (first, twist), (second, other))
    ]
    rod = lw.SpatialInertia.solid_cylinder(1.0, 0.02, 0.4)
    b, parent, at = lw.Builder("bennett"), "world", lw.Pose.identity()
    for k in range(3):
        # Angles at q = 0 are folded into the poses before the pins.
        at = at @ lw.Pose.rpy((0.0, 0.0, angles[k]))
        b.body(f"bar_{k + 1}", parent, lw.hinges.Pin(), inboard=at, inertia=rod)
        parent, at = f"bar_{k + 1}", bars[k]
    b.node("last end", parent, at @ lw.Pose.rpy((0.0, 0.0, angles[3])))
    b.node("base end", "world", bars[3].inverse())
    b.loop("fourth", "last end", "base end", lw.hinges.Pin())
    return b.build()


def rank_of(J: Array) -> int:
    """Rank by a plain decomposition; the linkages here have no singular values around 1e-9."""
    return int(np.linalg.matrix_rank(J, tol=1e-9))


def parallelogram() -> tuple[lw.Mechanism, Array]:
    """A four bar of equal opposite sides, folded flat: it can go on in two ways from there.

    The crank is turned from upright to along the ground, all other bars lie on the same line.
    """
    mech = lw.models.four_bar(ground=0.4, crank=0.2, coupler=0.4, rocker=0.2)
    return mech, np.array([0.5 * np.pi, -0.5 * np.pi, 0.5 * np.pi])
