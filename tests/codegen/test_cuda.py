"""Emitted CUDA, compiled as C++ and run on the processor, against the sweep interpreter."""

import shutil

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import J, bias, mass, tau, vdot
from linkwise.algebra.dense import Dense
from linkwise.codegen.cuda import plan as cuda_plan
from linkwise.codegen.cuda.plan import Room, planned
from linkwise.codegen.cuda.source import Shape, emit_cuda, shared_memory
from linkwise.codegen.cuda.split import limbs
from linkwise.codegen.request import Request
from linkwise.codegen.scalar.trace import trace
from linkwise.spatial import SpatialInertia
from linkwise.sweeps.interpret import run
from linkwise.sweeps.lower import lower
from tests.codegen.cuda_on_host import OnHost

COMPILER = shutil.which("g++") or shutil.which("clang++")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here")

QUANTITIES = {
    "forward dynamics": mass.inv @ (tau - bias),
    "inverse dynamics": mass @ vdot + bias,
    "mass matrix": mass,
    "jacobian": J,
    "inverse mass matrix": mass.inv,
    "operational-space inertia": (J @ mass.inv @ J.T).inv,
}


def mirrored():
    """A quadruped with weights beside its shanks, and a node beside one of them."""
    mech, weight = lw.models.quadruped(), SpatialInertia.solid_box(0.1, (0.02, 0.02, 0.02))
    for body in mech.bodies:
        if body.name.endswith("_shank"):
            at = (0.0, 0.02 if "left" in body.name else -0.02, -0.1)
            mech = mech.with_payload(body.name, weight, name=f"{body.name}_weight", pose=at)
    return mech.merge_locked().with_node("pad", "front_left_shank", (0.0, -0.008, -0.16))


ROBOTS = {
    "arm": lw.models.seven_dof_arm,
    "quadruped": lw.models.quadruped,
    "humanoid": lw.models.humanoid,
    "mirrored": mirrored,
    "tree": lambda: lw.models.random_tree(9, 4),
}
CASES = [
    (robot, q) for robot in ("arm", "quadruped", "humanoid", "tree") for q in list(QUANTITIES)[:2]
]
CASES += [("arm", "mass matrix"), ("tree", "mass matrix"), ("tree", "jacobian")]
CASES += [("mirrored", "operational-space inertia"), ("quadruped", "inverse mass matrix")]


class Case:
    """One quantity of one robot, traced, with random states."""

    def __init__(self, robot, quantity, dtype, count):
        self.mech, self.dtype, self.quantity = ROBOTS[robot](), dtype, quantity
        node = "pad" if robot == "mirrored" else self.mech.bodies[-1].name
        self.nodes = [node] if "J" in repr(QUANTITIES[quantity]) else []
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
        result = {"single": (self.traced, cuda_plan.single(self.traced))}
        result["limbs"] = (self.traced, cuda_plan.limbs(self.traced, self.mech))
        itemsize = np.dtype(self.dtype).itemsize
        shared = cuda_plan.by_families(
            self.program, self.mech, self.nodes, itemsize=itemsize, plain=self.traced
        )
        return result if shared is None else result | {"families": shared}

    def bound(self, i):
        """Rounding of one state: for accelerations, what the scaled mass matrix makes of it."""
        few = 32.0 * float(np.finfo(self.dtype).eps)
        if self.quantity == "operational-space inertia":
            return few * float(np.linalg.cond(self.expected(i).reshape(6, 6)))
        if self.quantity not in ("forward dynamics", "inverse mass matrix"):
            return few
        matrix = Dense(self.mech, self.given["q"][i])(mass)
        size = np.sqrt(np.diag(matrix))
        return few * max(1.0, float(np.linalg.cond(matrix / np.outer(size, size))) / 8.0)

    def agree(self, out, rows, **instead):
        for i in rows:
            expected = self.expected(i, **instead)
            scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
            difference = np.abs(out[i] - expected).max(initial=0.0) / scale
            assert difference < self.bound(i), (i, difference, self.bound(i))


@pytest.mark.few(2, 11)
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


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("robot", ["tree", "quadruped"])
def test_long_rows(robot, dtype, tmp_path):
    """Rows collected in shared memory are those that each thread stores on its own."""
    count = 133
    case = Case(robot, "mass matrix", dtype, count)
    width = len(case.traced.outputs)
    assert width > 64
    arrays = [np.array(x) for x in case.given.values()]
    for i, kind in enumerate(case.dealt()):
        kernels = list[OnHost]()
        for collect in (True, False):
            folder = tmp_path / f"{kind} {collect}"
            folder.mkdir()
            kernels.append(case.on_host(kind, 3, folder, ahead=i != 1, collect=collect))
        texts = [kernel.source.text for kernel in kernels]
        assert "give_collected<" in texts[0] and "give_collected" not in texts[1]
        right, codes, _ = kernels[1](arrays, width, count)
        assert not codes.any()
        case.agree(right, (0, 32, count - 1))
        for backwards in (False, True):
            result, codes, trouble = kernels[0](
                arrays, width, count, backwards=backwards, blocks=1 + backwards, offset=1
            )
            assert not codes.any() and not trouble[0]
            np.testing.assert_array_equal(result, right)
        bad = [5, 64, 132]
        spoilt = [np.array(x) for x in arrays]
        spoilt[0][bad, -1] = (np.nan, np.inf, -np.inf)
        result, codes, trouble = kernels[0](spoilt, width, count, blocks=1)
        assert np.flatnonzero(codes).tolist() == bad and set(codes[bad]) == {1}
        assert trouble == (3, 5) and np.isnan(result[bad]).all()
        np.testing.assert_array_equal(np.delete(result, bad, 0), np.delete(right, bad, 0))


@pytest.mark.prove
def test_what_the_card_has_decides():
    def shape(robot, quantity, dtype, room):
        case = Case(robot, quantity, dtype, 1)
        expr, size = QUANTITIES[quantity], np.dtype(dtype).itemsize
        plan = planned(Request((expr,), case.mech, itemsize=size), room)
        size, _ = shared_memory(*plan, dtype=dtype)
        assert size <= room.block
        return plan[2]

    small, large = Room(48 << 10, 100 << 10), Room(227 << 10, 228 << 10)
    assert shape("humanoid", "forward dynamics", "float32", large).groups == 4
    assert shape("humanoid", "forward dynamics", "float32", Room()).groups < 4
    assert shape("humanoid", "mass matrix", "float64", large).collect
    assert not shape("humanoid", "mass matrix", "float64", small).collect


def test_limbs_are_chains_between_branchings():
    """0 - 1, which carries 2 and 3 - 4, and 5 - 6 beside them on the ground."""
    assert limbs([-1, 0, 1, 1, 3, -1, 5]) == [0, 0, 1, 2, 2, 3, 3]
