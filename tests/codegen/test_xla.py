"""The handlers that XLA calls, with a frame written here: on the processor, and with a GPU in play.

The records follow `xla/ffi/api/c_api.h`. `tests/convert/test_jax.py` has JAX call the first one.
"""

import ctypes
import shutil
import sys
import types

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import bias, mass, tau
from linkwise.codegen.cpu.xla import processor_handler
from linkwise.codegen.cuda import device as cuda_device
from linkwise.codegen.cuda.xla import gpu_handler
from tests.codegen import cupy_on_host

FORWARD = mass.inv @ (tau - bias)
POINTER, INT, INT32, SIZE = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.c_size_t
COMPILER = shutil.which("g++") or shutil.which("clang++")
STREAM, CONTEXT = 0x5150, 0xC0
LAUNCH = ctypes.CFUNCTYPE(INT32, POINTER, *(7 * [ctypes.c_uint]), POINTER, POINTER, POINTER)
CALL = ctypes.CFUNCTYPE(POINTER, POINTER)


class Head(ctypes.Structure):
    _fields_ = [("size", SIZE), ("extension", POINTER)]


class Buffer(Head):
    _fields_ = [("dtype", INT32), ("data", POINTER), ("rank", INT), ("dims", POINTER)]


class List(Head):
    _fields_ = [("count", INT), ("types", POINTER), ("items", POINTER)]


class Attributes(Head):
    _fields_ = [("count", INT), ("types", POINTER), ("names", POINTER), ("items", POINTER)]


class Version(Head):
    _fields_ = [("major", INT32), ("minor", INT32)]


class Api(Head):
    _fields_ = [("version", Version), ("inner", POINTER)] + [
        (name, CALL)
        for name in (
            *("error_create", "error_message", "error_destroy", "register", "stream", "type"),
            *("context", "state_set", "state_get", "allocate", "free", "schedule", "threads"),
            *("future", "available", "future_error", "run_id", "ordinal"),
        )
    ]


class Frame(Head):
    _fields_ = [
        *(("api", POINTER), ("ctx", POINTER), ("stage", INT32)),
        *(("args", List), ("rets", List), ("attrs", Attributes), ("future", POINTER)),
    ]


class Metadata(ctypes.Structure):
    _fields_ = [("size", SIZE), ("version", Version), ("traits", ctypes.c_uint32), ("id", INT)]


class Extension(ctypes.Structure):
    _fields_ = [("size", SIZE), ("type", INT32), ("next", POINTER), ("metadata", POINTER)]


class Xla:
    """As much of XLA as a handler sees: a pool of `pool` threads that runs `at_once` tasks now."""

    def __init__(self, pool=1, at_once=0, card=0):
        self.messages, self.later = list[str](), list[tuple]()
        self.pool, self.at_once, self.card = pool, at_once, card
        self.api = Api(ctypes.sizeof(Api), None, Version(24, None, 0, 9))
        for name in ("error_create", "error_destroy", "stream", "schedule", "threads", "ordinal"):
            setattr(self.api, name, CALL(getattr(self, name)))

    def error_create(self, address):
        self.messages.append(ctypes.string_at(POINTER.from_address(address + 16).value).decode())
        return 0xE0

    def error_destroy(self, address):
        assert POINTER.from_address(address + 16).value == 0xE1

    def stream(self, address):
        assert POINTER.from_address(address + 16).value == 0xC7
        POINTER.from_address(address + 24).value = STREAM

    def ordinal(self, address):
        INT32.from_address(address + 24).value = self.card

    def threads(self, address):
        INT.from_address(POINTER.from_address(address + 24).value).value = self.pool

    def schedule(self, address):
        _, _, _, task, job = (INT * 5).from_address(address)
        self.at_once -= 1
        if self.at_once < -100:
            return 0xE1
        call = ctypes.CFUNCTYPE(None, POINTER)(task)
        call(job) if self.at_once >= 0 else self.later.append((call, job))

    def call(self, handler, inputs, results):
        """The handler on arrays; what it returns."""
        arguments, kept = buffers(*inputs)
        returned, also_kept = buffers(*results)
        frame = Frame(ctypes.sizeof(Frame), None, ctypes.addressof(self.api), 0xC7, 3)
        frame.args, frame.rets = arguments, returned
        error = CALL(handler.address)(ctypes.addressof(frame))
        del kept, also_kept
        return error

    def facts(self, handler):
        """What the handler says about itself."""
        facts = Metadata(ctypes.sizeof(Metadata))
        last = Extension(32, 1, None, ctypes.addressof(facts))
        first = Extension(32, 7, ctypes.addressof(last), None)
        frame = Frame(ctypes.sizeof(Frame), ctypes.addressof(first), ctypes.addressof(self.api))
        assert CALL(handler.address)(ctypes.addressof(frame)) is None
        return facts


def buffers(*arrays):
    """A list of arrays, and what has to live with it."""
    kept = list(arrays)
    records = (Buffer * len(arrays))()
    for record, x in zip(records, arrays, strict=True):
        dims = (INT * max(x.ndim, 1))(*x.shape)
        kept.append(dims)
        record.data, record.rank, record.dims = x.ctypes.data, x.ndim, ctypes.addressof(dims)
    size = ctypes.sizeof(Buffer)
    items = (POINTER * len(arrays))(
        *(ctypes.addressof(records) + i * size for i in range(len(arrays)))
    )
    return List(40, None, len(arrays), None, ctypes.addressof(items)), (kept, records, items)


def problem(lead, mech, dtype=np.float64):
    """Inputs with these leading axes, the second for all states, places for results, and values."""
    rng = np.random.default_rng(4)
    count = int(np.prod(lead))
    q, t = rng.standard_normal((2, count, mech.nv))
    v = rng.standard_normal(mech.nv)
    expected = lw.forward_dynamics(mech, q, v, t)
    inputs = [q.reshape(*lead, mech.nv), v, t.reshape(*lead, mech.nv)]
    places = np.full((*lead, mech.nv), 77, dtype), np.full(lead, -1, np.int32)
    return [x.astype(dtype) for x in inputs], places, expected.reshape(*lead, mech.nv)


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("lead", [(), (1,), (37,), (3, 5)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arrays_of_a_frame(lead, many, dtype):
    mech = lw.models.puma560()
    kernel = lw.compile(FORWARD, mech, dtype=dtype)
    inputs, (out, codes), expected = problem(lead, mech, dtype)
    assert Xla().call(processor_handler(kernel.device, many=many), inputs, (out, codes)) is None
    assert not codes.any()
    close = 1e-11 if dtype is np.float64 else 2e-3
    np.testing.assert_allclose(out, expected, rtol=close, atol=close)


@pytest.mark.parametrize(("pool", "at_once"), [(1, 0), (4, 0), (4, 1), (4, 9), (3, -100)])
def test_tasks_may_start_late_or_never(pool, at_once):
    mech = lw.models.puma560()
    handler = processor_handler(lw.compile(FORWARD, mech).device, many=True)
    inputs, (out, codes), expected = problem((9001,), mech)
    inputs[2][4321] = np.nan
    xla = Xla(pool, at_once)
    assert xla.call(handler, inputs, (out, codes)) is None
    assert np.flatnonzero(codes).tolist() == [4321] and np.isnan(out[4321]).all()
    np.testing.assert_allclose(np.delete(out, 4321, 0), np.delete(expected, 4321, 0), rtol=1e-9)
    out[:] = 5.0
    for call, job in xla.later:  # its arrays are gone
        call(job)
    assert (out == 5.0).all()


def test_what_handlers_say_about_themselves():
    handler = processor_handler(lw.compile(FORWARD, lw.models.pendulum(1)).device, many=False)
    facts = Xla().facts(handler)
    assert (facts.version.major, facts.version.minor, facts.traits) == (0, 9, 0)


# ------------------------------------------------------------------------------------------- GPU


class Driver:
    """The CUDA driver, for a kernel that the processor runs."""

    def __init__(self, outcome=0):
        self.outcome, self.events = outcome, list()
        self.cuLaunchKernel = LAUNCH(self.launch)
        self.cuCtxPushCurrent_v2 = ctypes.CFUNCTYPE(INT32, POINTER)(self.push)
        self.cuCtxPopCurrent_v2 = ctypes.CFUNCTYPE(INT32, POINTER)(self.pop)

    def cuCtxGetCurrent(self, place):  # noqa: N802
        place._obj.value = CONTEXT
        return 0

    def push(self, context):
        self.events.append(("push", context))
        return 0

    def pop(self, place):
        self.events.append(("pop", None))
        return 0

    def launch(self, function, gx, gy, gz, bx, by, bz, shared, stream, addresses, extra):
        assert (gy, gz, by, bz, extra) == (1, 1, 1, 1, None) and stream == STREAM
        kernel = ctypes.cast(function, ctypes.py_object).value
        n = 2 * kernel.inputs + 4
        values = [INT.from_address(x).value for x in (POINTER * n).from_address(addresses)]
        kernel((gx,), (bx,), tuple(map(np.int64, values)), shared_mem=shared)
        self.events.append(("launch", gx))
        return self.outcome


class Function:
    """A loaded kernel, with an address."""

    def __init__(self, launch, inputs):
        self.launch, self.inputs = launch, inputs
        self.kernel = types.SimpleNamespace(ptr=id(self))

    def __call__(self, *arguments, **shared):
        self.launch(*arguments, **shared)


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    """Kernels for the GPU run on the processor."""
    if COMPILER is None:
        pytest.skip("no C++ compiler here")
    monkeypatch.setitem(sys.modules, "cupy", cupy_on_host.fake())
    load = cupy_on_host.loader(tmp_path, COMPILER)

    def loaded(cp, source, device):
        made = load(cp, source, device)
        function = Function(made.function, source.text.count("const T *in"))
        return cuda_device._Loaded(function, made.blocks, made.source)

    monkeypatch.setattr(cuda_device, "_load", loaded)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("lead", [(), (150,), (0,)])
@pytest.mark.usefixtures("gpu")
def test_a_launch_on_a_gpu(lead, dtype):
    mech = lw.models.puma560()
    device = lw.compile(FORWARD, mech, target="cuda", dtype=dtype).device
    inputs, (out, codes), expected = problem(lead, mech, dtype)
    driver, xla = Driver(), Xla()
    handler = gpu_handler(device, [0], driver)
    assert xla.call(handler, inputs, (out, codes)) is None
    if not out.size:
        assert not driver.events
        return
    assert [name for name, _ in driver.events] == ["push", "launch", "pop"]
    assert driver.events[0] == ("push", CONTEXT) and not codes.any()
    close = 1e-11 if dtype is np.float64 else 2e-3
    np.testing.assert_allclose(out, expected, rtol=close, atol=close)
    assert xla.facts(handler).traits == 1  # may become part of a CUDA graph


@pytest.mark.usefixtures("gpu")
def test_a_launch_that_fails_is_an_error_of_xla():
    mech = lw.models.pendulum(2)
    device = lw.compile(FORWARD, mech, target="cuda").device
    inputs, results, _ = problem((5,), mech)
    refused, elsewhere = Xla(), Xla(card=1)
    assert refused.call(gpu_handler(device, [0], Driver(700)), inputs, results) == 0xE0
    assert elsewhere.call(gpu_handler(device, [0], Driver()), inputs, results) == 0xE0
    assert "did not launch" in refused.messages[0] and "not loaded" in elsewhere.messages[0]
