"""Masses and inertias along principal axes, told in numbers and words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.spatial.array import Array
from linkwise.tasks.twin import Twin

ROUNDING, STIFF = 1e-15, 1e-14
"""A response below these parts of its largest entry, or of that of the whole, is called zero."""

UNITS = {"mass along": "kg", "inertia about": "kg m²", "inertia of": ""}


@dataclass(frozen=True, slots=True, eq=False)
class Felt:
    """What is felt along one direction; infinite where nothing gives way. Arrays for a batch.

    Attributes:
        whole: σ_w(Λ_0), of macro and mini together.
        mini: σ_w(Λ_m), of the mini alone on a fixed base.
        held: σ_w of the macro with the mini's joints held.
    """

    whole: float | Array
    mini: float | Array
    held: float | Array

    @property
    def ratio(self) -> float | Array:
        """Whole over mini, never above 1; 0 where the mini is stiff, NaN where the whole is."""
        with np.errstate(invalid="ignore"):
            return np.divide(self.whole, self.mini)


@dataclass(frozen=True, slots=True, eq=False)
class PrincipalInertia:
    """What is felt along, or about, a principal axis of the whole.

    Attributes:
        kind: "mass along", "inertia about", or "inertia of" a joint.
        task: Name of the task, or of the row where it is a joint's.
        axis: The axis (3,), in the axes of the task; None for a joint.
        felt: Of the whole, the mini alone, and the macro with the mini held.
    """

    kind: str
    task: str
    axis: Array | None
    felt: Felt

    def __str__(self) -> str:
        f, unit = self.felt, UNITS[self.kind]
        where = self.task
        if self.axis is not None:
            clean = np.where(np.abs(self.axis) < 5e-4, 0.0, self.axis)
            where = f"({', '.join(f'{x:6.3f}' for x in clean)})"
        share = f"{100.0 * float(f.ratio):.4g} % of the mini alone" if np.isfinite(f.mini) else ""
        alone = f"{f.mini:.4g}" if np.isfinite(f.mini) else "not movable"
        held = f"{f.held:.4g}" if np.isfinite(f.held) else "not movable"
        told = f"{self.kind} {where}: {f.whole:.4g} {unit}".rstrip()
        return f"{told}; mini alone {alone}, mini held {held}{'; ' * bool(share)}{share}"


def felt(whole: Array, mini: Array, held: Array, w: Array) -> Felt:
    """1 / (w* Λ⁻¹ w) of three inverses (..., m, m)."""
    response = np.asarray((whole @ w) @ w)

    def inverse_of(matrix: Array) -> float | Array:
        given = np.asarray((matrix @ w) @ w)
        # What gives way no more than rounding does, of its own terms or of the whole, is stiff.
        own = ROUNDING * np.abs(matrix).max(axis=(-2, -1), initial=0.0)
        moves = given > np.maximum(own, STIFF * response)
        found = np.where(moves, 1.0 / np.where(moves, given, 1.0), np.inf)
        return float(found) if found.ndim == 0 else found

    return Felt(inverse_of(whole), inverse_of(mini), inverse_of(held))


def principal(found: Twin, whole: Array, mini: Array, held: Array) -> tuple[PrincipalInertia, ...]:
    """Each task's rows that move and those that turn, along the principal axes of the whole.

    Axes along which nothing gives way are left out.
    """
    told = list[PrincipalInertia]()
    for i, task in enumerate(found.tasks):
        at = np.arange(found.size)[found.rows(i)]
        if task.kind == "joints":
            for j in range(found.size)[found.rows(i)]:
                one = felt(whole, mini, held, np.eye(found.size)[j])
                told.append(PrincipalInertia("inertia of", found.names[j], None, one))
            continue
        S = task.matrix
        turns = ~np.any(S[:, 3:], axis=1)
        groups = (
            ("mass along", at[~turns], S[~turns, 3:]),
            ("inertia about", at[turns], S[turns, :3]),
        )
        for kind, rows, directions in groups:
            if len(rows) == 0:
                continue
            # Rows S = L Q with orthonormal Q: the response to a unit force along Q* w.
            Q, R = np.linalg.qr(directions.T)
            back = np.linalg.inv(R)  # L⁻* = R⁻¹
            three = [back.T @ x[np.ix_(rows, rows)] @ back for x in (whole, mini, held)]
            for w in np.linalg.eigh(three[0])[1].T:
                axis = Q @ w
                axis = axis * np.sign(axis[np.argmax(np.abs(axis))])
                one = felt(three[0], three[1], three[2], w)
                if np.isfinite(one.whole):
                    told.append(PrincipalInertia(kind, task.name, axis, one))
    return tuple(told)
