"""Quantities by name, with loops and couplings held: what is converted, and differentiated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from linkwise.codegen.formula import Formula
from linkwise.codegen.kernel import Kernel
from linkwise.codegen.request import Request
from linkwise.dynamics.closure import CLOSED, closed_kernel
from linkwise.dynamics.closure_rank import known_rank
from linkwise.dynamics.derivative_formula import FORWARD_DERIVATIVES, INVERSE_DERIVATIVES
from linkwise.dynamics.energy import BOTH
from linkwise.dynamics.kernels import is_closed, kernel, require_open
from linkwise.dynamics.momentum import CENTERS, FORMULAS as MOMENTA
from linkwise.dynamics.quantity import QUANTITIES
from linkwise.errors import ExpressionError, ModelError, unknown_name
from linkwise.loops.projection import project_position
from linkwise.model.mechanism import Mechanism
from linkwise.pipeline import Quantity, Tree, requested

if TYPE_CHECKING:
    from linkwise.sweeps.result_part import Names


class Law(Protocol):
    """Something with a kernel, such as an `lw.ControlLaw`."""

    @property
    def mech(self) -> Mechanism:
        """The mechanism."""
        ...

    @property
    def kernel(self) -> Any:
        """The kernel."""
        ...


Named: TypeAlias = "Quantity | str | Kernel | Law"
Compiled: TypeAlias = "tuple[Request, Mechanism]"
"""The request of a kernel, and the mechanism it is about."""

DERIVATIVES = {
    "forward_dynamics_derivatives": FORWARD_DERIVATIVES,
    "inverse_dynamics_derivatives": INVERSE_DERIVATIVES,
}
"""Formulas with the name of a function: all Jacobians, by velocities, from one kernel."""

FUNCTIONS = {
    "energy": BOTH,
    "center_of_mass": CENTERS["position"],
    "momentum": MOMENTA["momentum", "com"],
}
"""The same of functions whose defaults are formulas; energy is (kinetic, potential)."""


def requested_by(
    expr: Named,
    mech: Tree,
    *,
    nodes: Sequence[str] = (),
    rows: Names | None = None,
    columns: Names | None = None,
    parameters: Sequence[str] = (),
    derive: bool = True,
) -> Request:
    """The request behind an expression, a formula, the name of a quantity, a law or a kernel.

    Quantities that loops and couplings change are those of the closed mechanism.
    """
    options: dict[str, Any] = {"rows": rows, "columns": columns}
    made = compiled(expr)
    if not isinstance(expr, str) and made is None:
        expr = cast("Quantity", expr)
        return requested(expr, mech, nodes=nodes, derive=derive, parameters=parameters, **options)
    none = (type(None), tuple)
    given = [name for name, x in options.items() if not isinstance(x, none) or x]
    given += [] if derive else ["derive"]
    if made is not None:
        given += ["nodes"] if nodes else []
        if given:
            raise ExpressionError(
                f"a control law or a kernel was given with {', '.join(given)}; these belong to "
                "what it was made from."
            )
        return with_parameters(request_of(made, mech), parameters, "a control law or a kernel")
    name = cast("str", expr)
    if given:
        raise ExpressionError(
            f"{name!r} was given by name, with {', '.join(given)}; options of lw.compile go with "
            f"an expression: lw.dynamics.expression({name!r})."
        )
    return with_parameters(_named(name, mech, nodes), parameters, repr(name))


def compiled(value: object) -> Compiled | None:
    """The request of a kernel or of a control law, and its mechanism; None for anything else."""
    if isinstance(value, Kernel):
        return value.request, value.request.mech
    kernel = getattr(value, "kernel", None)
    return (kernel.request, cast("Law", value).mech) if isinstance(kernel, Kernel) else None


def request_of(made: Compiled, other: object) -> Request:
    """The request of a law or kernel; raises for another mechanism than its own."""
    request, mech = made
    if other is not mech and other is not request.mech:
        raise ModelError(
            f"a control law or kernel of {mech.name!r} was compiled for another mechanism, "
            f"{getattr(other, 'name', other)!r}; give its own: law.mech, or kernel.mech."
        )
    return request


def _named(name: str, mech: Tree, nodes: Sequence[str]) -> Request:
    if name in DERIVATIVES:
        require_open(mech, "closed", f"{name} by name")
        return requested(DERIVATIVES[name], mech)
    if name in FUNCTIONS:
        return requested(FUNCTIONS[name], mech, nodes=nodes)
    if name in CLOSED and isinstance(mech, Mechanism) and is_closed(mech):
        rank = _rank(mech) if name == "forward_dynamics" else None
        return closed_kernel(mech, name, tuple(nodes), rank=rank).request
    return kernel(mech, name, nodes).request


def with_parameters(request: Request, names: Sequence[str], what: str) -> Request:
    """The request with more numbers of the mechanism as inputs.

    Raises:
        ExpressionError: It is array code that takes none of these.
    """
    more = tuple(name for name in names if name not in request.parameters)
    if not more:
        return request
    if isinstance(request.quantity, Formula) and request.quantity is not BOTH:
        raise ExpressionError(
            f"{what} was given with parameters {', '.join(map(repr, more))}; it is written in "
            "array code that does not take them. Write the quantity as an expression, or as a "
            "function for lw.compile whose at.value(..., parameters=...) takes them."
        )
    return replace(request, parameters=(*request.parameters, *more))


def check_name(name: str) -> None:
    """Raise unless there is a quantity of this name."""
    known = {**QUANTITIES, **CLOSED, **DERIVATIVES, **FUNCTIONS}
    if name not in known:
        raise unknown_name("quantity", name, known, owner="linkwise.dynamics")


def _rank(mech: Mechanism) -> int | None:
    """How many rows of loops and couplings are independent around a configuration near neutral.

    States with fewer have no unique accelerations: they get a code. None where none is near.
    """
    near = project_position(mech, mech.neutral())
    return known_rank(mech, near.q) if bool(near.closed) else None
