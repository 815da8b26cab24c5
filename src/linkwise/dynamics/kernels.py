"""Kernels made on first use, and kept with the mechanism they belong to."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.momentum_quantity import AT_ROOTS, ROOT_BLOCKS
from linkwise.dynamics.open_chain_quantity import AS_BLOCKS, AS_WRITTEN
from linkwise.dynamics.quantity import Frame, expression
from linkwise.errors import ModelError, ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.pipeline import compile
from linkwise.spatial.array import Array, ArrayLike, floats

if TYPE_CHECKING:
    from linkwise.codegen.cpu.kernel import Kernel

Status: TypeAlias = NDArray[np.int32]
Nodes: TypeAlias = str | Sequence[str]

_MAKING = threading.Lock()
"""Held while a kernel is made: threads that want the same one wait for it."""


def kernel(mech: Mechanism, name: str, nodes: Nodes = (), *, frame: Frame = "node") -> Kernel:
    """The kernel behind a named quantity of a mechanism: made once, then kept with it.

    Args:
        mech: The mechanism.
        name: "forward_dynamics", "mass_matrix" ... (`linkwise.dynamics.QUANTITIES`).
        nodes: Node or nodes it is about, for those that are about nodes.
        frame: Axes of what belongs to nodes.
    """
    if not isinstance(nodes, str):
        nodes = tuple(nodes)
    return mech.kept.get((name, nodes, frame)) or _made(mech, name, nodes, frame)


def _made(mech: Mechanism, name: str, nodes: str | tuple[str, ...], frame: Frame) -> Kernel:
    expr = expression(name, armature=bool(mech.armature.any()), frame=frame)
    names = (nodes,) if isinstance(nodes, str) else nodes
    for node in names:
        mech.node(node)  # raises for one that is not there
    with _MAKING:
        found = mech.kept.get((name, nodes, frame))
        if found is None:
            stands, blocks = name in AS_WRITTEN, name in AS_BLOCKS | ROOT_BLOCKS
            rows = roots(mech) if name in AT_ROOTS else None
            found = compile(expr, mech, nodes=names, rows=rows, blocks=blocks, derive=not stands)
            mech.kept[name, nodes, frame] = found
            if not names:
                mech.kept[name] = found
                mech.kept[f"quick {name}"] = found.quick
    return found


def roots(mech: Mechanism) -> list[str]:
    """The bodies on the ground."""
    return [body.name for k, body in enumerate(mech.bodies) if mech.parent[k] < 0]


def pushed(
    mech: Mechanism,
    name: str,
    arrays: Mapping[str, Any],
    forces: Mapping[str, ArrayLike],
    frame: Frame,
    options: Mapping[str, Any],
) -> Array:
    """A quantity with forces at nodes, which are one array f of the kernel."""
    nodes = tuple(sorted(forces))  # one kernel whatever the order
    given = {**arrays, "f": side_by_side(forces, nodes)}
    return called(kernel(mech, name, nodes, frame=frame), given, options)


def called(found: Kernel, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Array:
    """A kernel on those of the arrays that it takes; without options, the quick way."""
    asked = {key: value for key, value in options.items() if value is not None}
    return found(*[arrays[name] for name in found.arguments], **asked)


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
    parts = [floats(forces[name], f"the force on {name!r}") for name in names]
    if len(parts) == 1 and parts[0].shape == (6,):
        return parts[0]
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
