"""One tick of a Kalman filter as a formula: a step of time, then the measurements.

    x⁻ = f(x̂),            P⁻ = F P F* + Q                                                      (1)
    ε = y − h(x⁻),        D = H P⁻ H* + R,       G = P⁻ H* D⁻¹                                  (2)
    x̂⁺ = x⁻ ⊕ G ε,        P⁺ = P⁻ − P⁻ H* D⁻¹ H P⁻                                              (3)

(2) and (3) are the recursion over bodies with a measurement in place of a hinge. The extended
filter takes derivatives for F and H. The unscented one takes points x̂ ⊕ ±s L e_i, P = L L*, and
the moments of what becomes of them; for linear functions these are the same numbers.

Sensors are taken in sequence: the joint covariance of the state and of all measurements that are
left is conditioned on each. So each ε is whitened by those before it,
ε* D⁻¹ ε is chi-square on its own, and a sensor whose ε is too large is left out.

Noise of the process: densities of white noise of positions and velocities; forces that are constant
within a step, of variance σ²/h; random walks of what is constant otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.codegen.formula import Formula
from linkwise.codegen.scalar import status
from linkwise.codegen.writing import Writing
from linkwise.dynamics.configuration import coordinates
from linkwise.filtering.motion import Dynamics, State, closed_again
from linkwise.filtering.sensor import Sensed, Sensor
from linkwise.filtering.tangent import (
    Slopes,
    along_coordinates,
    apart,
    as_displacement,
    carried,
    displaced,
    displacement,
    error_size,
)
from linkwise.model.mechanism import Mechanism
from linkwise.sweeps.factored import factored
from linkwise.sweeps.sparse import times
from linkwise.sweeps.structured_block import diagonal, mirrored

NEXT = 1e-9
"""Part of a variance that covariances have across motions that loops allow, so that they have a
factor."""

MOST_STATES = 40
"""Numbers in the error of a state whose matrices are straight code, which grows with their third
power."""

RESULTS = ("q", "v", "extra", "P", "innovation", "nis", "weight")
"""Results of a tick: the estimate, y − h(x⁻) of all sensors, and ε* D⁻¹ ε and weight of blocks."""

PREDICTED = ("q_predicted", "v_predicted", "P_predicted", "cross")
"""What a smoother needs besides: x⁻ and P⁻, and the covariance of x̂ before and x⁻."""


@dataclass(frozen=True, slots=True)
class Structure:
    """What the code of a tick depends on.

    Attributes:
        dynamics: The step of time.
        sensors: The sensors, without their numbers.
        unscented: Whether points are moved, instead of derivatives taken.
        spread: Distance s of these points, in standard deviations.
        smoothing: Whether there are results for a smoother.
        large: Whether matrices are in loops (`large_tick.py`).
    """

    dynamics: Dynamics
    sensors: tuple[Sensor, ...]
    unscented: bool
    spread: float
    smoothing: bool
    large: bool = False

    @property
    def extras(self) -> int:
        """Numbers of the state besides q and v: forces at nodes and biases."""
        biases = sum(sensor.size for sensor in self.sensors if sensor.bias is not None)
        return 6 * len(self.dynamics.nodes) + biases

    def errors(self, mech: Mechanism) -> int:
        """Numbers n in the error of a state."""
        return error_size(mech) + mech.nv + self.extras

    @property
    def rows(self) -> int:
        """Numbers in all measurements together."""
        return sum(sensor.size for sensor in self.sensors)

    @property
    def blocks(self) -> list[list[int]]:
        """Rows that are accepted or refused together."""
        out, start = list[list[int]](), 0
        for sensor in self.sensors:
            out += [[start + i for i in block] for block in sensor.blocks]
            start += sensor.size
        return out

    @property
    def inputs(self) -> tuple[tuple[str, int], ...]:
        """Further inputs of sensors."""
        return tuple(dict(x for sensor in self.sensors for x in sensor.inputs).items())

    @property
    def formula(self) -> Formula:
        """The formula of a tick."""
        from linkwise.filtering.large_tick import large_tick

        names = RESULTS if self.extras else tuple(x for x in RESULTS if x != "extra")
        names += PREDICTED if self.smoothing else ()
        return Formula(large_tick if self.large else tick, (self,), names)


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """The state before the measurements: x⁻ and P⁻, and the covariance of x̂ and x⁻."""

    state: State
    P: Any
    cross: Any


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """What a tick reads.

    Attributes:
        start: x̂.
        P: Its covariance.
        h: Length of the step.
        impulse: Standard deviations of the joint forces, which are held.
        drifts: Variances that a step adds.
        given: Further inputs of sensors.
        y: Measurements.
        variance: Theirs.
        use: Whether each block of them is used.
        limit: Gates.
    """

    start: State
    P: Any
    h: Any
    impulse: Any
    drifts: Any
    given: dict[str, Any]
    y: Any
    variance: Any
    use: Any
    limit: Any


def read(at: Writing, s: Structure) -> Readings:
    """The inputs of a tick, in order."""
    nv, extras = at.mech.nv, s.extras
    n = s.errors(at.mech)
    q, v = coordinates(at), at.v
    extra = at.read("extra", extras) if extras else np.zeros(0, dtype=object)
    P = mirrored(at.read("P", n * n).reshape(n, n).copy())
    start, h = State(q, v, extra, at.read("tau", nv)), at.read("step", 1)[0]
    noise = at.read("density", nv + n)
    impulse = noise[:nv] * h.gate(h.reciprocal()).sqrt()  # a force that is held, of variance σ²/h
    drifts = np.array([h * x * x for x in noise[nv:]], dtype=object)
    given = {name: at.read(name, size) for name, size in s.inputs}
    y, R = at.read("measured", s.rows), at.read("variance", s.rows)
    use, limit = at.read("use", len(s.blocks)), at.read("limit", len(s.blocks))
    return Readings(start, P, h, impulse, drifts, given, y, R, use, limit)


def tick(at: Writing, s: Structure) -> Any:
    """A step of time, then the measurements."""
    r = read(at, s)
    n = len(r.P)
    before = (_by_points if s.unscented else _by_slopes)(at, s, r.start, r.P, r.h, r.impulse)
    before.P[np.diag_indices(n)] = before.P[np.diag_indices(n)] + r.drifts
    expected, both, S = (_seen_by_points if s.unscented else _seen)(at, s, before, r.given)
    innovation = r.y - expected
    rules = r.variance, s.blocks, r.use, r.limit
    d, P, nis, weight = _conditioned((before.P, both, S), innovation, *rules)
    x, P = _closed(at, *_corrected(at, before.state, P, d))
    results = [x.q, x.v, *([x.extra] if s.extras else []), P, innovation, nis, weight]
    if s.smoothing:
        results += [before.state.q, before.state.v, before.P, before.cross]
    return tuple(results)


def _corrected(at: Writing, x: State, P: Any, d: Any) -> tuple[State, Any]:
    """x ⊕ d, and the covariance about it."""
    dq, dv, extra = error_parts(at.mech, d)
    q, turn = carried(at, x.q, dq)
    J = np.eye(len(d), dtype=object)
    J[: len(dq), : len(dq)] = turn
    return State(q, x.v + dv, x.extra + extra, x.tau), _congruent(J, P)[0]


def _closed(at: Writing, x: State, P: Any) -> tuple[State, Any]:
    """The nearest state that loops and couplings allow, and the covariance about it."""
    if not at.mech.loops and not at.mech.couplings:
        return x, P
    size = error_size(at.mech) + at.mech.nv
    parts = apart(at, CLOSING, {"q": x.q, "v": x.v})
    q, v, rows = np.split(parts, [len(x.q), len(x.q) + len(x.v)])
    F = np.eye(len(P), dtype=object)
    F[:size, :size] = rows.reshape(size, size)
    return State(q, v, x.extra, x.tau), _congruent(F, P)[0]


def _closing(at: Writing) -> Any:
    nv, ways = at.mech.nv, error_size(at.mech)
    q, v, unit = at.read("q", at.mech.nq), at.read("v", nv), np.eye(ways + nv, dtype=object)
    slopes = Slopes(at, ways + nv)
    slopes.know(q, times(along_coordinates(at.mech, q), unit[:ways]))
    slopes.know(v, unit[ways:])
    q, v = closed_again(at, q, v)
    return q, v, state_slopes(at, slopes, q, v)


CLOSING = Formula(_closing, names=("q", "v", "F"))
"""The nearest state that loops allow, and its derivatives by the error of q and v. Inputs: q (nq,),
v (nv,)."""


def _congruent(F: Any, P: Any) -> tuple[Any, Any]:
    """F P F* and F P, of a symmetric P."""
    half = times(F, P)
    out = np.full((len(F), len(F)), 0.0, dtype=object)
    for i in range(len(F)):
        out[i, i:] = times(half[i : i + 1], F[i:].T)[0]
    return mirrored(out), half


# ------------------------------------------------------------------------------ by derivatives


def variables(at: Writing, x: State, *, forces: bool) -> Slopes:
    """Derivatives by displacements of a state, and by joint forces behind them."""
    nv, ways = at.mech.nv, error_size(at.mech)
    n = ways + nv + len(x.extra)
    unit = np.eye(n + nv) if forces else np.vstack([np.eye(n), np.zeros((nv, n))])
    slopes = Slopes(at, unit.shape[1])
    slopes.know(x.q, times(along_coordinates(at.mech, x.q), unit[:ways].astype(object)))
    slopes.know(np.concatenate([x.v, x.extra, x.tau]), unit[ways:])
    return slopes


def state_slopes(at: Writing, slopes: Slopes, q: Any, v: Any) -> Any:
    """Derivatives of a state, of displacements of q and of v."""
    return np.vstack([as_displacement(at.mech, q, slopes.of(q)), slopes.of(v)])


def error_parts(mech: Mechanism, d: Any) -> tuple[Any, Any, Any]:
    """The parts of an error (..., n): of q, of v, and of what comes after them."""
    ways = error_size(mech)
    return d[..., :ways], d[..., ways : ways + mech.nv], d[..., ways + mech.nv :]


def _by_slopes(at: Writing, s: Structure, x: State, P: Any, h: Any, impulse: Any) -> Prediction:
    nv, n, slopes = at.mech.nv, len(P), variables(at, x, forces=True)
    q, v = s.dynamics.stepped(at, x, h, slopes)
    F = np.eye(n, n + nv, dtype=object)
    rows = state_slopes(at, slopes, q, v)
    F[: len(rows)] = rows
    after, half = _congruent(F[:, :n], P)
    pushed = _congruent(F[:, n:], diagonal(impulse * impulse))[0]
    return Prediction(State(q, v, x.extra, x.tau), after + pushed, half.T)


def _seen(at: Writing, s: Structure, before: Prediction, given: dict[str, Any]) -> Any:
    """h(x⁻), P⁻ H* and H P⁻ H*; the sensors are a separate graph, with x⁻ as inputs."""
    x, P = before.state, before.P
    inner = Writing(at.request)
    names = ("q", "v", "extra", "tau")
    arrays = {name: getattr(x, name) for name in names} | given
    read = {name: inner.read(name, len(array)) for name, array in arrays.items()}
    here = State(*(read[name] for name in names))
    slopes = variables(inner, here, forces=False)
    y = measured(inner, s, here, slopes, {name: read[name] for name in given})
    inner.write("y", y)
    inner.write("H", slopes.of(y).ravel())
    flat = np.empty(len(y) * (1 + len(P)), dtype=object)
    flat[:] = at.replay(inner.traced(), arrays)
    y, H = flat[: len(y)], flat[len(y) :].reshape(len(y), len(P))
    S, half = _congruent(H, P)
    return y, half.T, S


def measured(
    at: Writing, s: Structure, x: State, slopes: Slopes | None, given: dict[str, Any]
) -> Any:
    """What all sensors show (rows,), in a formula."""
    sensed = Sensed(at, x, s.dynamics, slopes, given)
    parts, place = list[Any](), 6 * len(s.dynamics.nodes)
    for sensor in s.sensors:
        y = np.asarray(sensor.write(sensed, *sensor.options), dtype=object)
        if y.shape != (sensor.size,):
            raise ValueError(
                f"the formula of sensor {sensor.name!r} gives shape {y.shape}; its size is "
                f"{sensor.size}."
            )
        if sensor.bias is not None:
            y = y + x.extra[place : place + sensor.size]
            place += sensor.size
        parts.append(y)
    return np.concatenate(parts)


# ------------------------------------------------------------------------------------ by points


def _columns(at: Writing, P: Any, spread: float) -> Any:
    """s L (n, n), P = L L*; across motions that loops allow, points are next to the mean."""
    if at.mech.loops or at.mech.couplings:
        P = P + diagonal(NEXT * np.diag(P) + NEXT**2)
    parts = factored(P)
    for pivot in parts.pivots:
        at.check(status.MATRIX, pivot, 0.0, np.inf)
    roots = [spread * at.scalar(pivot).sqrt() for pivot in parts.pivots]
    return parts.lower * np.array(roots, dtype=object)


def moved_state(mech: Any, x: State, d: Any) -> State:
    """x ⊕ d, in a formula."""
    dq, dv, extra = error_parts(mech, d)
    return State(displaced(mech, x.q, dq), x.v + dv, x.extra + extra, x.tau)


def _by_points(at: Writing, s: Structure, x: State, P: Any, h: Any, impulse: Any) -> Prediction:
    """With columns for the joint forces behind those of the state."""
    nv, n, step = at.mech.nv, len(P), s.dynamics.stepped
    middle = State(*step(at, x, h, None), x.extra, x.tau)

    def errors(at: Writing, d: Any, x: State, h: Any, q: Any, v: Any) -> Any:
        point = moved_state(at.mech, x, d[:n])
        point = State(point.q, point.v, point.extra, x.tau + d[n:])
        q_to, v_to = step(at, point, h[0], None)
        still = error_parts(at.mech, d[:n])[2]
        return np.concatenate([displacement(at.mech, q, q_to), v_to - v, still])

    held = [x.q, x.v, x.extra, x.tau, np.array([h]), middle.q, middle.v]

    def of(at: Writing, d: Any, given: Sequence[Any]) -> Any:
        return errors(at, d, State(*given[:4]), *given[4:])

    columns = np.full((n + nv, n + nv), 0.0, dtype=object)
    columns[:n, :n] = _columns(at, P, s.spread)
    columns[n:, n:] = diagonal(s.spread * impulse)
    mean, second, cross = _moments(at, of, columns, held, n, s.spread)
    state, after = _corrected(at, middle, second, mean)
    J, ways = np.eye(n, dtype=object), error_size(at.mech)
    J[:ways, :ways] = carried(at, middle.q, mean[:ways])[1]
    return Prediction(state, after, times(cross[:n], J.T))


def _seen_by_points(at: Writing, s: Structure, before: Prediction, given: dict[str, Any]) -> Any:
    x, names = before.state, list(given)
    middle = measured(at, s, x, None, given)

    def of(at: Writing, d: Any, held: Sequence[Any]) -> Any:
        inputs = dict(zip(names, held[4:-1], strict=True))
        point = moved_state(at.mech, State(*held[:4]), d)
        return measured(at, s, point, None, inputs) - held[-1]

    held = [x.q, x.v, x.extra, x.tau, *given.values(), middle]
    columns = _columns(at, before.P, s.spread)
    mean, S, both = _moments(at, of, columns, held, len(middle), s.spread)
    return middle + mean, both, S


def _moments(
    at: Writing,
    of: Callable[[Writing, Any, Sequence[Any]], Any],
    columns: Any,
    parts: Sequence[Any],
    size: int,
    spread: float,
) -> tuple[Any, Any, Any]:
    """Mean (size,), covariance (size, size) and that with the state (n, size) of e(±d).

    One round of a loop takes the first column d, and puts it last: the code of `of` is there twice,
    whatever the number of columns.
    """
    n, upper = len(columns), np.triu_indices(size)
    sizes = [len(part) for part in parts]

    def once(at: Writing, x: Any, given: Any) -> tuple[Any, Any]:
        ring, mean, second, cross, left = np.split(
            x, np.cumsum([n * n, size, len(upper[0]), n * size])
        )
        d, each = ring[:n], np.split(given, np.cumsum(sizes)[:-1])
        e, o = of(at, d, each), of(at, -d, each)
        second = second + np.array([e[i] * e[j] + o[i] * o[j] for i, j in zip(*upper, strict=True)])
        cross = cross.reshape(n, size) + np.multiply.outer(d, e - o)
        again = left[0] - 1.0
        after = [ring[n:], d, mean + e + o, second, cross.ravel(), [again]]
        return np.concatenate(after), again

    zeros = np.zeros(size + len(upper[0]) + n * size)
    x = np.concatenate([columns.T.ravel(), zeros, [float(n)]])
    given = np.concatenate([np.zeros(0, dtype=object), *parts])
    x, _ = at.loop(once, x, given, most=n)
    weight = 0.5 / spread**2
    _, mean, flat, cross, _ = np.split(x, np.cumsum([n * n, size, len(upper[0]), n * size]))
    mean, second = weight * mean, np.full((size, size), 0.0, dtype=object)
    second[upper] = weight * flat
    second[upper] = second[upper] - np.multiply.outer(mean, mean)[upper]
    return mean, mirrored(second), weight * cross.reshape(n, size)


# -------------------------------------------------------------------------------- measurements


def _conditioned(
    covariance: tuple[Any, Any, Any],
    innovation: Any,
    variance: Any,
    blocks: list[list[int]],
    use: Any,
    limit: Any,
) -> tuple[Any, Any, Any, Any]:
    """The displacement of the state and its covariance, given measurements, block by block.

    Returns:
        d (n,), P⁺ (n, n), ε* D⁻¹ ε and the weight of each block.
    """
    P, both, S = covariance
    n, m = both.shape
    joint = np.empty((n + m, n + m), dtype=object)
    joint[:n, :n], joint[:n, n:], joint[n:, :n], joint[n:, n:] = P, both, both.T, S
    d, nis, weight = np.full(n + m, 0.0, dtype=object), list[Any](), list[Any]()
    left = list(range(n + m))
    for k, block in enumerate(blocks):
        rows = [n + i for i in block]
        left = [i for i in left if i not in rows]
        D = joint[np.ix_(rows, rows)].copy()
        for j, i in enumerate(block):
            D[j, j] = D[j, j] + variance[i]
        inverse, eps = factored(D), (innovation[block] - d[rows])[:, None]
        nis.append(inverse.congruence(eps)[0, 0])
        weight.append((limit[k] - nis[-1]).gate(use[k]))
        W = joint[np.ix_(rows, left)]
        d[left] = d[left] + weight[-1] * times(W.T, inverse @ eps)[:, 0]
        less = weight[-1] * mirrored(inverse.congruence(W))
        joint[np.ix_(left, left)] = joint[np.ix_(left, left)] - less
    return d[:n], mirrored(joint[:n, :n].copy()), np.array(nis), np.array(weight)
