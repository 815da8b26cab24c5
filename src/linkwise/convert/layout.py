"""How one library arranges what another arranges differently, hinge by hinge.

All maps between velocities are orthogonal (permutations and rotations), so generalised forces are
converted by the same map: the power tau · v is the same number in both layouts. A coordinate that
follows others and that the other library lacks is reduced to them: its velocity is theirs times the
slopes of the coupling, and its force is added to theirs times the same slopes.

Accelerations are the rates of velocities; the rule of a hinge says what its turning axes add.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise import arguments
from linkwise.convert.rule import Rule
from linkwise.errors import FrameError, ModelError, ShapeError
from linkwise.model.body import Coupling
from linkwise.model.mechanism import Mechanism
from linkwise.model.state import couple, split_coordinate
from linkwise.spatial.array import Array, ArrayLike, floats


@dataclass(frozen=True, slots=True)
class Part:
    """One hinge: its place here and there, and the rule between them."""

    hinge: str
    q_here: slice
    v_here: slice
    q_there: slice
    v_there: slice
    rule: Rule


@dataclass(frozen=True, slots=True)
class Layout:
    """Converts one mechanism's vectors to another library's layout and back.

    All functions take leading axes.

    Attributes:
        library: The other library's name.
        mech: The mechanism on our side.
        nq: Number of coordinates on the other side.
        nv: Number of velocities on the other side.
        parts: The hinges.
        reduced: Couplings whose dependent coordinate the other side has not, in order.
        velocity_order: Positions of our (angular, linear) components in its spatial velocities.
        force_order: The same for spatial forces.
    """

    library: str
    mech: Mechanism
    nq: int
    nv: int
    parts: tuple[Part, ...]
    reduced: tuple[Coupling, ...]
    velocity_order: tuple[int, ...]
    force_order: tuple[int, ...]

    def q_to(self, q: ArrayLike) -> Array:
        """Our coordinates (..., nq) in the other layout.

        Raises:
            FrameError: A coordinate that the other side lacks is not where its coupling puts it.
        """
        q = self.mech.check_q(q)
        followed = couple(self.mech, q, self.reduced) if self.reduced else q
        self._check_followed(q, followed, self.mech.coordinate, "q")
        out = np.zeros((*q.shape[:-1], self.nq))
        for part in self.parts:
            out[..., part.q_there] = part.rule.q_to(q[..., part.q_here])
        return out

    def q_from(self, q: ArrayLike) -> Array:
        """The other library's coordinates in our layout.

        Those that it has are taken as they are, also where a coupling would put them elsewhere;
        those that it lacks follow their couplings.
        """
        q = self._checked(q, self.nq, "q")
        out = np.broadcast_to(self.mech.neutral(), (*q.shape[:-1], self.mech.nq)).copy()
        for part in self.parts:
            out[..., part.q_here] = part.rule.q_from(q[..., part.q_there])
        return self.mech.check_q(couple(self.mech, out, self.reduced) if self.reduced else out)

    def v_to(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Our velocities (..., nv) in the other layout; q in ours says how axes are turned.

        Raises:
            FrameError: A velocity that the other side lacks does not follow its coupling.
        """
        q, v = self.mech.check_q(q), self.mech.check_v(v)
        self._check_followed(v, self._v_followed(q, v), self._in_v, "v")
        return self._v_to(q, v)

    def _v_to(self, q: Array, v: Array) -> Array:
        out = np.zeros((*np.broadcast_shapes(q.shape[:-1], v.shape[:-1]), self.nv))
        for part in self.parts:
            out[..., part.v_there] = part.rule.v_to(q[..., part.q_here], v[..., part.v_here])
        return out

    def v_from(self, q: ArrayLike, v: ArrayLike) -> Array:
        """The other library's velocities in our layout; q is in ours."""
        q = self.mech.check_q(q)
        return self._v_followed(q, self._v_from(q, self._checked(v, self.nv, "v")))

    def _v_followed(self, q: Array, v: Array) -> Array:
        """Velocities with those that the other side lacks from their couplings."""
        if not self.reduced:
            return v
        out = _spread(v, q)
        for coupling in self.reduced:
            follow = self._in_v(coupling.dependent)
            out[..., follow] = sum(s * out[..., i] for i, s in self._slopes(q, coupling))
        return out

    def _v_from(self, q: Array, v: Array) -> Array:
        out = np.zeros((*np.broadcast_shapes(q.shape[:-1], v.shape[:-1]), self.mech.nv))
        for part in self.parts:
            out[..., part.v_here] = part.rule.v_from(q[..., part.q_here], v[..., part.v_there])
        return out

    def vdot_to(self, q: ArrayLike, v: ArrayLike, vdot: ArrayLike) -> Array:
        """Our accelerations v̇ (..., nv) in the other layout; q and v are in ours.

        They are the rates of the other side's velocities: where those are in axes that do not
        turn with the body, as in the free joints of MuJoCo and Drake, ω × v is added.
        """
        q, v = self.mech.check_q(q), self.mech.check_v(v)
        vdot = self.mech.check_v(vdot, "vdot")
        self._check_followed(vdot, self._vdot_followed(q, v, vdot), self._in_v, "vdot")
        return self._v_to(q, vdot + self._turning(v))

    def vdot_from(self, q: ArrayLike, v: ArrayLike, vdot: ArrayLike) -> Array:
        """The other library's accelerations in our layout; q and v are in ours."""
        q, v = self.mech.check_q(q), self.mech.check_v(v)
        out = self._v_from(q, self._checked(vdot, self.nv, "vdot")) - self._turning(v)
        return self._vdot_followed(q, v, out)

    def _vdot_followed(self, q: Array, v: Array, vdot: Array) -> Array:
        """Accelerations with those that the other side lacks from their couplings."""
        if not self.reduced:
            return vdot
        out = _spread(vdot, q, v)
        for coupling in self.reduced:
            follow = self._in_v(coupling.dependent)
            known = {name: q[..., self.mech.coordinate(name)] for name, _ in coupling.terms}
            bends = coupling.curvatures(known)
            at = {name: self._in_v(name) for name in bends}
            bent = sum(bend * v[..., at[name]] ** 2 for name, bend in bends.items())
            out[..., follow] = bent + sum(s * out[..., i] for i, s in self._slopes(q, coupling))
        return out

    def _turning(self, v: Array) -> Array:
        out = np.zeros_like(v)
        for part in self.parts:
            out[..., part.v_here] = part.rule.turning(v[..., part.v_here])
        return out

    def _slopes(self, q: Array, coupling: Coupling) -> list[tuple[int, Array]]:
        """Index in v of each coordinate that a coupling follows, and the slope there."""
        known = {name: q[..., self.mech.coordinate(name)] for name, _ in coupling.terms}
        slopes = coupling.slopes(known)
        return [(self._in_v(name), slope) for name, slope in slopes.items()]

    def force_to(self, q: ArrayLike, tau: ArrayLike) -> Array:
        """Our generalised forces (..., nv) in the other layout; q is in ours."""
        q, tau = self.mech.check_q(q), self.mech.check_v(tau, "tau")
        if self.reduced:
            tau = _spread(tau, q)
        for coupling in reversed(self.reduced):
            follow = self._in_v(coupling.dependent)
            for i, slope in self._slopes(q, coupling):
                tau[..., i] += slope * tau[..., follow]
        return self._v_to(q, tau)

    def force_from(self, q: ArrayLike, tau: ArrayLike) -> Array:
        """The other library's generalised forces in our layout; q is in ours."""
        return self._v_from(self.mech.check_q(q), self._checked(tau, self.nv, "tau"))

    def spatial_velocity_to(self, V: ArrayLike) -> Array:
        """Order of the six components of a velocity (or acceleration) changed to the other's."""
        return self._checked(V, 6, "spatial velocity")[..., list(self.velocity_order)]

    def spatial_velocity_from(self, V: ArrayLike) -> Array:
        """Order of the six components changed to (angular, linear)."""
        back = np.argsort(self.velocity_order)
        return self._checked(V, 6, "spatial velocity")[..., back]

    def spatial_force_to(self, f: ArrayLike) -> Array:
        """Order of the six components of a force (moment, force) changed to the other's."""
        return self._checked(f, 6, "spatial force")[..., list(self.force_order)]

    def spatial_force_from(self, f: ArrayLike) -> Array:
        """Order of the six components changed to (moment, force)."""
        return self._checked(f, 6, "spatial force")[..., np.argsort(self.force_order)]

    def _in_v(self, name: str) -> int:
        return _in_v(self.mech, name)

    def _check_followed(
        self, given: Array, followed: Array, place: Callable[[str], int], what: str
    ) -> None:
        """Raise if a coordinate that the other library lacks is not what its coupling says.

        The other library could not hold the difference, which would be lost.
        """
        for coupling in self.reduced:
            i = place(coupling.dependent)
            actual, right = np.broadcast_arrays(given[..., i], followed[..., i])
            error = np.abs(actual - right)
            if not np.all(error <= FOLLOWED * (1.0 + np.abs(right))):
                worst = int(np.argmax(error))
                raise FrameError(
                    f"{what} of {coupling.dependent!r} is {actual.flat[worst]:.6g}, but its "
                    f"coupling {coupling.name!r} says {right.flat[worst]:.6g}; {self.library} has "
                    f"no coordinate for it, and the difference would be lost. Use "
                    f"{'mech.couple(q)' if what == 'q' else 'values that follow the coupling'}."
                )

    def _checked(self, value: ArrayLike, size: int, what: str) -> Array:
        array = floats(value, what)
        if array.ndim == 0 or array.shape[-1] != size:
            raise ShapeError(
                f"{what} in {self.library}'s layout has shape {array.shape}, not (..., {size})."
            )
        if not np.isfinite(array).all():
            raise ShapeError(f"{what} in {self.library}'s layout is not finite.")
        return array

    def __str__(self) -> str:
        lines = [f"{self.mech.name}: Linkwise -> {self.library}"]
        for p in self.parts:
            lines.append(
                f"  {p.hinge:24} q[{p.q_here.start}:{p.q_here.stop}] -> "
                f"[{p.q_there.start}:{p.q_there.stop}]  v[{p.v_here.start}:{p.v_here.stop}] -> "
                f"[{p.v_there.start}:{p.v_there.stop}]  {p.rule.name}"
            )
        return "\n".join(lines)


FOLLOWED = 1e-9
"""How far from its coupling a coordinate may be that the other side lacks, relative to 1 + |q|."""

ANGULAR_FIRST = (0, 1, 2, 3, 4, 5)
LINEAR_FIRST = (3, 4, 5, 0, 1, 2)


@dataclass(frozen=True, slots=True)
class Foreign:
    """A joint of the other library: its name, kind and position in q and v."""

    name: str
    kind: str
    q_start: int
    nq: int
    v_start: int
    nv: int


def check_model(model: Any, what: str, kind: str, parts: Sequence[str]) -> None:
    """Refuse anything but a model of the other library, which is not imported here."""
    if inspect.isclass(model) or not all(hasattr(model, part) for part in parts):
        raise ModelError(f"{what} must be {kind}; found {arguments.shown(model)}.")


def matched(
    library: str,
    mech: Mechanism,
    joints: Sequence[Foreign],
    rule_for: Callable[[str, Foreign], Rule | None],
    *,
    aliases: dict[str, str],
    size: tuple[int, int],
    orders: tuple[tuple[int, ...], tuple[int, ...]],
) -> Layout:
    """The layout, with each joint that moves matched to a hinge by name.

    A joint called "hinge[i]" is one degree of freedom of a hinge that the other library splits.

    Args:
        library: Name of the other library.
        mech: Ours.
        joints: Its joints.
        rule_for: The rule between one of our kinds of hinge and one of its joints.
        aliases: Names in the other library that have another name here.
        size: nq and nv of the other library.
        orders: Order of components of its spatial velocities and forces.
    """
    parts, strangers = list[Part](), list[str]()
    for joint in joints:
        if joint.nv == 0:
            continue
        name = aliases.get(joint.name, joint.name)
        hinge, inner = _split(name, mech)
        if hinge is None:
            strangers.append(joint.name)
            continue
        body = mech.bodies[mech.hinge_index[hinge]]
        q_here, v_here = mech.q_slice(hinge), mech.v_slice(hinge)
        if inner is not None:
            q_here = slice(q_here.start + inner, q_here.start + inner + 1)
            v_here = slice(v_here.start + inner, v_here.start + inner + 1)
        rule = rule_for("part" if inner is not None else body.hinge.kind, joint)
        if rule is None or joint.nv != v_here.stop - v_here.start:
            raise FrameError(
                f"hinge {hinge!r} is a {body.hinge.kind} hinge here ({body.hinge.nv} velocities) "
                f"and a {joint.kind} joint with {joint.nv} in {library}; these cannot be converted."
            )
        q_there = slice(joint.q_start, joint.q_start + joint.nq)
        v_there = slice(joint.v_start, joint.v_start + joint.nv)
        parts.append(Part(hinge, q_here, v_here, q_there, v_there, rule))
    reduced = _check_complete(library, mech, parts, strangers)
    return Layout(library, mech, *size, tuple(parts), reduced, *orders)


def _split(name: str, mech: Mechanism) -> tuple[str | None, int | None]:
    head, inner = split_coordinate(name, mech.hinge_index)
    body = mech.bodies[mech.hinge_index[head]] if head in mech.hinge_index else None
    if body is None or (inner is not None and inner >= body.hinge.nv):
        return None, None
    return head, inner


def _check_complete(
    library: str, mech: Mechanism, parts: Sequence[Part], strangers: Sequence[str]
) -> tuple[Coupling, ...]:
    """Raise if hinges are unmatched; returns the couplings that replace missing ones."""
    covered, reduced = np.zeros(mech.nv, dtype=bool), list[Coupling]()
    for part in parts:
        covered[part.v_here] = True
    for coupling in mech.couplings_in_order:
        names = [coupling.dependent, *(name for name, _ in coupling.terms)]
        if all(_is_rate(mech, name) for name in names):
            follow = _in_v(mech, coupling.dependent)
            if not covered[follow]:
                covered[follow] = True
                reduced.append(coupling)
    missing = [mech.velocity_names[i] for i in np.flatnonzero(~covered)]
    if strangers or missing:
        raise FrameError(
            f"the hinges of {mech.name!r} and of the {library} model do not match by name: "
            f"only in Linkwise: {_list(missing)}; only in {library}: {_list(strangers)}. "
            "Load both from the same file, or lock and rename until they agree."
        )
    return tuple(reduced)


def _spread(array: Array, *others: Array) -> Array:
    """A copy with the leading axes of all."""
    lead = np.broadcast_shapes(array.shape[:-1], *(x.shape[:-1] for x in others))
    return np.broadcast_to(array, (*lead, array.shape[-1])).copy()


def _in_v(mech: Mechanism, name: str) -> int:
    """Index in v of the velocity that is the rate of the coordinate `name`."""
    hinge, inner = split_coordinate(name, mech.hinge_index)
    return mech.v_slice(hinge).start + (inner or 0)


def _is_rate(mech: Mechanism, name: str) -> bool:
    """Whether the velocities of a coordinate's hinge are the rates of its coordinates."""
    hinge = mech.hinge(split_coordinate(name, mech.hinge_index)[0]).hinge
    return hinge.coordinates == hinge.velocities


def _list(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (" ..." if len(names) > 8 else "") if names else "none"
