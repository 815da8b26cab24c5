"""Motions on a card, with the processor in its place: the emitted CUDA, and calls of rollouts."""

import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen import arrays
from linkwise.codegen.stepping import cuda_device
from linkwise.codegen.stepping.cuda_group import emit_group_motion
from linkwise.codegen.stepping.cuda_source import Shape, emit_motion
from linkwise.errors import DeviceError, MissingExtraError, ShapeError, SimulationError
from linkwise.simulation import ContactPoint, HeightField, rates
from linkwise.simulation.motion_request import COMPILED, MotionRequest
from linkwise.simulation.rollout_kernel import motion_kernel
from tests.codegen import cupy_on_host
from tests.codegen.cupy_on_host import CardArray, on_card
from tests.codegen.motion_on_host import OnHost
from tests.codegen.segments_in_numpy import Interpreted

COMPILER = shutil.which("g++") or shutil.which("clang++")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here")

ROBOTS = {
    "arm": lw.models.seven_dof_arm,
    "humanoid": lw.models.humanoid,
    "quadruped": lw.models.quadruped,
    "tree": lambda: lw.models.random_tree(3, 3, hinges=("spherical", "planar"), floating=True),
}
CASES = [("tree", name, "float64") for name in sorted(COMPILED)]
CASES += [("quadruped", "variational", "float64")]
CASES += [("arm", "euler", "float64"), ("arm", "rk4", "float32"), ("arm", "variational", "float32")]
LONG = [("humanoid", name, dtype) for name in sorted(COMPILED) for dtype in ("float64", "float32")]


def gpu_kernel(mech, integrator, **options):
    return motion_kernel(MotionRequest(mech, integrator, **options), "cuda")


def states(mech, count, dtype, seed=0):
    rng = np.random.default_rng(seed)
    q = np.array([mech.random(rng) for _ in range(count)])
    return q.astype(dtype), rng.standard_normal((count, mech.nv)).astype(dtype)


@pytest.mark.few(5, 7)
@pytest.mark.parametrize(
    ("robot", "integrator", "dtype"),
    CASES + [pytest.param(*case, marks=pytest.mark.slow) for case in LONG],
)
def test_source_against_segments_in_numpy(robot, integrator, dtype, tmp_path):
    mech = ROBOTS[robot]()
    kernel = gpu_kernel(mech, integrator, itemsize=np.dtype(dtype).itemsize).device
    (q, v), steps, every = states(mech, 35, dtype), 8, 3
    tau = np.random.default_rng(1).standard_normal((35, steps, mech.nv)).astype(dtype)
    source = kernel.emitted if robot in ("quadruped", "humanoid") else kernel.alone
    assert source.workers == {"quadruped": 5, "humanoid": source.workers}.get(robot, 1)
    host = OnHost(source, tmp_path, COMPILER)
    shown = sum(n for _, n in kernel.stepping.shown)
    q_found, v_found, status, failed = host(q, v, [tau], 1e-3, steps, every, shown=shown)
    run = Interpreted(kernel.stepping, q.astype(float), v.astype(float), float(np.float32(1e-3)))
    run.registers["h"][:] = np.dtype(dtype).type(1e-3)
    expected = [(q, v)]
    for i in range(steps):
        run.step({"tau": tau[:, i].astype(float)})
        if (i + 1) % every == 0 or i + 1 == steps:
            expected.append(run.shown())
    assert not status.any() and (failed == -1).all() and not run.status.any()
    # The same operations one by one, with another sine: rounding, grown over eight steps; in
    # velocities by what the mass matrix makes of it.
    bound = {"float64": 1e-13, "float32": 1e-4}[dtype]
    assert np.abs(q_found - np.array([x.T for x, _ in expected])).max() < bound
    scale = max(1.0, float(np.abs(expected[-1][1]).max()))
    assert np.abs(v_found - np.array([x.T for _, x in expected])).max() < 10.0 * bound * scale


def test_shapes_give_the_same_numbers(tmp_path):
    """Called or written into the loop, with or without a table, blocks of any size."""
    mech = lw.models.puma560()
    stepping = gpu_kernel(mech, "euler").stepping
    (q, v), result = states(mech, 37, "float64"), []
    tau = np.random.default_rng(2).standard_normal((37, 6, mech.nv))
    for i, shape in enumerate((Shape(), Shape(64, 128, longest=0), Shape(table=False))):
        place = tmp_path / str(i)
        place.mkdir()
        source = emit_motion(stepping, shape, dtype="float64", title=["test"])
        assert f"__launch_bounds__({shape.threads}, {shape.blocks})" in source.text
        assert ("table[" in source.text) == shape.table
        assert ("__noinline__ void segment" in source.text) == (shape.longest == 0)
        host = OnHost(source, place, COMPILER)
        result += [host(q, v, [tau], 2e-3, 6, 2, threads=n) for n in (32, 64)]
    for other in result[1:]:
        for a, b in zip(result[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("workers", [3, pytest.param(6, marks=pytest.mark.slow)])
def test_any_number_of_workers_gives_the_same_numbers(workers, tmp_path):
    mech = lw.models.quadruped()
    kernel = gpu_kernel(mech, "euler").device
    (q, v), result = states(mech, 33, "float64"), []
    tau = np.random.default_rng(2).standard_normal((33, 3, mech.nv))
    options = {"dtype": "float64", "title": ["test"], "warps": 12, "workers": workers}
    for i, source in enumerate((kernel.alone, emit_group_motion(kernel.stepping, mech, **options))):
        place = tmp_path / str(i)
        place.mkdir()
        result.append(OnHost(source, place, COMPILER)(q, v, [tau], 2e-3, 3, 2))
    assert source.workers == min(workers, 5)  # a trunk and four legs
    for a, b in zip(*result, strict=True):
        assert np.abs(a - b).max() < 1e-13  # sums in another order


def test_one_limb_has_one_worker():
    mech = lw.models.chain(12)
    kernel = gpu_kernel(mech, "rk4").device
    assert kernel.work > cuda_device.SHARED[8] and kernel.emitted is kernel.alone


# ------------------------------------------------------------------------------------- rollouts


@pytest.fixture
def card(monkeypatch, tmp_path):
    """CuPy with the processor for a card; what is launched is written down."""
    made = []

    def load(cp, motion, device):
        source = motion.emitted
        place = tmp_path / str(len(made))
        place.mkdir()
        host = OnHost(source, place, COMPILER)
        made.append([])

        def launch(grid, block, arguments, shared_mem):
            made[-1].append((grid, block))
            assert shared_mem == source.shared and block[0] % 32 == 0
            assert grid[0] * block[0] >= int(arguments[-1]) * source.workers
            given, rest = list(arguments[:-9]), list(arguments[-9:])
            flat = [x.data.ptr if isinstance(x, CardArray) else int(x) for x in given]
            assert all(isinstance(x, CardArray) or x.dtype == np.int64 for x in given)
            h, steps, every, records, failed, out, status, report, count = rest
            assert h.dtype == source.dtype and out.shape[0] == records
            host.launch(
                grid[0],
                block[0],
                flat,
                h,
                *(int(x) for x in (steps, every, records)),
                *(x.data.ptr for x in (failed, out, status, report)),
                int(count),
            )

        return launch, source, 4

    monkeypatch.setitem(sys.modules, "cupy", cupy_on_host.fake())
    monkeypatch.setattr(cuda_device, "_load", load)
    return made


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rollouts_are_those_of_the_processor(card, dtype):
    mech = lw.models.puma560()
    q, v = states(mech, 70, dtype)
    tau = np.random.default_rng(3).standard_normal((70, 10, mech.nv)).astype(dtype)
    options = {"duration": 0.02, "record_every": 4, "step": 2e-3, "dtype": dtype}
    near = {"float64": 1e-12, "float32": 1e-4}[dtype]
    right = lw.rollout(mech, q, v, tau=tau, **options)
    runs = lw.rollout(mech, q, v, tau=tau, target="cuda", **options)
    assert type(runs.q) is np.ndarray and runs.q.flags.c_contiguous and runs.q.dtype == dtype
    np.testing.assert_array_equal(runs.t, right.t)
    assert runs.q.shape == right.q.shape == (70, 4, 6)
    assert np.abs(runs.q - right.q).max() < near and np.abs(runs.v - right.v).max() < near
    assert not runs.status.any() and (runs.failed_step == -1).all()
    there = lw.rollout(mech, on_card(q), on_card(v), tau=on_card(tau), target="cuda", **options)
    assert isinstance(there.q, CardArray)
    np.testing.assert_array_equal(np.asarray(there.q), runs.q)
    innermost = np.ascontiguousarray(tau.transpose(1, 2, 0)).view(CardArray).transpose(2, 0, 1)
    turned = lw.rollout(mech, on_card(q), on_card(v), tau=innermost, target="cuda", **options)
    np.testing.assert_array_equal(np.asarray(turned.q), runs.q)
    assert "70 motions" in str(there)
    assert card[0] == [((3,), (32,))] * 3  # 70 motions on 4 multiprocessors


def test_forces_and_starts_for_all(card):
    mech = lw.models.puma560()
    q, v = states(mech, 3, "float64")
    rng = np.random.default_rng(4)
    one, each = rng.standard_normal(mech.nv), rng.standard_normal((5, mech.nv))
    many = rng.standard_normal((3, 5, mech.nv))
    for tau in (None, one, each, many, many[:1]):
        right = lw.rollout(mech, q, v, duration=0.005, tau=tau)
        runs = lw.rollout(mech, q, v, duration=0.005, tau=tau, target="cuda")
        assert np.abs(runs.q - right.q).max() < 1e-13
    alone = lw.rollout(mech, q[1], v[1], duration=0.005, tau=each, target="cuda")
    assert alone.q.shape == (6, 6) and alone.status.shape == ()
    right = lw.rollout(mech, q[1], v[1], duration=0.005, tau=each)
    assert np.abs(alone.q - right.q).max() < 1e-13
    spread = lw.rollout(mech, q[1], v[1], duration=0.005, tau=many, target="cuda")
    assert spread.q.shape == (3, 6, 6)
    nothing = lw.rollout(mech, q, v, duration=0.0, target="cuda")
    np.testing.assert_array_equal(nothing.q[:, 0], q)
    none = lw.rollout(mech, q[:0], v[:0], duration=0.005, target="cuda")
    assert none.q.shape == (0, 6, 6)


def test_a_control_law_in_the_loop(card):
    mech, hand = lw.models.seven_dof_arm(), lw.Task.position("hand")
    law = lw.control_law(mech, hand, kp=100.0, kv=20.0)
    q = np.array([0.3, 0.6, -0.2, 1.2, 0.4, 0.7, 0.1])
    goal = lw.tasks.task_position(mech, q, hand) + np.array([0.05, 0.0, -0.05])
    stiff = np.array([[[50.0] * 3], [[400.0] * 3]])  # one for each of two motions
    options = {"duration": 0.04, "step": 2e-3, "controller": (law, goal), "inputs": {"kp": stiff}}
    right = lw.rollout(mech, q, np.zeros(7), **options)
    runs = lw.rollout(mech, q, np.zeros(7), target="cuda", **options)
    assert np.abs(runs.q - right.q).max() < 1e-12
    assert np.abs(runs.q[0, -1] - runs.q[1, -1]).max() > 1e-3


def of_velocities(monkeypatch):
    """The one kernel of a gradient that is no motion runs on the processor."""

    def along(mech, dtype):
        kernel = lw.compile(rates._ALONG, mech, dtype=dtype)
        return lambda q, g: on_card(kernel(np.array(q), np.array(g)))

    monkeypatch.setattr(rates, "_along_on_gpu", along)


@pytest.mark.parametrize("integrator", ["rk4", "euler", "implicit"])
def test_gradients_are_those_of_the_processor(card, integrator, monkeypatch):
    of_velocities(monkeypatch)
    mech, steps = ROBOTS["tree"](), 6
    q, v = states(mech, 5, "float64")
    rng = np.random.default_rng(5)
    tau, one = rng.standard_normal((5, steps, mech.nv)), rng.standard_normal(mech.nv)
    for force, every in ((tau, 1), (one, 1), (tau, 4)):
        gravity = {"gravity": np.array([0.0, 1.0, -9.0])}
        options = {"duration": steps * 1e-3, "integrator": integrator, "record_every": every}
        options |= {"parameters": gravity, "tau": force}
        expected = lw.rollout(mech, q, v, **options)
        weights = [rng.standard_normal(x.shape) for x in (expected.q, expected.v)]
        right = expected.gradient(*weights)
        copied = lw.rollout(mech, q, v, target="cuda", **options).gradient(*weights)
        stays = lw.rollout(mech, on_card(q), on_card(v), target="cuda", **options)
        there = stays.gradient(*map(on_card, weights))
        assert isinstance(there.q, CardArray) and isinstance(there.tau, CardArray)
        for ours in (copied, there):
            assert not ours.status.any()
            pairs = [(ours.q, right.q), (ours.v, right.v), (ours.tau, right.tau)]
            for x, y in (*pairs, (ours.inputs["gravity"], right.inputs["gravity"])):
                assert x.shape == y.shape and np.abs(y).max() > 1e-3
                assert np.abs(np.array(x) - y).max() < 1e-11 * np.abs(y).max()


def test_gradients_with_activations_are_those_of_the_processor(card, monkeypatch):
    """Commands in the memory of the computer, and on the card."""
    of_velocities(monkeypatch)
    bounds = {"control": (-0.5, 0.8), "activation": (-0.004, 0.006)}
    hinges = [x.hinge_name for x in lw.models.puma560().bodies]
    slow = lw.Actuator("slow", ((hinges[1], 2.0),), gain=(30.0, 0.0, 0.0), dynamics="filter",
                       time_constant=0.02)  # fmt: skip
    motor = lw.Actuator.motor("motor", hinges[0])
    held = lw.Actuator("held", ((hinges[2], 1.0),), gain=(9.0, 1.0, 0.0), dynamics="integrator",
                       **bounds)  # fmt: skip
    arm = lw.models.puma560()
    mech = lw.Mechanism(arm.name, arm.bodies, arm.nodes, actuators=(slow, motor, held))
    q, v = states(mech, 4, "float64")
    rng, steps = np.random.default_rng(8), 12
    u = rng.standard_normal((4, steps, 3))
    options = {"duration": steps * 1e-3, "integrator": "euler"}
    weights = rng.standard_normal((4, steps + 1, mech.nq))
    right = lw.rollout(mech, q, v, controls=u, **options).gradient(q=weights)
    there = {"q": on_card(q), "v": on_card(v), "target": "cuda"} | options
    for command in (u, on_card(u)):
        ours = lw.rollout(mech, controls=command, **there).gradient(q=on_card(weights))
        x, y = ours.inputs["control"], right.inputs["control"]
        assert isinstance(x, CardArray) and x.shape == y.shape
        assert np.abs(np.array(x) - y).max() < 1e-11 * np.abs(y).max()
        assert (np.abs(y).max(axis=(0, 1)) > 1e-9).all() and (y[..., 2] == 0.0).sum() > 8


def test_gradients_of_motions_that_fail(card, monkeypatch):
    of_velocities(monkeypatch)
    mech = lw.models.puma560()
    q, v = states(mech, 4, "float64")
    v[2] *= 1e6
    with pytest.warns(lw.errors.TroubleWarning):
        runs = lw.rollout(mech, on_card(q), on_card(v), duration=0.4, step=0.01, target="cuda")
    made = runs.gradient(q=np.ones((4, 6)))
    assert (made.status != 0).tolist() == [False, False, True, False]
    assert np.isnan(np.array(made.q)).all(axis=1).tolist() == [False, False, True, False]
    assert np.abs(np.array(made.v)[[0, 1, 3]]).min() > 0.0


def test_trouble_is_told(card):
    mech = lw.models.puma560()
    q, v = states(mech, 4, "float64")
    v[2] *= 1e6
    with pytest.warns(lw.errors.TroubleWarning, match="1 of 4 motions"):
        runs = lw.rollout(mech, q, v, duration=0.4, step=0.01, target="cuda")
    with pytest.warns(lw.errors.TroubleWarning):
        right = lw.rollout(mech, q, v, duration=0.4, step=0.01)
    np.testing.assert_array_equal(runs.status, right.status)
    np.testing.assert_array_equal(runs.failed_step, right.failed_step)
    np.testing.assert_array_equal(np.isnan(runs.q), np.isnan(right.q))
    fine = np.isfinite(right.q) & (np.abs(right.q) < 100.0)
    assert np.abs(runs.q - right.q)[fine].max() < 1e-9
    with pytest.raises(SimulationError, match="without bounds"):
        lw.rollout(mech, q[2], v[2], duration=0.4, step=0.01, target="cuda")
    tree = ROBOTS["tree"]()
    q, v = states(tree, 2, "float64")
    v[1, :3] = (0.0, 0.0, 400.0)
    with pytest.warns(lw.errors.TroubleWarning, match="half a turn in one step"):
        lw.rollout(tree, q, v, duration=0.03, step=0.01, target="cuda")
    with pytest.warns(lw.errors.TroubleWarning, match="2 of 2 motions"):
        runs = lw.rollout(tree, 1.1 * q, v, duration=0.003, target="cuda")
    assert runs.status.all()
    with pytest.raises(lw.errors.ModelError, match="quaternion"):
        lw.rollout(tree, 1.1 * q[0], v[0], duration=0.003, target="cuda")


@pytest.mark.prove
def test_trouble_where_several_warps_share_motions(card):
    mech = lw.models.quadruped()
    q, v = states(mech, 40, "float64")
    v[7, :3], v[33, 9] = (0.0, 0.0, 400.0), 1e7
    for every in (1, 4):
        options = {"duration": 0.09, "step": 0.01, "record_every": every}
        with pytest.warns(lw.errors.TroubleWarning, match="2 of 40 motions"):
            runs = lw.rollout(mech, q, v, target="cuda", **options)
        with pytest.warns(lw.errors.TroubleWarning):
            right = lw.rollout(mech, q, v, **options)
        np.testing.assert_array_equal(runs.status != 0, right.status != 0)
        np.testing.assert_array_equal(runs.failed_step, right.failed_step)
        np.testing.assert_array_equal(np.isnan(runs.q), np.isnan(right.q))
        fine = right.status == 0
        assert np.abs(runs.q - right.q)[fine].max() < 1e-9
    assert card[0][0] == ((2,), (160,))


def test_what_is_on_a_card(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", cupy_on_host.fake())
    for value in (None, 1, 1.0, [1.0], (1.0,), np.ones(2), np.float64(1.0)):
        assert not arrays.is_on_gpu(value)
    assert arrays.is_on_gpu(on_card(np.ones(2)))
    assert arrays.is_on_gpu(SimpleNamespace(__cuda_array_interface__={}))  # of Numba


def test_arrays_that_do_not_fit(card):
    mech = lw.models.puma560()
    q, v = states(mech, 3, "float64")
    for wrong, what in (
        ({"q": on_card(q[:, :5])}, "q has shape"),
        ({"v": on_card(v[:2])}, "batches differ"),
        ({"tau": on_card(np.zeros((3, 4, 6)))}, r"tau has shape \(3, 4, 6\)"),
        ({"tau": on_card(np.zeros((2, 5, 6)))}, "batches differ"),
        ({"tau": on_card(np.zeros(6, np.float32))}, "float32"),
    ):
        given = {"q": on_card(q), "v": on_card(v), "tau": on_card(np.zeros(6))} | wrong
        with pytest.raises(ShapeError, match=what):
            lw.rollout(
                mech, given["q"], given["v"], tau=given["tau"], duration=0.005, target="cuda"
            )


def test_without_a_card_or_llvm():
    script = """
import sys
sys.modules["llvmlite"] = None
sys.modules["cupy"] = None
import linkwise as lw
from linkwise.simulation.motion_request import MotionRequest
from linkwise.simulation.rollout_kernel import motion_kernel
mech = lw.models.seven_dof_arm()
kernel = motion_kernel(MotionRequest(mech), "cuda")
assert "__global__" in kernel.source and kernel.source.isascii() and kernel.ops["cos"] > 0
try:
    lw.rollout(mech, mech.neutral(), [0.0] * 7, duration=2e-3, target="cuda")
except lw.errors.MissingExtraError as error:
    assert "linkwise[cuda]" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_no_card(monkeypatch):
    def none():
        raise RuntimeError("cudaErrorNoDevice")

    absent = cupy_on_host.fake()
    absent.cuda.runtime.getDeviceCount = none
    monkeypatch.setitem(sys.modules, "cupy", absent)
    mech = lw.models.puma560()
    with pytest.raises(DeviceError, match="cudaErrorNoDevice"):
        lw.rollout(mech, mech.neutral(), np.zeros(6), duration=0.002, target="cuda")
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(MissingExtraError, match="cupy"):
        lw.rollout(mech, mech.neutral(), np.zeros(6), duration=0.002, target="cuda")


def leg():
    """A free body with a leg, whose foot touches the ground in the middle of a step."""
    part = lw.SpatialInertia.solid_box(1.0, (0.1, 0.2, 0.3))
    builder = lw.Builder("leg").body("torso", "world", lw.hinges.Free(), inertia=part)
    builder.body("shin", "torso", lw.hinges.Pin(axis=(0, 1, 0)), inertia=part)
    return builder.node("foot", "shin", (0.0, 0.0, -2e-3)).build()


@pytest.mark.parametrize(
    ("make", "integrator", "dtype", "near"),
    [
        (leg, "implicit", "float64", 1e-8),  # sweeps end at changes of 1e-10
        (lw.models.puma560, "euler", "float32", 2e-3),  # rounding over the smallest inertia
        pytest.param(lw.models.quadruped, "rk4", "float64", 1e-10, marks=pytest.mark.prove),
    ],
)
def test_simulators_are_those_of_the_processor(card, make, integrator, dtype, near):
    """The state stays on the card; one thread for a motion, and several warps for 32 of them."""
    mech = make()
    (q, v), rng = states(mech, 35, dtype), np.random.default_rng(1)
    options = {"q": q, "v": v, "batch": 35, "substeps": 2, "dtype": dtype}
    if integrator == "implicit":
        options |= {"q": mech.neutral(), "v": 0.5 * v}
        options["contacts"] = [ContactPoint("foot", "shin", tuple(mech.node("foot").pose.p))]
    options["observations"] = ("v", "tau", f"position:{mech.nodes[0].name}", "kinetic_energy")
    right = lw.Simulator(mech, integrator=integrator, **options)
    sim = lw.Simulator(mech, integrator=integrator, target="cuda", **options)
    assert sim.kernel.device.emitted.workers == (5 if make is lw.models.quadruped else 1)

    def same():
        assert isinstance(sim.observations, CardArray)
        for name in right.layout:
            np.testing.assert_allclose(np.array(sim[name]), right[name], rtol=near, atol=near)
        np.testing.assert_allclose(np.array(sim.q), right.q, rtol=0, atol=near)

    same()
    for _ in range(3):
        tau = rng.standard_normal((35, mech.nv)).astype(dtype)
        before = sim.observations
        kept = np.array(before)
        sim.step(on_card(tau))
        right.step(tau)
        same()
        assert np.array_equal(before, kept)  # valid for one more step
    mask = rng.random(35) < 0.5
    sim.reset(on_card(mask), v=on_card(0.25 * v))
    right.reset(mask, v=0.25 * v)
    same()
    assert not np.array(sim.status).any() and len(card) == 1
    with pytest.raises(ShapeError, match="action has shape"):
        sim.step(on_card(tau[:3]))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_height_fields_are_those_of_the_processor(card, dtype):
    """Tables are read by index in the kernel."""
    mech, rng = leg(), np.random.default_rng(4)
    land = HeightField(0.02 * rng.standard_normal((9, 7)), (1.2, 1.6), friction=0.6)
    foot = tuple(mech.node("foot").pose.p)
    points = [
        ContactPoint("foot", "shin", foot, 0.05, land),
        ContactPoint("tip", "shin", foot, 0.0, land),
    ]
    q = np.tile(mech.neutral(), (5, 1))
    q[:, 4:6], q[:, 6] = rng.uniform(-0.4, 0.4, (5, 2)), 0.06
    options = {"duration": 0.05, "step": 2e-3, "dtype": dtype, "integrator": "implicit"}
    right = lw.rollout(mech, q, contacts=points, **options)
    runs = lw.rollout(mech, q, contacts=points, target="cuda", **options)
    near = 1e-8 if dtype == "float64" else 2e-3
    np.testing.assert_allclose(runs.q, right.q, atol=near)
    np.testing.assert_allclose(runs.contact_forces, right.contact_forces, atol=near * 1e4)
    assert np.abs(right.contact_forces).max() > 10.0 and not runs.status.any()
