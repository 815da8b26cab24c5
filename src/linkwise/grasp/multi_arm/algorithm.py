"""CCFD and RCCFD1 to RCCFD3 of JPL 88-11, Part II, step by step as they are written there.

Each takes an `Evaluation`, its contacts and how forces follow from Ω, and gives the accelerations
of the arms' joints and the contact forces f(0). Numbers are those of the source. Forces on arms
are −f(0), carried to the tips.

What all share is a′(C), with the object a tree of its own, of any freedoms:

    a′(C) = a(C) − A M(C)⁻¹ b(C) − J̇ v = E_o (J̇_o v_o + J_o 𝓜_o⁻¹ T′_o) + c − E_a J̇ v   (2.15b)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from linkwise.grasp.multi_arm.compliance import omega
from linkwise.grasp.multi_arm.contact import Contacts
from linkwise.grasp.multi_arm.contact_force import ContactSolver
from linkwise.grasp.multi_arm.evaluation import Evaluation
from linkwise.spatial.array import Array

Inverse = Callable[[Array], ContactSolver]
"""From Ω to what gives f(0)."""


@dataclass(frozen=True, slots=True)
class Found:
    """What an algorithm gives.

    Attributes:
        T_prime: Joint forces without bias, of all (batch, nv).
        vdot: Accelerations of the arms' joints, zero for the object's (batch, nv).
        force: f(0) on the object, in the frames of the contacts (batch, 6 contacts).
        solved: What gave the forces, with the rank.
    """

    T_prime: Array
    vdot: Array
    force: Array
    solved: ContactSolver


def ccfd(of: Evaluation, at: Contacts, c: Array, inverse: Inverse) -> Found:
    """The general algorithm (4.9), with whatever open-chain dynamics is derived.

    1)  𝓜 v̇_f + C = T,  α_f(0) = J v̇_f + J̇ v                            (4.9a, b)
    2)  Ω = J 𝓜⁻¹ J* + A M(C)⁻¹ A*,  Ω f(0) = α_f(0) + A M(C)⁻¹ b(C) − a(C)  (4.9c, d)
    3)  𝓜 Δv̇ + J* f(0) = 0                                                (4.9e)
    4)  v̇ = v̇_f + Δv̇                                                     (4.9g)
    """
    return _four_steps(of, at, c, inverse, "general_")


def rccfd1(of: Evaluation, at: Contacts, c: Array, inverse: Inverse) -> Found:
    """RCCFD1 (6.11): the four steps of the general algorithm, each by sweeps.

    T′ = T − H φ (M φ* a + b)                                             (6.11a)
    v̇_f = (I − H ψ K)* D⁻¹ (I − H ψ K) T′                                  (6.11b)
    α_f(0) = B* φ* H* v̇_f + B* φ* a                                       (6.11c)
    J 𝓜⁻¹ J* = B* ψ* H* D⁻¹ H ψ B,  Ω, f(0)                                (6.11d-f)
    Δv̇ = −(I − H ψ K)* D⁻¹ H ψ B f(0),  v̇ = v̇_f + Δv̇                      (6.11g, i)

    Departs: (6.11g) is printed without the sign and without H; (6.3) has both.
    """
    return _four_steps(of, at, c, inverse, "")


def _four_steps(of: Evaluation, at: Contacts, c: Array, inverse: Inverse, kind: str) -> Found:
    T_prime = of.run("bias_free_force")
    free = of.arm_acceleration(f"{kind}free_acceleration", T_prime=T_prime)
    tips = of.at_tips("tip_acceleration", vdot=free)
    solved = inverse(omega(of, at, f"{kind}compliance"))
    force = solved.force(at.from_tips(tips) - _object_motion(of, at, c, T_prime))
    change = of.arm_acceleration(f"{kind}correction", f=-at.to_tips(force))
    return Found(T_prime, free + change, force, solved)


def rccfd2(of: Evaluation, at: Contacts, c: Array, inverse: Inverse) -> Found:
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
    return Found(T_prime, vdot, force, solved)


def rccfd3(of: Evaluation, at: Contacts, c: Array, inverse: Inverse) -> Found:
    """RCCFD3 (6.22): what T′ does and what a′(C) does, apart.

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
    return Found(T_prime, first + second, pushed - zeta, solved)


ALGORITHMS: dict[str, Callable[[Evaluation, Contacts, Array, Inverse], Found]] = {
    "CCFD": ccfd,
    "RCCFD1": rccfd1,
    "RCCFD2": rccfd2,
    "RCCFD3": rccfd3,
}
"""By name."""


def _object_motion(of: Evaluation, at: Contacts, c: Array, T_prime: Array) -> Array:
    """a(C) − A M(C)⁻¹ b(C): how the contacts would move with an object that is let go."""
    falling = of.at_grasps("general_filtered_force", T_prime=T_prime)
    return at.from_object(of.at_grasps("bias_acceleration") + falling) + c


def _a_prime(of: Evaluation, at: Contacts, c: Array, T_prime: Array) -> Array:
    """a′(C) = a(C) − A M(C)⁻¹ b(C) − J̇ v   (2.15b)."""
    moving = at.from_tips(of.at_tips("bias_acceleration"))
    return np.asarray(_object_motion(of, at, c, T_prime) - moving)
