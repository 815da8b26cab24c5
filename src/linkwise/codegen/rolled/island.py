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
from linkwise.codegen.scalar.graph import Scalar
from linkwise.codegen.scalar.numbered import NumberedTrace, numbers, objects, placed
from linkwise.codegen.scalar.pivots import thresholds
from linkwise.codegen.scalar.trace import Traced
from linkwise.model.closure import closure_nodes, is_traceable
from linkwise.model.islands import Island, alike, alone, islands
from linkwise.model.mechanism import Mechanism
from linkwise.model.rows import has_tasks
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.sweeps.program import Program

FEWEST = 6
"""Islands from which on a loop over them is worth it."""

LONGEST = 12000
"""Nodes of all graphs together that may stand in one function."""


@dataclass(frozen=True, slots=True)
class IslandCode:
    """The code of islands of equal build.

    Attributes:
        traced: The graph of one island; its inputs are those of the island, then the symbols.
        symbols: Nodes that are numbers of the table, and their columns.
        table: These numbers (islands, columns).
        places: For each island its first body, entry of q and entry of v (islands, 3).
        independent: The node that counts the independent rows of its loops.
    """

    traced: Traced
    symbols: dict[int, int]
    table: Array
    places: NDArray[np.int32]
    independent: int


@dataclass(frozen=True, slots=True)
class IslandLoop:
    """A kernel that does the islands of a mechanism one after another.

    Attributes:
        codes: One for each kind of islands.
        inputs: For each input array its name and length, in order.
        shape: Shape of the result for one state.
        ops: Scalar operations for one state, by kind.
        singular: The code for a wrong number of independent rows.
        rank: How many rows have to be independent in all; None leaves it out.
    """

    codes: list[IslandCode]
    inputs: tuple[tuple[str, int], ...]
    shape: tuple[int, ...]
    ops: Counter[str]
    singular: int
    rank: int | None


def island_loop(
    program: Program, mech: Mechanism, nodes: Sequence[str], itemsize: int, rank: int | None
) -> IslandLoop | None:
    """The kernel of a vector over the joints; None where there are few islands, or they differ."""
    if not (program.constrained and program.chosen.whole and not program.more):
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
    if sum(len(code.traced.graph.used(code.traced.wanted)) for code in codes) > LONGEST:
        return None
    inputs = tuple(
        (name, mech.nq if name == "q" else mech.nv) for name, _ in codes[0].traced.inputs
    )
    ops = Counter[str]()
    for code in codes:
        needed = code.traced.wanted if rank is None else [*code.traced.wanted, code.independent]
        for op, count in code.traced.graph.count(needed).items():
            ops[op] += count * len(code.places)
    return IslandLoop(codes, inputs, (mech.nv,), ops, status.singular(mech), rank)


def _code(
    program: Program, mech: Mechanism, kind: list[Island], itemsize: int, *, counted: bool
) -> IslandCode:
    run = _IslandTrace(program, mech, kind, itemsize)
    run.closing.rank = 0 if counted else None
    flat = run.result().ravel()
    outputs = [x.node if isinstance(x, Scalar) else run.graph.constant(float(x)) for x in flat]
    checks = run.quaternion_checks(outputs) + run.needed_checks(outputs)
    total = run.closing.independent
    traced = Traced(run.graph, tuple(run.arrays), outputs, flat.shape, tuple(checks))
    first = [x.bodies[0] for x in kind]
    places = np.stack([first, mech.q_start[first], mech.v_start[first]], axis=1)
    columns = list(run.symbols.values())
    return IslandCode(
        traced,
        {node: i for i, node in enumerate(run.symbols)},
        run.columns[:, columns],
        places.astype(np.int32),
        total.node if isinstance(total, Scalar) else run.graph.constant(float(total)),
    )


class _IslandTrace(NumberedTrace):
    """The trace of the first island of a kind, with symbols where the others differ from it."""

    def __init__(
        self, program: Program, whole: Mechanism, kind: list[Island], itemsize: int
    ) -> None:
        part = alone(whole, kind[0])
        self._whole, self._kind_of = whole, kind
        self.columns = np.array([_all_numbers(whole, island) for island in kind])
        self._varies = (self.columns != self.columns[0]).any(axis=0)
        sizes = [22 + body.hinge.nv for body in part.bodies]
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).tolist()
        self.symbols: dict[int, int] = {}
        self._symbol_of: dict[int, Any] = {}
        super().__init__(program, part, closure_nodes(part), (), itemsize)
        self.nodes = [
            replace(node, pose=self._node_pose(i, node.pose)) for i, node in enumerate(self.nodes)
        ]

    def _number(self, column: int) -> Any:
        if not self._varies[column]:
            return float(self.columns[0, column])
        if column not in self._symbol_of:
            node = self.graph.input(f"number {column}")
            self.symbols[node] = column
            self._symbol_of[column] = Scalar(self.graph, node)
        return self._symbol_of[column]

    def row(self, k: int) -> list[Any]:
        """The numbers of body k, plain or as symbols."""
        return [self._number(c) for c in range(self._starts[k], self._starts[k + 1])]

    def _node_pose(self, i: int, pose: Pose) -> Pose:
        start = self._starts[-1] + 12 * i
        if not self._varies[start : start + 12].any():
            return pose
        twelve = objects([self._number(c) for c in range(start, start + 12)])
        return trusted_pose(twelve[:9].reshape(3, 3), twelve[9:])

    def _bounds(self, k: int) -> Array:
        """One bound for all islands: the smallest."""
        bodies = [self._kind_of[m].bodies[k] for m in self._unlike]
        return np.min([thresholds(self._whole, b, self.itemsize) for b in bodies], axis=0)

    @cached_property
    def _unlike(self) -> list[int]:
        """Islands that differ in more than where they stand on the ground."""
        counts = np.ones(self.columns.shape[1], dtype=bool)
        counts[self._starts[-1] :] = False
        for k, parent in enumerate(self.mech.parent.tolist()):
            if parent < 0:
                counts[self._starts[k] : self._starts[k] + 12] = False
        return np.unique(self.columns[:, counts], axis=0, return_index=True)[1].tolist()


def _all_numbers(mech: Mechanism, island: Island) -> Array:
    """Of its bodies, then of the nodes of its loops."""
    loops = [mech.loops[i] for i in island.loops]
    ends = [mech.node(x).pose for loop in loops for x in (loop.node_a, loop.node_b)]
    return np.concatenate([*(numbers(mech, k) for k in island.bodies), *map(placed, ends)])
