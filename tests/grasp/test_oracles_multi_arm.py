"""Arms that hold an object against Pinocchio's `constraintDynamics` and MuJoCo's equalities."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.io.mjcf import write_mjcf
from linkwise.io.report import Reporter
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array
from tests.grasp.random_systems import System, random_system
from tests.loops.dense_kkt import allowed_velocity
from tests.loops.pinocchio_loops import loops_in_pinocchio
from tests.oracles.mujoco_equality import SOFTNESS, EqualityCase
from tests.oracles.mujoco_oracle import parse_model

pytestmark = pytest.mark.oracle

IN_PINOCCHIO = {
    "two arms, welds": {"arms": 2, "links": (6, 8)},
    "four arms, points": {"arms": 4, "links": (6, 7), "grasps": ("spherical",)},
    "four arms, mixed, articulated object": {
        "arms": 4,
        "links": (6, 8),
        "grasps": ("locked", "spherical"),
        "articulated": True,
        "swapped": True,
    },
    "sliders and joints of two freedoms in the arms": {
        "arms": 3,
        "grasps": ("locked", "spherical"),
        "hinges": ("pin", "prismatic", "spherical", "pin"),
    },
}
"""6-D closures for rigid grasps, 3-D ones for points."""


def apart(result: Array, expected: Array) -> float:
    return float(np.abs(result - expected).max()) / float(np.abs(expected).max())


def check_pinocchio(it: System, methods: tuple[str | None, ...]) -> None:
    case = loops_in_pinocchio(it.mech, it.q, it.v, it.tau)
    expected = case.vdot()
    for method in methods:
        vdot = lw.forward_dynamics(it.mech, it.q, it.v, it.tau, method=method)
        assert apart(vdot, expected) < 1e-9
    lam = lw.loops.constraint_forces(it.mech, it.q, it.v, it.tau)
    forces = lw.loops.loop_forces(it.mech, it.q, lam)
    assert apart(np.stack([*forces.values()]), case.forces()) < 1e-9


@pytest.mark.few(1)
@pytest.mark.parametrize("name", IN_PINOCCHIO)
def test_pinocchio(name):
    pytest.importorskip("pinocchio")
    it = random_system(sum(map(ord, name)), **IN_PINOCCHIO[name])
    check_pinocchio(it, (None, "RCCFD2"))


@pytest.mark.few(0, 3)
@pytest.mark.slow
@pytest.mark.parametrize("arms", range(2, 9))
@pytest.mark.parametrize("grasps", [("locked",), ("spherical",), ("locked", "spherical")])
def test_pinocchio_sweep(arms, grasps):
    pytest.importorskip("pinocchio")
    options = {"links": (6, 12), "articulated": arms % 2 == 0, "swapped": True}
    it = random_system(100 * arms + len(grasps), arms=arms, grasps=grasps, **options)
    check_pinocchio(it, (None, "RCCFD1", "RCCFD2", "RCCFD3"))


@pytest.mark.prove
@pytest.mark.parametrize("n", [2, 4])
def test_pinocchio_on_the_sample_arms(n):
    """`multi_arm(n)` in the state that benchmarks use: neutral, moving as the loops allow."""
    pytest.importorskip("pinocchio")
    mech = lw.models.multi_arm(n)
    rng, q = np.random.default_rng(n), mech.neutral()
    theta = {loop.name: np.zeros(0) for loop in mech.loops}
    v = allowed_velocity(mech, q, theta, rng.standard_normal(mech.nv))
    it = System(mech, q, v, rng.standard_normal(mech.nv), theta, ())
    check_pinocchio(it, ("RCCFD3",))


# ----------------------------------------------------------------------------------------- MuJoCo


class HeldInMujoco(EqualityCase):
    """A multi-arm system as MuJoCo reads it from a file, in the state it was drawn in."""

    def __init__(self, it: System) -> None:
        mech = it.mech
        text = write_mjcf(mech, Reporter("held"))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "held.xml"
            path.write_text(text, encoding="utf-8")
            read = lw.load(path)
        self.drawn = it
        super().__init__(read, parse_model(text))

    def _close(self, rng: np.random.Generator) -> None:
        import mujoco

        q, ours = np.array(self.drawn.q), self.drawn.mech.q_slice("object")
        at = self.drawn.mech.pose(q, "object")  # the file has the object on the world's own frame
        q[ours] = np.concatenate([quaternion.from_matrix(at.rot), at.p])
        self.data.qpos[:] = self.layout.q_to(q)
        mujoco.mj_fwdPosition(self.model, self.data)


IN_MUJOCO = {
    "two arms, welds": {"arms": 2, "links": (6, 7)},
    "three arms, points": {"arms": 3, "links": (6, 7), "grasps": ("spherical",)},
    "three arms, mixed, articulated object": {
        "arms": 3,
        "links": (6, 7),
        "grasps": ("locked", "pin", "spherical"),
        "articulated": True,
    },
}
"""A weld for a rigid grasp, a connect for a point, two connects for a pin."""


def check_mujoco(it: System, methods: tuple[str | None, ...]) -> None:
    """Against its rows taken rigidly, and against its solver made stiff.

    The first is good to what a dense solution with its two connects for a pin loses, the second to
    `SOFTNESS` times the condition of J M⁻¹ J*.
    """
    case = HeldInMujoco(it)
    assert case.residual < 1e-12
    for method in methods:
        vdot = lw.forward_dynamics(it.mech, it.q, case.v, case.tau, method=method)
        here = case.layout.vdot_to(case.q, case.v, vdot)
        assert apart(here, case.rigid()) < 1e-9
        assert apart(here, case.solved(SOFTNESS)) < 1e-8


@pytest.mark.few(2)
@pytest.mark.parametrize("name", IN_MUJOCO)
def test_mujoco(name):
    pytest.importorskip("mujoco")
    check_mujoco(random_system(sum(map(ord, name)), **IN_MUJOCO[name]), ("RCCFD1",))


@pytest.mark.few(0, 3)
@pytest.mark.slow
@pytest.mark.parametrize("arms", range(2, 9))
@pytest.mark.parametrize("grasps", [("locked",), ("pin",), ("spherical", "pin", "locked")])
def test_mujoco_sweep(arms, grasps):
    pytest.importorskip("mujoco")
    options = {"links": (6, 12), "articulated": arms % 2 == 1}
    it = random_system(200 * arms + len(grasps), arms=arms, grasps=grasps, **options)
    check_mujoco(it, (None, "RCCFD1", "RCCFD2", "RCCFD3"))
