"""How far rounding can lead a scalar graph astray, state by state: a running error bound.

Every operation gives the exact result of its operands times (1 + δ), |δ| ≤ u. To first order the
error e of a value is then bounded by

    e(a ± b) ≤ e(a) + e(b) + u |a ± b|          e(a b) ≤ |a| e(b) + |b| e(a) + u |a b|
    e(1/a)   ≤ e(a) / a²   + u / |a|            e(√a)  ≤ e(a) / (2 √a)     + u √a
    e(sin a), e(cos a) ≤ e(a) + 4 u             constants u |c|, inputs 0

so condition numbers come in where there is one, and only there. Fused operations round less.
It is a bound, and behind many inverses a wide one, since it takes all errors to conspire; there

    depth · u · max (|A⁻¹| |A| |A⁻¹| ...)

with the matrices of the expression is sharper, where depth is the longest chain of operations: the
solution for a matrix that differs from A by as much as rounding does. Quantities of articulated
bodies have the inverses D⁻¹ inside, so that the condition of D is a factor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.codegen.scalar.trace import Traced

UNIT = {8: 2.0**-53, 4: 2.0**-24}
SECOND_ORDER = 2.0
"""Products of errors, as long as they are small: where they are not, the bound is of no use."""


@dataclass(frozen=True)
class Rounded:
    """Outputs (states, n) in double precision, bounds of their errors, and where checks stand.

    Attributes:
        value: Values of the outputs.
        error: What rounding can change of them, in the precision asked for.
        fails: Where a check fails (states,).
        unsure: Where rounding decides whether one does (states,).
    """

    value: np.ndarray
    error: np.ndarray
    fails: np.ndarray
    unsure: np.ndarray


def rounded(traced: Traced, given: list[np.ndarray], itemsize: int = 8) -> Rounded:
    """The graph evaluated with a bound for each node; `given` has (states, size) arrays."""
    graph, u = traced.graph, UNIT[itemsize]
    count = len(given[0])
    columns = [c for rows in given for c in rows.T]
    value, error = dict[int, np.ndarray](), dict[int, np.ndarray]()
    with np.errstate(all="ignore"):
        for node in graph.used(traced.roots):
            op, a, b = graph.op[node], graph.a[node], graph.b[node]
            if op == "const":
                x = np.full(count, graph.value[node])
                e = 0.0 * x if itemsize == 8 else u * np.abs(x)
            elif op == "input":
                x, e = columns[a], np.zeros(count)
            elif op in ("add", "sub"):
                x = value[a] + value[b] if op == "add" else value[a] - value[b]
                e = error[a] + error[b] + u * np.abs(x)
            elif op == "mul":
                x = value[a] * value[b]
                e = np.abs(value[a]) * error[b] + np.abs(value[b]) * error[a] + u * np.abs(x)
            elif op == "neg":
                x, e = -value[a], error[a]
            elif op == "inv":
                x = 1.0 / value[a]
                e = error[a] * x * x + u * np.abs(x)
            elif op == "sqrt":
                x = np.sqrt(value[a])
                e = error[a] / (2.0 * x) + u * x
            else:
                x = np.sin(value[a]) if op == "sin" else np.cos(value[a])
                e = error[a] + 4.0 * u
            value[node], error[node] = x, e
        fails, unsure = np.zeros(count, bool), np.zeros(count, bool)
        for check in traced.checks:
            x, e = value[check.node], SECOND_ORDER * error[check.node]
            fails |= ~((check.low < x) & (x < check.high))
            unsure |= ~((np.abs(x - check.low) > e) & (np.abs(x - check.high) > e))
    stack = [np.zeros((0, count))]  # for those without outputs
    values = np.concatenate([*stack, *(value[n][None] for n in traced.outputs)]).T
    errors = np.concatenate([*stack, *(error[n][None] for n in traced.outputs)]).T
    tiny = float(np.finfo(np.float64 if itemsize == 8 else np.float32).tiny)  # underflow
    return Rounded(values, SECOND_ORDER * errors + tiny, fails, unsure)


def depth(traced: Traced) -> int:
    """Roundings one after the other, at most; a constant is rounded too."""
    graph, result = traced.graph, dict[int, int]()
    for node in graph.used(traced.roots):
        leaf = graph.op[node] in ("const", "input")
        operands = () if leaf else (x for x in (graph.a[node], graph.b[node]) if x >= 0)
        result[node] = max((1 + result[x] for x in operands), default=1)
    return max(result.values(), default=1)
