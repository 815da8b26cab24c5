"""Kernels of mechanisms with many islands: a loop over islands of equal build, for each kind.

The graph of one island, with the numbers in which islands differ as symbols, is the code of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra import role
from linkwise.algebra.space import JOINT, ONE
from linkwise.codegen.scalar import status
from linkwise.codegen.scalar.arithmetic import Nodes, Rows, numbers, objects, pose_numbers
from linkwise.codegen.scalar.graph import Graph, Scalar
from linkwise.codegen.scalar.pivots import thresholds
from linkwise.codegen.scalar.trace import Traced, traced_run
from linkwise.model.closure import closure_nodes, is_traceable
from linkwise.model.islands import Island, alike, alone, islands
from linkwise.model.mechanism import Mechanism
from linkwise.model.task_rows import has_tasks
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.sweeps.bodies import Bodies
from linkwise.sweeps.interpret import Interpreter
from linkwise.sweeps.program import Program

FEWEST = 6
"""Islands from which a loop over them is worth it."""

LONGEST = 12000
"""The largest number of nodes of all graphs in one function."""


@dataclass(frozen=True, slots=True)
class IslandCode:
    """The code of islands of equal build."""

    traced: Traced  # the graph of one island; its inputs are those of the island, then the symbols
    symbols: dict[int, int]  # nodes that are numbers of the table, and their columns
    table: Array  # these numbers (islands, columns)
    # for each island its first body, entry of q and entry of v (islands, 3)
    places: NDArray[np.int32]
    independent: int  # the node that counts the independent rows of its loops


@dataclass(frozen=True, slots=True)
class IslandLoop:
    """A kernel that does the islands of a mechanism one after another."""

    codes: list[IslandCode]  # one for each kind of islands
    inputs: tuple[tuple[str, int], ...]  # for each input array its name and length, in order
    shape: tuple[int, ...]  # shape of the result for one state
    ops: Counter[str]  # scalar operations for one state, by kind
    singular: int  # the code for a wrong number of independent rows
    rank: int | None  # how many rows have to be independent in all; None leaves it out


def island_loop(
    program: Program, mech: Mechanism, nodes: Sequence[str], itemsize: int, rank: int | None
) -> IslandLoop | None:
    """The kernel of a vector over the joints; None where there are few islands, or they differ."""
    if not (program.constrained and program.chosen.is_all and not program.more):
        return None
    if program.result.rows is not JOINT or program.result.columns is not ONE:
        return None
    if has_tasks(mech):  # whose rows need not be about coordinates
        return None
    kinds = alike(mech)
    few = sum(map(len, kinds)) < max(FEWEST, 2 * len(kinds))
    plain = all(map(is_traceable, mech.loops))
    together = all(x.bodies == tuple(range(x.bodies[0], x.bodies[-1] + 1)) for x in islands(mech))
    if few or not plain or not together or tuple(nodes) != closure_nodes(mech):
        return None
    over_joints = {
        leaf.role.source
        for leaf in program.inputs
        if isinstance(leaf.role, role.Vector) and leaf.range is JOINT
    }
    codes = list[IslandCode]()
    for kind in kinds:
        codes.append(_code(program, mech, kind, itemsize, counted=rank is not None))
        names = {name for name, _ in codes[-1].traced.inputs}
        if not names <= {"q", "v", *over_joints}:
            return None
    if sum(len(code.traced.graph.used(code.traced.roots)) for code in codes) > LONGEST:
        return None
    inputs = tuple(
        (name, mech.nq if name == "q" else mech.nv) for name, _ in codes[0].traced.inputs
    )
    ops = Counter[str]()
    for code in codes:
        needed = code.traced.roots if rank is None else [*code.traced.roots, code.independent]
        for op, count in code.traced.graph.count(needed).items():
            ops[op] += count * len(code.places)
    return IslandLoop(codes, inputs, (mech.nv,), ops, status.singular(mech), rank)


def _code(
    program: Program, mech: Mechanism, kind: list[Island], itemsize: int, *, counted: bool
) -> IslandCode:
    """The code of the first island of a kind, with symbols where the others differ from it."""
    part = alone(mech, kind[0])
    table = _Table(mech, part, kind)
    rows = Rows(part, itemsize, table.row, lambda k: table.bounds(k, itemsize))
    nodes = [part.node(name) for name in closure_nodes(part)]
    bodies = Bodies(part, nodes, [part.body_index[node.body] for node in nodes])
    arithmetic = Nodes(program, bodies, (), itemsize, rows, table.graph)
    arithmetic.counted = counted
    run = Interpreter(program, bodies, arithmetic)
    bodies.nodes = [
        replace(node, pose=table.node_pose(i, node.pose)) for i, node in enumerate(nodes)
    ]
    traced = traced_run(run, arithmetic)
    first = [x.bodies[0] for x in kind]
    places = np.stack([first, mech.q_start[first], mech.v_start[first]], axis=1)
    return IslandCode(
        traced,
        {node: i for i, node in enumerate(table.symbols)},
        table.columns[:, list(table.symbols.values())],
        places.astype(np.int32),
        arithmetic.node(arithmetic.independent),
    )


class _Table:
    """The numbers of all islands of a kind, symbols where they differ."""

    def __init__(self, mech: Mechanism, part: Mechanism, kind: list[Island]) -> None:
        self.mech, self.part, self.kind, self.graph = mech, part, kind, Graph()
        self.columns = np.array([_all_numbers(mech, island) for island in kind])
        self.varies = (self.columns != self.columns[0]).any(axis=0)
        sizes = [22 + body.hinge.nv for body in part.bodies]
        self.starts: list[int] = np.concatenate([[0], np.cumsum(sizes)]).tolist()
        self.symbols: dict[int, int] = {}
        self._symbol_of: dict[int, Scalar] = {}

    def _number(self, column: int) -> Any:
        if not self.varies[column]:
            return float(self.columns[0, column])
        if column not in self._symbol_of:
            node = self.graph.input(f"number {column}")
            self.symbols[node] = column
            self._symbol_of[column] = Scalar(self.graph, node)
        return self._symbol_of[column]

    def row(self, k: int) -> list[Any]:
        return [self._number(c) for c in range(self.starts[k], self.starts[k + 1])]

    def node_pose(self, i: int, pose: Pose) -> Pose:
        start = self.starts[-1] + 12 * i
        if not self.varies[start : start + 12].any():
            return pose
        twelve = objects([self._number(c) for c in range(start, start + 12)])
        return trusted_pose(twelve[:9].reshape(3, 3), twelve[9:])

    def bounds(self, k: int, itemsize: int) -> Array:
        bodies = [self.kind[m].bodies[k] for m in self._unlike]
        return np.min([thresholds(self.mech, b, itemsize) for b in bodies], axis=0)

    @cached_property
    def _unlike(self) -> list[int]:
        """Islands that differ in more than where they are on the ground."""
        counts = np.ones(self.columns.shape[1], dtype=bool)
        counts[self.starts[-1] :] = False
        for k, parent in enumerate(self.part.parent.tolist()):
            if parent < 0:
                counts[self.starts[k] : self.starts[k] + 12] = False
        return np.unique(self.columns[:, counts], axis=0, return_index=True)[1].tolist()


def _all_numbers(mech: Mechanism, island: Island) -> Array:
    loops = [mech.loops[i] for i in island.loops]
    ends = [mech.node(x).pose for loop in loops for x in (loop.node_a, loop.node_b)]
    return np.concatenate([*(numbers(mech, k) for k in island.bodies), *map(pose_numbers, ends)])
