"""Problems that go on fill the lanes anew: the numbers are those of lanes that wait."""

import warnings
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.control import Bound, side_by_side
from linkwise.errors import TroubleWarning
from tests.control.test_one_kernel import chain, costs


def test_problems_that_go_on_fill_the_lanes_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    mech, rng = chain(8.0), np.random.default_rng(2)
    q = 0.4 * rng.standard_normal((45, 2))
    bounds = [Bound.on_position(0.05, 0.2, hinges=["b0"], when="final"),
              Bound.on_velocity(-1.0, 1.0)]  # fmt: skip
    given: dict[str, Any] = {"costs": costs(), "step": 0.03, "horizon": 12, "bounds": bounds,
             "iterations": 60}  # fmt: skip
    calls, called = list[int](), side_by_side.OnCores._called

    def counted(self: Any, rows: Any, turns: Any) -> Any:
        calls.append(len(rows))
        return called(self, rows, turns)

    monkeypatch.setattr(side_by_side.OnCores, "_called", counted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TroubleWarning)
        made = lw.optimize(mech, q, **given)
        assert calls[0] == 45 > calls[-1] and len(calls) > 2
        monkeypatch.setattr(side_by_side, "TOGETHER", 0.0)
        calls.clear()
        right = lw.optimize(mech, q, **given)
    assert len(calls) < 4  # a call makes at most 50 iterations
    assert 0 < np.count_nonzero(made.status) < 45
    for name in ("q", "v", "tau", "cost", "violation", "iterations", "status"):
        assert np.array_equal(getattr(made, name), getattr(right, name)), name
    fine = made.status == 0
    assert np.array_equal(made.gain[fine], right.gain[fine])
    for name in ("cost", "gap", "violation"):
        each, other = (getattr(x.history, name) for x in (made, right))
        assert np.array_equal(each, other, equal_nan=True)
