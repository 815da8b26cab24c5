"""What is converted: whatever `lw.compile` takes, or the name of a quantity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from linkwise.codegen.request import Request
from linkwise.dynamics.closure import CLOSED, closed_kernel
from linkwise.dynamics.kernels import is_closed, kernel
from linkwise.errors import ExpressionError
from linkwise.model.mechanism import Mechanism
from linkwise.pipeline import Quantity, Tree, requested

if TYPE_CHECKING:
    from linkwise.sweeps.result_part import Names

Named: TypeAlias = "Quantity | str"


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
    """The request behind an expression, a formula or the name of a quantity.

    Quantities that loops and couplings change are those of the closed mechanism.
    """
    options: dict[str, Any] = {"rows": rows, "columns": columns, "parameters": parameters}
    if not isinstance(expr, str):
        return requested(expr, mech, nodes=nodes, derive=derive, **options)
    given = [name for name, value in options.items() if value not in (None, ())]
    if given or not derive:
        raise ExpressionError(
            f"{expr!r} was given by name, with {', '.join(given) or 'derive'}; options of "
            "lw.compile go with an expression: lw.dynamics.expression(name)."
        )
    if expr in CLOSED and isinstance(mech, Mechanism) and is_closed(mech):
        return closed_kernel(mech, expr, tuple(nodes)).request
    return kernel(mech, expr, nodes).request
