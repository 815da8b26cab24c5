"""What happened during a motion, and when."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    Attributes:
        t: When [s].
        kind: "watch", "limit", "contact", "stop" ...
        name: Of what it happened to: a margin that was watched, a hinge, a contact.
        text: What happened, in words.
        value: A number that goes with it, or NaN: the margin, a coordinate, a force.
    """

    t: float
    kind: str
    name: str
    text: str = ""
    value: float = float("nan")

    def __str__(self) -> str:
        words = f", {self.text}" if self.text else ""
        return f"{self.t:.6f} s: {self.kind} {self.name!r}{words}"
