"""A fingerprint of expressions and mechanisms: equal content, equal fingerprint, in any process."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra.expr import Expr
from linkwise.algebra.space import Space
from linkwise.model.body import Body, Node
from linkwise.model.mechanism import Mechanism

APART = {"cli", "tour", "viewer", "plot", "ledger", "io", "models", "convert"}
"""Folders whose code does not affect kernels: they call some, or make mechanisms, which count."""

LOADED = time.time_ns()
"""The latest time at which the code of this process was read."""

BOOKKEEPING = {"__weakref__", "_order", "_star", "depth", "domain", "range", "size", "ascii", "tex"}

SHOWN = {"geometry", "load_report"}
"""Fields of mechanisms, bodies and nodes that no kernel depends on; contacts are given apart."""


class UnknownContentError(TypeError):
    """Something whose content is not known, such as a function."""


def digest(*things: Any) -> str:
    """The fingerprint of some things, 64 hexadecimal digits.

    Raises:
        UnknownContentError: They contain something that has no content to compare, like the
            functions of a custom hinge, or a hinge whose class is not one of Linkwise.
    """
    memo: dict[int, tuple[Any, bytes]] = {}
    return hashlib.sha256(b"".join(_of(thing, memo) for thing in things)).hexdigest()


def file_key(*things: Any) -> str | None:
    """The key of a file that this code makes from some things; None where that is not known."""
    try:
        return digest(*things, package())
    except UnknownContentError:
        return None


def _of(thing: Any, memo: dict[int, tuple[Any, bytes]]) -> bytes:
    if thing is None or isinstance(thing, bool | int | float | str | bytes):
        return f"{type(thing).__name__}:{thing!r};".encode()
    known = memo.get(id(thing))
    if known is None:
        parts = b"".join(_parts(thing, memo))
        name = f"{type(thing).__module__}.{type(thing).__qualname__}"
        known = thing, hashlib.sha256(name.encode() + parts).digest()
        memo[id(thing)] = known  # with the thing: an id belongs to it only while it lives
    return known[1]


def _parts(thing: Any, memo: dict[int, tuple[Any, bytes]]) -> Iterator[bytes]:
    if isinstance(thing, np.ndarray | np.generic):
        array: NDArray[Any] = np.asarray(cast(Any, thing))
        if array.dtype.hasobject:
            raise UnknownContentError("an array of objects")
        yield f"{array.dtype.str}{array.shape}".encode()
        yield np.ascontiguousarray(array).tobytes()
    elif isinstance(thing, Space):
        yield thing.name.encode()
    elif isinstance(thing, Expr):
        yield from (_of(x, memo) for x in (thing.range, thing.domain))
        names = [n for kind in type(thing).__mro__ for n in getattr(kind, "__slots__", ())]
        yield from (_of(getattr(thing, n), memo) for n in names if n not in BOOKKEEPING)
    elif isinstance(thing, FunctionType) and thing.__module__.split(".")[0] == "linkwise":
        if thing.__closure__ or "<" in thing.__qualname__:
            raise UnknownContentError(f"{thing.__qualname__} depends on where it was made")
        yield f"{thing.__module__}.{thing.__qualname__}".encode()  # its text is the package's
    elif isinstance(thing, tuple | list):
        items: list[Any] = list(thing)  # type: ignore[arg-type]
        yield f"{len(items)}".encode()
        yield from (_of(x, memo) for x in items)
    elif is_dataclass(thing):
        if type(thing).__module__.split(".")[0] != "linkwise":
            raise UnknownContentError(f"{type(thing).__name__} has methods that are not known here")
        shown = SHOWN if isinstance(thing, Mechanism | Body | Node) else ()
        for part in fields(thing):
            if part.name not in shown:
                yield part.name.encode()
                yield _of(getattr(thing, part.name), memo)
    else:
        raise UnknownContentError(f"{type(thing).__name__} has no content to compare")


@cache
def package(root: Path = Path(__file__).parents[2]) -> str:
    """The fingerprint of the code that makes kernels: other code, other kernels.

    Of contents, so that neither a copy with new dates nor an edit with old ones is mistaken.

    Raises:
        UnknownContentError: A file is newer than this process: which text its code was made from
            is not known.
    """
    hashed = hashlib.sha256()
    for file in sources(root):
        hashed.update(f"{os.path.relpath(file, root)}:{content(file)};".encode())
    return hashed.hexdigest()


@cache
def content(file: str) -> str:
    """The fingerprint of a file of code."""
    with open(file, "rb") as stream:
        text = stream.read()
        changed = os.fstat(stream.fileno()).st_mtime_ns
    if changed > LOADED:
        raise UnknownContentError(f"{file} was changed after it was loaded")
    return hashlib.sha256(text).hexdigest()


def sources(root: Path) -> list[str]:
    """The files whose code can have a part in a kernel."""
    files = list[str]()
    for folder, inner, names in os.walk(root):
        if folder == str(root):
            inner[:] = [name for name in inner if name not in APART]
        files += [os.path.join(folder, name) for name in names if name.endswith(".py")]
    return sorted(files)
