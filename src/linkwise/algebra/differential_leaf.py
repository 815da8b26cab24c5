"""Leaves that differentiation adds: each is made by a vector, or by the state.

[x ×]       x× u, the rate of a velocity u that is carried along with x
[x ×̄]       x ×̄ u = u ×* x, for a force x
∂[H* x]     how H* x changes at each body with its own coordinates
Y[x]        Y[x] π = M x, for the ten inertial parameters π of each body
∂[Q x]      how Q x changes with displacements of the nodes of loops; ∂[Q* x] the same of Q* x
∂[Y x]      how the rows of couplings change with q
∂_X κ       how κ changes with displacements of nodes, ∂_V κ with their velocities; in the rows of
            couplings, ∂_q κ and ∂_v κ with q and v
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algebra import role
from linkwise.algebra.expr import Expr, Zero, symbol, zero
from linkwise.algebra.space import BODY, CONSTRAINT, INERTIA, JOINT, NODE, ONE
from linkwise.algebra.symbols import H
from linkwise.errors import ExpressionError


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
    return hinge_form("row", x, "column") if x.range is JOINT else hinge_form(x, "row", "column")


def hinge_form(*slots: Expr | str) -> Expr:
    """The form f* D_n ... D_1 H* x with two open slots: see `role.HingeRate`."""
    row, column = slots.index("row"), slots.index("column")
    if row > column:
        swapped = {"row": "column", "column": "row"}
        return hinge_form(*(swapped[x] if isinstance(x, str) else x for x in slots)).T
    if len(slots) == 2:
        return H.T
    range_, key = BODY if row == 0 else JOINT, role.HingeRate(slots)
    if any(isinstance(x, Zero) for x in key.vectors):
        return zero(range_, JOINT)
    name, tex = (_form_name(slots, text) for text in (str, Expr.latex))
    return symbol(name, range_, JOINT, key, f"hinge_form({name})", tex.replace("∂", r"\partial "))


def _form_name(slots: tuple[Expr | str, ...], text: Callable[[Expr], str]) -> str:
    """∂[H* x], ∂[H x], or with all vectors: ∂[f* H* x; y_1, y_2], where · is the operand."""
    star = "^{*}" if text is Expr.latex else "*"
    marks = {"column": "·", "row": ""}
    f, x, *along = (marks[s] if isinstance(s, str) else text(s) for s in slots)
    if slots[0] == "row" and slots[2:] == ("column",):
        return f"∂[H{star} {x}]"
    if slots[1:] == ("row", "column"):
        return f"∂[H {f}]"
    head = f"H{star} {x}".rstrip() if slots[0] == "row" else f"{f}{star} H{star} {x}".rstrip()
    return f"∂[{head}; {', '.join(y or '∘' for y in along)}]"


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


def closure_rate(x: Expr) -> Expr:
    """∂(Q x) for a vector x of NODE, ∂(Q* x) for one of CONSTRAINT, by displacements of nodes."""
    star, range_ = ("", CONSTRAINT) if x.range is NODE else ("*", NODE)
    if isinstance(x, Zero):
        return zero(range_, NODE)
    name, tex = f"∂[Q{star} {x}]", rf"\partial[Q^{{{star}}} {x.latex()}]"
    return symbol(name, range_, NODE, role.ClosureRate(x), f"closure_rate({x})", tex)


def follower_rate(x: Expr) -> Expr:
    """∂(Y x)/∂q for a vector x of JOINT, ∂(Y* x)/∂q for one of CONSTRAINT."""
    star, range_ = ("", CONSTRAINT) if x.range is JOINT else ("*", JOINT)
    if isinstance(x, Zero):
        return zero(range_, JOINT)
    name, tex = f"∂[Y{star} {x}]", rf"\partial[Y^{{{star}}} {x.latex()}]"
    return symbol(name, range_, JOINT, role.FollowerRate(x), f"follower_rate({x})", tex)


def closure_bias_rate(wrt: str) -> Expr:
    """∂κ by displacements "X" and velocities "V" of nodes, and by "q" and "v" for couplings."""
    domain = NODE if wrt in ("X", "V") else JOINT
    key, tex = role.ClosureBiasRate(wrt), rf"\partial_{{{wrt}}}\kappa"
    return symbol(f"∂_{wrt}κ", CONSTRAINT, domain, key, f"closure_bias_rate_{wrt}", tex)
