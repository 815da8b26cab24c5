"""Emitted scans on a processor: threads of a block are threads, and meet at a barrier."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np

from linkwise.codegen.scan.device import ADDRESSES, ChainGpu
from linkwise.codegen.scan.element_code import THREADS
from linkwise.codegen.scan.source import scan_source
from tests.codegen.cuda_on_host import HOST

HEAD = r"""
#include <math.h>
#include <string.h>
#include <barrier>
#include <thread>
#include <vector>
#define __device__
#define __global__
#define __shared__ static
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __restrict__ __restrict
static double rsqrt(double x) { return 1.0 / sqrt(x); }
struct Index { int x; };
struct double2 { double x[2]; };
static thread_local Index threadIdx, blockIdx;
static Index blockDim;
static std::barrier<> *meeting;
static void __syncthreads() { meeting->arrive_and_wait(); }
static void atomicMax(int *x, int y) { if (y > *x) *x = y; }
"""

RUN = r"""
extern "C" void run(Chain *chain, T *elements, T *totals, PARAMETERS, T *out, int *code)
{
    const int runs = (int)chain->runs, blocks = (runs + THREADS - 1) / THREADS;
    blockDim.x = 1;
    auto each = [&](auto kernel) {
        for (int i = 0; i < runs; ++i) { blockIdx.x = i; threadIdx.x = 0; kernel(); }
    };
    auto together = [&](int count, auto kernel) {
        for (int b = 0; b < count; ++b) {
            std::barrier<> all(THREADS);
            meeting = &all;
            std::vector<std::thread> threads;
            for (int t = 0; t < THREADS; ++t)
                threads.emplace_back([&, t] { blockIdx.x = b; threadIdx.x = t; kernel(); });
            for (auto &thread : threads) thread.join();
        }
    };
CALLS
}
"""


class OnHost:
    """A kernel of a chain, built by the compiler of this computer."""

    def __init__(self, device: ChainGpu, folder: Path) -> None:
        self.device, chunks = device, device.chunked
        names = [f"in{i}" for i in range(len(chunks.rolled.inputs))]
        calls = list[str]()
        given = f"chain, elements, totals, {', '.join(names)}, out, code"
        for stage, carried in enumerate(chunks.carried):
            if carried is not None:
                kind = "affine" if carried.kind == "affine" else "kalman"
                calls.append(f"each([&] {{ fold_{stage}({given}); }});")
                calls.append(f"together(blocks, [&] {{ scan_{kind}(elements, runs, totals); }});")
                calls.append(f"together(1, [&] {{ scan_{kind}(totals, blocks, 0); }});")
            calls.append(f"each([&] {{ apply_{stage}({given}); }});")
        text = RUN.replace("PARAMETERS", ", ".join(f"T *{x}" for x in names))
        text = text.replace("CALLS", "\n".join(calls)).replace("THREADS", str(THREADS))
        source = HEAD + scan_source(chunks, HOST["float64"]) + text
        source = source.replace(
            "extern __shared__ T shared[];", f"static T shared[156 * {THREADS}];"
        )
        path = folder / "chain.cpp"
        path.write_text(source)
        library = folder / "chain.so"
        options = ["-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", "-w"]
        subprocess.run(["g++", *options, str(path), "-o", str(library)], check=True)
        self.run = ctypes.CDLL(str(library)).run

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, int]:
        """The result and the code."""
        code = self.device.code
        held = {**code.tables, "record": np.full(code.record * code.room, np.nan)}
        address = [code.runs, code.room, *(held[x].ctypes.data for x in ADDRESSES)]
        elements = np.full(78 * code.runs, np.nan)
        totals = np.full(78 * (code.runs // THREADS + 1), np.nan)
        out, mark = np.full(self.device.signature.shape, np.nan), np.zeros(1, np.int32)
        rows = [np.ascontiguousarray(x, dtype=np.float64) for x in arrays]
        given = (np.array(address, dtype=np.int64), elements, totals, *rows, out, mark)
        self.run(*(ctypes.c_void_p(x.ctypes.data) for x in given))
        return out, int(mark[0])
