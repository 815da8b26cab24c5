"""Flexible bodies and motors on a GPU, with the processor in its place: emitted CUDA, and calls."""

from __future__ import annotations

import shutil
import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import J, bias, mass, tau, vdot
from linkwise.algebra.dense import Dense
from linkwise.codegen.cuda import device
from linkwise.simulation.motion_request import MotionRequest
from linkwise.simulation.rollout_kernel import motion_kernel
from tests.codegen import cupy_on_host, motion_on_host
from tests.codegen.cupy_on_host import on_card
from tests.flexible.cases import inertia, mechanism

COMPILER = shutil.which("g++") or shutil.which("clang++")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here")
STATES = 35
BOUND = {"float64": 1e-10, "float32": 2e-3}


def arm() -> lw.Mechanism:
    """Two beams with a motor each, and a hand."""
    section = {"area": 1e-4, "bending": 1e-9, "young": 7e9, "density": 2700.0}
    beam = lw.flexible.beam(0.5, **section, modes=2, lumps=3, directions=("y", "rz"), damping=0.01)
    rotor = lw.SpatialInertia.from_com(0.1, (0, 0, 0.01), (1e-4, 1e-4, 2e-4))
    b, parent = lw.Builder("arm", gravity=(0, -9.81, 0)), "world"
    for name in ("upper", "lower"):
        beam.add_to(b, name, parent, lw.hinges.Pin((0, 0, 1)), drive=lw.Drive(damping=0.05))
        b.motor(name, rotor, ratio=20.0)
        parent = f"{name}.tip"
    hand = lw.hinges.Pin((0, 1, 0))
    b.body("hand", parent, hand, inertia=inertia(np.random.default_rng(0)))
    return b.build()


MECHANISMS = {"arm": arm, "random": lambda: mechanism(1, base=lw.hinges.Free())}
QUANTITIES = {
    "forward": (mass.inv @ (tau - bias), ()),
    "inverse": (mass @ vdot + bias, ()),
    "mobility": (J @ mass.inv @ J.T, ("hand",)),
}


def states(mech: lw.Mechanism, dtype: str) -> dict[str, np.ndarray]:
    """Random states and forces, numbers that both precisions have."""
    rng = np.random.default_rng(STATES)
    given = {"q": np.array([mech.random(rng) for _ in range(STATES)])}
    given |= {x: rng.standard_normal((STATES, mech.nv)) for x in ("v", "tau", "vdot")}
    single = {name: x.astype(np.float32).astype(float) for name, x in given.items()}
    return given if dtype == "float64" else single


@pytest.mark.parametrize(
    ("robot", "quantity", "dtype"),
    [
        ("arm", "forward", "float64"),
        pytest.param("arm", "forward", "float32", marks=pytest.mark.prove),
        pytest.param("arm", "inverse", "float32", marks=pytest.mark.prove),
        pytest.param("arm", "mobility", "float64", marks=pytest.mark.prove),
        pytest.param("random", "forward", "float64", marks=pytest.mark.prove),
        pytest.param("random", "mobility", "float32", marks=pytest.mark.prove),
    ],
)
def test_kernels(robot, quantity, dtype, monkeypatch, tmp_path):
    """Beside dense matrices in a few states, and the processor's kernel in all."""
    monkeypatch.setitem(sys.modules, "cupy", cupy_on_host.fake())
    monkeypatch.setattr(device, "_load", cupy_on_host.loader(tmp_path, COMPILER))
    mech, (expr, nodes) = MECHANISMS[robot](), QUANTITIES[quantity]
    assert mech.flexible
    kernel = lw.compile(expr, mech, nodes=nodes, target="cuda", dtype=dtype)
    given = states(mech, dtype)
    arrays = [given[name] for name in kernel.arguments]
    codes = on_card(np.full(STATES, -1, np.int32))
    result = np.asarray(kernel(*(on_card(x.astype(dtype)) for x in arrays), status=codes))
    assert result.dtype == dtype and not codes.any()
    expected = lw.compile(expr, mech, nodes=nodes)(*arrays)
    assert np.abs(result - expected).max() < BOUND[dtype] * np.abs(expected).max()
    for i in (0, STATES - 1):
        values = {name: x[i] for name, x in given.items() if name not in ("q", "v")}
        dense = Dense(mech, given["q"][i], given["v"][i], nodes=nodes, values=values)(expr)
        apart = np.abs(result[i] - dense.reshape(result[i].shape)).max()
        assert apart < BOUND[dtype] * np.abs(dense).max()


@pytest.mark.prove
@pytest.mark.parametrize("integrator", ["implicit", "rk4"])
def test_motions(integrator, tmp_path):
    """The emitted loop over steps gives what a rollout on the processor gives."""
    mech, steps, h = arm(), 8, 1e-3
    given = states(mech, "float64")
    source = motion_kernel(MotionRequest(mech, integrator), "cuda").device.emitted
    forces = np.broadcast_to(given["tau"][:, None], (STATES, steps, mech.nv))
    host = motion_on_host.OnHost(source, tmp_path, COMPILER)
    q, v, status, failed = host(given["q"], given["v"], [forces], h, steps, 4)
    options = {"duration": steps * h, "step": h, "record_every": 4, "integrator": integrator}
    runs = lw.rollout(mech, given["q"], given["v"], tau=given["tau"], **options)
    assert not status.any() and (failed == -1).all() and not runs.status.any()
    assert np.abs(runs.q[:, -1] - runs.q[:, 0]).max() > 1e-3
    np.testing.assert_allclose(np.moveaxis(q, -1, 0), runs.q, rtol=0, atol=1e-9)
    scale = np.abs(runs.v).max()
    np.testing.assert_allclose(np.moveaxis(v, -1, 0), runs.v, rtol=0, atol=1e-9 * scale)
