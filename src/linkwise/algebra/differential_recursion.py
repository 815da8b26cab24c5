"""How operators of recursions change: P, D, G, K, ψ, R, Υ and their relatives.

What changes along a direction u is an operator again, δA. For those of the tree, with Δ = H* u,

    δE_φ = -E_φ [Δ ×]*        δH* = ∂[H* ·; u]        δM = M[u]        δN = diag(u)

each where u is of the right kind: velocities, inertial parameters, armature. A Lyapunov recursion
r = E r F* + W has the variation

    δr = E δr F* + (δE r F* + E r δF* + δW)

which is a Lyapunov recursion with another core; outward ones alike. The Riccati recursion
P = E_ψ P E_ψ* + K N K* + M is stationary in its gain, which minimises it, so that its variation
is one too, with the shift E_ψ:

    δP = E_ψ δP E_ψ* + δM + K δN K* + δE_φ P⁺ E_φ* + E_φ P⁺ δE_φ* - E_ψ P δH* K* - K δH P E_ψ*

All others follow from P by their definitions. Proof of the last line: P⁺ = Π̄ P Π̄* + G N G* for
Π̄ = I - G H, and its derivative by G vanishes at G = P H* D⁻¹.

The derivative of P x is the leaf ∂[P x]. Applied to a vector u it is (δP) x, a recursion of O(n)
operations; by itself, or as an adjoint, it is computed column by column.
∂[P x] u, with u held, is differentiated again as (δP) x, whose recursion has others in its core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from linkwise.algebra import role
from linkwise.algebra.differential_leaf import (
    cross,
    diagonal,
    hinge_form,
    inertia_of,
    regressor,
    swap,
)
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
    symbol,
    total,
    zero,
)
from linkwise.algebra.family import Family, lyapunov
from linkwise.algebra.space import BODY
from linkwise.algebra.symbols import (
    B_PI,
    Delta_phi,
    E_phi,
    H,
    M,
    N,
    R,
    articulated as F,
    phi,
    to_W,
)


def definition(leaf: Symbol) -> Expr | None:
    """What an operator of a recursion is made of; None for P and for Lyapunov recursions."""
    key = leaf.role
    if isinstance(key, role.Siblings):
        Y, E = key.inside, key.shift
        assert isinstance(Y.role, role.Lyapunov)
        return Y.role.core - Y + E.T @ Y @ E
    if not isinstance(key, role.Riccati):
        return None
    f = Family(*key.family)
    sensed = f.H @ f.P @ f.H.T
    parts = {
        "D": sensed if f.noise is None else sensed + f.noise,
        "G": f.P @ f.H.T @ f.D.inv,
        "K": f.E @ f.G,
        "Pi": f.G @ f.H,
        "Pi_bar": identity(f.E.range) - f.G @ f.H,
        "E_psi": f.E @ f.Pi_bar,
        "P_plus": f.P - f.G @ f.H @ f.P,
    }
    return parts.get(key.part)


@dataclass(frozen=True, slots=True)
class Direction:
    """Variations of operators along a vector.

    Attributes:
        wrt: The variable.
        u: The direction, a vector of its space.
        of: The derivative of a vector by the variable, as an operator.
        opened: Operators by others that have rules, such as A_V.
        unknown: The error for an operator without a rule.
    """

    wrt: str
    u: Expr
    of: Callable[[Expr], Expr]
    opened: dict[Expr, Expr]
    unknown: Callable[[Expr], Exception]

    def __call__(self, A: Expr) -> Expr:
        """δA, an operator between the same spaces."""
        none = zero(A.range, A.domain)
        if isinstance(A, Identity | Zero):
            return none
        if isinstance(A, Sum):
            return total([(1.0, none), *((c, self(e)) for c, e in A.terms)])
        if isinstance(A, Product):
            parts = list[tuple[float, Expr]]()
            for i, factor in enumerate(A.factors):
                changed = self(factor)
                if not isinstance(changed, Zero):
                    parts.append((1.0, product((*A.factors[:i], changed, *A.factors[i + 1 :]))))
            return total([(1.0, none), *parts])
        if isinstance(A, Inverse):
            return -(A @ self(A.of) @ A)
        if isinstance(A, Adjoint):
            return self(A.of).T
        assert isinstance(A, Symbol)
        return self._leaf(A, none)

    def _leaf(self, A: Symbol, none: Expr) -> Expr:
        key = A.role
        if isinstance(key, role.Named | role.Composite):
            return self(key.definition)
        if A in self.opened:
            return self(self.opened[A])
        if isinstance(key, role.Vector):
            return self.of(A) @ self.u
        if (A, self.wrt) in OF_THE_TREE:
            return OF_THE_TREE[A, self.wrt](self.u)
        if isinstance(key, role.Resolvent):
            around = A if not key.strict else A + identity(A.range)
            return around @ self(key.of) @ around
        if isinstance(key, role.Lyapunov):
            return self._lyapunov(key, none)
        if isinstance(key, role.Riccati | role.Siblings):
            meaning = definition(A)
            return self._riccati(A, none) if meaning is None else self(meaning)
        if isinstance(key, role.Differential):
            return self._differential(A, key, none)
        if self.wrt in MOVED.get(A.ascii, ()):
            raise self.unknown(A)
        return none

    def _lyapunov(self, key: role.Lyapunov, none: Expr) -> Expr:
        r = recursion(key)
        d_a, d_b = self(key.a), self(key.b)
        if key.outward:
            turned = d_a.T @ r @ key.b + key.a.T @ r @ d_b
        else:
            turned = d_a @ r @ key.b.T + key.a @ r @ d_b.T
        core = self(key.core) + turned
        return none if isinstance(core, Zero) else recursion(_with(key, core))

    def _riccati(self, P: Symbol, none: Expr) -> Expr:
        assert isinstance(P.role, role.Riccati)
        f = Family(*P.role.family)
        turned, sensed = self(f.E) @ f.P_plus @ f.E.T, f.E_psi @ f.P @ self(f.H).T @ f.K.T
        core = self(f.M) + turned + turned.T - sensed - sensed.T
        if f.noise is not None:
            core = core + f.K @ self(f.noise) @ f.K.T
        return none if isinstance(core, Zero) else lyapunov(f.E_psi, core)

    def _differential(self, A: Symbol, key: role.Differential, none: Expr) -> Expr:
        """A leaf that a vector gives, and that is linear in it."""
        make: dict[type[role.Role], Callable[[Expr], Expr]] = {
            role.Cross: swap if isinstance(key, role.Cross) and key.swapped else cross,
            role.Regressor: regressor,
            role.Diagonal: diagonal,
            role.InertiaOf: inertia_of,
        }
        if type(key) in make:
            return make[type(key)](self.of(getattr(key, "of")) @ self.u)  # noqa: B009
        if not isinstance(key, role.HingeRate):
            raise self.unknown(A)
        terms = [(1.0, none)]
        if self.wrt == "q":
            terms.append((1.0, hinge_form(*key.slots, self.u)))
        for i, y in enumerate(key.slots):
            if not isinstance(y, str) and not isinstance(self.of(y), Zero):
                changed = (*key.slots[:i], self.of(y) @ self.u, *key.slots[i + 1 :])
                terms.append((1.0, hinge_form(*changed)))
        return total(terms)


def _turned(E: Expr) -> Callable[[Expr], Expr]:
    return lambda u: -(E @ cross(H.T @ u).T)


OF_THE_TREE: dict[tuple[Expr, str], Callable[[Expr], Expr]] = {
    (E_phi, "q"): _turned(E_phi),
    (Delta_phi, "q"): _turned(Delta_phi),
    (H, "q"): lambda u: hinge_form("row", "column", u).T,
    (to_W, "q"): lambda u: to_W @ cross(phi.T @ H.T @ u),
    (M, "inertia"): lambda u: inertia_of(u),
    (M, "payload"): lambda u: inertia_of(B_PI @ u),
    (N, "armature"): lambda u: diagonal(u),
}
"""Operators of the mechanism along a direction."""

MOVED = {"rot_W": ("q",), "B": (), "Q": ("q",), "Y": ("q",)}
"""Variables that other operators depend on, for which there is no such form."""


def recursion(key: role.Lyapunov) -> Symbol:
    """The solution of a Lyapunov recursion."""
    if not key.outward:
        return lyapunov(key.a, key.core, key.b)
    text, tex = f"R*[{key.core}]", f"R^{{*}}_{{{key.core.latex()}}}"
    return symbol(text, BODY, BODY, key, text, tex)


def _with(key: role.Lyapunov, core: Expr) -> role.Lyapunov:
    return role.Lyapunov(key.a, key.b, core, key.outward)


# --------------------------------------------------------------------------------------- table


@dataclass(frozen=True, slots=True)
class RecursionRule:
    """How an operator of a recursion changes, on any tree, by q, inertia, payloads and armature.

    Attributes:
        leaf: The operator.
        statement: Its variation, in words of the algebra.
        source: Why it holds.
    """

    leaf: Symbol
    statement: str
    source: str

    def __str__(self) -> str:
        return f"δ{self.leaf} = {self.statement}"


def _rules() -> Iterator[RecursionRule]:
    turned = "δE_φ P⁺ E_φ* + E_φ P⁺ δE_φ* - E_ψ P δH* K* - K δH P E_ψ*"
    riccati = f"E_ψ δP E_ψ* + δM + K δN K* + {turned}"
    yield RecursionRule(F.P, riccati, "P is stationary in its gain; a Lyapunov recursion")
    again = "its Lyapunov recursion, varied"
    yield RecursionRule(R, "E_φ δR E_φ* + δE_φ R E_φ* + E_φ R δE_φ* + δM", again)
    core = "δ(H* D⁻¹ H)"
    yield RecursionRule(
        F.Upsilon, f"E_ψ* δΥ E_ψ + δE_ψ* Υ E_ψ + E_ψ* Υ δE_ψ + {core}, its blocks", again
    )
    for leaf in (F.D, F.G, F.K, F.Pi, F.Pi_bar, F.P_plus, F.E_psi, F.Xi):
        yield RecursionRule(leaf, f"δ({definition(leaf)})", "its definition")
    for leaf in (F.psi, F.psi_tilde):
        yield RecursionRule(leaf, "ψ δE_ψ ψ", "ψ = (I - E_ψ)⁻¹")


RULES = tuple(_rules())
"""One for each operator of the articulated recursion, and R."""
