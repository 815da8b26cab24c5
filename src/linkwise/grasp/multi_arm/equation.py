"""The equations of JPL 88-11, Part II, as operator expressions.

Each covers the whole mechanism: arms and object are separate trees. Nodes are the tips of the arms,
or the nodes of the object at the contacts. D = H P H* + N, with armature N.

| here        | there                                                              |
| ----------- | ------------------------------------------------------------------ |
| ψ K         | Ψ L, and K = S L                                                   |
| T_prime     | T′ = T − C, of the object −b(C)                                    |
| a − a_g     | a, with a(0): gravity is an acceleration of the base, subtracted   |
|             | where true accelerations are needed                                |
| f           | forces at nodes; those on an arm are −f(0), carried to its tip     |
| J A⁻¹ J*    | of the object A M(C)⁻¹ A*                                          |

The equations of RCCFD1 to 3 run as printed; all others are derived.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from linkwise.algebra import B, H, J, a, a_g, bias, f, mass, phi, tau, v, vdot
from linkwise.algebra.expr import Expr
from linkwise.algebra.space import JOINT
from linkwise.algebra.symbols import articulated, vector
from linkwise.grasp.arms import MultiArm
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.pipeline import compile
from linkwise.spatial.array import Array

T_prime = vector("T′", JOINT, ascii="T_prime", tex=r"\mathcal{T}'")
"""Joint forces without bias: T′ = τ − C."""

eps = vector("ε", JOINT, ascii="eps", tex=r"\epsilon")
"""Innovations: ε = (I − H ψ K) T′."""

D, K, PSI, WHITE = articulated.D, articulated.K, articulated.psi, articulated.whitening

RCCFD: dict[str, Callable[[], Expr]] = {
    # v̇_f   (6.11b)
    "free_acceleration": lambda: WHITE.T @ D.inv @ WHITE @ T_prime,
    # J 𝓜⁻¹ J*   (6.11d), (6.18b), (6.22b)
    "compliance": lambda: B.T @ PSI.T @ H.T @ D.inv @ H @ PSI @ B,
    # Δv̇   (6.3); printed without H in (6.5a) and (6.11g)
    "correction": lambda: WHITE.T @ D.inv @ H @ PSI @ B @ f,
    # J 𝓜⁻¹ T′   (6.12), in (6.18d) and (6.22e)
    "filtered_force": lambda: B.T @ PSI.T @ H.T @ D.inv @ WHITE @ T_prime,
    # v̇   (6.17); (6.18e) prints no *
    "acceleration": lambda: WHITE.T @ D.inv @ (T_prime - H @ PSI @ (K @ T_prime - B @ f)),
    # ε   (5.9a), in (6.22f)
    "innovation": lambda: WHITE @ T_prime,
    # in (6.22e) and (6.22f)
    "tip_of_innovation": lambda: B.T @ PSI.T @ H.T @ D.inv @ eps,
    # v̇_1   (6.22f) with f = −Ω⁻¹ B* ψ* H* D⁻¹ ε
    "smoothed": lambda: WHITE.T @ (D.inv @ eps + D.inv @ H @ PSI @ B @ f),
}
"""The equations of RCCFD1, RCCFD2 and RCCFD3, one line each: they run as printed."""

MULTI_ARM: dict[str, Callable[[], Expr]] = {
    **RCCFD,
    # T′ = τ − C   (6.11a), (6.18a), (6.22a)
    "bias_free_force": lambda: tau - bias,
    # J̇ v = B* φ* a, without gravity   (5.1d)
    "bias_acceleration": lambda: B.T @ phi.T @ (a - a_g),
    # α_f(0) = J v̇_f + J̇ v   (6.11c)
    "tip_acceleration": lambda: J @ vdot + B.T @ phi.T @ (a - a_g),
    # Υ of each body's frame, Υ_k = ψ* Υ_p ψ + H* D⁻¹ H   (6.10), the blocks of (6.7)
    "own_compliance": lambda: articulated.Upsilon,
    # The general solution (3.6), (4.9)
    "general_free_acceleration": lambda: mass.inv @ T_prime,
    "general_compliance": lambda: J @ mass.inv @ J.T,
    "general_correction": lambda: mass.inv @ J.T @ f,
    "general_filtered_force": lambda: J @ mass.inv @ T_prime,
    "general_acceleration": lambda: mass.inv @ (T_prime + J.T @ f),
    "inertia": lambda: mass,
    "jacobian": lambda: J,
    "node_velocity": lambda: J @ v,
}
"""Each step and quantity by name."""

AS_BLOCKS = frozenset({"own_compliance"})
"""Equations whose result is blocks, (bodies, 6, 6)."""

EQUAL = {name: f"general_{name}" for name in RCCFD if f"general_{name}" in MULTI_ARM}
"""Equations of RCCFD1 to 3 and the general expression that each is proved equal to."""


def multi_arm_expression(name: str) -> Expr:
    """The expression of a step by name."""
    return MULTI_ARM[name]()


Target: TypeAlias = Literal["cpu", "numpy"]
"""Where kernels run: compiled, or in the interpreter, without waiting for a compiler."""


def multi_arm_kernel(
    mech: Mechanism,
    name: str,
    nodes: tuple[str, ...] = (),
    *,
    rows: tuple[str, ...] | None = None,
    columns: tuple[str, ...] | None = None,
    target: Target = "cpu",
) -> Any:
    """The kernel of one equation, compiled once per mechanism."""
    return _kernel(mech, name, nodes, rows, columns, target)


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
    return cast(Any, compile(multi_arm_expression(name), mech, **options))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """States of a multi-arm system; all arrays have a batch in front, of one if `single`.

    Attributes:
        mech: The mechanism.
        parts: Its arms, its object and its contacts.
        q: Joint positions (batch, nq).
        v: Joint velocities (batch, nv).
        tau: Joint forces (batch, nv).
        single: Whether the caller gave one state: failures then raise.
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
        """An equation of the arms, with the tips as nodes."""
        return self.run(name, self.parts.tips, given=given)

    def at_grasps(self, name: str, **given: Array) -> Array:
        """An equation of the object, with its nodes at the contacts."""
        return self.run(name, self.parts.grasps, given=given)

    def run(
        self,
        name: str,
        nodes: Sequence[str] = (),
        *,
        rows: tuple[str, ...] | None = None,
        columns: tuple[str, ...] | None = None,
        given: Mapping[str, Array] | None = None,
    ) -> Array:
        """An equation by name with the vectors it takes, (batch, ...)."""
        kernel = _kernel(self.mech, name, tuple(nodes), rows, columns, self.target)
        arrays = {"q": self.q, "v": self.v, "tau": self.tau, **(given or {})}
        inputs = [arrays[argument] for argument in kernel.arguments]
        if self.single:
            return np.asarray(kernel(*(x[0] for x in inputs)))[None]
        return np.asarray(kernel(*inputs))

    def arm_acceleration(self, name: str, **given: Array) -> Array:
        """Accelerations of the arms' joints, zero for the object's (batch, nv)."""
        out = np.zeros_like(self.v)
        rows = self.parts.arm_bodies
        if rows:
            out[:, self.parts.arm_rows] = self.run(name, self.parts.tips, rows=rows, given=given)
        return out
