"""Mechanisms that statements are tried on before anything is said about them.

What is special about a mechanism can make a false statement true: B* B = I where nodes are body
frames, H H* = I without helical hinges, (𝓜 + N)⁻¹ = 𝓜⁻¹ without armature, no cross-branch term
where one side of a branch does not move. So nothing here is special: every hinge has armature and
every body a frame away from its hinge, roots move, trees have two sides that both carry more, all
kinds of hinges occur, nodes stand away from body frames and can move in all six directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from linkwise.model.builder import Builder
from linkwise.model.closure import closure_nodes
from linkwise.model.drive import Drive
from linkwise.model.hinges import Pin
from linkwise.model.mechanism import Mechanism
from linkwise.models.random_tree import HINGE_KINDS, random_tree
from linkwise.spatial.pose import Pose


@dataclass(frozen=True, slots=True)
class Sample:
    """A mechanism that statements are tried on.

    Attributes:
        mech: The mechanism.
        nodes: Its nodes of the space NODE, in order.
    """

    mech: Mechanism
    nodes: tuple[str, ...]

    @property
    def without_armature(self) -> Sample:
        """The same one without armature."""
        return replace(self, mech=self.mech.without_armature())


@dataclass(frozen=True, slots=True)
class _Plan:
    """Kind and parent of each body's hinge, and the two bodies that have nodes."""

    hinges: tuple[str, ...]
    parents: tuple[int, ...]
    tips: tuple[int, int]


_TREES = (
    # Two sides, each three bodies deep and branched again, on a root that moves.
    _Plan(
        ("cylindrical", "spherical", "gimbal", "helical", "pin", "universal", "planar", "screws"),
        (-1, 0, 0, 1, 2, 3, 4, 1),
        (5, 6),
    ),
    _Plan(
        ("free", "pin", "screws", "universal", "translation", "rolling_ball", "locked", "pin"),
        (-1, 0, 0, 1, 2, 3, 1, 6),
        (5, 4),
    ),
    _Plan(("pin",) * 13, (-1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10), (11, 12)),
)
_CHAINS = (
    _Plan(
        ("universal", "spherical", "helical", "pin", "prismatic", "planar", "pin", "gimbal"),
        (-1, 0, 1, 2, 3, 4, 5, 6),
        (3, 7),
    ),
    _Plan(("free", "screws", "pin", "locked", "cylindrical", "pin"), (-1, 0, 1, 2, 3, 4), (0, 5)),
)


@cache
def samples(where: str, *, closed: bool = False) -> tuple[Sample, ...]:
    """What statements about "any tree" or about "serial chains" are tried on.

    Args:
        where: "any tree" for branched ones, or "serial chains".
        closed: With loops and couplings, for statements about constraints.
    """
    plans = _CHAINS if where == "serial chains" else _TREES
    return tuple(_built(plan, seed, closed=closed) for seed, plan in enumerate(plans))


def _built(plan: _Plan, seed: int, *, closed: bool) -> Sample:
    """Frames and inertias of a random tree, hung and hinged by the plan."""
    rng, count = np.random.default_rng(seed), len(plan.hinges)
    drawn = random_tree(count, seed, hinges=("pin",), mass_ratio=3.0, drives=False).bodies
    b = Builder(f"sample_{seed}")
    for k, (body, kind, parent) in enumerate(zip(drawn, plan.hinges, plan.parents, strict=True)):
        hinge = HINGE_KINDS[kind](rng)
        armature = tuple(rng.uniform(0.05, 0.2, hinge.nv).tolist())
        b.body(
            body.name,
            "world" if parent < 0 else drawn[parent].name,
            hinge,
            hinge_name=f"hinge_{k + 1}",
            inboard=body.inboard,
            outboard=_pose(rng),
            inertia=body.inertia,
            drive=Drive(armature=armature) if armature else Drive(),
        )
    tools = tuple(f"tool_{i + 1}" for i in range(len(plan.tips)))
    for name, tip in zip(tools, plan.tips, strict=True):
        b.node(name, drawn[tip].name, _pose(rng))
    if closed:
        _close(b, [drawn[k].name for k in plan.tips], plan.hinges, rng)
    mech = b.build()
    return Sample(mech, (*closure_nodes(mech), *tools))


def _close(b: Builder, tips: Sequence[str], kinds: Sequence[str], rng: np.random.Generator) -> None:
    """A loop between the two tips, one to the ground, and a coupling between two coordinates.

    Expressions are evaluated where the loops are open too: their rows are those of the pose.
    """
    for name, ends in {"across": tips, "down": ("world", tips[0])}.items():
        for side, body in zip("ab", ends, strict=True):
            b.node(f"{name}_{side}", body, _pose(rng))
        b.loop(name, f"{name}_a", f"{name}_b", Pin((0.0, 0.6, 0.8)))
    plain = [f"hinge_{k + 1}" for k, kind in enumerate(kinds) if kind in ("pin", "helical")]
    b.couple("follows", plain[-1], {plain[0]: (0.7, 0.2)})


def _pose(rng: np.random.Generator) -> Pose:
    return Pose.rpy(rng.uniform(-1.5, 1.5, 3), rng.uniform(-0.2, 0.2, 3))


__all__ = ["Sample", "samples"]
