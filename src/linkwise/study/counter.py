"""Random numbers and permutations from counters: a number depends on its case, nothing else.

    u = (⌊r / 2¹¹⌋ + ½) / 2⁵³,   r = word `case` of Philox 4x64 with the key (seed, stream)

u lies strictly between 0 and 1. Any range of cases can be drawn alone, in any order and on any
machine, with the same bits.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from linkwise.spatial.array import Array

WORDS = 4
"""Words of one counter of Philox 4x64."""

ROUNDS = 6
"""Of the permutation: four make a random function a random permutation; two more for mixing."""


def key(seed: int, stream: str) -> NDArray[np.uint64]:
    """The key of a stream: two words, from the seed and a name."""
    hashed = hashlib.blake2b(stream.encode(), digest_size=8).digest()
    low = (seed ^ int.from_bytes(hashed, "little")) & (2**64 - 1)
    return np.array([low, seed >> 64], np.uint64)


def words(seed: int, stream: str, begin: int, end: int) -> NDArray[np.uint64]:
    """Words begin..end of a stream (n,)."""
    start = begin // WORDS
    philox = np.random.Philox(key=key(seed, stream), counter=[start, 0, 0, 0])
    # The generator steps its counter before it draws: word 0 is that of counter 1.
    return philox.random_raw(end - start * WORDS)[begin - start * WORDS :]


def uniform(seed: int, stream: str, begin: int, end: int) -> Array:
    """Numbers between 0 and 1 of cases begin..end (n,), both bounds excluded."""
    return fraction(words(seed, stream, begin, end))


def fraction(words: NDArray[np.uint64]) -> Array:
    """Words as numbers between 0 and 1, both excluded."""
    return ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def permuted(seed: int, stream: str, places: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Where a random permutation of 0..count takes places (n,), without a table of it.

    A Feistel network permutes the smallest square of a power of two that holds `count`; places
    beyond `count` are permuted again until they are within it.
    """
    half = np.uint64(max(1, (max(count - 1, 1).bit_length() + 1) // 2))
    mask = np.uint64((1 << int(half)) - 1)
    keys = words(seed, f"{stream}:permutation", 0, ROUNDS)
    result = places.astype(np.uint64)
    open_ = np.ones(len(result), bool)
    while open_.any():
        left, right = result[open_] >> half, result[open_] & mask
        for each in keys:
            left, right = right, left ^ (_mixed(right ^ each) & mask)
        result[open_] = (left << half) | right
        open_ = result >= np.uint64(count)
    return result.astype(np.int64)


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Words with all bits mixed: the finalizer of SplitMix64 (Steele, Lea, Flood 2014)."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))
