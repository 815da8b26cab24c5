"""The CUDA source of chunked scans: for each stage, fold, scan and apply.

Memory is laid out so that neighbouring threads, which have neighbouring runs, read neighbouring
numbers: entry e of the body j of run c is at (e · longest + j) · runs + c.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from linkwise.codegen.c.text import condition, number
from linkwise.codegen.cuda.statement import operation, turn
from linkwise.codegen.cuda.text import PRIMITIVES, TURN
from linkwise.codegen.rolled.layout import Key, Leaf
from linkwise.codegen.rolled.visit import ClassCode, Visit
from linkwise.codegen.scalar import status
from linkwise.codegen.scan.chunked import Carried, Chunked
from linkwise.codegen.scan.element_code import ELEMENTS
from linkwise.errors import LoweringError

START = {"q": "chain.q_at[k]", "v": "chain.v_at[k]", "body": "6 * k", "start": "0"}
"""Where the entries of a body begin in an array."""

DTYPE = "float64"


def scan_source(chunked: Chunked, primitives: str = PRIMITIVES[DTYPE]) -> str:
    """The text of all kernels."""
    parts = [primitives, TURN[DTYPE], ELEMENTS]
    for stage, carried in enumerate(chunked.carried):
        if carried is not None:
            parts.append(_kernel(chunked, carried, fold=True))
        parts.append(_kernel(chunked, carried or stage, fold=False))
    return "\n".join(parts)


def _kernel(chunked: Chunked, carried: Carried | int, *, fold: bool) -> str:
    """One thread for each run: from nothing to its element, or from what comes in to results."""
    stage = carried if isinstance(carried, int) else carried.stage
    rolled = chunked.rolled
    outward = rolled.plan.stages[stage].direction == "base_to_tip"
    keys = () if isinstance(carried, int) else (carried.entries if fold else carried.state)
    at = {key: i for i, key in enumerate(keys)}
    arrays = ", ".join(f"const T *__restrict__ in{i}" for i in range(len(rolled.inputs)))
    lines = [
        f'extern "C" __global__ void __launch_bounds__(32) {"fold" if fold else "apply"}_{stage}'
        "(const Chain *__restrict__ given, T *__restrict__ elements, const T *__restrict__ totals,",
        f"    {arrays}, T *__restrict__ out, int *__restrict__ codes)",
        "{",
        "    const Chain chain = *given;",
        "    const int run = blockIdx.x * blockDim.x + threadIdx.x;",
        "    if (run >= chain.runs) return;",
        f"    T x[{max(len(keys), 1)}];",
    ]
    turned = "run" if outward else "chain.runs - 1 - run"
    kind = "Kalman" if isinstance(carried, Carried) and carried.kind == "Riccati" else "Affine"
    if not isinstance(carried, int):
        if fold:
            lines.append(f"    {kind}::nothing(x);")
        else:
            lines.append(f"    incoming<{kind}>(x, {turned}, chain.runs, elements, totals);")
    lines += [
        "    const int begin = chain.start[run], end = chain.start[run + 1];",
        "    int code = 0;",
        *(
            ["    for (int k = begin; k < end; ++k) {"]
            if outward
            else ["    for (int k = end - 1; k >= begin; --k) {"]
        ),
        "        const long long at = (long long)(k - begin) * chain.runs + run;",
        "        switch (chain.kind[k]) {",
    ]
    for i, code in enumerate(rolled.codes):
        lines.append(f"        case {i}: {{")
        lines += (f"            {x}" for x in _visit(chunked, code, stage, at, fold))
        lines.append("            break;")
        lines.append("        }")
    lines += ["        }", "    }"]
    if fold:
        lines.append(f"    store<{kind}>(x, {turned}, chain.runs, elements);")
    else:
        lines.append("    if (code) atomicMax(codes, code);")
    return "\n".join([*lines, "}", ""])


def _visit(
    chunked: Chunked, code: ClassCode, stage: int, at: dict[Key, int], fold: bool
) -> Iterator[str]:
    """What a body of a class does."""
    rolled, graph = chunked.rolled, code.graph
    visit = code.visits[stage]
    carried = _carried(chunked, visit, stage)
    ends = [node for key, node in carried.items() if key in at]
    guards = [] if fold else visit.guards
    if not fold:
        ends += [*visit.kept, *(out.node for out in visit.results)]
        ends += [node for _, node in visit.shown]
        ends += [n for g in guards for n in (g.check.node, *([int(g.low)] if g.column else []))]
    needed = _needed(code, visit, ends)
    name, turned = dict[int, str](), set[int]()
    for node in sorted(needed):
        op, a = graph.op[node], graph.a[node]
        if node in visit.fetched:
            slot = rolled.shown[0] + code.slot[node]
            name[node] = f"r{node}"
            yield f"const T r{node} = chain.record[{slot} * chain.room + at];"
        elif op == "const":
            name[node] = number(graph.value[node], DTYPE)
        elif op == "input":
            name[node] = f"i{node}"
            yield f"const T i{node} = {_leaf(chunked, code.leaf[node], stage, at)};"
        elif op in ("sin", "cos"):
            name[node] = f"{op[0]}{a}"
            yield from turn(a, name[a]) if a not in turned else ()
            turned.add(a)
        else:
            name[node] = f"t{node}"
            values = [name[x] for x in graph.arguments(node)]
            yield f"const T t{node} = {operation(op, values, DTYPE)};"
    if not fold:
        for node in visit.kept:
            slot = rolled.shown[0] + code.slot[node]
            yield f"chain.record[{slot} * chain.room + at] = {name[node]};"
        for entry, node in visit.shown:
            yield f"chain.record[{entry} * chain.room + at] = {name[node]};"
        for out in visit.results:
            yield f"out[{START[out.where]} + {out.offset}] = {name[out.node]};"
            x = name[out.node]
            yield f"if (!({x} - {x} == 0) && !code) code = {status.RESULT};"
        for guard in guards:
            low = name[int(guard.low)] if guard.column else number(float(guard.low), DTYPE)
            x, high = (
                name[guard.check.node],
                condition(name[guard.check.node], -inf, guard.check.high, DTYPE),
            )
            inside = " && ".join(filter(None, (f"{x} > {low}", high)))
            failed = f"{x} == {x} ? {guard.check.code - 2} + 2 * k : {status.RESULT}"
            yield f"if (!({inside}) && !code) code = {failed};"
    for key, node in carried.items():
        if key in at:
            yield f"x[{at[key]}] = {name[node]};"


def _carried(chunked: Chunked, visit: Visit, stage: int) -> dict[Key, int]:
    """What a body hands on in this stage, by entry."""
    rolled = chunked.rolled
    made, gathered, kept = rolled.plan.made, rolled.plan.gathered, rolled.plan.kept
    parent = {
        (i, key[0] in kept): key for key, i in rolled.parent_entry.items() if made[key[0]] == stage
    }
    sums = {i: key for key, i in rolled.sum_entry.items() if gathered[key[0]] == stage}
    out = {sums[i]: node for i, node in visit.added}
    out |= {parent[i, False]: node for i, node in visit.handed}
    return out | {parent[i, True]: node for i, node in visit.shown}


def _needed(code: ClassCode, visit: Visit, ends: list[int]) -> set[int]:
    """Nodes that some need, back to what is read."""
    graph, known = code.graph, {*visit.fetched, *visit.leaves}
    needed, stack = set[int](), list(ends)
    while stack:
        node = stack.pop()
        if node in needed:
            continue
        needed.add(node)
        if node not in known and graph.op[node] not in ("const", "input"):
            stack += [x for x in (graph.a[node], graph.b[node]) if x >= 0]
    return needed


def _leaf(chunked: Chunked, leaf: Leaf, stage: int, at: dict[Key, int]) -> str:
    if leaf.kind == "column":
        return f"chain.table[{leaf.index} * chain.room + at]"
    if leaf.kind == "input" and leaf.where in START:
        return f"in{leaf.index}[{START[leaf.where]} + {leaf.offset}]"
    if leaf.kind in ("parent", "sum") and leaf.key in at:
        return f"x[{at[leaf.key]}]"
    if leaf.kind == "parent" and leaf.key is not None:  # of an earlier stage
        slot = chunked.rolled.parent_entry[leaf.key]
        return f"above(chain, k, run, {slot})"
    raise LoweringError(f"a number of the kind {leaf.kind!r} has no place in a scan on a GPU.")
