"""Quantities of tasks: what is derived from the textbook form costs no more than by hand."""

from __future__ import annotations

import pytest

import linkwise as lw
from linkwise.dynamics.closure import Setting
from linkwise.sweeps.cost import cost
from linkwise.sweeps.lower import lower
from linkwise.tasks.quantity import TASK, Law, torque
from tests.loops import by_hand

SETTINGS = [Setting(), Setting(couplings=True), Setting(loops=False, couplings=True)]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("name", by_hand.TASK_BY_HAND)
def test_a_quantity_of_tasks_costs_no_more_than_by_hand(name: str, setting: Setting) -> None:
    derived = lw.derive(TASK[name](setting)).result
    assert cost(lower(derived)) <= cost(lower(by_hand.TASK_BY_HAND[name](setting)))


@pytest.mark.few(2)
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize(
    "law",
    [Law(), Law(internal=False), Law(applied=True, servo=True), Law(True, True, True, True)],
    ids=str,
)
def test_a_torque_costs_no_more_than_by_hand(law: Law, setting: Setting) -> None:
    derived = lw.derive(torque(setting, law)).result
    assert cost(lower(derived)) <= cost(lower(by_hand.torque(setting, law)))
