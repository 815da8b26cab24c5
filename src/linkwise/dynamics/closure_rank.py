"""Configurations in which loops are singular: fewer rows of J_c are independent than nearby.

There a mechanism may go on in several ways, and its accelerations are not unique. Rows that are
redundant everywhere are no such trouble, so the rank at a state is compared with the rank at
configurations a little away, along the velocities that are left, with loops closed again.

Rank is what the dynamics sees of it: with A = J_c 𝓜⁻¹ J_c*, the pivots of A that are above
rounding, each as a part of its diagonal entry (`linkwise.codegen.scalar.closure_solve`). The rank
around the first state is part of the kernel of forward dynamics; a state with another one is looked
at.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen.scalar import status as trouble
from linkwise.codegen.scalar.closure_solve import EMPTY, INDEPENDENT
from linkwise.dynamics.closure import closure_nodes, constraint_sizes, error_at
from linkwise.dynamics.closure_kernels import closed_kernel, program_of, relative_poses, run
from linkwise.dynamics.kernels import acting, one_state
from linkwise.dynamics.quantity import Frame
from linkwise.dynamics.velocity_space import VelocitySpace, velocity_spaces
from linkwise.errors import LinkwiseError, RankWarning, caller
from linkwise.model import closure
from linkwise.model.islands import alike, alone, islands
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.sweeps.interpret import interpreted

NEARBY = 0.05
"""How far configurations are that ranks are compared with [rad, or of the mechanism's length]."""

COUNT = 6
"""How many there are."""

CLOSED = 1e-10
"""Loops that are open by less [rad or m] are closed."""

EXACT = 1e-14
"""Loops that are open by less [rad or m] cannot be closed any better."""

ROUNDS = 12
"""Most steps of Newton's method by which loops are closed again."""


def ranks(mech: Mechanism, q: Array, *, compiled: bool = True) -> NDArray[np.int64]:
    """How many rows are independent in states q (batch, nq), as the dynamics sees it (batch,)."""
    if compiled:
        A = run(mech, "closure_inertia_inverse", {"q": q})
    else:
        A = np.array([_resistance(mech, state) for state in q])
    size = np.diagonal(A, axis1=-2, axis2=-1)
    mass = mech.total_mass
    least = EMPTY[8] * (size.mean(axis=-1, keepdims=True) + (1.0 / mass if mass > 0.0 else 0.0))
    size, left = size + least, A.copy()
    found = np.zeros(len(A), np.int64)
    for j in range(A.shape[-1]):
        pivot = left[:, j, j].copy()
        counts = pivot > INDEPENDENT * size[:, j]
        found += counts
        column = np.where(counts[:, None], left[:, :, j], 0.0)
        left -= (
            column[:, :, None] * column[:, None, :] / np.where(counts, pivot, 1.0)[:, None, None]
        )
    return found


def _resistance(mech: Mechanism, q: Array) -> Array:
    """A = J_c 𝓜⁻¹ J_c* (m, m), out of the program of forward dynamics."""
    program = program_of(mech, "constrained_forward_dynamics")
    still = np.zeros(mech.nv)
    found = interpreted(program, mech, q, still, nodes=closure_nodes(mech), values={"tau": still})
    found.result()
    (matrix,) = [s.reads[0][0] for s in program.statements if s.special == "dense_solve"]
    return np.concatenate(found.blocks_of(matrix))


def nearby(mech: Mechanism, q: Array, *, compiled: bool = True) -> Array:
    """Configurations (n, nq) with closed loops around q (nq,), along velocities that are left."""

    def spaces(states: Array) -> list[VelocitySpace]:
        if compiled:
            return velocity_spaces(mech, states)
        program, nodes = program_of(mech, "constraint_jacobian"), closure_nodes(mech)
        J_c = np.array([interpreted(program, mech, x, nodes=nodes).result() for x in states])
        return velocity_spaces(mech, states, jacobians=J_c)

    def missing(states: Array) -> Array:
        return error_at(mech, states, relative_poses(mech, states, compiled=compiled))

    (space,) = spaces(q[None])
    free = space.free
    if not free.shape[1]:
        return np.zeros((0, mech.nq))
    rng = np.random.default_rng(1992)
    way = rng.standard_normal((COUNT, free.shape[1]))
    way *= NEARBY / np.abs(way).max(axis=1, keepdims=True)
    states = mech.integrate(np.broadcast_to(q, (COUNT, mech.nq)), way @ free.T)
    for _ in range(ROUNDS):
        error = missing(states)
        if np.abs(error).max(initial=0.0) < EXACT:
            return states
        back = [x.answer(e) for x, e in zip(spaces(states), error, strict=True)]
        states = mech.integrate(states, -np.array(back))
    off = np.abs(missing(states)).max(axis=-1)
    return states[off < CLOSED]


def rank_nearby(mech: Mechanism, q: Array, *, compiled: bool = True) -> int:
    """The largest rank in configurations with closed loops around q (nq,)."""
    here = int(ranks(mech, q[None], compiled=compiled)[0])
    if here == sum(constraint_sizes(mech)):
        return here  # there are no more rows
    around = nearby(mech, q, compiled=compiled)
    return int(ranks(mech, around, compiled=compiled).max()) if len(around) else here


def first_rank(mech: Mechanism, q: Array) -> int:
    """`rank_nearby` for the first state of a mechanism.

    Body by body, since kernels that are needed once would take longer to make; and kept on disk.
    """
    from linkwise.codegen.cpu import cache
    from linkwise.codegen.cpu.digest import file_key

    key = file_key("closure rank", mech, q)
    filed = cache.read(key) if key else None
    if filed is not None and filed.isdigit():
        return int(filed)
    found = 0
    for kind in alike(mech):  # others that are not like the first are looked at as they come
        if kind[0].loops or kind[0].couplings:
            part, own = alone(mech, kind[0]), kind[0].of_q(mech, q)
            found += len(kind) * rank_nearby(part, own, compiled=False)
    if key:
        cache.write(key, str(found).encode())
    return found


def accelerated(
    mech: Mechanism,
    arrays: Mapping[str, Any],
    forces: Mapping[str, ArrayLike] | None = None,
    forces_frame: Frame = "node",
    closing: ArrayLike | None = None,
    options: Mapping[str, Any] | None = None,
) -> Array:
    """Joint accelerations caused by joint forces while loops and couplings hold.

    Where loops are singular, the accelerations are those that the rows as they stand leave, and a
    `RankWarning`, or the status, tells.

    Args:
        mech: The mechanism; it has loops or couplings.
        arrays: q, v and tau by name.
        forces_frame: Axes of `forces`.
        closing: What J_c v̇ + γ shall be instead of zero.
        options: out, status and threads.
    """
    asked = dict(options or {})

    def found(rows: Mapping[str, Any], rank: int | None, **more: Any) -> Array:
        return run(
            mech, "constrained_forward_dynamics", rows, forces=forces, frame=forces_frame,
            closing=closing, options=asked | more, rank=rank,
        )  # fmt: skip

    rank, lead = _known_rank(mech, arrays["q"]), _lead(arrays, forces, closing)
    if rank is None or lead is None:
        return found(arrays, None)  # tells what does not fit
    status = asked.get("status")
    codes = np.zeros(lead, np.int32) if status is None else status
    result = found(arrays, rank, status=codes)
    if not acting(forces) and closing is None and all(map(closure.is_traceable, mech.loops)):
        kernel = closed_kernel(mech, "constrained_forward_dynamics", rank=rank)
        one_state(mech).forward_dynamics = kernel.quick
    if not codes.any():
        return result
    singular = codes == trouble.singular(mech)
    if singular.any():
        plain, own = found(arrays, None, status=codes, out=None), codes.copy()
        q = np.broadcast_to(floats(arrays["q"], "q"), (*lead, mech.nq))
        for i in zip(*np.nonzero(np.atleast_1d(singular)), strict=True) if lead else [()]:
            result[i] = plain[i]
            if not own[i] and _is_singular_here(mech, q[i]):
                own[i] = trouble.singular(mech)
        codes[...] = own
        singular = codes == trouble.singular(mech)
    if status is not None:
        return result
    if not lead:
        if not singular.any():
            return found(arrays, None) if codes.any() else result  # raises
        _warn(mech, "")
        return result
    if singular.any():
        _warn(mech, f" in {int(singular.sum())} of {singular.size} states of the batch")
    closed_kernel(mech, "constraint_jacobian").warn(np.where(singular, 0, codes).astype(np.int32))
    return result


def _is_singular_here(mech: Mechanism, q: Array) -> bool:
    """Whether the rank at q is less than around it; what is around it is what others have to be."""
    here = around = 0
    for island in islands(mech):
        if island.loops or island.couplings:
            part, own = alone(mech, island), island.of_q(mech, q)
            compiled = part is mech  # kernels for each of many would take longer to make
            here += int(ranks(part, own[None], compiled=compiled)[0])
            around += rank_nearby(part, own, compiled=compiled)
    if here >= around:
        known = one_state(mech)
        known.rank, known.forward_dynamics = here, None
    return here < around


def _known_rank(mech: Mechanism, q: ArrayLike) -> int | None:
    """The rank that states have to have: that around the first one; None where q is no state."""
    known = one_state(mech)
    if known.rank is None:
        try:
            rows = np.atleast_2d(mech.check_q(q))
        except LinkwiseError:
            return None
        if not len(rows):
            return None
        known.rank = first_rank(mech, rows[0])
    return known.rank


def _lead(arrays: Mapping[str, Any], *others: Any) -> tuple[int, ...] | None:
    """The batch of all arrays; None where they do not go together."""
    given: list[Any] = [*arrays.values()]
    for x in others:
        more = cast("Mapping[str, Any]", x).values() if isinstance(x, Mapping) else [x]
        given += [array for array in more if array is not None]
    try:
        return np.broadcast_shapes(*(np.shape(x)[:-1] for x in given))
    except ValueError:
        return None


def _warn(mech: Mechanism, where: str) -> None:
    warnings.warn(
        f"the loops of {mech.name!r} are singular{where}: fewer of their rows are independent than "
        "in configurations nearby, so that the accelerations are not unique, and it may go on in "
        "several ways. lw.loops.mobility tells the ranks; status= gets a code for each state.",
        RankWarning,
        stacklevel=caller(),
    )


__all__ = ["accelerated", "first_rank", "nearby", "rank_nearby", "ranks"]
