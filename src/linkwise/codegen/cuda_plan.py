"""Which workers a kernel on the card has, and how it lies there: chosen by size, from measurements.

One thread a state is best while the code of a state fits the card's instruction cache and its
values the registers; beyond that the limbs of the robot are dealt out to the warps of a block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linkwise.codegen import twins
from linkwise.codegen.cuda import REGISTERS, Shape, shared_memory
from linkwise.codegen.split import Split, by_limbs, whole
from linkwise.codegen.trace import Traced, trace
from linkwise.codegen.worker_code import Number, UnlikeError, WorkerCode, worker_code
from linkwise.model.mechanism import Mechanism
from linkwise.sweeps.program import Program

LARGE = 3000
"""Operations of a state from which on several warps share it."""

MOST = 224 << 10
"""Shared memory of a multiprocessor [bytes] on the cards measured."""

MOST_OF_BLOCK = 99 << 10
"""Shared memory of a block [bytes] that all cards since 2020 have."""


def single(traced: Traced) -> list[WorkerCode]:
    """One thread for a state."""
    return _each(traced, whole(traced))


def limbs(traced: Traced, mech: Mechanism, workers: int = 0) -> list[WorkerCode]:
    """Several warps, each with code of its own."""
    return _each(traced, by_limbs(traced, mech.parent.tolist(), workers))


def twinned(
    program: Program,
    mech: Mechanism,
    nodes: Sequence[str] = (),
    parameters: Sequence[str] = (),
    *,
    itemsize: int = 8,
) -> tuple[Traced, list[WorkerCode]] | None:
    """Several warps, limbs of equal build sharing their code; None where there are none."""
    kin = twins.families(mech)
    if not kin:
        return None
    traced, numbers = twins.trace_twins(program, mech, kin, nodes, parameters, itemsize=itemsize)
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


def planned(
    program: Program,
    mech: Mechanism,
    nodes: Sequence[str] = (),
    parameters: Sequence[str] = (),
    *,
    itemsize: int = 8,
) -> tuple[Traced, list[WorkerCode], Shape]:
    """What is taken unless something else is asked for."""
    traced = trace(program, mech, nodes, parameters, itemsize=itemsize)
    work = sum(traced.graph.count(traced.wanted).values())
    if work >= LARGE:
        found = twinned(program, mech, nodes, parameters, itemsize=itemsize)
        several, codes = (traced, limbs(traced, mech)) if found is None else found
        workers = sum(len(code.workers) for code in codes)
        if workers > 1:
            blocks = max(1, (10 if itemsize == 8 else 20) // workers)
            registers = _registers(32 * workers * blocks)
            return several, codes, _fitting(several, codes, Shape(1, registers), itemsize)
    codes = single(traced)
    registers = 255 if itemsize == 8 else 96
    return traced, codes, _fitting(traced, codes, Shape(4, registers), itemsize)


def _registers(threads: int) -> int:
    """Registers that each of so many threads of a multiprocessor can have.

    A multiprocessor has four parts; a part's warps share its registers, given out by eights.
    """
    warps = -(-threads // 128)
    return min(255, REGISTERS // 4 // (32 * warps) // 8 * 8)


def _fitting(traced: Traced, codes: list[WorkerCode], shape: Shape, itemsize: int) -> Shape:
    """The shape, with fewer rows in shared memory if they are too many."""
    dtype, table = f"float{8 * itemsize}", itemsize == 8
    choices = [(shape.groups, True), (shape.groups, False), (1, True), (1, False)]
    for groups, ahead in choices:
        tried = Shape(groups, shape.registers, table, ahead)
        block, all_of = shared_memory(traced, codes, tried, dtype=dtype)
        if block <= MOST_OF_BLOCK and all_of <= MOST:
            return tried
    return Shape(1, shape.registers, table, ahead=False)
