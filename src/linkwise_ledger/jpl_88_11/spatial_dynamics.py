"""JPL 88-11, section 2: the Newton-Euler equations, by sixes.

Held against positions differentiated with respect to time, like those by threes in `section_2.py`.
"""

from __future__ import annotations

import numpy as np

from linkwise.spatial.array import Array
from linkwise.spatial.pose import trusted_pose
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import cross, six
from linkwise_ledger.case import Case, apart
from linkwise_ledger.jpl_88_11.links import (
    bias_acceleration,
    bias_force,
    hinge_map,
    inertia,
    inverse_dynamics,
    pinned,
    tip_acceleration,
)
from linkwise_ledger.jpl_88_11.motion import Motion, by_operators, pins, shift
from linkwise_ledger.jpl_88_11.section_2 import times
from linkwise_ledger.section import Section


def _outward(x: Motion, rows: Array) -> Array:
    """φ*(k + 1, k) of the row of link k + 1."""
    return np.array([shift(arm).T @ y for arm, y in zip(x.arm, x.up(rows), strict=True)])


def _hinge_part(x: Motion, rates: list[Array]) -> Array:
    return np.array([hinge_map(x, k).T @ rates[k] for k in range(x.n)])


def _bias(x: Motion) -> Array:
    return np.array([bias_acceleration(x, k) for k in range(x.n)])


def _net(x: Motion) -> Array:
    return six(x.N_net, x.F_net)


def _inward(x: Motion, f: Array) -> Array:
    """Sum of φ(k, k - 1) f(k - 1), the environment included."""
    moved = np.array([shift(arm) @ y for arm, y in zip(x.arm, f, strict=True)])
    return x.gathered(moved, shift(x.tip - x.O[x.tip_link]) @ x.f_tip)


SPATIAL = Section()
SPATIAL.unchecked("""(2.14)  spatial velocity, acceleration and force
    printed  V = (ω, v); α = (ω̇, v̇); f = (N, F)
    means    (angular, linear), at O(k)
    note     α is the inertial derivative, component by component. Linkwise's acceleration is the
             derivative in the axes of the body, (ω̇, v̇ - ω × v) turned into them.
""")


@SPATIAL.on(pins)("""(2.15)  spatial inertia
    printed  M(k) = [[I(k), m(k) p̃(k)], [-m(k) p̃(k), m(k) I]]
    means    M_k at O(k), in world axes
""")
def _inertias(x: Motion) -> tuple[Array, Array]:
    """Against the inertias of the model, moved to O(k) and turned to world axes."""
    poses = x.mech.poses(x.q)
    moved = [
        x.mech.inertias[k].moved(trusted_pose(poses[k].rot, poses[k].p - x.O[k])).matrix
        for k in range(x.n)
    ]
    return np.array([inertia(x, k) for k in range(x.n)]), np.array(moved)


@SPATIAL.on(pins)("""(2.16)  shift and hinge map
    printed  φ(k+1,k) = [[I, ℓ̃(k+1,k)], [0, I]]; Hᵀ(k) = (h(k), 0)
    means    φ(p,k) without the turn from one body's axes to the other's; H_k* of a pin
""")
def _(x: Motion) -> tuple[Array, Array]:
    f = six(x.N, x.F)
    moved = np.array([shift(arm) @ y for arm, y in zip(x.arm, f, strict=True)])
    by_threes = six(x.N + cross(x.arm, x.F), x.F)
    along = np.array([hinge_map(x, k) @ f[k] for k in range(x.n)])
    return np.hstack([moved, along]), np.hstack([by_threes, (x.h * x.N).sum(axis=1)[:, None]])


@SPATIAL.on(pins)("""(2.17)  spatial velocities
    printed  V(N+1) = 0; V(k) = φᵀ(k+1,k) V(k+1) + Hᵀ(k) θ̇(k)
    holds    V_k = φ*(p,k) V_p + H_k* v_k
""")
def _spatial_velocity(x: Motion) -> tuple[Array, Array]:
    V, local = six(x.w, x.v), _hinge_part(x, x.theta_dot)
    return V, _outward(x, V) + local


@SPATIAL.on(pins)("""(2.18)  spatial accelerations
    printed  α(N+1) = 0; α(k) = φᵀ(k+1,k) α(k+1) + Hᵀ(k) θ̈(k) + a(k)
    holds    α_k = φ*(p,k) α_p + H_k* v̇_k + a_k
""")
def _spatial_acceleration(x: Motion) -> tuple[Array, Array]:
    alpha = six(x.w_dot, x.v_dot)
    return alpha, _outward(x, alpha) + _hinge_part(x, x.theta_ddot) + _bias(x)


@SPATIAL.on(pins)("""(2.19)  bias acceleration, in two forms
    printed  a(k) = (ω(k+1) × h(k) θ̇(k), ω(k+1) × [ω(k+1) × ℓ(k+1,k)]) = (ω(k+1) × ω(k), ω(k+1) ×
             [ω(k+1) × ℓ(k+1,k)])
    holds    a_k for accelerations that are inertial derivatives
    note     With accelerations in the axes of the bodies, as in Linkwise, a = V × H* v + Ḣ* v takes
             this place.
""")
def _(x: Motion) -> tuple[Array, Array]:
    w = x.up(x.w)
    linear = cross(w, cross(w, x.arm))
    by_rate = six(cross(w, x.h * x.qdot[:, None]), linear)
    by_links = six(cross(w, x.w), linear)
    alpha = six(x.w_dot, x.v_dot)
    left = alpha - _outward(x, alpha) - _hinge_part(x, x.theta_ddot)
    return np.array([left, left]), np.array([by_rate, by_links])


@SPATIAL.on(pins)("""(2.20)  balance of forces and moments
    printed  (N(k), F(k)) = [[I, ℓ̃(k,k-1)], [0, I]] (N(k-1), F(k-1)) + [[I, p̃(k)], [0, I]] (Nᶜ(k),
             Fᶜ(k))
    holds    f_k = Σ_c φ(k,c) f_c + φ(O,CM) fᶜ_k
""")
def _(x: Motion) -> tuple[Array, Array]:
    f = six(x.N, x.F)
    return f, _inward(x, f) + np.array([shift(x.p[k]) @ _net(x)[k] for k in range(x.n)])


@SPATIAL.on(pins)("""(2.21)  rates of momentum
    holds    (Nᶜ, Fᶜ) = [[Iᶜ, 0], [-m p̃, m I]] (ω̇, v̇) + (ω × Iᶜ·ω, m ω × [ω × p])
""")
def _(x: Motion) -> tuple[Array, Array]:
    m, p, none = x.mass[:, None, None], skew(x.p), np.zeros((x.n, 3, 3))
    upper = np.concatenate([x.I_com, none], axis=2)
    lower = np.concatenate([-m * p, m * np.eye(3)], axis=2)
    moving = times(np.concatenate([upper, lower], axis=1), six(x.w_dot, x.v_dot))
    turned = cross(x.w, cross(x.w, x.p))
    still = six(cross(x.w, times(x.I_com, x.w)), x.mass[:, None] * turned)
    return _net(x), moving + still


@SPATIAL.on(pins)("""(2.22)  spatial balance
    printed  f(k) = φ(k,k-1) f(k-1) + M(k) α(k) + b(k); f(0) = f_ext; T(k) = H(k) f(k)
    holds    f_k = Σ_c φ(k,c) f_c + M_k α_k + b_k; τ = H f
""")
def _spatial_balance(x: Motion) -> tuple[Array, Array]:
    f, alpha = six(x.N, x.F), six(x.w_dot, x.v_dot)
    return f, _inward(x, f) + np.array(
        [inertia(x, k) @ alpha[k] + bias_force(x, k) for k in range(x.n)]
    )


@SPATIAL.on(pins)("""(2.23)  bias force
    printed  b(k) = (ω(k) × I(k)·ω(k), m(k) ω(k) × [ω(k) × p(k)])
    holds    b_k for accelerations that are inertial derivatives
    note     With accelerations in the axes of the bodies, b = V ×* M V takes this place.
""")
def _(x: Motion) -> tuple[Array, Array]:
    alpha = six(x.w_dot, x.v_dot)
    left = [shift(x.p[k]) @ _net(x)[k] - inertia(x, k) @ alpha[k] for k in range(x.n)]
    return np.array(left), np.array([bias_force(x, k) for k in range(x.n)])


@SPATIAL.on(pins)("""sec. 2, inertia at O(k)  parallel axes
    holds    I(k) = Iᶜ(k) - m(k) p̃²(k)
""")
def _(x: Motion) -> tuple[Array, Array]:
    about_joint = [np.asarray(inertia(x, k)[:3, :3]) for k in range(x.n)]
    return np.array(about_joint), _inertias(x)[1][:, :3, :3]


@SPATIAL.on(pins)("""sec. 2, gyroscopic moment at O(k)  used to arrive at (2.22) and (2.23)
    holds    ω × Iᶜ·ω + m p × [ω × [ω × p]] = ω × I ω
""")
def _(x: Motion) -> tuple[Array, Array]:
    p, w, m = x.p, x.w, x.mass[:, None]
    about_joint = np.array([inertia(x, k)[:3, :3] for k in range(x.n)])
    split = cross(w, times(x.I_com, w)) + m * cross(p, cross(w, cross(w, p)))
    return split, cross(w, times(about_joint, w))


SPATIAL.unchecked("""(2.24)  the base at rest
    printed  V(N+1) = 0; α(N+1) = 0
    means    the ground does not move
""")
SPATIAL.on(pins)("""(2.25)  spatial velocities, in the loop
    printed  V(k) = φᵀ(k+1,k) V(k+1) + Hᵀ(k) θ̇(k)
    holds    V_k = φ*(p,k) V_p + H_k* v_k
""")(_spatial_velocity)
SPATIAL.on(pins)("""(2.26)  spatial accelerations, in the loop
    printed  α(k) = φᵀ(k+1,k) α(k+1) + Hᵀ(k) θ̈(k) + a(k)
    holds    α_k = φ*(p,k) α_p + H_k* v̇_k + a_k
""")(_spatial_acceleration)


@SPATIAL.on(pins)("""(2.27)  the tip
    printed  V(0) = φᵀ(1,0) V(1); α(0) = φᵀ(1,0) α(1) + a(0)
    holds    V_B = B* V; α_B = B* α, with a(0) = (0, ω × [ω × ℓ(1,0)]) in inertial derivatives
    note     a(0) is not printed; it is (2.19) for k = 0 with ω(0) = ω(1). In the axes of the bodies
             there is no a(0).
""")
def _(x: Motion) -> tuple[Array, Array]:
    k = x.tip_link
    out = shift(x.tip - x.O[k]).T
    V, alpha = six(x.w[k], x.v[k]), six(x.w_dot[k], x.v_dot[k])
    return (
        np.stack([six(x.w[k], x.v_tip), six(x.w_dot[k], x.v_tip_dot)]),
        np.stack([out @ V, out @ alpha + tip_acceleration(x)]),
    )


SPATIAL.unchecked("""(2.28)  the environment
    printed  f(0) = f_ext
    means    f, what the node does to it
""")
SPATIAL.on(pins)("""(2.29)  spatial balance, in the loop
    printed  f(k) = φ(k,k-1) f(k-1) + M(k) α(k) + b(k)
    holds    f_k = Σ_c φ(k,c) f_c + M_k α_k + b_k
""")(_spatial_balance)


@SPATIAL.on(pins)("""(2.30)  joint moment, in the loop
    printed  T(k) = H(k) f(k)
    holds    τ = H f
""")
def _(x: Motion) -> tuple[Array, Array]:
    f = six(x.N, x.F)
    return np.array([(hinge_map(x, k) @ f[k])[0] for k in range(x.n)]), by_operators(x)


@SPATIAL("""RSD  the recursive spatial dynamics, (2.24) to (2.30)
    printed  for k = N ... 1: (2.25), (2.26); for k = 1 ... N: (2.29), (2.30)
    holds    τ = 𝓜 v̇ + C + J* f
    note     The loops as printed, in world axes, against the operators in body axes.
""")
def _(case: Case) -> float:
    """The loops, on Linkwise's own operators in the axes of the bodies too."""
    x, links = pins(case), pinned(case)
    computed = np.concatenate(inverse_dynamics(links, links.theta_ddot))
    return apart(computed, by_operators(x))
