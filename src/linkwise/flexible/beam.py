"""Beams, and frames of beams, by their lowest modes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.arguments import count, number, rows, shown
from linkwise.errors import ModelError, ShapeError
from linkwise.flexible.beam_element import Material, elements_of, principal
from linkwise.flexible.beam_modes import DIRECTIONS, solved
from linkwise.flexible.flexible_body import FlexibleBody
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.spatial.inertia import SpatialInertia

ELEMENTS = 40
"""Elements of a beam."""


def beam(
    length: float,
    *,
    area: ArrayLike,
    bending: ArrayLike,
    young: float,
    density: float,
    torsion: ArrayLike | None = None,
    product: ArrayLike = 0.0,
    roll: ArrayLike = 0.0,
    shear_modulus: float | None = None,
    shear_factor: ArrayLike | None = None,
    modes: int = 3,
    directions: Sequence[str] = DIRECTIONS,
    tip: SpatialInertia | None = None,
    boundary: str = "free",
    damping: float = 0.0,
    lumps: int | None = None,
) -> FlexibleBody:
    """A straight beam along x, clamped at its reference frame: its lowest modes.

    Euler-Bernoulli, or Timoshenko with a `shear_factor`. Sections may taper: arrays are values at
    equidistant stations along the beam, with straight lines between them.

    Args:
        length: [m].
        area: Of the section [m²]; one number, or values along the beam.
        bending: Second moments of the section [m⁴]: one number for both, two numbers (I_y, I_z),
            or along the beam, a row (I_y, I_z) at each station (stations, 2). Bending along y
            depends on I_z.
        young: Young's modulus [N/m²].
        density: [kg/m³].
        torsion: Torsion constant [m⁴]; default: I_y + I_z, that of a circle.
        product: Product of area I_yz = ∫ y z dA [m⁴] of a section whose principal axes are not y
            and z; one number, or values along the beam.
        roll: Turn of the section about the beam [rad], from y towards z; one number, or values
            along a twisted beam. `bending` and `product` are in the turned axes.
        shear_modulus: [N/m²]; default: young / 2.6.
        shear_factor: k of Timoshenko (5/6 for a rectangle), with rotary inertia; two numbers are
            for bending along the principal axes near y and near z; default: neither.
        modes: How many.
        directions: In which nodes may move, of rx, ry, rz, x, y, z: ("y", "rz") for a plane. A
            beam bends by y together with rz, and by z together with ry.
        tip: Inertia of a load at the end, about the end.
        boundary: "free": modes of the beam with its free tip. "fixed": Craig-Bampton, the static
            shapes of unit motions of the tip, then modes with the tip held.
        damping: Of each mode, as a part of critical damping.
        lumps: Masses along the beam; default: 2 modes + 4. Fewer make faster kernels; those with
            which a frequency is off by more than a tenth are refused.
    """
    span = number(length, "length", least=1e-12)
    modes = count(modes, "modes", least=1)
    chosen = 2 * modes + 4 if lumps is None else count(lumps, "lumps", least=1)
    stations = (np.arange(ELEMENTS) + 0.5) / ELEMENTS
    A = _along(area, stations, "area", 1)[:, 0]
    I = _along(bending, stations, "bending", 2)
    turned, mixed = (
        _along(x, stations, what, 1, positive=False)[:, 0]
        for x, what in ((roll, "roll"), (product, "product"))
    )
    if (mixed**2 >= I.prod(axis=1)).any():
        raise ModelError(
            f"product is up to {np.abs(mixed).max():g} m⁴; its square must be less than I_y I_z."
        )
    J = I.sum(axis=1) if torsion is None else _along(torsion, stations, "torsion", 1)[:, 0]
    I_y, I_z, angle = principal(I[:, 0], I[:, 1], mixed)
    table = np.column_stack([A, I_y, I_z, J])
    xs = span * np.linspace(0.0, 1.0, ELEMENTS + 1)
    nodes = np.column_stack([xs, 0.0 * xs, 0.0 * xs])
    pairs = [(i, i + 1) for i in range(ELEMENTS)]
    points, weights = np.polynomial.legendre.leggauss(chosen)
    spots = [(min(int(s), ELEMENTS - 1), float(s)) for s in 0.5 * (1.0 + points) * ELEMENTS]
    places = [(e, s - e, 0.5 * span * float(w)) for (e, s), w in zip(spots, weights, strict=True)]
    material = Material.of(young, density, shear_modulus, shear_factor)
    return solved(
        nodes,
        elements_of(nodes, pairs, table, material, turned + angle),
        places,
        rotary=shear_factor is not None or "rx" in directions,
        modes=modes,
        directions=directions,
        tip=tip,
        boundary=boundary,
        damping=damping,
    )


def frame(
    nodes: ArrayLike,
    elements: Sequence[tuple[int, int]],
    *,
    sections: ArrayLike,
    young: float,
    density: float,
    roll: ArrayLike = 0.0,
    shear_modulus: float | None = None,
    shear_factor: ArrayLike | None = None,
    modes: int = 3,
    directions: Sequence[str] = DIRECTIONS,
    tip_node: int = -1,
    tip: SpatialInertia | None = None,
    boundary: str = "free",
    damping: float = 0.0,
) -> FlexibleBody:
    """A frame of beam elements given as a table, clamped at its first node: its lowest modes.

    Two lumps per element carry its mass: long members are divided into several elements. Members
    may branch and close loops.

    Args:
        nodes: Places of the nodes (n, 3) [m]; the first is the origin of the reference frame,
            whose axes they are in.
        elements: The two nodes of each element.
        sections: Area [m²], I_y, I_z and torsion constant [m⁴] of each element (elements, 4), or
            one row for all. z of a section is across its axis and the y axis of the frame, or the
            x axis where it is parallel to y.
        young: Young's modulus [N/m²].
        density: [kg/m³].
        roll: Turn of each section about the axis of its element [rad]; one number, or one for each.
        shear_modulus: [N/m²]; default: young / 2.6.
        shear_factor: k of Timoshenko, one number, or two for bending along y and z of the section;
            default: Euler-Bernoulli.
        modes: How many.
        directions: In which nodes may move; ("x", "y", "rz") for a plane frame.
        tip_node: The node that carries other bodies.
        tip: Inertia of a load there.
        boundary: "free" or "fixed", as for `beam`.
        damping: Of each mode, as a part of critical damping.
    """
    places = floats(nodes, "nodes")
    if places.ndim != 2 or places.shape[1] != 3 or len(places) < 2:
        raise ShapeError(f"nodes have shape {places.shape}; they must be (n, 3), two or more.")
    places = places - places[0]
    pairs = _pairs(elements, len(places))
    table = rows(sections, 4, "sections", hint="area, I_y, I_z and torsion constant")
    if table.shape not in ((4,), (len(pairs), 4)):
        raise ShapeError(
            f"sections has shape {table.shape}; it must be (4,), or ({len(pairs)}, 4): a row for "
            "each element."
        )
    if (table <= 0.0).any():
        raise ModelError(f"sections must be positive; the smallest number is {table.min():g}.")
    table = np.broadcast_to(table, (len(pairs), 4))
    turns = floats(roll, "roll")
    if not np.isfinite(turns).all():
        raise ModelError("roll is not finite; it is an angle about the axis of each element [rad].")
    if turns.shape not in ((), (len(pairs),)):
        raise ShapeError(
            f"roll has shape {turns.shape}; it must be one number, or one for each of "
            f"{len(pairs)} elements ({len(pairs)},)."
        )
    material = Material.of(young, density, shear_modulus, shear_factor)
    turns = np.broadcast_to(turns, (len(pairs),))
    made = elements_of(places, pairs, table, material, turns)
    near = 0.5 - 0.5 / np.sqrt(3.0)
    spots = [(e, xi, 0.5 * x.length) for e, x in enumerate(made) for xi in (near, 1.0 - near)]
    last = count(tip_node, "tip_node", least=-len(places), most=len(places) - 1) % len(places)
    if not last:
        raise ModelError("tip_node is 0, the first node, which is clamped; name another one.")
    return solved(
        places,
        made,
        spots,
        rotary=True,
        tip_node=last,
        modes=count(modes, "modes", least=1),
        directions=directions,
        tip=tip,
        boundary=boundary,
        damping=damping,
    )


def _pairs(elements: Sequence[tuple[int, int]], n: int) -> list[tuple[int, int]]:
    """The nodes of each element; raises unless elements connect all n nodes to the first one."""
    pairs = list[tuple[int, int]]()
    for i, ends in enumerate(elements):
        what = f"elements[{i}]"
        if np.shape(ends) != (2,):
            raise ModelError(f"{what} is {shown(ends)}; it must be a pair of nodes, like (0, 1).")
        a, b = (count(end, f"a node of {what}", most=n - 1) for end in ends)
        if a == b:
            raise ModelError(f"{what} is ({a}, {b}); it must join two different nodes.")
        pairs.append((a, b))
    if not pairs:
        raise ModelError("elements is empty; name the two nodes of each element, like [(0, 1)].")
    joined, more = {0}, {0}
    while more:
        more = {x for pair in pairs if joined & {*pair} for x in pair} - joined
        joined |= more
    apart = sorted({*range(n)} - joined)
    if apart:
        used = {x for pair in pairs for x in pair}
        what = "no element uses it" if apart[0] not in used else "its elements do not reach it"
        raise ModelError(
            f"node {apart[0]} is not connected to node 0, which is clamped: {what}. Join the "
            f"nodes {shown(apart)} by elements, or leave them out."
        )
    return pairs


def _along(
    value: ArrayLike, stations: Array, what: str, width: int, *, positive: bool = True
) -> Array:
    """Values (elements, width) at the middle of each element, from numbers or stations."""
    array = floats(value, what)
    if width == 1:
        known = array.ndim < 2
        forms = "one number, or (stations,)"
    else:
        known = array.shape in ((), (width,)) or (array.ndim == 2 and array.shape[1] == width)
        forms = f"one number, {width} numbers (I_y, I_z), or rows of them (stations, {width})"
    if not known or not array.size:
        raise ShapeError(f"{what} has shape {array.shape}; it must be {forms}.")
    if not np.isfinite(array).all() or (positive and (array <= 0.0).any()):
        kind = "positive" if positive else "finite"
        raise ModelError(f"{what} must be {kind}; the smallest number is {array.min():g}.")
    table = array.reshape(-1, 1) if width == 1 else np.atleast_2d(array)
    table = np.broadcast_to(table, (len(table), width))
    where = np.linspace(0.0, 1.0, len(table)) if len(table) > 1 else np.zeros(1)
    return np.stack([np.interp(stations, where, table[:, j]) for j in range(width)], axis=1)
