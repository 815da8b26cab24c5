"""What a leaf is in the theory: how it is built, not what it is called.

Rules and recursions look at roles only, so that renaming every symbol changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from linkwise.algebra.expr import Expr, Symbol
    from linkwise.algebra.space import Space


@dataclass(frozen=True, slots=True)
class Role:
    """Base of all roles, with the properties that the algebra needs."""

    @property
    def causality(self) -> Literal["memoryless", "causal", "anticausal", "mixed"]:
        """Memoryless unless a role says otherwise."""
        return "memoryless"

    @property
    def symmetric(self) -> bool:
        """Whether the operator is its own adjoint."""
        return False

    @property
    def definite(self) -> bool:
        """Whether it is positive definite."""
        return False

    @property
    def semidefinite(self) -> bool:
        """Whether x* A x is never negative."""
        return self.definite

    @property
    def invertible(self) -> bool:
        """Whether it is known to have an inverse."""
        return self.definite

    @property
    def nilpotent(self) -> bool:
        """Whether some power of it is zero."""
        return False

    @property
    def full_rank(self) -> bool:
        """Whether its rows are linearly independent."""
        return self.invertible


@dataclass(frozen=True, slots=True)
class Memoryless(Role):
    """Block diagonal over the bodies: no recursion.

    Attributes:
        source: Where its blocks come from: a key of the model ("M", "H" ...), or a user's own.
        is_symmetric: Each block is symmetric.
        is_definite: Each block is symmetric and positive definite.
        independent: The rows of each block are linearly independent.
        has_inverse: Each block has an inverse.
        is_semidefinite: Each block is symmetric and positive semidefinite.
    """

    source: str
    is_symmetric: bool = False
    is_definite: bool = False
    independent: bool = False
    has_inverse: bool = False
    is_semidefinite: bool = False

    @property
    def symmetric(self) -> bool:  # noqa: D102
        return self.is_symmetric or self.semidefinite

    @property
    def semidefinite(self) -> bool:  # noqa: D102
        return self.is_semidefinite or self.is_definite

    @property
    def definite(self) -> bool:  # noqa: D102
        return self.is_definite

    @property
    def invertible(self) -> bool:  # noqa: D102
        return self.is_definite or self.has_inverse

    @property
    def full_rank(self) -> bool:  # noqa: D102
        return self.independent or self.invertible


@dataclass(frozen=True, slots=True)
class Selection(Memoryless):
    """One at the velocities of some hinges, zero at all others: a projection, JOINT to JOINT.

    Attributes:
        hinges: Names of the hinges.
    """

    hinges: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Composite(Role):
    """A memoryless expression taken as one operator, so that its blocks can be inverted.

    Attributes:
        definition: The expression: sums and products of memoryless operators.
    """

    definition: Expr

    @property
    def symmetric(self) -> bool:  # noqa: D102
        return self.definition.symmetric

    @property
    def invertible(self) -> bool:  # noqa: D102
        return True


@dataclass(frozen=True, slots=True)
class Differential(Role):
    """A memoryless leaf that differentiation adds: a vector gives its blocks."""


@dataclass(frozen=True, slots=True)
class Cross(Differential):
    """x× at each body or node, from a stacked vector x: a memoryless operator that it gives.

    x× u is the rate of a velocity u that is carried along with x; -(x×)* is that of a force.

    Attributes:
        of: The vector, of BODY or NODE.
        swapped: The other factor is the operand: x×̄ u = u ×* x, for a force x. It is skew.
    """

    of: Expr
    swapped: bool = False


@dataclass(frozen=True, slots=True)
class HingeRate(Differential):
    """The form f* D_n ... D_1 H* x at each body, with two of its vectors left open.

    D_i is the derivative along velocities y_i of the hinge, the first one innermost.

    Attributes:
        slots: f, x, y_1 ... y_n: f a vector of BODY, the others of JOINT; "row" for the one that
            the result belongs to, "column" for that of the operand. ("row", x, "column") is
            ∂(H* x)/∂q.
    """

    slots: tuple[Expr | str, ...]

    @property
    def vectors(self) -> tuple[Expr, ...]:
        """Those that are not open."""
        return tuple(x for x in self.slots if not isinstance(x, str))


@dataclass(frozen=True, slots=True)
class CoordinateRate(Differential):
    """The form f* D_n ... D_1 𝒬 x at each body, with two of its vectors left open.

    Attributes:
        slots: f, x, y_1 ... y_n as in `HingeRate`: x a vector of COORDINATE, the others of JOINT.
    """

    slots: tuple[Expr | str, ...]

    @property
    def vectors(self) -> tuple[Expr, ...]:
        """Those that are not open."""
        return tuple(x for x in self.slots if not isinstance(x, str))


@dataclass(frozen=True, slots=True)
class PlaceRate(Differential):
    """The form f* (X x̂_n ... x̂_1) of a pose X = (rot | p), with two of its vectors left open.

    X x̂ is how X changes along a velocity x of its body or node: (rot ω× | rot u) of x = (ω, u).

    Attributes:
        slots: f, x_1 ... x_n: f a vector of PLACE or NODE_PLACE, the others of BODY or NODE; "row"
            and "column" where they are open, as in `HingeRate`.
        nodes: Whether it is about nodes, not bodies.
    """

    slots: tuple[Expr | str, ...]
    nodes: bool = False

    @property
    def vectors(self) -> tuple[Expr, ...]:
        """Those that are not open."""
        return tuple(x for x in self.slots if not isinstance(x, str))


@dataclass(frozen=True, slots=True)
class GravityRate(Differential):
    """How a_g, from GRAVITY to BODY, or the weights, to PLACE, change with gravity.

    Attributes:
        of: "a_g" or "weight".
    """

    of: str


@dataclass(frozen=True, slots=True)
class WeightRate(Differential):
    """How the weights change with the inertial parameters: from INERTIA to PLACE."""


@dataclass(frozen=True, slots=True)
class Angular(Differential):
    """diag(1, 0): the angular part of velocities of nodes."""


@dataclass(frozen=True, slots=True)
class HingeBiasRate(Differential):
    """How Ḣ* v changes at each body with its own coordinates, or with its own velocities.

    Attributes:
        wrt: "q" or "v".
    """

    wrt: str


@dataclass(frozen=True, slots=True)
class Regressor(Differential):
    """Y_x with Y_x π = M x at each body or node, for the ten inertial parameters π of each.

    Attributes:
        of: x, a vector of BODY or NODE.
    """

    of: Expr


@dataclass(frozen=True, slots=True)
class InertiaOf(Differential):
    """M[π]: the spatial inertia that ten parameters π of each body give; linear in them.

    Attributes:
        of: π, a vector of INERTIA.
    """

    of: Expr

    @property
    def symmetric(self) -> bool:  # noqa: D102
        return True


@dataclass(frozen=True, slots=True)
class RecursionRate(Differential):
    """∂[r x]: how an operator r of a recursion, applied to a held vector x, changes.

    Applied to a vector u it is (δr) x, with δr along u (`differential_recursion.py`).

    Attributes:
        of: r, the solution of a Riccati or Lyapunov recursion.
        x: The vector.
        wrt: The name of the variable.
    """

    of: Symbol
    x: Expr
    wrt: str

    @property
    def causality(self) -> Literal["memoryless", "causal", "anticausal", "mixed"]:  # noqa: D102
        return "mixed"


@dataclass(frozen=True, slots=True)
class Diagonal(Differential):
    """The diagonal operator of a vector of JOINT or CONSTRAINT: u by N of N x, for x.

    Attributes:
        of: The vector.
    """

    of: Expr


@dataclass(frozen=True, slots=True)
class ClosureRate(Differential):
    """How Q x, or Q* x, changes with displacements of the nodes of loops; from NODE.

    Attributes:
        of: x, a vector of NODE for Q x, of CONSTRAINT for Q* x.
    """

    of: Expr


@dataclass(frozen=True, slots=True)
class FollowerRate(Differential):
    """How Y x, or Y* x, changes with q; from JOINT.

    Attributes:
        of: x, a vector of JOINT for Y x, of CONSTRAINT for Y* x.
    """

    of: Expr


@dataclass(frozen=True, slots=True)
class ClosureBiasRate(Differential):
    """How κ changes.

    Attributes:
        wrt: "X" and "V", with displacements and velocities of the nodes of loops, from NODE; "q"
            and "v", in the rows of couplings, from JOINT.
    """

    wrt: str


@dataclass(frozen=True, slots=True)
class ErrorRate(Differential):
    """How the errors of tasks change.

    Attributes:
        wrt: "X", with displacements of the nodes of tasks, from NODE; or "goal", from GOAL.
    """

    wrt: str


@dataclass(frozen=True, slots=True)
class RowsForm(Differential):
    """The form f* D_n ... D_1 L(x ...) of rows of constraints, with two of its vectors left open.

    L is Q x, Y x, κ as a bilinear form of velocities, or the errors of tasks, by its kind
    (`model/closure_form.py`). D_i is the derivative along d_i, the first one innermost.

    Attributes:
        kind: "Q", "Y", "kappa", "kappa_Y" or "error".
        slots: f, x ..., d_1 ... d_n: vectors, or "row" and "column", as in `HingeRate`.
        spaces: The space of each slot.
    """

    kind: str
    slots: tuple[Expr | str, ...]
    spaces: tuple[Space, ...]

    @property
    def vectors(self) -> tuple[Expr, ...]:
        """Those that are not open."""
        return tuple(x for x in self.slots if not isinstance(x, str))


@dataclass(frozen=True, slots=True)
class PickOff(Role):
    """B: takes a force at a node to the body it is fixed on. Its adjoint picks nodes off bodies.

    B_π does the same with the inertial parameters of what is welded to nodes.
    """

    source: str = "B"


@dataclass(frozen=True, slots=True)
class Closure(Role):
    """Q: takes velocities of the nodes of loops to the blocked part of their relative velocities.

    Each loop uses its two nodes; the nodes of all loops come first in the space NODE.
    """

    source: str = "Q"


@dataclass(frozen=True, slots=True)
class Followers(Role):
    """Y: what couplings require of joint velocities, one row each."""

    source: str = "Y"


@dataclass(frozen=True, slots=True)
class Shift(Role):
    """E: one step from each body to its parent, strictly causal and nilpotent.

    Attributes:
        source: "phi" for the rigid shift of the model, or a user's own key.
    """

    source: str

    @property
    def causality(self) -> Literal["memoryless", "causal", "anticausal", "mixed"]:  # noqa: D102
        return "causal"

    @property
    def nilpotent(self) -> bool:  # noqa: D102
        return True


@dataclass(frozen=True, slots=True)
class Gather(Role):
    """S: sums, at each body, what its children pass to the inboard side."""

    @property
    def causality(self) -> Literal["memoryless", "causal", "anticausal", "mixed"]:  # noqa: D102
        return "causal"


@dataclass(frozen=True, slots=True)
class Resolvent(Role):
    """φ = (I - E)⁻¹ of a shift E; with `strict` the part φ~ = φ - I = E φ = φ E.

    Attributes:
        of: The shift.
        strict: Without the identity on the diagonal.
    """

    of: Symbol
    strict: bool = False

    @property
    def causality(self) -> Literal["memoryless", "causal", "anticausal", "mixed"]:  # noqa: D102
        return "causal"

    @property
    def invertible(self) -> bool:  # noqa: D102
        return not self.strict

    @property
    def nilpotent(self) -> bool:  # noqa: D102
        return self.strict


@dataclass(frozen=True, slots=True)
class Lyapunov(Role):
    """The memoryless solution r of a Lyapunov recursion with core W.

    inward:   r = E_a r E_b* + W, summed over children      (φ_a W φ_b* = r + φ~_a r + r φ~_b*)
    outward:  r = [E_a* r E_b] + W, its diagonal blocks      (on a chain φ_a* W φ_b = r + ...)

    Attributes:
        a: Shift on the left.
        b: Shift on the right.
        core: W, memoryless and symmetric if a is b.
        outward: Base to tip instead of tip to base.
    """

    a: Symbol
    b: Symbol
    core: Expr
    outward: bool = False

    @property
    def symmetric(self) -> bool:  # noqa: D102
        return self.a is self.b and self.core.symmetric

    @property
    def definite(self) -> bool:  # noqa: D102
        return self.a is self.b and self.core.definite


@dataclass(frozen=True, slots=True)
class Siblings(Role):
    """The part of the outward recursion between siblings: E* Υ E without its diagonal blocks.

    Zero on a serial chain; on a branched tree ψ* S ψ is the cross-branch term of Ω.

    Attributes:
        shift: E.
        inside: Υ.
    """

    shift: Symbol
    inside: Symbol

    @property
    def causality(self) -> Literal["memoryless", "causal", "anticausal", "mixed"]:  # noqa: D102
        return "mixed"

    @property
    def symmetric(self) -> bool:  # noqa: D102
        return True


@dataclass(frozen=True, slots=True)
class Riccati(Role):
    """One quantity of the Riccati recursion of a family (see `family.py`).

    Attributes:
        family: Key of the family.
        part: "P", "D", "G", "K", "E_psi", "Pi", "Pi_bar", "P_plus", "L" or "Delta_psi".
    """

    family: Any
    part: str

    @property
    def causality(self) -> Literal["memoryless", "causal", "anticausal", "mixed"]:  # noqa: D102
        return "causal" if self.part in ("K", "E_psi") else "memoryless"

    @property
    def symmetric(self) -> bool:  # noqa: D102
        return self.part in ("P", "D", "P_plus")

    @property
    def definite(self) -> bool:  # noqa: D102
        return self.part in ("P", "D")

    @property
    def nilpotent(self) -> bool:  # noqa: D102
        return self.part == "E_psi"


@dataclass(frozen=True, slots=True)
class Vector(Role):
    """A stacked vector: an operator with one column.

    Attributes:
        source: "tau", "v", "a", "b", "f" ... or a user's own key.
    """

    source: str


@dataclass(frozen=True, slots=True)
class Named(Role):
    """A name for an expression; rewriting opens it by its definition.

    Attributes:
        definition: The expression.
    """

    definition: Expr

    @property
    def causality(self) -> Literal["memoryless", "causal", "anticausal", "mixed"]:  # noqa: D102
        return self.definition.causality

    @property
    def symmetric(self) -> bool:  # noqa: D102
        return self.definition.symmetric

    @property
    def definite(self) -> bool:  # noqa: D102
        return self.definition.definite

    @property
    def invertible(self) -> bool:  # noqa: D102
        return self.definition.range is self.definition.domain
