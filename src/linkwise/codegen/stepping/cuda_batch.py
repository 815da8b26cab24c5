# pyright: basic
# (CuPy is optional, and has no type information here)
"""Motions in the memory of a GPU whose stages are launched one after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from linkwise.codegen import arrays
from linkwise.codegen.cuda.memory import ROOM, PerGpu, function_of, module_of
from linkwise.codegen.stepping.cuda_stages import GROUP, Launch, StagesSource

SHARE = 0.5
"""Of the free memory of a GPU that motions take: results are copied in the rest."""


StagesKernel: TypeAlias = PerGpu[tuple[dict[str, Any], StagesSource]]
"""Stages for GPUs: the functions by name and the source on each."""


def written_stages(emit: Callable[[int], StagesSource]) -> StagesKernel:
    """Stages that are written for the shared memory of a block [bytes] when they are first run."""

    def load(cp: Any, device: int) -> tuple[dict[str, Any], StagesSource]:
        source = emit(int(cp.cuda.Device(device).attributes[ROOM]))
        return functions(cp, source), source

    return PerGpu(load)


def functions(cp: Any, source: StagesSource) -> dict[str, Any]:
    """The functions of a source on the current GPU, by name."""
    module = module_of(cp, source.text)
    each = (x for part in source.launches for x in part)
    return {x.name: function_of(module, x.name, x.shared) for x in each}


def most_motions(kernel: StagesKernel) -> int:
    """Motions that the free memory of the current GPU has room for."""
    cp = arrays.cupy()
    free = cp.cuda.runtime.memGetInfo()[0] + cp.get_default_memory_pool().free_bytes()
    return max(int(SHARE * free / (8 * kernel.here()[1].size)) // GROUP, 1) * GROUP


class Batch:
    """The registers of a batch of motions on the current GPU.

    Attributes:
        count: How many motions there are.
        functions: Functions of the stages, by name.
        source: Their source.
        spare: Numbers of motions of no use, for lanes of a block that have none.
    """

    def __init__(self, kernel: StagesKernel, count: int) -> None:
        """Take the memory."""
        cp = self._cp = arrays.cupy()
        self.count = count
        self.functions, self.source = kernel.here()
        self._groups = -(-count // GROUP)
        # one group more, for lanes of a block that have no motion
        self._memory = cp.zeros((self._groups + 1, self.source.size, GROUP), np.float64)
        self.spare = cp.arange(GROUP, dtype=np.int32) + np.int32(self._groups * GROUP)
        self._common = cp.zeros(max(self.source.width, 1), np.float64)

    def put(self, name: str, rows: Any) -> None:
        """Give a register numbers (count or 1, n)."""
        cp, size = self._cp, rows.shape[1]
        rows = cp.asarray(rows)
        if name in self.source.common:
            start = self.source.common[name]
            self._common[start : start + size] = rows[0]
            return
        full = cp.zeros((self._groups * GROUP, size), np.float64)
        full[: self.count] = rows
        here = self.source.offset[name]
        moved = full.reshape(self._groups, GROUP, size).transpose(0, 2, 1)
        self._memory[:-1, here : here + size] = moved

    def get(self, name: str, size: int, start: int = 0) -> Any:
        """Numbers of a register (count, size), on the GPU."""
        here = self.source.offset[name] + start
        rows = self._memory[:-1, here : here + size].transpose(0, 2, 1)
        return rows.reshape(self._groups * GROUP, size)[: self.count]

    def going(self, name: str) -> Any:
        """Numbers of the motions in which a register is above zero."""
        cp = self._cp
        return cp.flatnonzero(self.get(name, 1)[:, 0] > 0.0).astype(np.int32)

    def every(self) -> Any:
        """Numbers of all motions."""
        return self._cp.arange(self.count, dtype=np.int32)

    def run(self, part: int, which: Any, turn: int = 0) -> None:
        """Launch all stages of a part on the current stream.

        Args:
            part: Its number.
            which: Numbers of the motions that are meant.
            turn: The turn of the loop around the stages.
        """
        count = int(which.size)
        if not count:
            return
        which = self._cp.concatenate([which, self.spare])
        for launch in self.source.launches[part]:
            self.launch(launch, which, count, turn)

    def launch(self, launch: Launch, which: Any, count: int, turn: int) -> None:
        """Launch one stage; `which` has the spare motions at its end."""
        given = self._memory, self._common, which, np.int32(count), np.int32(turn)
        blocks = -(-count // launch.motions) * launch.turns
        self.functions[launch.name]((blocks,), (launch.threads,), given, shared_mem=launch.shared)
