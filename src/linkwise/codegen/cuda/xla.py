# pyright: basic
# (CuPy and llvmlite have no type information)
"""XLA's entry to a kernel on a GPU: a handler in machine code that launches it on XLA's stream.

As on the processor (`cpu/xla.py`), XLA calls `handler(frame)` with the addresses of its arrays,
here on the GPU. The launch is the same each time, so XLA may record it in a CUDA graph. The kernel
is loaded beforehand on every GPU that JAX uses.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.codegen import arrays
from linkwise.codegen.cpu import machine
from linkwise.codegen.cpu.xla import ANSWER, Handler, code
from linkwise.codegen.cuda.device import Gpu
from linkwise.errors import DeviceError

RECORDABLE = "1"
"""The trait of handlers whose work may become part of a CUDA graph."""

# Entries of the table, 8 bytes each: functions of the driver, the kernel, and a row of three for
# each GPU: its context, the function there, and the most blocks (0 for any number).
LAUNCH, PUSH, POP, INPUTS, SIZES, WIDTH, STATES, THREADS, SHARED, GPUS, COUNT = range(11)
ENTRIES = 11

HANDLER = """
@table = global [11 x i64] zeroinitializer
@elsewhere = private constant [40 x i8] c"the kernel is not loaded on this device\\00"
@refused = private constant [42 x i8] c"the CUDA driver did not launch the kernel\\00"

define private i64 @fact(i64 %i) {
  %at = getelementptr i64, ptr @table, i64 %i
  %value = load i64, ptr %at
  ret i64 %value
}

; Ask XLA about this call: a function of its interface that fills a record of `size` bytes.
define private ptr @question(ptr %frame, i64 %which, ptr %record, i64 %size) {
  %api.at = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %api.at
  %ctx.at = getelementptr i8, ptr %frame, i64 24
  %ctx = load ptr, ptr %ctx.at
  %ask.at = getelementptr i8, ptr %api, i64 %which
  %ask = load ptr, ptr %ask.at
  store [4 x i64] zeroinitializer, ptr %record
  store i64 %size, ptr %record
  %ctx.to = getelementptr i8, ptr %record, i64 16
  store ptr %ctx, ptr %ctx.to
  %error = call ptr %ask(ptr %record)
  ret ptr %error
}

define ptr @handler(ptr %frame) {
entry:
  %asked = call i1 @asked(ptr %frame)
  br i1 %asked, label %fine, label %begin
begin:
  %values = call ptr @buffer(ptr %frame, i64 112, i64 0)
  %codes = call ptr @buffer(ptr %frame, i64 112, i64 1)
  %count = call i64 @rows(ptr %codes, i64 0)
  %width = call i64 @fact(i64 5)
  %numbers = mul i64 %count, %width
  %empty = icmp eq i64 %numbers, 0
  br i1 %empty, label %fine, label %ask
ask:
  %n = call i64 @fact(i64 3)
  %pairs = mul i64 %n, 2
  %total = add i64 %pairs, 4
  %arguments = alloca i64, i64 %total
  %addresses = alloca ptr, i64 %total
  %record = alloca [4 x i64]
  %no.stream = call ptr @question(ptr %frame, i64 80, ptr %record, i64 32)
  %streaming = icmp eq ptr %no.stream, null
  br i1 %streaming, label %streams, label %failed
streams:
  %out.at = getelementptr i8, ptr %record, i64 24
  %stream = load ptr, ptr %out.at
  %api.at = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %api.at
  %api.size = load i64, ptr %api
  %current = icmp ugt i64 %api.size, 184
  br i1 %current, label %place, label %here
place:
  %no.gpu = call ptr @question(ptr %frame, i64 184, ptr %record, i64 28)
  %placed = icmp eq ptr %no.gpu, null
  br i1 %placed, label %number, label %failed
number:
  %ordinal.here = load i32, ptr %out.at
  br label %here
failed:
  %failure = phi ptr [ %no.stream, %ask ], [ %no.gpu, %place ]
  ret ptr %failure
here:
  %ordinal = phi i32 [ 0, %streams ], [ %ordinal.here, %number ]  ; older versions do not say
  %gpu = sext i32 %ordinal to i64
  %gpus = call i64 @fact(i64 10)
  %known = icmp ult i64 %gpu, %gpus
  br i1 %known, label %row, label %unknown
row:
  %rows.value = call i64 @fact(i64 9)
  %rows = inttoptr i64 %rows.value to ptr
  %first = mul i64 %gpu, 3
  %context.at = getelementptr i64, ptr %rows, i64 %first
  %context = load ptr, ptr %context.at
  %function.at = getelementptr i64, ptr %context.at, i64 1
  %function = load ptr, ptr %function.at
  %most.at = getelementptr i64, ptr %context.at, i64 2
  %most = load i64, ptr %most.at
  %missing = icmp eq ptr %function, null
  br i1 %missing, label %unknown, label %fill
unknown:
  %error.unknown = call ptr @failure(ptr %frame, i32 9, ptr @elsewhere)
  ret ptr %error.unknown
fill:
  %sizes.value = call i64 @fact(i64 4)
  %sizes = inttoptr i64 %sizes.value to ptr
  br label %head
head:
  %i = phi i64 [ 0, %fill ], [ %i.next, %body ]
  %go = icmp slt i64 %i, %n
  br i1 %go, label %body, label %outputs
body:
  %buffer = call ptr @buffer(ptr %frame, i64 72, i64 %i)
  %data = call ptr @numbers(ptr %buffer)
  %lead = call i64 @rows(ptr %buffer, i64 1)
  %shared.row = icmp eq i64 %lead, 1
  %size.at = getelementptr i64, ptr %sizes, i64 %i
  %size = load i64, ptr %size.at
  %step = select i1 %shared.row, i64 0, i64 %size
  %a = mul i64 %i, 2
  %data.to = getelementptr i64, ptr %arguments, i64 %a
  store ptr %data, ptr %data.to
  %step.to = getelementptr i64, ptr %data.to, i64 1
  store i64 %step, ptr %step.to
  %i.next = add i64 %i, 1
  br label %head
outputs:
  %result = call ptr @numbers(ptr %values)
  %status = call ptr @numbers(ptr %codes)
  %result.to = getelementptr i64, ptr %arguments, i64 %pairs
  store ptr %result, ptr %result.to
  %status.to = getelementptr i64, ptr %result.to, i64 1
  store ptr %status, ptr %status.to
  %report.to = getelementptr i64, ptr %result.to, i64 2
  store ptr null, ptr %report.to
  %count.to = getelementptr i64, ptr %result.to, i64 3
  store i64 %count, ptr %count.to
  br label %point
point:
  %k = phi i64 [ 0, %outputs ], [ %k.next, %point ]
  %argument = getelementptr i64, ptr %arguments, i64 %k
  %address = getelementptr ptr, ptr %addresses, i64 %k
  store ptr %argument, ptr %address
  %k.next = add i64 %k, 1
  %again = icmp slt i64 %k.next, %total
  br i1 %again, label %point, label %launch
launch:
  %states = call i64 @fact(i64 6)
  %above = add i64 %count, %states
  %last = sub i64 %above, 1
  %groups = sdiv i64 %last, %states
  %bounded = icmp sgt i64 %most, 0
  %more = icmp sgt i64 %groups, %most
  %cut = and i1 %bounded, %more
  %blocks = select i1 %cut, i64 %most, i64 %groups
  %grid = trunc i64 %blocks to i32
  %threads.value = call i64 @fact(i64 7)
  %threads = trunc i64 %threads.value to i32
  %shared.value = call i64 @fact(i64 8)
  %shared = trunc i64 %shared.value to i32
  %launch.value = call i64 @fact(i64 0)
  %start = inttoptr i64 %launch.value to ptr
  %push.value = call i64 @fact(i64 1)
  %push = inttoptr i64 %push.value to ptr
  %pop.value = call i64 @fact(i64 2)
  %pop = inttoptr i64 %pop.value to ptr
  %pushed = call i32 %push(ptr %context)
  %outcome = call i32 %start(ptr %function, i32 %grid, i32 1, i32 1, i32 %threads, i32 1, i32 1,
                             i32 %shared, ptr %stream, ptr %addresses, ptr null)
  %popped = call i32 %pop(ptr %record)
  %good = icmp eq i32 %outcome, 0
  br i1 %good, label %fine, label %bad
bad:
  %error.bad = call ptr @failure(ptr %frame, i32 13, ptr @refused)
  ret ptr %error.bad
fine:
  ret ptr null
}
"""


def gpu_handler(device: Gpu, gpus: Sequence[int], driver: Any = None) -> Handler:
    """The handler of a kernel on GPUs.

    Args:
        device: The kernel.
        gpus: Numbers of the GPUs.
        driver: The library of the CUDA driver; default: that of this computer.
    """
    cp, driver = arrays.cupy(), _driver() if driver is None else driver
    rows = np.zeros((max(gpus) + 1, 3), np.int64)
    for gpu in gpus:
        with cp.cuda.Device(gpu):
            loaded = device.loaded_on(gpu)
            context = ctypes.c_void_p()
            if driver.cuCtxGetCurrent(ctypes.byref(context)) or not context.value:
                raise DeviceError(f"GPU {gpu} has no CUDA context after a kernel was loaded.")
            blocks = loaded.blocks if loaded.source.stay else 0
            rows[gpu] = context.value, loaded.function.kernel.ptr, blocks
    source, signature = loaded.source, device.signature
    sizes = np.array([size for _, size in signature.inputs], np.int64)
    engine = machine.linked(code(ANSWER.replace("TRAITS", RECORDABLE) + HANDLER))
    table = (ctypes.c_int64 * ENTRIES).from_address(engine.get_global_value_address("table"))
    functions = ("cuLaunchKernel", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2")
    for entry, name in zip((LAUNCH, PUSH, POP), functions, strict=True):
        table[entry] = ctypes.cast(getattr(driver, name), ctypes.c_void_p).value or 0
    table[INPUTS], table[SIZES] = len(sizes), sizes.ctypes.data
    table[WIDTH], table[STATES] = math.prod(signature.shape), source.states
    table[THREADS], table[SHARED] = source.threads, source.shared
    table[GPUS], table[COUNT] = rows.ctypes.data, len(rows)
    kept = engine, device, driver, sizes, rows
    return Handler(engine.get_function_address("handler"), kept)


def _driver() -> Any:
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise DeviceError(f"the CUDA driver cannot be loaded: {error}.") from None
