"""As much of CuPy as stages use, with the processor for a card: their text runs as C++.

Every thread of a block is a fiber (`cuda_on_host.py`), so that meetings are real.
"""

import ctypes
import subprocess
import tempfile
import types
from pathlib import Path

import numpy as np

from linkwise.codegen.cuda.text import MEETING, PRIMITIVES
from tests.codegen.cuda_on_host import HEAD, HOST
from tests.codegen.cupy_on_host import CardArray, Device, on_card

TAIL = r"""
typedef void Kernel(T *, const T *, const int *, int, int);
alignas(16) T memory[1 << 17];
static ucontext_t home, fiber[1024];
static char *stack[1024];
static bool done[1024];
static Kernel *kernel;
static T *m;
static const T *g;
static const int *which;
static int count, outer;
static void pause_here()
{
    const int me = threadIdx.x;
    swapcontext(&fiber[me], &home);
    threadIdx.x = me;
}
static void thread()
{
    kernel(m, g, which, count, outer);
    done[threadIdx.x] = true;
}
extern "C" void launch(Kernel *what, int blocks, int threads, int backwards, T *m_, const T *g_,
    const int *which_, int count_, int outer_)
{
    kernel = what, m = m_, g = g_, which = which_, count = count_, outer = outer_;
    gridDim.x = blocks;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
        for (size_t i = 0; i < sizeof memory / sizeof *memory; ++i) memory[i] = (T)NAN;
        for (int t = 0; t < threads; ++t) {
            if (!stack[t]) stack[t] = (char *)malloc(1 << 18);
            getcontext(&fiber[t]);
            fiber[t].uc_stack.ss_sp = stack[t];
            fiber[t].uc_stack.ss_size = 1 << 18;
            fiber[t].uc_link = &home;
            makecontext(&fiber[t], thread, 0);
            done[t] = false;
        }
        for (int left = threads; left;) {
            left = 0;
            for (int i = 0; i < threads; ++i) {
                const int t = backwards ? threads - 1 - i : i;
                if (!done[t]) { threadIdx.x = t; swapcontext(&home, &fiber[t]); left += !done[t]; }
            }
        }
    }
}
"""
MEET = "\nstatic void meet(int) { pause_here(); }\n"


class Module:
    """In place of `cupy.RawModule`; each launch changes the order of the threads."""

    def __init__(self, folder: Path, compiler: str, room: int, code: str) -> None:
        special = PRIMITIVES["float64"] + MEETING[True]
        assert code.count(special) == 1
        text = HEAD + code.replace(special, HOST["float64"] + MEET) + TAIL
        (folder / "stages.cc").write_text(text)
        flags = ["-std=c++17", "-O0", "-ffp-contract=off", "-shared", "-fPIC", "-Wall", "-Wextra"]
        ignored = ["-Wno-unused-variable", "-Wno-unused-function", "-Wno-unknown-pragmas"]
        ignored += ["-Wno-unused-parameter", "-Wno-sign-compare"]
        command = [compiler, *flags, *ignored, "-Werror", "stages.cc", "-o", "stages.so", "-lm"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:3000]
        self.library, self.launches, self.room = ctypes.CDLL(str(folder / "stages.so")), [], room

    def get_function(self, name: str):
        pointer = ctypes.cast(getattr(self.library, name), ctypes.c_void_p)

        def call(grid, block, given, shared_mem):
            memory, common, which, count, turn = given
            assert all(isinstance(x, CardArray) for x in (memory, common, which))
            assert which.dtype == count.dtype == turn.dtype == np.int32
            assert shared_mem <= self.room and block[0] <= 1024 and memory.flags.c_contiguous
            order = len(self.launches) % 2
            self.launches.append((name, int(count)))
            addresses = [ctypes.c_void_p(x.ctypes.data) for x in (memory, common, which)]
            self.library.launch(
                pointer, grid[0], block[0], order, *addresses, int(count), int(turn)
            )

        return call


def fake(folder: Path, compiler: str, *, room: int = 227 << 10, free: int = 1 << 30):
    """The module; `modules` of it lists what was compiled."""
    cp = types.ModuleType("cupy")
    modules = cp.modules = []

    class Card(Device):
        @property
        def attributes(self):
            return {name: room for name in super().attributes}

    def module(code, options, backend):
        place = tempfile.mkdtemp(dir=folder)
        modules.append(Module(Path(place), compiler, room, code))
        return modules[-1]

    cp.ndarray, cp.asarray, cp.RawModule = CardArray, on_card, module
    cp.zeros = lambda shape, dtype=float: np.zeros(shape, dtype).view(CardArray)
    cp.arange = lambda n, dtype: np.arange(n, dtype=dtype).view(CardArray)
    cp.flatnonzero = lambda x: np.flatnonzero(x).view(CardArray)
    cp.where, cp.isfinite = np.where, np.isfinite
    cp.concatenate = lambda x, axis=0: np.concatenate(x, axis=axis).view(CardArray)
    cp.broadcast_to = np.broadcast_to
    cp.ascontiguousarray = lambda x: np.ascontiguousarray(x).view(CardArray)
    runtime = types.SimpleNamespace(getDevice=lambda: 0, memGetInfo=lambda: (free, 2 * free))
    cp.cuda = types.SimpleNamespace(runtime=runtime, Device=Card)
    cp.get_default_memory_pool = lambda: types.SimpleNamespace(free_bytes=lambda: 0)
    return cp
