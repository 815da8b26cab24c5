"""Gears beside Drake and Pinocchio: reflected inertia where it is exact, and explicit rotors."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw

LINK = """<link name="{name}"><inertial><origin xyz="0.3 0 0"/><mass value="1.2"/>
<inertia ixx="0.02" iyy="0.05" izz="0.06" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
JOINT = """<joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{child}"/>
<origin xyz="{x} 0 0"/><axis xyz="{axis}"/></joint>"""
GEAR = """<transmission name="t_{name}"><type>transmission_interface/SimpleTransmission</type>
<joint name="{name}"/><actuator name="m_{name}"><mechanicalReduction>{ratio}</mechanicalReduction>
<drake:rotor_inertia value="{rotor}"/><drake:gear_ratio value="{ratio}"/></actuator>
</transmission>"""
RATIOS, ROTOR = {"shoulder": 40.0, "elbow": -25.0}, 3e-4


def urdf():
    parts = [
        '<robot name="arm" xmlns:drake="http://drake.mit.edu"><link name="base"/>',
        *(LINK.format(name=x) for x in ("upper", "lower")),
        JOINT.format(name="shoulder", parent="base", child="upper", x=0, axis="0 0 1"),
        JOINT.format(name="elbow", parent="upper", child="lower", x=0.6, axis="0 0.6 0.8"),
        *(GEAR.format(name=n, ratio=r, rotor=ROTOR) for n, r in RATIOS.items()),
        "</robot>",
    ]
    return "\n".join(parts)


@pytest.mark.prove
@pytest.mark.oracle
def test_reflected_inertia_is_that_of_drake(tmp_path):
    """M and v̇ of a URDF with transmissions are those of Drake's parser and plant."""
    pytest.importorskip("pydrake", reason="Drake is not installed")
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant

    file = tmp_path / "arm.urdf"
    file.write_text(urdf())
    mech = lw.load(file)
    plant = MultibodyPlant(0.0)
    Parser(plant).AddModels(str(file))
    plant.WeldFrames(plant.world_frame(), plant.GetFrameByName("base"))
    plant.Finalize()
    context, rng = plant.CreateDefaultContext(), np.random.default_rng(0)
    q, v = rng.standard_normal((2, 2))
    plant.SetPositions(context, q)
    plant.SetVelocities(context, v)
    theirs = plant.CalcMassMatrix(context)
    ours = lw.mass_matrix(mech, q)
    assert np.abs(ours).min() > 0.01
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    bare = lw.mass_matrix(mech.with_drive("shoulder", rotor_inertia=0.0), q)
    np.testing.assert_allclose(ours[0, 0] - bare[0, 0], 40.0**2 * ROTOR, rtol=1e-9)
    bias = plant.CalcBiasTerm(context) - plant.CalcGravityGeneralizedForces(context)
    np.testing.assert_allclose(lw.inverse_dynamics(mech, q, v, 0 * v), bias, atol=1e-12)


@pytest.mark.prove
@pytest.mark.oracle
def test_rotor_convention_is_that_of_pinocchio(tmp_path):
    """`rotor_inertia` and `gear_ratio` are rotorInertia and rotorGearRatio: armature n² J."""
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is not installed")
    file = tmp_path / "arm.urdf"
    file.write_text(urdf())
    model = pin.buildModelFromUrdf(str(file))
    model.rotorInertia = np.full(2, ROTOR)
    model.rotorGearRatio = np.array(list(RATIOS.values()))
    model.armature = model.rotorInertia * model.rotorGearRatio**2
    mech, data = lw.load(file), model.createData()
    angles = np.array([0.3, -0.8])
    q = np.array([np.cos(0.3), np.sin(0.3), np.cos(-0.8), np.sin(-0.8)])  # continuous joints
    theirs = pin.crba(model, data, q)
    theirs = np.triu(theirs) + np.triu(theirs, 1).T
    np.testing.assert_allclose(lw.mass_matrix(mech, angles), theirs, rtol=1e-12)


def test_a_chain_of_motors_costs_linear_time():
    """Off-diagonal couplings n J of rotors do not change the order of forward dynamics."""
    from linkwise.algebra import bias, mass, tau

    def operations(n, *, motors):
        rotor = lw.SpatialInertia.from_com(0.1, (0, 0, 0), (1e-4, 1e-4, 2e-4))
        link = lw.SpatialInertia.from_com(1.0, (0.2, 0, 0), (0.01, 0.02, 0.03))
        b, parent = lw.Builder("chain"), "world"
        for i in range(n):
            hinge = lw.hinges.Pin((0, 1, 0) if i % 2 else (0, 0, 1))
            b.body(f"link_{i}", parent, hinge, inboard=(0.4, 0, 0), inertia=link)
            if motors:
                b.motor(f"link_{i}", rotor, ratio=50.0)
            parent = f"link_{i}"
        return lw.compile(mass.inv @ (tau - bias), b.build(), target="c").ops.total()

    counts = [operations(n, motors=True) for n in (4, 8, 12)]
    # Linear in n, but for the first links, whose parents do not move.
    np.testing.assert_allclose(counts[2] - counts[1], counts[1] - counts[0], rtol=0.02)
    assert counts[1] < 2.5 * operations(8, motors=False)
