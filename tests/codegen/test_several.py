"""Several results from one kernel: equal to each alone, and cheaper than all of them."""

import pickle
import shutil
import subprocess
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import J, bias, mass, tau
from linkwise.algebra.expr import Expr
from linkwise.errors import ExpressionError


def _expressions() -> dict[str, Expr]:
    return {
        "inertia": (J @ mass.inv @ J.T).inv,
        "acceleration": mass.inv @ (tau - bias),
        "mass": mass,
        "jacobian": J,
    }


def _state(mech: lw.Mechanism, count: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    q = np.stack([mech.random(rng) for _ in range(count)])
    return {
        "q": q,
        "v": rng.normal(size=(count, mech.nv)),
        "tau": rng.normal(size=(count, mech.nv)),
    }


@pytest.mark.parametrize("target", ["cpu", "numpy"])
def test_each_result_is_what_its_own_kernel_gives(target: Literal["cpu", "numpy"]) -> None:
    mech = lw.models.seven_dof_arm()
    together = lw.compile(_expressions(), mech, nodes=["hand"], target=target)
    batch = _state(mech, 3)
    result = together(**batch)
    one = together(**{name: x[1] for name, x in batch.items()})
    assert list(result) == list(_expressions()) == list(together.shapes)
    for name, expr in _expressions().items():
        alone = lw.compile(expr, mech, nodes=["hand"])
        value = alone(*[batch[x] for x in alone.arguments])
        assert result[name].shape == value.shape
        assert result[name] == pytest.approx(value, rel=1e-12, abs=1e-12 * np.abs(value).max())
        assert one[name] == pytest.approx(result[name][1], rel=1e-12, abs=1e-12)


def test_what_is_shared_is_computed_once() -> None:
    mech = lw.models.seven_dof_arm()
    together = sum(lw.compile(_expressions(), mech, nodes=["hand"]).ops.values())
    alone = [sum(lw.compile(x, mech, nodes=["hand"]).ops.values()) for x in _expressions().values()]
    # Jacobian, sweeps for P and D, and velocities are shared; halves of the mass matrix are not.
    assert max(alone) < together < 0.9 * sum(alone)


def test_the_plan_shows_all_results() -> None:
    mech = lw.models.seven_dof_arm()
    text = str(lw.compile(_expressions(), mech, nodes=["hand"]).program)
    head = text.split("\n\n")[0].splitlines()
    assert len(head) == len({line.split(" = ")[0] for line in head}) == len(_expressions())


def test_a_copy_in_another_process_knows_the_parts() -> None:
    mech = lw.models.pendulum()
    kernel = lw.compile({"mass": mass, "acceleration": mass.inv @ (tau - bias)}, mech)
    again = pickle.loads(pickle.dumps(kernel))
    arrays = [x[0] for x in _state(mech, 1).values()]
    for name, value in kernel(*arrays).items():
        assert again(*arrays)[name] == pytest.approx(value, abs=0.0)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_c_function_lists_every_number(tmp_path: Path) -> None:
    mech = lw.models.planar_rpp()
    expected = {"mass": mass, "acceleration": mass.inv @ (tau - bias)}
    code = lw.compile(expected, mech, target="c").named("both")
    assert "mass[2][1]" in code.header
    assert "acceleration[2]" in code.header
    assert "acceleration = mass^-1 (tau - C)" in code.header
    code.write(tmp_path)
    command = ["cc", "-std=c99", "-O1", "-DBOTH_SELFTEST", "both.c", "-lm", "-o", "both"]
    subprocess.run(command, cwd=tmp_path, check=True)
    subprocess.run(["./both"], cwd=tmp_path, check=True)


def test_no_expression_and_parts_of_several_are_refused() -> None:
    mech = lw.models.pendulum()
    with pytest.raises(ExpressionError, match="no expression"):
        lw.compile({}, mech)
    with pytest.raises(ExpressionError, match="dictionary of one expression, 'mass'"):
        lw.compile({"mass": mass}, mech)
    with pytest.raises(ExpressionError, match="several expressions"):
        lw.compile({"a": mass, "b": mass.inv}, mech, rolled=True)  # pyright: ignore
