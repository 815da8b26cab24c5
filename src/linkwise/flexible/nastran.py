"""Flexible bodies from Nastran: a bulk data file and the eigenvectors of its modal analysis.

The model gives places and masses of the grid points: equal parts of the mass of each element at its
points, and CONM2 with their inertias. The result file gives the modes Π of each
point and their eigenvalues λ; with the masses m of the points, K = λ Σ Π* m Π. Both are in SI units
and in the basic coordinate system.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.arguments import count, number
from linkwise.errors import MissingExtraError, ModelError, ParseError
from linkwise.flexible.flexible_body import FlexibleBody
from linkwise.spatial.array import Array

MASSLESS = ("CELAS", "CDAMP", "CBUSH", "CVISC", "CGAP", "CFAST", "GENEL", "PLOTEL")
"""Springs, dampers, connectors and drawn lines have no mass."""

HELD = 1e-6
"""Largest motion of the root in a mode, as a part of the largest of all points."""


def load_nastran(
    model: str | Path,
    results: str | Path,
    *,
    root: int,
    tip: int,
    points: Sequence[int] | None = None,
    modes: int | None = None,
    damping: float = 0.0,
    subcase: int | None = None,
) -> FlexibleBody:
    """A flexible body from a modal analysis of Nastran (SOL 103), clamped at its root.

    The extra `nastran` (pyNastran) reads both files. They are in SI units; grid points have the
    basic coordinate system as their displacement system. A result file has no displacements of
    second order: a body that spins fast needs them (`FlexibleBody.second`).

    Args:
        model: The bulk data file (.bdf, .dat): GRID, elements with mass, CONM2.
        results: The binary results (.op2) with eigenvectors.
        root: The grid point that is clamped: the reference frame, with the basic axes.
        tip: The grid point that carries other bodies.
        points: Grid points that get the masses of all, each that of the points nearest to it;
            default: all with mass. Fewer points make faster kernels.
        modes: How many, the lowest; default: all in the file.
        damping: Of each mode, as a part of critical damping.
        subcase: Which; default: the only one.

    Raises:
        MissingExtraError: pyNastran is not installed.
        ParseError: A file cannot be read, or lacks eigenvectors or grid points.
        ModelError: The root moves in a mode, or displacements are in another system.
    """
    try:
        BDF: Any = import_module("pyNastran.bdf.bdf").BDF  # noqa: N806
        OP2: Any = import_module("pyNastran.op2.op2").OP2  # noqa: N806
    except ImportError as problem:
        what = "lw.flexible.load_nastran"
        raise MissingExtraError(what, package="pyNastran", extra="nastran") from problem
    bulk: Any = BDF(debug=None)
    output: Any = OP2(debug=None)
    _read(model, lambda path: bulk.read_bdf(path, punch=None, xref=True))
    _read(results, lambda path: output.read_op2(path, build_dataframe=False))
    cases: dict[int, Any] = dict(output.eigenvectors)
    if not cases or (subcase is not None and subcase not in cases):
        known = ", ".join(str(x) for x in cases) or "none"
        reason = f"it has no eigenvectors of subcase {subcase or 'any'}; subcases: {known}."
        raise ParseError(reason, file=str(results))
    if subcase is None and len(cases) > 1:
        raise ModelError(f"{results} has subcases {', '.join(map(str, cases))}; name one of them.")
    vectors = cases[next(iter(cases)) if subcase is None else subcase]
    ids = [int(x) for x in vectors.node_gridtype[:, 0]]
    for what, point in (("root", root), ("tip", tip)):
        if point not in ids or point not in bulk.nodes:
            raise ModelError(f"{what} is grid point {point}, which the files do not have.")
    moved = [i for i in ids if i in bulk.nodes and bulk.nodes[i].Cd() != 0]
    if moved:
        raise ModelError(
            f"grid point {moved[0]} has displacement system {bulk.nodes[moved[0]].Cd()}; write the "
            "results in the basic system (CD = 0)."
        )
    total = len(vectors.eigns)
    chosen = total if modes is None else count(modes, "modes", least=1, most=total)
    # T1 ... R3 of pyNastran are displacement, then turn.
    shapes = np.asarray(vectors.data, dtype=np.float64)[:chosen]
    Pi = np.transpose(shapes[:, :, [3, 4, 5, 0, 1, 2]], (1, 2, 0))
    largest = np.abs(Pi[:, 3:]).max(axis=(0, 1))
    if (np.abs(Pi[ids.index(root)]).max(axis=0) > HELD * largest).any():
        raise ModelError(
            f"the root, grid point {root}, moves in the modes; clamp it (SPC1) in the analysis."
        )
    masses, inertias = _masses(bulk, ids)
    places = np.array([bulk.nodes[i].get_position() for i in ids]) - bulk.nodes[root].get_position()
    kept = [ids.index(i) for i in points] if points is not None else _carriers(masses, inertias)
    kept = [ids.index(root), *(i for i in kept if ids[i] not in (root, tip)), ids.index(tip)]
    masses, inertias = _gathered(masses, inertias, places, kept)
    body = FlexibleBody(
        places[kept], Pi[kept], np.ones(chosen), masses[kept], inertias[kept], None, None, -1
    )
    mass = np.diag(body.modal_mass)
    stiffness = np.asarray(vectors.eigns, dtype=np.float64)[:chosen] * mass
    ratio = number(damping, "damping", least=0.0)
    given = (body.positions, body.modes, stiffness, body.masses, body.inertias)
    rubbed = 2.0 * ratio * np.sqrt(np.maximum(stiffness * mass, 0.0))
    return FlexibleBody(*given, rubbed, None, -1).normalised()


def _read(path: str | Path, read: Callable[[str], object]) -> None:
    file = Path(path).expanduser()
    if not file.is_file():
        raise ParseError("the file does not exist.", file=str(file))
    try:
        read(str(file))
    except Exception as problem:  # whatever pyNastran raises about a file
        raise ParseError(f"pyNastran cannot read it: {problem}", file=str(file)) from problem


def _masses(bulk: Any, ids: list[int]) -> tuple[Array, Array]:
    """Masses (n,) and inertias (n, 3, 3) of the grid points."""
    index = {point: i for i, point in enumerate(ids)}
    masses, inertias = np.zeros(len(ids)), np.zeros((len(ids), 3, 3))
    for element in bulk.elements.values():
        try:
            mass = float(element.Mass())
        except (AttributeError, NotImplementedError) as problem:
            if element.type.startswith(MASSLESS):
                continue
            raise ModelError(
                f"pyNastran cannot say what {element.type} {element.eid} weighs. Give its mass as "
                "CONM2 at its grid points, and leave the element out."
            ) from problem
        ends = [i for i in element.node_ids if i in index]
        for i in ends:
            masses[index[i]] += mass / len(ends)
    for element in bulk.masses.values():
        if element.type != "CONM2" or element.nid not in index:
            raise ModelError(f"{element.type} {element.eid}: masses must be CONM2 at grid points.")
        if np.any(element.X) or element.Cid() != 0:
            raise ModelError(f"CONM2 {element.eid} is away from its point; give it a point there.")
        masses[index[element.nid]] += float(element.mass)
        inertias[index[element.nid]] += np.asarray(element.Inertia())
    return masses, inertias


def _carriers(masses: Array, inertias: Array) -> list[int]:
    return [i for i in range(len(masses)) if masses[i] > 0.0 or inertias[i].any()]


def _gathered(
    masses: Array, inertias: Array, places: Array, kept: list[int]
) -> tuple[Array, Array]:
    """Masses and inertias of all points at the nearest of those that are kept."""
    new_masses, new_inertias = np.zeros_like(masses), np.zeros_like(inertias)
    for i in range(len(masses)):
        home = kept[int(np.argmin(np.linalg.norm(places[kept] - places[i], axis=1)))]
        new_masses[home] += masses[i]
        new_inertias[home] += inertias[i]
    return new_masses, new_inertias
