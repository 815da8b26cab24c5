"""Products with derivatives of any quantity: of an expression, a formula, a name or a law.

What a name means depends on the mechanism: quantities that loops and couplings change
are those of the closed mechanism (`named.py`). A control law is about a copy of its mechanism with
the tasks in it, and its kernel has that copy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from linkwise.algebra.expr import Expr
from linkwise.arguments import flag
from linkwise.codegen import sensitivity, stages
from linkwise.codegen.formula import Formula
from linkwise.codegen.kernel import Kernel
from linkwise.codegen.request import Request
from linkwise.codegen.sensitivity import Differentiable
from linkwise.front_door import open_front_door
from linkwise.loops.named import (
    Compiled,
    Law,
    check_name,
    compiled,
    request_of,
    requested_by,
    with_parameters,
)

if TYPE_CHECKING:
    from linkwise.codegen.scalar.trace import Traced
    from linkwise.codegen.writing import Writing


Quantity: TypeAlias = "Expr | Formula | str | Kernel | Law"


def jvp(of: Quantity, *wrt: str, raw_q: bool = False) -> Formula:
    """The derivative of a quantity along a direction: a formula, to be compiled.

        lw.compile(lw.jvp(mass.inv @ (tau - bias), "q", "v"), mech)     # of q, v, tau, dq, dv
        lw.compile(lw.jvp("forward_dynamics", "q", "v"), mech)          # the same

    Args:
        of: An expression or a formula; the name of a quantity (`lw.dynamics.QUANTITIES`, "energy",
            "momentum", "center_of_mass"), with loops and couplings held; a control law or a kernel.
        wrt: Names of inputs, numbers of the mechanism included that `lw.compile(...,
            parameters=["gravity"])` makes inputs. For each there is one more input, "d" and the
            name: the direction ("dq_2" where "dq" is an input already, as of a second derivative).
            That of q is a velocity (nv,), as in `mech.integrate`.
        raw_q: Give the direction of q by its entries (nq,) instead. What would change the length
            of a quaternion makes no difference.

    Returns:
        A formula whose result has the shape of the original, all results of one that has several
        behind one another. Where the algebra has `lw.differentiate(of, name)` and it takes fewer
        operations, that runs, applied to the directions; else the derivative of the scalar graph.
    """
    quantity = _quantity(of)
    if not isinstance(quantity, str | tuple):
        return sensitivity.jvp(quantity, *wrt, raw_q=raw_q)
    names = sensitivity.checked_names(wrt)
    return Formula(_made, ("jvp", quantity, names, flag(raw_q, "raw_q")))


def vjp(of: Quantity, *wrt: str, raw_q: bool = False) -> Formula:
    """The gradient of a weighted sum of a quantity's results: a formula, to be compiled.

        lw.compile(lw.vjp(mass.inv @ (tau - bias), "q", "v", "tau"), mech)
        lw.compile(lw.vjp("forward_dynamics", "q", "v", "tau"), mech)   # the same
        lw.compile(lw.vjp(law, "goal", "kp"), mech)
        lw.compile(lw.vjp("forward_dynamics", "gravity"), mech, parameters=["gravity"])

    Args:
        of: As for `lw.jvp`.
        wrt: Names of inputs, as for `lw.jvp`. There is one more input, "weight", with a number for
            each entry of the result (of all results, behind one another).
        raw_q: Return the gradient by the entries of q (nq,) instead of velocities. That by a
            quaternion is at right angles to it.

    Returns:
        A formula with the gradient by each input, by name; by q it has nv entries, one for each
        velocity, as in `mech.integrate`.
    """
    quantity = _quantity(of)
    if not isinstance(quantity, str | tuple):
        return sensitivity.vjp(quantity, *wrt, raw_q=raw_q)
    names = sensitivity.checked_names(wrt)
    return Formula(_made, ("vjp", quantity, names, flag(raw_q, "raw_q")), names)


# -------------------------------------------------------------------------------------- quantities

Named: TypeAlias = "str | Compiled"
"""What is known only with the mechanism: a name; or a kernel, and the mechanism it is about."""


def _quantity(of: Quantity) -> Differentiable | Named:
    if isinstance(of, str):
        check_name(of)
        return of
    return compiled(of) or cast("Differentiable", of)  # what is none of these is refused there


def _made(at: Writing, product: str, quantity: Named, wrt: tuple[str, ...], raw_q: bool) -> Any:
    """A product with derivatives of a named quantity, or of a kernel."""
    make = cast("Callable[..., Formula]", getattr(sensitivity, product))
    formula = make(_resolved(at, quantity), *wrt, raw_q=raw_q)
    try:
        return formula.write(at, *formula.options)
    except sensitivity.NoGraphError:
        if isinstance(quantity, str):
            raise sensitivity.too_long(at, repr(quantity)) from None
        raise


def _resolved(at: Writing, quantity: Named) -> Differentiable:
    """The expression of a quantity where that is all there is to it, else its graph."""
    parameters = at.request.parameters
    if isinstance(quantity, str):
        request = requested_by(quantity, at.mech, nodes=at.nodes, parameters=parameters)
    else:
        request = request_of(quantity, at.mech)
        request = with_parameters(request, parameters, "this kernel")
    if isinstance(request.quantity, Formula):
        return request.quantity
    everything = request.chosen.is_all and request.derive and request.rank is None
    here = (request.mech, request.nodes, request.parameters) == (at.mech, at.nodes, parameters)
    if everything and here and len(request.quantity) == 1:
        return request.quantity[0]
    return Formula(_replayed, (request,), request.names)


def _replayed(at: Writing, request: Request) -> Any:
    """The results of a request, whose graph becomes a part of this one."""
    if not hasattr(at, "graph"):
        raise sensitivity.too_long(at, request.what)
    graph = stages.traced(request)
    flat = at.scalars([x.node for x in at.replay(graph, dict(_inputs(at, graph)))])
    if not request.names:
        return flat.reshape(graph.shape)
    sizes = [int(np.prod(shape)) for shape in graph.parts]
    return tuple(np.split(flat, np.cumsum(sizes)[:-1]))


def _inputs(at: Writing, graph: Traced) -> list[tuple[str, Any]]:
    return [(name, at.read(name, size)) for name, size in graph.inputs]


open_front_door(globals(), ("jvp", "vjp"))
