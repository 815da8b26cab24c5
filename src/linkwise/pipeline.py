"""The main path: derive the cheap form of an expression, plan its sweeps, run them.

What a step needs is imported where it is taken: a kernel that is on disk needs none of them.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import numpy as np

from linkwise.algebra.expr import ANY, Expr
from linkwise.arguments import is_a, itemsize
from linkwise.codegen.formula import Formula
from linkwise.errors import ExpressionError, unknown_name
from linkwise.front_door import open_front_door
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism

if TYPE_CHECKING:
    from linkwise.algebra.derivation import Derivation
    from linkwise.algebra.evidence import Evidence
    from linkwise.algebra.search import Budget
    from linkwise.codegen.c.source import CSource
    from linkwise.codegen.cpu.kernel import Kernel
    from linkwise.codegen.cuda.kernel import CudaKernel
    from linkwise.codegen.numpy_kernel import NumpyKernel
    from linkwise.codegen.several import Several
    from linkwise.sweeps.chosen import Names
    from linkwise.sweeps.program import Program

TARGETS = ("cpu", "cuda", "c", "numpy")


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
    from linkwise.algebra.evidence import Evidence
    from linkwise.algebra.search import Budget, connect

    expr = _expression(expr)
    budget = None if budget is None else is_a(Budget, budget, "budget")
    if to is None:
        return _cheapest(expr, budget or Budget())
    if _expression(to).range is ANY:  # a bare I takes the space of the expression
        to = to + 0.0 * expr
    if (expr.range, expr.domain) != (to.range, to.domain):
        raise ExpressionError(
            f"{expr} maps {expr.domain} to {expr.range}, but {to} maps {to.domain} to {to.range}: "
            "they cannot be equal."
        )
    found, numbers = connect(expr, to, budget or Budget(400)), Evidence(expr, to)
    if found is None:
        proof = Proof(expr, to, None, numbers)
        raise ExpressionError(f"no derivation was found from  {expr}  to  {to}. {proof.verdict}")
    numbers.check(found.where, found.needs)
    return found


@lru_cache(maxsize=256)
def _cheapest(expr: Expr, budget: Budget) -> Derivation:
    """Found once: an expression is the same for every mechanism, and for the next process."""
    from linkwise.algebra.derivation import Derivation
    from linkwise.algebra.selection import unnamed, with_selections
    from linkwise.codegen.cpu import cache
    from linkwise.codegen.cpu.digest import file_key

    for_any, chosen = unnamed(expr)
    if for_any is not expr:
        return with_selections(_cheapest(for_any, budget), chosen.get)
    key = file_key("derivation", expr, budget)
    with contextlib.suppress(Exception):  # whatever is wrong with a file: it is found again
        filed = pickle.loads(cache.read(key) or b"") if key else None
        if isinstance(filed, Derivation) and filed.start is expr:
            return filed
    from linkwise.algebra.search import cheapest
    from linkwise.sweeps.cost import cost
    from linkwise.sweeps.lower import lower

    found = cheapest(expr, lambda form: cost(lower(form)), budget)
    if key:
        cache.write(key, pickle.dumps(found))
    return found


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether two expressions were proved equal, and how.

    Attributes:
        left: One side.
        right: The other side.
        derivation: The proof, or None.
        numbers: What matrices of sample mechanisms say.
    """

    left: Expr
    right: Expr
    derivation: Derivation | None
    numbers: Evidence

    @property
    def on_trees(self) -> float:
        """Largest relative difference on branched trees with armature, as matrices."""
        return self.numbers.on_trees

    @property
    def on_chains(self) -> float:
        """The same on serial chains."""
        return self.numbers.on_chains

    @property
    def found(self) -> bool:
        """Whether there is a proof."""
        return self.derivation is not None

    @property
    def verdict(self) -> str:
        """In words."""
        numbers = f"(difference {self.on_trees:.1e} on trees, {self.on_chains:.1e} on chains)"
        domain = self.numbers.domain
        if domain is None:
            return f"The two are not equal {numbers}."
        where, needs = domain
        if needs:
            bare = self.numbers.on_bare_trees, self.numbers.on_bare_chains
            numbers = f"{numbers[:-1]}; without armature {bare[0]:.1e} and {bare[1]:.1e})"
        if self.derivation is not None:
            count = len(self.derivation)
            steps = f"{count} step" + ("" if count == 1 else "s")
            where, needs = self.derivation.where, self.derivation.needs
            apart = "; with armature the two are not equal" if needs else ""
            return f"Proved in {steps}, on {where}{_without(needs)}{apart} {numbers}."
        if where == "any tree":
            return f"The two agree numerically{_without(needs)} {numbers}; the proof is missing."
        return (
            f"The two agree on serial chains{_without(needs)} but not on branched trees {numbers}."
        )

    def __str__(self) -> str:
        head = f"{self.left} = {self.right}\n{self.verdict}"
        return head if self.derivation is None else f"{head}\n{self.derivation}"


def _bare(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    from linkwise.algebra.armature import without_armature

    return without_armature(left), without_armature(right)


def _without(needs: str) -> str:
    return " without armature" if needs else ""


def prove(left: Expr, right: Expr) -> Proof:
    """A proof that two expressions are equal, or what is known instead.

    Args:
        left: One side.
        right: The other side; a bare I takes the space of the left.

    Raises:
        ExpressionError: The two map between different spaces.
        ProofError: A proof was found that the numbers contradict: a bug in Linkwise.
    """
    from linkwise.algebra.evidence import Evidence
    from linkwise.algebra.search import Budget, by_normal_form, connect, without_armature_steps

    left, right = left + 0.0 * right, right + 0.0 * left
    if (left.range, left.domain) != (right.range, right.domain):
        raise ExpressionError(f"{left} and {right} map between different spaces.")
    numbers, found = Evidence(left, right), None
    match numbers.domain:
        case ("any tree", ""):
            found = connect(left, right, Budget(400))
        case ("serial chains", ""):
            found = by_normal_form(left, right, chain=True)
        case ("any tree", "N = 0"):
            found = connect(*_bare(left, right), Budget(400))
        case ("serial chains", "N = 0"):
            found = by_normal_form(*_bare(left, right), chain=True)
        case _:
            pass
    if found is not None and found.start is not left:
        found = without_armature_steps(left, right, found)
    if found is not None:
        numbers.check(found.where, found.needs)
    return Proof(left, right, found, numbers)


def plan(expr: Expr) -> Program:
    """The sweeps of an expression as it stands, scheduled into the fewest passes."""
    from linkwise.sweeps.lower import lower

    return lower(_expression(expr))


def _expression(value: object) -> Expr:
    if isinstance(value, Expr):
        return value
    raise ExpressionError(
        f"{value!r} is not an expression: write one with the symbols of linkwise.algebra, or read "
        "it from text with linkwise.algebra.parse.parse."
    )


@overload
def compile(
    expr: Expr,
    mech: Mechanism | Embedded,
    *,
    nodes: Sequence[str] = (),
    rows: Names | None = None,
    columns: Names | None = None,
    blocks: bool = False,
    target: Literal["cpu"] = "cpu",
    parameters: Sequence[str] = (),
    dtype: Any = np.float64,
    rolled: bool | None = None,
    derive: bool = True,
    cache: bool = True,
) -> Kernel: ...


@overload
def compile(
    expr: Expr,
    mech: Mechanism | Embedded,
    *,
    nodes: Sequence[str] = (),
    rows: Names | None = None,
    columns: Names | None = None,
    blocks: bool = False,
    target: Literal["cuda", "c", "numpy"],
    parameters: Sequence[str] = (),
    dtype: Any = np.float64,
    rolled: bool | None = None,
    derive: bool = True,
    cache: bool = True,
) -> CudaKernel | CSource | NumpyKernel: ...


@overload
def compile(
    expr: Formula,
    mech: Mechanism,
    *,
    nodes: Sequence[str] = (),
    target: str = "cpu",
    dtype: Any = np.float64,
    cache: bool = True,
) -> Any: ...


@overload
def compile(
    expr: Mapping[str, Expr],
    mech: Mechanism | Embedded,
    *,
    nodes: Sequence[str] = (),
    target: Literal["cpu", "cuda", "numpy"] = "cpu",
    parameters: Sequence[str] = (),
    dtype: Any = np.float64,
    derive: bool = True,
    cache: bool = True,
) -> Several: ...


@overload
def compile(
    expr: Mapping[str, Expr],
    mech: Mechanism | Embedded,
    *,
    nodes: Sequence[str] = (),
    target: Literal["c"],
    parameters: Sequence[str] = (),
    dtype: Any = np.float64,
    derive: bool = True,
    cache: bool = True,
) -> CSource: ...


def compile(
    expr: Expr | Formula | Mapping[str, Expr],
    mech: Mechanism | Embedded,
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
) -> Kernel | CudaKernel | CSource | NumpyKernel | Several:
    """An expression on one mechanism, compiled.

    Args:
        expr: The expression. A dictionary of several makes one kernel that gives them all, by
            name: what they share is computed once. A `Formula` is array code on top of
            expressions.
        mech: The mechanism, or one whose loops and couplings are built in (`lw.embed`); its
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
    from linkwise.codegen.recipe import Recipe
    from linkwise.sweeps.chosen import choice

    if not isinstance(cast(object, mech), Mechanism | Embedded):
        raise ExpressionError(f"lw.compile wants a mechanism, not {mech!r}: see lw.load.")
    if rolled not in (None, True, False):
        raise ExpressionError(f"rolled is {rolled!r}; it can be True, False or None.")
    found = _derived if derive else _as_written
    part = choice(rows, columns, blocks)
    options = (itemsize(dtype), found, rolled, part)
    names = tuple(expr) if isinstance(expr, Mapping) else ()
    wanted: list[Any] = list(expr.values()) if isinstance(expr, Mapping) else [expr]
    if isinstance(expr, Formula):
        names = expr.names
    else:
        wanted = [_expression(x) for x in wanted]
    if not wanted:
        raise ExpressionError("lw.compile was given no expression; name at least one.")
    if isinstance(mech, Embedded) and not isinstance(expr, Formula):
        from linkwise.sweeps.embedded_expression import with_rotors

        wanted = [with_rotors(x, mech) for x in wanted]
        if target in ("c", "cuda"):
            raise ExpressionError(
                f"target={target!r} was given for {mech.name!r} with its loops and couplings built "
                "in; for aggregate bodies there are 'cpu' and 'numpy'."
            )
    recipe = Recipe(wanted[0], cast("Any", mech), nodes, parameters, *options, wanted[1:])
    match target:
        case "cpu":
            from linkwise.codegen.cpu.kernel import Kernel

            found = Kernel(recipe.mech, *recipe.machine(keep=cache), recipe)
        case "cuda":
            from linkwise.codegen.cuda.kernel import CudaKernel

            found = CudaKernel(recipe)
        case "c":
            from linkwise.codegen.c.source import CSource

            return CSource(recipe, results=names)
        case "numpy":
            from linkwise.codegen.numpy_kernel import NumpyKernel

            found = NumpyKernel(recipe)
        case _:
            raise unknown_name("target", target, TARGETS, owner="lw.compile")
    if not names:
        return found
    from linkwise.codegen.several import Several

    return Several(found, names)


def _derived(expr: Expr) -> Derivation:
    """The cheapest form: in `compile` the name of the function is that of an option."""
    return derive(expr)


def _as_written(expr: Expr) -> Derivation:
    """A derivation without steps."""
    from linkwise.algebra.derivation import Derivation

    return Derivation(expr)


__all__ = ["Proof", "compile", "derive", "plan", "prove"]


open_front_door(globals(), ("compile", "derive", "plan", "prove"))
