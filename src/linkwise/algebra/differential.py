"""Derivatives of expressions: the derivative of an operator expression is an operator expression.

    δy = A δq        y = f(q, v, τ, ...) a stacked vector, A an operator

A itself is the Jacobian, A @ u a directional derivative and A.T @ w a gradient; each lowers to its
own sweeps. δq is a velocity held for one second, as in `mech.integrate`, so that it has nv entries
for every hinge.

A product is differentiated factor by factor, with everything to the right of the factor held:

    δ(A B x) = (δA)(B x) + A (δB) x + A B δx

so the rules only say what the variation of a leaf does to a vector. With Δ = H* δq, the
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

from collections.abc import Callable, Iterable

from linkwise.algebra import role
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
    nodes,
    product,
    symbol,
    total,
    zero,
)
from linkwise.algebra.family import lyapunov
from linkwise.algebra.space import BODY, INERTIA, JOINT, ONE, Space
from linkwise.algebra.symbols import B_V, VOCABULARY, E_phi, H, M, V, a_g, phi, phi_tilde, v
from linkwise.algebra.words import Word, Words, collected, expand, left_factored, rebuilt
from linkwise.errors import ExpressionError
from linkwise.front_door import open_front_door

SPACES = {"q": JOINT, "inertia": INERTIA, "armature": JOINT}
"""Variables that are not vectors of the algebra, and the spaces that they vary in."""

OF_STATE = ("q", "v")
"""Variables that the vectors a and b depend on."""


# ---------------------------------------------------------------------------------- new leaves


def cross(x: Expr) -> Expr:
    """x× at each body: the cross product of velocities, for a stacked vector x of BODY."""
    return _of_vector(x, "×", r"\times", "cross", swapped=False)


def swap(x: Expr) -> Expr:
    """x×̄ at each body, with x×̄ u = u ×* x: the cross product of forces as an operator on u."""
    return _of_vector(x, "×̄", r"\bar{\times}", "swap", swapped=True)


def _of_vector(x: Expr, text: str, tex: str, word: str, *, swapped: bool) -> Expr:
    if (x.range, x.domain) != (BODY, ONE):
        raise ExpressionError(
            f"{word} was given {x}, which maps {x.domain} to {x.range}; it must be a stacked "
            f"vector of {BODY}."
        )
    if isinstance(x, Zero):
        return zero(BODY, BODY)
    key = role.Cross(x, swapped)
    return symbol(f"[{x} {text}]", BODY, BODY, key, f"{word}({x})", rf"[{x.latex()} {tex}]")


def hinge_rate(x: Expr) -> Expr:
    """∂(H* x)/∂q for a vector x of JOINT, ∂(H x)/∂q for one of BODY: memoryless, from JOINT."""
    star, range_ = ("*", BODY) if x.range is JOINT else ("", JOINT)
    if isinstance(x, Zero):
        return zero(range_, JOINT)
    name, tex = f"∂[H{star} {x}]", rf"\partial[H^{{{star}}} {x.latex()}]"
    return symbol(name, range_, JOINT, role.HingeRate(x), f"hinge_rate({x})", tex)


def hinge_bias_rate(wrt: str) -> Expr:
    """∂(Ḣ* v)/∂q or ∂(Ḣ* v)/∂v: memoryless, from JOINT to BODY."""
    name, tex = f"∂_{wrt}[Ḣ* v]", rf"\partial_{{{wrt}}}[\dot{{H}}^{{*}} v]"
    return symbol(name, BODY, JOINT, role.HingeBiasRate(wrt), f"hinge_bias_rate_{wrt}", tex)


def regressor(x: Expr) -> Expr:
    """Y_x with Y_x π = M x, from the inertial parameters π of each body."""
    if isinstance(x, Zero):
        return zero(BODY, INERTIA)
    name, tex = f"Y[{x}]", rf"Y_{{{x.latex()}}}"
    return symbol(name, BODY, INERTIA, role.Regressor(x), f"regressor({x})", tex)


def diagonal(x: Expr) -> Expr:
    """diag x, for a vector x of JOINT."""
    if isinstance(x, Zero):
        return zero(JOINT, JOINT)
    tex = rf"\mathrm{{diag}}({x.latex()})"
    return symbol(f"diag({x})", JOINT, JOINT, role.Diagonal(x), f"diagonal({x})", tex)


# --------------------------------------------------------------------------------------- rules


def differentiate(expr: Expr, wrt: Symbol | str = "q") -> Expr:
    """The operator A of δy = A δx, for a stacked vector y, or a number, and a variable x.

        lw.differentiate(mass.inv @ (tau - bias), "q")      # ∂v̇/∂q

    A maps the space of x to that of y: A @ u is the derivative along u, A.T @ w the gradient of
    w* y, and A the Jacobian. It is an expression like any other: it prints, evaluates densely,
    lowers to sweeps and compiles.

    Args:
        expr: y, a stacked vector such as `mass @ vdot + bias`, or a number such as
            `v.T @ mass @ v`, whose derivative is a row.
        wrt: "q" for the configuration, in the tangent space of `mech.integrate`; or a vector, by
            its symbol or its typed name: "v", "tau", "vdot", "f" or one of your own; or
            "inertia", the ten numbers of each body (m, m c, Jxx Jyy Jzz Jxy Jxz Jyz), or
            "armature", the diagonal of N.

    Raises:
        ExpressionError: The expression is not a vector, or has a symbol without a rule.
    """
    if not expr.is_vector:
        raise ExpressionError(
            f"differentiate was given {expr}, an operator from {expr.domain} to {expr.range}; it "
            "takes a stacked vector or a number. Apply the operator to a vector first."
        )
    return tidied(_Differential(wrt).of(expr))


class _Differential:
    """The rules for one variable."""

    def __init__(self, wrt: Symbol | str) -> None:
        leaf = VOCABULARY.get(wrt) if isinstance(wrt, str) else wrt
        self.name = wrt if isinstance(wrt, str) else wrt.ascii
        vector = isinstance(leaf, Symbol) and isinstance(leaf.role, role.Vector)
        if self.name not in SPACES and not vector:
            raise ExpressionError(
                f'differentiate was requested the derivative by {wrt}; it must be "q", "inertia", '
                '"armature", or a vector such as "v", "tau" or one made with lw.algebra.vector.'
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
        moves = self.name in OF_STATE
        if source == "a" and moves:
            turned = cross(V) @ self.of(H.T @ v) - cross(H.T @ v) @ self.of(V)
            return turned + hinge_bias_rate(self.name) + self.of(a_g)
        if source == "b" and moves:
            return (2.0 * B_V + M @ cross(V)) @ self.of(V)
        if source == "b" and self.name == "inertia":  # b = -[V ×]* M V
            return -(cross(V).T @ regressor(V))
        if source == "weight" and self.name == "inertia":
            raise self._no_rule(x)
        if source == "a_g" and self.name == "q":
            return cross(a_g) @ H.T
        if source in ("X", "X_B", "kappa", "kappa_g", "servo") and moves:
            raise self._no_rule(x)
        return zero(x.range, self.space)

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
        if isinstance(key, role.Memoryless) and key.source == "M" and self.name == "inertia":
            return regressor(x)
        if isinstance(key, role.Memoryless) and key.source == "N" and self.name == "armature":
            return diagonal(x)
        constant = isinstance(key, role.PickOff | role.Gather | role.Selection)
        if constant or (isinstance(key, role.Memoryless) and key.source in ("M", "N")):
            return none
        moving = isinstance(key, role.Memoryless) and key.source in ("A_V", "B_V")
        recursive = isinstance(key, role.Riccati | role.Lyapunov | role.Siblings)
        recursive = recursive or (isinstance(key, role.Resolvent) and key.of is not E_phi)
        if (
            moving
            or recursive
            or isinstance(key, role.Closure | role.Followers | role.Differential)
        ):
            raise self._no_rule(leaf)
        if self.name != "q":
            return none
        if isinstance(key, role.Resolvent) and key.of is E_phi:
            if star:
                return phi.T @ cross(phi_tilde.T @ x) @ H.T
            return phi_tilde @ swap(phi @ x) @ H.T
        if isinstance(key, role.Memoryless) and key.source == "H":
            return hinge_rate(x)
        if isinstance(key, role.Shift | role.Memoryless) and key.source in ("phi", "Delta_phi"):
            return cross(leaf.T @ x) @ H.T if star else leaf @ swap(x) @ H.T
        raise self._no_rule(leaf)

    def _no_rule(self, leaf: Symbol) -> ExpressionError:
        return ExpressionError(
            f"{leaf} cannot be differentiated by {self.name}: there is no rule for it. Write the "
            "expression in its textbook form, with φ, H, M, 𝓜 and 𝓜⁻¹."
        )


# --------------------------------------------------------------------------------- normal form


def tidied(expr: Expr) -> Expr:
    """An equal expression after the transport identity, with cross products that add up merged."""
    if not is_derivative(expr):
        return expr
    words, before = expand(rebuilt(expr, _opened)), dict[Word, float]()
    while words != before:
        before = words
        words = collected(pair for item in words.items() for pair in _transported(*item))
        words = _merged(words)
    return left_factored(words, expr.range, expr.domain)


def is_derivative(expr: Expr) -> bool:
    """Whether a leaf that differentiation adds is in it."""
    return any(isinstance(x, Symbol) and isinstance(x.role, role.Differential) for x in nodes(expr))


def _opened(leaf: Expr) -> Expr | None:
    """What a name means; other letters stay."""
    name = leaf.of if isinstance(leaf, Adjoint) else leaf
    if not isinstance(name, Symbol) or not isinstance(name.role, role.Named):
        return None
    return name.role.definition.T if isinstance(leaf, Adjoint) else name.role.definition


OWN, TURN = cross(H.T @ v), cross(V)


def _transported(word: Word, number: float) -> Iterable[tuple[Word, float]]:
    """φ* [H* v ×] φ* = [V ×] φ* - φ* [V ×] + φ* [H* v ×]; for φ̃* without the last term."""
    for i in range(len(word) - 2):
        last = word[i + 2]
        if word[i] is phi.T and word[i + 1] is OWN and last in (phi.T, phi_tilde.T):
            head, tail = word[:i], word[i + 3 :]
            yield (*head, TURN, phi.T, *tail), number
            yield (*head, phi.T, TURN, *tail), -number
            if last is phi.T:
                yield (*head, phi.T, OWN, *tail), number
            return
    yield word, number


def _merged(words: Words) -> Words:
    """[x ×] + [y ×] = [x + y ×], in words that differ in this letter only."""
    for word in words:
        for i, letter in enumerate(word):
            linear = _linear(letter)
            if linear is None:
                continue
            kind, make, _ = linear
            around = (len(word), word[:i], word[i + 1 :])
            same = [
                (number, other, key[2])
                for other, number in words.items()
                if (len(other), other[:i], other[i + 1 :]) == around
                and (key := _linear(other[i])) is not None
                and key[0] == kind
            ]
            if len(same) < 2:
                continue
            sign = 1.0 if same[0][0] > 0.0 else -1.0
            merged = make(_sum([(sign * number, x) for number, _, x in same]))
            rest = [item for item in words.items() if item[0] not in {w for _, w, _ in same}]
            if not isinstance(merged, Zero):
                rest.append(((*word[:i], merged, *word[i + 1 :]), sign))
            return _merged(collected(rest))
    return words


def _linear(letter: Expr) -> tuple[object, Callable[[Expr], Expr], Expr] | None:
    """For a leaf that a vector x gives: its kind, how to make it of another x, and x."""
    key = letter.role if isinstance(letter, Symbol) else None
    if isinstance(key, role.Cross):
        return ("×", key.swapped), swap if key.swapped else cross, key.of
    if isinstance(key, role.HingeRate):
        return ("∂", key.of.range), hinge_rate, key.of
    if isinstance(key, role.Regressor | role.Diagonal):
        return type(key), regressor if isinstance(key, role.Regressor) else diagonal, key.of
    return None


def _sum(terms: list[tuple[float, Expr]]) -> Expr:
    """A sum of vectors, with φ* x - x as φ̃* x."""
    vector = total(terms)
    words = expand(rebuilt(vector, _opened))
    for word, number in list(words.items()):
        tail = word[1:]
        if word and word[0] is phi.T and words.get(tail) == -number:
            del words[tail], words[word]
            words = collected([*words.items(), ((phi_tilde.T, *tail), number)])
    return left_factored(words, vector.range, ONE)


def decomposed(expr: Expr) -> Expr:
    """The decomposition lemma for every term L φ X φ* Y with memoryless L, X and Y.

        L φ X φ* Y = L R Y + L φ̃ R Y + L R φ̃* Y,   R = E_φ R E_φ* + X

    An inverse in front, as in 𝓜⁻¹ L φ X φ* Y, stays there.
    """
    behind = dict[Word, Words]()
    for word, number in expand(rebuilt(expr, _opened)).items():
        inverses = [i for i, x in enumerate(word, 1) if x.causality == "mixed"]
        n = inverses[-1] if inverses else 0
        behind.setdefault(word[:n], {})[word[n:]] = number
    terms = list[tuple[float, Expr]]()
    for head, words in behind.items():
        range_ = head[-1].domain if head else expr.range
        terms.append((1.0, product((*head, _decomposed(words, range_, expr.domain)))))
    return total(terms) if terms else expr


def _decomposed(words: Words, range_: Space, domain: Space) -> Expr:
    rest = dict(words)
    cores = dict[tuple[Word, Word], Words]()  # by L and X, the numbers of each Y
    for word, number in words.items():
        places = [i for i, letter in enumerate(word) if letter.causality != "memoryless"]
        if [word[i] for i in places] == [phi, phi.T]:
            i, j = places
            cores.setdefault((word[:i], word[i + 1 : j]), {})[word[j + 1 :]] = number
            del rest[word]
    inward = dict[Word, list[Expr]]()
    terms = list[Expr]()
    for (left, core), rights in cores.items():
        R, Y = lyapunov(E_phi, product(core)), left_factored(rights, BODY, domain)
        inward.setdefault(left, []).append(R @ Y)
        terms += [product((*left, R, phi_tilde.T, Y)), product((*left, R, Y))]
    for word, number in list(rest.items()):  # L φ̃ Z travels with L φ̃ R Y
        i = word.index(phi_tilde) if phi_tilde in word else 0
        if i and word[:i] in inward:
            inward[word[:i]].append(number * product(word[i + 1 :]))
            del rest[word]
    for left, each in inward.items():
        terms.append(product((*left, phi_tilde)) @ total([(1.0, e) for e in each]))
    return total([(1.0, left_factored(rest, range_, domain)), *((1.0, e) for e in terms)])


open_front_door(globals(), ("differentiate",))
