"""How the named functions are called: batches, results in place, bad input, what is kept."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import linkwise as lw
from linkwise.dynamics import kernels
from linkwise.errors import (
    ModelError,
    ShapeError,
    SingularHingeError,
    TroubleWarning,
    UnknownNameError,
)
from tests.cases import close, state, states

CALLS = {
    "forward_dynamics": lambda m, q, v, x, **o: lw.forward_dynamics(m, q, v, x, **o),
    "inverse_dynamics": lambda m, q, v, x, **o: lw.inverse_dynamics(m, q, v, x, **o),
    "bias_force": lambda m, q, v, x, **o: lw.bias_force(m, q, v, **o),
    "gravity_force": lambda m, q, v, x, **o: lw.gravity_force(m, q, **o),
    "mass_matrix": lambda m, q, v, x, **o: lw.mass_matrix(m, q, **o),
    "mass_matrix_inverse": lambda m, q, v, x, **o: lw.mass_matrix_inverse(m, q, **o),
    "jacobian": lambda m, q, v, x, **o: lw.jacobian(m, q, "ee", **o),
    "node_velocity": lambda m, q, v, x, **o: lw.node_velocity(m, q, v, "ee", **o),
    "operational_inertia_inverse": lambda m, q, v, x, **o: lw.dynamics.operational_inertia_inverse(
        m, q, "ee", **o
    ),
}


def arm() -> lw.Mechanism:
    """Four pins and a slide, on a new mechanism each time."""
    kinds = ("pin", "pin", "pin", "prismatic", "pin")
    mech = lw.models.random_tree(5, 2, hinges=kinds, branching=0.0)
    return mech.with_node("ee", mech.bodies[-1].name, (0.0, 0.1, 0.2))


ARM = arm()


@pytest.mark.parametrize("name", CALLS)
def test_batches_equal_single_states(name):
    call = CALLS[name]
    for count in (1, 5, 19):
        q, v, x = states(ARM, count)
        result = call(ARM, q, v, x)
        single = np.stack([call(ARM, q[i], v[i], x[i]) for i in range(count)])
        close(result, single, 1e-12)


@pytest.mark.parametrize("name", CALLS)
def test_results_are_put_where_they_are_wanted(name):
    call = CALLS[name]
    for args in (state(ARM), states(ARM, 6)):
        expected = call(ARM, *args)
        out = np.full_like(expected, 7.0)
        assert call(ARM, *args, out=out) is out
        close(out, expected, 1e-13)
        with pytest.raises(ShapeError, match="out"):
            call(ARM, *args, out=np.zeros(3))
    status = np.full(6, 9, dtype=np.int32)
    call(ARM, *states(ARM, 6), status=status, threads=2)
    assert not status.any()


def test_poses_and_energies_in_batches():
    q, v, _ = states(ARM, 6)
    few = ["ee", "body_2"]
    for i in range(6):
        close(lw.forward_kinematics(ARM, q)[i].matrix, ARM.poses(q[i]).matrix, 1e-13)
        close(lw.forward_kinematics(ARM, q, few)[i, 1].matrix, ARM.pose(q[i], few[1]).matrix, 1e-13)
        close(lw.forward_kinematics(ARM, q, "ee")[i].matrix, ARM.pose(q[i], "ee").matrix, 1e-13)
        close(lw.energy(ARM, q, v).total[i], lw.energy(ARM, q[i], v[i]).total, 1e-13)
    assert isinstance(lw.energy(ARM, q[0], v[0]).kinetic, float)
    out = np.zeros((6, 2, 3, 4))
    poses = lw.forward_kinematics(ARM, q, few, out=out)
    assert np.shares_memory(poses.rot, out) and np.shares_memory(poses.p, out)
    close(out[3, 0], ARM.pose(q[3], "ee").matrix[:3], 1e-13)
    with pytest.raises(ShapeError, match=r"out has shape \(6, 2, 4, 4\).*\(\.\.\., 2, 3, 4\)"):
        lw.forward_kinematics(ARM, q, few, out=np.zeros((6, 2, 4, 4)))


def test_an_array_without_the_batch_axis_serves_all_states():
    q, v, x = states(ARM, 4)
    still = np.zeros(ARM.nv)
    close(lw.bias_force(ARM, q, still), lw.gravity_force(ARM, q), 1e-12)
    push = {"ee": np.arange(6.0), "body_2": np.ones((4, 6))}
    vdot = lw.forward_dynamics(ARM, q, v, x, forces=push)
    for i in range(4):
        one = {"body_2": np.ones(6), "ee": np.arange(6.0)}
        close(vdot[i], lw.forward_dynamics(ARM, q[i], v[i], x[i], forces=one), 1e-12)


def test_lists_and_integers_are_numbers_too():
    q, v, x = state(ARM)
    close(lw.forward_dynamics(ARM, list(q), list(v), x), lw.forward_dynamics(ARM, q, v, x), 1e-13)
    lw.mass_matrix(ARM, [0, 0, 0, 0, 0])


# ---------------------------------------------------------------------------------- bad input


def test_wrong_shapes_are_named():
    q, v, x = state(ARM)
    with pytest.raises(ShapeError, match=r"tau has shape \(4,\); it must be \(5,\)"):
        lw.forward_dynamics(ARM, q, v, x[:4])
    with pytest.raises(ShapeError, match=r"vdot has shape"):
        lw.inverse_dynamics(ARM, q, v, np.zeros((2, 2, 5)))
    with pytest.raises(ShapeError, match=r"q has shape \(\)"):
        lw.mass_matrix(ARM, 3.0)
    with pytest.raises(ShapeError, match=r"the force on 'ee' has shape \(3,\)"):
        lw.forward_dynamics(ARM, q, v, x, forces={"ee": np.zeros(3)})
    both = {"ee": np.zeros((2, 6)), "body_1": np.zeros((3, 6))}
    with pytest.raises(ShapeError, match="one batch for all"):
        lw.inverse_dynamics(ARM, q, v, x, forces=both)


def test_unknown_nodes_get_the_known_ones():
    q, v, x = state(ARM)
    for call in (
        lambda: lw.jacobian(ARM, q, "hand"),
        lambda: lw.forward_kinematics(ARM, q, ["ee", "hand"]),
        lambda: lw.operational_inertia(ARM, q, "hand"),
        lambda: lw.forward_dynamics(ARM, q, v, x, forces={"hand": np.zeros(6)}),
    ):
        with pytest.raises(UnknownNameError, match=r"no node or body called 'hand'.*known: .*ee"):
            call()
    with pytest.raises(UnknownNameError, match="did you mean 'body_2'"):
        lw.jacobian(ARM, q, "body2")
    with pytest.raises(ModelError, match="frame is 'local'; it must be 'node' or 'world'"):
        lw.jacobian(ARM, q, "ee", frame="local")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="did you mean 'mass_matrix'"):
        lw.dynamics.kernel(ARM, "mass_matrx")


def test_numbers_that_are_none_are_told():
    q, v, x = states(ARM, 5)
    with pytest.raises(ModelError, match="v is not finite"):
        lw.forward_dynamics(ARM, q[0], np.full(5, np.nan), x[0])
    v[3, 1] = np.inf
    status = np.zeros(5, dtype=np.int32)
    vdot = lw.forward_dynamics(ARM, q, v, x, status=status)
    assert status.tolist() == [0, 0, 0, 1, 0]
    assert np.isnan(vdot[3]).all() and np.isfinite(vdot[[0, 1, 2, 4]]).all()


def test_energies_tell_of_both_their_parts():
    q, v, _ = states(ARM, 4)
    q[1, 0], v[2, 1] = np.nan, np.nan
    status = np.zeros(4, dtype=np.int32)
    energy = lw.energy(ARM, q, v, status=status)
    assert status.tolist() == [0, 1, 1, 0]
    assert np.isnan(energy.total).tolist() == [False, True, True, False]
    assert np.isnan(energy.potential[2])  # one kernel: a state has a result or it has none


def test_the_warning_points_at_the_caller():
    q, v, x = states(ARM, 5)
    x[2, 0] = np.nan
    calls = (
        lambda: lw.forward_dynamics(ARM, q, v, x),
        lambda: lw.forward_dynamics(ARM, q, v, x, forces={"ee": np.ones(6)}),
    )
    for call in calls:
        with pytest.warns(TroubleWarning, match="1 of 5 states") as caught:
            call()
        assert {warning.filename for warning in caught} == {__file__}


def test_a_hinge_that_nothing_resists_is_named():
    b = lw.Builder("empty hand").body(
        "arm", hinge=lw.hinges.Pin(), inertia=lw.SpatialInertia.zero()
    )
    mech = b.build()
    with pytest.raises(SingularHingeError, match="arm"):
        lw.forward_dynamics(mech, np.zeros(1), np.zeros(1), np.ones(1))
    assert lw.mass_matrix(mech, np.zeros(1)).tolist() == [[0.0]]


# --------------------------------------------------------------------------- what is kept


@pytest.fixture
def compiled(monkeypatch):
    """The kernels that are made while a test runs."""
    made = list[str]()
    original = kernels.compile

    def counted(expr, mech, **options):
        made.append(str(expr))
        return original(expr, mech, **options)

    monkeypatch.setattr(kernels, "compile", counted)
    return made


def test_a_kernel_is_made_once(compiled):
    mech = arm()
    q, v, x = state(mech)
    for _ in range(3):
        lw.forward_dynamics(mech, q, v, x)
        lw.jacobian(mech, q, "ee")
        lw.jacobian(mech, q, "ee", frame="world")
        lw.forward_dynamics(mech, q, v, x, forces={"ee": np.ones(6), "body_2": np.ones(6)})
        lw.forward_dynamics(mech, q, v, x, forces={"body_2": np.ones(6), "ee": np.ones(6)})
    assert len(compiled) == 4
    lw.forward_dynamics(mech.with_gravity((0, 0, -1)), q, v, x)  # another mechanism
    assert len(compiled) == 5
    assert "whitened propagation" in lw.dynamics.kernel(mech, "forward_dynamics").explain()


def test_copies_do_not_share_kernels():
    mech = arm()
    lw.gravity_force(mech, state(mech)[0])
    for other in (copy.deepcopy(mech), pickle.loads(pickle.dumps(mech)), copy.copy(mech)):
        of_copy, ours = (lw.dynamics.kernel(x, "gravity_force") for x in (other, mech))
        assert of_copy is not ours and ours is lw.dynamics.kernel(mech, "gravity_force")
        close(lw.gravity_force(other, state(mech)[0]), lw.gravity_force(mech, state(mech)[0]))


def test_kernels_go_with_the_mechanism():
    mech = arm()
    lw.gravity_force(mech, state(mech)[0])
    kernel = weakref.ref(lw.dynamics.kernel(mech, "gravity_force").device.machine.engine)
    gone = weakref.ref(mech)
    del mech
    gc.collect()
    assert gone() is None and kernel() is None


def test_threads_that_ask_at_once_get_one_kernel(compiled):
    mech = arm()
    q, v, x = state(mech)
    start, result = threading.Barrier(6), list[np.ndarray]()

    def ask():
        start.wait()
        result.append(lw.forward_dynamics(mech, q, v, x))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(compiled) == 1 and len(result) == 6
    for value in result:
        np.testing.assert_array_equal(value, result[0])


def test_armature_is_part_of_it_only_where_there_is_some():
    """It is part of every expression; a kernel of a mechanism without any has none in it."""
    assert "N" in str(lw.dynamics.expression("kinetic_energy"))
    bare = lw.models.random_tree(3, 1, hinges=("pin",), drives=False)
    derivation = lw.dynamics.kernel(bare, "kinetic_energy").derivation
    assert "N" in str(derivation.start) and "N" not in str(derivation.result)


def test_a_mechanism_without_freedoms():
    ball = lw.SpatialInertia.solid_sphere(1.0, 1.0)
    mech = lw.Builder("stone").body("stone", hinge=lw.hinges.Locked(), inertia=ball).build()
    assert mech.nv == 0
    none = np.zeros(0)
    assert lw.forward_dynamics(mech, none, none, none).shape == (0,)
    assert lw.mass_matrix(mech, none).shape == (0, 0)
    assert lw.jacobian(mech, none, "stone").shape == (6, 0)
    assert lw.energy(mech, none, none).kinetic == 0.0
    close(lw.forward_kinematics(mech, none).matrix, np.eye(4)[None], 1e-15)


def test_energies_of_one_position_and_many_velocities_have_a_status():
    arm = lw.models.seven_dof_arm()
    v = np.zeros((3, 7))
    v[1, 2] = np.nan
    status = np.full(3, 9, dtype=np.int32)
    energy = lw.energy(arm, np.full(7, 0.3), v, status=status)
    assert status.tolist() == [0, 1, 0]
    assert np.isnan(energy.total).tolist() == [False, True, False]


def test_poses_go_into_arrays_only():
    arm = lw.models.seven_dof_arm()
    with pytest.raises(lw.errors.ShapeError, match="out is a list"):
        lw.forward_kinematics(arm, np.zeros(7), "hand", out=[0.0])


NOT_MECHANISMS = {
    "None": (None, "mech is a NoneType; a mechanism comes first"),
    "path": ("arm.urdf", "mech is a str, 'arm.urdf'; lw.load makes a mechanism of a file"),
    "array": (np.zeros(5), "mech is a ndarray; a mechanism comes first"),
}


@pytest.mark.parametrize("what", NOT_MECHANISMS)
def test_what_is_not_a_mechanism(what):
    mech, text = NOT_MECHANISMS[what]
    q, v, x = state(ARM)
    six = np.zeros((5, 6))
    calls = {
        **{name: lambda call=call: call(mech, q, v, x) for name, call in CALLS.items()},
        "poses": lambda: lw.forward_kinematics(mech, q),
        "pose": lambda: lw.forward_kinematics(mech, q, "ee"),
        "relative pose": lambda: lw.dynamics.relative_pose(mech, q, "ee", "world"),
        "velocities": lambda: lw.dynamics.body_velocities(mech, q, v, frame="world"),
        "accelerations": lambda: lw.dynamics.body_accelerations(mech, q, v, tau=x),
        "acceleration": lambda: lw.node_acceleration(mech, q, v, "ee", vdot=x),
        "hinge forces": lambda: lw.hinge_forces(mech, q, v, vdot=x),
        "hybrid": lambda: lw.hybrid_dynamics(mech, q, v, tau=x, vdot=x, prescribed=[]),
        "rate": lambda: lw.jacobian_dot(mech, q, v, "ee"),
        "gram": lambda: lw.dynamics.jacobian_gram(mech, q, "ee"),
        "force": lambda: lw.dynamics.equivalent_force(mech, q, {"ee": np.zeros(6)}, about="world"),
        "inertia": lambda: lw.operational_inertia(mech, q, "ee"),
        "space": lambda: lw.operational_space(mech, q, "ee"),
        "block": lambda: lw.dynamics.mass_matrix_inverse_block(mech, q, 0),
        "scatter": lambda: lw.dynamics.scatter(mech, q, six),
        "factors": lambda: lw.papers.innovations_factors(mech, q),
        "inertias": lambda: lw.dynamics.composite_inertias(mech, q),
        "momentum": lambda: lw.momentum(mech, q, v),
        "center": lambda: lw.center_of_mass(mech, q),
        "coriolis": lambda: lw.coriolis_matrix(mech, q, v),
        "diagonal": lambda: lw.papers.diagonal_velocity(mech, q, v),
        "control": lambda: lw.computed_torque(mech, q, v, q, v, x, kp=1.0, kv=1.0),
        "energy": lambda: lw.energy(mech, q, v),
    }
    for name, call in calls.items():
        with pytest.raises(ModelError) as caught:
            call()
        assert str(caught.value).startswith(text), name


@pytest.mark.parametrize("frame", ["rubbish", ["node"], None, 3])
def test_frames_are_looked_at_without_forces_too(frame):
    q, v, x = state(ARM)
    lw.forward_dynamics(ARM, q, v, x), lw.inverse_dynamics(ARM, q, v, x)  # kernels are there
    for call in (
        lambda: lw.forward_dynamics(ARM, q, v, x, forces_frame=frame),
        lambda: lw.inverse_dynamics(ARM, q, v, x, forces_frame=frame),
        lambda: lw.hybrid_dynamics(ARM, q, v, tau=x, vdot=x, prescribed=[], forces_frame=frame),
        lambda: lw.papers.tip_force_correction(ARM, q, {"ee": np.zeros(6)}, forces_frame=frame),
        lambda: lw.operational_inertia(ARM, q, "ee", frame=frame),
        lambda: lw.operational_space(ARM, q, "ee", frame=frame),
        lambda: lw.jacobian(ARM, q, "ee", frame=frame),
        lambda: lw.dynamics.equivalent_force(ARM, q, {"ee": np.zeros(6)}, frame=frame),
    ):
        with pytest.raises(ModelError, match=r"^(forces_)?frame is .*; it must be 'node' or"):
            call()


NODE_CALLS = {
    "jacobian": lambda node: lw.jacobian(ARM, state(ARM)[0], node),
    "other axes": lambda node: lw.jacobian(ARM, state(ARM)[0], node, frame="body_2"),
    "velocity": lambda node: lw.node_velocity(ARM, *state(ARM)[:2], node),
    "acceleration": lambda node: lw.node_acceleration(
        ARM, *state(ARM)[:2], node, vdot=state(ARM)[2]
    ),
    "pose": lambda node: lw.forward_kinematics(ARM, state(ARM)[0], node),
    "gram": lambda node: lw.dynamics.jacobian_gram(ARM, state(ARM)[0], node),
    "rate": lambda node: lw.jacobian_dot(ARM, *state(ARM)[:2], node),
    "inertia": lambda node: lw.operational_inertia(ARM, state(ARM)[0], node),
    "space": lambda node: lw.operational_space(ARM, state(ARM)[0], node),
    "inverse": lambda node: lw.dynamics.operational_inertia_inverse(ARM, state(ARM)[0], node),
}


@pytest.mark.parametrize("name", NODE_CALLS)
def test_nodes_are_given_by_name(name):
    call = NODE_CALLS[name]
    for node in (ARM.node("ee"), [ARM.node("ee")]):
        with pytest.raises(ModelError, match=r"given as Node; .*name of this one is 'ee'\.$"):
            call(node)
    for node in (3, ["ee", None], [["ee"]]):
        with pytest.raises(ModelError, match=r"it must be the name of a node or body, or several"):
            call(node)
    with pytest.raises(ModelError, match="needs a node, and none was given; name at least one"):
        call([])


def test_relative_poses_are_seen_from_one_node():
    q = state(ARM)[0]
    for seen_from in (["ee"], ARM.node("ee"), None):
        with pytest.raises(ModelError, match=r"seen_from is a .*name of one node or body"):
            lw.dynamics.relative_pose(ARM, q, "body_2", seen_from)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="name of this one is 'ee'"):
        lw.dynamics.relative_pose(ARM, q, ARM.node("ee"), "world")  # type: ignore[arg-type]


def test_forces_are_given_by_node():
    q, v, x = state(ARM)
    many = np.stack([q] * 4)
    for forces in ([0.0] * 6, np.zeros(6), "ee"):
        for call in (
            lambda given: lw.forward_dynamics(ARM, q, v, x, forces=given),
            lambda given: lw.inverse_dynamics(ARM, q, v, x, forces=given),
            lambda given: lw.hinge_forces(ARM, q, v, tau=x, forces=given),
            lambda given: lw.dynamics.body_accelerations(ARM, q, v, tau=x, forces=given),
            lambda given: lw.node_acceleration(ARM, q, v, "ee", tau=x, forces=given),
            lambda given: lw.hybrid_dynamics(ARM, q, v, tau=x, vdot=x, prescribed=[], forces=given),
            lambda given: lw.papers.tip_force_correction(ARM, q, given),
            lambda given: lw.dynamics.equivalent_force(ARM, q, given, about="world"),
        ):
            with pytest.raises(
                ModelError, match=r"forces is a .*; it must be a dictionary of node"
            ):
                call(forces)
    for nothing in ({}, None):
        with pytest.raises(ModelError, match="no force was given"):
            lw.papers.tip_force_correction(ARM, q, nothing)
        with pytest.raises(ModelError, match="no force was given"):
            lw.dynamics.equivalent_force(ARM, q, nothing, about="world")
    with pytest.raises(ShapeError, match=r"^forces has 3 rows; the batch has 4"):
        lw.forward_dynamics(ARM, many, v, x, forces={"ee": np.zeros((3, 6))})
    with pytest.raises(ModelError, match="given as int; it must be the name of a node or body"):
        lw.forward_dynamics(ARM, q, v, x, forces={3: np.zeros(6)})  # type: ignore[dict-item]
