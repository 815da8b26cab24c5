"""Operators and mass matrices as pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from linkwise.algebra.dense import Dense
from linkwise.algebra.expr import Expr
from linkwise.algebra.parse import parse
from linkwise.algebra.space import BODY, INBOARD, JOINT, NODE, NODE_PLACE, PLACE, Space
from linkwise.dynamics.kernels import check_mechanism, node_names
from linkwise.dynamics.quantity import expression
from linkwise.errors import ModelError, ShapeError
from linkwise.model.closure import constraint_sizes
from linkwise.model.mechanism import Mechanism
from linkwise.pipeline import compile
from linkwise.plot.canvas import Axes, ThemeLike, axes_for, axes_given, matplotlib, themed
from linkwise.plot.matrix_picture import DECADES, ZERO, Edge, boards_for, draw_matrix
from linkwise.spatial.array import Array, ArrayLike


def mass_matrix(
    mech: Mechanism,
    q: ArrayLike,
    *,
    ax: Sequence[Axes] | None = None,
    theme: ThemeLike = "light",
    decades: float = DECADES,
) -> list[Axes]:
    """Draw the mass matrix and its inverse: colours by the logarithm of the size of entries.

    Of hinges on different branches the mass matrix has no entry, as of the arms of a robot on the
    ground; its inverse has, where a body that moves carries them. Armature is part of both.

    Args:
        q: Joint positions (nq,) [m or rad].
        ax: Two Axes to draw into; default: a new figure.
        decades: Powers of ten that colours differ for.

    Returns:
        The Axes of 𝓜 and of 𝓜⁻¹.

    Raises:
        SingularHingeError: The mass matrix has no inverse; names the body.
        ModelError: A mechanism that cannot move; another number of Axes than two.
        MissingExtraError: Matplotlib is not installed.
    """
    check_mechanism(mech)
    look = themed(theme)
    state = one_state(mech, q, "a mass matrix")
    if not mech.nv:
        raise ModelError(
            f"{mech.name!r} has no degrees of freedom, so its mass matrix has no entries."
        )
    names = ("mass_matrix", "mass_matrix_inverse")
    # Sweeps in NumPy: of one state they are done before a kernel would be compiled.
    sweeps = [compile(expression(name), mech, target="numpy") for name in names]
    matrices = [np.asarray(one(state)) for one in sweeps]
    edge = joint_edge(mech)
    pair = [(edge, edge), (edge, edge)]
    boards = boards_for(pair, look) if ax is None else axes_given(ax, 2)
    titles = (r"$\mathcal{M}$", r"$\mathcal{M}^{-1}$")
    for i, (board, matrix) in enumerate(zip(boards, matrices, strict=True)):
        draw_matrix(
            board, matrix, edge, edge, look, title=titles[i], decades=decades, named_rows=i == 0
        )
        zero = np.abs(matrix) <= ZERO * np.abs(matrix).max()
        said = f"{len(matrix)} × {len(matrix)}, {100.0 * zero.mean():.0f} % zero"
        board.set_xlabel(said, color=look.faint, fontsize=8)
    return boards


MOST_BODIES = 200
"""Largest mechanism whose operators are drawn: each becomes an explicit matrix."""


def operator(
    mech: Mechanism,
    q: ArrayLike,
    expr: Expr | str,
    *,
    v: ArrayLike | None = None,
    nodes: str | Sequence[str] = (),
    values: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
    theme: ThemeLike = "light",
    decades: float = DECADES,
    bar: bool = True,
) -> Axes:
    """Draw any operator as a matrix: colours by the size of its entries, zeros without a colour.

        lw.plot.operator(mech, q, "phi")
        lw.plot.operator(mech, q, "(I - H psi K)")
        lw.plot.operator(mech, q, J @ mass.inv @ J.T, nodes=["left_hand", "right_hand"])

    Colours go by the logarithm. Rows and columns are in blocks with the names of bodies, hinges or
    nodes. What is drawn is the explicit matrix, straight from the definition of each operator
    (`linkwise.algebra.dense`), and entries below 1e-13 of the largest count as zero.

    Args:
        q: Joint positions (nq,) [m or rad].
        expr: An expression, or its text, as `lw.derive` takes it: "H", "phi", "psi", "M", "mass",
            "mass^-1", "D", "K", "J mass^-1 J*" ...
        v: Joint velocities (nv,), for what depends on them; zero by default.
        nodes: Node or nodes, for expressions about nodes: B, J, f.
        values: Values of vectors and operators of your own by name, `tau` among them.
        decades: Powers of ten that colours differ for.
        bar: Whether to draw a colour bar.

    Returns:
        The Axes.

    Raises:
        ExpressionError: A text that is no expression, or one without a value in this state.
        ModelError: A matrix without entries, or of more than 200 bodies.
        MissingExtraError: Matplotlib is not installed.
    """
    check_mechanism(mech)
    look = themed(theme)
    expression = parse(expr) if isinstance(expr, str) else expr
    state = mech.check_q(q)
    if state.ndim != 1:
        raise ShapeError(f"q has shape {state.shape}; an operator is drawn in one state.")
    if mech.n_bodies > MOST_BODIES:
        raise ModelError(
            f"{mech.name!r} has {mech.n_bodies} bodies; operators of at most {MOST_BODIES} are "
            "drawn. Draw a part of it: mech.extract(base, tip)."
        )
    speed = None if v is None else mech.check_v(v)
    if speed is not None and speed.ndim != 1:
        raise ShapeError(f"v has shape {speed.shape}; an operator is drawn in one state.")
    dense = Dense(mech, state, speed, nodes=node_names(nodes), values=values)
    matrix = dense.matrix(expression)
    rows, columns = (edge_of(dense, space) for space in (expression.range, expression.domain))
    if not matrix.size:
        about = NODE in (expression.range, expression.domain)
        hint = " Name nodes: nodes=['hand']." if about else ""
        raise ModelError(f"{expression} of {mech.name!r} has no entries, {matrix.shape}.{hint}")
    board = boards_for([(rows, columns)], look)[0] if ax is None else axes_for(ax, 2, look)
    draw_matrix(
        board, matrix, rows, columns, look, title=mathematics(expression), decades=decades, bar=bar
    )
    zero = np.abs(matrix) <= ZERO * np.abs(matrix).max()
    text = f"{matrix.shape[0]} × {matrix.shape[1]}, {100.0 * zero.mean():.0f} % zero"
    board.set_xlabel(text, color=look.faint, fontsize=8)
    return board


def mathematics(expr: Expr) -> str:
    """An expression for a title: set as mathematics where Matplotlib can, else as text."""
    text = f"${expr.latex()}$"
    try:
        matplotlib("matplotlib.mathtext", "a title").MathTextParser("path").parse(text)
    except ValueError:
        return str(expr)
    return text


def edge_of(dense: Dense, space: Space) -> Edge:
    """Names and lengths of the blocks of a space."""
    mech = dense.mech
    sizes = tuple(part.stop - part.start for part in dense.slices(space))
    if space is JOINT:
        return Edge(tuple(body.hinge_name for body in mech.bodies), sizes)
    if space in (BODY, INBOARD, PLACE):
        return Edge(tuple(body.name for body in mech.bodies), sizes)
    if space in (NODE, NODE_PLACE):
        return Edge(tuple(node.name for node in dense.nodes), sizes)
    if space.block == "constraint":
        ends = np.cumsum([0, *constraint_sizes(mech)]).tolist()
        names = [*(x.name for x in mech.loops), *(x.name for x in mech.couplings)]
        return Edge(tuple(names), tuple(b - a for a, b in pairwise(ends)))
    return Edge(("",) * len(sizes), sizes)


def joint_edge(mech: Mechanism) -> Edge:
    """Names of the hinges and their numbers of velocities."""
    return Edge(
        tuple(body.hinge_name for body in mech.bodies),
        tuple(body.hinge.nv for body in mech.bodies),
    )


def one_state(mech: Mechanism, q: ArrayLike, purpose: str) -> Array:
    """q (nq,); raises for a batch."""
    state = mech.check_q(q)
    if state.ndim != 1:
        raise ShapeError(f"q has shape {state.shape}; {purpose} takes one state, ({mech.nq},).")
    return state
