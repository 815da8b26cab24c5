"""Records of motions on a GPU take turns; here NumPy is the GPU, the kernel adds its step."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from linkwise.codegen import arrays
from linkwise.codegen.stepping.cuda_resident import CudaResident
from linkwise.codegen.stepping.device import Course
from linkwise.codegen.stepping.stepping import Place


class Adding:
    """x += h u, and y = -x is observed; arguments are those of a launch."""

    dtype = np.dtype(np.float64)
    layout = (Place("state", "x", 0, (2,)), Place("seen", "y", 2, (2,)))
    facts = SimpleNamespace(layout=layout, held=(("u", 2),), noise=False)

    def start(self, cp: Any, given: tuple[Any, ...], batch: int) -> None:
        before, u, after = given[0], given[6], given[-4]
        after[0, :2] = before[0, :2] + given[10] * u.T
        after[0, 2:] = -after[0, :2]


def test_what_a_call_returned_stays_for_one_more_call(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(arrays, "cupy", lambda: np)
    u = np.arange(6.0).reshape(3, 2) + 1.0
    motions = CudaResident(Adding(), {"u": u}, Course(0.5, 1, 1))  # type: ignore[arg-type]
    motions.advance()
    first = motions.state
    assert motions.turn == 1 and np.array_equal(first, 0.5 * u)
    motions.inputs["u"][:] = 2.0 * u
    motions.advance()
    assert motions.turn == 0 and np.array_equal(motions.state, 1.5 * u)
    assert np.array_equal(first, 0.5 * u)
    assert np.array_equal(motions.seen(), -1.5 * u)
    assert np.array_equal(motions.view("seen", "y"), -1.5 * u)
