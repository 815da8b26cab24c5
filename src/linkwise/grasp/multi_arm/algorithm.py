"""CCFD and RCCFD1 to RCCFD3 of JPL 88-11, Part II, step by step, and the linear form.

Each takes an `Evaluation`, its contacts and the way forces follow from Ω, and returns the
accelerations of the arms' joints and the contact forces f(0). Equation numbers are those of the
source. Forces on arms are −f(0), moved to the tips.

All share a′(C), with the object any separate tree:

    a′(C) = a(C) − A M(C)⁻¹ b(C) − J̇ v = E_o (J̇_o v_o + J_o 𝓜_o⁻¹ T′_o) + c − E_a J̇ v   (2.15b)

The linear form costs O(n) + O(ℓ). Away from singularities the object feels an arm as an inertia Λ =
(S J 𝓜⁻¹ J* S*)⁻¹ at its contact, six by six for a rigid grasp and smaller for others, and as the
motion that the arm would have alone. The object carries all arms, with A = S E_o J_o at each
contact:

    r = S (E_a α_f(0) − c − E_o J̇_o v) − A 𝓜_o⁻¹ T′_o
    (𝓜_o + Σ A* Λ A) y = Σ A* Λ r,   λ = Λ (r − A y),   f(0) = S* λ

This is one system of the size of the object, six for a rigid one, for any number of arms; y is what
the contacts add to the acceleration of the object. For rigid grasps of a rigid body its inertia is
M(C) + Σ φ Λ φ*. Source: announced in 000, section 6; 000 (5.11) is the case of two arms.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.grasp.multi_arm.contacts import (
    Contacts,
    ContactSolver,
    Solver,
    between,
    row_scale,
    solver,
)
from linkwise.grasp.multi_arm.equation import Evaluation
from linkwise.spatial.array import Array

Inverse = Callable[[Array], ContactSolver]
"""From Ω to the solver for f(0)."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of an algorithm.

    Attributes:
        T_prime: All joint forces without bias (batch, nv).
        vdot: Accelerations of the arms' joints, zero for the object's (batch, nv).
        force: f(0) on the object, in the frames of the contacts (batch, 6 contacts).
        solved: The solver of the forces, with the rank.
    """

    T_prime: Array
    vdot: Array
    force: Array
    solved: ContactSolver


def ccfd(of: Evaluation, at: Contacts, c: Array, inverse: Inverse) -> Result:
    """The general algorithm (4.9), with the derived open-chain dynamics.

    1)  𝓜 v̇_f + C = T,  α_f(0) = J v̇_f + J̇ v                            (4.9a, b)
    2)  Ω = J 𝓜⁻¹ J* + A M(C)⁻¹ A*,  Ω f(0) = α_f(0) + A M(C)⁻¹ b(C) − a(C)  (4.9c, d)
    3)  𝓜 Δv̇ + J* f(0) = 0                                                (4.9e)
    4)  v̇ = v̇_f + Δv̇                                                     (4.9g)
    """
    return _four_steps(of, at, c, inverse, "general_")


def rccfd1(of: Evaluation, at: Contacts, c: Array, inverse: Inverse) -> Result:
    """RCCFD1 (6.11): the four steps of the general algorithm, each by sweeps.

    T′ = T − H φ (M φ* a + b)                                             (6.11a)
    v̇_f = (I − H ψ K)* D⁻¹ (I − H ψ K) T′                                  (6.11b)
    α_f(0) = B* φ* H* v̇_f + B* φ* a                                       (6.11c)
    J 𝓜⁻¹ J* = B* ψ* H* D⁻¹ H ψ B,  Ω, f(0)                                (6.11d-f)
    Δv̇ = −(I − H ψ K)* D⁻¹ H ψ B f(0),  v̇ = v̇_f + Δv̇                      (6.11g, i)

    Departs: (6.11g) is printed without the sign and without H; (6.3) has both.
    """
    return _four_steps(of, at, c, inverse, "")


def _four_steps(of: Evaluation, at: Contacts, c: Array, inverse: Inverse, kind: str) -> Result:
    T_prime = of.run("bias_free_force")
    free = of.arm_acceleration(f"{kind}free_acceleration", T_prime=T_prime)
    tips = of.at_tips("tip_acceleration", vdot=free)
    solved = inverse(omega(of, at, f"{kind}compliance"))
    force = solved.force(at.from_tips(tips) - _object_motion(of, at, c, T_prime))
    change = of.arm_acceleration(f"{kind}correction", f=-at.to_tips(force))
    return Result(T_prime, free + change, force, solved)


def rccfd2(of: Evaluation, at: Contacts, c: Array, inverse: Inverse) -> Result:
    """RCCFD2 (6.18): forces from filtered joint forces, then one filter and one smoother.

    T′ = T − H φ (M φ* a + b)                                             (6.18a)
    J 𝓜⁻¹ J* = B* ψ* H* D⁻¹ H ψ B,  Ω                                      (6.18b, c)
    f(0) = Ω⁻¹ {B* ψ* H* D⁻¹ (I − H ψ K) T′ − a′(C)}                       (6.18d)
    v̇ = (I − H ψ K)* D⁻¹ {T′ − H ψ (K T′ + B f(0))}                        (6.18e)

    Departs: (6.18e) is printed without the star on its first factor; (6.17) has it.
    """
    T_prime = of.run("bias_free_force")
    solved = inverse(omega(of, at, "compliance"))
    filtered = at.from_tips(of.at_tips("filtered_force", T_prime=T_prime))
    force = solved.force(filtered - _a_prime(of, at, c, T_prime))
    vdot = of.arm_acceleration("acceleration", T_prime=T_prime, f=-at.to_tips(force))
    return Result(T_prime, vdot, force, solved)


def rccfd3(of: Evaluation, at: Contacts, c: Array, inverse: Inverse) -> Result:
    """RCCFD3 (6.22): the effects of T′ and of a′(C) separately.

    ζ(C) = Ω⁻¹ a′(C)                                                      (6.22d)
    f(0) = Ω⁻¹ B* ψ* H* D⁻¹ (I − H ψ K) T′ − ζ(C)                          (6.22e)
    v̇_1 = (I − H ψ K)* {D⁻¹ − D⁻¹ H ψ B Ω⁻¹ B* ψ* H* D⁻¹} (I − H ψ K) T′   (6.22f)
    v̇_2 = (I − H ψ K)* D⁻¹ H ψ B ζ(C),  v̇ = v̇_1 + v̇_2                     (6.22g, h)
    """
    T_prime = of.run("bias_free_force")
    solved = inverse(omega(of, at, "compliance"))
    zeta = solved.force(_a_prime(of, at, c, T_prime))
    eps = of.run("innovation", given={"T_prime": T_prime})
    pushed = solved.force(at.from_tips(of.at_tips("tip_of_innovation", eps=eps)))
    first = of.arm_acceleration("smoothed", eps=eps, f=-at.to_tips(pushed))
    second = of.arm_acceleration("correction", f=at.to_tips(zeta))
    return Result(T_prime, first + second, pushed - zeta, solved)


ALGORITHMS: dict[str, Callable[[Evaluation, Contacts, Array, Inverse], Result]] = {
    "CCFD": ccfd,
    "RCCFD1": rccfd1,
    "RCCFD2": rccfd2,
    "RCCFD3": rccfd3,
}
"""By name."""


def _object_motion(of: Evaluation, at: Contacts, c: Array, T_prime: Array) -> Array:
    """a(C) − A M(C)⁻¹ b(C): the motion of the contacts with an object that is let go."""
    falling = of.at_grasps("general_filtered_force", T_prime=T_prime)
    return at.from_object(of.at_grasps("bias_acceleration") + falling) + c


def _a_prime(of: Evaluation, at: Contacts, c: Array, T_prime: Array) -> Array:
    """a′(C) = a(C) − A M(C)⁻¹ b(C) − J̇ v   (2.15b)."""
    moving = at.from_tips(of.at_tips("bias_acceleration"))
    return np.asarray(_object_motion(of, at, c, T_prime) - moving)


# ---------------------------------------------------------------------------------- Ω of the arms


def omega(of: Evaluation, at: Contacts, name: str) -> Array:
    """Ω = J 𝓜⁻¹ J* + A M(C)⁻¹ A*   (4.9c), in the frames of the contacts.

    Args:
        of: The evaluation.
        at: Its contacts.
        name: The equation of J 𝓜⁻¹ J*: "general_compliance", or "compliance" for (6.11d), which is
            (6.8) to (6.10) where each arm has one contact.
    """
    Omega = between(at.E_object, of.at_grasps("general_compliance"))
    blocks = _diagonal_blocks(of, at) if name == "compliance" else None
    if blocks is None:
        return Omega + between(at.E_arm, of.at_tips(name))
    for i in range(blocks.shape[1]):
        six = slice(6 * i, 6 * i + 6)
        Omega[:, six, six] += blocks[:, i]
    return Omega


def _diagonal_blocks(of: Evaluation, at: Contacts) -> Array | None:
    """Λ_i(0) of each contact (batch, contacts, 6, 6), if each arm has one contact, else None.

    Arms are separate trees, so J 𝓜⁻¹ J* has a block for each; an arm with one contact needs only
    the recursion (6.10) along it: Λ_i(0) = φ*(1, 0) Λ_i(1) φ(1, 0) with Λ_i(1) of the last body.
    """
    if len(of.parts.arms) < len(of.parts.tips):
        return None
    nodes = [of.mech.node(name) for name in of.parts.tips]
    at_bodies = of.run("own_compliance", rows=tuple(node.body for node in nodes))
    shift = np.stack([node.pose.shift for node in nodes])
    carry = at.E_arm @ np.swapaxes(shift, -1, -2)
    return carry @ at_bodies.reshape(*carry.shape) @ np.swapaxes(carry, -1, -2)


# --------------------------------------------------------------------------------- the linear form


@dataclass(frozen=True, slots=True)
class ArmInertia:
    """An arm as the object feels it.

    Attributes:
        columns: Indices of its contacts among all (6 k,).
        S: Their blocked directions (batch, rows, 6 k).
        A: S E_o J_o (batch, rows, degrees of freedom of the object).
        Lambda: The inertia Λ, and its rank.
    """

    columns: NDArray[np.int64]
    S: Array
    A: Array
    Lambda: Solver


def linear(
    of: Evaluation, at: Contacts, c: Array, length: float
) -> tuple[Array, Array, dict[str, NDArray[np.bool_]]]:
    """T′, the contact forces by one system of the size of the object, and the singular states.

    Returns:
        T′ (batch, nv); f(0) (batch, 6 contacts), NaN where an arm is singular; and where each arm
        is singular (batch,), by its name.
    """
    T_prime = of.run("bias_free_force")
    tips = of.at_tips("bias_acceleration") + of.at_tips("general_filtered_force", T_prime=T_prime)
    relative = at.from_tips(tips) - c - at.from_object(of.at_grasps("bias_acceleration"))
    bodies = of.parts.object_bodies
    J_o = of.run("jacobian", of.parts.grasps, columns=bodies)
    arms = _arm_inertias(of, at, J_o, length)
    singular = {name: arm.Lambda.rank < arm.S.shape[1] for name, arm in arms.items()}
    bad = np.asarray(np.any(list(singular.values()), axis=0), dtype=np.bool_)
    carried = _Carried(of.run("inertia", rows=bodies, columns=bodies), list(arms.values()), bad)
    fall = _solve(carried.inertia, T_prime[:, of.parts.object_rows])
    right = [_times(x.S, relative[:, x.columns]) - _times(x.A, fall) for x in carried.arms]
    lam = carried.forces(right)
    # Λ is an explicit inverse, which costs digits: refine once, as `contacts.refined` does.
    rest = [r - moved for r, moved in zip(right, carried.moved(lam), strict=True)]
    force = np.zeros_like(relative)
    for arm, first, second in zip(carried.arms, lam, carried.forces(rest), strict=True):
        force[:, arm.columns] = _times(np.swapaxes(arm.S, -1, -2), first + second)
    force[bad] = np.nan
    return T_prime, force, singular


class _Carried:
    """The object with all arms: Ω and its inverse, arm by arm, nothing of size ℓ."""

    def __init__(self, inertia: Array, arms: list[ArmInertia], bad: NDArray[np.bool_]) -> None:
        self.inertia, self.arms, self.total = inertia, arms, inertia.copy()
        for arm in arms:
            self.total += np.swapaxes(arm.A, -1, -2) @ arm.Lambda.inverse @ arm.A
        self.total[bad] = np.eye(inertia.shape[-1])

    def forces(self, right: list[Array]) -> list[Array]:
        """λ = Ω⁻¹ r: (𝓜_o + Σ A* Λ A) y = Σ A* Λ r, λ = Λ (r − A y)."""
        parts = [_times(x.Lambda.inverse, r) for x, r in zip(self.arms, right, strict=True)]
        y = _solve(self.total, self._gathered(parts))
        gains = [_times(x.Lambda.inverse, _times(x.A, y)) for x in self.arms]
        return [part - gain for part, gain in zip(parts, gains, strict=True)]

    def moved(self, lam: list[Array]) -> list[Array]:
        """Ω λ = Λ⁻¹ λ + A 𝓜_o⁻¹ Σ A* λ, arm by arm."""
        y = _solve(self.inertia, self._gathered(lam))
        pairs = zip(self.arms, lam, strict=True)
        return [_times(x.Lambda.matrices, part) + _times(x.A, y) for x, part in pairs]

    def _gathered(self, lam: list[Array]) -> Array:
        pairs = zip(self.arms, lam, strict=True)
        return np.sum([_times(np.swapaxes(x.A, -1, -2), part) for x, part in pairs], axis=0)


def _arm_inertias(of: Evaluation, at: Contacts, J_o: Array, length: float) -> dict[str, ArmInertia]:
    """Each arm with its contacts, by the arm's name."""
    blocks, result = _diagonal_blocks(of, at), dict[str, ArmInertia]()
    full = None if blocks is not None else between(at.E_arm, of.at_tips("general_compliance"))
    starts = [0, *itertools.accumulate(at.sizes)]
    for arm in of.parts.arms:
        picked = list(arm.contacts)
        columns = np.concatenate([np.arange(6 * i, 6 * i + 6) for i in picked])
        rows = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in picked])
        S = at.S[:, rows][:, :, columns]
        moved = at.E_object[:, picked] @ J_o[:, columns].reshape(len(S), len(picked), 6, -1)
        A = S @ moved.reshape(len(S), len(columns), -1)
        if full is not None:
            compliance = full[:, columns[:, None], columns]
        else:
            assert blocks is not None
            compliance = blocks[:, picked[0]]
        Lambda = solver(S @ compliance @ np.swapaxes(S, -1, -2), row_scale(S, length))
        result[arm.name] = ArmInertia(columns, S, A, Lambda)
    return result


def _solve(matrix: Array, right: Array) -> Array:
    return np.asarray(np.linalg.solve(matrix, right[..., None])[..., 0], dtype=np.float64)


def _times(matrix: Array, x: Array) -> Array:
    return (matrix @ x[..., None])[..., 0]
