"""The machine-code call path: same answers, same errors, no leaks."""

from __future__ import annotations

import gc
import sys
import threading
import tracemalloc

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import bias, mass, tau
from linkwise.errors import ModelError, ShapeError, SingularHingeError, TroubleWarning


@pytest.fixture(scope="module")
def kernel():
    return lw.compile(mass.inv @ (tau - bias), lw.models.pendulum(3))


@pytest.fixture
def state():
    rng = np.random.default_rng(0)
    return rng.standard_normal((3, 3))


def test_it_is_the_path_taken(kernel, state):
    assert kernel.device.machine.fast is not None
    direct = kernel.device.machine.fast(*state)
    np.testing.assert_array_equal(direct, kernel(*state))
    assert direct.flags.owndata
    assert direct.flags.writeable


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.tolist(),
        lambda x: np.repeat(x, 2)[::2],
        lambda x: x.astype(np.float32).astype(np.float64).view(np.ndarray).copy()[::-1][::-1],
        lambda x: np.asarray(x, dtype=">f8"),
        lambda x: np.ma.masked_array(x),
    ],
    ids=["list", "strided", "view", "big-endian", "subclass"],
)
def test_what_it_does_not_take_goes_the_careful_way(kernel, state, change):
    q, v, force = state
    expected = kernel(np.asarray(change(q), dtype=np.float64).copy(), v, force)
    np.testing.assert_array_equal(kernel(change(q), v, force), expected)


def test_integers_and_single_precision_are_converted(kernel, state):
    _, v, force = state
    np.testing.assert_array_equal(
        kernel(np.array([0, 1, 2]), v, force), kernel(np.array([0.0, 1.0, 2.0]), v, force)
    )
    single = np.array([0.5, 0.25, 1.0], dtype=np.float32)
    np.testing.assert_array_equal(kernel(single, v, force), kernel(single.astype(float), v, force))


def test_errors_are_those_of_the_careful_path(kernel, state):
    q, v, force = state
    for bad in (np.nan, np.inf, -np.inf):
        wrong = force.copy()
        wrong[1] = bad
        with pytest.raises(ModelError, match="tau is not finite"):
            kernel(q, v, wrong)
    with pytest.raises(ShapeError, match="v has shape"):
        kernel(q, np.zeros(4), force)
    with pytest.raises(ShapeError, match="tau is missing"):
        kernel(q, v)
    with pytest.raises((ShapeError, TypeError, ValueError)):
        kernel("a", v, force)


def test_calls_leave_nothing_behind(kernel, state):
    arguments = [x.copy() for x in state]
    kernel(*arguments)
    counts, none = [sys.getrefcount(x) for x in arguments], sys.getrefcount(None)
    tracemalloc.start()
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(20_000):
        kernel(*arguments)
        kernel.device.machine.fast(arguments[0])  # refused: gives None
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 20_000
    assert [sys.getrefcount(x) for x in arguments] == counts
    if sys.version_info < (3, 12):
        assert abs(sys.getrefcount(None) - none) < 5_000


def test_many_threads_at_once(kernel):
    rng = np.random.default_rng(1)
    states = rng.standard_normal((8, 3, 3))
    expected = [kernel(*s) for s in states]
    wrong = list[int]()

    def work(i: int) -> None:
        for _ in range(2000):
            if not np.array_equal(kernel(*states[i]), expected[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_hinge_that_never_moves_anything_is_refused_at_once():
    thin = lw.Builder("thin").body("a", "world", lw.hinges.Pin()).build()  # no inertia at all
    with pytest.raises(SingularHingeError, match="D₀ is zero at body 'a' in every state"):
        lw.compile(mass.inv @ tau, thin)


def test_a_hinge_that_moves_nothing_in_some_state_is_an_error():
    """Two pins with parallel axes and no mass between them: singular only when stretched out."""
    b = lw.Builder("fold")
    b.body("a", "world", lw.hinges.Pin((0, 1, 0)))
    b.body("b", "a", lw.hinges.Pin((0, 1, 0)), inboard=(0, 0, 1))
    b.node("bob", "b", (0, 0, 1), inertia=lw.SpatialInertia.point(1.0), kind="payload")
    kernel = lw.compile(mass.inv @ tau, b.build())
    straight, bent, force = np.zeros(2), np.array([0.0, 1.0]), np.ones(2)
    assert np.isfinite(kernel(bent, force)).all()
    for _ in range(3):
        with pytest.raises(SingularHingeError, match="hinge of body 'a' is singular"):
            kernel(straight, force)
    with pytest.warns(TroubleWarning, match="1 of 3 states .* row 1: the hinge of body 'a'"):
        result = kernel(np.stack([bent, straight, bent]), force)
    assert np.isnan(result[1]).all()
    np.testing.assert_array_equal(result[[0, 2]], np.stack([kernel(bent, force)] * 2))


def test_the_bare_call_may_outlive_its_kernel(state):
    made = lw.compile(mass.inv @ (tau - bias), lw.models.pendulum(3))
    expected, quick = made(*state), made.quick
    del made
    gc.collect()
    others = [lw.compile(mass, lw.models.pendulum(n)) for n in (1, 2)]  # in its place
    np.testing.assert_array_equal(quick(*state), expected)
    assert len(others) == 2


@pytest.mark.parametrize("n", [3, 8, 30])
def test_several_results_have_memory_of_their_own_where_they_are_small(n):
    mech = lw.models.pendulum(n)
    kernel = lw.compile({"M": mass, "C": bias, "tau": mass @ tau}, mech)
    q, v, x = np.random.default_rng(n).standard_normal((3, n))
    first = kernel.device.machine.fast(q, v, x)
    assert type(first) is tuple
    each = (mass, bias, mass @ tau)
    for result, expr in zip(first, each, strict=True):
        one = lw.compile(expr, mech)
        given = {"q": q, "v": v, "tau": x}
        expected = one(*(given[name] for name in one.arguments))
        np.testing.assert_allclose(result, expected, atol=1e-12 * np.abs(expected).max())
        assert result.flags.writeable and result.flags.c_contiguous
        assert result.flags.aligned and result.flags.owndata == (result.shape == (8, 8))
        assert (type(result.base) is np.ndarray) == (n == 30)
    kept = [part.copy() for part in first]
    kernel.device.machine.fast(2.0 * q, v, x)
    assert all(np.array_equal(part, copy) for part, copy in zip(first, kept, strict=True))
    assert kernel.device.machine.fast(np.nan * q, v, x) is None
    held = list[int]()
    tracemalloc.start()
    for _ in range(3):  # Python keeps up to 2000 tuples for later
        for _ in range(3000):
            kernel.device.machine.fast(q, v, x)
            kernel.device.machine.fast(np.nan * q, v, x)
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert held[2] - held[1] < 10_000


def test_functions_that_begin_bare_take_their_arguments_by_name(state):
    mech = lw.models.pendulum(3)
    q, v, x = state
    call = lw.inverse_dynamics_derivatives
    for _ in range(2):
        for d in (call(mech, q, v, x), call(mech, q, v, vdot=x), call(mech=mech, q=q, v=v, vdot=x)):
            np.testing.assert_array_equal(d.q, call(mech, q, v, x).q)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'vdot'"):
        call(mech, q, v)
    with pytest.raises(TypeError, match="missing 4 required positional arguments"):
        call()
    with pytest.raises(TypeError, match="multiple values for argument 'mech'"):
        call(mech, q, v, x, mech=mech)
