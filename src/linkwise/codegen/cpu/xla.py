# pyright: basic
# (llvmlite has no type information)
"""XLA's entry to a kernel: a handler of its foreign-function interface, in machine code.

XLA calls `handler(frame)` with the addresses and shapes of its arrays. The
handler runs the kernel on them, by registers of states first and the rest one by one, and sets rows
without a result to NaN; the first of these is reported. Results are the rows (..., width) and a
status code for each of them. Inputs have the same leading axes, or none: one row for all states.

A large batch is cut into chunks. The calling thread and tasks on XLA's thread pool take one after
another; nothing depends on when, or whether, a task starts. The job they share is freed by the last
of them. All facts about the kernel are in `table`, which is filled when the handler is loaded, so
that one object file serves all kernels.

Offsets are those of XLA's C interface (`xla/ffi/api/c_api.h`), which only grows at its ends.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from linkwise.codegen.cpu import machine
from linkwise.codegen.cpu.device import CHUNK, Processor
from linkwise.codegen.cpu.ir import Unit

WORTH = 500_000
"""Operations for which a task on another thread is worth it."""

# Entries of the table, 8 bytes each.
ONE, MANY, LANES, ITEMSIZE, WIDTH, INPUTS, WORK, STATES, SIZES, REPORT, REPORTED = range(11)
ENTRIES = 11

ANSWER = """
; Whether this call asks about the handler only: then answer with the version of the interface.
define private i1 @asked(ptr %frame) {
entry:
  %first.at = getelementptr i8, ptr %frame, i64 8
  %first = load ptr, ptr %first.at
  br label %next
next:
  %extension = phi ptr [ %first, %entry ], [ %following, %other ]
  %none = icmp eq ptr %extension, null
  br i1 %none, label %no, label %look
look:
  %kind.at = getelementptr i8, ptr %extension, i64 8
  %kind = load i32, ptr %kind.at
  %metadata = icmp eq i32 %kind, 1
  br i1 %metadata, label %yes, label %other
other:
  %following.at = getelementptr i8, ptr %extension, i64 16
  %following = load ptr, ptr %following.at
  br label %next
yes:
  %facts.at = getelementptr i8, ptr %extension, i64 24
  %facts = load ptr, ptr %facts.at
  %api.at = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %api.at
  %older = icmp eq ptr %api, null
  br i1 %older, label %answer, label %current
current:
  %minor.at = getelementptr i8, ptr %api, i64 36
  %minor.here = load i32, ptr %minor.at
  br label %answer
answer:
  %minor = phi i32 [ 1, %yes ], [ %minor.here, %current ]  ; versions up to 0.1 do not say
  %out.major = getelementptr i8, ptr %facts, i64 24
  store i32 0, ptr %out.major
  %out.minor = getelementptr i8, ptr %facts, i64 28
  store i32 %minor, ptr %out.minor
  %out.traits = getelementptr i8, ptr %facts, i64 32
  store i32 TRAITS, ptr %out.traits
  ret i1 true
no:
  ret i1 false
}

; The address of the numbers of argument or result i of the list at an offset in the frame.
define private ptr @buffer(ptr %frame, i64 %list, i64 %i) {
  %at = getelementptr i8, ptr %frame, i64 %list
  %pointers = load ptr, ptr %at
  %one = getelementptr ptr, ptr %pointers, i64 %i
  %buffer = load ptr, ptr %one
  ret ptr %buffer
}

define private ptr @numbers(ptr %buffer) {
  %at = getelementptr i8, ptr %buffer, i64 24
  %data = load ptr, ptr %at
  ret ptr %data
}

; The product of the axes of an array, without the last `less` ones.
define private i64 @rows(ptr %buffer, i64 %less) {
entry:
  %rank.at = getelementptr i8, ptr %buffer, i64 32
  %rank = load i64, ptr %rank.at
  %dims.at = getelementptr i8, ptr %buffer, i64 40
  %dims = load ptr, ptr %dims.at
  %end = sub i64 %rank, %less
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i.next, %body ]
  %total = phi i64 [ 1, %entry ], [ %more, %body ]
  %go = icmp slt i64 %i, %end
  br i1 %go, label %body, label %done
body:
  %dim.at = getelementptr i64, ptr %dims, i64 %i
  %dim = load i64, ptr %dim.at
  %more = mul i64 %total, %dim
  %i.next = add i64 %i, 1
  br label %head
done:
  ret i64 %total
}

; An error with a code and a text, for XLA.
define private ptr @failure(ptr %frame, i32 %code, ptr %text) {
  %api.at = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %api.at
  %make.at = getelementptr i8, ptr %api, i64 48
  %make = load ptr, ptr %make.at
  %arguments = alloca [4 x i64]
  store [4 x i64] [i64 28, i64 0, i64 0, i64 0], ptr %arguments
  %text.at = getelementptr i8, ptr %arguments, i64 16
  store ptr %text, ptr %text.at
  %code.at = getelementptr i8, ptr %arguments, i64 24
  store i32 %code, ptr %code.at
  %error = call ptr %make(ptr %arguments)
  ret ptr %error
}
"""
"""What handlers on all devices have in common."""

HANDLER = """
@table = global [11 x i64] zeroinitializer
@memory = private constant [15 x i8] c"out of memory.\\00"

declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @sched_yield()

define private i64 @fact(i64 %i) {
  %at = getelementptr i64, ptr @table, i64 %i
  %value = load i64, ptr %at
  ret i64 %value
}

; A job: 0 holders, 8 next chunk, 16 chunks done, 24 threads in, 32 states, 40 states of a chunk,
; 48 inputs, 56 strides, 64 output, 72 status, then scratch memory for each thread.
%Job = type { i64, i64, i64, i64, i64, i64, ptr, ptr, ptr, ptr }

; Report the first state without a result, once.
define private void @report(i32 %code) {
entry:
  %report = call i64 @fact(i64 9)
  %none = icmp eq i64 %report, 0
  br i1 %none, label %done, label %some
some:
  %once = getelementptr i64, ptr @table, i64 10
  %before = atomicrmw xchg ptr %once, i64 1 seq_cst
  %first = icmp eq i64 %before, 0
  br i1 %first, label %now, label %done
now:
  %to = inttoptr i64 %report to ptr
  call void %to(i32 %code)
  br label %done
done:
  ret void
}

; States from begin up to end.
define private void @part(ptr %job, i64 %begin, i64 %end, ptr %work) {
entry:
  %inputs.at = getelementptr %Job, ptr %job, i64 0, i32 6
  %inputs = load ptr, ptr %inputs.at
  %strides.at = getelementptr %Job, ptr %job, i64 0, i32 7
  %strides = load ptr, ptr %strides.at
  %output.at = getelementptr %Job, ptr %job, i64 0, i32 8
  %output = load ptr, ptr %output.at
  %status.at = getelementptr %Job, ptr %job, i64 0, i32 9
  %status = load ptr, ptr %status.at
  %width = call i64 @fact(i64 4)
  %many = call i64 @fact(i64 1)
  %lanes = call i64 @fact(i64 2)
  %states = sub i64 %end, %begin
  %left = srem i64 %states, %lanes
  %upto = sub i64 %end, %left
  %has = icmp ne i64 %many, 0
  %some = icmp slt i64 %begin, %upto
  %wide = and i1 %has, %some
  br i1 %wide, label %together, label %single
together:
  %run.many = inttoptr i64 %many to ptr
  call void %run.many(ptr %inputs, ptr %strides, ptr %output, i64 %width, ptr %status,
                      i64 %begin, i64 %upto, ptr %work)
  br label %single
single:
  %from = phi i64 [ %begin, %entry ], [ %upto, %together ]
  %one = call i64 @fact(i64 0)
  %run.one = inttoptr i64 %one to ptr
  call void %run.one(ptr %inputs, ptr %strides, ptr %output, i64 %width, ptr %status,
                     i64 %from, i64 %end, ptr %work)
  %itemsize = call i64 @fact(i64 3)
  %double = icmp eq i64 %itemsize, 8
  br label %check
check:
  %i = phi i64 [ %begin, %single ], [ %i.next, %checked ]
  %go = icmp slt i64 %i, %end
  br i1 %go, label %look, label %done
look:
  %code.at = getelementptr i32, ptr %status, i64 %i
  %code = load i32, ptr %code.at
  %fine = icmp eq i32 %code, 0
  %start = mul i64 %i, %width
  br i1 %fine, label %checked, label %bad
bad:
  call void @report(i32 %code)
  br label %fill
fill:
  %k = phi i64 [ 0, %bad ], [ %k.next, %filled ]
  %inside = icmp slt i64 %k, %width
  br i1 %inside, label %put, label %checked
put:
  %at = add i64 %start, %k
  br i1 %double, label %put.double, label %put.float
put.double:
  %at.double = getelementptr double, ptr %output, i64 %at
  store double 0x7FF8000000000000, ptr %at.double
  br label %filled
put.float:
  %at.float = getelementptr float, ptr %output, i64 %at
  store float 0x7FF8000000000000, ptr %at.float
  br label %filled
filled:
  %k.next = add i64 %k, 1
  br label %fill
checked:
  %i.next = add i64 %i, 1
  br label %check
done:
  ret void
}

; Take chunks of a job until none is left.
define private void @help(ptr %job) {
entry:
  %threads = getelementptr %Job, ptr %job, i64 0, i32 3
  %slot = atomicrmw add ptr %threads, i64 1 seq_cst
  %room = call i64 @room()
  %offset = mul i64 %slot, %room
  %memory = getelementptr i8, ptr %job, i64 80
  %work = getelementptr i8, ptr %memory, i64 %offset
  %count.at = getelementptr %Job, ptr %job, i64 0, i32 4
  %count = load i64, ptr %count.at
  %chunk.at = getelementptr %Job, ptr %job, i64 0, i32 5
  %chunk = load i64, ptr %chunk.at
  %next = getelementptr %Job, ptr %job, i64 0, i32 1
  %done = getelementptr %Job, ptr %job, i64 0, i32 2
  br label %take
take:
  %k = atomicrmw add ptr %next, i64 1 seq_cst
  %begin = mul i64 %k, %chunk
  %go = icmp slt i64 %begin, %count
  br i1 %go, label %compute, label %over
compute:
  %full = add i64 %begin, %chunk
  %inside = icmp slt i64 %full, %count
  %end = select i1 %inside, i64 %full, i64 %count
  call void @part(ptr %job, i64 %begin, i64 %end, ptr %work)
  %before = atomicrmw add ptr %done, i64 1 seq_cst
  br label %take
over:
  ret void
}

define private void @drop(ptr %job) {
entry:
  %before = atomicrmw sub ptr %job, i64 1 seq_cst
  %last = icmp eq i64 %before, 1
  br i1 %last, label %free, label %done
free:
  call void @free(ptr %job)
  br label %done
done:
  ret void
}

define private void @task(ptr %job) {
  call void @help(ptr %job)
  call void @drop(ptr %job)
  ret void
}

; Bytes of scratch memory of a thread, with a line of the cache in between.
define private i64 @room() {
  %work = call i64 @fact(i64 6)
  %itemsize = call i64 @fact(i64 3)
  %bytes = mul i64 %work, %itemsize
  %padded = add i64 %bytes, 127
  %room = and i64 %padded, -64
  ret i64 %room
}

define private i64 @pool_size(ptr %frame) {
  %api.at = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %api.at
  %ctx.at = getelementptr i8, ptr %frame, i64 24
  %ctx = load ptr, ptr %ctx.at
  %ask.at = getelementptr i8, ptr %api, i64 144
  %ask = load ptr, ptr %ask.at
  %size = alloca i64
  store i64 1, ptr %size
  %arguments = alloca [4 x i64]
  store [4 x i64] [i64 32, i64 0, i64 0, i64 0], ptr %arguments
  %ctx.to = getelementptr i8, ptr %arguments, i64 16
  store ptr %ctx, ptr %ctx.to
  %size.to = getelementptr i8, ptr %arguments, i64 24
  store ptr %size, ptr %size.to
  %error = call ptr %ask(ptr %arguments)
  call i1 @dismissed(ptr %frame, ptr %error)
  %threads = load i64, ptr %size
  ret i64 %threads
}

; Free an error of XLA; whether there was one.
define private i1 @dismissed(ptr %frame, ptr %error) {
entry:
  %fine = icmp eq ptr %error, null
  br i1 %fine, label %none, label %some
some:
  %api.at = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %api.at
  %destroy.at = getelementptr i8, ptr %api, i64 64
  %destroy = load ptr, ptr %destroy.at
  %arguments = alloca [3 x i64]
  store [3 x i64] [i64 24, i64 0, i64 0], ptr %arguments
  %error.to = getelementptr i8, ptr %arguments, i64 16
  store ptr %error, ptr %error.to
  call void %destroy(ptr %arguments)
  ret i1 true
none:
  ret i1 false
}

define private void @schedule(ptr %frame, ptr %job) {
entry:
  %before = atomicrmw add ptr %job, i64 1 seq_cst
  %api.at = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %api.at
  %ctx.at = getelementptr i8, ptr %frame, i64 24
  %ctx = load ptr, ptr %ctx.at
  %start.at = getelementptr i8, ptr %api, i64 136
  %start = load ptr, ptr %start.at
  %arguments = alloca [5 x i64]
  store [5 x i64] [i64 40, i64 0, i64 0, i64 0, i64 0], ptr %arguments
  %ctx.to = getelementptr i8, ptr %arguments, i64 16
  store ptr %ctx, ptr %ctx.to
  %task.to = getelementptr i8, ptr %arguments, i64 24
  store ptr @task, ptr %task.to
  %job.to = getelementptr i8, ptr %arguments, i64 32
  store ptr %job, ptr %job.to
  %error = call ptr %start(ptr %arguments)
  %failed = call i1 @dismissed(ptr %frame, ptr %error)
  br i1 %failed, label %alone, label %done
alone:
  call void @drop(ptr %job)
  br label %done
done:
  ret void
}

define ptr @handler(ptr %frame) {
entry:
  %asked = call i1 @asked(ptr %frame)
  br i1 %asked, label %fine, label %begin
begin:
  %n = call i64 @fact(i64 5)
  %inputs = alloca ptr, i64 %n
  %strides = alloca i64, i64 %n
  %sizes.value = call i64 @fact(i64 8)
  %sizes = inttoptr i64 %sizes.value to ptr
  br label %head
head:
  %i = phi i64 [ 0, %begin ], [ %i.next, %body ]
  %go = icmp slt i64 %i, %n
  br i1 %go, label %body, label %ready
body:
  %buffer = call ptr @buffer(ptr %frame, i64 72, i64 %i)
  %data = call ptr @numbers(ptr %buffer)
  %input.at = getelementptr ptr, ptr %inputs, i64 %i
  store ptr %data, ptr %input.at
  %lead = call i64 @rows(ptr %buffer, i64 1)
  %shared = icmp eq i64 %lead, 1
  %size.at = getelementptr i64, ptr %sizes, i64 %i
  %size = load i64, ptr %size.at
  %stride = select i1 %shared, i64 0, i64 %size
  %stride.at = getelementptr i64, ptr %strides, i64 %i
  store i64 %stride, ptr %stride.at
  %i.next = add i64 %i, 1
  br label %head
ready:
  %values = call ptr @buffer(ptr %frame, i64 112, i64 0)
  %output = call ptr @numbers(ptr %values)
  %codes = call ptr @buffer(ptr %frame, i64 112, i64 1)
  %status = call ptr @numbers(ptr %codes)
  %count = call i64 @rows(ptr %codes, i64 0)
  %chunk = call i64 @fact(i64 7)
  %full = add i64 %count, %chunk
  %less = sub i64 %full, 1
  %chunks = sdiv i64 %less, %chunk
  %large = icmp sgt i64 %chunks, 1
  br i1 %large, label %ask, label %small
small:                            ; one chunk: on this thread, with scratch memory on its stack
  %space = call i64 @room()
  %fits = icmp ule i64 %space, 16384
  br i1 %fits, label %alone, label %make
alone:
  %own = alloca %Job
  %own.inputs = getelementptr %Job, ptr %own, i64 0, i32 6
  store ptr %inputs, ptr %own.inputs
  %own.strides = getelementptr %Job, ptr %own, i64 0, i32 7
  store ptr %strides, ptr %own.strides
  %own.output = getelementptr %Job, ptr %own, i64 0, i32 8
  store ptr %output, ptr %own.output
  %own.status = getelementptr %Job, ptr %own, i64 0, i32 9
  store ptr %status, ptr %own.status
  %scratch.here = alloca i8, i64 %space, align 64
  call void @part(ptr %own, i64 0, i64 %count, ptr %scratch.here)
  ret ptr null
ask:
  %pool = call i64 @pool_size(ptr %frame)
  %fewer = icmp slt i64 %pool, %chunks
  %some = select i1 %fewer, i64 %pool, i64 %chunks
  br label %make
make:
  %threads = phi i64 [ 1, %small ], [ %some, %ask ]
  %room = call i64 @room()
  %scratch = mul i64 %threads, %room
  %bytes = add i64 %scratch, 80
  %job = call ptr @malloc(i64 %bytes)
  %missing = icmp eq ptr %job, null
  br i1 %missing, label %exhausted, label %fill
exhausted:
  %error = call ptr @failure(ptr %frame, i32 8, ptr @memory)
  ret ptr %error
fill:
  store %Job { i64 1, i64 0, i64 0, i64 0, i64 0, i64 0, ptr null, ptr null, ptr null, ptr null },
        ptr %job
  %count.at = getelementptr %Job, ptr %job, i64 0, i32 4
  store i64 %count, ptr %count.at
  %chunk.at = getelementptr %Job, ptr %job, i64 0, i32 5
  store i64 %chunk, ptr %chunk.at
  %inputs.at = getelementptr %Job, ptr %job, i64 0, i32 6
  store ptr %inputs, ptr %inputs.at
  %strides.at = getelementptr %Job, ptr %job, i64 0, i32 7
  store ptr %strides, ptr %strides.at
  %output.at = getelementptr %Job, ptr %job, i64 0, i32 8
  store ptr %output, ptr %output.at
  %status.at = getelementptr %Job, ptr %job, i64 0, i32 9
  store ptr %status, ptr %status.at
  br label %more
more:
  %t = phi i64 [ 1, %fill ], [ %t.next, %start ]
  %another = icmp slt i64 %t, %threads
  br i1 %another, label %start, label %work
start:
  call void @schedule(ptr %frame, ptr %job)
  %t.next = add i64 %t, 1
  br label %more
work:
  call void @help(ptr %job)
  %done.at = getelementptr %Job, ptr %job, i64 0, i32 2
  br label %wait
wait:
  %done = load atomic i64, ptr %done.at acquire, align 8
  %all = icmp sge i64 %done, %chunks
  br i1 %all, label %over, label %yield
yield:
  call i32 @sched_yield()
  br label %wait
over:
  call void @drop(ptr %job)
  br label %fine
fine:
  ret ptr null
}
"""


@dataclass(frozen=True, slots=True)
class Handler:
    """A loaded handler, kept alive with everything that it calls.

    Attributes:
        address: Of the function that XLA calls.
        owned: What has to live as long.
    """

    address: int
    owned: Any

    @property
    def capsule(self) -> Any:
        """The address as JAX takes it."""
        make = ctypes.pythonapi.PyCapsule_New
        make.restype = ctypes.py_object
        make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(self.address, None, None)


REPORTER = ctypes.CFUNCTYPE(None, ctypes.c_int32)
"""What a handler calls, at most once, with the code of the first state without a result."""


def processor_handler(
    device: Processor, *, many: bool, report: Callable[[int], None] | None = None
) -> Handler:
    """The handler of a kernel on the processor.

    Args:
        device: The kernel.
        many: Whether batches fill vector registers; else states are done one by one.
        report: Called with the code of the first state without a result.
    """
    engine = machine.linked(code(ANSWER.replace("TRAITS", "0") + HANDLER))
    signature, single = device.signature, device.machine
    lanes = signature.lanes if many else 1
    together = device.batch_machine if lanes > 1 else None
    sizes = np.array([size for _, size in signature.inputs], np.int64)
    states = max(-(-WORTH // max(signature.ops.total(), 1)), CHUNK)
    table = (ctypes.c_int64 * ENTRIES).from_address(engine.get_global_value_address("table"))
    table[ONE], table[MANY] = _address(single), 0 if together is None else _address(together)
    table[LANES], table[ITEMSIZE] = lanes, single.itemsize
    table[WIDTH], table[INPUTS] = math.prod(signature.shape), len(sizes)
    table[WORK] = max(single.work, 0 if together is None else together.work)
    table[STATES], table[SIZES] = -(-states // lanes) * lanes, sizes.ctypes.data
    reporter = None if report is None else REPORTER(report)
    table[REPORT] = 0 if reporter is None else ctypes.cast(reporter, ctypes.c_void_p).value or 0
    owned = (engine, device, sizes, reporter)
    return Handler(engine.get_function_address("handler"), owned)


def _address(compiled: machine.Machine) -> int:
    return ctypes.cast(compiled.run, ctypes.c_void_p).value or 0


@cache
def code(text: str) -> bytes:
    """The object file of a handler."""
    return machine.object_code(Unit(text, 1, 8, 0))
