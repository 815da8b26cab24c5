"""Emitted CUDA, compiled as C++ and run on the processor, against the sweep interpreter."""

import shutil

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import J, N, bias, mass, tau, vdot
from linkwise.algebra.dense import Dense
from linkwise.codegen import cuda_plan
from linkwise.codegen.cuda import Shape, emit_cuda
from linkwise.codegen.trace import trace
from linkwise.sweeps.interpret import run
from linkwise.sweeps.lower import lower
from tests.codegen.cuda_on_host import OnHost

COMPILER = shutil.which("g++") or shutil.which("clang++")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here")

QUANTITIES = {
    "forward dynamics": (mass + N).inv @ (tau - bias),
    "inverse dynamics": mass @ vdot + bias,
    "mass matrix": mass,
    "jacobian": J,
}
ROBOTS = {
    "arm": lw.models.seven_dof_arm,
    "quadruped": lw.models.quadruped,
    "humanoid": lw.models.humanoid,
    "tree": lambda: lw.models.random_tree(9, 4),
}
CASES = [(robot, q) for robot in ROBOTS for q in list(QUANTITIES)[:2]]
CASES += [("arm", "mass matrix"), ("tree", "mass matrix"), ("tree", "jacobian")]


class Case:
    """One quantity of one robot, traced, with random states."""

    def __init__(self, robot, quantity, dtype, count):
        self.mech, self.dtype = ROBOTS[robot](), dtype
        self.nodes = [self.mech.bodies[-1].name] if quantity == "jacobian" else []
        self.program = lower(lw.derive(QUANTITIES[quantity]).result)
        itemsize = np.dtype(dtype).itemsize
        self.traced = trace(self.program, self.mech, self.nodes, itemsize=itemsize)
        rng = np.random.default_rng(count)
        drawn = {
            "q": np.array([self.mech.random(rng) for _ in range(count)]),
            "v": np.array([self.mech.random_velocity(rng) for _ in range(count)]),
        }
        self.given = {  # the interpreter gets the numbers that the kernel gets
            name: (drawn[name] if name in drawn else rng.standard_normal((count, size)))
            .astype(dtype)
            .astype(float)
            for name, size in self.traced.inputs
        }

    def expected(self, i, **instead):
        given = {name: x[i] for name, x in self.given.items()} | instead
        values = {name: x for name, x in given.items() if name not in ("q", "v")}
        v = given.get("v")
        return run(self.program, self.mech, given["q"], v, nodes=self.nodes, values=values).ravel()

    def on_host(self, kind, groups, folder, **options):
        traced, codes = self.dealt()[kind]
        source = emit_cuda(
            traced, codes, Shape(groups, 128, **options), dtype=self.dtype, title=["test"]
        )
        return OnHost(source, len(traced.inputs), folder, COMPILER)

    def dealt(self):
        """The ways to deal it out: one worker, limbs, limbs of equal build with one code."""
        found = {"single": (self.traced, cuda_plan.single(self.traced))}
        found["limbs"] = (self.traced, cuda_plan.limbs(self.traced, self.mech))
        itemsize = np.dtype(self.dtype).itemsize
        twinned = cuda_plan.twinned(self.program, self.mech, self.nodes, itemsize=itemsize)
        return found if twinned is None else found | {"twins": twinned}

    def bound(self, i):
        """Rounding of one state: for accelerations, what the scaled mass matrix makes of it."""
        few = 32.0 * float(np.finfo(self.dtype).eps)
        if "tau" not in self.given:
            return few
        matrix = Dense(self.mech, self.given["q"][i])(mass + N)
        size = np.sqrt(np.diag(matrix))
        return few * max(1.0, float(np.linalg.cond(matrix / np.outer(size, size))) / 8.0)

    def agree(self, out, rows, **instead):
        for i in rows:
            expected = self.expected(i, **instead)
            scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
            difference = np.abs(out[i] - expected).max(initial=0.0) / scale
            assert difference < self.bound(i), (i, difference, self.bound(i))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("robot", "quantity"), CASES)
def test_agrees_with_the_interpreter(robot, quantity, dtype, tmp_path):
    count = 133
    case = Case(robot, quantity, dtype, count)
    width = len(case.traced.outputs)
    for i, kind in enumerate(case.dealt()):
        folder = tmp_path / kind
        folder.mkdir()
        kernel = case.on_host(kind, 2, folder, table=dtype == "float64", ahead=i != 1)
        for backwards in (False, True):
            out, codes, trouble = kernel(
                case.given.values(), width, count, backwards=backwards, blocks=1 + backwards
            )
            case.agree(out, (0, 31, 32, 70, 127, 128, count - 1))
            assert not codes.any() and trouble[0] == 0
