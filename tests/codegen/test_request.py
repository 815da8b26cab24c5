"""Requests: what is asked for, checked, and the stages that follow from it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import bias, mass, tau, v
from linkwise.codegen import stages
from linkwise.codegen.formula import Formula
from linkwise.codegen.kernel import Kernel
from linkwise.codegen.request import Request
from linkwise.errors import ExpressionError

FORWARD = mass.inv @ (tau - bias)


def speed(at):
    """A formula: the velocity's length, and the bias at it."""
    return sum(at.v * at.v).sqrt(), at.value(bias)


def test_a_request_is_a_value():
    mech = lw.models.pendulum(2)
    first, again = (Request((FORWARD,), mech, itemsize=4) for _ in range(2))
    assert first == again and hash(first) == hash(again) and first is not again
    assert first != Request((FORWARD,), mech) != Request((FORWARD,), lw.models.pendulum(2))
    assert len({first, again, Request((FORWARD,), mech, derive=False)}) == 2
    assert str(first) == f"{FORWARD}  of pendulum_2, float32"


def test_every_stage_is_computed_once_and_stays_behind_in_a_pickle():
    request = Request((FORWARD, mass), lw.models.pendulum(3))
    for stage in (stages.derivations, stages.program, stages.traced):
        assert stage(request) is stage(request) and str(stage(request))
    other = pickle.loads(pickle.dumps(request))
    assert other.quantity == request.quantity and vars(other).keys() < vars(request).keys()
    assert stages.traced(other).inputs == stages.traced(request).inputs
    assert stages.traced(other) is not stages.traced(request)


def test_a_kernel_shows_its_stages_from_disk_too(tmp_path, monkeypatch):
    monkeypatch.setenv("LINKWISE_CACHE", str(tmp_path))
    for _ in range(2):
        kernel = lw.compile(FORWARD, lw.models.pendulum(2))
        assert kernel.request.quantity == (FORWARD,)
        assert kernel.derivation.start is FORWARD and kernel.derivation.steps
        assert str(kernel.program) in kernel.explain()
        assert kernel.traced.graph.count(kernel.traced.roots) == kernel.ops


def test_a_pickled_kernel_is_the_same():
    kernel = lw.compile(FORWARD, lw.models.pendulum(2), cache=False)
    again = pickle.loads(pickle.dumps(kernel))
    arrays = [np.array([0.3, 0.4]), np.array([1.0, 2.0]), np.ones(2)]
    assert isinstance(again, Kernel) and not again.request.cache
    np.testing.assert_array_equal(again(*arrays), kernel(*arrays))


def test_what_is_wrong_is_said_when_it_is_asked():
    mech = lw.models.pendulum(2)
    with pytest.raises(ExpressionError, match="no expression"):
        Request((), mech)
    with pytest.raises(ExpressionError, match="is not an expression"):
        Request((3.0,), mech)  # type: ignore[arg-type]
    with pytest.raises(ExpressionError, match="of several computes all"):
        Request((FORWARD, v), mech, rolled=True)


def test_a_formula_is_a_request_without_derivation():
    formula, mech = Formula(speed, names=("speed", "bias")), lw.models.pendulum(2)
    request = Request(formula, mech)
    assert request.names == ("speed", "bias") and "speed  of pendulum" in str(request)
    assert stages.traced(request).parts == ((), (2,))
    with pytest.raises(ExpressionError, match="speed is written in array code"):
        stages.derivations(request)


def test_a_formula_has_code_for_the_card():
    formula = Formula(speed, names=("speed", "bias"))
    assert "sqrt" in lw.compile(formula, lw.models.pendulum(2), target="cuda").source
