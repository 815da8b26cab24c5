"""The stages between a request and code, each a function of the request, kept with it.

    request ──▶ derivation ──▶ program of sweeps ──▶ graph, straight or rolled

A kernel from disk needs none of them: they run when someone looks at them. Each stage imports what
it needs when it runs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from linkwise.algebra.expr import Expr
from linkwise.algebra.space import BODY, JOINT, ONE
from linkwise.codegen.formula import Formula
from linkwise.codegen.request import Request, once_per_request
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.sweeps.cost import cost
from linkwise.sweeps.program import Program
from linkwise.sweeps.result_part import ALL, entries

if TYPE_CHECKING:
    from linkwise.algebra.derivation import Derivation
    from linkwise.codegen.rolled.island import IslandLoop
    from linkwise.codegen.rolled.roll import Rolled
    from linkwise.codegen.scalar.trace import Traced
    from linkwise.sweeps.program import Program


def derived(request: Request, expr: Expr) -> Derivation:
    """The form of an expression that runs; on a mechanism without armature it is one with N = 0."""
    from linkwise.algebra.armature import no_armature
    from linkwise.algebra.budget import Budget
    from linkwise.algebra.derivation import Derivation
    from linkwise.codegen.cheapest import cheapest

    mech = cast(object, request.mech)
    if isinstance(mech, Embedded):
        from linkwise.sweeps.embedded_expression import with_rotors

        expr = with_rotors(expr, mech)
    bare = Derivation(expr)
    if not request.mech.armature.any() and "armature" not in request.parameters:
        bare = no_armature(expr)
    return bare.then(cheapest(bare.result, Budget())) if request.derive else bare


@once_per_request
def derivations(request: Request) -> tuple[Derivation, ...]:
    """The derivation of the form that runs, for each expression."""
    return tuple(derived(request, expr) for expr in request.expressions)


@once_per_request
def program(request: Request) -> Program:
    """The sweeps of all expressions, in the fewest passes."""
    from linkwise.sweeps.lower import lower

    first, *rest = (derivation.result for derivation in derivations(request))
    return lower(first, request.chosen, rest)


@once_per_request
def traced(request: Request) -> Traced:
    """The graph of straight code: of the sweeps over all bodies, or of a formula."""
    from linkwise.codegen.scalar.limb_entries import alike_inputs

    graph = _traced(request)
    if isinstance(cast(object, request.mech), Embedded):
        return graph
    return replace(graph, alike=alike_inputs(request.mech, graph.inputs))


def _traced(request: Request) -> Traced:
    if isinstance(request.quantity, Formula):
        return request.quantity.traced(request)
    from linkwise.codegen.scalar.trace import trace

    inputs, size = request.parameters, request.itemsize
    sweeps = program(request)
    return trace(sweeps, request.mech, request.nodes, inputs, itemsize=size, rank=request.rank)


@once_per_request
def influential(request: Request) -> tuple[str, ...]:
    """The parameters that its expressions depend on, as straight code tells; of loops, all."""
    from linkwise.codegen.scalar.trace import trace

    names = request.parameters
    if not names or is_rolled(request):
        return names
    made = trace(program(request), request.mech, request.nodes, names, plain=True)
    graph = made.graph
    used = {graph.inputs[graph.a[n]] for n in graph.used(made.outputs) if graph.op[n] == "input"}
    return tuple(name for name in names if any(x.startswith(f"{name}[") for x in used))


@once_per_request
def influential_in(
    request: Request, exprs: tuple[Expr, ...], nodes: tuple[str, ...]
) -> tuple[str, ...]:
    """The parameters of a formula's request that expressions in it depend on."""
    return influential(_of_part(request, exprs, nodes))


@once_per_request
def inputs_in(request: Request, expr: Expr) -> dict[str, int]:
    """The inputs of an expression in a formula's request, in order, with their lengths."""
    return dict(graph(_of_part(request, (expr,), request.nodes)).inputs)


def _of_part(request: Request, exprs: tuple[Expr, ...], nodes: tuple[str, ...]) -> Request:
    return replace(request, quantity=exprs, nodes=nodes, names=(), chosen=ALL, rank=None)


@once_per_request
def rolled(request: Request) -> Rolled:
    """The graphs of code with loops over bodies."""
    from linkwise.codegen.rolled.roll import roll

    inputs, size = request.parameters, request.itemsize
    return roll(program(request), request.mech, request.nodes, inputs, itemsize=size)


@once_per_request
def is_rolled(request: Request) -> bool:
    """Whether there are loops over bodies instead of straight code, on a processor."""
    if isinstance(request.quantity, Formula) or len(request.quantity) > 1:
        return False
    if isinstance(cast(object, request.mech), Embedded) or request.mech.flexible:
        return False  # aggregates and flexible bodies differ in size
    from linkwise.codegen.stages import worth_rolling

    chosen = request.rolled
    return worth_rolling(program(request), request.mech) if chosen is None else chosen


@once_per_request
def islands(request: Request) -> IslandLoop | None:
    """The graphs of code with a loop over islands of equal build, where that is worth it."""
    mech = request.mech
    if isinstance(request.quantity, Formula) or isinstance(cast(object, mech), Embedded):
        return None
    if mech.flexible:
        return None
    if request.rolled is not None or request.parameters or not (mech.loops or mech.couplings):
        return None
    from linkwise.codegen.rolled.island import island_loop

    return island_loop(program(request), mech, request.nodes, request.itemsize, request.rank)


def graph(request: Request) -> Traced | Rolled | IslandLoop:
    """The graph of the code for a processor."""
    return islands(request) or (rolled(request) if is_rolled(request) else traced(request))


@dataclass(frozen=True, slots=True)
class Signature:
    """The inputs and results of a kernel."""

    inputs: tuple[tuple[str, int], ...]  # for each input array its name and length, in order
    shape: tuple[int, ...]  # shape of the result for one state
    ops: Counter[str]  # scalar operations for one state, by kind
    # of several results that stand one after another, the shape of each
    parts: tuple[tuple[int, ...], ...] = ()
    lanes: int = 1  # states of a batch that are done together


def signature(graph: Traced | Rolled | IslandLoop, lanes: int = 1) -> Signature:
    """The signature of a kernel of a graph."""
    from linkwise.codegen.scalar.trace import Traced

    if isinstance(graph, Traced):
        ops = graph.graph.count(graph.roots)
        return Signature(graph.inputs, graph.shape, ops, graph.parts, lanes)
    return Signature(graph.inputs, graph.shape, graph.ops, lanes=lanes)


@once_per_request
def straight(request: Request) -> Signature:
    """The signature of straight code."""
    return signature(traced(request))


class Stages:
    """The stages of a kernel."""

    __slots__ = ()

    request: Request

    @property
    def mech(self) -> Mechanism:
        """The mechanism."""
        return self.request.mech

    @property
    def derivation(self) -> Derivation:
        """The derivation of the form that runs; of several expressions, that of the first."""
        return derivations(self.request)[0]

    @property
    def program(self) -> Program:
        """The sweeps."""
        return program(self.request)

    @property
    def traced(self) -> Traced:
        """The graph of straight code."""
        return traced(self.request)


MOST_OPERATIONS, MOST_OF_A_MATRIX = 150_000, 250_000
"""Estimated operations (before folding) of straight code, for a vector and for a matrix."""

MOST_BODIES = 64
"""Bodies of a mechanism whose kernels may be straight code."""


def worth_rolling(program: Program, mech: Mechanism) -> bool:
    """Whether straight code would be too long: it is a little faster, but slow to compile."""
    if not program.loopable:
        return False
    if mech.n_bodies > MOST_BODIES:
        return True
    most = MOST_OPERATIONS if program.result.columns is ONE else MOST_OF_A_MATRIX
    share, columns = 1.0, program.chosen.columns
    if columns is not None and program.result.columns in (JOINT, BODY):
        width = mech.nv if program.result.columns is JOINT else 6 * mech.n_bodies
        share = len(entries(columns, program.result.columns, mech, ())) / max(width, 1)
    return mech.n_bodies > 0 and share * cost(program, mech).work > most
