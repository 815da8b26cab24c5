"""Cross-sections whose principal axes are turned; beside theory."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.flexible import beam, frame
from linkwise.flexible.beam_element import principal

L, YOUNG, DENSITY, AREA = 1.0, 70e9, 2700.0, 2e-4
I_Y, I_Z, I_YZ = 3e-9, 5e-9, 2e-9
GIVEN = {"area": AREA, "young": YOUNG, "density": DENSITY}
ACROSS = ("y", "z", "ry", "rz")
CANTILEVER = 1.8751040687**2 / (2.0 * np.pi)


def compliance(body):
    """Displacements of the tip along y and z by forces there (2, 2) [m/N], static shapes given."""
    shapes = body.modes[body.tip, 4:]
    return shapes @ np.diag(1.0 / body.stiffness) @ shapes.T


def tensor(I_y, I_z, product):
    """∫ r r* dA with r = (y, z)."""
    return np.array([[I_z, product], [product, I_y]])


def turn(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])


def test_principal_axes():
    """They make ∫ r r* dA diagonal, and are those given where the product is zero."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        I_y, I_z = rng.random(2)
        product = 0.9 * np.sqrt(I_y * I_z) * rng.uniform(-1.0, 1.0)
        small, large, angle = principal(*(np.array([x]) for x in (I_y, I_z, product)))
        R = turn(angle[0])
        diagonal = R.T @ tensor(I_y, I_z, product) @ R
        np.testing.assert_allclose(diagonal, np.diag([large[0], small[0]]), atol=1e-15)
        assert abs(angle[0]) <= np.pi / 4.0
    none = np.zeros(1)
    assert principal(none + 2.0, none + 1.0, none) == (2.0, 1.0, 0.0)


def test_unsymmetrical_bending():
    """A force along y also moves the tip along z: L³ / 3E times the inverse of ∫ r r* dA."""
    body = beam(
        L, bending=(I_Y, I_Z), product=I_YZ, modes=1, directions=ACROSS, boundary="fixed", **GIVEN
    )
    exact = L**3 / (3.0 * YOUNG) * np.linalg.inv(tensor(I_Y, I_Z, I_YZ))
    np.testing.assert_allclose(compliance(body), exact, rtol=1e-8)
    assert exact[1, 0] < -0.3 * exact[0, 0]


def test_frequencies_of_an_unsymmetrical_section():
    """Those of bending about its principal axes."""
    body = beam(L, bending=(I_Y, I_Z), product=I_YZ, modes=2, directions=ACROSS, **GIVEN)
    moments = np.linalg.eigvalsh(tensor(I_Y, I_Z, I_YZ))
    exact = CANTILEVER * np.sqrt(YOUNG * moments / (DENSITY * AREA * L**4))
    np.testing.assert_allclose(body.frequencies, exact, rtol=1e-5)


def test_roll_turns_the_section():
    """A turned section is one with a product of area, and a frame turned about its axis."""
    angle, one = 0.4, {"modes": 2, "boundary": "fixed", "directions": ACROSS, **GIVEN}
    turned = beam(L, bending=(I_Y, I_Z), roll=angle, **one)
    inertia = turn(angle) @ np.diag([I_Z, I_Y]) @ turn(angle).T
    mixed = beam(L, bending=(inertia[1, 1], inertia[0, 0]), product=inertia[0, 1], **one)
    np.testing.assert_allclose(compliance(turned), compliance(mixed), rtol=1e-9)
    np.testing.assert_allclose(turned.frequencies, mixed.frequencies, rtol=1e-9)
    nodes = np.linspace((0, 0, 0), (L, 0, 0), 9)
    table = (AREA, I_Y, I_Z, I_Y + I_Z)
    made = frame(
        nodes, [(i, i + 1) for i in range(8)], sections=table, roll=[angle] * 8, modes=2,
        boundary="fixed", directions=ACROSS, young=YOUNG, density=DENSITY,
    )  # fmt: skip
    np.testing.assert_allclose(compliance(made), compliance(turned), rtol=1e-9)


def test_twisted_beam():
    """Of a beam whose section turns along it: ∫ (L - x)² (E ∫ r r* dA)⁻¹ dx."""
    twist = np.pi / 2.0
    body = beam(
        L, bending=(I_Y, I_Z), roll=[0.0, twist], modes=1, directions=ACROSS, boundary="fixed",
        **GIVEN,
    )  # fmt: skip
    points, weights = np.polynomial.legendre.leggauss(20)
    exact = np.zeros((2, 2))
    for x, w in zip(0.5 * (1.0 + points), 0.5 * weights, strict=True):
        R = turn(twist * x)
        exact += w * L * (L - L * x) ** 2 * R @ np.diag([1.0 / I_Z, 1.0 / I_Y]) @ R.T / YOUNG
    np.testing.assert_allclose(compliance(body), exact, rtol=1e-3)


def test_shear_along_both_axes():
    """k for each axis: L³ / 3 E I + L / k A G."""
    k, G = [0.4, 0.8], 1e9
    body = beam(
        L, bending=(I_Y, I_Z), shear_factor=k, shear_modulus=G, modes=1, directions=ACROSS,
        boundary="fixed", **GIVEN,
    )  # fmt: skip
    exact = L**3 / (3.0 * YOUNG * np.array([I_Z, I_Y])) + L / (np.array(k) * AREA * G)
    np.testing.assert_allclose(compliance(body), np.diag(exact), rtol=1e-8, atol=1e-12)


def test_refused():
    with pytest.raises(lw.ModelError, match="less than I_y I_z"):
        beam(L, bending=(I_Y, I_Z), product=5e-9, **GIVEN)
    with pytest.raises(lw.ShapeError, match="shear_factor has shape"):
        beam(L, bending=I_Y, shear_factor=[0.8, 0.8, 0.8], **GIVEN)
    nodes = [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    with pytest.raises(lw.ShapeError, match="one for each of 2 elements"):
        frame(
            nodes, [(0, 1), (1, 2)], sections=(1e-4, 1e-9, 1e-9, 1e-9), roll=[0.1, 0.2, 0.3],
            young=YOUNG, density=DENSITY,
        )  # fmt: skip
