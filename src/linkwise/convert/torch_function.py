# pyright: basic
# (Torch is optional, and has no type information here)
"""Functions of Torch for whatever a kernel computes."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from linkwise.codegen import tangents
from linkwise.codegen.request import Request
from linkwise.errors import MissingExtraError, ShapeError
from linkwise.loops.named import Named, requested_by
from linkwise.pipeline import Tree, written_by

if TYPE_CHECKING:
    from linkwise.sweeps.result_part import Names


class TorchFunction:
    """What a kernel computes, as a function of Torch.

    Call it with tensors (..., n), in the order of `arguments` or by name. Their leading axes are
    broadcast against each other.

    Attributes:
        request: The request of its kernel.
        arguments: Names of its inputs.
        shapes: Shape of each result for one state, by its name; "" for the only one.
    """

    def __init__(self, request: Request, status: bool = False) -> None:
        self._call = importlib.import_module("linkwise.codegen.torch_call")
        graph = tangents.graph_of(request)
        self.request, self._status = request, status
        trouble = "quiet" if status else "warn"
        self._function = self._call.function_of(tangents.value(request), trouble)
        self._number: int = self._function.number
        self.arguments = tuple(name for name, _ in graph.inputs)
        names, shapes = request.names or ("",), graph.parts or (graph.shape,)
        self.shapes = dict(zip(names, shapes, strict=True))
        ends = [0, *itertools.accumulate(map(prod, shapes))]
        parts = zip(names, itertools.pairwise(ends), shapes, strict=True)
        self._layout = tuple((name, a, b, tuple(shape)) for name, (a, b), shape in parts)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """The result (..., *shape), a dictionary of several; with `status` a pair with the codes.

        Args:
            inputs: Tensors, in the order of `arguments`.
            named: Tensors by name.

        Raises:
            ShapeError: A tensor is missing or does not fit; says which.
        """
        rows = self._call.tensors(self._function.inputs, self._ordered(inputs, named))
        flat, codes = self._call.call(self._number, rows)
        lead = flat.shape[:-1]
        parts = {n: flat[..., a:b].reshape((*lead, *shape)) for n, a, b, shape in self._layout}
        value = parts[""] if "" in parts else parts
        return (value, codes) if self._status else value

    def _ordered(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        names = self.arguments
        values = dict(zip(names, inputs, strict=False)) | named
        if len(inputs) + len(named) != len(names) or set(values) != set(names):
            raise ShapeError(
                f"{len(inputs)} tensors{''.join(f', {x}' for x in named)} were given; this "
                f"function takes {', '.join(names)}, each once."
            )
        return [values[name] for name in names]

    def __repr__(self) -> str:
        return f"<TorchFunction of {self.request}: ({', '.join(self.arguments)})>"

    def __reduce__(self) -> tuple[Any, ...]:
        return TorchFunction, (self.request, self._status)  # numbers belong to a process


def to_torch(
    expr: Named,
    mech: Tree,
    *,
    nodes: Sequence[str] = (),
    rows: Names | None = None,
    columns: Names | None = None,
    parameters: Sequence[str] = (),
    derive: bool = True,
    status: bool = False,
) -> TorchFunction:
    """A function of Torch, for `backward`, `torch.func` and `torch.compile`, as often as needed.

        f = lw.convert.to_torch("forward_dynamics", mech)
        f(q, v, tau).square().sum().backward()

    It takes the arrays of the kernel as tensors (..., n), on the processor or a GPU, which are not
    copied. float64 and float32 follow from the tensors. The derivative is a kernel too, and so are
    its derivatives, in forward and in reverse mode. `torch.func.vmap` makes one call of many, and
    `torch.compile` sees a single operator.

    Derivatives are by the entries of tensors. Quaternions in q are divided by their length first:
    gradients by their four numbers are tangent to the sphere.

    States without a result are NaN, in values and in gradients, and a `TroubleWarning` reports
    them; see `status`.

    Args:
        expr: As in `lw.compile`: an expression, several by name, or a formula; or the name of a
            quantity (`lw.dynamics.QUANTITIES`, and those of closed chains), such as
            "forward_dynamics", "mass_matrix" or "forward_dynamics_derivatives"; or a control law.
        status: Whether the function returns the codes (...) of the states too, 0 for success, as
            the second of a pair; `Kernel.describe` explains them. It then does not warn, and on a
            GPU nothing waits for the result.

    Raises:
        MissingExtraError: Torch is not installed: the extra `torch`.
        ExpressionError: It has no derivative: a kernel with loops over many bodies.
    """
    try:
        importlib.import_module("torch")
    except ImportError:
        raise MissingExtraError("lw.convert.to_torch", package="torch", extra="torch") from None
    request = requested_by(
        expr, mech, nodes=nodes, rows=rows, columns=columns, parameters=parameters, derive=derive
    )
    with written_by(expr):
        return TorchFunction(request, status)
