"""Filters on hinges whose coordinates are not sums of velocities: against a textbook in NumPy.

Rolling balls and soft fingers reach more configurations than their velocities span, free hinges
seen from their other side move by screws, and a hinge of a user has rates of its own. The textbook
moves numbers by `lw.rollout` and by the hinges' own rules, and takes differences for derivatives.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import filtering
from linkwise.dynamics.kernels import written
from linkwise.filtering.allowed import allowed
from linkwise.filtering.tangent import CARRIED, DISPLACEMENT, error_size
from linkwise.model.hinges.hinge import Coordinate
from linkwise.spatial.array import Array
from tests.codegen.rungs import built
from tests.filtering.test_large import in_loops

STEP, FORCE, NOISE = 0.02, 0.3, 0.01


@dataclass(frozen=True)
class Polar(lw.hinges.Hinge):
    """q = (r [m], angle [rad]) of a body that looks outwards, v = (ṙ, r times the turn) [m/s]."""

    @property
    def nv(self) -> int:
        return 2

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return (Coordinate("r", "m"), Coordinate("angle", "rad"))

    @property
    def velocities(self) -> tuple[Coordinate, ...]:
        return (Coordinate("out", "m"), Coordinate("around", "m"))

    def neutral(self) -> Array:
        return np.array([1.0, 0.0])

    def pose(self, q: Array) -> lw.Pose:
        turn = lw.hinges.Pin((0, 0, 1)).pose(q[..., 1:]).rot
        return lw.spatial.pose.trusted_pose(turn, turn[..., :, 0] * q[..., :1])

    def hinge_map(self, q: Array) -> Array:
        q, one = np.asarray(q), 0.0 * np.asarray(q)[..., 0] + 1.0
        o = 0.0 * one
        rows = [[o, o, o, one, o, o], [o, o, 1.0 / q[..., 0], o, one, o]]
        return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)

    def bias(self, q: Array, v: Array) -> Array:
        rate = -v[..., 0] * v[..., 1] / (q[..., 0] * q[..., 0])
        return np.stack([0 * rate, 0 * rate, rate, 0 * rate, 0 * rate, 0 * rate], axis=-1)

    def qdot(self, q: Array, v: Array) -> Array:
        q, v = np.asarray(q), np.asarray(v)
        return np.stack([v[..., 0] + 0.0 * q[..., 0], v[..., 1] / q[..., 0]], axis=-1)

    def integrate(self, q: Array, v: Array, dt: float = 1.0) -> Array:
        q, step = np.asarray(q), dt * np.asarray(v)
        r = q[..., 0] + step[..., 0]
        return np.stack([r, q[..., 1] + 2.0 * step[..., 1] / (q[..., 0] + r)], axis=-1)

    def difference(self, q0: Array, q1: Array) -> Array:
        step, middle = np.asarray(q1) - np.asarray(q0), 0.5 * (q0[..., 0] + q1[..., 0])
        return np.stack([step[..., 0], step[..., 1] * middle], axis=-1)


KINDS: dict[str, tuple[lw.hinges.Hinge, ...]] = {
    "ball": (lw.hinges.RollingBall(0.2),),
    "finger": (lw.hinges.SoftFinger((0.2, -0.3, 1.0)), lw.hinges.RollingBall(0.3).reversed()),
    "screw": (lw.hinges.Free().reversed(),),
    "polar": (Polar(), lw.hinges.SoftFinger().reversed()),
}


@cache
def mechanism(kind: str) -> lw.Mechanism:
    """A body on each hinge of a kind, one after the other, and a pendulum on the last."""
    rod = lw.SpatialInertia.solid_box(1.0, (0.3, 0.1, 0.2)).moved(lw.Pose.translation((0.1, 0, 0)))
    b, parent = lw.Builder(kind), "world"
    for i, hinge in enumerate(KINDS[kind]):
        b, parent = b.body(f"b{i}", parent, hinge, inertia=rod, inboard=(0.2, 0, 0.1)), f"b{i}"
    drive = lw.Drive(damping=0.1, stiffness=1.0, armature=0.02)
    b = b.body(
        "tip", parent, lw.hinges.Pin((1, 0, 0)), inertia=rod, inboard=(0, 0, 0.2), drive=drive
    )
    b = b.node("imu", "tip", lw.Pose.rpy((0.3, -0.2, 0.5), (0.1, 0.2, 0.0)))
    return b.node("far", "b0", (0.3, 0.1, 0.2)).build()


@cache
def kalman(kind: str, method: str, **more: Any) -> filtering.Filter:
    sensors = [
        filtering.marker("far", noise=NOISE, bias=0.02),
        filtering.gyroscope("imu", noise=0.05),
        filtering.accelerometer("imu", noise=0.2),
    ]
    return filtering.kalman_filter(
        mechanism(kind), sensors, step=STEP, method=method, force=FORCE, position=0.05, **more
    )


def beginning(kind: str) -> tuple[Array, Array, Array]:
    mech, rng = mechanism(kind), np.random.default_rng(1)
    q = mech.integrate(mech.neutral(), 0.5 * rng.standard_normal(mech.nv))
    if kind == "polar":
        q[0] = 0.7
    return q, rng.standard_normal(mech.nv), rng.standard_normal(mech.nv)


# ---------------------------------------------------------------------------------- the textbook


class Textbook:
    """Dense matrices; the error of a state is along the hulls of hinges, then v, then a bias."""

    def __init__(self, few: filtering.Filter) -> None:
        self.mech, self.few = few.mech, few
        self.hulls = [body.hinge.hull for body in few.mech.bodies]
        self.ways, self.nv = sum(x.nv for x in self.hulls), few.mech.nv
        self.n = self.ways + self.nv + 3

    def by_hinge(self, rule: Callable[..., Array], *arrays: Array) -> Array:
        parts, i, j = list[Array](), 0, 0
        for hinge in self.hulls:
            sides = [x[i : i + hinge.nq] for x in arrays[:1]]
            other = arrays[1]
            wide = len(other) == self.mech.nq and rule is _difference
            sides.append(other[i : i + hinge.nq] if wide else other[j : j + hinge.nv])
            parts.append(rule(hinge, *sides))
            i, j = i + hinge.nq, j + hinge.nv
        return np.concatenate(parts)

    def moved(self, x: Array, d: Array) -> Array:
        nq = self.mech.nq
        q = self.by_hinge(_integrate, x[:nq], d[: self.ways])
        return np.concatenate([q, x[nq:] + d[self.ways :]])

    def away(self, x: Array, y: Array) -> Array:
        nq = self.mech.nq
        return np.concatenate([self.by_hinge(_difference, x[:nq], y[:nq]), y[nq:] - x[nq:]])

    def f(self, x: Array, tau: Array) -> Array:
        nq = self.mech.nq
        run = lw.rollout(
            self.mech, x[:nq], x[nq:-3], tau=tau, duration=STEP, step=STEP, integrator="euler"
        )
        return np.concatenate([run.q[-1], run.v[-1], x[-3:]])

    def h(self, x: Array, tau: Array) -> Array:
        mech, q, v = self.mech, x[: self.mech.nq], x[self.mech.nq : -3]
        total = tau - mech.damping * v
        total[-1] -= q[-1]  # its spring
        rot = lw.forward_kinematics(mech, q, "imu").rot
        felt = lw.node_acceleration(mech, q, v, "imu", tau=total, kind="classical")[3:]
        return np.concatenate([
            lw.forward_kinematics(mech, q, "far").p + x[-3:],
            lw.node_velocity(mech, q, v, "imu")[:3],
            felt - rot.T @ mech.gravity,
        ])  # fmt: skip

    def slope(self, call: Callable[[Array], Array], size: int, h: float = 1e-4) -> Array:
        """Derivative (., size) at zero, of fourth order in h."""
        columns = list[Array]()
        for e in h * np.eye(size):
            near, far = call(e) - call(-e), call(2 * e) - call(-2 * e)
            columns.append((8.0 * near - far) / (12.0 * h))
        return np.stack(columns, axis=-1)

    def carried(self, x: Array, P: Array, d: Array) -> tuple[Array, Array]:
        there = self.moved(x, d)
        J = self.slope(lambda e: self.away(there, self.moved(x, d + e)), self.n)
        return there, J @ P @ J.T

    def noise(self) -> tuple[Array, Array, Array]:
        """Impulse of forces, Q of what drifts, and R."""
        density = np.concatenate([np.full(self.ways, 0.05), np.zeros(self.nv), np.full(3, 0.02)])
        R = np.repeat([NOISE, 0.05, 0.2], 3) ** 2
        return np.full(self.nv, FORCE / np.sqrt(STEP)), STEP * np.diag(density**2), np.diag(R)

    def corrected(self, x: Array, P: Array, both: Array, S: Array, eps: Array) -> Any:
        gain = np.linalg.solve(S, both.T).T
        x, P = self.carried(x, P - gain @ S @ gain.T, gain @ eps)
        return x, P

    def extended(self, x: Array, P: Array, tau: Array, y: Array) -> Any:
        push, Q, R = self.noise()
        after = self.f(x, tau)
        F = self.slope(lambda d: self.away(after, self.f(self.moved(x, d), tau)), self.n)
        G = self.slope(lambda d: self.away(after, self.f(x, tau + d)), self.nv)
        P = F @ P @ F.T + (G * push**2) @ G.T + Q
        H = self.slope(lambda d: self.h(self.moved(after, d), tau), self.n)
        return self.corrected(after, P, P @ H.T, H @ P @ H.T + R, y - self.h(after, tau))

    def unscented(self, x: Array, P: Array, tau: Array, y: Array) -> Any:
        push, Q, R = self.noise()
        n, spread = self.n, np.sqrt(self.n + self.nv)
        after, root = self.f(x, tau), np.linalg.cholesky(P)
        columns = np.zeros((n + self.nv, n + self.nv))
        columns[:n, :n], columns[n:, n:] = root, np.diag(push)
        e = np.array([
            self.away(after, self.f(self.moved(x, d[:n]), tau + d[n:]))
            for d in spread * np.concatenate([columns.T, -columns.T])
        ])  # fmt: skip
        w = 0.5 / spread**2
        mean = w * e.sum(axis=0)
        after, P = self.carried(after, w * e.T @ e - np.outer(mean, mean), mean)
        P = P + Q
        root = np.linalg.cholesky(P)
        points = spread * np.concatenate([root.T, -root.T])
        middle = self.h(after, tau)
        z = np.array([self.h(self.moved(after, d), tau) for d in points]) - middle
        mean = w * z.sum(axis=0)
        S, both = w * z.T @ z - np.outer(mean, mean) + R, w * points.T @ z
        return self.corrected(after, P, both, S, y - middle - mean)


def _integrate(hinge: lw.hinges.Hinge, q: Array, d: Array) -> Array:
    return hinge.integrate(q, d)


def _difference(hinge: lw.hinges.Hinge, q0: Array, q1: Array) -> Array:
    return hinge.difference(q0, q1)


@pytest.mark.parametrize("method", ["extended", "unscented"])
@pytest.mark.parametrize("kind", KINDS)
def test_ticks_are_those_of_the_textbook(kind: str, method: str) -> None:
    few, rng = kalman(kind, method), np.random.default_rng(2)
    book, (q, v, tau) = Textbook(few), beginning(kind)
    assert few.size == book.n and (book.ways > few.mech.nv) == (kind != "screw")
    estimate = few.start(q, v, position=0.05, velocity=0.1)
    x, P = np.concatenate([q, v, np.zeros(3)]), estimate.P
    for _ in range(2):
        y = book.h(book.moved(x, 0.03 * rng.standard_normal(book.n)), tau)
        x, P = getattr(book, method)(x, P, tau, y)
        parts = {"marker far": y[:3], "gyroscope imu": y[3:6], "accelerometer imu": y[6:]}
        estimate = few.tick(estimate, tau, parts)
        made = np.concatenate([estimate.q, estimate.v, estimate.extra])
        assert np.allclose(made, x, rtol=1e-7, atol=1e-8)
        assert np.allclose(estimate.P, P, rtol=1e-6, atol=1e-7 * np.abs(P).max())
    assert np.abs(estimate.q - q).max() > 1e-2 and np.abs(estimate.extra).max() > 1e-4


@pytest.mark.parametrize("method", ["extended", "unscented"])
@pytest.mark.parametrize("kind", ["ball", "polar"])
def test_matrices_in_loops_and_c_are_the_same(kind: str, method: str, tmp_path: Path) -> None:
    few, (q, v, tau), rng = kalman(kind, method), beginning(kind), np.random.default_rng(3)
    x, kernel = few.start(q, v, position=0.05), few.kernel()
    y = rng.standard_normal(9)
    arrays = few.inputs | {"q": x.q, "v": x.v, "extra": x.extra, "P": x.P.ravel(), "tau": tau}
    arrays |= {"step": np.array([STEP]), "measured": y, "use": np.array([1.0, 1.0, 0.0])}
    given = [np.ascontiguousarray(arrays[name], dtype=np.float64) for name in kernel.arguments]
    expected = kernel(*given)
    code = built(few.export_c("state_filter"), tmp_path)
    out = np.zeros(sum(np.size(part) for part in expected.values()))
    pointers = [a.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for a in (*given, out)]
    assert code(*pointers) == 0
    flat = np.concatenate([np.ravel(part) for part in expected.values()])
    assert np.allclose(out, flat, rtol=1e-9, atol=1e-11)
    large = in_loops(few).kernel()(*given)
    for name, right in expected.items():
        assert np.allclose(large[name], right, rtol=1e-8, atol=1e-10), name


@pytest.mark.prove
@pytest.mark.parametrize(
    "method", ["extended", pytest.param("unscented", marks=pytest.mark.nightly)]
)
def test_errors_of_rolling_balls_are_chi_square(method: str) -> None:
    """Sixty balls: what each rolls away is uncertain in ways that no velocity has."""
    mech, runs, ticks, force = mechanism("ball"), 60, 30, 0.05
    rng, nv = np.random.default_rng(4), mech.nv
    sensors = [filtering.gyroscope("imu", noise=0.05), filtering.marker("far", noise=NOISE)]
    few = filtering.kalman_filter(mech, sensors, step=STEP, force=force, method=method)
    q0, v0, _ = beginning("ball")
    start = few.start(np.tile(q0, (runs, 1)), np.tile(v0, (runs, 1)), position=0.05, velocity=0.1)
    sigma = np.repeat([0.05, 0.1], [6, 4])
    wide = lw.hinges.PointOnPlane(0.2)
    d = sigma * rng.standard_normal((runs, 10))
    q = np.concatenate([wide.integrate(start.q[:, :6], d[:, :5]), start.q[:, 6:] + d[:, 5:6]], 1)
    v = start.v + d[:, 6:]
    tau = force / np.sqrt(STEP) * rng.standard_normal((runs, ticks, nv))
    run = lw.rollout(mech, q, v, tau=tau, duration=ticks * STEP, step=STEP, integrator="euler")
    q, v = run.q[:, 1:], run.v[:, 1:]
    y = {
        "gyroscope imu": lw.node_velocity(mech, q.reshape(-1, 7), v.reshape(-1, 4), "imu")[:, :3],
        "marker far": lw.forward_kinematics(mech, q.reshape(-1, 7), "far").p,
    }
    y = {name: x.reshape(runs, ticks, 3) for name, x in y.items()}
    y["gyroscope imu"] = y["gyroscope imu"] + 0.05 * rng.standard_normal((runs, ticks, 3))
    y["marker far"] = y["marker far"] + NOISE * rng.standard_normal((runs, ticks, 3))
    out = few.run(start, np.zeros((ticks, nv)), y)
    assert out.independent == few.size == 10
    assert filtering.consistency(out.nees(q, v), 10).inside >= 0.85
    assert filtering.consistency(np.sum(list(out.nis.values()), axis=0), 6).inside >= 0.85
    smooth = out.smoothed()
    assert filtering.consistency(smooth.nees(q, v), 10).inside >= 0.8
    errors = [np.std(x.errors(q, v)[:, 5:25, :6]) for x in (out, smooth)]
    assert errors[1] < 0.8 * errors[0]
    wrong = few.with_noise(density=0.1 * few.inputs["density"])
    nees = wrong.run(start, np.zeros((ticks, nv)), y).nees(q, v)
    assert filtering.consistency(nees, 10).inside < 0.5


class Still(Polar):
    """Whose coordinates do not follow its rates."""

    def integrate(self, q: Array, v: Array, dt: float = 1.0) -> Array:
        return np.asarray(q) + dt * np.asarray(v)


class Lost(Polar):
    """Whose differences are not velocities."""

    def difference(self, q0: Array, q1: Array) -> Array:
        return np.asarray(q1) - np.asarray(q0)


class Skate(Polar):
    """With one velocity and no hull."""

    @property
    def nv(self) -> int:
        return 1

    @property
    def velocities(self) -> tuple[Coordinate, ...]:
        return super().velocities[:1]

    def hinge_map(self, q: Array) -> Array:
        return super().hinge_map(q)[..., :1, :]


@pytest.mark.parametrize(
    ("hinge", "reason"),
    [
        (Still(), "'b' is still, whose `integrate` does not move along its `qdot`"),
        (Lost(), "'b' is lost, whose `difference` is not the way back"),
        (Skate(), "'b' is skate, which has 1 velocities and 2 independent coordinates. Give it"),
    ],
)
def test_hinges_of_a_user_that_lack_a_rule(hinge: lw.hinges.Hinge, reason: str) -> None:
    box = lw.SpatialInertia.solid_box(1.0, (0.1, 0.1, 0.1))
    mech = lw.Builder("one").body("b", "world", hinge, inertia=box).build()
    with pytest.raises(lw.ModelError, match=reason):
        filtering.kalman_filter(mech, [filtering.gyroscope("b", noise=0.1)], step=STEP)


# ------------------------------------------------------------------------------------ with loops


@cache
def pushed_ball() -> lw.Mechanism:
    """A ball that rolls on the ground, held at its centre by an arm that turns and slides."""
    rod = lw.SpatialInertia.solid_box(1.0, (0.3, 0.1, 0.2)).moved(lw.Pose.translation((0.2, 0, 0)))
    ball = lw.SpatialInertia.solid_sphere(1.0, 0.2).moved(lw.Pose.translation((0.05, 0.0, 0.0)))
    b = lw.Builder("pushed").body("ball", "world", lw.hinges.RollingBall(0.2), inertia=ball)
    turns = lw.hinges.Universal((0, 0, 1), (0, 1, 0))
    b = b.body("arm", "world", turns, inertia=rod, inboard=(0, 0, 0.5))
    b = b.body("rod", "arm", lw.hinges.Prismatic((1, 0, 0)), inertia=rod)
    b = b.node("imu", "rod", (0.1, 0.2, 0.3)).node("end", "rod", (0.5, 0, 0))
    return b.loop("hold", "ball", "end", lw.hinges.Spherical()).build()


@cache
def fingered() -> lw.Mechanism:
    """A fingertip that touches a plate in a loop: it may tip, but not twist."""
    rod = lw.SpatialInertia.solid_box(1.0, (0.3, 0.1, 0.2)).moved(lw.Pose.translation((0.2, 0, 0)))
    b = lw.Builder("fingered").body("plate", "world", lw.hinges.Planar(), inertia=rod)
    b = b.body("a", "world", lw.hinges.Gimbal(), inertia=rod, inboard=(0, 0, 0.3))
    b = b.body("c", "a", lw.hinges.Translation(), inertia=rod, inboard=(0.3, 0, 0))
    b = b.node("imu", "a", (0.1, 0.2, 0.3)).node("tip", "c", (0.1, 0, 0.1))
    return b.loop("touch", "plate", "tip", lw.hinges.SoftFinger()).build()


def closed_beginning(mech: lw.Mechanism) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    q = mech.integrate(mech.neutral(), 0.5 * rng.standard_normal(mech.nv))
    q = lw.loops.project_position(mech, q).required()
    v = lw.loops.project_velocity(mech, q, 0.5 * rng.standard_normal(mech.nv))
    return q, v, rng.standard_normal(mech.nv)


@pytest.mark.parametrize(
    ("method", "integrator"),
    [
        ("extended", "euler"),
        ("extended", "rk4"),
        pytest.param("unscented", "euler", marks=pytest.mark.prove),
    ],
)
@pytest.mark.parametrize(("mech", "free"), [(pushed_ball(), 8), (fingered(), 11)])
def test_loops_allow_more_displacements_than_velocities(
    mech: lw.Mechanism, free: int, method: str, integrator: str
) -> None:
    """The step is that of rollouts, its derivative that of differences; estimates obey."""
    few = filtering.kalman_filter(
        mech,
        [filtering.gyroscope("imu", noise=0.1)],
        step=0.01,
        method=method,
        integrator=integrator,
    )
    q, v, tau = closed_beginning(mech)
    start = few.start(q, v)
    assert np.linalg.matrix_rank(start.P) == free == allowed(mech, q, few.size).shape[1]

    def ahead(d: Array) -> dict[str, Array]:
        ways = error_size(mech)
        at = written(mech, CARRIED)(q, d[:ways])["q"], v + d[ways:], np.zeros(0)
        x = filtering.Estimate(*at, start.P, {}, {}, {}, {})
        return few._ticked(x, tau, {}, None, {}, smoothing=True)[1]  # pyright: ignore[reportPrivateUsage]

    here = ahead(np.zeros(few.size))
    if method == "extended":
        options: Any = {"duration": 0.01, "step": 0.01, "integrator": "implicit"}
        if integrator == "rk4":  # the motion itself
            options |= {"step": 0.001, "integrator": "rk4"}
        run, near = lw.rollout(mech, q, v, tau=tau[None], **options), (1e-8, 1e-6)
        near = near if integrator == "euler" else (2e-7, 5e-6)  # where closed by other norms
        assert np.allclose(here["q_predicted"], run.q[-1], atol=near[0])
        assert np.allclose(here["v_predicted"], run.v[-1], atol=near[1])
        for i, way in enumerate(1e-5 * start.P):
            sides = [ahead(s * way) for s in (1.0, -1.0)]
            each = [
                np.concatenate([
                    written(mech, DISPLACEMENT)(here["q_predicted"], x["q_predicted"]),
                    x["v_predicted"],
                ])
                for x in sides
            ]  # fmt: skip
            slope = (each[0] - each[1]) / 2e-5
            assert np.allclose(here["cross"][i], slope, rtol=1e-6, atol=1e-7)
    x = start
    for _ in range(20):
        x = few.tick(x, 0.1 * tau, {"gyroscope imu": [0.1, 0.2, -0.1]})
    J_c = lw.loops.constraint_jacobian(mech, x.q)
    assert np.abs(lw.loops.constraint_error(mech, x.q)).max() < 1e-3
    assert np.abs(J_c @ x.v).max() < 1e-2 * np.linalg.norm(x.v)
    assert np.abs(x.q - q).max() > 1e-2
    ways = allowed(mech, x.q, few.size)
    assert np.linalg.eigvalsh(ways.T @ x.P @ ways).min() > 1e-9


def test_a_loop_without_a_formula_is_named() -> None:
    box = lw.SpatialInertia.solid_box(1.0, (0.1, 0.1, 0.1))
    b = lw.Builder("two").body("a", "world", lw.hinges.Free(), inertia=box)
    two = lw.hinges.Screws(((0, 0, 1, 0, 0, 0.1), (1, 0, 0, 0, 0, 0)))
    b = b.loop("nut", "world", "a", two)
    with pytest.raises(lw.ModelError, match="loop 'nut' has a hinge of kind screws, which has no"):
        filtering.kalman_filter(b.build(), [filtering.gyroscope("a", noise=0.1)], step=STEP)


@pytest.mark.parametrize("kind", KINDS)
def test_displacements_begin_as_velocities(kind: str) -> None:
    """No displacement leaves covariances as they are, and small ones come back."""
    mech, (q, _, _) = mechanism(kind), beginning(kind)
    size = error_size(mech)
    out = written(mech, CARRIED)(q, np.zeros(size))
    assert np.allclose(out["q"], q, atol=1e-14) and np.allclose(out["J"], np.eye(size), atol=1e-13)
    d = 0.3 * np.random.default_rng(5).standard_normal(size)
    assert np.allclose(written(mech, DISPLACEMENT)(q, written(mech, CARRIED)(q, d)["q"]), d)


def test_soft_fingers_in_implicit_steps() -> None:
    """The twist that a soft finger blocks is no error of positions: steps converge to "rk4"."""
    mech = fingered()
    q, v, tau = closed_beginning(mech)
    motion: dict[str, Any] = {"tau": tau, "duration": 0.04}
    exact = lw.rollout(mech, q, v, step=5e-4, integrator="rk4", **motion)
    gaps = list[float]()
    for step in (4e-3, 1e-3):
        run = lw.rollout(mech, q, v, step=step, integrator="implicit", **motion)
        gaps.append(float(np.abs(run.q[-1] - exact.q[-1]).max()))
    assert gaps[1] < 0.3 * gaps[0] < 0.03 and np.abs(exact.q[-1] - q).max() > 0.02
