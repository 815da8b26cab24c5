"""Object level: the example of section 5.2, and dextrous dynamic coordination, section 5.3."""

from __future__ import annotations

from functools import cache

import numpy as np

from linkwise import models
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.jpl_88_11.motion import FIRST
from linkwise_ledger.object_level.inertial import along
from linkwise_ledger.object_level.macro_mini import Serial, serial
from linkwise_ledger.object_level.manipulator import Manipulator, inverted
from linkwise_ledger.object_level.redundancy import gentle
from linkwise_ledger.section import Section


class Example:
    """The manipulator of figure 10: one pin that carries two sliders.

    Args:
        seed: Of I_1, m_2, m_3 and of its posture.

    Attributes:
        combined: `models.planar_rpp`, in a posture.
        mini: The two sliders alone, on a pin that is locked.
    """

    QUANTITIES = ("I_1", "m_2", "m_3", "q_1", "q_2", "q_3")

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng((seed, 52))
        self.seed = seed
        self.I_1, self.m_2, self.m_3 = (float(x) for x in rng.uniform(0.5, 2.0, 3))
        q = rng.uniform(0.3, 1.0, 3) * np.array([1.0, 1.0, -1.0])
        self.q_1, self.q_2, self.q_3 = (float(x) for x in q)
        mech = models.planar_rpp(I_1=self.I_1, m_2=self.m_2, m_3=self.m_3)
        self.combined = Manipulator(mech, "end_effector", q, np.zeros(3), seed)
        locked = mech.lock({"pin_1": q[:1]})
        self.mini = Manipulator(locked, "end_effector", q[1:], np.zeros(2), seed)

    def again(self) -> Example:
        """The same, with nothing computed yet."""
        return Example(self.seed)

    @property
    def turn(self) -> Array:
        """Ω: from the axes of R_1 to those of R_0."""
        c, s = np.cos(self.q_1), np.sin(self.q_1)
        return np.array([[c, -s], [s, c]])

    @property
    def J(self) -> Array:
        """J_0(1)."""
        return np.array([[-self.q_3, 1.0, 0.0], [self.q_2, 0.0, 1.0]])

    @property
    def A(self) -> Array:
        """A(q)."""
        m_2, m_3, q_2, q_3 = self.m_2, self.m_3, self.q_2, self.q_3
        first = self.I_1 + m_2 * q_2**2 + m_3 * (q_2**2 + q_3**2)
        return np.array(
            [[first, -m_3 * q_3, m_3 * q_2], [-m_3 * q_3, m_2 + m_3, 0.0], [m_3 * q_2, 0.0, m_3]]
        )

    @property
    def eta(self) -> float:
        """η."""
        D = self.I_1 + self.m_2 * self.q_2**2
        return D / (D + self.m_2 * self.q_3**2)

    @property
    def alone(self) -> Array:
        """Λ_m(0)."""
        return np.diag([self.m_2 + self.m_3, self.m_3])

    @property
    def Lambda(self) -> Array:
        """Λ_0(1)."""
        return np.diag([self.m_2 * self.eta + self.m_3, self.m_3])

    @property
    def printed(self) -> Array:
        """Λ_0(1), as printed."""
        return np.diag([self.m_2 + self.m_3 * self.eta, self.m_3])

    def seen(self, m: Manipulator) -> Array:
        """The response to forces in the plane, in the axes of R_1."""
        rot = self.combined.mech.pose(self.combined.q, "link_1").rot[:2, :2]
        return rot.T @ m.seen_response[:2, :2] @ rot


@cache
def example(case: Case) -> Example:
    """Each case has different masses and a different posture."""
    return Example(case.seed)


# -------------------------------------------------------------------------------- section 5.3


class Coordination(Serial):
    """A macro- and a mini-manipulator whose mini has joint limits."""

    QUANTITIES = ("gain", "middle", "combined.A", "combined.J_0")

    def __init__(self, of: Serial) -> None:
        super().__init__(of.combined, of.macro, of.mini)
        rng = np.random.default_rng((of.combined.seed, 53))
        self.gain = 2.0
        lower = of.mini.q - rng.uniform(0.5, 1.5, 6)
        upper = of.mini.q + rng.uniform(0.5, 1.5, 6)
        self.limits = lower, upper
        self.middle = 0.5 * (lower + upper)

    def again(self) -> Coordination:
        """The same, with nothing computed yet."""
        return Coordination(super().again())

    def potential(self, q: Array) -> Array:
        """(53), of many configurations at a time; the mini's coordinates are the last six."""
        lower, upper = self.limits
        return 2.0 * np.sum((q[..., -6:] - 0.5 * (upper + lower)) ** 2, axis=-1)

    @property
    def torque(self) -> Array:
        """Γ_Dextrous."""
        matrix = np.zeros(self.combined.n)
        matrix[self.n_M :] = -2.0 * self.gain * (self.combined.q[-6:] - self.middle)
        return matrix


@cache
def coordination(case: Case) -> Coordination:
    """The macro and the mini of a case, with limits."""
    return Coordination(serial(case))


EXAMPLE = Section()
EXAMPLE.on(example)("""sec. 5.2, J_0(1)  example: Jacobian with respect to R_1
    printed  J_0(1) = [[-q_3, 1, 0], [q_2, 0, 1]]
    holds    the same, of `models.planar_rpp`
""")(
    lambda x: (
        x.J,
        x.combined.mech.pose(x.combined.q, "link_1").rot[:2, :2].T @ x.combined.seen_basic[:2],
    )
)
EXAMPLE.on(example)("""sec. 5.2, A(q)  example: kinetic energy matrix
    holds    A(q) = [[I_1 + m_2 q_2² + m_3 (q_2² + q_3²), -m_3 q_3, m_3 q_2], [-m_3 q_3, m_2 + m_3,
             0], [m_3 q_2, 0, m_3]]
""")(lambda x: (x.A, x.combined.energies))
EXAMPLE.on(example)("""sec. 5.2, Λ_m(0)  example: the mini-manipulator
    printed  Λ_m(0) = [[m_2 + m_3, 0], [0, m_3]]
    holds    the same, in the axes of R_1
""")(lambda x: (inverted(x.alone), x.seen(x.mini)))
EXAMPLE.on(example)("""sec. 5.2, Λ_0(1)  example: the macro/mini-manipulator
    printed  Λ_0(1) = [[m_2 + m_3 × η, 0], [0, m_3]]
    instead  Λ_0(1) = [[m_2 × η + m_3, 0], [0, m_3]]
    note     η is at the wrong mass: the end effector carries all of m_3, and the turning link
             relieves it of some of m_2.
""")(lambda x: (inverted(x.Lambda), x.seen(x.combined)))
EXAMPLE.on(example).as_printed(lambda x: (inverted(x.printed), x.seen(x.combined)))


@EXAMPLE.on(example)("""sec. 5.2, η  example: what the macro takes off
    holds    η = (I_1 + m_2 q_2²) / (I_1 + m_2 (q_2² + q_3²)) ≤ 1
""")
def _(x: Example) -> float:
    """What of m_2 is felt along the first axis, less than all of it."""
    computed = (1.0 / x.seen(x.combined)[0, 0] - x.m_3) / x.m_2
    return apart(x.eta, computed) if x.eta <= 1.0 else float("inf")


@EXAMPLE.on(example)("""sec. 5.2, figure 10  example: what is drawn
    printed  the belted ellipsoids correspond to the eigenvalues and eigenvectors of Λ_0(1) and
             Λ_m(0)
    holds    effective masses along eigenvectors are the eigenvalues
    note     With Λ_0(1) as it holds.
""")
def _(x: Example) -> Errors:
    for matrix, m in ((x.Lambda, x.combined), (x.alone, x.mini)):
        sizes, axes = np.linalg.eigh(matrix)
        yield 1.0 / along(x.seen(m), axes.T), sizes


EXAMPLE.on(example)("""sec. 5.2, Λ_0 in R_0  example: with respect to R_0
    holds    Λ_0 = Ω Λ_0(1) Ωᵀ
    note     With Λ_0(1) as it holds. Ω is neither that of section 2.2 nor that of Linkwise.
""")(lambda x: (inverted(x.turn @ x.Lambda @ x.turn.T), x.combined.seen_response[:2, :2]))
EXAMPLE.on(example)("""sec. 5.2, Ω  example: from R_1 to R_0
    means    Ω = [[cos q_1, -sin q_1], [sin q_1, cos q_1]]
""")(lambda x: (x.turn, x.combined.mech.pose(x.combined.q, "link_1").rot[:2, :2]))

COORDINATION = Section()


@COORDINATION.on(coordination)("""(53)  potential that keeps the mini in the middle
    means    V_Dextrous(q) = k_d Σ_{i=n_M+1}^{n} (q_i - (q̄_i + q̲_i)/2)²
""")
def _(x: Coordination) -> float:
    """(53) by its terms, somewhere else."""
    states, _ = x.combined.moved(x.combined.v)
    values = [
        x.gain * sum((q - middle) ** 2 for q, middle in zip(state[-6:], x.middle, strict=True))
        for state in states
    ]
    return apart(values, x.potential(states))


@COORDINATION.on(coordination)("""(54)  torques towards the middle
    printed  Γ_Dextrous = -∇V_Dextrous
    holds    Γ_i = -2 k_d (q_i - (q̄_i + q̲_i)/2) at the mini's joints, 0 at the macro's
""")
def _(x: Coordination) -> float:
    """-∇V by the power it takes to move each joint."""
    slopes: list[float] = []
    for unit in np.eye(x.combined.n):
        states, h = x.combined.moved(unit)
        slopes.append(float(FIRST @ x.potential(states)) / h)
    return apart(x.torque, -np.array(slopes))


@COORDINATION.on(coordination)("""(55)  torques that the effector does not feel
    printed  Γ_nd = [I_n - Jᵀ(q) J̄ᵀ(q)] Γ_Dextrous
    holds    τ = N* Γ_Dextrous: ẍ does not change
    note     The text has them in 'the null space of Jᵀ(q)', which has none but zero; J̄ᵀ is meant,
             as J^{T#} is in the text below (19).
""")
def _(x: Coordination) -> float:
    m, pull = x.combined, x.torque
    before = m.x_acceleration(m.forward(gentle(m)))
    change = m.x_acceleration(m.forward(gentle(m) + m.null_torque @ pull)) - before
    other = m.x_acceleration(m.forward(gentle(m) + pull)) - before
    if np.abs(other).max() < 1e-3 or np.abs(m.null_torque @ pull).max() < 1e-6:
        return float("inf")
    return float(np.abs(change).max() / np.abs(other).max())
