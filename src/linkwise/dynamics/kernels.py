"""Kernels of a mechanism: made on first use, and kept with it.

Functions of accelerations and joint forces take the keyword `loops`, with one default. A mechanism
is what it describes: with `loops="closed"`, the default, its loops and couplings are held. With
`loops="open"` a function is about the tree alone, in which each hinge moves by itself. For a
mechanism without loops and couplings, and for one that has them built in (`lw.loops.embed`), both
are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NoReturn,
    TypeAlias,
    TypedDict,
    TypeGuard,
    cast,
    overload,
)

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra.expr import Expr
from linkwise.algebra.space import BODY, NODE_PLACE, PLACE
from linkwise.arguments import shown
from linkwise.codegen.formula import Formula
from linkwise.dynamics.quantity import (
    AS_BLOCKS,
    AS_WRITTEN,
    AT_ROOTS,
    OF_TREES,
    Frame,
    expression,
)
from linkwise.errors import ModelError, ShapeError
from linkwise.model import derived
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import keep_bare_call, once_per_mechanism
from linkwise.pipeline import compile
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.sweeps.embedded_expression import is_about_bodies

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel

Status: TypeAlias = NDArray[np.int32]
Nodes: TypeAlias = str | Sequence[str]
Forces: TypeAlias = Mapping[str, ArrayLike]
"""External forces by node name."""

Loops: TypeAlias = Literal["closed", "open"]
"""Whether loops and couplings are held."""

HELD: Loops = "closed"
"""The default: as the same string it is recognised without a comparison."""


class Options(TypedDict, total=False):
    """Where a function puts its result, and how it treats a batch."""

    out: Array | None
    status: Status | None
    threads: int | None


class BatchOptions(TypedDict, total=False):
    """How a function treats a batch, where its result is more than one array."""

    status: Status | None
    threads: int | None


class RecordOptions(BatchOptions, total=False):
    """The same, for a record of several arrays that can be given."""

    out: Sequence[Array] | None


# ------------------------------------------------------------------------------------- kernels


def kernel(
    mech: Mechanism | Embedded, name: str, nodes: Nodes = (), *, frame: Frame = "node"
) -> Kernel:
    """The kernel behind a named quantity of a mechanism: made once, then kept with it.

    Args:
        name: "forward_dynamics", "mass_matrix" ... (`linkwise.dynamics.QUANTITIES`).
        nodes: The node or nodes, for quantities of nodes.
        frame: Axes of velocities and forces of nodes.
    """
    return _kernel(mech, name, nodes if isinstance(nodes, str) else node_names(nodes), frame)


@once_per_mechanism
def named(mech: Mechanism | Embedded, name: str) -> Kernel:
    """The kernel behind a quantity that needs no nodes: `kernel`, by the shorter key."""
    return _kernel(mech, name, (), "node")


@once_per_mechanism
def _kernel(
    mech: Mechanism | Embedded, name: str, nodes: str | tuple[str, ...], frame: Frame
) -> Kernel:
    check_mechanism(mech)
    if name in OF_TREES:
        require_open(
            mech, "closed", f"the kernel of {name}", "lw.dynamics.tree_of(mech) is the open tree."
        )
    expr = expression(name, frame=frame)
    if isinstance(mech, Embedded) and is_about_bodies(expr):
        raise ModelError(
            f"{name} is about single bodies, but the loops and couplings of {mech.name!r} are "
            "built in. Use the mechanism itself, embedded.mech, with v from "
            "lw.loops.full_velocity."
        )
    names = (nodes,) if isinstance(nodes, str) else nodes
    if not names and _needs_nodes(name, expr):
        raise ModelError(f"{name} needs a node, and none was given; name at least one.")
    for node in names:
        mech.node(node)  # raises for an unknown name
    rows = root_rows(cast(Mechanism, mech)) if name in AT_ROOTS else None
    if rows is None and not isinstance(mech, Embedded) and mech.flexible:
        if expr.range in (BODY, PLACE) and name not in AS_BLOCKS:  # frames, without the lumps
            rows = tuple(body.name for body in mech.bodies)
    return compile(
        expr, mech, nodes=names, rows=rows, blocks=name in AS_BLOCKS, derive=name not in AS_WRITTEN
    )


def _needs_nodes(name: str, expr: Expr) -> bool:
    """Whether it contains a Jacobian, whose axes make a difference, or poses of nodes."""
    return expr.range is NODE_PLACE or expression(name) != expression(name, frame="world")


def begun(
    mech: Mechanism | Embedded, function: str, choices: Any = (), kernel: Kernel | None = None
) -> Kernel:
    """The kernel of a function, whose later calls begin with its bare call (`bare_call.py`).

    Args:
        mech: The mechanism.
        function: Name of the function.
        choices: Those of this call, on which the kernel depends.
        kernel: The kernel; default: that of the quantity with the name of the function.
    """
    kernel = named(mech, function) if kernel is None else kernel
    keep_bare_call(mech, function, choices, kernel.quick)
    return kernel


def written(mech: Mechanism | Embedded, formula: Formula, nodes: Nodes = ()) -> Any:
    """The kernel of a formula, array code on top of expressions: made once, then kept."""
    return _written(mech, formula, nodes if isinstance(nodes, str) else node_names(nodes))


@once_per_mechanism
def _written(mech: Mechanism | Embedded, formula: Formula, nodes: str | tuple[str, ...]) -> Any:
    check_mechanism(mech)
    names = node_names(nodes)
    for node in names:
        mech.node(node)  # raises for an unknown name
    return compile(formula, mech, nodes=names)


@once_per_mechanism
def one_call(mech: Mechanism | Embedded, formula: Formula) -> Callable[..., Any]:
    """The bare call of a formula for one state: an array, or a tuple; None for other arguments."""
    return written(mech, formula).device.fast or no_call


@once_per_mechanism
def one_call_of(
    mech: Mechanism, name: str, nodes: str | tuple[str, ...], frame: Frame
) -> Callable[..., Any]:
    """The same of a named quantity; no call where loops or couplings are held."""
    check_mechanism(mech)
    return no_call if is_closed(mech) else kernel(mech, name, nodes, frame=frame).quick or no_call


def no_call(*arrays: Any) -> None:
    """The bare call of a kernel that has none."""


@dataclass(slots=True, eq=False)
class UsualRank:
    """How many rows of J_c have to be independent; None before it is known."""

    rank: int | None = None


@once_per_mechanism
def usual_rank(mech: Mechanism | Embedded) -> UsualRank:
    """The usual rank of a mechanism, which a later state may correct."""
    check_mechanism(mech)
    return UsualRank()


def called(kernel: Kernel, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Array:
    """A kernel on those of the arrays that it takes."""
    given = [arrays[name] for name, _ in kernel.signature.inputs]
    for value in options.values():
        if value is not None:
            return kernel(*given, **options)
    return kernel(*given)


def put(result: Array, out: Array | None) -> Array:
    """A result that took more than one kernel, copied to `out` if given."""
    if out is None:
        return result
    is_array = isinstance(out, np.ndarray)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not is_array or out.shape != result.shape or out.dtype != result.dtype:
        raise ShapeError(
            f"out has shape {np.shape(out)}; it must be an array of {result.dtype} {result.shape}."
        )
    out[...] = result
    return out


def recorded(
    compute: Callable[[dict[str, Any]], dict[str, Any]], options: RecordOptions
) -> dict[str, Any]:
    """Several results by name, in the arrays of `out` if it is given.

    Args:
        compute: The results, given `status`, `threads` and perhaps one array for all of them.
        options: Those of the caller.
    """
    out = options.get("out")
    rest: dict[str, Any] = {name: x for name, x in options.items() if name != "out"}
    if out is None:
        return compute(rest)
    record = list(out) if isinstance(cast(object, out), tuple | list) else []
    flat = _flat(record)
    parts = compute(rest if flat is None else {**rest, "out": flat})
    if len(record) != len(parts):
        raise ShapeError(
            f"out is {shown(out)}; it must be a record of {len(parts)} arrays, {', '.join(parts)}, "
            "such as an earlier result."
        )
    for place, (name, part) in zip(record, parts.items(), strict=True):
        if getattr(place, "shape", None) != part.shape or place.dtype != part.dtype:
            raise ShapeError(
                f"{name} of out has shape {np.shape(place)}; it must be an array of {part.dtype} "
                f"{tuple(part.shape)}."
            )
    for place, part in zip(record, parts.values(), strict=True):
        if flat is None or part.base is not flat:
            place[...] = part
    return dict(zip(parts, record, strict=True))


def _flat(record: list[Any]) -> Array | None:
    """The one array that all of them are parts of, as those of results are; None otherwise."""
    base: Any = getattr(record[0], "base", None) if record else None
    if type(base) is not np.ndarray or not base.flags.c_contiguous or not base.ndim:
        return None
    lead, end = len(base.shape) - 1, 0
    for x in record:
        size = math.prod(x.shape[lead:])
        part: Any = base[..., end : end + size]
        if x.base is not base or x.shape[:lead] != base.shape[:-1] or part.shape[-1] < size:
            return None
        part = part.reshape(x.shape)
        if (part.strides, part.ctypes.data) != (x.strides, x.ctypes.data):
            return None
        end += size
    return base if end == base.shape[-1] else None


# --------------------------------------------------------------------- mechanisms and their nodes


def check_mechanism(mech: object) -> None:
    """Raise unless it is a mechanism."""
    if isinstance(mech, Mechanism | Embedded):
        return
    kind = f"mech is a {type(mech).__name__}"
    if isinstance(mech, str | PurePath):
        raise ModelError(f"{kind}, {str(mech)!r}; lw.load makes a mechanism of a file.")
    raise ModelError(
        f"{kind}; a mechanism comes first, which lw.load, lw.Builder or lw.models makes."
    )


def node_names(nodes: Nodes) -> tuple[str, ...]:
    """Names of nodes as a tuple; raises for what is not a name."""
    if isinstance(nodes, str):
        return (nodes,)
    try:
        names = tuple(nodes)
    except TypeError:
        names = (nodes,)
    for name in names:
        if not isinstance(name, str):
            actual = getattr(cast(object, name), "name", None)
            hint = f" The name of this one is {actual!r}." if isinstance(actual, str) else ""
            raise ModelError(
                f"a node is given as {type(name).__name__}; it must be the name of a node or body, "
                f"or several names.{hint}"
            )
    return cast("tuple[str, ...]", names)


def root_rows(mech: Mechanism) -> tuple[str | int, ...]:
    """The rows of the bodies on the ground in the space BODY, with those of their lumps."""
    rows, start = list[str | int](), 0
    for k, body in enumerate(mech.bodies):
        end = start + 6 * (1 + len(body.lumps))
        if mech.parent[k] < 0:
            rows += range(start, end) if body.lumps else [body.name]
        start = end
    return tuple(rows)


# --------------------------------------------------------------------------------------- forces


def acting(forces: Forces | None) -> TypeGuard[Forces]:
    """Whether there are forces; raises for what is not a dictionary."""
    if forces is not None and not isinstance(cast(object, forces), Mapping):
        raise ModelError(
            f"forces is a {type(forces).__name__}; it must be a dictionary of node names and "
            "(moment, force) each, like {'hand': [0, 0, 0, 0, 0, 10]}."
        )
    return bool(forces)


def pushed(
    mech: Mechanism | Embedded,
    name: str,
    arrays: Mapping[str, Any],
    forces: Forces,
    frame: Frame,
    options: Mapping[str, Any],
    with_forces: Kernel | None = None,
) -> Array:
    """A quantity with forces at nodes, which are one array f of its kernel, or of the given one."""
    nodes = pushed_nodes(forces)
    given = {**arrays, "f": side_by_side(forces, nodes)}
    try:
        return called(with_forces or kernel(mech, name, nodes, frame=frame), given, options)
    except ShapeError as error:
        words = str(error)
        raise ShapeError(f"forces {words[2:]}" if words.startswith("f ") else words) from None


def pushed_nodes(forces: Forces) -> tuple[str, ...]:
    """The nodes that forces act on, sorted: one kernel whatever their order."""
    if not acting(forces):
        return ()
    return node_names(tuple(forces) if len(forces) == 1 else sorted(forces))


def side_by_side(forces: Forces, names: tuple[str, ...], before: int = 0) -> Array:
    """The forces side by side (6 k,) or (batch, 6 k), after those of `before` nodes without any."""
    if not names:
        raise ModelError(
            "no force was given: forces is a dictionary of node names and (moment, force) each, "
            "like {'hand': [0, 0, 0, 0, 0, 10]}."
        )
    single = len(names) == 1 and not before
    if single and getattr(only := forces[names[0]], "shape", None) == (6,):
        return cast("Array", only)  # most calls: its kernel checks the rest
    parts = [floats(forces[name], f"the force on {name!r}") for name in names]
    rows = {len(part) for part in parts if part.ndim == 2}
    for name, part in zip(names, parts, strict=True):
        if part.ndim not in (1, 2) or part.shape[-1] != 6 or len(rows) > 1:
            raise ShapeError(
                f"the force on {name!r} has shape {part.shape}; it must be (6,) or (batch, 6), "
                "moment first, with one batch for all."
            )
    lead = (rows.pop(),) if rows else ()
    parts = [np.broadcast_to(part, (*lead, 6)) for part in parts]
    return np.concatenate([np.zeros((*lead, 6 * before)), *parts], axis=-1)


# ---------------------------------------------------------------------------- loops, held or open


def is_closed(mech: Mechanism | Embedded, loops: Loops = "closed") -> TypeGuard[Mechanism]:
    """Whether there are loops or couplings to hold.

    Raises:
        ModelError: `loops` is neither "closed" nor "open".
    """
    check_loops(loops)
    if loops == "open" or isinstance(mech, Embedded):
        return False
    return bool(mech.loops or mech.couplings)


def check_loops(loops: object) -> None:
    """Raise unless it is "closed" or "open"."""
    if not isinstance(loops, str) or loops not in ("closed", "open"):
        raise ModelError(
            f"loops is {loops!r}; it must be 'closed', so that loops and couplings are held, or "
            "'open', so that each hinge moves by itself."
        )


@overload
def tree_of(mech: Mechanism) -> Mechanism: ...
@overload
def tree_of(mech: Mechanism | Embedded) -> Mechanism | Embedded: ...
def tree_of(mech: Mechanism | Embedded) -> Mechanism | Embedded:
    """The mechanism without its loops and couplings; itself where it has none. Kept with it."""
    if isinstance(mech, Embedded) or not (mech.loops or mech.couplings):
        return mech
    return _tree(mech)


@once_per_mechanism
def _tree(mech: Mechanism) -> Mechanism:
    return derived.replaced(mech, loops=(), couplings=())


def require_open(
    mech: Mechanism | Embedded, loops: Loops, function: str, instead: str = ""
) -> None:
    """Refuse loops and couplings in a function that cannot hold them.

    Args:
        mech: The mechanism.
        loops: The caller's argument.
        function: Name of the function.
        instead: What holds them, as a sentence.
    """
    check_mechanism(mech)
    if is_closed(mech, loops):
        refuse(mech, function, instead)


def require_rigid(mech: Mechanism | Embedded, function: str) -> None:
    """Refuse flexible bodies in a function that knows rigid ones only."""
    tree = mech.mech if isinstance(mech, Embedded) else mech
    if tree.flexible:
        name = tree.bodies[tree.flexible[0]].name
        raise ModelError(
            f"{function} was called for {tree.name!r}, whose body {name!r} is flexible or has a "
            "geared rotor; it is for rigid bodies. mech.lock holds the modes of a flexible body."
        )


def refuse(mech: Mechanism, function: str, instead: str = "") -> NoReturn:
    """Raise, since a function cannot hold the loops and couplings that the mechanism has."""
    names = [x.name for x in (*mech.loops, *mech.couplings)]
    shown = ", ".join(map(repr, names[:4])) + (", ..." if len(names) > 4 else "")
    hint = f" {instead}" if instead else ""
    raise ModelError(
        f"{function} was called for {mech.name!r}, whose loops and couplings ({shown}) it cannot "
        f"hold; without them the result would be that of another mechanism.{hint} "
        'loops="open" lets each hinge move by itself.'
    )
