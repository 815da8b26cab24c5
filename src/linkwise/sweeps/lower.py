"""Lowering: an expression applied from the right, factor by factor, becomes statements.

A memoryless factor multiplies at each body. A resolvent φ x is the recursion
y(k) = Σ φ(k, c) y(c) + x(k) from the tips to the base, its adjoint y(k) = φ*(p, k) y(p) + x(k) the
other way; there is nothing else. Operators of a Riccati or Lyapunov recursion bring the statements
that define them. Equal sub-expressions are one object, hence one statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from linkwise.algebra import role
from linkwise.algebra.differential import rate_along
from linkwise.algebra.differential_leaf import form_rule
from linkwise.algebra.expr import (
    Adjoint,
    Expr,
    Identity,
    Inverse,
    Product,
    Sum,
    Symbol,
    Zero,
    identity,
    inverse,
    nodes,
    product,
    total,
)
from linkwise.algebra.family import Family, composite, resolvent
from linkwise.algebra.space import CONSTRAINT, JOINT, ONE, Space
from linkwise.algebra.symbols import X_B, B, E_phi, H, M, X, phi, v
from linkwise.algebra.words import expand, rebuilt
from linkwise.errors import LoweringError
from linkwise.sweeps.arrangement import TREE_SPACES, arrangements, is_step, opened, upper_half
from linkwise.sweeps.cost import cost
from linkwise.sweeps.name import Names
from linkwise.sweeps.program import PLACED, Block, Place, Program, Quantity, Statement, Term
from linkwise.sweeps.result_part import ALL, ResultPart
from linkwise.sweeps.schedule import scheduled

SPECIALS: dict[type[role.Role], str] = {
    role.Cross: "cross",
    role.HingeRate: "H_rate",
    role.CoordinateRate: "coordinate_rate",
    role.PlaceRate: "X_rate",
    role.Regressor: "regressor",
    role.Diagonal: "diagonal",
    role.InertiaOf: "inertia_of",
}
"""The statements that give the blocks of leaves that differentiation adds."""

_CONSTANT: dict[object, str] = {
    role.Angular: "angular",
    role.WeightRate: "weight_rate",
    **{"a_g": "a_g_rate", "weight": "weight_gravity"},
}
"""Those of leaves that no vector gives."""

RowsRate: TypeAlias = (
    role.ClosureRate
    | role.FollowerRate
    | role.ClosureBiasRate
    | role.ErrorRate
    | role.RowsForm
    | role.Diagonal
)
"""Leaves of derivatives that belong to rows of constraints."""

STRETCH = 40
"""A longer product is done in stretches from the right, not in one deep recursion."""


def lower(expr: Expr, chosen: ResultPart = ALL, more: Sequence[Expr] = ()) -> Program:
    """The program of an expression: any well-typed one, applied to its vectors from the right.

    Args:
        expr: The expression.
        chosen: The part of its value to compute.
        more: Other expressions that the same passes compute.

    Raises:
        LoweringError: Some inverse in it has no recursion; says which.
    """
    if more:
        return _several(expr, more)
    if chosen.blocks:
        return _block_program(expr, chosen)
    programs = [_program(expr, arranged) for arranged in arrangements(expr)]
    half = upper_half(expr) if chosen.is_all else None
    if half is not None:
        programs.append(_program(expr, half, mirrored=True))
    return replace(min(programs, key=cost), chosen=chosen)


def _block_program(expr: Expr, chosen: ResultPart) -> Program:
    """The blocks of a memoryless operator at each body, without its columns."""
    form = rebuilt(expr, opened)
    if form.causality != "memoryless":
        raise LoweringError(f"{expr} is not block diagonal: it has no block at each body.")
    leaf = form if isinstance(form, Symbol) else composite(form)
    lowering = _Lowering(form)
    lowering.define(leaf)
    passes = scheduled(_shared(lowering.statements))
    return Program(expr, _block_quantity(leaf), passes, tuple(lowering.inputs), chosen=chosen)


def _several(expr: Expr, more: Sequence[Expr]) -> Program:
    """Each in the arrangement that is best for it alone; what they share is computed once."""
    exprs = [expr, *more]
    forms = [min(arrangements(x), key=lambda form: cost(_program(form, form))) for x in exprs]
    lowering = _Lowering(*forms)
    results = [lowering.result(x) for x in forms]
    passes = scheduled(_shared(lowering.statements))
    rest = tuple(zip(exprs[1:], results[1:], strict=True))
    return Program(expr, results[0], passes, tuple(lowering.inputs), more=rest)


def _program(expr: Expr, arranged: Expr, *, mirrored: bool = False) -> Program:
    lowering = _Lowering(arranged)
    result = lowering.result(arranged)
    passes = scheduled(_shared(lowering.statements))
    return Program(expr, result, passes, tuple(lowering.inputs), mirrored)


def _shared(statements: Sequence[Statement]) -> list[Statement]:
    """The statements, with products that are quantities already read from these."""
    known = {
        s.terms[0]: s.target
        for s in statements
        if len(s.terms) == 1
        and s.terms[0].operand is not None
        and not s.target.block
        and s.target.rows.block != "one"
    }

    def read(statement: Statement) -> Statement:
        terms = tuple(
            Term(t.number, operand=known[_unscaled(t)])
            if _unscaled(t) in known and known[_unscaled(t)] != statement.target
            else t
            for t in statement.terms
        )
        return Statement(statement.target, terms, statement.special, statement.reads)

    return [read(s) for s in statements]


def _unscaled(term: Term) -> Term:
    return Term(1.0, term.left, term.operand, term.place, term.right, term.rows)


class _Lowering:
    """The statements made so far, and the quantities they define."""

    def __init__(self, *exprs: Expr) -> None:
        self.statements: list[Statement] = []
        self.inputs: dict[Symbol, None] = {}
        leaves = (node for expr in exprs for node in nodes(expr) if isinstance(node, Symbol))
        self.names = Names(leaf.name for leaf in leaves)
        self._values: dict[Expr, Quantity] = {}
        self._defined: set[Symbol] = set()

    # ------------------------------------------------------------------------- expressions

    def result(self, expr: Expr) -> Quantity:
        """The quantity of an entire expression."""
        terms = self.terms(expr)
        bare = _bare(terms[0]) if len(terms) == 1 else None
        return bare if bare is not None else self.quantity(expr, terms, result=True)

    def terms(self, expr: Expr) -> list[Term]:
        """The value of an expression at body k, as a sum of terms."""
        known = self._values.get(expr)
        if known is not None:
            return [_read(known)]
        if isinstance(expr, Zero):
            return []
        if isinstance(expr, Sum):
            return self._sum(expr)
        if isinstance(expr, Product):
            for n in range(STRETCH, len(expr.factors), STRETCH):
                self.value(product(expr.factors[-n:]))
            return self._by_columns(expr) or self._apply(
                expr.factors[0], product(expr.factors[1:]), expr
            )
        if isinstance(expr, Symbol) and isinstance(expr.role, role.Vector):
            return [_read(self._leaf(expr))]
        # An operator by itself: applied to the columns of the identity.
        return self._apply(expr, identity(expr.domain), expr)

    def _by_columns(self, expr: Product) -> list[Term]:
        """X* y or X y, where the columns of X, one for each row of the constraints, are known.

        That saves a recursion over the tree. The columns are known if they occur in the
        expression anyhow, as in X* D⁻¹ X.
        """
        factors = expr.factors
        for i in range(1, len(factors)):
            ends = (factors[0].range, factors[i - 1].domain)
            if ends == (JOINT, CONSTRAINT):
                head, rest = product(factors[:i]), product(factors[i:])
                right = self.value(rest)  # which may need the columns
                if head in self._values:
                    return [self._at_once("spread", expr, (self._values[head], right))]
            elif ends == (CONSTRAINT, JOINT):
                columns, rest = product(factors[:i]).T, product(factors[i:])
                if columns in self._values or _ends_with(rest, columns):
                    operands = (self.value(columns), self.value(rest))
                    return [self._at_once("gram", expr, operands)]
        return []

    def _at_once(self, rule: str, expr: Expr, reads: Sequence[Quantity]) -> Term:
        """A quantity computed at once from all blocks of others, between passes."""
        target = Quantity(self.names.of(expr), expr.range, expr.domain, expr)
        self._values[expr] = target
        everywhere: list[tuple[Quantity, Place]] = [(quantity, "all") for quantity in reads]
        self.statements.append(Statement(target, special=rule, reads=tuple(everywhere)))
        return _read(target)

    def value(self, expr: Expr) -> Quantity:
        """The value of an expression as one quantity."""
        if expr in self._values:
            return self._values[expr]
        terms = self.terms(expr)
        bare = _bare(terms[0]) if len(terms) == 1 else None
        return bare if bare is not None else self.quantity(expr, terms)

    def quantity(self, expr: Expr, terms: Iterable[Term], *, result: bool = False) -> Quantity:
        """A new quantity with its statement."""
        target = Quantity(self.names.of(expr, result=result), expr.range, expr.domain, expr)
        self._values[expr] = target
        self.statements.append(Statement(target, tuple(terms)))
        return target

    def _leaf(self, leaf: Symbol) -> Quantity:
        self.inputs[leaf] = None
        quantity = self._values.get(leaf)
        if quantity is None:
            quantity = Quantity(leaf.name, leaf.range, ONE, leaf, leaf=True)
            self._values[leaf] = quantity
            self._define_vector(leaf, quantity)
        return quantity

    def _identity_columns(self, space: Space) -> Quantity:
        key = identity(space)
        quantity = self._values.get(key)
        if quantity is None:
            quantity = Quantity("e", space, space, key, leaf=True)
            self._values[key] = quantity
        return quantity

    def _sum(self, expr: Sum) -> list[Term]:
        """Terms with the same leading resolvent share a recursion: φ x + φ~ y = φ (x + E y)."""
        terms, recursions = list[Term](), dict[tuple[Symbol, bool], list[tuple[float, Expr]]]()
        for number, inner in expr.terms:
            lead = inner.factors[0] if isinstance(inner, Product) else inner
            key = _recursion(lead)
            if key is None:
                terms += [_scaled(t, number) for t in self.terms(inner)]
                continue
            rest = (
                product(inner.factors[1:]) if isinstance(inner, Product) else identity(inner.domain)
            )
            recursions.setdefault(key[:2], []).append((number, _inside(lead, rest)))
        for (shift, star), parts in recursions.items():
            number, inside = parts[0] if len(parts) == 1 else (1.0, total(parts))
            phi = resolvent(shift)
            shared = product((phi.T if star else phi, inside))
            terms += [_scaled(t, number) for t in self.terms(shared)]
        return terms

    # ---------------------------------------------------------------------------- factors

    def _apply(self, factor: Expr, rest: Expr, both: Expr) -> list[Term]:
        """factor · rest, with `rest` an expression to the right of it."""
        if isinstance(factor, Sum):
            self._right_quantity(rest)  # once, for all terms
            return [
                _scaled(t, number)
                for number, inner in factor.terms
                for t in self.terms(product((inner, rest)))
            ]
        key = _recursion(factor)
        if key is not None:
            shift, star, strict = key
            if strict:  # φ~ x = E φ x
                phi = resolvent(shift)
                inner = product((phi.T if star else phi, rest))
                return self._step(shift, star, inner)
            return [_read(self._recursion(shift, star, rest, both))]
        if isinstance(factor, Identity):
            return self._right(rest)
        return self._letter(factor, rest)

    def _letter(self, factor: Expr, rest: Expr) -> list[Term]:
        star, inverse = isinstance(factor, Adjoint), isinstance(factor, Inverse)
        leaf = factor.of if isinstance(factor, Adjoint | Inverse) else factor
        if isinstance(leaf, Adjoint):
            leaf, star = leaf.of, True
        if not isinstance(leaf, Symbol):
            if inverse and isinstance(factor, Inverse):
                return self._dense_inverse(factor, rest)
            raise LoweringError(f"{factor} has no sweeps: it is not an operator of the tree.")
        key = leaf.role
        if isinstance(key, role.Closure | role.Followers):
            self.inputs[leaf] = None
            places = [self._leaf(X_B)] if isinstance(key, role.Closure) else []
            rule, both = f"{key.source}*" if star else key.source, product((factor, rest))
            return [self._at_once(rule, both, (*places, self._right_quantity(rest)))]
        of_rows = isinstance(key, role.Diagonal) <= (leaf.range is CONSTRAINT)
        if isinstance(key, RowsRate) and of_rows:
            rule, reads = self._constraint_rate(key)
            both = product((factor, rest))
            operands = (*reads, self._right_quantity(rest))
            return [self._at_once(f"{rule}*" if star and rule != "scale" else rule, both, operands)]
        if is_step(leaf) or isinstance(key, role.Gather):
            return self._step(leaf, star, rest)
        if isinstance(key, role.RecursionRate):
            if star or rest.domain is not ONE:
                raise LoweringError(
                    f"{factor} has no sweeps by itself: it has them applied to a vector, as in "
                    "A @ u for a derivative A. lw.compile computes it column by column."
                )
            return self.terms(rebuilt(rate_along(key, rest), opened))
        if isinstance(key, role.Siblings):
            return self._siblings(key, rest)
        if isinstance(
            key,
            role.PickOff
            | role.Memoryless
            | role.Composite
            | role.Riccati
            | role.Lyapunov
            | role.Differential,
        ):
            self.define(leaf)
            operand = self._right_quantity(rest)
            block = Block(leaf, adjoint=star, inverse=inverse)
            single = isinstance(key, role.GravityRate) and not star
            return [Term(1.0, (block,), operand, "all" if single else "k")]
        if isinstance(key, role.Vector):  # x*(k) y(k), to be summed, or x(k) times a number
            self._leaf(leaf)
            operand = self._right_quantity(rest)
            place: Place = "k" if star and leaf.range.block != "constraint" else "all"
            return [Term(1.0, (Block(leaf, adjoint=star),), operand, place)]
        raise LoweringError(f"{factor} has no sweeps: it has no blocks.")

    def _constraint_rate(self, key: RowsRate) -> tuple[str, list[Quantity]]:
        """The rule of a leaf that says how rows of constraints change, and what it reads."""
        if isinstance(key, role.Diagonal):
            return "scale", [self.value(rebuilt(key.of, opened))]
        if isinstance(key, role.RowsForm):
            form = form_rule(key)
            places = [self._leaf(X_B)] if form.has_poses else []
            return form.name, [*places, *(self.value(rebuilt(x, opened)) for x in key.vectors)]
        if isinstance(key, role.ErrorRate):
            return f"error_{key.wrt}", [self._leaf(X_B)]
        if isinstance(key, role.ClosureBiasRate):
            at_nodes = [self._leaf(X_B), self.value(B.T @ phi.T @ H.T @ v)]
            return f"kappa_{key.wrt}", at_nodes if key.wrt in ("X", "V") else [self._leaf(v)]
        x = self.value(rebuilt(key.of, opened))
        adjoint = "_adjoint" if key.of.range is CONSTRAINT else ""
        if isinstance(key, role.FollowerRate):
            return f"Y_rate{adjoint}", [x]
        return f"Q_rate{adjoint}", [self._leaf(X_B), x]

    def _right(self, rest: Expr) -> list[Term]:
        if isinstance(rest, Identity):
            return [_read(self._identity_columns(rest.range))]
        return self.terms(rest)

    def _right_quantity(self, rest: Expr) -> Quantity:
        if isinstance(rest, Identity):
            return self._identity_columns(rest.range)
        return self.value(rest)

    def _step(self, leaf: Symbol, star: bool, rest: Expr) -> list[Term]:
        """E x: from the children; E* x: from the parent."""
        self.define(leaf)
        operand = self._right_quantity(rest)
        place: Place = "p" if star else "c"
        return [Term(1.0, (Block(leaf, adjoint=star, step=True, place=place),), operand, place)]

    def _recursion(self, shift: Symbol, star: bool, rest: Expr, both: Expr) -> Quantity:
        """y = φ x or y = φ* x, with x given where it is needed."""
        if both in self._values:
            return self._values[both]
        self.define(shift)
        inside = self._right(rest)
        place: Place = "p" if star else "c"
        target = Quantity(self.names.of(both), both.range, both.domain, both)
        self._values[both] = target
        block = Block(shift, adjoint=star, step=True, place=place)
        self.statements.append(Statement(target, (Term(1.0, (block,), target, place), *inside)))
        return target

    def _siblings(self, key: role.Siblings, rest: Expr) -> list[Term]:
        """Ξ x = E* Υ (E x) without what returns to the same body: E*(p,k) Υ(p) (w(p) - E x)."""
        self.define(key.shift)
        self.define(key.inside)
        x = self._right_quantity(rest)
        gathered = self.value(product((key.shift, rest)))
        back = Block(key.shift, adjoint=True, step=True, place="p")
        inside = Block(key.inside, place="p")
        edge = Block(key.shift, step=True, place="p")  # E(p, k): of the edge to the parent
        return [
            Term(1.0, (back, inside), gathered, "p"),
            Term(-1.0, (back, inside, edge), x, "k"),
        ]

    def _dense_inverse(self, factor: Inverse, rest: Expr) -> list[Term]:
        """A small dense matrix: solved at once, between passes."""
        if factor.range in TREE_SPACES and factor.of.causality == "memoryless":
            return self._letter(inverse(composite(factor.of)), rest)
        if factor.range in TREE_SPACES:
            raise LoweringError(
                f"cannot invert  {factor.of}  by a recursion: memoryless operators, resolvents, "
                "H φ M φ* H* (by Riccati) and small matrices over nodes have an inverse. Rewrite "
                "the expression so that it has one of these."
            )
        inside = arrangements(factor.of)[0 if factor.range is CONSTRAINT else -1]
        matrix, right = self.value(inside), self._right_quantity(rest)
        return [self._at_once("dense_solve", product((factor, rest)), (matrix, right))]

    # ------------------------------------------------------------------------- definitions

    def define(self, leaf: Symbol) -> None:
        """The statements that give an operator its blocks, once."""
        if leaf in self._defined:
            return
        self._defined.add(leaf)
        key = leaf.role
        if isinstance(key, role.Riccati):
            self._define_riccati(leaf, Family(*key.family), key.part)
        elif isinstance(key, role.Lyapunov):
            self._define_lyapunov(leaf, key)
        elif isinstance(key, role.Composite):
            self._define_block(leaf, self._memoryless_terms(key.definition))
        elif isinstance(key, role.Differential):
            self._define_derivative(leaf, key)
        else:
            self.inputs[leaf] = None
            self._define_kinematics(leaf)

    def _define_block(self, leaf: Symbol, terms: Iterable[Term]) -> None:
        target = _block_quantity(leaf)
        self.statements.append(Statement(target, tuple(terms)))

    def _define_riccati(self, leaf: Symbol, family: Family, part: str) -> None:
        f = family
        for needed in _RICCATI_NEEDS[part]:
            self.define(getattr(f, needed))
        edge = Block(f.E, step=True, place="p")  # E(p, k)
        match part:
            case "P":
                child = Block(f.E, step=True, place="c")
                star = Block(f.E, adjoint=True, step=True, place="c")
                P_plus = _block_quantity(f.P_plus)
                terms = [Term(1.0, (child,), P_plus, "c", (star,)), Term(1.0, (Block(f.M),))]
                self._define_block(leaf, terms)
                self.define(f.P_plus)
            case "D":
                self.define(f.H)
                H, H_star = Block(f.H), Block(f.H, adjoint=True)
                terms = [Term(1.0, (H, Block(f.P), H_star))]
                if f.noise is not None:
                    self.define(f.noise)
                    terms.append(Term(1.0, (Block(f.noise),)))
                self._define_block(leaf, terms)
            case "G":
                H_star = Block(f.H, adjoint=True)
                blocks = (Block(f.P), H_star, Block(f.D, inverse=True))
                self._define_block(leaf, [Term(1.0, blocks)])
            case "K":
                self._define_block(leaf, [Term(1.0, (edge, Block(f.G)))])
            case "Pi":
                self._define_block(leaf, [Term(1.0, (Block(f.G), Block(f.H)))])
            case "Pi_bar":
                terms = [Term(1.0), Term(-1.0, (Block(f.G), Block(f.H)))]
                self._define_block(leaf, terms)
            case "E_psi":
                self._define_block(leaf, [Term(1.0, (edge, Block(f.Pi_bar)))])
            case _:
                assert part == "P_plus"
                terms = [
                    Term(1.0, (Block(f.P),)),
                    Term(-1.0, (Block(f.G), Block(f.H), Block(f.P))),
                ]
                self._define_block(leaf, terms)

    def _define_lyapunov(self, leaf: Symbol, key: role.Lyapunov) -> None:
        self.define(key.a)
        self.define(key.b)
        core = self._memoryless_terms(key.core)
        place: Place = "p" if key.outward else "c"
        left = Block(key.a, adjoint=key.outward, step=True, place=place)
        right = Block(key.b, adjoint=not key.outward, step=True, place=place)
        target = _block_quantity(leaf)
        recursion = Term(1.0, (left,), target, place, (right,))
        self.statements.append(Statement(target, (recursion, *core)))

    def _memoryless_terms(self, expr: Expr) -> list[Term]:
        """A memoryless expression at one body: sums of products of blocks."""
        return [
            self._from_children(word, number)
            if len(word) > 2 and is_step(word[0])
            else self._from_parent(word, number)
            if any(map(is_step, word))
            else Term(number, tuple(self._core_block(letter) for letter in word), rows=expr.range)
            for word, number in expand(expr, opened=opened).items()
        ]

    def _from_parent(self, word: tuple[Expr, ...], number: float) -> Term:
        """A E* X F B, with A and B at body k, one-step operators E and F, and X at its parent."""
        steps = [i for i, x in enumerate(word) if is_step(x) or is_step(x.T)]
        if len(steps) != 2 or not is_step(word[steps[0]].T) or not is_step(word[steps[1]]):
            raise LoweringError(f"{product(word)} has to be memoryless, and is not.")
        i, j = steps
        first, last, inner = word[i].T, word[j], product(word[i + 1 : j])
        leaf = inner if isinstance(inner, Symbol) else composite(inner)
        assert isinstance(first, Symbol) and isinstance(last, Symbol)
        for needed in (first, last, leaf):
            self.define(needed)
        left = Block(first, adjoint=True, step=True, place="p")
        right = Block(last, step=True, place="p")
        before, after = ([self._core_block(x) for x in part] for part in (word[:i], word[j + 1 :]))
        return Term(number, (*before, left), _block_quantity(leaf), "p", (right, *after))

    def _from_children(self, word: tuple[Expr, ...], number: float) -> Term:
        """E X F*, with one-step operators around a memoryless X: Σ_c E(k,c) X(c) F*(k,c)."""
        first, last, inner = word[0], word[-1], product(word[1:-1])
        assert isinstance(first, Symbol)
        if not (isinstance(last, Adjoint) and is_step(last.of)):
            raise LoweringError(f"{product(word)} has to be memoryless, and is not.")
        leaf = inner if isinstance(inner, Symbol) else composite(inner)
        for needed in (first, last.of, leaf):
            self.define(needed)
        left = Block(first, step=True, place="c")
        right = Block(last.of, adjoint=True, step=True, place="c")
        return Term(number, (left,), _block_quantity(leaf), "c", (right,))

    def _core_block(self, letter: Expr) -> Block:
        star, inverted = isinstance(letter, Adjoint), isinstance(letter, Inverse)
        leaf = letter.of if isinstance(letter, Adjoint | Inverse) else letter
        if isinstance(leaf, Adjoint):
            leaf, star = leaf.of, True
        if leaf.causality != "memoryless":
            raise LoweringError(f"{letter} has to be memoryless in this place, and is not.")
        if {leaf.range, leaf.domain} - set(TREE_SPACES):
            raise LoweringError(
                f"{letter} belongs to {leaf.domain if leaf.range in TREE_SPACES else leaf.range}: "
                "it has no block at a body, which is needed in this place."
            )
        if not isinstance(leaf, Symbol):
            leaf = composite(leaf)
        self.define(leaf)
        return Block(leaf, adjoint=star, inverse=inverted)

    def _define_kinematics(self, leaf: Symbol) -> None:
        """The shift, the hinge map and the pick-off come from q, the inertia is constant."""
        if isinstance(leaf.role, role.Shift | role.Memoryless) and leaf.role.source in (
            "phi",
            "H",
            "Delta_phi",
        ):
            target = _block_quantity(leaf)
            self.statements.append(Statement(target, special=f"{leaf.role.source}(q)"))
        elif isinstance(leaf.role, role.Memoryless) and leaf.role.source in ("rot_W", "to_W"):
            self._define_place(leaf.role.source, _block_quantity(leaf))
        elif isinstance(leaf.role, role.Memoryless) and leaf.role.source in ("A_V", "B_V"):
            self._define_velocity_block(leaf.role.source, _block_quantity(leaf))

    def _define_place(self, source: str, target: Quantity) -> None:
        """X(k) = X(p) X_pk(q); what belongs to nodes is read off the bodies they are fixed on."""
        reads: list[tuple[Quantity, Place]] = []
        if source == "X":
            self.define(E_phi)
            reads = [(target, "p"), (_block_quantity(E_phi), "k")]
        elif source in ("X_B", "rot_W", "to_W"):
            reads = [(self._leaf(X), "k")]
        elif source == "a_g":
            self.define(E_phi)
            reads = [(_block_quantity(E_phi), "k")]
        else:
            self.define(M)
        self.statements.append(Statement(target, special=source, reads=tuple(reads)))

    def _define_velocity_block(self, source: str, target: Quantity) -> None:
        """A_V and B_V come from the velocities of the bodies."""
        velocity = self.value(phi.T @ H.T @ v)
        self.define(M if source == "B_V" else H)
        reads: tuple[tuple[Quantity, Place], ...] = ((velocity, "k"), (self._leaf(v), "k"))
        self.statements.append(Statement(target, special=source, reads=reads))

    def _define_derivative(self, leaf: Symbol, key: role.Differential) -> None:
        """Blocks that a vector x gives, such as x× and ∂(H* x)/∂q; and ∂(Ḣ* v)."""
        if isinstance(key, role.HingeBiasRate):
            special, operands = f"bias_rate_{key.wrt}", [self._leaf(v)]
        elif isinstance(key, role.Angular | role.WeightRate | role.GravityRate):
            special, operands = _CONSTANT.get(getattr(key, "of", type(key)), ""), list[Quantity]()
            if special == "a_g_rate":
                self.define(E_phi)
                operands = [_block_quantity(E_phi)]
            elif special == "weight_gravity":
                self.define(M)
        else:
            if isinstance(key, role.HingeRate | role.CoordinateRate | role.PlaceRate):
                vectors = key.vectors
            else:
                assert isinstance(key, role.Cross | role.Regressor | role.Diagonal | role.InertiaOf)
                vectors = (key.of,)
            operands = [self.value(rebuilt(x, opened)) for x in vectors]
            if isinstance(key, role.PlaceRate):
                operands.insert(0, self._leaf(X_B if key.nodes else X))
            swapped = isinstance(key, role.Cross) and key.swapped
            special = "swap" if swapped else SPECIALS[type(key)]
        reads: tuple[tuple[Quantity, Place], ...] = tuple((x, "k") for x in operands)
        self.statements.append(Statement(_block_quantity(leaf), special=special, reads=reads))

    def _define_closure_rate(self, source: str, target: Quantity) -> None:
        """κ comes from the poses and velocities of the nodes of the loops, κ_g from the poses."""
        reads: list[tuple[Quantity, Place]] = [(self._leaf(X_B), "all")]
        if source in ("kappa", "servo"):
            reads.append((self.value(B.T @ phi.T @ H.T @ v), "all"))
        self.statements.append(Statement(target, special=source, reads=tuple(reads)))

    def _define_vector(self, leaf: Symbol, target: Quantity) -> None:
        """a and b come from the velocities of the bodies, poses from those of the parents."""
        assert isinstance(leaf.role, role.Vector)
        if leaf.role.source in PLACED:
            self._define_place(leaf.role.source, target)
        if leaf.role.source in ("kappa", "kappa_g", "servo", "task_error"):
            self._define_closure_rate(leaf.role.source, target)
        if leaf.role.source not in ("a", "b"):
            return
        velocity = self.value(phi.T @ H.T @ v)
        self.define(M if leaf.role.source == "b" else H)
        reads: list[tuple[Quantity, Place]] = [(velocity, "k")]
        if leaf.role.source == "a":
            reads.append((self._leaf(v), "k"))
        self.statements.append(Statement(target, special=leaf.role.source, reads=tuple(reads)))


_RICCATI_NEEDS = {
    "P": ("E", "M"),
    "P_plus": ("P", "G", "H"),
    "D": ("P",),
    "G": ("P", "H", "D"),
    "K": ("E", "G"),
    "Pi": ("G", "H"),
    "Pi_bar": ("G", "H"),
    "E_psi": ("E", "Pi_bar"),
}


def _recursion(expr: Expr) -> tuple[Symbol, bool, bool] | None:
    """(shift, adjoint, strict) of a resolvent or its adjoint."""
    star = isinstance(expr, Adjoint)
    leaf = expr.of if isinstance(expr, Adjoint) else expr
    if isinstance(leaf, Symbol) and isinstance(leaf.role, role.Resolvent):
        return leaf.role.of, star, leaf.role.strict
    return None


def _inside(lead: Expr, rest: Expr) -> Expr:
    """What φ is applied to: x of φ x, and E y of φ~ y = φ E y."""
    recursion = _recursion(lead)
    assert recursion is not None
    shift, star, strict = recursion
    return product((shift.T if star else shift, rest)) if strict else rest


def _block_quantity(leaf: Symbol) -> Quantity:
    return Quantity(leaf.name, leaf.range, leaf.domain, leaf, block=True)


def _scaled(term: Term, number: float) -> Term:
    number = term.number * number
    return Term(number, term.left, term.operand, term.place, term.right, term.rows)


def _read(quantity: Quantity) -> Term:
    """A quantity by itself; a number is known after the pass that sums it."""
    nowhere = quantity.rows.block in ("one", "constraint")
    return Term(1.0, operand=quantity, place="all" if nowhere else "k")


def _ends_with(expr: Expr, end: Expr) -> bool:
    """Whether the last factors of a product are those of another."""
    factors = expr.factors if isinstance(expr, Product) else (expr,)
    last = end.factors if isinstance(end, Product) else (end,)
    return factors[-len(last) :] == last


def _bare(term: Term) -> Quantity | None:
    """The operand of a term that has nothing else."""
    return term.operand if term.operand is not None and term == _read(term.operand) else None
