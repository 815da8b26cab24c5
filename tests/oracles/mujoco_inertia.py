"""How far are the inertias of a file here from MuJoCo's, and are they the same physics?

MuJoCo keeps mass, centre of mass and the sum of the principal moments to round-off. It stops
turning an inertia to its principal axes where the cosine of the next step exceeds 1 - 1e-12, an
angle of 1.4e-6 rad, and leaves out the products that remain (`mjuu_eig3`). That, and nothing else,
may differ; the bounds below say how much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from linkwise.model.mechanism import Mechanism
from linkwise.spatial import quaternion
from linkwise.spatial.inertia import SpatialInertia

ROUNDING: Final = 1e-11
"""Bound on mass, centre of mass and trace of the inertia tensor, relative."""
AXES: Final = 1.5e-6
"""Bound on all of the inertia tensor, relative to its largest entry: √2e-12 and rounding."""


@dataclass(frozen=True, slots=True)
class InertiaGap:
    """Differences of one body, relative.

    Attributes:
        body: Its name.
        mass: Of the masses.
        com: Distance of the centres of mass, over the size of the body and where it is.
        trace: Of the traces of the inertia tensors about the centre of mass.
        tensor: Largest difference of the tensors, over the largest entry; zero where it is no more
            than the rounding of the larger tensor about the body frame.
        digits: The same, rounding included.
    """

    body: str
    mass: float
    com: float
    trace: float
    tensor: float
    digits: float

    @property
    def same(self) -> bool:
        """Whether the two are one inertia, but for MuJoCo's principal axes."""
        return max(self.mass, self.com, self.trace) <= ROUNDING and self.tensor <= AXES


def place(mech: Mechanism, model: Any, k: int) -> str:
    """Name of the body or node here that is MuJoCo's body k."""
    return model.body(k).name or f"body{k}"


def own_inertia(mech: Mechanism, name: str) -> SpatialInertia:
    """What a body or welded link carries itself."""
    if name in mech.body_index:
        return mech.body(name).inertia
    return mech.node(name).inertia or SpatialInertia.zero()


def inertia_gaps(mech: Mechanism, model: Any) -> list[InertiaGap]:
    """The difference of every body of a model."""
    gaps = list[InertiaGap]()
    for k in range(1, model.nbody):
        name = place(mech, model, k)
        ours, mass = own_inertia(mech, name), float(model.body_mass[k])
        rot = quaternion.to_matrix(model.body_iquat[k])
        J, com = rot @ np.diag(model.body_inertia[k]) @ rot.T, model.body_ipos[k]
        if mass == 0.0:  # where it is makes no difference
            com, size = ours.com, 1.0
        else:
            size = float(np.sqrt(np.trace(J) / mass) + np.abs(com).max()) or 1.0
        rounding = 1e-14 * float(np.abs(ours.J).max())  # of moving the tensor to the centre
        gaps.append(
            InertiaGap(
                name,
                relative(ours.mass, mass),
                float(np.abs(ours.com - com).max()) / size,
                relative(np.trace(ours.J_com), np.trace(J), rounding),
                relative(ours.J_com, J, rounding),
                relative(ours.J_com, J),
            )
        )
    return gaps


def relative(a: Any, b: Any, rounding: float = 0.0) -> float:
    """Largest difference over the largest entry of b; none where it is no more than rounding."""
    gap = float(np.abs(np.asarray(a) - b).max())
    return gap / max(float(np.abs(b).max()), 1e-300) if gap > rounding else 0.0


def same_inertias(mech: Mechanism, model: Any) -> list[InertiaGap]:
    """Give MuJoCo our inertias where its own differ by axes or rounding; which, and by how much.

    Raises:
        AssertionError: Some inertia differs by more than `ROUNDING` or `AXES`: it was read wrongly.
    """
    gaps = inertia_gaps(mech, model)
    wrong = [gap for gap in gaps if not gap.same]
    assert not wrong, f"inertias differ from MuJoCo's: {wrong[:5]}"
    changed = list[InertiaGap]()
    for k, gap in enumerate(gaps, start=1):
        if gap.digits <= 1e-14:
            continue
        ours = own_inertia(mech, gap.body)
        moments, axes = ours.principal()
        model.body_inertia[k], model.body_iquat[k] = moments, quaternion.from_matrix(axes)
        model.body_ipos[k], model.body_mass[k] = ours.com, ours.mass
        model.body_sameframe[k] = 0  # its frames are no longer taken to be the same
        changed.append(gap)
    return changed
