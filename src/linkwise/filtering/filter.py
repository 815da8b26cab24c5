"""Kalman filters of mechanisms: estimates of the state from measurements, one kernel per tick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.arguments import number
from linkwise.brief import brief
from linkwise.codegen.formula import Formula
from linkwise.dynamics.kernels import written
from linkwise.errors import ModelError, ShapeError, unknown_name
from linkwise.filtering.allowed import allowed, check_obeyed
from linkwise.filtering.sensor import Sensor
from linkwise.filtering.tangent import error_size
from linkwise.filtering.tick import Structure
from linkwise.model.mechanism import Mechanism
from linkwise.pipeline import requested
from linkwise.spatial.array import Array, ArrayLike, floats

if TYPE_CHECKING:
    from linkwise.codegen.c.source import CSource
    from linkwise.filtering.smoother import Filtered


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """What is known of a state, or of a batch of states.

    Attributes:
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
        extra: Forces at nodes, then biases of sensors.
        P: Covariance (n, n) or (batch, n, n) of the error (q, v, extra), along velocities at q.
        innovation: By sensor, the last measurement less what was expected; NaN where none came.
        nis: By sensor, ε* D⁻¹ ε of the last measurement, chi-square with as many degrees of freedom
            as it has numbers; of each number where the sensor is separate.
        accepted: By sensor, whether the last measurement was used, in the shape of `nis`.
        parts: Places of forces and biases in `extra`, by node and sensor.
    """

    q: Array
    v: Array
    extra: Array
    P: Array
    innovation: dict[str, Array]
    nis: dict[str, Array]
    accepted: dict[str, Any]
    parts: dict[str, slice]

    @property
    def deviation(self) -> Array:
        """Standard deviations (n,) or (batch, n) of q along velocities, v and extra."""
        return np.sqrt(np.diagonal(self.P, axis1=-2, axis2=-1))

    def part(self, name: str) -> Array:
        """The bias of a sensor, or the force (moment, force) at a node in world axes.

        Args:
            name: Of the sensor or of the node.
        """
        if name not in self.parts:
            raise unknown_name("bias or force", name, self.parts, owner="this estimate")
        return self.extra[..., self.parts[name]]


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    """A Kalman filter of a mechanism: `lw.filtering.kalman_filter` makes it.

    Attributes:
        mech: The mechanism.
        sensors: Its sensors by name.
        structure: What its code depends on.
        step: Length of a tick [s].
        inputs: Default inputs of its kernel: "density" of the process, "variance" of the
            measurements, "limit" of the gates.
        parts: Places of forces and biases in `extra`.
    """

    mech: Mechanism
    sensors: dict[str, Sensor]
    structure: Structure
    step: float
    inputs: dict[str, Array]
    parts: dict[str, slice]
    _formulas: dict[bool, Formula] = field(repr=False)

    def kernel(self, *, smoothing: bool = False) -> Any:
        """The kernel of a tick, which takes plain arrays in the order of its `arguments`.

        Args:
            smoothing: Whether it has results for a smoother, too.
        """
        return written(self.mech, self._formulas[smoothing])

    @property
    def size(self) -> int:
        """Numbers n in the error of a state."""
        return self.structure.errors(self.mech)

    def start(
        self,
        q: ArrayLike,
        v: ArrayLike | None = None,
        *,
        position: ArrayLike = 0.1,
        velocity: ArrayLike = 0.1,
        forces: ArrayLike = 10.0,
    ) -> Estimate:
        """What is known in the beginning; biases and forces are zero, give or take.

        Args:
            q: Joint positions (nq,) or (batch, nq) [m or rad].
            v: Joint velocities, likewise; default: at rest.
            position: Standard deviation of the positions [m or rad], a number or one for each
                number in their error: (nv,), more for rolling balls and soft fingers.
            velocity: That of the velocities [m/s or rad/s].
            forces: That of unknown forces at nodes [N m, N], a number or (6,).
        """
        nv = self.mech.nv
        q = self.mech.check_q(q)
        v = self.mech.check_v(np.zeros((*q.shape[:-1], nv)) if v is None else v)
        if q.ndim > 2 or v.shape[:-1] != q.shape[:-1]:
            raise ShapeError(f"q and v have shapes {q.shape} and {v.shape}; one state, or a batch.")
        ways = error_size(self.mech)
        sigma = [deviations(position, ways, "position"), deviations(velocity, nv, "velocity")]
        sigma += [deviations(forces, 6, "forces")] * len(self.structure.dynamics.nodes)
        for sensor in self.sensors.values():
            if sensor.bias is not None:
                sigma.append(deviations(sensor.bias_deviation, sensor.size, "bias"))
        variance, lead = np.concatenate(sigma) ** 2, q.shape[:-1]
        extra = np.zeros((*lead, self.structure.extras))
        check_obeyed(self.mech, q, v)
        # of normal errors with these variances, those that loops allow
        basis = allowed(self.mech, q, self.size)
        back = basis.swapaxes(-1, -2)
        P = basis @ np.linalg.inv((back / variance) @ basis) @ back
        return Estimate(q, v, extra, P, {}, {}, {}, self.parts)

    def tick(
        self,
        estimate: Estimate,
        tau: ArrayLike,
        measured: Mapping[str, ArrayLike] | None = None,
        *,
        step: float | None = None,
        **inputs: ArrayLike,
    ) -> Estimate:
        """The estimate after one step of time, and after the measurements at its end.

        Args:
            estimate: What was known before.
            tau: Joint forces (nv,) or (batch, nv) during the step [N or N m].
            measured: Measurements by name of the sensor, (size,) or (batch, size). Sensors without
                a measurement, or with one that is NaN, are left out.
            step: Length of the step [s]; default: that of the filter. 0 for measurements alone.
            inputs: Further inputs of sensors, and numbers in place of `Filter.inputs`.
        """
        return self._ticked(estimate, tau, measured or {}, step, inputs, smoothing=False)[0]

    def _ticked(
        self,
        estimate: Estimate,
        tau: ArrayLike,
        measured: Mapping[str, ArrayLike],
        step: float | None,
        inputs: Mapping[str, ArrayLike],
        *,
        smoothing: bool,
    ) -> tuple[Estimate, dict[str, Array]]:
        kernel, lead = self.kernel(smoothing=smoothing), estimate.q.shape[:-1]
        y, use, came, read = self._read(measured, lead)
        h = self.step if step is None else number(step, "step", least=0.0)
        arrays: dict[str, Any] = self.inputs | {
            "q": estimate.q,
            "v": estimate.v,
            "extra": estimate.extra,
            "P": estimate.P.reshape(*lead, -1),
            "tau": self.mech.check_v(tau, "tau"),
            "step": np.array([h]),
            "measured": y,
            "use": use,
            **read,
        }
        allowed = [*self.inputs, *dict(self.structure.inputs)]
        for name, value in inputs.items():
            if name not in allowed:
                raise unknown_name("input", name, allowed, owner="this filter")
            arrays[name] = value
        for name, _ in self.structure.inputs:
            if name not in arrays:
                raise ModelError(f"a sensor needs the input {name!r}; give it by name.")
        out = kernel(*[arrays[name] for name in kernel.arguments])
        nothing = np.zeros((*lead, 0))
        return self._estimate(out | {"extra": out.get("extra", nothing)}, came), out

    def _read(
        self, measured: Mapping[str, ArrayLike], lead: tuple[int, ...]
    ) -> tuple[Array, Array, Array, dict[str, Array]]:
        """Numbers of all sensors, whether blocks are used, which came, and readings of q."""
        for name in measured:
            if name not in self.sensors:
                raise unknown_name("sensor", name, self.sensors, owner="this filter")
        parts, read, neutral = list[Array](), dict[str, Array](), self.mech.neutral()
        for name, sensor in self.sensors.items():
            size = len(sensor.reading) or sensor.size
            y = floats(measured[name], name) if name in measured else np.full(size, np.nan)
            if y.shape not in ((size,), (*lead, size)):
                raise ShapeError(
                    f"the measurement of {name!r} has shape {y.shape}; it must be "
                    f"({size},)" + (f" or ({lead[0]}, {size})." if lead else ".")
                )
            y = np.broadcast_to(y, (*lead, size))
            if sensor.reading:
                here = np.isfinite(y).all(axis=-1, keepdims=True)
                read[sensor.read] = np.where(here, y, neutral[list(sensor.reading)])
                y = np.broadcast_to(np.where(here, 0.0, np.nan), (*lead, sensor.size))
            parts.append(y)
        y = np.concatenate(parts, axis=-1)
        came = np.isfinite(y)
        use = np.stack([came[..., b].all(axis=-1) for b in self.structure.blocks], axis=-1)
        return np.where(came, y, 0.0), use.astype(np.float64), came, read

    def _estimate(self, out: Mapping[str, Array], came: Array) -> Estimate:
        innovation, nis, accepted = dict[str, Array](), dict[str, Array](), dict[str, Any]()
        row = block = 0
        for name, sensor in self.sensors.items():
            rows, count = slice(row, row + sensor.size), len(sensor.blocks)
            blocks = slice(block, block + count) if sensor.separate else block
            here = came[..., rows]
            innovation[name] = np.where(here, out["innovation"][..., rows], np.nan)
            complete = here if sensor.separate else here.all(axis=-1)
            nis[name] = np.where(complete, out["nis"][..., blocks], np.nan)
            accepted[name] = out["weight"][..., blocks] > 0.0
            row, block = row + sensor.size, block + count
        state = (out["q"], out["v"], out["extra"], out["P"])
        return Estimate(*state, innovation, nis, accepted, self.parts)

    def run(
        self,
        start: Estimate,
        tau: ArrayLike,
        measured: Mapping[str, ArrayLike],
        **inputs: ArrayLike,
    ) -> Filtered:
        """The estimates along recorded measurements, one tick after the other.

        Args:
            start: What is known one step before the first measurement.
            tau: Joint forces (ticks, nv) or (batch, ticks, nv) [N or N m].
            measured: Measurements by name of the sensor, (ticks, size) or (batch, ticks, size);
                NaN where there are none.
            inputs: As in `tick`, the same for all ticks.
        """
        from linkwise.filtering.smoother import filtered

        return filtered(self, start, tau, measured, inputs)

    def with_noise(self, **noise: ArrayLike) -> Filter:
        """The same filter with other densities or variances; its kernel stays.

        Args:
            noise: "density", "variance" or "limit", in the shape that `inputs` has.
        """
        arrays = dict(self.inputs)
        for name, value in noise.items():
            if name not in arrays:
                raise unknown_name("input", name, arrays, owner="this filter")
            array = floats(value, name)
            if array.shape != arrays[name].shape:
                raise ShapeError(
                    f"{name} has shape {array.shape}; it must be {arrays[name].shape}."
                )
            arrays[name] = array
        return replace(self, inputs=arrays)

    def export_c(self, name: str | None = None, *, dtype: Any = np.float64) -> CSource:
        """The tick as a C function; `.write(folder)` writes its two files.

        Args:
            name: Of the function and the files.
            dtype: float64 or float32.
        """
        from linkwise.codegen.c.source import CSource

        return CSource(requested(self._formulas[False], self.mech, dtype=dtype), name or "")

    def __str__(self) -> str:
        how = "unscented" if self.structure.unscented else "extended"
        ops = int(sum(self.kernel().ops.values()))
        rows = ", ".join(f"{x.name} ({x.size})" for x in self.sensors.values())
        return f"{how} Kalman filter of {self.mech.name!r}, {self.size} states, {rows}: {ops} ops"


def deviations(given: ArrayLike | None, size: int, what: str, *, positive: bool = True) -> Array:
    """Standard deviations (size,) of a number or of each."""
    array = floats(given, what)
    if array.shape not in ((), (size,)):
        raise ShapeError(f"{what} has shape {array.shape}; it must be a number or ({size},).")
    good = np.isfinite(array) & (array > 0.0 if positive else array >= 0.0)
    if not good.all():
        least = "positive" if positive else "zero or positive"
        raise ModelError(f"{what} must be finite and {least}.")
    return np.broadcast_to(array, (size,)).astype(np.float64)
