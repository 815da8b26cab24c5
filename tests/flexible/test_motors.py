"""Motors behind gears: rotors as lumps, as explicit bodies with couplings, and as armature."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from tests.flexible.cases import inertia, place

RATIOS = (30.0, -8.0, 50.0)


def arm(seed, *, motors, symmetric=True, base=None):
    """Three links with motors on their parents: as lumps, as bodies with couplings, or neither."""
    rng = np.random.default_rng(seed)
    b, parent = lw.Builder("geared"), "world"
    if base is not None:
        b, parent = b.body("base", "world", base, inertia=inertia(rng)), "base"
    for i, ratio in enumerate(RATIOS):
        hinge = lw.hinges.Prismatic((1, 2, 0)) if i == 1 else lw.hinges.Pin(tuple(rng.random(3)))
        inboard, mount, axis = place(rng), place(rng), (0.0, 0.0, 1.0)
        b = b.body(f"link_{i}", parent, hinge, inboard=inboard, inertia=inertia(rng))
        J = (1e-3, 1e-3, 2e-3) if symmetric else (1e-3, 2e-3, 2.5e-3)
        rotor = lw.SpatialInertia.from_com(0.2, (0, 0, 0.01 * i), J)
        if motors == "lumps":
            b = b.motor(f"link_{i}", rotor, ratio=ratio, axis=axis, mount=mount)
        elif motors == "bodies":
            pin = lw.hinges.Pin(axis)
            b = b.body(f"rotor_{i}", parent, pin, inboard=inboard @ mount, inertia=rotor)
            b = b.couple(f"gear_{i}", f"rotor_{i}", {f"link_{i}": ratio})
        parent = f"link_{i}"
    return b.build()


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("base", [None, lw.hinges.Free()])
def test_rotors_are_explicit_bodies_with_couplings(base, symmetric):
    options = {"symmetric": symmetric, "base": base}
    mech, other = (arm(2, motors=x, **options) for x in ("lumps", "bodies"))
    rng = np.random.default_rng(5)
    q, v, tau = mech.random(rng), rng.standard_normal(mech.nv), rng.standard_normal(mech.nv)
    q_all, v_all, tau_all = np.zeros(other.nq), np.zeros(other.nv), np.zeros(other.nv)
    for name in mech.hinge_index:
        q_all[other.q_slice(name)] = q[mech.q_slice(name)]
        v_all[other.v_slice(name)] = v[mech.v_slice(name)]
        tau_all[other.v_slice(name)] = tau[mech.v_slice(name)]
    for i, ratio in enumerate(RATIOS):
        q_all[other.q_slice(f"rotor_{i}")] = ratio * q[mech.q_slice(f"link_{i}")]
        v_all[other.v_slice(f"rotor_{i}")] = ratio * v[mech.v_slice(f"link_{i}")]
    reference = lw.forward_dynamics(other, q_all, v_all, tau_all)
    places = np.concatenate([np.arange(other.nv)[other.v_slice(n)] for n in mech.hinge_index])
    result = lw.forward_dynamics(mech, q, v, tau)
    np.testing.assert_allclose(
        result, reference[places], rtol=0, atol=1e-9 * np.abs(reference).max()
    )
    np.testing.assert_allclose(mech.total_mass, other.total_mass, rtol=1e-14)


def test_armature_is_exact_where_the_parent_does_not_turn():
    """Reflected inertia n² J, as in Drake and Pinocchio, for a motor on the ground; else it lacks
    the coupling n J of the spin with the turn of the parent."""
    J, n = 2e-3, 40.0
    rotor = lw.SpatialInertia.from_com(0.1, (0, 0, 0), (1e-3, 1e-3, J))
    link = lw.SpatialInertia.from_com(1.0, (0.3, 0, 0), (0.1, 0.1, 0.1))
    pin = lw.hinges.Pin((0, 0, 1))

    def built(*, lumps):
        b = lw.Builder("two links")
        drive = lw.Drive() if lumps else lw.Drive(rotor_inertia=J, gear_ratio=n)
        b.body("upper", "world", pin, inertia=link, drive=drive)
        b.body("lower", "upper", pin, inboard=(0.5, 0, 0), inertia=link, drive=drive)
        if lumps:
            b.motor("upper", rotor, ratio=n).motor("lower", rotor, ratio=n)
        return b.build()

    q = np.array([0.4, 0.7])
    exact, reflected = (lw.mass_matrix(built(lumps=x), q) for x in (True, False))
    carried = 0.1 * 0.5**2  # the mass of the second motor at the elbow
    np.testing.assert_allclose(
        exact - reflected, [[carried + J, n * J], [n * J, 0.0]], rtol=0, atol=1e-12
    )


def test_gyroscopic_torque():
    """A rotor that spins with n q̇ about x and turns with w about z takes the torque J n q̇ w."""
    J, n = 2e-3, 100.0
    rotor = lw.SpatialInertia.from_com(0.1, (0, 0, 0), (J, 1e-3, 1e-3))
    b = lw.Builder("turntable", gravity=(0, 0, 0))
    link = lw.SpatialInertia.from_com(1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    b.body("tilt", "world", lw.hinges.Pin((0, 1, 0)), inertia=link)
    b.body("table", "tilt", lw.hinges.Pin((0, 0, 1)), inertia=link)
    b.body("wheel", "table", lw.hinges.Pin((1, 0, 0)), inertia=link)
    mech = b.motor("wheel", rotor, ratio=n, axis=(1, 0, 0)).build()
    plain = mech.with_drive("wheel", armature=1.0)
    w, speed = 0.7, 2.0
    v = np.array([0.0, w, speed])
    force = lw.inverse_dynamics(plain, np.zeros(3), v, np.zeros(3))
    # Of the link and the rotor: H = J_total spin along x turns about z with w.
    np.testing.assert_allclose(force[0], (0.1 * speed + J * (n * speed)) * w, rtol=1e-12)


def test_elastic_transmission():
    """A harmonic drive: the gear turns a massless body; the link hangs on it by a stiff spring."""
    J, n, k = 1e-4, 100.0, 1e4
    link = lw.SpatialInertia.from_com(2.0, (0.4, 0, 0), (0.01, 0.05, 0.05))
    rotor = lw.SpatialInertia.from_com(0.3, (0, 0, 0), (1e-4, 1e-4, J))
    b = lw.Builder("elastic joint", gravity=(0, 0, 0))
    b.body("gear", "world", lw.hinges.Pin(), inertia=lw.SpatialInertia.zero())
    b.body("link", "gear", lw.hinges.Pin(), inertia=link, drive=lw.Drive(stiffness=k))
    mech = b.motor("gear", rotor, ratio=n).build()
    poles = np.linalg.eigvals(lw.linearize(mech, np.zeros(2), np.zeros(2), np.zeros(2)).A)
    I = 0.05 + 2.0 * 0.4**2
    exact = np.sqrt(k * (1.0 / I + 1.0 / (n * n * J)))
    np.testing.assert_allclose(poles.imag.max(), exact, rtol=1e-9)


def test_motors_need_a_hinge_with_one_coordinate():
    part = lw.SpatialInertia.point(1.0)
    b = lw.Builder("robot").body("ball", "world", lw.hinges.Spherical(), inertia=part)
    with pytest.raises(lw.ModelError, match="one coordinate"):
        b.motor("ball", part)
    with pytest.raises(lw.ModelError, match="no hinge"):
        b.motor("bell", part)


def test_impossible_rotors():
    """A builder refuses them; in a mechanism they are errors of the motor, not of a sum."""
    link = lw.SpatialInertia.from_com(2.0, (0.4, 0, 0), (0.01, 0.05, 0.05))
    rotor = lw.SpatialInertia.from_com(0.1, (0, 0, 0), (1e-4, 1e-4, 1e-4))
    b = lw.Builder("robot").body("arm", "world", lw.hinges.Pin(), inertia=link)
    negative = lw.SpatialInertia(-0.1, np.zeros(3), np.diag([1e-4] * 3))
    for wrong, match in ((negative, "mass is -0.1 kg"), (lopsided(), "exceeds the sum")):
        with pytest.raises(lw.ModelError, match=match):
            b.motor("arm", wrong, ratio=3.0)
    for ratio, match in ((0.0, "would not turn"), (np.nan, "must be a number")):
        with pytest.raises(lw.ModelError, match=match):
            b.motor("arm", rotor, ratio=ratio)
    mech = b.motor("arm", rotor, ratio=3.0).build()
    assert not mech.validate()
    lump = replace(mech.bodies[0].lumps[0], inertia=lopsided())
    other = replace(mech, bodies=(replace(mech.bodies[0], lumps=(lump,)),))
    (finding,) = other.validate()
    assert (finding.severity, finding.where) == ("error", "the motor at hinge 'arm'")
    assert "weld" not in str(finding)


def lopsided():
    """An inertia that no body has."""
    return lw.SpatialInertia(0.1, np.zeros(3), np.diag([1e-4, 1e-4, 3e-4]))
