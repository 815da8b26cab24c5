"""Failures in words: which bound is violated, at which knot, and what to do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from linkwise.control.program import Program
from linkwise.control.solver import (
    INFEASIBLE,
    NO_STEP,
    NOT_FINITE,
    OUT_OF_TIME,
    RUNNING,
    SOLVED,
    Data,
    at_knots,
)
from linkwise.simulation.holding import contact_rows
from linkwise.spatial.array import Array

WORDS = {
    RUNNING: "still running",
    SOLVED: "solved",
    OUT_OF_TIME: "stopped after all iterations",
    NO_STEP: "no step along the search direction lowers the cost",
    NOT_FINITE: "numbers are no longer finite",
    INFEASIBLE: "the bounds cannot all be met",
}
"""How a problem ended, in words."""

ADVICE = {
    OUT_OF_TIME: "Allow more iterations, or give a better guess.",
    NO_STEP: "Shorten the step, weigh the joint forces more, or give another guess.",
    NOT_FINITE: "The motion grows without bounds: shorten the step, or give another guess.",
    INFEASIBLE: "Widen or remove bounds, allow a longer horizon, or give another guess.",
}

OUT_OF_REACH = (
    "The bound may be out of reach: widen or remove it, allow a longer horizon or more iterations, "
    "or give a better guess."
)

STATIC = ("posture", "velocity", "task")
"""Kinds of bounds that the state decides alone."""


def row_names(program: Program, contacts: tuple[str, ...] = ()) -> list[str]:
    """What each bounded row is of."""
    return list(_names(program, contacts))


def _names(program: Program, contacts: tuple[str, ...]) -> Iterator[str]:
    mech, places = program.mech, contact_rows(program.mech)
    for term in program.structure.terms:
        if not term.bounded:
            continue
        match term.kind:
            case "posture" | "velocity":
                what = "position" if term.kind == "posture" else "velocity"
                yield from (f"the {what} of {mech.velocity_names[i]!r}" for i in term.at)
            case "task" if term.task is not None:
                yield from (
                    f"row {i} of the error of the {term.task.name}" for i in range(term.rows)
                )
            case "cone":
                node = contacts[places.index(term.at[0]) // 3]
                yield from (f"the {x} of the ground at {node!r}" for x in ("pull", "friction"))
            case _:
                name = getattr(term.function, "__name__", "a function")
                yield from (f"row {i} of {name}" for i in range(term.rows))


def worst_row(program: Program, data: Data, x: Array, h: float, names: list[str]) -> str:
    """The largest violation of a bound in words; empty where there are no bounds.

    Args:
        program: The kernels.
        data: The numbers of one problem.
        x: q, v and u of all knots (N + 1, .).
        h: Length of a step [s].
        names: Of the rows.
    """
    if not names:
        return ""
    c = at_knots(program.bounded, program.mech, data, x[None], h)[0]
    shown = (data.held[name][0] for name in ("low", "high", "active"))
    low, high, active = (np.broadcast_to(a, c.shape) for a in shown)
    off = np.where(active > 0.0, np.maximum(low - c, c - high), 0.0)
    if not np.isfinite(off).any() or not np.nanmax(off) > 0.0:
        return ""
    k, i = np.unravel_index(int(np.nanargmax(off)), off.shape)
    return _said(names[i], c[k, i], low[k, i], high[k, i], f"at knot {k} ({k * h:g} s)")


def start_off(program: Program, data: Data, h: float, names: list[str], allowed: float) -> str:
    """In words, which bound the start violates, whatever the motion; empty if none."""
    kinds = [t.kind for t in program.structure.terms if t.bounded for _ in range(t.rows)]
    fixed = np.isin(kinds, STATIC) & (data.held["active"][0, 0] > 0.0) if kinds else np.zeros(0)
    if not fixed.any():
        return ""
    held = {name: x[:, :1] for name, x in data.held.items()}
    first = np.zeros((len(data.start), 1, data.guess.shape[-1]))
    first[:, 0, : data.start.shape[1]] = data.start
    c = at_knots(program.bounded, program.mech, Data(data.start, first, held), first, h)[:, 0]
    low, high = (np.broadcast_to(held[x][:, 0], c.shape) for x in ("low", "high"))
    off = np.where(fixed, np.maximum(low - c, c - high), 0.0)
    if not np.max(off) > allowed:
        return ""
    p, i = np.unravel_index(int(np.argmax(off)), off.shape)
    count = int((off > allowed).any(axis=1).sum())
    which = f" of {count} of {len(off)} problems" if len(off) > 1 else ""
    where = f"at the start{f' of problem {p}' if len(off) > 1 else ''}"
    return (
        f"the start{which} violates a bound, which no motion can mend: "
        f"{_said(names[i], c[p, i], low[p, i], high[p, i], where)}. Change the start, widen the "
        "bound, or give it rows for all knots, (N + 1, m), with infinite ones in the first."
    )


def _said(name: str, value: float, low: float, high: float, where: str) -> str:
    side, limit = ("least", low) if value < low else ("most", high)
    return f"{name} is {value:.4g} {where} and must be at {side} {limit:.4g}"


def advice(code: int, off: bool) -> str:
    """What to do about a problem that is not solved, with a bound that is off or not."""
    return OUT_OF_REACH if off and code == OUT_OF_TIME else ADVICE[code]
