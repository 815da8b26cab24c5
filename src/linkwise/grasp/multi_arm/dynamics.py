"""Forward dynamics of several arms that hold one object."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.batched import Batched, some_states
from linkwise.dynamics.kernels import check_mechanism
from linkwise.dynamics.velocity_space import reach, states
from linkwise.errors import ModelError, RankWarning, unknown_name
from linkwise.grasp.arms import multi_arm_parts
from linkwise.grasp.internal_force import cells
from linkwise.grasp.multi_arm.algorithm import ALGORITHMS, Result, linear
from linkwise.grasp.multi_arm.contacts import (
    Contacts,
    ContactSolver,
    by_projection,
    by_rows,
    contacts,
    free_directions,
)
from linkwise.grasp.multi_arm.equation import Evaluation, Target
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

MultiArmMethod: TypeAlias = Literal["CCFD", "RCCFD1", "RCCFD2", "RCCFD3", "linear"]
"""The algorithms of JPL 88-11, Part II, and the one whose cost is linear in the contacts."""

ContactForm: TypeAlias = Literal["rows", "projection"]
"""By the directions that contacts block, or by those that they leave free."""

METHODS = (*ALGORITHMS, "linear")


@dataclass(frozen=True, slots=True)
class MultiArmMotion(Batched):
    """The motion of arms and the object they hold, and the forces between them.

    For a batch every array has the batch in front, and `motion[i]` is one state of it.

    Attributes:
        contacts: Names of the contacts, ℓ loops.
        vdot: Joint accelerations of arms and object (nv,).
        contact_forces: f(0), (moment, force) on the object at each contact (ℓ, 6) [N m, N], in the
            frame of the loop's node b, about its origin. The opposite force acts on the arm.
        object_acceleration: α(C) (6,): spatial acceleration of the object's first body at its
            frame, in body axes, without gravity [rad/s², m/s²].
        tip_accelerations: α(0), of each arm's node in a contact (ℓ, 6), in its own axes.
        contact_accelerations: Ẇ(0) inside each contact's hinge, by the loop's name
            (nv of the hinge,).
        rank: The number of independent contact rows; an array for a batch.
        rows: The number of contact rows.
        singular_arms: Arms that the method "linear" found singular in some state.
    """

    WHAT: ClassVar[str] = "motion of arms and object"
    AXES: ClassVar[tuple[str, int]] = ("vdot", 1)

    contacts: tuple[str, ...]
    vdot: Array
    contact_forces: Array
    object_acceleration: Array
    tip_accelerations: Array
    contact_accelerations: dict[str, Array]
    rank: int | NDArray[np.int64]
    rows: int
    singular_arms: tuple[str, ...]

    def __str__(self) -> str:
        if self.is_batch:
            names = ", ".join(self.contacts)
            return f"arms and object, contacts {names}: {len(self.vdot)} states"
        turn, move = self.object_acceleration[:3], self.object_acceleration[3:]
        lines = [
            f"object accelerates by ({cells(turn)}) rad/s², ({cells(move)}) m/s²; contacts have "
            f"rank {self.rank} of {self.rows} rows"
        ]
        for name, f in zip(self.contacts, self.contact_forces, strict=True):
            lines.append(f"{name}: moment ({cells(f[:3])}) N m, force ({cells(f[3:])}) N")
        if self.singular_arms:
            lines.append(f"singular: the arm of {', '.join(self.singular_arms)}")
        return "\n".join(lines)


def multi_arm_dynamics(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    method: MultiArmMethod = "RCCFD2",
    contact: ContactForm = "rows",
    body: str | None = None,
    target: Target = "cpu",
) -> MultiArmMotion:
    """Accelerations and contact forces of arms that hold one object, by a named algorithm.

    Expression:
        Ω = J 𝓜⁻¹ J* + A M(C)⁻¹ A*,   f(0) = Ω⁻¹ {J 𝓜⁻¹ T′ − a′(C)},   v̇ = 𝓜⁻¹ {T′ − J* f(0)}
    with the armature in 𝓜. For contacts with degrees of freedom Π replaces Ω⁻¹.

    Algorithms:
        "CCFD"     the four steps of the general algorithm, with any open-chain dynamics
        "RCCFD1"   the same four steps by sweeps
        "RCCFD2"   f(0) from filtered joint forces, then one filter and one smoother
        "RCCFD3"   the effects of T′ and of a′(C) separately
        "linear"   the object with the inertia Λ of each arm added: one system of its size
    The first four cost O(n) + O(ℓ³) with n bodies and ℓ contacts, the last O(n) + O(ℓ). It needs
    arms that are not singular; where one is, RCCFD2 replaces it, with a warning.

    Source: JPL 88-11, Part II, (4.9), (6.11), (6.18), (6.22), Appendix B; 000, section 6.
    Departs: contacts are any hinge; the object is any tree and may have inner degrees of freedom;
    gravity enters as the acceleration of the base.

    The mechanism consists of arms and an object, joined only by its loops (`multi_arm_parts`);
    `forward_dynamics` accepts any other. Each equation of the source is a separate
    kernel here. Add external forces to tau with `equivalent_force`; damping, friction, springs and
    limits are not included.

    Args:
        q: Joint positions (nq,) or (batch, nq) with closed loops [m or rad].
        v: Joint velocities (nv,) or (batch, nv) that the loops allow [m/s or rad/s].
        method: The algorithm. All agree up to rounding.
        contact: "rows" blocks directions, f(0) = S* λ; "projection" is (b.9), which requires Ω to
            be invertible. Both agree up to rounding; "linear" supports "rows" only.
        body: Any body of the object, if the loops do not identify it.
        target: "cpu", or "numpy" for the interpreter: slower, but nothing is compiled.

    Raises:
        ModelError: The mechanism does not consist of arms that hold an object. An entry of q, v or
            tau is not finite; one such row raises for the whole batch.
        ShapeError: The named array does not fit.
        SingularHingeError: Nothing resists the hinge of the named body. In a batch its row is NaN
            instead, with a warning.

    Warns:
        RankWarning: The contacts are redundant or arms are singular: contact forces are those of
            least norm. Accelerations are still unique.
    """
    check_mechanism(mech)
    if method not in METHODS:
        raise unknown_name("method", method, METHODS, owner="multi-arm dynamics")
    if contact not in ("rows", "projection"):
        raise ModelError(f"contact is {contact!r}; it must be 'rows' or 'projection'.")
    single, q, (v, tau) = states(mech, q, v=v, tau=tau)
    if not len(q):  # the result of some state, of which no row is kept
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            some = (mech.neutral()[None], np.zeros(mech.nv), np.zeros(mech.nv))
            result = multi_arm_dynamics(
                mech, *some, method=method, contact=contact, body=body, target="numpy"
            )
        return some_states(result, slice(0))
    of = Evaluation(mech, multi_arm_parts(mech, body), q, v, tau, single, target)
    at, length = contacts(of), reach(mech, of.parts.tips)
    singular = tuple[str, ...]()
    if method == "linear":
        result, singular = _by_linear(of, at, length)
    else:
        result = _by_name(of, at, length, method, contact)
    _warn_rank(mech, result.solved, len(of.q))
    motion = _motion(of, at, result, singular)
    return motion[0] if single else motion


def _by_name(of: Evaluation, at: Contacts, length: float, method: str, contact: str) -> Result:
    if contact == "rows":
        c = _of_rows(at)
        return ALGORITHMS[method](of, at, c, lambda Omega: by_rows(Omega, at, length))
    free = free_directions(of.mech, at)
    c = at.turning.reshape(len(of.q), -1) - free.bias
    return ALGORITHMS[method](of, at, c, lambda Omega: by_projection(Omega, at, free, length))


def _of_rows(at: Contacts) -> Array:
    """c up to the kernel of S: S c = S s (V_ab × T V_a) + rate, with S S* = 1."""
    across = np.swapaxes(at.S, -1, -2)
    return at.turning.reshape(len(at.S), -1) + (across @ at.rate[..., None])[..., 0]


def _by_linear(of: Evaluation, at: Contacts, length: float) -> tuple[Result, tuple[str, ...]]:
    """The linear form, and RCCFD2 for the states where an arm is singular."""
    T_prime, force, where = linear(of, at, _of_rows(at), length)
    size = at.S.shape[1]
    rank = np.full(len(of.q), size, dtype=np.int64)
    singular = tuple(name for name, states in where.items() if states.any())
    bad = np.any(list(where.values()), axis=0)
    if singular:
        names = ", ".join(repr(name) for name in singular)
        states = "" if of.single else f" in {int(bad.sum())} of {len(of.q)} states"
        warnings.warn(
            "the method 'linear' needs arms that can move in every direction that their contacts "
            f"block; singular{states}: the arm of {names}. RCCFD2 is used there instead.",
            RankWarning,
            stacklevel=4,
        )
        other = _by_name(of, at, length, "RCCFD2", "rows")
        force = np.where(bad[:, None], other.force, force)
        rank = np.where(bad, other.solved.rank, rank)
    vdot = of.arm_acceleration("general_acceleration", T_prime=T_prime, f=-at.to_tips(force))
    return Result(T_prime, vdot, force, ContactSolver(lambda r: r, rank, size)), singular


def _warn_rank(mech: Mechanism, solved: ContactSolver, batch: int) -> None:
    lost = solved.rank < solved.size
    if not lost.any():
        return
    least = int(solved.rank[lost].min())
    states = f" in {int(lost.sum())} of {batch} states" if batch > 1 else ""
    warnings.warn(
        f"the contacts of {mech.name!r} have rank {least} of {solved.size} rows{states}: contact "
        "forces are not unique there, and those of least norm are returned; accelerations are "
        "unique.",
        RankWarning,
        stacklevel=3,
    )


def _motion(
    of: Evaluation, at: Contacts, result: Result, singular: tuple[str, ...]
) -> MultiArmMotion:
    """The motion of all bodies, from the contact forces and the arms' accelerations."""
    parts, batch = of.parts, len(of.q)
    vdot = result.vdot.copy()
    inputs = {"T_prime": result.T_prime, "f": at.to_object(result.force)}
    vdot[:, parts.object_rows] = of.run(
        "general_acceleration", parts.grasps, rows=parts.object_bodies, given=inputs
    )
    nodes = (*parts.tips, *parts.grasps, parts.object)
    moved = of.run("tip_acceleration", nodes, given={"vdot": vdot}).reshape(batch, -1, 6)
    count = len(parts.tips)
    tips, grasps, center = moved[:, :count], moved[:, count : 2 * count], moved[:, -1]
    inside = _inside(of, at, tips, grasps)
    names = tuple(loop.name for loop in of.mech.loops)
    forces, solved = result.force.reshape(batch, count, 6), result.solved
    return MultiArmMotion(
        names, vdot, forces, center, tips, inside, solved.rank, solved.size, singular
    )


def _inside(of: Evaluation, at: Contacts, tips: Array, grasps: Array) -> dict[str, Array]:
    """Ẇ: H* Ẇ = s {E_o α_o − E_a α_a + c}   (b.1f)."""
    free, batch = free_directions(of.mech, at), len(of.q)
    c = at.turning - free.bias.reshape(at.turning.shape)
    apart = at.from_object(grasps.reshape(batch, -1)) - at.from_tips(tips.reshape(batch, -1))
    motion = at.sign[:, None] * (apart.reshape(c.shape) + c)
    rates, row = dict[str, Array](), 0
    for i, loop in enumerate(of.mech.loops):
        H = free.H[:, row : row + loop.hinge.nv, 6 * i : 6 * i + 6]
        row += loop.hinge.nv
        gram = H @ np.swapaxes(H, -1, -2)
        inner = np.linalg.solve(gram, H @ motion[:, i, :, None])[..., 0]
        rates[loop.name] = np.asarray(inner, dtype=np.float64)
    return rates
