"""The equations of a discrete step, on arrays of numbers and of graph nodes alike.

Rates w are held over the step; the discrete Lagrangian is the midpoint rule,

    L_d(q, q') = h L(q_m, w),   q' = q ⊕ h w,   q_m = q ⊕ ½h w,

and forces τ act at q_m. Momenta are p = −∂L_d/∂q before and p' = ∂L_d/∂q' after the step, by
turns of each hinge from the right. With μ = ∂L/∂w = 𝓜 w and f = L_q + τ at q_m, where
L_q = C_w* w − g + (what frames that turn add, `Coordinates.frame_force`):

    plain          μ = p + ½h f                              p' = p + h f             (1)
    quaternion     S μ = p_m + ½h (f − t × f)                p' = E* (p_m + h f)      (2)

with the turn E = exp(½h ω) of half a step, p_m = E* p, t = tan(θ/4) n and S = n n* + s (1 − n n*),
s = ½θ / sin ½θ, where h ω = θ n. (2) is what the derivative of the exponential leaves: multiplied
by E* from the left it has the symmetric function ½x/sinh ½x of x = h ω×, and ½ (1 − tanh ¼x).
In axes that do not turn, both say the same: a momentum changes by h times the force in the middle.

Armature is N v̇ in the equation of motion, with N constant in the axes of v and no gyroscopic force
with it. Where these axes turn, no Lagrangian has that: the rest is a force in f that does no work.

Source: marsden2001discrete for the principle.
"""

from __future__ import annotations

import math
from typing import Any

from linkwise.algebra import A_V, B_V, H, J as jacobian, M, a_g, f, mass, phi, rot_W, v
from linkwise.algebra.expr import Expr
from linkwise.dynamics.quantity import Frame, x
from linkwise.simulation.variational.coordinates import Coordinates
from linkwise.spatial import quaternion
from linkwise.spatial.vector import cross

MOMENTUM = H @ phi @ M @ phi.T @ H.T @ v
"""Of the bodies alone: steps add that of the armature."""

_CORIOLIS = H @ phi @ (M @ phi.T @ A_V + B_V @ phi.T @ H.T)

LAGRANGIAN_FORCE = _CORIOLIS.T @ v - H @ phi @ M @ phi.T @ a_g
"""C_v* v − g: how the Lagrangian changes with q while v is held, in plain coordinates. Two passes:
what A_V and B_V leave behind on the way in is gathered on the way out."""


def lagrangian_force(*, nodes: bool, frame: Frame = "node") -> Expr:
    """C_v* v − g, and J* f of forces at nodes if there are any."""
    if not nodes:
        return LAGRANGIAN_FORCE
    seen = jacobian if frame == "node" else rot_W @ jacobian
    return LAGRANGIAN_FORCE + seen.T @ f


SOLUTION = mass.inv @ x
"""𝓜⁻¹ x."""


TERMS = 12
"""Of the series of S in ¼θ² ≤ ¼π²: the first one left out is below 1e-19."""


def at_the_middle(coords: Coordinates, q: Any, v: Any, mu: Any, force: Any) -> tuple[Any, Any]:
    """f = L_q + τ and μ = ∂L/∂w, both in rates."""
    mu = mu + coords.mech.armature * v
    return coords.rates(q, force + coords.frame_force(v, mu)), coords.rates(q, mu)


def residual(coords: Coordinates, force: Any, momentum: Any, p: Any, w: Any, h: Any) -> Any:
    """Left side less right side of (1), and of (2) for turns, in the axes of the middle."""
    r = momentum - p - (0.5 * h) * force
    for turn in coords.turns:
        at = slice(turn.v, turn.v + 3)
        half = _half_turn(w[at], h)
        t = half[1:] / half[0]
        pushed = (0.5 * h) * (force[at] - cross(t, force[at]))
        r[at] = _stretched(momentum[at], w[at], h) - _turned_back(half, p[at]) - pushed
    return r


def momentum_after(coords: Coordinates, force: Any, p: Any, w: Any, h: Any) -> Any:
    """p' of (1) and (2)."""
    out = p + h * force
    for turn in coords.turns:
        at = slice(turn.v, turn.v + 3)
        half = _half_turn(w[at], h)
        out[at] = _turned_back(half, _turned_back(half, p[at]) + h * force[at])
    return out


def _half_turn(w: Any, h: Any) -> Any:
    """The quaternion of E = exp(½h ω)."""
    return quaternion.exp(((0.5 * h) * w)[None])[0]


def _turned_back(half: Any, x: Any) -> Any:
    """E* x."""
    return x @ quaternion.to_matrix(half[None])[0]


def _stretched(mu: Any, w: Any, h: Any) -> Any:
    """S μ = s μ + c e (e · μ), e = h ω: with x = ¼θ², g = sin ½θ / ½θ = 1 − x k(x), s = 1/g.

    k = Σ (−x)ⁱ / (2i + 3)!, and c = (1 − s)/θ² = −k/(4 g).
    """
    e: Any = h * w
    x: Any = 0.25 * (e[0] * e[0] + e[1] * e[1] + e[2] * e[2])
    k: Any = 0.0
    for i in range(TERMS, -1, -1):
        k = k * (-x) + 1.0 / math.factorial(2 * i + 3)
    s = 1.0 / (1.0 - x * k)
    along = e[0] * mu[0] + e[1] * mu[1] + e[2] * mu[2]
    return s * mu - (0.25 * k * s * along) * e
