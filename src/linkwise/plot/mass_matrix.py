"""The mass matrix and its inverse side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.dynamics.kernels import check_mechanism
from linkwise.dynamics.quantity import expression
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.pipeline import compile
from linkwise.plot.canvas import Axes, axes_given
from linkwise.plot.matrix_picture import DECADES, ZERO, boards_for, draw_matrix
from linkwise.plot.operator import joint_edge, one_state
from linkwise.plot.theme import ThemeLike, themed
from linkwise.spatial.array import ArrayLike


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
        ax: Two Axes to draw into; by default a new figure.
        theme: "light", "dark" or a `Theme`.
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
        raise ModelError(f"{mech.name!r} has no freedoms, so its mass matrix has no entries.")
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
