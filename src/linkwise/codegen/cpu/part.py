"""Longer code in parts: separate functions, which exchange values in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

from linkwise.codegen.cpu import ir
from linkwise.codegen.cpu.emit import Emitter

K = TypeVar("K", bound=Hashable)


def part_function(emit: Emitter, name: str, *more: Any) -> tuple[ir.Function, ir.IRBuilder]:
    """A function of two arrays that do not overlap, and where its code begins.

    Args:
        emit: What writes it.
        name: Its name, changed where it is taken.
        more: Types of further arguments.
    """
    pointer = emit.number.as_pointer()
    kind = ir.FunctionType(ir.VOID, [pointer, pointer, *more])
    unique = emit.module.unique_name(name)
    function = ir.Function(emit.module, kind, unique, internal=True, noinline=True)
    for argument in function.args[:2]:
        argument.add_attribute("noalias")
    return function, ir.IRBuilder(function.append_basic_block("entry"))


def slots(
    lives: Mapping[K, tuple[int, int]], top: int, width: Callable[[K], int] = lambda _: 1
) -> tuple[dict[K, int], int]:
    """Places in memory, each free again after the last part that needs what is there; their end.

    Args:
        lives: For each value the part that makes it and the last one that needs it; those of
            earlier parts first, -1 for what is there before all.
        top: The first place that may be taken.
        width: Places that a value takes; columns begin at a multiple of a power of two.
    """
    slot, now = dict[K, int](), -1
    free, ending = defaultdict[int, list[int]](list), defaultdict[int, list[K]](list)
    for x, (made, last) in lives.items():
        for part in range(now, made):
            for y in ending[part]:
                free[width(y)].append(slot[y])
        now, size = max(now, made), width(x)
        if free[size]:
            slot[x] = free[size].pop()
        else:
            aligned = 1 << (size - 1).bit_length()
            slot[x] = -(-top // aligned) * aligned
            top = slot[x] + size
        ending[last].append(x)
    return slot, top
