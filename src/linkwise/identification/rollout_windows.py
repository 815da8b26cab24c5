"""Windows of a recording, simulated from first states: errors of positions, and derivatives."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from linkwise.dynamics.configuration import difference, integrate
from linkwise.dynamics.kernels import is_closed
from linkwise.errors import ModelError, ShapeError, TroubleWarning
from linkwise.identification import closed, model
from linkwise.identification.samples import even_step
from linkwise.loops.projection import project_position, project_velocity
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.rollout import rollout
from linkwise.spatial.array import Array, ArrayLike, floats

ORDERS = {"rk4": 4, "euler": 2, "implicit": 2}
"""Of the integrators; those of order two extrapolate steps of order one."""

CHANGE = 1e-6
"""Of a coordinate, for differences."""

WIDE = (1e-3, 1e-2, 1e-4)
"""The same with friction: its kinks catch a search that has narrow ones. One is tried after the
other."""

BEGIN = 4
"""Steps between two samples at first, with friction: kinks are smaller by that."""


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Windows of a recording: states (windows, nq + nv), positions and forces of each.

    First states move along `ways` (windows, nv, free).
    """

    mech: Mechanism
    kinds: tuple[str, ...]
    step: float
    integrator: str
    first: Array
    q: Array
    tau: Array
    left_out: int
    ways: Array
    rubs: bool
    substeps: int = 1
    width: float = CHANGE

    def finer(self) -> Windows:
        """With steps of half the length."""
        return replace(self, substeps=2 * self.substeps)

    @classmethod
    def of(
        cls,
        mech: Mechanism,
        kinds: tuple[str, ...],
        t: ArrayLike,
        q: ArrayLike,
        tau: ArrayLike,
        length: int,
        integrator: str,
    ) -> Windows:
        """The windows of a recording that have no gap; raises where there is none."""
        times, places, forces = floats(t, "t"), floats(q, "q"), floats(tau, "tau")
        if times.ndim != 1:
            raise ShapeError(f"t has shape {times.shape}; it must be (samples,).")
        shapes = (len(times),), (len(times), mech.nq), (len(times), mech.nv)
        for name, x, shape in zip(("t", "q", "tau"), (times, places, forces), shapes, strict=True):
            if x.shape != shape:
                raise ShapeError(f"{name} has shape {x.shape}; it must be {shape}.")
        if not np.isfinite(times).all():
            raise ModelError("t has gaps; give the times of all samples, and NaN in q or tau.")
        step = even_step(times)
        # No sample belongs to two windows, since its noise would count twice.
        windows = len(times) // (length + 1)
        if windows < 1:
            raise ModelError(f"{len(times)} samples are too few for a window of {length} steps.")
        at = (length + 1) * np.arange(windows)[:, None] + np.arange(length + 1)
        complete = np.isfinite(places[at]).all(axis=(1, 2))
        complete &= np.isfinite(forces[at[:, :-1]]).all(axis=(1, 2))
        if not complete.any():
            raise ModelError(f"each window of {length} samples has a gap; take shorter windows.")
        at = at[complete]
        q_of = places[at]
        lead = 2 if length >= 4 else 1
        v = difference(mech, q_of[:, 0], q_of[:, lead]) / (lead * step)
        ways, q = np.broadcast_to(np.eye(mech.nv), (len(v), mech.nv, mech.nv)), q_of[:, 0]
        if is_closed(mech):
            q, v, _ = closed.obeying(mech, q, v, np.zeros_like(v))
            ways = closed.ways(mech, q)
        first = np.concatenate([q, v], axis=1)
        left_out = int(windows - complete.sum())
        tau_of = forces[at[:, :-1]]
        rubs = "friction" in kinds or bool(mech.friction.any())
        each = (mech, kinds, step, integrator, first, q_of, tau_of, left_out, ways, rubs)
        return cls(*each, BEGIN, WIDE[0]) if rubs else cls(*each)

    def moved(self, states: Array, d: Array) -> Array:
        """States displaced by d (windows * 2 free,)."""
        nq, free = self.mech.nq, self.ways.shape[-1]
        each = d.reshape(*states.shape[:-1], 2, free) @ np.swapaxes(self.ways, 1, 2)
        q = integrate(self.mech, states[..., :nq], each[..., 0, :])
        v = states[..., nq:] + each[..., 1, :]
        if is_closed(self.mech):
            flat = project_position(self.mech, q.reshape(-1, nq)).required()
            v = project_velocity(self.mech, flat, v.reshape(len(flat), -1)).reshape(v.shape)
            q = flat.reshape(q.shape)
        return np.concatenate([q, v], axis=-1)

    def misses(self, values: Array, states: Array) -> Array:
        """Errors of positions (variants, all) for numbers (variants, columns) and states."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TroubleWarning)  # rows that are not finite tell
            out = self._of_steps(values, states)
            if ORDERS[self.integrator] == 2:
                out = 2.0 * self.finer()._of_steps(values, states) - out
        return np.where(np.isfinite(out), out, np.inf)

    def _of_steps(self, values: Array, states: Array) -> Array:
        mech, (variants, windows) = self.mech, states.shape[:2]
        nv, start, given = mech.nv, 0, dict[str, Any]()
        rows = np.repeat(values, windows, axis=0)
        for kind in self.kinds:
            size = 10 * mech.n_bodies if kind == "inertia" else nv
            given[kind], start = rows[:, start : start + size], start + size
        flat = states.reshape(variants * windows, -1)
        steps = self.tau.shape[1]
        runs = rollout(
            mech,
            flat[:, : mech.nq],
            flat[:, mech.nq :],
            tau=np.tile(np.repeat(self.tau, self.substeps, axis=1), (variants, 1, 1)),
            duration=steps * self.step,
            step=self.step / self.substeps,
            record_every=self.substeps,
            integrator=self.integrator,
            parameters=given,
            contacts=() if self.integrator == "implicit" else None,
        )
        measured = np.tile(self.q, (variants, 1, 1))
        with np.errstate(all="ignore"):
            bad = np.array([not np.isfinite(x).all() for x in runs.q])
            q = np.where(bad[:, None, None], measured, runs.q)
            out = difference(mech, measured, q)
        out[bad] = np.nan
        return out.reshape(variants, -1)

    def is_finite(self, x: Array, free: model.FreeNumbers) -> bool:
        """Whether all windows can be simulated from their first samples."""
        return bool(np.isfinite(self.misses(free.numbers(x)[0][None], self.first[None])).all())

    def linear(self, free: model.FreeNumbers, x: Array, states: Array) -> tuple[Array, Array]:
        """Errors (all,), and their derivatives by x and by the states of all windows.

        All windows are displaced at once in one direction: each has its own rows.
        """
        windows, n, small = len(states), 2 * self.ways.shape[-1], self.width
        change = small * np.maximum(np.abs(x), 1.0)
        numbers = [free.numbers(x)[0]]
        numbers += [free.numbers(x + h * e)[0] for h, e in zip(change, np.eye(len(x)), strict=True)]
        values = np.vstack([*numbers, *[numbers[0]] * n])
        here = np.tile(states, (1 + len(x) + n, 1, 1))
        for i in range(n):
            d = np.tile(small * np.eye(n)[i], windows)
            here[1 + len(x) + i] = self.moved(states, d)
        out = self.misses(values, here)
        if not np.isfinite(out).all():
            raise ModelError(
                f"a window of the recording cannot be simulated with the numbers of "
                f"{self.mech.name!r}; take shorter windows, or better first numbers."
            )
        J = np.zeros((out.shape[1], len(x) + windows * n))
        J[:, : len(x)] = ((out[1 : 1 + len(x)] - out[0]) / change[:, None]).T
        slopes = ((out[1 + len(x) :] - out[0]) / small).reshape(n, windows, -1)
        rows = out.shape[1] // windows
        for w in range(windows):
            columns = slice(len(x) + w * n, len(x) + (w + 1) * n)
            J[w * rows : (w + 1) * rows, columns] = slopes[:, w].T
        return out[0], cast("Array", J)
