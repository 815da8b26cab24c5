"""Derivatives of operators of recursions as matrices, column by column.

∂[P x] applied to a vector is a recursion (`algebra/differential_recursion.py`). By itself, or as an
adjoint, it is evaluated along each unit vector, and the factors around it are multiplied with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algebra import role
from linkwise.algebra.differential import rate_along
from linkwise.algebra.expr import Adjoint, Expr, Symbol, nodes, product, symbol
from linkwise.algebra.space import ONE
from linkwise.algebra.words import Word, expand, rebuilt
from linkwise.codegen.formula import Formula
from linkwise.codegen.rolled.layout import total_size
from linkwise.sweeps.arrangement import opened

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


def needs_columns(expr: Expr) -> bool:
    """Whether a derivative of a recursion is in it that is not applied to a vector."""
    parts = list(nodes(expr))
    if any(isinstance(x, Adjoint) and _rate(x) is not None for x in parts):
        return True
    return not expr.is_vector and any(_rate(x) is not None for x in parts)


def by_columns(exprs: tuple[Expr, ...], names: tuple[str, ...]) -> Formula:
    """The formula of expressions, some of which need columns."""
    return Formula(_values, (exprs,), names)


def _values(at: Writing, exprs: tuple[Expr, ...]) -> Any:
    _ = at.q  # first, as in other kernels
    results = tuple(_value(at, expr) for expr in exprs)
    return results if at.request.names else results[0]


def _value(at: Writing, expr: Expr) -> Any:
    if not needs_columns(expr):
        return at.value(expr)
    words = expand(rebuilt(expr, opened))
    total: Any = sum(number * _word(at, word) for word, number in words.items())
    return total[:, 0] if expr.is_vector else total


def _word(at: Writing, word: Word) -> Any:
    """The matrix of a product."""
    factors, end = list[Any](), len(word)
    for i in reversed(range(len(word))):
        key = _rate(word[i])
        vector = end == len(word) and product(word[i:]).domain is ONE
        if key is None or (vector and not isinstance(word[i], Adjoint)):
            continue
        factors += [_matrix(at, word[i + 1 : end])] if end > i + 1 else []
        A = _rate_matrix(at, key, word[i])
        factors.append(A.T if isinstance(word[i], Adjoint) else A)
        end = i
    factors += [_matrix(at, word[:end])] if end else []
    matrix = factors[-1]
    for factor in factors[-2::-1]:
        matrix = matrix @ factor
    return matrix


def _matrix(at: Writing, word: Word) -> Any:
    expr = product(word)
    value = np.asarray(at.value(expr), dtype=object)
    return value[:, None] if expr.is_vector else value.reshape(-1, value.shape[-1])


def _rate_matrix(at: Writing, key: role.RecursionRate, letter: Expr) -> Any:
    leaf = letter.of if isinstance(letter, Adjoint) else letter
    e = symbol("e", leaf.domain, ONE, role.Vector("e_j"))
    expr, size = rate_along(key, e), total_size(leaf.domain, at.mech, len(at.nodes))
    return np.stack([at.value(expr, e_j=unit) for unit in np.eye(size)], axis=-1)


def _rate(letter: Expr) -> role.RecursionRate | None:
    leaf = letter.of if isinstance(letter, Adjoint) else letter
    if isinstance(leaf, Symbol) and isinstance(leaf.role, role.RecursionRate):
        return leaf.role
    return None
