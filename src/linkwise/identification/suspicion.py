"""Warnings about estimates that a mistake in the data would explain."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from linkwise.errors import TroubleWarning, caller
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

UNEXPLAINED = 0.5
"""Residual of a joint, relative to the spread of its force, above which the model may be wrong."""


FAR = 100.0
"""Factor between measured forces and those of the given numbers beyond which units may be wrong."""


def check_size(mech: Mechanism, joints: Sequence[str], given: Array, measured: Array) -> None:
    """Warn where all forces are by orders larger or smaller than those of the given numbers."""
    sizes = [np.sqrt(np.mean(x**2, axis=0)) for x in (given, measured)]
    some = sizes[0] > 1e-9 * sizes[0].max(initial=0.0)
    if not some.any():
        return
    ratio = sizes[1][some] / sizes[0][some]
    if ratio.min() > FAR or 0.0 < ratio.max() < 1.0 / FAR:
        middle = float(np.exp(np.median(np.log(ratio))))
        warnings.warn(
            f"the measured forces are about {middle:.2g} times those of {mech.name!r} with its own "
            f"numbers, those of {joints[int(np.flatnonzero(some)[0])]!r} among them. Check units: "
            "forces are N m or N, positions rad or m.",
            TroubleWarning,
            stacklevel=caller(),
        )


def check_explained(mech: Mechanism, joints: Sequence[str], noise: Array, spread: Array) -> None:
    """Warn about joints whose forces are not those of this mechanism."""
    error = np.where(spread > 1e-6 * spread.max(), noise / spread, 0.0)
    worst = int(np.argmax(error))
    if error[worst] > UNEXPLAINED:
        warnings.warn(
            f"{mech.name!r} leaves {100.0 * error[worst]:.0f} % of the spread of the force of "
            f"{joints[worst]!r} unexplained. Check units (rad, N m), signs and the order of the "
            "joints, and whether forces act that are not among the parameters.",
            TroubleWarning,
            stacklevel=caller(),
        )


def check_possible(mech: Mechanism, joints: Sequence[str], off: Array, spread: Array) -> None:
    """Warn where forces of a possible mechanism differ, by `off`, from those of the estimate."""
    miss = np.sqrt(np.mean(off**2, axis=0))
    error = np.where(spread > 1e-6 * spread.max(), miss / spread, 0.0)
    worst = int(np.argmax(error))
    if error[worst] > UNEXPLAINED:
        warnings.warn(
            f"inertias, friction and springs that {mech.name!r} can have are far from the estimate:"
            f" the force of {joints[worst]!r} differs by {100.0 * error[worst]:.0f} % of its "
            "spread. Check the signs of the forces, and units (rad, N m).",
            TroubleWarning,
            stacklevel=caller(),
        )
