"""Statements that kernels and rollouts for GPUs share: operations, angles, checks, loops."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

import numpy as np

from linkwise.codegen.c import text
from linkwise.codegen.c.text import condition, number
from linkwise.codegen.scalar import status
from linkwise.codegen.scalar.graph import Graph, Loop, table_name
from linkwise.codegen.scalar.trace import Traced


def operation(op: str, names: list[str], dtype: str) -> str:
    """An operation of a graph in CUDA; "take NAME" reads a table of `tables`."""
    if op.startswith("take "):
        (x,), table = names, op.removeprefix("take ")
        last = int(table.rpartition("_")[2]) - 1
        return f"{table}[(int)({x} > (T)0 ? ({x} < (T){last} ? {x} : (T){last}) : (T)0)]"
    root = "sqrtf({})" if dtype == "float32" else "sqrt({})"
    return text.operation(op, names, "(T)0", "reciprocal({})", root)


def named(graph: Graph, node: int) -> str:
    """The operation of a node, with the name of the table that it takes from."""
    op = graph.op[node]
    return f"take {table_name(graph.table(node))}" if op == "take" else op


def tables(graphs: Iterable[Graph], dtype: str) -> list[str]:
    """Declarations of all tables of some graphs."""
    each = dict.fromkeys(table for graph in graphs for table in graph.tables)
    declared = list[str]()
    for table in each:
        numbers = ", ".join(number(x, dtype) for x in np.frombuffer(table).tolist())
        declared.append(f"__device__ const T {table_name(table)}[] = {{{numbers}}};\n")
    return declared


def turn(angle: int, name: str, *, wrapped: bool = True) -> Iterator[str]:
    """Sine and cosine of an angle, which is first brought within half a turn if it is large."""
    yield f"T a{angle} = {name}, s{angle}, c{angle};"
    if wrapped:
        yield f"if (size_of(a{angle}) > LARGEST) a{angle} = wrapped(a{angle});"
    yield f"turn(a{angle}, s{angle}, c{angle});"


def checked(name: str, low: float, high: float, code: int, dtype: str) -> Iterator[str]:
    """Keep the first code of a check that fails."""
    inside = condition(name, low, high, dtype)
    if inside:
        failed = f"{name} == {name} ? {code} : {status.RESULT}"
        yield f"if (!({inside}) && !code) code = {failed};"


class Constants:
    """Constants as literals, or as entries of a table in constant memory.

    Args:
        dtype: "float32" or "float64".
        tabled: Whether numbers that do not fit into an instruction go to the table.
    """

    def __init__(self, dtype: str, tabled: bool) -> None:
        self.dtype, self.tabled = dtype, tabled
        self.table: dict[str, int] = {}

    def __call__(self, value: float) -> str:
        """The text of a constant."""
        literal = number(value, self.dtype)
        if not self.tabled or struct.unpack("<II", struct.pack("<d", value))[0] == 0:
            return literal
        return f"table[{self.table.setdefault(literal, len(self.table))}]"

    def declared(self) -> list[str]:
        """The declaration of the table, if there is one."""
        numbers = ", ".join(self.table)
        return [f"__constant__ T table[] = {{{numbers}}};\n"] if self.table else []


def loop_round(index: int, loop: Loop, dtype: str, *, inline: bool = False) -> str:
    """The function of one round of a loop: x and again from x and what is given.

    Where it is inline, x and what is given are in registers.
    """
    traced: Traced = loop.body
    graph, name = traced.graph, dict[int, str]()
    lines, turned = list[str](), set[int]()
    for n in graph.used(traced.roots):
        op, a = graph.op[n], graph.a[n]
        if op == "const":
            name[n] = number(graph.value[n], dtype)
            continue
        if op in ("sin", "cos"):
            name[n] = f"{op[0]}{a}"
            lines += turn(a, name[a]) if a not in turned else ()
            turned.add(a)
            continue
        name[n] = f"t{n}"
        if op == "input":
            source = f"x[{a}]" if a < loop.size else f"given[{a - loop.size}]"
            lines.append(f"const T t{n} = {source};")
        else:
            names = [name[x] for x in graph.arguments(n)]
            lines.append(f"const T t{n} = {operation(op, names, dtype)};")
    lines += [f"x[{i}] = {name[n]};" for i, n in enumerate(traced.outputs)]
    kind = "__forceinline__" if inline else "__noinline__"
    head = f"__device__ {kind} void round{index}(T *x, const T *given)"
    return "\n".join([head, "{", *(f"    {line}" for line in lines), "}", ""])
