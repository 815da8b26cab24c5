"""Cross-validation: each part of the measurements is predicted from the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.arguments import count
from linkwise.dynamics.kernels import acting, check_mechanism, require_open, tree_of
from linkwise.errors import ModelError
from linkwise.identification.fit import (
    complete_samples,
    forces_from_outside,
    identify,
    measured_places,
)
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats


@dataclass(frozen=True, slots=True, eq=False)
class CrossValidation:
    """Errors of predicted joint forces, relative to the spread of the forces.

    Attributes:
        joints: Names of the measured joint velocities.
        error: Error of each part and joint (folds, joints).
        estimate: Base parameters without each part (folds, count).
        names: Their names.
    """

    joints: tuple[str, ...]
    error: Array
    estimate: Array
    names: tuple[str, ...]

    @property
    def spread(self) -> Array:
        """How much the estimates differ between parts (count,): their standard deviation."""
        return np.std(self.estimate, axis=0)

    def __str__(self) -> str:
        lines = [f"{len(self.error)} parts, each predicted from the others"]
        for joint, errors in zip(self.joints, self.error.T, strict=True):
            low, high = 100.0 * errors.min(), 100.0 * errors.max()
            lines.append(f"  {joint}: {low:.2g} to {high:.2g} % of its force")
        return "\n".join(lines)


def cross_validate(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    vdot: ArrayLike,
    tau: ArrayLike,
    *,
    folds: int = 5,
    **options: Any,
) -> CrossValidation:
    """Identify from all parts of the measurements but one, and predict that one; for each part.

    Parts are contiguous, since neighbouring samples of a motion are alike: a random choice would
    validate with what was used.

    Args:
        q: Joint positions (samples, nq) [m or rad].
        v: Joint velocities (samples, nv) [m/s or rad/s].
        vdot: Joint accelerations (samples, nv) [m/s² or rad/s²].
        tau: Measured joint forces (samples, nv) [N or N m].
        folds: Number of parts.
        options: Those of `lw.identify`, forces at nodes included.

    Raises:
        ModelError: Without one part, the others do not show all parameters; says which. Loops.
    """
    parts = count(folds, "folds", least=2)
    check_mechanism(mech)
    loops = options.get("loops", "closed")
    require_open(mech, loops, "cross_validate", "Give loops='open' for the tree.")
    forces, frame = options.pop("forces", None), options.pop("forces_frame", "node")
    if acting(forces):
        tau = floats(tau, "tau") + forces_from_outside(tree_of(mech), q, forces, frame)
    tree = tree_of(mech)
    places = measured_places(tree, options.get("measured"))
    arrays, _ = complete_samples(tree, q, v, vdot, tau, places=places)
    samples = len(arrays[0])
    if samples < 2 * parts:
        raise ModelError(f"{samples} samples are too few for {parts} parts.")
    errors, estimates, fit = list[list[float]](), list[Array](), None
    for chosen in np.array_split(np.arange(samples), parts):
        rest = np.setdiff1d(np.arange(samples), chosen)
        fit = identify(mech, *(x[rest] for x in arrays), **options)
        error = fit.validate(*(x[chosen] for x in arrays))
        errors.append(list(error.values()))
        estimates.append(fit.estimate)
    assert fit is not None
    return CrossValidation(fit.joints, np.array(errors), np.stack(estimates), fit.names)
