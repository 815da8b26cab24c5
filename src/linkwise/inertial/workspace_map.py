"""Maps of effective mass: over a slice of the workspace, or over joints.

Over positions, the joints come from inverse kinematics that spreads over the grid
(`grid_search.py`).
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
from linkwise.inertial.effective_mass import What, effective_mass
from linkwise.inertial.grid_search import Front, Progress
from linkwise.inertial.properties import inertial_properties
from linkwise.inertial.response import unit_directions
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
        direction: Unit vector (3,) in world axes along which the values are, or "lightest",
            "heaviest", "isotropy".
        axes: Names of the axes of the grid: coordinates, or x, y, z.
        grid: The values along each axis [m or rad].
        kind: "joints" or "positions".
        values: The map, an entry for each point of the grid. Masked where the node cannot be;
            infinite where the direction is blocked.
        q: Joint positions at each point (..., nq); for unreached points the nearest that the search
            found, or its start.
        positions: Positions of the node at q (..., 3) [m].
        reached: Points with a value (...,).
        units: Of each axis: "m" or "rad".
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
        """Of the values; empty for isotropy."""
        if isinstance(self.direction, str) and self.direction == "isotropy":
            return ""
        return "kg" if self.what == "mass" else "kg m²"

    @property
    def title(self) -> str:
        """What is shown, in words."""
        words = "effective mass" if self.what == "mass" else "effective rotational inertia"
        if isinstance(self.direction, str):
            return f"{self.direction} {words if self.unit else 'of the ' + words}"
        along = "along" if self.what == "mass" else "about"
        return f"{words} {along} ({', '.join(f'{x:.3g}' for x in self.direction)})"

    def __str__(self) -> str:
        size = " × ".join(str(len(x)) for x in self.grid)
        text = f"{self.title} at {self.node!r} over {' and '.join(self.axes)}: {size} points"
        text += f", {int(self.reached.sum())} reached" if not self.reached.all() else ""
        values = np.asarray(self.values[self.reached])
        finite = values[np.isfinite(values)]
        if finite.size:
            text += f", {finite.min():.4g} to {finite.max():.4g} {self.unit}".rstrip()
        blocked = values.size - finite.size
        return f"{text}, blocked in {blocked}" if blocked else text


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
        1 / m_u = u* Λ_v⁻¹ u   at every point, `lw.inertial.effective_mass`; or the least or largest
        of all directions, or least over largest, `lw.inertial.inertial_properties`.
    Source: 003 (30), (31).

    Args:
        mech: The mechanism, without loops; couplings are respected.
        q: Joint positions (nq,) of the joints that are not swept, and the start of the search for
            positions; None for neutral.
        node: Name of a node or body.
        joints: Coordinates to sweep, each with its values [m or rad]:
            `{"pin_2": np.linspace(-2, 2, 61), "pin_3": …}`.
        positions: World coordinates of the node, each with its values, or with one number for the
            plane of a slice: `{"x": np.linspace(-1, 1, 61), "z": …, "y": 0.0}` [m]. Give either
            joints or positions. The joints come from `lw.inverse_kinematics`.
        direction: u (3,) in world axes, or "lightest", "heaviest", or "isotropy" of all directions.
        what: "mass", or "rotation" for rotational inertia about the direction.
        orientation: Of the node, with positions: rotation matrix (3, 3) or quaternion (4,).
            Default: free.
        restarts: Number of random restarts for points not reached from their neighbours.
        seed: Of the restarts.
        progress: Called with the number of finished points and of all points. Default: a search of
            more than 10 s reports on a terminal.

    Raises:
        ModelError: Neither or both of joints and positions; a mechanism with loops.
        UnknownNameError: The mechanism has no such node or coordinate.
        ShapeError: The values of an axis are not one-dimensional.
    """
    check_mechanism(mech)
    if not isinstance(mech, Mechanism) or mech.loops:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(
            f"{mech.name!r} has loops, which the joints of an inertial map would not close. Close "
            "each state with lw.loops.assemble, and use lw.inertial.effective_mass."
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
    values = np.ma.MaskedArray(np.zeros(reached.shape), mask=~reached)
    values.data[reached] = _values(mech, flat[reached.ravel()], node, along, what)
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
    u = unit_directions(direction, 3)
    if u.ndim != 1:
        raise ShapeError(f"direction has shape {u.shape}; a map is along one direction, (3,).")
    return u


def _values(
    mech: Mechanism, q: Array, node: str, direction: Array | Measure, what: What
) -> ArrayLike:
    if what not in ("mass", "rotation"):
        raise ModelError(f"what is {what!r}; it must be 'mass' or 'rotation'.")
    if not len(q):
        return np.zeros(0)
    if not isinstance(direction, str):
        return effective_mass(mech, q, node, direction, what=what)
    properties = inertial_properties(mech, q, node)
    if direction == "isotropy":
        return properties.mass_isotropy if what == "mass" else properties.inertia_isotropy
    principal = properties.principal_masses if what == "mass" else properties.principal_inertias
    return principal[:, 0 if direction == "lightest" else -1]


def _axes(
    given: Mapping[str, ArrayLike], what: str
) -> tuple[tuple[str, ...], tuple[Array, ...], dict[str, Array]]:
    """Names and values of the swept axes, and the values of every coordinate over the grid."""
    numbers = dict[str, Array]()
    for name, values in given.items():
        array = numbers[name] = floats(values, f"the numbers of {name!r}")
        if array.ndim > 1 or not array.size or not np.isfinite(array).all():
            raise ShapeError(
                f"the numbers of {name!r} have shape {array.shape}; give finite numbers in a row, "
                "or one number."
            )
    names = tuple(name for name, values in numbers.items() if values.ndim)
    if not names:
        raise ModelError(f"{what} has no coordinate with several numbers; give at least one.")
    grid = tuple(numbers[name] for name in names)
    swept = zip(names, np.meshgrid(*grid, indexing="ij"), strict=True)
    return names, grid, numbers | dict(swept)


def _swept(
    mech: Mechanism, q: Array, joints: Mapping[str, ArrayLike]
) -> tuple[tuple[str, ...], tuple[Array, ...], Array]:
    """Names and values of the axes, and the states of the grid (..., nq)."""
    names, grid, values = _axes(joints, "joints")
    state = np.tile(q, (*(len(x) for x in grid), 1))
    for name, value in values.items():
        state[..., mech.coordinate(name)] = value
    return names, grid, mech.couple(state) if mech.couplings else state


def _units(mech: Mechanism, names: tuple[str, ...]) -> tuple[str, ...]:
    units = [x.unit for body in mech.bodies for x in body.hinge.coordinates]
    return tuple(units[mech.coordinate(name)] for name in names)


def _slice(
    positions: Mapping[str, ArrayLike],
) -> tuple[tuple[str, ...], tuple[Array, ...], Array]:
    """Names and values of the axes, and the points of the grid (..., 3)."""
    if set(positions) != set("xyz"):
        raise ModelError(
            f"positions are given for {', '.join(map(str, positions)) or 'nothing'}; they must be "
            "for x, y and z, with one number for a constant: {'x': …, 'y': 0.0, 'z': …}."
        )
    names, grid, values = _axes(positions, "positions")
    points = np.zeros((*(len(x) for x in grid), 3))
    for name, value in values.items():
        points[..., "xyz".index(name)] = value
    return names, grid, points
