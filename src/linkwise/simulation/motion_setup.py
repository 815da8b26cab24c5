"""What acts on a mechanism that moves: checked once for rollouts, gradients and simulators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.arguments import count, itemsize, number
from linkwise.codegen import arrays
from linkwise.dynamics.kernels import Loops, check_mechanism, is_closed, tree_of
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.simulation import motion_parameters
from linkwise.simulation.episode import Episode, checked_noise, checked_stop
from linkwise.simulation.implicit.equality import check_beginning
from linkwise.simulation.implicit.ground import ContactPoint, Ground
from linkwise.simulation.implicit.touching import contact_points
from linkwise.simulation.inactive import inactive
from linkwise.simulation.motion_request import MotionRequest
from linkwise.simulation.observation import Observations, checked_observations
from linkwise.simulation.rollout_input import FeedbackLaw, checked_law, mechanism_numbers
from linkwise.simulation.stiff_drive import warn_if_too_stiff
from linkwise.spatial.array import Array, ArrayLike

LARGEST_SEED = (1 << 63) - 1
"""Of random numbers."""


@dataclass(frozen=True, slots=True)
class MotionSetup:
    """What moves, and what acts on it.

    Attributes:
        request: The request for its kernel.
        target: "cpu" or "cuda".
        step: Length of a step [s].
        held: Parameters of the mechanism and deviations of noise, by the names of inputs.
        not_modelled: What the mechanism and its file have that does not act, one line each.
    """

    request: MotionRequest
    target: str
    step: float
    held: dict[str, Array]
    not_modelled: tuple[str, ...]

    def check_beginning(self, q: Any, v: Any) -> None:
        """Raise ClosureError if loops are open at the beginning; of states on a GPU, nothing."""
        request = self.request
        if is_closed(request.mech) and not any(map(arrays.is_on_gpu, (q, v))):
            check_beginning(request.mech, (q, v), request.itemsize)

    def warn_if_too_stiff(self, q: Any) -> None:
        """Warn if dampers and springs are too stiff for the step at the first of some positions."""
        request, damping = self.request, self.held.get("damping")
        if not request.passive or arrays.is_on_gpu(q):
            return
        if damping is not None:  # the largest of each drive
            damping = damping.reshape(-1, damping.shape[-1]).max(axis=0, initial=0.0)
        first = np.reshape(q, (-1, request.mech.nq))[:1].ravel()
        warn_if_too_stiff(request.mech, first, self.step, request.integrator, damping)


def motion_setup(
    mech: Mechanism,
    *,
    step: float,
    integrator: str,
    target: str,
    dtype: Any,
    passive: bool,
    actuated: bool,
    contacts: Ground | Sequence[ContactPoint] | None,
    loops: Loops,
    parameters: Mapping[str, ArrayLike] | None,
    noise: Mapping[str, Any] | None,
    stop: Mapping[str, Any] | None,
    sweeps: int | None,
    law: FeedbackLaw | None = None,
    observations: Observations | None = None,
) -> MotionSetup:
    """The setup of a motion; the arguments are those of `lw.rollout` and `lw.Simulator`.

    Args:
        mech: The mechanism.
        actuated: Whether its actuators act.

    Raises:
        ModelError: An unknown integrator or target, or an invalid number.
    """
    check_mechanism(mech)
    mech = mech if is_closed(mech, loops) else tree_of(mech)
    if target not in ("cpu", "cuda"):
        raise ModelError(f"target={target!r} is unknown; motions run on 'cpu' or 'cuda'.")
    size, step = itemsize(dtype), number(step, "step", above=0.0)
    points = contact_points(mech, contacts, integrator)
    if sweeps is not None and integrator != "implicit":
        raise ModelError(
            f"sweeps was given with integrator={integrator!r}, which solves for no impulses; use "
            "'implicit'."
        )
    most = None if sweeps is None else count(sweeps, "sweeps", least=1)
    if integrator == "variational" and (actuated or noise):
        what = "controls were" if actuated else "noise was"
        why = "actuators do not act" if actuated else "it does not act"
        raise ModelError(
            f"{what} given with integrator='variational', where {why}; use 'rk4', 'euler', "
            "'rk4_mujoco' or 'implicit'."
        )
    numbers = mechanism_numbers(mech, parameters, points)
    for name, values in numbers.items():
        if name in motion_parameters.ACTING:
            motion_parameters.check(
                mech, name, values, integrator=integrator, contacts=points, actuated=actuated,
                with_passive=passive,
            )  # fmt: skip
    seen = () if observations is None else checked_observations(mech, observations, itemsize=size)
    chances, deviations = checked_noise(mech, noise, step)
    request = MotionRequest(
        mech,
        integrator,
        passive,
        size,
        tuple(numbers),
        checked_law(mech, integrator, law),
        points,
        actuated,
        Episode(chances, checked_stop(mech, stop, size)),
        most,
        observations=seen,
    )
    inert = inactive(mech, integrator, passive, actuated, contacts is None, bool(points))
    return MotionSetup(request, target, step, numbers | deviations, inert)
