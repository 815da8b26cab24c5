"""A mechanism in independent velocities, with its loops and couplings built in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.dynamics.closure import constraint_error, constraint_jacobian
from linkwise.dynamics.kernels import check_mechanism
from linkwise.errors import ClosureError, ModelError
from linkwise.loops.embedding.choice import dependent
from linkwise.loops.embedding.grouping import groups, tied_by_coupling, tied_by_loop
from linkwise.model import closure
from linkwise.model.body import Coupling, Loop
from linkwise.model.embedded import Aggregate, Embedded
from linkwise.model.hinges import Hinge
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

OPEN = 1e-6
"""How far loops and couplings may be from closed [rad or m] where velocities are chosen."""


def embed(
    mech: Mechanism,
    *,
    at: ArrayLike | None = None,
    independent: str | Sequence[str] = (),
) -> Embedded:
    """The mechanism in minimal coordinates: its loops and couplings are built into a tree.

    Expression:
        v = 𝒳 u,   mass_r = 𝒳* 𝓜 𝒳,   and for the tree of aggregate bodies again
        mass_r = H φ M φ* H*,   u̇ = mass_r⁻¹ (𝒳* τ − C_r),   J_r = B* φ* H*
    Source: jain2012embedding; chignoli2023loops for couplings and clusters of bodies.
    Departs: 𝒳 is found by least squares, so that redundant rows are allowed; rotors behind hinges
    that follow others are part of it (𝒳* N 𝒳 and 𝒳* N 𝔵).

    Bodies that a loop or a coupling ties together become one aggregate body. The result is given
    to the everyday functions in place of a mechanism: `lw.forward_dynamics(embedded, q, u, tau_r)`,
    `lw.mass_matrix(embedded, q)`, `lw.jacobian(embedded, q, "hand")`, `lw.compile(expr, embedded)`.
    They are recursive as for any tree: linear in the number of aggregates, and cubic in the loops
    of one aggregate. A loop that goes through the whole mechanism makes one aggregate of all of it,
    which is right but not quick.

    Args:
        at: A configuration (nq,) in which loops and couplings hold; there it is found which
            velocities follow from which. By default the neutral one. It must not be singular.
        independent: Names of hinges, or of single velocities, that shall be independent. By default
            those near the base are, as far as they determine all others.

    Raises:
        ClosureError: Loops or couplings do not hold at that configuration; or the named velocities
            do not determine the others.
        ModelError: A loop's hinge whose free directions are no formula in the pose of its nodes, or
            a coupling of a coordinate that is no velocity's own.
    """
    check_mechanism(mech)
    if isinstance(mech, Embedded):
        return mech
    for loop in mech.loops:
        if not closure.is_traceable(loop):
            raise ModelError(
                f"loop {loop.name!r} is a {loop.hinge.kind} hinge, whose free directions are no "
                "formula in the pose of its nodes. Pin, prismatic, cylindrical, spherical, planar, "
                "universal and locked ones can be embedded; lw.loops.constrained_forward_dynamics "
                "takes "
                "all."
            )
    q = mech.neutral() if at is None else mech.check_q(at)
    if q.ndim != 1:
        raise ModelError(f"at has shape {q.shape}; one configuration ({mech.nq},) is wanted.")
    _check_closed(mech, q)
    named = _entries(mech, independent)
    J_c = constraint_jacobian(mech, q)
    return Embedded(mech, tuple(_aggregate(mech, x, J_c, named) for x in groups(mech)))


def _check_closed(mech: Mechanism, q: Array) -> None:
    error = np.abs(constraint_error(mech, q))
    if error.size and float(error.max()) > OPEN:
        name = closure.constraint_names(mech)[int(np.argmax(error))]
        raise ClosureError(
            f"the loops and couplings of {mech.name!r} do not hold where its velocities shall be "
            f"parted: {name} is off by {float(error.max()):.2g} rad or m. Give at=, a "
            "configuration in which they do; lw.loops.assemble finds one."
        )


def _entries(mech: Mechanism, names: str | Sequence[str]) -> set[int]:
    """Entries of v that are named by their hinges, or one by one."""
    found = set[int]()
    for name in (names,) if isinstance(names, str) else names:
        if name in mech.velocity_names:
            found.add(mech.velocity_names.index(name))
        else:
            where = mech.v_slice(name)
            found |= set(range(where.start, where.stop))
    return found


def _aggregate(mech: Mechanism, bodies: list[int], J_c: Array, named: set[int]) -> Aggregate:
    inside = set(bodies)
    loops = tuple(x for x in mech.loops if tied_by_loop(mech, x) <= inside)
    couplings = tuple(c for c in mech.couplings_in_order if tied_by_coupling(mech, c) <= inside)
    entries = [i for k in bodies for i in range(mech.v_start[k], mech.v_start[k + 1])]
    place = {int(i): j for j, i in enumerate(entries)}
    coupled = tuple(place[_follows(mech, c)] for c in couplings)
    taken = sorted(named & {entries[j] for j in coupled})
    if taken:
        raise ModelError(
            f"{mech.velocity_names[taken[0]]!r} was named as independent, but a coupling makes it "
            "follow others. Name those."
        )
    free = [j for j in range(len(entries)) if j not in coupled]
    bound = list[int]()
    names = [mech.bodies[k].name for k in bodies]
    if loops:
        G = _loop_rows(mech, loops, J_c, entries) @ _followed(
            mech, couplings, coupled, J_c, entries
        )
        may_follow = [j for j in free if entries[j] not in named]
        bound = dependent(G, free, may_follow, f"the bodies {', '.join(names[:6])}")
    return Aggregate(
        name=" + ".join(names),
        bodies=tuple(bodies),
        parent=int(mech.parent[bodies[0]]),
        inner=tuple(bodies.index(p) if p in inside else -1 for p in mech.parent[bodies].tolist()),
        velocities=tuple(int(i) for i in entries),
        coupled=coupled,
        independent=tuple(j for j in free if j not in bound),
        dependent=tuple(bound),
        couplings=couplings,
        loops=loops,
    )


def _follows(mech: Mechanism, coupling: Coupling) -> int:
    """The entry of v that follows by a coupling."""
    index = mech.coordinate(coupling.dependent)
    k = int(np.searchsorted(mech.q_start, index, side="right")) - 1
    hinge = mech.bodies[k].hinge
    if type(hinge).qdot is not Hinge.qdot:
        raise ModelError(
            f"coupling {coupling.name!r} makes {coupling.dependent!r} follow, one of the "
            f"coordinates of a {hinge.kind} hinge whose velocities are not their rates: no "
            "velocity can be told to follow. Couple coordinates of hinges like pins and sliders."
        )
    return int(mech.v_start[k]) + index - int(mech.q_start[k])


def _loop_rows(
    mech: Mechanism, loops: tuple[Loop, ...], J_c: Array, entries: Sequence[int]
) -> Array:
    rows, at = list[int](), 0
    for loop in mech.loops:
        if loop in loops:
            rows += range(at, at + loop.rows)
        at += loop.rows
    return J_c[np.ix_(rows, entries)]


def _followed(
    mech: Mechanism,
    couplings: tuple[Coupling, ...],
    coupled: tuple[int, ...],
    J_c: Array,
    entries: Sequence[int],
) -> Array:
    """v by the couplings alone: v_d = -Σ Y_j v_j from rows Y with 1 at d."""
    X_c, first = np.eye(len(entries)), sum(loop.rows for loop in mech.loops)
    for coupling, d in zip(couplings, coupled, strict=True):
        row = J_c[first + mech.couplings.index(coupling), entries].copy()
        row[d] = 0.0
        X_c[d] = -row @ X_c
    return X_c
