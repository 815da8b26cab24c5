"""Numbers of a mechanism that stay inputs of a kernel, so that variants of it share one kernel.

| name | entries | what they are |
| --- | --- | --- |
| gravity | 3 | acceleration of free fall [m/s²], world axes |
| inertia | 10 a body | m, m c (3), Jxx Jyy Jzz Jxy Jxz Jyz about the origin [kg, kg m, kg m²] |
| payload | 10 | the same, of something welded to a node, in the node's axes |
| armature | nv | diagonal of N; the expression has to contain it |
| locked | nv | 1 where a joint velocity is held, 0 where it is free |

`payload:hand` names the node; plain `payload` means the node the kernel was made for, or the only
one there is. A held velocity stays constant: D⁻¹ is zero in its direction, so nothing passes to it,
and everything that is carried is felt as rigid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.errors import ExpressionError, ModelError, unknown_name
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import SpatialInertia, trusted_inertia

NAMES = ("gravity", "inertia", "payload", "armature", "locked")
INERTIA = 10
"""Numbers of one rigid body."""


def checked(
    mech: Mechanism | Embedded, names: Sequence[str], nodes: Sequence[str]
) -> tuple[str, ...]:
    """The names of the inputs; raises for one that is unknown or has no meaning here."""
    if isinstance(names, str):
        names = (names,)
    for name in names:
        if name.split(":")[0] not in NAMES or (":" in name and not name.startswith("payload:")):
            raise unknown_name("parameter", name, NAMES, owner="a kernel")
        if name.startswith("payload"):
            node_of(mech, name, nodes)
    if isinstance(mech, Embedded) and set(names) - {"gravity"}:
        raise ExpressionError(
            f"parameters has {', '.join(names)}: where loops and couplings of {mech.name!r} are "
            "built in, only 'gravity' can be an input."
        )
    if len(set(names)) < len(names):
        raise ExpressionError(f"a parameter is named twice: {', '.join(names)}.")
    return tuple(names)


def node_of(mech: Mechanism | Embedded, name: str, nodes: Sequence[str]) -> str:
    """The node that a payload is welded to."""
    if ":" in name:
        node = name.split(":", 1)[1]
    else:
        candidates = list(nodes) or [node.name for node in mech.nodes]
        if len(candidates) != 1:
            raise ExpressionError(
                f"parameters has 'payload', but {mech.name} has {len(candidates)} nodes it could "
                f"be welded to. Name one: 'payload:NODE', with NODE one of "
                f"{', '.join(candidates[:8]) or 'its bodies'}."
            )
        node = candidates[0]
    mech.node(node)  # raises for an unknown node
    return node


def size(mech: Mechanism, name: str) -> int:
    """Numbers in one row of a parameter."""
    sizes = {
        "gravity": 3,
        "inertia": INERTIA * mech.n_bodies,
        "armature": mech.nv,
        "locked": mech.nv,
    }
    return sizes.get(name, INERTIA)


def nominal(mech: Mechanism, name: str) -> Array:
    """The value a parameter has for the mechanism as it is."""
    match name:
        case "gravity":
            return np.array(mech.gravity)
        case "inertia":
            return np.concatenate([np.zeros(0), *(numbers(m) for m in _each(mech))])
        case "armature":
            return np.array(mech.armature)
        case _:
            if name != "locked" and name.split(":")[0] != "payload":
                raise unknown_name("parameter", name, NAMES, owner="a kernel")
            return np.zeros(size(mech, name))


def _each(mech: Mechanism) -> list[SpatialInertia]:
    return [mech.inertias[k] for k in range(mech.n_bodies)]


def numbers(inertia: SpatialInertia) -> Array:
    """The ten numbers of an inertia: m, m c, Jxx Jyy Jzz Jxy Jxz Jyz."""
    J = np.asarray(inertia.J)
    if J.shape != (3, 3):
        raise ModelError(f"an inertia of shape {J.shape[:-2]} has more than ten numbers.")
    moments = [J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2]]
    return np.array([float(inertia.mass), *inertia.h, *moments])


def inertia(ten: Any) -> SpatialInertia:
    """The inertia of ten numbers, or of ten nodes of a graph."""
    xx, yy, zz, xy, xz, yz = ten[4:10]
    J = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=ten.dtype)
    mass = np.empty((), dtype=ten.dtype)
    mass[()] = ten[0]
    return trusted_inertia(mass, ten[1:4], J)
