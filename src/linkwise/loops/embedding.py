"""Constraint embedding: a mechanism in independent velocities, its loops and couplings built in.

Bodies that loops and couplings tie together become aggregate bodies of a tree. A loop ties the
bodies on both its sides, from its nodes up to the body from which the two sides branch off, which
stays outside. A coupling ties the bodies of its hinges, with all between them up to the last body
that all of them hang on. Sets that share a body are united: then the parents of a set are in it, or
are one and the same body outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from linkwise.dynamics.closure import constraint_error, constraint_jacobian
from linkwise.dynamics.kernels import check_mechanism
from linkwise.errors import ClosureError, ModelError
from linkwise.model import closure
from linkwise.model.body import Coupling, Loop
from linkwise.model.embedded import Aggregate, Embedded
from linkwise.model.hinges import Hinge
from linkwise.model.lumps import of_rigid_parts, rigid_parts
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.model.state import split_coordinate
from linkwise.pipeline import compile
from linkwise.spatial.array import Array, ArrayLike
from linkwise.sweeps.aggregate_motion import common, fork, path
from linkwise.sweeps.embedded_expression import MOTIONS

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel

OPEN = 1e-6
"""Largest error of loops and couplings [rad or m] where velocities are selected."""

CLEAR = 0.1
"""A velocity follows from the loops if at least this part of its effect on them is independent."""

ROUNDING = 1e-9
"""Singular values below this part of the largest count as zero."""


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
    which is right but not fast. The lumps of a flexible body become bodies of an aggregate, whose
    coordinates `lw.flexible.separate_q` gives.

    Args:
        at: A configuration (nq,) in which loops and couplings hold, where the independent
            velocities are selected; default: the neutral one. It must not be singular.
        independent: Names of hinges, or of single velocities, that shall be independent; default:
            those near the base, as far as they determine all others.

    Raises:
        ClosureError: Loops or couplings do not hold at that configuration; or the named velocities
            do not determine the others.
        ModelError: A loop's hinge without a formula for its free directions in the pose of its
            nodes, or a coupling of a coordinate whose rate is not a velocity.
    """
    check_mechanism(mech)
    if isinstance(mech, Embedded):
        return mech
    if mech.flexible:
        given = None if at is None else np.asarray(at, dtype=np.float64)
        if given is not None and given.shape == (mech.nq,):
            given = of_rigid_parts(mech, given)
        return embed(rigid_parts(mech), at=given, independent=independent)
    for loop in mech.loops:
        if not closure.is_traceable(loop):
            raise ModelError(
                f"loop {loop.name!r} is a {loop.hinge.kind} hinge, whose free directions have no "
                "formula in the pose of its nodes. Pin, prismatic, cylindrical, spherical, planar, "
                "universal and locked ones can be embedded; lw.forward_dynamics takes all."
            )
    q = mech.neutral() if at is None else mech.check_q(at)
    if q.ndim != 1:
        raise ModelError(f"at has shape {q.shape}; it must be one configuration ({mech.nq},).")
    _check_closed(mech, q)
    named = _entries(mech, independent)
    J_c = constraint_jacobian(mech, q)
    return Embedded(mech, tuple(_aggregate(mech, x, J_c, named) for x in groups(mech)))


def _check_closed(mech: Mechanism, q: Array) -> None:
    error = np.abs(constraint_error(mech, q))
    if error.size and float(error.max()) > OPEN:
        name = closure.constraint_names(mech)[int(np.argmax(error))]
        raise ClosureError(
            f"the loops and couplings of {mech.name!r} do not hold where its independent "
            f"velocities are selected: {name} is off by {float(error.max()):.2g} rad or m. Give "
            "at=, a configuration in which they do; lw.loops.assemble finds one."
        )


def _entries(mech: Mechanism, names: str | Sequence[str]) -> set[int]:
    """Entries of v that are named by their hinges, or one by one."""
    entries = set[int]()
    for name in (names,) if isinstance(names, str) else names:
        if name in mech.velocity_names:
            entries.add(mech.velocity_names.index(name))
        else:
            where = mech.v_slice(name)
            entries |= set(range(where.start, where.stop))
    return entries


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
            "velocity can follow. Couple coordinates of hinges like pins and sliders."
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


def dependent(G: Array, free: Sequence[int], may_follow: Sequence[int], what: str) -> list[int]:
    """The columns of G (rows, n) that follow from all others by G w = 0.

    Those of hinges far from the base are taken first, as long as each is clearly independent of
    those taken before; then the most independent ones.

    Args:
        G: The rows of the loops.
        free: Columns that matter.
        may_follow: Those of them that may be taken.
        what: Their owner, for a message.
    """
    rank = _rank(G[:, list(free)])
    largest = max((float(np.linalg.norm(G[:, j])) for j in free), default=0.0)
    chosen, left = list[int](), np.array(G, dtype=np.float64)
    for j in reversed(may_follow):
        size = float(np.linalg.norm(left[:, j]))
        before = float(np.linalg.norm(G[:, j]))
        if len(chosen) < rank and size > CLEAR * max(before, CLEAR * largest):
            _take(chosen, left, j)
    while len(chosen) < rank:
        sizes = [float(np.linalg.norm(left[:, j])) for j in may_follow]
        best = int(np.argmax(sizes)) if sizes else -1
        if best < 0 or sizes[best] <= ROUNDING * largest:
            raise ClosureError(
                f"{what} have {len(free) - rank} independent velocities at this configuration, and "
                "those that were named do not determine the others. Name others, or fewer."
            )
        _take(chosen, left, may_follow[best])
    return sorted(chosen)


def _take(chosen: list[int], left: Array, j: int) -> None:
    """Take column j, and remove its part from all others."""
    unit = left[:, j] / np.linalg.norm(left[:, j])
    left -= np.outer(unit, unit @ left)
    left[:, j] = 0.0
    chosen.append(j)


def _rank(G: Array) -> int:
    if not G.size:
        return 0
    values = np.linalg.svd(G, compute_uv=False)
    return int((values > ROUNDING * values[0]).sum()) if values[0] > 0.0 else 0


# -------------------------------------------------------------------------------- sets of bodies


def tied_by_loop(mech: Mechanism, loop: Loop) -> set[int]:
    """The bodies on both sides of a loop."""
    above, bodies = fork(mech, loop), set[int]()
    for node in (loop.node_a, loop.node_b):
        bodies |= set(path(mech, mech.body_index[mech.node(node).body], above))
    if not bodies:
        raise ModelError(
            f"loop {loop.name!r} of {mech.name!r} joins two nodes of one body: nothing can move "
            "it. Remove the loop before its mechanism is embedded."
        )
    return bodies


def tied_by_coupling(mech: Mechanism, coupling: Coupling) -> set[int]:
    """The bodies of the hinges of a coupling, and those between them."""
    names = [coupling.dependent, *(name for name, _ in coupling.terms)]
    hinges = [split_coordinate(name, mech.hinge_index)[0] for name in names]
    bodies = [mech.hinge_index[hinge] for hinge in hinges]
    above = common(mech, [int(mech.parent[k]) for k in bodies])
    return {j for k in bodies for j in path(mech, k, above)}


def groups(mech: Mechanism) -> list[list[int]]:
    """All bodies in sets that move together, each base first, ordered by their first bodies."""
    sets = [tied_by_loop(mech, loop) for loop in mech.loops]
    sets += [tied_by_coupling(mech, coupling) for coupling in mech.couplings]
    leader = list(range(mech.n_bodies))
    for bodies in sets:
        _unite(leader, sorted(bodies))
    united: dict[int, list[int]] = {}
    for k in range(mech.n_bodies):
        united.setdefault(_leader(leader, k), []).append(k)
    return list(united.values())


def _unite(leader: list[int], bodies: Sequence[int]) -> None:
    first = min(_leader(leader, k) for k in bodies)
    for k in bodies:
        leader[_leader(leader, k)] = first


def _leader(leader: list[int], k: int) -> int:
    """The first body of the set that body k is in."""
    while leader[k] != k:
        leader[k] = leader[leader[k]]
        k = leader[k]
    return k


# ------------------------------------------------------------------------------------ velocities


def full_velocity(embedded: Embedded, q: ArrayLike, u: ArrayLike) -> Array:
    """All joint velocities v = 𝒳 u of a mechanism, from the independent ones.

    Args:
        q: Joint positions (nq,) or (batch, nq) [m or rad] in which they hold.
        u: Independent velocities (nv,) or (batch, nv) [m/s or rad/s].

    Returns:
        (mech.nv,) or (batch, mech.nv), as the mechanism orders them.
    """
    return _in_place(embedded, _kernel(embedded, "full_velocity")(q, u))


def full_acceleration(embedded: Embedded, q: ArrayLike, u: ArrayLike, udot: ArrayLike) -> Array:
    """All joint accelerations v̇ = 𝒳 u̇ + 𝔵 of a mechanism, from the independent ones.

    Args:
        q: Joint positions (nq,) or (batch, nq) [m or rad] in which they hold.
        u: Independent velocities (nv,) or (batch, nv) [m/s or rad/s].
        udot: Independent accelerations (nv,) or (batch, nv).

    Returns:
        (mech.nv,) or (batch, mech.nv), as the mechanism orders them.
    """
    kernel = _kernel(embedded, "full_acceleration")
    given = {"q": q, "v": u, "vdot": udot}
    return _in_place(embedded, kernel(*[given[name] for name in kernel.arguments]))


def independent_force(embedded: Embedded, q: ArrayLike, tau: ArrayLike) -> Array:
    """τ_r = 𝒳* τ: the effect of forces of all hinges on the independent velocities.

    Args:
        q: Joint positions (nq,) or (batch, nq) [m or rad] in which they hold.
        tau: Forces of all hinges (mech.nv,) or (batch, mech.nv) [N or N m].

    Returns:
        (nv,) or (batch, nv).
    """
    _check(embedded)
    tau = embedded.mech.check_v(tau, "tau")
    return _kernel(embedded, "independent_force")(q, tau[..., embedded.order])


def independent_velocity(embedded: Embedded, v: ArrayLike) -> Array:
    """u: the independent ones of all joint velocities.

    Args:
        v: All joint velocities (mech.nv,) or (batch, mech.nv) [m/s or rad/s].
    """
    _check(embedded)
    return embedded.mech.check_v(v)[..., embedded.independent]


def _check(embedded: object) -> None:
    if not isinstance(embedded, Embedded):
        raise ModelError(
            f"embedded is a {type(embedded).__name__}; it must be an embedded mechanism, which "
            "lw.loops.embed makes."
        )


@once_per_mechanism
def _kernel(embedded: Embedded, name: str) -> Kernel:
    _check(embedded)
    return compile(MOTIONS[name], embedded)


def _in_place(embedded: Embedded, values: Array) -> Array:
    """From the order of the aggregates to that of the mechanism."""
    out = np.empty_like(values)
    out[..., embedded.order] = values
    return out
