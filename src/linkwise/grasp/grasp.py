"""A grasp: contacts on one rigid object, and everything that can be computed from them.

The contact forces f = (f_1, ..., f_ℓ) act on the object. Each is (moment, force) in the frame of
its contact. Together they act on the object at a point C as

    f_C = A* f,      A* = [φ(C, O_1), ..., φ(C, O_ℓ)]                (001-II, 2.6 and 2.9)

and V(0) = A V_C are the velocities of the object at the contacts. A contact transmits the rows of
S_i, so f = S* λ and f_C = (S A)* λ.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np

from linkwise import arguments
from linkwise.documented import documented
from linkwise.dynamics.kernels import check_mechanism
from linkwise.dynamics.quantity import Frame
from linkwise.errors import ModelError, unknown_name
from linkwise.grasp import contact_motion, force_closure, internal_force, load_distribution
from linkwise.grasp.contact import Contact, block_diagonal
from linkwise.grasp.contact_motion import ContactState, GraspEffort, GraspMargins
from linkwise.grasp.force_closure import ForceClosure
from linkwise.grasp.internal_force import ForceSpace, InternalForces, Split
from linkwise.grasp.load_distribution import LoadDistribution, Objective
from linkwise.grasp.virtual_linkage import VirtualLinkage, virtual_linkage
from linkwise.model.hinges import Hinge
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, constant
from linkwise.spatial.pose import Pose, trusted_pose

ORIGIN = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Grasp:
    """Contacts by name, all on one rigid object.

        lw.Grasp({"left": lw.grasp.Contact("point", pose=...), "right": ...})
        lw.Grasp.of(mech, {"grasp_1": lw.grasp.Contact("soft_finger", friction=0.6), ...})

    The second form names loops of a mechanism; each contact is at node b of its loop.

    Attributes:
        contacts: The contacts by name, in order. Their poses are in the object's frame.
        mech: The mechanism whose loops they are, if any.
        body: The object, the body they are on, if there is a mechanism.
    """

    contacts: Mapping[str, Contact]
    mech: Mechanism | None = None
    body: str | None = None

    def __post_init__(self) -> None:
        contacts = cast(object, self.contacts)
        if not isinstance(contacts, Mapping) or not contacts:
            raise ModelError(
                f"contacts of a grasp are {contacts!r}; give a dictionary of names and contacts, "
                "at least one."
            )
        for name, contact in cast("Mapping[object, object]", contacts).items():
            if not isinstance(contact, Contact):
                raise ModelError(
                    f"contact {name!r} is a {type(contact).__name__}; it must be a Contact."
                )
        object.__setattr__(self, "contacts", dict(self.contacts))

    @staticmethod
    def of(
        mech: Mechanism, contacts: Mapping[str, Contact] | Contact, q: ArrayLike | None = None
    ) -> Grasp:
        """The grasp formed by loops of a mechanism.

        Args:
            mech: The mechanism.
            contacts: The contact of each loop, by the loop's name; one Contact applies to all
                loops.
            q: Joint positions (nq,) at which sliding contacts are located. By default they are at
                their nodes b, as all other contacts always are.

        Raises:
            UnknownNameError: The mechanism has no such loop.
            ModelError: The hinge of a loop frees other directions than its contact; the contacts
                are on different bodies.
        """
        check_mechanism(mech)
        if isinstance(contacts, Contact):
            contacts = {loop.name: contacts for loop in mech.loops}
        placed, bodies = dict[str, Contact](), dict[str, str]()
        names = [loop.name for loop in mech.loops]
        for name, contact in contacts.items():
            if name not in names:
                raise unknown_name("loop", name, names, owner=f"mechanism {mech.name!r}")
            loop = mech.loop(name)
            _check_hinge(name, contact, loop.hinge)
            if contact.pose is not Pose.identity():
                raise ModelError(
                    f"contact {name!r} of {mech.name!r} has its own pose; the contact of a loop is "
                    f"at its node b, {loop.node_b!r}. Move that node, and leave out `pose`."
                )
            node, slid = mech.node(loop.node_b), Pose.identity()
            if q is not None and contact.kind == "frictionless":
                here = mech.check_q(q)
                X_ba = mech.pose(here, loop.node_b).inverse() @ mech.pose(here, loop.node_a)
                slid = Pose.translation(X_ba.p)
            placed[name] = dataclasses.replace(contact, pose=node.pose @ slid)
            bodies.setdefault(node.body, name)
        if len(bodies) > 1:
            where = ", ".join(f"{name!r} on {body!r}" for body, name in bodies.items())
            raise ModelError(
                f"contacts of {mech.name!r} are on different bodies: {where}. A grasp holds one "
                "rigid body, which carries node b of each loop; reverse a loop that goes from the "
                "object to the finger."
            )
        return Grasp(placed, mech, next(iter(bodies), None))

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
        poses = [contact.pose for contact in self.contacts.values()]
        return trusted_pose(np.stack([x.rot for x in poses]), np.stack([x.p for x in poses]))

    @property
    def points(self) -> Array:
        """Origins of the contacts (ℓ, 3) [m], in the object's frame."""
        return self.poses.p

    @property
    def rows(self) -> list[slice]:
        """The entries of λ that belong to each contact."""
        ends = np.cumsum([0, *(contact.rows for contact in self.contacts.values())])
        return [slice(int(a), int(b)) for a, b in itertools.pairwise(ends)]

    @property
    def row_names(self) -> tuple[str, ...]:
        """A name for each entry of λ: "contact[0]", "contact[1]" ..."""
        return tuple(f"{name}[{i}]" for name, c in self.contacts.items() for i in range(c.rows))

    @property
    def passed(self) -> Array:
        """S (Σ rows, 6 ℓ), block diagonal: contact forces are f = S* λ, so that H(0) f = 0."""
        return block_diagonal([contact.passed for contact in self.contacts.values()])

    @property
    def usable(self) -> Array:
        """`passed` without the directions that zero friction leaves no contact to resist."""
        return block_diagonal([contact.usable for contact in self.contacts.values()])

    def check_forces(self, forces: ArrayLike) -> Array:
        """Contact forces (..., ℓ, 6) as an array; raises for other shapes and entries."""
        hint = f"(moment, force) for each of {', '.join(self.names)}"
        return arguments.rows(forces, (len(self), 6), "the contact force", hint=hint)

    def mechanism(self, function: str) -> Mechanism:
        """The mechanism of the grasp; raises, naming the function, if there is none."""
        if self.mech is None:
            raise ModelError(
                f"{function} needs a mechanism, and this grasp has none; make it with "
                "Grasp.of(mech, {loop: contact})."
            )
        return self.mech

    # ----------------------------------------------------------------------------- force and motion

    def map(self, point: ArrayLike = ORIGIN) -> Array:
        """A: from the object's velocity to its velocities at the contacts.

        Expression:
            V(0) = A V_C,   f_C = A* f(0),   A* = [φ(C, O_1), ..., φ(C, O_ℓ)]
        Source: 001-II, (2.6), (2.7a) and (2.9).

        Args:
            point: C in the object's frame (3,) [m]; the axes at C are the object's.

        Returns:
            A (6 ℓ, 6); the rows of a contact are in the contact's axes.
        """
        X_C = Pose.translation(-constant(point, (3,), "point of the grasp map"))
        shifts = [(X_C @ contact.pose).shift.T for contact in self.contacts.values()]
        return np.concatenate(shifts)

    def object_force(self, forces: ArrayLike, point: ArrayLike = ORIGIN) -> Array:
        """f_C = A* f: the resultant of contact forces.

        Args:
            forces: On the object, in the contacts' frames (ℓ, 6) or (batch, ℓ, 6) [N m, N].
            point: C in the object's frame (3,) [m].

        Returns:
            (moment about C, force) (6,) or (batch, 6) in the object's axes.
        """
        f = self.check_forces(forces)
        return f.reshape(*f.shape[:-2], -1) @ self.map(point)

    def margins(self, forces: ArrayLike) -> GraspMargins:
        """The distance of contact forces from the limits of their contacts.

        Expression:
            press: f_n;  slip: μ f_n - |f_t|, by the elliptic law μ f_n - √(|f_t|² + (μ m_n/γ)²);
            twist: f_n - |m_n|/γ;  tip: f_n - |m_t|/r
        Source: 001-II, Appendix A: the contact forces must stay in their friction cones, which
            "must be continually verified".

        Args:
            forces: On the object, in the contacts' frames (ℓ, 6) or (batch, ℓ, 6) [N m, N].

        Returns:
            The margins in newtons; negative where a contact would slip, twist, tip or break.
        """
        f = self.check_forces(forces)
        margins = [c.margins(f[..., i, :]) for i, c in enumerate(self.contacts.values())]
        return GraspMargins(self.names, np.stack(margins, axis=-2))

    def force_space(self, point: ArrayLike = ORIGIN, *, length: float | None = None) -> ForceSpace:
        """The rank of the grasp and its internal forces, ignoring friction limits (except μ = 0).

        Two point contacts, for instance, have rank 5: nothing resists the turn about the line
        through them. Two soft fingers have rank 6 unless both normals are perpendicular to it.

        Args:
            point: C in the object's frame (3,) [m].
            length: Divides moments to compare them with forces [m]; default: the root mean square
                distance of the contacts from their centre.
        """
        return internal_force.force_space(self, point, length)

    def internal_forces(
        self,
        forces: ArrayLike,
        point: ArrayLike = ORIGIN,
        *,
        split: Split = "minimum_norm",
        length: float | None = None,
        weights: ArrayLike | None = None,
    ) -> InternalForces:
        """Contact forces split into those that move the object and those that squeeze it.

        Expression:
            f_motion = S* W⁻¹ G* (G W⁻¹ G*)⁺ f_C,   G = (S A)*,   f_internal = f - f_motion

            "minimum_norm"     the smallest in the metric W; depends on `length` and `weights`
            "equal_shares"     each contact carries f_C / ℓ as seen from C; rigid contacts only
            "virtual_linkage"  no member of the virtual linkage is in tension
        Source: 001-II, (2.8)-(2.9) for the pseudo-inverse of A; Williams and Khatib 1993 for the
            virtual linkage.

        Args:
            forces: On the object, in the contacts' frames (ℓ, 6) or (batch, ℓ, 6) [N m, N]; only
                components that the contacts transmit.
            point: C in the object's frame (3,) [m].
            split: "minimum_norm", "equal_shares" or "virtual_linkage".
            length: Divides moments in the metric [m]; default as in `force_space`.
            weights: Of the contacts in the metric (ℓ,), positive: a contact of weight 4 carries a
                quarter of what one of weight 1 does. Default: all 1.

        Raises:
            ModelError: A force that a contact does not transmit; a split that the contacts do not
                allow.
        """
        return internal_force.internal_forces(self, forces, point, split, length, weights)

    def virtual_linkage(self, point: ArrayLike = ORIGIN) -> VirtualLinkage:
        """The virtual linkage: internal forces as tensions of bars between the contacts.

        It needs two or more contacts at different points, of any kind but "frictionless". Moments
        that a contact does not transmit are internal forces that stay zero.

        Args:
            point: C in the object's frame (3,) [m], where the resultant acts.

        Raises:
            ModelError: Fewer than two contacts, two at one point, three or more on a line, contacts
                without friction.
        """
        return virtual_linkage(self, point)

    def force_closure(
        self,
        point: ArrayLike = ORIGIN,
        *,
        sides: int = 6,
        length: float | None = None,
        friction: bool = True,
    ) -> ForceClosure:
        """Whether contact forces inside their limits can balance every force on the object.

        Linear programs over forces inside the curved cones, refined with extreme forces until one
        of the two answers is proved. The result includes a squeeze or an escape as evidence.

        Args:
            point: C in the object's frame (3,) [m].
            sides: Sides of the polygons that first approximate circles, at least 3.
            length: Divides moments [m]; default as in `force_space`.
            friction: False tests form closure: each contact as if it had no friction.

        Raises:
            ModelError: A length that is not positive, or too few sides.
            MissingExtraError: SciPy is not installed.
        """
        return force_closure.force_closure(self, point, sides, length, friction)

    def load_distribution(
        self,
        wrench: ArrayLike,
        point: ArrayLike = ORIGIN,
        *,
        objective: Objective = "force",
        reserve: float = 0.0,
        most: float = 1e4,
        effort: GraspEffort | None = None,
        length: float | None = None,
        weights: ArrayLike | None = None,
    ) -> LoadDistribution:
        """Contact forces inside their limits that apply a given wrench to the object.

        Expression:
            "force":   min f* W f,   W as in `internal_forces`
            "effort":  min Σ (τ_j / limit_j)²,   τ = offset + map f
            "margin":  max min_k margin_k(f)
            under  A* f = wrench,  f = S* λ,  margins ≥ reserve,  f_n ≤ most,  |τ| ≤ limit
        Where the limits are met with nothing to spare, to about 1e-9 of the wrench, the result
        keeps them but need not be optimal.

        Args:
            wrench: What the contacts apply to the object (moment about C, force) (6,) in its axes
                [N m, N]; for an object at rest, minus its weight. `needed_wrench` computes it for
                a motion.
            point: C in the object's frame (3,) [m].
            objective: "force", "effort" or "margin".
            reserve: Smallest allowed margin [N], zero or more; for slip only where there is
                friction.
            most: Largest normal force of a contact [N].
            effort: Joint forces caused by contact forces, and their limits (`Grasp.effort`).
            length: Divides moments in the metric W [m]; default as in `force_space`.
            weights: Of the contacts in W (ℓ,).

        Returns:
            The forces. If none are inside the limits, `feasible` is False and `reason` names the
            contact, limit or joint that prevents it.

        Raises:
            ModelError: `objective="effort"` without an effort; a reserve that is negative or not
                finite.
            MissingExtraError: SciPy is not installed.
        """
        return load_distribution.load_distribution(
            self, wrench, point, objective, reserve, most, effort, length, weights
        )

    # ----------------------------------------------------------------------------- with a mechanism

    @documented
    def contact_forces(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        *,
        forces: Mapping[str, ArrayLike] | None = None,
        forces_frame: Frame = "node",
        multipliers: ArrayLike | None = None,
    ) -> Array:
        """f(0): the forces of the fingers on the object while the grasp holds.

        Expression:
            f_i = S_i* λ_i,   Ω λ = -(J_c v̇_f + γ)     so that H(0) f(0) = 0
        Source: 001-II, (a.7) and (b.9d).

        Args:
            multipliers: λ (m,) or (batch, m) if already known; v and tau are then ignored.

        Returns:
            (ℓ, 6) or (batch, ℓ, 6): (moment, force) on the object, in the contacts' frames [N m,
            N]. Of least norm in λ where the contacts can share the load in more than one way.

        Raises:
            ModelError: The grasp has no mechanism.
            ShapeError: The named array does not fit.
        """
        return contact_motion.contact_forces(self, q, v, tau, forces, forces_frame, multipliers)

    @documented
    def contact_state(self, q: ArrayLike, v: ArrayLike) -> ContactState:
        """Θ(0) and W(0) of 001-II, Appendix A: the object's attitude on its fingers and its rates.

        Expression:
            V_ab = V⁻ - V⁺ = H(0)* W(0),   Θ̇(0) = F(Θ) W(0)           (a.4)-(a.6)
        Θ is computed from the relative pose, not integrated, so it does not drift. For a soft
        finger it is the full attitude, although only two velocities are free.
        """
        return contact_motion.contact_state(self, q, v)

    def effort(
        self, q: ArrayLike, v: ArrayLike | None = None, vdot: ArrayLike | None = None
    ) -> GraspEffort:
        """Joint forces that a motion with contact forces needs.

        Expression:
            τ = 𝓜 v̇ + C + J_a* f(0)      (001-II, 2.10a), J_a of the fingers' nodes

        Args:
            q: Joint positions (nq,) [m or rad].
            v: Joint velocities (nv,); default: at rest.
            vdot: Joint accelerations (nv,) of fingers and object; default: zero.

        Raises:
            ModelError: The grasp has no mechanism.
        """
        return contact_motion.effort(self, q, v, vdot)

    def needed_wrench(
        self, q: ArrayLike, v: ArrayLike | None = None, vdot: ArrayLike | None = None
    ) -> Array:
        """The wrench that the contacts must apply for a motion: f_C = M(C) α_C + b_C, with gravity.

        Source: 001-II, (2.4) and (2.9).

        Args:
            q: Joint positions (nq,) [m or rad].
            v: Joint velocities (nv,); default: at rest.
            vdot: Joint accelerations (nv,); default: zero.

        Returns:
            (moment, force) (6,) at the origin of the object's frame, in its axes [N m, N].

        Raises:
            ModelError: The grasp has no mechanism; the object is not on a free hinge.
        """
        return contact_motion.needed_wrench(self, q, v, vdot)

    @documented
    def watch(
        self,
        *,
        reserve: float = 0.0,
        forces: Mapping[str, ArrayLike] | None = None,
        forces_frame: Frame = "node",
    ) -> dict[str, Callable[[float, Array, Array, Array], float]]:
        """Margins for `simulate(..., watch=...)`, one for each limit of each contact.

            motion = lw.simulate(mech, q, v, duration=2.0, watch=grasp.watch())
            motion.events[0].name            "left slips"

        The contact forces are those that keep the loops closed at that instant; they are computed
        once for all margins of an instant.

        Args:
            reserve: What must remain of each margin [N].
            forces: External forces, the same as given to `simulate`.

        Returns:
            Margins by name, like "left slips", "left breaks", "right twists": functions of the
            time, q, v and tau that turn negative when the contact fails.

        Raises:
            ModelError: No contact has a limit, so there is nothing to watch.
        """
        return contact_motion.watch(self, reserve, forces, forces_frame)


def _check_hinge(name: str, contact: Contact, hinge: Hinge) -> None:
    """A loop must free the same space of motions as its contact, in any basis."""
    expected = contact.hinge
    same = expected.nv == hinge.nv and expected.hull.nv == hinge.hull.nv
    if same and expected.nv:
        maps = [x.hinge_map(x.neutral()) for x in (expected, hinge)]
        same = int(np.linalg.matrix_rank(np.concatenate(maps), tol=1e-9)) == expected.nv
    if not same:
        raise ModelError(
            f"loop {name!r} is closed by a hinge '{hinge.describe()}' with {hinge.nv} velocities; "
            f"a contact of kind {contact.kind!r} is a hinge '{expected.describe()}' with "
            f"{expected.nv}. Build the loop with the contact's `hinge`."
        )
