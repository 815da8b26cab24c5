"""Derivatives of kernels, from the scalar graph: along a direction, and of a weighted sum.

`lw.differentiate` works on the algebra and needs a rule for every symbol. These work on whatever a
kernel computes as straight code, expressions and formulas alike: closed chains, tasks, control
laws, poses. A graph has nine operations, so there are nine rules:

    y = a + b, a - b, -a      ẏ = ȧ + ḃ, ȧ - ḃ, -ȧ            y = a b       ẏ = ȧ b + a ḃ
    y = 1/a                   ẏ = -ȧ y²                        y = √a        ẏ = ȧ / (2 y)
    y = sin a                 ẏ = ȧ cos a                      y = cos a     ẏ = -ȧ sin a
    y = b if a > 0 else 0     ẏ = ḃ if a > 0 else 0

Forward, they run along the graph with a direction; in reverse, they run back from the results with
a weight for each, which gives the gradient by all inputs at once for a few times the cost.

Where the algebra has rules for an expression, its derivatives A give A u and A* w too. Both forms
are written, operations are counted, and the form with fewer runs.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, count
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from linkwise.algebra.differential import differentiate
from linkwise.algebra.expr import Expr, total
from linkwise.algebra.space import JOINT, ONE
from linkwise.algebra.symbols import vector
from linkwise.arguments import flag
from linkwise.codegen import stages
from linkwise.codegen.derivative_form import DerivativeForm, DerivativePlan
from linkwise.codegen.formula import Formula, FormulaInputs, TooLongError
from linkwise.codegen.rolled.layout import total_size
from linkwise.codegen.scalar.graph import Check, Graph
from linkwise.codegen.scalar.parameters import NAMES as PARAMETERS
from linkwise.errors import ExpressionError, LoweringError
from linkwise.model.embedded import Embedded
from linkwise.model.hinges.hinge import Hinge
from linkwise.model.mechanism import Mechanism
from linkwise.sweeps.embedded_expression import tree_tau, velocity_map
from linkwise.sweeps.lower import lower

if TYPE_CHECKING:
    from linkwise.codegen.request import Request
    from linkwise.codegen.writing import Writing

Differentiable = Expr | Formula

_SOME = vector("u", JOINT)

WEIGHT = "weight"
"""The input of a gradient: a number for each entry of the result."""


def jvp(of: Differentiable, *wrt: str, raw_q: bool = False) -> Formula:
    """The derivative of an expression or formula along a direction, as a formula: see `lw.jvp`."""
    return Formula(_along, (_checked(of), checked_names(wrt), flag(raw_q, "raw_q")))


def vjp(of: Differentiable, *wrt: str, raw_q: bool = False) -> Formula:
    """The gradient of a weighted sum of their results: see `lw.vjp`."""
    names = checked_names(wrt)
    return Formula(_gradients, (_checked(of), names, flag(raw_q, "raw_q")), names=names)


def _checked(of: object) -> Differentiable:
    """An expression or a formula; raises for anything else."""
    if isinstance(of, Expr | Formula):
        return of
    raise ExpressionError(
        f"a derivative of {of!r} was requested; it must be an expression, a formula, the name of a "
        "quantity, a control law or a kernel."
    )


def checked_names(wrt: tuple[str, ...]) -> tuple[str, ...]:
    """Names of inputs, each once; raises otherwise."""
    if not wrt or len(set(wrt)) < len(wrt):
        raise ExpressionError(
            f"a derivative by {', '.join(wrt) or 'nothing'} was requested; name at least one "
            'input, each once: "q", "v", "tau" ...'
        )
    return wrt


# ------------------------------------------------------------------------------------ formulas


def results(at: Writing, of: Differentiable) -> tuple[list[int], tuple[int, ...]]:
    """The nodes of all results, and their shape if there is one result."""
    if isinstance(of, Formula):
        results = of.write(at, *of.options)
        arrays = [np.asarray(x, dtype=object) for x in (results if of.names else [results])]
    else:
        arrays = [np.asarray(at.value(of, parameters=at.request.parameters), dtype=object)]
    nodes = [at.scalar(x).node for array in arrays for x in array.ravel().tolist()]
    return nodes, arrays[0].shape if len(arrays) == 1 else (len(nodes),)


def _inputs(at: Writing, name: str) -> Any:
    if name not in at.reads:
        raise _not_taken(name, at.reads)
    return at.reads[name]


def _not_taken(name: str, inputs: Iterable[str]) -> ExpressionError:
    advice = ""
    if name.split(":")[0] in PARAMETERS:
        advice = f" Numbers of a mechanism are inputs with lw.compile(..., parameters=[{name!r}])."
    return ExpressionError(
        f"a derivative by {name!r} was requested; the kernel takes {', '.join(inputs)}.{advice}"
    )


def _of_loops(at: Writing, of: Expr, wrt: tuple[str, ...]) -> dict[str, int]:
    """The inputs of an expression that runs as loops over bodies, with their lengths.

    All are read, in its order: the kernel takes the same arrays as one of straight code.
    """
    sizes = stages.inputs_in(at.request, of)
    for name, size in sizes.items():
        at.read(name, size)
    for name in wrt:
        if name not in sizes:
            raise _not_taken(name, sizes)
    return sizes


def _own_weight(of: Differentiable, inputs: Container[str]) -> None:
    """Raise where an input has the name of the weights."""
    if WEIGHT in inputs:
        raise ExpressionError(
            f"a gradient of {of} was requested, which has an input {WEIGHT!r} already; the "
            "weights of its results would be another input of that name. Rename it."
        )


def unused(name: str, inputs: Container[str]) -> str:
    """The name, or the name with a number, if it is an input already."""
    names = chain([name], (f"{name}_{n}" for n in count(2)))
    return next(x for x in names if x not in inputs)


def _jacobians(
    at: Writing, of: Differentiable, wrt: tuple[str, ...], raw_q: bool
) -> list[Expr] | None:
    """∂/∂x as an expression for each x, where the algebra has it; else None."""
    if raw_q and isinstance(at.mech, Embedded):
        raise ExpressionError(
            f"raw_q was given for {at.mech.name!r}, whose loops are built in: the entries of its q "
            "depend on each other. Leave it out: directions of q are independent velocities."
        )
    graph = hasattr(at, "graph")
    if graph:
        at.form = DerivativeForm("graph", reason="the algebra has no form of it here")
    # the algebra differentiates by the inertia of each part of a flexible body, an input is one
    parts = "inertia" in wrt and not isinstance(at.mech, Embedded) and at.mech.flexible
    if not isinstance(of, Expr) or raw_q or parts:
        if not graph:
            raise too_long(at, of)
        return None
    if graph and (of.domain is not ONE or of.range is ONE or isinstance(at.mech, Embedded)):
        return None
    try:
        return [_derivative(of, name) for name in wrt]
    except ExpressionError:
        if not graph:
            raise
        return None


@lru_cache(maxsize=64)
def _derivative(of: Expr, name: str) -> Expr:
    """∂/∂x as an expression, once for all calls of a large mechanism."""
    return differentiate(of, name)


def _fewest(at: Writing, graph: Callable[[], Any], algebra: Callable[[], Any]) -> Any:
    """What the way with the fewer operations returns: an array, or several; with its checks."""
    before = list(at.checks)
    values, count = graph(), at.graph.count
    checks, at.checks = at.checks, list(before)
    try:
        other = algebra()
    except (ExpressionError, LoweringError, TooLongError):
        other = None
    if other is not None:
        roots = _roots(at, values, checks), _roots(at, other, at.checks)
        of_graph, of_algebra = (count(x).total() for x in roots)
        fewer = of_algebra < of_graph
        at.form = DerivativeForm("algebra" if fewer else "graph", of_graph, of_algebra)
        if fewer:
            return other
    at.checks = checks
    return values


class _Written(FormulaInputs):
    """A formula of loops over bodies, up to the expressions that it evaluates."""

    def read(self, name: str, size: int) -> Any:
        """Any numbers (size,)."""
        return np.zeros(size)

    def values(self, requests: Sequence[Request], given: Mapping[str, Any]) -> list[Any]:
        """The expressions are known."""
        raise _KnownError([x for request in requests for x in request.expressions])


class _KnownError(Exception):
    """Ends the writing of a formula."""


def plan_of(request: Request) -> DerivativePlan:
    """The form of a derivative that runs on a mechanism, with the sweeps of the algebra's.

    Raises:
        ExpressionError: The formula is not of `jvp` or `vjp`.
    """
    formula, form = request.quantity, form_of(request)
    if form is None or not isinstance(formula, Formula):
        raise ExpressionError(
            f"the sweeps of {formula} were requested, which is array code on top of expressions. "
            "Only formulas by lw.jvp and lw.vjp can have sweeps; kernel.explain() prints others."
        )
    exprs = list[Expr]()
    if form.taken == "graph" and form.algebra is None:
        return DerivativePlan(form, None)
    try:
        formula.write(_Written(request), *formula.options)
    except _KnownError as known:
        (exprs,) = known.args
    first, *rest = (stages.derived(request, expr).result for expr in exprs)
    return DerivativePlan(form, lower(first, more=rest))


def form_of(request: Request) -> DerivativeForm | None:
    """Which form of a derivative the kernel of a request runs; None if it is not of `jvp` or `vjp`.

    It is written once more: kernels that come from disk have no graph.
    """
    formula = request.quantity
    if not isinstance(formula, Formula):
        return None
    product = formula.write in (_along, _gradients) or formula.options[:1] in (("jvp",), ("vjp",))
    if not product:
        return None
    try:
        return formula.written(request)[1].form
    except TooLongError:
        return DerivativeForm("algebra", reason="it runs as loops over bodies")


def _roots(at: Writing, values: Any, checks: Iterable[Check]) -> list[int]:
    arrays = cast("tuple[Any, ...]", values if isinstance(values, tuple) else (values,))
    nodes = [at.scalar(x).node for array in arrays for x in np.ravel(array)]
    return [*nodes, *(check.node for check in checks)]


class NoGraphError(ExpressionError):
    """A derivative of a quantity whose straight code would be too long."""


def too_long(at: Writing, of: object) -> NoGraphError:
    """The error for a quantity whose straight code would be too long."""
    what = str(of).removeprefix("_").replace("_", " ") if isinstance(of, Formula) else of
    return NoGraphError(
        f"a derivative of {what} was requested for {at.mech.name!r} of {at.mech.n_bodies} bodies; "
        "its straight code would be too long: it is for up to about "
        f"{stages.MOST_BODIES} bodies, for results of many entries for fewer. Only expressions "
        "have derivatives that run as loops over bodies: lw.differentiate, or lw.jvp and lw.vjp of "
        "an expression (lw.dynamics.expression)."
    )


def _along(at: Writing, of: Differentiable, wrt: tuple[str, ...], raw_q: bool) -> Any:
    jacobians = _jacobians(at, of, wrt, raw_q)
    called = dict[str, str]()  # names of the directions

    def graph() -> Any:
        outputs, shape = results(at, of)
        seeds = dict[int, int]()
        for name in wrt:
            x = _inputs(at, name)
            size = at.mech.nv if name == "q" and not raw_q else len(x)
            d = at.read(called.setdefault(name, unused(f"d{name}", at.reads)), size)
            if name == "q":
                d = _of_unit_length(at, d) if raw_q else _rates(at, d)
            seeds |= {here.node: at.scalar(rate).node for here, rate in zip(x, d, strict=True)}
        return at.scalars(pushed(at.graph, outputs, seeds)).reshape(shape)

    if jacobians is None:
        return graph()

    def algebra() -> Any:
        along = [A @ vector(called[x], A.domain) for A, x in zip(jacobians, wrt, strict=True)]
        expr = total([(1.0, part) for part in along])
        return at.value(expr, parameters=at.parameters_of(expr))

    if hasattr(at, "graph"):
        return _fewest(at, graph, algebra)
    sizes = _of_loops(at, cast("Expr", of), wrt)
    for name in wrt:
        called[name] = unused(f"d{name}", sizes)
        at.read(called[name], at.mech.nv if name == "q" else sizes[name])
    return algebra()


def _gradients(at: Writing, of: Differentiable, wrt: tuple[str, ...], raw_q: bool) -> Any:
    jacobians = _jacobians(at, of, wrt, raw_q)

    def graph() -> Any:
        outputs, _ = results(at, of)
        arrays = {name: _inputs(at, name) for name in wrt}
        _own_weight(of, at.reads)
        weights = [x.node for x in at.read(WEIGHT, len(outputs))]
        nodes = [x.node for array in arrays.values() for x in array]
        flat = at.scalars(pulled(at.graph, outputs, weights, nodes))
        ends = np.cumsum([len(array) for array in arrays.values()])
        each = dict(zip(arrays, np.split(flat, ends[:-1]), strict=True))
        if "q" in each:
            each["q"] = (_of_unit_length if raw_q else _by_velocities)(at, each["q"])
        return tuple(each[name] for name in wrt)

    if jacobians is None:
        return graph()

    def algebra() -> Any:
        weight = at.read(WEIGHT, total_size(jacobians[0].range, at.mech, len(at.nodes)))
        weighted = [A.T @ vector("of_results", A.range) for A in jacobians]
        values = at.value(*weighted, parameters=at.parameters_of(*weighted), of_results=weight)
        return (values,) if len(jacobians) == 1 else tuple(values)

    if hasattr(at, "graph"):
        return _fewest(at, graph, algebra)
    _own_weight(of, _of_loops(at, cast("Expr", of), wrt))
    return algebra()


def slopes(at: Writing, arrays: list[Any], wrt: str) -> list[Any]:
    """How arrays of nodes change with each entry of an input, with each velocity for q.

    Returns:
        Each with one axis more, the last, for the entries.
    """
    if not hasattr(at, "graph"):
        raise too_long(at, at.request.quantity)
    x, outputs = _inputs(at, wrt), [at.scalar(y).node for array in arrays for y in array.flat]
    columns = list[Any]()
    for e in np.eye(at.mech.nv if wrt == "q" else len(x)):
        rates = zip(x, _rates(at, e) if wrt == "q" else e, strict=True)
        nodes = {here.node: at.scalar(rate).node for here, rate in rates}
        none = at.graph.constant(0.0)
        seeds = {node: rate for node, rate in nodes.items() if rate != none}
        columns.append(at.scalars(pushed(at.graph, outputs, seeds)))
    ends = np.cumsum([array.size for array in arrays])[:-1]
    parts = np.split(np.stack(columns, axis=-1), ends)
    return [y.reshape(*array.shape, -1) for y, array in zip(parts, arrays, strict=True)]


def _rates(at: Writing, d: Any) -> Any:
    """q̇ = N(q) d for velocities d, hinge by hinge; with loops built in, N(q) 𝒳 d."""
    if isinstance(at.mech, Embedded):
        moved = at.value(velocity_map @ _SOME, q=at.q, u=d)
        d = np.empty(len(moved), dtype=object)
        d[at.mech.order] = moved
    parts = [hinge.qdot(q[None], d[rows][None])[0] for hinge, q, _, rows in _hinges(at)]
    return np.concatenate([np.zeros(0, dtype=object), *parts])


def _by_velocities(at: Writing, gradient: Any) -> Any:
    """N(q)* g: the gradient by velocities of the hinges, from that by entries of q."""
    out = np.full(_tree(at).nv, 0.0, dtype=object)
    for hinge, q, entries, rows in _hinges(at):
        columns = [hinge.qdot(q[None], e[None])[0] for e in np.eye(hinge.nv)]
        g = gradient[entries]
        out[rows] = [sum((n * x for n, x in zip(c, g, strict=True)), 0.0) for c in columns]
    if isinstance(at.mech, Embedded):
        return at.value(velocity_map.T @ tree_tau, q=at.q, tree_tau=out[at.mech.order])
    return out


def _of_unit_length(at: Writing, x: Any) -> Any:
    """Entries along q, or a gradient by them, without what changes the length of a quaternion."""
    out = x.copy()
    for hinge, q, entries, _ in _hinges(at):
        if hinge.quaternion is not None:
            four, part = q[hinge.quaternion], out[entries]
            along = four @ part[hinge.quaternion]
            part[hinge.quaternion] = part[hinge.quaternion] - along * four
            out[entries] = part
    return out


def _tree(at: Writing) -> Mechanism:
    """The mechanism that q belongs to."""
    return at.mech.mech if isinstance(at.mech, Embedded) else at.mech


def _hinges(at: Writing) -> Iterable[tuple[Hinge, Any, slice, slice]]:
    """Each hinge with its coordinates, and their places in q and in v."""
    tree = _tree(at)
    for k, body in enumerate(tree.bodies):
        entries = slice(tree.q_start[k], tree.q_start[k + 1])
        yield body.hinge, at.q[entries], entries, slice(tree.v_start[k], tree.v_start[k + 1])


# --------------------------------------------------------------------------------------- graphs


def pushed(
    graph: Graph, outputs: list[int], seeds: dict[int, int], order: list[int] | None = None
) -> list[int]:
    """The rates of some nodes, for given rates of others; forward.

    Args:
        graph: The graph.
        outputs: The nodes.
        seeds: Nodes with given rates.
        order: The nodes between them; default: those that the outputs need.
    """
    none = graph.constant(0.0)
    rate = dict(seeds)
    for node in graph.used(outputs) if order is None else order:
        if node in rate:
            continue
        total = none
        for x, slope in _slopes(graph, node, rate):
            total = graph.add(total, slope(rate[x]))
        if total != none:
            rate[node] = total
    return [rate.get(node, none) for node in outputs]


def pulled(graph: Graph, outputs: list[int], weights: list[int], wrt: list[int]) -> list[int]:
    """The gradient of the weighted sum of some nodes by others; in reverse."""
    none, variables = graph.constant(0.0), set(wrt)
    used = graph.used(outputs)
    reaches = set(variables)  # nodes that depend on the variables
    for node in used:
        if any(x in reaches for x in graph.arguments(node)):
            reaches.add(node)
    weight = dict[int, int]()
    for node, w in zip(outputs, weights, strict=True):
        weight[node] = graph.add(weight.get(node, none), w)
    for node in reversed(used):
        if node not in weight or node in variables:
            continue
        for x, slope in _slopes(graph, node, reaches):
            weight[x] = graph.add(weight.get(x, none), slope(weight[node]))
    return [weight.get(node, none) for node in wrt]


def _slopes(
    graph: Graph, node: int, among: Container[int]
) -> Iterable[tuple[int, Callable[[int], int]]]:
    """The arguments of a node that count, each with r -> ∂node/∂argument · r."""
    op, a, b, g = graph.op[node], graph.a[node], graph.b[node], graph
    if op == "part" and any(x in among for x in g.arguments(node)):
        raise ExpressionError(
            "the derivative of a kernel with a loop, such as inverse kinematics, was requested; "
            "only straight code has one."
        )
    pairs: list[tuple[int, Callable[[int], int]]] = []
    match op:
        case "add":
            pairs = [(a, lambda r: r), (b, lambda r: r)]
        case "sub":
            pairs = [(a, lambda r: r), (b, g.neg)]
        case "mul":
            pairs = [(a, lambda r: g.mul(b, r)), (b, lambda r: g.mul(a, r))]
        case "gate":
            pairs = [(b, lambda r: g.gate(a, r))]
        case "neg":
            pairs = [(a, g.neg)]
        case "inv":
            pairs = [(a, lambda r: g.neg(g.mul(r, g.mul(node, node))))]
        case "sqrt":
            half = g.constant(0.5)
            pairs = [(a, lambda r: g.mul(r, g.mul(half, g.unary("inv", node))))]
        case "sin":
            pairs = [(a, lambda r: g.mul(g.unary("cos", a), r))]
        case "cos":
            pairs = [(a, lambda r: g.neg(g.mul(g.unary("sin", a), r)))]
        case _:
            pass
    return [pair for pair in pairs if pair[0] in among]
