"""Dampers and springs of drives that are too stiff for a step of an explicit integrator.

A damper multiplies its velocity by a polynomial in h λ in each step, with λ an eigenvalue of 𝓜⁻¹ D,
and a spring turns (q, v) with ω, ω² an eigenvalue of 𝓜⁻¹ K. Where h λ or h ω is above the bound of
the integrator, the motion grows without bounds, however small it is. With loops and couplings the
velocities that they allow count.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from linkwise.dynamics.closure import constraint_jacobian
from linkwise.dynamics.kernels import is_closed, tree_of
from linkwise.dynamics.mass_matrix import mass_matrix
from linkwise.dynamics.passive import passive
from linkwise.errors import LinkwiseError, caller
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array

BOUND = {"rk4": (2.785, 2.828), "rk4_mujoco": (2.785, 2.828), "euler": (2.0, 2.0)}
"""h λ up to which a damper alone is stable, and h ω up to which a spring alone is."""

NEAR = 0.3
"""Part of the bound, at the neutral configuration, from which the actual one is looked at."""

MOST = 100
"""Bodies of a mechanism that is looked at; there are dense matrices of all of them."""

Rates = tuple[tuple[float, int], tuple[float, int]]
"""The largest λ and the largest ω [1/s], each with the velocity that moves most with it."""


def too_stiff(
    mech: Mechanism, q: Any, step: float, integrator: str, damping: Array | None = None
) -> str:
    """What to warn of before a motion, or "" where its dampers and springs suit the step.

    Args:
        mech: The mechanism.
        q: Where it begins (nq,).
        step: Length of a step [s].
        integrator: Its name; those without a bound are not looked at.
        damping: Of the drives (nv,), in place of theirs.
    """
    bounds, drives = BOUND.get(integrator), passive(mech)
    yields = drives.yields or damping is not None
    if bounds is None or not yields or mech.n_bodies > MOST:
        return ""
    if damping is None:
        usual = zip(_at_neutral(mech), bounds, strict=True)
        if all(step * rate < NEAR * bound for (rate, _), bound in usual):
            return ""
    d = drives.damping if damping is None else damping
    try:
        each = _rates(mech, mass_matrix(tree_of(mech), q), q, d, drives.stiffness)
    except (LinkwiseError, np.linalg.LinAlgError):
        return ""  # the motion itself says what is wrong
    kind = int(each[1][0] / bounds[1] > each[0][0] / bounds[0])
    (rate, place), bound = each[kind], bounds[kind]
    if not step * rate > bound:
        return ""
    return (
        f"dampers and springs of {mech.name!r} are too stiff for steps of {step:.3g} s by "
        f"{integrator!r}: the stiffest {('damper', 'spring')[kind]}, at "
        f"{mech.velocity_names[place]!r}, has the rate {rate:.4g} 1/s, and above "
        f"{bound / step:.4g} 1/s the motion grows without bounds. Use integrator='implicit', where "
        f"they act at the end of a step, or steps below {bound / rate:.2g} s."
    )


def warn_if_too_stiff(*of: Any, **given: Any) -> None:
    """Warn by `too_stiff`, whose arguments these are."""
    message = too_stiff(*of, **given)
    if message:
        warnings.warn(message, stacklevel=caller())


def remedy(mech: Mechanism, integrator: str = "") -> str:
    """What else may help a motion that diverges: a sentence, or "" without dampers and springs."""
    if integrator == "implicit" or not passive(mech).yields:
        return ""
    return " Dampers and springs may be stiff with integrator='implicit'."


@once_per_mechanism
def _at_neutral(mech: Mechanism) -> Rates:
    """At the neutral configuration, without a kernel."""
    from linkwise.algebra import mass
    from linkwise.algebra.dense import Dense  # not needed to import the package

    drives, q = passive(mech), mech.neutral()
    try:
        M = Dense(tree_of(mech), q)(mass)
        return _rates(mech, M, q, drives.damping, drives.stiffness)
    except (LinkwiseError, np.linalg.LinAlgError):
        return (np.inf, 0), (np.inf, 0)


def _rates(mech: Mechanism, M: Array, q: Any, damping: Array, stiffness: Array) -> Rates:
    """The largest λ and ω among velocities that loops and couplings allow."""
    allowed = np.eye(mech.nv)
    if is_closed(mech):
        _, sizes, rows = np.linalg.svd(constraint_jacobian(mech, q))
        allowed = rows[int((sizes > 1e-9 * sizes.max(initial=0.0)).sum()) :].T
    factor = np.linalg.cholesky(allowed.T @ M @ allowed)
    turned: Any = np.linalg.solve(factor, allowed.T)
    rate, place = _largest(turned, damping)
    square, other = _largest(turned, stiffness)
    return (rate, place), (square**0.5, other)


def _largest(turned: Array, numbers: Array) -> tuple[float, int]:
    """The largest eigenvalue of X D X*, and the velocity with most of it."""
    if not numbers.any() or not len(turned):
        return 0.0, 0
    rates, shapes = np.linalg.eigh((turned * numbers) @ turned.T)
    along = turned.T @ shapes[:, -1]
    return max(float(rates[-1]), 0.0), int(np.argmax(numbers * along**2))
