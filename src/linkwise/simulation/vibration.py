"""Natural vibrations of a mechanism about a posture: frequencies, shapes, and motions to look at.

    δv̇ = ∂v̇/∂q δq,      ∂v̇/∂q s = -ω² s

with springs, gravity and loops as in `lw.linearize`, without dampers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.arguments import number
from linkwise.dynamics.inverse_dynamics import inverse_dynamics
from linkwise.dynamics.joint_force import passive_force
from linkwise.dynamics.kernels import check_mechanism, tree_of
from linkwise.errors import ModelError, ShapeError
from linkwise.model.lumps import lump_poses
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.linearize import linearize
from linkwise.spatial.array import Array, ArrayLike

STILL = 1e-9
"""ω² below this part of the largest: the mechanism moves without vibrating."""

PICTURES, PERIOD = 48, 2.0
"""Pictures of one period, and its length [s] where a vibration is played: slowly."""


@dataclass(frozen=True, eq=False)
class Vibration:
    """One natural vibration about a posture. `lw.view`, `lw.viewer.export_html` and others play it.

    Attributes:
        mech: The mechanism.
        frequency: Without damping [Hz]; `nan` where the posture is unstable in this direction.
        rate: How fast the displacement grows [1/s] where it is unstable; else zero.
        shape: The displacement as a velocity held for one second (nv,); the largest displacement of
            a body or a lump is a tenth of the mechanism's size.
        t: Times of a slow motion picture, one period in 2 s (k,) [s].
        q: Joint positions of that picture (k, nq); loops are closed to first order.
    """

    mech: Mechanism
    frequency: float
    rate: float
    shape: Array
    t: Array
    q: Array

    def __repr__(self) -> str:
        if self.rate:
            return f"<Vibration of {self.mech.name!r}: unstable, {self.rate:.4g} 1/s>"
        return f"<Vibration of {self.mech.name!r}: {self.frequency:.4g} Hz>"


def vibrations(
    mech: Mechanism, q: ArrayLike | None = None, *, size: float = 0.1
) -> tuple[Vibration, ...]:
    """The natural vibrations of a mechanism that is held at rest, the slowest first.

    Springs of hinges, modes of flexible bodies, gravity and loops count; dampers do not. Joint
    forces hold the posture and stay as they are. Motions without a restoring force are left out.

    Args:
        q: The posture (nq,) [m or rad]; default: the neutral one.
        size: How far the motions to look at go, as a part of the mechanism's size.
    """
    check_mechanism(mech)
    size = number(size, "size", above=0.0)
    posture = mech.neutral() if q is None else mech.check_q(q)
    if posture.ndim != 1:
        raise ShapeError(f"q has shape {posture.shape}; vibrations are about one posture.")
    still = np.zeros(mech.nv)
    weight = inverse_dynamics(tree_of(mech), posture, still, still)
    hold = weight - passive_force(mech, posture, still)
    A = linearize(mech, posture, still, hold).A
    eigen = np.linalg.eig(A[mech.nv :, : mech.nv])
    values, turning = np.real(eigen[0]), np.imag(eigen[0])
    shapes = np.real(eigen[1])
    largest = max(float(np.abs(values).max(initial=0.0)), 1e-300)
    keep = np.flatnonzero(np.abs(values) > STILL * largest)
    if float(np.abs(turning[keep]).max(initial=0.0)) > 1e-6 * largest:
        raise ModelError(
            f"{mech.name!r} has no natural vibrations here: its forces have no potential."
        )
    order = keep[np.argsort(-values[keep])]
    return tuple(_vibration(mech, posture, float(values[i]), shapes[:, i], size) for i in order)


def _vibration(mech: Mechanism, q: Array, value: float, shape: Array, size: float) -> Vibration:
    """The vibration with -ω² = value."""
    before = _points(mech, q)
    extent = (
        float(np.linalg.norm(np.ptp(np.concatenate([before, np.zeros((1, 3))]), axis=0))) or 1.0
    )
    # The displacement is not linear in the shape; a small step has the slope.
    small = 1e-6 / max(float(np.abs(shape).max()), 1e-300)
    moved = np.linalg.norm(_points(mech, mech.integrate(q, small * shape)) - before, axis=-1).max()
    shape = shape * (size * extent * small / moved if moved > 1e-15 * extent else 1.0)
    t = np.linspace(0.0, PERIOD, PICTURES + 1)
    path = np.stack([mech.integrate(q, float(np.sin(2.0 * np.pi * x / PERIOD)) * shape) for x in t])
    rate = float(np.sqrt(max(value, 0.0)))
    frequency = float("nan") if rate else float(np.sqrt(-value) / (2.0 * np.pi))
    return Vibration(mech, frequency, rate, shape, t, path)


def _points(mech: Mechanism, q: Array) -> Array:
    """Bodies, their centres of mass, and lumps in the world (n, 3)."""
    poses = mech.poses(q)
    lumps = [pose.p for _, pose in lump_poses(mech, q, poses)]
    masses = [poses[k].apply(mech.inertias[k].com) for k in range(mech.n_bodies)]
    return np.stack([*np.asarray(poses.p), *masses, *lumps])
