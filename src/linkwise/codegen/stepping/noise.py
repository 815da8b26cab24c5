"""Random numbers from counters: Philox 4x32-10, the same on every target to the last bit.

A number depends on a seed and on (motion, draw, channel, entry), not on how motions are spread over
lanes, cores or GPUs:

    counter = (motion, draw, channel, entry), key = seed            32-bit words
    ten rounds of   c ← (hi(M₁ c₂) ^ c₁ ^ k₀, lo(M₁ c₂), hi(M₀ c₀) ^ c₃ ^ k₁, lo(M₀ c₀)),  k ← k + W

The eight halves of the four words are added up. Their sum, an integer, less its mean and over its
deviation is the number z: of mean 0 and deviation 1, nearly normal, with |z| < 4.9.

Source: Salmon, Moraes, Dror, Shaw, Parallel Random Numbers: As Easy as 1, 2, 3 (2011).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from linkwise.codegen.cpu import ir
from linkwise.codegen.cpu.emit import Emitter
from linkwise.codegen.cpu.ir import INT, INT32
from linkwise.codegen.cpu.llvm_visit import iota, splat_int
from linkwise.codegen.stepping.chance import Chance
from linkwise.spatial.array import Array

M = (0xD2511F53, 0xCD9E8D57)
W = (0x9E3779B9, 0xBB67AE85)
ROUNDS, MASK = 10, 0xFFFFFFFF
MEAN = 4 * 0xFFFF
SCALE = 1.0 / math.sqrt(8.0 * (65536.0**2 - 1.0) / 12.0)


def words(counter: Any, seed: int) -> Any:
    """The four words (..., 4) of counters (..., 4), in NumPy."""
    c = [np.asarray(counter)[..., i].astype(np.uint64) for i in range(4)]
    key, mask = [seed & MASK, (seed >> 32) & MASK], np.uint64(MASK)
    for _ in range(ROUNDS):
        one, two = (np.uint64(m) * x for m, x in zip(M, (c[0], c[2]), strict=True))
        high = [(x >> np.uint64(32)) for x in (two, one)]
        c = [high[0] ^ c[1] ^ np.uint64(key[0]), two & mask,
             high[1] ^ c[3] ^ np.uint64(key[1]), one & mask]  # fmt: skip
        key = [(k + w) & MASK for k, w in zip(key, W, strict=True)]
    return np.stack(c, axis=-1).astype(np.uint32)


def drawn(chance: Chance, seed: int, motions: int, steps: int) -> Array:
    """The numbers z (motions, steps, size) of a channel, in NumPy: what kernels compute."""
    n = np.arange(steps)
    axes = np.meshgrid(np.arange(motions), n // chance.period, np.arange(chance.size),
                       indexing="ij")  # fmt: skip
    counter = np.stack([axes[0], axes[1], np.full(axes[0].shape, chance.channel), axes[2]], axis=-1)
    each = words(counter, seed).astype(np.int64)
    z = SCALE * (((each & 0xFFFF) + (each >> 16)).sum(axis=-1) - MEAN)
    return z * (n % chance.period < chance.active)[:, None]


# ------------------------------------------------------------------------------------------ LLVM


def emit_function(emit: Emitter) -> ir.Function:
    """z(motion, draw, channel, entry, seed) of all lanes, whose motions follow each other."""
    lanes = emit.lanes
    wide = INT if lanes == 1 else ir.vector(INT, lanes)
    kind = ir.FunctionType(emit.type, [INT] * 5)
    name = emit.module.unique_name(f"noise_{lanes}")
    function = ir.Function(emit.module, kind, name, internal=True, noinline=True)
    build = ir.IRBuilder(function.append_basic_block("entry"))

    def each(x: Any) -> Any:
        return x if lanes == 1 else splat_int(build, x, wide)

    def number(x: int) -> Any:
        return ir.Constant(wide, x)

    motion, draw, channel, entry, seed = function.args
    first = each(motion) if lanes == 1 else build.add(each(motion), iota(wide))
    c = [build.and_(x, number(MASK)) for x in (first, each(draw), each(channel), each(entry))]
    key = [build.and_(each(seed), number(MASK)), build.binary("lshr", each(seed), number(32))]
    for _ in range(ROUNDS):
        one, two = build.mul(c[0], number(M[0])), build.mul(c[2], number(M[1]))
        high = [build.binary("lshr", x, number(32)) for x in (two, one)]
        mixed = [build.binary("xor", high[i], build.binary("xor", c[1 + 2 * i], key[i]))
                 for i in (0, 1)]  # fmt: skip
        low = [build.and_(x, number(MASK)) for x in (two, one)]
        c = [mixed[0], low[0], mixed[1], low[1]]
        key = [build.and_(build.add(k, number(w)), number(MASK))
               for k, w in zip(key, W, strict=True)]  # fmt: skip
    total = number(-MEAN)
    for x in c:
        total = build.add(total, build.and_(x, number(0xFFFF)))
        total = build.add(total, build.binary("lshr", x, number(16)))
    short = INT32 if lanes == 1 else ir.vector(INT32, lanes)
    value = build.sitofp(build.convert("trunc", total, short), emit.type)
    build.ret(build.fmul(value, emit.constant(SCALE)))
    return function


# ------------------------------------------------------------------------------------------ CUDA


def cuda_function() -> Iterator[str]:
    """The text of the same function."""
    yield "/* Philox 4x32-10: a random number of mean 0 and deviation 1 */"
    yield "__device__ __noinline__ T"
    yield "noise(unsigned a, unsigned b, unsigned c, unsigned d, i64 seed)"
    yield "{"
    yield "    unsigned k = (unsigned)seed, l = (unsigned)((unsigned long long)seed >> 32);"
    yield "#pragma unroll"
    yield f"    for (int r = 0; r < {ROUNDS}; ++r) {{"
    yield f"        const unsigned long long one = {M[0]}ull * a, two = {M[1]}ull * c;"
    yield "        a = (unsigned)(two >> 32) ^ b ^ k; b = (unsigned)two;"
    yield "        c = (unsigned)(one >> 32) ^ d ^ l; d = (unsigned)one;"
    yield f"        k += {W[0]}u; l += {W[1]}u;"
    yield "    }"
    sums = " + ".join(f"(int)({x} & 65535u) + (int)({x} >> 16)" for x in "abcd")
    yield f"    const int total = {sums} - {MEAN};"
    yield f"    return (T)total * (T){SCALE!r};"
    yield "}\n"


def cuda_lines(chance: Chance, member: str) -> Iterator[str]:
    """The register of a channel before step i of motion me."""
    yield f"{{ const unsigned draw = (unsigned)((i + past) / {chance.period});"
    yield f"  const bool on = (i + past) % {chance.period} < {chance.active};"
    for j in range(chance.size):
        call = f"noise((unsigned)(me + first), draw, {chance.channel}u, {j}u, seed)"
        yield f"  m.{member}[{j}] = on ? {call} : (T)0;"
    yield "}"
