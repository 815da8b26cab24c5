"""The operator algebra, section 5, application 3: a closed chain as two arms whose tips are joined.

Arm 1 is the mechanism of the case, arm 2 an arm of seven pins whose base stands where its tip meets
that of arm 1. Nothing depends on where that is: there is no gravity, as in the paper, and what
the arms have in common is expressed in the frame of the tip. The reference is one dense system for
the accelerations of both arms and the force between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from linkwise import models
from linkwise.algebra.space import JOINT
from linkwise.algebra.symbols import B, D, H, J, a, bias, mass, phi, psi
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.operator_algebra.dynamics import link_accelerations, newton_euler
from linkwise_ledger.operator_algebra.inversion import WHITENING
from linkwise_ledger.operator_algebra.tip import correction_loops, tip_compliance
from linkwise_ledger.recursion import at_tip, drawn, moved, rate, weightless
from linkwise_ledger.section import Section


@dataclass(frozen=True)
class _Arm:
    """One arm in its state: its matrices, the moments on it, and how it would move if it were free.

    Attributes:
        case: The arm in a state.
        mass: 𝓜.
        jacobian: J of the tip.
        bias: C.
        bent: J̇ θ̇, what velocities alone make of the acceleration of the tip.
        moments: T.
    """

    case: Case
    mass: Array
    jacobian: Array
    bias: Array
    bent: Array
    moments: Array

    @property
    def free(self) -> Array:
        """θ̈_f = 𝓜⁻¹ (T - C)."""
        return np.linalg.inv(self.mass) @ (self.moments - self.bias)

    @property
    def free_tip(self) -> Array:
        """α_f(0) = J θ̈_f + J̇ θ̇."""
        return self.jacobian @ self.free + self.bent

    @property
    def compliance(self) -> Array:
        """Λ⁻¹ = J 𝓜⁻¹ J*."""
        return self.jacobian @ np.linalg.inv(self.mass) @ self.jacobian.T


@dataclass(frozen=True)
class _Pair:
    """Two arms, and the solution of the dense system for them: accelerations and tip force."""

    arms: tuple[_Arm, _Arm]
    vdot: tuple[Array, Array]
    f: Array


def _arm(case: Case) -> _Arm:
    return _Arm(
        case,
        case.matrix(mass),
        case.matrix(J),
        case.matrix(bias),
        case.matrix(B.T @ phi.T @ a),
        drawn(case, JOINT),
    )


def _system(one: _Arm, two: _Arm) -> Array:
    """The matrix of (5.8) and of the tips' equal accelerations, in θ̈_1, θ̈_2 and f(0)."""
    n_1, n_2 = len(one.mass), len(two.mass)
    return np.block(
        [
            [one.mass, np.zeros((n_1, n_2)), -one.jacobian.T],
            [np.zeros((n_2, n_1)), two.mass, two.jacobian.T],
            [one.jacobian, -two.jacobian, np.zeros((6, 6))],
        ]
    )


@cache
def _pair(case: Case) -> _Pair:
    one = _arm(weightless(case))
    second = Case("second arm", models.seven_dof_arm().with_gravity(np.zeros(3)), 11)
    # Joined tips move together: J_2 θ̇_2 = J_1 θ̇_1.
    joined = Case(second.name, second.mech, second.seed)
    joined.v = np.linalg.pinv(second.matrix(J)) @ one.jacobian @ one.case.v
    two = _arm(joined)
    right = [one.moments - one.bias, two.moments - two.bias, two.bent - one.bent]
    solution = np.linalg.inv(_system(one, two)) @ np.concatenate(right)
    n_1, n_2 = len(one.mass), len(two.mass)
    vdot = solution[:n_1], solution[n_1 : n_1 + n_2]
    return _Pair((one, two), vdot, solution[n_1 + n_2 :])


def _tips(pair: _Pair, f: Array) -> tuple[Array, Array]:
    """Accelerations of both tips under the force f(0) between them."""
    one, two = pair.arms
    return one.free_tip + one.compliance @ f, two.free_tip - two.compliance @ f


def _joint_force(pair: _Pair) -> Array:
    """f(0) = Λ_c [α_2f(0) - α_1f(0)]."""
    one, two = pair.arms
    return np.linalg.inv(one.compliance + two.compliance) @ (two.free_tip - one.free_tip)


def _closed(pair: _Pair) -> tuple[Array, Array]:
    """θ̈_1, θ̈_2: compliances and corrections by the recursions of applications 1 and 2."""
    one, two = pair.arms
    together = tip_compliance(one.case) + tip_compliance(two.case)
    f = np.linalg.inv(together) @ (two.free_tip - one.free_tip)
    return one.free + correction_loops(one.case, -f), two.free + correction_loops(two.case, f)


def _tip_rate(case: Case) -> tuple[_Arm, Array, Array]:
    """Arm 1, accelerations of its joints, and the derivative of V_1(0) along that motion."""
    one = _pair(case).arms[0]
    vdot = _pair(case).vdot[0]
    return one, vdot, rate(lambda t: moved(one.case, t)(J) @ (one.case.v + t * vdot))


CLOSED_CHAIN = Section()


@CLOSED_CHAIN("""(5.6)  forces between the tips
    printed  f_2(0) = -f_1(0) ≡ f(0)
    means    opposite forces on tips that move together do no work
""")
def _(case: Case) -> float:
    pair = _pair(case)
    powers = [float(pair.f @ arm.jacobian @ arm.case.v) for arm in pair.arms]
    return apart(powers[0], powers[1])


@CLOSED_CHAIN("""(5.7)  the tips stay together
    printed  α_1(0) = α_2(0)
    holds    with f(0) of (5.11), the loops of both arms give their tips the same acceleration
""")
def _(case: Case) -> float:
    """Both tips by the loops of their arms, moved as the recursions of applications 1, 2 say."""
    pair = _pair(case)
    tips: list[Array] = []
    for arm, vdot in zip(pair.arms, _closed(pair), strict=True):
        body, shift = at_tip(arm.case)
        tips.append(shift.T @ link_accelerations(arm.case, vdot)[body])
    return apart(*tips)


@CLOSED_CHAIN("""(5.8)  equations of motion of the arms
    printed  𝓜_1 θ̈_1 + C_1 = T_1 + J_1* f(0);  𝓜_2 θ̈ + C_2 = T_2 - J_2* f(0)
    holds    the Newton-Euler loops of arm 1 with -f(0) at its tip, of arm 2 with f(0), give T_1,
             T_2
    note     θ̈ without a subscript is θ̈_2: no other would fit.
""")
def _(case: Case) -> float:
    pair = _pair(case)
    values = [
        newton_euler(arm.case, vdot, sign * pair.f)
        for arm, vdot, sign in zip(pair.arms, pair.vdot, (-1.0, 1.0), strict=True)
    ]
    return max(apart(x, arm.moments) for x, arm in zip(values, pair.arms, strict=True))


@CLOSED_CHAIN("""(5.9)  accelerations of arm 1
    printed  θ̈_1 = 𝓜_1⁻¹ (T_1 - C_1) + 𝓜_1⁻¹ J_1* f(0) = θ̈_1f + Δθ̈_1;  θ̈_1f = [I - H ψ K]* D⁻¹
             [I - H ψ K] (T - C);  Δθ̈_1 = 𝓜_1⁻¹ J_1* f(0) = [I - H ψ K]* D⁻¹ H ψ B f(0)
    holds    v̇_1 = (I - H ψ K)* D⁻¹ [(I - H ψ K) (τ_1 - C_1) + H ψ B f], as the dense system of
             both arms has it
    note     Operators, T and C are those of arm 1, without their subscripts.
""")
def _(case: Case) -> Errors:
    pair = _pair(case)
    one = pair.arms[0]
    factored, simplified = WHITENING.T @ D.inv @ WHITENING, WHITENING.T @ D.inv @ H @ psi @ B
    free = one.case.matrix(factored) @ (one.moments - one.bias)
    correction = one.case.matrix(simplified) @ pair.f
    yield free + correction, pair.vdot[0]
    yield correction, np.linalg.inv(one.mass) @ one.jacobian.T @ pair.f


@CLOSED_CHAIN("""(5.10)  acceleration of the tip
    printed  α_1(0) = V̇_1(0) = J_1 θ̈_1 + J_1 θ̇_1
    instead  α_1(0) = V̇_1(0) = J_1 θ̈_1 + J̇_1 θ̇_1 = J_1 θ̈_1 + B* φ* a
    note     A dot is missing on the second J_1; the next line has it. V̇ and J̇ by differences.
""")
def _(case: Case) -> Errors:
    one, vdot, expected = _tip_rate(case)
    turning = rate(lambda t: moved(one.case, t)(J))
    yield one.jacobian @ vdot + turning @ one.case.v, expected
    yield one.jacobian @ vdot + one.bent, expected


@CLOSED_CHAIN.as_printed
def _(case: Case) -> float:
    one, vdot, expected = _tip_rate(case)
    return apart(one.jacobian @ vdot + one.jacobian @ one.case.v, expected)


@CLOSED_CHAIN("""sec. 5, α_1(0)  acceleration of tip 1
    printed  α_1(0) = α_1f(0) + J_1 Δθ̈_1 = α_1f(0) + Λ_1⁻¹ f(0);  α_1f(0) = J_1 θ̈_1f + J̇_1 θ̇_1,
             Λ_1⁻¹ = J_1 𝓜_1⁻¹ J_1*
    holds    J_1 v̇_1f + J̇_1 v_1 + Λ_1⁻¹ f, and by the loops of application 1, as the dense system
             has it
    note     Scan: a letter between J̇_1 and θ̇_1 cannot be read; a star would not fit there.
""")
def _(case: Case) -> float:
    pair = _pair(case)
    one = pair.arms[0]
    expected = one.jacobian @ pair.vdot[0] + one.bent
    through_joints = one.free_tip + one.jacobian @ correction_loops(one.case, -pair.f)
    return max(apart(_tips(pair, pair.f)[0], expected), apart(through_joints, expected))


@CLOSED_CHAIN("""sec. 5, α_2(0)  acceleration of tip 2
    printed  α_2(0) = α_2f(0) - Λ_2⁻¹ f(0),  Λ_2⁻¹ = J_2 𝓜_2⁻¹ J_2*
    holds    J_2 v̇_2f + J̇_2 v_2 - Λ_2⁻¹ f, as the dense system has it
""")
def _(case: Case) -> float:
    pair = _pair(case)
    two = pair.arms[1]
    expected = two.jacobian @ pair.vdot[1] + two.bent
    return apart(_tips(pair, pair.f)[1], expected)


CLOSED_CHAIN("""(5.11)  force that closes the chain
    printed  f(0) = Λ_c [α_2f(0) - α_1f(0)],  Λ_c⁻¹ = Λ_1⁻¹ + Λ_2⁻¹
    holds    f(0) of the dense system of both arms
""")(lambda case: (_joint_force(_pair(case)), _pair(case).f))


@CLOSED_CHAIN("""sec. 5, closed chain  forward dynamics of the closed chain by recursions
    printed  Λ_1⁻¹, Λ_2⁻¹, Δθ̈_1 and Δθ̈_2 by the algorithms of one arm
    holds    loops of (5.5) and (5.3) for each arm leave the accelerations of the dense system
""")
def _(case: Case) -> float:
    pair = _pair(case)
    return max(apart(x, y) for x, y in zip(_closed(pair), pair.vdot, strict=True))


@CLOSED_CHAIN("""sec. 5, Λ_c  effective inertia at the cut
    printed  Λ_c is the effective inertia of the closed chain reflected to point c
    holds    opposite forces ±f at the cut part the tips by Λ_c⁻¹ f
    note     It is the inertia against parting the tips. One force on the joined tips meets Λ_1 +
             Λ_2 instead, which is checked too.
""")
def _(case: Case) -> float:
    pair = _pair(case)
    one, two = pair.arms
    zero = np.zeros(6)
    parted = np.subtract(*_tips(pair, pair.f)) - np.subtract(*_tips(pair, zero))
    cut = apart(parted, (one.compliance + two.compliance) @ pair.f)
    # A force on the joined tips, put on tip 1: the accelerations it adds, by the dense system.
    push = np.concatenate([one.jacobian.T @ pair.f, np.zeros(len(two.mass) + 6)])
    added = np.linalg.solve(_system(one, two), push)[: len(one.mass)]
    tip = one.jacobian @ added
    share = pair.f - np.linalg.inv(two.compliance) @ tip  # what is left of it for arm 1
    return max(cut, apart(tip, one.compliance @ share))


def check_well_posed(case: Case) -> float:
    """The dense system is as singular as Λ_1⁻¹ + Λ_2⁻¹ is, for a long and a short second arm."""
    one = _arm(weightless(case))
    for mech in (models.seven_dof_arm(), models.chain(2)):
        two = _arm(Case("second arm", mech.with_gravity(np.zeros(3)), 11))
        rank = int(np.linalg.matrix_rank(one.compliance + two.compliance, rtol=1e-9))
        complete = _system(one, two)
        if int(np.linalg.matrix_rank(complete, rtol=1e-12)) != len(complete) - 6 + rank:
            return float("inf")
    return 0.0
