"""One evaluation: a mechanism, its parts, its states, and the kernels that are called on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from linkwise.grasp.multi_arm.held_object import MultiArm
from linkwise.grasp.multi_arm.multi_arm_quantity import AS_BLOCKS, RCCFD, multi_arm_expression
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.pipeline import compile
from linkwise.spatial.array import Array

Target: TypeAlias = Literal["cpu", "numpy"]
"""Where kernels run: compiled, or in the interpreter, without waiting for a compiler."""


def multi_arm_kernel(
    mech: Mechanism,
    name: str,
    nodes: Sequence[str] = (),
    *,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    target: Target = "cpu",
) -> Any:
    """The kernel of one equation: made once, then kept with the mechanism."""
    some, others = (None if x is None else tuple(x) for x in (rows, columns))
    return _kernel(mech, name, tuple(nodes), some, others, target)


@once_per_mechanism
def _kernel(
    mech: Mechanism,
    name: str,
    nodes: tuple[str, ...],
    rows: tuple[str, ...] | None,
    columns: tuple[str, ...] | None,
    target: Target,
) -> Any:
    options: dict[str, Any] = {"derive": name not in RCCFD, "blocks": name in AS_BLOCKS}
    options |= {"nodes": nodes, "rows": rows, "columns": columns, "target": target}
    return cast("Any", compile(multi_arm_expression(name), mech, **options))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """States of a multi-arm system; all arrays have a batch in front, of one if `single`.

    Attributes:
        mech: The mechanism.
        parts: Its arms, its object and its contacts.
        q: Joint positions (batch, nq).
        v: Joint velocities (batch, nv).
        tau: Joint forces (batch, nv).
        single: Whether one state was asked for: trouble raises then.
        target: Where kernels run.
    """

    mech: Mechanism
    parts: MultiArm
    q: Array
    v: Array
    tau: Array
    single: bool
    target: Target

    def at_tips(self, name: str, **given: Array) -> Array:
        """An equation about the arms, with the tips as nodes."""
        return self.run(name, self.parts.tips, given=given)

    def at_grasps(self, name: str, **given: Array) -> Array:
        """An equation about the object, with the places where it is held as nodes."""
        return self.run(name, self.parts.grasps, given=given)

    def run(
        self,
        name: str,
        nodes: Sequence[str] = (),
        *,
        rows: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        given: Mapping[str, Array] | None = None,
    ) -> Array:
        """An equation by name with the vectors it takes, (batch, ...)."""
        kinds = {"rows": rows, "columns": columns}
        found = multi_arm_kernel(self.mech, name, nodes, target=self.target, **kinds)
        arrays = {"q": self.q, "v": self.v, "tau": self.tau, **(given or {})}
        wanted = [arrays[argument] for argument in found.arguments]
        if self.single:
            return np.asarray(found(*(x[0] for x in wanted)))[None]
        return np.asarray(found(*wanted))

    def arm_acceleration(self, name: str, **given: Array) -> Array:
        """An equation for accelerations of joints, of the arms alone, among all (batch, nv)."""
        out = np.zeros_like(self.v)
        rows = self.parts.arm_bodies
        if rows:
            out[:, self.parts.arm_rows] = self.run(name, self.parts.tips, rows=rows, given=given)
        return out

    def object_acceleration(self, name: str, **given: Array) -> Array:
        """The same of the object alone (batch, freedoms of the object)."""
        rows = self.parts.object_bodies
        return self.run(name, self.parts.grasps, rows=rows, given=given)
