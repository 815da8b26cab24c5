"""A kernel as a differentiable function: its value, and its derivatives to any order, as requests.

Libraries that differentiate functions (Torch, JAX) need three maps of y = f(x_1, x_2, ...):

    value         y
    pushforward   ẏ = Σ ∂f/∂x_i ẋ_i               for a direction of each chosen input
    pullback      x̄_i = (∂f/∂x_i)* ȳ              for a weight of each entry of y

Each is the request of a kernel, whose pushforward and pullback are requests again. Their results
are one row of numbers: all results behind one another, matrices row by row; all gradients behind
one another.

Derivatives are by the entries of the inputs, as those libraries understand it: by q they have nq
entries. Quaternions are divided by their length first, so that f is defined around the states it is
for, and its derivative along the quaternion itself is zero.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from linkwise.algebra.expr import Expr, Inverse, Product, product
from linkwise.algebra.space import JOINT, ONE
from linkwise.algebra.symbols import vector
from linkwise.codegen.formula import Formula, TooLongError
from linkwise.codegen.request import Request, once_per_request
from linkwise.codegen.scalar.arithmetic import DIRECTIONS
from linkwise.codegen.sensitivity import pulled, pushed, unused as unused
from linkwise.codegen.stages import influential, is_rolled, traced
from linkwise.errors import ExpressionError
from linkwise.sweeps.result_part import ALL

if TYPE_CHECKING:
    from linkwise.codegen.scalar.graph import Scalar
    from linkwise.codegen.scalar.trace import Traced
    from linkwise.codegen.writing import Writing
    from linkwise.model.mechanism import Mechanism

SOLUTION = "solution"
"""Name of x in b − A x."""

WEIGHT = "weight"
"""Name of the input of a pullback, and beginning of its name in further ones."""


@once_per_request
def value(request: Request) -> Request:
    """The function itself: results in one row, and quaternions of any length."""
    return _written(request, Formula(_value, (request,)))


@once_per_request
def pushforward(request: Request, wrt: tuple[str, ...]) -> Request:
    """Rates of the results, for rates of some inputs, which are more inputs behind the others."""
    return _written(request, Formula(_pushforward, (_of_value(request), wrt)))


@once_per_request
def pullback(request: Request, wrt: tuple[str, ...]) -> Request:
    """The gradient by some inputs, for weights of the results: one more input behind the others."""
    return _written(request, Formula(_pullback, (_of_value(request), wrt)))


def graph_of(request: Request) -> Traced:
    """The graph of a request that can be differentiated.

    Raises:
        ExpressionError: It has none, or it depends on numbers that are not part of it.
    """
    try:
        graph = None if is_rolled(request) else traced(request)
    except TooLongError:
        graph = None
    if graph is None:
        raise ExpressionError(
            f"a derivative of {request} was requested; its straight code would be too long. "
            "lw.differentiate gives Jacobians as expressions, which run as loops over bodies."
        )
    if DIRECTIONS in dict(graph.inputs):
        raise ExpressionError(
            f"a derivative of {request} was requested; a loop has a hinge that was given as a "
            "function, whose directions are inputs of the kernel."
        )
    return graph


def size_of(request: Request) -> int:
    """How many numbers the results of one state have."""
    graph = graph_of(request)
    return sum(map(prod, graph.parts or (graph.shape,)))


def _of_value(request: Request) -> Request:
    """The request whose value it is, which has the same derivatives."""
    formula = request.quantity
    if not isinstance(formula, Formula) or formula.write is not _value:
        return request
    return replace(formula.options[0], itemsize=request.itemsize)


# ------------------------------------------------------------------------------------ formulas


def _written(request: Request, formula: Formula) -> Request:
    graph_of(request)  # raises
    return replace(request, quantity=formula, names=(), chosen=ALL, rolled=None, rank=None)


def _results(at: Writing, request: Request) -> tuple[list[Scalar], dict[str, Any]]:
    """The results as functions of the inputs, and these."""
    if request.itemsize != at.itemsize:  # which bounds of checks depend on
        request = replace(request, itemsize=at.itemsize)
    graph = graph_of(request)
    inputs = {name: at.read(name, size) for name, size in graph.inputs}
    given = inputs if is_made_here(request.quantity) else inputs | _of_unit_length(at, inputs)
    return at.replay(graph, given), inputs


def _of_unit_length(at: Writing, inputs: dict[str, Any]) -> dict[str, Any]:
    """Those inputs that are coordinates, with quaternions of unit length."""
    tree = getattr(at.mech, "mech", at.mech)  # q of an embedded mechanism is all of it
    of_q = [name for name, x in inputs.items() if name[0] == "q" and len(x) == tree.nq]
    return {name: _normalised(tree, inputs[name]) for name in of_q}


def _normalised(tree: Mechanism, q: Any) -> Any:
    q = q.copy()
    for place in quaternions(tree):
        square: Any = sum(x * x for x in q[place])
        q[place] = q[place] / square.sqrt()
    return q


def quaternions(tree: Mechanism) -> list[slice]:
    """Where the quaternions are in q."""
    places = list[slice]()
    for k, body in enumerate(tree.bodies):
        if (part := body.hinge.quaternion) is not None:
            start = int(tree.q_start[k])
            places.append(slice(start + part.start, start + part.stop))
    return places


def _value(at: Writing, request: Request) -> Any:
    return np.array(_results(at, request)[0], dtype=object)


def _pushforward(at: Writing, request: Request, wrt: tuple[str, ...]) -> Any:
    results, inputs = _results(at, request)
    rates = {x: at.read(unused(f"d{x}", inputs), len(inputs[x])) for x in wrt}
    implicit = _solved(request, wrt)
    if implicit is not None:
        solve, residual = implicit
        given = {**inputs, SOLUTION: results, **{f"d{x}": rate for x, rate in rates.items()}}
        change = at.replay(traced(pushforward(residual, wrt)), given)
        return _solution(at, request, solve, inputs, change)
    seeds = dict[int, int]()
    for name in wrt:
        seeds |= {x.node: rate.node for x, rate in zip(inputs[name], rates[name], strict=True)}
    return at.scalars(pushed(at.graph, [x.node for x in results], seeds))


def _pullback(at: Writing, request: Request, wrt: tuple[str, ...]) -> Any:
    results, inputs = _results(at, request)
    weights = at.read(unused(WEIGHT, inputs), len(results))
    implicit = _solved(request, wrt)
    if implicit is not None:
        solve, residual = implicit
        carried = _solution(at, request, solve.T, inputs, weights)
        given = {**inputs, SOLUTION: results, WEIGHT: carried}
        return np.array(at.replay(traced(pullback(residual, wrt)), given), dtype=object)
    nodes = [x.node for name in wrt for x in inputs[name]]
    outputs = [x.node for x in results]
    return at.scalars(pulled(at.graph, outputs, [x.node for x in weights], nodes))


def _solved(request: Request, wrt: tuple[str, ...]) -> tuple[Expr, Request] | None:
    """For x = A⁻¹ b, such as joint accelerations: A⁻¹, and the request of b − A x with x held.

    Its derivatives give those of x, ẋ = A⁻¹ (b − A x)˙ and x̄ by the weights A⁻* w, for less than
    those of how A is factored.
    """
    quantity = request.quantity
    if isinstance(quantity, Formula) or len(quantity) != 1 or request.rank is not None:
        return None
    expr = quantity[0]
    if not isinstance(expr, Product) or not request.chosen.is_all or not request.derive:
        return None
    first, *rest = expr.factors
    if not isinstance(first, Inverse) or (expr.range, expr.domain) != (JOINT, ONE):
        return None
    x = vector(SOLUTION, JOINT)
    residual = _depending(replace(request, quantity=(product(rest) - first.of @ x,), names=()))
    taken, reads = dict(graph_of(request).inputs), dict(traced(residual).inputs)
    added = {SOLUTION, WEIGHT, *(f"d{name}" for name in wrt)}
    return (first, residual) if set(wrt) <= set(reads) and not added & set(taken) else None


def _solution(at: Writing, request: Request, solve: Expr, inputs: dict[str, Any], of: Any) -> Any:
    """A⁻¹ of a vector (nv,)."""
    given = _of_unit_length(at, inputs) | {SOLUTION: of}
    expr = solve @ vector(SOLUTION, JOINT)
    names = _depending(replace(request, quantity=(expr,))).parameters
    return np.asarray(at.value(expr, parameters=names, **given), dtype=object)


def _depending(request: Request) -> Request:
    """The request with those of its parameters that its expressions depend on."""
    return replace(request, parameters=influential(request))


def is_made_here(quantity: object) -> TypeGuard[Formula]:
    """Whether it is a formula of this file: its q may have quaternions of any length."""
    return isinstance(quantity, Formula) and quantity.write in (_value, _pushforward, _pullback)


def described(request: Request) -> str:
    """A request in words: of which function it is the derivative."""
    formula = request.quantity
    if not is_made_here(formula):
        return str(request)
    words = {_value: "", _pushforward: "the derivative of ", _pullback: "the gradient of "}
    return words[formula.write] + described(formula.options[0])
