"""Sensors: formulas of the state, with noise and perhaps a bias that drifts.

    y = h(q, v, v̇, τ) + bias + noise

A sensor is written as a function of `Sensed`, on graph nodes, as hinges and formulas are: what it
computes becomes a part of the kernel of a filter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algebra import B, H, J, a, phi, v as v_of, vdot as vdot_of
from linkwise.algebra.expr import Expr
from linkwise.algebra.space import ONE
from linkwise.arguments import count, flag, name as checked_name
from linkwise.dynamics.closure import closure_nodes
from linkwise.dynamics.quantity import expression
from linkwise.errors import ExpressionError, ModelError, ShapeError, unknown_name
from linkwise.filtering.allowed import whole_mechanism
from linkwise.filtering.closing_force import closing_forces, load_of_hinges
from linkwise.filtering.motion import Dynamics, State
from linkwise.filtering.tangent import Slopes, of_hinge
from linkwise.model.hinges.modified import is_plain
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import ArrayLike, floats
from linkwise.spatial.choice import root, where
from linkwise.spatial.vector import cross
from linkwise.sweeps.result_part import choice

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

SPECIFIC = B.T @ phi.T @ (H.T @ vdot_of + a)
"""Spatial accelerations of nodes relative to free fall, in their axes."""


class Sensed:
    """What the formula of a sensor reads: the state, and values of expressions at it.

    Attributes:
        mech: The mechanism.
        q: Joint positions (nq,).
        v: Joint velocities (nv,).
        tau: Joint forces (nv,) that acted in the step before.
        pushed: Nodes with unknown forces.
        f: These forces in world axes (6 each).
        inputs: Further inputs of the sensor, by name.
    """

    def __init__(
        self,
        at: Writing,
        state: State,
        dynamics: Dynamics,
        slopes: Slopes | None,
        inputs: dict[str, Any],
    ) -> None:
        self.mech: Mechanism = at.mech
        self.q, self.v, self.tau, self.inputs = state.q, state.v, state.tau, inputs
        self.pushed = dynamics.nodes
        self.f = state.extra[: 6 * len(self.pushed)]
        self._at, self._state, self._dynamics, self._slopes = at, state, dynamics, slopes
        self._vdot: Any = None
        self._lam: Any = None

    @property
    def vdot(self) -> Any:
        """Joint accelerations (nv,), of the joint forces and of forces at nodes."""
        if self._vdot is None:
            self._vdot = self._dynamics.acceleration(self._at, self._state, self._slopes)
        return self._vdot

    @property
    def lam(self) -> Any:
        """Forces λ of loops and couplings along their rows: `lw.loops.constraint_forces`."""
        if self._lam is None:
            self._lam = closing_forces(self._at, self._state, self._dynamics, self.vdot)
        return self._lam

    def value(self, expr: Expr, *, nodes: Sequence[str] = (), rows: Any = None) -> Any:
        """The value of an expression at the state.

        Args:
            expr: The expression, of q, v, vdot, tau, and the forces lam of loops and couplings.
            nodes: Nodes of the space NODE. With the closure map Q, those of the loops come first
                (`lw.loops.closure_nodes`).
            rows: As in `lw.compile`.
        """
        like: dict[str, Any] = {"nodes": tuple(nodes), "chosen": choice(rows, None, False)}
        request = replace(self._at.request, quantity=(expr,), parameters=(), names=(), **like)
        return self._at.values([request], _Given(self, tuple(nodes)))[0]


class _Given(Mapping[str, Any]):
    """Inputs of expressions at a state; v̇ and λ are computed when they are needed."""

    def __init__(self, of: Sensed, nodes: tuple[str, ...]) -> None:
        self._of, self._nodes = of, nodes

    def __getitem__(self, name: str) -> Any:
        loops = closure_nodes(self._of.mech)
        if name == "f" and self._nodes == (*loops, *self._of.pushed):  # no other forces on loops
            return np.concatenate([np.zeros(6 * len(loops), dtype=object), self._of.f])
        return getattr(self._of, name)

    def __iter__(self) -> Iterator[str]:
        closed = bool(self._of.mech.loops or self._of.mech.couplings)
        return iter(("q", "v", "tau", "vdot", "f", *(("lam",) if closed else ())))

    def __len__(self) -> int:
        return sum(1 for _ in iter(self))

    def __contains__(self, name: object) -> bool:
        return name in tuple(self)


@dataclass(frozen=True, slots=True)
class Sensor:
    """A measurement of the state. The functions of `lw.filtering` make the usual ones.

    Attributes:
        name: Its name among the measurements.
        size: Numbers in one measurement.
        write: Its formula: takes the state s and the options, returns an array (size,). s.q, s.v,
            s.vdot and s.tau are arrays of the joints, `s.value(expr, nodes=...)` is the value of an
            expression. A function of a module, so that kernels can be kept on disk.
        noise: Standard deviation of its noise, one number or one for each entry, in the unit of the
            measurement.
        bias: How fast its bias drifts: standard deviation after one second; 0 for a constant one.
            None for a sensor without bias.
        bias_deviation: Standard deviation of the bias in the beginning; default: 100 times `noise`.
        options: What else the formula depends on.
        inputs: Names and lengths of further inputs of the kernel, which the formula finds in
            `s.inputs`.
        separate: Whether the entries are independent sensors, each with a gate.
        reading: Entries of q that are measured on their manifold, such as quaternions: the
            measurement has these numbers, and `size` is that of its error, a displacement. The
            formula gives the displacement to the state from `s.inputs[sensor.read]`.
    """

    name: str
    size: int
    write: Callable[..., Any]
    noise: tuple[float, ...] | float
    bias: tuple[float, ...] | float | None = None
    bias_deviation: tuple[float, ...] | float | None = None
    options: tuple[Any, ...] = ()
    inputs: tuple[tuple[str, int], ...] = ()
    separate: bool = False
    reading: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        checked_name(self.name, "name of a sensor")
        if not callable(self.write):
            raise ModelError(f"write of sensor {self.name!r} is {self.write!r}; give a function.")
        count(self.size, f"size of sensor {self.name!r}", least=1)
        flag(self.separate, "separate")
        self._set("noise", self._each(self.noise, "noise", positive=True))
        if self.bias is not None:
            usual = tuple(100.0 * x for x in np.atleast_1d(self.noise).tolist())
            first = usual if self.bias_deviation is None else self.bias_deviation
            self._set("bias", self._each(self.bias, "bias"))
            self._set("bias_deviation", self._each(first, "bias_deviation", positive=True))
        elif self.bias_deviation is not None:
            raise ModelError(f"sensor {self.name!r} has a bias_deviation and no bias; give both.")

    def _set(self, field: str, value: object) -> None:
        object.__setattr__(self, field, value)

    def _each(self, given: Any, what: str, *, positive: bool = False) -> tuple[float, ...]:
        array = floats(given, f"{what} of sensor {self.name!r}")
        if array.shape not in ((), (1,), (self.size,)):
            raise ShapeError(
                f"{what} of sensor {self.name!r} has shape {array.shape}; it must be a number or "
                f"({self.size},)."
            )
        good = np.isfinite(array) & (array > 0.0 if positive else array >= 0.0)
        if not good.all():
            least = "positive" if positive else "zero or positive"
            raise ModelError(f"{what} of sensor {self.name!r} must be finite and {least}.")
        return tuple(float(x) for x in np.broadcast_to(array, (self.size,)))

    @property
    def structure(self) -> Sensor:
        """The same without the numbers that a kernel takes as inputs."""
        bias = None if self.bias is None else 0.0
        return replace(self, noise=1.0, bias=bias, bias_deviation=None if bias is None else 1.0)

    @property
    def read(self) -> str:
        """The input of the kernel for `reading`."""
        return read_name(self.name)

    @property
    def blocks(self) -> list[list[int]]:
        """Entries that are accepted or refused together."""
        entries = list(range(self.size))
        return [[i] for i in entries] if self.separate else [entries]


# -------------------------------------------------------------------------------------- formulas


def _positions(s: Sensed, places: tuple[int, ...]) -> Any:
    return s.q[list(places)]


def _coordinates(s: Sensed, bodies: tuple[int, ...], name: str) -> Any:
    """q ⊖ (what is measured): the innovation 0 - y is the displacement from q to it."""
    read, parts = s.inputs[read_name(name)], list[Any]()
    for k in bodies:
        hinge, q = s.mech.bodies[k].hinge.hull, s.q[s.mech.q_start[k] : s.mech.q_start[k + 1]]
        given, read = read[: hinge.nq].copy(), read[hinge.nq :]
        if hinge.quaternion is not None:
            four = given[hinge.quaternion]
            square = (four * four).sum()
            given[hinge.quaternion] = four / root(where(square, square, 1.0))
        parts.append(-of_hinge(hinge, q, given))
    return np.concatenate(parts)


def read_name(name: str) -> str:
    """The input of the kernel for what a sensor of this name measures on a manifold."""
    return re.sub(r"\W", "_", name) + "_q"


def _velocities(s: Sensed, places: tuple[int, ...]) -> Any:
    return s.v[list(places)]


def _gyroscope(s: Sensed, node: str) -> Any:
    return s.value(J @ v_of, nodes=[node])[:3]


def _accelerometer(s: Sensed, node: str) -> Any:
    A, V = s.value(SPECIFIC, nodes=[node]), s.value(J @ v_of, nodes=[node])
    return A[3:] + cross(V[:3], V[3:])


def _marker(s: Sensed, node: str) -> Any:
    return s.value(expression("node_poses"), nodes=[node]).reshape(3, 4)[:, 3]


def load(s: Sensed, body: int) -> Any:
    """The formula of load cells."""
    if s.mech.loops:
        nodes = (*closure_nodes(s.mech), *s.pushed)
        return s.value(load_of_hinges(bool(s.pushed)), nodes=nodes)[6 * body : 6 * body + 6]
    name = "hinge_forces_of_motion" + ("_with_forces" if s.pushed else "")
    force = s.value(expression(name, frame="world"), nodes=s.pushed)
    return force[6 * body : 6 * body + 6]


def _expressed(s: Sensed, expr: Expr, nodes: tuple[str, ...]) -> Any:
    return np.asarray(s.value(expr, nodes=nodes), dtype=object).ravel()


# ---------------------------------------------------------------------------------- usual sensors


def encoders(
    mech: Mechanism,
    hinges: Sequence[str] | None = None,
    *,
    noise: ArrayLike,
    bias: ArrayLike | None = None,
    name: str = "encoders",
) -> Sensor:
    """Positions of joints, each an independent sensor.

    Where a named hinge has a quaternion or axes that turn, the measurement is the coordinates of
    the hinges in sequence, and the error is a displacement along the velocities of each
    (of a spherical hinge a rotation vector in its axes). Such a sensor is one: it has one gate.

    Args:
        hinges: Names of hinges; default: all whose coordinates are plain numbers.
        noise: Standard deviation [m or rad], a number or one for each number in the error.
        bias: How far offsets drift in one second [m or rad]; default: no offsets.
        name: Of the sensor.
    """
    whole_mechanism(mech, "encoders")
    bodies = _bodies(mech, hinges)
    if hinges is not None and not all(is_plain(mech.bodies[k].hinge) for k in bodies):
        q, size = mech.q_start, sum(mech.bodies[k].hinge.hull.nv for k in bodies)
        reading = tuple(i for k in bodies for i in range(int(q[k]), int(q[k + 1])))
        options, inputs = (tuple(bodies), name), ((read_name(name), len(reading)),)
        more = options, inputs, False, reading
        return Sensor(name, size, _coordinates, noise, bias, None, *more)  # pyright: ignore
    places = _places(mech, hinges, mech.q_start)
    return Sensor(name, len(places), _positions, noise, bias, None, (places,), separate=True)  # pyright: ignore


def tachometers(
    mech: Mechanism,
    hinges: Sequence[str] | None = None,
    *,
    noise: ArrayLike,
    name: str = "tachometers",
) -> Sensor:
    """Velocities of joints, each an independent sensor.

    Args:
        hinges: Names of hinges; default: all whose coordinates are plain numbers.
        noise: Standard deviation [m/s or rad/s], a number or one for each velocity.
        name: Of the sensor.
    """
    whole_mechanism(mech, "tachometers")
    places = _places(mech, hinges, mech.v_start)
    return Sensor(name, len(places), _velocities, noise, None, None, (places,), separate=True)  # pyright: ignore


def gyroscope(
    node: str, *, noise: ArrayLike, bias: ArrayLike | None = None, name: str | None = None
) -> Sensor:
    """Angular velocity of a node in its axes [rad/s].

    Args:
        node: The node or body.
        noise: Standard deviation [rad/s], a number or (3,).
        bias: How far the bias drifts in one second [rad/s]; default: no bias.
        name: Default: "gyroscope NODE".
    """
    named = name or f"gyroscope {node}"
    return Sensor(named, 3, _gyroscope, noise, bias, None, (_text(node),))  # pyright: ignore


def accelerometer(
    node: str, *, noise: ArrayLike, bias: ArrayLike | None = None, name: str | None = None
) -> Sensor:
    """Acceleration of a node less gravity, in its axes [m/s²]: at rest it shows 9.81 upwards.

    It depends on v̇ = 𝓜⁻¹ (τ − C), with the joint forces of the step before the measurement.

    Args:
        node: The node or body.
        noise: Standard deviation [m/s²], a number or (3,).
        bias: How far the bias drifts in one second [m/s²]; default: no bias.
        name: Default: "accelerometer NODE".
    """
    named = name or f"accelerometer {node}"
    return Sensor(named, 3, _accelerometer, noise, bias, None, (_text(node),))  # pyright: ignore


def marker(
    node: str, *, noise: ArrayLike, bias: ArrayLike | None = None, name: str | None = None
) -> Sensor:
    """Position of a node in the world [m], as a camera sees it.

    Args:
        node: The node or body.
        noise: Standard deviation [m], a number or (3,).
        bias: How far the bias drifts in one second [m]; default: no bias.
        name: Default: "marker NODE".
    """
    return Sensor(name or f"marker {node}", 3, _marker, noise, bias, None, (_text(node),))  # pyright: ignore


def load_cell(
    mech: Mechanism,
    body: str,
    *,
    noise: ArrayLike,
    bias: ArrayLike | None = None,
    name: str | None = None,
) -> Sensor:
    """Moment and force on a body through its hinge, in its axes [N m, N].

    It shows the inertia and weight of everything beyond the hinge, and the forces of loops and
    couplings on it, as `lw.hinge_forces` does: where rows of loops are redundant, the least forces.

    Args:
        body: The body behind the load cell.
        noise: Standard deviation [N m, N], a number or (6,).
        bias: How far the bias drifts in one second [N m, N]; default: no bias.
        name: Default: "load cell BODY".
    """
    whole_mechanism(mech, "a load cell")
    place = mech.body_index[mech.body(body).name]
    return Sensor(name or f"load cell {body}", 6, load, noise, bias, None, (place,))  # pyright: ignore


def expression_sensor(
    name: str,
    expr: Expr,
    size: int,
    *,
    noise: ArrayLike,
    bias: ArrayLike | None = None,
    nodes: Sequence[str] = (),
) -> Sensor:
    """The value of an expression of the algebra, a vector.

    Args:
        name: Of the sensor.
        expr: The expression, with one column, such as `J @ v`.
        size: Numbers in its value.
        noise: Standard deviation, a number or (size,).
        bias: How far the bias drifts in one second; default: no bias.
        nodes: Nodes of the space NODE.
    """
    if expr.domain is not ONE:
        raise ExpressionError(
            f"a sensor of {expr} was requested; it is a matrix. Apply it to a vector, like J @ v."
        )
    return Sensor(name, size, _expressed, noise, bias, None, (expr, tuple(nodes)))  # pyright: ignore


def _text(node: object) -> str:
    return checked_name(node, "node")


def _bodies(mech: Mechanism, hinges: Sequence[str] | None) -> list[int]:
    """The bodies on the named hinges; default: on those whose coordinates are plain numbers."""
    known = [body.hinge_name for body in mech.bodies]
    if hinges is None:
        return [k for k, body in enumerate(mech.bodies) if is_plain(body.hinge)]
    out = list[int]()
    for hinge in [hinges] if isinstance(hinges, str) else hinges:
        if hinge not in known:
            raise unknown_name("hinge", hinge, known, owner=f"mechanism {mech.name!r}")
        out.append(known.index(hinge))
    return out


def _places(mech: Mechanism, hinges: Sequence[str] | None, starts: Any) -> tuple[int, ...]:
    out = [i for k in _bodies(mech, hinges) for i in range(int(starts[k]), int(starts[k + 1]))]
    if not out:
        raise ModelError(
            f"{mech.name!r} has no hinge here whose coordinates are plain numbers; name the hinges."
        )
    return tuple(out)
