"""The object-level framework: each entry notices wrong quantities, and what its theorems say."""

from typing import Any

import numpy as np
import pytest

from linkwise_ledger import Entry, cases, entries
from linkwise_ledger.entry import On
from linkwise_ledger.object_level.held import held_redundantly, poorly_held
from linkwise_ledger.object_level.macro_mini import serial
from linkwise_ledger.object_level.multi_arm import effector_freedom, object_freedom
from linkwise_ledger.object_level.reduced import sigmas, slides
from linkwise_ledger.object_level.redundancy import effect, some_inverse
from linkwise_ledger.object_level.subject import arm

ENTRIES = entries("object_level")
CHAIN_OF_PINS = cases()[1]

COUNTED = {
    # Only numbers of freedoms: nothing to perturb.
    *("(35)", "sec. 3, redundancy", "sec. 3, task redundancy", "sec. 3.1, incomplete"),
    *("(70)", "sec. 7.1, q", "sec. 2.2, selection"),
}


def _with_one_wrong(subject: Any, path: str) -> Any:
    """The subject anew, with one of its quantities a tenth off in every entry."""
    rng = np.random.default_rng(7)
    fresh = tuple(m.again() for m in subject) if isinstance(subject, tuple) else subject.again()
    owner, _, name = path.rpartition(".")
    target = getattr(fresh, owner) if owner else fresh
    for one in target if isinstance(target, list | tuple) else [target]:
        right = getattr(one, name)
        wrong = right * (1.0 + 0.1 * rng.uniform(0.5, 1.0, np.shape(right)))
        if name == "A" or name == "I_C":
            wrong = 0.5 * (wrong + wrong.T)
        setattr(one, name, wrong)
    return fresh


def subject_of(entry: Entry) -> Any:
    """What a check is about, if it is made of quantities that can be wrong."""
    assert isinstance(entry.check, On)
    subject = entry.check.build(CHAIN_OF_PINS)
    return subject if hasattr(subject[0] if entry.check.each else subject, "QUANTITIES") else None


@pytest.mark.few(40)
@pytest.mark.parametrize(
    "entry",
    [e for e in ENTRIES if subject_of(e) and e.number not in COUNTED],
    ids=lambda entry: entry.number,
)
def test_entry_notices_a_wrong_quantity(entry: Entry) -> None:
    """Each statement fails if something that it is made of is wrong."""
    assert isinstance(entry.check, On)
    subject = subject_of(entry)
    one = subject[0] if isinstance(subject, tuple) else subject
    assert entry.check.on(subject) < 1e-9
    for path in one.QUANTITIES:
        with np.errstate(all="ignore"):
            try:
                error = entry.check.on(_with_one_wrong(subject, path))
            except np.linalg.LinAlgError:  # no longer definite
                continue
        if not error < 1e-6:
            return
    pytest.fail(f"nothing of {one.QUANTITIES} matters to {entry.number}")


def test_other_inverses_disturb_the_effector() -> None:
    """Theorem 1: torques of the null space of another inverse accelerate the effector."""
    for case in cases():
        m = arm(case)
        scale = np.abs(effect(m, some_inverse(m))).max()
        assert scale > 1e-2
        assert np.abs(effect(m, m.J_bar.T)).max() < 1e-9 * scale


def test_inertia_is_reduced_and_where_it_is_not() -> None:
    """Theorem 2: five pins reduce some of the six directions, and leave one at least."""
    full, mini = sigmas(serial(CHAIN_OF_PINS))
    assert (full[:4] < 0.99 * mini[:4]).any()
    assert (full / mini).max() == pytest.approx(1.0, abs=1e-9)


def test_slides_at_right_angles_alone_reduce_nothing() -> None:
    for case in cases():
        full, mini = slides(case, 0.0)
        np.testing.assert_allclose(full, mini, atol=1e-9)
        # Oblique slides: the macro helps, as Theorem 2 says, and Λ̄_C is not zero.
        full, mini = slides(case, 0.3)
        added = np.linalg.eigvalsh(full - mini)
        assert added[0] > -1e-9 and added[-1] > 1e-4


def test_connection_takes_freedom() -> None:
    """(70) with the sign of inequality: five pins and a plane leave two of three directions."""
    h = poorly_held(CHAIN_OF_PINS)
    assert [effector_freedom(m) for m in h.arms] == [5, 3, 6]
    assert object_freedom(h) == 2
    assert object_freedom(held_redundantly(CHAIN_OF_PINS)) == 6
