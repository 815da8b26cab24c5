"""Modes of beams and of frames of beams, by finite elements.

Each element is a straight beam with twelve coordinates (u, θ at both ends). Its shape functions are
the exact static ones of a Timoshenko beam, with Φ = 12 E I / (k A G l²); Φ = 0 is Euler-Bernoulli.
Modes are those of the elements, clamped at the first node. The masses of the flexible body are
lumps at Gauss points, which integrate its modes with few points.

A bent beam is shorter: to second order its axis e is displaced by ½ ∫ (β (β·e) - β·β e) ds, with
the slope β; S sums that from the root to each lump.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.arguments import count, number, option, rows
from linkwise.errors import ModelError, ShapeError
from linkwise.flexible.flexible_body import FlexibleBody, in_modes
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.vector import cross

DIRECTIONS = ("rx", "ry", "rz", "x", "y", "z")
"""Turns and displacements of a node, in the order of spatial vectors."""

POINTS, WEIGHTS = (np.asarray(x) for x in np.polynomial.legendre.leggauss(4))
ELEMENTS = 40
"""Elements of a beam."""


@dataclass(frozen=True, slots=True, eq=False)
class Element:
    """A straight beam between two nodes, its section constant."""

    start: int
    end: int
    axes: Array  # rows: the axis e, and the two principal axes of the section
    length: float
    numbers: Array  # EA, GJ, EI_y, EI_z, rho A, rho I_y, rho I_z
    shear: tuple[float, float]  # Φ for bending along y and along z

    def shapes(self, xi: float) -> tuple[Array, Array, Array]:
        """u, θ and the slope β (each 3, 12) at ξ in 0 ... 1, from (θ, u) of both ends."""
        u, turn, slope = np.zeros((3, 12)), np.zeros((3, 12)), np.zeros((3, 12))
        u[0, [3, 9]] = turn[0, [0, 6]] = slope[0, [0, 6]] = 1.0 - xi, xi
        # Bending along y turns about z with θ = w'; along z it turns about y with θ = -w'.
        for shear, along, about, sign in ((self.shear[0], 1, 2, 1.0), (self.shear[1], 2, 1, -1.0)):
            at = [3 + along, about, 9 + along, 6 + about]
            signs = np.array([1.0, sign, 1.0, sign])
            w, rate, angle = _cubic(xi, self.length, shear)
            u[along, at] = w * signs
            slope[about, at] = sign * rate * signs
            turn[about, at] = sign * angle * signs
        world = self.axes.T
        ends = np.kron(np.eye(4), self.axes)
        return world @ u @ ends, world @ turn @ ends, world @ slope @ ends

    def stiffness(self) -> Array:
        """K (12, 12) in the order (θ, u) of both ends."""
        pulled, twisted, bent_y, bent_z = self.numbers[:4].tolist()
        l, K = self.length, np.zeros((12, 12))
        pull = np.array([[1.0, -1.0], [-1.0, 1.0]]) / l
        K[np.ix_([3, 9], [3, 9])] += pulled * pull
        K[np.ix_([0, 6], [0, 6])] += twisted * pull
        bends = ((bent_z, self.shear[0], 1, 2, 1.0), (bent_y, self.shear[1], 2, 1, -1.0))
        for bent, phi, along, about, sign in bends:
            at = [3 + along, about, 9 + along, 6 + about]
            a, b, c = 6.0 * l, (4.0 + phi) * l**2, (2.0 - phi) * l**2
            B = np.array([[12, a, -12, a], [a, b, -a, c], [-12, -a, 12, -a], [a, c, -a, b]])
            signs = np.array([1.0, sign, 1.0, sign])
            K[np.ix_(at, at)] += bent / (l**3 * (1.0 + phi)) * B * np.outer(signs, signs)
        ends = np.kron(np.eye(4), self.axes)
        return ends.T @ K @ ends

    def inertia(self, length: float, *, rotary: bool) -> tuple[float, Array]:
        """Mass and inertia of a piece, without its thickness where only points are wanted."""
        line, rho_y, rho_z = self.numbers[4:].tolist()
        local = np.diag([rho_y + rho_z, rho_y, rho_z]) if rotary else np.zeros((3, 3))
        return line * length, np.asarray(length * self.axes.T @ local @ self.axes)


def _cubic(xi: float, l: float, phi: float) -> tuple[Array, Array, Array]:
    """w, w' and θ (4,) of a bent element for w_1, θ_1, w_2, θ_2."""
    c, x, y = 1.0 / (1.0 + phi), xi, 1.0 - xi
    w = np.array(
        [
            1.0 - 3.0 * x**2 + 2.0 * x**3 + phi * y,
            l * (x - 2.0 * x**2 + x**3 + 0.5 * phi * x * y),
            3.0 * x**2 - 2.0 * x**3 + phi * x,
            l * (x**3 - x**2 - 0.5 * phi * x * y),
        ]
    )
    bend = np.array(
        [-6.0 * x * y / l, 1.0 - 4.0 * x + 3.0 * x**2, 6.0 * x * y / l, 3.0 * x**2 - 2.0 * x]
    )
    half = 0.5 * phi * (1.0 - 2.0 * x)
    rate = bend + np.array([-phi / l, half, phi / l, -half])
    angle = bend + np.array([0.0, phi * y, 0.0, phi * x])
    return c * w, c * rate, c * angle


def beam(
    length: float,
    *,
    area: ArrayLike,
    bending: ArrayLike,
    young: float,
    density: float,
    torsion: ArrayLike | None = None,
    shear_modulus: float | None = None,
    shear_factor: float | None = None,
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
        bending: Second moments of the section, (I_y, I_z), or (stations, 2) [m⁴]; one number is
            for both. Bending along y depends on I_z.
        young: Young's modulus [N/m²].
        density: [kg/m³].
        torsion: Torsion constant [m⁴]; default: I_y + I_z, that of a circle.
        shear_modulus: [N/m²]; default: young / 2.6.
        shear_factor: k of Timoshenko (5/6 for a rectangle), with rotary inertia; default: neither.
        modes: How many.
        directions: In which nodes may move, of rx, ry, rz, x, y, z: ("y", "rz") for a plane.
        tip: Inertia of a load at the end, about the end.
        boundary: "free": modes of the beam with its free tip. "fixed": Craig-Bampton, the static
            shapes of unit motions of the tip, then modes with the tip held.
        damping: Of each mode, as a part of critical damping.
        lumps: Masses along the beam; default: 2 modes + 4.
    """
    span = number(length, "length", least=1e-12)
    modes = count(modes, "modes", least=1)
    chosen = 2 * modes + 4 if lumps is None else count(lumps, "lumps", least=1)
    stations = (np.arange(ELEMENTS) + 0.5) / ELEMENTS
    A = _along(area, stations, "area", 1)[:, 0]
    I = _along(bending, stations, "bending", 2)
    J = I.sum(axis=1) if torsion is None else _along(torsion, stations, "torsion", 1)[:, 0]
    G = number(young, "young", above=0.0) / 2.6
    if shear_modulus is not None:
        G = number(shear_modulus, "shear_modulus", above=0.0)
    table = np.column_stack([A, I, J])
    xs = span * np.linspace(0.0, 1.0, ELEMENTS + 1)
    nodes = np.column_stack([xs, 0.0 * xs, 0.0 * xs])
    pairs = [(i, i + 1) for i in range(ELEMENTS)]
    points, weights = np.polynomial.legendre.leggauss(chosen)
    spots = [(min(int(s), ELEMENTS - 1), float(s)) for s in 0.5 * (1.0 + points) * ELEMENTS]
    places = [(e, s - e, 0.5 * span * float(w)) for (e, s), w in zip(spots, weights, strict=True)]
    material = (number(young, "young", above=0.0), G, number(density, "density", above=0.0))
    return _solved(
        nodes,
        _elements(nodes, pairs, table, material, shear_factor),
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
    shear_modulus: float | None = None,
    shear_factor: float | None = None,
    modes: int = 3,
    directions: Sequence[str] = DIRECTIONS,
    tip_node: int = -1,
    tip: SpatialInertia | None = None,
    boundary: str = "free",
    damping: float = 0.0,
) -> FlexibleBody:
    """A frame of beam elements given as a table, clamped at its first node: its lowest modes.

    Two lumps per element carry its mass: long members are divided into several elements. Elements
    must not close a loop.

    Args:
        nodes: Places of the nodes (n, 3) [m]; the first is the reference frame, in its axes.
        elements: The two nodes of each element.
        sections: Area [m²], I_y, I_z and torsion constant [m⁴] of each element (elements, 4), or
            one row for all. z of a section is across its axis and the y axis of the frame, or the
            x axis where it is parallel to y.
        young: Young's modulus [N/m²].
        density: [kg/m³].
        shear_modulus: [N/m²]; default: young / 2.6.
        shear_factor: k of Timoshenko; default: Euler-Bernoulli.
        modes: How many.
        directions: In which nodes may move.
        tip_node: The node that carries other bodies.
        tip: Inertia of a load there.
        boundary: "free" or "fixed", as for `beam`.
        damping: Of each mode, as a part of critical damping.
    """
    places = floats(nodes, "nodes")
    if places.ndim != 2 or places.shape[1] != 3 or len(places) < 2:
        raise ShapeError(f"nodes have shape {places.shape}; they must be (n, 3), two or more.")
    pairs = [(int(a), int(b)) for a, b in elements]
    for a, b in pairs:
        if not 0 <= min(a, b) <= max(a, b) < len(places) or a == b:
            raise ModelError(f"element ({a}, {b}) does not join two of {len(places)} nodes.")
    if not pairs:
        raise ModelError("elements is empty; name the two nodes of each element, like [(0, 1)].")
    table = rows(sections, 4, "sections", hint="area, I_y, I_z and torsion constant")
    if table.shape not in ((4,), (len(pairs), 4)):
        raise ShapeError(
            f"sections has shape {table.shape}; it must be (4,), or ({len(pairs)}, 4): a row for "
            "each element."
        )
    if (table <= 0.0).any():
        raise ModelError(f"sections must be positive; the smallest number is {table.min():g}.")
    table = np.broadcast_to(table, (len(pairs), 4))
    G = number(young, "young", above=0.0) / 2.6
    if shear_modulus is not None:
        G = number(shear_modulus, "shear_modulus", above=0.0)
    material = (number(young, "young", above=0.0), G, number(density, "density", above=0.0))
    made = _elements(places, pairs, table, material, shear_factor)
    near = 0.5 - 0.5 / np.sqrt(3.0)
    spots = [(e, xi, 0.5 * x.length) for e, x in enumerate(made) for xi in (near, 1.0 - near)]
    last = tip_node % len(places)
    return _solved(
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


def _along(value: ArrayLike, stations: Array, what: str, width: int) -> Array:
    """Values (elements, width) at the middle of each element."""
    array = floats(value, what)
    if array.ndim == 0 or (width > 1 and array.shape == (width,)):
        array = np.broadcast_to(array, (1, width))
    array = array.reshape(len(array), -1)
    if array.shape[1] not in (1, width) or not np.isfinite(array).all() or (array <= 0.0).any():
        raise ModelError(f"{what} must be positive: one number, or values along the beam.")
    array = np.broadcast_to(array, (len(array), width))
    where = np.linspace(0.0, 1.0, max(len(array), 2))
    both = np.repeat(array, 2, axis=0) if len(array) == 1 else array
    return np.stack([np.interp(stations, where, both[:, j]) for j in range(width)], axis=1)


def _elements(
    nodes: Array,
    pairs: Sequence[tuple[int, int]],
    table: Array,
    material: tuple[float, float, float],
    shear_factor: float | None,
) -> list[Element]:
    E, G, rho = material
    made = list[Element]()
    for (a, b), (area, I_y, I_z, J) in zip(pairs, table.tolist(), strict=True):
        way = nodes[b] - nodes[a]
        l = float(np.linalg.norm(way))
        if l == 0.0:
            raise ModelError(f"element ({a}, {b}) has no length.")
        x = way / l
        y = np.array([0.0, 1.0, 0.0]) if abs(x[1]) < 0.9 else np.array([1.0, 0.0, 0.0])
        z = cross(x, y)
        z = z / np.linalg.norm(z)
        k = 0.0 if shear_factor is None else number(shear_factor, "shear_factor", least=1e-9)
        shear = (12.0 * E / (k * area * G * l**2)) if k else 0.0
        numbers = np.array([E * area, G * J, E * I_y, E * I_z, rho * area, rho * I_y, rho * I_z])
        axes = np.stack([x, cross(z, x), z])
        made.append(Element(a, b, axes, l, numbers, (shear * I_z, shear * I_y)))
    return made


def _solved(
    nodes: Array,
    elements: Sequence[Element],
    places: Sequence[tuple[int, float, float]],
    *,
    rotary: bool,
    modes: int,
    directions: Sequence[str],
    tip: SpatialInertia | None,
    boundary: str,
    damping: float,
    tip_node: int = -1,
) -> FlexibleBody:
    """The modes of elements with masses at (element, ξ, length)."""
    option(boundary, ("free", "fixed"), "boundary")
    allowed = sorted({DIRECTIONS.index(option(x, DIRECTIONS, "direction")) for x in directions})
    if not allowed:
        raise ModelError(f"directions is empty; name some of {', '.join(DIRECTIONS)}.")
    last = tip_node % len(nodes)
    K = np.zeros((6 * len(nodes), 6 * len(nodes)))
    for x in elements:
        at = _ends(x)
        K[np.ix_(at, at)] += x.stiffness()
    samples = [_sample(elements[e], xi, len(nodes)) for e, xi, _ in places]
    samples.append(np.eye(6 * len(nodes))[6 * last : 6 * last + 6])
    pieces = [elements[e].inertia(length, rotary=rotary) for e, _, length in places]
    masses = [mass for mass, _ in pieces] + [0.0 if tip is None else float(tip.mass)]
    inertias = [J for _, J in pieces] + [np.zeros((3, 3)) if tip is None else tip.J]
    if tip is not None and np.abs(tip.h).max() > 0.0:
        raise ModelError(
            "tip has its centre of mass away from the end; hang it on the tip instead."
        )
    tip_mass = _inertia(samples[-1], masses[-1], inertias[-1])
    M = tip_mass + _consistent(elements, len(nodes), rotary=rotary)
    free = [6 * i + j for i in range(1, len(nodes)) for j in allowed]
    ends = [6 * last + j for j in allowed]
    basis = _basis(K, M, free, ends if boundary == "fixed" else [], modes)
    Pi = np.stack([sample @ basis for sample in samples])
    second = _shortening(nodes, elements, basis, places, last)
    positions = [_position(nodes, elements[e], xi) for e, xi, _ in places]
    K_r = basis.T @ K @ basis
    points = np.stack([*positions, nodes[last]])
    body = FlexibleBody(
        points, Pi, np.diag(K_r), np.array(masses), np.stack(inertias), second=second
    )
    try:
        inverse = np.linalg.inv(np.linalg.cholesky(body.modal_mass))
    except np.linalg.LinAlgError:
        raise ModelError(
            f"{basis.shape[1]} modes have no mass in {len(places)} lumps. Give more lumps, or "
            "directions in which they move."
        ) from None
    _, Q = np.linalg.eigh(inverse @ K_r @ inverse.T)
    body = in_modes(body, np.asarray(inverse.T @ Q, dtype=np.float64), K_r)
    ratio = number(damping, "damping", least=0.0)
    critical = 2.0 * np.sqrt(body.stiffness * np.diag(body.modal_mass))
    fields = (body.positions, body.modes, body.stiffness, body.masses, body.inertias)
    return FlexibleBody(*fields, ratio * critical, body.second)


def _inertia(Pi: Array, m: float, J: Array) -> Array:
    """Π* M Π of a node with the modes Π (6, n)."""
    return m * (Pi[3:].T @ Pi[3:]) + Pi[:3].T @ J @ Pi[:3]


def _consistent(elements: Sequence[Element], count: int, *, rotary: bool) -> Array:
    """The mass matrix of the elements (6 n, 6 n), by four points in each."""
    M = np.zeros((6 * count, 6 * count))
    for x in elements:
        at = _ends(x)
        for point, weight in zip(POINTS.tolist(), WEIGHTS.tolist(), strict=True):
            u, turn, _ = x.shapes(0.5 * (1.0 + point))
            m, J = x.inertia(0.5 * weight * x.length, rotary=rotary)
            M[np.ix_(at, at)] += _inertia(np.concatenate([turn, u]), m, J)
    return M


def _ends(x: Element) -> list[int]:
    return [*range(6 * x.start, 6 * x.start + 6), *range(6 * x.end, 6 * x.end + 6)]


def _position(nodes: Array, x: Element, xi: float) -> Array:
    return (1.0 - xi) * nodes[x.start] + xi * nodes[x.end]


def _sample(x: Element, xi: float, count: int) -> Array:
    """Turn and displacement (6, 6 n) of a point of an element."""
    u, turn, _ = x.shapes(xi)
    out = np.zeros((6, 6 * count))
    out[:, _ends(x)] = np.concatenate([turn, u])
    return out


def _basis(K: Array, M: Array, free: list[int], held: list[int], modes: int) -> Array:
    """Columns (6 n, m): static shapes of the held coordinates, then the lowest modes."""
    inner = [i for i in free if i not in held]
    columns = np.zeros((len(K), modes + len(held)))
    if held:
        columns[np.ix_(held, range(len(held)))] = np.eye(len(held))
        columns[np.ix_(inner, range(len(held)))] = -np.linalg.solve(
            K[np.ix_(inner, inner)], K[np.ix_(inner, held)]
        )
    # Compliances K⁻¹ M have their largest values first, and M may be singular.
    lower = np.linalg.cholesky(K[np.ix_(inner, inner)])
    inverse = np.linalg.inv(lower)
    values, Q = np.linalg.eigh(inverse @ M[np.ix_(inner, inner)] @ inverse.T)
    rank = int((values > 1e-12 * values[-1]).sum())
    if modes > rank:
        raise ModelError(
            f"{modes} modes were requested, but the masses have {rank}. Give more lumps, or "
            "directions in which they move."
        )
    columns[inner, len(held) :] = (inverse.T @ Q[:, ::-1])[:, :modes]
    return columns


def _shortening(
    nodes: Array,
    elements: Sequence[Element],
    basis: Array,
    places: Sequence[tuple[int, float, float]],
    last: int,
) -> Array:
    """S (lumps + 1, 3, m, m): second-order displacements, summed from the root."""
    at_node = {0: np.zeros((3, basis.shape[1], basis.shape[1]))}
    from_start, left = dict[int, bool](), list(range(len(elements)))
    while left:
        ready = [e for e in left if {elements[e].start, elements[e].end} & at_node.keys()]
        if not ready:
            raise ModelError("some elements are not connected to the first node.")
        for e in ready:
            x = elements[e]
            if {x.start, x.end} <= at_node.keys():
                raise ModelError(
                    f"element ({x.start}, {x.end}) closes a loop; frames must branch only."
                )
            from_start[e] = x.start in at_node
            near, far = (x.start, x.end) if from_start[e] else (x.end, x.start)
            part = _bent(x, basis, 0.0, 1.0)
            at_node[far] = at_node[near] + (part if from_start[e] else -part)
            left.remove(e)
    out = list[Array]()
    for e, xi, _ in places:
        x = elements[e]
        out.append(at_node[x.start] + _bent(x, basis, 0.0, xi))
    return np.stack([*out, at_node[last]])


def _bent(x: Element, basis: Array, start: float, stop: float) -> Array:
    """∫ ½ (β_a (β_b·e) + β_b (β_a·e)) - β_a·β_b e over a part of an element (3, m, m)."""
    total, e = np.zeros((3, basis.shape[1], basis.shape[1])), x.axes[0]
    for point, weight in zip(POINTS.tolist(), WEIGHTS.tolist(), strict=True):
        xi = start + 0.5 * (1.0 + point) * (stop - start)
        beta = x.shapes(xi)[2] @ basis[_ends(x)]
        along = np.einsum("ia,b->iab", beta, e @ beta)
        form = 0.5 * (along + np.swapaxes(along, 1, 2)) - np.einsum("i,ab->iab", e, beta.T @ beta)
        total += 0.5 * weight * (stop - start) * x.length * form
    return total
