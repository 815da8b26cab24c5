"""Operator expressions: immutable, hash-consed, typed by the spaces they map between.

The grammar, on one screen:

    expr    ::=  Symbol | Identity | Zero
              |  Adjoint(Symbol)               A*
              |  Inverse(expr)                 A⁻¹
              |  Product(expr, expr, ...)      A B C, applied from the right
              |  Sum((number, expr), ...)      2 A - B

Equal structure is the same object: `H @ phi is H @ phi`. Constructors keep a canonical form:
products are flat and have no identity in them, sums are flat, collected and ordered, only symbols
have adjoints, only sums have numbers. Nodes and constructors call each other, so this is one long
file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from numbers import Real
from threading import RLock
from typing import Any, Final, Literal
from weakref import WeakValueDictionary

from linkwise.algebra.role import Role
from linkwise.algebra.space import ONE, Space
from linkwise.errors import ExpressionError

Causality = Literal["memoryless", "causal", "anticausal", "mixed"]

_TABLE: WeakValueDictionary[tuple[Any, ...], Expr] = WeakValueDictionary()
_LOCK = RLock()


class Expr:
    """An operator from `domain` to `range`; a stacked vector has the domain ONE."""

    __slots__ = ("__weakref__", "_order", "_star", "depth", "domain", "range", "size")

    range: Space
    domain: Space
    size: int
    depth: int
    _order: str
    _star: Expr

    # ------------------------------------------------------------------------- arithmetic

    def __matmul__(self, other: Expr) -> Expr:
        return product((self, _expr(other)))

    def __add__(self, other: Expr | float) -> Expr:
        if isinstance(other, Real) and other == 0:  # the start value of sum()
            return self
        return total(((1.0, self), (1.0, _expr(other))))

    def __radd__(self, other: float) -> Expr:
        return self + other

    def __sub__(self, other: Expr) -> Expr:
        return total(((1.0, self), (-1.0, _expr(other))))

    def __neg__(self) -> Expr:
        return total(((-1.0, self),))

    def __mul__(self, factor: float) -> Expr:
        if isinstance(factor, Expr):
            raise ExpressionError(
                f"({self}) * ({factor}): operators are multiplied with @, numbers with *."
            )
        if not isinstance(factor, Real):
            raise ExpressionError(f"({self}) * {factor!r}: only a number can scale an operator.")
        return total(((float(factor), self),))

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Expr:
        if not isinstance(divisor, Real) or not divisor:
            raise ExpressionError(f"({self}) / {divisor!r}: give a number that is not zero.")
        return self * (1.0 / float(divisor))

    @property
    def T(self) -> Expr:
        """The adjoint A*, made once."""
        try:
            return self._star
        except AttributeError:
            star = self._adjoint()
            object.__setattr__(self, "_star", star)
            return star

    def _adjoint(self) -> Expr:
        raise NotImplementedError  # abstract: each node has its own

    @property
    def order(self) -> str:
        """The sort key of terms in a sum: their text, built from that of their parts."""
        try:
            return self._order
        except AttributeError:
            text = _order(self)
            object.__setattr__(self, "_order", text)
            return text

    @property
    def inv(self) -> Expr:
        """The inverse A⁻¹; an error where there cannot be one."""
        return inverse(self)

    # ------------------------------------------------------------------------- properties

    @property
    def causality(self) -> Causality:
        """Which way a recursion goes: causal is tip to base, anticausal base to tip."""
        raise NotImplementedError  # abstract: each node has its own

    @property
    def symmetric(self) -> bool:
        """Whether A* is A, as far as its form shows it."""
        return self.T is self

    @property
    def definite(self) -> bool:
        """Whether A is positive definite, as far as its form shows it."""
        return False

    @property
    def semidefinite(self) -> bool:
        """Whether x* A x is never negative, as far as the form of A shows it."""
        return self.definite

    @property
    def is_vector(self) -> bool:
        """Whether this is a stacked vector (one column)."""
        return self.domain is ONE

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        from linkwise.algebra.show import unicode

        return unicode(self)

    def latex(self) -> str:
        """As LaTeX."""
        from linkwise.algebra.show import latex

        return latex(self)

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"expressions do not change: {name} of {self} cannot be set.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"expressions do not change: {name} of {self} cannot be deleted.")

    def __reduce__(self) -> tuple[Any, ...]:
        raise NotImplementedError  # abstract: each node names the constructor that finds it again

    def __bool__(self) -> bool:
        raise ExpressionError(
            f"an expression has no truth value ({self}); compare with `is`, or use lw.prove."
        )


def _expr(value: object) -> Expr:
    if isinstance(value, Expr):
        return value
    raise ExpressionError(
        f"{value!r} is not an operator; a number scales an operator with *, and c I is c * I."
    )


def _make(cls: type[Expr], key: tuple[Any, ...], **fields: Any) -> Any:
    """The one object of this class with these fields."""
    node = _TABLE.get((cls, *key))
    if node is not None:
        return node
    with _LOCK:  # two threads that make the same expression get the same object
        node = _TABLE.get((cls, *key))
        if node is None:
            node = object.__new__(cls)
            for name, value in fields.items():
                object.__setattr__(node, name, value)
            object.__setattr__(node, "depth", _depth(node))
            _TABLE[(cls, *key)] = node
        return node


class Symbol(Expr):
    """A leaf: a name, its spaces and its role in the theory."""

    __slots__ = ("ascii", "name", "role", "tex")

    name: str
    ascii: str
    tex: str
    role: Role

    def _adjoint(self) -> Expr:
        return (
            self
            if self.role.symmetric
            else _make(Adjoint, (self,), of=self, range=self.domain, domain=self.range, size=1)
        )

    @property
    def causality(self) -> Causality:  # noqa: D102
        return self.role.causality

    @property
    def definite(self) -> bool:  # noqa: D102
        return self.role.definite

    @property
    def semidefinite(self) -> bool:  # noqa: D102
        return self.role.semidefinite

    def __reduce__(self) -> tuple[Any, ...]:
        return symbol, (self.name, self.range, self.domain, self.role, self.ascii, self.tex)


class Adjoint(Expr):
    """A* of a symbol that is not symmetric."""

    __slots__ = ("of",)

    of: Symbol

    def _adjoint(self) -> Expr:
        return self.of

    @property
    def causality(self) -> Causality:  # noqa: D102
        return _REVERSED[self.of.causality]

    def __reduce__(self) -> tuple[Any, ...]:
        return adjoint, (self.of,)


class Inverse(Expr):
    """A⁻¹."""

    __slots__ = ("of",)

    of: Expr

    def _adjoint(self) -> Expr:
        return inverse(self.of.T)

    @property
    def causality(self) -> Causality:  # noqa: D102
        return self.of.causality

    @property
    def definite(self) -> bool:  # noqa: D102
        return self.of.definite

    def __reduce__(self) -> tuple[Any, ...]:
        return inverse, (self.of,)


class Product(Expr):
    """A B C: at least two factors, none of them a product, an identity or a scaled one."""

    __slots__ = ("factors",)

    factors: tuple[Expr, ...]

    def _adjoint(self) -> Expr:
        return product(tuple(f.T for f in reversed(self.factors)))

    @property
    def causality(self) -> Causality:  # noqa: D102
        if any(f.domain is ONE for f in self.factors[:-1]):
            return "mixed"  # x y* takes every body to every body
        return _joined(f.causality for f in self.factors)

    @property
    def definite(self) -> bool:
        """X W X* of a definite W, with a square X that has an inverse."""
        n = len(self.factors)
        if n % 2 == 0 or not self.symmetric:
            return False
        half, middle = self.factors[: n // 2], self.factors[n // 2]
        return middle.definite and all(_invertible(f) or _full_rank(f) for f in half)

    def __reduce__(self) -> tuple[Any, ...]:
        return product, (self.factors,)


class Sum(Expr):
    """Numbers times operators; one term only where its number is not one."""

    __slots__ = ("terms",)

    terms: tuple[tuple[float, Expr], ...]

    def _adjoint(self) -> Expr:
        return total(tuple((c, e.T) for c, e in self.terms))

    @property
    def causality(self) -> Causality:  # noqa: D102
        return _joined(e.causality for _, e in self.terms)

    @property
    def definite(self) -> bool:
        """One term that is definite, others that take nothing away: H φ M φ* H* + N."""
        kept = all(c > 0.0 and e.semidefinite for c, e in self.terms)
        return kept and any(e.definite for _, e in self.terms)

    def __reduce__(self) -> tuple[Any, ...]:
        return total, (self.terms,)


class Identity(Expr):
    """I on a space. The bare `I` of the language takes its space from its neighbours."""

    __slots__ = ()

    def _adjoint(self) -> Expr:
        return self

    @property
    def causality(self) -> Causality:  # noqa: D102
        return "memoryless"

    @property
    def definite(self) -> bool:  # noqa: D102
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        return identity, (self.range,)


class Zero(Expr):
    """The operator that takes everything to zero."""

    __slots__ = ()

    def _adjoint(self) -> Expr:
        return zero(self.domain, self.range)

    @property
    def causality(self) -> Causality:  # noqa: D102
        return "memoryless"

    def __reduce__(self) -> tuple[Any, ...]:
        return zero, (self.range, self.domain)


ANY: Final = Space("ANY", block="any")
"""The space of the bare `I`, until it meets an operator."""

_REVERSED: Final[dict[Causality, Causality]] = {
    "memoryless": "memoryless",
    "causal": "anticausal",
    "anticausal": "causal",
    "mixed": "mixed",
}


# ------------------------------------------------------------------------------ constructors


def symbol(
    name: str, range_: Space, domain: Space, role: Role, ascii: str = "", tex: str = ""
) -> Symbol:
    """The leaf of this name, spaces and role."""
    fields = {"name": name, "range": range_, "domain": domain, "role": role, "size": 1}
    return _make(
        Symbol, (name, range_, domain, role), ascii=ascii or name, tex=tex or name, **fields
    )


def adjoint(of: Expr) -> Expr:
    """A*."""
    return of.T


def identity(space: Space = ANY) -> Expr:
    """I on a space; without one, the bare I that takes any."""
    return _make(Identity, (space,), range=space, domain=space, size=0)


def zero(range_: Space, domain: Space) -> Expr:
    """The zero operator."""
    return _make(Zero, (range_, domain), range=range_, domain=domain, size=0)


def product(factors: Iterable[Expr]) -> Expr:
    """A B C, flat, without identities; a number in it goes to the front."""
    flat, number = list[Expr](), 1.0
    last: Expr | None = None
    listed = list(factors)
    for factor in listed:
        if last is not None:
            _check_meeting(last, factor)
        if last is None or factor.range is not ANY:  # a bare I between two hides neither
            last = factor
        if isinstance(factor, Sum) and len(factor.terms) == 1:
            number *= factor.terms[0][0]
            factor = factor.terms[0][1]
        flat.extend(factor.factors if isinstance(factor, Product) else (factor,))
    flat = [f for f in flat if not isinstance(f, Identity)]
    if any(isinstance(f, Zero) for f in flat):
        return zero(_typed(listed, first=True), _typed(listed, first=False))
    flat = _cancelled(flat)
    if not flat:
        result = next((f for f in listed if f.range is not ANY), identity())
        result = result if isinstance(result, Identity) else identity(result.range)
    elif len(flat) == 1:
        result = flat[0]
    else:
        size = _bounded(sum(f.size for f in flat))
        result = _make(
            Product,
            tuple(flat),
            factors=tuple(flat),
            range=flat[0].range,
            domain=flat[-1].domain,
            size=size,
        )
    return result if number == 1.0 else total(((number, result),))


def _typed(factors: list[Expr], *, first: bool) -> Space:
    typed = [f for f in factors if f.range is not ANY]
    if not typed:
        return ANY
    return typed[0].range if first else typed[-1].domain


def _check_meeting(left: Expr, right: Expr) -> None:
    if left.domain is right.range or ANY in (left.domain, right.range):
        return
    raise ExpressionError(
        f"cannot multiply  {left}  and  {right}: the left one takes {left.domain} vectors, the "
        f"right one gives {right.range} vectors.{_advice(left, right)}"
    )


def _advice(left: Expr, right: Expr) -> str:
    if left.range is right.range and left.domain is not left.range:
        return f" Did you mean the adjoint, ({left})*?"
    if right.domain is left.domain:
        return f" Did you mean the adjoint, ({right})*?"
    return " The spaces on both sides of @ must be the same."


def _cancelled(factors: list[Expr]) -> list[Expr]:
    """A A⁻¹ = I, where the two stand side by side."""
    out = list[Expr]()
    for factor in factors:
        before = out[-1] if out else None
        if before is not None and (
            (isinstance(factor, Inverse) and factor.of is before)
            or (isinstance(before, Inverse) and before.of is factor)
        ):
            out.pop()
        else:
            out.append(factor)
    return out


def total(terms: Iterable[tuple[float, Expr]]) -> Expr:
    """Σ c A, flat, with equal operators collected, in canonical order."""
    collected = dict[Expr, float]()
    listed = list(terms)
    first = next((e for _, e in listed if e.range is not ANY), None)
    space = None if first is None else (first.range, first.domain)
    for number, expr in listed:
        if not math.isfinite(number):
            raise ExpressionError(
                f"{number} times  {expr}: a number must be finite, not too large or too small."
            )
        typed = _adopt(expr, space)
        if first is not None and (typed.range, typed.domain) != space and typed.range is not ANY:
            raise ExpressionError(
                f"cannot add  {first}  and  {expr}: the first maps {first.domain} to "
                f"{first.range}, the second {expr.domain} to {expr.range}. Both must map between "
                "the same spaces."
            )
        inner = typed.terms if isinstance(typed, Sum) else ((1.0, typed),)
        for c, e in inner:
            e = _adopt(e, space)
            if not isinstance(e, Zero):
                before = collected.get(e)
                collected[e] = number * c if before is None else added(before, number * c)
    left = [(c, e) for e, c in collected.items() if c != 0.0]
    if not left:
        range_, domain = space if space is not None else (ANY, ANY)
        return zero(range_, domain)
    if len(left) == 1 and left[0][0] == 1.0:
        return left[0][1]
    size = _bounded(1 + sum(e.size for _, e in left))
    left.sort(key=lambda term: (term[1].size, term[1].order))
    return _make(
        Sum,
        tuple(x for term in left for x in term),
        terms=tuple(left),
        range=left[0][1].range,
        domain=left[0][1].domain,
        size=size,
    )


def added(a: float, b: float) -> float:
    """a + b, and zero where only round-off is left of the two: 0.1 + 0.2 - 0.3."""
    value = a + b
    return 0.0 if abs(value) < 1e-15 * max(abs(a), abs(b)) else value


LARGEST: Final = 100_000
"""Leaves of the largest expression: products of sums of products grow exponentially."""


def _bounded(size: int) -> int:
    if size > LARGEST:
        raise ExpressionError(
            f"the expression would have {size} leaves; at most {LARGEST} are allowed. Evaluate "
            "parts of it first and continue with your own vectors and operators."
        )
    return size


DEEPEST: Final = 200
"""Levels of sums in products in sums of the deepest expression."""


def _depth(expr: Expr) -> int:
    parts: Iterable[Expr] = ()
    if isinstance(expr, Product):
        parts = expr.factors
    elif isinstance(expr, Sum):
        parts = (e for _, e in expr.terms)
    elif isinstance(expr, Inverse):
        parts = (expr.of,)
    depth = 1 + max((part.depth for part in parts), default=-1)
    if depth > DEEPEST:
        raise ExpressionError(
            f"the expression would be nested {depth} deep; at most {DEEPEST} levels are allowed. "
            "Multiply it out, or evaluate parts of it first."
        )
    return depth


def _adopt(expr: Expr, space: tuple[Space, Space] | None) -> Expr:
    """The bare I takes the space of its neighbours in a sum."""
    if isinstance(expr, Identity) and expr.range is ANY and space is not None:
        if space[0] is not space[1]:
            raise ExpressionError(
                f"cannot add I and an operator from {space[1]} to {space[0]}: the identity is "
                "square."
            )
        return identity(space[0])
    return expr


def _order(expr: Expr) -> str:
    if isinstance(expr, Symbol):
        return expr.name
    if isinstance(expr, Adjoint):
        return f"{expr.of.name}*"
    if isinstance(expr, Inverse):
        return f"({expr.of.order})⁻¹"
    if isinstance(expr, Product):
        return " ".join(f"({f.order})" if isinstance(f, Sum) else f.order for f in expr.factors)
    if isinstance(expr, Sum):
        return " + ".join(f"{c:g} {e.order}" for c, e in expr.terms)
    return type(expr).__name__


def inverse(of: Expr) -> Expr:
    """A⁻¹, refused where no inverse can exist."""
    if isinstance(of, Inverse):
        return of.of
    if isinstance(of, Identity):
        return of
    if of.range is not of.domain:
        raise ExpressionError(
            f"{of} maps {of.domain} to {of.range}: only an operator on one space has an inverse."
        )
    if isinstance(of, Zero):
        raise ExpressionError("the zero operator has no inverse.")
    if isinstance(of, Sum) and len(of.terms) == 1:
        number, inner = of.terms[0]
        return total(((1.0 / number, inverse(inner)),))
    if isinstance(of, Symbol | Adjoint):
        leaf = of if isinstance(of, Symbol) else of.of
        if leaf.role.nilpotent:
            raise ExpressionError(
                f"{of} is nilpotent (it moves every block one step) and has no inverse; "
                f"(I - {of}) has one."
            )
        if not leaf.role.invertible:
            raise ExpressionError(f"{of} is not known to have an inverse.")
    size = 1 + of.size
    return _make(Inverse, (of,), of=of, range=of.range, domain=of.domain, size=size)


def _joined(parts: Iterable[Causality]) -> Causality:
    kinds = set(parts) - {"memoryless"}
    if not kinds:
        return "memoryless"
    return kinds.pop() if len(kinds) == 1 else "mixed"


def _invertible(expr: Expr) -> bool:
    leaf = expr.of if isinstance(expr, Adjoint) else expr
    return isinstance(leaf, Inverse) or (isinstance(leaf, Symbol) and leaf.role.invertible)


def _full_rank(expr: Expr) -> bool:
    # Independent rows: H P H* is definite, H* D⁻¹ H is not.
    return isinstance(expr, Symbol) and expr.role.full_rank


def nodes(expr: Expr) -> Iterator[Expr]:
    """The expression and all parts of it, each once, from the outside in."""
    seen, waiting = set[Expr](), [expr]
    while waiting:
        part = waiting.pop()
        if part in seen:
            continue
        seen.add(part)
        yield part
        if isinstance(part, Adjoint | Inverse):
            waiting.append(part.of)
        elif isinstance(part, Product):
            waiting.extend(reversed(part.factors))
        elif isinstance(part, Sum):
            waiting.extend(inner for _, inner in reversed(part.terms))


def substituted(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """The expression with parts replaced; `change` gives the new part, or None to look inside."""
    memo = dict[Expr, Expr]()

    def go(e: Expr) -> Expr:
        new_part = memo.get(e)
        if new_part is None:
            new_part = memo[e] = _go(e)
        return new_part

    def _go(e: Expr) -> Expr:
        new = change(e)
        if new is not None:
            return new
        if isinstance(e, Adjoint):
            return go(e.of).T
        if isinstance(e, Inverse):
            return inverse(go(e.of))
        if isinstance(e, Product):
            return product(tuple(go(factor) for factor in e.factors))
        if isinstance(e, Sum):
            return total(tuple((number, go(inner)) for number, inner in e.terms))
        return e

    return go(expr)
