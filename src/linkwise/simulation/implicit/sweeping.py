"""The sweeps of a step as segments: one for all rows, or one for each contact.

Most shapes are away from the ground most of the time. In branches the rows of a contact are
computed, and swept over, in steps in which it is near the ground in some of the motions that are
done together; so are those of a joint that has limits and no friction. The law of what is not near
gives no impulse (`near`), so that a motion does not depend on others beside it.

The joints of limbs of which nothing is near change little from sweep to sweep, and so does a
contact that does not push. In branches most sweeps leave out both; each fourth and the last go over
everything, so that the residual is that of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from linkwise.codegen.stepping.stepping import Segment, Sketch, part
from linkwise.simulation.implicit.ground import ContactPoint
from linkwise.simulation.implicit.impulse import BLOCK, FAR, SOLVER, TINY, TOGETHER, Sweep
from linkwise.simulation.implicit.joint import Joint
from linkwise.spatial.choice import gate, maximum, root, where

ENOUGH = {8: 1e-9, 4: 4e-5}
"""A sweep that changes velocities [m/s or rad/s] by less is the last; by bytes of a number. In
float32, rounding alone changes those of a humanoid by 1e-5."""

USUAL = 20
"""Sweeps after which a step is slow: laws depend on each other, as those of a foot that stands with
a knee at its end, or they are more than velocities are left. Then it goes on to `LATE` only: what
is left decays over the next steps, which begin with these impulses."""

MANY = 60
"""Sweeps after which contacts side by side are taken to swing if velocities go on to change."""

LATE = 1e-4
"""The change of velocities [m/s or rad/s] that is enough after these."""

PERIOD = 4
"""Sweeps over which progress is measured, and from one over everything to the next."""

SLOW = 0.3
"""The share that is left after these where `USUAL` sweeps would not solve a step. It ends before
them then, below `CREEPING`."""

CREEPING = 1e-6
"""The change of velocities [m/s or rad/s] that is enough in such a step."""

PROGRESS = 0.96
"""The share that is left after these, behind the first `USUAL`, where sweeps end because they lead
nowhere: 200 of them would not reduce it to a tenth."""

HOPELESS = 1e-3
"""The largest change of velocities [m/s or rad/s] at which they end so."""

Read = Callable[[str, int, int], Any]
"""Gives numbers of a register, from a place on."""

MADE = "made"
"""The register with the number of sweeps so far."""

MARK, MARKED = "mark", "marked"
"""Registers with the residual of an earlier sweep, and the number of that."""

SWINGS = "swings"
"""The register with a number above zero once sweeps lead nowhere though velocities change."""

AGAIN = "again"
"""The register that asks for another sweep."""

CHANGE = "change"
"""The register with the largest change of a velocity in a sweep so far."""

FULL, LIMBS, ACTS = "full", "limbs", "acts"
"""Registers with a number above zero if the next sweep goes over everything, over the joints of
some limbs, and over some contacts that are solved side by side."""

CARRIES = "carries"
"""The register with a number above zero if a contact of some limbs is near."""


@dataclass(frozen=True, slots=True)
class Laws:
    """What a sweep goes over.

    Attributes:
        joints: Joints with friction or limits; their rows are the first.
        contacts: The first row of each contact, and the contact.
        pattern: For each row the places in w of its entries.
        nv: Entries of w.
        itemsize: Bytes of a number.
        most: Sweeps, at most.
        given_friction: Whether the friction of the ground is given for each motion.
        late: What is enough after `USUAL` sweeps.
    """

    joints: tuple[Joint, ...]
    contacts: Sequence[tuple[int, ContactPoint]]
    pattern: Sequence[Sequence[int]]
    nv: int
    itemsize: int
    most: int
    given_friction: bool
    late: float = LATE

    def begin(self, row: int) -> int:
        """The place of a row's first entry among those of all rows."""
        return sum(map(len, self.pattern[:row]))

    # -------------------------------------------------------------------------------- segments

    def complete(self) -> Segment:
        """One sweep over all rows."""
        s = Sketch("sweep")
        m, sizes = len(self.pattern), {"rows": self.begin(len(self.pattern)), "w": self.nv}
        sizes |= {"bounds": 3 * len(self.joints), "ground_friction": len(self.contacts)}
        sizes |= {"block": BLOCK * len(self.contacts), "residual": 1, SWINGS: 1}

        def read(name: str, start: int, size: int) -> Any:
            return s.read(name, sizes.get(name, m))[start : start + size]

        made = s.read(MADE, 1)[0]
        joints, contacts = range(len(self.joints)), range(len(self.contacts))

        def solve(c: int) -> Any:  # from less memory: on a GPU that is the limit
            i, _ = self.contacts[c]
            return [*read("block", BLOCK * c, BLOCK), *read("mobility", i, 3)]

        laws = self._applied(read, joints, contacts, made, solve, {})
        s.write("impulse", [laws.impulse[i] for i in range(m)])
        w = read("w", 0, self.nv)
        s.write("w", [laws.w.get(k, w[k]) for k in range(self.nv)])
        s.write("residual", [laws.worst])
        self._judge(s, laws.worst)
        return s.segment(again=AGAIN, most=self.most)

    def counted(self, limbs: Sequence[Limbs] = (), branches: Sequence[Unit] = ()) -> Segment:
        """Before the sweeps, which are in part where there are limbs."""
        s = Sketch("count")
        for name in (MADE, MARKED) if self._gives_up or limbs else (MADE,):
            s.write(name, [0.0])
        if self._gives_up:
            s.write(SWINGS, [0.0])
        if branches or limbs:
            s.write(CHANGE, [0.0])
        self._wake(s, branches)
        if limbs:
            s.write(FULL, [1.0])
            s.write(LIMBS, [1.0] * len(limbs))
            s.write(CARRIES, [_largest(s, x.bodies) for x in limbs])
        return s.segment()

    @property
    def _gives_up(self) -> bool:
        """Whether slow steps end before they are solved."""
        return self.most > USUAL and self.late > ENOUGH[self.itemsize]

    def _judge(self, s: Sketch, worst: Any, limbs: int = 0) -> None:
        """Whether there is another sweep, and what that goes over."""
        first, last = ENOUGH[self.itemsize], max(self.late, ENOUGH[self.itemsize])
        made = s.read(MADE, 1)[0] + 1.0
        s.write(MADE, [made])
        slow, enough = made - (USUAL - 0.5), first
        if self._gives_up:
            enough = first + gate(slow, last - first)
        again = worst - enough
        if not (self._gives_up or limbs):
            s.write(AGAIN, [again])
            return
        before = s.read(MARKED, 1)[0]
        due = made - before - (PERIOD - 0.5)
        marked = where(due, made, before)
        s.write(MARKED, [marked])
        if self._gives_up:
            mark = gate(before, s.read(MARK, 1)[0])
            s.write(MARK, [where(due, worst, mark)])
            stuck = gate(slow, gate(HOPELESS - worst, worst - PROGRESS * mark))
            swings = gate(due, gate(made - MANY, gate(worst - HOPELESS, worst - PROGRESS * mark)))
            s.write(SWINGS, [maximum(s.read(SWINGS, 1)[0], swings)])
            creeps = gate(mark, gate(CREEPING - worst, worst - SLOW * mark))
            again = gate(-gate(due, maximum(stuck, creeps)) + TINY, again)
        if limbs:
            again = where(s.read(FULL, 1)[0], again, 1.0)
            due = maximum(made - marked - (PERIOD - 1.5), made - (self.most - 1.5))
            full = maximum(enough + TINY - worst, due)
            s.write(FULL, [full])
            s.write(LIMBS, [maximum(full, x) for x in s.read(CARRIES, limbs)])
        s.write(AGAIN, [again])

    def in_branches(
        self, always: Sequence[int], branches: Sequence[Unit], *, slips: bool = True
    ) -> tuple[Segment, ...]:
        """The sweeps, with what goes before and after them.

        Args:
            always: Joints whose rows are always there.
            branches: The others, and contacts.
            slips: Whether the largest sliding speed is wanted.
        """
        start = [self._begun(unit) for unit in branches]
        limbs = self._limbs(always, branches)
        loop = [self._part(x.joints, (), part(LIMBS, g)) for g, x in enumerate(limbs)]
        if not limbs and always:
            loop.append(self._part(always, ()))
        away = [unit for unit in branches if unit.contact is None]
        loop += [self._part(*unit.members, unit.when) for unit in away]
        near = {unit.contact: unit.when for unit in branches if unit.contact is not None}
        for g, pair in enumerate(self._contact_pairs(list(near))):
            loop.append(self._part((), pair, part(ACTS, g), near, acts=bool(limbs)))
        s = Sketch("judge")
        worst = s.read(CHANGE, 1)[0]
        s.write("residual", [worst])
        s.write(CHANGE, [0.0])
        self._judge(s, worst, len(limbs))
        loop.append(s.segment(again=AGAIN, most=self.most))
        if limbs:
            s = Sketch("wake")
            self._wake(s, branches)
            loop.append(s.segment(again=AGAIN, most=self.most, when=FULL))
        sliding = [unit for unit in branches if slips and unit.contact is not None]
        return (self.counted(limbs, branches), *start, *loop, *map(self._slip, sliding))

    def _limbs(self, always: Sequence[int], branches: Sequence[Unit]) -> list[Limbs]:
        """Joints with friction by limbs, of which some sweeps leave out those that carry nothing.

        Joints that are solved side by side, or carry the same bodies with contacts, are together.
        """
        if not self.contacts or self.most <= PERIOD:
            return []
        places = {
            unit.body: {k for i in self._members(unit.contact) for k in self.pattern[i]}
            for unit in branches
            if unit.contact is not None
        }
        limbs = list[Limbs]()
        for pair in self._pairs(always):
            alike = [set(self.pattern[i]) for i in pair]
            bodies = {x for x, way in places.items() if any(y <= way for y in alike)}
            same = [x for x in limbs if x.bodies & bodies or not (x.bodies or bodies)]
            joints = (*(i for x in same for i in x.joints), *pair)
            together = Limbs(joints, frozenset(bodies.union(*(x.bodies for x in same))))
            limbs = [*(x for x in limbs if x not in same), together]
        return limbs

    def _wake(self, s: Sketch, branches: Sequence[Unit]) -> None:
        """Let the next sweep go over all contacts that are near."""
        near = {unit.contact: unit.when for unit in branches if unit.contact is not None}
        for g, pair in enumerate(self._contact_pairs(list(near))):
            s.write(part(ACTS, g), [_largest(s, [near[c] for c in pair])])

    def _part(
        self,
        joints: Sequence[int],
        contacts: Sequence[int],
        when: str = "",
        near: Mapping[int, str] | None = None,
        *,
        acts: bool = False,
    ) -> Segment:
        """A part of a sweep; of contacts, also whether sweeps in part go over them.

        Args:
            near: For contacts side by side, of which some may be away, what says so.
        """
        s = Sketch("sweep")
        made = s.read(MADE, 1)[0] if contacts else 0.0
        flags = dict[int, Any]()
        if near is not None and len(contacts) > 1:
            flags = {c: s.read(near[c], 1)[0] for c in contacts}
        read = _reader(s)

        def solve(c: int) -> Any:
            return read("solver", SOLVER * c, SOLVER)

        laws = self._applied(read, joints, contacts, made, solve, flags)
        for i, x in laws.impulse.items():
            s.write(part("impulse", i), [x])
        for k, x in laws.w.items():
            s.write(part("w", k), [x])
        if acts:
            pushes = (laws.impulse[self.contacts[c][0]] for c in contacts)
            s.write(when, [reduce(maximum, pushes)])
        s.write(CHANGE, [maximum(s.read(CHANGE, 1)[0], laws.worst)])
        return s.segment(again=AGAIN, most=self.most, when=when)

    def _rows(self, read: Read, members: Sequence[int]) -> dict[int, dict[int, Any]]:
        """Rows by number."""
        rows = dict[int, dict[int, Any]]()
        for i in members:
            places = self.pattern[i]
            entries = read("rows", self.begin(i), len(places))
            rows[i] = dict(zip(places, entries, strict=True))
        return rows

    def _applied(
        self,
        read: Read,
        joints: Sequence[int],
        contacts: Sequence[int],
        made: Any,
        solve: Callable[[int], Any],
        near: Mapping[int, Any],
    ) -> Sweep:
        """A sweep over some rows, after some sweeps.

        Args:
            solve: Gives the `solver` of a contact, or its `block` and diagonal.
            near: For contacts that may be away, a number above zero if they are not.
        """
        members = [*joints, *(i for c in contacts for i in self._members(c))]
        rows = self._rows(read, members)
        of_rows = ("b", "mobility", "inverse", "impulse")
        b, mobility, inverse, impulse = (
            {i: read(name, i, 1)[0] for i in members} for name in of_rows
        )
        for c, flag in near.items():
            i, _ = self.contacts[c]
            b[i] = where(flag, b[i], FAR)
        solvers = {self.contacts[c][0]: solve(c) for c in contacts}
        w, together = _entries(read, rows), min(TOGETHER, self.most // 2) - 0.5 - made
        swings = self._swings(read, made) if contacts else None
        laws = Sweep(rows, b, mobility, inverse, impulse, w, solvers, together, swings)
        for pair in self._pairs(joints):
            laws.joints({i: self._bounds(read, i) for i in pair})
        for pair in self._contact_pairs(contacts):
            laws.contacts({self.contacts[c][0]: self._ground(read, c) for c in pair})
        return laws

    def _swings(self, read: Read, made: Any) -> Any:
        """A number above zero once contacts side by side change by half; None if they never do.

        That is where many sweeps lead nowhere, and behind the first half of few.
        """
        if self.most <= USUAL:
            return gate(read("residual", 0, 1)[0] - HOPELESS, made - (self.most // 2 - 0.5))
        return read(SWINGS, 0, 1)[0] if self._gives_up else None

    def _ground(self, read: Read, c: int) -> tuple[ContactPoint, Any]:
        """A point on the ground and its μ."""
        _, point = self.contacts[c]
        given = self.given_friction
        return point, read("ground_friction", c, 1)[0] if given else point.ground.friction

    def _bounds(self, read: Read, i: int) -> tuple[Any, Any, Any]:
        """h f and the velocities at the limits of a joint, None for what it does not have."""
        joint, bounds = self.joints[i], read("bounds", 3 * i, 3)
        finite = joint.friction > 0.0, np.isfinite(joint.lower), np.isfinite(joint.upper)
        friction, low, high = (x if y else None for x, y in zip(bounds, finite, strict=True))
        return friction, low, high

    def _pairs(self, joints: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Joints by twos that depend on each other little: those of different limbs.

        Solved side by side they take the time of one. Two rows of A = Y* Y may be: as each has a
        place that the other lacks, they are independent, a_ij² < a_ii a_jj, and changes of both do
        not overshoot. Joints without friction come last, each alone: the order is the same with
        branches (`units`) and without.
        """
        rubs = [i for i in joints if self.joints[i].friction > 0.0]
        yield from _by_twos({i: set(self.pattern[i]) for i in rubs})
        yield from ((i,) for i in joints if self.joints[i].friction == 0.0)

    def _contact_pairs(self, contacts: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Contacts by twos, likewise: those of different limbs."""
        yield from _by_twos(
            {c: {k for i in self._members(c) for k in self.pattern[i]} for c in contacts}
        )

    def _members(self, c: int) -> range:
        """The rows of a contact."""
        i, point = self.contacts[c]
        return range(i, i + point.rows)

    def _begun(self, unit: Unit) -> Segment:
        """w with the impulses of the step before."""
        s = Sketch("begin")
        read = _reader(s)
        contact = () if unit.contact is None else self._members(unit.contact)
        rows = self._rows(read, [*unit.members[0], *contact])
        w = _entries(read, rows)
        for i, row in rows.items():
            (before,) = read("impulse", i, 1)
            for k, y in row.items():
                w[k] = w[k] + y * before
        for k, x in w.items():
            s.write(part("w", k), [x])
        return s.segment(when=unit.when)

    def _slip(self, unit: Unit) -> Segment:
        """The largest sliding speed so far, with that of a contact."""
        assert unit.contact is not None
        s, (i, _) = Sketch("slip"), self.contacts[unit.contact]
        read = _reader(s)
        square: Any = 0.0
        for k, row in self._rows(read, [i + 1, i + 2]).items():
            u = read("b", k, 1)[0]
            for place, y in row.items():
                u = u + y * read("w", place, 1)[0]
            square = square + u * u
        push, before = read("impulse", i, 1)[0], s.read("slip", 1)[0]
        s.write("slip", [maximum(before, gate(push, root(square)))])
        return s.segment(when=unit.when)


@dataclass(frozen=True, slots=True)
class Limbs:
    """Joints that are solved together.

    Attributes:
        joints: Their numbers.
        bodies: For each body with contacts that they carry, the number that says whether one is
            near.
    """

    joints: tuple[int, ...]
    bodies: frozenset[str]


@dataclass(frozen=True, slots=True)
class Unit:
    """What has a branch: a joint or a contact.

    Attributes:
        when: The number that says whether it is near (`Segment.when`).
        body: That of all contacts of its body.
        joint: Its number, or None.
        contact: Its number, or None.
    """

    when: str
    body: str
    joint: int | None
    contact: int | None

    @property
    def members(self) -> tuple[list[int], list[int]]:
        """Joints and contacts."""
        joint, contact = ([] if x is None else [x] for x in (self.joint, self.contact))
        return joint, contact


def units(joints: tuple[Joint, ...], points: Sequence[ContactPoint]) -> Iterator[Unit]:
    """Everything that can be away, with its place in the register `near`."""
    limits = [i for i, joint in enumerate(joints) if joint.friction == 0.0]
    bodies = list(dict.fromkeys(point.body for point in points))
    first = len(limits) + len(points)
    for n, i in enumerate(limits):
        yield Unit(part("near", n), part("near", n), i, None)
    for c, point in enumerate(points):
        body = part("near", first + bodies.index(point.body))
        yield Unit(part("near", len(limits) + c), body, None, c)


def _by_twos(places: Mapping[int, set[int]]) -> Iterator[tuple[int, ...]]:
    """What has places that the other lacks by twos, with as few in common as there can be."""
    left = list(places)
    while left:
        i, *rest = left
        others = [j for j in rest if not (places[i] <= places[j] or places[j] <= places[i])]
        j = min(others, key=lambda j: len(places[i] & places[j]), default=i)
        yield (i,) if i == j else (i, j)
        left = [k for k in rest if k != j]


def _reader(s: Sketch) -> Read:
    """Reads parts of registers."""

    def read(name: str, start: int, size: int) -> Any:
        return s.read(part(name, start, size), size)

    return read


def _largest(s: Sketch, names: Iterable[str]) -> Any:
    """The largest one of some numbers; zero for none."""
    return reduce(maximum, (s.read(name, 1)[0] for name in sorted(names)), 0.0)


def _entries(read: Read, rows: Mapping[int, Mapping[int, Any]]) -> dict[int, Any]:
    """The entries of w that some rows have, by place."""
    return {k: read("w", k, 1)[0] for k in sorted({k for row in rows.values() for k in row})}
