"""Leaves that differentiation adds: each is made by a vector, or by the state.

[x ×]       x× u, the rate of a velocity u that is carried along with x
[x ×̄]       x ×̄ u = u ×* x, for a force x
∂[H* x]     how H* x changes at each body with its own coordinates
∂[𝒬 x]      how 𝒬 x changes with q, where v = 𝒬 q̇; ∂[𝒬* y] the same of 𝒬* y
Y[x]        Y[x] π = M x, for the ten inertial parameters π of each body
M[π]        M[π] x = Y[x] π
∂[P x]      how P x changes, for P or another operator of a recursion
∂_g[a_g]    how a_g changes with gravity; ∂_g[weight] the same of the weights
∂[weight]   how the weights change with inertial parameters
∂X          how X changes with displacements of the bodies, ∂X_B with those of the nodes
I_ω         the angular part of velocities of nodes
∂[Q x]      how Q x changes with displacements of the nodes of loops; ∂[Q* x] the same of Q* x
∂[Y x]      how the rows of couplings change with q
∂_X[e]      how the errors of tasks change with displacements of nodes; ∂_goal[e] with goals
∂_X κ       how κ changes with displacements of nodes, ∂_V κ with their velocities; in the rows of
            couplings, ∂_q κ and ∂_v κ with q and v
∂[f* Q x; d]   what further derivatives of these are made of: `role.RowsForm`
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algebra import role
from linkwise.algebra.expr import Expr, Symbol, Zero, symbol, zero
from linkwise.algebra.space import (
    BODY,
    CONSTRAINT,
    COORDINATE,
    GOAL,
    GRAVITY,
    INERTIA,
    JOINT,
    NODE,
    NODE_INERTIA,
    NODE_PLACE,
    ONE,
    PLACE,
    Space,
)
from linkwise.algebra.symbols import H, memoryless
from linkwise.errors import ExpressionError
from linkwise.model.closure_form import HELD as ROWS_HELD, FormRule


def cross(x: Expr) -> Expr:
    """x× at each body or node: the cross product of velocities, for a vector x of either."""
    return _of_vector(x, "×", r"\times", "cross", swapped=False)


def swap(x: Expr) -> Expr:
    """x×̄ with x×̄ u = u ×* x: the cross product of forces as an operator on u."""
    return _of_vector(x, "×̄", r"\bar{\times}", "swap", swapped=True)


def _of_vector(x: Expr, text: str, tex: str, word: str, *, swapped: bool) -> Expr:
    if x.range not in (BODY, NODE) or x.domain is not ONE:
        raise ExpressionError(
            f"{word} was given {x}, which maps {x.domain} to {x.range}; it must be a stacked "
            f"vector of {BODY} or {NODE}."
        )
    if isinstance(x, Zero):
        return zero(x.range, x.range)
    key = role.Cross(x, swapped)
    return symbol(f"[{x} {text}]", x.range, x.range, key, f"{word}({x})", rf"[{x.latex()} {tex}]")


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


coordinate_map = memoryless(
    "𝒬", JOINT, COORDINATE, ascii="coordinate_map", tex=r"\mathcal{Q}", independent=True
)
"""𝒬 = (N* N)⁻¹ N* with q̇ = N v: velocities of hinges from rates of their coordinates."""


def coordinate_form(*slots: Expr | str) -> Expr:
    """The form f* D_n ... D_1 𝒬 x with two open slots: see `role.CoordinateRate`."""
    row, column = slots.index("row"), slots.index("column")
    if row > column:
        swapped = {"row": "column", "column": "row"}
        return coordinate_form(*(swapped[x] if isinstance(x, str) else x for x in slots)).T
    if len(slots) == 2:
        return coordinate_map
    key = role.CoordinateRate(slots)
    range_, domain = (COORDINATE if i == 1 else JOINT for i in (row, column))
    if any(isinstance(x, Zero) for x in key.vectors):
        return zero(range_, domain)
    name, tex = (_coordinate_name(slots, text) for text in (str, Expr.latex))
    return symbol(name, range_, domain, key, f"coordinate_form({name})", tex)


def _coordinate_name(slots: tuple[Expr | str, ...], text: Callable[[Expr], str]) -> str:
    """∂[𝒬 x], ∂[𝒬* f], or with all vectors: ∂[f* 𝒬 x; y_1, y_2], where · is the operand."""
    latex = text is Expr.latex
    marks = {"column": "·", "row": "∘"}
    f, x, *along = (marks[s] if isinstance(s, str) else text(s) for s in slots)
    d, Q, star = (r"\partial ", r"\mathcal{Q}", "^{*}") if latex else ("∂", "𝒬", "*")
    if slots[0] == "row" and slots[2:] == ("column",):
        return f"{d}[{Q} {x}]"
    if slots[1:] == ("row", "column"):
        return f"{d}[{Q}{star} {f}]"
    return f"{d}[{f}{star} {Q} {x}; {', '.join(along)}]"


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


def place_form(*slots: Expr | str, nodes: bool) -> Expr:
    """The form f* (X x̂_n ... x̂_1) with two open slots: see `role.PlaceRate`."""
    row, column = slots.index("row"), slots.index("column")
    if row > column:
        swapped = {"row": "column", "column": "row"}
        renamed = (swapped[x] if isinstance(x, str) else x for x in slots)
        return place_form(*renamed, nodes=nodes).T
    domain, key = NODE if nodes else BODY, role.PlaceRate(slots, nodes)
    range_ = domain if row else (NODE_PLACE if nodes else PLACE)
    if any(isinstance(x, Zero) for x in key.vectors):
        return zero(range_, domain)
    name, tex = (_place_name(key, text) for text in (str, Expr.latex))
    return symbol(name, range_, domain, key, f"place_form({name})", tex.replace("∂", r"\partial "))


def _place_name(key: role.PlaceRate, text: Callable[[Expr], str]) -> str:
    """∂X, or with all vectors: ∂[f* X; x_1, x_2], where · is the operand."""
    place = "X_B" if key.nodes else "X"
    marks = {"column": "·", "row": "∘"}
    f, *along = (marks[s] if isinstance(s, str) else text(s) for s in key.slots)
    head = place if key.slots[0] == "row" else f"{f}{'^{*}' if text is Expr.latex else '*'} {place}"
    return f"∂{place}" if len(key.slots) == 2 else f"∂[{head}; {', '.join(along)}]"


def gravity_rate(of: str) -> Expr:
    """∂a_g/∂g or ∂weight/∂g, from GRAVITY."""
    range_, tex = (BODY, r"\mathfrak{a}_g") if of == "a_g" else (PLACE, r"\mathrm{weight}")
    name, tex = f"∂_g[{of}]", rf"\partial_g[{tex}]"
    return symbol(name, range_, GRAVITY, role.GravityRate(of), f"gravity_rate_{of}", tex)


WEIGHT_RATE = symbol(
    "∂[weight]", PLACE, INERTIA, role.WeightRate(), "weight_rate", r"\partial[\mathrm{weight}]"
)
"""∂weight/∂π, for the inertial parameters of the bodies."""

ANGULAR = symbol("I_ω", NODE, NODE, role.Angular(), "angular", r"I_\omega")
"""The angular part of velocities of nodes."""


def hinge_bias_rate(wrt: str) -> Expr:
    """∂(Ḣ* v)/∂q or ∂(Ḣ* v)/∂v: memoryless, from JOINT to BODY."""
    name, tex = f"∂_{wrt}[Ḣ* v]", rf"\partial_{{{wrt}}}[\dot{{H}}^{{*}} v]"
    return symbol(name, BODY, JOINT, role.HingeBiasRate(wrt), f"hinge_bias_rate_{wrt}", tex)


def regressor(x: Expr) -> Expr:
    """Y_x with Y_x π = M x, from the inertial parameters π of each body."""
    domain = NODE_INERTIA if x.range is NODE else INERTIA
    if isinstance(x, Zero):
        return zero(x.range, domain)
    name, tex = f"Y[{x}]", rf"Y_{{{x.latex()}}}"
    return symbol(name, x.range, domain, role.Regressor(x), f"regressor({x})", tex)


def inertia_of(x: Expr) -> Expr:
    """M[π], for a vector π of the inertial parameters of each body."""
    if isinstance(x, Zero):
        return zero(BODY, BODY)
    name, tex = f"M[{x}]", rf"M_{{{x.latex()}}}"
    return symbol(name, BODY, BODY, role.InertiaOf(x), f"inertia_of({x})", tex)


def recursion_rate(leaf: Symbol, x: Expr, wrt: str, space: Space) -> Expr:
    """∂[r x] for an operator r of a recursion, from the space of the variable."""
    name, tex = f"∂[{leaf} {x}]/∂{wrt}", rf"\partial[{leaf.latex()} {x.latex()}]/\partial {wrt}"
    key = role.RecursionRate(leaf, x, wrt)
    return symbol(name, leaf.range, space, key, f"recursion_rate_{wrt}({leaf} {x})", tex)


def diagonal(x: Expr) -> Expr:
    """The diagonal operator of a stacked vector of JOINT: diag(v) d is a damping force, by its d.

    Args:
        x: The vector; also one of CONSTRAINT, for gains of tasks.
    """
    space = x.range
    if space not in (JOINT, CONSTRAINT) or x.domain is not ONE:
        raise ExpressionError(
            f"diagonal was given {x}, which maps {x.domain} to {space}; it must be a stacked "
            f"vector of {JOINT} or {CONSTRAINT}."
        )
    if isinstance(x, Zero):
        return zero(space, space)
    tex = rf"\mathrm{{diag}}({x.latex()})"
    return symbol(f"diag({x})", space, space, role.Diagonal(x), f"diagonal({x})", tex)


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


def error_rate(wrt: str) -> Expr:
    """∂e by displacements "X" of nodes, or by the "goal"."""
    domain, key = NODE if wrt == "X" else GOAL, role.ErrorRate(wrt)
    tex = rf"\partial_{{\mathrm{{{wrt}}}}}[e]"
    return symbol(f"∂_{wrt}[e]", CONSTRAINT, domain, key, f"error_rate_{wrt}", tex)


def closure_bias_rate(wrt: str) -> Expr:
    """∂κ by displacements "X" and velocities "V" of nodes, and by "q" and "v" for couplings."""
    domain = NODE if wrt in ("X", "V") else JOINT
    key, tex = role.ClosureBiasRate(wrt), rf"\partial_{{{wrt}}}\kappa"
    return symbol(f"∂_{wrt}κ", CONSTRAINT, domain, key, f"closure_bias_rate_{wrt}", tex)


def rows_form(kind: str, *slots: Expr | str, spaces: tuple[Space, ...]) -> Expr:
    """The form f* D_n ... D_1 L(x ...) of rows of constraints: see `role.RowsForm`."""
    row, column = slots.index("row"), slots.index("column")
    if row > column:
        swapped = {"row": "column", "column": "row"}
        renamed = (swapped[x] if isinstance(x, str) else x for x in slots)
        return rows_form(kind, *renamed, spaces=spaces).T
    range_, domain = spaces[row], spaces[column]
    key = role.RowsForm(kind, slots, spaces)
    if any(isinstance(x, Zero) for x in key.vectors):
        return zero(range_, domain)
    name, tex = (_rows_name(key, text) for text in (str, Expr.latex))
    ascii = f"rows_form({kind} {name})"
    return symbol(name, range_, domain, key, ascii, tex.replace("∂", r"\partial "))


def _rows_name(key: role.RowsForm, text: Callable[[Expr], str]) -> str:
    """∂[f* Q x; d_1, d_2], where · is the operand and ∘ the result, unless that is a row."""
    marks = {"column": "·", "row": "∘"}
    first, *rest = (marks[s] if isinstance(s, str) else text(s) for s in key.slots)
    n = ROWS_HELD[key.kind]
    held, along = rest[:n], rest[n:]
    star = "^{*}" if text is Expr.latex else "*"
    head = "" if key.slots[0] == "row" else f"{first}{star} "
    kappa = r"\kappa" if text is Expr.latex else "κ"
    body = {
        "error": "e",
        "kappa": f"{kappa}({', '.join(held)})",
        "kappa_Y": f"{kappa}_Y({', '.join(held)})",
    }.get(key.kind, f"{key.kind} {' '.join(held)}")
    return f"∂[{head}{body}; {', '.join(along)}]"


def form_rule(key: role.RowsForm) -> FormRule:
    """The form as a rule of sweeps."""
    letters = {CONSTRAINT: "c", NODE: "n", JOINT: "j", GOAL: "g"}
    marks = tuple(x if isinstance(x, str) else "" for x in key.slots)
    return FormRule(key.kind, tuple(letters[space] for space in key.spaces), marks)
