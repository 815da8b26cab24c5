"""The way from an expression to machine code, each stage made when it is first asked for."""

from __future__ import annotations

import contextlib
import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algebra.expr import Expr
from linkwise.codegen.cpu import cache
from linkwise.codegen.cpu.digest import file_key
from linkwise.codegen.formula import Formula, TooLongError
from linkwise.codegen.scalar import parameters
from linkwise.errors import ExpressionError
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.sweeps.chosen import WHOLE, Chosen

if TYPE_CHECKING:
    from linkwise.algebra.derivation import Derivation
    from linkwise.codegen.cpu.machine import Machine
    from linkwise.codegen.cpu.unit import Unit
    from linkwise.codegen.rolled.roll import Rolled
    from linkwise.codegen.scalar.trace import Traced
    from linkwise.sweeps.program import Program


@dataclass(frozen=True, slots=True)
class Signature:
    """What a kernel takes and gives.

    Attributes:
        inputs: For each input array its name and length, in order.
        shape: Shape of the result for one state.
        ops: Scalar operations for one state, by kind.
        parts: Of several results that stand one after another, the shape of each.
        lanes: States of a batch that are done together.
    """

    inputs: tuple[tuple[str, int], ...]
    shape: tuple[int, ...]
    ops: Counter[str]
    parts: tuple[tuple[int, ...], ...] = ()
    lanes: int = 1


class Recipe:
    """How a kernel is made.

    Attributes:
        expr: What was asked for: an expression, or a formula.
        mech: The mechanism.
        nodes: Names of the nodes of the space NODE.
        parameters: Numbers of the mechanism that stay inputs.
        itemsize: Bytes of a number.
        wish: Whether it shall have loops over bodies; None leaves it to its size.
        chosen: The part of the result that is wanted.
        more: Other expressions that come out of the same kernel, behind the first.
        rank: How many rows of loops and couplings have to be independent; None leaves it out.
        kept: Whether its machine code may be on disk.
    """

    def __init__(
        self,
        expr: Expr | Formula,
        mech: Mechanism,
        nodes: Sequence[str],
        named: Sequence[str],
        itemsize: int,
        derive: Callable[[Expr], Derivation],
        wish: bool | None = None,
        chosen: Chosen = WHOLE,
        more: Sequence[Expr] = (),
        rank: int | None = None,
    ) -> None:
        self.expr, self.mech, self.itemsize, self.wish = expr, mech, itemsize, wish
        self.nodes = (nodes,) if isinstance(nodes, str) else tuple(nodes)
        self.parameters = parameters.checked(mech, named, self.nodes)
        written = isinstance(expr, Formula)
        self.chosen = chosen if written else chosen.checked(expr, mech, self.nodes)
        if isinstance(mech, Embedded) and wish:
            raise ExpressionError(
                f"rolled=True was given for {mech.name!r} with its loops and couplings built in: "
                "aggregate bodies differ in size, and there is straight code only."
            )
        self._derive, self.more, self.rank = derive, tuple(more), rank
        if self.more and (wish or not chosen.whole or chosen.blocks):
            raise ExpressionError(
                "rolled=True, rows, columns or blocks were given for several expressions; together "
                "they are had whole and as straight code."
            )
        self.kept = True

    @property
    def order(self) -> tuple[Any, ...]:
        """What was asked for: all that another process needs to make the same kernel."""
        named, derive = self.parameters, self._derive
        options = (self.itemsize, derive, self.wish, self.chosen, self.more, self.rank)
        return self.expr, self.mech, self.nodes, named, *options

    @cached_property
    def derivation(self) -> Derivation:
        """How the form that runs was found."""
        return self._derived(self.expression)

    @property
    def expression(self) -> Expr:
        """The expression that was asked for; raises for a formula."""
        if isinstance(self.expr, Formula):
            raise ExpressionError(
                f"{self.expr.write.__name__} is written in array code on top of expressions: it "
                "has no derivation of its own."
            )
        return self.expr

    def _derived(self, expr: Expr) -> Derivation:
        """The form that runs; on a mechanism without armature it is one with N = 0."""
        from linkwise.algebra.search import no_armature

        if self.mech.armature.any() or "armature" in self.parameters:
            return self._derive(expr)
        bare = no_armature(expr)
        return bare.then(self._derive(bare.result))

    @cached_property
    def program(self) -> Program:
        """Its sweeps."""
        from linkwise.sweeps.lower import lower

        rest = [self._derived(expr).result for expr in self.more]
        return lower(self.derivation.result, self.chosen, rest)

    @cached_property
    def traced(self) -> Traced:
        """Its scalar graph."""
        from linkwise.codegen.scalar.trace import trace

        if isinstance(self.expr, Formula):
            return self.expr.traced(self.mech, self.nodes, self.itemsize, self._derived)
        options: dict[str, Any] = {"itemsize": self.itemsize, "rank": self.rank}
        return trace(self.program, self.mech, self.nodes, self.parameters, **options)

    @cached_property
    def is_rolled(self) -> bool:
        """Whether it has loops over bodies instead of straight code."""
        from linkwise.codegen.rolled.roll import worth_rolling

        if isinstance(self.mech, Embedded) or self.more or isinstance(self.expr, Formula):
            return False  # aggregates differ in size: straight code only
        return worth_rolling(self.program, self.mech) if self.wish is None else self.wish

    @cached_property
    def rolled(self) -> Rolled:
        """Its loops."""
        from linkwise.codegen.rolled.roll import roll

        return roll(self.program, self.mech, self.nodes, self.parameters, itemsize=self.itemsize)

    @cached_property
    def signature(self) -> Signature:
        """What the kernel takes and gives."""
        from linkwise.codegen.cpu.machine import lanes

        wide = lanes(self.itemsize)
        if self.is_rolled:
            rolled = self.rolled
            wide = wide if rolled.plan.looped is None else 1  # registers hold columns instead
            return Signature(rolled.inputs, rolled.shape, rolled.ops, lanes=wide)
        traced = self.traced
        ops = traced.graph.count(traced.wanted)
        return Signature(traced.inputs, traced.shape, ops, traced.parts, wide)

    def unit(self, lanes: int) -> Unit:
        """Its LLVM text for so many states at a time, with the widest vectors of this computer."""
        from linkwise.codegen.cpu import machine
        from linkwise.codegen.cpu.llvm import emit_graph
        from linkwise.codegen.cpu.llvm_rolled import emit_rolled

        wide = machine.lanes(self.itemsize)
        if self.is_rolled:
            return emit_rolled(self.rolled, itemsize=self.itemsize, lanes=lanes, packed=wide)
        packed = wide if lanes == 1 else 1
        return emit_graph(self.traced, itemsize=self.itemsize, lanes=lanes, packed=packed)

    @property
    def source(self) -> str:
        """The LLVM text for one state."""
        return self.unit(1).text

    # -------------------------------------------------------------------------------- disk

    def machine(self, *, keep: bool = True, lanes: int = 1) -> tuple[Signature, Machine]:
        """Machine code for so many states at a time, from disk if it is there.

        `keep` says whether to look and to file it.
        """
        from linkwise.codegen.cpu.machine import load, object_code

        self.kept = keep
        key = self._key(lanes) if keep else None
        found = cache.read(key) if key else None
        if found is not None:
            with contextlib.suppress(*cache.UNREADABLE):
                head, _, rest = found.partition(b"\n")
                facts = json.loads(head)
                code, tables = _parted(rest, facts["tables"])
                signature = Signature(
                    tuple((name, size) for name, size in facts["inputs"]),
                    tuple(facts["shape"]),
                    Counter(facts["ops"]),
                    tuple(tuple(shape) for shape in facts["parts"]),
                    facts["lanes"],
                )
                machine = load(code, **facts["machine"], tables=tables)
                self.__dict__["signature"] = signature
                return signature, machine
        try:
            unit, signature = self.unit(lanes), self.signature
        except TooLongError:
            return self._evaluated()
        code = object_code(unit)
        machine = {"lanes": unit.lanes, "itemsize": unit.itemsize, "work": unit.work}
        if key:
            facts = {
                "inputs": signature.inputs,
                "shape": signature.shape,
                "ops": signature.ops,
                "parts": signature.parts,
                "lanes": signature.lanes,
                "machine": machine,
                "tables": [(name, x.dtype.str, x.shape) for name, x in unit.tables],
            }
            parts = [json.dumps(facts).encode(), b"\n", *(x.tobytes() for _, x in unit.tables)]
            cache.write(key, b"".join([*parts, code]))
        return signature, load(code, **machine, tables=unit.tables)

    def _evaluated(self) -> tuple[Signature, Machine]:
        """A formula of a large mechanism, which has no code of its own."""
        from linkwise.codegen.cpu.machine import Machine
        from linkwise.codegen.evaluated import Evaluated

        assert isinstance(self.expr, Formula)
        found = Evaluated(self.expr, self.mech, self.nodes, self.itemsize, self._derived)
        several = bool(self.expr.names)
        shape = (sum(map(math.prod, found.parts)),) if several else found.parts[0]
        signature = Signature(found.inputs, shape, found.ops, found.parts if several else ())
        self.__dict__["signature"] = signature
        return signature, Machine(None, None, None, 1, self.itemsize, 0, (), found)

    def _key(self, lanes: int) -> str | None:
        """What the machine code depends on; None where that cannot be told."""
        from linkwise.codegen.cpu.machine import versions

        asked = (self.expr, self.mech, self.nodes, self.parameters, self.itemsize, self.wish)
        part = (self.chosen, self.more, self.rank, lanes, self._derive.__name__)
        return file_key(*asked, *part, versions())


class FromRecipe:
    """What every kernel tells of how it came about."""

    __slots__ = ()

    recipe: Recipe

    @property
    def derivation(self) -> Derivation:
        """How the form that runs was found."""
        return self.recipe.derivation

    @property
    def program(self) -> Program:
        """The sweeps."""
        return self.recipe.program

    @property
    def traced(self) -> Traced:
        """The scalar graph."""
        return self.recipe.traced


def _parted(
    rest: bytes, heads: list[tuple[str, str, list[int]]]
) -> tuple[bytes, tuple[tuple[str, Any], ...]]:
    """The tables in front of an object file, and the file."""
    tables, at = list[tuple[str, Any]](), 0
    for name, kind, shape in heads:
        count = int(np.prod(shape, dtype=np.int64))
        tables.append((name, np.frombuffer(rest, kind, count, at).reshape(shape).copy()))
        at += tables[-1][1].nbytes
    return rest[at:], tuple(tables)
