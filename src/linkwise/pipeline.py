"""The main path: from an expression to a kernel, stage by stage.

    expression ──check──▶ request ──derive──▶ derivation ──lower──▶ program of sweeps
               ──trace──▶ graph, straight or rolled ──emit──▶ code of a target ──▶ kernel

    request     the checked question; all stages are functions of it      codegen/request.py
    derivation  the cheapest equal form, with every step                  stages.derivations
    program     its sweeps over the bodies, in the fewest passes          stages.program
    graph       one mechanism's numbers: straight code, or loops          stages.graph
    code        of a target, from disk if it is cached                    cpu/build.py, cuda/, c/
    kernel      called with arrays                                        Kernel

Each can be printed, also for a kernel from disk: `kernel.request`, `.derivation`, `.program`,
`.traced`, `.source`; `kernel.explain()` prints them in order. Kernels are cached by their request:
on disk by its content, in memory with the mechanism. Each stage imports what it needs when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
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
    from linkwise.codegen.derivative_form import DerivativePlan
    from linkwise.codegen.kernel import Kernel
    from linkwise.codegen.request import Request
    from linkwise.sweeps.program import Program
    from linkwise.sweeps.result_part import Names
    from linkwise.sweeps.scan.plan import ScanPlan


def derive(expr: Expr, *, to: Expr | None = None, budget: Budget | None = None) -> Derivation:
    """The cheapest equal form of an expression, with every step and its identity.

    Args:
        expr: The expression.
        to: Instead of the cheapest form, this one.
        budget: When the search stops and returns the best form so far.

    Raises:
        ExpressionError: `to` was given and no path was found; says whether the two agree
            numerically on a sample of mechanisms.
        ProofError: The numbers contradict a path: a bug in Linkwise.
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


@overload
def plan(expr: Expr, *, schedule: Literal["sweep"] = "sweep") -> Program: ...
@overload
def plan(expr: Expr, *, schedule: Literal["scan"]) -> ScanPlan: ...
@overload
def plan(expr: Formula, *, mech: Tree, nodes: Sequence[str] = ()) -> DerivativePlan: ...
def plan(
    expr: Expr | Formula,
    *,
    schedule: str = "sweep",
    mech: Tree | None = None,
    nodes: Sequence[str] = (),
) -> Program | ScanPlan | DerivativePlan:
    """The sweeps of an expression as written, scheduled into the fewest passes.

        print(lw.plan(mass @ vdot + bias))
        print(lw.plan(lw.jvp("forward_dynamics", "q"), mech=arm))

    Args:
        expr: The expression. Or a derivative by `lw.jvp` or `lw.vjp`: then the plan says, for a
            mechanism, whether the scalar graph or the algebra is differentiated, how many
            operations each takes, and the sweeps of the algebra's form.
        schedule: "sweep" for loops over bodies; "scan" for associative scans, which take all bodies
            at once in O(log N) rounds.
        mech: The mechanism of a derivative by `lw.jvp` or `lw.vjp`, whose operations are counted.
        nodes: Its nodes, as in `lw.compile`.
    """
    from linkwise.codegen.request import Request, checked_expression, checked_schedule
    from linkwise.sweeps.lower import lower

    if isinstance(expr, Formula):
        if mech is None:
            raise ExpressionError(
                f"the plan of {expr} was requested; which of its forms runs is decided by counted "
                "operations on a mechanism: lw.plan(..., mech=mech)."
            )
        from linkwise.codegen.sensitivity import plan_of

        checked_schedule(schedule)
        return plan_of(Request(expr, cast("Mechanism", mech), tuple(nodes)))
    if mech is not None or nodes:
        raise ExpressionError(
            "lw.plan was given a mechanism with an expression, whose sweeps are the same for all "
            "mechanisms. Leave out mech and nodes."
        )

    program = lower(checked_expression(expr))
    if checked_schedule(schedule) == "sweep":
        return program
    from linkwise.sweeps.scan.plan import scan_plan

    return scan_plan(program)


class Options(TypedDict, total=False):
    """Options of `compile` besides the target."""

    nodes: Sequence[str]
    rows: Names | None
    columns: Names | None
    blocks: bool
    parameters: Sequence[str]
    dtype: Any
    rolled: bool | None
    schedule: Schedule
    derive: bool
    cache: bool


Quantity: TypeAlias = "Expr | Formula | Callable[..., Any] | Mapping[str, Expr]"
Tree: TypeAlias = Mechanism | Embedded
Schedule: TypeAlias = Literal["sweep", "scan"]


@overload
def compile(
    expr: Quantity,
    mech: Tree,
    *,
    target: Literal["cpu", "cuda", "numpy"] = "cpu",
    **options: Unpack[Options],
) -> Kernel: ...
@overload
def compile(
    expr: Quantity, mech: Tree, *, target: Literal["c"], **options: Unpack[Options]
) -> CSource: ...
@overload
def compile(expr: Quantity, mech: Tree, *, target: str, **options: Unpack[Options]) -> Any: ...
def compile(
    expr: Quantity,
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
    schedule: Schedule = "sweep",
    derive: bool = True,
    cache: bool = True,
) -> Any:
    """Compile an expression for one mechanism.

    Args:
        expr: The expression. A dictionary of several makes one kernel with all of them, by name:
            what they share is computed once. A function in array code on top of expressions, or
            a `Formula` of one, is one kernel too (`codegen/formula.py`).
        mech: The mechanism, or one whose loops and couplings are built in (`lw.loops.embed`). Its
            numbers are folded into the code.
        nodes: Nodes of the space NODE, in order.
        rows: Only these rows of the result, in this order: names of bodies or hinges where rows
            belong to joints or bodies, of nodes where they belong to nodes, or indices of single
            entries. Work needed only by other rows is skipped.
        columns: The same for the columns of a matrix.
        blocks: For a block-diagonal expression such as P, D, R or G: its blocks (bodies, r, c)
            instead of the matrix, padded with zeros where hinges have fewer degrees of freedom
            than others; `rows` then names bodies.
        target: "cpu" for machine code of this computer; "cuda" for a GPU (the source is available
            without one); "c" for the text of a C function; "numpy" for the interpreter.
        parameters: Numbers of the mechanism that stay inputs of the kernel: "gravity", "inertia",
            "payload" or "payload:NODE", "armature", "locked" (`scalar/parameters.py`).
        dtype: float64 or float32.
        rolled: True for loops over bodies, whose code does not grow with the mechanism; False for
            straight code; default: chosen from the size. For the target "cpu".
        schedule: "sweep" visits the bodies one after another. "scan" takes them all at once, in
            O(log N) rounds, for long chains (`lw.plan(expr, schedule="scan")` prints it); for the
            targets "numpy", and "cuda", where it is for serial chains of rigid bodies.
        derive: Whether to derive and run the cheapest equal form. False runs the expression as
            written, without any identity; products are multiplied out where that shares a
            recursion.
        cache: Whether to keep the compiled kernel on disk for the next process.
    """
    request = requested(
        expr,
        mech,
        nodes=nodes,
        rows=rows,
        columns=columns,
        blocks=blocks,
        parameters=parameters,
        dtype=dtype,
        rolled=rolled,
        schedule=schedule,
        derive=derive,
        cache=cache,
    )
    names = list(cast("Mapping[str, Expr]", expr)) if isinstance(expr, Mapping) else ()
    if len(names) == 1:
        raise ExpressionError(
            f"lw.compile was called with a dictionary of one expression, {names[0]!r}; "
            "dictionaries are for several. Pass the expression itself."
        )
    if isinstance(mech, Embedded) and target in ("c", "cuda"):
        raise ExpressionError(
            f"target={target!r} was given for {mech.name!r} with its loops and couplings built "
            "in; aggregate bodies have the targets 'cpu' and 'numpy'."
        )
    if request.schedule == "scan" and target not in ("numpy", "cuda"):
        raise ExpressionError(
            f"schedule='scan' was given for the target {target!r}; scans take all bodies at once, "
            "on the targets 'cuda' and 'numpy'. On one core sweeps are faster: leave it out."
        )
    from linkwise.codegen.c.source import CSource
    from linkwise.codegen.kernel import kernel

    with written_by(cast(object, expr)):
        return CSource(request) if target == "c" else kernel(request, target)


@contextmanager
def written_by(expr: object) -> Generator[None]:
    """Errors of a user's function while it is compiled say what such a function does."""
    try:
        yield
    except (TypeError, AttributeError, IndexError) as error:
        if not callable(expr):
            raise
        name = getattr(expr, "__name__", "the function")
        raise ExpressionError(
            f"{name} cannot be compiled: it failed with {type(error).__name__}: {error}. A "
            "function takes `at`, reads inputs with at.q, at.v and at.read, values with at.value, "
            "and returns an array or a tuple of arrays."
        ) from error


def requested(expr: Quantity, mech: Tree, **options: Unpack[Options]) -> Request:
    """The checked request behind `compile`, for whatever is made of its graph."""
    from linkwise.codegen.by_columns import by_columns, needs_columns
    from linkwise.codegen.kernel import Kernel
    from linkwise.codegen.request import Request
    from linkwise.sweeps.result_part import choice

    if not isinstance(cast(object, mech), Mechanism | Embedded):
        raise ExpressionError(f"lw.compile takes a mechanism, not {mech!r}: see lw.load.")
    rolled = options.get("rolled")
    if rolled not in (None, True, False):
        raise ExpressionError(f"rolled is {rolled!r}; it must be True, False or None.")
    chosen = choice(options.get("rows"), options.get("columns"), options.get("blocks", False))
    named = cast("Mapping[str, Expr]", expr if isinstance(expr, Mapping) else {})
    quantity: Any = tuple(named.values()) if isinstance(expr, Mapping) else (expr,)
    if isinstance(expr, Formula):
        quantity = expr
    elif callable(cast(object, expr)):
        given = cast("object", expr)
        if isinstance(getattr(given, "kernel", given), Kernel):
            raise ExpressionError(
                f"lw.compile was given {given!r}, which is compiled already: call it, or "
                "law.kernel of a control law. lw.jvp, lw.vjp, lw.convert.to_jax, to_torch "
                "and to_casadi take it as well."
            )
        quantity = Formula(cast("Any", expr))
    elif any(isinstance(x, Expr) and needs_columns(x) for x in quantity):
        if rolled or not chosen.is_all:
            raise ExpressionError(
                f"rolled=True, rows, columns or blocks were given for {expr}, which is computed "
                "column by column; leave them out."
            )
        quantity = by_columns(quantity, tuple(named))
    return Request(
        quantity,
        cast("Mechanism", mech),
        cast("tuple[str, ...]", options.get("nodes", ())),
        cast("tuple[str, ...]", options.get("parameters", ())),
        itemsize(options.get("dtype", np.float64)),
        rolled,
        chosen,
        options.get("derive", True),
        names=tuple(named),
        cache=options.get("cache", True),
        schedule=options.get("schedule", "sweep"),
    )


__all__ = ["compile", "derive", "plan"]

open_front_door(globals(), __all__)
