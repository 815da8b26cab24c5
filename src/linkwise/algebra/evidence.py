"""What numbers say about a statement: how far its sides are apart, and on which mechanisms.

A statement is claimed for a domain: where ("any tree" or "serial chains"), and whether armature is
excluded ("N = 0"). Numbers cannot prove it, but they can contradict it, and a proof that they
contradict is a bug.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from linkwise.algebra import role
from linkwise.algebra.derivation import leaves, random_dense, residual
from linkwise.algebra.expr import Expr, Symbol
from linkwise.algebra.rule import Needs, Where
from linkwise.algebra.sample import Sample, samples
from linkwise.algebra.space import CONSTRAINT
from linkwise.errors import ProofError
from linkwise.front_door import open_front_door

SAME = 1e-8
"""Largest relative difference of sides that are called equal."""

CLEAR = 1e-3
"""A larger difference is no round-off, however near to singular a state is."""

DOMAINS: tuple[tuple[Where, Needs], ...] = (
    ("any tree", ""),
    ("serial chains", ""),
    ("any tree", "N = 0"),
    ("serial chains", "N = 0"),
)
"""From the widest to the narrowest."""


@dataclass(frozen=True)
class Evidence:
    """How far two sides are apart on sample mechanisms, each number found when it is asked for.

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
            if not (value < SAME or value > CLEAR):  # by chance near singular? another state tells
                value = min(value, self._residual(sample, i + 100), key=_rank)
            values.append(value)
        return _worst(*values)

    def _residual(self, sample: Sample, seed: int) -> float:
        dense = random_dense(sample.mech, [self.left, self.right], seed, sample.nodes)
        return residual(dense, self.left, self.right)


def _worst(*values: float) -> float:
    """The largest; what is no number is the worst."""
    return max(values, key=_rank)


def _rank(value: float) -> tuple[bool, float]:
    return value != value, value


__all__ = ["SAME", "Evidence"]


open_front_door(globals(), ("Evidence",))
