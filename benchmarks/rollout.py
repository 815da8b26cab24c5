"""Rollouts beside MuJoCo: one motion from Python, and a batch on all cores.

Run with `python benchmarks/rollout.py`; writes benchmarks/results/rollout.md. Both step the same
model, written by `lw.save`, with the same integrator and the same joint forces, held over each
step; contacts and all constraints are off, and damping is explicit in both. States are compared
before anything is measured.
"""

import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import limits
import llvmlite.binding as binding
import machine
import mujoco
import numpy as np
from chain import best
from mujoco import rollout as mujoco_rollout

import linkwise as lw
from linkwise.codegen.cpu import machine as processor
from linkwise.codegen.cpu.device import cores
from linkwise.codegen.stepping.llvm import emit_stepping

Array = np.ndarray

ROBOTS = {"arm (7)": lw.models.seven_dof_arm, "humanoid (free base, 30)": lw.models.humanoid}
INTEGRATORS = {"euler": "mjINT_EULER", "rk4_mujoco": "mjINT_RK4"}
STEP, STEPS, BATCH, BATCH_STEPS, ROUNDS = 1e-3, 1000, 1024, 100, 7
ALLOWED = 1e-9
RESULTS = Path(__file__).parent / "results" / "rollout.md"
HEAD = """# Rollouts compared with MuJoCo

Written by `make bench`. The same model, integrator, step (1 ms) and joint forces in both; contacts,
limits and all other constraints are off in MuJoCo, and damping is explicit. float64. Nanoseconds
for one step of one motion; ratios are MuJoCo over Linkwise. *Operations* are those of one step in
Linkwise. *Difference* is the largest one between states at the end, [rad], [m] and [1/s].

{machine}

Load average {load}.
"""
ONE = """
## One motion from Python

{steps} steps. *End only*: the final state, `lw.rollout(record_every={steps})` compared with
`mj_step(nstep={steps})` with constant forces; *loop* is a loop of `mj_step` in Python that sets the
forces of each step. *All states*: forces in and states out for each step, compared with
`mujoco.rollout` with one state. The goal is 3 against the fastest of them.

| robot | integrator | operations | end only | mj_step | ratio | loop | ratio | all states | \
mujoco.rollout | ratio | difference |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""
MANY = """
## A batch on all cores

{batch} motions of {steps} steps on {cores} cores, forces of each motion and step in, all states
out, compared with `mujoco.rollout` with {cores} threads. The goal is 10. *Float32* is Linkwise in
single precision. *Limit* is the share of the floating-point instructions that the cores can issue:
those of a step for one vector register of motions, counted in its assembly, over those of a loop
without anything else. *Bytes* are forces read and states written [GB/s].

| robot | integrator | Linkwise | MuJoCo | ratio | million steps per second | limit | bytes | \
float32 | ratio | difference |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""
SIMULATED = """
## `lw.simulate` compared with `lw.rollout`

{steps} steps of 1 ms by "rk4" with dampers, constant joint forces, 1000 records.
`lw.simulate` also counts work, checks the energy, and computes energy, momentum and all other
channels of its recording. The goal is a ratio of at most 2.

| robot | rollout | simulate | ratio |
| --- | ---: | ---: | ---: |
"""


@dataclass
class Case:
    """One robot with one integrator in both."""

    mech: lw.Mechanism
    model: Any
    integrator: str

    def __post_init__(self) -> None:
        self.layout = lw.convert.mujoco_layout(self.mech, self.model)
        self.model.opt.integrator = getattr(mujoco.mjtIntegrator, INTEGRATORS[self.integrator])

    def states(self, count: int, steps: int) -> tuple[Array, Array, Array]:
        """q, v (count, n) and joint forces (count, steps, nv), none on what is free."""
        mech, rng = self.mech, np.random.default_rng(0)
        q = np.array([mech.random(rng) for _ in range(count)])
        v = 0.3 * rng.standard_normal((count, mech.nv))
        tau = rng.standard_normal((count, steps, mech.nv)) * np.diag(lw.mass_matrix(mech, q[0]))
        for body in mech.bodies:
            if isinstance(body.hinge, lw.hinges.Free):
                tau[..., mech.v_slice(body.hinge_name)] = 0.0
        return q, v, tau

    def theirs(self, q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
        """States (count, 1 + nq + nv) and forces in MuJoCo's layout."""
        time = np.zeros((len(q), 1))
        state = np.concatenate([time, self.layout.q_to(q), self.layout.v_to(q, v)], axis=1)
        return state, self.layout.force_to(q[:, None], tau)

    def difference(self, ours: lw.simulation.Rollout, theirs: Array) -> float:
        """Of the states at the end, (count, 1 + nq + nv) of MuJoCo."""
        q = self.layout.q_from(theirs[:, 1 : 1 + self.model.nq])
        v = self.layout.v_from(q, theirs[:, 1 + self.model.nq :])
        apart = np.abs(self.mech.difference(ours.q[:, -1], q)).max()
        worst = float(max(apart, np.abs(ours.v[:, -1] - v).max()))
        if not worst < ALLOWED:
            raise SystemExit(f"states differ by {worst:.1e}: nothing was measured")
        return worst


def case(robot: str, integrator: str) -> Case:
    """The model as `lw.save` writes it, in both, with nothing but the tree."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        lw.save(ROBOTS[robot](), path)
        mech, model = lw.load(path), mujoco.MjModel.from_xml_path(str(path))
    off = mujoco.mjtDisableBit
    for bit in (off.mjDSBL_CONSTRAINT, off.mjDSBL_CONTACT, off.mjDSBL_EULERDAMP):
        model.opt.disableflags |= bit
    model.opt.timestep = STEP
    return Case(mech, model, integrator)


def one_row(robot: str, integrator: str) -> str:
    """One motion."""
    c = case(robot, integrator)
    q, v, tau = c.states(1, STEPS)
    state, forces = c.theirs(q, v, tau)
    data = mujoco.MjData(c.model)
    spec, applied = mujoco.mjtState.mjSTATE_FULLPHYSICS, mujoco.mjtState.mjSTATE_QFRC_APPLIED
    error = c.difference(ours(c, q, v, tau, STEPS), rolled(c, [data], state, forces)[:, -1])

    def stepped() -> None:
        mujoco.mj_setState(c.model, data, state[0], spec)
        data.qfrc_applied[:] = forces[0, 0]
        mujoco.mj_step(c.model, data, nstep=STEPS)

    def looped() -> None:
        mujoco.mj_setState(c.model, data, state[0], spec)
        for force in forces[0]:
            data.qfrc_applied[:] = force
            mujoco.mj_step(c.model, data)

    out = np.empty((1, STEPS, state.shape[1]))
    full = {"control_spec": int(applied), "state": out, "skip_checks": True, "nstep": STEPS}
    times = [
        best(work, ROUNDS) / STEPS * 1e9
        for work in (
            lambda: ours(c, q[0], v[0], tau[0, 0], STEPS),
            stepped,
            looped,
            lambda: ours(c, q[0], v[0], tau[0], 1),
            lambda: mujoco_rollout.rollout([c.model], [data], state, forces, **full),
        )
    ]
    end, step, loop, every, theirs = times
    ops = ours(c, q, v, tau, STEPS).kernel.ops.total()
    return (
        f"| {robot} | {integrator} | {ops} | {end:.0f} | {step:.0f} | {step / end:.1f} | "
        f"{loop:.0f} | {loop / end:.1f} | {every:.0f} | {theirs:.0f} | {theirs / every:.1f} | "
        f"{error:.0e} |"
    )


def many_row(robot: str, integrator: str, starts_per_ns: float) -> str:
    """A batch."""
    c = case(robot, integrator)
    q, v, tau = c.states(BATCH, BATCH_STEPS)
    state, forces = c.theirs(q, v, tau)
    workspaces = [mujoco.MjData(c.model) for _ in range(cores())]
    result = rolled(c, workspaces, state, forces)
    error = c.difference(ours(c, q, v, tau, BATCH_STEPS), result[:, -1])
    each = 1e9 / (BATCH * BATCH_STEPS)
    kernel = ours(c, q, v, tau, BATCH_STEPS).kernel
    single = [x.astype("float32") for x in (q, v, tau)]
    ns = each * best(lambda: ours(c, q, v, tau, 1), ROUNDS)
    short = each * best(lambda: ours(c, *single, 1, dtype="float32"), ROUNDS)
    models = [c.model] * BATCH
    options = {
        "control_spec": int(mujoco.mjtState.mjSTATE_QFRC_APPLIED),
        "state": result,
        "skip_checks": True,
        "nstep": BATCH_STEPS,
    }
    with mujoco_rollout.Rollout(nthread=cores()) as pool:
        other = each * best(
            lambda: pool.rollout(models, workspaces, state, forces, **options), max(3, ROUNDS // 2)
        )
    share = instructions(kernel) / kernel.lanes / (ns * cores() * starts_per_ns)
    flow = 8 * (c.mech.nq + 2 * c.mech.nv) / ns
    return (
        f"| {robot} | {integrator} | {ns:.0f} | {other:.0f} | {other / ns:.1f} | {1e3 / ns:.1f} | "
        f"{100 * share:.0f} % | {flow:.1f} | {short:.0f} | {other / short:.1f} | {error:.0e} |"
    )


def simulated_row(robot: str) -> str:
    """`lw.simulate` beside `lw.rollout`."""
    mech, steps = ROBOTS[robot](), 10 * STEPS
    q, every = mech.neutral(), 10 * STEPS // 1000 or 1
    options = {"step": STEP, "record_every": every, "tau": 0.01 * (mech.damping > 0.0)}
    end = lw.rollout(mech, q, duration=steps * STEP, **options).q[-1]
    rec = lw.simulate(mech, q, duration=steps * STEP, **options)
    if not np.abs(mech.difference(rec.q[-1], end)).max() < ALLOWED:
        raise SystemExit("states differ: nothing was measured")
    plain = best(lambda: lw.rollout(mech, q, duration=steps * STEP, **options), ROUNDS)
    full = best(lambda: lw.simulate(mech, q, duration=steps * STEP, **options), ROUNDS)
    ns = 1e9 / steps
    return f"| {robot} | {ns * plain:.0f} | {ns * full:.0f} | {full / plain:.2f} |"


def ours(
    c: Case, q: Array, v: Array, tau: Array, every: int, dtype: str = "float64"
) -> lw.simulation.Rollout:
    """All steps in one call."""
    steps = tau.shape[-2] if tau.ndim > 1 else STEPS
    return lw.rollout(
        c.mech,
        q,
        v,
        duration=steps * STEP,
        step=STEP,
        tau=tau,
        integrator=c.integrator,
        record_every=every,
        dtype=dtype,
    )


def rolled(c: Case, workspaces: list[Any], state: Array, forces: Array) -> Array:
    """MuJoCo's states (count, steps, 1 + nq + nv)."""
    spec = int(mujoco.mjtState.mjSTATE_QFRC_APPLIED)
    result, _ = mujoco_rollout.rollout(c.model, workspaces, state, forces, control_spec=spec)
    return np.array(result)


def instructions(kernel: Any) -> int:
    """Floating-point instructions of one step for one vector register of motions."""
    lanes, stepping = kernel.lanes, kernel.stepping
    unit = emit_stepping(stepping, itemsize=kernel.request.itemsize, lanes=lanes)
    module = binding.parse_assembly(unit.text)
    module.triple = processor.host()[0]
    text = processor._target(processor.level(unit)).emit_assembly(module)
    wide = "zmm" if "zmm" in text else "ymm"
    counts, calls, name = Counter[str](), dict[str, list[str]](), ""
    for line in text.splitlines():
        label = re.match(r"([A-Za-z_][\w.$]*):", line)
        name = label.group(1) if label else name
        counts[name] += wide in line and limits.ARITHMETIC.match(line.rstrip()) is not None
        called = re.match(r"\s+callq?\s+([A-Za-z_][\w.$]*)", line)
        if called:
            calls.setdefault(name, []).append(called.group(1).split("@")[0])

    def total(name: str) -> int:
        return counts[name] + sum(total(x) for x in calls.get(name, ()))

    names = {id(x): f"{x.name}_{lanes}" for x in stepping.segments}
    return sum(total(names[id(segment)]) for segment in stepping.step)


def logged(line: str) -> str:
    """A line of a table, printed too."""
    print(line, flush=True)
    return line + "\n"


def table(head: str, row: Callable[[str, str], str]) -> str:
    """A table of all robots and integrators."""
    print(head, flush=True)
    rows = [logged(row(robot, name)) for robot in ROBOTS for name in INTEGRATORS]
    return head + "".join(rows)


def main() -> None:
    """Measure and write both tables."""
    text = HEAD.format(
        machine=machine.description("linkwise", "numpy", "llvmlite", "mujoco"), load=machine.load()
    )
    text += table(ONE.format(steps=STEPS), one_row)
    starts = limits.instructions_per_ns()
    head = MANY.format(batch=BATCH, steps=BATCH_STEPS, cores=cores())
    text += table(head, lambda robot, name: many_row(robot, name, starts))
    text += SIMULATED.format(steps=10 * STEPS) + "".join(logged(simulated_row(x)) for x in ROBOTS)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(text)


if __name__ == "__main__":
    if sys.argv[1:] == ["--quick"]:  # a look at whether it runs
        STEPS, BATCH, BATCH_STEPS, ROUNDS = 50, 64, 20, 2
        RESULTS = Path("/dev/null")
    main()
