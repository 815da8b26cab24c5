"""The records of a run, and the recording that is made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from linkwise.arguments import check_arguments
from linkwise.errors import ModelError, ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.acting import WORKERS, Acting
from linkwise.simulation.channel import Channel, split_unit
from linkwise.simulation.march import Moment
from linkwise.simulation.recording import Recording
from linkwise.spatial.array import Array, read_only

Probe: TypeAlias = Callable[[float, Array, Array, Array], Any]
"""A number or (n,) from the time [s], q (nq,), v (nv,) and the joint forces (nv,) of the user."""

States: TypeAlias = tuple[Array, Array, Array, Array, Array]
"""t (k,), q (k, nq), v (k, nv), tau (k, nv) and work (k, n) of some records."""

More: TypeAlias = tuple[dict[str, Array], Array, Array, list[Array]]
"""Forces by node, contacts, forces of limits and probes of one record."""


class Log:
    """The records so far."""

    def __init__(self, mech: Mechanism, acting: Acting, probes: object) -> None:
        self.mech, self.acting, self.probes = mech, acting, check_probes(probes)
        self._states = list[States]()
        self._more = list[More]()

    def __len__(self) -> int:
        return len(self._more)

    @property
    def last(self) -> float:
        """When the last record was made [s]."""
        return float(self._states[-1][0][-1]) if self._states else -np.inf

    @property
    def states(self) -> States:
        """All records, one behind the other."""
        found = zip(*self._states, strict=True)
        t, q, v, tau, work = (np.concatenate(x) for x in found)
        return t, q, v, tau, work

    def add(self, now: Moment, held: Array | None) -> None:
        """One record; none if there is one of that time."""
        t, q, v = now.t, now.q, now.v
        if t <= self.last:
            return
        tau = self.acting.commanded(t, q, v, held)
        self.extend((np.array([t]), q[None], v[None], tau[None], now.work[None]))

    def extend(self, states: States) -> None:
        """Some records, later than all others."""
        acting = self.acting
        self._states.append(states)
        if not (self.probes or acting.at_nodes or acting.springs):
            self._more += [({}, np.zeros((0, 4)), np.zeros(0), [])] * len(states[0])
            return
        for at, q, v, tau, _ in zip(*states, strict=True):
            t = float(at)
            touch = acting.contacts.recorded(q, v) if acting.contacts.names else np.zeros((0, 4))
            pushed = np.zeros(0) if acting.springs is None else acting.springs.force(q, v)
            shown = read_only(q), read_only(v), read_only(tau)
            probes = [_probed(name, f, t, *shown) for name, f in self.probes.items()]
            self._more.append((acting.given(t, q, v), touch, pushed, probes))

    def recording(self, *, counted: bool, **told: Any) -> Recording:
        """All of it."""
        mech, acting = self.mech, self.acting
        t, q, v, tau, work = self.states
        works = dict[str, Array | None]()  # what is left out is found from the records
        if counted:
            known = ("joints", "passive", "forces")
            works = {name: work[:, i] for i, name in enumerate(WORKERS)
                     if name in known or work[:, i].any()}  # fmt: skip
        return Recording.of(
            mech, t, q, v, tau,
            works=works,
            forces=_together([x[0] for x in self._more]),
            forces_frame=acting.frame,
            held=not counted,
            passive=acting.passive,
            contacts=bool(acting.contacts.names),
            pushed=acting.pushed,
            channels=self._channels(),
            **told,
        )  # fmt: skip

    def _channels(self) -> list[Channel]:
        """Contacts, limits and probes."""
        records, found = self._more, list[Channel]()
        for i, name in enumerate(self.acting.contacts.names):
            both = np.array([x[1][i] for x in records])
            about = f"of the surface on {self.acting.contacts.nodes[i]!r}, in world axes"
            axes = ("x", "y", "z")
            found += [
                Channel(f"contact.{name}.force", "N", about, both[:, :3], axes),
                Channel(f"contact.{name}.penetration", "m", "negative away from it", both[:, 3]),
            ]
        if self.acting.springs is not None:
            units = [x.unit for body in self.mech.bodies for x in body.hinge.velocities]
            forces = tuple("N" if unit == "m" else "N m" for unit in units)
            pushed = np.reshape([x[2] for x in records], (len(records), self.mech.nv))
            about = "of the springs at the ends of joint ranges"
            found.append(Channel("limit.force", forces, about, pushed, self.mech.velocity_names))
        for i, text in enumerate(self.probes):
            values = [x[3][i] for x in records]
            if len({x.shape for x in values}) > 1:
                shapes = sorted({str(x.shape) for x in values})
                raise ShapeError(
                    f"probe {text!r} gave arrays of the shapes {' and '.join(shapes)}; it must "
                    "give the same shape at every time."
                )
            found.append(Channel.of(text, np.array(values), about="probe"))
        return found


def check_probes(probes: object) -> dict[str, Probe]:
    """The probes, if they are functions by name."""
    if probes is None:
        return {}
    if not isinstance(probes, Mapping):
        raise ModelError(
            f"probes is a {type(probes).__name__}; it is a dictionary of functions of "
            '(t, q, v, tau) by "name [unit]".'
        )
    for name, probe in cast("Mapping[Any, object]", probes).items():
        if not isinstance(name, str) or not callable(probe):
            raise ModelError(
                f"probe {name!r} is {probe!r}; it must be a function of (t, q, v, tau) that gives "
                "a number or an array (n,)."
            )
        split_unit(name)
        check_arguments(probe, f"probe {name!r}", "t, q, v, tau")
    return dict(cast("Mapping[str, Probe]", probes))


def _probed(name: str, probe: Probe, t: float, q: Array, v: Array, tau: Array) -> Array:
    given: object = probe(t, q, v, tau)
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.zeros((0, 0))
    if found.ndim > 1:
        raise ModelError(
            f"probe {name!r} gave {given!r} at t = {t:.9g} s; it must give a number or (n,)."
        )
    return np.array(found)


def _together(forces: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """(moment, force) at each record (k, 6) by node; zero where there was none."""
    nodes = dict.fromkeys(node for each in forces for node in each)
    none = np.zeros(6)
    return {node: np.array([each.get(node, none) for each in forces]) for node in nodes}
