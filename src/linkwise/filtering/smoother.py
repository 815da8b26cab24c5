"""Estimates along a recording, and the smoother that runs back over them.

    G = C P⁻⁻¹,   x̂ˢ = x̂ ⊕ G (x̂ˢ₊ ⊖ x⁻),   Pˢ = P + G (P̃ˢ₊ − P⁻) G*                            (1)

with x⁻ and P⁻ of the next tick, C the covariance of x̂ and x⁻, and P̃ˢ₊ the covariance Pˢ₊ carried
back from x̂ˢ₊ to x⁻. With loops P⁻ is inverted along motions that these allow. For linear systems it
is the least-squares solution of the whole recording.
Source: rauch1965maximum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.brief import brief
from linkwise.dynamics.kernels import is_closed, written
from linkwise.errors import ModelError, ShapeError
from linkwise.filtering.allowed import allowed
from linkwise.filtering.motion import CLOSED
from linkwise.filtering.tangent import CARRIED, DISPLACEMENT
from linkwise.filtering.tick import PREDICTED, error_parts
from linkwise.spatial.array import Array, ArrayLike, floats

if TYPE_CHECKING:
    from linkwise.filtering.filter import Estimate, Filter


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Filtered:
    """Estimates along a recording; arrays have ticks before their last axes, and a batch before.

    Attributes:
        filter: The filter.
        start: The estimate one step before the first tick; after `smoothed`, the smoothed one.
        q: Joint positions (ticks, nq) or (batch, ticks, nq) [m or rad].
        v: Joint velocities, likewise.
        extra: Forces at nodes and biases, likewise.
        P: Covariances (ticks, n, n) or (batch, ticks, n, n).
        innovation: By sensor (ticks, size); NaN where no measurement came.
        nis: By sensor (ticks,), or (ticks, size) where it is separate.
        accepted: By sensor, in the shape of `nis`.
    """

    filter: Filter
    start: Estimate
    q: Array
    v: Array
    extra: Array
    P: Array
    innovation: dict[str, Array]
    nis: dict[str, Array]
    accepted: dict[str, Any]
    _predicted: dict[str, Array]

    @property
    def deviation(self) -> Array:
        """Standard deviations (ticks, n) or (batch, ticks, n) of q, v and extra."""
        return np.sqrt(np.diagonal(self.P, axis1=-2, axis2=-1))

    def part(self, name: str) -> Array:
        """The bias of a sensor, or the force (moment, force) at a node in world axes.

        Args:
            name: Of the sensor or of the node.
        """
        return replace(self.start, extra=self.extra).part(name)

    def errors(self, q: ArrayLike, v: ArrayLike, extra: ArrayLike | None = None) -> Array:
        """The errors (ticks, n) or (batch, ticks, n): the true state less the estimate.

        Args:
            q: True joint positions, in the shape of `q`.
            v: True joint velocities, in the shape of `v`.
            extra: True forces and biases; default: zero.
        """
        parts = [("q", q, self.q), ("v", v, self.v)]
        parts += [] if extra is None else [("extra", extra, self.extra)]
        arrays = [np.zeros_like(self.extra)] * 3
        for i, (name, given, like) in enumerate(parts):
            arrays[i] = floats(given, name)
            if arrays[i].shape != like.shape:
                raise ShapeError(f"{name} has shape {arrays[i].shape}; it must be {like.shape}.")
            if not np.isfinite(arrays[i]).all():
                raise ModelError(f"the true {name} is not finite.")
        d = _difference(self.filter, self.q, arrays[0])
        return np.concatenate([d, arrays[1] - self.v, arrays[2] - self.extra], axis=-1)

    def nees(self, q: ArrayLike, v: ArrayLike, extra: ArrayLike | None = None) -> Array:
        """e* P⁻¹ e of the error e against the true state, (ticks,) or (batch, ticks).

        Chi-square with `independent` degrees of freedom: n, but with loops and couplings fewer.

        Args:
            q: True joint positions, in the shape of `q`.
            v: True joint velocities, in the shape of `v`.
            extra: True forces and biases; default: zero.
        """
        ways = allowed(self.filter.mech, self.q, self.filter.size)
        e = _transposed(ways) @ self.errors(q, v, extra)[..., None]
        return (e * np.linalg.solve(_transposed(ways) @ self.P @ ways, e)).sum(axis=(-2, -1))

    @property
    def independent(self) -> int:
        """How many numbers of the error are independent: fewer than n with loops."""
        return allowed(self.filter.mech, self.start.q, self.filter.size).shape[-1]

    def smoothed(self) -> Filtered:
        """The estimates from all measurements, those after each tick included."""
        if not self._predicted:
            raise ModelError("these estimates are already smoothed; use them as they are.")
        ticks, mech = self.P.shape[-3], self.filter.mech
        names = ("q", "v", "extra", "P")
        axes = (slice(None),) * (self.P.ndim - 3)
        later = [getattr(self, name)[(*axes, ticks - 1)] for name in names]
        estimates = [later]
        for k in range(ticks - 1, -1, -1):
            of, at = (self.start, axes) if k == 0 else (self, (*axes, k - 1))
            q, v, extra, P = (getattr(of, name)[at] for name in names)
            q_to, v_to, P_to, cross = (self._predicted[name][(*axes, k)] for name in PREDICTED)
            if is_closed(mech):
                ways = allowed(mech, q_to, self.filter.size)
                inside = _transposed(ways) @ P_to @ ways
                G = _transposed(ways @ np.linalg.solve(inside, _transposed(cross @ ways)))
            else:
                G = _transposed(np.linalg.solve(P_to, _transposed(cross)))
            turn = _difference(self.filter, q_to, later[0])
            e = np.concatenate([turn, later[1] - v_to, later[2] - extra], axis=-1)
            back = np.linalg.inv(_carried(self.filter, q_to, turn)[1])
            d = (G @ e[..., None])[..., 0]
            P = P + G @ (_turned(back, later[3]) - P_to) @ _transposed(G)
            dq, dv, more = error_parts(mech, d)
            q, J = _carried(self.filter, q, dq)
            P = _turned(J, 0.5 * (P + _transposed(P)))
            q, v = _closed(self.filter, q, v + dv)
            later = [q, v, extra + more, P]
            estimates.append(later)
        start = replace(self.start, **dict(zip(names, estimates.pop(), strict=True)))
        stacked = [np.stack(x, axis=len(axes)) for x in zip(*reversed(estimates), strict=True)]
        state = dict(zip(names, stacked, strict=True))
        return replace(self, start=start, _predicted={}, **state)


def filtered(
    filter: Filter,
    start: Estimate,
    tau: ArrayLike,
    measured: Mapping[str, ArrayLike],
    inputs: Mapping[str, ArrayLike],
) -> Filtered:
    """The estimates along recorded measurements."""
    lead = start.q.shape[:-1]
    force = floats(tau, "tau")
    if force.ndim not in (2, 2 + len(lead)) or force.shape[-1] != filter.mech.nv:
        raise ShapeError(
            f"tau has shape {force.shape}; it must be (ticks, {filter.mech.nv})"
            + (" or (batch, ticks, ...)." if lead else ".")
        )
    ticks = force.shape[-2]
    arrays = {name: floats(x, name) for name, x in measured.items()}
    for name, x in arrays.items():
        if x.ndim < 2 or x.shape[-2] != ticks:
            raise ShapeError(
                f"the measurements of {name!r} have shape {x.shape}; tau has {ticks} ticks."
            )
    x, kept, raw = start, list[Any](), list[dict[str, Array]]()
    for k in range(ticks):
        now = {name: y[..., k, :] for name, y in arrays.items()}
        x, out = filter._ticked(x, force[..., k, :], now, None, inputs, smoothing=True)  # pyright: ignore[reportPrivateUsage]
        kept.append(x)
        raw.append(out)
    axis = len(lead)

    def along(parts: list[Any]) -> Any:
        return np.stack(parts, axis=axis)

    state = [along([getattr(x, name) for x in kept]) for name in ("q", "v", "extra", "P")]

    def shown(kind: str) -> dict[str, Any]:
        return {name: along([getattr(x, kind)[name] for x in kept]) for name in filter.sensors}

    before = {name: along([out[name] for out in raw]) for name in PREDICTED}
    q, v, extra, P = state
    return Filtered(
        filter, start, q, v, extra, P, shown("innovation"), shown("nis"), shown("accepted"), before
    )


def _transposed(x: Any) -> Array:
    return x.swapaxes(-1, -2)


def _turned(J: Any, P: Any) -> Any:
    """J P J*, with J (ways, ways) of positions: 1 for plain coordinates."""
    ways = J.shape[-1]
    if (np.eye(ways) == J).all():
        return P
    P = np.concatenate([J @ P[..., :ways, :], P[..., ways:, :]], axis=-2)
    return np.concatenate([P[..., :ways] @ _transposed(J), P[..., ways:]], axis=-1)


def _closed(filter: Filter, q: Array, v: Array) -> tuple[Array, Array]:
    """The nearest state in which loops and couplings hold, for arrays with any leading axes."""
    if not is_closed(filter.mech):
        return q, v
    out = written(filter.mech, CLOSED)(q.reshape(-1, q.shape[-1]), v.reshape(-1, v.shape[-1]))
    return out["q"].reshape(q.shape), out["v"].reshape(v.shape)


def _difference(filter: Filter, q0: Array, q1: Array) -> Array:
    """q1 ⊖ q0, for arrays with any leading axes."""
    kernel, lead = written(filter.mech, DISPLACEMENT), q0.shape[:-1]
    flat = kernel(q0.reshape(-1, q0.shape[-1]), q1.reshape(-1, q1.shape[-1]))
    return flat.reshape(*lead, -1)


def _carried(filter: Filter, q: Array, d: Array) -> tuple[Array, Array]:
    """q ⊕ d and J, for arrays with any leading axes."""
    kernel, lead, ways = written(filter.mech, CARRIED), q.shape[:-1], d.shape[-1]
    out = kernel(q.reshape(-1, q.shape[-1]), d.reshape(-1, ways))
    return out["q"].reshape(*lead, -1), out["J"].reshape(*lead, ways, ways)
