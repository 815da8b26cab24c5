"""Whole motions against MuJoCo: the same model, integrator and step give the same states.

Both do the same arithmetic in another order, so that they differ by rounding and by what the motion
makes of it within a second: the bound is the 1e-9 of a result that would be called equal, and what
is seen is 1e-15 to 1e-12.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.simulation import rates
from linkwise.simulation.integrators import INTEGRATORS
from tests.oracles.mujoco_inertia import same_inertias
from tests.oracles.mujoco_oracle import read_model

mujoco = pytest.importorskip("mujoco")
pytestmark = pytest.mark.oracle

Array = np.ndarray
STEP, STEPS, HELD = 1e-3, 1000, 50
BOUND = 1e-9
THEIR_NAME = {"euler": "mjINT_EULER", "rk4": "mjINT_RK4", "rk4_mujoco": "mjINT_RK4"}
MUNTHE_KAAS = int(mujoco.__version__.split(".")[0]) >= 4
"""Up to 3.12 MuJoCo has the classical tableau on quaternions, which is no method of ours."""

TREE = """
<mujoco model="tree with balls">
  <compiler angle="radian"/>
  <worldbody>
    <body name="trunk" pos="0 0 1.2">
      <joint name="trunk" type="ball" damping="0.02" armature="0.03"/>
      <inertial pos="0.02 -0.03 -0.2" mass="2.1" fullinertia="0.05 0.06 0.03 0.004 -0.002 0.003"/>
      <body name="slide" pos="0.1 0 -0.3" euler="0.3 -0.2 0.5">
        <joint name="slide" type="slide" axis="0.6 0 0.8" damping="3" stiffness="120"
               springref="0.05"/>
        <inertial pos="0 0.03 0" mass="0.8" diaginertia="0.004 0.006 0.005"/>
        <body name="wrist" pos="0 0 -0.2" euler="0.1 0.2 -0.7">
          <joint name="wrist" type="ball" damping="0.01"/>
          <inertial pos="0.05 0.01 -0.1" mass="0.5" diaginertia="0.003 0.002 0.004"/>
        </body>
      </body>
      <body name="side" pos="-0.1 0.1 -0.2">
        <joint name="side" axis="0 1 0.5" damping="0.05" stiffness="4" springref="-0.3"/>
        <inertial pos="0 0.1 -0.1" mass="0.7" diaginertia="0.005 0.004 0.003"/>
        <body name="tip" pos="0 0.2 -0.2">
          <joint name="tip" axis="1 0 0" armature="0.01" damping="0.02"/>
          <inertial pos="0.02 0 -0.1" mass="0.3" diaginertia="0.001 0.001 0.0005"/>
        </body>
      </body>
    </body>
    <body name="flyer" pos="1 0 2">
      <freejoint name="flyer"/>
      <inertial pos="0.05 0.02 0" mass="1.5" diaginertia="0.02 0.03 0.045"/>
      <body name="rotor" pos="0 0 0.1">
        <joint name="rotor" axis="0 0 1" damping="0.01" stiffness="0.5" springref="0.2"/>
        <inertial pos="0.03 0 0.05" mass="0.4" diaginertia="0.002 0.003 0.004"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


@dataclass
class Motion:
    """One mechanism in both, a state to begin with, and joint forces held over each step."""

    mech: lw.Mechanism
    model: Any
    q: Array
    v: Array
    tau: Array

    def theirs(self, integrator: str) -> tuple[Array, Array]:
        """q and v of MuJoCo after each step, (steps + 1, n), in our layout."""
        model, layout = self.model, lw.convert.mujoco_layout(self.mech, self.model)
        model.opt.integrator = getattr(mujoco.mjtIntegrator, THEIR_NAME[integrator])
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = layout.q_to(self.q), layout.v_to(self.q, self.v)
        states = [(np.array(data.qpos), np.array(data.qvel))]
        for tau in self.tau:
            data.qfrc_applied[:] = layout.force_to(self.q, tau)  # no force on what is free
            mujoco.mj_step(model, data)
            states.append((np.array(data.qpos), np.array(data.qvel)))
        assert not data.ncon and not data.nefc and not any(w.number for w in data.warning)
        q = layout.q_from(np.array([x for x, _ in states]))
        return q, layout.v_from(q, np.array([x for _, x in states]))

    def ours(self, integrator: str) -> tuple[Array, Array]:
        """The same with the steps in NumPy."""
        mech, step = self.mech, INTEGRATORS[integrator].step
        assert step is not None
        q, u = self.q, rates.rates(mech, self.q, self.v)
        states = [(q, self.v)]
        for tau in self.tau:
            f = rates.in_rates(mech, acceleration(mech, tau))
            q, u = step(mech, f, 0.0, q, u, STEP)
            states.append((q, rates.velocities(mech, q, u)))
        return np.array([x for x, _ in states]), np.array([x for _, x in states])

    def rolled_out(self, integrator: str) -> tuple[Array, Array]:
        """The same in one call of a compiled kernel."""
        runs = lw.rollout(
            self.mech,
            self.q,
            self.v,
            duration=STEPS * STEP,
            step=STEP,
            tau=self.tau,
            integrator=integrator,
        )
        return runs.q, runs.v

    def gap(self, ours: tuple[Array, Array], theirs: tuple[Array, Array]) -> float:
        """Largest difference of any state: turns for angles and quaternions, [rad], [m], [1/s]."""
        q = self.mech.difference(ours[0], theirs[0])
        return max(float(np.abs(q).max()), float(np.abs(ours[1] - theirs[1]).max()))


def acceleration(mech: lw.Mechanism, tau: Array) -> rates.Acceleration:
    """v̇ with damping of all hinges and the springs of those with one coordinate."""
    springs = [
        (mech.q_slice(b.hinge_name), mech.v_slice(b.hinge_name), b.drive.array("rest", b.hinge))
        for b in mech.bodies
        if b.hinge.nq == b.hinge.nv == 1
    ]
    damping, stiffness = mech.damping, mech.stiffness

    def f(_: float, q: Array, v: Array) -> Array:
        force = tau - damping * v
        for in_q, in_v, rest in springs:
            force[in_v] -= stiffness[in_v] * (q[in_q] - rest)
        return lw.forward_dynamics(mech, q, v, force)

    return f


def motion(source: lw.Mechanism | str, folder: Path, seed: int = 1) -> Motion:
    """Without contacts, limits, friction and implicit damping; forces change every 50 ms."""
    file = folder / "model.xml"
    if isinstance(source, str):
        file.write_text(source)
    else:
        lw.save(source, file)
    mech, model = lw.load(file), read_model(file)
    same_inertias(mech, model)
    off = mujoco.mjtDisableBit
    for bit in ("CONTACT", "LIMIT", "FRICTIONLOSS", "EULERDAMP"):
        model.opt.disableflags |= getattr(off, f"mjDSBL_{bit}")
    model.opt.timestep = STEP
    rng = np.random.default_rng(seed)
    q, v = mech.random(rng), 0.5 * rng.standard_normal(mech.nv)
    size = 3.0 * np.diag(lw.mass_matrix(mech, q))
    tau = np.repeat(rng.standard_normal((STEPS // HELD, mech.nv)), HELD, axis=0) * size
    for body in mech.bodies:
        if isinstance(
            body.hinge, lw.hinges.Free
        ):  # held in axes of the body here, of the world there
            tau[:, mech.v_slice(body.hinge_name)] = 0.0
    return Motion(mech, model, q, v, tau)


MODELS: dict[str, Callable[[], lw.Mechanism | str]] = {
    "arm": lw.models.seven_dof_arm,
    "puma": lw.models.puma560,
    "humanoid": lw.models.humanoid,
    "balls and springs": lambda: TREE,
}
CASES = [(name, "euler") for name in MODELS] + [(name, "rk4_mujoco") for name in MODELS]
CASES += [("arm", "rk4"), ("puma", "rk4")]  # without quaternions, the same method


@pytest.mark.few(4)
@pytest.mark.parametrize(("name", "integrator"), CASES)
def test_steps_in_numpy(name, integrator, tmp_path):
    result = motion(MODELS[name](), tmp_path)
    if integrator == "rk4_mujoco" and has_quaternions(result.mech) and not MUNTHE_KAAS:
        pytest.skip("MuJoCo before 4.0 has another method on quaternions")
    theirs = result.theirs(integrator)
    assert result.gap((theirs[0][:1], theirs[1][:1]), (theirs[0][-1:], theirs[1][-1:])) > 0.3
    assert result.gap(result.ours(integrator), theirs) < BOUND


@pytest.mark.few(5)
@pytest.mark.parametrize(("name", "integrator"), CASES)
def test_rollouts(name, integrator, tmp_path):
    result = motion(MODELS[name](), tmp_path, seed=2)
    if integrator == "rk4_mujoco" and has_quaternions(result.mech) and not MUNTHE_KAAS:
        pytest.skip("MuJoCo before 4.0 has another method on quaternions")
    assert result.gap(result.rolled_out(integrator), result.theirs(integrator)) < BOUND


def has_quaternions(mech: lw.Mechanism) -> bool:
    return any(body.hinge.quaternion is not None for body in mech.bodies)


def test_a_difference_shows(tmp_path):
    """Another integrator, or damping treated otherwise, is seen far above the bound."""
    result = motion(TREE, tmp_path)
    ours = result.ours("euler")
    assert result.gap(ours, result.theirs("rk4")) > 1e3 * BOUND
    result.model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP)
    assert result.gap(ours, result.theirs("euler")) > 1e3 * BOUND
