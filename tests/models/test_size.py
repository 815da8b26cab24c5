"""Sizes that no machine holds are refused before anything is built."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError

SIZED = {
    "chain": lw.models.chain,
    "pendulum": lw.models.pendulum,
    "random_tree": lambda n: lw.models.random_tree(n, 0),
    "multi_arm": lw.models.multi_arm,
}


@pytest.mark.parametrize("name", SIZED)
@pytest.mark.parametrize("n", [10**30, 10**5000, 2**63, 10_000_001], ids="abcd")
def test_too_many_are_refused(name: str, n: int):
    with pytest.raises(ModelError, match=f"of {name} is .* at most"):
        SIZED[name](n)


@pytest.mark.parametrize("name", SIZED)
@pytest.mark.parametrize("n", [2.5, "3", None, True, np.nan, [1]])
def test_what_is_no_count_is_refused(name: str, n: object):
    with pytest.raises(ModelError, match="it must be a whole number"):
        SIZED[name](n)


@pytest.mark.parametrize("name", SIZED)
def test_zero_is_refused_and_numpy_counts_are_taken(name: str):
    with pytest.raises(ModelError, match="at least 1"):
        SIZED[name](0)
    assert SIZED[name](np.int64(2)).n_bodies >= 2
