"""A step of a chain as one expression: by sweep, scan and the code of GPUs, beside `lw.rollout`."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.scan.device import ChainGpu
from linkwise.errors import LoweringError, ModelError
from linkwise.simulation.implicit.long_steps import LongSteps
from tests.codegen.chain_on_host import OnHost

H = 4e-3


def moved(mech: lw.Mechanism, step, count: int = 10) -> np.ndarray:
    q, v = mech.neutral(), np.zeros(mech.nv)
    for _ in range(count):
        q, v = step(q, v)
    return q


def reference(mech: lw.Mechanism, count: int = 10) -> np.ndarray:
    steps = LongSteps(mech, actuated=False, passive=True)
    state, none = steps.first(mech.neutral(), np.zeros(mech.nv)), np.zeros((1, 0))
    return steps.advance(state, H, count, np.zeros((1, mech.nv)), none).q[-1]


def branched(seed: int) -> lw.Mechanism:
    """A random tree of pins and slides with springs and dampers."""
    tree = lw.models.random_tree(12, seed, hinges=("pin", "prismatic"))
    b = lw.Builder(f"springs_{seed}")
    for k, body in enumerate(tree.bodies):
        parent = "world" if tree.parent[k] < 0 else tree.bodies[int(tree.parent[k])].name
        b.body(
            body.name, parent, body.hinge, inboard=body.inboard, outboard=body.outboard,
            inertia=body.inertia, drive=lw.Drive(stiffness=40.0, damping=0.5, rest=0.1),
        )  # fmt: skip
    return b.build()


@pytest.mark.parametrize("schedule", ["scan", "sweep"])
def test_rod(schedule: str) -> None:
    mech = lw.models.rod(20)
    expected = reference(mech)
    assert np.abs(expected).max() > 1e-3
    step = lw.simulation.implicit_step(mech, H, schedule=schedule)
    np.testing.assert_allclose(moved(mech, step), expected, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_trees(seed: int) -> None:
    mech = branched(seed)
    expected = reference(mech)
    assert np.abs(expected).max() > 1e-3
    step = lw.simulation.implicit_step(mech, H)
    np.testing.assert_allclose(moved(mech, step), expected, atol=1e-9)


@pytest.mark.parametrize("schedule", ["scan", "sweep"])
def test_flexible_arm(schedule: str) -> None:
    """Modes and rotors are in M̂ as other coordinates are; beside `lw.rollout`."""
    section = {"area": 1e-4, "bending": 1e-9, "young": 7e9, "density": 2700.0}
    link = lw.flexible.beam(0.5, **section, modes=2, directions=("y", "rz"), damping=0.02)
    rotor = lw.SpatialInertia.from_com(0.1, (0, 0, 0), (1e-4, 1e-4, 2e-4))
    b, parent = lw.Builder("arm", gravity=(0.0, -9.81, 0.0)), "world"
    drive = lw.Drive(stiffness=2.0, damping=0.1)
    for i in range(3):
        link.add_to(b, f"link_{i}", parent, lw.hinges.Pin((0, 0, 1)), drive=drive)
        b.motor(f"link_{i}", rotor, ratio=10.0)
        parent = f"link_{i}.tip"
    mech = b.build()
    step = lw.simulation.implicit_step(mech, H, schedule=schedule)
    run = lw.rollout(mech, mech.neutral(), duration=10 * H, step=H, integrator="implicit")
    assert np.abs(run.q[-1][1:3]).max() > 1e-4
    np.testing.assert_allclose(moved(mech, step), run.q[-1], atol=1e-9)


def test_code_of_gpus(tmp_path) -> None:
    """The emitted kernels, built for a processor, in steps of a rod of several runs."""
    mech = lw.models.rod(40)
    step = lw.simulation.implicit_step(mech, H, target="cuda")
    assert "scan_kalman" in step.kernel.source
    device = step.kernel.device
    assert isinstance(device, ChainGpu)
    host, status = OnHost(device, tmp_path), list[int]()

    def accelerated(*given: np.ndarray) -> np.ndarray:
        value, code = host(*given)
        status.append(code)
        return value

    on_host = lw.simulation.ImplicitStep(mech, H, accelerated, step._drives)
    expected = reference(mech, 5)
    assert np.abs(expected).max() > 1e-4
    np.testing.assert_allclose(moved(mech, on_host, 5), expected, atol=1e-10)
    assert not any(status)


def test_refused() -> None:
    for mech, match in (
        (lw.models.four_bar(), "loops"),
        (lw.models.ur_arm(), "limits"),
        (lw.models.random_tree(3, 0, hinges=("free",), drives=False), "rate of q"),
    ):
        with pytest.raises(ModelError, match=match):
            lw.simulation.implicit_step(mech, H)
    with pytest.raises(LoweringError, match="branches"):
        lw.simulation.implicit_step(branched(0), H, target="cuda")
    with pytest.raises(ModelError, match="step"):
        lw.simulation.implicit_step(lw.models.rod(3), 0.0)
