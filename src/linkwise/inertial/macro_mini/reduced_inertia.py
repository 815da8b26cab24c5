"""How a mini reduces the inertia at the tip of a robot.

With the columns of J_t of the macro and of the mini, J_t = [J_1  J_2],

    Λ_0⁻¹ = J_t 𝓜⁻¹ J_t*                                  the whole
    Λ_m⁻¹ = J_2 A_22⁻¹ J_2*                                the mini alone, Lemma 1: A_m = A_22
    Λ̄_C = F (A_11 - A_21* A_22⁻¹ A_21)⁻¹ F*,   F = J_1 - J_2 A_22⁻¹ A_21                (42)
    Λ_0⁻¹ = Λ_m⁻¹ + Λ̄_C                                   Lemma 2, (41)

Λ̄_C is not negative, so σ_w(Λ_0) ≤ σ_w(Λ_m) for every w, σ_w(Λ) = 1 / (w* Λ⁻¹ w): Theorem 2. The
same holds with macro and mini exchanged, that is with the mini's joints locked:
σ_w(Λ_0) ≤ σ_w(Λ_locked), Λ_locked⁻¹ = J_1 A_11⁻¹ J_1*.

Source: 003, equations (39) to (52). (46) prints < instead of ≤: the example of section 5.2 has
equality along its second axis.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from linkwise.arguments import row
from linkwise.brief import degrees_of_freedom
from linkwise.dynamics.batched import Batched, some_states
from linkwise.dynamics.kernels import Loops, kernel, require_open, tree_of
from linkwise.dynamics.velocity_space import states
from linkwise.errors import ModelError, ShapeError
from linkwise.inertial.macro_mini.macro_mini import MacroMini, macro_mini
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.tasks.space import TaskSpace, task_space
from linkwise.tasks.task import Task, Tasks
from linkwise.tasks.task_stack import TaskStack, task_stack

ROUNDING, STIFF = 1e-15, 1e-14
"""A response below these fractions of its largest entry, or of that of the whole, is zero."""

UNITS = {"mass along": "kg", "inertia about": "kg m²", "inertia of": ""}


@dataclass(frozen=True, slots=True, eq=False)
class Felt:
    """Inertia along one direction; infinite where nothing moves. Arrays for a batch.

    Attributes:
        robot: σ_w(Λ_0), of macro and mini together.
        mini: σ_w(Λ_m), of the mini alone on a fixed base.
        locked: σ_w of the macro with the mini's joints locked.
    """

    robot: float | Array
    mini: float | Array
    locked: float | Array

    @property
    def ratio(self) -> float | Array:
        """Whole over mini, at most 1; 0 where the mini cannot move, NaN where the whole cannot."""
        with np.errstate(invalid="ignore"):
            return np.divide(self.robot, self.mini)


@dataclass(frozen=True, slots=True, eq=False)
class PrincipalInertia:
    """Inertia along, or about, a principal axis of the whole.

    Attributes:
        kind: "mass along", "inertia about", or "inertia of" a joint.
        task: Name of the task, or of the row where it is a joint's.
        axis: The axis (3,), in the axes of the task; None for a joint.
        felt: Of the whole, the mini alone, and the macro with the mini locked.
    """

    kind: str
    task: str
    axis: Array | None
    felt: Felt

    def __str__(self) -> str:
        f, unit = self.felt, UNITS[self.kind]
        where = self.task
        if self.axis is not None:
            clean = np.where(np.abs(self.axis) < 5e-4, 0.0, self.axis)
            where = f"({', '.join(f'{x:6.3f}' for x in clean)})"
        share = f"{100.0 * float(f.ratio):.4g} % of the mini alone" if np.isfinite(f.mini) else ""
        alone = f"{f.mini:.4g}" if np.isfinite(f.mini) else "not movable"
        locked = f"{f.locked:.4g}" if np.isfinite(f.locked) else "not movable"
        text = f"{self.kind} {where}: {f.robot:.4g} {unit}".rstrip()
        return f"{text}; mini alone {alone}, mini locked {locked}{'; ' * bool(share)}{share}"


@dataclass(frozen=True, slots=True, eq=False)
class ReducedInertia(Batched):
    """Inertia in the rows of tasks: of the whole, of the mini alone, of the macro with it locked.

    For a batch every array has the batch in front, and `report[i]` is one state of it.

    Attributes:
        parts: The mechanism as macro and mini.
        space: The task space of the whole: Λ_0, its rank, its rows by name.
        whole_inverse: Λ_0⁻¹ (m, m), acceleration per force.
        mini_inverse: Λ_m⁻¹ (m, m), of the mini alone on a fixed base, from its own model.
        locked_inverse: Λ_locked⁻¹ (m, m), of the macro with the mini's joints locked.
        coupling: Λ̄_C (m, m) by (42): the contribution of the macro to the mini's response.
        ratios: σ_w(Λ_0) / σ_w(Λ_m) where it is stationary (rank,), the smallest first: in every
            direction w it lies between the first and the last. In a batch padded with NaN where
            states have fewer motions.
        directions: The corresponding w, columns (m, rank) of unit length.
        lemma_1: Relative difference between A_22 of the whole and A_m of the mini alone.
        lemma_2: Relative difference between Λ_0⁻¹ and Λ_m⁻¹ + Λ̄_C.
    """

    WHAT: ClassVar[str] = "reduced inertia"
    AXES: ClassVar[tuple[str, int]] = ("whole_inverse", 2)

    parts: MacroMini
    space: TaskSpace
    whole_inverse: Array
    mini_inverse: Array
    locked_inverse: Array
    coupling: Array
    ratios: Array
    directions: Array
    lemma_1: float | Array
    lemma_2: float | Array

    @property
    def whole_inertia(self) -> Array:
        """Λ_0 (m, m), zero for impossible motions."""
        return self.space.inertia

    @property
    def mini_inertia(self) -> Array:
        """Λ_m (m, m), zero for impossible motions of the whole.

        Raises:
            ModelError: In this state the mini alone cannot do everything that the whole can.
        """
        if self.is_batch:
            return np.stack([self[i].mini_inertia for i in range(len(self))])
        span = self.space.directions
        if len(self.ratios) and self.ratios[0] < STIFF:
            raise ModelError(
                f"the mini from {self.parts.split!r} is singular in this state: alone it cannot "
                f"do all of {self._names()}, and its inertia is infinite. `mini_inverse` exists."
            )
        inside = np.linalg.inv(span.T @ self.mini_inverse @ span)
        return np.asarray(span @ inside @ span.T, dtype=np.float64)

    @property
    def theorem_2(self) -> float | Array:
        """Violation of Theorem 2: the largest ratio minus 1, zero up to rounding."""
        over = np.maximum(np.max(np.nan_to_num(self.ratios), axis=-1, initial=0.0) - 1.0, 0.0)
        return float(over) if over.ndim == 0 else over

    def along(self, direction: ArrayLike) -> Felt:
        """σ_w along a direction of the rows: of the whole, the mini, and with the mini locked.

        Args:
            direction: w (m,), over the rows of the tasks; its length does not matter.
        """
        w = floats(direction, "direction")
        m = self.whole_inverse.shape[-1]
        if w.shape != (m,) or not np.isfinite(w).all() or not np.any(w):
            rows = ", ".join(self.space.names)
            raise ShapeError(
                f"direction is {direction!r}; it must be ({m},), not zero, over the rows {rows}."
            )
        w = w / np.linalg.norm(w)
        return felt(self.whole_inverse, self.mini_inverse, self.locked_inverse, w)

    def principal(self) -> tuple[PrincipalInertia, ...]:
        """Masses along and inertias about the principal axes of the whole, task by task.

        Those of Λ_v and Λ_ω, (28) and (29): pushed along an axis, the tip is free to turn.
        """
        one = self._single()
        inverses = (one.whole_inverse, one.mini_inverse, one.locked_inverse)
        return principal(task_stack(one.parts.mech, one.space.tasks), *inverses)

    def __getitem__(self, i: int) -> ReducedInertia:
        """One state of a batch."""
        one = some_states(self, row(i, len(self) if self.is_batch else None, f"this {self.WHAT}"))
        r = int(one.space.rank)
        return replace(one, ratios=one.ratios[:r], directions=one.directions[:, :r])

    def __str__(self) -> str:
        if self.is_batch:
            text = f"{self.parts}\n{self._names()} in {len(self)} states"
            ratios = self.ratios[np.isfinite(self.ratios)]
            return f"{text}: {_share(ratios.min(), ratios.max())}" if len(ratios) else text
        lines = [str(self.parts), f"{self._names()}, along its principal axes:"]
        lines += [f"  {axis}" for axis in self.principal()]
        if len(self.ratios) == 0:
            return "\n".join([*lines, "none of it can move in this state"])
        return "\n".join([*lines, _share(self.ratios[0], self.ratios[-1])])

    def _names(self) -> str:
        return " and ".join(task.name for task in self.space.tasks)


def _share(low: float, high: float) -> str:
    if low > 1.0 - 1e-9:
        return "the inertia is that of the mini alone, in every direction"
    return (
        f"the inertia is between {100 * low:.3g} % and {100 * high:.3g} % of that of the mini "
        "alone, in every direction"
    )


def reduced_inertia(
    mech: Mechanism, q: ArrayLike, tasks: Tasks, *, split: str, loops: Loops = "closed"
) -> ReducedInertia:
    """How much a mini reduces the inertia at the tip of a robot.

    Expression:
        Λ_0⁻¹ = J_t 𝓜⁻¹ J_t* = Λ_m⁻¹ + Λ̄_C,   σ_w(Λ_0) ≤ σ_w(Λ_m)
    with the armature of the mechanism in 𝓜.
    Source: 003, Lemmas 1 and 2, Theorem 2, Corollary 1.

    Λ_0⁻¹ comes from the sweeps of the whole, Λ_m⁻¹ from those of the mini's own model. (41) and
    (42) are not assumed; `lemma_1`, `lemma_2` and `theorem_2` report how well they hold. Other
    branches of the macro and of the mini are included.

    Args:
        tasks: A task or several at the mini, whose rows are stack.
        split: The hinge that carries the mini, by its name or that of its body.
        loops: "open" leaves loops and couplings open; "closed" raises if there are any.

    Raises:
        UnknownNameError: The mechanism has no such hinge or node.
        ModelError: A task that is not about the mini; a mini with fewer degrees of freedom than the
            tasks have motions; nothing that moves inboard of the split.
    """
    stack = task_stack(mech, tasks)
    require_open(mech, loops, "lw.papers.reduced_inertia", "lw.tasks.task_space respects them.")
    mech = tree_of(mech)
    nodes = [node for task in stack.tasks for node in _nodes(mech, task)]
    parts, *_ = [macro_mini(mech, split, node) for node in nodes]  # raises for nodes of the macro
    single, rows, _ = states(mech, q)
    space = task_space(mech, rows, tasks)
    _check_freedoms(parts, space)
    A: Array = kernel(mech, "mass_matrix")(rows)
    A[~np.isfinite(space.inverse).all(axis=(1, 2))] = np.nan  # nothing resists a hinge
    first, second = parts.macro_v, parts.mini_v
    A_11, A_21 = A[:, first[:, None], first], A[:, second[:, None], first]
    A_22 = A[:, second[:, None], second]
    mini = kernel(parts.mini, "mass_matrix")(rows[:, parts.mini_q])
    compliance = kernel(parts.mini, "mass_matrix_inverse")(rows[:, parts.mini_q])
    J_1, J_2 = space.jacobian[..., first], space.jacobian[..., second]
    mini_inverse = J_2 @ compliance @ _t(J_2)
    reaction = _floats(np.linalg.solve(A_22, A_21))
    freed = J_1 - J_2 @ reaction
    coupling = freed @ _floats(np.linalg.solve(A_11 - _t(A_21) @ reaction, _t(freed)))
    locked = J_1 @ _floats(np.linalg.solve(A_11, _t(J_1)))
    ratios, directions = _stationary(space, mini_inverse)
    result = ReducedInertia(
        parts,
        space,
        space.inverse,
        mini_inverse,
        locked,
        coupling,
        ratios,
        directions,
        _apart(A_22, mini),
        _apart(space.inverse, mini_inverse + coupling),
    )
    return result[0] if single else result


def _check_freedoms(parts: MacroMini, space: TaskSpace) -> None:
    """(35): the mini alone must be able to do what the whole can."""
    rank, count = int(np.max(space.rank, initial=0)), len(parts.mini_v)
    if rank > count:
        raise ModelError(
            f"{' and '.join(task.name for task in space.tasks)} has {rank} independent motions, "
            f"but the mini from {parts.split!r} has {degrees_of_freedom(count)}: it must be able "
            "to do the whole task alone (003, (35)). Use a split farther in, or a task of fewer "
            "rows; lw.papers.smallest_mini finds the split."
        )


def _nodes(mech: Mechanism, task: Task) -> tuple[str, ...]:
    """The node of a task, or the bodies of its hinges."""
    if task.kind != "joints":
        return (task.node,)
    bodies = [mech.hinge(x) if x in mech.hinge_index else mech.body(x) for x in task.hinges]
    return tuple(body.name for body in bodies)


def _stationary(space: TaskSpace, mini_inverse: Array) -> tuple[Array, Array]:
    """Where w* Λ_m⁻¹ w / w* Λ_0⁻¹ w is stationary, on the possible motions."""
    batch, m = space.inverse.shape[:2]
    ratios, directions = np.full((batch, m), np.nan), np.full((batch, m, m), np.nan)
    for i in range(batch):
        r = int(np.asarray(space.rank)[i])
        if r == 0:
            continue
        span = space.basis[i, :, :r]
        root = _floats(np.linalg.cholesky(span.T @ space.inverse[i, :, :] @ span))
        half = _floats(np.linalg.solve(root, span.T @ mini_inverse[i, :, :] @ span))
        values, turned = np.linalg.eigh(_floats(np.linalg.solve(root, half.T)))
        w: Array = span @ np.linalg.solve(root.T, turned)
        ratios[i, :r] = np.maximum(values, 0.0)
        directions[i, :, :r] = w / np.linalg.norm(w, axis=0)
    return ratios, directions


def _floats(array: object) -> Array:
    return np.asarray(array, dtype=np.float64)


def _apart(matrix: Array, expected: Array) -> Array:
    """The largest difference of two matrices as a fraction of the largest entry."""
    largest = np.maximum(np.abs(expected).max(axis=(-2, -1)), np.finfo(np.float64).tiny)
    return np.asarray(np.abs(matrix - expected).max(axis=(-2, -1)) / largest, dtype=np.float64)


def _t(matrix: Array) -> Array:
    return np.swapaxes(matrix, -1, -2)


def felt(robot: Array, mini: Array, locked: Array, w: Array) -> Felt:
    """1 / (w* Λ⁻¹ w) of three inverses (..., m, m)."""
    response = np.asarray((robot @ w) @ w)

    def inverse_of(matrix: Array) -> float | Array:
        value = np.asarray((matrix @ w) @ w)
        # A response within the rounding of its terms, or of the whole, is zero.
        rounding = ROUNDING * np.abs(matrix).max(axis=(-2, -1), initial=0.0)
        moves = value > np.maximum(rounding, STIFF * response)
        inertia = np.where(moves, 1.0 / np.where(moves, value, 1.0), np.inf)
        return float(inertia) if inertia.ndim == 0 else inertia

    return Felt(inverse_of(robot), inverse_of(mini), inverse_of(locked))


def principal(
    stack: TaskStack, robot: Array, mini: Array, locked: Array
) -> tuple[PrincipalInertia, ...]:
    """Linear and angular rows of each task along the principal axes of the whole, if they move."""
    result = list[PrincipalInertia]()
    for i, task in enumerate(stack.tasks):
        at = np.arange(stack.size)[stack.rows(i)]
        if task.kind == "joints":
            for j in range(stack.size)[stack.rows(i)]:
                one = felt(robot, mini, locked, np.eye(stack.size)[j])
                result.append(PrincipalInertia("inertia of", stack.names[j], None, one))
            continue
        S = task.matrix
        turns = ~np.any(S[:, 3:], axis=1)
        groups = (
            ("mass along", at[~turns], S[~turns, 3:]),
            ("inertia about", at[turns], S[turns, :3]),
        )
        for kind, rows, directions in groups:
            if len(rows) == 0:
                continue
            # Rows S = L Q with orthonormal Q: the response to a unit force along Q* w.
            Q, R = np.linalg.qr(directions.T)
            back = np.linalg.inv(R)  # L⁻* = R⁻¹
            three = [back.T @ x[np.ix_(rows, rows)] @ back for x in (robot, mini, locked)]
            for w in np.linalg.eigh(three[0])[1].T:
                axis = Q @ w
                axis = axis * np.sign(axis[np.argmax(np.abs(axis))])
                one = felt(three[0], three[1], three[2], w)
                if np.isfinite(one.robot):
                    result.append(PrincipalInertia(kind, task.name, axis, one))
    return tuple(result)
