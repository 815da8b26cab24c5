"""Identities as data: what equals what, where it holds, and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Literal

from linkwise.algebra import role
from linkwise.algebra.expr import Expr, Symbol, nodes, substituted, symbol, total, zero
from linkwise.algebra.family import RIGID_SHIFT, Family, lyapunov, marked, resolvent, typed

Where = Literal["any tree", "serial chains"]
Needs = Literal["", "N = 0"]
Kind = Literal["definition", "axiom", "theorem"]


@dataclass(frozen=True, slots=True)
class Rule:
    """left = right.

    Attributes:
        name: How derivations call it.
        left: One side; for use in simplification the side to be substituted.
        right: The other side.
        where: On which mechanisms it holds, given that every D is invertible.
        needs: "N = 0" if it holds only in families without noise, on mechanisms without armature.
        source: Document and number: "001 a.35", "000 Lemma 5.1".
        kind: "definition" and "axiom" are what proofs start from; a "theorem" has a proof.
    """

    name: str
    left: Expr
    right: Expr
    where: Where
    source: str
    kind: Kind
    needs: Needs = ""

    def __str__(self) -> str:
        return f"{self.left} = {self.right}"

    @property
    def domain(self) -> str:
        """Where it holds, in words."""
        return self.where + (" without armature" if self.needs else "")

    @property
    def adjoint(self) -> Rule:
        """The same statement about the adjoints."""
        return replace(self, left=self.left.T, right=self.right.T)

    def holds_in(self, family: Family) -> bool:
        """Whether it may be used for the operators of a family."""
        if self.needs and family.noise is not None:
            return False
        return family.E.role == RIGID_SHIFT or not _speaks_of_inboard(self)

    def about(self, family: Family) -> Rule:
        """The same statement about the operators of another family.

        It is a true one only where the rule `holds_in` the family.
        """
        change = _dictionary(family)
        left, right = substituted(self.left, change.get), substituted(self.right, change.get)
        return replace(self, left=left, right=right)


def rule(
    name: str,
    left: Expr,
    right: Expr,
    source: str,
    *,
    kind: Kind = "theorem",
    where: Where = "any tree",
    needs: Needs = "",
) -> Rule:
    """A rule; raises if its sides do not map between the same spaces."""
    # Adding nothing of the other side gives a bare I its space, and checks that the two match.
    left, right = total(((1.0, left), (0.0, right))), total(((1.0, right), (0.0, left)))
    return Rule(name, left, right, where, source, kind, needs)


@lru_cache(maxsize=64)
def _dictionary(family: Family) -> dict[Expr, Expr]:
    """Each operator of the standard family and its counterpart."""
    from linkwise.algebra import symbols as s

    standard = s.articulated
    parts = (
        *("P", "P_plus", "D", "G", "K", "Pi", "Pi_bar", "E_psi", "psi", "psi_tilde"),
        *("Upsilon", "Xi", "E", "M", "H", "phi"),
    )
    change: dict[Expr, Expr] = {getattr(standard, n): getattr(family, n) for n in parts}
    change[s.phi_tilde] = resolvent(family.E, strict=True)
    change[s.R] = lyapunov(family.E, family.M)
    joint = family.H.range
    change[s.N] = zero(joint, joint) if family.noise is None else family.noise
    for old in (s.mass, s.Omega, s.Delta_psi, s.L, s.Psi):
        assert isinstance(old.role, role.Named)
        definition = substituted(old.role.definition, change.get)
        definition = family.factored if old is s.mass else definition
        name, text = old.name + family.mark, old.ascii + typed(family.mark)
        key, tex = role.Named(definition), marked(old.tex, family.mark)
        change[old] = symbol(name, definition.range, definition.domain, key, text, tex)
    return change


@cache
def _speaks_of_inboard(rule: Rule) -> bool:
    """Whether it splits the rigid shift, E_φ = S Δ_φ, which no other shift is split into."""
    from linkwise.algebra.symbols import S

    opened = (_opened(node) for side in (rule.left, rule.right) for node in nodes(side))
    return any(S in nodes(inside) for inside in opened)


def _opened(expr: Expr) -> Expr:
    key = expr.role if isinstance(expr, Symbol) else None
    return key.definition if isinstance(key, role.Named) else expr
