"""Derivatives by the entries of input arrays, nested as often as needed.

Libraries that differentiate (JAX, Torch) do so by the entries of arrays, and again by directions
and weights. `lw.jvp` and `lw.vjp` differentiate by velocities and name their inputs; here inputs
have numbers, and all of them stay inputs:

    f(x_1, ..., x_n)        along(f, (i, j))  (x_1, ..., x_n, d_i, d_j)  ->  Σ ∂f/∂x_k d_k
                            back(f, (i, j))   (x_1, ..., x_n, w)  ->  ∂f/∂x_i* w, ∂f/∂x_j* w

Each is linear in its last inputs, and one is the transpose of the other.

Quaternions are scaled to unit length first. So f is defined for every quaternion but zero, and its
derivatives by the four numbers, the second ones too, are those that differences give.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from linkwise.algebra.expr import Expr
from linkwise.codegen.formula import Formula
from linkwise.codegen.request import Request
from linkwise.codegen.scalar.trace import Sketch
from linkwise.codegen.sensitivity import pulled, pushed, results
from linkwise.codegen.stages import MOST_BODIES
from linkwise.errors import ModelError
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.sweeps.result_part import ALL, ResultPart

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

Inputs = tuple[tuple[str, int], ...]
"""For each input array its name and length, in order."""


def with_unit_quaternions(request: Request, inputs: Inputs) -> Request:
    """The request for the same kernel, of all quaternions; itself where there are none.

    Args:
        request: The request.
        inputs: Inputs of its kernel.
    """
    reads_q = any(name == "q" for name, _ in inputs)
    return differentiable(request, inputs) if reads_q and quaternions(request.mech) else request


def differentiable(request: Request, inputs: Inputs) -> Request:
    """The same as a request for a formula, of which `along` and `back` make others."""
    quantity = request.quantity
    parts = (quantity, request.chosen, request.parameters)
    formula = Formula(_values, (parts, inputs), names=request.names)
    return _with(request, formula)


def along(request: Request, wrt: tuple[int, ...]) -> Request:
    """The derivative of a formula along directions of the inputs with these numbers."""
    return _with(request, Formula(_along, (request.quantity, wrt)))


def back(request: Request, wrt: tuple[int, ...]) -> Request:
    """The gradients of a weighted sum by the inputs with these numbers, one after another."""
    return _with(request, Formula(_back, (request.quantity, wrt)))


def quaternions(mech: Mechanism | Embedded) -> list[slice]:
    """Where the quaternions are in q."""
    tree = mech.mech if isinstance(mech, Embedded) else mech
    places = list[slice]()
    for start, body in zip(tree.q_start, tree.bodies, strict=False):
        if (within := body.hinge.quaternion) is not None:
            places.append(slice(int(start) + within.start, int(start) + within.stop))
    return places


def _with(request: Request, formula: Formula) -> Request:
    return replace(request, quantity=formula, names=formula.names, chosen=ALL, rolled=None)


# ------------------------------------------------------------------------------------ formulas

Parts = tuple[Formula | tuple[Expr, ...], ResultPart, tuple[str, ...]]


def _values(at: Writing, parts: Parts, inputs: Inputs) -> Any:
    quantity, chosen, parameters = parts
    if not isinstance(cast(object, at), Sketch):  # numbers, not nodes
        raise ModelError(
            f"a function to be differentiated was requested for {at.mech.name!r}, which has "
            f"{at.mech.n_bodies} bodies; such functions, and those of quaternions of any length, "
            f"are straight code, for about {MOST_BODIES} bodies at most."
        )
    arrays = {name: at.read(name, size) for name, size in inputs}
    if "q" in arrays:
        at.reads["q"] = _unit(arrays["q"], quaternions(at.mech))
    try:
        if isinstance(quantity, Formula):
            return quantity.write(at, *quantity.options)
        values = at.values(quantity, at.nodes, chosen, parameters, {})
        return values if len(values) > 1 else values[0]
    finally:
        at.reads |= arrays


def _unit(q: Any, places: list[slice]) -> Any:
    q = q.copy()
    for place in places:
        length: Any = sum(x * x for x in q[place])
        q[place] = q[place] * (1.0 / length.sqrt())
    return q


def _along(at: Writing, of: Formula, wrt: tuple[int, ...]) -> Any:
    outputs, _ = results(at, of)
    names = list(at.reads)
    seeds = dict[int, int]()
    for i in wrt:
        x = at.reads[names[i]]
        direction = at.read(f"direction {len(at.reads)}", len(x))
        seeds |= {a.node: b.node for a, b in zip(x, direction, strict=True)}
    return at.scalars(pushed(at.graph, outputs, seeds))


def _back(at: Writing, of: Formula, wrt: tuple[int, ...]) -> Any:
    outputs, _ = results(at, of)
    names = list(at.reads)
    variables = [x.node for i in wrt for x in at.reads[names[i]]]
    weights = [x.node for x in at.read(f"weight {len(at.reads)}", len(outputs))]
    return at.scalars(pulled(at.graph, outputs, weights, variables))
