"""A tick of a Kalman filter of many states: kernels for the mechanism, NumPy for covariances.

The equations are those of `tick.py`. There they are straight code, whose length grows with the
third power of the states. Here kernels have the step f and its derivative F, and the sensors h and
H; products of matrices are left to NumPy. Of trees, v̇ and its derivatives are inputs of these
kernels, since their numbers run in loops over bodies where there are many.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.codegen.formula import Formula
from linkwise.dynamics.configuration import coordinates
from linkwise.dynamics.derivatives import forward_dynamics_derivatives
from linkwise.dynamics.forward_dynamics import forward_dynamics
from linkwise.dynamics.kernels import is_closed, written
from linkwise.dynamics.path_dependent import path_dependent
from linkwise.errors import ModelError
from linkwise.filtering.motion import Dynamics, State
from linkwise.filtering.tangent import CARRIED, Slopes, displacement
from linkwise.filtering.tick import (
    CLOSING,
    NEXT,
    PREDICTED,
    Structure,
    error_parts,
    measured,
    moved_state,
    state_slopes,
    variables,
)
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

# -------------------------------------------------------------------------------------- formulas


@dataclass(frozen=True, slots=True)
class GivenAcceleration(Dynamics):
    """Motion with v̇ and its derivatives as inputs "vdot" (nv,) and "by" (3 nv nv,)."""

    def acceleration(self, at: Writing, x: State, slopes: Slopes | None, h: Any = None) -> Any:
        """The input, whose derivatives are known to `slopes` then."""
        nv = at.mech.nv
        vdot = at.read("vdot", nv)
        if slopes is not None:
            by = at.read("by", 3 * nv * nv).reshape(3, nv, nv)
            self.know(at, x, self.acting(at, x), slopes, vdot, by)
        return vdot


def _given(s: Structure) -> Structure:
    d = s.dynamics
    return replace(s, dynamics=GivenAcceleration(d.integrator, d.passive, d.nodes))


def _acting(at: Writing, s: Structure) -> Any:
    """Joint forces with those of dampers and springs."""
    return s.dynamics.acting(at, _state(at, s))


def _state(at: Writing, s: Structure) -> State:
    extra = at.read("extra", s.extras) if s.extras else np.zeros(0, dtype=object)
    return State(coordinates(at), at.v, extra, at.read("tau", at.mech.nv))


def _stepped(at: Writing, s: Structure) -> Any:
    """f, and its derivatives (2 nv, n + nv) by the state and by joint forces."""
    x, h = _state(at, s), at.read("step", 1)[0]
    if not hasattr(at, "graph"):
        raise ModelError(
            f"the step of a filter of {at.mech.name!r} would be too long as straight code with "
            f"integrator={s.dynamics.integrator!r}. Take 'euler' without loops, or lock joints "
            "that do not matter (mech.lock)."
        )
    slopes = variables(at, x, forces=True)
    q, v = s.dynamics.stepped(at, x, h, slopes)
    return q, v, state_slopes(at, slopes, q, v)


def _shown(at: Writing, s: Structure) -> Any:
    """h, and its derivatives (rows, n) by the state."""
    x, given = _state(at, s), {name: at.read(name, size) for name, size in s.inputs}
    slopes = variables(at, x, forces=False)
    y = measured(at, s, x, slopes, given)
    return y, slopes.of(y)


def _step_alone(at: Writing, s: Structure) -> Any:
    return s.dynamics.stepped(at, _state(at, s), at.read("step", 1)[0], None)


def _moved_step(at: Writing, s: Structure) -> Any:
    """f(x ⊕ d) ⊖ (q, v), of a point with other joint forces."""
    mech, x, h = at.mech, _state(at, s), at.read("step", 1)[0]
    n = s.errors(mech)
    d, q, v = at.read("d", n + mech.nv), at.read("q1", mech.nq), at.read("v1", mech.nv)
    point = moved_state(mech, x, d[:n])
    point = State(point.q, point.v, point.extra, x.tau + d[n:])
    q_to, v_to = s.dynamics.stepped(at, point, h, None)
    return np.concatenate([displacement(mech, q, q_to), v_to - v])


def _moved_shown(at: Writing, s: Structure) -> Any:
    """h(x ⊕ d) of a point."""
    mech, given = at.mech, {name: at.read(name, size) for name, size in s.inputs}
    x = moved_state(mech, _state(at, s), at.read("d", s.errors(mech)))
    return measured(at, s, x, None, given)


# ------------------------------------------------------------------------------------------ tick


@dataclass(frozen=True, eq=False)
class SplitTick:
    """A tick, called as its kernel would be.

    Attributes:
        mech: The mechanism.
        structure: What the code of a tick depends on.
    """

    mech: Mechanism
    structure: Structure

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arrays that a call takes."""
        s, numbers = self.structure, ["measured", "variance", "use", "limit"]
        state = ["q", "v", *(["extra"] if s.extras else []), "P", "tau", "step", "density"]
        return (*state, *numbers, *dict(s.inputs))

    @cached_property
    def ops(self) -> Counter[str]:
        """Operations of the kernels, without products of matrices."""
        names = ("step", "step of points", "sensors of points") if self._moves else ("step", "seen")
        total = Counter[str]()
        for name in names:
            total.update(self._kernel(name).ops)
        return total

    @property
    def _moves(self) -> bool:
        return self.structure.unscented

    def _kernel(self, name: str) -> Any:
        s = self.structure
        tree = not is_closed(self.mech) and not path_dependent(self.mech)
        seen = _given(s) if tree else s
        stepped = seen if s.dynamics.integrator == "euler" and not s.unscented else s
        formulas = {
            "step": Formula(_step_alone if s.unscented else _stepped, (stepped,),
                            ("q", "v") if s.unscented else ("q", "v", "F")),
            "seen": Formula(_shown, (seen,), ("y", "H")),
            "acting": Formula(_acting, (s,)),
            "step of points": Formula(_moved_step, (s,)),
            "sensors of points": Formula(_moved_shown, (s,)),
        }  # fmt: skip
        return written(self.mech, formulas[name])

    def _call(self, name: str, given: dict[str, Array]) -> Any:
        kernel = self._kernel(name)
        if "by" in kernel.arguments:
            given = given | self._acceleration(given)
        return kernel(*[given[x] for x in kernel.arguments])

    def _acceleration(self, given: dict[str, Array]) -> dict[str, Array]:
        """v̇ of a tree and its derivatives."""
        nodes, extra = self.structure.dynamics.nodes, given.get("extra", np.zeros(0))
        pushes = {x: extra[..., 6 * i : 6 * i + 6] for i, x in enumerate(nodes)}
        more: dict[str, Any] = {"forces": pushes, "forces_frame": "world"} if nodes else {}
        state = given["q"], given["v"], self._call("acting", given)
        by = forward_dynamics_derivatives(self.mech, *state, **more)
        each = np.stack([by.q, by.v, by.tau], axis=-3)
        vdot = forward_dynamics(self.mech, *state, **more)
        return {"vdot": vdot, "by": each.reshape(*each.shape[:-3], -1)}

    def __call__(self, *arrays: Any) -> dict[str, Array]:
        """The results of a tick, by name."""
        given = dict(zip(self.arguments, map(np.asarray, arrays), strict=True))
        lead = given["q"].shape[:-1]
        given = {x: np.broadcast_to(y, (*lead, y.shape[-1])) for x, y in given.items()}
        nv, s = self.mech.nv, self.structure
        n, h = s.errors(self.mech), given["step"]
        P = given["P"].reshape(*lead, n, n)
        P = 0.5 * (P + _turned(P))
        density = given["density"]
        with np.errstate(divide="ignore"):
            impulse = np.where(h > 0.0, density[..., :nv] / np.sqrt(h), 0.0)
        extra = given.get("extra", np.zeros((*lead, 0)))
        ahead = self._by_points if self._moves else self._by_slopes
        after, predicted, cross = ahead(given, P, impulse)
        predicted = predicted + _diagonal(h * density[..., nv:] ** 2)
        there = given | after | ({"extra": extra} if s.extras else {})
        seen = self._seen_by_points if self._moves else self._seen
        expected, both, S = seen(there, predicted)
        innovation = given["measured"] - expected
        rules = given["variance"], s.blocks, given["use"], given["limit"]
        d, P, nis, weight = _conditioned(predicted, both, S, innovation, *rules)
        dq, dv, more = error_parts(self.mech, d)
        q, J = self._carried(after["q"], dq)
        P = _congruent(_padded(J, n), P)
        q, v, P = self._closed(q, after["v"] + dv, given["tau"], P)
        out = {"q": q, "v": v, "extra": extra + more, "P": P}
        out |= {"innovation": innovation, "nis": nis, "weight": weight}
        if not lead and not all(np.isfinite(x).all() for x in out.values()):
            raise ModelError(
                f"a tick of the filter of {self.mech.name!r} is not finite: its covariance is not "
                "positive definite, or a body turns by more than half a turn. Take shorter steps, "
                "or start with smaller deviations."
            )
        return out | dict(zip(PREDICTED, (after["q"], after["v"], predicted, cross), strict=True))

    def _carried(self, q: Array, d: Array) -> tuple[Array, Array]:
        out = written(self.mech, CARRIED)(np.ascontiguousarray(q), np.ascontiguousarray(d))
        return out["q"], out["J"]

    def _closed(self, q: Array, v: Array, tau: Array, P: Array) -> tuple[Array, Array, Array]:
        if not is_closed(self.mech):
            return q, v, P
        kernel, given = written(self.mech, CLOSING), {"q": q, "v": v, "tau": tau}
        out = kernel(*[np.ascontiguousarray(given[x]) for x in kernel.arguments])
        return out["q"], out["v"], _congruent(_padded(out["F"], P.shape[-1]), P)

    # ------------------------------------------------------------------------ by derivatives

    def _by_slopes(self, given: dict[str, Array], P: Array, impulse: Array) -> Any:
        n, out = P.shape[-1], self._call("step", given)
        F = np.zeros((*P.shape[:-2], n, n + self.mech.nv))
        F[..., :n] = np.eye(n)
        rows = out.pop("F")
        F[..., : rows.shape[-2], :] = rows
        half = F[..., :n] @ P
        push = F[..., n:] * impulse[..., None, :]
        return out, half @ _turned(F[..., :n]) + push @ _turned(push), _turned(half)

    def _seen(self, given: dict[str, Array], P: Array) -> Any:
        out = self._call("seen", given)
        both = P @ _turned(out["H"])
        return out["y"], both, out["H"] @ both

    # ----------------------------------------------------------------------------- by points

    def _columns(self, P: Array) -> Array:
        """s L (..., n, n), P = L L*."""
        if is_closed(self.mech):
            each = np.diagonal(P, axis1=-2, axis2=-1)
            P = P + _diagonal(NEXT * each + NEXT**2)
        out = np.full(P.shape, np.nan)
        for k in np.ndindex(P.shape[:-2]):
            try:
                out[k] = np.linalg.cholesky(P[k])
            except np.linalg.LinAlgError:
                continue
        return self.structure.spread * out

    def _by_points(self, given: dict[str, Array], P: Array, impulse: Array) -> Any:
        nv, n, lead = self.mech.nv, P.shape[-1], P.shape[:-2]
        fixed = n - self.structure.extras
        middle = self._call("step", given)
        columns = np.zeros((*lead, n + nv, n + nv))
        columns[..., :n, :n] = self._columns(P)
        columns[..., n:, n:] = _diagonal(self.structure.spread * impulse)
        there = given | {"q1": middle["q"], "v1": middle["v"]}
        e = self._at_points("step of points", there, columns)
        still = np.concatenate([columns, -columns], axis=-1)[..., fixed:n, :]
        mean, after, cross = self._moments(np.concatenate([e, _turned(still)], axis=-1), columns)
        dq, dv, _ = error_parts(self.mech, mean)
        q, J = self._carried(middle["q"], dq)
        J, v = _padded(J, n), middle["v"] + dv
        return {"q": q, "v": v}, _congruent(J, after), cross[..., :n, :] @ _turned(J)

    def _seen_by_points(self, given: dict[str, Array], P: Array) -> Any:
        columns, none = self._columns(P), {"d": np.zeros((*P.shape[:-2], P.shape[-1]))}
        middle = self._call("sensors of points", given | none)
        y = self._at_points("sensors of points", given, columns) - middle[..., None, :]
        mean, S, both = self._moments(y, columns)
        return middle + mean, both, S

    def _at_points(self, name: str, given: dict[str, Array], columns: Array) -> Array:
        """A formula at x ⊕ d of all columns ±d, (..., points, numbers)."""
        points, kernel = (
            np.concatenate([_turned(columns), -_turned(columns)], -2),
            self._kernel(name),
        )
        shape = points.shape[:-1]

        def rows(x: Array) -> Array:
            wide = np.broadcast_to(x[..., None, :], (*shape, x.shape[-1]))
            return np.ascontiguousarray(wide).reshape(-1, x.shape[-1])

        arrays = [
            points.reshape(-1, points.shape[-1]) if x == "d" else rows(given[x])
            for x in kernel.arguments
        ]
        return kernel(*arrays).reshape(*shape, -1)

    def _moments(self, e: Array, columns: Array) -> tuple[Array, Array, Array]:
        """Mean (size,), covariance (size, size) and that with the state (n, size)."""
        weight, count = 0.5 / self.structure.spread**2, columns.shape[-1]
        mean = weight * e.sum(axis=-2)
        second = weight * (_turned(e) @ e) - mean[..., :, None] * mean[..., None, :]
        odd = e[..., :count, :] - e[..., count:, :]
        return mean, second, weight * (columns @ odd)


def _conditioned(
    P: Array,
    both: Array,
    S: Array,
    innovation: Array,
    variance: Array,
    blocks: list[list[int]],
    use: Array,
    limit: Array,
) -> tuple[Array, Array, Array, Array]:
    """The displacement of the state and its covariance, given measurements, block by block."""
    n = P.shape[-1]
    joint = np.block([[P, both], [_turned(both), S]])
    d = np.zeros(joint.shape[:-1])
    nis, weight = list[Array](), list[Array]()
    for k, block in enumerate(blocks):
        rows = [n + i for i in block]
        D = joint[..., rows, :][..., rows] + _diagonal(variance[..., block])
        W, eps = joint[..., rows, :], (innovation[..., block] - d[..., rows])[..., None]
        gain = np.linalg.solve(D, np.concatenate([eps, W], axis=-1))
        nis.append((eps * gain[..., :1]).sum(axis=(-2, -1)))
        weight.append(np.where(nis[-1] < limit[..., k], use[..., k], 0.0))
        part = weight[-1][..., None]
        d = d + part * (_turned(W) @ gain[..., :1])[..., 0]
        joint = joint - part[..., None] * (_turned(W) @ gain[..., 1:])
    P = joint[..., :n, :n]
    return d[..., :n], 0.5 * (P + _turned(P)), np.stack(nis, axis=-1), np.stack(weight, axis=-1)


def _turned(x: Array) -> Array:
    return x.swapaxes(-1, -2)


def _diagonal(x: Array) -> Array:
    return x[..., None] * np.eye(x.shape[-1])


def _congruent(F: Array, P: Array) -> Array:
    """F P F*."""
    out = F @ P @ _turned(F)
    return 0.5 * (out + _turned(out))


def _padded(J: Array, n: int) -> Array:
    """J for the first numbers of an error of n, 1 for the others."""
    out = np.broadcast_to(np.eye(n), (*J.shape[:-2], n, n)).copy()
    out[..., : J.shape[-2], : J.shape[-1]] = J
    return out
