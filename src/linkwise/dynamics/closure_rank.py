"""Configurations in which loops are singular: fewer rows of J_c are independent than nearby.

There a mechanism may continue in several ways, and its accelerations are not unique. Rows that are
redundant everywhere are harmless, so the rank at a state is compared with the rank at
configurations nearby, along the velocities that are left, with loops closed again.

Rank is counted as the dynamics sees it: with A = J_c 𝓜⁻¹ J_c*, the pivots of A that are above
rounding, each relative to its diagonal entry (`linkwise.codegen.scalar.closure_solve`). The rank at
the first state is part of the kernel of forward dynamics; states with another rank are checked.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import is_tracked, untracked
from linkwise.codegen.scalar import status as status_code
from linkwise.codegen.scalar.closure_solve import EMPTY, INDEPENDENT
from linkwise.dynamics.closure import (
    closed_kernel,
    closure_nodes,
    constraint_sizes,
    error_at,
    program_of,
    relative_poses,
    run,
)
from linkwise.dynamics.kernels import HELD, Forces, acting, usual_rank
from linkwise.dynamics.quantity import Frame
from linkwise.dynamics.velocity_space import VelocitySpace, velocity_spaces
from linkwise.errors import LinkwiseError, RankWarning, caller
from linkwise.model import closure
from linkwise.model.islands import alike, alone, islands
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import drop_bare_calls, keep_bare_call
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.sweeps.interpret import interpreted

NEARBY = 0.05
"""Distance of configurations nearby [rad, or of the mechanism's length]."""

COUNT = 6
"""Their number."""

CLOSED = 1e-10
"""Loops that are open by less [rad or m] are closed."""

EXACT = 1e-14
"""Loops that are open by less [rad or m] cannot be closed any better."""

ROUNDS = 12
"""Most steps of Newton's method by which loops are closed again."""


def ranks(mech: Mechanism, q: Array, *, compiled: bool = True) -> NDArray[np.int64]:
    """How many rows are independent in states q (batch, nq), as the dynamics sees it (batch,)."""
    if compiled:
        A = run(mech, "constraint_inertia_inverse", {"q": q})
    else:
        A = np.array([_resistance(mech, state) for state in q])
    size = np.diagonal(A, axis1=-2, axis2=-1)
    mass = mech.total_mass
    least = EMPTY[8] * (size.mean(axis=-1, keepdims=True) + (1.0 / mass if mass > 0.0 else 0.0))
    size, left = size + least, A.copy()
    rank = np.zeros(len(A), np.int64)
    for j in range(A.shape[-1]):
        pivot = left[:, j, j].copy()
        counts = pivot > INDEPENDENT * size[:, j]
        rank += counts
        column = np.where(counts[:, None], left[:, :, j], 0.0)
        left -= (
            column[:, :, None] * column[:, None, :] / np.where(counts, pivot, 1.0)[:, None, None]
        )
    return rank


def _resistance(mech: Mechanism, q: Array) -> Array:
    """A = J_c 𝓜⁻¹ J_c* (m, m), out of the program of forward dynamics."""
    program = program_of(mech, "forward_dynamics")
    still = np.zeros(mech.nv)
    swept = interpreted(program, mech, q, still, nodes=closure_nodes(mech), values={"tau": still})
    swept.result()
    (matrix,) = [s.reads[0][0] for s in program.statements if s.special == "dense_solve"]
    return np.concatenate(swept.blocks_of(matrix))


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
    """`rank_nearby` for the first state of a mechanism, kept on disk.

    Body by body, since compiling kernels that are needed once would take longer.
    """
    from linkwise.codegen.cpu import cache
    from linkwise.codegen.cpu.digest import file_key

    key = file_key("closure rank", mech, q)
    filed = cache.read(key) if key else None
    if filed is not None and filed.isdigit():
        return int(filed)
    rank = 0
    for kind in alike(mech):  # states that differ from the first are checked when they occur
        if kind[0].loops or kind[0].couplings:
            part, part_q = alone(mech, kind[0]), kind[0].of_q(mech, q)
            rank += len(kind) * rank_nearby(part, part_q, compiled=False)
    if key:
        cache.write(key, str(rank).encode())
    return rank


def accelerated(
    mech: Mechanism,
    arrays: Mapping[str, Any],
    forces: Forces | None = None,
    forces_frame: Frame = "node",
    closing: ArrayLike | None = None,
    options: Mapping[str, Any] | None = None,
    name: str = "forward_dynamics",
    parameters: tuple[str, ...] = (),
) -> Array:
    """Joint accelerations caused by joint forces while loops and couplings hold.

    Derived form for loops, 3 passes, O(n) + O(m³) for m rows of constraints:
        (I - H ψ K)* D⁻¹ (τ - H ψ (b + K τ + M φ* a) - H ψ B Q* (Q B* ψ* H* D⁻¹ H ψ B Q*)⁻¹ (κ + κ_g
        + Q B* φ* a + Q B* ψ* H* D⁻¹ (τ - H ψ (b + K τ + M φ* a))))

    Where loops are singular, the accelerations are those that the rows allow as they are, and a
    `RankWarning`, or the status, reports it.

    Args:
        mech: The mechanism; it has loops or couplings.
        arrays: q, v and tau by name, and the parameters.
        forces: External forces by node.
        forces_frame: Axes of `forces`.
        closing: The value of J_c v̇ + γ.
        options: out, status and threads.
        name: "forward_dynamics", or an algorithm of `RCCFD`.
        parameters: Numbers of the mechanism that are given.
    """
    given = dict(options or {})

    def computed(rank: int | None, **more: Any) -> Array:
        return run(
            mech, name, arrays, forces=forces, forces_frame=forces_frame,
            closing=closing, options=given | more, rank=rank, parameters=parameters,
        )  # fmt: skip

    rank, lead = known_rank(mech, arrays["q"]), batch_of(arrays, forces, closing)
    if rank is None or lead is None:
        return computed(None)  # says what does not fit
    if any(map(is_tracked, arrays.values())):
        return computed(rank)  # other states have no derivative
    status = given.get("status")
    codes = np.zeros(lead, np.int32) if status is None else status
    result = computed(rank, status=codes)
    usual = closing is None and not acting(forces) and not parameters
    if usual and all(map(closure.is_traceable, mech.loops)):
        method = None if name == "forward_dynamics" else name
        quick = closed_kernel(mech, name, rank=rank).quick
        keep_bare_call(mech, "forward_dynamics", (method, HELD), quick)
    if not codes.any():
        return result
    singular = codes == status_code.singular(mech)
    if singular.any():
        plain, checked = computed(None, status=codes, out=None), codes.copy()
        q = np.broadcast_to(floats(arrays["q"], "q"), (*lead, mech.nq))
        for i in zip(*np.nonzero(np.atleast_1d(singular)), strict=True) if lead else [()]:
            result[i] = plain[i]
            if not checked[i] and is_singular_here(mech, q[i]):
                checked[i] = status_code.singular(mech)
        codes[...] = checked
        singular = codes == status_code.singular(mech)
    if status is not None:
        return result
    if not lead:
        if not singular.any():
            return computed(None) if codes.any() else result  # raises
        _warn(mech, "")
        return result
    if singular.any():
        _warn(mech, f" in {int(singular.sum())} of {singular.size} states of the batch")
    closed_kernel(mech, "constraint_jacobian").warn(np.where(singular, 0, codes).astype(np.int32))
    return result


def is_singular_here(mech: Mechanism, q: Array) -> bool:
    """Whether the rank at q is less than around it; otherwise it becomes the known rank."""
    here = around = 0
    for island in islands(mech):
        if island.loops or island.couplings:
            part, part_q = alone(mech, island), island.of_q(mech, q)
            compiled = part is mech  # compiling kernels for each of many would take longer
            here += int(ranks(part, part_q[None], compiled=compiled)[0])
            around += rank_nearby(part, part_q, compiled=compiled)
    if here >= around:
        usual_rank(mech).rank = here
        drop_bare_calls(mech, "forward_dynamics")
    return here < around


def known_rank(mech: Mechanism, q: ArrayLike) -> int | None:
    """The rank that states have to have: that around the first one; None if q is not a state."""
    known = usual_rank(mech)
    if known.rank is None:
        try:
            rows = mech.check_q(untracked(q)).reshape(-1, mech.nq)
        except LinkwiseError:
            return None
        if not len(rows):
            return None
        known.rank = first_rank(mech, rows[0])
    return known.rank


def batch_of(arrays: Mapping[str, Any], *others: Any) -> tuple[int, ...] | None:
    """The batch of all arrays; None if they differ."""
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
        "in configurations nearby, so that the accelerations are not unique, and the motion may "
        "continue in several ways. lw.loops.mobility reports the ranks; status= gets a code for "
        "each state.",
        RankWarning,
        stacklevel=caller(),
    )
