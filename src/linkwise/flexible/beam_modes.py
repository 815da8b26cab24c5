"""Modes of beam elements that are clamped at their first node, as a flexible body.

The masses of the flexible body are lumps at Gauss points, which integrate its modes with few
points. A bent beam is shorter: to second order its axis e is displaced by ½ ∫ (β (β·e) - β·β e) ds,
with the slope β; S sums that from the root to each lump. Where elements close a loop, the members
that do not fit stretch and bend each other as little as possible.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.arguments import number, option
from linkwise.errors import ModelError
from linkwise.flexible.beam_element import Element
from linkwise.flexible.flexible_body import FlexibleBody, in_modes
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.vector import cross

DIRECTIONS = ("rx", "ry", "rz", "x", "y", "z")
"""Turns and displacements of a node, in the order of spatial vectors."""

COARSE = 0.1
"""Lumps whose frequencies differ from those of the elements by more than this part are too few."""

POINTS, WEIGHTS = (np.asarray(x) for x in np.polynomial.legendre.leggauss(4))


def solved(
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
    allowed = _allowed(directions, elements)
    last = tip_node % len(nodes)
    K = np.zeros((6 * len(nodes), 6 * len(nodes)))
    for x in elements:
        at = x.coordinates
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
    second = _shortening(nodes, elements, K, basis, places, last)
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
    squares, Q = np.linalg.eigh(inverse @ K_r @ inverse.T)
    _check_lumps(np.asarray(squares, dtype=np.float64), K_r, basis.T @ M @ basis, len(places))
    body = in_modes(body, np.asarray(inverse.T @ Q, dtype=np.float64), K_r)
    ratio = number(damping, "damping", least=0.0)
    critical = 2.0 * np.sqrt(body.stiffness * np.diag(body.modal_mass))
    fields = (body.positions, body.modes, body.stiffness, body.masses, body.inertias)
    return FlexibleBody(*fields, ratio * critical, body.second)


def _allowed(directions: Sequence[str], elements: Sequence[Element]) -> list[int]:
    """The directions by number, in which the elements can bend.

    A beam along e that moves along d bends about e × d, and one that bends about r moves along
    r × e. A beam with only one of the two would be stiff.
    """
    if isinstance(directions, str):
        raise ModelError(
            f"directions is the string {directions!r}; name them one by one, like ('y', 'rz')."
        )
    allowed = sorted({DIRECTIONS.index(option(x, DIRECTIONS, "direction")) for x in directions})
    if not allowed:
        raise ModelError(f"directions is empty; name some of {', '.join(DIRECTIONS)}.")
    for e in (x.axes[0] for x in elements):
        for i in allowed:
            way = np.eye(3)[i % 3]
            needed, start = (cross(e, way), 0) if i > 2 else (cross(way, e), 3)
            lost = [j for j in range(3) if abs(needed[j]) > 1e-9 and start + j not in allowed]
            if lost:
                missing = ", ".join(repr(DIRECTIONS[start + j]) for j in lost)
                along = ", ".join(f"{y:.3g}" for y in e.tolist())
                raise ModelError(
                    f"directions are {', '.join(map(repr, directions))}: a beam along "
                    f"({along}) with {DIRECTIONS[i]!r} but without {missing} "
                    f"cannot bend. Add {missing}, or leave {DIRECTIONS[i]!r} out."
                )
    return allowed


def _check_lumps(squares: Array, K: Array, M: Array, lumps: int) -> None:
    """Raise where lumps give other frequencies than the elements; `squares` are those of lumps."""
    inverse = np.linalg.inv(np.linalg.cholesky(M))
    exact = np.sqrt(np.linalg.eigvalsh(inverse @ K @ inverse.T)) / (2.0 * np.pi)
    ours = np.sqrt(squares) / (2.0 * np.pi)
    i = int(np.argmax(np.abs(ours / exact - 1.0)))
    if abs(ours[i] / exact[i] - 1.0) > COARSE:
        raise ModelError(
            f"with {lumps} lumps mode {i + 1} has {ours[i]:.4g} Hz, with the mass of the elements "
            f"{exact[i]:.4g} Hz. Give more lumps (in a frame: divide its members), or fewer modes."
        )


def _inertia(Pi: Array, m: float, J: Array) -> Array:
    """Π* M Π of a node with the modes Π (6, n)."""
    return m * (Pi[3:].T @ Pi[3:]) + Pi[:3].T @ J @ Pi[:3]


def _consistent(elements: Sequence[Element], count: int, *, rotary: bool) -> Array:
    """The mass matrix of the elements (6 n, 6 n), by four points in each."""
    M = np.zeros((6 * count, 6 * count))
    for x in elements:
        at = x.coordinates
        for point, weight in zip(POINTS.tolist(), WEIGHTS.tolist(), strict=True):
            u, turn, _ = x.shapes(0.5 * (1.0 + point))
            m, J = x.inertia(0.5 * weight * x.length, rotary=rotary)
            M[np.ix_(at, at)] += _inertia(np.concatenate([turn, u]), m, J)
    return M


def _position(nodes: Array, x: Element, xi: float) -> Array:
    return (1.0 - xi) * nodes[x.start] + xi * nodes[x.end]


def _sample(x: Element, xi: float, count: int) -> Array:
    """Turn and displacement (6, 6 n) of a point of an element."""
    u, turn, _ = x.shapes(xi)
    out = np.zeros((6, 6 * count))
    out[:, x.coordinates] = np.concatenate([turn, u])
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
    K: Array,
    basis: Array,
    places: Sequence[tuple[int, float, float]],
    last: int,
) -> Array:
    """S (lumps + 1, 3, m, m): second-order displacements, summed from the root along a tree.

    An element that closes a loop of others may end elsewhere than its last node, by a gap. The
    nodes then move by d, which has the least energy: K d + Σ K_e (0, gap) = 0 over these elements.
    """
    parts = [_bent(x, basis, 0.0, 1.0) for x in elements]
    at_node, left = {0: np.zeros_like(parts[0])}, list(range(len(elements)))
    closing = list[int]()
    while left:
        for e in [e for e in left if {elements[e].start, elements[e].end} & at_node.keys()]:
            x = elements[e]
            left.remove(e)
            if {x.start, x.end} <= at_node.keys():
                closing.append(e)
            elif x.start in at_node:
                at_node[x.end] = at_node[x.start] + parts[e]
            else:
                at_node[x.start] = at_node[x.end] - parts[e]
    gaps = {e: at_node[elements[e].end] - at_node[elements[e].start] - parts[e] for e in closing}
    moved = _compatible(K, elements, gaps, parts[0].shape[1:])
    out = list[Array]()
    for e, xi, _ in places:
        x = elements[e]
        part = at_node[x.start] + _bent(x, basis, 0.0, xi)
        if closing:
            strained = moved[x.coordinates]
            if e in gaps:
                strained[9:] += gaps[e]
            part = part + np.einsum("ij,jab->iab", x.shapes(xi)[0], strained)
        out.append(part)
    return np.stack([*out, at_node[last] + moved[6 * last + 3 : 6 * last + 6]])


def _compatible(
    K: Array, elements: Sequence[Element], gaps: dict[int, Array], shape: tuple[int, ...]
) -> Array:
    """Turns and displacements of the nodes (6 n, m, m) that close gaps with the least energy."""
    moved = np.zeros((len(K), *shape))
    if gaps:
        force = np.zeros_like(moved)
        for e, gap in gaps.items():
            force[elements[e].coordinates] -= np.tensordot(elements[e].stiffness()[:, 9:], gap, 1)
        flat = np.linalg.solve(K[6:, 6:], force[6:].reshape(len(K) - 6, -1))
        moved[6:] = flat.reshape(-1, *shape)
    return moved


def _bent(x: Element, basis: Array, start: float, stop: float) -> Array:
    """∫ ½ (β_a (β_b·e) + β_b (β_a·e)) - β_a·β_b e over a part of an element (3, m, m)."""
    total, e = np.zeros((3, basis.shape[1], basis.shape[1])), x.axes[0]
    for point, weight in zip(POINTS.tolist(), WEIGHTS.tolist(), strict=True):
        xi = start + 0.5 * (1.0 + point) * (stop - start)
        beta = x.shapes(xi)[2] @ basis[x.coordinates]
        along = np.einsum("ia,b->iab", beta, e @ beta)
        form = 0.5 * (along + np.swapaxes(along, 1, 2)) - np.einsum("i,ab->iab", e, beta.T @ beta)
        total += 0.5 * weight * (stop - start) * x.length * form
    return total
