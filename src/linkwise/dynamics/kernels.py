"""Kernels made on first use, and kept with the mechanism they belong to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra.expr import Expr
from linkwise.algebra.space import NODE_PLACE
from linkwise.codegen.formula import Formula
from linkwise.dynamics.loops import require_open
from linkwise.dynamics.momentum_quantity import AT_ROOTS, ROOT_BLOCKS
from linkwise.dynamics.open_chain_quantity import AS_BLOCKS, AS_WRITTEN, OF_TREES
from linkwise.dynamics.quantity import Frame, expression
from linkwise.errors import ModelError, ShapeError
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.pipeline import compile
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.sweeps.embedded_expression import is_about_bodies

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel

Status: TypeAlias = NDArray[np.int32]
Nodes: TypeAlias = str | Sequence[str]


def kernel(
    mech: Mechanism | Embedded, name: str, nodes: Nodes = (), *, frame: Frame = "node"
) -> Kernel:
    """The kernel behind a named quantity of a mechanism: made once, then kept with it.

    Args:
        name: "forward_dynamics", "mass_matrix" ... (`linkwise.dynamics.QUANTITIES`).
        nodes: Node or nodes it is about, for those that are about nodes.
        frame: Axes of what belongs to nodes.
    """
    return _made(mech, name, nodes if isinstance(nodes, str) else node_names(nodes), frame)


@once_per_mechanism
def named(mech: Mechanism | Embedded, name: str) -> Kernel:
    """The kernel behind a quantity that is about no nodes: `kernel`, by the shorter key."""
    return _made(mech, name, (), "node")


@once_per_mechanism
def _made(
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
            f"{name} was asked of {mech.name!r} with its loops and couplings built in: it is about "
            "single bodies. Ask the mechanism itself, embedded.mech, with v from "
            "lw.loops.full_velocity."
        )
    names = (nodes,) if isinstance(nodes, str) else nodes
    if not names and _about_nodes(name, expr):
        raise ModelError(f"the {name} of no node was asked for; name at least one.")
    for node in names:
        mech.node(node)  # raises for one that is not there
    blocks = name in AS_BLOCKS | ROOT_BLOCKS
    rows = roots(cast(Mechanism, mech)) if name in AT_ROOTS else None
    derive = name not in AS_WRITTEN
    return compile(expr, mech, nodes=names, rows=rows, blocks=blocks, derive=derive)


def written(mech: Mechanism | Embedded, formula: Formula, nodes: Nodes = ()) -> Any:
    """The kernel of a formula on a mechanism: made once, then kept with it.

    Args:
        formula: Array code on top of expressions.
        nodes: Node or nodes it is about.
    """
    return _written(mech, formula, nodes if isinstance(nodes, str) else node_names(nodes))


@once_per_mechanism
def _written(mech: Mechanism | Embedded, formula: Formula, nodes: str | tuple[str, ...]) -> Any:
    check_mechanism(mech)
    names = node_names(nodes)
    for node in names:
        mech.node(node)  # raises for one that is not there
    return compile(formula, mech, nodes=names)


@dataclass(slots=True, eq=False)
class OneState:
    """What most calls of a mechanism need: kernels of one state; None before they are made.

    Attributes:
        forward_dynamics: v̇ of q, v and τ, with loops and couplings held; None of other arrays.
        inverse_dynamics: τ of q, v and v̇.
        rank: How many rows of J_c have to be independent in states of forward dynamics.
    """

    forward_dynamics: Callable[..., Array | None] | None = None
    inverse_dynamics: Callable[..., Array | None] | None = None
    rank: int | None = None


@once_per_mechanism
def one_state(mech: Mechanism | Embedded) -> OneState:
    """Calls of a mechanism for one state, as far as they are known."""
    check_mechanism(mech)
    return OneState()


def _about_nodes(name: str, expr: Expr) -> bool:
    """Whether it has a Jacobian in it, whose axes make a difference, or poses of nodes."""
    return expr.range is NODE_PLACE or expression(name) != expression(name, frame="world")


def check_mechanism(mech: object) -> None:
    """Raise unless it is a mechanism."""
    if isinstance(mech, Mechanism | Embedded):
        return
    found = f"mech is a {type(mech).__name__}"
    if isinstance(mech, str | PurePath):
        raise ModelError(f"{found}, {str(mech)!r}; lw.load makes a mechanism of a file.")
    raise ModelError(
        f"{found}; a mechanism comes first, which lw.load, lw.Builder or lw.models makes."
    )


def node_names(nodes: Nodes) -> tuple[str, ...]:
    """Names of nodes one by one; raises for what is not a name."""
    if isinstance(nodes, str):
        return (nodes,)
    try:
        found = tuple(nodes)
    except TypeError:
        found = (nodes,)
    for name in found:
        if not isinstance(name, str):
            own = getattr(cast(object, name), "name", None)
            hint = f" The name of this one is {own!r}." if isinstance(own, str) else ""
            raise ModelError(
                f"a node is given as {type(name).__name__}; it must be the name of a node or body, "
                f"or several names.{hint}"
            )
    return cast("tuple[str, ...]", found)


def acting(forces: Mapping[str, ArrayLike] | None) -> TypeGuard[Mapping[str, ArrayLike]]:
    """Whether there are forces; raises for what is not a dictionary."""
    if forces is not None and not isinstance(cast(object, forces), Mapping):
        raise ModelError(
            f"forces is a {type(forces).__name__}; it must be a dictionary of node names and "
            "(moment, force) each, like {'hand': [0, 0, 0, 0, 0, 10]}."
        )
    return bool(forces)


def roots(mech: Mechanism) -> list[str]:
    """The bodies on the ground."""
    return [body.name for k, body in enumerate(mech.bodies) if mech.parent[k] < 0]


def pushed(
    mech: Mechanism | Embedded,
    name: str,
    arrays: Mapping[str, Any],
    forces: Mapping[str, ArrayLike],
    frame: Frame,
    options: Mapping[str, Any],
    found: Kernel | None = None,
) -> Array:
    """A quantity with forces at nodes, which are one array f of the kernel; `found` if given."""
    nodes = pushed_nodes(forces)
    given = {**arrays, "f": side_by_side(forces, nodes)}
    found = found or kernel(mech, name, nodes, frame=frame)
    try:
        return called(found, given, options)
    except ShapeError as error:
        words = str(error)
        raise ShapeError(f"forces {words[2:]}" if words.startswith("f ") else words) from None


def pushed_nodes(forces: Mapping[str, ArrayLike]) -> tuple[str, ...]:
    """Where forces act, sorted: one kernel whatever their order."""
    if not acting(forces):
        return ()
    return node_names(tuple(forces) if len(forces) == 1 else sorted(forces))


def called(found: Kernel, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Array:
    """A kernel on those of the arrays that it takes; without options, the quick way."""
    given = [arrays[name] for name, _ in found.signature.inputs]
    for value in options.values():
        if value is not None:
            return found(*given, **options)
    return found(*given)


def put(found: Array, out: Array | None) -> Array:
    """A result that was made by more than a kernel, in the array that was asked for."""
    if out is None:
        return found
    is_array = isinstance(out, np.ndarray)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not is_array or out.shape != found.shape or out.dtype != found.dtype:
        raise ShapeError(
            f"out has shape {np.shape(out)}; it must be an array of {found.dtype} {found.shape}."
        )
    out[...] = found
    return out


def side_by_side(forces: Mapping[str, ArrayLike], names: tuple[str, ...]) -> Array:
    """The forces side by side (6 k,) or (batch, 6 k)."""
    if not names:
        raise ModelError(
            "no force was given: forces is a dictionary of node names and (moment, force) each, "
            "like {'hand': [0, 0, 0, 0, 0, 10]}."
        )
    if len(names) == 1 and getattr(only := forces[names[0]], "shape", None) == (6,):
        return cast("Array", only)  # most calls: its kernel looks at the rest
    parts = [floats(forces[name], f"the force on {name!r}") for name in names]
    rows = {len(part) for part in parts if part.ndim == 2}
    for name, part in zip(names, parts, strict=True):
        if part.ndim not in (1, 2) or part.shape[-1] != 6 or len(rows) > 1:
            raise ShapeError(
                f"the force on {name!r} has shape {part.shape}; it must be (6,) or (batch, 6), "
                "moment first, with one batch for all."
            )
    if rows:
        lead = (rows.pop(),)
        parts = [np.broadcast_to(part, (*lead, 6)) for part in parts]
    return np.concatenate(parts, axis=-1)
