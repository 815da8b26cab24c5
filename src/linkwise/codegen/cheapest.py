"""The cheapest equal form of an expression, searched for once: it is the same for every mechanism.

The derivations of the library's named quantities come with it, in a file that
`tools/derivations.py` writes; others are cached on disk. Both belong to the code of the search as
it is: after a change there, all are searched for again.
"""

from __future__ import annotations

import contextlib
import pickle
import zlib
from collections.abc import Iterable
from functools import cache as once, lru_cache
from pathlib import Path

from linkwise.algebra.budget import Budget
from linkwise.algebra.derivation import Derivation
from linkwise.algebra.expr import Expr
from linkwise.algebra.selection import unnamed, with_selections
from linkwise.atomic_file import write_file
from linkwise.codegen.cpu import cache
from linkwise.codegen.cpu.digest import UnknownContentError, content, digest

SHIPPED = Path(__file__).with_name("derivations.bin")
"""The derivations that come with the library."""

_ALGEBRA, _SWEEPS = (Path(__file__).parents[1] / folder for folder in ("algebra", "sweeps"))

_SEARCHED = (
    *("armature", "budget", "derivation", "differential_form", "expr", "family", "invert"),
    *("normal_form", "role", "rule", "rules", "search", "selection", "space", "symbols", "words"),
)
_COSTED = ("arrangement", "cost", "lower", "name", "program", "result_part", "schedule")
"""Modules of `algebra` and `sweeps` that a search depends on."""


@lru_cache(maxsize=256)
def cheapest(expr: Expr, budget: Budget) -> Derivation:
    """The derivation of the form that takes fewest operations; on disk for the next process."""
    for_any, chosen = unnamed(expr)
    if for_any is not expr:
        return with_selections(cheapest(for_any, budget), chosen.get)
    key = search_key(expr, budget)
    with contextlib.suppress(Exception):  # a damaged file: search again
        filed = pickle.loads(shipped().get(key) or cache.read(key) or b"") if key else None
        if isinstance(filed, Derivation) and filed.start is expr:
            return filed
    derivation = searched(expr, budget)
    if key:
        cache.write(key, pickle.dumps(derivation))
    return derivation


def searched(expr: Expr, budget: Budget) -> Derivation:
    """The result of a new search, whatever is on disk."""
    from linkwise.algebra import search
    from linkwise.sweeps.cost import cost
    from linkwise.sweeps.lower import lower

    return search.cheapest(expr, lambda form: cost(lower(form)), budget)


def search_key(expr: Expr, budget: Budget) -> str | None:
    """The key of a derivation, which includes the code of the search; None if it is unknown."""
    with contextlib.suppress(UnknownContentError):
        files = [*(_ALGEBRA / name for name in _SEARCHED), *(_SWEEPS / name for name in _COSTED)]
        return digest("derivation", expr, budget, *(content(f"{file}.py") for file in files))
    return None


@once
def shipped() -> dict[str, bytes]:
    """The derivations that come with the library, by their keys."""
    with contextlib.suppress(OSError):
        return pickle.loads(zlib.decompress(SHIPPED.read_bytes()))
    return {}


def ship(derivations: Iterable[Derivation]) -> int:
    """Write the file that comes with the library; its size [bytes]."""
    each = {search_key(x.start, Budget()): pickle.dumps(x) for x in derivations}
    content = zlib.compress(pickle.dumps(each), 9)
    write_file(SHIPPED, content)
    return len(content)
