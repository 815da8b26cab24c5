"""From a scalar graph to C: one header and one C99 source that need nothing but math.h.

The function is straight-line code in the order of the graph. Inputs are read before the first
output is written, so that `out` may be one of the inputs. A product that is used once is fused into
its sum where the machine does that fast (FP_FAST_FMA); sines and cosines are computed together, by
the method of `sincos.py`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from linkwise.algebra.derivation import Derivation
from linkwise.algebra.expr import Expr
from linkwise.codegen.c.header import Interface, code_name, header, of_kernel
from linkwise.codegen.c.passes import functions
from linkwise.codegen.c.selftest import selftest
from linkwise.codegen.c.text import check_identifier, comment, condition, number, operation
from linkwise.codegen.cpu import sincos
from linkwise.codegen.formula import Formula
from linkwise.codegen.scalar.graph import Loop
from linkwise.codegen.scalar.passes import Passes
from linkwise.codegen.scalar.trace import Traced
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.sweeps.program import Program

DType = Literal["float64", "float32"]

LARGEST_ANGLE = 2e4
"""Angles beyond this go to the C library [rad]; up to it k fits in 16 bits."""

LONG, PART = 5000, 1000
"""Operations of a function that is written in parts, and of a part: the time of compilers grows
with the square of the length of straight code."""

SINCOS = """
/* Sines and cosines: x = k pi/2 + r with |r| <= pi/4; then k quarters of a turn, exactly. */
static void {name}_sincos(int count, const double *angle, double *sine, double *cosine)
{{
    int i, large = 0;
    for (i = 0; i < count; ++i) {{
        const double x = fabs(angle[i]) <= {largest} ? angle[i] : 0.0;
        const int k = (int)(x * {two_over_pi} + copysign(0.5, x));
        const int quarter = (int)((unsigned)k & 3u);
        const double cos_k = (1 - quarter) * (1 - (quarter & 1));
        const double sin_k = (2 - quarter) * (quarter & 1);
        double r, r2, s, c;
        r = FNMA((double)k, {parts[0]}, x);
        r = FNMA((double)k, {parts[1]}, r);
        r = FNMA((double)k, {parts[2]}, r);
        r2 = r * r;
{sine}
{cosine}
        s = FMA(r * r2, s, r);
        c = FMA(r2, c, 1.0);
        sine[i] = s * cos_k + c * sin_k;
        cosine[i] = c * cos_k - s * sin_k;
        large |= fabs(angle[i]) > {largest};
    }}
    if (large) {{
        for (i = 0; i < count; ++i) {{
            sine[i] = sin(angle[i]);
            cosine[i] = cos(angle[i]);
        }}
    }}
}}
"""

SHORT_SINCOS = """
static void {name}_sincos(int count, const float *angle, float *sine, float *cosine)
{{
    int i;
    for (i = 0; i < count; ++i) {{
        sine[i] = sinf(angle[i]);
        cosine[i] = cosf(angle[i]);
    }}
}}
"""

TROUBLE = """
/* All entries are NaN where there is no result. */
static int {name}_trouble({type} *out, int status)
{{
    int i;
    for (i = 0; i < {size}; ++i) {{
        out[i] = {nan};
    }}
    return status;
}}
"""

FUSED = """#ifdef {macro}
#define FMA(x, y, z) {fma}((x), (y), (z))
#define FMS(x, y, z) {fma}((x), (y), -(z))
#define FNMA(x, y, z) {fma}(-(x), (y), (z))
#else
#define FMA(x, y, z) ((x) * (y) + (z))
#define FMS(x, y, z) ((x) * (y) - (z))
#define FNMA(x, y, z) ((z) - (x) * (y))
#endif
"""


def emit_c(
    traced: Traced,
    name: str,
    *,
    mech: Mechanism,
    made: tuple[Derivation, Program] | Formula,
    nodes: Sequence[str] = (),
    title: str = "",
    unit: str = "",
    dtype: DType = "float64",
    results: Sequence[tuple[str, Expr]] = (),
    states: int = 4,
    seed: int = 0,
) -> tuple[str, str]:
    """The header and the source of one function.

        int NAME(const double *q, const double *v, ..., double *out);

    It returns a code of `status.py`, 0 for success; otherwise every number of `out` is NaN.
    Numbers of the mechanism that stay inputs follow the vectors (`parameters.py`). Compiled with
    -DNAME_SELFTEST (capitals) the source has a main that compares the function with values of the
    sweep interpreter and returns 0 if they agree.

    Args:
        traced: The scalar graph.
        name: Of the function and the files, a C identifier.
        mech: The mechanism that the graph is of.
        made: Its origin: the derivation from the expression to the form that was traced, and its
            sweeps; or a formula.
        nodes: Nodes of the space NODE, in order.
        title: What it computes, in words.
        unit: Kind of the result, for its units: a key of `c_header.KINDS`, or "".
        dtype: "float64", or "float32" for float, sinf and cosf.
        results: Name and expression of several results, which are concatenated.
        states: Random states of the self-test.
        seed: For them.

    Raises:
        ModelError: The name is not a C identifier, or there is nothing to compute.
        LoweringError: The graph has an operation or a constant that C has no form for.
    """
    if not traced.outputs:
        raise ModelError(
            f"there is nothing to compute: on {mech.name!r}, with {mech.nv} degrees of freedom and "
            f"{len(nodes)} nodes, {_what(made)} has shape {traced.shape}."
        )
    program = None if isinstance(made, Formula) else made[1]
    names = made.names if isinstance(made, Formula) else tuple(name for name, _ in results)
    formulas = tuple(f"{name} = {expr}" for name, expr in results)
    labels = (names, formulas)
    face = of_kernel(traced, check_identifier(name), mech, program, nodes, unit, dtype, *labels)
    parts = [
        comment([face.mark, "", f"{face.name}: see {face.name}.h."]),
        f'#include "{face.name}.h"\n\n#include <math.h>\n',
        fused(dtype),
        *function(traced, face),
    ]
    ops = Counter(traced.graph.count(traced.roots))
    parts.append(selftest(traced, face, mech, program, nodes, states, seed))
    shown = "" if isinstance(made, Formula) else str(made[0])
    text = header(face, mech, _what(made), shown, nodes, title, ops, _signature(face))
    return text, "\n".join(parts)


def fused(dtype: str) -> str:
    """The macros FMA, FMS and FNMA, which `function` uses."""
    macro = "FP_FAST_FMA" if dtype == "float64" else "FP_FAST_FMAF"
    return FUSED.format(macro=macro, fma="fma" if dtype == "float64" else "fmaf")


def function(traced: Traced, face: Interface, *, static: bool = False) -> Iterator[str]:
    """One function with its helpers; the macros of the interface must be defined before."""
    nan = "(double)NAN" if face.dtype == "float64" else "NAN"
    yield TROUBLE.lstrip().format(
        name=face.name, type=face.type, size=face.macro("OUT_SIZE"), nan=nan
    )
    ops = traced.graph.count(traced.roots)
    if ops["sin"] + ops["cos"]:
        yield sincos_function(face.name, face.dtype)
    body = Straight(traced, face)
    lines = list(body.lines())
    yield from body.rounds
    yield "\n".join([("static " if static else "") + _signature(face), "{", *lines, "}", ""])


def _what(made: tuple[Derivation, Program] | Formula) -> str:
    return str(made) if isinstance(made, Formula) else str(made[0].start)


def _signature(face: Interface) -> str:
    arguments = [f"const {face.type} *{x.identifier}" for x in face.inputs]
    return f"int {face.name}({', '.join([*arguments, f'{face.type} *out'])})"


def sincos_function(name: str, dtype: str) -> str:
    """The function NAME_sincos."""
    if dtype == "float32":
        return SHORT_SINCOS.lstrip().format(name=name)

    def horner(letter: str, coefficients: Sequence[float]) -> str:
        last, *rest = [repr(c) for c in reversed(coefficients)]
        steps = [f"{letter} = {last};", *(f"{letter} = FMA({letter}, r2, {c});" for c in rest)]
        return "\n".join(f"        {step}" for step in steps)

    return SINCOS.lstrip().format(
        name=name,
        largest=repr(LARGEST_ANGLE),
        two_over_pi=repr(2.0 / math.pi),
        parts=[repr(p) for p in sincos.DOUBLES.parts],
        sine=horner("s", sincos.DOUBLES.sine),
        cosine=horner("c", sincos.DOUBLES.cosine),
    )


@dataclass(slots=True)
class Straight:
    """The statements of the function."""

    traced: Traced
    face: Interface
    name: str = ""  # of functions that are made for parts; default: that of the interface
    rounds: list[str] = field(default_factory=lambda: [])
    looped: set[int] = field(default_factory=lambda: set())

    def lines(self) -> Iterator[str]:
        """All of them."""
        named = dict[int, str]()
        yield from self._input_checks()
        entries = [f"{x.identifier}[{j}]" for x in self.face.inputs for j in range(x.size)]
        yield from self.straight(entries, "out", named)
        yield from self._checks(named)
        yield from self._result_check()

    def straight(self, entries: list[str], out: str, named: dict[int, str]) -> Iterator[str]:
        """From inputs to outputs; `named` gets what each node is called."""
        traced, face = self.traced, self.face
        needed = traced.graph.used(traced.roots)
        value, fused = self._loaded(needed, entries), self._fused(needed)
        for node, text in value.items():
            if traced.graph.op[node] == "input":
                yield f"    const {face.type} {text[0]} = {text[1]};"
        named |= {node: text[0] for node, text in value.items()}
        places: dict[int, list[str]] = {}
        for i, node in enumerate(traced.outputs):
            places.setdefault(node, []).append(f"{out}[{i}]")
        memories = self._memories()
        for k, passes in memories.items():
            for node, at in zip(passes.inputs, passes.places, strict=True):
                places.setdefault(node, []).append(f"m{k}[{at}]")
        yield from self._angles(needed, named, fused)
        if len(needed) > LONG and len(memories) == len(traced.graph.loops):
            yield from self._in_parts(needed, named, fused, places, out)
            return
        yield from (f"    {face.type} m{k}[{x.size}];" for k, x in memories.items())
        for node in needed:
            if node not in named and node not in fused:
                yield from self._node(node, named, fused)
            yield from (f"    {place} = {named[node]};" for place in places.get(node, ()))

    def _memories(self) -> dict[int, Passes]:
        """Loops that are passes, each of which has a memory."""
        loops = enumerate(self.traced.graph.loops)
        return {k: x for k, x in loops if isinstance(x, Passes)}

    def _in_parts(
        self,
        needed: list[int],
        named: dict[int, str],
        fused: dict[int, int],
        places: dict[int, list[str]],
        out: str,
    ) -> Iterator[str]:
        """The same in several functions, which share an array of the values that cross them."""
        graph, kind, name = self.traced.graph, self.face.type, self.name or self.face.name
        rest = [node for node in needed if node not in named and node not in fused]
        part = {node: i // PART for i, node in enumerate(rest)}
        crossing = dict.fromkeys(check.node for check in self.traced.checks if check.node in part)
        for node in rest:
            for x in () if graph.op[node] == "part" else graph.arguments(node):
                for y in graph.arguments(x) if x in fused else (x,):
                    if part.get(y) != part[node] and graph.op[y] != "const":
                        crossing[y] = None
        # numbers in the memory of passes are there already
        crossing = [node for node in crossing if graph.op[node] != "part"]
        shared = {node: f"s[{i}]" for i, node in enumerate(crossing)}
        memories, size = list[str](), len(shared)
        for k, passes in self._memories().items():
            memories.append(f"    {kind} *const m{k} = s + {size};")
            size += passes.size
        yield f"    {kind} s[{max(size, 1)}];"
        yield from memories
        yield from (f"    {shared[x]} = {named[x]};" for x in shared if x in named)
        for node in (node for node in places if node in named):
            yield from (f"    {place} = {named[node]};" for place in places[node])
        quiet = [f"    (void)m{k};" for k in self._memories()]
        inner = {node: shared.get(node, text) for node, text in named.items()}
        count = (len(rest) + PART - 1) // PART
        for k in range(count):
            lines = [f"static void {name}_part{k}({kind} *s, {kind} *{out})", "{"]
            lines += [f"    (void){out};", *memories, *quiet]
            for node in rest[k * PART : (k + 1) * PART]:
                lines += self._node(node, inner, fused)
                lines += [f"    {place} = {inner[node]};" for place in places.get(node, ())]
                lines += [f"    {shared[node]} = {inner[node]};"] if node in shared else []
            inner |= shared
            self.rounds.append("\n".join([*lines, "}", ""]))
        listed = ", ".join(f"{name}_part{k}" for k in range(count))
        table = f"static void (*const {name}_parts[{count}])({kind} *, {kind} *)"
        self.rounds.append(f"{table} = {{\n    {listed}}};\n")
        yield f"    for (i = 0; i < {count}; ++i) {{"
        yield f"        {name}_parts[i](s, {out});"
        yield "    }"
        named |= {node: text for node, text in inner.items() if graph.op[node] == "part"} | shared

    def _loop(self, number_: int, named: dict[int, str]) -> Iterator[str]:
        """All rounds of a loop; x and again are in an array from then on."""
        loop, kind = self.traced.graph.loops[number_], self.face.type
        assert isinstance(loop, Loop)
        zero = number(0.0, self.face.dtype)
        name, array = f"{self.face.name}_round{len(self.rounds)}", f"loop{number_}"
        inner, size = Straight(loop.body, self.face), loop.size
        entries = [f"x[{i}]" for i in range(size)]
        entries += [f"given[{i}]" for i in range(len(loop.inputs) - size - 1)]
        lines = list(inner.straight(entries, "x", {}))
        head = f"static void {name}({kind} *x, const {kind} *given)"
        quiet = [] if len(loop.inputs) > size + 1 else ["    (void)given;"]
        self.rounds += [*inner.rounds, "\n".join([head, "{", *quiet, *lines, "}", ""])]
        start = [named[n] for n in loop.inputs[: size + 1]]
        given = [named[n] for n in loop.inputs[size + 1 :]] or [zero]
        yield f"    {kind} {array}[{size + 1}] = {{{', '.join(start)}}};"
        yield f"    const {kind} {array}_given[{len(given)}] = {{{', '.join(given)}}};"
        yield f"    for (i = 0; i < {loop.most} && {array}[{size}] > {zero}; ++i) {{"
        yield f"        {name}({array}, {array}_given);"
        yield "    }"

    def _pass(self, number_: int, which: int) -> Iterator[str]:
        """All passes over a memory, where their first result is requested."""
        if which:
            return
        name = f"{self.name or self.face.name}_passes{number_}"

        def body(traced: Traced, name: str, entries: list[str]) -> Iterator[str]:
            inner = Straight(traced, self.face, name)
            lines = list(inner.straight(entries, "y", {}))
            if any("(i = 0;" in line for line in lines):
                lines.insert(0, "    int i;")
            yield from inner.rounds
            yield "\n".join(lines)

        passes = self._memories()[number_]
        self.rounds += functions(passes, name, self.face.type, body)
        yield f"    {name}(m{number_});"

    def _input_checks(self) -> Iterator[str]:
        face = self.face
        if any(x.size for x in face.inputs):
            yield "    int i;"
        for x in face.inputs:
            if not x.size:
                yield f"    (void){x.identifier};"
                continue
            yield f"    for (i = 0; i < {face.macro(x.identifier, 'SIZE')}; ++i) {{"
            yield f"        if (!isfinite({x.identifier}[i])) {{"
            yield f"            return {self._trouble('INPUT_NOT_FINITE')};"
            yield "        }"
            yield "    }"

    def _checks(self, named: dict[int, str]) -> Iterator[str]:
        """low < value < high, in the order they were met: what fails first makes others fail."""
        for check in self.traced.checks:
            value = named[check.node]
            inside = condition(value, check.low, check.high, self.face.dtype)
            yield f"    if (!({inside})) {{"
            code = self.face.macro(code_name(check.code))
            large = self.face.macro("RESULT_NOT_FINITE")
            status = f"isnan({value}) ? {large} : {code}"
            yield f"        return {self.face.name}_trouble(out, {status});"
            yield "    }"

    def _trouble(self, code: str) -> str:
        return f"{self.face.name}_trouble(out, {self.face.macro(code)})"

    def _result_check(self) -> Iterator[str]:
        size = self.face.macro("OUT_SIZE")
        index = "i = 0" if any(x.size for x in self.face.inputs) else "int i = 0"
        yield f"    for ({index}; i < {size}; ++i) {{"
        yield "        if (!isfinite(out[i])) {"
        yield f"            return {self._trouble('RESULT_NOT_FINITE')};"
        yield "        }"
        yield "    }"
        yield f"    return {self.face.macro('OK')};"

    def _loaded(self, needed: list[int], entries: list[str]) -> dict[int, tuple[str, str]]:
        """Inputs by the entry they are read from, and constants."""
        graph = self.traced.graph
        loaded: dict[int, tuple[str, str]] = {}
        for node in needed:
            if graph.op[node] == "input":
                loaded[node] = (f"x{graph.a[node]}", entries[graph.a[node]])
            elif graph.op[node] == "const":
                loaded[node] = (number(graph.value[node], self.face.dtype), "")
        return loaded

    def _fused(self, needed: list[int]) -> dict[int, int]:
        """Products that are used once, by a sum: each with that sum, of two the later one."""
        graph = self.traced.graph
        uses = Counter(self.traced.roots)
        for node in needed:
            uses.update(graph.arguments(node))
        fused: dict[int, int] = {}
        for node in needed:
            if graph.op[node] in ("add", "sub"):
                pair = (graph.a[node], graph.b[node])
                products = [x for x in pair if graph.op[x] == "mul" and uses[x] == 1]
                if products:
                    fused[max(products)] = node
        return fused

    def _angles(
        self, needed: list[int], named: dict[int, str], fused: dict[int, int]
    ) -> Iterator[str]:
        """Sines and cosines first, in one loop: that is faster."""
        graph, kind = self.traced.graph, self.face.type
        turned = [n for n in needed if self._is_turn(n) and not self._turns_before(n)]
        angles = sorted({graph.a[n] for n in turned})
        if not angles:
            return
        for node in graph.used(angles):
            if node not in named and node not in fused:
                yield from self._node(node, named, fused)
        count = len(angles)
        yield f"    {kind} sine[{count}], cosine[{count}];"
        yield f"    const {kind} angle[{count}] = {{{', '.join(named[a] for a in angles)}}};"
        yield f"    {self.face.name}_sincos({count}, angle, sine, cosine);"
        for node in turned:
            part = "sine" if graph.op[node] == "sin" else "cosine"
            named[node] = f"t{node}"
            yield f"    const {kind} t{node} = {part}[{angles.index(graph.a[node])}];"

    def _is_turn(self, node: int) -> bool:
        return self.traced.graph.op[node] in ("sin", "cos")

    def _turns_before(self, node: int) -> bool:
        """Whether an angle is itself made of sines."""
        graph = self.traced.graph
        return any(self._is_turn(n) for n in graph.used([graph.a[node]]))

    def _node(self, node: int, named: dict[int, str], fused: dict[int, int]) -> Iterator[str]:
        graph = self.traced.graph
        if graph.op[node] == "part" and isinstance(graph.loops[graph.a[node]], Passes):
            yield from self._pass(graph.a[node], graph.b[node])
            passes = self._memories()[graph.a[node]]
            named[node] = f"m{graph.a[node]}[{passes.outputs[graph.b[node]]}]"
            return
        if graph.op[node] == "part":
            if graph.a[node] not in self.looped:
                self.looped.add(graph.a[node])
                yield from self._loop(graph.a[node], named)
            named[node] = f"loop{graph.a[node]}[{graph.b[node]}]"
            return
        formula = self._formula(graph.op[node], graph.a[node], graph.b[node], named, fused)
        named[node] = f"t{node}"
        yield f"    const {self.face.type} t{node} = {formula};"

    def _formula(
        self, op: str, a: int, b: int, named: dict[int, str], fused: dict[int, int]
    ) -> str:
        face = self.face
        if op in ("add", "sub"):
            graph = self.traced.graph
            if b in fused:
                form = "FMA" if op == "add" else "FNMA"
                return f"{form}({named[graph.a[b]]}, {named[graph.b[b]]}, {named[a]})"
            if a in fused:
                form = "FMA" if op == "add" else "FMS"
                return f"{form}({named[graph.a[a]]}, {named[graph.b[a]]}, {named[b]})"
            return f"{named[a]} {'+' if op == 'add' else '-'} {named[b]}"
        if op in ("sin", "cos"):
            return f"{face.function(op)}({named[a]})"
        zero, one = number(0.0, face.dtype), number(1.0, face.dtype)
        names = [named[x] for x in (a, b) if x >= 0]
        return operation(op, names, zero, f"{one} / {{}}", f"{face.function('sqrt')}({{}})")
