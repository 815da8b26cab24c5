"""Document 001, Part II: every number it prints has an entry, and every entry is what it claims."""

import numpy as np
import pytest

from linkwise.ledger import Entry, cases, entries, run
from linkwise.ledger.case import apart
from linkwise.ledger.document_001.part_2 import PRINTED
from linkwise.ledger.document_001.part_2.general_algorithm import (
    by_elimination,
    general,
    outside_image,
    right_side,
)
from linkwise.ledger.grasp import Grasp, loose, planar, rigid

ENTRIES = entries("001-II")


def test_every_number_has_an_entry() -> None:
    numbers = [entry.number for entry in ENTRIES]
    assert not set(PRINTED) - set(numbers)
    assert len(set(numbers)) == len(numbers), "two entries of one number"
    assert [n for n in numbers if n in PRINTED] == list(PRINTED), "not in the document's order"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.number)
def test_entry(entry: Entry) -> None:
    (verdict,) = run([entry])
    assert verdict.confirmed, verdict.evidence


def test_what_is_held_is_held() -> None:
    # The state of every grasp: the contacts allow the velocities, to rounding.
    for case in cases():
        for grasp in (rigid(case), *loose(case)):
            relative = grasp.H_0.T @ np.concatenate(grasp.W)
            assert apart(grasp.tip_velocity + relative, grasp.A @ grasp.V_C) < 1e-12
            assert np.abs(grasp.V_C).max() > 1e-2, "nothing moves"


def test_accelerations_need_every_bias() -> None:
    # An algorithm that left one out would still look like forward dynamics.
    grasp = rigid(cases()[-1])
    found, _, _ = general(grasp, by_elimination)
    assert apart(found, grasp.solution.theta_ddot) < 1e-9
    for bias in ("coriolis", "bent", "object_bias", "contact_bias"):
        less = Grasp(grasp.arms, grasp.contacts, grasp.seed)
        setattr(less, bias, 0.0 * getattr(grasp, bias))
        found, _, _ = general(less, by_elimination)
        assert apart(found, grasp.solution.theta_ddot) > 1e-6, bias


def test_image_of_a_singular_compliance_is_left_by_velocities_that_break_the_loops() -> None:
    for case in cases():
        grasp = planar(case)
        assert outside_image(grasp, right_side(grasp)) < 1e-12
        broken = Grasp(grasp.arms, grasp.contacts, grasp.seed)
        # Arms in one plane cannot turn an object about an axis in it: its ω is made up.
        broken.V_C = grasp.V_C + np.array([0.5, 0.2, 0.0, 0.0, 0.0, 0.0])
        del broken.contact_bias, broken.object_bias
        assert outside_image(broken, right_side(broken)) > 1e-3
