"""O(n) + O(ℓ): the object with what each arm adds to its inertia.

An arm away from singularities is felt at its contact as an inertia Λ = (S J 𝓜⁻¹ J* S*)⁻¹, six by
six for a rigid grasp and smaller for others, and as a motion that it would have by itself. The
object carries them all, with A = S E_o J_o at each contact:

    r = S (E_a α_f(0) − c − E_o J̇_o v) − A 𝓜_o⁻¹ T′_o
    (𝓜_o + Σ A* Λ A) y = Σ A* Λ r,   λ = Λ (r − A y),   f(0) = S* λ

One system of the size of the object, six for a rigid one, whatever the number of arms: nothing of
size ℓ is factored; y is what the contacts add to the acceleration of the object. For rigid grasps
of a rigid body its inertia is M(C) + Σ φ Λ φ*.

Source: announced in 000, section 6; 000 (5.11) is its case of one arm against another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.grasp.multi_arm.compliance import columns_of, of_arms
from linkwise.grasp.multi_arm.contact import Contacts
from linkwise.grasp.multi_arm.contact_force import Solver, row_scale, solver
from linkwise.grasp.multi_arm.evaluation import Evaluation
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
    falling = of.at_tips("general_filtered_force", T_prime=T_prime)
    tips = of.at_tips("bias_acceleration") + falling
    wanted = at.from_tips(tips) - c - at.from_object(of.at_grasps("bias_acceleration"))
    own = of.parts.object_bodies
    J_o = of.run("jacobian", of.parts.grasps, columns=own)
    yielding = of_arms(of, at)
    arms = {
        arm.name: _felt(at, arm.contacts, yielding[arm.name], J_o, length) for arm in of.parts.arms
    }
    singular = {name: arm.Lambda.rank < arm.S.shape[1] for name, arm in arms.items()}
    bad = np.asarray(np.any(list(singular.values()), axis=0), dtype=np.bool_)
    held = _Held(of.run("inertia", rows=own, columns=own), list(arms.values()), bad)
    right = held.seen(wanted, T_prime[:, of.parts.object_rows])
    lam = held.forces(right)
    more = held.forces([r - moved for r, moved in zip(right, held.moved(lam), strict=True)])
    force = np.zeros_like(wanted)
    for arm, first, second in zip(held.arms, lam, more, strict=True):
        force[:, arm.columns] = _times(np.swapaxes(arm.S, -1, -2), first + second)
    force[bad] = np.nan
    return LinearFound(T_prime, force, singular)


class _Held:
    """The object with all arms: what Ω and its inverse do, arm by arm, nothing of size ℓ.

    Λ is multiplied out, which costs digits; forces are refined once, as in `contact_force.refined`.
    """

    def __init__(self, inertia: Array, arms: list[Felt], bad: NDArray[np.bool_]) -> None:
        self.inertia, self.arms = inertia, arms
        whole = inertia.copy()
        for arm in arms:
            whole += np.swapaxes(arm.A, -1, -2) @ arm.Lambda.inverse @ arm.A
        whole[bad] = np.eye(whole.shape[-1])
        self.whole = whole

    def seen(self, wanted: Array, push: Array) -> list[Array]:
        """S r: how the arms would move against an object that is let go, arm by arm."""
        fall = _solve(self.inertia, push)
        return [_times(x.S, wanted[:, x.columns]) - _times(x.A, fall) for x in self.arms]

    def forces(self, right: list[Array]) -> list[Array]:
        """λ = Ω⁻¹ r: (𝓜_o + Σ A* Λ A) y = Σ A* Λ r, λ = Λ (r − A y)."""
        parts = [_times(x.Lambda.inverse, r) for x, r in zip(self.arms, right, strict=True)]
        y = _solve(self.whole, self._gathered(parts))
        gains = [_times(x.Lambda.inverse, _times(x.A, y)) for x in self.arms]
        return [part - gain for part, gain in zip(parts, gains, strict=True)]

    def moved(self, lam: list[Array]) -> list[Array]:
        """Ω λ = Λ⁻¹ λ + A 𝓜_o⁻¹ Σ A* λ, arm by arm."""
        y = _solve(self.inertia, self._gathered(lam))
        pairs = zip(self.arms, lam, strict=True)
        return [_times(x.Lambda.matrices, own) + _times(x.A, y) for x, own in pairs]

    def _gathered(self, lam: list[Array]) -> Array:
        pairs = zip(self.arms, lam, strict=True)
        parts = [_times(np.swapaxes(x.A, -1, -2), own) for x, own in pairs]
        return np.sum(parts, axis=0)


def _felt(
    at: Contacts, numbers: tuple[int, ...], yielding: Array, J_o: Array, length: float
) -> Felt:
    """One arm with its contacts."""
    picked, columns = list(numbers), columns_of(numbers)
    rows = np.concatenate([np.arange(at.sizes[i]) + sum(at.sizes[:i]) for i in picked])
    S = at.S[:, rows][:, :, columns]
    moved = at.E_object[:, picked] @ J_o[:, columns].reshape(len(S), len(picked), 6, -1)
    A = S @ moved.reshape(len(S), len(columns), -1)
    return Felt(columns, S, A, solver(S @ yielding @ np.swapaxes(S, -1, -2), row_scale(S, length)))


def _solve(matrix: Array, right: Array) -> Array:
    return np.asarray(np.linalg.solve(matrix, right[..., None])[..., 0], dtype=np.float64)


def _times(matrix: Array, x: Array) -> Array:
    return (matrix @ x[..., None])[..., 0]
