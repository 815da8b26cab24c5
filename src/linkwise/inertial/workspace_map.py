"""Maps of effective mass: over a slice of the workspace, or over joints.

Where the tip is placed, joints come from inverse kinematics that spreads over the grid, from where
the mechanism stands (`spreading.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import count
from linkwise.dynamics.kernels import check_mechanism
from linkwise.dynamics.kinematics import forward_kinematics
from linkwise.errors import ModelError, ShapeError
from linkwise.inertial.effective_mass import effective_mass, effective_rotational_inertia
from linkwise.inertial.properties import inertial_properties
from linkwise.inertial.response import unit_directions
from linkwise.inertial.shape import What
from linkwise.inertial.spreading import Front, Progress
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats

Measure: TypeAlias = Literal["lightest", "heaviest", "isotropy"]
MEASURES = ("lightest", "heaviest", "isotropy")
Masked: TypeAlias = "np.ma.MaskedArray[Any, np.dtype[np.float64]]"


@dataclass(frozen=True, slots=True, eq=False)
class InertialMap:
    """Effective masses over a grid, of joints or of positions.

    Attributes:
        node: Name of the node.
        what: "mass" [kg] or "rotation" [kg m²].
        direction: Unit vector (3,) in world axes that the values are along, or the word for what
            they are: "lightest", "heaviest", "isotropy".
        axes: What the axes of the grid are: names of coordinates, or x, y, z.
        grid: The numbers along each axis [m or rad].
        kind: "joints" or "positions".
        values: The map, an entry for each point of the grid. Masked where the node does not get;
            infinite where the direction is blocked.
        q: Joint positions at each point (..., nq); where the node does not get, the nearest that
            the search met, or where it began.
        positions: Where the node then is (..., 3) [m].
        reached: Where there is a value (...,).
        units: Of the numbers along each axis: "m" or "rad".
    """

    node: str
    what: What
    direction: Array | Measure
    axes: tuple[str, ...]
    grid: tuple[Array, ...]
    kind: Literal["joints", "positions"]
    values: Masked
    q: Array
    positions: Array
    reached: NDArray[np.bool_]
    units: tuple[str, ...]

    @property
    def unit(self) -> str:
        """Of the values; nothing for isotropy."""
        if isinstance(self.direction, str) and self.direction == "isotropy":
            return ""
        return "kg" if self.what == "mass" else "kg m²"

    @property
    def title(self) -> str:
        """What is shown, in words."""
        words = "effective mass" if self.what == "mass" else "effective rotational inertia"
        if isinstance(self.direction, str):
            return (
                f"{self.direction} of the {words}"
                if not self.unit
                else (f"{self.direction} {words}")
            )
        along = "along" if self.what == "mass" else "about"
        return f"{words} {along} ({', '.join(f'{x:.3g}' for x in self.direction)})"

    def __str__(self) -> str:
        size = " × ".join(str(len(x)) for x in self.grid)
        told = f"{self.title} at {self.node!r} over {' and '.join(self.axes)}: {size} points"
        told += f", {int(self.reached.sum())} reached" if not self.reached.all() else ""
        found = np.asarray(self.values[self.reached])
        if not found.size:
            return told
        finite = found[np.isfinite(found)]
        blocked = found.size - finite.size
        if finite.size:
            told += f", {finite.min():.4g} to {finite.max():.4g} {self.unit}".rstrip()
        return f"{told}, blocked in {blocked}" if blocked else told


def inertial_map(
    mech: Mechanism,
    q: ArrayLike | None,
    node: str,
    *,
    joints: Mapping[str, ArrayLike] | None = None,
    positions: Mapping[str, ArrayLike] | None = None,
    direction: ArrayLike | Measure = "heaviest",
    what: What = "mass",
    orientation: ArrayLike | None = None,
    restarts: int = 4,
    seed: int = 0,
    progress: Progress | None = None,
) -> InertialMap:
    """Effective mass of a node over joints, or over a slice of its workspace.

    Expression:
        1 / m_u = u* Λ_v⁻¹ u   at every point, `lw.inertial.effective_mass`; or the least and
        largest of all directions, or least over largest, `lw.inertial.inertial_properties`.
    Source: 003 (30), (31).

    Args:
        mech: The mechanism, without loops; couplings are obeyed.
        q: Joint positions (nq,): of the joints that are not swept, and where the search begins for
            positions; None for neutral.
        node: Name of a node or body.
        joints: Coordinates to sweep, each with its numbers [m or rad]:
            `{"pin_2": np.linspace(-2, 2, 61), "pin_3": …}`.
        positions: Coordinates of the node in the world, each with its numbers, or with one number
            for the plane of a slice: `{"x": np.linspace(-1, 1, 61), "z": …, "y": 0.0}` [m]. Give
            either joints or positions. The joints come from `lw.inverse_kinematics`.
        direction: u (3,) in world axes, or "lightest", "heaviest", or "isotropy" of all directions.
        what: "mass", or "rotation" for rotational inertia about the direction.
        orientation: Of the node, where positions are given: rotation matrix (3, 3) or quaternion
            (4,). By default it is free.
        restarts: How often the search begins anew for points that were not reached from their
            neighbours.
        seed: For where it begins anew.
        progress: Called with the number of points done and of all; without it, a search of more
            than 10 s tells on a terminal.

    Returns:
        An `InertialMap`; its `values` are masked where the node does not get.

    Raises:
        ModelError: Neither or both of joints and positions, a mechanism with loops.
        UnknownNameError: A node or coordinate that the mechanism does not have.
        ShapeError: Numbers of an axis that are not in a row.
    """
    check_mechanism(mech)
    if not isinstance(mech, Mechanism) or mech.loops:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(
            f"an inertial map of {mech.name!r} was asked for, which has loops: the joints of a "
            "grid would not close them. Close each state with lw.loops.assemble, and use "
            "lw.inertial.effective_mass."
        )
    if not isinstance(node, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(
            f"node is a {type(node).__name__}; it must be the name of one node or body. The order "
            "is inertial_map(mech, q, node, ...), with q=None for neutral."
        )
    mech.node(node)
    if (joints is None) == (positions is None):
        raise ModelError(
            "an inertial map is over joints or over positions; give one of the two, like "
            "joints={'pin_2': np.linspace(-2, 2, 61)} or positions={'x': …, 'y': …, 'z': 0.0}."
        )
    along: Array | Measure = _direction(direction)
    start = mech.neutral() if q is None else mech.check_q(q)
    if start.shape != (mech.nq,):
        raise ShapeError(f"q has shape {start.shape}; it must be one state, ({mech.nq},).")
    if joints is not None:
        names, grid, state = _swept(mech, start, joints)
        reached = np.ones(state.shape[:-1], dtype=np.bool_)
    else:
        assert positions is not None
        names, grid, points = _slice(positions)
        front = Front(mech, node, points, orientation, progress)
        state, reached = front.spread(start, count(restarts, "restarts"), count(seed, "seed"))
    flat = state.reshape(-1, mech.nq)
    found = np.zeros(reached.shape)
    found[reached] = _values(mech, flat[reached.ravel()], node, along, what)
    values = np.ma.MaskedArray(found, mask=~reached)
    where = forward_kinematics(mech, flat, node).p.reshape(*reached.shape, 3)
    kind: Literal["joints", "positions"] = "joints" if joints is not None else "positions"
    units = _units(mech, names) if joints is not None else ("m",) * len(names)
    return InertialMap(node, what, along, names, grid, kind, values, state, where, reached, units)


def _direction(direction: ArrayLike | Measure) -> Array | Measure:
    if isinstance(direction, str):
        if direction in MEASURES:
            return direction
        raise ModelError(
            f"direction is {direction!r}; it must be a vector (3,), or one of 'lightest', "
            "'heaviest' and 'isotropy'."
        )
    found = unit_directions(direction, 3)
    if found.ndim != 1:
        raise ShapeError(f"direction has shape {found.shape}; a map is along one direction, (3,).")
    return found


def _values(
    mech: Mechanism, q: Array, node: str, direction: Array | Measure, what: What
) -> ArrayLike:
    if what not in ("mass", "rotation"):
        raise ModelError(f"what is {what!r}; it must be 'mass' or 'rotation'.")
    if not len(q):
        return np.zeros(0)
    if not isinstance(direction, str):
        felt = effective_mass if what == "mass" else effective_rotational_inertia
        return felt(mech, q, node, direction)
    found = inertial_properties(mech, q, node)
    if direction == "isotropy":
        return found.mass_isotropy if what == "mass" else found.inertia_isotropy
    principal = found.principal_masses if what == "mass" else found.principal_inertias
    return principal[:, 0 if direction == "lightest" else -1]


def _numbers(name: str, values: ArrayLike) -> Array:
    found = floats(values, f"the numbers of {name!r}")
    if found.ndim > 1 or not found.size or not np.isfinite(found).all():
        raise ShapeError(
            f"the numbers of {name!r} have shape {found.shape}; give finite numbers in a row, or "
            "one for all."
        )
    return found


def _swept(
    mech: Mechanism, q: Array, joints: Mapping[str, ArrayLike]
) -> tuple[tuple[str, ...], tuple[Array, ...], Array]:
    """Names and numbers of the axes, and the states of the grid (..., nq)."""
    given = {name: _numbers(name, values) for name, values in joints.items()}
    names = tuple(name for name, values in given.items() if values.ndim)
    if not names:
        raise ModelError("joints has no coordinate with several numbers; give one at least.")
    grid = tuple(given[name] for name in names)
    state = np.tile(q, (*(len(x) for x in grid), 1))
    for name, values in given.items():
        if not values.ndim:
            state[..., mech.coordinate(name)] = values
    for name, values in zip(names, np.meshgrid(*grid, indexing="ij"), strict=True):
        state[..., mech.coordinate(name)] = values
    return names, grid, mech.couple(state) if mech.couplings else state


def _units(mech: Mechanism, names: tuple[str, ...]) -> tuple[str, ...]:
    """Of coordinates by their names: "m" or "rad"."""
    every = [x.unit for body in mech.bodies for x in body.hinge.coordinates]
    return tuple(every[mech.coordinate(name)] for name in names)


def _slice(
    positions: Mapping[str, ArrayLike],
) -> tuple[tuple[str, ...], tuple[Array, ...], Array]:
    """Names and numbers of the axes, and the points of the grid (..., 3)."""
    if set(positions) != set("xyz"):
        raise ModelError(
            f"positions are given for {', '.join(map(str, positions)) or 'nothing'}; they must be "
            "for x, y and z, one number for those that stay: {'x': …, 'y': 0.0, 'z': …}."
        )
    given = {name: _numbers(name, values) for name, values in positions.items()}
    names = tuple(name for name, values in given.items() if values.ndim)
    if not names:
        raise ModelError("positions has no coordinate with several numbers; give one at least.")
    grid = tuple(given[name] for name in names)
    points = np.zeros((*(len(x) for x in grid), 3))
    for name, values in zip(names, np.meshgrid(*grid, indexing="ij"), strict=True):
        points[..., "xyz".index(name)] = values
    for name, values in given.items():
        if not values.ndim:
            points[..., "xyz".index(name)] = values
    return names, grid, points
