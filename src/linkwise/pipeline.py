"""The main path: from an expression to a kernel, one stage after the other.

    expression ──check──▶ request ──derive──▶ derivation ──lower──▶ program of sweeps
               ──trace──▶ graph, straight or rolled ──emit──▶ code of a target ──▶ kernel

    request     what is asked, checked; all stages are functions of it    codegen/request.py
    derivation  the cheapest equal form, with every step                  stages.derivations
    program     its sweeps over the bodies, in the fewest passes          stages.program
    graph       one mechanism's numbers: straight code, or loops          stages.graph
    code        of a target, from disk where it is there                  cpu/build.py, cuda/, c/
    kernel      called with arrays                                        Kernel

Each can be printed, also of a kernel that came from disk: `kernel.request`, `.derivation`,
`.program`, `.traced`, `.source`; `kernel.explain()` prints them in order. A kernel is found again
by its request: on disk by what is in it, in memory with the mechanism. What a stage needs is
imported where it is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack, cast, overload

import numpy as np

from linkwise.algebra.expr import Expr
from linkwise.arguments import is_a, itemsize
from linkwise.codegen.formula import Formula
from linkwise.errors import ExpressionError
from linkwise.front_door import open_front_door
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism

if TYPE_CHECKING:
    from linkwise.algebra.budget import Budget
    from linkwise.algebra.derivation import Derivation
    from linkwise.codegen.c.source import CSource
    from linkwise.codegen.kernel import Kernel
    from linkwise.sweeps.chosen import Names
    from linkwise.sweeps.program import Program


def derive(expr: Expr, *, to: Expr | None = None, budget: Budget | None = None) -> Derivation:
    """The cheapest equal form of an expression, with every step and its identity.

    Args:
        expr: The expression.
        to: Instead of the cheapest form, this one.
        budget: When the search ends with the best form found.

    Raises:
        ExpressionError: `to` was given and no path was found; says whether the two agree
            numerically on a sample of mechanisms.
        ProofError: A path was found that the numbers contradict: a bug in Linkwise.
    """
    from linkwise.algebra.budget import Budget
    from linkwise.algebra.prove import ENOUGH, path
    from linkwise.codegen.cheapest import cheapest
    from linkwise.codegen.request import checked_expression

    expr = checked_expression(expr)
    budget = None if budget is None else is_a(Budget, budget, "budget")
    if to is None:
        return cheapest(expr, budget or Budget())
    return path(expr, checked_expression(to), budget or ENOUGH)


def plan(expr: Expr) -> Program:
    """The sweeps of an expression as it stands, scheduled into the fewest passes."""
    from linkwise.codegen.request import checked_expression
    from linkwise.sweeps.lower import lower

    return lower(checked_expression(expr))


class Options(TypedDict, total=False):
    """What `compile` takes besides the target."""

    nodes: Sequence[str]
    rows: Names | None
    columns: Names | None
    blocks: bool
    parameters: Sequence[str]
    dtype: Any
    rolled: bool | None
    derive: bool
    cache: bool


Asked: TypeAlias = "Expr | Formula | Callable[..., Any] | Mapping[str, Expr]"
Tree: TypeAlias = Mechanism | Embedded


@overload
def compile(
    expr: Asked,
    mech: Tree,
    *,
    target: Literal["cpu", "cuda", "numpy"] = "cpu",
    **options: Unpack[Options],
) -> Kernel: ...
@overload
def compile(
    expr: Asked, mech: Tree, *, target: Literal["c"], **options: Unpack[Options]
) -> CSource: ...
@overload
def compile(expr: Asked, mech: Tree, *, target: str, **options: Unpack[Options]) -> Any: ...
def compile(
    expr: Asked,
    mech: Tree,
    *,
    nodes: Sequence[str] = (),
    rows: Names | None = None,
    columns: Names | None = None,
    blocks: bool = False,
    target: str = "cpu",
    parameters: Sequence[str] = (),
    dtype: Any = np.float64,
    rolled: bool | None = None,
    derive: bool = True,
    cache: bool = True,
) -> Any:
    """An expression on one mechanism, compiled.

    Args:
        expr: The expression. A dictionary of several makes one kernel that gives them all, by
            name: what they share is computed once. A function in array code on top of
            expressions, or a `Formula` of one, is one kernel too (`codegen/formula.py`).
        mech: The mechanism, or one whose loops and couplings are built in (`lw.loops.embed`); its
            numbers are folded into the code.
        nodes: Nodes of the space NODE, in order.
        rows: Only these rows of the result, in this order: names of bodies or hinges where rows
            belong to joints or bodies, of nodes where they belong to nodes, or numbers of single
            entries. What others need alone is not computed.
        columns: The same for the columns of a matrix.
        blocks: For a block-diagonal expression such as P, D, R or G: its blocks one after the other
            instead of the matrix, (bodies, r, c), with zeros behind where hinges have fewer
            freedoms than others; `rows` names bodies then.
        target: "cpu" for machine code of this computer; "cuda" for a graphics card, whose text can
            be looked at without one; "c" for the text of a C function; "numpy" for the interpreter.
        parameters: Numbers of the mechanism that stay inputs of the kernel instead: "gravity",
            "inertia", "payload" or "payload:NODE", "armature", "locked" (`scalar/parameters.py`).
        dtype: float64 or float32.
        rolled: True for loops over bodies, whose code does not grow with the mechanism, False for
            straight code; by default what suits the size. For the target "cpu".
        derive: Whether its cheapest equal form is derived and runs. False runs it as it is written,
            without any identity; products are multiplied out where that shares a recursion.
        cache: Whether compiled kernels are kept on disk for the next process.
    """
    from linkwise.codegen.request import Request
    from linkwise.sweeps.chosen import choice

    if not isinstance(cast(object, mech), Mechanism | Embedded):
        raise ExpressionError(f"lw.compile wants a mechanism, not {mech!r}: see lw.load.")
    if rolled not in (None, True, False):
        raise ExpressionError(f"rolled is {rolled!r}; it can be True, False or None.")
    named = cast("Mapping[str, Expr]", expr if isinstance(expr, Mapping) else {})
    asked: Any = tuple(named.values()) if isinstance(expr, Mapping) else (expr,)
    if isinstance(expr, Formula):
        asked = expr
    elif callable(cast(object, expr)):
        asked = Formula(cast("Any", expr))
    request = Request(
        asked,
        cast("Mechanism", mech),
        cast("tuple[str, ...]", nodes),
        cast("tuple[str, ...]", parameters),
        itemsize(dtype),
        rolled,
        choice(rows, columns, blocks),
        derive,
        names=tuple(named),
        cache=cache,
    )
    if isinstance(mech, Embedded) and target in ("c", "cuda"):
        raise ExpressionError(
            f"target={target!r} was given for {mech.name!r} with its loops and couplings built "
            "in; for aggregate bodies there are 'cpu' and 'numpy'."
        )
    if target == "c":
        from linkwise.codegen.c.source import CSource

        return CSource(request)
    from linkwise.codegen.kernel import kernel

    return kernel(request, target)


__all__ = ["compile", "derive", "plan"]

open_front_door(globals(), __all__)
