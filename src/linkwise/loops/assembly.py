"""Assembly: joint positions at which loops are closed; loops closed while a mechanism moves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import count, generator, number, row
from linkwise.brief import counted
from linkwise.dynamics.inverse_kinematics.joints import SLACK
from linkwise.dynamics.kernels import check_mechanism
from linkwise.dynamics.velocity_space import holonomic
from linkwise.errors import ClosureError, ModelError, ShapeError
from linkwise.loops.assembly_search import Problem, Searches, problem, widened
from linkwise.loops.projection import CLOSED, ROUNDED
from linkwise.model.body import Loop, Node
from linkwise.model.hinges import Hinge, Locked
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats

EXACT = 1e-10
"""Errors [m or rad] of closed loops above this are mentioned."""

TOGETHER = 8
"""Searches from random positions that run side by side."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Assembly:
    """Joint positions at which loops are closed, or as nearly as was found.

    For one q0 the shapes are as said; for a batch all arrays have (batch,) in front, and
    `assembly[i]` is one of them.

    Attributes:
        q: Joint positions (nq,), within limits unless `limits` was False [m or rad].
        converged: Whether all loops are closed and all couplings hold ().
        position_error: Gap of each loop () [m], by its name.
        orientation_error: Angle by which each loop is open () [rad], by its name.
        coupling_error: Error of each coupling () [m or rad], by its name.
        loop_coordinates: θ of the hinge inside each loop (nq of the hinge,), by the loop's name.
        iterations: Steps of the search that found it ().
        starts: Number of searches (): the one at q0 and those from random positions.
        blocked: For each q0 the hinges whose limits prevent closing, or, without limits, those
            that are beyond them; a tuple of one for one.
        messages: For each q0 the result in words; a tuple of one for one.
    """

    q: Array
    converged: NDArray[np.bool_]
    position_error: dict[str, Array]
    orientation_error: dict[str, Array]
    coupling_error: dict[str, Array]
    loop_coordinates: dict[str, Array]
    iterations: NDArray[np.int64]
    starts: NDArray[np.int64]
    blocked: tuple[tuple[str, ...], ...]
    messages: tuple[str, ...]

    @property
    def message(self) -> str:
        """The result in words; for a batch, of the first that is open."""
        if self.q.ndim == 1:
            return self.messages[0]
        head = f"{int(self.converged.sum())} of {len(self)} closed"
        left = np.flatnonzero(~self.converged)
        return f"{head}; {left[0]}: {self.messages[left[0]]}" if len(left) else head

    def required(self) -> Array:
        """q, if all loops are closed.

        Raises:
            ClosureError: They are not; it says which, and by how much.
        """
        if not np.all(self.converged):
            raise ClosureError(self.message)
        return self.q

    def __len__(self) -> int:
        if self.q.ndim == 1:
            raise TypeError("this assembly is a single one, not a batch")
        return len(self.q)

    def __getitem__(self, i: int) -> Assembly:
        """One state of a batch."""
        i = row(i, None if self.q.ndim == 1 else len(self), "this assembly")
        return Assembly(
            self.q[i],
            self.converged[i],
            {name: error[i] for name, error in self.position_error.items()},
            {name: error[i] for name, error in self.orientation_error.items()},
            {name: error[i] for name, error in self.coupling_error.items()},
            {name: theta[i] for name, theta in self.loop_coordinates.items()},
            self.iterations[i],
            self.starts[i],
            (self.blocked[i],),
            (self.messages[i],),
        )

    def __iter__(self) -> Iterator[Assembly]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"<Assembly: {self.message}>"


def assemble(
    mech: Mechanism,
    q0: ArrayLike | None = None,
    *,
    hold: Mapping[str, ArrayLike] | Iterable[str] = (),
    limits: bool = True,
    tolerance: float = CLOSED,
    iterations: int = 200,
    restarts: int = 30,
    seed: int | np.random.Generator = 0,
) -> Assembly:
    """Joint positions at which all loops are closed and all couplings hold.

    Expression of a step:
        y = -(A* A + μ)⁻¹ A* e,   A the Jacobian of all loops with the coordinates of their hinges
    by the Levenberg-Marquardt method (`linkwise.loops.assembly_search`): from any q0, with
    redundant constraints, and always downhill.

    The search begins at q0, and usually ends near it. Where it ends with open loops, it
    begins again at random positions within the limits. Rolling balls are placed anywhere on their
    planes: whether they could roll there is not checked.

    A mechanism that cannot be assembled is not an error: `converged` is False, and `message` says
    which loop stays open by how much; `lw.loops.assemble(...).required()` gives q or raises.

    Args:
        q0: Where to begin (nq,), or (batch, nq) [m or rad]; default: neutral.
        hold: Hinges (by their names or their bodies') that do not move: with their coordinates,
            {"crank": 0.3}, or only named, at those of q0.
        limits: Whether the limits of the hinges apply, including those of loops.
        tolerance: Largest error of a row of the constraints that counts as closed [rad or m]. Up to
            1e-7 where no step reduces them count as well: numbers of a file have that many digits.
        iterations: Most steps of one search.
        restarts: Most further searches if the first one fails.

    Returns:
        An `Assembly`.

    Raises:
        UnknownNameError: A hinge that the mechanism does not have.
        ModelError: A held hinge outside of its limits, or options out of range.
        ShapeError: An array of the wrong shape.
    """
    check_mechanism(mech)
    tolerance = number(tolerance, "tolerance", above=0.0)
    most, again = count(iterations, "iterations", least=1), count(restarts, "restarts")
    start = mech.neutral() if q0 is None else mech.check_q(q0)
    if start.ndim > 2:
        raise ShapeError(f"q0 has shape {start.shape}; it must be ({mech.nq},) or (batch, nq).")
    rows, names = _held(mech, np.array(np.atleast_2d(start)), hold, limits=limits)
    setup = problem(holonomic(mech), names, limits=limits, tolerance=tolerance)
    begin = (
        setup.joints.within(widened(setup.mech, rows))
        if len(rows)
        else np.zeros((0, setup.joints.mech.nq))
    )
    best = setup.solve(begin, most)
    starts = np.ones(len(rows), dtype=np.int64)
    rng = generator(seed, stream=1989)
    from_start = np.ones(len(rows), dtype=np.int64)  # the start that led to the result
    for i in np.flatnonzero(~_closed(best)).tolist():
        starts[i], from_start[i] = _elsewhere(setup, best, i, begin[i], most, again, rng)
    left = np.flatnonzero(best.largest() > tolerance)
    if len(left):  # down to the very end
        _taken(best, left, setup.solve(best.q[left], most, slow=1e-9))
    assembly = _assembly(mech, setup, best, starts, from_start, most, limits=limits)
    return assembly[0] if start.ndim == 1 else assembly


def _held(
    mech: Mechanism, q: Array, hold: Mapping[str, ArrayLike] | Iterable[str], *, limits: bool
) -> tuple[Array, tuple[str, ...]]:
    """q (s, nq) with held hinges at their coordinates, and their names."""
    names = (hold,) if isinstance(hold, str) else tuple(hold)
    for name in names:
        part = mech.q_slice(name)
        if isinstance(hold, Mapping):
            value = floats(cast("Mapping[str, ArrayLike]", hold)[name], f"hold[{name!r}]")
            size = part.stop - part.start
            if value.shape not in ((), (size,)) or (value.ndim == 0 and size != 1):
                raise ShapeError(
                    f"hold[{name!r}] has shape {value.shape}; the hinge has {size} coordinates."
                )
            q[:, part] = value
        low, high = mech.lower[part], mech.upper[part]
        if limits and ((q[:, part] < low - SLACK) | (q[:, part] > high + SLACK)).any():
            raise ModelError(
                f"hinge {name!r} is to be held outside of its limits, {low} to {high}. Hold it "
                "within them, or pass limits=False."
            )
    mech.check_q(q)
    return q, names


def _closed(searches: Searches) -> NDArray[np.bool_]:
    error, tolerance = searches.largest(), searches.problem.tolerance
    rounding = searches.resting() & (error <= max(ROUNDED, tolerance))
    return (error <= tolerance) | rounding


def _elsewhere(
    setup: Problem,
    best: Searches,
    i: int,
    near: Array,
    iterations: int,
    restarts: int,
    rng: np.random.Generator,
) -> tuple[int, int]:
    """Searches for one q0 from random positions.

    Returns:
        The number of starts, including q0, and the one that led nearest.
    """
    done, nearest = 0, 1
    while done < restarts:
        count = min(TOGETHER, restarts - done)
        drawn = setup.joints.random(np.repeat(near[None], count, axis=0), rng)
        searches = setup.solve(drawn, iterations, first=True)
        j = int(np.lexsort((searches.sizes(), ~_closed(searches)))[0])
        if _taken(best, np.array([i]), searches, np.array([j])).any():
            nearest = 2 + done + j
        done += count
        if _closed(best)[i]:
            break
    return 1 + done, nearest


def _taken(
    best: Searches,
    at: NDArray[np.int64],
    others: Searches,
    which: NDArray[np.int64] | None = None,
) -> NDArray[np.bool_]:
    """Replace searches by others that ended nearer to closed; returns which were replaced."""
    rows = np.arange(len(at)) if which is None else which
    nearer = others.sizes()[rows] < best.sizes()[at]
    at, rows = at[nearer], rows[nearer]
    for name in ("q", "error", "boost", "tried", "idle"):
        getattr(best, name)[at] = getattr(others, name)[rows]
    return nearer


def _assembly(
    mech: Mechanism,
    setup: Problem,
    best: Searches,
    starts: NDArray[np.int64],
    from_start: NDArray[np.int64],
    iterations: int,
    *,
    limits: bool,
) -> Assembly:
    q, closed = best.q[:, : mech.nq], _closed(best)
    count = len(mech.loops)
    e, rows = best.error[:, : 6 * count].reshape(len(q), count, 6), best.error[:, 6 * count :]
    inside, at = dict[str, Array](), mech.nq
    for loop in mech.loops:
        inside[loop.name] = best.q[:, at : at + loop.hinge.nq]
        at += loop.hinge.nq
    turned, apart = np.linalg.norm(e[..., :3], axis=-1), np.linalg.norm(e[..., 3:], axis=-1)
    loops, couplings = [x.name for x in mech.loops], [x.name for x in mech.couplings]
    blocked = list[tuple[str, ...]]()
    messages = list[str]()
    for i in range(len(q)):
        names = _in_the_way(setup, best, i, closed=bool(closed[i]), limits=limits)
        freed = False
        if not closed[i] and limits and names:
            freed = bool(_closed(setup.unlimited().solve(best.q[i : i + 1], iterations))[0])
        blocked.append(names)
        errors = [(f"loop {x!r}", apart[i, j], turned[i, j]) for j, x in enumerate(loops)]
        errors += [(f"coupling {x!r}", abs(rows[i, j]), 0.0) for j, x in enumerate(couplings)]
        words = _open(errors, setup.length, setup.tolerance)
        where = "at a limit" if limits else "beyond limits"
        off = float(best.largest()[i])
        begun = int(starts[i]), int(from_start[i])
        text = _message(closed[i], best.tried[i], begun, words, names, where, freed)
        if closed[i] and off > max(setup.tolerance, EXACT):
            text += f"; its numbers leave {off:.2g} m or rad"
        messages.append(text)
    return Assembly(
        q,
        closed,
        {name: apart[:, j] for j, name in enumerate(loops)},
        {name: turned[:, j] for j, name in enumerate(loops)},
        {name: np.abs(rows[:, j]) for j, name in enumerate(couplings)},
        inside,
        best.tried,
        starts,
        tuple(blocked),
        tuple(messages),
    )


def _in_the_way(
    setup: Problem, best: Searches, i: int, *, closed: bool, limits: bool
) -> tuple[str, ...]:
    """Hinges at a limit while loops are open; without limits, those beyond them."""
    mech, q = setup.joints.mech, best.q[i]
    if not limits:
        return setup.joints.names((q < mech.lower - SLACK) | (q > mech.upper + SLACK))
    return () if closed else setup.joints.names(setup.joints.at_limit(q[None])[0])


def _open(errors: list[tuple[str, float, float]], length: float, tolerance: float) -> str:
    """What stays open by how much, the worst first."""
    left = [x for x in errors if max(x[1], x[2]) > max(tolerance, ROUNDED)]
    left.sort(key=lambda x: -(x[1] + length * x[2]))
    parts = list[str]()
    for what, apart, turned in left[:3]:
        # Only the larger part: searches that end with open loops leave 1e-4 of the other.
        sizes = [f"{apart:.3g} m"] if apart > 1e-3 * length * turned else []
        sizes += [f"{turned:.3g} rad"] if length * turned > 1e-3 * apart else []
        parts.append(f"{what} stays open by {' and '.join(sizes)}")
    return ", ".join(parts) + (f", and {len(left) - 3} more" if len(left) > 3 else "")


def _message(
    closed: bool,
    steps: int,
    begun: tuple[int, int],
    words: str,
    names: tuple[str, ...],
    where: str,
    freed: bool,
) -> str:
    at = ", ".join(repr(name) for name in names)
    starts, nearest = begun
    if closed:
        text = f"closed in {counted(steps, 'step')}"
        if nearest > 1:
            text += f" from start {nearest}, at random; the start at q0 did not converge"
        return text + (f"; {at} {where}" if at else "")
    if freed:
        which = "limit" if len(names) == 1 else "limits"
        return f"blocked by the {which} of {at}: without limits it can be closed; {words}"
    tried = f"not closed from {counted(starts, 'start')}: {words}"
    return tried + (f", with {at} {where}" if at else "")


def close_loop(
    mech: Mechanism,
    q: ArrayLike,
    name: str,
    node_a: str,
    node_b: str,
    hinge: Hinge | None = None,
) -> Mechanism:
    """The mechanism with one more loop, closed with its two nodes where they are at q.

    A new node on the body of `node_b`, named after the loop, is placed at `node_a`, so there is no
    gap: nothing moves at that instant. Velocities may jump: where the two nodes approach each
    other, `project_velocity` of the new mechanism gives those after the impact, which conserves
    momentum. `mech.without(name)` opens the loop again.

    Args:
        mech: The mechanism; its coordinates stay the same.
        q: Joint positions (nq,) at which the loop is closed [m or rad].
        name: The loop's name, which must be new.
        node_a: A node or body.
        node_b: Another, on another body.
        hinge: The hinge between them, which is at neutral at q; default: `Locked()`.

    Raises:
        ModelError: Not a mechanism, the name is taken, or both nodes are on one body.
        UnknownNameError: A node that the mechanism does not have.
    """
    check_mechanism(mech)
    q = mech.check_q(q)
    if q.ndim != 1:
        raise ModelError(f"a loop is closed at one configuration; q has the shape {q.shape}.")
    if name in {x.name for x in mech.loops} | {*mech.node_index, *mech.body_index}:
        raise ModelError(
            f"loop {name!r} cannot be added to {mech.name!r}: it has a loop, node or body of that "
            "name. Choose another one."
        )
    a, b = mech.node(node_a), mech.node(node_b)
    if a.body == b.body:
        raise ModelError(
            f"loop {name!r} would join {node_a!r} and {node_b!r}, which are both on {a.body!r}; "
            "a loop joins two bodies, or a body and the world."
        )
    X_ba = mech.pose(q, node_b).inverse() @ mech.pose(q, node_a)
    new = Node(name, b.body, b.pose @ X_ba)
    loop = Loop(name, node_a, name, Locked() if hinge is None else hinge)
    return replace(mech, nodes=(*mech.nodes, new), loops=(*mech.loops, loop))
