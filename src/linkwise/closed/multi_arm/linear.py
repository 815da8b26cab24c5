"""O(n) + O(ℓ): the object with what each arm adds to its inertia.

An arm away from singularities is felt at its contact as an inertia Λ = (S J 𝓜⁻¹ J* S*)⁻¹, six by
six for a rigid grasp and smaller for others, and as a motion that it would have by itself. The
object carries them all, with A = S E_o J_o at each contact:

    (𝓜_o + Σ A* Λ A) v̇_o = T′_o + Σ A* Λ S (E_a α_f(0) − c − E_o J̇_o v)
    λ = Λ {S (E_a α_f(0) − c − E_o J̇_o v) − A v̇_o},   f(0) = S* λ

One system of the size of the object, six for a rigid one, whatever the number of arms: nothing of
size ℓ is factored. For rigid grasps of a rigid body the first line is M(C) + Σ φ Λ φ*.

Source: announced in 000, section 6; 000 (5.11) is its case of one arm against another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.closed.multi_arm.contact import Contacts, between
from linkwise.closed.multi_arm.contact_force import Solver, row_scale, solver
from linkwise.closed.multi_arm.evaluation import Evaluation
from linkwise.spatial.array import Array


@dataclass(frozen=True, slots=True)
class Felt:
    """An arm as the object feels it.

    Attributes:
        columns: Where its contacts stand among all (6 k,).
        S: Their blocked directions (batch, rows, 6 k).
        A: S E_o J_o, what motions of the object do to them (batch, rows, freedoms of the object).
        Lambda: The inertia Λ, and its rank.
    """

    columns: NDArray[np.int64]
    S: Array
    A: Array
    Lambda: Solver


@dataclass(frozen=True, slots=True)
class LinearFound:
    """Contact forces by the linear form.

    Attributes:
        T_prime: Joint forces without bias (batch, nv).
        force: f(0) on the object (batch, 6 contacts); NaN in states where an arm is singular.
        singular: In which states each arm is (batch,), by its name.
    """

    T_prime: Array
    force: Array
    singular: dict[str, NDArray[np.bool_]]


def linear(of: Evaluation, at: Contacts, c: Array, length: float) -> LinearFound:
    """Contact forces by one system of the size of the object."""
    T_prime = of.run("bias_free_force")
    tips = of.at_tips("bias_acceleration") + of.at_tips("filtered_force", T_prime=T_prime)
    wanted = at.from_tips(tips) - c - at.from_object(of.at_grasps("bias_acceleration"))
    own = of.parts.object_bodies
    inertia = of.run("inertia", rows=own, columns=own)
    J_o = of.run("jacobian", of.parts.grasps, columns=own)
    right = T_prime[:, of.parts.object_rows]
    arms = {name: _felt(of, at, numbers, J_o, length) for name, numbers in of.parts.arms}
    for arm in arms.values():
        across = np.swapaxes(arm.A, -1, -2)
        inertia = inertia + across @ arm.Lambda.inverse @ arm.A
        right = right + _times(across, arm.Lambda(_times(arm.S, wanted[:, arm.columns])))
    singular = {name: arm.Lambda.rank < arm.S.shape[1] for name, arm in arms.items()}
    bad = np.any(list(singular.values()), axis=0)
    inertia[bad] = np.eye(inertia.shape[-1])
    vdot = np.asarray(np.linalg.solve(inertia, right[..., None])[..., 0], dtype=np.float64)
    force = np.zeros_like(wanted)
    for arm in arms.values():
        lam = arm.Lambda(_times(arm.S, wanted[:, arm.columns]) - _times(arm.A, vdot))
        force[:, arm.columns] = _times(np.swapaxes(arm.S, -1, -2), lam)
    force[bad] = np.nan
    return LinearFound(T_prime, force, singular)


def _felt(
    of: Evaluation, at: Contacts, numbers: tuple[int, ...], J_o: Array, length: float
) -> Felt:
    """One arm with its contacts; its kernel visits the bodies of that arm alone."""
    picked = list(numbers)
    columns = np.concatenate([np.arange(6 * i, 6 * i + 6) for i in picked])
    rows = np.concatenate([np.arange(at.sizes[i]) + sum(at.sizes[:i]) for i in picked])
    S = at.S[:, rows][:, :, columns]
    inside = of.run("compliance", tuple(of.parts.tips[i] for i in picked))
    moved = at.E_object[:, picked] @ J_o[:, columns].reshape(len(S), len(picked), 6, -1)
    A = S @ moved.reshape(len(S), len(columns), -1)
    yielding = S @ between(at.E_arm[:, picked], inside) @ np.swapaxes(S, -1, -2)
    return Felt(columns, S, A, solver(yielding, row_scale(S, length)))


def _times(matrix: Array, x: Array) -> Array:
    return (matrix @ x[..., None])[..., 0]
