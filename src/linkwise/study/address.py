"""Names of what varies: which number of a rollout a name means.

| name | what it sets |
| --- | --- |
| `q[elbow]`, `v[elbow]` | initial position or velocity |
| `mass:BODY` | mass of a body [kg]; its inertia scales with it, the centre of mass stays |
| `payload:NODE` | mass of a point at a node [kg]; `payload:NODE[4]` one of its ten numbers |
| `damping`, `stiffness`, `friction`, `armature` | of all joints; `damping[elbow]` of one |
| `gravity[z]`, `ground_friction`, `gain[0]`, `bias[0]` | as in `parameters` of `lw.rollout` |
| `tau[elbow]`, `controls[knee]` | joint forces, commands of actuators |
| `goal[0]`, `kp`, `kv[2]`, ... | goal (its numbers) and inputs of the control law |
| `noise:tau`, `noise:push:NODE` | standard deviation of a noise that is given |
| `scale:NAME` | a factor on the nominal numbers of NAME, like `scale:friction` |
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from linkwise.codegen.scalar import parameters as of_mechanism
from linkwise.dynamics.state_feedback import StateFeedback
from linkwise.errors import ModelError, unknown_name
from linkwise.model.mechanism import Mechanism
from linkwise.simulation import motion_parameters
from linkwise.simulation.implicit.ground import ContactPoint
from linkwise.simulation.rollout_input import check_controller, commands
from linkwise.spatial.array import Array, floats
from linkwise.tasks.law import ControlLaw

SCALE = "scale:"
_NAME = re.compile(r"(?P<head>[^\[\]]+)(\[(?P<label>[^\[\]]+)\])?")

AT_JOINTS = ("damping", "stiffness", "friction", "armature")
NOT_NEGATIVE = ("damping", "stiffness", "friction", "ground_friction")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a number goes.

    Attributes:
        group: "q", "v", "tau", "controls", "goal", "inputs", "parameters" or "noise".
        key: The name within inputs, parameters and noise.
        entries: Places in the row.
        factor: Nominal numbers that the value is multiplied with, one for each entry; () to
            replace them.
    """

    group: str
    key: str
    entries: tuple[int, ...]
    factor: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Nominal:
    """The numbers of a rollout that names can refer to, as rows."""

    mech: Mechanism
    options: Mapping[str, Any]
    q: Array
    v: Array
    contacts: Sequence[ContactPoint]

    def row(self, group: str, key: str) -> Array:
        """A row (n,) of numbers as the rollout has it.

        Raises:
            ModelError: It changes from step to step.
        """
        given = self._given(group, key)
        if given.ndim != 1:
            raise ModelError(
                f"{key or group} has shape {given.shape} and cannot vary by name: it must be one "
                "row. Give a function `setup` that returns the whole array."
            )
        return given

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs of the control law; none of a controller without any."""
        law: object = self.options.get("controller")
        if isinstance(law, tuple):
            law = next(iter(cast("tuple[object, ...]", law)), None)
        if not isinstance(law, ControlLaw | StateFeedback):
            return ()
        return tuple("tau0" if x == "tau" else x for x in law.inputs)

    def _given(self, group: str, key: str) -> Array:
        mech, options = self.mech, self.options
        match group:
            case "q" | "v":
                return self.q if group == "q" else self.v
            case "tau":
                tau = options.get("tau")
                return np.zeros(mech.nv) if tau is None else _row(tau, mech.nv, "tau")
            case "controls":
                given = options.get("controls")
                n = len(mech.actuators)
                return np.zeros(n) if given is None else _row(given, n, "controls")
            case "goal" | "inputs":
                law, goal = check_controller(options.get("controller"))
                assert law is not None
                return commands(law, goal, options.get("inputs"))[key if key != "tau0" else "tau"]
            case "noise":
                value = options["noise"][key]
                value = cast("Any", value)[0] if isinstance(value, tuple) else value
                return _row(value, mech.nv if key == "tau" else 3, f"noise[{key!r}]")
            case _:
                given: Any = dict(options.get("parameters") or {}).get(key)
                if given is not None:
                    return floats(given, key)
                if key in motion_parameters.ACTING:
                    return motion_parameters.nominal(mech, key, self.contacts)
                return of_mechanism.nominal(mech, key)

    # ------------------------------------------------------------------------------- names

    def address(self, name: str) -> Address | None:
        """Where the number of a name goes; None for a name of no number here.

        Raises:
            UnknownNameError: A label, body or node that does not exist.
        """
        scaled = name.startswith(SCALE)
        match = _NAME.fullmatch(name.removeprefix(SCALE))
        if match is None:
            return None
        place = self._place(match["head"])
        if place is None:
            return None
        group, key, labels, default = place
        row = self.row(group, key)
        entries = self._entries(name, match["label"], labels, len(row), default)
        if group == "parameters" and key == "inertia":  # mass:BODY
            begin = default[0]
            ten = row[begin : begin + of_mechanism.INERTIA]
            if not ten[0] > 0.0:
                raise ModelError(f"vary has {name!r}, and that body has no mass to scale.")
            share = ten if scaled else ten / ten[0]
            return Address(group, key, default, tuple(share.tolist()))
        return Address(group, key, entries, tuple(row[list(entries)].tolist()) if scaled else ())

    def _place(self, head: str) -> tuple[str, str, Sequence[str], tuple[int, ...]] | None:
        """Group, key, labels of the entries, and the entries without a label (() for all)."""
        mech = self.mech
        kind, _, rest = head.partition(":")
        names: dict[str, Sequence[str]] = {
            "q": mech.coordinate_names,
            "v": mech.velocity_names,
            "tau": mech.velocity_names,
            "controls": [x.name for x in mech.actuators],
        }
        if head in names:
            return head, "", names[head], ()
        if kind == "mass" and rest:
            k = [b.name for b in mech.bodies].index(mech.body(rest).name)
            at = of_mechanism.INERTIA * k
            return "parameters", "inertia", (), tuple(range(at, at + of_mechanism.INERTIA))
        if kind == "payload" and rest:
            mech.node(rest)
            return "parameters", head, (), (0,)
        if head == "gravity":
            return "parameters", head, ("x", "y", "z"), ()
        if head in AT_JOINTS:
            return "parameters", head, mech.velocity_names, ()
        if head in motion_parameters.ACTING:
            return "parameters", head, (), ()
        if kind == "noise" and rest:
            if rest not in (self.options.get("noise") or {}):
                raise ModelError(f"vary has {head!r}, and noise has no {rest!r}: give it there.")
            return "noise", rest, (), ()
        if head in self.inputs:
            return ("goal" if head == "goal" else "inputs"), head, (), ()
        return None

    def _entries(
        self, name: str, label: str | None, labels: Sequence[str], n: int, default: tuple[int, ...]
    ) -> tuple[int, ...]:
        if label is None:
            return default or tuple(range(n))
        if label in labels:
            return (list(labels).index(label),)
        if label.isdigit() and int(label) < n:
            return (int(label),)
        known = list(labels) or [str(i) for i in range(n)]
        raise unknown_name("entry", label, known, owner=f"{name!r} of vary")


def check_apart(addresses: Mapping[str, Address]) -> None:
    """Raise if two names set one number: the last one would win.

    Raises:
        ModelError: Names both.
    """
    known = dict[tuple[str, str, int], str]()
    for name, address in addresses.items():
        for entry in address.entries:
            other = known.setdefault((address.group, address.key, entry), name)
            if other != name:
                raise ModelError(
                    f"vary has {other!r} and {name!r}, which set the same number; give one of them."
                )


def _row(value: Any, n: int, what: str) -> Array:
    array = floats(value, what)
    return np.full(n, array) if array.ndim == 0 else array


def made_from(make: Callable[..., Any], names: Sequence[str]) -> tuple[str, ...]:
    """Variables that a function makes the mechanism from.

    Raises:
        ModelError: The function needs something that does not vary.
    """
    parameters = inspect.signature(make).parameters
    taken = tuple(x for x in parameters if x in names)
    try:
        inspect.signature(make).bind(**dict.fromkeys(taken, 0.0))
    except TypeError as error:
        raise ModelError(
            f"the function that makes the mechanism is called with what varies by keyword: {error}."
            f" What varies: {', '.join(names)}."
        ) from None
    return taken


def unknown(name: str, owner: str, inputs: Sequence[str] = ()) -> ModelError:
    """A variable that is neither an address nor taken by a function; with inputs of the law."""
    known = ["q[...]", "v[...]", "mass:BODY", "payload:NODE", "damping", "stiffness", "friction",
             "armature", "gravity[z]", "tau[...]", *inputs]  # fmt: skip
    return unknown_name("variable", name, known, owner=owner)


def applied(
    nominal: Nominal, addresses: Sequence[tuple[Address, Array]], count: int
) -> dict[tuple[str, str], Array]:
    """Rows (count, n) of everything that varies, by group and key."""
    rows = dict[tuple[str, str], Array]()
    for address, values in addresses:
        where = address.group, address.key
        if where not in rows:
            rows[where] = np.tile(nominal.row(*where), (count, 1))
        for j, entry in enumerate(address.entries):
            rows[where][:, entry] = values * address.factor[j] if address.factor else values
    return rows


def impossible(mech: Mechanism, rows: Mapping[tuple[str, str], Array], count: int) -> Sequence[str]:
    """Why each case cannot be computed, "" for one that can; () if all can.

    A body weighs less than nothing, alone or with the payloads that vary, or a damper, a spring or
    friction is negative.
    """
    reasons = [""] * count

    def note(bad: Any, reason: Callable[[int], str]) -> None:
        for i in np.flatnonzero(bad).tolist():
            reasons[i] = reasons[i] or reason(i)

    for name, mass in _masses(mech, rows):
        text = f"the mass of body {name!r} is {{:.6g}} kg; it must not be negative."
        note(mass < 0.0, lambda i, x=mass, text=text: text.format(float(x[i])))
    for (group, key), row in rows.items():
        if group == "parameters" and key in NOT_NEGATIVE:
            text = f"parameters has {key!r}: it must not be negative."
            note((row < 0.0).any(axis=1), lambda i, text=text: text)
    return reasons if any(reasons) else ()


def _masses(mech: Mechanism, rows: Mapping[tuple[str, str], Array]) -> Iterator[tuple[str, Array]]:
    """Names of bodies whose mass varies and their masses (cases,), alone and with payloads."""
    varied, total = rows.get(("parameters", "inertia")), dict[int, Array]()
    nominal = of_mechanism.nominal(mech, "inertia")[:: of_mechanism.INERTIA]
    mass = nominal[None] if varied is None else varied[:, :: of_mechanism.INERTIA]
    for k in np.flatnonzero((mass != nominal).any(axis=0)).tolist():
        yield mech.bodies[k].name, mass[:, k]
    for (group, key), row in rows.items():
        kind, _, node = key.partition(":")
        if group == "parameters" and kind == "payload":
            k = int(mech.body_index[mech.node(node).body])
            if k >= 0:
                total[k] = total.get(k, mass[:, k]) + row[:, 0]
    for k, each in total.items():
        yield mech.bodies[k].name, each


def arguments(
    nominal: Nominal, rows: Mapping[tuple[str, str], Array]
) -> tuple[Any, Any, dict[str, Any]]:
    """q, v and the options of `lw.rollout` for rows (count, n) that vary."""
    options = dict(nominal.options)
    q: Any = rows.get(("q", ""), nominal.q)
    v: Any = rows.get(("v", ""), nominal.v)
    for (group, key), row in rows.items():
        each = row[:, None]
        match group:
            case "tau" | "controls":
                options[group] = each
            case "goal":
                law, _ = check_controller(options["controller"])
                options["controller"] = (law, each)
            case "inputs" | "parameters":
                options[group] = {**(options.get(group) or {}), key: each}
            case "noise":
                old = options["noise"][key]
                new = (each, *cast("Any", old)[1:]) if isinstance(old, tuple) else each
                options["noise"] = {**options["noise"], key: new}
            case _:
                pass
    return q, v, options


def varied_mechanism(mech: Mechanism, rows: Mapping[tuple[str, str], Array]) -> Mechanism:
    """The mechanism with the numbers (1, n) of one case, for those that belong to it."""
    import dataclasses

    numbers_of = {key: row[0] for (group, key), row in rows.items() if group == "parameters"}
    for key in sorted(numbers_of, key=lambda x: x != "inertia"):  # payloads add to it
        numbers = numbers_of[key]
        if key == "gravity":
            mech = mech.with_gravity(numbers)
        elif key == "inertia":
            old = of_mechanism.nominal(mech, key).reshape(-1, of_mechanism.INERTIA)
            new = numbers.reshape(-1, of_mechanism.INERTIA)
            bodies = list(mech.bodies)
            for k in np.flatnonzero((old != new).any(axis=1)):
                change = of_mechanism.inertia(new[k]) + of_mechanism.inertia(-old[k])
                changed = bodies[k].inertia + change  # nodes on it keep theirs
                bodies[k] = dataclasses.replace(bodies[k], inertia=changed)
            mech = dataclasses.replace(mech, bodies=tuple(bodies))
        elif key.startswith("payload:"):
            if np.any(numbers):
                node = key.partition(":")[2]
                mech = mech.with_payload(node, of_mechanism.inertia(numbers), name=f"{node} load")
        elif key in AT_JOINTS:
            mech = _driven(mech, key, numbers)
        elif key in ("gain", "bias"):
            each = numbers.reshape(-1, 3)
            motors = [
                dataclasses.replace(x, **{key: tuple(row.tolist())})
                for x, row in zip(mech.actuators, each, strict=True)
            ]
            mech = dataclasses.replace(mech, actuators=tuple(motors))
    return mech


def _driven(mech: Mechanism, key: str, numbers: Array) -> Mechanism:
    for body in mech.bodies:
        if body.hinge.nv:
            part = tuple(numbers[mech.v_slice(body.hinge_name)].tolist())
            changes: dict[str, Any] = {key: part}
            if key == "armature":  # the whole of it: a rotor would be added
                changes["rotor_inertia"] = 0.0
            mech = mech.with_drive([body.hinge_name], **changes)
    return mech


Rows = dict[tuple[str, str], Array]
"""Rows (cases, n) of numbers that vary, by group and key of `Address`."""

Setup = Callable[[Mapping[str, Array]], Mapping[str, Any]]
"""From values (n,) by name to arguments of `lw.rollout`."""
