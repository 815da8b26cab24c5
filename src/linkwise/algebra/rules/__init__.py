"""The identities, a file a family of them. Each is data; its property test is generated."""

from linkwise.algebra.rule import Rule
from linkwise.algebra.rules.covariance import COVARIANCE
from linkwise.algebra.rules.decomposition import DECOMPOSITION
from linkwise.algebra.rules.factorisation import FACTORISATION
from linkwise.algebra.rules.jpl88 import JPL88
from linkwise.algebra.rules.resolvent import RESOLVENT
from linkwise.algebra.rules.riccati import RICCATI

ALL: tuple[Rule, ...] = (
    *RESOLVENT,
    *RICCATI,
    *FACTORISATION,
    *DECOMPOSITION,
    *COVARIANCE,
    *JPL88,
)
"""Every identity of the table."""

BY_NAME: dict[str, Rule] = {rule.name: rule for rule in ALL}
assert len(BY_NAME) == len(ALL), "two rules of one name"

__all__ = ["ALL", "BY_NAME", "Rule"]
