"""What is impossible or doubtful about a mechanism, each finding with its reason and a repair.

`structure` checks what would make a mechanism meaningless (unknown or duplicate names, cycles): a
`Mechanism` cannot be made with such a finding. `findings` checks the physics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Literal

import numpy as np

from linkwise.errors import ModelError, unknown_name
from linkwise.model.actuator import Actuator
from linkwise.model.body import WORLD, Body, Coupling, Loop, Node
from linkwise.model.hinges import Geared, Locked, Modal
from linkwise.model.hinges.modified import is_plain
from linkwise.model.lumps import modal_bodies, would_soften
from linkwise.model.spanning_tree import armature
from linkwise.model.state import in_order, plain_names, split_coordinate
from linkwise.model.task_rows import JointRow
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose

if TYPE_CHECKING:
    from linkwise.model.mechanism import Mechanism


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong or doubtful.

    Attributes:
        severity: "error" for what is impossible, "warning" for what is doubtful.
        where: The body, hinge, node, loop or coupling, by name.
        code: A short key: "mass", "triangle", "limits", "duplicate-name" ...
        reason: What was found and what is allowed.
        repair: What to do about it.
    """

    severity: Literal["error", "warning"]
    where: str
    code: str
    reason: str
    repair: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.where}: {self.reason} {self.repair} [{self.code}]"


SHOWN = 12
"""How many findings a message shows, and how many come with near names."""


NO_SECOND = (
    "no-second",
    "its modes have no displacements of second order: a spinning body would soften.",
    "Give `second` of the flexible body, or use it for slow motions only.",
)
"""Code, reason and repair of a flexible body whose nodes move along straight lines."""


def as_text(title: str, problems: Sequence[Finding]) -> str:
    """A title and the findings under it, the first ones only where there are many."""
    lines = [f"{p.where}: {p.reason} {p.repair}" for p in problems[:SHOWN]]
    if len(problems) > SHOWN:
        lines.append(f"... and {len(problems) - SHOWN} more")
    return "\n  ".join([f"{title}:", *lines]) if len(lines) > 1 else f"{title}: {lines[0]}"


def unknown(kind: str, name: str, known: Iterable[str], owner: str, before: int) -> str:
    """Reason of a finding about an unknown name; `found` is how many findings came before it."""
    return str(unknown_name(kind, name, known, owner=owner, compare=before < SHOWN))


# -------------------------------------------------------------------------------- structure

_HERE = "this mechanism"


def structure(
    bodies: Sequence[Body],
    nodes: Sequence[Node],
    loops: Sequence[Loop],
    couplings: Sequence[Coupling],
    actuators: Sequence[Actuator] = (),
) -> list[Finding]:
    """Findings that keep these records from being one mechanism."""
    problems = [
        *_doubled("body or node", [WORLD, *(b.name for b in bodies), *(n.name for n in nodes)]),
        *_doubled("hinge", [b.hinge_name for b in bodies]),
        *_doubled("loop", [x.name for x in loops]),
        *_doubled("coupling", [c.name for c in couplings]),
        *_doubled("actuator", [a.name for a in actuators]),
    ]
    problems += _numbers(bodies, nodes)
    seen, everyone = {WORLD}, {b.name: None for b in bodies}
    for body in bodies:
        if body.parent not in seen:
            reason = (
                f"its parent {body.parent!r} comes after it; parents are stored first."
                if body.parent in everyone
                else unknown("body", body.parent, everyone, _HERE, len(problems))
            )
            problems.append(
                _error(f"body {body.name!r}", "parent", reason, "Give an earlier body.")
            )
        seen.add(body.name)
        try:
            body.drive.check(body.hinge)
        except ModelError as error:
            problems.append(_error(f"hinge {body.hinge_name!r}", "drive", str(error), ""))
        for lump in body.lumps:
            if (lump.hinge.nq, lump.hinge.nv) != (body.hinge.nq, body.hinge.nv):
                reason = (
                    f"a lump moves with {lump.hinge.nv} coordinates, its hinge has {body.hinge.nv}."
                )
                problems.append(_error(f"body {body.name!r}", "lump", reason, "Give it as many."))
    for node in nodes:
        if node.body not in seen:
            reason = unknown("body", node.body, seen, _HERE, len(problems))
            problems.append(_error(f"node {node.name!r}", "node", reason, ""))
    problems += _loop_structure(loops, seen | {n.name for n in nodes})
    problems += _coupling_structure(couplings, bodies)
    problems += _actuator_structure(actuators, bodies, seen | {n.name for n in nodes})
    return problems


def _actuator_structure(
    actuators: Sequence[Actuator], bodies: Sequence[Body], places: set[str]
) -> Iterator[Finding]:
    """Actuators of joints or nodes that are not there."""
    hinges = {body.hinge_name: body.hinge for body in bodies}
    for i, actuator in enumerate(actuators):
        where = f"actuator {actuator.name!r}"
        if actuator.node and actuator.node not in places:
            reason = unknown("node or body", actuator.node, places, _HERE, i)
            yield _error(where, "actuator", reason, "")
        for end in (x for cable in actuator.cables for x in cable[:2] if x not in places):
            yield _error(where, "actuator", unknown("node or body", end, places, _HERE, i), "")
        for name, _ in actuator.joints:
            hinge, index = split_coordinate(name, hinges)
            if hinge not in hinges:
                yield _error(where, "actuator", unknown("hinge", name, hinges, _HERE, i), "")
            elif isinstance(hinges[hinge], Locked):
                continue  # until it is released
            elif not is_plain(hinges[hinge]) or (index or 0) >= hinges[hinge].nv:
                reason = f"{name!r} has no coordinate whose rate is its velocity."
                yield _error(where, "actuator", reason, "Name a joint such as a pin or a slide.")


def _numbers(bodies: Sequence[Body], nodes: Sequence[Node]) -> Iterator[Finding]:
    """Parts whose shapes are wrong or that are not finite (by overflow, for instance)."""
    good = set[int]()  # equal links share their objects
    parts: Iterable[tuple[str, Pose | SpatialInertia | None]] = chain(
        ((f"body {b.name!r}", x) for b in bodies for x in (b.inboard, b.outboard, b.inertia)),
        ((f"node {n.name!r}", x) for n in nodes for x in (n.pose, n.inertia)),
    )
    for where, part in parts:
        if part is None or id(part) in good:
            continue
        pose = isinstance(part, Pose)
        what = "pose" if pose else "inertia"
        numbers = (part.rot, part.p) if pose else (part.mass, part.h, part.J)
        shapes = [(3, 3), (3,)] if pose else [(), (3,), (3, 3)]
        if [np.shape(x) for x in numbers] != shapes:
            reason = f"its {what} is a stack; a mechanism takes single ones."
            yield _error(where, "shape", reason, "Index it, for instance poses[0].")
        elif not all(np.isfinite(x).all() for x in numbers):
            yield _error(where, "not-finite", f"its {what} is not finite.", "Look at its numbers.")
        else:
            good.add(id(part))


def _error(where: str, code: str, reason: str, repair: str) -> Finding:
    return Finding("error", where, code, reason, repair)


def _doubled(kind: str, names: Sequence[str]) -> Iterator[Finding]:
    if len(set(names)) < len(names) or "" in names:
        for name, count in Counter(names).items():
            if not name:
                yield _error(kind, "empty-name", "a name is empty.", "Give each a name.")
            elif count > 1:
                yield _error(
                    f"{kind} {name!r}",
                    "duplicate-name",
                    f"the name is used {count} times.",
                    "Rename all but one."
                    if name != WORLD
                    else "It is kept for the ground; choose another.",
                )


def _loop_structure(loops: Sequence[Loop], places: set[str]) -> Iterator[Finding]:
    for index, loop in enumerate(loops):
        for end in (loop.node_a, loop.node_b):
            if end not in places:
                reason = unknown("node or body", end, places, _HERE, index)
                yield _error(f"loop {loop.name!r}", "loop", reason, "")
        if loop.node_a == loop.node_b:
            reason = f"it closes node {loop.node_a!r} onto itself."
            yield _error(f"loop {loop.name!r}", "loop", reason, "Give two different nodes.")
        try:
            loop.drive.check(loop.hinge)
        except ModelError as error:
            yield _error(f"loop {loop.name!r}", "drive", str(error), "")
        if (rotor := armature(loop.drive, loop.hinge)).any():
            reason = f"its armature {rotor.tolist()} is not part of the mass matrix of the tree."
            repair = (
                "Give every degree of freedom of the hinge armature, and use `Builder`: then the "
            )
            repair += "hinge gets a body. Or remove the armature."
            yield _error(f"loop {loop.name!r}", "drive", reason, repair)
        if loop.hinge.nv == 6:
            yield _error(
                f"loop {loop.name!r}",
                "loop",
                f"a {loop.hinge.kind} hinge leaves all six directions free, so nothing is closed.",
                "Leave the loop out.",
            )


def _coupling_structure(couplings: Sequence[Coupling], bodies: Sequence[Body]) -> list[Finding]:
    couplings = [c for c in couplings if not isinstance(c, JointRow)]
    if not couplings:
        return []
    problems = list[Finding]()
    count = {b.hinge_name: b.hinge.nq for b in bodies}
    couplings = [plain_names(c, count) for c in couplings]
    for c in couplings:
        where = f"coupling {c.name!r}"
        if not c.terms:
            problems.append(
                _error(where, "coupling", "it has no terms.", "Lock the hinge instead.")
            )
        for name, uses in Counter(name for name, _ in c.terms).items():
            if uses > 1:
                reason = f"{name!r} occurs in {uses} of its terms."
                problems.append(_error(where, "coupling", reason, "Add the coefficients up."))
        for name in [c.dependent, *(n for n, _ in c.terms)]:
            hinge, inner = split_coordinate(name, count)
            nq = count.get(hinge)
            if nq is None:
                reason = unknown("hinge", hinge, count, _HERE, len(problems))
                problems.append(_error(where, "coupling", reason, ""))
            elif nq == 0:
                reason = f"hinge {hinge!r} is locked and has no coordinate."
                problems.append(_error(where, "coupling", reason, "Remove the coupling."))
            elif not (inner is None and nq == 1) and not (inner is not None and inner < nq):
                reason = f"{name!r} does not name one of the {nq} coordinates of hinge {hinge!r}."
                problems.append(_error(where, "coupling", reason, f"Write '{hinge}[0]' and so on."))
        if not np.isfinite([c.offset, *(x for _, cs in c.terms for x in cs)]).all():
            problems.append(_error(where, "coupling", "a coefficient is not finite.", ""))
    for name, uses in Counter(c.dependent for c in couplings).items():
        if uses > 1:
            reason = f"it is made to follow others {uses} times."
            problems.append(_error(f"hinge {name!r}", "coupling", reason, "Keep one coupling."))
    problems += _coupling_circles(couplings)
    return problems


def _coupling_circles(couplings: Sequence[Coupling]) -> Iterator[Finding]:
    waiting = sorted({c.dependent for c in couplings} - {c.dependent for c in in_order(couplings)})
    if waiting:
        names = ", ".join(waiting[:SHOWN]) + (" ..." if len(waiting) > SHOWN else "")
        reason = f"the couplings of {names} follow each other in a cycle."
        yield _error("couplings", "coupling", reason, "Leave one of these hinges independent.")


# ---------------------------------------------------------------------------------- physics


def findings(mech: Mechanism) -> tuple[Finding, ...]:
    """All findings about a mechanism, errors first."""
    problems = [
        *_inertia_findings(mech),
        *_lump_findings(mech),
        *_massless_findings(mech),
        *_drive_findings(mech),
        *_loop_findings(mech),
    ]
    if mech.nv == 0:
        problems.append(
            Finding(
                "warning",
                f"mechanism {mech.name!r}",
                "rigid",
                "it has no degree of freedom.",
                "Give some body a hinge other than Locked.",
            )
        )
    return tuple(sorted(problems, key=lambda f: f.severity != "error"))


def _inertia_findings(mech: Mechanism) -> Iterator[Finding]:
    """Inertias that no rigid body can have.

    A body and everything welded to it move as one and are checked as one; an impossible part of a
    possible sum is a warning. Sums of possible inertias are possible, so only bodies with an
    impossible part are summed.
    """
    carriers: Iterable[tuple[str, str, SpatialInertia]] = [
        *((f"body {b.name!r}", b.name, b.inertia) for b in mech.bodies),
        *((f"node {n.name!r}", n.body, n.inertia) for n in mech.nodes if n.inertia is not None),
    ]
    good = set[int]()  # mechanisms made of equal links share one inertia object
    wholes = dict[int, list[tuple[str, str]]]()
    for where, name, inertia in carriers:
        if id(inertia) in good:
            continue
        problems = inertia.findings()
        if not problems:
            good.add(id(inertia))
            continue
        top = _welded_to(mech, name)
        if top not in wholes:
            sum_of = None if top < 0 else _welded_inertia(mech, top)
            wholes[top] = [] if sum_of is None else sum_of.findings()
            for code, reason in wholes[top]:
                assert sum_of is not None
                body = f"body {mech.bodies[top].name!r}"
                part = "" if where == body else f"with what is welded to it, {where} for instance, "
                yield _error(body, code, part + reason, _inertia_repair(code, sum_of))
        for code, reason in problems if not wholes[top] else []:
            sum_of = "the ground" if top < 0 else f"body {mech.bodies[top].name!r}"
            reason = f"{reason} It is welded to {sum_of}, and the sum is possible."
            yield Finding("warning", where, code, reason, _inertia_repair(code, inertia))


def _lump_findings(mech: Mechanism) -> Iterator[Finding]:
    """Impossible inertias of lumps, and flexible bodies without displacements of second order.

    A lump moves by itself. A rotor is one rigid body; a node of a flexible body is a share of one.
    """
    for k in mech.flexible:
        body = mech.bodies[k]
        for i, lump in enumerate(body.lumps):
            rotor = isinstance(lump.hinge, Geared)
            where = f"the motor at hinge {body.hinge_name!r}"
            where = where if rotor else f"lump {i} of body {body.name!r}"
            for code, reason in lump.inertia.findings():
                repair = _inertia_repair(code, lump.inertia)
                yield Finding("error" if rotor else "warning", where, code, reason, repair)
    for k in modal_bodies(mech):
        parts = (mech.bodies[k], *mech.bodies[k].lumps)
        nodes = [x.hinge for x in parts if isinstance(x.hinge, Modal)]
        places, moved = np.stack([x.rest.p for x in nodes]), np.stack([x.modes[3:] for x in nodes])
        straight = all(x.second is None for x in nodes)
        if straight and would_soften(places, moved, None):
            yield Finding("warning", f"body {mech.bodies[k].name!r}", *NO_SECOND)


def _welded_to(mech: Mechanism, name: str) -> int:
    """Index of the moving body that a body is welded to, or is; -1 for the ground."""
    k = mech.body_index.get(name, -1)
    while k >= 0 and mech.bodies[k].hinge.nv == 0:
        k = int(mech.parent[k])
    return k


def _welded_inertia(mech: Mechanism, top: int) -> SpatialInertia:
    """Inertia of a body with everything welded to it, about its frame."""
    total, way = mech.inertias[top], {top: Pose.identity()}
    for k in range(top + 1, mech.n_bodies):
        parent, body = int(mech.parent[k]), mech.bodies[k]
        if parent in way and body.hinge.nv == 0:
            way[k] = way[parent] @ body.pose(np.zeros(0))
            total = total + mech.inertias[k].moved(way[k])
    return total


def _inertia_repair(code: str, inertia: SpatialInertia) -> str:
    if code in ("mass", "first-moment"):
        return "Give a positive mass, or no inertia at all."
    if code == "symmetry":
        return "Use the mean of the matrix and its transpose, or look for a typo."
    moments = inertia.nearest_possible().principal()[0]
    values = ", ".join(f"{x:.6g}" for x in moments)
    return (
        "Check units and the sign of the products of inertia; the nearest possible principal "
        f"moments are {values} kg m² (inertia.nearest_possible())."
    )


def _massless_findings(mech: Mechanism) -> Iterator[Finding]:
    """Hinges that move no inertia: none outboard of them, and no armature."""
    # Inertia of what is welded outboard of each body, where something is.
    welded = dict[int, SpatialInertia]()
    mass, J = mech.inertias.mass, mech.inertias.J
    empty = (mass == 0.0) & (np.abs(J).max(axis=(1, 2), initial=0.0) == 0.0)
    tip = np.ones(mech.n_bodies, dtype=bool)  # nothing that moves is further out
    for k in range(mech.n_bodies - 1, -1, -1):
        body, p = mech.bodies[k], int(mech.parent[k])
        armature = mech.armature[mech.v_start[k] : mech.v_start[k + 1]]
        rigid = None
        if body.lumps:  # that they resist the hinge is for `FlexibleBody.validate`
            empty[k] = tip[k] = False
        if tip[k]:
            rigid = mech.inertias[k] + welded.get(k, SpatialInertia.zero())
        if body.hinge.nv and not (armature > 0.0).all() and (empty[k] or tip[k]):
            yield from _tip_finding(body, bool(empty[k]), rigid, armature)
        if p < 0:
            continue
        empty[p] &= empty[k]
        tip[p] &= body.hinge.nv == 0 and bool(tip[k])
        if rigid is not None and body.hinge.nv == 0:
            outer = rigid.moved(body.pose(np.zeros(0)))
            welded[p] = welded[p] + outer if p in welded else outer


def _tip_finding(
    body: Body, empty: bool, inertia: SpatialInertia | None, armature: np.ndarray
) -> Iterator[Finding]:
    where = f"body {body.name!r}"
    repair = "Give the tip its mass and inertia, give the hinge an armature, or lock it."
    if empty:
        reason = f"it has no mass, nor has anything beyond it, so hinge {body.hinge_name!r} moves "
        yield _error(where, "massless-tip", reason + "nothing.", repair)
    elif inertia is not None and not inertia.findings():
        # H M H* about the hinge frame O must be positive definite for the tip to be moved.
        about_hinge = inertia.moved(body.outboard).matrix
        q = body.hinge.normalise(body.hinge.neutral() + 0.1)
        H = body.hinge.hinge_map(q)
        D = H @ about_hinge @ H.T + np.diag(armature)
        scale = float(np.abs(np.diag(about_hinge)).max()) + float(armature.max(initial=0.0))
        if float(np.linalg.eigvalsh(D)[0]) <= 1e-15 * scale:
            reason = (
                f"it has no inertia in some direction of hinge {body.hinge_name!r} (a point mass "
                "on the axis, for instance)."
            )
            yield _error(where, "singular-tip", reason, repair)


def _drive_findings(mech: Mechanism) -> Iterator[Finding]:
    good = set[tuple[int, int]]()
    driven: Iterable[tuple[str, Body | Loop]] = [
        *((f"hinge {b.hinge_name!r}", b) for b in mech.bodies),
        *((f"loop {x.name!r}", x) for x in mech.loops),
    ]
    for where, part in driven:
        key = (id(part.drive), id(part.hinge))
        if key in good:
            continue
        problems = [*_limit_findings(where, part), *_sign_findings(where, part)]
        yield from problems
        if not problems:
            good.add(key)


def _limit_findings(where: str, body: Body | Loop) -> Iterator[Finding]:
    lower, upper = (body.drive.array(x, body.hinge) for x in ("lower", "upper"))
    for i, coordinate in enumerate(body.hinge.coordinates):
        low, high = float(lower[i]), float(upper[i])
        if low > high:
            reason = f"limits of {coordinate.name} are upside down: lower {low:g}, upper {high:g}."
            yield _error(where, "limits", reason, "Exchange them.")
    angle = body.drive.max_angle
    if np.isfinite(angle) and body.hinge.nv and body.hinge.quaternion is None:
        reason = f"max_angle is {angle:g} rad, but a {body.hinge.kind} hinge has no quaternion."
        yield _error(where, "limits", reason, "Use lower and upper.")
    elif angle < 0.0:
        yield _error(where, "limits", f"max_angle is {angle:g} rad.", "Give a positive angle.")


def _sign_findings(where: str, body: Body | Loop) -> Iterator[Finding]:
    for name in ("armature", "rotor_inertia", "damping", "friction", "effort", "velocity"):
        values = body.drive.array(name, body.hinge)
        worst = float(np.min(values, initial=0.0))
        if name not in ("effort", "velocity") and not np.isfinite(values).all():
            yield _error(
                where, "drive", f"{name} is infinite; it must be finite.", "Give a number."
            )
        elif worst < 0.0:
            reason = f"{name} is {worst:g}; it must not be negative."
            yield _error(where, "drive", reason, "Use its absolute value, or zero.")
    stiffness = float(np.min(body.drive.array("stiffness", body.hinge), initial=0.0))
    if stiffness < 0.0:
        reason = f"stiffness is {stiffness:g}: the spring pushes away from its rest position."
        yield Finding("warning", where, "drive", reason, "Check its sign.")


def _loop_findings(mech: Mechanism) -> Iterator[Finding]:
    for loop in mech.loops:
        a, b = mech.node(loop.node_a), mech.node(loop.node_b)
        if a.body == b.body:
            reason = f"both its nodes are on {a.body!r}, so it closes nothing that moves."
            repair = "Put one node on another body, or leave the loop out."
            yield _error(f"loop {loop.name!r}", "loop", reason, repair)
