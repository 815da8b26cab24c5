"""What is wrong is found wrong: differences, verdicts, and entries that lack a check."""

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra.dense import Dense
from linkwise.algebra.derivation import residual
from linkwise.algebra.symbols import M, phi, tau, v
from linkwise_ledger import Entry, cases, run
from linkwise_ledger.case import apart
from linkwise_ledger.entry import Check, On
from linkwise_ledger.section import Section, equations, same

HOLDS = Entry("(1)", "one", "M = M", "the same", "holds", check=same(M, M))


def verdict(entry: Entry):
    (result,) = run([entry])
    return result


def test_difference_of_arrays():
    assert apart([1.0, 2.0], [1.0, 1.0]) == 0.5
    assert apart(np.zeros(3), np.zeros(3)) == apart(np.zeros(0), np.zeros(0)) == 0.0
    assert apart(np.zeros(3), np.zeros((3, 1))) == np.inf
    assert apart(np.zeros(2), [0.0, 1e-300]) == 1.0
    for bad in (np.nan, np.inf):
        assert not apart([1.0, bad], [1.0, 2.0]) < 1e-9
        assert not apart([1.0, 2.0], [bad, 2.0]) < 1e-9
        assert not apart([bad], [bad]) < 1e-9


def test_difference_of_expressions():
    case = cases()[0]
    assert case.residual(M, M) == 0.0
    assert case.residual(phi @ M, M) > 1e-3
    dense = Dense(case.mech, case.q, case.v, values={"tau": np.full(len(case.v), np.nan)})
    assert not residual(dense, tau, 0.0 * tau) < 1e-9
    assert not residual(dense, v, tau) < 1e-9


@pytest.mark.parametrize("error", [1e-8, np.nan, np.inf])
def test_statements_that_fail_on_one_mechanism_are_not_confirmed(error):
    last = cases()[-1]
    wrong = replace(HOLDS, check=lambda case: error if case is last else 0.0)
    assert verdict(HOLDS).confirmed
    assert not verdict(wrong).confirmed
    assert verdict(wrong).evidence.endswith(f"(on {last.name})")


def test_chains_are_not_asked_of_trees():
    entry = replace(HOLDS, check=lambda case: 0.0 if case.is_chain else 0.5, where="chains")
    assert verdict(entry).confirmed
    assert verdict(entry).evidence == "0e+00; on branched trees 5.0e-01"


def misprint(check: Check, check_printed: Check) -> Entry:
    return Entry("(1)", "one", "a", "b", "misprint", "trees", check, check_printed)


def test_misprints_need_both():
    right, wrong = (lambda case: 1e-15), (lambda case: 0.25)
    result = verdict(misprint(right, wrong))
    assert result.confirmed and result.evidence == "1e-15; as printed 2.5e-01"
    assert not verdict(misprint(wrong, wrong)).confirmed
    assert not verdict(misprint(right, right)).confirmed
    never = misprint(right, lambda case: float("inf"))
    assert verdict(never).evidence == "1e-15; as printed it does not fit"


def test_entries_need_their_checks():
    assert verdict(Entry("(1)", "one", "a", "a", "definition")).evidence == "by definition"
    with pytest.raises(lw.LinkwiseError, match="needs a check"):
        replace(HOLDS, check=None)
    with pytest.raises(lw.LinkwiseError, match="misprints need a check of the printed form"):
        replace(HOLDS, check_printed=same(M, M))
    with pytest.raises(lw.LinkwiseError, match="misprints need a check of the printed form"):
        replace(HOLDS, status="misprint")


def test_what_is_said_reads_by_itself():
    assert HOLDS.said == "M = M"
    assert replace(HOLDS, statement="the same, twice").said == "M = M, twice"
    assert replace(HOLDS, statement="at the same time").said == "at the same time"


# ------------------------------------------------------------------------------------- sections


def test_a_statement_is_read_from_the_text_above_its_check():
    section = Section()

    @section("""(1)  a title that
                 goes on
        printed  M = M, twice
                 or more
        instead  M = 2 M
        note     None.
    """)
    def _(case, printed=False):
        return 0.5 if printed else 0.0

    section.chains.unchecked("""sec. 2, name  another
        means    N
    """)
    one, two = section
    assert (one.number, one.title, one.note) == ("(1)", "a title that goes on", "None.")
    assert (one.printed, one.statement) == ("M = M, twice or more", "M = 2 M")
    assert (one.status, one.where) == ("misprint", "trees")
    assert (two.number, two.title, two.printed) == ("sec. 2, name", "another", "N")
    assert (two.status, two.where, two.check) == ("definition", "chains", None)
    assert verdict(one).evidence == "0e+00; as printed 5.0e-01"


@pytest.mark.parametrize("text", ["(1) title\n  holds  a", "(1)  title", "(1)  t\n  printed  a"])
def test_a_statement_needs_a_title_and_something_to_check(text):
    with pytest.raises(lw.LinkwiseError, match="needs a title, and one of holds, means, instead"):
        Section()(text)


def test_algebra_is_checked_as_it_is_written():
    section = Section({"X": phi @ M})
    section.algebra("""(1)  one
        holds    X φ* = φ M φ*; φ⁻¹ = I - E_φ = φ⁻¹
    """)
    section.algebra("""(2)  two
        printed  φ M = M
        instead  φ M = X
    """)
    section.algebra("""(3)  three
        holds    φ M = M
    """)
    assert [str(left) for left, _ in equations("X = M, φ = ψ = I", {"X": M})] == ["M", "φ", "φ"]
    with pytest.raises(lw.LinkwiseError, match="is not an equation"):
        equations("φ M = M, and more")
    assert equations("E[M φ*] = 0, E[(I - M)(I - M)*] = 0") == equations(
        "M M φ* = 0, (I - M) M (I - M)* = 0"
    )
    assert [verdict(entry).confirmed for entry in section] == [True, True, False]
    assert all(verdict(entry).printed_error > 1e-3 for entry in list(section)[1:2])


def test_a_check_returns_or_yields_sides_or_errors():
    def of(outcome):
        return On(lambda case: case, lambda case: outcome())(cases()[0])

    assert of(lambda: 0.25) == of(lambda: ([1.0, 2.0], [1.0, 1.5])) == 0.25
    assert of(lambda: iter([0.1, (np.ones(2), np.ones(2)), 0.3])) == 0.3
    for order in ([np.nan, 0.0], [0.0, np.nan]):
        assert of(lambda order=order: iter(order)) == np.inf, "NaN is never hidden"
    with pytest.raises(ValueError):
        of(lambda: iter([]))  # a check that compares nothing
    each = On(lambda case: (1.0, 3.0, 2.0), lambda x: x, each=True)
    assert each(cases()[0]) == 3.0
