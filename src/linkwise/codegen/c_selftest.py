"""The main that an emitted C file tests itself with: random states, and what Python found there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.algebra.expr import Expr
from linkwise.codegen.c_header import Interface
from linkwise.codegen.trace import Traced
from linkwise.errors import LoweringError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.sweeps.interpret import run
from linkwise.sweeps.lower import lower

ALLOWED = {"float64": 1e-12, "float32": 2e-5}
"""Difference that is always allowed, relative to the largest entry of the result."""

ROUNDING = 2.0**-29
"""Unit of float64 over that of float32: what the two differ by foretells the error of float64."""

MAIN = """#ifdef {macro}

#include <stdio.h>

/* Random states, and the values that the sweep interpreter of Linkwise found there. */
{tables}

int main(void)
{{
    {type} out[{size}];
{spare}    double worst = 0.0;
    int i, j, status, failed = 0;
    for (i = 0; i < {states}; ++i) {{
        double apart = 0.0;
        status = {call};
        for (j = 0; j < {size}; ++j) {{
            const double difference = fabs((double)out[j] - selftest_out[i][j]);
            if (!(difference <= apart) && apart == apart) {{
                apart = difference; /* once it is NaN it stays */
            }}
        }}
        if (status != 0 || !(apart <= selftest_allowed[i])) {{
            printf("{name}: state %d: returns %d, differs by %g, allowed is %g\\n",
                   i, status, apart, selftest_allowed[i]);
            failed = 1;
        }}
        worst = fmax(worst, apart / selftest_allowed[i]);
    }}
{refusals}    printf("{name}: {states} states, largest difference %.1e of what is allowed: %s\\n",
           worst, failed ? "FAILED" : "ok");
    return failed;
}}

#endif
"""

REFUSAL = """    for (i = 0; i < {size}; ++i) {{
        spare[i] = selftest_{which}[0][i];
    }}
    spare[{size} - 1] = {bad};
    status = {call};
    if (status != 1) {{
        printf("{name}: {which} that is not finite: returns %d, not 1\\n", status);
        failed = 1;
    }}
"""


def selftest(
    traced: Traced,
    face: Interface,
    mech: Mechanism,
    form: Expr,
    nodes: Sequence[str],
    states: int,
    seed: int,
) -> str:
    """The text behind #ifdef NAME_SELFTEST.

    Raises:
        LoweringError: The graph and the interpreter give different values.
    """
    given, expected = _cases(traced, face, mech, form, nodes, states, seed)
    tables = [
        _table(x.identifier, face.type, values)
        for x, values in zip(face.inputs, given, strict=True)
    ]
    tables.append(_table("out", "double", expected))
    allowed = _allowed(traced, face, given, expected)
    tables.append(
        "/* Largest difference allowed in each state. */\n"
        f"static const double selftest_allowed[{states}] = {{"
        + ", ".join(f"{x:.2e}" for x in allowed)
        + "};"
    )
    sizes = [x.size for x in face.inputs if x.size]
    return MAIN.format(
        macro=face.macro("SELFTEST"),
        tables="\n".join(tables),
        type=face.type,
        size=face.macro("OUT_SIZE"),
        spare=f"    {face.type} spare[{max(sizes)}];\n" if sizes else "",
        states=states,
        call=_call(face, "i"),
        name=face.name,
        refusals="".join(_refusal(face, k) for k, x in enumerate(face.inputs) if x.size),
    )


def _cases(
    traced: Traced,
    face: Interface,
    mech: Mechanism,
    form: Expr,
    nodes: Sequence[str],
    states: int,
    seed: int,
) -> tuple[list[Array], Array]:
    """Inputs (states, size) each, representable in the type; results (states, size)."""
    rng = np.random.default_rng(seed)
    program = lower(form)
    given = [np.empty((states, x.size)) for x in face.inputs]
    expected = np.empty((states, len(traced.outputs)))
    for i in range(states):
        drawn: dict[str, Array] = {"q": mech.random(rng), "v": mech.random_velocity(rng)}
        for x, values in zip(face.inputs, given, strict=True):
            value = drawn.get(x.name)
            value = rng.standard_normal(x.size) if value is None else value
            values[i] = drawn[x.name] = value.astype(face.dtype).astype(np.float64)
        others = {name: value for name, value in drawn.items() if name not in ("q", "v")}
        result = run(program, mech, drawn["q"], drawn["v"], nodes=nodes, values=others)
        expected[i] = np.ravel(result)
    return given, expected


def _allowed(
    traced: Traced, face: Interface, given: Sequence[Array], expected: Array
) -> list[float]:
    """Largest difference allowed in each state: relative, or what rounding explains.

    What float32 and float64 differ by on the same graph tells how much rounding grows on the way.

    Raises:
        LoweringError: The graph and the interpreter contradict each other.
    """
    double = evaluate(traced, given)
    with np.errstate(all="ignore"):
        growth = np.abs(evaluate(traced, given, "float32") - double).max(axis=1)
    if face.dtype == "float32" and not np.isfinite(growth).all():
        raise LoweringError(
            f"{face.name}: the result is not finite in float32 where it is in float64; use float64."
        )
    growth = np.where(np.isfinite(growth), growth, 0.0)
    relative = ALLOWED[face.dtype] * np.abs(expected).max(axis=1)
    share = 64.0 * ROUNDING if face.dtype == "float64" else 10.0
    allowed = np.maximum(np.maximum(relative, share * growth), np.finfo(np.float32).tiny)
    apart = np.abs(double - expected).max(axis=1)
    if not (apart <= 1e3 * allowed).all():
        raise LoweringError(
            f"{face.name}: the scalar graph differs from the interpreter by {apart.max():.1e}; "
            f"rounding explains {allowed.max():.1e}."
        )
    return [float(x) for x in np.maximum(allowed, 10.0 * apart)]


def evaluate(traced: Traced, given: Sequence[Array], dtype: str = "float64") -> Array:
    """The graph in NumPy, for many states at once: (states, outputs)."""
    graph = traced.graph
    columns = [c for values in given for c in values.T.astype(dtype)]
    count = len(given[0]) if given else 1
    value: dict[int, Any] = {}
    for node in graph.used(traced.outputs):
        op, a, b = graph.op[node], graph.a[node], graph.b[node]
        if op == "const":
            value[node] = np.full(count, graph.value[node], dtype=dtype)
        elif op == "input":
            value[node] = columns[a]
        elif op == "add":
            value[node] = value[a] + value[b]
        elif op == "sub":
            value[node] = value[a] - value[b]
        elif op == "mul":
            value[node] = value[a] * value[b]
        elif op == "neg":
            value[node] = -value[a]
        else:
            functions = {"inv": np.reciprocal, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos}
            value[node] = functions[op](value[a])
    return np.stack([value[node] for node in traced.outputs], axis=1).astype(np.float64)


def _table(which: str, kind: str, values: Array) -> str:
    """Constants, four in a line; repr gives back the same number."""
    mark = "f" if kind == "float" else ""
    rows = list[str]()
    for row in values.tolist():
        cells = [f"{x!r}{mark}" for x in row] or [f"0.0{mark}"]
        lines = [", ".join(cells[i : i + 4]) for i in range(0, len(cells), 4)]
        rows.append("    {" + ",\n     ".join(lines) + "}")
    size = max(1, values.shape[1])
    head = f"static const {kind} selftest_{which}[{len(values)}][{size}] = {{"
    return "\n".join([head, ",\n".join(rows), "};"])


def _call(face: Interface, index: str, replaced: int = -1) -> str:
    arguments = [
        "spare" if k == replaced else f"selftest_{x.identifier}[{index}]"
        for k, x in enumerate(face.inputs)
    ]
    return f"{face.name}({', '.join([*arguments, 'out'])})"


def _refusal(face: Interface, k: int) -> str:
    """The last entry of an input is made NaN or infinite."""
    x = face.inputs[k]
    bad = "NAN" if k % 2 == 0 else "INFINITY"
    return REFUSAL.format(
        size=face.macro(x.identifier, "SIZE"),
        which=x.identifier,
        bad=bad,
        call=_call(face, "0", k),
        name=face.name,
    )
