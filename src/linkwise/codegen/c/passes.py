"""Passes over a memory (`scalar/passes.py`) as C: functions for rounds, and one for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from linkwise.codegen.scalar.passes import Pass, Passes
from linkwise.codegen.scalar.trace import Traced

Body = Callable[[Traced, str, list[str]], Iterator[str]]
"""The functions that a graph needs and its statements, from names of its inputs into y."""


def functions(passes: Passes, name: str, kind: str, body: Body) -> Iterator[str]:
    """The functions of passes, of which `NAME(m)` runs all.

    Args:
        passes: The passes.
        name: Of the function.
        kind: The C type of a number.
        body: Writes the functions of a graph, and last the lines of its statements.
    """
    known = dict[object, str]()
    for i, x in enumerate(passes.passes):
        key = (id(x.body), x.reads, x.writes, x.width)
        if key not in known:
            known[key] = f"{name}_round{i}"
            yield from _round(x, known[key], kind, body)
        yield _table(x, f"{name}_{i}")
    lines = [f"static void {name}({kind} *m)", "{", "    int i;"]
    if any(x.width > 1 for x in passes.passes):
        lines.append("    int j;")
    for i, x in enumerate(passes.passes):
        called = known[id(x.body), x.reads, x.writes, x.width]
        lines.append(f"    for (i = 0; i < {len(x.rows)}; ++i) {{")
        if x.width > 1:
            lines.append(f"        for (j = 0; j < {x.width}; ++j) {{")
            lines += [f"            {called}(m, {name}_{i}[i], j);", "        }"]
        else:
            lines.append(f"        {called}(m, {name}_{i}[i], 0);")
        lines.append("    }")
    yield "\n".join([*lines, "}", ""])


def _table(x: Pass, name: str) -> str:
    """The addresses of all rounds."""
    rows = [f"    {{{', '.join(map(str, row))}}}" for row in x.rows]
    head = f"static const int {name}[{len(x.rows)}][{len(x.rows[0])}] = {{"
    return "\n".join([head, ",\n".join(rows), "};", ""])


def _round(x: Pass, name: str, kind: str, body: Body) -> Iterator[str]:
    pieces = (*x.reads, *x.writes)
    entries = [
        f"p{p}[{k * piece.stride}]" for p, piece in enumerate(x.reads) for k in range(piece.count)
    ]
    places = [
        f"p{p}[{k * piece.stride}]"
        for p, piece in enumerate(x.writes, len(x.reads))
        for k in range(piece.count)
    ]
    *functions, statements = body(x.body, name, entries)
    yield from functions
    lines = list[str]()
    for p, piece in enumerate(pieces):
        is_read, column = p < len(x.reads), " + j" if piece.step else ""
        if not is_read or f"p{p}[" in statements:  # some numbers of a block are not needed
            const = "const " if is_read else ""
            lines.append(f"    {const}{kind} *const p{p} = m + at[{p}]{column};")
    lines += [f"    {kind} y[{len(places)}];", "    (void)j;", statements]
    lines += [f"    {place} = y[{i}];" for i, place in enumerate(places)]
    head = f"static void {name}({kind} *m, const int *at, int j)"
    yield "\n".join([head, "{", *lines, "}", ""])
