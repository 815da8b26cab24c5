"""Derivations: chains of equal expressions, each step with the identity that justifies it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from linkwise.algebra import role
from linkwise.algebra.dense import STATE_BLOCKS, STATE_VECTORS, Dense
from linkwise.algebra.expr import Adjoint, Expr, Inverse, Product, Sum, Symbol
from linkwise.algebra.rule import Needs, Rule, Where
from linkwise.arguments import names
from linkwise.brief import counted
from linkwise.front_door import open_front_door
from linkwise.model.mechanism import Mechanism


@dataclass(frozen=True, slots=True)
class Step:
    """One step: from `before` to `after` by an identity.

    Attributes:
        before: The expression before it.
        after: The equal expression after it.
        identity: Name of the identity.
        statement: What it says, as mathematics.
        source: Where it comes from.
        where: On which mechanisms it holds.
        rule: The identity as data; None for definitions and arithmetic.
        needs: "N = 0" for a step that drops the armature.
    """

    before: Expr
    after: Expr
    identity: str
    statement: str
    source: str
    where: Where = "any tree"
    rule: Rule | None = None
    needs: Needs = ""


@dataclass(frozen=True, slots=True)
class Derivation:
    """A chain of steps.

    Attributes:
        start: The expression it starts from.
        steps: The steps.
    """

    start: Expr
    steps: tuple[Step, ...] = ()

    @property
    def result(self) -> Expr:
        """The expression it ends with."""
        return self.steps[-1].after if self.steps else self.start

    @property
    def where(self) -> Where:
        """Where all of its steps hold."""
        chains = any(step.where == "serial chains" for step in self.steps)
        return "serial chains" if chains else "any tree"

    @property
    def needs(self) -> Needs:
        """Whether one of its steps drops the armature: "N = 0", or an empty text."""
        return "N = 0" if any(step.needs for step in self.steps) else ""

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        steps = counted(len(self.steps), "step")
        return f"<Derivation of {self.start}: {steps} to {self.result}>"

    def __str__(self) -> str:
        lines = [f"    {self.start}"]
        for step in self.steps:
            lines.append(f"  = {step.after}")
            lines.append(f"        {step.identity}: {step.statement}   [{step.source}]")
        return "\n".join(lines)

    def latex(self) -> str:
        """An aligned environment, a line a step."""
        rows = [f"& {self.start.latex()}"]
        rows += [
            rf"&= {step.after.latex()} && \text{{{_tex_text(step.identity)}}}"
            for step in self.steps
        ]
        return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"

    def replay(self) -> bool:
        """Repeat every step by its identity; True if each gives the same result.

        The ends are compared as matrices of sample mechanisms, too.

        Raises:
            ProofError: Every step follows, yet the ends differ: a bug in Linkwise.
        """
        from linkwise.algebra.replay import replays

        return replays(self)

    def reversed(self) -> Derivation:
        """The same chain walked backwards."""
        back = tuple(replace(s, before=s.after, after=s.before) for s in reversed(self.steps))
        return Derivation(self.result, back)

    def then(self, other: Derivation) -> Derivation:
        """This chain, followed by another that starts where it ends."""
        return Derivation(self.start, (*self.steps, *other.steps))

    def check(self, mech: Mechanism, *, seed: int = 0, nodes: Sequence[str] | None = None) -> float:
        """Largest relative difference between the start and any step, evaluated as matrices.

        Args:
            mech: The mechanism to evaluate on.
            seed: For its configuration and for all vectors and operators that need values.
            nodes: Nodes of the space NODE; by default the frame of the last body.
        """
        nodes = None if nodes is None else names(nodes, "nodes")
        dense = random_dense(mech, [self.start, *(s.after for s in self.steps)], seed, nodes)
        return max((residual(dense, self.start, step.after) for step in self.steps), default=0.0)


def residual(dense: Dense, left: Expr, right: Expr) -> float:
    """Largest difference of two sides, relative to the largest entry of either.

    A side that is zero, or becomes zero as its terms cancel, is measured by its terms and factors.
    """
    scale = max(_largest(dense, left), _largest(dense, right))
    apart = float(np.abs(dense.matrix(left) - dense.matrix(right)).max(initial=0.0))
    return 0.0 if scale == 0.0 else apart / scale  # NaN is not zero


def _largest(dense: Dense, expr: Expr) -> float:
    """The largest entry of any term; for a product that is zero, that of its factors multiplied."""
    largest = float(np.abs(dense.matrix(expr)).max(initial=0.0))
    if isinstance(expr, Sum):
        return max(largest, *(abs(c) * _largest(dense, e) for c, e in expr.terms))
    if isinstance(expr, Product):
        inside = float(np.prod([_largest(dense, f) for f in expr.factors]))
        return inside if largest < 1e-12 * inside else largest
    return largest


def random_dense(
    mech: Mechanism, exprs: Sequence[Expr], seed: int = 0, nodes: Sequence[str] | None = None
) -> Dense:
    """Matrices of a mechanism in a random state, with random values for given operands."""
    rng = np.random.default_rng(seed)
    chosen = [mech.bodies[-1].name] if nodes is None and mech.bodies else list(nodes or ())
    dense = Dense(mech, mech.random(rng), mech.random_velocity(rng), nodes=chosen)
    for leaf in dict.fromkeys(leaf for expr in exprs for leaf in leaves(expr)):  # in a fixed order
        key = leaf.role
        if isinstance(key, role.Vector) and (
            key.source not in STATE_VECTORS or key.source in ("servo", "task_error")
        ):
            dense.values[key.source] = rng.standard_normal(dense.size(leaf.range))
        elif isinstance(key, role.ErrorRate):
            shape = dense.size(leaf.range), dense.size(leaf.domain)
            dense.values[leaf.ascii] = rng.standard_normal(shape)
        elif isinstance(key, role.Shift) and key.source != "phi":
            steps = rng.standard_normal((mech.n_bodies, 6, 6)) / np.sqrt(6.0)  # or paths would grow
            dense.values[key.source] = list(steps)
        elif isinstance(key, role.Memoryless) and key.source not in STATE_BLOCKS:
            dense.values[key.source] = _random_blocks(leaf, key, dense, rng)
    return dense


def _random_blocks(
    leaf: Symbol, key: role.Memoryless, dense: Dense, rng: np.random.Generator
) -> list[np.ndarray]:
    shapes = zip(dense.slices(leaf.range), dense.slices(leaf.domain), strict=True)
    blocks = [rng.standard_normal((r.stop - r.start, d.stop - d.start)) for r, d in shapes]
    if key.is_definite:
        return [x @ x.T + np.eye(len(x)) for x in blocks]
    if key.is_semidefinite:
        return [x[:, :1] @ x[:, :1].T for x in blocks]
    if key.is_symmetric:
        return [x + x.T for x in blocks]
    return blocks


def leaves(expr: Expr) -> Iterator[Symbol]:
    """All symbols of an expression, those inside definitions included."""
    if isinstance(expr, Symbol):
        yield expr
        key = expr.role
        if isinstance(key, role.Named):
            yield from leaves(key.definition)
        elif isinstance(key, role.Resolvent):
            yield from leaves(key.of)
        elif isinstance(key, role.Lyapunov):
            yield from (*leaves(key.a), *leaves(key.b), *leaves(key.core))
        elif isinstance(key, role.Siblings):
            yield from (*leaves(key.shift), *leaves(key.inside))
        elif isinstance(key, role.Riccati):
            for part in key.family[:4]:
                if isinstance(part, Symbol):
                    yield from leaves(part)
    elif isinstance(expr, Adjoint | Inverse):
        yield from leaves(expr.of)
    elif isinstance(expr, Product):
        for factor in expr.factors:
            yield from leaves(factor)
    elif isinstance(expr, Sum):
        for _, inner in expr.terms:
            yield from leaves(inner)


def _tex_text(text: str) -> str:
    greek = {"φ": r"$\phi$", "ψ": r"$\psi$", "Υ": r"$\Upsilon$", "Ω": r"$\Omega$", "Ξ": r"$\Xi$"}
    marks = {"_": r"\_", "̃": "~", "Π": r"$\Pi$", "̄": "", "⁻¹": "$^{-1}$", "⁺": "$^+$"}
    for old, new in {**greek, **marks}.items():
        text = text.replace(old, new)
    return text


open_front_door(globals(), ("Derivation",))
