"""Loops and couplings in a step with impulses: rows that hold exactly, solved before the sweeps.

With J_c the Jacobian of the constraints, e their error and γ = J̇_c v, the end of a step is to have

    e + h J_c v' + ½ h² γ = (1 − RECOVERY) e                    u_e = Y_e* w + b_e = 0

The term of γ is what a straight step adds to the error: without it the error would be of the order
of h², with it of h³. The impulses of these rows are free. They are not iterated for, since sweeps
converge slowly along stiff loops. With orthonormal rows Q of the span of Y_e (Gram and Schmidt),

    w = z + Q* s,    s such that u_e = 0,    z across to all rows of Q

so that sweeps over all other rows run on z, with their rows made orthogonal to Q once. They stay
as they are otherwise, and no step needs the impulses of loops.

Rows of loops may depend on others: of the five rows of a planar pin two are enough. A row whose
independent part is below DEPENDENT of its size is left out. That also lets a linkage pass a
singular configuration, where a row is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.algebra import v as velocity
from linkwise.codegen.formula import Formula
from linkwise.codegen.scalar import status
from linkwise.codegen.writing import Writing
from linkwise.dynamics.closure import closure_nodes, constraint_names, setting_of
from linkwise.dynamics.kernels import written
from linkwise.dynamics.mass_root import HingeRoot
from linkwise.dynamics.quantity import expression
from linkwise.errors import ClosureError, LoweringError
from linkwise.model.body import Loop
from linkwise.model.closure import (
    blocked_twist,
    constant_directions,
    coupling_error,
    plane_height,
    plane_normal,
    rolling_radius,
    universal_axes,
)
from linkwise.model.free_group import free_group
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.loop_keeper import DRIFT_LIMIT
from linkwise.spatial.array import Array
from linkwise.spatial.choice import gate, maximum, root as square_root
from linkwise.spatial.vector import cross

Row = dict[int, Any]
"""Entries of a row of Y by their place in w."""

DEPENDENT = {8: 1e-4, 4: 3e-3}
"""Part of a row, by bytes of a number, below which it counts as a combination of others."""

EMPTY = {8: 1e-12, 4: 1e-10}
"""Squares of rows this far below the mean are rounding, or digits of a file, in rows that nothing
moves."""

RECOVERY = 0.2
"""The share of an error that is undone in one step."""

START = {8: 1e-6, 4: 1e-4}
"""How far [m, rad, m/s, rad/s] from closed a motion may begin, by bytes of a number."""


def dot(x: Row, y: Row) -> Any:
    """x* y."""
    return sum((a * y[k] for k, a in x.items() if k in y), 0.0)


def plus(x: Row, factor: Any, y: Row) -> Row:
    """x + factor y."""
    out = dict(x)
    for k, a in y.items():
        out[k] = out[k] + factor * a if k in out else factor * a
    return out


def filled(x: Row, size: int) -> Any:
    """A row as an array (size,)."""
    out = np.zeros(size, dtype=object)
    for k, a in x.items():
        out[k] = a
    return out


@dataclass(frozen=True, slots=True)
class Held:
    """What the equality rows leave to all others.

    Attributes:
        span: Q, orthonormal rows; those that are left out are zero.
        shift: Q* s, the part of w that satisfies them.
    """

    span: list[Row]
    shift: Row

    def across(self, x: Row) -> Row:
        """The part of x that the equality rows do not have."""
        for row in self.span:
            x = plus(x, -dot(row, x), row)
        return x

    def freed(self, x: Row, itemsize: int) -> Row:
        """The same of the row of a contact or a joint; zero where loops hold it."""
        free = self.across(x)
        least = DEPENDENT[itemsize] ** 2
        keep = gate(dot(free, free) - least * dot(x, x), 1.0)
        return {k: keep * y for k, y in free.items()}


def held(at: Writing, rows: list[Row], b: list[Any]) -> Held:
    """The span of equality rows Y_e, and the w in it with Y_e* w = −b."""
    tolerance = DEPENDENT[at.itemsize] ** 2
    sizes = [dot(row, row) for row in rows]
    floor = EMPTY[at.itemsize] * (sum(sizes, 0.0) / len(rows)) + 1e-30
    span, shift = list[Row](), Row()
    for row, size, right in zip(rows, sizes, b, strict=True):
        rest, left = row, right + dot(row, shift)
        for other in span:
            rest = plus(rest, -dot(other, rest), other)
        square = dot(rest, rest)
        independent = square - tolerance * size - floor
        over = 1.0 / square_root(maximum(square, floor))
        scale = gate(independent, over)
        shift = plus(shift, -left * scale * over, rest)
        span.append({k: scale * y for k, y in rest.items()})
    return Held(span, shift)


def equality_rows(
    at: Writing, q: Any, v: Any, turning: Any, h: Any, root: HingeRoot, given: dict[str, Any]
) -> tuple[list[Row], list[Any]]:
    """Y_e by rows, and b_e.

    Args:
        at: The formula.
        q: Joint positions (nq,).
        v: Joint velocities (nv,).
        turning: Change of v by the turning of axes while rates are held (nv,), over h.
        h: Length of the step.
        root: Roots of D.
        given: q, and the armature with dampers and springs.
    """
    mech, setting = at.mech, setting_of(at.mech)
    nodes = closure_nodes(mech)
    errors = constraint_errors(at, mech, q)
    for e in errors:
        at.check(status.opened(mech), e, -DRIFT_LIMIT, DRIFT_LIMIT)
    columns = at.value(setting.whitened, nodes=nodes, **given)
    middle = at.value(setting.jacobian @ velocity, nodes=nodes, q=q, v=v + 0.5 * h * turning)
    bend = at.value(setting.bias, nodes=nodes, q=q, v=v)
    rows, b = list[Row](), list[Any]()
    for i, e in enumerate(errors):
        y = root.solved(columns[:, i])
        rows.append({k: x for k, x in enumerate(y) if not at.scalar(x).is_zero})
        b.append(middle[i] + 0.5 * h * bend[i] + RECOVERY * e / h)
    return rows, b


def without_formula(mech: Mechanism) -> Loop | None:
    """The first loop whose error has no formula in implicit steps; None where all have one."""
    rules = universal_axes, plane_normal, rolling_radius, blocked_twist
    for loop in mech.loops:
        plain = constant_directions(loop.hinge) is not None and free_group(loop.hinge.hull)
        if not plain and all(rule(loop.hinge) is None for rule in rules):
            return loop
    return None


def check_formulas(mech: Mechanism) -> None:
    """Raise LoweringError for a loop whose error has no formula; says which."""
    loop = without_formula(mech)
    if loop is not None:
        raise LoweringError(
            f"loop {loop.name!r} has a hinge of kind {type(loop.hinge).__name__}, whose error "
            "has no formula in implicit steps, since its free directions change with its "
            "coordinates. Build that hinge as a body between the two nodes and close the loop by "
            "a weld"
        )


def check_beginning(mech: Mechanism, states: Sequence[Array], itemsize: int) -> None:
    """Raise ClosureError unless states q and v (batch, ...) are closed, and velocities allowed."""
    if without_formula(mech) is not None:
        return  # compiling the step raises
    lead = np.broadcast_shapes(*(x.shape[:-1] for x in states))
    both = [np.broadcast_to(x, (*lead, x.shape[-1])).reshape(-1, x.shape[-1]) for x in states]
    apart = written(mech, _BEGINNING)(*(np.asarray(x, np.float64) for x in both))
    names, m = constraint_names(mech), apart.shape[-1] // 2
    i, j = np.unravel_index(int(np.argmax(np.abs(apart))), apart.shape)
    off, start = abs(float(apart[i, j])), START[itemsize]
    if off > start and j < m:
        raise ClosureError(
            f"motion {i} of {mech.name!r} cannot begin: {names[j]!r} is open by {off:.3g} m or "
            f"rad; at most {start:g} is allowed. Close it with lw.loops.assemble(mech, q)."
        )
    if off > start:
        raise ClosureError(
            f"motion {i} of {mech.name!r} cannot begin: its velocities pull {names[j - m]!r} apart "
            f"with {off:.3g} m/s or rad/s; at most {start:g} is allowed. Use "
            "lw.loops.project_velocity(mech, q, v)."
        )


def _write_beginning(at: Writing) -> Any:
    """e and J_c v, side by side."""
    rates = at.value(setting_of(at.mech).jacobian @ velocity, nodes=closure_nodes(at.mech))
    return np.array([*constraint_errors(at, at.mech, at.q), *rates])


_BEGINNING = Formula(_write_beginning)


def constraint_errors(
    at: Writing, mech: Mechanism, q: Any, loops: Sequence[Loop] | None = None
) -> list[Any]:
    """`lw.loops.constraint_error` (m,), to first order in the error; of some loops, or of all."""
    errors, loops = list[Any](), mech.loops if loops is None else loops
    if loops:
        nodes = tuple(name for loop in loops for name in (loop.node_a, loop.node_b))
        poses = at.value(expression("node_poses"), nodes=nodes, q=q).reshape(-1, 2, 3, 4)
        for loop, (a, b) in zip(loops, poses, strict=True):
            back = b[:, :3].T @ a[:, :3]  # the axes of a as b has them
            errors += _loop_error(loop, back, b[:, :3].T @ (b[:, 3] - a[:, 3])).tolist()
    return errors + [coupling_error(mech, x, q[None])[0] for x in mech.couplings]


def _loop_error(loop: Loop, back: Any, p: Any) -> Any:
    """S e (rows,), of R* and of the way p from a to b, in b's axes."""
    axes, plane = universal_axes(loop.hinge), plane_normal(loop.hinge)
    if axes is not None:
        first, second = back @ axes[0], axes[1]
        n = cross(first, second.astype(object))
        turn = (float(axes[0] @ axes[1]) - first @ second) / square_root(n @ n)
        return np.array([turn, *p])
    if plane is not None:
        normal, on_b = plane
        height = plane_height(loop.hinge)
        if not on_b:
            return np.array([(back @ normal) @ p - height])
        arm = cross(-p, normal.astype(object))
        return np.array([(normal @ p + height) / square_root(arm @ arm + 1.0)])
    ball = rolling_radius(loop.hinge)
    if ball is not None:  # only its height; slip is a matter of velocities
        radius, on_b = ball
        return np.array([0.0, 0.0, radius + p[2] if on_b else back[:, 2] @ p - radius])
    if blocked_twist(loop.hinge) is not None:
        return np.array([*p, 0.0])
    # a nonholonomic hinge, such as a soft finger, reaches all poses of its hull
    S, reached = constant_directions(loop.hinge), free_group(loop.hinge.hull)
    assert S is not None and reached is not None
    return S @ reached.error(back, p)
