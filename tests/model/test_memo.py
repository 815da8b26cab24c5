"""What is computed once for a mechanism."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref

import pytest

import linkwise as lw
from linkwise.errors import ModelError
from linkwise.model.memo import once_per_mechanism


class Value:
    """Something to hold on to."""


def counting():
    calls = []

    @once_per_mechanism
    def made(mech: lw.Mechanism, name: str, size: int) -> Value | None:
        calls.append((mech.name, name, size))
        return None if name == "nothing" else Value()

    return calls, made


def test_a_value_is_computed_once_for_each_mechanism_and_arguments():
    calls, made = counting()
    a, b = lw.models.pendulum(1), lw.models.pendulum(1)
    assert made(a, "x", 1) is made(a, "x", 1)
    assert made(a, "x", 2) is not made(a, "x", 1)
    assert made(b, "x", 1) is not made(a, "x", 1)
    assert made(a, "nothing", 1) is None and made(a, "nothing", 1) is None
    assert len(calls) == 4


def test_copies_start_anew_and_values_go_with_their_mechanism():
    calls, made = counting()
    mech = lw.models.pendulum(1)
    value = weakref.ref(made(mech, "x", 1))
    for other in (copy.copy(mech), copy.deepcopy(mech), pickle.loads(pickle.dumps(mech))):
        assert made(other, "x", 1) is not value()
    assert len(calls) == 4 and made(mech, "x", 1) is value()
    del mech
    gc.collect()
    assert value() is None


def test_two_functions_of_one_name_are_two():
    mech = lw.models.pendulum(1)
    assert counting()[1](mech, "x", 1) is not counting()[1](mech, "x", 1)


def test_an_error_is_not_kept():
    calls = []

    @once_per_mechanism
    def made(mech: lw.Mechanism) -> int:
        calls.append(1)
        if len(calls) == 1:
            raise ModelError("not yet")
        return 5

    mech = lw.models.pendulum(1)
    with pytest.raises(ModelError, match="not yet"):
        made(mech)
    assert made(mech) == made(mech) == 5 and len(calls) == 2


def test_what_is_no_mechanism_or_cannot_be_hashed_reaches_the_function():
    calls, made = counting()
    with pytest.raises(AttributeError, match="name"):
        made(3, "x", 1)  # type: ignore[arg-type]
    assert made(lw.models.pendulum(1), ["x"], 1) is not None  # type: ignore[arg-type]
    assert calls[0][1] == ["x"]


def test_one_thread_computes_and_others_wait():
    mech, inside, calls = lw.models.pendulum(1), threading.Event(), []

    @once_per_mechanism
    def made(mech: lw.Mechanism) -> Value:
        calls.append(1)
        inside.wait(10.0)
        return Value()

    result = list[Value]()
    threads = [threading.Thread(target=lambda: result.append(made(mech))) for _ in range(4)]
    for thread in threads:
        thread.start()
    inside.set()
    for thread in threads:
        thread.join()
    assert len(calls) == 1 and len(result) == 4 and len(set(map(id, result))) == 1
