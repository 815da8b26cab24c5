"""A flexible body: nodes with masses, modes, modal stiffness and damping."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from linkwise.arguments import count, is_a, rows
from linkwise.errors import ModelError, ShapeError
from linkwise.model.body import Lump
from linkwise.model.builder import Builder
from linkwise.model.drive import Drive
from linkwise.model.hinges import Hinge, Modal
from linkwise.model.lumps import would_soften
from linkwise.model.validate import NO_SECOND, Finding
from linkwise.spatial.array import Array, ArrayLike, floats, frozen
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose, PoseLike
from linkwise.spatial.rotation import skew

RIGID = 1e-6
"""A mode whose displacements differ from a rigid motion by less than this part is rigid."""

COUPLED = 1e-3
"""Modes that share more of their mass than this are not orthogonal."""

NO_DRIVE = Drive()


@dataclass(frozen=True, eq=False)
class FlexibleBody:
    """Modes of a body that is clamped at its reference frame, with masses at nodes.

    A node i has the modes Π_i (6, m), turn and displacement in the axes of the reference frame for
    each modal coordinate η [m]. Mass matrix and bias follow from the masses and inertias of the
    nodes in the deformed shape; `second` holds the displacements of second order, ½ η* S_i η, that
    stiffen a spinning beam (Kane, Ryan and Banerjee 1987). Other bodies hang on one node, the tip.

    Attributes:
        positions: Of the nodes in the reference frame, undeformed (n, 3) [m].
        modes: Π (n, 6, m): turn [rad/m] and displacement [m/m].
        stiffness: Of each mode (m,) [N/m].
        masses: Of the nodes (n,) [kg].
        inertias: Of the nodes, about them, in the axes of the reference frame (n, 3, 3) [kg m²];
            default: point masses.
        damping: Of each mode (m,) [N s/m]; default: none.
        second: S (n, 3, m, m) [1/m]; default: none, which is right only for slow motions.
        tip: The index of the node that carries other bodies.
    """

    positions: Array
    modes: Array
    stiffness: Array
    masses: Array
    inertias: Array | None = None
    damping: Array | None = None
    second: Array | None = None
    tip: int = -1

    def __post_init__(self) -> None:
        shape = np.shape(floats(self.modes, "modes"))
        if len(shape) != 3 or shape[1] != 6 or 0 in shape:
            raise ShapeError(
                f"modes have shape {shape}; they must be (nodes, 6, modes): turn and displacement."
            )
        n, m = shape[0], shape[2]
        zeros = {"inertias": (n, 3, 3), "damping": (m,), "second": (n, 3, m, m)}
        sizes = {"positions": (n, 3), "modes": shape, "stiffness": (m,), "masses": (n,), **zeros}
        for name, size in sizes.items():
            given = getattr(self, name)
            array = np.zeros(size) if given is None else np.array(floats(given, name))
            if array.shape != size or not np.isfinite(array).all():
                raise ShapeError(
                    f"{name} of a flexible body has shape {array.shape}; with {n} nodes and {m} "
                    f"modes it must be {size}, finite."
                )
            object.__setattr__(self, name, frozen(array))
        object.__setattr__(self, "tip", count(self.tip, "tip", least=-n, most=n - 1) % n)

    def __repr__(self) -> str:
        nodes, _, modes = self.modes.shape
        return f"<FlexibleBody: {nodes} nodes, {modes} modes, {float(self.masses.sum()):.4g} kg>"

    def _inertia(self, i: int) -> SpatialInertia:
        assert self.inertias is not None
        return SpatialInertia(self.masses[i], np.zeros(3), self.inertias[i])

    @property
    def modal_mass(self) -> Array:
        """Σ Π_i* M_i Π_i (m, m) [kg], undeformed and clamped at the reference frame."""
        parts = enumerate(self.modes)
        return np.sum([Pi.T @ self._inertia(i).matrix @ Pi for i, Pi in parts], axis=0)

    @property
    def frequencies(self) -> Array:
        """Natural frequencies, clamped at the reference frame (m,) [Hz]; nan where unstable."""
        rate = np.linalg.eigvals(np.linalg.solve(self.modal_mass, np.diag(self.stiffness))).real
        with np.errstate(invalid="ignore"):
            return np.sort(np.sqrt(rate)) / (2.0 * np.pi)

    def shape(self, eta: ArrayLike) -> Array:
        """The nodes (..., n, 3) [m] in the reference frame, deformed by η.

        Args:
            eta: Modal coordinates (..., m) [m].
        """
        eta = rows(eta, len(self.stiffness), "eta")
        moved = np.einsum("nim,...m->...ni", self.modes[:, 3:], eta)
        bent = np.einsum("...a,niab,...b->...ni", eta, np.asarray(self.second), eta)
        return self.positions + moved + 0.5 * bent

    def validate(self) -> tuple[Finding, ...]:
        """What is wrong: rigid or unstable modes, missing mass, other scales, no second order."""
        findings, mass = list[Finding](), self.modal_mass
        size, damping = np.sqrt(np.abs(np.diag(mass))), np.asarray(self.damping)

        def add(level: str, i: int, code: str, reason: str, repair: str) -> None:
            findings.append(Finding(level, f"mode {i + 1}", code, reason, repair))  # type: ignore[arg-type]

        if (self.masses < 0.0).any():
            i = int(np.argmin(self.masses))
            reason = f"its mass is {self.masses[i]:g} kg."
            findings.append(Finding("error", f"node {i}", "mass", reason, "Give a positive mass."))
        for i in range(len(self.stiffness)):
            if self.stiffness[i] < 0.0:
                reason = f"its stiffness is {self.stiffness[i]:g} N/m: the body would buckle."
                add("error", i, "negative-stiffness", reason, "Check the stiffness matrix.")
            if damping[i] < 0.0:
                reason = f"its damping is {damping[i]:g} N s/m."
                add("error", i, "negative-damping", reason, "Give a positive one, or zero.")
            if self.stiffness[i] == 0.0 or self._rigid(i) < RIGID:
                reason = "it moves the body without bending it, which its hinge does already."
                add("error", i, "rigid-mode", reason, "Leave rigid modes out.")
            largest = float(self.largest[i])
            if not 0.5 < largest < 2.0:
                reason = f"the largest displacement of a node is {largest:.3g} m for η = 1 m."
                add("warning", i, "unnormalised", reason, "`normalised()` scales the modes.")
            others = np.abs(mass[i, :i]) / np.maximum(size[i] * size[:i], 1e-300)
            if i and float(others.max()) > COUPLED:
                reason = (
                    f"it shares {others.max():.2g} of its mass with mode {others.argmax() + 1}."
                )
                repair = "With a diagonal stiffness modes are orthogonal: `normalised()`."
                add("warning", i, "coupled", reason, repair)
        if would_soften(self.positions, self.modes[:, 3:], self.second):
            findings.append(Finding("warning", "modes", *NO_SECOND))
        values = np.linalg.eigvalsh(mass / np.maximum(np.outer(size, size), 1e-300))
        if values[0] < 1e-9:
            reason = f"the masses of {len(self.masses)} nodes do not resist {len(size)} modes."
            findings.append(Finding("error", "modes", "no-mass", reason, "Give more nodes masses."))
        return tuple(findings)

    def _rigid(self, i: int) -> float:
        """How far mode i is from a rigid motion, relative to its size."""
        blocks = [
            np.block([[np.eye(3), np.zeros((3, 3))], [-skew(p), np.eye(3)]]) for p in self.positions
        ]
        motions, mode = np.concatenate(blocks), self.modes[:, :, i].ravel()
        left = mode - motions @ np.linalg.lstsq(motions, mode, rcond=None)[0]
        return float(np.linalg.norm(left) / max(float(np.linalg.norm(mode)), 1e-300))

    @property
    def largest(self) -> Array:
        """The largest displacement of a node in each mode (m,) [m/m]; of twists, turn by size."""
        reach = float(np.linalg.norm(self.positions, axis=1).max())
        turn: Array = np.linalg.norm(self.modes[:, :3], axis=1).max(axis=0)
        moved: Array = np.linalg.norm(self.modes[:, 3:], axis=1).max(axis=0)
        return np.where(moved > RIGID * reach * turn, moved, reach * turn)

    def normalised(self) -> FlexibleBody:
        """The same body in orthogonal modes whose largest displacement is 1 m for η = 1 m.

        With the modal mass M and stiffness K: M⁻¹ K T = T diag(ω²), η_old = T η.
        """
        lower = np.linalg.cholesky(self.modal_mass)
        inverse = np.linalg.inv(lower)
        _, Q = np.linalg.eigh(inverse @ np.diag(self.stiffness) @ inverse.T)
        return in_modes(self, np.asarray(inverse.T @ Q, dtype=np.float64))

    def add_to(
        self,
        builder: Builder,
        name: str,
        parent: str,
        hinge: Hinge,
        *,
        inboard: PoseLike | None = None,
        inertia: SpatialInertia | None = None,
        drive: Drive = NO_DRIVE,
        nodes: Mapping[str, int] | None = None,
    ) -> Builder:
        """Add this body to a mechanism, as `name` (its reference frame) and `name.tip`.

        The modal coordinates are those of the hinge `name.modes`; children hang on `name.tip`, and
        on other `nodes`, which are bodies "name.label" whose coordinates follow by couplings.

        Args:
            builder: Where to add it.
            name: The name of its reference frame, which moves with the hinge.
            parent: The body it is joined to, or "world".
            hinge: How the reference frame moves relative to the parent.
            inboard: Pose of the hinge frame in the parent's body frame.
            inertia: What is rigid at the reference frame: a hub; default: nothing.
            drive: Rotor, friction, spring and limits of the hinge.
            nodes: More nodes that carry bodies, by label; default: the tip only.
        """
        is_a(Builder, builder, "builder")
        carriers = {
            label: count(i, f"node {label!r}", least=0, most=len(self.masses) - 1)
            for label, i in (nodes or {}).items()
        }
        if self.tip in carriers.values() or len({*carriers.values()}) < len(carriers):
            raise ModelError(f"nodes of {name!r} must be different ones, and not the tip.")
        errors = [x for x in self.validate() if x.severity == "error"]
        if errors:
            raise ModelError(f"flexible body {name!r}: {errors[0]}")
        builder.body(name, parent, hinge, inboard=inboard, inertia=inertia, drive=drive)
        turning = [self._turns(i) or i in carriers.values() for i in range(len(self.masses))]
        hinges = [self._hinge(i, turns) for i, turns in enumerate(turning)]
        # Coordinates of carriers are those of the tip, so mass may move with either. Each gets an
        # equal part of all of it: then each resists its modes by itself.
        part = 1.0 / (1 + len(carriers))
        at_tip = self._inertia(self.tip).scaled(part) if self.masses[self.tip] else None

        def lumps(carrier: int) -> list[Lump]:
            others = (i for i in range(len(hinges)) if i != carrier)
            massive = (i for i in others if self.masses[i] or np.asarray(self.inertias)[i].any())
            return [Lump(hinges[i], self._inertia(i).scaled(part)) for i in massive]

        stiffness, damping = (tuple(np.asarray(x).tolist()) for x in (self.stiffness, self.damping))
        builder.body(
            f"{name}.tip",
            name,
            hinges[self.tip],
            hinge_name=f"{name}.modes",
            inertia=at_tip,
            drive=Drive(stiffness=stiffness, damping=damping),
            lumps=lumps(self.tip),
        )
        for label, i in carriers.items():
            builder.body(
                f"{name}.{label}",
                name,
                hinges[i],
                inertia=self._inertia(i).scaled(part),
                lumps=lumps(i),
            )
            for j in range(len(stiffness)):
                entry = f"[{j}]" if len(stiffness) > 1 else ""
                follows = f"{name}.{label}{entry}"
                builder.couple(follows, follows, {f"{name}.modes{entry}": 1.0})
        return builder

    @cached_property
    def _hinges(self) -> dict[tuple[int, bool], Modal]:
        """Motions of nodes that were used: bodies that are equal share them."""
        return {}

    def _hinge(self, i: int, turns: bool) -> Modal:
        """The motion of node i, with its rotation or without."""
        if (i, turns) not in self._hinges:
            modes = self.modes[i] * (1.0 if turns else _LINEAR)
            rest, second = Pose.translation(self.positions[i]), np.asarray(self.second)[i]
            self._hinges[i, turns] = Modal(modes, rest, second)
        return self._hinges[i, turns]

    def _turns(self, i: int) -> bool:
        """Whether the rotation of a node matters: point masses need none."""
        return i == self.tip or bool(np.asarray(self.inertias)[i].any())


def in_modes(body: FlexibleBody, T: Array, stiffness: Array | None = None) -> FlexibleBody:
    """The body in other modes, η_old = T η, scaled to largest displacements of 1 m.

    Args:
        body: The body.
        T: Columns (m, m') that make M and K diagonal.
        stiffness: K (m, m) of the old modes; default: the diagonal one.
    """
    K = np.diag(body.stiffness) if stiffness is None else stiffness
    D = np.diag(np.asarray(body.damping))

    def made(T: Array) -> FlexibleBody:
        return FlexibleBody(
            body.positions,
            body.modes @ T,
            np.diag(T.T @ K @ T),
            body.masses,
            body.inertias,
            np.diag(T.T @ D @ T),
            np.einsum("niab,aj,bk->nijk", np.asarray(body.second), T, T),
            body.tip,
        )

    return made(T / np.array([max(x, 1e-300) for x in made(T).largest]))


_LINEAR = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])[:, None]
