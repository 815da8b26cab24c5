"""Channels of a batch of motions: what can be kept of them, computed from their records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

from linkwise.codegen.scalar import parameters as of_mechanism
from linkwise.dynamics import center_of_mass, energy, forward_kinematics, node_velocity
from linkwise.dynamics.quantity import expression
from linkwise.errors import ModelError, unknown_name
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.pipeline import compile
from linkwise.simulation.integrators.command import INTERNAL
from linkwise.simulation.rollout_input import check_controller, commands, joint_forces
from linkwise.simulation.rollout_result import Rollout
from linkwise.spatial.array import Array
from linkwise.study.held import at_records

LARGEST = 1e60
"""Of positions and velocities of which channels are computed: their products are finite."""

CHANNELS = ("q", "v", "tau", "contact_forces", "penetration", "slip", "residual", "center_of_mass")
PLACES = ("position", "rotation", "velocity")
ENERGIES = ("energy.kinetic", "energy.potential", "energy.total")
AXES = ("x", "y", "z")
MASSES = ("inertia", "payload")
"""Parameters of a rollout that have masses."""


class Look:
    """Channels of a batch of motions, computed from the records on demand."""

    def __init__(self, runs: Rollout, options: Mapping[str, Any]) -> None:
        self.runs, self.options = runs, options
        self.q, self.v = (np.asarray(_here(x)) for x in (runs.q, runs.v))

    def channel(self, name: str) -> tuple[Array, tuple[str, ...]]:
        """Values (cases, k, n) and labels.

        Raises:
            UnknownNameError: There is no such channel; names the near ones.
        """
        mech, (kind, _, node) = self.runs.mech, name.partition(":")
        if name in ("q", "v"):
            labels = mech.coordinate_names if name == "q" else mech.velocity_names
            return (self.q if name == "q" else self.v), labels
        if name == "tau" and self.runs.tau is not None:
            return self._planned(self.runs.tau), mech.velocity_names
        if name == "tau":
            return self._over_states(self._forces), mech.velocity_names
        if kind == "position" and node:
            return self._over_states(lambda q, v: forward_kinematics(mech, q, node).p), AXES
        if kind == "rotation" and node:
            nine = tuple(f"{a}{b}" for a in AXES for b in AXES)
            turned = self._over_states(
                lambda q, v: forward_kinematics(mech, q, node).rot.reshape(-1, 9)
            )
            return turned, nine
        if kind == "velocity" and node:
            labels = tuple(f"{a}{b}" for a in "wv" for b in AXES)
            return self._over_states(lambda q, v: node_velocity(mech, q, v, node)), labels
        if name == "center_of_mass":
            return self._over_states(lambda q, v: self._center(q)), AXES
        if name in ENERGIES:
            return self._over_states(lambda q, v: self._energy(q, v, name)), ("",)
        shown = getattr(self.runs, name, None) if name in CHANNELS else None
        if shown is not None:
            array = np.asarray(_here(shown))
            flat = array.reshape(*array.shape[:2], -1)
            return flat, tuple(str(i) for i in range(flat.shape[2]))
        known = [x for x in CHANNELS if getattr(self.runs, x, True) is not None]
        known += [f"{x}:{n.name}" for x in PLACES for n in mech.nodes] + list(ENERGIES)
        raise unknown_name("channel", name, known, owner=f"motions of {mech.name!r}")

    def _over_states(self, function: Callable[[Array, Array], Array]) -> Array:
        """A function of states (n, nq), (n, nv) at all records.

        NaN where the state is lost, or beyond `LARGEST` on its way there.
        """
        mech, shape = self.runs.mech, self.q.shape[:2]
        q, v = self.q.reshape(-1, mech.nq), self.v.reshape(-1, mech.nv)
        fine: Any = (np.abs(q) < LARGEST).all(axis=1) & (np.abs(v) < LARGEST).all(axis=1)
        if not fine.all():
            q = np.where(fine[:, None], q, mech.neutral())
            v = np.where(fine[:, None], v, 0.0)
        result = np.asarray(function(q, v), np.float64).reshape(len(q), -1)
        result = result if fine.all() else np.where(fine[:, None], result, np.nan)
        return result.reshape(*shape, -1)

    def _planned(self, tau: Array) -> Array:
        """Joint forces (cases, k, nv) that a planner begins to hold at each record.

        The rollout shows those before each record. The last one begins no step, and has those
        before it.
        """
        if np.rint(np.diff(np.asarray(self.runs.t)) / self.runs.step).max(initial=1.0) > 1.0:
            raise ModelError(
                "'tau' of a receding horizon is known where every step is recorded; leave out "
                "record_every."
            )
        return np.concatenate([tau[:, 1:], tau[:, -1:]], axis=1)

    def _forces(self, q: Array, v: Array) -> Array:
        """Joint forces at records: those given, or of the law."""
        law, goal = check_controller(self.options.get("controller"))
        if law is None:
            tau = joint_forces(self.runs.mech, self.options.get("tau"))
            return self._held(tau, self.runs.mech.nv)
        held = commands(law, goal, self.options.get("inputs"))
        given = {"q": q, "v": v}
        for name in law.kernel.arguments:
            if name not in given:
                row = np.asarray(_here(held[INTERNAL if name == "tau" else name]))
                given[name] = self._held(row, law.inputs[name].shape[-1])
        result: Any = law.kernel(*[given[name] for name in law.kernel.arguments])
        return cast("Any", result)["torque"] if isinstance(result, dict) else result

    # ------------------------------------------------------- channels that depend on inertia

    def _given(self, kinds: tuple[str, ...]) -> dict[str, Array]:
        """Numbers of the mechanism that were given, for all states or (states, n), by name."""
        given = dict[str, Array]()
        parameters = cast("Mapping[str, Any]", self.options.get("parameters") or {})
        for name, row in parameters.items():
            if name.partition(":")[0] in kinds:
                array = np.asarray(_here(row), np.float64)
                plain = array.ndim == 1
                given[name] = array if plain else self._held(array, array.shape[-1])
        return given

    def _energy(self, q: Array, v: Array, name: str) -> Array:
        mech, given = self.runs.mech, self._given((*MASSES, "gravity", "armature"))
        if given:
            kernel = _energies(mech, tuple(given))
            both = kernel(*[({"q": q, "v": v} | given)[x] for x in kernel.arguments])
            kinetic, potential = both["kinetic"], both["potential"]
        else:
            plain = energy(mech, q, v)
            kinetic, potential = np.asarray(plain.kinetic), np.asarray(plain.potential)
        kinetic, potential = kinetic.reshape(-1), potential.reshape(-1)
        return {"kinetic": kinetic, "potential": potential}.get(name[7:], kinetic + potential)

    def _center(self, q: Array) -> Array:
        """The centre of mass: m c is the potential energy in unit gravity along each axis."""
        mech, given = self.runs.mech, self._given(MASSES)
        if not given:
            return center_of_mass(mech, q)
        kernel = _fall(mech, (*given, "gravity"))
        each = list[Array]()
        for axis in np.eye(3):
            arrays = {"q": q, "gravity": -axis} | given
            each.append(kernel(*[arrays[x] for x in kernel.arguments]).reshape(-1))
        total = np.full(1, mech.total_mass)
        for name, numbers in given.items():  # the first number of each ten is a mass
            nominal = of_mechanism.nominal(mech, name)
            total = total + (numbers - nominal)[..., :: of_mechanism.INERTIA].sum(axis=-1)
        return np.stack(each, axis=1) / total[:, None]

    # -------------------------------------------------------------------------------- inputs

    def _held(self, row: Array, size: int) -> Array:
        """An input of the rollout at all records (cases times records, n)."""
        steps = np.rint(np.asarray(self.runs.t) / self.runs.step).astype(np.int64)
        return at_records(row, steps, len(self.q), size).reshape(-1, size)


@once_per_mechanism
def _energies(mech: Mechanism, parameters: tuple[str, ...]) -> Any:
    """Kinetic and potential energy as one kernel that takes numbers of the mechanism."""
    both = {x: expression(f"{x}_energy") for x in ("kinetic", "potential")}
    return compile(both, mech, parameters=parameters)


@once_per_mechanism
def _fall(mech: Mechanism, parameters: tuple[str, ...]) -> Any:
    """Potential energy alone, likewise."""
    return compile(expression("potential_energy"), mech, parameters=parameters)


def _here(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else array
