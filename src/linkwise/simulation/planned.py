"""Motions whose joint forces come from a plan that is made anew in each step of the kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from linkwise.codegen.stepping.stepping import Stepping
from linkwise.errors import ModelError, ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

WORKS = ("euler", "rk4", "rk4_mujoco")
"""Integrators of such motions."""


@runtime_checkable
class Planner(Protocol):
    """A controller that can be compiled into the steps of a motion."""

    @property
    def step(self) -> float:
        """Length of a step of the plan [s]."""
        ...

    @property
    def description(self) -> dict[str, Any]:
        """Everything that its joint forces depend on, for the digest of a study."""
        ...

    def compiled_into(self, stepping: Stepping) -> Stepping:
        """The step with the planner in front, which gives the joint forces."""
        ...

    def planned_for(self, mech: Mechanism) -> tuple[dict[str, Array], Any]:
        """Its numbers by the names of registers, and what its statements depend on.

        Raises ModelError for another mechanism.
        """
        ...


def check_planner(
    planner: Planner, integrator: str, step: float, given: Mapping[str, Any], plain: bool
) -> None:
    """Raise ModelError for a rollout with a planner and what does not work with it.

    Args:
        step: Length of a step [s].
        given: Arguments that have to be None, by name.
        plain: Whether it runs on the processor in float64.
    """
    refused = [name for name, x in given.items() if x is not None]
    refused += [] if plain else ["target or dtype"]
    if refused:
        raise ModelError(
            f"{', '.join(refused)} was given together with a receding horizon, which a rollout "
            "runs on the CPU in float64, and which gives the joint forces itself."
        )
    if integrator not in WORKS:
        raise ModelError(
            f"integrator={integrator!r} was given together with a receding horizon; use one of "
            f"{', '.join(map(repr, WORKS))}."
        )
    if step > planner.step * (1.0 + 1e-9):
        raise ModelError(
            f"step={step:g} is longer than a step of the plan, {planner.step:g} s; a tick moves "
            "the plan on by one at most. Shorten the step of the rollout."
        )


def planner_inputs(
    planner: Planner, mech: Mechanism, parameters: Mapping[str, Array]
) -> dict[str, Array]:
    """The numbers of a planner for a kernel, by the names of registers.

    Raises:
        ModelError: It belongs to another mechanism.
        ShapeError: Parameters change over time.
    """
    if any(x.ndim > 1 and x.shape[-2] > 1 for x in parameters.values()):
        raise ShapeError("parameters of motions with a receding horizon cannot change over time.")
    return planner.planned_for(mech)[0]
