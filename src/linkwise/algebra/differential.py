"""Derivatives of expressions: the derivative of an operator expression is an operator expression.

    δy = A δq        y = f(q, v, τ, ...) a stacked vector, A an operator

A itself is the Jacobian, A @ u a directional derivative and A.T @ w a gradient; each lowers to its
own sweeps. δq is a velocity held for one second, as in `mech.integrate`, so that it has nv entries
for every hinge.

A product is differentiated factor by factor, with everything to the right of the factor held:

    δ(A B x) = (δA)(B x) + A (δB) x + A B δx

so the rules only say what the variation of a leaf does to a vector; `differential_rules.py` has
the table. With Δ = H* δq, the
displacement at each hinge, E_φ becomes E_φ + E_φ Δ×*, and so

    (δE_φ) y = E_φ [y ×̄] H* δq            (δE_φ*) x = [E_φ* x ×] H* δq
    (δφ) y   = φ̃ [φ y ×̄] H* δq            (δφ*) x   = φ* [φ̃* x ×] H* δq
    δ(A⁻¹) y = -A⁻¹ (δA) A⁻¹ y

where x× is the cross product of velocities and y ×̄ u = u ×* y that of forces with its factors
swapped. With a = V × H* v + Ḣ* v + a_g and b = V ×* M V:

    δa = [V ×] δ(H* v) - [H* v ×] δV + δ(Ḣ* v) + [a_g ×] H* δq        δb = (2 B_V + M [V ×]) δV

The transport identity, which holds on any tree, removes one of three nested recursions:

    φ* [H* v ×] φ̃* = [V ×] φ* - φ* [V ×]

Jacobians of joint forces are then sums of H φ X φ* Y and H φ̃ Z with memoryless X, Y and Z. The
decomposition lemma φ X φ* = R + φ̃ R + R φ̃*, with R = E_φ R E_φ* + X, leaves one recursion in each
term (`decomposed`): O(n · depth) operations for the matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from linkwise.algebra import role
from linkwise.algebra.differential_form import tidied
from linkwise.algebra.differential_leaf import (
    coordinate_form,
    coordinate_map,
    cross,
    diagonal,
    hinge_form,
    place_form,
    recursion_rate,
    regressor,
    rows_form,
    swap,
)
from linkwise.algebra.differential_recursion import Direction, definition, recursion
from linkwise.algebra.differential_rules import RULES, SPACES
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
    product,
    total,
    zero,
)
from linkwise.algebra.family import resolvent
from linkwise.algebra.space import CONSTRAINT, GOAL, JOINT, NODE, Space
from linkwise.algebra.symbols import (
    A_V,
    B_V,
    VOCABULARY,
    H,
    J,
    M,
    Q,
    V,
    Y,
    phi,
    servo,
    task_error,
    v,
    vector,
)
from linkwise.arguments import flag
from linkwise.errors import ExpressionError
from linkwise.front_door import open_front_door
from linkwise.model.task_rows import SERVO

SPEED, ACCELERATION, KP, KV = (
    vector(name, CONSTRAINT, ascii=ascii, tex=tex)
    for name, ascii, tex in zip(
        ("ẋ_d", "ẍ_d", "k_p", "k_v"),
        SERVO[1:],
        (r"\dot{x}_d", r"\ddot{x}_d", "k_p", "k_v"),
        strict=True,
    )
)
"""The inputs of a servo, but for its goal."""

DEFINITIONS: dict[Expr, Expr] = {
    A_V: cross(V) @ H.T + hinge_form("row", "column", v),
    B_V: 0.5 * (swap(M @ V) - cross(V).T @ M - M @ cross(V)),
    servo: ACCELERATION + diagonal(KV) @ (SPEED - (Q @ J + Y) @ v) + diagonal(KP) @ task_error,
}
"""Leaves of the mechanism by others that have rules."""

Form: TypeAlias = role.HingeRate | role.CoordinateRate | role.PlaceRate | role.RowsForm
"""Leaves of derivatives with open slots, which are differentiated further."""

SPEEDS = {"kappa": J @ v, "kappa_Y": v}
"""The velocities that κ is about: those of the nodes of loops, and of hinges."""


def _bias_form(key: role.ClosureBiasRate) -> Expr:
    """∂κ as a form: κ is quadratic in velocities."""
    kind = "kappa" if key.wrt in ("X", "V") else "kappa_Y"
    space, V = (NODE if kind == "kappa" else JOINT), SPEEDS[kind]
    if key.wrt in ("X", "q"):
        return rows_form(kind, "row", V, V, "column", spaces=(CONSTRAINT, *[space] * 3))
    return 2.0 * rows_form(kind, "row", V, "column", spaces=(CONSTRAINT, space, space))


def _product_form(key: role.ClosureRate | role.FollowerRate) -> Expr:
    """∂[Q x] and ∂[Q* x], or those of Y, as a form."""
    kind, space = ("Q", NODE) if isinstance(key, role.ClosureRate) else ("Y", JOINT)
    slots = ("row", key.of) if key.of.range is space else (key.of, "row")
    return rows_form(kind, *slots, "column", spaces=(CONSTRAINT, space, space))


def _error_form(key: role.ErrorRate) -> Expr:
    """∂e as a form."""
    spaces = CONSTRAINT, NODE if key.wrt == "X" else GOAL
    return rows_form("error", "row", "column", spaces=spaces)


ROWS: dict[type[role.Role], Callable[[Any], Expr]] = {
    role.ClosureRate: _product_form,
    role.FollowerRate: _product_form,
    role.ClosureBiasRate: _bias_form,
    role.ErrorRate: _error_form,
}
"""First derivatives of rows of constraints as forms, which are differentiated further."""


def _rows_moving(key: role.RowsForm) -> dict[str, tuple[Callable[..., Expr], Expr]]:
    """What changes the formula of rows, by name: the form with one more slot, and its velocity."""

    def farther(space: Space) -> Callable[..., Expr]:
        return partial(rows_form, key.kind, spaces=(*key.spaces, space))

    if key.kind in ("Y", "kappa_Y"):
        return {"q": (farther(JOINT), identity(JOINT))}
    moving: dict[str, tuple[Callable[..., Expr], Expr]] = {"q": (farther(NODE), J)}
    if key.kind == "error":
        moving["goal"] = farther(GOAL), identity(GOAL)
    return moving


BIAS_BY_V = hinge_form("row", v, "column") + hinge_form("row", "column", v)
"""∂(Ḣ* v)/∂v, where Ḣ* is the derivative of H* along v."""


def differentiate(expr: Expr, wrt: Symbol | str = "q", *, raw_q: bool = False) -> Expr:
    """The operator A of δy = A δx, for a stacked vector y, or a number, and a variable x.

        lw.differentiate(mass.inv @ (tau - bias), "q")      # ∂v̇/∂q

    A maps the space of x to that of y: A @ u is the derivative along u, A.T @ w the gradient of
    w* y, and A the Jacobian. It is an expression like any other: it prints, evaluates densely,
    lowers to sweeps and compiles.

    Args:
        expr: y, a stacked vector such as `mass @ vdot + bias`, or a number such as
            `v.T @ mass @ v`, whose derivative is a row.
        wrt: "q" for the configuration, in the tangent space of `mech.integrate`; or a vector, by
            its symbol or its typed name: "v", "tau", "vdot", "f" or one of your own; or a
            parameter: "inertia", the ten numbers of each body (m, m c, Jxx Jyy Jzz Jxy Jxz Jyz), of
            each part of a flexible one; "payload", the ten numbers of something welded to each of
            the nodes; "armature", the diagonal of N; "gravity", the acceleration of free fall (3);
            or an input of a servo: "goal", "velocity", "acceleration", "kp" and "kv". "damping" and
            "stiffness" are vectors too: write `diagonal(v) @ damping` into the expression. Where
            loops are built in (`lw.loops.embed`), "inertia" is in the order of the aggregates'
            bodies, and armature, damping and stiffness are those of independent hinges.

        raw_q: By the entries of q (nq), quaternions among them, instead of velocities: A 𝒬 with
            v = 𝒬 q̇. What would change the length of a quaternion makes no difference, as in
            `lw.jvp(..., raw_q=True)`.

    Vectors and operators of your own do not depend on other variables. A coefficient of your law is
    a vector: with `lw.algebra.diagonal(v) @ d` as damping, d is one.

    Raises:
        ExpressionError: The expression is not a vector, or has a symbol without a rule.
    """
    if not expr.is_vector:
        raise ExpressionError(
            f"differentiate was given {expr}, an operator from {expr.domain} to {expr.range}; it "
            "takes a stacked vector or a number. Apply the operator to a vector first."
        )
    rules = _Differential(wrt)
    if flag(raw_q, "raw_q") and rules.name != "q":
        raise ExpressionError(
            f'raw_q was given for the derivative by {rules.name}; it is for "q", whose entries may '
            "be quaternions. Leave it out."
        )
    derivative = rules.of(expr)
    if rules.name in _FORCES and isinstance(derivative, Zero):  # not unless one writes them
        raise ExpressionError(
            f"differentiate was requested the derivative of  {expr}  by {rules.name}, which it "
            f"does not contain. Write the force into the expression: {_FORCES[rules.name]}."
        )
    return tidied(derivative) @ coordinate_map if raw_q else tidied(derivative)


_FORCES = {
    "damping": "lw.algebra.diagonal(v) @ lw.algebra.damping",
    "stiffness": "lw.algebra.diagonal(x) @ lw.algebra.stiffness, with the deflection x",
}
"""What dampers and springs do, which expressions of a mechanism do not contain by themselves."""


def rate_along(key: role.RecursionRate, u: Expr) -> Expr:
    """(δr) x along u, for a leaf ∂[r x]."""
    return _Differential(key.wrt).along(key.of, u) @ key.x


class _Differential:
    """The rules for one variable."""

    def __init__(self, wrt: Symbol | str) -> None:
        leaf = VOCABULARY.get(wrt) if isinstance(wrt, str) else wrt
        self.name = wrt if isinstance(wrt, str) else wrt.ascii
        vector = isinstance(leaf, Symbol) and isinstance(leaf.role, role.Vector)
        if self.name not in SPACES and not vector:
            raise ExpressionError(
                f'differentiate was requested the derivative by {wrt}; it must be "q", "inertia", '
                '"payload", "armature", "gravity", an input of a servo such as "goal" or "kp", or '
                'a vector: "v", "tau", "damping", "stiffness" or one made with '
                "lw.algebra.vector. lw.jvp and lw.vjp take all inputs of a kernel."
            )
        self.space: Space = SPACES[self.name] if leaf is None else leaf.range
        self._known = dict[Expr, Expr]()

    def of(self, x: Expr) -> Expr:
        """The operator of δx, for a vector x."""
        if x not in self._known:
            self._known[x] = self._of(x)
        return self._known[x]

    def _of(self, x: Expr) -> Expr:
        none = zero(x.range, self.space)
        if isinstance(x, Zero):
            return none
        if isinstance(x, Sum):
            return total([(1.0, none), *((c, self.of(e)) for c, e in x.terms)])
        if isinstance(x, Product):
            first, rest = x.factors[0], product(x.factors[1:])
            return self.applied(first, rest) + first @ self.of(rest)
        assert isinstance(x, Symbol)
        if isinstance(x.role, role.Named | role.Composite):
            return self.of(x.role.definition)
        assert isinstance(x.role, role.Vector)
        return self._vector(x, x.role.source)

    def _vector(self, x: Symbol, source: str) -> Expr:
        if source == self.name:
            return identity(x.range)
        if x in DEFINITIONS:
            return self.of(DEFINITIONS[x])
        by_rule = self._by_rule(x, x)
        return zero(x.range, self.space) if by_rule is None else by_rule

    def _by_rule(self, leaf: Expr, x: Expr) -> Expr | None:
        """What the table says, for a leaf or its adjoint; None where it does not depend on it."""
        rule = RULES.get((leaf, self.name))
        return None if rule is None else rule.right(self.of, x)

    def applied(self, A: Expr, x: Expr) -> Expr:
        """The operator of (δA) x, with the vector x held."""
        none = zero(A.range, self.space)
        if isinstance(A, Identity | Zero) or isinstance(x, Zero):
            return none
        if isinstance(A, Sum):
            return total([(1.0, none), *((c, self.applied(e, x)) for c, e in A.terms)])
        if isinstance(A, Product):
            first, rest = A.factors[0], product(A.factors[1:])
            return self.applied(first, rest @ x) + first @ self.applied(rest, x)
        if isinstance(A, Inverse):
            return -(A @ self.applied(A.of, A @ x))
        star = isinstance(A, Adjoint)
        leaf = A.of if isinstance(A, Adjoint) else A
        assert isinstance(leaf, Symbol)
        if isinstance(leaf.role, role.Named | role.Composite):
            definition = leaf.role.definition
            return self.applied(definition.T if star else definition, x)
        if isinstance(leaf.role, role.Vector):
            if star:  # x* y is a number: (δx)* y = y* δx
                return x.T @ self.of(leaf)
            if isinstance(self.of(leaf), Zero):
                return none
            raise self._no_rule(leaf)
        return self._leaf(leaf, star, x)

    def _leaf(self, leaf: Symbol, star: bool, x: Expr) -> Expr:
        """An operator of the mechanism, applied to a vector."""
        none, key = zero(leaf.domain if star else leaf.range, self.space), leaf.role
        by_rule = self._by_rule(leaf.T if star else leaf, x)
        if by_rule is not None:
            return by_rule
        if leaf is coordinate_map and self.name == "q":
            slots = (x, "row", "column") if star else ("row", x, "column")
            return coordinate_form(*slots)
        if leaf in DEFINITIONS:
            return self.applied(DEFINITIONS[leaf].T if star else DEFINITIONS[leaf], x)
        if isinstance(key, role.Differential):
            return self._differential(leaf, key, star, x)
        if isinstance(key, role.Riccati | role.Lyapunov | role.Siblings | role.Resolvent):
            return self._recursion(leaf, star, x)
        return none  # does not depend on it, or is one's own

    def _recursion(self, leaf: Symbol, star: bool, x: Expr) -> Expr:
        """An operator that a recursion defines: see `differential_recursion.py`."""
        key, meaning = leaf.role, definition(leaf)
        if meaning is not None:
            return self.applied(meaning.T if star else meaning, x)
        if isinstance(key, role.Resolvent):  # ψ = (I - E_ψ)⁻¹
            around, shift = resolvent(key.of), key.of
            around, shift = (around.T, shift.T) if star else (around, shift)
            return around @ self.applied(shift, around @ x)
        if isinstance(key, role.Lyapunov) and star and not leaf.symmetric:
            leaf = recursion(role.Lyapunov(key.b, key.a, key.core.T, key.outward))
        if isinstance(self.along(leaf, vector("u", self.space)), Zero):
            return zero(leaf.range, self.space)
        return recursion_rate(leaf, x, self.name, self.space)

    def along(self, leaf: Symbol, u: Expr) -> Expr:
        """δr of an operator of a recursion, along a vector u of the variable's space."""
        direction = Direction(self.name, u, self.of, DEFINITIONS, lambda _: self._no_rule(leaf))
        return direction(leaf)

    def _differential(self, leaf: Symbol, key: role.Differential, star: bool, x: Expr) -> Expr:
        """A leaf of a derivative: linear in the vectors that give it."""
        if isinstance(key, role.Cross) and key.swapped:  # x ×̄ u = -[u ×]* x, and skew
            return (cross(x).T if star else -cross(x).T) @ self.of(key.of)
        if isinstance(key, role.Cross):  # [x ×] u = -[u ×] x,  [x ×]* y = -[y ×̄] x
            return -((swap(x) if star else cross(x)) @ self.of(key.of))
        if isinstance(key, role.RecursionRate):
            if star or not isinstance(self.of(x), Zero):
                raise self._no_rule(leaf)
            return self.of(rate_along(key, x))  # (δr) of key.x along x, which is held
        if isinstance(key, role.HingeBiasRate):
            opened = {"q": hinge_form("row", v, v, "column"), "v": BIAS_BY_V}[key.wrt]
            return self.applied(opened.T if star else opened, x)
        if type(key) in ROWS:
            opened = ROWS[type(key)](key)
            return self.applied(opened.T if star else opened, x)
        none = zero(leaf.domain if star else leaf.range, self.space)
        if isinstance(key, Form):
            return self._form(key, star, x, none)
        if isinstance(key, role.Diagonal):
            return diagonal(x) @ self.of(key.of)
        if isinstance(key, role.Regressor) and star:  # y* M x is symmetric
            return regressor(x).T @ self.of(key.of)
        if isinstance(key, role.GravityRate) and key.of == "a_g":
            turned = leaf.T @ swap(x) if star else cross(leaf @ x)
            return turned @ H.T if self.name == "q" else none
        if isinstance(key, role.GravityRate | role.WeightRate | role.Angular):
            others = "inertia payload gravity".split()
            if isinstance(key, role.Angular) or self.name not in others:
                return none
        of = getattr(key, "of", None)
        if self.name != "q" and isinstance(of, Expr) and isinstance(self.of(of), Zero):
            return none
        raise self._no_rule(leaf)

    def _form(self, key: Form, star: bool, x: Expr, none: Expr) -> Expr:
        """x takes the open slot; q moves the form, and so does each of its vectors."""
        make: Callable[..., Expr] = hinge_form
        moving: dict[str, tuple[Callable[..., Expr], Expr]] = {"q": (make, identity(JOINT))}
        if isinstance(key, role.CoordinateRate):
            make = coordinate_form
            moving = {"q": (make, identity(JOINT))}
        elif isinstance(key, role.PlaceRate):
            make = partial(place_form, nodes=key.nodes)
            moving = {"q": (make, J if key.nodes else phi.T @ H.T)}
        elif isinstance(key, role.RowsForm):
            make = partial(rows_form, key.kind, spaces=key.spaces)
            moving = _rows_moving(key)
        taken, kept = ("row", "column") if star else ("column", "row")
        slots = tuple(x if s == taken else "row" if s == kept else s for s in key.slots)
        terms = [(1.0, none)]
        if self.name in moving:
            farther, velocity = moving[self.name]
            terms.append((1.0, farther(*slots, "column") @ velocity))
        for i, y in enumerate(key.slots):
            if not isinstance(y, str) and not isinstance(self.of(y), Zero):
                moved = make(*slots[:i], "column", *slots[i + 1 :])
                terms.append((1.0, moved @ self.of(y)))
        return total(terms)

    def _no_rule(self, leaf: Expr) -> ExpressionError:
        return ExpressionError(
            f"{leaf} cannot be differentiated by {self.name}: there is no rule for it. Write the "
            "expression in its textbook form, with φ, H, M, 𝓜 and 𝓜⁻¹, or differentiate its kernel "
            "with lw.jvp or lw.vjp."
        )


open_front_door(globals(), ("differentiate",))
