"""What numbers say about a statement: how far its sides are apart, and on which mechanisms.

A statement is claimed for a domain: where ("any tree" or "serial chains"), and whether armature is
excluded ("N = 0"). Numbers cannot prove it, but they can contradict it, and a proof that they
contradict is a bug.

A special mechanism can make a false statement true: B* B = I where nodes are body frames,
H H* = I without helical hinges, (𝓜 + N)⁻¹ = 𝓜⁻¹ without armature, no cross-branch term where one
side of a branch does not move. So the sample mechanisms are not special: every hinge has armature,
every body frame is away from its hinge, roots move, trees have two sides that both carry more, all
kinds of hinges occur, and nodes are away from body frames and can move in all six directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from linkwise.algebra import role
from linkwise.algebra.derivation import leaves, random_dense, residual
from linkwise.algebra.expr import Expr, Symbol
from linkwise.algebra.rule import Needs, Where
from linkwise.algebra.space import CONSTRAINT
from linkwise.errors import ProofError
from linkwise.front_door import open_front_door
from linkwise.model.builder import Builder
from linkwise.model.closure import closure_nodes
from linkwise.model.drive import Drive
from linkwise.model.hinges import Pin
from linkwise.model.mechanism import Mechanism
from linkwise.models.random_tree import HINGE_KINDS, random_tree
from linkwise.spatial.pose import Pose


@dataclass(frozen=True, slots=True)
class Sample:
    """A mechanism on which statements are tested.

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
    """The mechanisms on which statements about "any tree" or "serial chains" are tested.

    Args:
        where: "any tree" for branched ones, or "serial chains".
        closed: With loops and couplings, for statements about constraints.
    """
    plans = _CHAINS if where == "serial chains" else _TREES
    return tuple(_built(plan, seed, closed=closed) for seed, plan in enumerate(plans))


def _built(plan: _Plan, seed: int, *, closed: bool) -> Sample:
    """A mechanism of the plan, with frames and inertias of a random tree."""
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

    Expressions are also evaluated with open loops: their rows are those of the pose.
    """
    for name, ends in {"across": tips, "down": ("world", tips[0])}.items():
        for side, body in zip("ab", ends, strict=True):
            b.node(f"{name}_{side}", body, _pose(rng))
        b.loop(name, f"{name}_a", f"{name}_b", Pin((0.0, 0.6, 0.8)))
    plain = [f"hinge_{k + 1}" for k, kind in enumerate(kinds) if kind in ("pin", "helical")]
    b.couple("follows", plain[-1], {plain[0]: (0.7, 0.2)})


def _pose(rng: np.random.Generator) -> Pose:
    return Pose.rpy(rng.uniform(-1.5, 1.5, 3), rng.uniform(-0.2, 0.2, 3))


SAME = 1e-8
"""Largest relative difference of sides that are called equal."""

CLEAR = 1e-3
"""A larger difference is not round-off, however close to singular a state is."""

DOMAINS: tuple[tuple[Where, Needs], ...] = (
    ("any tree", ""),
    ("serial chains", ""),
    ("any tree", "N = 0"),
    ("serial chains", "N = 0"),
)
"""From the widest to the narrowest."""


@dataclass(frozen=True)
class Evidence:
    """How far two sides are apart on sample mechanisms, each number computed on first use.

    Attributes:
        left: One side.
        right: The other side.
    """

    left: Expr
    right: Expr

    @cached_property
    def on_trees(self) -> float:
        """On branched trees with armature."""
        return self._largest("any tree")

    @cached_property
    def on_chains(self) -> float:
        """On serial chains with armature."""
        return self._largest("serial chains")

    @cached_property
    def on_bare_trees(self) -> float:
        """On branched trees without armature."""
        return self._largest("any tree", bare=True) if self._has_noise else self.on_trees

    @cached_property
    def on_bare_chains(self) -> float:
        """On serial chains without armature."""
        return self._largest("serial chains", bare=True) if self._has_noise else self.on_chains

    def in_domain(self, where: str, needs: str = "") -> float:
        """The largest difference on what the domain contains: chains are trees, too."""
        chains = self.on_bare_chains if needs else self.on_chains
        if where == "serial chains":
            return chains
        return _worst(chains, self.on_bare_trees if needs else self.on_trees)

    @property
    def domain(self) -> tuple[Where, Needs] | None:
        """The widest domain in which the numbers agree."""
        return next((d for d in DOMAINS if self.in_domain(*d) < SAME), None)

    def check(self, where: str, needs: str = "") -> None:
        """Raise if the numbers contradict a proof.

        Raises:
            ProofError: The sides differ somewhere in the domain.
        """
        difference = self.in_domain(where, needs)
        if not difference < SAME:
            domain = where + (" without armature" if needs else "")
            raise ProofError(
                f"a derivation was found of  {self.left} = {self.right}  on {domain}, but the two "
                f"sides differ by {difference:.1e} there. This is a bug in Linkwise, not in your "
                "expression: do not use the result, and please report it."
            )

    @cached_property
    def _has_noise(self) -> bool:
        sources = (leaf.role for leaf in self._leaves if isinstance(leaf.role, role.Memoryless))
        return any(key.source == "N" for key in sources)

    @cached_property
    def _leaves(self) -> tuple[Symbol, ...]:
        return tuple(dict.fromkeys((*leaves(self.left), *leaves(self.right))))

    def _largest(self, where: Where, *, bare: bool = False) -> float:
        closed = any(CONSTRAINT in (leaf.range, leaf.domain) for leaf in self._leaves)
        values = list[float]()
        for i, sample in enumerate(samples(where, closed=closed)):
            sample = sample.without_armature if bare else sample
            value = self._residual(sample, i)
            if not (value < SAME or value > CLEAR):  # near singular by chance? try another state
                value = min(value, self._residual(sample, i + 100), key=_rank)
            values.append(value)
        return _worst(*values)

    def _residual(self, sample: Sample, seed: int) -> float:
        dense = random_dense(sample.mech, [self.left, self.right], seed, sample.nodes)
        return residual(dense, self.left, self.right)


def _worst(*values: float) -> float:
    """The largest; NaN is the worst."""
    return max(values, key=_rank)


def _rank(value: float) -> tuple[bool, float]:
    return value != value, value


open_front_door(globals(), ("Evidence",))
