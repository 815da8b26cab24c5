"""Kernels for a card: what can be had without one, and calls with the processor in its place."""

import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import bias, mass, tau
from linkwise.codegen.cuda import device as cuda_kernel
from linkwise.codegen.kernel import Kernel
from linkwise.errors import (
    DeviceError,
    MissingExtraError,
    ModelError,
    ShapeError,
    SingularHingeError,
    TroubleWarning,
)
from tests.codegen import cupy_on_host
from tests.codegen.cupy_on_host import on_card

COMPILER = shutil.which("g++") or shutil.which("clang++")
FORWARD = mass.inv @ (tau - bias)


@pytest.fixture
def card(monkeypatch, tmp_path):
    """CuPy with the processor for a card."""
    if COMPILER is None:
        pytest.skip("no C++ compiler here")
    monkeypatch.setitem(sys.modules, "cupy", cupy_on_host.fake())
    monkeypatch.setattr(cuda_kernel, "_load", cupy_on_host.loader(tmp_path, COMPILER))


@pytest.fixture
def arm():
    return lw.models.seven_dof_arm()


def states(mech, count, dtype=np.float64):
    rng = np.random.default_rng(count)
    q = np.array([mech.random(rng) for _ in range(count)])
    v, t = rng.standard_normal((2, count, mech.nv))
    return [on_card(x.astype(dtype)) for x in (q, v, t)]


def expected(mech, arrays):
    return lw.compile(FORWARD, mech)(*(np.asarray(x, dtype=float) for x in arrays))


def test_source_without_a_card_or_llvm():
    script = """
import sys
sys.modules["llvmlite"] = None
sys.modules["cupy"] = None
import linkwise as lw
from linkwise.algebra import bias, mass, tau
kernel = lw.compile(mass.inv @ (tau - bias), lw.models.seven_dof_arm(), target="cuda")
assert "__global__" in kernel.source and kernel.source.isascii()
assert kernel.arguments == ("q", "v", "tau") and kernel.ops["cos"] > 0
assert "CUDA" in kernel.explain() and kernel.dtype == "float64"
try:
    kernel([0.0] * 7, [0.0] * 7, [0.0] * 7)
except lw.errors.MissingExtraError as error:
    assert "linkwise[cuda]" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_without_a_card(monkeypatch, arm):
    def none():
        raise RuntimeError("cudaErrorNoDevice")

    absent = cupy_on_host.fake()
    absent.cuda.runtime.getDeviceCount = none
    monkeypatch.setitem(sys.modules, "cupy", absent)
    kernel = lw.compile(FORWARD, arm, target="cuda")
    with pytest.raises(DeviceError, match=r"cudaErrorNoDevice.*target='cpu'"):
        kernel(*states(arm, 2))
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(MissingExtraError, match="cupy"):
        kernel(*states(arm, 2))


@pytest.mark.prove
def test_too_large_for_straight_code():
    kernel = lw.compile(FORWARD, lw.models.chain(400), target="cuda", dtype="float32")
    with pytest.raises(DeviceError, match=r"operations a state.*target='cpu'"):
        kernel.source  # noqa: B018


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_calls(card, arm, dtype):
    kernel = lw.compile(FORWARD, arm, target="cuda", dtype=dtype)
    bound = {"float64": 1e-10, "float32": 2e-3}[dtype]
    q, v, t = states(arm, 150, dtype)
    right = expected(arm, (q, v, t))
    result = kernel(q, v, t)
    assert isinstance(result, cupy_on_host.CardArray) and result.dtype == dtype
    scale = np.abs(right).max()
    assert np.abs(np.asarray(result) - right).max() < bound * scale
    np.testing.assert_array_equal(kernel(q, tau=t, v=v), result)
    one = kernel(q[7], v[7], t[7])
    assert one.shape == (7,)
    np.testing.assert_array_equal(one, result[7])
    for batch in (0, 1, 31, 33, 128):
        np.testing.assert_array_equal(kernel(q[:batch], v[:batch], t[:batch]), result[:batch])
    wide = np.zeros((150, 20), dtype).view(cupy_on_host.CardArray)
    wide[:, 3:10] = q
    np.testing.assert_array_equal(kernel(wide[:, 3:10], v, t), result)
    np.testing.assert_array_equal(
        kernel(np.asfortranarray(q).view(cupy_on_host.CardArray), v, t), result
    )
    np.testing.assert_array_equal(kernel(q[::-1], v[::-1], t[::-1]), result[::-1])
    np.testing.assert_array_equal(kernel(q, v[3], t[3:4])[3], result[3])


def test_out(card, arm):
    kernel = lw.compile(FORWARD, arm, target="cuda")
    q, v, t = states(arm, 40)
    right = kernel(q, v, t)
    out = on_card(np.zeros((40, 7)))
    assert kernel(q, v, t, out=out) is out
    np.testing.assert_array_equal(out, right)
    assert kernel(q, v, t, out=t) is t  # in place
    np.testing.assert_array_equal(t, right)
    wide = on_card(np.zeros((40, 14)))
    kernel(q, v, states(arm, 40)[2], out=wide[:, ::2])
    np.testing.assert_array_equal(wide[:, ::2], right)
    assert not wide[:, 1::2].any()


def test_whole_arrays_are_looked_at_once(card, arm, monkeypatch):
    """The short way gives the same, and only where nothing is in its way."""
    kernel = lw.compile(FORWARD, arm, target="cuda", dtype="float32")
    count = 300
    arrays = states(arm, count, np.float32)
    right = kernel(*arrays)
    codes, ways = on_card(np.full(count, -1, np.int32)), []
    usual = Kernel._rows

    def watched(self, *given):
        ways.append("long")
        return usual(self, *given)

    monkeypatch.setattr(Kernel, "_rows", watched)
    np.testing.assert_array_equal(kernel(*arrays, status=codes), right)
    out = on_card(np.zeros((count, 7), np.float32))
    assert kernel(*arrays, status=codes, out=out) is out
    np.testing.assert_array_equal(out, right)
    assert not ways and not codes.any()
    out = on_card(arrays[2])
    assert kernel(arrays[0], arrays[1], out, status=codes, out=out) is out
    np.testing.assert_array_equal(out, right)
    back = [x[::-1] for x in arrays]
    np.testing.assert_array_equal(kernel(*back, status=codes), right[::-1])
    kernel(arrays[0], arrays[1], arrays[2][0], status=codes)
    assert len(ways) == 3
    for wrong in (arrays[2][:, :6], arrays[2].astype(np.float64), arrays[2][:9]):
        with pytest.raises(ShapeError):
            kernel(arrays[0], arrays[1], wrong, status=codes)


def test_wrong_arrays(card, arm):
    kernel = lw.compile(FORWARD, arm, target="cuda")
    q, v, t = states(arm, 5)
    with pytest.raises(ShapeError, match=r"q is in the memory.*cupy.asarray\(q\)"):
        kernel(np.asarray(q).view(np.ndarray), v, t)
    with pytest.raises(ShapeError, match="tau is missing; this kernel takes q, v, tau"):
        kernel(q, v)
    with pytest.raises(ShapeError, match="v is given twice"):
        kernel(q, v, v=v, tau=t)
    with pytest.raises(ShapeError, match="w is not known"):
        kernel(q, v, w=t)
    with pytest.raises(ShapeError, match="4 arrays"):
        kernel(q, v, t, t)
    with pytest.raises(ShapeError, match=r"v has shape \(5, 6\)"):
        kernel(q, v[:, :6], t)
    with pytest.raises(ShapeError, match="tau has 3 rows; the batch has 5"):
        kernel(q, v, t[:3])
    with pytest.raises(ShapeError, match=r"q is float32.*float64.*dtype='float32'"):
        kernel(q.astype(np.float32), v, t)
    with pytest.raises(ShapeError, match=r"out is float64 \(4, 7\)"):
        kernel(q, v, t, out=on_card(np.zeros((4, 7))))
    with pytest.raises(ShapeError, match=r"status is float64 \(5,\).*contiguous array of int32"):
        kernel(q, v, t, status=on_card(np.zeros(5)))
    with pytest.raises(ShapeError, match="CuPy, Torch or JAX"):
        kernel("q", v, t)


def test_trouble(card, arm):
    kernel = lw.compile(FORWARD, arm, target="cuda")
    q, v, t = states(arm, 70)
    right = kernel(q, v, t)
    q[3, 2], v[40, 6], t[69, 0] = np.nan, np.inf, -np.inf
    codes = on_card(np.full(70, -1, np.int32))
    result = kernel(q, v, t, status=codes)
    bad = [3, 40, 69]
    assert np.flatnonzero(codes).tolist() == bad and set(codes[bad].tolist()) == {1}
    assert np.isnan(result[bad]).all()
    fine = np.setdiff1d(np.arange(70), bad)
    np.testing.assert_array_equal(result[fine], right[fine])
    with pytest.warns(TroubleWarning, match=r"3 of 70 .* row 3: an input is not finite") as caught:
        kernel(q, v, t)
    assert caught[0].filename == __file__
    with pytest.raises(ModelError, match=r"v is not finite at 'wrist_roll' \(entry 6\)"):
        kernel(q[40], v[40], t[40])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        single = on_card(np.zeros((), np.int32))
        assert np.isnan(kernel(q[3], v[3], t[3], status=single)).all() and single == 1


def test_singular_hinge_and_quaternion(card):
    mech = lw.models.quadruped()
    kernel = lw.compile(FORWARD, mech, target="cuda", dtype="float32")
    q, v, t = states(mech, 40, np.float32)
    right = kernel(q, v, t)
    q[33, 3:7] *= 1.2
    codes = on_card(np.zeros(40, np.int32))
    result = kernel(q, v, t, status=codes)
    assert np.flatnonzero(codes).tolist() == [33]
    assert "quaternion of body" in kernel.describe(codes[33])
    np.testing.assert_array_equal(np.delete(result, 33, 0), np.delete(right, 33, 0))
    arm = lw.models.seven_dof_arm().without_armature()
    kernel = lw.compile(mass.inv @ (tau - bias), arm, target="cuda", parameters=("inertia",))
    none = on_card(np.zeros(kernel.nominal("inertia").size))
    with pytest.raises(SingularHingeError, match="hinge of body"):
        kernel(*(x[0] for x in states(arm, 1)), inertia=none)


def test_parameters_row_by_row(card, arm):
    names = ("gravity", "locked")
    kernel = lw.compile(FORWARD, arm, target="cuda", parameters=names)
    assert kernel.arguments == ("q", "v", "tau", *names)
    q, v, t = states(arm, 40)
    nominal = [on_card(kernel.nominal(name)) for name in names]
    right = expected(arm, (q, v, t))
    np.testing.assert_allclose(kernel(q, v, t, *nominal), right, rtol=1e-9, atol=1e-9)
    gravity = np.tile(kernel.nominal("gravity"), (40, 1))
    gravity[::2] *= 0.2
    host = lw.compile(FORWARD, arm, parameters=names)
    plain = [np.asarray(x) for x in (q, v, t, gravity, nominal[1])]
    result = kernel(q, v, t, gravity=on_card(gravity), locked=nominal[1])
    np.testing.assert_allclose(result, host(*plain), rtol=1e-9, atol=1e-9)
