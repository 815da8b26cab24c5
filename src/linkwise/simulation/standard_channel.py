"""The channels that every recording has, and what took no part in a motion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.closure import constraint_error, constraint_jacobian
from linkwise.dynamics.energy import energy
from linkwise.dynamics.momentum import center_of_mass, momentum
from linkwise.dynamics.passive import passive as dampers_and_springs
from linkwise.model.closure import coupling_error
from linkwise.model.hinges import Free
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.simulation.channel import Channel
from linkwise.simulation.loop_keeper import coupled_slides
from linkwise.spatial.array import Array

NAMED = 4
"""Hinges named in one line; of more, how many."""

BEYOND = 1e-9
"""A limit is passed by more than this part of it, or this [rad, m, ...]: less is rounding."""


def not_modelled(
    mech: Mechanism,
    q: Array,
    v: Array,
    tau: Array,
    *,
    passive: bool = True,
    limits: str = "ignore",
    contacts: bool | str | Sequence[str] = False,
    friction: bool = False,
    actuated: bool = False,
) -> list[str]:
    """Lines about data of the drives that was not used, and by how much it would have mattered.

    Args:
        limits: What became of joint limits: "ignore", or the way in which they acted.
        contacts: Whether contacts were given; "bodies" where bodies touch each other; or lines
            about what does not touch.
        friction: Whether Coulomb friction of joints acted.
        actuated: Whether the actuators acted.
    """
    lines = list[str]()
    names = mech.velocity_names
    dry = np.flatnonzero((mech.friction > 0.0) & (not friction))
    if len(dry):
        lines.append(f"Coulomb friction of {named(names, dry)}")
    if mech.actuators and not actuated:
        motors = [x.name for x in mech.actuators]
        lines.append(f"actuators {named(motors, np.arange(len(motors)))}: no controls were given")
    springs, dampers = mech.stiffness != 0.0, mech.damping != 0.0
    if not passive and (springs | dampers).any():
        acting = np.flatnonzero(springs | dampers)
        lines.append(f"dampers and springs of {named(names, acting)}: passive=False")
    springy = np.flatnonzero(springs & (dampers_and_springs(mech).stiffness == 0.0))
    if passive and len(springy):
        lines.append(f"springs of {named(names, springy)}: v is not the rate of q there")
    if mech.gravity_compensation and not passive:
        lines.append("gravity compensation: passive=False")
    of_q, of_v = units(mech)
    rates = [f"{x}/s" for x in of_v]
    lines += _beyond("effort limits", names, force_units(mech), _largest(tau), mech.effort_limit)
    lines += _beyond("speed limits", names, rates, _largest(v), mech.velocity_limit)
    if limits == "ignore":
        low, high = _ends(q)
        over = np.maximum(high - mech.upper, mech.lower - low)
        lines += _beyond("joint limits", mech.coordinate_names, of_q, over, np.zeros(mech.nq))
        turning = [body for body in mech.bodies if body.hinge.quaternion is not None]
        cones = [body.hinge_name for body in turning if np.isfinite(body.drive.max_angle)]
        if cones:
            lines.append(f"largest turns of {named(cones, np.arange(len(cones)))}")
    if isinstance(contacts, Sequence) and not isinstance(contacts, str):
        lines += contacts
    elif contacts == "bodies":
        lines.append("contacts of bodies with their parents")
    else:
        more = "contacts but those given" if contacts else "contacts"
        lines.append(f"{more}: bodies pass through each other and through the ground")
    return lines


def _ends(values: Array) -> tuple[Array, Array]:
    """The smallest and the largest value of each column (n,) of (k, n); zeros of no rows."""
    if not len(values):
        none: Array = np.zeros(values.shape[1:])
        return none, none
    columns: Array = np.ascontiguousarray(values.T)  # several times faster than along the rows
    return columns.min(axis=1), columns.max(axis=1)


def _largest(values: Array) -> Array:
    """The largest size in each column."""
    low, high = _ends(values)
    return np.maximum(-low, high)


def _beyond(
    what: str, names: Sequence[str], units: Sequence[str], size: Array, limit: Array
) -> list[str]:
    """One line about a kind of limit: which were passed, most first; none where there are none.

    Args:
        size: The largest value of each column.
    """
    over = size - limit
    limited = np.isfinite(over)  # no limit: minus infinity
    if not limited.any():
        return []
    passed = np.flatnonzero(limited & (over > BEYOND * np.maximum(limit, 1.0)))
    if not len(passed):
        return [] if what == "joint limits" else [f"{what} (none was passed)"]
    passed = passed[np.argsort(-over[passed], kind="stable")]
    most = f"{over[passed[0]]:.3g} {units[int(passed[0])]}".rstrip()
    return [f"{what}: passed by {named(names, passed)}, at most by {most}"]


def named(names: Sequence[str], which: NDArray[np.intp]) -> str:
    """Some names in one line."""
    shown = ", ".join(repr(names[int(i)]) for i in which[:NAMED])
    return shown if len(which) <= NAMED else f"{shown} and {len(which) - NAMED} more"


_AXES = ("x", "y", "z")
_FORCE = {"rad": "N m", "m": "N"}


@once_per_mechanism
def units(mech: Mechanism) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The unit of each coordinate, and of what each velocity is the rate of."""
    return (
        tuple(x.unit for body in mech.bodies for x in body.hinge.coordinates),
        tuple(x.unit for body in mech.bodies for x in body.hinge.velocities),
    )


def force_units(mech: Mechanism) -> tuple[str, ...]:
    """The unit of each joint force."""
    return tuple("N" if unit == "m" else "N m" for unit in units(mech)[1])


STATES = ("q", "v", "tau")
"""Names of `state_channels`."""


def state_channels(mech: Mechanism, q: Array, v: Array, tau: Array) -> list[Channel]:
    """q, v and tau with the names and units of the hinges."""
    of_q, of_v = units(mech)
    rates = tuple(f"{unit or '1'}/s" for unit in of_v)
    forces = tuple(_FORCE.get(unit, "") for unit in of_v)
    return [
        Channel("q", tuple(of_q), "joint positions", q, mech.coordinate_names),
        Channel("v", rates, "joint velocities", v, mech.velocity_names),
        Channel("tau", forces, "joint forces", tau, mech.velocity_names),
    ]


ENERGIES = ("energy.kinetic", "energy.potential", "energy.total")
"""Names of `energy_channels`."""


def energies(mech: Mechanism, q: Array, v: Array) -> tuple[Array, Array]:
    """Kinetic and potential energy (k,)."""
    if not mech.n_bodies:
        return np.zeros(len(q)), np.zeros(len(q))
    quiet = np.zeros(len(q), dtype=np.int32)  # a state in trouble is NaN, which the report tells
    both = energy(mech, q, v, status=quiet)
    return np.asarray(both.kinetic), np.asarray(both.potential)


def energy_channels(
    mech: Mechanism, q: Array, v: Array, known: tuple[Array, Array] | None = None
) -> list[Channel]:
    """Kinetic, potential (gravity) and total energy, of states or of energies that are known."""
    kinetic, potential = energies(mech, q, v) if known is None else known
    return [
        Channel("energy.kinetic", "J", "energy of motion", kinetic),
        Channel("energy.potential", "J", "energy in the field of gravity", potential),
        Channel("energy.total", "J", "kinetic and potential energy", kinetic + potential),
    ]


def momentum_names(mech: Mechanism) -> tuple[str, ...]:
    """Names of `momentum_channels`."""
    if not (mech.n_bodies and mech.nv):
        return ()
    centre = ("center_of_mass",) * (mech.total_mass > 0.0)
    return ("momentum.linear", "momentum.angular", *centre)


def momentum_channels(mech: Mechanism, q: Array, v: Array) -> list[Channel]:
    """Momentum of all bodies, about the origin of the world, and their centre of mass."""
    if not momentum_names(mech):
        return []
    quiet = np.zeros(len(q), dtype=np.int32)
    both = momentum(mech, q, v, about="world", status=quiet)
    about = "angular momentum about the origin of the world, in its axes"
    channels = [
        Channel("momentum.linear", "kg m/s", "momentum, in world axes", both[:, 3:], _AXES),
        Channel("momentum.angular", "kg m²/s", about, both[:, :3], _AXES),
    ]
    if mech.total_mass > 0.0:
        centre = center_of_mass(mech, q, status=quiet)
        channels.append(Channel("center_of_mass", "m", "in the world", centre, _AXES))
    return channels


def loop_names(mech: Mechanism) -> tuple[str, ...]:
    """Names of `loop_channels`."""
    if not (mech.loops or mech.couplings):
        return ()
    return (*(name for name, _, _ in _LOOP_ERRORS if _places(mech, name)), "loop.rate")


_LOOP_ERRORS = (("loop.distance", "m", slice(3, 6)), ("loop.angle", "rad", slice(0, 3)))
"""Channels of errors with their units, and the entries of the error of a loop."""


def _places(mech: Mechanism, name: str) -> tuple[str, ...]:
    """The loops, and the couplings, whose error is of this kind."""
    slide = name == "loop.distance"
    pairs = zip(mech.couplings, coupled_slides(mech), strict=True)
    return (*(x.name for x in mech.loops), *(x.name for x, slides in pairs if slides == slide))


def loop_channels(mech: Mechanism, q: Array, v: Array) -> list[Channel]:
    """How far loops and couplings are from closed, and the largest rate at which they open."""
    if not (mech.loops or mech.couplings):
        return []
    e = constraint_error(mech, q, per="loop")
    off = {x.name: np.abs(coupling_error(mech, x, q)) for x in mech.couplings}
    channels = list[Channel]()
    for name, unit, part in _LOOP_ERRORS:
        labels = _places(mech, name)
        if labels:
            sizes = [*np.linalg.norm(e[..., part], axis=-1).T]
            sizes += [off[x] for x in labels[len(mech.loops) :]]
            about = "error of loops and couplings"
            channels.append(Channel(name, unit, about, np.stack(sizes, axis=-1), labels))
    opening = np.abs((constraint_jacobian(mech, q) @ v[..., None])[..., 0]).max(axis=-1)
    channels.append(Channel("loop.rate", "rad/s or m/s", "largest entry of |J_c v|", opening))
    return channels


def weight_alone(mech: Mechanism, tau: Array, *, passive: bool) -> tuple[float, ...]:
    """m g (3,) [N] if nothing else acts from outside, as on a robot in flight; else nothing.

    Bodies on the ground by anything but a free hinge are pushed by it, and so is one whose free
    hinge has a joint force, a damper or a spring.
    """
    roots = [k for k in range(mech.n_bodies) if mech.parent[k] < 0]
    for k in roots:
        part = slice(int(mech.v_start[k]), int(mech.v_start[k + 1]))
        pushed = tau[:, part].any()
        held = passive and (mech.damping[part].any() or mech.stiffness[part].any())
        inert = mech.armature[part].any()  # fixed on the ground: takes up momentum
        if not isinstance(mech.bodies[k].hinge, Free) or pushed or held or inert:
            return ()
    lifted = passive and mech.gravity_compensation
    if not roots or lifted or _on_the_ground(mech):
        return ()
    return tuple(float(x) for x in mech.total_mass * mech.gravity)


def _on_the_ground(mech: Mechanism) -> bool:
    """Whether a loop ends on the world."""
    ends = [name for loop in mech.loops for name in (loop.node_a, loop.node_b)]
    return any(mech.body_index[mech.node(name).body] < 0 for name in ends)
