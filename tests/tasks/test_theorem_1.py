"""Theorem 1 of document 003: the dynamically consistent generalised inverse is J̄, and no other.

A generalised inverse J# of J (J J# J = J) is dynamically consistent where torques of its null space
move nothing at the task, J 𝓜⁻¹ (I − J* J#*) Γ0 = 0 for every Γ0, (21). With J of full row rank:

    (21)  ⇔  Ω J#* = J 𝓜⁻¹, Ω = J 𝓜⁻¹ J* regular  ⇔  J# = 𝓜⁻¹ J* Λ = J̄
    J̄ ẋ is the v of least kinetic energy among those with J v = ẋ

Hypothesis draws the states of random arms, the tasks and the generalised inverses; matrices are
those of the library, the linear algebra around them is NumPy's. Bounds are rounding times the
conditions of Ω and 𝓜. A run with many more arms is marked slow.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import linkwise as lw

EPS = np.finfo(float).eps
KINDS = ("pin", "prismatic", "universal", "cylindrical")
ARMS = {
    ("seven", "pose"): lw.Task.pose("hand"),
    ("seven", "position"): lw.Task.position("hand"),
    ("drawn", "two"): (
        lw.Task.position("body_4"),
        lw.Task.orientation("body_3", about="z"),
    ),
}
"""Kernels are made once for each."""


@cache
def mechanism(name: str) -> lw.Mechanism:
    if name == "seven":
        return lw.models.seven_dof_arm()
    return lw.models.random_tree(4, 11, hinges=KINDS, branching=0.0)


class Arm:
    """A redundant arm: J, 𝓜 and J̄ in one state, and how well posed they are."""

    def __init__(self, mech: lw.Mechanism, task: Any, seed: int) -> None:
        self.mech = mech
        self.q = mech.random(np.random.default_rng(seed))
        self.space = lw.tasks.task_space(mech, self.q, task)
        self.J, self.J_bar = self.space.jacobian, self.space.consistent_inverse
        self.m, self.n = self.J.shape
        self.mass = lw.mass_matrix(mech, self.q)
        self.yielding = self.J @ np.linalg.solve(self.mass, self.J.T)
        self.condition = np.linalg.cond(self.yielding) * np.linalg.cond(self.mass)
        self.bound = 50.0 * EPS * self.condition

    @property
    def fits(self) -> bool:
        """Full row rank and freedoms to spare: what the theorem is about; digits to see it."""
        return self.space.rank == self.m < self.n and self.condition < 1e8

    def leaks(self, inverse: np.ndarray) -> np.ndarray:
        """J 𝓜⁻¹ (I − J* J#*) (m, n): the task's acceleration for each torque of the null space."""
        return self.J @ np.linalg.solve(self.mass, np.eye(self.n) - self.J.T @ inverse.T)

    def size(self) -> float:
        """How large accelerations of the task are by single torques."""
        return float(np.abs(self.J @ np.linalg.inv(self.mass)).max())


arms = st.builds(
    lambda key, seed: Arm(mechanism(key[0]), ARMS[key], seed),
    st.sampled_from(sorted(ARMS)),
    st.integers(0, 10_000),
).filter(lambda arm: arm.fits)


@given(arm=arms)
@settings(max_examples=30)
def test_it_is_a_generalised_inverse_and_consistent(arm):
    """J J̄ = I, J J̄ J = J, and (21)."""
    np.testing.assert_allclose(arm.J @ arm.J_bar, np.eye(arm.m), atol=arm.bound)
    assert np.abs(arm.leaks(arm.J_bar)).max() <= arm.bound * arm.size()


@given(arm=arms, seed=st.integers(0, 1000), how_far=st.floats(-6.0, 2.0))
@settings(max_examples=40)
def test_every_other_generalised_inverse_leaks(arm, seed, how_far):
    """All J# are J̄ + (I − J̄ J) Z; what leaks is -Ω Z* (I − J̄ J)*, zero for J# = J̄ only.

    The leak is at least the smallest singular value of Ω times the distance from J̄.
    """
    rng = np.random.default_rng(seed)
    z = 10.0**how_far * rng.standard_normal((arm.n, arm.m))
    away = (np.eye(arm.n) - arm.J_bar @ arm.J) @ z
    other = arm.J_bar + away
    scale = max(1.0, np.abs(other).max()) * max(1.0, np.abs(arm.J).max()) ** 2
    np.testing.assert_allclose(arm.J @ other @ arm.J, arm.J, atol=arm.bound * scale)
    leak = arm.leaks(other)
    np.testing.assert_allclose(leak, -arm.yielding @ away.T, atol=arm.bound * arm.size() * scale)
    least = np.linalg.svd(arm.yielding, compute_uv=False)[-1]
    distance = np.linalg.norm(away)
    assume(least * distance > 100.0 * arm.bound * arm.size() * scale)  # above rounding
    assert np.linalg.norm(leak) >= 0.5 * least * distance


@given(arm=arms)
@settings(max_examples=30)
def test_the_constraint_as_a_linear_system_has_one_solution(arm):
    """(21) for all Γ0 at once, over all m·n entries of X = J#*: (Ω ⊗ I) vec X = vec J 𝓜⁻¹."""
    system = np.kron(arm.yielding, np.eye(arm.n))
    right = (arm.J @ np.linalg.inv(arm.mass)).ravel()
    assert np.linalg.matrix_rank(system, tol=1e-12 * np.linalg.norm(system, 2)) == arm.m * arm.n
    solution = np.linalg.solve(system, right).reshape(arm.m, arm.n)
    np.testing.assert_allclose(
        solution, arm.J_bar.T, atol=arm.bound * max(1.0, np.abs(arm.J_bar).max())
    )


@given(arm=arms, seed=st.integers(0, 1000))
@settings(max_examples=30)
def test_it_takes_the_least_kinetic_energy(arm, seed):
    """Of all v with J v = ẋ; and the energy is ½ ẋ* Λ ẋ. By NumPy: 𝓜⁻½ (J 𝓜⁻½)⁺ ẋ."""
    rng = np.random.default_rng(seed)
    xdot = rng.standard_normal(arm.m)
    least = arm.J_bar @ xdot
    root = np.linalg.cholesky(arm.mass).T  # 𝓜 = root* root, w = root v
    by_norm = np.linalg.solve(root, np.linalg.lstsq(arm.J @ np.linalg.inv(root), xdot)[0])
    size = max(1.0, np.abs(by_norm).max())
    np.testing.assert_allclose(least, by_norm, atol=arm.bound * size)
    energy = 0.5 * least @ arm.mass @ least
    assert energy == pytest.approx(0.5 * xdot @ arm.space.inertia @ xdot, rel=arm.bound)
    other = least + arm.space.null_space @ rng.standard_normal(arm.n)
    np.testing.assert_allclose(arm.J @ other, xdot, atol=arm.bound * max(1.0, np.abs(other).max()))
    more = 0.5 * (other - least) @ arm.mass @ (other - least)
    assert 0.5 * other @ arm.mass @ other == pytest.approx(energy + more, rel=arm.bound)


@pytest.mark.parametrize("name", ["moore_penrose", "weighted"])
def test_inverses_that_are_used_elsewhere_are_not_consistent(name):
    """The pseudo-inverse J⁺, and one with other weights: their null spaces move a hand."""
    mech, task = mechanism("seven"), ARMS["seven", "position"]
    q = mech.random(seed=4)
    J, mass = lw.tasks.task_jacobian(mech, q, task), lw.mass_matrix(mech, q)
    weight = np.eye(7) if name == "moore_penrose" else np.diag([7.0, 6, 5, 4, 3, 2, 1])
    other = np.linalg.solve(weight, J.T) @ np.linalg.inv(J @ np.linalg.solve(weight, J.T))
    np.testing.assert_allclose(J @ other, np.eye(3), atol=1e-12)
    tau0 = np.full(7, 10.0)
    inside = tau0 - J.T @ (other.T @ tau0)
    leak = np.abs(J @ np.linalg.solve(mass, inside)).max()
    assert leak > 0.1  # m/s²
    null = lw.tasks.task_space(mech, q, task).null_torque(tau0)
    assert np.abs(J @ np.linalg.solve(mass, null)).max() < 1e-12 * leak
    assert np.abs(null).max() > 1.0


def test_where_no_freedom_is_left_it_is_the_inverse():
    """003 (26): without redundancy J̄ is J⁻¹, whatever the masses are."""
    mech = lw.models.puma560()
    q = mech.random(seed=1)
    space = lw.tasks.task_space(mech, q, lw.Task.pose("link_6"))
    bound = 50.0 * EPS * np.linalg.cond(space.jacobian) ** 2
    np.testing.assert_allclose(space.consistent_inverse @ space.jacobian, np.eye(6), atol=bound)
    np.testing.assert_allclose(space.null_space, np.zeros((6, 6)), atol=bound)


def test_where_a_direction_is_lost_there_are_many():
    """The theorem needs J of full row rank, as 003 says of Λ: it exists outside singularities.

    With the wrist in line, J̄ + Z U* satisfies J J# J = J and (21) for the lost directions U and any
    Z. Ours is the one with Z = 0: it makes no velocity of what is lost.
    """
    mech = lw.models.puma560()
    q = mech.random(seed=1)
    q[4] = 0.0
    space = lw.tasks.task_space(mech, q, lw.Task.pose("link_6"))
    J, lost, mass = space.jacobian, space.lost, lw.mass_matrix(mech, q)
    assert space.rank == 5
    np.testing.assert_allclose(space.consistent_inverse @ lost, 0.0, atol=1e-11)
    other = space.consistent_inverse + np.arange(6.0)[:, None] @ lost.T
    for inverse in (space.consistent_inverse, other):
        leak = J @ np.linalg.solve(mass, np.eye(6) - J.T @ inverse.T)
        np.testing.assert_allclose(leak, 0.0, atol=1e-9)
        np.testing.assert_allclose(J @ inverse @ J, J, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(25))
def test_on_many_arms(seed):
    """Arms of other hinges, masses and sizes: consistent, and the only solution of (21)."""
    mech = lw.models.random_tree(5, seed, hinges=(*KINDS, "spherical"), branching=0.0)
    arm = Arm(mech, lw.Task.position("body_5", along="xy" if seed % 2 else "xyz"), seed)
    if not arm.fits:
        pytest.skip(f"rank {arm.space.rank} of {arm.m}, {arm.n} freedoms")
    assert np.abs(arm.leaks(arm.J_bar)).max() <= arm.bound * arm.size()
    solution = np.linalg.solve(arm.yielding, arm.J @ np.linalg.inv(arm.mass))
    size = max(1.0, np.abs(arm.J_bar).max())
    np.testing.assert_allclose(solution, arm.J_bar.T, atol=arm.bound * size)
