"""Families of operators that one recursion defines: Riccati and Lyapunov.

A Riccati family belongs to a shift E with resolvent φ, a memoryless core M and a memoryless H:

    P = E P⁺ E* + M      D = H P H* (+ N)     G = P H* D⁻¹      K = E G
    Π = G H              Π̄ = I - Π            P⁺ = Π̄ P         E_ψ = E Π̄      ψ = (I - E_ψ)⁻¹

It is what turns (H φ M φ* H* + N)⁻¹ into (I - H ψ K)* D⁻¹ (I - H ψ K). For the rigid shift, the
spatial inertia and the hinge map these are the articulated-body quantities of the papers; any
other three operators of the same roles have their own family. N is "measurement noise" in
estimation and armature in mechanics. The standard family has it, since a mechanism does; that of
the bare tree, which the papers describe, is marked with a zero: P₀, D₀.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from linkwise.algebra import role
from linkwise.algebra.expr import Expr, Symbol, identity, symbol
from linkwise.algebra.space import Space
from linkwise.errors import ExpressionError


@dataclass(frozen=True, slots=True)
class Family:
    """The operators of one Riccati recursion; standard names for the standard family.

    Attributes:
        E: The shift.
        M: The core, symmetric and memoryless.
        H: The projection, memoryless with independent rows.
        noise: N, memoryless and symmetric, or None.
        mark: Appended to the names, to distinguish families.
    """

    E: Symbol
    M: Symbol
    H: Symbol
    noise: Symbol | None = None
    mark: str = ""

    def _part(self, part: str, range_: Space, domain: Space, text: str, tex: str) -> Symbol:
        tex = marked(tex, self.mark)
        key = role.Riccati((self.E, self.M, self.H, self.noise, self.mark), part)
        return symbol(text + self.mark, range_, domain, key, part + typed(self.mark), tex)

    @property
    def phi(self) -> Symbol:
        """(I - E)⁻¹."""
        return resolvent(self.E)

    @property
    def P(self) -> Symbol:
        """Articulated inertia."""
        return self._part("P", self.E.range, self.E.range, "P", "P")

    @property
    def P_plus(self) -> Symbol:
        """Articulated inertia on the inboard side of the hinge, Π̄ P."""
        return self._part("P_plus", self.E.range, self.E.range, "P⁺", "P^{+}")

    @property
    def D(self) -> Symbol:
        """Articulated inertia seen at the hinge."""
        return self._part("D", self.H.range, self.H.range, "D", "D")

    @property
    def G(self) -> Symbol:
        """Kalman gain."""
        return self._part("G", self.E.range, self.H.range, "G", "G")

    @property
    def K(self) -> Symbol:
        """Shifted gain E G."""
        return self._part("K", self.E.range, self.H.range, "K", "K")

    @property
    def Pi(self) -> Symbol:
        """Π = G H (τ in the papers)."""
        return self._part("Pi", self.E.range, self.E.range, "Π", r"\Pi")

    @property
    def Pi_bar(self) -> Symbol:
        """Π̄ = I - G H."""
        return self._part("Pi_bar", self.E.range, self.E.range, "Π̄", r"\overline{\Pi}")

    @property
    def E_psi(self) -> Symbol:
        """Articulated shift E Π̄."""
        return self._part("E_psi", self.E.range, self.E.range, "E_ψ", r"\mathcal{E}_\psi")

    @property
    def psi(self) -> Symbol:
        """(I - E_ψ)⁻¹."""
        return resolvent(self.E_psi)

    @property
    def psi_tilde(self) -> Symbol:
        """ψ - I."""
        return resolvent(self.E_psi, strict=True)

    @property
    def Upsilon(self) -> Symbol:
        """Υ: outward Lyapunov recursion with core H* D⁻¹ H."""
        core = self.H.T @ self.D.inv @ self.H
        key = role.Lyapunov(self.E_psi, self.E_psi, core, outward=True)
        name = ("Υ" + self.mark, "Upsilon" + typed(self.mark), marked(r"\Upsilon", self.mark))
        return symbol(name[0], self.E.range, self.E.range, key, name[1], name[2])

    @property
    def Xi(self) -> Symbol:
        """The part of the outward recursion between siblings; zero on a chain."""
        key = role.Siblings(self.E_psi, self.Upsilon)
        name = ("Ξ" + self.mark, "Xi" + typed(self.mark), marked(r"\Xi", self.mark))
        return symbol(name[0], self.E.range, self.E.range, key, name[1], name[2])

    @property
    def whitening(self) -> Expr:
        """I - H ψ K, the inverse of `coloring`."""
        return identity() - self.H @ self.psi @ self.K

    @property
    def coloring(self) -> Expr:
        """I + H φ K."""
        return identity() + self.H @ self.phi @ self.K

    @property
    def factored(self) -> Expr:
        """What the family inverts: H φ M φ* H* (+ N)."""
        plain = self.H @ self.phi @ self.M @ self.phi.T @ self.H.T
        return plain if self.noise is None else plain + self.noise


@cache
def riccati(E: Symbol, M: Symbol, H: Symbol, noise: Symbol | None = None) -> Family:
    """The Riccati family of a shift, a core and a projection.

    Raises:
        ExpressionError: M or the noise is not symmetric, or one of the four is of the wrong kind.
    """
    _check_parts(E, M, H, noise)
    same = (E.role == RIGID_SHIFT, M.role == SPATIAL_INERTIA, H.role == HINGE_MAP)
    if all(same) and noise is None:
        return Family(E, M, H, None, BARE)
    if all(same) and noise is not None:
        armature = isinstance(noise.role, role.Memoryless) and noise.role.source == "N"
        return Family(E, M, H, noise, "" if armature else f"[{_bare(noise)}]")
    other = H if not same[2] else (M if not same[1] else E)
    return Family(E, M, H, noise, _mark(other, noise))


def _check_parts(E: Symbol, M: Symbol, H: Symbol, noise: Symbol | None) -> None:
    """P = E P⁺ E* + M and D = H P H* + N need a shift, and memoryless, symmetric M and N."""
    if not E.role.nilpotent or E.range is not E.domain:
        raise ExpressionError(
            f"riccati was given {E} for its shift; it must be a one-step operator: see `shift`."
        )
    if H.causality != "memoryless" or H.domain is not E.range:
        raise ExpressionError(
            f"riccati was given {H} for its projection; it must be memoryless and take "
            f"{E.range} vectors, not {H.domain} vectors."
        )
    for name, part, space in (("M", M, E.range), ("N", noise, H.range)):
        if part is None:
            continue
        if not part.symmetric or part.causality != "memoryless":
            raise ExpressionError(
                f"riccati was given {part} for {name}, which is not known to be symmetric and "
                "memoryless. Its identities need P = P* and D = D*: declare it with "
                "memoryless(..., symmetric=True) or definite=True."
            )
        if (part.range, part.domain) != (space, space):
            raise ExpressionError(
                f"riccati was given {part} for {name}, from {part.domain} to {part.range}; it must "
                f"map {space} to {space}."
            )


def _mark(other: Symbol, noise: Symbol | None) -> str:
    """What distinguishes a family: _U of H_U, else names in brackets."""
    _, _, end = other.name.partition("_")
    names = (other,) if noise is None else (other, noise)
    return f"_{end}" if end and other.name.isidentifier() else f"[{', '.join(map(_bare, names))}]"


def _bare(leaf: Symbol) -> str:
    """Its name, without the parentheses of a sum."""
    return leaf.name.removeprefix("(").removesuffix(")")


BARE, BARE_ASCII = "₀", "_0"
"""What marks the operators of the bare tree, without armature."""


def typed(mark: str) -> str:
    """A mark as it is typed."""
    return BARE_ASCII if mark == BARE else mark


RIGID_SHIFT = role.Shift("phi")
SPATIAL_INERTIA = role.Memoryless("M", is_definite=True)
HINGE_MAP = role.Memoryless("H", independent=True)

_RESOLVENT_NAMES = {"E_φ": ("φ", "phi", r"\phi"), "E_ψ": ("ψ", "psi", r"\psi")}


def resolvent(E: Symbol, *, strict: bool = False) -> Symbol:
    """φ = (I - E)⁻¹, or φ~ = φ - I with `strict`."""
    stem, mark = E.name, ""
    for known in _RESOLVENT_NAMES:
        if E.name.startswith(known):
            stem, mark = known, E.name[len(known) :]
    default = (f"({E.name})ʳ", f"res_{E.ascii}", rf"({E.tex})^{{r}}")
    name, text, tex = _RESOLVENT_NAMES.get(stem, default)
    name = name + mark
    if strict:
        name, text, tex = name[0] + "̃" + name[1:], text + "_tilde", rf"\tilde{{{tex}}}"
    text, tex = text + typed(mark), marked(tex, mark)
    return symbol(name, E.range, E.domain, role.Resolvent(E, strict), text, tex)


def marked(tex: str, mark: str) -> str:
    """The LaTeX of a name with a mark behind it, raised so that no subscript is doubled."""
    plain = mark.removeprefix("_").replace("_", r"\_")
    raised = "(0)" if mark == BARE else rf"\text{{{plain}}}"
    base = f"{{{tex}}}" if "^" in tex else tex
    return f"{base}^{{{raised}}}" if mark else tex


def lyapunov(a: Symbol, core: Expr, b: Symbol | None = None) -> Symbol:
    """The memoryless r with φ_a W φ_b* = r + φ~_a r + r φ~_b* (r = E_a r E_b* + W)."""
    b = a if b is None else b
    key = role.Lyapunov(a, b, core)
    if (
        a.role == RIGID_SHIFT
        and b is a
        and isinstance(core, Symbol)
        and core.role == SPATIAL_INERTIA
    ):
        return symbol("R", a.range, b.range, key, "R", "R")
    return symbol(f"R[{core}]", a.range, b.range, key, f"R[{core}]", f"R_{{{core.latex()}}}")


def composite(expr: Expr) -> Symbol:
    """A memoryless expression as one operator, with blocks that can be inverted."""
    key, tex = role.Composite(expr), rf"\left({expr.latex()}\right)"
    return symbol(f"({expr})", expr.range, expr.domain, key, f"({expr})", tex)


def family_of(leaf: Symbol) -> Family | None:
    """The family a symbol belongs to, if it is one of a Riccati family."""
    key = leaf.role
    if isinstance(key, role.Resolvent):
        return family_of(key.of)
    if isinstance(key, role.Lyapunov | role.Siblings):
        return family_of(key.a if isinstance(key, role.Lyapunov) else key.shift)
    if isinstance(key, role.Riccati):
        return Family(*key.family)
    return None
