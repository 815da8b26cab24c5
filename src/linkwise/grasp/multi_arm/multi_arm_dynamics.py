"""Forward dynamics of several arms that hold one object."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.kernels import check_mechanism
from linkwise.dynamics.velocity_space import reach, states
from linkwise.errors import ModelError, RankWarning, unknown_name
from linkwise.grasp.multi_arm.algorithm import ALGORITHMS, Found
from linkwise.grasp.multi_arm.contact import Contacts, contacts, free_directions
from linkwise.grasp.multi_arm.contact_force import ContactSolver, by_projection, by_rows
from linkwise.grasp.multi_arm.evaluation import Evaluation, Target
from linkwise.grasp.multi_arm.held_object import multi_arm_parts
from linkwise.grasp.multi_arm.linear import linear
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

MultiArmMethod: TypeAlias = Literal["CCFD", "RCCFD1", "RCCFD2", "RCCFD3", "linear"]
"""The algorithms of JPL 88-11, Part II, and the one whose cost is linear in the contacts."""

ContactForm: TypeAlias = Literal["rows", "projection"]
"""By the directions that contacts block, or by those they leave free."""

METHODS = (*ALGORITHMS, "linear")


@dataclass(frozen=True, slots=True)
class MultiArmMotion:
    """How arms and the object they hold move, and the forces between them.

    For a batch every array has the batch in front.

    Attributes:
        contacts: Names of the contacts, ℓ loops.
        vdot: Joint accelerations of all, arms and object (nv,).
        contact_forces: f(0), (moment, force) on the object at each contact (ℓ, 6) [N m, N], in the
            frame of the loop's node b, about its origin. The arm gets the opposite.
        object_acceleration: α(C) (6,): spatial acceleration of the object's first body at its
            frame, in body axes, gravity not counted [rad/s², m/s²].
        tip_accelerations: α(0), of each arm's node in a contact (ℓ, 6), in its own axes.
        contact_accelerations: Ẇ(0) inside each contact's hinge, by the loop's name
            (freedoms of the hinge,).
        rank: How many of the contacts' rows are independent; an array for a batch.
        rows: How many rows there are.
        singular_arms: Arms that were found singular in some state, by the method "linear".
    """

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
        if self.vdot.ndim > 1:
            names = ", ".join(self.contacts)
            return f"arms and object, contacts {names}: {len(self.vdot)} states"
        turn, move = self.object_acceleration[:3], self.object_acceleration[3:]
        lines = [
            f"object accelerates by ({_cells(turn)}) rad/s², ({_cells(move)}) m/s²; contacts have "
            f"rank {self.rank} of {self.rows} rows"
        ]
        for name, f in zip(self.contacts, self.contact_forces, strict=True):
            lines.append(f"{name}: moment ({_cells(f[:3])}) N m, force ({_cells(f[3:])}) N")
        if self.singular_arms:
            lines.append(f"singular: the arm of {', '.join(self.singular_arms)}")
        return "\n".join(lines)


def _cells(x: Array) -> str:
    return ", ".join(f"{c:.4g}" for c in np.round(x, 9) + 0.0)


def multi_arm_dynamics(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    method: MultiArmMethod = "RCCFD2",
    contact: ContactForm = "rows",
    held: str | None = None,
    target: Target = "cpu",
) -> MultiArmMotion:
    """Accelerations and contact forces of arms that hold one object, by a named algorithm.

    Expression:
        Ω = J 𝓜⁻¹ J* + A M(C)⁻¹ A*,   f(0) = Ω⁻¹ {J 𝓜⁻¹ T′ − a′(C)},   v̇ = 𝓜⁻¹ {T′ − J* f(0)}
    with the armature in 𝓜. For contacts with freedoms Π stands for Ω⁻¹.

    Algorithms:
        "CCFD"     the four steps of the general algorithm, by any open-chain dynamics
        "RCCFD1"   the same four steps by sweeps
        "RCCFD2"   f(0) from filtered joint forces, then one filter and one smoother
        "RCCFD3"   what T′ and what a′(C) do, apart
        "linear"   the object with the inertia Λ of each arm added: one system of its size
    The first four cost O(n) + O(ℓ³) with n bodies and ℓ contacts, the last O(n) + O(ℓ); it needs
    arms that are not singular, and gives way to RCCFD2, with a warning, where one is.

    Source: JPL 88-11, Part II, (4.9), (6.11), (6.18), (6.22), Appendix B; 000, section 6.
    Departs: contacts are any hinge; the object is any tree, so that it may have freedoms of its
    own; gravity enters as the acceleration of the base.

    The mechanism is arms and an object, joined by its loops alone (`multi_arm_parts`);
    `forward_dynamics` takes any other. Every equation of the source is a kernel of its
    own here. Forces from outside are added to tau by `equivalent_force`; damping, friction, springs
    and limits are not part of it.

    Args:
        mech: The mechanism.
        q: Joint positions (nq,) or (batch, nq) where the loops hold [m or rad].
        v: Joint velocities (nv,) or (batch, nv) that the loops allow [m/s or rad/s].
        tau: Joint forces (nv,) or (batch, nv) [N or N m].
        method: The algorithm. All agree up to round-off.
        contact: "rows" blocks directions, f(0) = S* λ; "projection" is (b.9), which takes Ω
            itself to be invertible. Both agree up to round-off; "linear" has rows only.
        held: Any body of the object, where it cannot be told by itself.
        target: "cpu", or "numpy" for the interpreter: slower, but nothing is compiled.

    Raises:
        ModelError: The mechanism is not arms that hold an object; says why. An entry of q, v or
            tau is not finite: one such row in a batch raises for the whole batch, so leave it out.
        ShapeError: An array does not fit; says which.
        SingularHingeError: Nothing resists the hinge of some body, which is named. In a batch its
            row is NaN instead, and a warning tells.

    Warns:
        RankWarning: The contacts are redundant, or arms are singular: contact forces are those of
            least norm then. Accelerations are unique still.
    """
    check_mechanism(mech)
    if method not in METHODS:
        raise unknown_name("method", method, METHODS, owner="multi-arm dynamics")
    if contact not in ("rows", "projection"):
        raise ModelError(f"contact is {contact!r}; it must be 'rows' or 'projection'.")
    of, single = _evaluation(mech, q, v, tau, held, target)
    if not len(of.q):
        return _nothing(mech, held, method, contact)
    at, length = contacts(of), reach(mech, of.parts.tips)
    singular = tuple[str, ...]()
    if method == "linear":
        found, singular = _by_linear(of, at, length)
    else:
        found = _by_name(of, at, length, method, contact)
    _tell_rank(mech, found.solved, len(of.q))
    whole = _whole(of, at, found, singular)
    return _first(whole) if single else whole


def _evaluation(
    mech: Mechanism, q: ArrayLike, v: ArrayLike, tau: ArrayLike, held: str | None, target: Target
) -> tuple[Evaluation, bool]:
    single, q, (v, tau) = states(mech, q, v=v, tau=tau)
    parts = multi_arm_parts(mech, held)
    return Evaluation(mech, parts, q, v, tau, single, target), single


def _by_name(of: Evaluation, at: Contacts, length: float, method: str, contact: str) -> Found:
    if contact == "rows":
        c = _of_rows(at)
        return ALGORITHMS[method](of, at, c, lambda Omega: by_rows(Omega, at, length))
    free = free_directions(of.mech, at)
    c = at.turning.reshape(len(of.q), -1) - free.bias
    return ALGORITHMS[method](of, at, c, lambda Omega: by_projection(Omega, at, free, length))


def _of_rows(at: Contacts) -> Array:
    """c up to what S does not see: S c = S s (V_ab × T V_a) + rate, with S S* = 1."""
    across = np.swapaxes(at.S, -1, -2)
    return at.turning.reshape(len(at.S), -1) + (across @ at.rate[..., None])[..., 0]


def _by_linear(of: Evaluation, at: Contacts, length: float) -> tuple[Found, tuple[str, ...]]:
    """The linear form, and RCCFD2 for the states where an arm is singular."""
    found = linear(of, at, _of_rows(at), length)
    size = at.S.shape[1]
    rank = np.full(len(of.q), size, dtype=np.int64)
    singular = tuple(name for name, where in found.singular.items() if where.any())
    force, bad = found.force, np.any(list(found.singular.values()), axis=0)
    if singular:
        names = ", ".join(repr(name) for name in singular)
        states = "" if of.single else f" in {int(bad.sum())} of {len(of.q)} states"
        warnings.warn(
            f"the method 'linear' needs arms that can move in every way their contact blocks; "
            f"singular{states}: the arm of {names}. RCCFD2 is used there instead.",
            RankWarning,
            stacklevel=4,
        )
        other = _by_name(of, at, length, "RCCFD2", "rows")
        force = np.where(bad[:, None], other.force, force)
        rank = np.where(bad, other.solved.rank, rank)
    vdot = of.arm_acceleration("general_acceleration", T_prime=found.T_prime, f=-at.to_tips(force))
    return Found(found.T_prime, vdot, force, ContactSolver(lambda r: r, rank, size)), singular


def _tell_rank(mech: Mechanism, solved: ContactSolver, batch: int) -> None:
    lost = solved.rank < solved.size
    if not lost.any():
        return
    least = int(solved.rank[lost].min())
    states = f" in {int(lost.sum())} of {batch} states" if batch > 1 else ""
    warnings.warn(
        f"the contacts of {mech.name!r} have rank {least} of {solved.size} rows{states}: contact "
        "forces are not unique there, those of least norm are given; accelerations are unique.",
        RankWarning,
        stacklevel=3,
    )


def _whole(of: Evaluation, at: Contacts, found: Found, singular: tuple[str, ...]) -> MultiArmMotion:
    """All that follows from the contact forces and the arms' accelerations."""
    parts, batch = of.parts, len(of.q)
    vdot = found.vdot.copy()
    vdot[:, parts.object_rows] = of.object_acceleration(
        "general_acceleration", T_prime=found.T_prime, f=at.to_object(found.force)
    )
    nodes = (*parts.tips, *parts.grasps, parts.object)
    moved = of.run("tip_acceleration", nodes, given={"vdot": vdot}).reshape(batch, -1, 6)
    count = len(parts.tips)
    tips, grasps, center = moved[:, :count], moved[:, count : 2 * count], moved[:, -1]
    inside = _inside(of, at, tips, grasps)
    names = tuple(loop.name for loop in of.mech.loops)
    forces = found.force.reshape(batch, count, 6)
    solved = found.solved
    return MultiArmMotion(
        names, vdot, forces, center, tips, inside, solved.rank, solved.size, singular
    )


def _inside(of: Evaluation, at: Contacts, tips: Array, grasps: Array) -> dict[str, Array]:
    """Ẇ: H* Ẇ = s {E_o α_o − E_a α_a + c}   (b.1f)."""
    free, batch = free_directions(of.mech, at), len(of.q)
    c = at.turning - free.bias.reshape(at.turning.shape)
    apart = at.from_object(grasps.reshape(batch, -1)) - at.from_tips(tips.reshape(batch, -1))
    motion = at.sign[:, None] * (apart.reshape(c.shape) + c)
    found, row = dict[str, Array](), 0
    for i, loop in enumerate(of.mech.loops):
        own = loop.hinge.nv
        H = free.H[:, row : row + own, 6 * i : 6 * i + 6]
        row += own
        gram = H @ np.swapaxes(H, -1, -2)
        inner = np.linalg.solve(gram, H @ motion[:, i, :, None])[..., 0]
        found[loop.name] = np.asarray(inner, dtype=np.float64)
    return found


def _nothing(
    mech: Mechanism, held: str | None, method: MultiArmMethod, contact: ContactForm
) -> MultiArmMotion:
    """The result of an empty batch: that of some state, of which nothing is kept."""
    still = np.zeros(mech.nv)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = multi_arm_dynamics(
            mech,
            mech.neutral()[None],
            still,
            still,
            method=method,
            contact=contact,
            held=held,
            target="numpy",
        )
    return _rows(one, slice(0))


def _first(whole: MultiArmMotion) -> MultiArmMotion:
    """The one state that was asked for."""
    found = _rows(whole, 0)
    return replace(found, rank=int(found.rank))


def _rows(whole: MultiArmMotion, part: int | slice) -> MultiArmMotion:
    """Some states of a batch."""
    inside = {name: x[part] for name, x in whole.contact_accelerations.items()}
    return MultiArmMotion(
        whole.contacts,
        whole.vdot[part],
        whole.contact_forces[part],
        whole.object_acceleration[part],
        whole.tip_accelerations[part],
        inside,
        np.asarray(whole.rank)[part],
        whole.rows,
        whole.singular_arms,
    )
