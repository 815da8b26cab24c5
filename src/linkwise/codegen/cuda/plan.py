"""The workers of a kernel on the GPU and its launch shape: chosen by size, from measurements.

One thread a state is best while the code of a state fits the GPU's instruction cache and its
values the registers; beyond that the limbs of the robot are distributed to the warps of a block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from linkwise.codegen import stages
from linkwise.codegen.cuda.limb_family import families, traced_limbs
from linkwise.codegen.cuda.source import REGISTERS, Shape, shared_memory
from linkwise.codegen.cuda.split import Split, by_limbs, undivided
from linkwise.codegen.cuda.worker_code import Number, UnlikeError, WorkerCode, worker_code
from linkwise.codegen.formula import Formula
from linkwise.codegen.request import Request
from linkwise.codegen.scalar.trace import Traced
from linkwise.model.mechanism import Mechanism
from linkwise.sweeps.program import Program

LARGE = 3000
"""Operations of a state from which several warps share it."""

MIDDLING = 1500
"""Operations of a state from which one thread is worth 128 registers in float32."""

MANY = 120
"""Values of a state in use at a time from which one thread is worth all registers in float32: those
that do not fit are moved through the cache of the whole GPU, which then limits the speed."""

MOST = 255
"""Registers of a thread, at most: with more values in use, fewer of these are worth operations."""

SHORT = 1000
"""Operations of a worker below which more warps are better than more registers."""

KEPT = 1 << 10
"""Shared memory that the GPU keeps for itself with each block [bytes]."""


@dataclass(frozen=True, slots=True)
class Room:
    """Shared memory of a GPU [bytes]."""

    block: int = 99 << 10  # what a block may have; 99 KB on all GPUs since 2020
    multiprocessor: int = 228 << 10  # what a multiprocessor has; 228 KB on the GPUs measured


def single(traced: Traced) -> list[WorkerCode]:
    """One thread for a state."""
    return _each(traced, undivided(traced))


def limbs(traced: Traced, mech: Mechanism, workers: int = 0) -> list[WorkerCode]:
    """Several warps, each with its own code."""
    return _each(traced, by_limbs(traced, mech.parent.tolist(), workers))


def by_families(
    program: Program,
    mech: Mechanism,
    nodes: Sequence[str] = (),
    parameters: Sequence[str] = (),
    *,
    itemsize: int = 8,
    plain: Traced | None = None,
) -> tuple[Traced, list[WorkerCode]] | None:
    """Several warps, limbs of equal build sharing their code; None where there are none.

    `plain` is the graph without symbols. Entries of the result that are one node there, as across
    the diagonal of a symmetric matrix, are computed once.
    """
    kin = families(mech)
    if not kin:
        return None
    traced, numbers = traced_limbs(program, mech, kin, nodes, parameters, itemsize)
    if plain is not None:
        pairs, first = list(zip(plain.outputs, traced.outputs, strict=True)), dict[int, int]()
        constants = [plain.graph.op[node] == "const" for node in plain.outputs]
        outputs = [
            mine if constant else first.setdefault(node, mine)
            for (node, mine), constant in zip(pairs, constants, strict=True)
        ]
        traced = replace(traced, outputs=outputs)
    dealt = by_limbs(traced, mech.parent.tolist(), alone=[family.starts for family in kin])
    codes, worker = [worker_code(traced, dealt, [0], symbols=numbers)], 1
    for f, family in enumerate(kin):
        members = list(range(worker, worker + len(family.starts)))
        worker += len(members)
        offsets = [_offsets(traced, mech, start) for start in family.starts]
        after = _offsets(traced, mech, family.starts[0] + family.length)
        widths = [b - a for a, b in zip(offsets[0], after, strict=True)]
        try:
            codes.append(worker_code(traced, dealt, members, f, numbers, offsets, widths))
        except UnlikeError:
            return None
    return traced, codes


def _each(
    traced: Traced, dealt: Split, symbols: Mapping[int, Number] | None = None
) -> list[WorkerCode]:
    return [worker_code(traced, dealt, [w], symbols=symbols) for w in range(dealt.workers)]


def _offsets(traced: Traced, mech: Mechanism, body: int) -> list[int]:
    """Where the part of a body begins in each input; 0 for those that are not of bodies."""
    known = {"q": int(mech.q_start[body]), "inertia": 10 * body}
    sized = {mech.nv: int(mech.v_start[body])}
    return [known[name] if name in known else sized.get(n, 0) for name, n in traced.inputs]


def planned(request: Request, room: Room | None = None) -> tuple[Traced, list[WorkerCode], Shape]:
    """The default workers and shape; without a GPU, those that suit most."""
    room, mech, itemsize = room or Room(), request.mech, request.itemsize
    traced = stages.traced(request)
    work = sum(traced.graph.count(traced.roots).values())
    if work >= LARGE and not traced.graph.loops:
        shared = None
        if not isinstance(request.quantity, Formula):
            sweeps, inputs = stages.program(request), request.parameters
            shared = by_families(
                sweeps, mech, request.nodes, inputs, itemsize=itemsize, plain=traced
            )
        several, codes = (traced, limbs(traced, mech)) if shared is None else shared
        workers = sum(len(code.workers) for code in codes)
        if workers > 1:
            shape = _shape_of_several(several, codes, work // workers, itemsize, room)
            block, _ = shared_memory(several, codes, shape, dtype=f"float{8 * itemsize}")
            if block <= room.block:  # else too much is handed over
                return several, codes, shape
    quantity = request.quantity
    if itemsize == 4 and isinstance(quantity, Formula) and traced.in_registers()[1] > MOST:
        longer = quantity.traced(request, "own")
        traced = min(traced, longer, key=lambda graph: graph.in_registers()[1])
    codes = single(traced)
    if itemsize == 8:  # few warps have room; a block that ends makes place for one that loads
        options = [Shape(4, 255, table=True, ahead=False, stay=False)]
    else:
        registers = 128 if work >= MIDDLING else 96
        options = [Shape(4, registers), Shape(4, registers, ahead=False)]
        if traced.in_registers()[1] > MANY:
            options = [Shape(2, MOST, ahead=False, stay=False)]
    return traced, codes, _fitting(traced, codes, options, itemsize, room, warps=12)


def _shape_of_several(
    traced: Traced, codes: list[WorkerCode], each: int, itemsize: int, room: Room
) -> Shape:
    """For several warps a group, with `each` operations of a state.

    Short code is kept busy by more warps; long code wants the registers, and runs a little faster
    with all groups of a multiprocessor in one block: the warps of a group then lie in the same of
    its four parts, and each part has as many of the long ones.
    """
    workers = sum(len(code.workers) for code in codes)
    table, short = itemsize == 8, each < SHORT
    warps = (15 if short else 10) if itemsize == 8 else (25 if short else 20)
    blocks = max(1, warps // workers)
    registers = _registers(32 * workers * blocks)
    stay = not (table and short)
    options = [Shape(1, registers, table, ahead, stay) for ahead in (True, False)]
    if itemsize == 4 and not short:
        together = [groups for groups in (4, 2) if blocks % groups == 0]
        options = [replace(options[0], groups=groups) for groups in together] + options
    return _fitting(traced, codes, options, itemsize, room, warps=workers * blocks)


def _registers(threads: int) -> int:
    """Registers that each thread of a multiprocessor can have.

    A multiprocessor has four parts; a part's warps share its registers, given out by eights.
    """
    warps = -(-threads // 128)
    return min(255, REGISTERS // 4 // (32 * warps) // 8 * 8)


def _fitting(
    traced: Traced,
    codes: list[WorkerCode],
    options: list[Shape],
    itemsize: int,
    room: Room,
    *,
    warps: int,
) -> Shape:
    """The first shape whose shared memory leaves room for `warps`; else the smallest."""
    dtype = f"float{8 * itemsize}"
    workers = sum(len(code.workers) for code in codes)
    for shape in options:
        block, all_of = shared_memory(traced, codes, shape, dtype=dtype)
        blocks = min(all_of // block, -(-warps // (workers * shape.groups)))
        if block <= room.block and blocks * (block + KEPT) <= room.multiprocessor:
            return shape
    shape = replace(options[-1], groups=1)
    if shared_memory(traced, codes, shape, dtype=dtype)[0] > room.block:
        shape = replace(shape, collect=False)
    block, _ = shared_memory(traced, codes, shape, dtype=dtype)
    blocks = max(1, room.multiprocessor // (block + KEPT))  # threads may have more registers
    return replace(shape, registers=max(shape.registers, _registers(32 * workers * blocks)))
