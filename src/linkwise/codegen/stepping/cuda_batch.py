# pyright: basic
# (CuPy is optional, and has no type information here)
"""Motions in the memory of a GPU whose stages are launched one after another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from linkwise.codegen import arrays
from linkwise.codegen.cuda.device import ROOM
from linkwise.codegen.stepping.cuda_stages import GROUP, Launch, StagesSource

SHARE = 0.5
"""Of the free memory of a GPU that motions take: results are copied in the rest."""


class StagesKernel:
    """Stages for GPUs, compiled when they are first run."""

    def __init__(self, emit: Callable[[int], StagesSource]) -> None:
        """Keep what writes the source for the shared memory of a block [bytes]."""
        self._emit = emit
        self._loaded = dict[int, tuple[dict[str, Any], StagesSource]]()
        self._lock = threading.Lock()

    def loaded(self, cp: Any) -> tuple[dict[str, Any], StagesSource]:
        """The functions by name and the source, on the current GPU."""
        device = int(cp.cuda.runtime.getDevice())
        with self._lock:
            if device not in self._loaded:
                source = self._emit(int(cp.cuda.Device(device).attributes[ROOM]))
                self._loaded[device] = functions(cp, source), source
            return self._loaded[device]


def functions(cp: Any, source: StagesSource) -> dict[str, Any]:
    """The functions of a source on the current GPU, by name."""
    module = cp.RawModule(code=source.text, options=("--std=c++17",), backend="nvrtc")
    out = dict[str, Any]()
    for launch in (x for part in source.launches for x in part):
        function = out[launch.name] = module.get_function(launch.name)
        function.max_dynamic_shared_size_bytes = launch.shared
        # where registers are not in shared memory, they are in the cache that has the same place
        function.preferred_shared_memory_carveout = 100 if launch.shared else 0
    return out


def most_motions(kernel: StagesKernel) -> int:
    """Motions that the free memory of the current GPU has room for."""
    cp = arrays.cupy()
    free = cp.cuda.runtime.memGetInfo()[0] + cp.get_default_memory_pool().free_bytes()
    return max(int(SHARE * free / (8 * kernel.loaded(cp)[1].size)) // GROUP, 1) * GROUP


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
        self.functions, self.source = kernel.loaded(cp)
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
