"""C text with the interface of CasADi's external functions, for `casadi.external`.

For a function f there are up to four, each with its sparsity:

    f            the results o of the inputs i
    jac_f        jac_o_i for each result and input
    adj1_f       adj_i, the gradients of a weighted sum of the results
    jac_adj1_f   its second derivatives: jac_adj_i_j, and jac_adj_i_adj_o = (jac_o_i)*

Each calls a function of plain arrays, written as by `lw.compile(..., target="c")`. Arguments that
CasADi leaves out are zeros, and results that nobody needs are not computed. There is no memory but
the work array that CasADi provides and the stack. A status other than 0 is an error in CasADi; an
optimizer shortens its step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import prod

from linkwise.codegen.c.emit import function, fused
from linkwise.codegen.c.header import MARK, Entries, Interface, macros, version
from linkwise.codegen.c.text import check_identifier, comment, distinct, plain_name
from linkwise.codegen.request import Request
from linkwise.convert.smooth import Block, Blocks, Smooth

OPENING = """#include <math.h>
#include <stddef.h>

typedef double casadi_real;
typedef long long int casadi_int;

#ifdef _WIN32
#define CASADI_EXPORT __declspec(dllexport)
#else
#define CASADI_EXPORT
#endif
"""

FIXED = """
CASADI_EXPORT int {f}_checkout(void) {{ return 0; }}
CASADI_EXPORT void {f}_release(int mem) {{ (void)mem; }}
CASADI_EXPORT void {f}_incref(void) {{ }}
CASADI_EXPORT void {f}_decref(void) {{ }}
CASADI_EXPORT casadi_int {f}_n_in(void) {{ return {n_in}; }}
CASADI_EXPORT casadi_int {f}_n_out(void) {{ return {n_out}; }}
CASADI_EXPORT int {f}_work(casadi_int *arg, casadi_int *res, casadi_int *iw, casadi_int *w)
{{
    if (arg) *arg = {n_in};
    if (res) *res = {n_out};
    if (iw) *iw = 0;
    if (w) *w = {work};
    return 0;
}}"""

HEAD = (
    "CASADI_EXPORT int {}(const casadi_real **arg, casadi_real **res, casadi_int *iw, "
    "casadi_real *w, int mem)"
)


@dataclass(frozen=True, slots=True)
class _Copy:
    """A result that is a part of what a plain function computes."""

    result: int  # which one
    places: Sequence[int]  # of its entries in the numbers of the function


@dataclass(frozen=True, slots=True)
class _Call:
    """A plain function, and what becomes of its numbers."""

    face: Interface
    arguments: Sequence[int]  # which arguments it takes
    copies: list[_Copy]

    @property
    def size(self) -> int:
        """How many numbers it computes."""
        return self.face.shape[0]


@dataclass(slots=True)
class _Source:
    """The text as it grows; patterns of zeros that are alike are written once."""

    name: str
    parts: list[str] = field(default_factory=lambda: [])
    patterns: dict[str, str] = field(default_factory=lambda: {})

    def plain(self, suffix: str, made: Blocks) -> Interface:
        """A function of plain arrays."""
        traced = made.traced
        name = f"{self.name}_{suffix}"
        names = distinct((given for given, _ in traced.inputs), taken=(name.casefold(), "out"))
        pairs = zip(traced.inputs, names, strict=True)
        inputs = tuple(Entries(given, c_name, size, ()) for (given, size), c_name in pairs)
        codes = tuple(sorted({check.code for check in traced.checks}))
        face = Interface(name, "float64", inputs, (), (), traced.shape, "", codes, MARK)
        if traced.outputs:
            self.parts += ["\n".join(macros(face)) + "\n", *function(traced, face, static=True)]
        return face

    def external(
        self, f: str, inputs: Sequence[Block], results: Sequence[Block], calls: Iterable[_Call]
    ) -> None:
        """A function of CasADi: its value, sparsity and names."""
        calls = [call for call in calls if call.size]
        sides = [
            *(("in", i, block) for i, block in enumerate(inputs)),
            *(("out", i, block) for i, block in enumerate(results)),
        ]
        patterns = [(side, i, self._pattern(block)) for side, i, block in sides]
        lines = [HEAD.format(f), "{"]
        index = any(len(copy.places) for call in calls for copy in call.copies)
        lines += ["    int i, status;"] if index else []
        lines += [f"    (void){name};" for name in ("arg", "res", "iw", "w", "mem")]
        for call in calls:
            lines += self._called(call, len(results) == 1)
        self.parts.append("\n".join([*lines, "    return 0;", "}"]))
        work = max((call.size for call in calls), default=0)
        self.parts.append(FIXED.format(f=f, n_in=len(inputs), n_out=len(results), work=work))
        for side in ("in", "out"):
            names = [(i, f'"{block.name}"') for s, i, block in sides if s == side]
            shapes = [(i, pattern) for s, i, pattern in patterns if s == side]
            self.parts += [
                _table("const char *", f"{f}_name_{side}", names),
                _table("const casadi_int *", f"{f}_sparsity_{side}", shapes),
            ]
        self.parts.append("")

    def _called(self, call: _Call, alone: bool) -> Iterator[str]:
        """The lines that compute and copy results."""
        copies = [copy for copy in call.copies if len(copy.places)]
        out = "res[0]" if alone else "w"
        arguments = [f"arg[{i}] ? arg[{i}] : {self.name}_zeros" for i in call.arguments]
        yield f"    if ({' || '.join(f'res[{copy.result}]' for copy in copies)}) {{"
        yield f"        status = {call.face.name}("
        yield from (f"            {argument}," for argument in arguments)
        yield f"            {out});"
        yield "        if (status) return status;"
        for copy in [] if alone else copies:
            first, count = copy.places[0], len(copy.places)
            source = f"w[{first} + i]"
            if list(copy.places) != list(range(first, first + count)):
                table = f"{call.face.name}_to_{copy.result}"
                numbers = ", ".join(map(str, copy.places))
                self.parts.append(f"static const int {table}[{count}] = {{{numbers}}};")
                source = f"w[{table}[i]]"
            yield f"        for (i = 0; res[{copy.result}] && i < {count}; ++i) {{"
            yield f"            res[{copy.result}][i] = {source};"
            yield "        }"
        yield "        (void)i;"
        yield "    }"

    def _pattern(self, block: Block) -> str:
        """The name of the array with the rows, columns and entries of a matrix."""
        rows, columns = block.shape
        numbers = [rows, columns, *block.columns, *(row for row, _ in block.entries)]
        if len(block.entries) == rows * columns:
            numbers = [rows, columns, 1]  # no zeros
        text = ", ".join(map(str, numbers))
        if text not in self.patterns:
            self.patterns[text] = f"{self.name}_pattern{len(self.patterns)}"
            self.parts.append(
                f"static const casadi_int {self.patterns[text]}[{len(numbers)}] = {{{text}}};"
            )
        return self.patterns[text]


def casadi_source(request: Request, name: str, *, order: int = 2) -> str:
    """The C source of a function of CasADi with its derivatives.

    Args:
        request: The request of a kernel.
        name: Of the function, a C identifier.
        order: 1 for values and Jacobians, 2 with gradients and Hessians as well.
    """
    smooth = Smooth(request)
    source = _Source(check_identifier(name))
    sizes = zip(smooth.labels, smooth.inputs, strict=True)
    inputs = [Block(x, (n, 1), tuple((i, 0) for i in range(n))) for x, (_, n) in sizes]
    results, state = smooth.value.blocks, range(len(inputs))
    call = _Call(source.plain("value", smooth.value), state, _parts(smooth.value))
    source.external(name, inputs, results, [call])
    known = [Block(f"out_{x.name}", x.shape, ()) for x in results]
    jacobian = source.plain("jacobian", smooth.jacobian)
    call = _Call(jacobian, state, _parts(smooth.jacobian))
    source.external(f"jac_{name}", [*inputs, *known], smooth.jacobian.blocks, [call])
    if order > 1:
        weights = [Block(f"adj_{x.name}", x.shape, x.entries) for x in results]
        given = [*inputs, *known, *weights]
        taken = [*state, *range(len(given) - len(weights), len(given))]
        call = _Call(source.plain("gradient", smooth.gradient), taken, _parts(smooth.gradient))
        source.external(f"adj1_{name}", given, smooth.gradient.blocks, [call])
        blocks, of_hessian, of_jacobian = _second(smooth)
        given += [Block(f"out_{x.name}", x.shape, ()) for x in smooth.gradient.blocks]
        hessian = source.plain("hessian", smooth.hessian)
        calls = [_Call(hessian, taken, of_hessian), _Call(jacobian, state, of_jacobian)]
        source.external(f"jac_adj1_{name}", given, blocks, calls)
    longest = max([1, *(len(x.entries) for x in (*inputs, *results))])
    zeros = f"static const casadi_real {name}_zeros[{longest}] = {{0.0}};\n"
    return "\n".join([_about(request, name), OPENING, fused("float64"), zeros, *source.parts])


def _parts(made: Blocks) -> list[_Copy]:
    return [_Copy(i, range(s.start, s.stop)) for i, (_, s) in enumerate(made.slices())]


def _second(smooth: Smooth) -> tuple[list[Block], list[_Copy], list[_Copy]]:
    """The results of jac_adj1_f, and where they come from: Hessian and Jacobian.

    For each input i they are the derivatives of adj_i by all inputs, by the results out_o, which it
    does not depend on, and by the weights adj_o.
    """
    blocks, of_hessian, of_jacobian = list[Block](), list[_Copy](), list[_Copy]()
    hessian, jacobian = iter(smooth.hessian.slices()), list(smooth.jacobian.slices())
    results, n = smooth.value.blocks, len(smooth.labels)
    for i, (label, (_, size)) in enumerate(zip(smooth.labels, smooth.inputs, strict=True)):
        for block, part in islice(hessian, n):
            of_hessian.append(_Copy(len(blocks), range(part.start, part.stop)))
            blocks.append(block)
        for x in results:
            blocks.append(Block(f"jac_adj_{label}_out_{x.name}", (size, prod(x.shape)), ()))
        for x, (block, part) in zip(results, jacobian[i::n], strict=True):
            places = {(c, r): part.start + k for k, (r, c) in enumerate(block.entries)}
            kept = sorted(places, key=lambda place: place[::-1])
            of_jacobian.append(_Copy(len(blocks), [places[place] for place in kept]))
            name = f"jac_adj_{label}_adj_{x.name}"
            blocks.append(Block(name, (size, prod(x.shape)), tuple(kept)))
    return blocks, of_hessian, of_jacobian


def _about(request: Request, name: str) -> str:
    return comment(
        [
            f"{MARK} {version()}; do not edit.",
            "",
            f"{name}: an external function of CasADi, of {plain_name(request.mech.name)}:",
            "",
            f"    {request.what}",
            "",
            f"    cc -std=c99 -O1 -march=native -shared -fPIC {name}.c -o {name}.so -lm",
            f'    f = casadi.external("{name}", "./{name}.so")',
            "",
            "Quaternions are divided by their length; derivatives are by all entries of inputs.",
            "No memory but CasADi's work array and the stack, and no state: several threads may",
            "call it. Do not compile with -ffast-math, which assumes finite numbers.",
        ]
    )


def _table(kind: str, name: str, entries: Sequence[tuple[int, str]]) -> str:
    """A function from a number to an entry."""
    cases = [f"    case {i}: return {entry};" for i, entry in entries]
    head = f"CASADI_EXPORT {kind}{name}(casadi_int i)"
    return "\n".join(
        [head, "{", "    switch (i) {", *cases, "    default: return NULL;", "    }", "}"]
    )
