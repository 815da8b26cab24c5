"""What implicit steps did: states, impulses and contacts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from linkwise.simulation.implicit.touches import Touches
from linkwise.spatial.array import Array

NEVER = 1.0
"""The gap [m] that is given for shapes that are not near each other."""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """What one step begins with.

    Attributes:
        q: Joint positions (nq,).
        v: Joint velocities (nv,).
        impulse: Impulses of the last step, with which the sweeps begin.
        activation: Activations of the actuators that have one.
    """

    q: Array
    v: Array
    impulse: Array
    activation: Array


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """What n steps did.

    Attributes:
        q: After each (n, nq).
        v: Likewise (n, nv).
        reached: v in the axes before each step (n, nv).
        before: q and v before each.
        effort: Joint forces of the user and of actuators (n, nv).
        joints: Impulses at `Joint`s (n, j), and their velocities before and after.
        touches: Contacts.
        residual: Of the last sweep (n,) [m/s or rad/s].
        activation: Of actuators, after each (n, a).
        last: What the next step begins with.
        status: A code, 0 if all went well; the steps after the one that failed are left out.
    """

    q: Array
    v: Array
    reached: Array
    before: tuple[Array, Array]
    effort: Array
    joints: tuple[Array, Array, Array]
    touches: Touches
    residual: Array
    activation: Array
    last: State
    status: int

    def __len__(self) -> int:
        return len(self.q)

    def taken(self, count: int) -> Steps:
        """The first of them, after which nothing comes."""
        return Steps(
            self.q[:count], self.v[:count], self.reached[:count],
            (self.before[0][:count], self.before[1][:count]), self.effort[:count],
            (self.joints[0][:count], self.joints[1][:count], self.joints[2][:count]),
            self.touches.at(slice(count)), self.residual[:count], self.activation[:count],
            replace(self.last, q=self.q[count - 1], v=self.v[count - 1]) if count else self.last, 0,
        )  # fmt: skip
