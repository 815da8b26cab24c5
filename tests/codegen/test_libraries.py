"""Arrays of other libraries: taken without a copy, results given back in kind."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import bias, mass, tau
from linkwise.codegen import arrays
from linkwise.codegen.cuda import device as card_device
from linkwise.errors import ShapeError
from tests.codegen import cupy_on_host
from tests.codegen.cupy_on_host import CardArray, on_card
from tests.codegen.test_cuda_kernel import COMPILER

FORWARD = mass.inv @ (tau - bias)


class Foreign:
    """An array of a library that speaks DLPack, and no more than that."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __array_namespace__(self):
        return Library

    ndim = property(lambda self: self.array.ndim)

    def __len__(self):
        return len(self.array)

    def __getitem__(self, key):
        return Foreign(self.array[key])

    def reshape(self, *shape):
        return Foreign(self.array.reshape(*shape))


class Library:
    """Its functions."""

    @staticmethod
    def from_dlpack(array) -> Foreign:
        return Foreign(np.from_dlpack(array))


@pytest.fixture
def arm():
    return lw.models.seven_dof_arm()


def states(mech, count):
    rng = np.random.default_rng(count)
    q = np.array([mech.random(rng) for _ in range(count)])
    return [q, *rng.standard_normal((2, count, mech.nv))]


@pytest.mark.parametrize("target", ["cpu", "numpy"])
def test_results_are_of_the_library_of_the_arrays(arm, target):
    kernel, given = lw.compile(FORWARD, arm, target=target), states(arm, 5)
    right = kernel(*given)
    assert np.abs(right).max() > 1.0
    result = kernel(*map(Foreign, given))
    assert isinstance(result, Foreign)
    np.testing.assert_array_equal(result.array, right)
    one = kernel(Foreign(given[0][2]), given[1][2], given[2][2])  # one of them is enough
    assert isinstance(one, Foreign) and one.array.shape == (7,)
    np.testing.assert_allclose(one.array, right[2], rtol=1e-11)


def test_nothing_is_copied_on_the_way(arm):
    kernel, given = lw.compile(FORWARD, arm), states(arm, 3)
    view = kernel.device.taken("q", Foreign(given[0]))
    assert np.shares_memory(view, given[0])
    out, codes = np.zeros((3, 7)), np.full(3, -1, np.int32)
    place = Foreign(out)
    assert kernel(*map(Foreign, given), out=place, status=Foreign(codes)) is place
    np.testing.assert_array_equal(out, kernel(*given))
    assert not codes.any()


def test_results_by_name(arm):
    kernel, given = lw.compile({"mass": mass, "bias": bias}, arm), states(arm, 4)[:2]
    result, right = kernel(*map(Foreign, given)), kernel(*given)
    assert set(result) == {"mass", "bias"}
    for name in result:
        np.testing.assert_array_equal(result[name].array, right[name])


def test_functions_and_rollouts_too(arm):
    q, v, force = states(arm, 3)
    np.testing.assert_array_equal(
        lw.forward_dynamics(arm, *map(Foreign, (q, v, force))).array,
        lw.forward_dynamics(arm, q, v, force),
    )


@pytest.fixture
def card(monkeypatch, tmp_path):
    """CuPy with the processor for a card."""
    if COMPILER is None:
        pytest.skip("no C++ compiler here")
    monkeypatch.setitem(sys.modules, "cupy", cupy_on_host.fake())
    monkeypatch.setattr(card_device, "_load", cupy_on_host.loader(tmp_path, COMPILER))


def test_arrays_on_a_card_stay_there(card, arm):
    """A kernel of the processor runs where its arrays are."""
    kernel, given = lw.compile(FORWARD, arm), states(arm, 40)
    result = kernel(*map(on_card, given))
    assert isinstance(result, CardArray)
    np.testing.assert_allclose(np.asarray(result), kernel(*given), rtol=1e-9)
    with pytest.raises(ShapeError, match="v is in the memory of the computer"):
        kernel(on_card(given[0]), *given[1:])


def test_the_interpreter_takes_no_arrays_of_a_card(card, arm):
    kernel, given = lw.compile(FORWARD, arm, target="numpy"), states(arm, 2)
    with pytest.raises(ShapeError, match=r"q is on a GPU .*target='cuda'"):
        kernel(*map(on_card, given))


def test_the_library_is_that_of_the_class():
    assert arrays.library(Foreign(np.ones(2))) == "tests" and arrays.foreign([1.0, [2.0]]) is None
