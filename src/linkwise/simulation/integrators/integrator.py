"""What is known of a way to go from one state to the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.rates import Acceleration
from linkwise.spatial.array import Array

Step: TypeAlias = Callable[
    [Mechanism, Acceleration, float, Array, Array, float], tuple[Array, Array]
]
"""(q, u) at t + h from the mechanism, accelerations f(t, q, u), t, q, u and h."""


@dataclass(frozen=True, slots=True)
class Integrator:
    """A way to go from one state to the next.

    Attributes:
        name: Its name in `lw.simulate`.
        order: p: halving the step makes errors 2^p times smaller, on quaternions as well.
        step: One step in plain NumPy; None for one that takes no steps of a given length.
        about: What it is, in a few words.
        takes: What its `step` calls f: "acceleration" u̇(t, q, u) of rates, or "force" τ(t, q, v),
            all forces besides gravity, for an integrator that contains the inertia.
        compiled: Whether it can be traced on graph nodes, for rollouts.
        weights: Shares of the step of the last calls of f; with them, work is the sum of the powers
            there.
    """

    name: str
    order: int
    step: Step | None
    about: str
    takes: str = "acceleration"
    weights: tuple[float, ...] = (1.0,)
    compiled: bool = True

    def __str__(self) -> str:
        return f"{self.name}: {self.about}, of order {self.order}"


def integrator(name: object, known: Mapping[str, Integrator]) -> Integrator:
    """The integrator of a name.

    Raises:
        ModelError: The name is unknown; lists the known ones.
    """
    if isinstance(name, str) and name in known:
        return known[name]
    names = ", ".join(repr(x) for x in known)
    if name == "implicit":
        raise ModelError(
            f"integrator='implicit' makes steps in lw.rollout only; use one of {names}."
        )
    raise ModelError(f"integrator={name!r} is unknown; use one of {names}.")
