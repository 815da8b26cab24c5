"""Document 001, end of section 2: joints that slide."""

from __future__ import annotations

import numpy as np

from linkwise.spatial.array import Array
from linkwise.spatial.vector import cross, six
from linkwise_ledger.case import Case, apart
from linkwise_ledger.jpl_88_11 import newton_euler
from linkwise_ledger.jpl_88_11.links import (
    Links,
    bias_acceleration,
    hinge_map,
    inverse_dynamics,
    sliding,
)
from linkwise_ledger.jpl_88_11.motion import Motion, shift, slides
from linkwise_ledger.section import Section


def _slid(x: Motion) -> list[int]:
    return [k for k in range(x.n) if x.is_slide(k)]


def _left_over(x: Motion) -> Array:
    """α(k) - φᵀ(k+1,k) α(k+1) - Hᵀ(k) θ̈(k) at the slides: what a(k) has to be."""
    alpha = six(x.w_dot, x.v_dot)
    above = x.up(alpha)
    rows = [
        alpha[k] - shift(x.arm[k]).T @ above[k] - hinge_map(x, k).T @ x.theta_ddot[k]
        for k in _slid(x)
    ]
    return np.array(rows)


def _by_links(x: Motion, inside: Array) -> Array:
    """(0, ω(k+1) × inside) at the slides."""
    w = x.up(x.w)
    return np.array([six(np.zeros(3), cross(w[k], inside[k])) for k in _slid(x)])


def _joint_forces(x: Motion, links: Links) -> float:
    found = np.concatenate(inverse_dynamics(links, links.theta_ddot))
    return apart(found, newton_euler.by_operators(x))


SLIDING = Section()


@SLIDING("""(2.31)  hinge map of a slide
    printed  Hᵀ(k) = (0, h(k))
    means    H_k* of a prismatic hinge
""")
def _(case: Case) -> float:
    """Hᵀ θ̇ is what the velocity of a link on a slide has more than that of its parent."""
    x = slides(case)
    V = six(x.w, x.v)
    relative = [V[k] - shift(x.arm[k]).T @ x.up(V)[k] for k in _slid(x)]
    return apart(relative, [hinge_map(x, k).T @ x.theta_dot[k] for k in _slid(x)])


@SLIDING("""(2.32)  bias acceleration of a slide
    printed  a(k) = (0, ω(k+1) × [ω(k+1) × ℓ(k+1,k) + h(k) θ̇(k)])
    instead  a(k) = (0, ω(k+1) × [ω(k+1) × ℓ(k+1,k) + 2 h(k) θ̇(k)])
    note     The 2 of the Coriolis acceleration is missing: l grows by h θ̇, and h itself turns.
""")
def _(case: Case) -> float:
    x = slides(case)
    return apart(_left_over(x), [bias_acceleration(x, k) for k in _slid(x)])


@SLIDING.as_printed
def _(case: Case) -> float:
    x = slides(case)
    return apart(_left_over(x), [bias_acceleration(x, k, slid=1.0) for k in _slid(x)])


@SLIDING("""(2.32), second form  bias acceleration of a slide, by velocities of links
    printed  a(k) = (0, ω(k+1) × [ω(k+1) × ℓ(k+1,k) + ω(k)])
    instead  a(k) = (0, ω(k+1) × [2 (v(k) - v(k+1)) - ω(k+1) × ℓ(k+1,k)])
    note     h θ̇ was replaced by ω(k) as for a pin in (2.19), where the rest of ω(k) drops out of
             the product; here it is a velocity, v(k) - v(k+1) - ω(k+1) × ℓ, and not even the units
             fit. Since ω(k) = ω(k+1) the printed term vanishes altogether.
""")
def _(case: Case) -> float:
    x = slides(case)
    w = x.up(x.w)
    inside = 2.0 * (x.v - x.up(x.v)) - cross(w, x.arm)
    return apart(_left_over(x), _by_links(x, inside))


@SLIDING.as_printed
def _(case: Case) -> float:
    x = slides(case)
    return apart(_left_over(x), _by_links(x, cross(x.up(x.w), x.arm) + x.w))


SLIDING("""sec. 2, sliding joints  arms of pins and slides, (2.14) to (2.32) together
    printed  RSD with (2.31) and (2.32) at the slides describes an arm with both kinds of joints
    holds    τ = 𝓜 v̇ + C + J* f by RSD, with the 2 in (2.32)
    note     With (2.32) corrected.
""")(lambda case: _joint_forces(slides(case), sliding(case)))
