"""The cheapest equal form of an expression, found once: it is the same for every mechanism."""

from __future__ import annotations

import contextlib
import pickle
from functools import lru_cache

from linkwise.algebra.derivation import Derivation
from linkwise.algebra.expr import Expr
from linkwise.algebra.search import Budget
from linkwise.algebra.selection import unnamed, with_selections
from linkwise.codegen.cpu import cache
from linkwise.codegen.cpu.digest import file_key


@lru_cache(maxsize=256)
def cheapest(expr: Expr, budget: Budget) -> Derivation:
    """The derivation of the form that takes fewest operations; on disk for the next process."""
    for_any, chosen = unnamed(expr)
    if for_any is not expr:
        return with_selections(cheapest(for_any, budget), chosen.get)
    key = file_key("derivation", expr, budget)
    with contextlib.suppress(Exception):  # whatever is wrong with a file: it is found again
        filed = pickle.loads(cache.read(key) or b"") if key else None
        if isinstance(filed, Derivation) and filed.start is expr:
            return filed
    from linkwise.algebra import search
    from linkwise.sweeps.cost import cost
    from linkwise.sweeps.lower import lower

    found = search.cheapest(expr, lambda form: cost(lower(form)), budget)
    if key:
        cache.write(key, pickle.dumps(found))
    return found
