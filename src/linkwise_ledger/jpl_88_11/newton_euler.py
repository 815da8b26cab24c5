"""Joint forces of a motion: by the loops (2.1) to (2.13), by operators, and of weights."""

from __future__ import annotations

from functools import cache

import numpy as np

from linkwise.algebra.dense import Dense
from linkwise.algebra.symbols import J, bias, mass
from linkwise.spatial.array import Array
from linkwise.spatial.vector import cross
from linkwise_ledger.jpl_88_11.motion import STEP, Motion, first, picture


def joint_forces(x: Motion, raised: Array | None = None) -> Array:
    """T (n,) of an arm of pins by the loops as printed; the base has the acceleration `raised`."""
    n, none = x.n, np.zeros(3)
    w, w_dot, v_dot = np.zeros((n + 1, 3)), np.zeros((n + 1, 3)), np.zeros((n + 1, 3))
    v_com_dot = np.zeros((n, 3))
    v_dot[n] = none if raised is None else raised  # link N + 1 comes last: its index is -1
    arm, p, rate = x.arm, x.p, x.h * x.qdot[:, None]
    for k in range(n):
        i = int(x.parent[k])
        w[k] = w[i] + rate[k]  # (2.2)
        w_dot[k] = w_dot[i] + x.h[k] * x.qddot[k] + cross(w[i], rate[k])  # (2.4)
        v_dot[k] = v_dot[i] + cross(w_dot[i], arm[k]) + cross(w[i], cross(w[i], arm[k]))  # (2.5)
        turned = cross(w_dot[k], p[k]) + cross(w[k], cross(w[k], p[k]))
        v_com_dot[k] = v_dot[k] + turned  # (2.6)
    F, N, T = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros(n)
    F[x.tip_link] = x.f_tip[3:]  # (2.8)
    N[x.tip_link] = x.f_tip[:3] + cross(x.tip - x.O[x.tip_link], x.f_tip[3:])
    for k in reversed(range(n)):
        moment = x.I_com[k] @ w_dot[k] + cross(w[k], x.I_com[k] @ w[k])  # (2.9)
        force = x.mass[k] * v_com_dot[k]  # (2.10)
        F[k] += force  # (2.11), the links k - 1 having been added before
        N[k] += cross(p[k], force) + moment  # (2.12)
        T[k] = x.h[k] @ N[k]  # (2.13)
        if x.parent[k] >= 0:
            F[x.parent[k]] += F[k]
            N[x.parent[k]] += N[k] + cross(arm[k], F[k])
    return T


@cache
def by_operators(x: Motion) -> Array:
    """𝓜 v̇ + C + J* f (nv,), from Linkwise's operators in the axes of the bodies."""
    dense = Dense(x.mech, x.q, x.qdot, nodes=[x.node])
    back = x.mech.pose(x.q, x.node).rot.T
    f = np.concatenate([back @ x.f_tip[:3], back @ x.f_tip[3:]])
    return dense(mass) @ x.qddot + dense(bias) + dense(J).T @ f


def slope_of_potential_energy(x: Motion, gravity: Array) -> Array:
    """Joint forces (nv,) that carry the weights: -Σ m g* c, differentiated by each freedom."""

    def energy(v: Array) -> Array:
        com = picture(x.mech, x.mech.integrate(x.q, v), x.node).com
        return -(x.mass @ com) @ gravity

    return np.array(
        [first([energy(STEP * i * e) for i in range(-4, 5)]) for e in np.eye(x.mech.nv)]
    )
