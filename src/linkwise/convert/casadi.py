"""Functions of CasADi for whatever a kernel computes: symbolic, or compiled from C.

The symbolic one is the scalar graph in CasADi's own scalars, which CasADi differentiates; it needs
nothing but CasADi. The compiled one is machine code with derivatives from the algebra
(`external.py`); it needs a C compiler.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkwise.codegen.c.source import default_name
from linkwise.codegen.c.text import check_identifier
from linkwise.codegen.cpu import cache as files, machine
from linkwise.convert.external import casadi_source
from linkwise.convert.smooth import Blocks, Smooth
from linkwise.errors import ExpressionError, LoweringError, MissingExtraError
from linkwise.loops.named import Named, requested_by
from linkwise.pipeline import Tree, written_by

if TYPE_CHECKING:
    from linkwise.codegen.request import Request
    from linkwise.codegen.scalar.trace import Traced
    from linkwise.sweeps.result_part import Names

FLAGS = ("-std=c99", "-O1", "-shared", "-fPIC", "-march=native")
"""Straight code gains little from -O2, which takes far longer on it."""


def to_casadi(
    expr: Named,
    mech: Tree,
    *,
    name: str | None = None,
    nodes: Sequence[str] = (),
    rows: Names | None = None,
    columns: Names | None = None,
    parameters: Sequence[str] = (),
    derive: bool = True,
    compiled: bool = False,
    order: int = 2,
) -> Any:
    """An expression of a mechanism as a function of CasADi, with sparsity and derivatives.

        f = lw.convert.to_casadi("forward_dynamics", arm)        # f(q, v, tau)

    Its inputs are columns with the names of the kernel's inputs, its results matrices: of arrays
    with more than two axes, all but the last are rows. Quaternions in q are divided by their
    length, so that any entries but zeros are a configuration; derivatives are by all nq entries
    of q. States without a result give NaN, of a compiled function an error of CasADi, at which an
    optimizer shortens its step.

    Args:
        expr: As in `lw.compile`: an expression, several by name, or a formula; or the name of a
            quantity (`lw.dynamics.QUANTITIES`, and those of closed chains), such as
            "forward_dynamics" or "mass_matrix".
        name: Of the function, a C identifier; default: the name of the robot and "casadi".
        parameters: As in `lw.compile`: more inputs of the function.
        compiled: Whether to compile it, with the C compiler `cc` or that of the variable CC, and to
            load it with `casadi.external`. Its Jacobian comes from the algebra and takes a
            fraction of the time of CasADi's. False gives a function of CasADi's symbols, which
            needs no compiler and which `f.expand()` and `f(SX)` can look into.
        order: Of a compiled function, the highest derivatives: 1 for Jacobians, 2 for Hessians as
            well, which take longest to compile.

    Returns:
        A `casadi.Function`.

    Raises:
        MissingExtraError: CasADi is not installed: the extra `casadi`.
    """
    casadi = casadi_module()
    request = requested_by(
        expr, mech, nodes=nodes, rows=rows, columns=columns, parameters=parameters, derive=derive
    )
    name = _checked_name(name, mech, order)
    with written_by(expr):
        if compiled:
            return casadi.external(name, str(_library(casadi_source(request, name, order=order))))
        return _symbolic(request, name, casadi)


def casadi_c(
    expr: Named,
    mech: Tree,
    *,
    name: str | None = None,
    nodes: Sequence[str] = (),
    rows: Names | None = None,
    columns: Names | None = None,
    parameters: Sequence[str] = (),
    derive: bool = True,
    order: int = 2,
) -> str:
    """The C source of the function that `to_casadi(..., compiled=True)` loads.

    It is C99 and needs nothing but math.h. Its first lines say how to compile and load it.

    Args:
        expr: As in `to_casadi`.
        name: As in `to_casadi`.
        order: As in `to_casadi`.
    """
    request = requested_by(
        expr, mech, nodes=nodes, rows=rows, columns=columns, parameters=parameters, derive=derive
    )
    with written_by(expr):
        return casadi_source(request, _checked_name(name, mech, order), order=order)


def _checked_name(name: str | None, mech: Tree, order: int) -> str:
    if order not in (1, 2):
        raise ExpressionError(f"order is {order!r}; it must be 1 or 2.")
    return check_identifier(name or default_name(mech.name, "casadi"))


def casadi_module() -> Any:
    """CasADi; raises where it is not installed."""
    try:
        return importlib.import_module("casadi")
    except ImportError:
        raise MissingExtraError("to_casadi", package="casadi", extra="casadi") from None


# ------------------------------------------------------------------------------------- symbols


def _symbolic(request: Request, name: str, casadi: Any) -> Any:
    smooth = Smooth(request)
    inputs = [
        casadi.SX.sym(label, size)
        for label, (_, size) in zip(smooth.labels, smooth.inputs, strict=True)
    ]
    entries = [x[i] for x in inputs for i in range(x.numel())]
    results = _matrices(smooth.value, entries, casadi)
    return casadi.Function(name, inputs, results, smooth.labels, smooth.results)


def _matrices(made: Blocks, inputs: list[Any], casadi: Any) -> list[Any]:
    """The matrices of a graph in symbols of CasADi."""
    value = _nodes(made.traced, inputs, casadi)
    holds = [_between(value[c.node], c.low, c.high) for c in made.traced.checks]
    # A factor, so that derivatives are NaN as well.
    valid = casadi.if_else(casadi.logic_all(casadi.vertcat(*holds)), 1.0, math.nan) if holds else 1
    results = list[Any]()
    for block, part in made.slices():
        pattern = casadi.Sparsity(*block.shape, block.columns, [row for row, _ in block.entries])
        numbers = [value[node] * valid for node in made.traced.outputs[part]]
        results.append(casadi.SX(pattern, casadi.vertcat(*numbers)))
    return results


def _between(x: Any, low: float, high: float) -> Any:
    inside = x > low
    return inside * (x < high) if math.isfinite(high) else inside


def _nodes(traced: Traced, inputs: list[Any], casadi: Any) -> dict[int, Any]:
    graph, value = traced.graph, dict[int, Any]()
    unary = {"sqrt": casadi.sqrt, "sin": casadi.sin, "cos": casadi.cos}
    for node in graph.used(traced.roots):
        op, a, b = graph.op[node], graph.a[node], graph.b[node]
        match op:
            case "const":
                value[node] = casadi.SX(graph.value[node])
            case "input":
                value[node] = inputs[a]
            case "part":
                raise LoweringError(
                    "to_casadi was given a kernel with a loop, such as inverse kinematics; a "
                    "function of CasADi is straight code."
                )
            case "add":
                value[node] = value[a] + value[b]
            case "sub":
                value[node] = value[a] - value[b]
            case "mul":
                value[node] = value[a] * value[b]
            case "neg":
                value[node] = -value[a]
            case "inv":
                value[node] = 1.0 / value[a]
            case "gate":
                value[node] = casadi.if_else(value[a] > 0.0, value[b], 0.0)
            case _:
                value[node] = unary[op](value[a])
    return value


# ------------------------------------------------------------------------------------ compiled


@cache
def _folder() -> Path:
    """A folder for the libraries of this process, which keeps them open."""
    folder = tempfile.mkdtemp(prefix="linkwise-casadi-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _library(source: str) -> Path:
    """The shared library of a C source; from the cache of kernels if it is there."""
    compiler = os.environ.get("CC") or "cc"
    parts = (compiler, *FLAGS, *machine.host(), source)  # native code is for one processor
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    path = _folder() / f"{key}.so"
    if path.exists():
        return path
    content = files.read(key)
    if content is not None:
        path.write_bytes(content)
        return path
    text = path.with_suffix(".c")
    text.write_text(source)
    try:
        command = [compiler, *FLAGS, str(text), "-o", str(path), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ExpressionError(
            f"to_casadi(compiled=True) needs a C compiler, and {compiler!r} cannot be run "
            f"({error.strerror}). Install one, name it in the variable CC, or leave compiled=False."
        ) from None
    if done.returncode:
        raise ExpressionError(f"{compiler!r} failed on {text}: {done.stderr.strip()[:500]}")
    files.write(key, path.read_bytes())
    return path
