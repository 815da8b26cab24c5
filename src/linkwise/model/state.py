"""Configurations, velocities and poses of a mechanism, hinge by hinge: methods of `Mechanism`."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from linkwise.arguments import generator, names as given_names
from linkwise.errors import ModelError, ShapeError, unknown_name
from linkwise.model.bending import warn_if_bent
from linkwise.model.body import Body, Coupling
from linkwise.model.hinges import Hinge
from linkwise.model.lumps import lump_poses
from linkwise.model.memo import once_per_mechanism
from linkwise.model.task_rows import JointRow
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array, ArrayLike, constant, floats
from linkwise.spatial.pose import Pose, trusted_pose

if TYPE_CHECKING:
    from linkwise.model.mechanism import Mechanism

DRIFT = 1e-2
"""How far from unit length a quaternion may drift; beyond this it is treated as an error."""


def check_q(mech: Mechanism, q: ArrayLike) -> Array:
    """q as float64 (..., nq); raises for wrong shapes, NaN and quaternions off the unit sphere."""
    q = checked(repr(mech.name), q, "q", mech.coordinate_names)
    for k, part in _quaternions(mech):
        body, start = mech.bodies[k], int(mech.q_start[k])
        length = np.linalg.norm(q[..., part], axis=-1)
        error = np.abs(length - 1.0)
        if not np.all(error <= quaternion.TOLERANCE):
            worst = int(np.argmax(error))
            q_k = q[..., start : start + body.hinge.nq].reshape(-1, body.hinge.nq)[worst]
            raise ModelError(
                f"q is off the manifold: the quaternion of hinge {body.hinge_name!r} has length "
                f"{float(length.flat[worst]):.6g}, it must be 1. {quaternion_advice(q_k)}"
            )
    return q


@once_per_mechanism
def _quaternions(mech: Mechanism) -> list[tuple[int, slice]]:
    """Bodies whose hinges have quaternions, and where these are in q."""
    parts = list[tuple[int, slice]]()
    for k, body in enumerate(mech.bodies):
        part, start = body.hinge.quaternion, int(mech.q_start[k])
        if part is not None:
            parts.append((k, slice(start + part.start, start + part.stop)))
    return parts


def quaternion_advice(q: Array) -> str:
    """What to do about coordinates of a hinge whose leading quaternion is not of unit length.

    Normalising is right for rounding errors and for nothing else: with numbers in another library's
    order it would give a state that is legal and wrong.
    """
    behind = ", before the position" if len(q) > 4 else ""
    order = f"Linkwise holds it as (w, x, y, z){behind}."
    if position_first(q):
        return (
            f"{order} Here the last four entries have unit length, as in Pinocchio and MuJoCo: "
            "lw.convert.pinocchio_layout(mech, model).q_from(q) converts, or mujoco_layout."
        )
    if abs(float(np.linalg.norm(q[:4])) - 1.0) <= DRIFT:
        return f"{order} mech.normalise(q) removes rounding errors."
    return (
        f"{order} lw.convert converts states of other libraries; mech.normalise(q) is for rounding "
        "errors only."
    )


def position_first(q: Array) -> bool:
    """Whether the coordinates (7,) of a free hinge look like those of another library."""
    return len(q) == 7 and bool(abs(float(np.linalg.norm(q[3:])) - 1.0) <= quaternion.TOLERANCE)


def check_v(mech: Mechanism, v: ArrayLike, what: str = "v") -> Array:
    """v (or another vector with an entry for each velocity) as float64 (..., nv), finite."""
    return checked(repr(mech.name), v, what, mech.velocity_names)


def checked(owner: str, value: ArrayLike, what: str, names: tuple[str, ...]) -> Array:
    """An array (..., size) with an entry for each name, float64 and finite."""
    array, size = floats(value, what), len(names)
    if array.ndim == 0 or array.shape[-1] != size:
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        raise ShapeError(
            f"{what} has shape {array.shape}; {owner} takes ({size},) or (..., {size}): "
            f"{shown or 'it has no degree of freedom'}."
        )
    if not np.isfinite(array).all():
        *row, bad = np.argwhere(~np.isfinite(array))[0].tolist()
        of = f" of row {', '.join(map(str, row))}" if row else ""
        raise ModelError(f"{what} is not finite at {names[bad]!r} (entry {bad}{of}).")
    return array


def names(mech: Mechanism, *, velocities: bool) -> tuple[str, ...]:
    """Names of the entries of q, or of v."""
    listed = list[str]()
    for body in mech.bodies:
        parts = body.hinge.velocities if velocities else body.hinge.coordinates
        if len(parts) == 1:
            listed.append(body.hinge_name)
        else:
            listed.extend(f"{body.hinge_name}.{part.name}" for part in parts)
    return tuple(listed)


def moved_places(mech: Mechanism, given: Sequence[str] | None, what: str) -> list[int]:
    """Places in v of some hinges, by name; None means all of them.

    Raises:
        UnknownNameError: An unknown hinge.
        ModelError: None of them moves; `what` is the name of the argument.
    """
    if given is None:
        return list(range(mech.nv))
    places = list[int]()
    for hinge in given_names(given, what):
        if hinge not in mech.hinge_index:
            raise unknown_name("hinge", hinge, mech.hinge_index, owner=f"mechanism {mech.name!r}")
        part = mech.v_slice(hinge)
        places += range(part.start, part.stop)
    if not places:
        raise ModelError(f"{what} names no hinge that moves; name at least one that does.")
    return places


def coordinate(mech: Mechanism, name: str) -> int:
    """Index in q of one coordinate: "hinge" if it has one, else "hinge[i]" or "hinge.name"."""
    hinge, inner = split_coordinate(name, mech.hinge_index)
    if hinge in mech.hinge_index:
        where = mech.q_slice(hinge)
        count = where.stop - where.start
        if inner is None and count == 1:
            return where.start
        if inner is not None and 0 <= inner < count:
            return where.start + inner
        raise ModelError(
            f"{name!r} does not name one coordinate: hinge {hinge!r} has {count}; "
            f"write {hinge}[0] to {hinge}[{count - 1}]."
            if count
            else f"hinge {hinge!r} is locked and has no coordinate."
        )
    if name in mech.coordinate_names:
        return mech.coordinate_names.index(name)
    raise unknown_name("hinge", hinge, mech.hinge_index, owner=f"mechanism {mech.name!r}")


def split_coordinate(name: str, hinges: Container[str] = ()) -> tuple[str, int | None]:
    """("hinge", 2) of "hinge[2]"; ("hinge", None) of "hinge" and of a hinge called so."""
    head, bracket, tail = name.rpartition("[")
    if name not in hinges and bracket and tail.endswith("]") and tail[:-1].isdecimal():
        return head, int(tail[:-1])
    return name, None


def plain_names(coupling: Coupling, hinges: Mapping[str, int]) -> Coupling:
    """The coupling with "hinge" for "hinge[0]" if the hinge has one coordinate (`hinges`: nq)."""

    def plain(name: str) -> str:
        hinge, inner = split_coordinate(name, hinges)
        return hinge if inner == 0 and hinges.get(hinge) == 1 else name

    names = [coupling.dependent, *(name for name, _ in coupling.terms)]
    if all(plain(name) == name for name in names):
        return coupling
    terms = tuple((plain(name), coefficients) for name, coefficients in coupling.terms)
    return Coupling(coupling.name, plain(coupling.dependent), terms, coupling.offset)


def in_order(couplings: Sequence[Coupling]) -> tuple[Coupling, ...]:
    """Couplings after those whose coordinates they need; those in a cycle are left out."""
    dependent = {c.dependent for c in couplings}
    missing, followers = dict[str, int](), dict[str, list[Coupling]]()
    for c in couplings:
        needs = {name for name, _ in c.terms if name in dependent}
        missing[c.dependent] = len(needs)
        for name in needs:
            followers.setdefault(name, []).append(c)
    order = [c for c in couplings if not missing[c.dependent]]
    for c in order:  # it grows while it is walked
        for follower in followers.get(c.dependent, ()):
            missing[follower.dependent] -= 1
            if not missing[follower.dependent]:
                order.append(follower)
    return tuple(order)


def neutral(mech: Mechanism) -> Array:
    """Coordinates (nq,) with every hinge at neutral: zeros, identity quaternions.

    Dependent coordinates follow their couplings.
    """
    parts = [body.hinge.neutral() for body in mech.bodies]
    return couple(mech, np.concatenate([np.zeros(0), *parts]))


def random(mech: Mechanism, seed: int | np.random.Generator | None = None) -> Array:
    """Coordinates (nq,) drawn within limits; couplings hold, loops in general do not.

    The argument is a seed, not a number of draws. For a batch, share one generator:

        rng = np.random.default_rng(0)
        q = np.stack([mech.random(rng) for _ in range(10)])  # (10, nq)
    """
    rng = generator(seed)
    parts = [_random_hinge(body, rng) for body in mech.bodies]
    return couple(mech, np.concatenate([np.zeros(0), *parts]))


def _random_hinge(body: Body, rng: np.random.Generator) -> Array:
    hinge, drive = body.hinge, body.drive
    q = hinge.random(rng, drive.array("lower", hinge), drive.array("upper", hinge))
    if hinge.quaternion is not None and drive.max_angle < np.pi:
        turn = quaternion.log(q[hinge.quaternion])  # at most π: shrunk until it fits
        q[hinge.quaternion] = quaternion.exp(turn * (drive.max_angle / np.pi))
    return q


def couple(mech: Mechanism, q: Array, couplings: Sequence[Coupling] | None = None) -> Array:
    """The same configuration with dependent coordinates set by the couplings.

    Args:
        mech: The mechanism.
        q: Coordinates (..., nq).
        couplings: Those to follow, each after those it needs; default: all.
    """
    q = np.array(checked(repr(mech.name), q, "q", mech.coordinate_names))
    for coupling in mech.couplings_in_order if couplings is None else couplings:
        if isinstance(coupling, JointRow):  # of a task: nothing follows
            continue
        known = {name: q[..., coordinate(mech, name)] for name, _ in coupling.terms}
        q[..., coordinate(mech, coupling.dependent)] = coupling.value(known)
    return q


def integrate(mech: Mechanism, q: Array, v: Array, dt: float = 1.0) -> Array:
    """Coordinates (..., nq) after the velocities v (..., nv) were held for `dt` [s]."""
    q, v, dt = check_q(mech, q), check_v(mech, v, "v"), float(constant(dt, (), "dt"))
    out = np.empty((*_lead(q=q, v=v), mech.nq))
    for hinge, in_q, in_v in _places(mech):
        out[..., in_q] = hinge.integrate(q[..., in_q], v[..., in_v], dt)
    return out


def difference(mech: Mechanism, q0: Array, q1: Array) -> Array:
    """Velocities (..., nv) that lead from q0 to q1 in one second."""
    q0, q1 = check_q(mech, q0), check_q(mech, q1)
    out = np.empty((*_lead(q0=q0, q1=q1), mech.nv))
    for hinge, in_q, in_v in _places(mech):
        out[..., in_v] = hinge.difference(q0[..., in_q], q1[..., in_q])
    return out


def qdot(mech: Mechanism, q: Array, v: Array) -> Array:
    """Time derivative of the coordinates (..., nq)."""
    q, v = check_q(mech, q), check_v(mech, v, "v")
    out = np.empty((*_lead(q=q, v=v), mech.nq))
    for hinge, in_q, in_v in _places(mech):
        out[..., in_q] = hinge.qdot(q[..., in_q], v[..., in_v])
    return out


def normalise(mech: Mechanism, q: ArrayLike) -> Array:
    """The same configuration with quaternions of unit length; zero quaternions are refused."""
    out = np.array(checked(repr(mech.name), q, "q", mech.coordinate_names))
    for k, body in enumerate(mech.bodies):
        if body.hinge.quaternion is None:
            continue
        part = slice(int(mech.q_start[k]), int(mech.q_start[k + 1]))
        if not np.abs(out[..., part][..., body.hinge.quaternion]).max(axis=-1).all():
            raise ModelError(
                f"the quaternion of hinge {body.hinge_name!r} is zero and cannot be normalised; "
                "the identity is (1, 0, 0, 0)."
            )
        for q_k in out[..., part].reshape(-1, body.hinge.nq):
            length = float(np.linalg.norm(q_k[body.hinge.quaternion]))
            if abs(length - 1.0) > DRIFT and position_first(q_k):
                raise ModelError(
                    f"the quaternion of hinge {body.hinge_name!r} has length {length:.6g}. "
                    f"{quaternion_advice(q_k)}"
                )
        out[..., part] = body.hinge.normalise(out[..., part])
    return out


def _lead(**arrays: Array) -> tuple[int, ...]:
    """The leading axes of arrays that are taken together."""
    try:
        return np.broadcast_shapes(*(array.shape[:-1] for array in arrays.values()))
    except ValueError:
        shapes = " and ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ShapeError(
            f"the shapes {shapes} cannot be combined: their leading axes differ."
        ) from None


def _places(mech: Mechanism) -> list[tuple[Hinge, slice, slice]]:
    """Each moving hinge with its place in q and in v."""
    q, v = mech.q_start.tolist(), mech.v_start.tolist()
    return [
        (body.hinge, slice(q[k], q[k + 1]), slice(v[k], v[k + 1]))
        for k, body in enumerate(mech.bodies)
        if body.hinge.nv
    ]


# X_WB(k) = X_WB(parent) · inboard(k) · hinge pose(q_k) · outboard(k)      (document 002)


def body_poses(mech: Mechanism, q: Array) -> Pose:
    """World poses of all bodies, stacked (..., n): the plain recursion from base to tips."""
    q = mech.check_q(q)
    lead = q.shape[:-1]
    rot, p = np.empty((mech.n_bodies, *lead, 3, 3)), np.empty((mech.n_bodies, *lead, 3))
    for k, (body, above) in enumerate(zip(mech.bodies, mech.parent.tolist(), strict=True)):
        start, stop = mech.q_start[k], mech.q_start[k + 1]
        step = body.pose(q[..., start:stop])
        here = step if above < 0 else trusted_pose(rot[above], p[above]) @ step
        rot[k], p[k] = here.rot, here.p
    if not np.isfinite(p).all():
        far = mech.bodies[int(np.argwhere(~np.isfinite(p))[0][0])].name
        raise ModelError(f"the place of body {far!r} is too far away to be a number.")
    return trusted_pose(np.moveaxis(rot, 0, len(lead)), np.moveaxis(p, 0, len(lead)))


def pose(mech: Mechanism, q: Array, name: str) -> Pose:
    """World pose of one body or node."""
    node = mech.node(name)
    q = mech.check_q(q)
    warn_if_bent(mech, q)
    way = list[int]()
    k = mech.body_index[node.body]
    while k >= 0:
        way.append(k)
        k = int(mech.parent[k])
    here = Pose.identity()
    for k in reversed(way):
        here = here @ mech.bodies[k].pose(q[..., mech.q_start[k] : mech.q_start[k + 1]])
    here = here @ node.pose
    lead = q.shape[:-1]
    if here.p.shape[:-1] == lead and here.rot.shape[:-2] == lead:
        return here
    return trusted_pose(
        np.broadcast_to(here.rot, (*lead, 3, 3)), np.broadcast_to(here.p, (*lead, 3))
    )


def center_of_mass(mech: Mechanism, q: Array) -> Array:
    """Centre of mass in the world (..., 3) [m]: Σ m_k c_k / Σ m_k over everything that can move."""
    if mech.total_mass <= 0.0:
        raise ModelError(f"{mech.name!r} has no mass, so it has no centre of mass.")
    poses, inertias = body_poses(mech, q), mech.inertias
    moments = (poses.rot @ inertias.h[..., None])[..., 0] + inertias.mass[:, None] * poses.p
    total = moments.sum(axis=-2)
    for lump, pose in lump_poses(mech, mech.check_q(q), poses):
        total = total + (pose.rot @ lump.inertia.h[:, None])[..., 0] + lump.inertia.mass * pose.p
    return total / mech.total_mass
