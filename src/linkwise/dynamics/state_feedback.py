"""Feedback of the whole state as one kernel: τ = τ₀ − K (q ⊖ q₀, v − v₀)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.codegen.formula import Formula
from linkwise.dynamics.configuration import between
from linkwise.dynamics.kernels import check_mechanism, written
from linkwise.errors import ModelError, ShapeError, unknown_name
from linkwise.model.mechanism import Mechanism
from linkwise.pipeline import compile
from linkwise.spatial.array import Array, ArrayLike, floats

if TYPE_CHECKING:
    from linkwise.codegen.c.source import CSource
    from linkwise.codegen.writing import Writing


def _feedback(at: Writing) -> Any:
    nv = at.mech.nv
    error = np.concatenate([between(at, "goal", "q"), at.v - at.read("velocity", nv)])
    return at.read("tau", nv) - at.read("gain", 2 * nv * nv).reshape(nv, 2 * nv) @ error


FEEDBACK = Formula(_feedback)
"""Inputs: goal (nq,), q (nq,), v, velocity, tau (nv,), gain (2 nv²,) by rows."""


@dataclass(frozen=True, slots=True, eq=False)
class StateFeedback:
    """A linear law about a state: τ = τ₀ − K (q ⊖ q₀, v − v₀).

    q ⊖ q₀ is `mech.difference(q₀, q)`: the rotation of a free or spherical hinge counts along its
    velocities, so that the law holds on the manifold. It is one kernel without branches, and can be
    given to `lw.rollout` and `lw.simulate` as controller=(law, q₀).

    Attributes:
        mech: The mechanism.
        inputs: Default inputs of the kernel: "goal" q₀ (nq,), "velocity" v₀, "tau" τ₀ (nv,), and
            "gain" K (2 nv²,) by rows. A rollout takes others for each step, where τ₀ is "tau0".
    """

    mech: Mechanism
    inputs: dict[str, Array]

    @classmethod
    def of(
        cls, mech: Mechanism, gain: ArrayLike, q: ArrayLike, v: ArrayLike, tau: ArrayLike
    ) -> StateFeedback:
        """The law with a gain K (nv, 2 nv) about a state, with the forces that hold it."""
        check_mechanism(mech)
        given = {"goal": q, "velocity": v, "tau": tau, "gain": floats(gain, "gain").ravel()}
        sizes = {"goal": mech.nq, "velocity": mech.nv, "tau": mech.nv, "gain": 2 * mech.nv**2}
        inputs = {name: floats(x, name) for name, x in given.items()}
        for name, array in inputs.items():
            if array.shape != (sizes[name],):
                raise ShapeError(f"{name} has shape {array.shape}; it must be ({sizes[name]},).")
            if not np.isfinite(array).all():
                raise ModelError(f"{name} of a state feedback is not finite.")
        return cls(mech, inputs)

    @property
    def kernel(self) -> Any:
        """The kernel, which takes plain arrays in the order of its `arguments`."""
        return written(self.mech, FEEDBACK)

    @property
    def gain(self) -> Array:
        """K (nv, 2 nv)."""
        return self.inputs["gain"].reshape(self.mech.nv, -1)

    def goal(self, q: ArrayLike) -> Array:
        """Positions q₀ (nq,) or (batch, nq), checked."""
        return self.mech.check_q(q)

    def __call__(
        self, q: ArrayLike, v: ArrayLike, goal: ArrayLike | None = None, **given: ArrayLike
    ) -> Array:
        """Joint forces (nv,) or (batch, nv) [N or N m].

        Args:
            q: Joint positions (nq,) or (batch, nq) [m or rad].
            v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
            goal: q₀ (nq,) or (batch, nq); default: that of the law.
            given: `velocity`, `tau` (nv,) or `gain` (2 nv²,) in place of those of the law.
        """
        arrays = self.inputs | {"q": q, "v": v} | ({} if goal is None else {"goal": goal})
        for name, value in given.items():
            if name not in self.inputs or name == "goal":
                allowed = [x for x in self.inputs if x != "goal"]
                raise unknown_name("argument", name, allowed, owner="this law")
            arrays[name] = value
        return self.kernel(*[arrays[name] for name in self.kernel.arguments])

    def export_c(self, name: str | None = None, *, dtype: Any = np.float64) -> CSource:
        """The law as a C function; `.write(folder)` writes its two files.

        Its goal, forces and gain stay inputs: `NAME(q, v, ..., out)`, see its header.

        Args:
            name: Of the function and the files.
            dtype: float64 or float32.
        """
        code: Any = compile(FEEDBACK, self.mech, target="c", dtype=dtype)
        return code.named(name) if name else code

    def __str__(self) -> str:
        ops = int(sum(self.kernel.ops.values()))
        return f"state feedback of {self.mech.name!r}, {ops} operations a call"
