"""Emitted CUDA of motions on a processor.

Where a thread has a motion to itself, threads do not meet, and they run one after the other. Where
several share one, every thread is a fiber (`cuda_on_host.py`).
"""

import ctypes
import subprocess
from pathlib import Path

import numpy as np

from tests.codegen.cuda_on_host import HEAD, HOST, MEET, TAIL

BEFORE = r"""
static Index blockDim;
"""

AFTER = r"""
static void pause_here() {}
extern "C" void launch(int blocks, int threads, void **x, T h, i64 steps, i64 every, i64 records,
    void *failed, void *out, void *status, void *report, i64 count)
{
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x)
            run(%(arguments)s, h, steps, every, records, (i64 *)failed, (T *)out, (int *)status,
                (unsigned long long *)report, count);
}
"""


class OnHost:
    """A compiled source, called like the function on the card."""

    def __init__(self, source, folder: Path, compiler: str) -> None:
        assert source.text.count(source.primitives) == 1
        sizes = [3, 3, *(4 for _ in source.held)]  # address, then steps
        places = [sum(sizes[:i]) for i in range(len(sizes))]
        arguments = [
            ", ".join([f"(const T *)x[{p}]", *(f"(i64)x[{p + i}]" for i in range(1, n))])
            for p, n in zip(places, sizes, strict=True)
        ]
        host = HOST[source.dtype]
        if source.workers > 1:  # all of it by way of an array of addresses
            at = sum(sizes)
            wide = [x.replace("x[", "given[") for x in arguments]
            wide += [f"*(T *)given[{at}]", *(f"(i64)given[{at + i}]" for i in (1, 2, 3))]
            wide += [f"(i64 *)given[{at + 4}]"]
            names = {"threads": source.threads, "arguments": ", ".join(wide), "after": at + 5}
            host = "\n".join([source.primitives.splitlines()[0], host, MEET])
            before, after = "", TAIL % names
        else:
            before, after = BEFORE, AFTER % {"arguments": ", ".join(arguments)}
        text = before + source.text.replace(source.primitives, host) + after
        (folder / "motion.cc").write_text(HEAD + text)
        flags = ["-std=c++17", "-O0", "-ffp-contract=off", "-shared", "-fPIC", "-Wall", "-Wextra"]
        ignored = ["-Wno-unused-variable", "-Wno-unused-function", "-Wno-unknown-pragmas"]
        ignored += ["-Wno-unused-parameter", "-Wno-sign-compare"]
        command = [compiler, *flags, *ignored, "-Werror", "motion.cc", "-o", "motion.so", "-lm"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:3000]
        self.source = source
        self.library = ctypes.CDLL(str(folder / "motion.so"))

    def launch(self, grid: int, threads: int, given: list[int], *rest) -> None:
        """With addresses and steps of the inputs, h, steps, every, records, out, status, ..."""
        h, *counts, failed, out, status, report, count = rest
        number = ctypes.c_float if self.source.dtype == "float32" else ctypes.c_double
        if self.source.workers > 1:
            assert threads == self.source.threads
            length = number(h)
            flat = [*given, ctypes.addressof(length), *counts, failed, out, status, report]
            addresses = (ctypes.c_void_p * len(flat))(*flat)
            for backwards in (0, 1):  # in the other order a missing meeting shows elsewhere
                self.library.launch(addresses, ctypes.c_int64(count), grid, backwards)
            return
        self.library.launch(
            grid,
            threads,
            (ctypes.c_void_p * len(given))(*given),
            number(h),
            *(ctypes.c_int64(x) for x in counts),
            *(ctypes.c_void_p(x) for x in (failed, out, status, report)),
            ctypes.c_int64(count),
        )

    def __call__(self, q, v, held, h, steps, every, *, threads=32, shown=0):
        """q and v (records, n, batch), status and failed step; held are (batch, steps, n).

        Records have `shown` more numbers.
        """
        dtype = np.dtype(self.source.dtype)
        arrays = [np.array(x, dtype=dtype, order="C") for x in (q, v, *held)]
        given = list[int]()
        for x in arrays:
            given += [x.ctypes.data, *(s // x.itemsize for s in x.strides)]
        count, width = len(q), q.shape[1] + v.shape[1] + shown
        records = 1 + -(-steps // every)
        out = np.full((records + 2, width, count), 77.0, dtype=dtype)  # one more on each side
        status, failed = np.full(count, -7, np.int32), np.full(count, -7, np.int64)
        place, report = out[1:-1], np.zeros(1, np.uint64)
        workers = self.source.workers
        threads = self.source.threads if workers > 1 else threads
        self.launch(
            -(-count * workers // threads),
            threads,
            given,
            h,
            steps,
            every,
            records,
            *(x.ctypes.data for x in (failed, place, status, report)),
            count,
        )
        assert (out[0] == 77.0).all() and (out[-1] == 77.0).all(), "written outside the result"
        assert report[0] == np.count_nonzero(status) * (1 if workers == 1 else 2)
        end = q.shape[1] + v.shape[1]
        return place[:, : q.shape[1]], place[:, q.shape[1] : end], status, failed
