"""Motions whose joint forces come from a plan that is made anew in each step of the kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from linkwise.codegen.stepping.kernel import RolloutKernel
from linkwise.codegen.stepping.stepping import Stepping
from linkwise.errors import ModelError, ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.rollout_input import mechanism_numbers, shaped
from linkwise.simulation.rollout_kernel import motion_of
from linkwise.spatial.array import Array, ArrayLike

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


@dataclass(frozen=True, slots=True, eq=False)
class PlannedMotion:
    """What a rollout with a planner runs.

    Attributes:
        kernel: The kernel.
        start: q and v at the beginning (batch, nq + nv).
        held: Its inputs by name.
        step: Length of a step [s].
        single: Whether there is one motion.
    """

    kernel: RolloutKernel
    start: Array
    held: dict[str, Array]
    step: float
    single: bool


def planned_motion(
    mech: Mechanism,
    planner: Planner,
    q: ArrayLike,
    v: ArrayLike | None,
    *,
    step: float,
    integrator: str,
    passive: bool,
    parameters: Mapping[str, ArrayLike] | None,
) -> PlannedMotion:
    """The kernel of a motion and its inputs; the arguments are those of `lw.rollout`."""
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
    numbers = mechanism_numbers(mech, parameters, ())
    starts = mech.check_q(q), mech.check_v(np.zeros(mech.nv) if v is None else v)
    held = shaped(dict(numbers), {x: a.shape[-1] for x, a in numbers.items()}, 1, starts, [])
    if any(x.ndim > 1 and x.shape[-2] > 1 for x in held.values()):
        raise ShapeError("parameters of motions with a receding horizon cannot change over time.")
    sizes = {len(x) for x in starts if x.ndim == 2} | {len(x) for x in held.values() if x.ndim == 3}
    sizes = sizes - {1} or sizes or {1}
    if len(sizes) > 1:
        raise ShapeError(f"q, v and parameters have batches of {sorted(sizes)}; they must agree.")
    batch = sizes.pop()
    start = np.concatenate([np.broadcast_to(x, (batch, x.shape[-1])) for x in starts], axis=1)
    given, content = planner.planned_for(mech)
    names = tuple(numbers)
    segments, plain = motion_of(
        mech, integrator, with_passive=passive, itemsize=8, parameters=names, contacts=(),
        actuated=False,
    )  # fmt: skip
    kernel = RolloutKernel(
        mech, integrator, lambda: planner.compiled_into(segments()), ("planned", *plain, content)
    )
    single = all(x.ndim == 1 for x in starts) and all(x.ndim < 3 for x in held.values())
    return PlannedMotion(kernel, np.array(start), {**held, **given}, step, single)
