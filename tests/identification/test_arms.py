"""An arm of Menagerie on twenty seeds, and one in Pinocchio and NumPy."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.identification import model
from linkwise.identification.rows import base_of

KINDS = ("inertia", "damping", "friction")
FILE = Path(__file__).parent / "menagerie_ur5e.xml"


@cache
def arm() -> lw.Mechanism:
    """The UR5e of MuJoCo Menagerie, with dampers and friction in its drives."""
    mech = lw.load(FILE)
    for i, body in enumerate(mech.bodies):
        mech = mech.with_drive(body.hinge_name, damping=4.0 - 0.5 * i, friction=3.0 - 0.4 * i)
    return mech


@cache
def motion() -> lw.identification.SmoothMotion:
    return lw.identification.exciting_motion(
        arm(), duration=8.0, step=0.02, parameters=KINDS, tries=20, rounds=0
    )


@pytest.mark.oracle
@pytest.mark.prove
def test_confidence_holds_on_twenty_seeds() -> None:
    """Forces by MuJoCo's inverse dynamics of the file; 95 % of the true numbers are inside."""
    mujoco = pytest.importorskip("mujoco")
    m, mech = motion(), arm()
    there = mujoco.MjModel.from_xml_path(str(FILE))
    data, tau = mujoco.MjData(there), np.zeros_like(m.v)
    for k, state in enumerate(zip(m.q, m.v, m.vdot, strict=True)):
        data.qpos[:], data.qvel[:], data.qacc[:] = state
        mujoco.mj_inverse(there, data)
        tau[k] = data.qfrc_inverse
    tau += mech.damping * m.v + mech.friction * np.sign(m.v)
    noise = 0.02 * np.std(tau, axis=0)
    base = base_of(mech, KINDS, list(range(6)))
    truth, inside, off = base.matrix @ model.nominal(mech, KINDS), 0, list[float]()
    for seed in range(20):
        rng = np.random.default_rng(100 + seed)
        force = tau + noise * rng.standard_normal(tau.shape)
        fit = lw.identify(mech, m.q, m.v, m.vdot, force, parameters=KINDS)
        low, high = fit.interval().T
        inside += int(((low <= truth) & (truth <= high)).sum())
        off.append(float(np.mean(((fit.estimate - truth) / fit.deviation) ** 2)))
        assert fit.condition < 300.0
    assert 0.92 <= inside / (20 * len(truth)) <= 0.98
    assert 0.8 < np.mean(off) < 1.25


@pytest.mark.oracle
@pytest.mark.prove
def test_pinocchio_and_numpy_find_the_same(tmp_path: Path) -> None:
    """A plain regression on the columns of Pinocchio's regressor, from the same data."""
    pin = pytest.importorskip("pinocchio")
    mech, m = lw.models.ur_arm(), motion()
    bare = mech
    for body in mech.bodies:
        bare = bare.with_drive(body.hinge_name, damping=0.0, friction=0.0, armature=0.0)
    file = tmp_path / "arm.urdf"
    lw.save(bare, file)
    bare = lw.load(file)  # with the frames of the file, as Pinocchio has them
    there = pin.buildModelFromUrdf(str(file))
    data, q, v, vdot = there.createData(), m.q, m.v, m.vdot
    rng = np.random.default_rng(0)
    tau = lw.inverse_dynamics(bare, q, v, vdot)
    tau = tau + 0.1 * rng.standard_normal(tau.shape)
    rows = [
        pin.computeJointTorqueRegressor(there, data, *x).copy()
        for x in zip(q, v, vdot, strict=True)
    ]
    order = [0, 1, 2, 3, 4, 6, 9, 5, 7, 8]  # ours: m, mc, Ixx Iyy Izz Ixy Ixz Iyz
    stacked = np.concatenate(rows)
    columns = np.concatenate([stacked[:, 10 * k : 10 * k + 10][:, order] for k in range(6)], axis=1)
    fit = lw.identify(bare, q, v, vdot, tau, parameters=["inertia"], weighted=False)
    base = base_of(bare, ("inertia",), list(range(6)))
    right = tau - bare.armature * vdot  # the rotors are known
    plain = np.linalg.lstsq(columns[:, base.columns], right.ravel(), rcond=None)[0]
    assert np.allclose(fit.estimate, plain, rtol=1e-6, atol=1e-7 * np.abs(plain).max())
