"""What all classes of bodies share: the inputs, and numbers that belong to no body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra import role
from linkwise.algebra.space import BODY, INBOARD, JOINT, ONE, PLACE, Space
from linkwise.codegen.rolled.stage import Plan
from linkwise.codegen.scalar import parameters as parameter
from linkwise.errors import LoweringError
from linkwise.model.body import Node
from linkwise.model.mechanism import Mechanism
from linkwise.sweeps.program import PLACED, Ident
from linkwise.sweeps.result_part import SIZES, entries


@dataclass(frozen=True, slots=True)
class Layout:
    """What the steps of all classes share."""

    arrays: tuple[str, ...]  # names of the inputs, in order
    parameters: tuple[str, ...]  # those that are parameters
    payloads: dict[str, tuple[int, Any]]  # for each payload the body it is welded to, and where
    n_nodes: int  # how many nodes were chosen
    # where numbers that belong to no body stand: sums over bodies, and entries of nodes that a
    # dense matrix is made of or that it gives
    slot: dict[Ident, int]
    # how many there are, of those that are the same for all columns and of the others
    slots: tuple[int, int]
    columns: NDArray[np.int64] | None  # which columns of the result are wanted; None for all
    # rows and columns of the largest block of the result, where it is blocks
    block: tuple[int, int]


def layout_of(
    plan: Plan,
    mech: Mechanism,
    chosen: list[Node],
    nodes: Sequence[str],
    parameters: Sequence[str],
) -> tuple[tuple[tuple[str, int], ...], Layout]:
    """The inputs with their lengths, and the layout."""
    program = plan.program
    vectors = [s for s in program.inputs if isinstance(s.role, role.Vector)]
    sources = {s.role.source for s in vectors}  # type: ignore[union-attr]
    inputs: dict[str, int] = {"q": mech.nq}
    if sources & {"v", "a", "b"}:
        inputs["v"] = mech.nv
    for leaf in vectors:
        assert isinstance(leaf.role, role.Vector)
        if leaf.role.source not in ("v", "a", "b", *PLACED):
            inputs[leaf.role.source] = total_size(leaf.range, mech, len(chosen))
    names = parameter.checked(mech, parameters, nodes)
    inputs |= {name: parameter.size(mech, name) for name in names}
    payloads = dict[str, tuple[int, Any]]()
    for name in (n for n in names if n.startswith("payload")):
        node = mech.node(parameter.node_of(mech, name, nodes))
        payloads[name] = (mech.body_index[node.body], node.pose)
    slot, top = dict[Any, int](), [0, 0]

    def columns(space: Space) -> int:
        return 1 if space is ONE or space is plan.looped else total_size(space, mech, len(chosen))

    for stage in plan.stages:
        quantities = [s.target for s in stage.statements if s.target.rows is ONE]
        for solve in stage.solves:
            quantities += [solve.target, *(q for q, _ in solve.reads)]
        for quantity in quantities:
            if quantity.ident not in slot and not quantity.leaf:
                kind = int(quantity.ident in plan.each)
                slot[quantity.ident] = top[kind]
                rows = total_size(quantity.rows, mech, len(chosen))
                top[kind] += rows * columns(quantity.columns)
    names_of = program.chosen.columns
    picked = None if names_of is None else entries(names_of, program.result.columns, mech, nodes)
    block = (_largest(program.result.rows, mech), _largest(program.result.columns, mech))
    slots = (top[0], top[1])
    layout = Layout(tuple(inputs), names, payloads, len(chosen), slot, slots, picked, block)
    return tuple(inputs.items()), layout


def _largest(space: Space, mech: Mechanism) -> int:
    return max((b.hinge.nv for b in mech.bodies), default=0) if space is JOINT else 6


def total_size(space: Space, mech: Mechanism, n_nodes: int) -> int:
    """Length of a vector of a space."""
    if space is JOINT:
        return mech.nv
    if space is ONE:
        return 1
    if space not in SIZES:
        raise LoweringError(f"the space {space} has no blocks in a mechanism.")
    return SIZES[space] * {"node": n_nodes, "one": 1}.get(space.block, mech.n_bodies)


Where = Literal["q", "v", "body", "place", "inertia", "node", "start", "parent_body", "block"]
"""What an entry of an array is counted from: a body's q, v, its 6, 12 or 10 numbers, a node ..."""

WHERE: dict[Space, Where] = {JOINT: "v", BODY: "body", INBOARD: "body", PLACE: "place"}
"""What the entries of a space are counted from."""

Key: TypeAlias = tuple[Ident, int, int]
"""An entry of a quantity that is handed from body to body."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """The meaning of an input node of a step."""

    # "input" (entry of an array), "column" (of the table), "parent" (a quantity there), "sum" (over
    # children), "unit" (entry of a column of the identity), "whole" (a number that belongs to no
    # body)
    kind: Literal["input", "column", "parent", "sum", "unit", "whole"]
    level: int  # the stage from which on it is known
    kept: bool  # whether it can be read again later
    index: int = 0  # which array, column or number
    where: Where = "start"  # what the entry of an array is counted from
    offset: int = 0  # the entry, from there
    node: int = -1  # for entries of nodes, which node of the body
    stride: int = 6  # numbers of one node
    key: Key | None = None  # the entry of a quantity
    each: bool = False  # whether it has another value for each column


@dataclass(frozen=True, slots=True)
class Out:
    """An entry that a step writes: of the result, or of numbers that belong to no body."""

    stage: int  # the first stage in which it can be written
    node: int  # its value
    where: Where  # what the entry is counted from
    offset: int  # the entry, from there
    on: int = -1  # for entries of nodes, which node of the body
    index: int = 0  # where the numbers begin
    stride: int = 6  # numbers of one node


class Fold:
    """Entries handed between bodies that are the same constant everywhere."""

    def __init__(self) -> None:
        self.parent: dict[Key, float | None] = {}
        self.sums: dict[Key, float | None] = {}
