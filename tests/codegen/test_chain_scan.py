"""Long chains on GPUs: the emitted kernels on a processor, beside the sweep; what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import P, bias, mass, tau, vdot
from linkwise.codegen.request import Request
from linkwise.codegen.scan.device import ChainGpu, runs_of
from linkwise.errors import ExpressionError, LoweringError
from tests.cases import close, state
from tests.codegen.chain_on_host import OnHost

FORWARD, INVERSE = mass.inv @ (tau - bias), mass @ vdot + bias
KINDS = ("pin", "prismatic", "universal", "gimbal", "cylindrical", "planar", "spherical", "free")


def serial(n: int, seed: int = 0, *, massless: bool = False, **options: object) -> lw.Mechanism:
    """The hinges, inertias and drives of a random tree, one body after another."""
    tree = lw.models.random_tree(n, seed, **options)
    b, parent = lw.Builder(f"serial_{n}"), "world"
    for k, body in enumerate(tree.bodies):
        light = massless and k % 3 == 1 and body.hinge.nv == 1
        b.body(
            body.name,
            parent,
            body.hinge,
            inboard=body.inboard,
            outboard=body.outboard,
            inertia=lw.SpatialInertia.zero() if light else body.inertia,
            drive=body.drive,
        )
        parent = body.name
    return b.build()


@pytest.mark.parametrize("runs", [20, pytest.param(150, marks=pytest.mark.prove)])
def test_pins(tmp_path, runs: int) -> None:
    """Up to more runs than a block scans; both recursions and both directions."""
    mech = serial(8 * runs, hinges=("pin",))
    q, v, x = state(mech)
    v = v / np.sqrt(mech.nv)
    scan = OnHost(ChainGpu(Request((FORWARD,), mech)), tmp_path)
    got, code = scan(q, v, x)
    assert code == 0
    sweep, back = (lw.compile(x, mech, rolled=True, cache=False) for x in (FORWARD, INVERSE))
    size = np.abs(back(q, v, 0.0 * got)).max()
    assert np.abs(back(q, v, got) - x).max() < 1e-11 * size
    close(got, sweep(q, v, x), 1e-6)  # of a chain whose accelerations span twelve decades
    got[5] = np.nan
    assert scan(q, v, got)[1] != 0


@pytest.mark.prove
@pytest.mark.parametrize("expr", [FORWARD, INVERSE], ids=["forward", "inverse"])
def test_every_hinge(tmp_path, expr) -> None:
    mech = serial(100, 4, hinges=KINDS, massless=True)
    q, v, x = state(mech)
    got, code = OnHost(ChainGpu(Request((expr,), mech)), tmp_path)(q, v, x)
    assert code == 0
    close(got, lw.compile(expr, mech, rolled=True, cache=False)(q, v, x), 1e-9)


def test_runs_end_at_bodies_that_resist() -> None:
    mech = serial(60, hinges=("pin",), massless=True, drives=False)
    runs = runs_of(mech)
    assert runs.start[0] == 0 and runs.start[-1] == 60 and len(runs.start) > 3
    light = {k for k in range(60) if k % 3 == 1}
    assert not light & {int(k) - 1 for k in runs.start[1:-1]}
    assert len(set(runs.place.tolist())) == 60 and runs.place.max() < runs.room


def test_source_without_a_gpu() -> None:
    kernel = lw.compile(FORWARD, serial(40), target="cuda", schedule="scan")
    assert "scan_kalman" in kernel.source and "fold_4" in kernel.source
    assert kernel.arguments == ("q", "v", "tau")
    assert "scans; the CUDA source" in kernel.explain()


def test_refused() -> None:
    arm = lw.models.seven_dof_arm()
    options = {"target": "cuda", "schedule": "scan"}
    with pytest.raises(LoweringError, match="serial chains"):
        lw.compile(FORWARD, lw.models.quadruped(), **options)
    with pytest.raises(LoweringError, match="no scan on GPUs"):
        lw.compile(P, arm, **options)
    with pytest.raises(ExpressionError, match="float64"):
        lw.compile(FORWARD, arm, dtype="float32", **options)
    rotor = lw.SpatialInertia.point(0.1)
    link = lw.SpatialInertia.solid_box(1.0, (0.1, 0.2, 0.3))
    b = lw.Builder("geared").body("link", "world", lw.hinges.Pin(), inertia=link)
    geared = b.motor("link", rotor, ratio=9.0).build()
    with pytest.raises(LoweringError, match=r"motors with rotors.*target 'numpy' scans it"):
        lw.compile(FORWARD, geared, **options)
