"""Arrays of any layout, results in place, several threads, single precision, many calls."""

from __future__ import annotations

import copy
import pickle
import threading
import tracemalloc

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import J, bias, mass, tau, vdot
from linkwise.algebra.dense import Dense
from linkwise.errors import ShapeError

FORWARD = mass.inv @ (tau - bias)


def states(mech, count, seed=0):
    rng = np.random.default_rng(seed)
    q = np.array([mech.random(rng) for _ in range(count)])
    return q, rng.standard_normal((count, mech.nv)), rng.standard_normal((count, mech.nv))


def test_rows_of_any_layout_give_the_same():
    mech = lw.models.seven_dof_arm()
    kernel = lw.compile(FORWARD, mech)
    q, v, force = states(mech, 21)
    expected = kernel(q, v, force)
    together = np.concatenate([q, v, force], axis=1)
    layouts = {
        "columns of one array": np.split(together, 3, axis=1),
        "every third row": [np.repeat(x, 3, axis=0)[::3] for x in (q, v, force)],
        "every second entry": [np.repeat(x, 2, axis=1)[:, ::2] for x in (q, v, force)],
        "columns first": [np.asfortranarray(x) for x in (q, v, force)],
        "from the back": [x[::-1].copy()[::-1] for x in (q, v, force)],
        "lists": [x.tolist() for x in (q, v, force)],
        "other byte order": [x.astype(">f8") for x in (q, v, force)],
    }
    for name, arrays in layouts.items():
        np.testing.assert_array_equal(kernel(*arrays), expected, err_msg=name)
    one_row = kernel(q[:1], v, force)  # a batch of one serves all
    np.testing.assert_array_equal(one_row, kernel(np.repeat(q[:1], 21, axis=0), v, force))
    assert kernel(q[:0], v[:0], force[:0]).shape == (0, 7)
    assert kernel(q[:1], v[:1], force[:1]).shape == (1, 7)


@pytest.mark.parametrize("count", [3, 64])
def test_results_go_where_they_are_wanted(count):
    mech = lw.models.seven_dof_arm()
    for expr in (FORWARD, mass):
        kernel = lw.compile(expr, mech)
        arrays = states(mech, count)[: len(kernel.arguments)]
        expected = kernel(*arrays)
        places = {
            "fresh": np.full(expected.shape, 7.0),
            "columns first": np.asfortranarray(np.full(expected.shape, 7.0)),
            "every second row": np.full((2 * count, *expected.shape[1:]), 7.0)[::2],
            "part of a wider one": np.full((*expected.shape[:-1], 12), 7.0)[..., :7],
        }
        for name, out in places.items():
            assert kernel(*arrays, out=out) is out
            np.testing.assert_array_equal(out, expected, err_msg=name)
        single = np.full(expected.shape[1:], 7.0)
        assert kernel(*(x[0] for x in arrays), out=single) is single
        np.testing.assert_allclose(single, expected[0], rtol=1e-12, atol=1e-12)


def test_a_result_may_overwrite_an_input():
    mech = lw.models.quadruped()
    kernel = lw.compile(FORWARD, mech)
    q, v, force = states(mech, 19)
    expected = kernel(q, v, force)
    shifted = np.zeros((20, mech.nv))
    shifted[1:] = force
    assert kernel(q, v, force, out=force) is force
    np.testing.assert_array_equal(force, expected)
    kernel(q, v, shifted[1:], out=shifted[:-1])  # overlapping by all rows but one
    np.testing.assert_array_equal(shifted[:-1], expected)


@pytest.mark.parametrize("rolled", [False, True])
def test_threads_share_a_batch_and_a_kernel(rolled):
    """Loops over bodies have scratch memory, one for each thread."""
    mech = lw.models.chain(40) if rolled else lw.models.seven_dof_arm()
    kernel = lw.compile(FORWARD, mech, rolled=rolled)
    assert bool(kernel.device.machine.work) == rolled
    q, v, force = np.random.default_rng(0).standard_normal((3, 6001, mech.nv))
    expected = kernel(q, v, force, threads=1)
    for threads in (2, 3, 8):
        np.testing.assert_array_equal(kernel(q, v, force, threads=threads), expected)
    wrong = list[int]()

    def work(i: int) -> None:
        for _ in range(50):
            same = np.array_equal(kernel(q[i], v[i], force[i]), kernel(q[i], v[i], force[i]))
            part = slice(100 * i, 100 * i + 91)
            batch = kernel(q[part], v[part], force[part])
            close = np.allclose(batch, expected[part], rtol=1e-11, atol=1e-11)
            if not (same and close):
                wrong.append(i)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(6))
def test_single_precision_is_as_good_as_its_numbers(seed):
    """Against double precision on the same inputs: rounding, times the condition where it is."""
    mech = lw.models.random_tree(7, seed)
    nodes = [mech.bodies[-1].name]
    arrays = dict(zip(("q", "v", "tau"), states(mech, 37, seed), strict=True))
    arrays["vdot"] = arrays["tau"]
    condition = np.array([np.linalg.cond(Dense(mech, q)(mass)) for q in arrays["q"]])
    usual = condition < np.sort(condition)[20]  # the better half: elsewhere floats have no digits
    for expr in (FORWARD, mass @ vdot + bias, mass, J):
        low = lw.compile(expr, mech, nodes=nodes, dtype=np.float32)
        high = lw.compile(expr, mech, nodes=nodes)
        given = [arrays[name].astype(np.float32) for name in low.arguments]
        codes = np.zeros(37, np.int32)
        result = low(*given, status=codes)
        expected = high(*(x.astype(np.float64) for x in given))
        assert result.dtype == np.float32
        assert not codes[usual].any()
        scale = np.abs(expected).reshape(37, -1).max(axis=1)
        error = np.abs(result - expected).reshape(37, -1).max(axis=1) / scale
        bound = 2e-6 * (condition if expr is FORWARD else 1.0) * np.ones(37)
        assert (error < bound)[usual].all(), (error / bound)[usual].max()
        i = int(np.flatnonzero(usual)[0])
        one = low(*(x[i] for x in given))
        assert one.dtype == np.float32
        assert np.abs(one - expected[i]).max() < bound[i] * scale[i]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 100.0, 3.9e3, 1e5, 1e7])
def test_angles_in_single_precision(scale):
    mech = lw.models.pendulum(1)
    low, high = (lw.compile(FORWARD, mech, dtype=t) for t in (np.float32, np.float64))
    q = (scale * np.random.default_rng(0).uniform(-1, 1, (64, 1))).astype(np.float32)
    zero = np.zeros((64, 1), np.float32)
    np.testing.assert_allclose(low(q, zero, zero), high(q, zero, zero), rtol=1e-5, atol=1e-5)


@pytest.mark.prove
def test_large_graphs_in_parts_equal_the_whole(monkeypatch):
    from linkwise.codegen.cpu import llvm

    mech = lw.models.random_tree(8, 5)
    nodes = [mech.bodies[-1].name, mech.bodies[3].name]
    q, v, force = states(mech, 21)
    for expr in (FORWARD, mass, (J @ mass.inv @ J.T + 0.5 * (J @ J.T)).inv):
        monkeypatch.setattr(llvm, "LONGEST", 10**9)
        kernel = lw.compile(expr, mech, nodes=nodes, cache=False)
        monkeypatch.setattr(llvm, "LONGEST", 0)
        monkeypatch.setattr(llvm, "PART", 97)
        parts = lw.compile(expr, mech, nodes=nodes, cache=False)
        assert kernel.device.machine.work == 0 < parts.device.machine.work
        arrays = (q, v, force)[: len(kernel.arguments)]
        codes = np.zeros(21, np.int32), np.zeros(21, np.int32)
        result, expected = parts(*arrays, status=codes[0]), kernel(*arrays, status=codes[1])
        np.testing.assert_array_equal(*codes)
        np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(
            parts(*(x[2] for x in arrays)), expected[2], rtol=1e-9, atol=1e-12
        )


@pytest.mark.prove
def test_no_memory_is_lost_over_many_calls():
    mech = lw.models.pendulum(2)
    kernel = lw.compile(FORWARD, mech)
    q = np.zeros(2)
    for _ in range(1000):
        kernel(q, q, q)
    tracemalloc.start()
    before = _resident()
    for _ in range(1_000_000):
        kernel(q, q, q)
    for _ in range(2_000):
        kernel(q[None], q, q)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20
    assert _resident() - before < 8 << 20


def test_one_state_of_a_long_chain_takes_no_room_for_a_batch():
    mech = lw.models.chain(600)
    kernel, zero = lw.compile(FORWARD, mech, rolled=True), np.zeros(600)
    code = np.zeros((), np.int32)
    expected = kernel(zero, zero, zero)
    tracemalloc.start()
    made = kernel(zero, zero, zero, status=code)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_array_equal(made, expected)
    assert np.abs(expected).max() > 1.0
    assert peak < 600 * 600  # bytes; a matrix has eight times as many


def _resident() -> int:
    """Memory of this process [bytes]."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096
    except OSError:
        return 0


def test_kernels_are_pickled_as_what_was_asked_for():
    arm = lw.models.seven_dof_arm()
    made = lw.compile(
        mass.inv @ (tau - bias), arm, parameters=["gravity"], dtype=np.float32, cache=False
    )
    again = pickle.loads(pickle.dumps(made))
    state = np.full((3, 7), 0.3, np.float32)
    gravity = np.array([0.0, 0.0, -1.6], np.float32)
    assert again.arguments == made.arguments
    np.testing.assert_array_equal(again(*state, gravity), made(*state, gravity))
    assert copy.copy(made) is copy.deepcopy(made) is made


@pytest.mark.parametrize("threads", [0, -1, 2.5, "2", float("nan")])
def test_threads_that_are_no_number_of_threads(threads):
    kernel = lw.compile(mass, lw.models.pendulum(1))
    with pytest.raises(ShapeError, match="threads is"):
        kernel(np.zeros((1000, 1)), threads=threads)


def test_without_threads_a_batch_runs_on_this_one(monkeypatch):
    class Closed:
        def submit(self, *_):
            raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    kernel = lw.compile(mass, lw.models.pendulum(2))
    q = np.random.default_rng(0).standard_normal((1000, 2))
    expected = kernel(q, threads=1)
    monkeypatch.setattr("linkwise.codegen.cpu.device.thread_pool", lambda *_: Closed())
    np.testing.assert_array_equal(kernel(q, threads=2), expected)


def test_masked_entries_are_refused():
    kernel = lw.compile(mass, lw.models.pendulum(2))
    with pytest.raises(ShapeError, match="masked"):
        kernel(np.ma.masked_array([0.1, 0.2], mask=[False, True]))
    full = np.ma.masked_array([0.1, 0.2], mask=False)
    np.testing.assert_array_equal(kernel(full), kernel(np.array([0.1, 0.2])))


def test_the_nominal_value_of_an_unknown_parameter():
    kernel = lw.compile(mass, lw.models.pendulum(1))
    with pytest.raises(lw.LinkwiseError, match="gravty"):
        kernel.nominal("gravty")
