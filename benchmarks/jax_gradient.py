"""`jax.grad` through forward dynamics, beside MJX and frax, on the processor.

Run with `python benchmarks/jax_gradient.py`; writes benchmarks/results/jax_gradient.md. It needs
JAX and one or both of `mujoco-mjx` and `frax`; who is not installed is left out. All differentiate
the same cost of the same robot, written by `lw.save`, under `jit`. Accelerations and gradients are
compared before anything is measured, and rounds of all libraries take turns.
"""

import importlib.util
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

# As frax advises for a processor; it helps all three.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax
import jax.numpy as jnp
import machine
import numpy as np

import linkwise as lw

jax.config.update("jax_enable_x64", True)

Function = Callable[..., Any]

ROBOTS = {"arm (7)": lw.models.seven_dof_arm}
CALLS = {"one by one": 1, "one by one inside `jit`": 100, "batch": 1024}
"""How states are given, and how many of them a call has."""

ROUNDS, LONG, MOST = 1000, 0.001, 3.0
"""Rounds at most, how long one lasts at least, and all rounds of a library at most [s]."""

ALLOWED = {"float64": 1e-9, "float32": 5e-3}
GOAL = 20
RESULTS = Path(__file__).parent / "results" / "jax_gradient.md"
HEAD = """# Gradients through JAX

Written by `python benchmarks/jax_gradient.py`. The gradient of Σ v̇² by q, v and τ, under `jit`, on
the processor: `lw.convert.to_jax("forward_dynamics", mech)` compared with MJX (`mjx.forward`, with
constraints, contacts and passive forces off) and frax (`Robot.forward_dynamics`). The same robot,
written by `lw.save`, without armature. Microseconds for one state, from arrays of JAX to arrays of
JAX: *one by one* is a call from Python for each state, of which JAX itself takes {floor:.1f} µs
(for a function that adds 1 to each array); *inside `jit`* is `lax.map` over 100 states in one call,
as steps of a rollout are; *batch* is `vmap` over 1024. The best of up to {rounds} rounds that take
turns; slow calls have few rounds, and suffer most from other load. Ratios are theirs over ours; the
goal is 20. *Difference* is the largest one between gradients, relative to the largest entry.

{machine}

Load average {load}.

| robot | numbers | states | Linkwise | MJX | ratio | frax | ratio | difference |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |
"""


def mjx_function(path: Path) -> Function | None:
    """Accelerations by MJX."""
    if importlib.util.find_spec("mujoco.mjx") is None:
        return None
    import mujoco
    from mujoco import mjx

    model = mujoco.MjModel.from_xml_path(str(path))
    off = mujoco.mjtDisableBit
    for name in ("CONSTRAINT", "CONTACT", "SPRING", "DAMPER", "PASSIVE", "ACTUATION"):
        model.opt.disableflags |= getattr(off, f"mjDSBL_{name}", 0)
    device = mjx.put_model(model)
    data = mjx.make_data(device)

    def acceleration(q: Any, v: Any, tau: Any) -> Any:
        return mjx.forward(device, data.replace(qpos=q, qvel=v, qfrc_applied=tau)).qacc

    return acceleration


def frax_function(path: Path, hinges: Iterable[str]) -> Function | None:
    """Accelerations by frax."""
    if importlib.util.find_spec("frax") is None:
        return None
    import frax

    base = (
        '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" '
        'ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    text = path.read_text(encoding="utf-8")  # frax reads an inertia of the ground, and ignores it
    path.write_text(text.replace('<link name="world"/>', f'<link name="world">{base}</link>'))
    robot = frax.Robot(str(path), joint_ordering=list(hinges))
    return lambda q, v, tau: robot.forward_dynamics(q, v, tau, None)


def functions(robot: str) -> tuple[lw.Mechanism, dict[str, Function]]:
    """The same robot in all libraries."""
    bare = ROBOTS[robot]()
    for name in bare.hinge_index:
        bare = bare.with_drive(name, lw.Drive())  # frax has no armature
    with tempfile.TemporaryDirectory() as folder:
        xml, urdf = Path(folder) / "model.xml", Path(folder) / "model.urdf"
        lw.save(bare, xml)
        lw.save(bare, urdf)
        mech = lw.load(xml)
        each = {
            "Linkwise": lw.convert.to_jax("forward_dynamics", mech),
            "MJX": mjx_function(xml),
            "frax": frax_function(urdf, mech.hinge_index),
        }
    return mech, {name: f for name, f in each.items() if f is not None}


def gradient(f: Function, call: str) -> Function:
    """The gradient of the cost, compiled."""

    def cost(q: Any, v: Any, tau: Any) -> Any:
        return jnp.sum(f(q, v, tau) ** 2)

    by = jax.grad(cost, (0, 1, 2))
    many = {"batch": jax.vmap(by), "one by one": by}
    return jax.jit(many.get(call, lambda *x: jax.lax.map(lambda state: by(*state), x)))


def measured(works: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Seconds a call, the best round of each; they take turns."""
    calls = dict[str, int]()
    for name, work in works.items():
        began = time.perf_counter()
        jax.block_until_ready(work())
        calls[name] = max(1, int(LONG / (time.perf_counter() - began)))
    best, spent = dict.fromkeys(works, float("inf")), dict.fromkeys(works, 0.0)
    for _ in range(ROUNDS):
        for name, work in works.items():
            if spent[name] > MOST:
                continue
            began = time.perf_counter()
            for _ in range(calls[name]):
                jax.block_until_ready(work())
            took = time.perf_counter() - began
            best[name], spent[name] = min(best[name], took / calls[name]), spent[name] + took
    return best


def row(robot: str, dtype: str, call: str) -> str:
    """One line of the table."""
    count = CALLS[call]
    with jax.enable_x64(dtype == "float64"):
        mech, each = functions(robot)
        lead = () if count == 1 else (count,)
        given = np.random.default_rng(0).standard_normal((3, *lead, mech.nv))
        q, v, tau = (jnp.asarray(x, dtype) for x in given)
        gradients = {name: gradient(f, call) for name, f in each.items()}
        results = {name: f(q, v, tau) for name, f in gradients.items()}
        worst = 0.0
        for name, result in results.items():
            for ours, theirs in zip(results["Linkwise"], result, strict=True):
                apart = float(jnp.abs(ours - theirs).max() / jnp.abs(ours).max())
                worst = max(worst, apart)
                if not apart < ALLOWED[dtype]:
                    raise SystemExit(f"{name} differs by {apart:.1e} on {robot}: not measured")
        times = measured({name: lambda f=f: f(q, v, tau) for name, f in gradients.items()})
    us = {name: 1e6 * t / count for name, t in times.items()}
    theirs = " | ".join(
        f"{us[name]:.3g} | {us[name] / us['Linkwise']:.0f}" if name in us else "- | -"
        for name in ("MJX", "frax")
    )
    return f"| {robot} | {dtype} | {call} | {us['Linkwise']:.3g} | {theirs} | {worst:.0e} |"


def floor() -> float:
    """Microseconds of a call of JAX that does next to nothing."""
    f, x = jax.jit(lambda q, v, tau: (q + 1.0, v + 1.0, tau + 1.0)), jnp.zeros(7)
    return 1e6 * measured({"": lambda: f(x, x, x)})[""]


def verdict(rows: list[str], floor: float) -> str:
    """Which rows reach the goal, in words."""
    cells = [[cell.strip() for cell in row.strip("| ").split("|")] for row in rows]
    lines = list[str]()
    for peer, column in (("MJX", 5), ("frax", 7)):
        ratios = {", ".join(x[:3]): int(x[column]) for x in cells if x[column] != "-"}
        if not ratios:
            continue
        below = [f"{name} ({ratio})" for name, ratio in ratios.items() if ratio < GOAL]
        text = f"Over {peer}, ratios are {min(ratios.values())} to {max(ratios.values())}"
        missed = f"; below the goal of {GOAL}: {'; '.join(below)}" if below else ", all above"
        lines.append(f"{text}{missed}{'' if below else ' the goal'}.")
    alone = min(float(x[3]) for x in cells if x[2] == "one by one")
    lines.append(
        f"A call for one state takes {alone:.3g} µs or more, of which {floor:.1f} µs are JAX's own."
    )
    return "\n" + "\n".join(lines) + "\n"


def main() -> None:
    """All rows; the page is written anew with each."""
    about = machine.description("linkwise", "jax", "jaxlib", "mujoco-mjx", "frax")
    head, rows = {"rounds": ROUNDS, "machine": about, "floor": floor()}, list[str]()
    for robot in ROBOTS:
        for dtype in ("float64", "float32"):
            for call in CALLS:
                rows.append(row(robot, dtype, call))
                print(rows[-1], flush=True)
                text = HEAD.format(**head, load=machine.load()) + "\n".join(rows) + "\n"
                text += verdict(rows, head["floor"])
                RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
