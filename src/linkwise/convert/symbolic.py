"""Formulas of SymPy for whatever a kernel computes, on a small mechanism.

The scalar graph of a kernel is evaluated on quotients of polynomials with exact fractions as
coefficients. Sines and cosines are generators with s² + c² = 1, so that equal entries become the
same polynomial, and each is written in the shortest of its forms (`trigonometric.py`).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any, cast

from linkwise.codegen.formula import TooLongError
from linkwise.codegen.scalar.parameters import INERTIA
from linkwise.codegen.stages import MOST_BODIES, traced as traced_of
from linkwise.convert.trigonometric import SHORT, Generators, Polynomial, without_squares
from linkwise.errors import MissingExtraError, ModelError, ShapeError, unknown_name
from linkwise.pipeline import Quantity, Tree, requested, written_by

if TYPE_CHECKING:
    from linkwise.codegen.scalar.trace import Traced
    from linkwise.sweeps.result_part import Names

MOST_TERMS = 1500
"""Terms of the longest formula that is multiplied out."""

TEN = ("m", "mcx", "mcy", "mcz", "Jxx", "Jyy", "Jzz", "Jxy", "Jxz", "Jyz")


@dataclass(frozen=True, slots=True, eq=False)
class Symbolic:
    """Formulas of SymPy, by name of the result.

    Attributes:
        values: For each result its formulas: a matrix (a column for a vector), a formula for a
            single number, an array for what has more than two axes. A result without a name is
            called "value".
        symbols: The symbols of each input array: {"q": (q_1, q_2), "v": ...}.
    """

    values: dict[str, Any]
    symbols: dict[str, tuple[Any, ...]]

    @property
    def value(self) -> Any:
        """The formulas of the only result."""
        if len(self.values) != 1:
            raise ModelError(
                f"there are {len(self.values)} results, {', '.join(self.values)}; index by name."
            )
        return next(iter(self.values.values()))

    def __getitem__(self, name: str) -> Any:
        if not isinstance(cast(object, name), str) or name not in self.values:
            raise unknown_name("result", name, self.values, owner="this Symbolic")
        return self.values[name]

    def latex(self, name: str | None = None) -> str:
        """One result in LaTeX; default: the only one.

        Args:
            name: Name of the result.
        """
        return _sympy().latex(self.value if name is None else self[name])

    def __str__(self) -> str:
        return "\n".join(f"{name} = {value}" for name, value in self.values.items())

    def __repr__(self) -> str:
        taken = ", ".join(f"{name} ({len(each)})" for name, each in self.symbols.items())
        return f"<Symbolic: {', '.join(self.values)} of {taken}>"


def to_sympy(
    expr: Quantity,
    mech: Tree,
    *,
    nodes: Sequence[str] = (),
    rows: Names | None = None,
    columns: Names | None = None,
    parameters: Sequence[str] = (),
    derive: bool = True,
    given: Mapping[str, Sequence[Any]] | None = None,
    named: bool = False,
    simplify: bool = True,
) -> Symbolic:
    """An expression of a small mechanism as formulas of SymPy.

        lw.convert.to_sympy({"M": mass, "c": bias}, lw.models.pendulum(2))["M"]

    Numbers of the mechanism become fractions if they are short ones, else decimal numbers. Each
    entry is simplified. Parameters stay symbols: with `parameters=["inertia"]` the masses, first
    moments and tensors of all bodies, with "gravity" its three components.

    Args:
        expr: As in `lw.compile`: an expression, several by name, or a formula.
        given: Symbols, formulas or numbers for the entries of inputs, by name of the input, instead
            of symbols such as q_1, v_1, tau_1: {"gravity": [0, 0, -g]}.
        named: Whether symbols are called after hinges and bodies instead of numbered.
        simplify: False leaves formulas as they are computed, nested, with what entries share: for
            mechanisms whose formulas are too long to be multiplied out.

    Raises:
        MissingExtraError: SymPy is not installed: the extra `sympy`.
    """
    sp = _sympy()
    request = requested(
        expr, mech, nodes=nodes, rows=rows, columns=columns, parameters=parameters, derive=derive
    )
    try:
        with written_by(expr):
            traced = traced_of(request)
    except TooLongError:
        raise ModelError(
            f"to_sympy was given {mech.name!r} with {mech.n_bodies} bodies; formulas are for small "
            f"mechanisms, {MOST_BODIES} bodies at most."
        ) from None
    symbols = dict[str, tuple[Any, ...]]()
    for name, size in traced.inputs:
        labels = _labels(mech, name, size, named)
        symbols[name] = tuple(sp.Symbol(x, **_assumed(x)) for x in labels)
    for name, values in (given or {}).items():
        if name not in symbols:
            raise unknown_name("input", name, symbols, owner="to_sympy(given=...)")
        if len(values) != len(symbols[name]):
            raise ShapeError(
                f"given[{name!r}] has {len(values)} entries; it must have {len(symbols[name])}."
            )
        symbols[name] = tuple(sp.sympify(x) for x in values)
    inputs = [x for each in symbols.values() for x in each]
    formulas = (
        _Evaluation(traced, inputs, sp).outputs() if simplify else _nested(traced, inputs, sp)
    )
    names, shapes = request.names or ("value",), traced.parts or (traced.shape,)
    values, start = dict[str, Any](), 0
    for name, shape in zip(names, shapes, strict=True):
        size = prod(shape)
        values[name] = _shaped(formulas[start : start + size], shape, sp)
        start += size
    return Symbolic(values, symbols)


def _sympy() -> Any:
    try:
        return importlib.import_module("sympy")
    except ImportError:
        raise MissingExtraError("to_sympy", package="sympy", extra="sympy") from None


def _shaped(entries: list[Any], shape: tuple[int, ...], sp: Any) -> Any:
    if not shape:
        return entries[0]
    if len(shape) <= 2:
        rows, columns = shape if len(shape) == 2 else (*shape, 1)
        return sp.ImmutableMatrix(rows, columns, entries)
    return sp.ImmutableDenseNDimArray(entries, shape)


def _labels(mech: Tree, name: str, size: int, named: bool) -> Iterator[str]:
    """The name of the symbol of each entry of an input."""
    bodies = [body.name if named else str(k) for k, body in enumerate(mech.bodies, 1)]
    velocities = mech.velocity_names if named else range(1, mech.nv + 1)
    if name == "gravity":
        yield from ("g_x", "g_y", "g_z")
    elif name == "inertia":
        yield from (f"{x}_{body}" for body in bodies for x in TEN)
    elif name.startswith("payload") and size == INERTIA:
        yield from (f"{x}_payload" for x in TEN)
    elif name == "q" and named:
        yield from (f"q_{x}" for x in getattr(mech, "mech", mech).coordinate_names)
    else:
        numbers = velocities if size == mech.nv and name != "q" else range(1, size + 1)
        yield from (f"{name}_{x}" for x in numbers)


def _assumed(label: str) -> dict[str, bool]:
    return {"positive": True} if label.startswith("m_") else {"real": True}


def _no_loop() -> ModelError:
    return ModelError("to_sympy was given a kernel with a loop, which has no formula.")


def _nested(traced: Traced, inputs: list[Any], sp: Any) -> list[Any]:
    """The outputs of a graph as they are computed."""
    graph, value = traced.graph, dict[int, Any]()
    unary: dict[str, Any] = {"sqrt": sp.sqrt, "sin": sp.sin, "cos": sp.cos}
    for node in graph.used(traced.outputs):
        op, a, b = graph.op[node], graph.a[node], graph.b[node]
        match op:
            case "const":
                exact = _fraction(graph.value[node])
                short = exact.denominator <= SHORT
                value[node] = sp.Rational(exact) if short else sp.Float(graph.value[node])
            case "input":
                value[node] = inputs[a]
            case "part":
                raise _no_loop()
            case "add":
                value[node] = value[a] + value[b]
            case "sub":
                value[node] = value[a] - value[b]
            case "mul":
                value[node] = sp.Mul(value[a], value[b], evaluate=False)
            case "neg":
                value[node] = -value[a]
            case "inv":
                value[node] = 1 / value[a]
            case "gate":
                value[node] = sp.Piecewise((value[b], value[a] > 0), (0, True))
            case _:
                value[node] = unary[op](value[a])
    return [value[node] for node in traced.outputs]


def _fraction(x: float) -> Fraction:
    """The shortest fraction, or decimal number, that differs from a number by rounding only."""
    exact = Fraction(x)
    forms = (exact.limit_denominator(SHORT), Fraction(f"{x:.15g}"), exact)
    return next(form for form in forms if abs(form - exact) <= 1e-15 * abs(exact))


@dataclass(slots=True)
class _Evaluation:
    """A graph on quotients of polynomials; a denominator None is 1."""

    traced: Traced
    inputs: list[Any]
    sp: Any
    formulas: list[Any] = field(default_factory=lambda: [])  # of the generators
    pairs: list[tuple[int, int, Any]] = field(default_factory=lambda: [])
    turned: dict[Any, tuple[int, int]] = field(default_factory=lambda: {})
    ring: Any = None

    def outputs(self) -> list[Any]:
        graph, outputs = self.traced.graph, self.traced.outputs
        used = graph.used(outputs)
        free: set[Any] = set[Any]().union(*(x.free_symbols for x in self.inputs))
        symbols = sorted(free, key=str)
        # One generator for each symbol and for what no polynomial is made of.
        opaque = [n for n in used if graph.op[n] in ("sin", "cos", "sqrt", "gate", "part", "input")]
        names = [f"x{i}" for i in range(len(symbols) + 2 * len(opaque))]
        rings = importlib.import_module("sympy.polys.rings")
        self.ring = rings.ring(names or ["x0"], self.sp.QQ)[0]
        self.formulas.extend(symbols)
        value = dict[int, tuple[Any, Any]]()
        for node in used:
            value[node] = self._node(node, value)
        known = dict[Any, Any]()
        for node in outputs:
            key = (value[node][0], value[node][1])
            if key not in known:
                known[key] = self._formula(value[node])
        return [known[value[node][0], value[node][1]] for node in outputs]

    def _node(self, node: int, value: dict[int, tuple[Any, Any]]) -> tuple[Any, Any]:
        graph = self.traced.graph
        op, a, b = graph.op[node], graph.a[node], graph.b[node]
        if op == "const":
            return self._constant(graph.value[node]), None
        if op == "input":
            return self._input(self.inputs[a]), None
        if op == "part":
            raise _no_loop()
        first = value[a]
        match op:
            case "add":
                return self._add(first, value[b])
            case "sub":
                return self._add(first, (-value[b][0], value[b][1]))
            case "mul":
                return self._multiply(first, value[b])
            case "neg":
                return -first[0], first[1]
            case "inv":
                return self._quotient(self.ring.one if first[1] is None else first[1], first[0])
            case "sin" | "cos":
                return self._turn(first, op == "cos"), None
            case "sqrt":
                return self._generator(self.sp.sqrt(self._formula(first))), None
            case _:
                sp, chosen = self.sp, (self._formula(value[b]), self._formula(first) > 0)
                return self._generator(sp.Piecewise(chosen, (0, True))), None

    def _constant(self, x: float) -> Any:
        number = _fraction(x)
        return self.ring.ground_new(self.sp.QQ(number.numerator, number.denominator))

    def _input(self, formula: Any) -> Any:
        """A number, a symbol, or a sum of products of them; anything else is a generator."""
        sp, places = self.sp, {x: i for i, x in enumerate(self.formulas)}
        formula = sp.nsimplify(formula, rational=True) if formula.is_number else formula
        if formula.is_Rational:
            return self.ring.ground_new(sp.QQ(formula.p, formula.q))
        if formula in places:
            return self.ring.gens[places[formula]]
        symbols = sorted(formula.free_symbols, key=str)
        if symbols and formula.is_polynomial(*symbols):
            total = self.ring.zero
            for powers, number in sp.Poly(formula, *symbols).terms():
                term = self._input(number)
                for x, n in zip(symbols, powers, strict=True):
                    term = term * self.ring.gens[places[x]] ** n
                total = total + term
            return total
        return self._generator(formula)

    def _generator(self, formula: Any) -> Any:
        if formula.is_Rational:
            return self.ring.ground_new(self.sp.QQ(formula.p, formula.q))
        if formula in self.formulas:
            return self.ring.gens[self.formulas.index(formula)]
        self.formulas.append(formula)
        return self.ring.gens[len(self.formulas) - 1]

    def _turn(self, angle: tuple[Any, Any], cosine: bool) -> Any:
        if angle not in self.turned:
            formula, sp = self._formula(angle), self.sp
            self.turned[angle] = (len(self.formulas), len(self.formulas) + 1)
            self.formulas.extend((sp.sin(formula), sp.cos(formula)))
            self.pairs.append((*self.turned[angle], formula))
        return self.ring.gens[self.turned[angle][cosine]]

    # ------------------------------------------------------------------------------ arithmetic

    def _add(self, x: tuple[Any, Any], y: tuple[Any, Any]) -> tuple[Any, Any]:
        if x[1] == y[1]:
            return self._quotient(x[0] + y[0], x[1])
        left, right = (self.ring.one if z[1] is None else z[1] for z in (x, y))
        return self._quotient(self._reduced(x[0] * right + y[0] * left), left * right)

    def _multiply(self, x: tuple[Any, Any], y: tuple[Any, Any]) -> tuple[Any, Any]:
        below = [z[1] for z in (x, y) if z[1] is not None]
        return self._quotient(self._reduced(x[0] * y[0]), prod(below) if below else None)

    def _quotient(self, above: Any, below: Any) -> tuple[Any, Any]:
        if below is None or not above:
            return above, None
        below = self._reduced(below)
        if below.is_ground:
            return above.quo_ground(below.LC), None
        above, below = above.cancel(below)
        return (above.quo_ground(below.LC), None) if below.is_ground else (above, below)

    def _reduced(self, p: Any) -> Any:
        """With s² = 1 - c²."""
        if len(p) > MOST_TERMS:
            raise ModelError(
                f"to_sympy multiplies formulas out, and one has more than {MOST_TERMS} terms. "
                "simplify=False leaves formulas as they are computed."
            )
        if not any(powers[s] > 1 for powers in p for s, _, _ in self.pairs):
            return p
        sines, cosines = [s for s, _, _ in self.pairs], [c for _, c, _ in self.pairs]
        terms = without_squares(_terms(p), sines, cosines)
        number = self.sp.QQ
        return self.ring.from_dict(
            {m: number(x.numerator, x.denominator) for m, x in terms.items()}
        )

    def _formula(self, x: tuple[Any, Any]) -> Any:
        above, below = x
        if below is None:
            return self._shortest(above)
        if below.get(self.ring.zero_monom, 1) < 0:
            above, below = -above, -below
        return self._shortest(above) / self._shortest(below)

    def _shortest(self, p: Any) -> Any:
        return Generators(self.formulas, self.pairs, self.sp).shortest(_terms(p))


def _terms(p: Any) -> Polynomial:
    return {m: Fraction(int(x.numerator), int(x.denominator)) for m, x in p.items()}
