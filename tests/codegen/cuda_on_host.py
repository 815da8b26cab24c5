"""Emitted CUDA on a processor: every thread of a block is a fiber, and a meeting is a switch.

The kernel's text is compiled as C++ as it stands, with `HOST` in place of the few primitives that
only a card has. Blocks run one after the other.
"""

import ctypes
import subprocess
from pathlib import Path

import numpy as np

HEAD = r"""
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#define __device__ static
#define __global__
#define __shared__
#define __align__(n) __attribute__((aligned(n)))
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define __constant__ static const
#define NOT_A_NUMBER ((T)NAN)
struct Index { int x; };
static Index threadIdx, blockIdx, gridDim;
struct alignas(16) float4 { float x[4]; };
struct alignas(16) double2 { double x[2]; };
static void pause_here();
static int votes[64];
static void __syncwarp() { pause_here(); }
static bool __any_sync(unsigned, int vote)
{
    const int warp = threadIdx.x / 32;
    pause_here();
    if (threadIdx.x % 32 == 0) votes[warp] = 0;
    pause_here();
    votes[warp] |= vote;
    pause_here();
    return votes[warp] != 0;
}
static void atomicAdd(unsigned long long *x, unsigned long long y) { *x += y; }
static void atomicMax(unsigned long long *x, unsigned long long y) { if (y > *x) *x = y; }
"""

HOST = {
    "float32": r"""
typedef float T;
typedef float4 Quad;
static T reciprocal(T x) { return 1.0f / x; }
static float watch(T x) { return x; }
static T turned(T x, int n) { return n & 1 ? -x : x; }
static int low_bits(T x) { int n; memcpy(&n, &x, 4); return n; }
""",
    "float64": r"""
typedef double T;
typedef double2 Quad;
static T reciprocal(T x) { return 1.0 / x; }
static float watch(T x)
{
    unsigned long long n; memcpy(&n, &x, 8);
    unsigned upper = n >> 32; float y; memcpy(&y, &upper, 4);
    return y;
}
static T turned(T x, int n) { return n & 1 ? -x : x; }
static int low_bits(T x) { long long n; memcpy(&n, &x, 8); return (int)n; }
""",
}

MEET = r"""
static void meet(int) { pause_here(); }
/* A copy arrives only when it is waited for: whoever reads before that sees the old number. */
struct Copy { void *to; const void *from; size_t size; };
static Copy copies[1024][1024];
static int under_way[1024];
static void start(void *to, const void *from, size_t size)
{
    const int me = threadIdx.x;
    if (under_way[me] == 1024) abort();
    copies[me][under_way[me]++] = {to, from, size};
}
static void fetch_quad(Quad *to, const Quad *from) { start(to, from, 16); }
static void fetch(T *to, const T *from) { start(to, from, sizeof(T)); }
static void landed()
{
    const int me = threadIdx.x;
    for (int i = 0; i < under_way[me]; ++i)
        memcpy(copies[me][i].to, copies[me][i].from, copies[me][i].size);
    under_way[me] = 0;
}
"""

# Fibers run in turn from pause to pause: one turn is one meeting of the whole block, which is
# stricter on nobody: a group whose threads pause equally often meets with itself.
TAIL = r"""
alignas(16) T memory[1 << 17];
static ucontext_t home, fiber[%(threads)d];
static char *stack[%(threads)d];
static bool done[%(threads)d];
static void **given;
static i64 states;
static void pause_here()
{
    const int me = threadIdx.x;
    swapcontext(&fiber[me], &home);
    threadIdx.x = me;
}
static void thread()
{
    run(%(arguments)s, (T *)given[%(after)d], (int *)given[%(after)d + 1],
        (unsigned long long *)given[%(after)d + 2], states);
    done[threadIdx.x] = true;
}
extern "C" void launch(void **arguments, long long count, int blocks, int backwards)
{
    given = arguments;
    states = count;
    gridDim.x = blocks;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
        for (size_t i = 0; i < sizeof memory / sizeof *memory; ++i) memory[i] = (T)NAN;
        memset(under_way, 0, sizeof under_way);
        for (int t = 0; t < %(threads)d; ++t) {
            if (!stack[t]) stack[t] = (char *)malloc(1 << 20);
            getcontext(&fiber[t]);
            fiber[t].uc_stack.ss_sp = stack[t];
            fiber[t].uc_stack.ss_size = 1 << 20;
            fiber[t].uc_link = &home;
            makecontext(&fiber[t], thread, 0);
            done[t] = false;
        }
        for (int left = %(threads)d; left;) {
            left = 0;
            for (int i = 0; i < %(threads)d; ++i) {
                const int t = backwards ? %(threads)d - 1 - i : i;
                if (!done[t]) { threadIdx.x = t; swapcontext(&home, &fiber[t]); left += !done[t]; }
            }
        }
    }
}
"""


class OnHost:
    """A compiled source, called like the kernel on the card."""

    def __init__(self, source, inputs: int, folder: Path, compiler: str) -> None:
        assert source.text.count(source.primitives) == 1
        workers = source.primitives.splitlines()[0]
        host = "\n".join([workers, HOST[source.dtype], MEET])
        pairs = [f"(const T *)given[{2 * i}], *(i64 *)given[{2 * i + 1}]" for i in range(inputs)]
        after = {"threads": source.threads, "arguments": ", ".join(pairs), "after": 2 * inputs}
        text = HEAD + source.text.replace(source.primitives, host) + TAIL % after
        (folder / "kernel.cc").write_text(text)
        flags = ["-std=c++17", "-O0", "-ffp-contract=off", "-shared", "-fPIC", "-Wall", "-Wextra"]
        ignored = ["-Wno-unused-variable", "-Wno-unused-function", "-Wno-unknown-pragmas"]
        ignored += ["-Wno-unused-parameter", "-Wno-sign-compare", "-Wno-maybe-uninitialized"]
        command = [compiler, *flags, *ignored, "-Werror", "kernel.cc", "-o", "kernel.so", "-lm"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:3000]
        self.source = source
        self.library = ctypes.CDLL(str(folder / "kernel.so"))

    def __call__(
        self, arrays, width, count, *, status=True, offset=0, backwards=False, blocks=None
    ):
        """(results, statuses, (how many in trouble, first)); rows of 1-d arrays serve all.

        Fewer blocks than there are groups of states make each of them take several.

        Between meetings threads run one after the other: in the other order a meeting that is
        missing shows on the other side.
        """
        dtype = np.dtype(self.source.dtype)
        room = np.full(count * width + 8, 77.0, dtype=dtype)
        start = offset + (-room.ctypes.data // dtype.itemsize) % (16 // dtype.itemsize)
        out = room[start : start + count * width].reshape(count, width)
        codes = np.full(count, -7, dtype=np.int32)
        report = np.zeros(2, dtype=np.uint64)
        held, pointers = [], []
        for array in arrays:
            rows = np.array(array, dtype=dtype, order="C")
            step = ctypes.c_int64(0 if rows.ndim == 1 else rows.shape[1])
            held += [rows, step]
            pointers += [rows.ctypes.data, ctypes.addressof(step)]
        pointers += [out.ctypes.data, codes.ctypes.data if status else 0, report.ctypes.data]
        blocks = blocks or -(-count // self.source.states)
        addresses = (ctypes.c_void_p * len(pointers))(*pointers)
        self.library.launch(addresses, ctypes.c_int64(count), blocks, int(backwards))
        untouched = np.concatenate([room[:start], room[start + count * width :]])
        assert (untouched == 77.0).all(), "written outside the result"
        return out, codes, (int(report[0]), int(~report[1]))
