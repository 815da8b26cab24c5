"""Sums of words, collected into products."""

from __future__ import annotations

import pytest

from linkwise.algebra import M, P, phi
from linkwise.algebra.expr import Product, Sum
from linkwise.algebra.space import BODY
from linkwise.algebra.words import _grouped, expand


@pytest.mark.parametrize("side", [0, -1])
def test_a_product_of_sums_is_found_from_either_side(side: int) -> None:
    first, second = P @ phi + M, phi @ P + M
    words = expand(first @ second)
    assert len(words) == 4
    result = _grouped(tuple(words.items()), BODY, side)
    assert isinstance(result, Product) and len(result.factors) == 2
    assert all(isinstance(factor, Sum) for factor in result.factors)
    assert expand(result) == words
