"""The variational integrator in segments: rounds that solve for the rates, then the step itself.

The equations are those of `linkwise.simulation.variational.step`, which does the same in NumPy:

    plain          μ = p + ½h f                              p' = p + h f             (1)
    quaternion     S μ = p_m + ½h (f − t × f)                p' = E* (p_m + h f)      (2)

for the rates w of the step, with p_m = E* p and E = exp(½h ω). One round is w ← w − 𝓜⁻¹ r(w);
it is run until it changes nothing but rounding. What the last one still changes is checked. With
dampers d and springs k the rounds have N + ½h d + ¼h² k in the place of N, what they do to r(w), so
that these may be as stiff as they like.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linkwise.codegen.scalar.trace import Traced
from linkwise.codegen.stepping import rates
from linkwise.codegen.stepping.passive import Passive
from linkwise.codegen.stepping.segment import Segment, Sketch
from linkwise.codegen.stepping.stepping import STEP, Stepping
from linkwise.model.hinges import Free, Planar, Spherical
from linkwise.model.mechanism import Mechanism

ROUNDS = 40
"""Rounds of a step, at most. Each makes the error smaller by a factor of about h |w|."""

ENOUGH = {8: 1e-13, 4: 1e-5}
"""A round that changes w by less, in parts of it, is the last; by the bytes of a number."""

LEFT = {8: 1e-9, 4: 1e-3}
"""What the last of all rounds may still change."""

TINY = 1e-24
"""Squares of rates [1/s²] below this are nothing."""

TERMS = 12
"""Of the series of S in (θ/2)² ≤ (π/2)²: the first one left out is below 1e-19."""


def unsolved_code(mech: Mechanism) -> int:
    """The code for: the equations of a step were not solved."""
    return rates.turn_code(mech, mech.n_bodies)


def variational(
    mech: Mechanism, both: Traced, solve: Traced, passive: Passive | None, itemsize: int
) -> Stepping:
    """The stepping of a mechanism.

    Args:
        mech: The mechanism.
        both: 𝓜 v and C_v* v − g, one behind the other, of q and v.
        solve: 𝓜⁻¹ x of q and x; with dampers and springs also of N ("armature").
        passive: Dampers and springs.
        itemsize: Bytes of a number.

    Raises:
        LoweringError: A hinge that has no formula for its steps; names it.
    """
    rates.check_supported(mech)
    made = _Discrete(mech, both, solve, passive, itemsize)
    state = ("q0", "p0", "w")
    parts = (made.enter(),), (made.round(), made.advance()), (made.leave(),)
    return Stepping("variational", mech.nq, mech.nv, made.held, state, *parts)


class _Discrete:
    """Sketches over the registers q0, p0 and w (the state), force, change and again."""

    def __init__(
        self, mech: Mechanism, both: Traced, solve: Traced, passive: Passive | None, itemsize: int
    ) -> None:
        self.mech, self.nq, self.nv = mech, mech.nq, mech.nv
        self.both, self.solve, self.passive = both, solve, passive
        self.enough, self.left = ENOUGH[itemsize], LEFT[itemsize]
        others = tuple(x for x in both.inputs if x[0] not in ("q", "v"))
        self.held = (("tau", mech.nv), *others)
        starts = list(zip(mech.q_start.tolist(), mech.v_start.tolist(), strict=True))
        kinds = [(*starts[k], type(body.hinge)) for k, body in enumerate(mech.bodies)]
        self.turns = [
            (k, *kind[:2]) for k, kind in enumerate(kinds) if kind[2] in (Free, Spherical)
        ]
        self.free = [(i, j) for i, j, kind in kinds if kind is Free]
        self.planar = [(i, j) for i, j, kind in kinds if kind is Planar]
        turning = {i + n for _, i, _ in self.turns for n in range(4)}
        plain_v = {j + n for _, _, j in self.turns for n in range(3)}
        self.plain_q = [i for i in range(mech.nq) if i not in turning]
        self.plain_v = [j for j in range(mech.nv) if j not in plain_v]

    # ------------------------------------------------------------------------------ segments

    def enter(self) -> Segment:
        """(q, v) to the state."""
        s = Sketch("enter")
        q, v = s.read("q", self.nq), s.read("v", self.nv)
        mu, _ = self._both(s, q, v, {name: np.zeros(n, dtype=object) for name, n in self.held})
        p = self.rates(q, mu + self._armature(v))
        self._solved(s, q, p)  # for its checks: hinges that nothing resists
        s.write("q0", q)
        s.write("p0", p)
        s.write("w", self.rates(q, v))
        return s.segment()

    def leave(self) -> Segment:
        """The state to (q, v)."""
        s = Sketch("leave")
        q, p = s.read("q0", self.nq), s.read("p0", self.nv)
        s.write("q", q)
        s.write("v", self._solved(s, q, self.velocities(q, p)))
        return s.segment()

    def round(self) -> Segment:
        """w ← w − 𝓜⁻¹ r(w); force and change are kept for the end of the step."""
        s = Sketch("round")
        q, p, w = s.read("q0", self.nq), s.read("p0", self.nv), s.read("w", self.nv)
        (h,) = s.read(STEP, 1)
        halves = [_Half(w[j : j + 3], h) for _, _, j in self.turns]
        middle = self._moved(q, 0.5 * h * w, [half.turn for half in halves])
        v = self.velocities(middle, w)
        mu, force = self._both(s, middle, v, {name: s.read(name, n) for name, n in self.held})
        mu = mu + self._armature(v)
        force = self.rates(middle, force + self._frame_force(v, mu))
        momentum = self.rates(middle, mu)
        r = momentum - p - 0.5 * h * force
        for (_, _, j), half in zip(self.turns, halves, strict=True):
            at, twist = slice(j, j + 3), half.turn[1:] * half.turn[0].reciprocal()
            pushed = 0.5 * h * (force[at] - cross(twist, force[at]))
            r[at] = half.stretched(momentum[at]) - turned(half.back, p[at]) - pushed
        stiff = self._stiffened(h)
        change = self.rates(middle, self._solved(s, middle, self.velocities(middle, r), stiff))
        s.checks.clear()  # rounds that run away are told by `advance`
        s.write("w", w - change)
        s.write("force", force)
        s.write("change", change)
        s.write("again", [_squares(change) - self.enough**2 * _squares(w) - TINY])
        return s.segment(again="again", most=ROUNDS)

    def advance(self) -> Segment:
        """q0 and p0 of the next step, and whether w was good enough."""
        s = Sketch("advance")
        q, p, w = s.read("q0", self.nq), s.read("p0", self.nv), s.read("w", self.nv)
        force, change, (h,) = s.read("force", self.nv), s.read("change", self.nv), s.read(STEP, 1)
        bound = self.left**2 * _squares(w) + TINY
        s.check(unsolved_code(self.mech), _squares(change) - bound, -math.inf, 0.0)
        whole, after = list[Any](), p + h * force
        for k, _, j in self.turns:
            at, half = slice(j, j + 3), _Half(w[j : j + 3], h)
            s.check(rates.turn_code(self.mech, k), half.square, -1.0, math.pi**2)
            whole.append(product(half.turn, half.turn))
            after[at] = turned(half.back, turned(half.back, p[at]) + h * force[at])
        s.write("q0", self._moved(q, h * w, whole))
        s.write("p0", after)
        return s.segment()

    # ------------------------------------------------------------------------------ formulas

    def _both(self, s: Sketch, q: Any, v: Any, held: dict[str, Any]) -> tuple[Any, Any]:
        """𝓜 v, and C_v* v − g with all forces."""
        found = _array(s.replay(self.both, held | {"q": q, "v": v}))
        tau = held["tau"] if self.passive is None else self.passive.added(held["tau"], q, v)
        return found[: self.nv], found[self.nv :] + tau

    def _solved(self, s: Sketch, q: Any, x: Any, armature: Any = None) -> Any:
        held = self.mech.armature if armature is None else armature
        return _array(s.replay(self.solve, {"q": q, "x": x, "armature": held}))

    def _stiffened(self, h: Any) -> Any:
        """The armature, with what dampers and springs add to it in one round."""
        out = self.mech.armature.astype(object)
        if self.passive is not None:
            for i in range(self.nv):
                d, k = float(self.passive.damping[i]), float(self.passive.stiffness[i])
                out[i] = out[i] + 0.5 * d * h + 0.25 * k * h * h
        return out

    def _armature(self, v: Any) -> Any:
        return self.mech.armature * v

    def _moved(self, q: Any, step: Any, turns: list[Any]) -> Any:
        """q ⊕ step, with the quaternions of its turns."""
        out = np.empty(self.nq, dtype=object)
        out[self.plain_q] = q[self.plain_q] + step[self.plain_v]
        for (_, i, _), turn in zip(self.turns, turns, strict=True):
            after = product(q[i : i + 4], turn)
            out[i : i + 4] = after * _squares(after).sqrt().reciprocal()
        return out

    def rates(self, q: Any, x: Any) -> Any:
        """Velocities, momenta or forces in the fixed axes of O⁺, where they are carried along."""
        return self._carried(q, x, back=False)

    def velocities(self, q: Any, x: Any) -> Any:
        """The way back."""
        return self._carried(q, x, back=True)

    def _carried(self, q: Any, x: Any, *, back: bool) -> Any:
        out = x.copy()
        for i, j in self.free:
            turn = conjugate(q[i : i + 4]) if back else q[i : i + 4]
            out[j + 3 : j + 6] = turned(turn, x[j + 3 : j + 6])
        for i, j in self.planar:
            co, si = q[i + 2].cos(), q[i + 2].sin()
            si = -si if back else si
            out[j], out[j + 1] = co * x[j] - si * x[j + 1], si * x[j] + co * x[j + 1]
        return out

    def _frame_force(self, v: Any, mu: Any) -> Any:
        """What turning frames add to L_q: see `Coordinates.frame_force`."""
        out = np.zeros(self.nv, dtype=object)
        for _, _, j in self.turns:
            out[j : j + 3] = cross(v[j : j + 3], mu[j : j + 3])
        for _, j in self.free:
            turn, at = slice(j, j + 3), slice(j + 3, j + 6)
            out[at] = cross(v[turn], mu[at])
        for _, j in self.planar:
            out[j], out[j + 1] = -v[j + 2] * mu[j + 1], v[j + 2] * mu[j]
        return out


class _Half:
    """The turn of half a step.

    Attributes:
        square: θ² of the whole step.
        turn: The quaternion of exp(½h ω).
        back: Its inverse.
    """

    def __init__(self, omega: Any, h: Any) -> None:
        self.e = h * omega
        self.square = _squares(self.e)
        cosine, half = rates.half_turn(0.25 * self.square)
        self.turn = np.array([cosine, *(0.5 * half * x for x in self.e)], dtype=object)
        self.back = conjugate(self.turn)

    def stretched(self, mu: Any) -> Any:
        """S μ = s μ + c e (e · μ): with x = (θ/2)², g = sin ½θ / ½θ = 1 − x k(x), s = 1/g.

        k = Σ (−x)ⁱ / (2i + 3)!, and c = (1 − s)/θ² = −k/(4 g).
        """
        x, k = 0.25 * self.square, 0.0
        for i in range(TERMS, -1, -1):
            k = k * (-x) + 1.0 / math.factorial(2 * i + 3)
        s = (1.0 - x * k).reciprocal()
        along = self.e[0] * mu[0] + self.e[1] * mu[1] + self.e[2] * mu[2]
        return s * mu - (0.25 * k * s * along) * self.e


def cross(a: Any, b: Any) -> Any:
    """a × b (3,)."""
    x, y = (1, 2, 0), (2, 0, 1)
    return np.array([a[i] * b[j] - a[j] * b[i] for i, j in zip(x, y, strict=True)], dtype=object)


def turned(turn: Any, x: Any) -> Any:
    """R x of a quaternion: x + q₀ t + r × t with t = 2 r × x."""
    t = 2.0 * cross(turn[1:], x)
    return x + turn[0] * t + cross(turn[1:], t)


def conjugate(turn: Any) -> Any:
    """The inverse of a unit quaternion."""
    return np.array([turn[0], -turn[1], -turn[2], -turn[3]], dtype=object)


def product(a: Any, b: Any) -> Any:
    """The quaternion a b."""
    vector = a[0] * b[1:] + b[0] * a[1:] + cross(a[1:], b[1:])
    scalar = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3]
    return np.array([scalar, *vector], dtype=object)


def _squares(x: Any) -> Any:
    total: Any = 0.0
    for entry in x:
        total = total + entry * entry
    return total


def _array(values: list[Any]) -> Any:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out
