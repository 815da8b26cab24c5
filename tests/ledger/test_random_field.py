"""Random fields: where branched trees differ from chains."""

from linkwise import models
from linkwise.algebra.rules import BY_NAME
from linkwise.algebra.symbols import mass
from linkwise_ledger import Case


def test_closed_form_of_the_inverse_needs_the_term_across_branches() -> None:
    # Arms and legs are long, so that siblings have something below them to speak of.
    case = Case("humanoid", models.humanoid(), 5)
    closed = BY_NAME["closed form of the inverse"].right
    on_trees = BY_NAME["closed form of the inverse on trees"].right
    assert case.residual(mass.inv, closed) > 1e-6
    assert case.residual(mass.inv, on_trees) < 1e-9
