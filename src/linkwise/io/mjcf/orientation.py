"""Which pose do the attributes pos, quat, axisangle, euler, xyaxes, zaxis and fromto name?"""

from __future__ import annotations

from typing import Final

import numpy as np

from linkwise.io.xml import Element, numbers
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array, frozen
from linkwise.spatial.pose import Pose, trusted_pose

SMALL: Final = 1e-14
"""Vectors shorter than this have no direction (MuJoCo's mjEPS)."""

_FORMS: Final = ("axisangle", "euler", "xyaxes", "zaxis")
_AXES: Final = {"x": 0, "y": 1, "z": 2}


def check_single_orientation(element: Element) -> None:
    """Refuse an element, as written, that gives its orientation twice."""
    given = [attr for attr in ("quat", *_FORMS) if attr in element.attrib]
    if len(given) > 1:
        raise element.error(f"the orientation is given by {' and '.join(given)}; give it once")


def read_pose(element: Element, degree: bool, eulerseq: str) -> Pose:
    """Pose of the element's frame in the frame around it, from `pos` and its orientation."""
    p = numbers(element, "pos", 3, (0.0, 0.0, 0.0))
    quat = read_quaternion(element, degree, eulerseq)
    if quat is None:
        return Pose.translation(p) if p.any() else Pose.identity()
    return make_pose(quat, p)


def make_pose(quat: Array, p: Array) -> Pose:
    """Pose of a unit quaternion and an offset [m]."""
    return trusted_pose(frozen(quaternion.to_matrix(quat)), frozen(np.array(p, dtype=np.float64)))


def read_quaternion(element: Element, degree: bool, eulerseq: str) -> Array | None:
    """Unit quaternion of the element's orientation, None where none is given."""
    unit = np.pi / 180.0 if degree else 1.0
    form = next((attr for attr in _FORMS if attr in element.attrib), None)
    if form == "axisangle":
        values = numbers(element, form, 4)
        axis = _direction(element, form, values[:3])
        return quaternion.from_axis_angle(axis, unit * values[3])
    if form == "euler":
        return euler(unit * numbers(element, form, 3), eulerseq)
    if form == "xyaxes":
        values = numbers(element, form, 6)
        x = _direction(element, form, values[:3])
        y = _direction(element, form, values[3:] - x * float(x @ values[3:]))
        return quaternion.from_matrix(np.column_stack([x, y, np.cross(x, y)]))
    if form == "zaxis":
        return from_z(_direction(element, form, numbers(element, form, 3)))
    if "quat" not in element.attrib:
        return None
    values = numbers(element, "quat", 4)
    if not values.any():
        raise element.error("'quat' is zero; a quaternion has unit length, as in '1 0 0 0'")
    return quaternion.normalise(values)


def euler(angles: Array, sequence: str) -> Array:
    """Quaternion of three turns [rad]; lower case axes turn with the frame, upper case stay."""
    quat = np.array([1.0, 0.0, 0.0, 0.0])
    for angle, letter in zip(angles, sequence, strict=True):
        axis = np.zeros(3)
        axis[_AXES[letter.lower()]] = 1.0
        turn = quaternion.from_axis_angle(axis, float(angle))
        moving = letter.islower()
        quat = quaternion.multiply(quat, turn) if moving else quaternion.multiply(turn, quat)
    return quaternion.normalise(quat)


def from_z(z: Array) -> Array:
    """Quaternion of the shortest turn that takes the z axis to the unit vector `z`."""
    axis = np.array([-z[1], z[0], 0.0])  # e_z × z
    sine = float(np.linalg.norm(axis))
    # Opposite to the z axis every turn is as short: MuJoCo takes the x axis.
    axis = np.array([1.0, 0.0, 0.0]) if sine < 1e-10 else axis / sine
    return quaternion.from_axis_angle(axis, float(np.arctan2(sine, z[2])))


def read_fromto(element: Element) -> tuple[Pose, float]:
    """Pose of a shape that connects two points, and half the distance between them [m].

    The frame is in the middle; its z axis points from the second point to the first, as in
    the compiled models of MuJoCo.
    """
    points = numbers(element, "fromto", 6)
    start, end = points[:3], points[3:]
    length = float(np.linalg.norm(start - end))
    if not length / 2.0 >= SMALL:
        raise element.error("the two points of 'fromto' coincide")
    return make_pose(from_z((start - end) / length), 0.5 * (start + end)), 0.5 * length


def _direction(element: Element, attr: str, vector: Array) -> Array:
    length = float(np.linalg.norm(vector))
    if not SMALL <= length < np.inf:
        raise element.error(f"'{attr}' has a vector of length {length:.3g}, which has no direction")
    return vector / length
