"""Kernels of one state with limbs side by side, beside the interpreter and code without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen import stages
from linkwise.codegen.cpu import ir, llvm, llvm_limbs
from linkwise.codegen.cpu.build import loaded
from linkwise.codegen.cpu.emit import Emitter
from linkwise.codegen.cpu.machine import object_code
from linkwise.codegen.scalar.limb_entries import alike_inputs
from linkwise.dynamics.derivative_formula import INVERSE_DERIVATIVES
from linkwise.dynamics.kernels import kernel, written
from linkwise.dynamics.quantity import expression

QUANTITIES = ("forward_dynamics", "inverse_dynamics", "mass_matrix", "derivatives")


def made(mech: lw.Mechanism, name: str) -> Any:
    return written(mech, INVERSE_DERIVATIVES) if name == "derivatives" else kernel(mech, name)


def body(mech: lw.Mechanism, name: str) -> Any:
    """The code with limbs side by side."""
    traced = stages.graph(made(mech, name).request)
    return llvm_limbs.limb_body(Emitter(ir.Module(), 8, 1, 8), traced)  # type: ignore[arg-type]


def expressions(name: str) -> list[Any]:
    """What a kernel computes, one after another."""
    if name != "derivatives":
        return [expression(name)]
    return [lw.differentiate(expression("inverse_dynamics"), x) for x in ("q", "v", "vdot")]


def evaluated(mech: lw.Mechanism, expr: Any, by_name: dict[str, Any]) -> Any:
    """An expression in NumPy, without any code."""
    reference = lw.compile(expr, mech, target="numpy")
    return reference(*(by_name[x] for x in reference.arguments)).ravel()


def values(unit: ir.Unit, arrays: list[Any], size: int) -> tuple[Any, int]:
    """The result of a module for one state, called without its kernel."""
    dtype = np.float64 if unit.itemsize == 8 else np.float32
    code, out, status = (
        loaded(unit, object_code(unit)),
        np.full(size, 7.0, dtype),
        np.zeros(1, "i4"),
    )
    rows, work = [np.ascontiguousarray(x, dtype) for x in arrays], np.full(unit.work + 1, np.nan)
    pointers = np.array([x.ctypes.data for x in rows], np.int64)
    steps, at = np.array([x.size for x in rows], np.int64), (out.ctypes.data, size)
    end = (status.ctypes.data, 0, 1, work.ctypes.data)
    code.run(pointers.ctypes.data, steps.ctypes.data, *at, *end)
    return out, int(status[0])


def state(mech: lw.Mechanism, names: tuple[str, ...], seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    q = mech.random(rng)
    return [q if name == "q" else rng.standard_normal(mech.nv) for name in names]


@pytest.mark.parametrize("name", QUANTITIES)
@pytest.mark.parametrize("itemsize", [8, 4])
@pytest.mark.parametrize("longest", [5000, 0])
def test_limbs_side_by_side_give_what_numpy_gives(
    name: str, itemsize: int, longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mech = lw.models.quadruped()
    monkeypatch.setattr(llvm_limbs, "LONGEST", longest)  # 0: in parts
    monkeypatch.setattr(llvm_limbs, "PART", 60)
    reference = made(mech, name)
    traced = stages.graph(reference.request)
    code = body(mech, name)
    assert code is not None
    assert max(len(x) for part in code.parts for x in part) == 4
    assert (len(code.parts) > 1) == (longest == 0)
    unit = llvm.emit_graph(traced, itemsize=itemsize, lanes=1, packed=8)  # type: ignore[arg-type]
    for seed in range(3):
        given = state(mech, reference.arguments, seed)
        out, status = values(unit, given, len(traced.outputs))  # type: ignore[union-attr]
        by_name = dict(zip(reference.arguments, given, strict=True))
        expected = np.concatenate([evaluated(mech, x, by_name) for x in expressions(name)])
        assert status == 0
        scale = np.abs(expected).max()
        assert scale > 1.0
        assert np.abs(out - expected).max() < (1e-12 if itemsize == 8 else 1e-4) * scale


@pytest.mark.parametrize("longest", [5000, 0])
def test_trouble_has_its_status(longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mech = lw.models.quadruped()
    monkeypatch.setattr(llvm_limbs, "LONGEST", longest)
    reference = made(mech, "forward_dynamics")
    traced = stages.graph(reference.request)
    unit = llvm.emit_graph(traced, itemsize=8, lanes=1, packed=8)  # type: ignore[arg-type]
    given = state(mech, reference.arguments)
    assert values(unit, given, mech.nv)[1] == 0
    for entry, number in ((3, np.nan), (0, 1e200)):
        wrong = [x.copy() for x in given]
        wrong[1][entry] = number
        assert values(unit, wrong, mech.nv)[1] == (1 if np.isnan(number) else 2)
    wrong = [given[0].copy(), *given[1:]]
    wrong[0][:4] *= 2.0
    status = values(unit, wrong, mech.nv)[1]
    assert "quaternion" in reference.describe(status)


def test_a_large_angle_is_right_on_every_limb() -> None:
    mech = lw.models.quadruped()
    q, v, tau = state(mech, ("q", "v", "tau"))
    far = q.copy()
    far[7:] += 2.0 * np.pi * 2.0**20
    near = lw.forward_dynamics(mech, q, v, tau)
    assert np.abs(lw.forward_dynamics(mech, far, v, tau) - near).max() < 1e-6 * np.abs(near).max()


def test_entries_of_inputs_that_legs_have_alike() -> None:
    mech = lw.models.quadruped()
    packs = alike_inputs(mech, (("q", mech.nq), ("v", mech.nv), ("f", 6)))
    assert len(packs) == 6  # three hinges of a leg, in q and in v
    firsts = {min(x) for x in packs}
    assert firsts == {7, 8, 9, 19 + 6, 19 + 7, 19 + 8}
    assert all(len(x) == 4 for x in packs)
    assert alike_inputs(lw.models.seven_dof_arm(), (("q", 7),)) == ()


def test_a_chain_has_no_limbs_side_by_side() -> None:
    assert body(lw.models.seven_dof_arm(), "forward_dynamics") is None
