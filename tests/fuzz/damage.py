"""Ways in which a file is damaged, whatever its format."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeAlias

Damage: TypeAlias = Callable[[random.Random, bytes], bytes]


def flip_bits(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def other_bytes(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    at = rng.randrange(len(out))
    for i in range(at, min(len(out), at + rng.choice([1, 4, 40]))):
        out[i] = rng.choice([0, 255, rng.randrange(256)])
    return bytes(out)


def truncate(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data))]


def cut_out(rng: random.Random, data: bytes) -> bytes:
    a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[:a] + data[b:]


def exchange_blocks(rng: random.Random, data: bytes) -> bytes:
    """Two blocks change places: each is whole, the order is not."""
    size = rng.choice([1, 8, 64, 512])
    if len(data) < 2 * size:
        return data
    a, b = sorted(rng.sample(range(len(data) // size), 2))
    one, two = data[a * size : (a + 1) * size], data[b * size : (b + 1) * size]
    return data[: a * size] + two + data[(a + 1) * size : b * size] + one + data[(b + 1) * size :]


def exchange_lines(rng: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    if len(lines) < 2:
        return exchange_blocks(rng, data)
    a, b = rng.sample(range(len(lines)), 2)
    lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


def zero_block(rng: random.Random, data: bytes) -> bytes:
    at, size = rng.randrange(len(data)), rng.choice([8, 64, 512])
    return data[:at] + bytes(len(data[at : at + size])) + data[at + size :]


def repeat_block(rng: random.Random, data: bytes) -> bytes:
    a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[:b] + data[a:b] * rng.choice([1, 2]) + data[b:]


def append(rng: random.Random, data: bytes) -> bytes:
    return data + rng.choice([b"\n", b"\0" * 64, data[-100:], data])


DAMAGES: tuple[Damage, ...] = (
    *(flip_bits,) * 4,
    *(other_bytes, truncate, cut_out, exchange_blocks, exchange_lines),
    *(zero_block, repeat_block, append),
)


def damaged(rng: random.Random, data: bytes) -> bytes:
    """The same bytes with one damage, sometimes with two or three."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if data:
            data = rng.choice(DAMAGES)(rng, data)
    return data
