"""What acts on a mechanism while it moves: joint forces, and forces from outside."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

import numpy as np

from linkwise.errors import LinkwiseError, ModelError, ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats

JointForces: TypeAlias = ArrayLike | Mapping[str, ArrayLike]
"""A number for all, (nv,), or numbers by the names of hinges; others are zero then."""

Force: TypeAlias = Callable[[float, Array, Array], JointForces]
"""Joint forces from the time [s], q (nq,) and v (nv,)."""

OutsideForces: TypeAlias = Mapping[str, ArrayLike]
"""(moment, force) (6,) by node, as `forward_dynamics` takes them."""

OutsideForce: TypeAlias = Callable[[float, Array, Array], OutsideForces | None]
"""Forces from outside from the time [s], q (nq,) and v (nv,)."""


class Acting:
    """Joint forces and forces from outside of one instant after the other.

    Attributes:
        any: Whether a force that is not zero has acted so far.
    """

    def __init__(
        self,
        mech: Mechanism,
        tau: JointForces | Force,
        forces: OutsideForces | OutsideForce | None,
    ) -> None:
        self.mech, self.any = mech, False
        self._tau, self._forces = tau, forces
        if callable(tau):
            check_arguments(tau, "tau", "t, q, v")
            self._constant = None
        else:
            self._constant = joint_forces(mech, tau)
            self.any = bool(self._constant.any())
        if callable(forces):
            check_arguments(forces, "forces", "t, q, v")
        elif forces is not None:
            self._note(_by_node(forces, "forces"))

    def tau(self, t: float, q: Array, v: Array) -> Array:
        """τ (nv,) at one instant."""
        if self._constant is not None:
            return self._constant
        given = cast(Force, self._tau)(t, q, v)
        try:
            found = joint_forces(self.mech, given)
        except LinkwiseError as error:
            raise type(error)(f"the joint forces at t = {t:.9g} s: {error}") from None
        self.any = self.any or bool(found.any())
        return found

    def forces(self, t: float, q: Array, v: Array) -> OutsideForces | None:
        """Forces from outside at one instant."""
        if not callable(self._forces):
            return self._forces
        found = _by_node(self._forces(t, q, v), f"forces at t = {t:.9g} s")
        self._note(found)
        return found

    def _note(self, forces: OutsideForces | None) -> None:
        if forces and not self.any:
            self.any = any(np.any(floats(f, f"forces[{n!r}]")) for n, f in forces.items())


def joint_forces(mech: Mechanism, given: JointForces) -> Array:
    """τ (nv,) from a number for all, an array, or numbers by the names of hinges.

    Raises:
        ShapeError: It is none of these.
        UnknownNameError: A hinge that the mechanism does not have.
    """
    if isinstance(given, Mapping):
        tau = np.zeros(mech.nv)
        for name, value in given.items():
            part, force = mech.v_slice(name), floats(value, f"tau[{name!r}]")
            size = part.stop - part.start
            if force.shape not in ((), (size,)):
                raise ShapeError(
                    f"tau[{name!r}] has shape {force.shape}; the hinge has {size} velocities."
                )
            tau[part] = force
        return mech.check_v(tau, "tau")
    _check_numbers(given, mech.nv)
    tau = floats(given, "tau")
    return mech.check_v(np.full(mech.nv, tau) if tau.ndim == 0 else tau, "tau")


def _check_numbers(given: object, nv: int) -> None:
    if given is None or isinstance(given, str | bytes | set):
        raise ShapeError(
            f"tau is {given!r}; it is a number, an array ({nv},), a dictionary by the names of "
            "hinges, or a function of (t, q, v) that gives one of these."
        )


def check_arguments(function: Callable[..., Any], what: str, names: str) -> None:
    """Refuse a function that cannot be called with these arguments.

    Raises:
        ModelError: It takes others; says which.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions do not tell
        return
    try:
        signature.bind(*names.split(", "))
    except TypeError:
        raise ModelError(
            f"{what} is a function of {signature}; it is called with ({names}), so write it as "
            f"lambda {names}: ..."
        ) from None


def _by_node(given: object, what: str) -> OutsideForces | None:
    if given is None or isinstance(given, Mapping):
        return cast("OutsideForces | None", given)
    raise ModelError(
        f"{what} is {given!r}; forces from outside are a dictionary of (moment, force) by node, or "
        "a function of (t, q, v) that gives one."
    )
