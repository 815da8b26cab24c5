"""What the variation of a leaf does to a vector: the rules of differentiation, as data.

Each says what A is in (δL) x = A δy, for a leaf L, a vector x that is held, and a variable y; for a
vector L it is δL = A δy. The table is complete: a leaf does not depend on a variable for which it
has no rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from linkwise.algebra.differential_leaf import (
    ANGULAR,
    WEIGHT_RATE,
    closure_bias_rate,
    closure_rate,
    cross,
    diagonal,
    error_rate,
    follower_rate,
    gravity_rate,
    hinge_bias_rate,
    hinge_rate,
    place_form,
    regressor,
    swap,
)
from linkwise.algebra.expr import Expr, Sum, symbol
from linkwise.algebra.role import Memoryless
from linkwise.algebra.space import BODY, CONSTRAINT, GOAL, GRAVITY, INERTIA, JOINT, NODE_INERTIA
from linkwise.algebra.symbols import (
    B_PI,
    B_V,
    X_B,
    B,
    Delta_phi,
    E_phi,
    H,
    J,
    M,
    N,
    Q,
    V,
    X,
    Y,
    a,
    a_g,
    b,
    kappa,
    kappa_g,
    phi,
    phi_tilde,
    rot_W,
    task_error,
    to_W,
    v,
    vector,
    weight,
)
from linkwise.model.task_rows import SERVO

SPACES = {
    **{"q": JOINT, "v": JOINT, "armature": JOINT, "gravity": GRAVITY, "a_g": BODY},
    **{"inertia": INERTIA, "payload": NODE_INERTIA, "goal": GOAL},
    **{name: CONSTRAINT for name in SERVO if name != "goal"},
}
"""Variables of the rules, and the spaces that they vary in."""

Derivative: TypeAlias = Callable[[Expr], Expr]
"""The operator of δx for a vector x, by the variable of a rule."""


@dataclass(frozen=True, slots=True)
class LeafRule:
    """(δL) x = A δy, on any tree.

    Attributes:
        leaf: L, an operator, its adjoint, or a vector.
        wrt: The name of y.
        right: A, from the derivative of other vectors by y, and from x.
        source: Why it holds.
    """

    leaf: Expr
    wrt: str
    right: Callable[[Derivative, Expr], Expr]
    source: str

    @property
    def left(self) -> Expr:
        """L x, or the vector L."""
        x = vector("x", self.leaf.domain)
        return self.leaf if self.leaf.is_vector else self.leaf @ x

    def __str__(self) -> str:
        y = {"inertia": "π", "payload": "π", "armature": "N", "gravity": "g"}.get(
            self.wrt, self.wrt
        )

        def of(x: Expr) -> Expr:
            return symbol(f"∂[{x}]/∂{y}", x.range, SPACES[self.wrt], Memoryless(""))

        right = self.right(of, vector("x", self.leaf.domain))
        text = f"({right})" if isinstance(right, Sum) else str(right)
        return f"δ({self.left}) = {text} δ{y}"


def _of_poses() -> Iterable[LeafRule]:
    """E_φ becomes E_φ + E_φ Δ×* with the displacement Δ = H* δq of each hinge."""
    for E in (E_phi, Delta_phi):
        yield LeafRule(E, "q", lambda d, x, E=E: E @ swap(x) @ H.T, "variation of the hinge pose")
        yield LeafRule(E.T, "q", lambda d, x, E=E: cross(E.T @ x) @ H.T, "its adjoint")
    for F in (phi, phi_tilde):
        resolvent = "φ = (I - E_φ)⁻¹"
        yield LeafRule(F, "q", lambda d, x: phi_tilde @ swap(phi @ x) @ H.T, resolvent)
        yield LeafRule(F.T, "q", lambda d, x: phi.T @ cross(phi_tilde.T @ x) @ H.T, "its adjoint")
    bodies, source = phi.T @ H.T, "variation of the pose in the world"
    yield LeafRule(to_W, "q", lambda d, x: -(to_W @ cross(x)) @ bodies, source)
    yield LeafRule(to_W.T, "q", lambda d, x: -swap(to_W.T @ x) @ bodies, "its adjoint")
    yield LeafRule(rot_W, "q", lambda d, x: -(rot_W @ cross(x)) @ ANGULAR @ J, source)
    yield LeafRule(rot_W.T, "q", lambda d, x: cross(rot_W.T @ x) @ ANGULAR @ J, "its adjoint")
    yield LeafRule(X, "q", lambda d, x: place_form("row", "column", nodes=False) @ bodies, source)
    yield LeafRule(X_B, "q", lambda d, x: place_form("row", "column", nodes=True) @ J, source)
    turned = "variation of the hinge pose"
    yield LeafRule(a_g, "q", lambda d, x: cross(a_g) @ H.T, turned)


def _of_hinges_and_rows() -> Iterable[LeafRule]:
    for leaf in (H, H.T):
        yield LeafRule(leaf, "q", lambda d, x: hinge_rate(x), "definition of ∂[H* x]")
    for leaf in (Q, Q.T):
        yield LeafRule(leaf, "q", lambda d, x: closure_rate(x) @ J, "definition of ∂[Q x]")
    for leaf in (Y, Y.T):
        yield LeafRule(leaf, "q", lambda d, x: follower_rate(x), "definition of ∂[Y x]")


def _of_tasks() -> Iterable[LeafRule]:
    shown = "definition of ∂e; the errors of single joints are those of q"
    yield LeafRule(task_error, "q", lambda d, x: error_rate("X") @ J - Y, shown)
    yield LeafRule(task_error, "goal", lambda d, x: error_rate("goal"), "definition of ∂e")


def _of_velocities() -> Iterable[LeafRule]:
    def bias(d: Derivative, wrt: str) -> Expr:
        turned = cross(V) @ d(H.T @ v) - cross(H.T @ v) @ d(V)
        return turned + hinge_bias_rate(wrt) + d(a_g)

    def rows(d: Derivative, wrt: str) -> Expr:
        return closure_bias_rate("V") @ d(J @ v) + closure_bias_rate(wrt)

    spin, force = "a = V × H* v + Ḣ* v + a_g", "b = V ×* M V"
    for y in ("q", "v"):
        yield LeafRule(a, y, lambda d, x, y=y: bias(d, y), spin)
        yield LeafRule(b, y, lambda d, x: (2.0 * B_V + M @ cross(V)) @ d(V), force)
    yield LeafRule(
        kappa, "q", lambda d, x: closure_bias_rate("X") @ J + rows(d, "q"), "definition of ∂κ"
    )
    yield LeafRule(kappa, "v", lambda d, x: rows(d, "v"), "definition of ∂κ")
    for y in ("q", "gravity", "a_g"):
        lifted = "κ_g = -Q B* φ* a_g"
        yield LeafRule(kappa_g, y, lambda d, x: d(-(Q @ B.T @ phi.T @ a_g)), lifted)


def _of_parameters() -> Iterable[LeafRule]:
    def payload(x: Expr) -> Expr:
        return B @ regressor(B.T @ x)

    force, linear = "b = -[V ×]* M V", "definition of Y[x]"
    for y, momentum in (("inertia", regressor), ("payload", payload)):
        yield LeafRule(M, y, lambda d, x, f=momentum: f(x), linear)
        yield LeafRule(b, y, lambda d, x, f=momentum: -(cross(V).T @ f(V)), force)
    yield LeafRule(N, "armature", lambda d, x: diagonal(x), "N is diagonal")
    yield LeafRule(weight, "inertia", lambda d, x: WEIGHT_RATE, "definition of ∂[weight]")
    yield LeafRule(weight, "payload", lambda d, x: WEIGHT_RATE @ B_PI, "what its body gains")
    for leaf in (a_g, weight):
        name = leaf.ascii
        yield LeafRule(leaf, "gravity", lambda d, x, n=name: gravity_rate(n), "definition of ∂_g")
    for y in ("gravity", "a_g"):
        yield LeafRule(a, y, lambda d, x: d(a_g), "a = V × H* v + Ḣ* v + a_g")


RULES: dict[tuple[Expr, str], LeafRule] = {
    (rule.leaf, rule.wrt): rule
    for table in (_of_poses, _of_hinges_and_rows, _of_tasks, _of_velocities, _of_parameters)
    for rule in table()
}
"""By leaf and variable."""
