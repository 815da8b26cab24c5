"""The inertia of a task whose directions fade out near a singular configuration.

With J = U σ V*, rows that turn measured at a length, and G = L⁻¹ V, 𝓜 = L L*, the inertia is

    Λ = U σ⁻¹ (G* G)⁻¹ σ⁻¹ U*

which grows with 1/σ². A direction with σ below a threshold, a part of the largest, gets a share

    s = x² (3 - 2 x),   x = σ / (threshold · largest)

of what is asked for: with W² = s the middle becomes W (W G* G W + (1 - s) diag(G* G))⁻¹ W. All
other directions get theirs exactly. √s / σ is at most √3 over the threshold, so that Λ has bounds;
at s = 0 the direction is no part of the task, and the mechanism is redundant there. No torque
jumps.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from linkwise.dynamics.inverse_dynamics import bias_force
from linkwise.dynamics.mass_matrix import mass_matrix
from linkwise.dynamics.velocity_space import states
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.task.control.hierarchy import SHORT, TOLERANCE, smooth
from linkwise.task.measure import task_bias, task_jacobian
from linkwise.task.space import ROUNDING, TaskSpace
from linkwise.task.task import Task
from linkwise.task.twin import Twin, twin


def fading_inertia(J: Array, mass: Array, scale: Array, threshold: float, reach: float) -> Array:
    """Λ (batch, m, m), symmetric.

    Args:
        J: Jacobian of the task (batch, m, nv).
        mass: 𝓜 (batch, nv, nv).
        scale: What makes all rows speeds (m,).
        threshold: Part of the largest singular value below which directions fade out.
        reach: Of the mechanism at the nodes of the task [m].
    """
    u, sigma, v_star = np.linalg.svd(J * scale[:, None], full_matrices=False)
    largest = np.maximum(sigma[:, :1], SHORT * reach)
    lost = sigma <= np.maximum(TOLERANCE * largest, ROUNDING * reach)
    share = np.where(lost, 0.0, smooth(sigma / (threshold * largest)))
    G = np.linalg.solve(np.linalg.cholesky(mass), np.swapaxes(v_star, -1, -2))
    middle = in_part(np.swapaxes(G, -1, -2) @ G, share)
    outer = scale[:, None] * u / np.where(lost, np.inf, sigma)[:, None, :]
    return np.asarray(outer @ middle @ np.swapaxes(outer, -1, -2), dtype=np.float64)


def faded_space(mech: Mechanism, q: Array, space: TaskSpace, threshold: float | None) -> TaskSpace:
    """A task space (batch) with Λ and J̄ as directions on their way out leave them.

    Args:
        mech: The mechanism.
        q: Joint positions (batch, nq) [m or rad].
        space: The task space in these states.
        threshold: See `fading_inertia`; None for the space as it is.
    """
    found, J = twin(mech, space.tasks), space.jacobian
    if threshold is None or not _fades(found, J, threshold):
        return space
    mass = mass_matrix(mech, q)
    inertia = _inertia(found, J, mass, threshold)
    response = np.linalg.solve(mass, np.swapaxes(J, -1, -2))  # 𝓜⁻¹ J*
    return replace(space, inertia=inertia, consistent_inverse=response @ inertia)


def faded_torque(
    mech: Mechanism,
    q: Array,
    v: Array,
    task: Task,
    acceleration: Array,
    tau0: Array,
    threshold: float | None,
) -> Array | None:
    """`task_torque` with such a Λ: τ₀ + J* Λ (ẍ - γ - J 𝓜⁻¹ (τ₀ - C)).

    None where no direction is on its way out, and for a threshold of None.
    """
    if threshold is None:
        return None
    found, J = twin(mech, task), task_jacobian(mech, q, task)
    if not _fades(found, J, threshold):
        return None
    single, q, (v, tau0) = states(mech, q, v=v, tau0=tau0)
    J, mass = J.reshape(len(q), found.size, mech.nv), mass_matrix(mech, q)
    drive = (tau0 - bias_force(mech, q, v))[..., None]
    moved = (J @ np.linalg.solve(mass, drive))[..., 0]
    missing = acceleration - task_bias(mech, q, v, task) - moved
    force = _inertia(found, J, mass, threshold) @ missing[..., None]
    tau = tau0 + (np.swapaxes(J, -1, -2) @ force)[..., 0]
    return tau[0] if single else tau


def _fades(found: Twin, J: Array, threshold: float) -> bool:
    """Whether some direction of the tasks is on its way out in one of the states."""
    if not J.size:
        return False
    length = found.length()
    sigma = np.linalg.svd(J * found.scale(length)[:, None], compute_uv=False)
    edge = threshold * np.maximum(sigma[..., 0], SHORT * length)
    return bool((sigma[..., -1] < edge).any())


def _inertia(found: Twin, J: Array, mass: Array, threshold: float) -> Array:
    length = found.length()
    return fading_inertia(J, mass, found.scale(length), threshold, length)


def in_part(Omega: Array, share: Array) -> Array:
    """The inverse of A* A (batch, k, k) where shares are 1, without rows where they are 0."""
    weight, eye = np.sqrt(share), np.eye(share.shape[-1])
    own = np.diagonal(Omega, axis1=-2, axis2=-1) * (1.0 - share)
    K = weight[:, :, None] * Omega * weight[:, None, :] + own[:, :, None] * eye
    solved = np.linalg.solve(K, weight[:, :, None] * eye)
    return np.asarray(weight[:, :, None] * solved, dtype=np.float64)
