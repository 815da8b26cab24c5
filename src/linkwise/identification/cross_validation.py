"""Cross-validation: each part of the measurements is predicted from the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.arguments import count
from linkwise.dynamics.kernels import check_mechanism, tree_of
from linkwise.errors import ModelError
from linkwise.identification.fit import identify
from linkwise.identification.samples import complete_samples, known_forces
from linkwise.model.mechanism import Mechanism
from linkwise.model.state import moved_places
from linkwise.spatial.array import Array, ArrayLike


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
        ModelError: Without one part, the others do not show all parameters; says which.
    """
    parts = count(folds, "folds", least=2)
    check_mechanism(mech)
    forces, frame = options.pop("forces", None), options.pop("forces_frame", "node")
    tree, applied = tree_of(mech), options.pop("applied", None)
    load = known_forces(tree, q, applied, forces, frame)
    places = moved_places(tree, options.get("measured"), "measured")
    arrays, _ = complete_samples(tree, q, v, vdot, tau, load, places=places)
    samples = len(arrays[0])
    if samples < 2 * parts:
        raise ModelError(f"{samples} samples are too few for {parts} parts.")
    errors, estimates, first = list[list[float]](), list[Array](), None
    for chosen in np.array_split(np.arange(samples), parts):
        rest = np.setdiff1d(np.arange(samples), chosen)
        *some, load = (x[rest] for x in arrays)
        fit = identify(mech, *some, applied=load, **options)
        *some, load = (x[chosen] for x in arrays)
        error = fit.validate(*some, applied=load)
        first = first or fit
        errors.append(list(error.values()))
        estimates.append(fit.in_terms_of(first))
    assert first is not None
    return CrossValidation(first.joints, np.array(errors), np.stack(estimates), first.names)
