"""JPL 88-11, Appendix B: a mobile base, balls, and quaternions; and table 1.1.

Tried on the trees of all cases with a free base or a ball at the base, with balls, slides and pins
beyond it, in world axes. The station is the hinge frame of the base that does not move.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from linkwise.algebra.dense import Dense
from linkwise.algebra.symbols import a
from linkwise.model.hinges import Free, Spherical
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array
from linkwise.spatial.vector import cross, six
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Check, Errors
from linkwise_ledger.jpl_88_11.links import Links, Operators, floating, inverse_dynamics, stacked
from linkwise_ledger.jpl_88_11.motion import Motion, by_operators, first, mobile_pins, times
from linkwise_ledger.jpl_88_11.sweeps import Algorithm, fd1, fd2, fd3, fd4
from linkwise_ledger.section import Section


class Mobile(NamedTuple):
    """An arm whose base moves: its motion, its blocks and its operators, in world axes."""

    x: Motion
    links: Links
    at: Operators


@cache
def mobile_arms(case: Case) -> tuple[Mobile, ...]:
    """All arms of a case with a base that moves."""
    return tuple(Mobile(x, links, stacked(links)) for x, links in floating(case))


# ------------------------------------------------------------------------------- dynamics


def _forces(x: Motion) -> Array:
    """f(k), by balance of everything beyond the joint, stacked."""
    return six(x.N, x.F).ravel()


def _ours(x: Motion) -> Array:
    """𝓜 v̇ + C + J* f of Linkwise, whose joint rates are v."""
    return by_operators(x)


def _in_hinges(x: Motion, forces: Array) -> Array:
    """Joint forces for W(k), as forces for the v of Linkwise: those in the axes of the link."""
    matrix, start = np.zeros(x.mech.nv), 0
    for k, body in enumerate(x.mech.bodies):
        span = x.mech.v_slice(body.hinge_name)
        T = forces[start : start + body.hinge.nv]
        start += body.hinge.nv
        matrix[span] = T
        if isinstance(body.hinge, Spherical):  # W(k) is in the axes of link k + 1
            matrix[span] = _turned(x, k).T @ T
        if isinstance(body.hinge, Free):  # W(N) is in those of the world
            axes = x.now.axes[k] @ _turned(x, k)
            matrix[span] = np.concatenate([axes.T @ T[:3], axes.T @ T[3:]])
    return matrix


def _turned(x: Motion, k: int) -> Array:
    """The turn of joint k, from its outboard to its inboard axes."""
    body = x.mech.bodies[k]
    return body.hinge.pose(x.q[x.mech.q_slice(body.hinge_name)]).rot


def _base(x: Motion) -> int | None:
    """The free base, if there is one."""
    return 0 if isinstance(x.hinge(0), Free) else None


def _in_own_axes(x: Motion, angular: Array, linear: Array) -> Array:
    """A pair of vectors at the base, in the axes of its hinge frame."""
    axes = x.now.axes[0] @ _turned(x, 0)
    return np.concatenate([axes.T @ angular, axes.T @ linear])


def _finds(*algorithms: Algorithm) -> Check:
    """The check that algorithms find Ẇ, or α where they compute link accelerations."""

    def check(case: Case) -> float:
        errors: list[float] = []
        for _, links in floating(case):
            for algorithm in algorithms:
                expected = [*links.alpha, links.alpha_tip] if algorithm is fd2 else links.theta_ddot
                errors.append(apart(np.concatenate(algorithm(links)), np.concatenate(expected)))
        return max(errors)

    return check


# ----------------------------------------------------------------------------- quaternions


def rate_map(q: Array) -> Array:
    """Λ(q) (4, 3): q̇ = ½ (0, ω) q, with ω in the axes that do not turn."""
    w, x, y, z = q
    return 0.5 * np.array([[-x, -y, -z], [w, z, -y], [-z, w, x], [y, -x, w]])


def turns(x: Motion) -> list[tuple[int, slice]]:
    """Bodies whose hinge has a quaternion, and where in q it stands."""
    parts: list[tuple[int, slice]] = []
    for k, body in enumerate(x.mech.bodies):
        if isinstance(body.hinge, Free | Spherical):
            start = x.mech.q_slice(body.hinge_name).start
            parts.append((k, slice(start, start + 4)))
    return parts


def relative(x: Motion, k: int) -> Array:
    """Angular velocity of link k relative to link k + 1, in inboard axes of the hinge."""
    return x.now.axes[k].T @ (x.w[k] - x.up(x.w)[k])


def _q_dot(x: Motion) -> Array:
    """Rates of all coordinates, by differences."""
    return first([x.q_at(t) for t in times()])


def _omega(x: Motion, k: int) -> Array:
    """Ω[θ(k)]: diag(Λ, I) for a free base, Λ for a ball, 1 for a single axis."""
    where = dict(turns(x))
    if k not in where:
        return np.eye(1)
    Lambda = rate_map(x.q[where[k]])
    if isinstance(x.hinge(k), Spherical):
        return Lambda
    matrix = np.zeros((7, 6))
    matrix[:4, :3], matrix[4:, 3:] = Lambda, np.eye(3)
    return matrix


def _rates(x: Motion, k: int) -> Array:
    """W(k) in the axes of the station, or of link k + 1."""
    if isinstance(x.hinge(k), Free):
        axes = x.now.axes[k]
        return np.concatenate([axes.T @ x.w[k], axes.T @ x.v[k]])
    return x.theta_dot[k]


APPENDIX_B = Section()


@APPENDIX_B.on_each(mobile_arms)("""(b.1)  dynamics with W for θ̇
    printed  T = 𝓜 Ẇ + C + Jᵀ f(0)
    holds    τ = 𝓜 v̇ + C + J* f
    note     W is in inertial axes at a free base, in those of link k + 1 at a ball; Linkwise's v is
             in those of link k.
""")
def _dynamics(arm: Mobile) -> float:
    x, _, at = arm
    coriolis = at.H @ at.phi @ (at.M @ at.phi.T @ at.a + at.b)
    computed = at.mass @ at.theta_ddot + coriolis + at.J.T @ x.f_tip
    return max(apart(computed, at.H @ _forces(x)), apart(_in_hinges(x, computed), _ours(x)))


@APPENDIX_B.on_each(mobile_arms)("""App. B, RSD with W  the loops of section 2 on a mobile base
    holds    (2.24) to (2.30) hold with θ̈(k) replaced by Ẇ(k)
""")
def _loops(arm: Mobile) -> float:
    """RSD with Ẇ for θ̈: accelerations against positions, joint forces against the balance."""
    x, links, at = arm
    alpha = at.phi.T @ (at.H.T @ at.theta_ddot + at.a)
    computed = np.concatenate(inverse_dynamics(links, links.theta_ddot))
    seen = six(x.w_dot, x.v_dot).ravel()
    return max(apart(alpha, seen), apart(computed, at.H @ _forces(x)))


@APPENDIX_B.on_each(mobile_arms)("""(b.2)  velocity of the base
    printed  V(N) = Hᵀ(N) W(N); Hᵀ(N) = I ∈ R^{6×6}
    holds    V = W at the base; H = I of a free hinge, in its own frame
    note     From V(N) = φᵀ(N+1,N) V(N+1) + Hᵀ(N) W(N) with V(N+1) = 0.
""")
def _(arm: Mobile) -> Errors:
    """V(N) seen from positions is W(N): the six rates of Linkwise's free hinge."""
    x, links, at = arm
    V = at.phi.T @ at.H.T @ at.theta_dot
    yield V, six(x.w, x.v).ravel()
    if _base(x) is not None:
        yield links.H[0], np.eye(6)
        yield _in_own_axes(x, x.w[0], x.v[0]), x.qdot[:6]


@APPENDIX_B.on_each(mobile_arms)("""(b.3)  quaternions and angular velocity
    printed  q̇ = Λ(q) ω(N); ω = π(q) q̇
    holds    q̇ = ½ (0, ω) q, ω = 2 q̇ q⁻¹ in axes of the station; Linkwise has q̇ = ½ q (0, ω) in
             those of the body
    note     Λ and π are not printed; π = 4 Λ*.
""")
def _(arm: Mobile) -> Errors:
    x, _, _ = arm
    rates = _q_dot(x)
    for k, where in turns(x):
        q, w = x.q[where], relative(x, k)
        local = _turned(x, k).T @ w
        yield rates[where], rate_map(q) @ w
        yield rates[where], quaternion.rate(q, local)
        yield w, 4.0 * rate_map(q).T @ rates[where]


@APPENDIX_B.on_each(mobile_arms)("""App. B, inverse of Λ  what π is
    printed  Ω⁻¹(q) = π(q), and Λ(q), are always nonsingular
    instead  π(q) Λ(q) = I, and Λ(q) always has rank 3
    note     Ω for Λ: Ω is named only after, in (b.4), and is 7 × 6. Λ itself is 4 × 3: its inverse
             is one from the left, on rates that keep the quaternion at unit length.
""")
def _(arm: Mobile) -> Errors:
    x, _, _ = arm
    for _, where in turns(x):
        Lambda = rate_map(x.q[where])
        values = np.linalg.svd(Lambda, compute_uv=False)
        yield 4.0 * Lambda.T @ Lambda, np.eye(3)
        yield values, np.full(3, 0.5)


@APPENDIX_B.on_each(mobile_arms).as_printed
def _(arm: Mobile) -> float:
    """Ω⁻¹ = π: Ω is 7 × 6 and π is 3 × 4; not even a left inverse of Ω has its shape."""
    x, _, _ = arm
    if _base(x) is None:
        return 0.0
    Lambda = rate_map(x.q[turns(x)[0][1]])
    return apart(np.linalg.pinv(_omega(x, 0)), 4.0 * Lambda.T)


@APPENDIX_B.on_each(mobile_arms)("""(b.4)  coordinates of the base
    printed  θ̇(N) = Ω[θ(N)] W(N); Ω = [[Λ(q), 0], [0, I]]; θ(N) = col[q, ℓ(N+1,N)]
    holds    q̇ of a free hinge
""")
def _(arm: Mobile) -> float:
    x, _, _ = arm
    if _base(x) is None:
        return 0.0
    return apart(_q_dot(x)[:7], _omega(x, 0) @ _rates(x, 0))


@APPENDIX_B("""App. B, dimensions  coordinates and rates
    printed  θ ∈ R^{N+6}, N + 5 degrees of freedom
    holds    nq = N + 6, nv = N + 5 with one axis at each other joint
""")
def _(case: Case) -> float:
    x = mobile_pins(case)
    return apart([x.mech.nq, x.mech.nv], [x.n + 6, x.n + 5])


@APPENDIX_B.on_each(mobile_arms)("""(b.5)  coordinates of all joints
    printed  θ̇ = Ω W, Ω = diag[Ω(k)], Ω(k) = 1 for k < N
    holds    q̇ = Ω v; Ω(k) = Λ at balls
""")
def _all_rates(arm: Mobile) -> float:
    x, _, _ = arm
    values = [_omega(x, k) @ _rates(x, k) for k in range(x.n)]
    return apart(_q_dot(x), np.concatenate(values))


@APPENDIX_B.on_each(mobile_arms)("""(b.6)  acceleration of the base
    printed  α(N) = Hᵀ(N) Ẇ(N) ≡ Ẇ(N)
    holds    the same; in the axes of the bodies α = v̇ of the free hinge
    note     The text calls α(N+1) = 0 the velocity of the station; its acceleration is meant.
""")
def _(arm: Mobile) -> float:
    x, links, at = arm
    if _base(x) is None:
        return 0.0
    in_hinge = _in_own_axes(x, x.w_dot[0], x.v_dot[0] - cross(x.w[0], x.v[0]))
    alpha = at.phi.T @ (at.H.T @ at.theta_ddot + at.a)
    return max(apart(in_hinge, x.qddot[:6]), apart(alpha[:6], links.theta_ddot[0]))


@APPENDIX_B.on_each(mobile_arms)("""(b.7)  no bias at the base
    printed  a(N) = 0
    holds    a = a_g at the base
""")
def _(arm: Mobile) -> float:
    """What H* v̇ leaves of the acceleration of the base for a(N), relative to it; and our a."""
    x, _, _ = arm
    if _base(x) is None:
        return 0.0
    in_hinge = _in_own_axes(x, x.w_dot[0], x.v_dot[0] - cross(x.w[0], x.v[0]))
    ours = Dense(x.mech, x.q, x.qdot)(a)[:6]
    left = max(np.abs(in_hinge - x.qddot[:6]).max(), np.abs(ours).max())
    return float(left / np.abs(in_hinge).max())


@APPENDIX_B.on_each(mobile_arms)("""(b.8)  force on the base
    printed  T(k) = H(k) f(k) = f(k) ∈ R⁶
    holds    T(N) = H(N) f(N) = f(N)
    note     k is N, as the sentence before says: at the other joints (2.30) is unchanged.
""")
def _(arm: Mobile) -> float:
    """T(N) = f(N), the force and moment that hold the base; in Linkwise's axes its first six."""
    x, links, _ = arm
    if _base(x) is None:
        return 0.0
    f = six(x.N, x.F)[0]
    return max(apart(links.H[0] @ f, f), apart(_in_own_axes(x, f[:3], f[3:]), _ours(x)[:6]))


APPENDIX_B.on_each(mobile_arms)("""(b.9)  dynamics and kinematics together
    printed  T = 𝓜 Ẇ + C + Jᵀ f(0); θ̇ = Ω W
    holds    τ = 𝓜 v̇ + C + J* f; q̇ = Ω v
""")(lambda arm: max(_dynamics(arm), _all_rates(arm)))
APPENDIX_B("""(b.10)  forward dynamics on a mobile base
    printed  Ẇ = 𝓜⁻¹ [T - C - Jᵀ f(0)], by the factorisation and the loops of the paper
    holds    v̇ = 𝓜⁻¹ (τ - C - J* f)
    note     FD1 to FD4 as loops: on a free base, on a ball at the base, with balls and slides.
""")(_finds(fd1, fd2, fd3, fd4))
APPENDIX_B.on_each(mobile_arms)("""App. B, spherical joints  any joint as a ball
    printed  the same procedure makes any joint a spherical one
    holds    Hᵀ(k) = (axes of link k+1, 0), a(k) = (ω(k+1) × ω(k), ω(k+1) × [ω(k+1) × ℓ(k+1,k)])
    note     The second form of (2.19) needs no change; T(k) is a moment in the axes of link k+1.
""")(_loops)


@APPENDIX_B("""Table 1.1  symbols
    printed  h, θ, O, ℓ, F, N, Fᶜ, CM, p, v, ω, vᶜ, m, Iᶜ, I, T
    means    points, vectors and inertias of each link; vᶜ = v + ω × p, Fᶜ = F(k) - F(k-1)
""")
def _(case: Case) -> Errors:
    for x, _ in floating(case):
        yield x.v_com, x.v + cross(x.w, x.p)
        yield x.F_net, x.F - x.gathered(x.F, x.f_tip[3:])
        com = x.mech.poses(x.q).apply(x.mech.inertias.com)
        yield x.O + x.p, com
