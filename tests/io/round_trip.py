"""Are two mechanisms the same, name by name and number by number?"""

from __future__ import annotations

import numpy as np

from linkwise.model.drive import Drive
from linkwise.model.hinges import Hinge
from linkwise.model.mechanism import Mechanism

_PER_VELOCITY = ("damping", "friction", "stiffness", "effort", "velocity")


def differences(a: Mechanism, b: Mechanism, *, samples: int = 3) -> dict[str, float]:
    """Largest differences in mass, inertia, poses, drives and couplings.

    Bodies and hinges have to have the same names, in the same order; links of `a` may be bodies
    or nodes in `b`.
    """
    assert [x.name for x in a.bodies] == [x.name for x in b.bodies]
    assert [x.hinge_name for x in a.bodies] == [x.hinge_name for x in b.bodies]
    assert [x.parent for x in a.bodies] == [x.parent for x in b.bodies]
    assert {c.dependent for c in a.couplings} == {c.dependent for c in b.couplings}
    assert a.nq == b.nq
    assert [loop.name for loop in a.loops] == [loop.name for loop in b.loops]
    result = {"mass": abs(float(a.total_mass - b.total_mass))}
    for key in ("h", "J"):  # each relative to its own size, body by body
        one, two = (
            getattr(m.inertias, key).reshape(m.n_bodies, 3 if key == "h" else 9) for m in (a, b)
        )
        scale = np.abs(one).max(axis=-1, keepdims=True, initial=0.0)
        gap = np.abs(one - two) / np.where(scale == 0.0, 1.0, scale)
        result[key] = float(gap.max(initial=0.0))
    rng = np.random.default_rng(1)
    qs = np.stack([a.normalise(rng.uniform(-2.5, 2.5, a.nq)) for _ in range(samples)])
    result["pose"] = 0.0
    for name in [x.name for x in a.bodies] + [x.name for x in a.nodes]:
        one, two = a.pose(qs, name), b.pose(qs, name)
        result["pose"] = max(result["pose"], float(np.abs(one.matrix - two.matrix).max()))
    result["drive"] = max(
        (_drive_gap(x.drive, y.drive, x.hinge) for x, y in zip(a.bodies, b.bodies, strict=True)),
        default=0.0,
    )
    result["coupling"] = max((_coupling_gap(a, b, c.dependent) for c in a.couplings), default=0.0)
    result["loop"] = _loop_gap(a, b, qs)
    return result


def _drive_gap(a: Drive, b: Drive, hinge: Hinge) -> float:
    if hinge.nv == 0:
        return 0.0
    gap = _gap(_armature(a, hinge), _armature(b, hinge))
    for key in (*_PER_VELOCITY, "lower", "upper", "rest"):
        gap = max(gap, _gap(a.array(key, hinge), b.array(key, hinge)))
    return gap


def _armature(drive: Drive, hinge: Hinge):
    ratio = drive.array("gear_ratio", hinge)
    return drive.array("armature", hinge) + ratio**2 * drive.array("rotor_inertia", hinge)


def _gap(a, b) -> float:
    with np.errstate(invalid="ignore"):
        gap = np.where(a == b, 0.0, np.abs(a - b) / np.maximum(1.0, np.abs(a)))
    return float(np.max(gap, initial=0.0))


def _coupling_gap(a: Mechanism, b: Mechanism, dependent: str) -> float:
    one = next(c for c in a.couplings if c.dependent == dependent)
    two = next(c for c in b.couplings if c.dependent == dependent)
    left, right = dict(one.terms), dict(two.terms)
    assert left.keys() == right.keys()
    gap = abs(one.offset - two.offset)
    return max([gap, *(_gap(np.array(left[k]), np.array(right[k])) for k in left)])


def _loop_gap(a: Mechanism, b: Mechanism, qs) -> float:
    """Loops ask the same: same rows left free, same frames."""
    gap = 0.0
    for one, two in zip(a.loops, b.loops, strict=True):
        assert one.hinge.nv == two.hinge.nv
        assert one.hinge.describe() == two.hinge.describe()
        for x, y in ((one.node_a, two.node_a), (one.node_b, two.node_b)):
            gap = max(gap, float(np.abs(a.pose(qs, x).matrix - b.pose(qs, y).matrix).max()))
    return gap
