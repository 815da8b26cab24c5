"""From a request to machine code: from disk if it is cached, else through all stages."""

from __future__ import annotations

import contextlib
import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.codegen import stages
from linkwise.codegen.cpu import cache, machine
from linkwise.codegen.cpu.digest import file_key
from linkwise.codegen.cpu.machine import Machine
from linkwise.codegen.formula import Formula, TooLongError
from linkwise.codegen.request import Request
from linkwise.codegen.stages import Signature

if TYPE_CHECKING:
    from linkwise.codegen.cpu.ir import Unit
    from linkwise.codegen.rolled.island import IslandLoop
    from linkwise.codegen.rolled.roll import Rolled
    from linkwise.codegen.scalar.trace import Traced


def built(request: Request, lanes: int = 1) -> tuple[Signature, Machine]:
    """The signature of a kernel, and its machine code for `lanes` states at a time."""
    key = _key(request, lanes)
    filed = _filed(key)
    if filed is not None:
        return filed
    try:
        graph = stages.graph(request)
    except TooLongError:
        return _evaluated(request)
    return _built(key, signature_of(graph, request.itemsize), unit(graph, request.itemsize, lanes))


def built_piece(request: Request, piece: Traced, number: int) -> tuple[Signature, Machine]:
    """The same for a piece of a formula (`rest.py`), for one state."""
    key = _key(request, f"piece {number}")
    return _filed(key) or _built(key, stages.signature(piece), unit(piece, request.itemsize))


def _key(request: Request, what: int | str) -> str | None:
    return file_key(request, what, machine.versions()) if request.cache else None


def _filed(key: str | None) -> tuple[Signature, Machine] | None:
    filed = cache.read(key) if key else None
    if filed is not None:
        with contextlib.suppress(*cache.UNREADABLE):
            return _read(filed)
    return None


def _built(key: str | None, signature: Signature, text: Unit) -> tuple[Signature, Machine]:
    code = machine.object_code(text)
    if key:
        cache.write(key, _written(signature, text, code))
    return signature, loaded(text, code)


def signature_of(graph: Traced | Rolled | IslandLoop, itemsize: int) -> Signature:
    """The signature of a kernel of a graph on a processor."""
    columns = getattr(getattr(graph, "plan", None), "looped", None) is not None
    return stages.signature(graph, 1 if columns else machine.lanes(itemsize))


def unit(graph: Traced | Rolled | IslandLoop, itemsize: int, lanes: int = 1) -> Unit:
    """The LLVM text of a graph, with the widest vectors of this computer."""
    from linkwise.codegen.scalar.trace import Traced

    wide = machine.lanes(itemsize)
    packed = wide if lanes == 1 else 1
    if isinstance(graph, Traced):
        from linkwise.codegen.cpu.llvm import emit_graph

        return emit_graph(graph, itemsize=itemsize, lanes=lanes, packed=packed)
    from linkwise.codegen.cpu.llvm_island import emit_islands
    from linkwise.codegen.cpu.llvm_rolled import emit_rolled
    from linkwise.codegen.rolled.roll import Rolled

    if isinstance(graph, Rolled):
        return emit_rolled(graph, itemsize=itemsize, lanes=lanes, packed=wide)
    return emit_islands(graph, itemsize=itemsize, lanes=lanes, packed=packed)


def loaded(text: Unit, code: bytes) -> Machine:
    """Callable machine code."""
    size, work = text.itemsize, text.work
    return machine.load(code, lanes=text.lanes, itemsize=size, work=work, tables=text.tables)


def _evaluated(request: Request) -> tuple[Signature, Machine]:
    from linkwise.codegen.evaluated import Evaluated

    formula = request.quantity
    assert isinstance(formula, Formula)
    evaluated = Evaluated(formula, request)
    several = bool(formula.names)
    shape = (sum(map(math.prod, evaluated.parts)),) if several else evaluated.parts[0]
    signature = Signature(
        evaluated.inputs, shape, evaluated.ops, evaluated.parts if several else ()
    )
    return signature, Machine(None, None, None, 1, request.itemsize, 0, (), evaluated)


# ------------------------------------------------------------------------------------------- disk


def _written(signature: Signature, text: Unit, code: bytes) -> bytes:
    """The content of a file: facts, tables, object code."""
    facts: dict[str, Any] = {
        "inputs": signature.inputs,
        "shape": signature.shape,
        "ops": signature.ops,
        "parts": signature.parts,
        "lanes": signature.lanes,
        "machine": {"lanes": text.lanes, "itemsize": text.itemsize, "work": text.work},
        "tables": [(name, x.dtype.str, x.shape) for name, x in text.tables],
    }
    tables = (x.tobytes() for _, x in text.tables)
    return b"".join([json.dumps(facts).encode(), b"\n", *tables, code])


def _read(filed: bytes) -> tuple[Signature, Machine]:
    head, _, rest = filed.partition(b"\n")
    facts = json.loads(head)
    tables, at = list[tuple[str, Any]](), 0
    for name, kind, shape in facts["tables"]:
        count = int(np.prod(shape, dtype=np.int64))
        tables.append((name, np.frombuffer(rest, kind, count, at).reshape(shape).copy()))
        at += tables[-1][1].nbytes
    signature = Signature(
        tuple((name, size) for name, size in facts["inputs"]),
        tuple(facts["shape"]),
        Counter(facts["ops"]),
        tuple(tuple(shape) for shape in facts["parts"]),
        facts["lanes"],
    )
    return signature, machine.load(rest[at:], **facts["machine"], tables=tuple(tables))
