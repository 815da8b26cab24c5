"""`linkwise tour`: what Linkwise does today, shown on built-in mechanisms, each step checked."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from linkwise import dynamics, ledger, models
from linkwise.algebra import N, bias, mass, tau
from linkwise.algebra.dense import Dense
from linkwise.cli.info import as_text, table, tree_table
from linkwise.cli.robot import open_robot
from linkwise.estimation import RandomField
from linkwise.io.load import load
from linkwise.io.save import save
from linkwise.model import Builder, Mechanism
from linkwise.model.hinges import Pin, RollingBall
from linkwise.model.state import split_coordinate
from linkwise.pipeline import derive, plan
from linkwise.spatial import SpatialInertia
from linkwise.sweeps.cost import cost
from linkwise.sweeps.interpret import run as run_program


def add_to(commands: Any) -> None:
    """Add this command to the parser."""
    p = commands.add_parser("tour", help="a guided tour: build, load, validate, derive, save")
    p.add_argument("robot", nargs="?", default="puma560", help="your robot (default: puma560)")
    p.set_defaults(run=run)


class Checks:
    """Prints what is checked and remembers what failed."""

    def __init__(self) -> None:
        self.failed = 0
        self.passed = 0

    def __call__(self, claim: str, error: float, bound: float) -> None:
        """Say the claim with the figure that was seen."""
        good = bool(error <= bound)  # a NaN is not good
        self.passed += good
        self.failed += not good
        print(f"  {'ok  ' if good else 'FAIL'} {claim}: {error:.1e} (at most {bound:.0e})")


def run(options: argparse.Namespace) -> int:
    """All stations of the tour."""
    started, check = time.perf_counter(), Checks()
    mech = open_robot(options.robot)
    stations: list[Callable[[Mechanism, Checks], None]] = [
        _the_mechanism,
        _hinges,
        _derived,
        _loops,
        _files,
        _validation,
        _algebra,
        _dynamics,
        _estimation,
        _ledger,
    ]
    for i, station in enumerate(stations, start=1):
        print(f"\n{i}. {(station.__doc__ or '').strip()}\n")
        station(mech, check)
    seconds = time.perf_counter() - started
    print(f"\n{check.passed} checks passed, {check.failed} failed, in {seconds:.1f} s.")
    return 1 if check.failed else 0


def _the_mechanism(mech: Mechanism, check: Checks) -> None:
    """A mechanism is a tree of bodies on hinges."""
    print("\n".join(as_text(mech)))
    q, v = mech.random(0), mech.random_velocity(0)
    there = mech.integrate(q, v, 0.1)
    print()
    check("difference undoes integrate", _gap(mech.difference(q, there), 0.1 * v), 1e-12)


def _hinges(mech: Mechanism, check: Checks) -> None:
    """A hinge says its pose, its map H and how H changes: a ball that rolls without slipping."""
    del mech
    ball = RollingBall(radius=0.1)
    q, v = ball.integrate(ball.neutral(), np.array([0.3, -0.8, 0.4])), np.array([1.0, 2.0, -0.5])
    with np.printoptions(precision=4, suppress=True):
        print("  H(q) =", str(ball.hinge_map(q)).replace("\n", "\n         "))
    h = 1e-5
    ahead, behind = (ball.hinge_map(ball.integrate(q, v, s)).T @ v for s in (h, -h))
    slope = (ahead - behind) / (2 * h)
    check("bias is the derivative of H* v", _gap(ball.bias(q, v), slope), 1e-8)
    V = ball.hinge_map(q).T @ v
    rot = ball.pose(q).rot
    slip = rot @ V[3:] + np.cross(rot @ V[:3], [0.0, 0.0, -ball.radius])
    check("the point of contact does not slip", float(np.abs(slip).max()), 1e-15)


def _derived(mech: Mechanism, check: Checks) -> None:
    """From one mechanism others are made: locked, loaded, mounted, renumbered."""
    q = mech.random(1)
    tied = {
        split_coordinate(n, mech.hinge_index)[0]
        for c in mech.couplings
        for n in [c.dependent, *dict(c.terms)]
    }
    free = [b for b in mech.bodies if b.hinge.nv and b.hinge_name not in tied]
    if not free:
        print("  (all hinges of this robot are locked or coupled)")
        return
    tip = free[-1]
    held = mech.lock({tip.hinge_name: q[mech.q_slice(tip.hinge_name)]})
    load_kg = SpatialInertia.solid_sphere(2.0, 0.05)
    rows = [
        ["as it is", repr(mech)],
        [f"{tip.hinge_name} locked", repr(held)],
        ["and melted into the parent", repr(held.merge_locked())],
        ["released again", repr(held.release())],
        [f"with 2 kg on {tip.name}", f"{mech.with_payload(tip.name, load_kg).total_mass:.6g} kg"],
        [
            "a pendulum mounted on it",
            repr(mech.mount(models.pendulum(2), at=tip.name, prefix="p_")),
        ],
    ]
    print("\n".join(table(["mechanism", "gives"], rows)))
    if mech.total_mass == 0.0:
        return
    order = [b.name for b in reversed(mech.bodies)]
    again = mech.renumber(order)
    q_again = np.concatenate([q[mech.q_slice(b.hinge_name)] for b in again.bodies])
    check("renumbered bodies: same centre of mass", _com_gap(mech, q, again, q_again), 1e-13)


def _loops(mech: Mechanism, check: Checks) -> None:
    """Closed chains keep their loops; the tree is cut by itself."""
    del mech
    for closed in (models.four_bar(), models.stewart()):
        print("\n".join(tree_table(closed)))
        q = closed.neutral()
        worst = 0.0
        for loop in closed.loops:
            gap = closed.pose(q, loop.node_a).inverse() @ closed.pose(q, loop.node_b)
            worst = max(worst, float(np.abs(gap.p).max()))
        check(f"{closed.name}: {len(closed.loops)} loop(s) closed at neutral", worst, 1e-12)


def _files(mech: Mechanism, check: Checks) -> None:
    """Files: URDF and MJCF out and in again, the same physics."""
    del mech
    robot = models.puma560()
    q = robot.random(2)
    with tempfile.TemporaryDirectory() as folder:
        for ending in ("urdf", "xml"):
            path = Path(folder) / f"puma560.{ending}"
            report = save(robot, path)
            back = load(path)
            q_back = np.concatenate([q[robot.q_slice(b.hinge_name)] for b in back.bodies])
            print(f"  {path.name}: {path.stat().st_size} bytes; saving: {report.summary()}")
            check(f"{path.name}: same centre of mass", _com_gap(robot, q, back, q_back), 1e-12)


def _validation(mech: Mechanism, check: Checks) -> None:
    """Mistakes are found and named, with a repair."""
    del mech
    builder = Builder("broken")
    thin = SpatialInertia.from_com(1.0, J_com=(0.1, 0.1, 0.9))
    builder.body("arm", "world", Pin((0, 1, 0)), inertia=thin).body("hand", "arm", Pin((1, 0, 0)))
    findings = builder.build().validate()
    print("\n".join(f"  {finding}" for finding in findings))
    check(
        "findings missed", float(len({"triangle", "massless-tip"} - {f.code for f in findings})), 0
    )


def _algebra(mech: Mechanism, check: Checks) -> None:
    """Mechanics as algebra: forward dynamics is (𝓜 + N)⁻¹ (τ - C), and the rest is derived."""
    expr = (mass + N).inv @ (tau - bias)
    derivation = derive(expr)
    program = plan(derivation.result)
    print(derivation)
    print(f"\nwhich becomes ({cost(program)} on a tree of twelve bodies):\n")
    print(program)
    print()
    small = mech if mech.n_bodies <= 40 else models.puma560()
    q, v = small.random(3), small.random_velocity(3)
    values = {"tau": np.random.default_rng(3).standard_normal(small.nv)}
    swept = run_program(program, small, q, v, values=values)
    dense = Dense(small, q, v, values=values)(expr)
    scale = float(np.abs(dense).max(initial=1.0))
    check(f"{small.name}: sweeps against matrices, relative", _gap(swept, dense) / scale, 1e-9)
    check(
        "every step of the derivation, relative", derivation.check(models.random_tree(8, 1)), 1e-9
    )


def _dynamics(mech: Mechanism, check: Checks) -> None:
    """The same, compiled: each function of every day is such a line, made into machine code."""
    small = mech if mech.n_bodies <= 40 else models.puma560()
    q, v = small.random(4), small.random_velocity(4)
    tau_ = np.random.default_rng(4).standard_normal(small.nv)
    tip = small.bodies[-1].name
    calls: dict[str, Callable[[], Any]] = {
        "forward_dynamics": lambda: dynamics.forward_dynamics(small, q, v, tau_),
        "inverse_dynamics": lambda: dynamics.inverse_dynamics(small, q, v, tau_),
        "gravity_force": lambda: dynamics.gravity_force(small, q),
        "jacobian": lambda: dynamics.jacobian(small, q, tip),
        "potential_energy": lambda: dynamics.potential_energy(small, q),
    }
    rows = list[list[str]]()
    for name, call in calls.items():
        first, later = _seconds(call, 1), _seconds(call, 200)
        expr = dynamics.expression(name, armature=bool(small.armature.any()))
        rows.append([f"lw.{name}", str(expr), f"{first:.2f} s", f"{1e6 * later:.1f} µs"])
    print("\n".join(table(["function", "is", "first call", "later"], rows)))
    print()
    vdot, h = dynamics.forward_dynamics(small, q, v, tau_), 1e-4
    back = dynamics.inverse_dynamics(small, q, v, vdot)
    size = float((np.abs(dynamics.mass_matrix(small, q)) @ np.abs(vdot)).max(initial=1.0))
    check("inverse dynamics undoes forward dynamics, relative", _gap(back, tau_) / size, 1e-12)
    energies = [
        dynamics.energy(small, small.integrate(q, v + 0.5 * s * vdot, s), v + s * vdot).total
        for s in (h, -h)
    ]
    power = float(v @ tau_)
    gained = (energies[0] - energies[1]) / (2.0 * h)
    scale = float(np.abs(v) @ (np.abs(tau_) + np.abs(dynamics.bias_force(small, q, v)))) or 1.0
    check("energy changes by the power of the joints, relative", abs(gained - power) / scale, 1e-5)


def _estimation(mech: Mechanism, check: Checks) -> None:
    """Inertia is covariance: push bodies at random, and the joints feel the mass matrix."""
    small = mech if mech.n_bodies <= 40 else models.puma560()
    if not small.nv:
        print("  (nothing moves)")
        return
    q, tau_ = small.random(5), np.random.default_rng(5).standard_normal(small.nv)
    field = RandomField(small, q)
    sample = field.sample_mass_matrix(20_000, seed=5)
    rows = [
        [f"{n}", f"{error:.3f}", f"{expected:.3f}"]
        for n, error, expected in zip(sample.counts, sample.errors, sample.expected, strict=True)
    ]
    print("\n".join(table(["draws", "error", "expected"], rows[-6:])))
    print()
    low, high = (float(side[-1]) for side in sample.band(1.0 - 1e-9))
    inside = max(sample.error / high, low / sample.error)
    check("the error is one that chance allows: its place in the band", inside, 1.0)
    still = np.zeros(small.nv)
    vdot = dynamics.forward_dynamics(small, q, still, tau_)
    smoothed = field.smooth(tau_ - dynamics.bias_force(small, q, still)).vdot
    size = float(np.abs(vdot).max(initial=0.0)) or 1.0
    check("the smoother is forward dynamics, relative", _gap(smoothed, vdot) / size, 1e-9)


def _ledger(mech: Mechanism, check: Checks) -> None:
    """The source documents, executed: what the first prints wrong (all: linkwise ledger)."""
    del mech
    wrong = [entry for entry in ledger.entries("000") if entry.status == "misprint"]
    for verdict in ledger.run(wrong):
        entry = verdict.entry
        print(f"  {entry.number}\n      prints  {entry.printed}\n      holds   {entry.statement}")
        check("what holds, evaluated", verdict.error or 0.0, 1e-9)


def _seconds(call: Callable[[], Any], times: int) -> float:
    """Of one call: the best of so many."""
    best = float("inf")
    for _ in range(times):
        started = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - started)
    return best


def _gap(a: Any, b: Any) -> float:
    return float(np.abs(np.asarray(a) - np.asarray(b)).max(initial=0.0))


def _com_gap(a: Mechanism, q_a: Any, b: Mechanism, q_b: Any) -> float:
    return _gap(a.center_of_mass(q_a), b.center_of_mass(q_b))
