"""The main that an emitted C file tests itself with: random states, and what Python found there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from linkwise.codegen.c.header import Interface
from linkwise.codegen.scalar import parameters, status
from linkwise.codegen.scalar.graph import Graph, Loop
from linkwise.codegen.scalar.passes import Passes
from linkwise.codegen.scalar.trace import Traced
from linkwise.errors import LoweringError
from linkwise.model import task_rows
from linkwise.model.mechanism import Mechanism
from linkwise.model.task_rows import has_tasks
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import SpatialInertia
from linkwise.sweeps.interpret import run
from linkwise.sweeps.program import Program

DRAWS = 16
"""Random states that are drawn for each one that is taken."""

NUDGE = 2.0**-50
"""Relative change that shows the effect of the last digits of a number."""

REFERENCES: dict[bool | str, str] = {
    False: "the sweep interpreter of Linkwise",
    True: "Linkwise (the sweep interpreter, or the scalar graph for other parameters)",
    "formula": "the scalar graph of Linkwise, evaluated in NumPy,",
}

ALLOWED = {"float64": 1e-12, "float32": 2e-5}
"""Difference that is always allowed, relative to the largest entry of the result."""

ROUNDING = 2.0**-29
"""Unit of float64 over that of float32: their difference predicts the error of float64."""

MAIN = """#ifdef {macro}

#include <stdio.h>

/* Random states, and the values that {reference} gives there. */
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
    spare[{at}] {bad};
    status = {call};
    if (status != {code} || !isnan(out[0])) {{
        printf("{name}: {which} that is {what}: returns %d, not %d; out[0] is %g\\n",
               status, {code}, (double)out[0]);
        failed = 1;
    }}
"""


def selftest(
    traced: Traced,
    face: Interface,
    mech: Mechanism,
    program: Program | None,
    nodes: Sequence[str],
    states: int,
    seed: int,
) -> str:
    """The text behind #ifdef NAME_SELFTEST.

    Raises:
        LoweringError: The graph and the interpreter give different values.
    """
    given, expected, noise = _cases(traced, face, mech, program, nodes, states, seed)
    tables = [
        _table(x.identifier, face.type, values)
        for x, values in zip(face.inputs, given, strict=True)
    ]
    tables.append(_table("out", "double", expected))
    allowed = _allowed(traced, face, given, expected, noise)
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
        reference=REFERENCES["formula" if program is None else bool(_model_inputs(face))],
        refusals="".join(_refusals(traced, face, mech)),
    )


def _model_inputs(face: Interface) -> list[str]:
    return [x.name for x in face.inputs if x.name.split(":")[0] in parameters.NAMES]


def _cases(
    traced: Traced,
    face: Interface,
    mech: Mechanism,
    program: Program | None,
    nodes: Sequence[str],
    states: int,
    seed: int,
) -> tuple[list[Array], Array, Array]:
    """Inputs (states, size) each, representable in the type; results (states, size); noise.

    In every second state the numbers of the mechanism that are inputs are its own, and the
    interpreter gives the result; in the others they are drawn, and the scalar graph gives it. The
    noise (states,) is what the last digits of q and of all inertias make of the result.
    """
    rng = np.random.default_rng(seed)
    numbers = _model_inputs(face)
    positive = program is None  # scales and tolerances among them
    tries = [_drawn(face, mech, rng, numbers, i % 2 == 1, positive) for i in range(DRAWS * states)]
    given = [np.stack([one[x.name] for one in tries]) for x in face.inputs]
    good = _good(traced, given, face.dtype)
    chosen = [i for i in range(len(tries)) if good[i] and i % 2 == 0][: states - states // 2]
    chosen += [i for i in range(len(tries)) if good[i] and i % 2 == 1][: states // 2]
    if len(chosen) < states:
        raise LoweringError(
            f"{face.name}: a matrix or a hinge is singular in nearly every one of {len(tries)} "
            "random states: there is no result to compare with."
        )
    given = [values[chosen] for values in given]
    expected, noise = evaluate(traced, given), np.zeros(states)
    bodies = [
        replace(body, inertia=body.inertia.scaled(1.0 + (1 + k % 4) * NUDGE))
        for k, body in enumerate(mech.bodies)
    ]
    nudged = replace(mech, bodies=tuple(bodies))
    for row, i in enumerate(chosen):
        if program is None or (numbers and i % 2 == 1):
            continue
        one = tries[i]
        others = {name: value for name, value in one.items() if name not in ("q", "v", *numbers)}
        expected[row], again = (
            np.ravel(run(program, robot, q, one.get("v"), nodes=nodes, values=others))
            for robot, q in ((mech, one["q"]), (nudged, one["q"] * (1.0 + NUDGE)))
        )
        noise[row] = np.abs(again - expected[row]).max()
    return given, expected, noise


def _drawn(
    face: Interface,
    mech: Mechanism,
    rng: np.random.Generator,
    numbers: Sequence[str],
    varied: bool,
    positive: bool = False,
) -> dict[str, Array]:
    """One value of each input, rounded to the type."""
    known: dict[str, Array] = {"q": mech.random(rng), "v": mech.random_velocity(rng)}
    for name in numbers:
        known[name] = _variant(mech, name, rng) if varied else parameters.nominal(mech, name)
    names = {x.name for x in face.inputs}
    if "goal" in names:  # without tasks, of the joints
        known["goal"] = task_rows.random_goal(mech, rng) if has_tasks(mech) else mech.random(rng)
    for x in face.inputs:
        if x.name == "P":  # a covariance
            known["P"] = _covariance(x.size, rng)
    drawn = dict[str, Array]()
    for x in face.inputs:
        value = known[x.name] if x.name in known else rng.standard_normal(x.size)
        if positive and x.name not in known:
            value = 0.01 * (0.5 + np.abs(value))
        drawn[x.name] = value.astype(face.dtype).astype(np.float64)
    return drawn


def _covariance(size: int, rng: np.random.Generator) -> Array:
    """A positive definite matrix (n, n), as n n numbers."""
    n = round(np.sqrt(size))
    root = 0.1 * rng.standard_normal((n, n))
    return (root @ root.T / n + 0.01 * np.eye(n)).ravel()


def _variant(mech: Mechanism, name: str, rng: np.random.Generator) -> Array:
    """Another value of a number of the mechanism, one that a mechanism can have."""
    nominal = parameters.nominal(mech, name)
    match name.split(":")[0]:
        case "gravity":
            return nominal + rng.standard_normal(3)
        case "inertia":  # scaled body by body: mass stays positive, J what a body can have
            return nominal * np.repeat(rng.uniform(0.5, 2.0, mech.n_bodies), parameters.INERTIA)
        case "armature":
            return nominal + rng.uniform(0.0, 0.1, nominal.size)
        case "locked":
            return np.round(rng.uniform(0.0, 0.8, nominal.size))
        case _:  # a ball beside the node
            ball = SpatialInertia.from_com(rng.uniform(0.1, 1.0), (0.0, 0.1, 0.05), (1e-3,) * 3)
            return parameters.numbers(ball)


def _good(traced: Traced, given: Sequence[Array], dtype: str) -> Array:
    """Where all checks hold (states,), pivots with room for rounding."""
    good = np.ones(len(given[0]) if given else 1, dtype=bool)
    checks = traced.checks
    with np.errstate(all="ignore"):
        values = evaluate(traced, given, dtype, [check.node for check in checks])
    for check, value in zip(checks, values.T, strict=True):
        good &= (value > 2.0 * check.low if check.high == np.inf else value > check.low) & (
            value < check.high
        )
    return good


def _allowed(
    traced: Traced, face: Interface, given: Sequence[Array], expected: Array, noise: Array
) -> list[float]:
    """The largest difference allowed in each state: relative, or what rounding explains.

    The difference of float32 and float64 on the same graph shows how much rounding errors grow.

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
    explained = 1e3 * allowed + 1e2 * noise  # a result that is zero but for rounding is noise
    if not (apart <= explained).all():
        i = int(np.argmax(apart - explained))
        raise LoweringError(
            f"{face.name}: the scalar graph differs from the interpreter by {apart[i]:.1e}; "
            f"rounding explains {explained[i]:.1e}."
        )
    return [float(x) for x in np.maximum(allowed, 10.0 * apart)]


def evaluate(
    traced: Traced,
    given: Sequence[Array],
    dtype: str = "float64",
    nodes: Sequence[int] | None = None,
) -> Array:
    """The graph in NumPy, for many states at once: (states, nodes), by default the outputs."""
    nodes = traced.outputs if nodes is None else list(nodes)
    columns = [c for values in given for c in values.T.astype(dtype)]
    count = len(given[0]) if given else 1
    value = _values(traced.graph, nodes, columns, count, dtype)
    rows = [np.zeros((0, count)), *(value[node][None] for node in nodes)]
    return np.concatenate(rows).T.astype(np.float64)


def _values(
    graph: Graph, nodes: Sequence[int], columns: Sequence[Any], count: int, dtype: str
) -> dict[int, Any]:
    """All nodes that some need, from the columns of the inputs."""
    value, loops = dict[int, Any](), dict[int, list[Any]]()
    for node in graph.used(list(nodes)):
        op, a, b = graph.op[node], graph.a[node], graph.b[node]
        if op == "const":
            value[node] = np.full(count, graph.value[node], dtype=dtype)
        elif op == "input":
            value[node] = columns[a]
        elif op == "part":
            if a not in loops:
                loop = graph.loops[a]
                run = _passed if isinstance(loop, Passes) else _looped
                loops[a] = run(loop, value, count, dtype)  # pyright: ignore[reportArgumentType]
            value[node] = loops[a][b]
        elif op == "add":
            value[node] = value[a] + value[b]
        elif op == "sub":
            value[node] = value[a] - value[b]
        elif op == "mul":
            value[node] = value[a] * value[b]
        elif op == "gate":
            value[node] = np.where(value[a] > 0.0, value[b], np.zeros((), dtype))
        elif op == "neg":
            value[node] = -value[a]
        else:
            functions = {"inv": np.reciprocal, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos}
            value[node] = functions[op](value[a])
    return value


def _looped(loop: Loop, value: dict[int, Any], count: int, dtype: str) -> list[Any]:
    """The rounds of a loop, each state until it is done: x and again."""
    columns = [value[n] for n in loop.inputs]
    x: list[Any] = columns[: loop.size + 1]
    given = columns[loop.size + 1 :]
    for _ in range(loop.most):
        going = x[-1] > 0.0
        if not going.any():
            break
        body = loop.body
        inner = _values(body.graph, body.outputs, [*x[:-1], *given], count, dtype)
        after = [inner[n] for n in body.outputs]
        x = [np.where(going, new, old) for new, old in zip(after, x, strict=True)]
    return x


def _passed(passes: Passes, value: dict[int, Any], count: int, dtype: str) -> list[Any]:
    """Passes over a memory (numbers, states), all rounds of each at once."""
    memory = np.zeros((passes.size, count), dtype)
    for node, place in zip(passes.inputs, passes.places, strict=True):
        memory[place] = value[node]
    with np.errstate(all="ignore"):  # of columns that are padding
        for x in passes.passes:
            starts, lane = np.array(x.rows).T[:, :, None], np.arange(x.width)
            places = [
                start + k * piece.stride + piece.step * lane
                for start, piece in zip(starts, (*x.reads, *x.writes), strict=True)
                for k in range(piece.count)
            ]
            inside = sum(piece.count for piece in x.reads)
            columns = [
                memory[np.broadcast_to(at, (len(x.rows), x.width))] for at in places[:inside]
            ]
            shape = (len(x.rows), x.width, count)
            body = x.body
            made = _values(
                body.graph, body.outputs, [c.ravel() for c in columns], math.prod(shape), dtype
            )
            for at, node in zip(places[inside:], body.outputs, strict=True):
                memory[np.broadcast_to(at, shape[:2])] = made[node].reshape(shape)
    return [memory[place] for place in passes.outputs]


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


def _refusals(traced: Traced, face: Interface, mech: Mechanism) -> Iterator[str]:
    """The last entry of each input is made NaN or infinite; then a quaternion too long."""
    for k, x in enumerate(face.inputs):
        if x.size:
            bad = "= NAN" if k % 2 == 0 else "= INFINITY"
            yield _refusal(face, k, f"{x.size - 1}", bad, status.INPUT, "not finite")
    for check in traced.checks:
        k, _ = status.with_quaternion(check.code, mech) or (-1, mech)
        quaternion = mech.bodies[k].hinge.quaternion
        if k >= 0 and quaternion is not None:
            first = int(mech.q_start[k]) + quaternion.start
            bad = "+= 3.0" if face.type == "double" else "+= 3.0f"
            yield _refusal(face, 0, f"{first}", bad, check.code, "no unit quaternion")


def _refusal(face: Interface, k: int, at: str, bad: str, code: int, what: str) -> str:
    x = face.inputs[k]
    return REFUSAL.format(
        size=face.macro(x.identifier, "SIZE"),
        which=x.identifier,
        at=at,
        bad=bad,
        code=code,
        what=what,
        call=_call(face, "0", k),
        name=face.name,
    )
