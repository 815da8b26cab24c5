"""What a mini takes away from the inertia that is felt at the tip.

With the columns of J_t for the macro and the mini apart, J_t = [J_1  J_2],

    Λ_0⁻¹ = J_t 𝓜⁻¹ J_t*                                  the whole
    Λ_m⁻¹ = J_2 A_22⁻¹ J_2*                                the mini alone, Lemma 1: A_m = A_22
    Λ̄_C = F (A_11 - A_21* A_22⁻¹ A_21)⁻¹ F*,   F = J_1 - J_2 A_22⁻¹ A_21                (42)
    Λ_0⁻¹ = Λ_m⁻¹ + Λ̄_C                                   Lemma 2, (41)

Λ̄_C is not negative, so σ_w(Λ_0) ≤ σ_w(Λ_m) for every w, σ_w(Λ) = 1 / (w* Λ⁻¹ w): Theorem 2. The
same holds with macro and mini exchanged, where the mini's joints are held: σ_w(Λ_0) ≤ σ_w(Λ_held),
Λ_held⁻¹ = J_1 A_11⁻¹ J_1*.

Source: 003, equations (39) to (52). (46) prints < for what is ≤: the example of section 5.2 has
equality along its second axis.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from linkwise.arguments import row
from linkwise.dynamics.kernels import Loops, kernel, require_open, tree_of
from linkwise.dynamics.velocity_space import states
from linkwise.errors import ModelError, ShapeError
from linkwise.inertial.macro_mini.parts import MacroMini, macro_mini
from linkwise.inertial.macro_mini.principal import STIFF, Felt, PrincipalInertia, felt, principal
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.tasks.space import TaskSpace, task_space
from linkwise.tasks.task import Task, Tasks
from linkwise.tasks.twin import Twin, twin


@dataclass(frozen=True, slots=True, eq=False)
class ReducedInertia:
    """Inertia at the rows of tasks: of the whole, of the mini alone, of the macro with it held.

    For a batch every array has the batch in front, and `report[i]` is one state of it.

    Attributes:
        parts: The mechanism as macro and mini.
        space: The task space of the whole: Λ_0, its rank, its rows by name.
        whole_inverse: Λ_0⁻¹ (m, m), acceleration per force.
        mini_inverse: Λ_m⁻¹ (m, m), of the mini alone on a fixed base, from its own model.
        held_inverse: Λ_held⁻¹ (m, m), of the macro with the mini's joints held.
        coupling: Λ̄_C (m, m) by (42): what the macro adds to the mini's response.
        ratios: σ_w(Λ_0) / σ_w(Λ_m) where it is stationary (rank,), the smallest first: in every
            direction w it lies between the first and the last. NaN behind, where states of a
            batch have fewer motions.
        directions: The w that belong to them, columns (m, rank) of unit length.
        lemma_1: How far A_22 of the whole is from the mini's own A_m, as a part of its largest.
        lemma_2: How far Λ_0⁻¹ is from Λ_m⁻¹ + Λ̄_C, as a part of its largest entry.
    """

    parts: MacroMini
    space: TaskSpace
    whole_inverse: Array
    mini_inverse: Array
    held_inverse: Array
    coupling: Array
    ratios: Array
    directions: Array
    lemma_1: float | Array
    lemma_2: float | Array

    @property
    def whole_inertia(self) -> Array:
        """Λ_0 (m, m), zero for what is not a motion."""
        return self.space.inertia

    @property
    def mini_inertia(self) -> Array:
        """Λ_m (m, m), zero for what is not a motion of the whole.

        Raises:
            ModelError: The mini alone cannot do all that the whole can, in this state.
        """
        if self.whole_inverse.ndim == 3:
            return np.stack([self[i].mini_inertia for i in range(len(self))])
        span = self.space.directions
        if len(self.ratios) and self.ratios[0] < STIFF:
            raise ModelError(
                f"the mini from {self.parts.split!r} is singular here: alone it does not do all of "
                f"{self._asked()}, and its inertia has no bounds. `mini_inverse` exists."
            )
        inside = np.linalg.inv(span.T @ self.mini_inverse @ span)
        return np.asarray(span @ inside @ span.T, dtype=np.float64)

    @property
    def theorem_2(self) -> float | Array:
        """By how much Theorem 2 is violated: the largest ratio less 1, zero up to rounding."""
        over = np.maximum(np.max(np.nan_to_num(self.ratios), axis=-1, initial=0.0) - 1.0, 0.0)
        return float(over) if over.ndim == 0 else over

    def along(self, direction: ArrayLike) -> Felt:
        """What is felt along a direction of the rows: σ_w of the whole, the mini, the held mini.

        Args:
            direction: w (m,), over the rows of the tasks; its length does not matter.
        """
        w = floats(direction, "direction")
        m = self.whole_inverse.shape[-1]
        if w.shape != (m,) or not np.isfinite(w).all() or not np.any(w):
            told = ", ".join(self.space.names)
            raise ShapeError(
                f"direction is {direction!r}; it must be ({m},), not zero, over the rows {told}."
            )
        w = w / np.linalg.norm(w)
        return felt(self.whole_inverse, self.mini_inverse, self.held_inverse, w)

    def principal(self) -> tuple[PrincipalInertia, ...]:
        """Masses along and inertias about the principal axes of the whole, task by task.

        Those of Λ_v and Λ_ω, (28) and (29): pushed along an axis, the tip is free to turn.
        """
        one = self._one()
        inverses = (one.whole_inverse, one.mini_inverse, one.held_inverse)
        return principal(twin(one.parts.mech, one.space.tasks), *inverses)

    def __len__(self) -> int:
        if self.whole_inverse.ndim == 2:
            raise ShapeError("this is the reduced inertia in one state; it has no length.")
        return len(self.whole_inverse)

    def __getitem__(self, i: int) -> ReducedInertia:
        """One state of a batch."""
        i = row(
            i,
            None if self.whole_inverse.ndim == 2 else len(self.whole_inverse),
            "this reduced inertia",
        )
        space = self.space[i]
        r = int(space.rank)
        return replace(
            self,
            space=space,
            whole_inverse=self.whole_inverse[i],
            mini_inverse=self.mini_inverse[i],
            held_inverse=self.held_inverse[i],
            coupling=self.coupling[i],
            ratios=self.ratios[i, :r],
            directions=self.directions[i, :, :r],
            lemma_1=float(np.asarray(self.lemma_1)[i]),
            lemma_2=float(np.asarray(self.lemma_2)[i]),
        )

    def __str__(self) -> str:
        if self.whole_inverse.ndim == 3:
            told = f"{self.parts}\n{self._asked()} in {len(self)} states"
            seen = self.ratios[np.isfinite(self.ratios)]
            return f"{told}: {_share(seen.min(), seen.max())}" if len(seen) else told
        lines = [str(self.parts), f"{self._asked()}, felt along its principal axes:"]
        lines += [f"  {axis}" for axis in self.principal()]
        if len(self.ratios) == 0:
            return "\n".join([*lines, "nothing of it can be moved here"])
        return "\n".join([*lines, _share(self.ratios[0], self.ratios[-1])])

    def _asked(self) -> str:
        return " and ".join(task.name for task in self.space.tasks)

    def _one(self) -> ReducedInertia:
        if self.whole_inverse.ndim == 3:
            raise ShapeError(
                f"this is the reduced inertia in {len(self)} states; choose one of them first: "
                "report[0]."
            )
        return self


def _share(low: float, high: float) -> str:
    told = f"in every direction between {100 * low:.3g} % and {100 * high:.3g} % of the mini alone"
    if low > 1.0 - 1e-9:
        told = "the same as that of the mini alone, in every direction"
    return f"what is felt is {told}"


def reduced_inertia(
    mech: Mechanism, q: ArrayLike, tasks: Tasks, *, split: str, loops: Loops = "closed"
) -> ReducedInertia:
    """How much a mini reduces the inertia that is felt at the tip of a robot.

    Expression:
        Λ_0⁻¹ = J_t 𝓜⁻¹ J_t* = Λ_m⁻¹ + Λ̄_C,   σ_w(Λ_0) ≤ σ_w(Λ_m)
    with the armature of the mechanism in 𝓜.
    Source: 003, Lemmas 1 and 2, Theorem 2, Corollary 1.

    Λ_0⁻¹ comes from the sweeps of the whole, Λ_m⁻¹ from those of the mini's own model: that they
    agree with (41) and (42) is not assumed, and `lemma_1`, `lemma_2` and `theorem_2` tell by how
    much they do. Other branches, of the macro and of the mini, are part of it.

    Args:
        mech: The mechanism.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        tasks: What is felt: a task or several at the mini, whose rows are stacked.
        split: The hinge that carries the mini, by its name or its body's.
        loops: "open" leaves loops and couplings open; "closed" refuses mechanisms with any.

    Raises:
        UnknownNameError: A hinge or node that the mechanism does not have.
        ModelError: A task that is not about the mini; a mini with fewer freedoms than the tasks
            have motions; nothing that moves inboard of the split.
    """
    found = twin(mech, tasks)
    require_open(mech, loops, "lw.papers.reduced_inertia", "lw.tasks.task_space holds them.")
    mech = tree_of(mech)
    parts = _parts(mech, found, split)
    single, rows, _ = states(mech, q)
    space = task_space(mech, rows, tasks)
    _check_freedoms(parts, space)
    A: Array = kernel(mech, "mass_matrix")(rows)
    A[~np.isfinite(space.inverse).all(axis=(1, 2))] = np.nan  # nothing resists a hinge: no result
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
    held = J_1 @ _floats(np.linalg.solve(A_11, _t(J_1)))
    ratios, directions = _stationary(space, mini_inverse)
    whole = ReducedInertia(
        parts,
        space,
        space.inverse,
        mini_inverse,
        held,
        coupling,
        ratios,
        directions,
        _apart(A_22, mini),
        _apart(space.inverse, mini_inverse + coupling),
    )
    return whole[0] if single else whole


def _parts(mech: Mechanism, found: Twin, split: str) -> MacroMini:
    """The mechanism in two; raises where the tasks are not about the mini."""
    nodes = [node for task in found.tasks for node in _nodes(mech, task)]
    parts = [macro_mini(mech, split, node) for node in nodes]  # each is looked at
    return parts[0]


def _check_freedoms(parts: MacroMini, space: TaskSpace) -> None:
    """(35): the mini must have the freedom to do alone what the whole can."""
    wanted, there = int(np.max(space.rank, initial=0)), len(parts.mini_v)
    if wanted <= there:
        return
    raise ModelError(
        f"{' and '.join(task.name for task in space.tasks)} has {wanted} independent motions, but "
        f"the mini from {parts.split!r} has {there} freedom{'s' * (there != 1)}: it must be able "
        "to do all of the task alone (003, (35)). Name a split farther in, or a task of fewer "
        "rows; lw.papers.smallest_mini finds the split."
    )


def _nodes(mech: Mechanism, task: Task) -> tuple[str, ...]:
    """The node of a task, or the bodies of its hinges."""
    if task.kind != "joints":
        return (task.node,)
    bodies = [mech.hinge(x) if x in mech.hinge_index else mech.body(x) for x in task.hinges]
    return tuple(body.name for body in bodies)


def _stationary(space: TaskSpace, mini_inverse: Array) -> tuple[Array, Array]:
    """Where w* Λ_m⁻¹ w / w* Λ_0⁻¹ w is stationary, on the motions that exist."""
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


def _apart(found: Array, expected: Array) -> Array:
    """The largest difference of two matrices as a part of the largest entry."""
    largest = np.maximum(np.abs(expected).max(axis=(-2, -1)), np.finfo(np.float64).tiny)
    return np.asarray(np.abs(found - expected).max(axis=(-2, -1)) / largest, dtype=np.float64)


def _t(matrix: Array) -> Array:
    return np.swapaxes(matrix, -1, -2)
