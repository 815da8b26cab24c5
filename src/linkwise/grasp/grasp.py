"""A grasp: contacts on one rigid object, and the map from their forces to the object's.

Contact forces f = (f_1, ..., f_ℓ), each (moment, force) on the object in its contact's frame, add
up to the force on the object at a point C:

    f_C = A* f,      A* = [φ(C, O_1), ..., φ(C, O_ℓ)]                (001-II, 2.6 and 2.9)

and V(0) = A V_C are the velocities of the object at the contacts. What a contact passes are the
rows of S_i, so f = S* λ and f_C = (S A)* λ.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np

from linkwise import arguments
from linkwise.dynamics.kernels import check_mechanism
from linkwise.errors import ModelError, unknown_name
from linkwise.grasp.contact import Contact
from linkwise.model.body import Loop
from linkwise.model.hinges import Hinge
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, constant
from linkwise.spatial.pose import Pose, trusted_pose


@dataclass(frozen=True, slots=True, eq=False)
class Grasp:
    """Contacts by name, all on one rigid object.

        lw.Grasp({"left": lw.grasp.Contact("point", pose=...), "right": ...})
        lw.Grasp.of(mech, {"grasp_1": lw.grasp.Contact("soft_finger", friction=0.6), ...})

    The second names loops of a mechanism; the poses of the contacts are those of their nodes b.

    Attributes:
        contacts: The contacts by name, in order. Their poses are in the frame of the object.
        mech: The mechanism whose loops they are, if any.
        body: The object, the body they are on, if there is a mechanism.
    """

    contacts: Mapping[str, Contact]
    mech: Mechanism | None = None
    body: str | None = None

    def __post_init__(self) -> None:
        given = cast(object, self.contacts)
        if not isinstance(given, Mapping) or not given:
            raise ModelError(
                f"contacts of a grasp are {given!r}; give a dictionary of names and contacts, at "
                "least one."
            )
        for name, contact in cast("Mapping[object, object]", given).items():
            if not isinstance(contact, Contact):
                raise ModelError(
                    f"contact {name!r} is a {type(contact).__name__}; it must be a Contact."
                )
        object.__setattr__(self, "contacts", dict(self.contacts))

    @staticmethod
    def of(
        mech: Mechanism, contacts: Mapping[str, Contact] | Contact, q: ArrayLike | None = None
    ) -> Grasp:
        """The grasp that loops of a mechanism are.

        Args:
            mech: The mechanism.
            contacts: For each loop that is a contact what it is like, by the loop's name; one
                Contact stands for all loops.
            q: Joint positions (nq,): contacts that slide are where they are then. Without it they
                are at their nodes b, as all others always are.

        Raises:
            UnknownNameError: A loop that the mechanism does not have.
            ModelError: A loop whose hinge frees other directions than the contact; contacts on
                different bodies.
        """
        check_mechanism(mech)
        if isinstance(contacts, Contact):
            contacts = {loop.name: contacts for loop in mech.loops}
        placed, held = dict[str, Contact](), dict[str, str]()
        known = [loop.name for loop in mech.loops]
        for name, contact in contacts.items():
            if name not in known:
                raise unknown_name("loop", name, known, owner=f"mechanism {mech.name!r}")
            loop = mech.loop(name)
            _check_hinge(name, contact, loop.hinge)
            if contact.pose is not Pose.identity():
                raise ModelError(
                    f"contact {name!r} of {mech.name!r} has a pose of its own; the contact of a "
                    f"loop is at its node b, {loop.node_b!r}. Move that node, and leave out `pose`."
                )
            node, slid = mech.node(loop.node_b), Pose.identity()
            if q is not None and contact.kind == "frictionless":
                slid = _slid(mech, mech.check_q(q), loop)
            placed[name] = dataclasses.replace(contact, pose=node.pose @ slid)
            held.setdefault(node.body, name)
        if len(held) > 1:
            where = ", ".join(f"{name!r} on {body!r}" for body, name in held.items())
            raise ModelError(
                f"contacts of {mech.name!r} are on different bodies: {where}. A grasp holds one "
                "rigid body, which carries node b of each loop; a loop that goes from the object "
                "to the finger has to be turned round."
            )
        return Grasp(placed, mech, next(iter(held), None))

    # ------------------------------------------------------------------------------------- contents

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the contacts, in order."""
        return tuple(self.contacts)

    def __len__(self) -> int:
        return len(self.contacts)

    @property
    def poses(self) -> Pose:
        """Poses of the contacts in the object's frame, a stack."""
        each = [contact.pose for contact in self.contacts.values()]
        return trusted_pose(np.stack([x.rot for x in each]), np.stack([x.p for x in each]))

    @property
    def points(self) -> Array:
        """Where the contacts are (ℓ, 3) [m], in the object's frame."""
        return self.poses.p

    @property
    def rows(self) -> list[slice]:
        """Where the λ of each contact stand."""
        ends = np.cumsum([0, *(contact.rows for contact in self.contacts.values())])
        return [slice(int(a), int(b)) for a, b in itertools.pairwise(ends)]

    @property
    def row_names(self) -> tuple[str, ...]:
        """A name for each λ: "contact[0]", "contact[1]" ..."""
        return tuple(f"{name}[{i}]" for name, c in self.contacts.items() for i in range(c.rows))

    @property
    def passed(self) -> Array:
        """S (Σ rows, 6 ℓ), block diagonal: contact forces are f = S* λ, so that H(0) f = 0."""
        out = np.zeros((self.rows[-1].stop, 6 * len(self)))
        for i, (contact, rows) in enumerate(zip(self.contacts.values(), self.rows, strict=True)):
            out[rows, 6 * i : 6 * i + 6] = contact.passed
        return out

    @property
    def held(self) -> Array:
        """As `passed`, without what no contact can hold because its friction is zero."""
        blocks = [contact.held for contact in self.contacts.values()]
        ends = np.cumsum([0, *(len(rows) for rows in blocks)])
        out = np.zeros((int(ends[-1]), 6 * len(self)))
        for i, rows in enumerate(blocks):
            out[ends[i] : ends[i + 1], 6 * i : 6 * i + 6] = rows
        return out

    def check_forces(self, forces: ArrayLike) -> Array:
        """Contact forces (..., ℓ, 6) as an array; raises for another shape or what is no number."""
        each = f"(moment, force) for each of {', '.join(self.names)}"
        return arguments.rows(forces, (len(self), 6), "the contact force", hint=each)


def check_grasp(grasp: object, asked: str) -> None:
    """Raise unless it is a grasp."""
    if not isinstance(grasp, Grasp):
        raise ModelError(
            f"{asked} was given a {type(grasp).__name__}, {repr(grasp)[:60]}; a grasp comes first, "
            "which lw.Grasp({name: contact}) or lw.Grasp.of(mech, {loop: contact}) makes."
        )


def grasp_map(grasp: Grasp, point: ArrayLike = (0.0, 0.0, 0.0)) -> Array:
    """A: velocities of the object at its contacts from its velocity, A* forces the other way.

    Expression:
        V(0) = A V_C,   f_C = A* f(0),   A* = [φ(C, O_1), ..., φ(C, O_ℓ)]
    Source: 001-II, (2.6), (2.7a) and (2.9).

    Args:
        grasp: The grasp.
        point: C in the object's frame (3,) [m]; the axes at C are the object's.

    Returns:
        A (6 ℓ, 6); the contacts' rows are in the contacts' axes.
    """
    check_grasp(grasp, "grasp_map")
    X_C = Pose.translation(-constant(point, (3,), "point of the grasp map"))
    shifts = [(X_C @ contact.pose).shift.T for contact in grasp.contacts.values()]
    return np.concatenate(shifts)


def object_force(grasp: Grasp, forces: ArrayLike, point: ArrayLike = (0.0, 0.0, 0.0)) -> Array:
    """f_C = A* f: what contact forces do to the object.

    Args:
        grasp: The grasp.
        forces: On the object, in the contacts' frames (ℓ, 6) or (batch, ℓ, 6) [N m, N].
        point: C in the object's frame (3,) [m].

    Returns:
        (moment about C, force) (6,) or (batch, 6) in the object's axes.
    """
    check_grasp(grasp, "object_force")
    f = grasp.check_forces(forces)
    return f.reshape(*f.shape[:-2], -1) @ grasp_map(grasp, point)


def _slid(mech: Mechanism, q: Array, loop: Loop) -> Pose:
    """Where the finger touches, seen from node b."""
    X_BA = mech.pose(q, loop.node_b).inverse() @ mech.pose(q, loop.node_a)
    return Pose.translation(X_BA.p)


def _check_hinge(name: str, contact: Contact, hinge: Hinge) -> None:
    """A loop has to leave free what its contact does: as spaces, whatever the basis."""
    wanted, found = contact.hinge, hinge
    q, q_found = wanted.neutral(), found.neutral()
    same = wanted.nv == found.nv and wanted.hull.nv == found.hull.nv
    if same and wanted.nv:
        H = np.concatenate([wanted.hinge_map(q), found.hinge_map(q_found)])
        same = int(np.linalg.matrix_rank(H, tol=1e-9)) == wanted.nv
    if not same:
        raise ModelError(
            f"loop {name!r} is closed by a hinge '{found.describe()}' with {found.nv} freedoms; a "
            f"contact of kind {contact.kind!r} is a hinge '{wanted.describe()}' with {wanted.nv}. "
            "Build the loop with the contact's own `hinge`."
        )
