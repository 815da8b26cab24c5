"""Implicit steps on a CUDA GPU against the CPU: loops, parameters, contacts, flexible bodies ...

    python benchmarks/implicit_gpu_checks.py --prepare   here: references into build/implicit_gpu
    python benchmarks/implicit_gpu_checks.py             on a machine with a GPU: prints a line each

The second needs NumPy and CuPy only, and exits with 1 where something differs.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from gpu_reference import flexible_arm

import linkwise as lw
from linkwise.codegen.stepping.chance import Chance
from linkwise.codegen.stepping.kernel import MotionKernel
from linkwise.codegen.stepping.noise import SCALE, drawn
from linkwise.codegen.stepping.stepping import Stepping
from linkwise.simulation import ContactPoint, Ground, HeightField, ground_contacts
from linkwise.simulation.episode import Episode
from linkwise.simulation.motion_request import MotionRequest

FOLDER = Path(__file__).parent.parent / "build" / "implicit_gpu"
BATCH = 70
FIELDS = ("q", "v", "contact_forces", "residual", "penetration", "slip", "status", "failed_step")
TOLERANCE = {"float64": 1e-8, "float32": 2e-3}
FORCES = {"float64": 1e-8, "float32": 1e-2}  # sweeps end at 4e-5 m/s, of g h = 1e-2 m/s a step
COMMON = {"sweeps": 20, "duration": 0.1, "step": 1e-3, "integrator": "implicit", "record_every": 7}


def varied(low: float, high: float) -> np.ndarray:
    """A number for each motion."""
    return np.linspace(low, high, BATCH)[:, None, None]


def linkage(dtype: str) -> tuple[Any, ...]:
    """A four-bar with a stop, with another gravity in each motion."""
    mech = lw.models.four_bar()
    gravity = varied(-12.0, -3.0) * np.array([0.2, 0.0, 1.0])
    return mech, mech.neutral(), COMMON | {"parameters": {"gravity": gravity}, "dtype": dtype}


def standing(dtype: str) -> tuple[Any, ...]:
    """A quadruped on four grounds, with its own gains, pushed at random."""
    mech = lw.models.quadruped()
    hinges = [b.hinge_name for b in mech.bodies[1:]]
    servos = [lw.Actuator.position(n, n, kp=300.0, kv=10.0) for n in hinges]
    robot = lw.Mechanism(mech.name, mech.bodies, mech.nodes, actuators=tuple(servos))
    feet = ground_contacts(robot, Ground(), bodies=[n.name for n in mech.nodes if "foot" in n.name])
    q = robot.neutral().copy()
    q[6] -= lw.forward_kinematics(robot, q, [p.name for p in feet]).p[:, 2].min()
    numbers = {"ground_friction": varied(0.3, 1.0), "damping": varied(0.0, 0.5)}
    options = {"contacts": feet, "controls": q[7:], "parameters": numbers, "dtype": dtype}
    return robot, q, COMMON | options | {"noise": {"push:trunk": (30.0, 0.05, 0.01)}, "seed": 5}


def falling(dtype: str) -> tuple[Any, ...]:
    """Balls that fall on the ground from different heights, until they are low."""
    b = lw.Builder("ball")
    inertia = lw.SpatialInertia.solid_sphere(1.0, 0.1)
    mech = b.body("ball", hinge=lw.hinges.Free(), inertia=inertia).build()
    q = np.zeros((BATCH, 7))
    q[:, 0], q[:, 6] = 1.0, np.linspace(0.11, 0.4, BATCH)
    point = ContactPoint("c", "ball", radius=0.1, ground=Ground(restitution=0.5))
    stop = {"base_height": (0.15, np.inf)}
    return mech, q, COMMON | {"contacts": [point], "stop": stop, "dtype": dtype}


def rolling(dtype: str) -> tuple[Any, ...]:
    """Balls that fall and roll over a field of heights."""
    mech, q, options = falling(dtype)
    x = np.linspace(-1.0, 1.0, 41)
    heights = 0.05 * np.sin(4.0 * x)[:, None] * np.cos(3.0 * x)[None]
    field = HeightField(heights, (2.0, 2.0), friction=0.8)
    q[:, 4], q[:, 6] = np.linspace(-0.6, 0.6, BATCH), 0.15
    point = ContactPoint("c", "ball", radius=0.1, ground=field)
    return mech, q, options | {"contacts": [point], "stop": None}


def bending(dtype: str) -> tuple[Any, ...]:
    """Arms whose links bend, with motors behind gears, from different heights."""
    mech = flexible_arm()
    q = np.zeros((BATCH, mech.nq))
    q[:, 0] = np.linspace(-1.0, 1.0, BATCH)
    return mech, q, COMMON | {"dtype": dtype}


CASES: dict[str, Callable[[str], tuple[Any, ...]]] = {
    "linkage": linkage, "standing": standing, "falling": falling, "rolling": rolling,
    "bending": bending,
}  # fmt: skip


def results(runs: Any) -> dict[str, np.ndarray]:
    """What is compared."""
    fields = {name: getattr(runs, name) for name in FIELDS}
    return {name: np.asarray(x) for name, x in fields.items() if x is not None}


def prepare() -> None:
    """The results of the CPU."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, case in CASES.items():
        for dtype in TOLERANCE:
            mech, q, options = case(dtype)
            fields = results(lw.rollout(mech, q, **options))
            assert name != "rolling" or fields["contact_forces"].any(axis=(1, 2)).sum() > BATCH / 2
            np.savez(FOLDER / f"{name}_{dtype}.npz", **fields)
            print(f"{name} {dtype}: prepared")


def compare(name: str, dtype: str) -> bool:
    """One case on the GPU."""
    mech, q, options = CASES[name](dtype)
    runs = results(lw.rollout(mech, q, target="cuda", **options))
    stored, fine = np.load(FOLDER / f"{name}_{dtype}.npz"), True
    for field, x in runs.items():
        expected = stored[field]
        scale = max(1.0, float(np.nanmax(np.abs(expected), initial=0.0)))
        off = float(np.nanmax(np.abs(x - expected), initial=0.0)) / scale
        exact = field in ("status", "failed_step")
        bound = (FORCES if field == "contact_forces" else TOLERANCE)[dtype]
        good = np.array_equal(x, expected) if exact else off < bound
        fine &= bool(good)
        print(f"{name} {dtype} {field}: {'fine' if good else 'DIFFERS'}, {off:.1e} apart")
    return fine


@dataclass(frozen=True)
class ShownNoise:
    """A motion whose records are its random numbers."""

    mech: lw.Mechanism
    content: MotionRequest
    itemsize: int
    integrator: str = "implicit"
    alone: bool = False

    def stepping(self, target: str) -> Stepping:
        """The segments."""
        plain = self.content.stepping(target)
        return replace(plain, shown=((plain.noise[0].register, 2),))


def bits(dtype: str) -> bool:
    """Random numbers of the GPU are those of NumPy, to the last bit."""
    mech, chance, size = lw.models.pendulum(2), Chance("tau", 2, 3, 2), np.dtype(dtype).itemsize
    request = MotionRequest(mech, "implicit", itemsize=size, episode=Episode((chance,)))
    kernel, seed = MotionKernel(ShownNoise(mech, request, size), "cuda"), (1 << 40) + 5
    zero = np.zeros((BATCH, 2), dtype)
    held = {"tau": np.zeros(2, dtype), "noise:tau": np.ones(2, dtype)}
    done = kernel(zero, zero, held, step=1e-3, steps=30, every=1, seed=seed).more[:, 1:]
    expected = np.rint(drawn(chance, seed, BATCH, 30) / SCALE).astype(dtype)
    fine = np.array_equal(done, expected * np.dtype(dtype).type(SCALE))
    print(f"random numbers {dtype}: {'the same bits' if fine else 'DIFFER'}")
    return fine


def main() -> None:
    """Prepare, or compare."""
    if "--prepare" in sys.argv:
        prepare()
        return
    checks = [bits(dtype) for dtype in TOLERANCE]
    checks += [compare(name, dtype) for name in CASES for dtype in TOLERANCE]
    sys.exit(0 if all(checks) else 1)


if __name__ == "__main__":
    main()
