"""How integrators converge, and what they keep: the tables of docs/evidence/integrators.md.

    python tools/integrators.py            # prints the tables and writes them into the page

Steps of a given length run as compiled rollouts: a million steps of an arm take a second or two.
References are SciPy's DOP853 on q̇ and v̇ as plain equations, quaternions as four numbers, with a
tolerance of 1e-13: nothing of the integrators of Linkwise is in them. `docs/figures/integrators.py`
draws the same numbers. Needs the extra `simulate`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise.errors import TroubleWarning

PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "integrators.md"

FIXED = ("euler", "variational", "rk4", "rk4_mujoco")
"""Integrators with steps of a given length."""

STEPS = (8e-3, 4e-3, 2e-3, 1e-3, 5e-4, 2.5e-4, 1e-4)
"""Lengths of steps [s]; with the last one ten seconds are 1e5 steps."""

TOLERANCES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11)
"""rtol and atol of the adaptive integrator."""

LONG = (1e-3, 2e-2)
"""Lengths of a million steps [s]."""

FLOOR = {"energy": 5e-11, "path": 6e-13}
"""Errors below this [J, rad or m] are rounding, not the method's: orders are told without them."""


@dataclass(frozen=True)
class Case:
    """A motion without dampers, springs or joint forces.

    Attributes:
        mech: The mechanism.
        q: Joint positions at the beginning (nq,).
        v: Joint velocities at the beginning (nv,).
    """

    mech: lw.Mechanism
    q: np.ndarray
    v: np.ndarray

    def energy(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Energy [J] of records (..., nq) and (..., nv)."""
        flat_q, flat_v = q.reshape(-1, self.mech.nq), v.reshape(-1, self.mech.nv)
        kinetic = lw.dynamics.kinetic_energy(self.mech, flat_q, flat_v)
        total = kinetic + lw.dynamics.potential_energy(self.mech, flat_q)
        return np.reshape(total, q.shape[:-1])

    def rollout(
        self, name: str, step: float, duration: float, records: int
    ) -> lw.simulation.Rollout:
        """Some seconds in steps of one length, with about so many records."""
        count = round(duration / step)
        every = max(1, count // records)
        return lw.rollout(
            self.mech, self.q, self.v, duration=count * step, step=step, integrator=name,
            passive=False, record_every=every,
        )  # fmt: skip

    def reference(self, duration: float) -> tuple[np.ndarray, np.ndarray]:
        """q and v after a while, by another method in other coordinates."""
        from scipy.integrate import solve_ivp

        mech, zero = self.mech, np.zeros(self.mech.nv)

        def rate(_: float, y: np.ndarray) -> np.ndarray:
            q, v = mech.normalise(y[: mech.nq]), y[mech.nq :]
            return np.concatenate([mech.qdot(q, v), lw.forward_dynamics(mech, q, v, zero)])

        start = np.concatenate([self.q, self.v])
        options = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-13}
        end = solve_ivp(rate, (0.0, duration), start, **options).y[:, -1]
        return mech.normalise(end[: mech.nq]), end[mech.nq :]

    def off(self, q: np.ndarray, exact: np.ndarray) -> float:
        """How far a configuration is from another [rad or m], the largest entry."""
        return float(np.abs(self.mech.difference(exact, q)).max())


def arm() -> Case:
    """The arm of seven axes let go from a bent posture; it tumbles over itself, chaotically."""
    mech = lw.models.seven_dof_arm()
    q = mech.neutral() + np.array([0.3, 0.8, -0.4, 1.0, 0.2, -0.5, 0.1])
    return Case(mech, q, np.zeros(mech.nv))


def satellite() -> Case:
    """A satellite that spins while its arms swing: a quaternion, and no gravity."""
    mech = lw.models.free_flyer()
    rng = np.random.default_rng(3)
    v = rng.standard_normal(mech.nv)
    v[:6] = 1.0, 5.0, 0.7, 0.1, -0.2, 0.3
    return Case(mech, mech.neutral(), v)


def order(steps: Sequence[float], errors: Sequence[float], floor: float) -> float:
    """The slope of errors over steps, both logarithmic, where errors are not rounding."""
    x, y = np.array(steps), np.array(errors)
    good = np.isfinite(y) & (y > floor) & (x <= 2e-3)
    return float(np.polyfit(np.log(x[good]), np.log(y[good]), 1)[0])


def energy_errors(case: Case, duration: float = 10.0) -> dict[str, list[float]]:
    """Largest error of the energy [J] within a duration, for each integrator and step."""
    result = dict[str, list[float]]()
    for name in FIXED:
        result[name] = []
        for step in STEPS:
            done = case.rollout(name, step, duration, 2500)
            energy = case.energy(done.q, done.v)
            result[name].append(float(np.abs(energy - energy[0]).max()))
    return result


def path_errors(case: Case, duration: float = 1.0) -> dict[str, list[float]]:
    """Error of the configuration [rad or m] after a duration."""
    exact, _ = case.reference(duration)
    return {
        name: [case.off(case.rollout(name, h, duration, 1).q[-1], exact) for h in STEPS]
        for name in FIXED
    }


@dataclass(frozen=True)
class Adaptive:
    """What the adaptive integrator does with a tolerance.

    Attributes:
        tolerance: rtol and atol.
        energy: Largest error of the energy within ten seconds [J].
        path: Error of the configuration after a second [rad or m].
        steps: Steps of these ten seconds.
    """

    tolerance: float
    energy: float
    path: float
    steps: int


def adaptive_errors(case: Case) -> list[Adaptive]:
    """The adaptive integrator with several tolerances."""
    exact, result = case.reference(1.0)[0], list[Adaptive]()
    for tol in TOLERANCES:

        def run(duration: float, tol: float = tol) -> lw.Recording:
            return lw.simulate(
                case.mech, case.q, case.v, duration=duration, step=0.01, integrator="adaptive",
                passive=False, rtol=tol, atol=tol,
            )  # fmt: skip

        long = run(10.0)
        energy = case.energy(long.q, long.v)
        off = case.off(run(1.0).q[-1], exact)
        result.append(Adaptive(tol, float(np.abs(energy - energy[0]).max()), off, long.steps))
    return result


@dataclass(frozen=True)
class Long:
    """Energy over a million steps of several motions.

    Attributes:
        step: Length of a step [s].
        t: Times of the records (k,) [s].
        error: Energy less that at the beginning (motions, k) [J], infinite for lost motions.
    """

    step: float
    t: np.ndarray
    error: np.ndarray

    @property
    def lost(self) -> int:
        """How many motions grew without bounds."""
        return int(np.count_nonzero(~np.isfinite(self.error[:, -1])))

    def largest(self, parts: int = 10) -> np.ndarray:
        """The median over motions of the largest error in each part of the time (parts,)."""
        pieces = np.array_split(np.abs(self.error[:, 1:]), parts, axis=1)
        return np.median([piece.max(axis=1) for piece in pieces], axis=1)

    @property
    def trend(self) -> tuple[float, float]:
        """Mean slope of the energy [J/s] over the motions, and its standard error."""
        slopes = np.polyfit(self.t, self.error.T, 1)[0]
        return float(slopes.mean()), float(slopes.std(ddof=1) / np.sqrt(len(slopes)))


def long_runs(step: float = 1e-3, steps: int = 1_000_000, motions: int = 16) -> dict[str, Long]:
    """Motions of the arm from postures drawn at random, each a million steps.

    They begin five minutes after the arm was let go: until then the motion spreads over all axes,
    and what errors depend on changes with it.
    """
    case, rng = arm(), np.random.default_rng(0)
    q = case.q + 0.4 * rng.standard_normal((motions, case.mech.nq))
    v, result = np.zeros((motions, case.mech.nv)), dict[str, Long]()
    warm = lw.rollout(case.mech, q, v, duration=300.0, record_every=300_000, passive=False)
    q, v = warm.q[:, -1], warm.v[:, -1]
    for name in ("euler", "rk4", "variational"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TroubleWarning)  # the table tells of them
            done = lw.rollout(
                case.mech, q, v, duration=steps * step, step=step, integrator=name, passive=False,
                record_every=steps // 5000,
            )  # fmt: skip
        gone = ~np.isfinite(done.v).all(axis=2)
        energy = case.energy(np.where(gone[..., None], q[0], done.q), np.nan_to_num(done.v))
        result[name] = Long(step, done.t, np.where(gone, np.inf, energy - energy[:, :1]))
    return result


# ------------------------------------------------------------------------------------------- page


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, numbers to the right."""
    line = " | ".join(["---", *["---:"] * (len(head) - 1)])
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, [line], *rows))


def by_step(errors: Mapping[str, Sequence[float]], what: str) -> str:
    """Errors, a row for each step, and the orders below."""
    rows = [
        [f"{h * 1e3:g} ms", *(f"{errors[name][i]:.1e}" for name in FIXED)]
        for i, h in enumerate(STEPS)
    ]
    rows.append(
        ["**order**", *(f"**{order(STEPS, errors[name], FLOOR[what]):.2f}**" for name in FIXED)]
    )
    return table(["step", *(f"`{name}`" for name in FIXED)], rows)


def by_tolerance(result: Sequence[Adaptive]) -> str:
    """The adaptive integrator, a row for each tolerance."""
    rows = [
        [f"{x.tolerance:.0e}", f"{x.energy:.1e}", f"{x.path:.1e}", str(x.steps)] for x in result
    ]
    return table(["rtol = atol", "energy [J], 10 s", "path [rad], 1 s", "steps in 10 s"], rows)


def by_time(runs: Sequence[Mapping[str, Long]]) -> str:
    """A million steps, a row for each step and integrator."""
    rows = list[list[str]]()
    for name, x in ((name, x) for result in runs for name, x in result.items()):
        first, *_, last = (f"{error:.1e}" if error < np.inf else "-" for error in x.largest())
        lost = f"{x.lost} of {len(x.error)}" if x.lost else "none"
        trend = "-" if x.lost else "({:+.1e} ± {:.0e}) J/s".format(*x.trend)
        rows.append([f"`{name}`", f"{x.step * 1e3:g} ms", first, last, trend, lost])
    head = ["", "step", "first 1e5 steps [J]", "last 1e5 steps [J]", "trend", "diverged"]
    return table(head, rows)


def put(text: str, name: str, content: str) -> str:
    """The page with a table between its marks."""
    mark = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not mark.search(text):
        raise SystemExit(f"docs/evidence/integrators.md has no place for the table {name!r}")
    return mark.sub(lambda m: f"{m[1]}\n{content}\n\n{m[2]}", text)


def main() -> None:
    """All tables."""
    tables = {
        "energy": by_step(energy_errors(arm()), "energy"),
        "path": by_step(path_errors(arm()), "path"),
        "quaternion": by_step(path_errors(satellite()), "path"),
        "adaptive": by_tolerance(adaptive_errors(arm())),
        "long": by_time([long_runs(step) for step in LONG]),
    }
    text = PAGE.read_text(encoding="utf-8")
    for name, content in tables.items():
        print(f"{name}\n\n{content}\n")
        text = put(text, name, content)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
