"""One call that is right for every public function and class: what the walk starts from.

A public name without a sample is a failure of `test_front_door.py`: add a line here for a new one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
import linkwise_ledger
from linkwise import algebra
from linkwise.algebra import BODY, JOINT, H, J, M, bias, mass, phi, vdot
from tests.grasp.grasps import block

Call = tuple[tuple[Any, ...], dict[str, Any]]


def call(*args: Any, **options: Any) -> Call:
    return args, options


# ------------------------------------------------------------------------- what calls are made of


@cache
def arm() -> lw.Mechanism:
    return lw.models.pendulum(2)


@cache
def _kalman() -> lw.filtering.Filter:
    return lw.filtering.kalman_filter(arm(), [lw.filtering.encoders(arm(), noise=0.01)], step=0.01)


@cache
def _filtered() -> lw.filtering.Filtered:
    measured = {"encoders": [[0.1, 0.2], [0.1, 0.2]]}
    return _kalman().run(_kalman().start(q()), [[0.0, 0.0]] * 2, measured)


@cache
def _identified() -> lw.identification.Identification:
    return lw.identify(arm(), *measured(), parameters=("inertia",))


@cache
def _optimized() -> lw.Trajectory:
    costs = lw.control.Cost.effort(weight=1.0)
    return lw.optimize(arm(), q(), v(), costs=costs, step=0.01, horizon=2)


@cache
def _table() -> str:
    path = folder() / "measured.csv"
    path.write_text("t,q[pin_1],q[pin_2]\n0,0.1,0.2\n0.1,0.1,0.3\n")
    return str(path)


def _speed(s: Any) -> Any:
    return s.value(J @ algebra.v, nodes=["tip"])


@cache
def linkage() -> lw.Mechanism:
    return lw.models.four_bar()


@cache
def held() -> lw.Mechanism:
    """Two arms of one slide and one pin each, in a plane, that hold a bar."""
    b = lw.Builder("two arms")
    part = lw.SpatialInertia.solid_box(1.0, (0.1, 0.2, 0.3))
    for k in (1, 2):
        at = (0.5 * k, 0.0, 0.0)
        b.body(f"arm_{k}_cart", "world", lw.hinges.Planar((0, 1, 0)), inboard=at, inertia=part)
        b.node(f"tip_{k}", f"arm_{k}_cart")
    b.body("bar", "world", lw.hinges.Free(), inboard=(0.75, 0, 0), inertia=part)
    for k in (1, 2):
        b.node(f"rim_{k}", "bar", ((-0.25, 0.25)[k - 1], 0, 0))
        b.loop(f"grasp_{k}", f"tip_{k}", f"rim_{k}", lw.hinges.Spherical())
    return b.build()


@cache
def six() -> lw.Mechanism:
    """Six freedoms, so that a hand has all directions: slides and a ball in pins."""
    b = lw.Builder("gantry")
    part = lw.SpatialInertia.solid_box(1.0, (0.1, 0.2, 0.3))
    b.body("cart", "world", lw.hinges.Translation(), inertia=part)
    b.body("hand", "cart", lw.hinges.Gimbal(), inertia=part)
    return b.node("tip", "hand", (0.1, 0.2, 0.3)).build()


@cache
def grasp() -> lw.Grasp:
    return block("soft_finger")


@cache
def moving_grasp() -> lw.Grasp:
    return lw.Grasp.of(held(), lw.grasp.Contact("point"))


@cache
def recording() -> lw.Recording:
    return lw.simulate(arm(), arm().random(1), duration=0.01)


@cache
def folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="linkwise_front_door"))


def robot_file() -> Path:
    path = folder() / "arm.urdf"
    if not path.exists():
        lw.save(arm(), path)
    return path


def recording_file() -> Path:
    path = folder() / "motion.npz"
    if not path.exists():
        recording().save(path)
    return path


def q(mech: lw.Mechanism | None = None, seed: int = 1) -> np.ndarray:
    mech = mech or arm()
    return mech.random(seed) if mech is not held() else mech.neutral()


def v(mech: lw.Mechanism | None = None, seed: int = 2) -> np.ndarray:
    return (mech or arm()).random_velocity(seed)


@cache
def measured() -> tuple[np.ndarray, ...]:
    """q, v, v̇ and τ of a motion of the arm."""
    t = np.arange(200)[:, None] / 100 * np.array([3.0, 5.0])
    motion = np.sin(t), np.array([3.0, 5.0]) * np.cos(t), -np.array([9.0, 25.0]) * np.sin(t)
    return *motion, lw.inverse_dynamics(arm(), *motion)


@cache
def crank() -> tuple[np.ndarray, np.ndarray]:
    """A closed state of the linkage."""
    at = lw.loops.assemble(linkage()).q
    return at, lw.loops.project_velocity(linkage(), at, v(linkage()))


def swing() -> np.ndarray:
    """Accelerations that the linkage allows."""
    return lw.forward_dynamics(linkage(), *crank(), v(linkage()))


def spatial(mech: lw.Mechanism) -> np.ndarray:
    return np.linspace(-1, 1, 6 * mech.n_bodies).reshape(mech.n_bodies, 6)


FORCE = {"tip": np.arange(6.0)}
PRESS = np.array([[0, 0, 0.01, 0.1, 0.2, 1], [0, 0, 0, 0, 0.1, 2.0]])

# Samples by name. Each is a function, so that nothing is built before it is needed.
SAMPLES: dict[str, Callable[[], Call]] = {}


def _of(names: str, make: Callable[[], Call]) -> None:
    for name in names.split():
        SAMPLES[name] = make


_of(
    "mass_matrix mass_matrix_inverse gravity_force potential_energy composite_inertias "
    "log_det_mass_matrix center_of_mass centroidal_inertia whole_inertia "
    "innovations_factors articulated_inertias forward_kinematics",
    lambda: call(arm(), q()),
)
_of(
    "bias_force coriolis_force coriolis_matrix kinetic_energy energy body_velocities "
    "hinge_velocities inboard_velocities diagonal_velocity momentum passive_force",
    lambda: call(arm(), q(), v()),
)
_of("velocity_from_diagonal diagonal_coriolis", lambda: call(arm(), q(), nu=v()))
_of("innovations", lambda: call(arm(), q(), tau=v()))
_of("force_from_innovations", lambda: call(arm(), q(), eps=v()))
_of("diagonal_dynamics", lambda: call(arm(), q(), nu=v(), tau=v(seed=3)))
_of("forward_dynamics", lambda: call(arm(), q(), v(), tau=v(), forces=FORCE, forces_frame="node"))
_of("inverse_dynamics", lambda: call(arm(), q(), v(), vdot=v(), forces=FORCE, forces_frame="node"))
_of("inverse_dynamics_derivatives", lambda: call(arm(), q(), v(), vdot=v(), loops="open"))
_of(
    "inverse_dynamics_second_derivatives",
    lambda: call(arm(), q(), v(), vdot=v(), loops="open"),
)
_of("forward_dynamics_second_derivatives", lambda: call(arm(), q(), v(), tau=v(), loops="open"))
_of("jacobian_derivative", lambda: call(arm(), q(), arm().bodies[-1].name))
_of("momentum_derivatives", lambda: call(arm(), q(), v(), vdot=v()))
_of("forward_dynamics_derivatives", lambda: call(arm(), q(), v(), tau=v(), loops="open"))
_of(
    "linearize",
    lambda: call(arm(), q(), v(), tau=v(), step=1e-3, integrator="euler", passive=True),
)
_of(
    "lqr",
    lambda: call(
        arm(), q(), v(), tau=v(), Q=1.0, R=0.1, step=1e-3, horizon=2, integrator="euler", final=2.0
    ),
)
_COST = lw.control.Cost.effort(weight=1.0)
_of(
    "optimize",
    lambda: call(
        arm(), q(), v(), costs=[_COST], step=0.01, horizon=2, iterations=3, integrator="euler"
    ),
)
_of("nonlinear_program", lambda: call(arm(), q(), v(), costs=[_COST], step=0.01, horizon=2))
_of("Phase", lambda: call(3, ["tip"]))
_of("Foothold", lambda: call("tip", friction=0.5, place=[0.1, 0.0, 0.0]))
_of("plot.estimates", lambda: call(_filtered(), theme="dark"))
_of(
    "plot.consistency",
    lambda: call(lw.filtering.consistency(np.ones((4, 3)), size=2), theme="dark"),
)
_of("plot.trajectory", lambda: call(_optimized(), theme="dark"))
_of("RecedingHorizon", lambda: call(arm(), costs=[_COST], step=0.01, horizon=2, first=2))
_of("identify", lambda: call(arm(), *measured(), parameters=("inertia",), robust=False))
_of("cross_validate", lambda: call(arm(), *measured(), folds=2, parameters=("inertia",)))
_of(
    "identify_rollout",
    lambda: call(
        arm(), np.arange(41) / 100, measured()[0][:41], measured()[3][:41], window=10, prior=0.1
    ),
)
_of("load_measurements", lambda: call(arm(), _table()))
_of(
    "plot.identification_report", lambda: call(_identified(), *measured(), file=folder() / "f.html")
)
_of("plot.identification", lambda: call(_identified(), *measured(), theme="dark"))
_of(
    "smoothed",
    lambda: call(arm(), np.arange(200) / 100, measured()[0], measured()[3], bandwidth=4.0),
)
_of(
    "exciting_motion",
    lambda: call(arm(), duration=2.0, step=0.02, harmonics=2, parameters=("inertia",), tries=6),
)
_of(
    "kalman_filter",
    lambda: call(
        arm(),
        sensors=[lw.filtering.encoders(arm(), noise=0.01)],
        step=0.01,
        method="extended",
        integrator="euler",
        passive=True,
        force=0.1,
        position=0.0,
        velocity=0.0,
        pushed=(),
        gate=0.99,
    ),
)
_of("momentum_observer", lambda: call(arm(), gain=50.0, step=1e-3, passive=True))
_of("encoders", lambda: call(arm(), noise=0.01, bias=0.1, name="encoders"))
_of("tachometers", lambda: call(arm(), noise=0.01, name="tachometers"))
_of("gyroscope accelerometer marker", lambda: call("tip", noise=0.01, bias=0.1, name="sensor"))
_of("load_cell", lambda: call(arm(), arm().bodies[-1].name, noise=0.01, bias=0.1, name="cell"))
_of("expression_sensor", lambda: call("speed", J @ algebra.v, 6, noise=0.01, nodes=["tip"]))
_of("consistency", lambda: call(np.ones((4, 3)), size=2, level=0.95))
_of("Tracker", lambda: call(_kalman(), _kalman().start(q()), memory=3))
_of(
    "Sensor",
    lambda: call("speed", size=6, write=_speed, noise=0.1, bias=0.1, bias_deviation=1.0),
)
_of("regressor", lambda: call(arm(), q(), v(), vdot=v(), of="torque"))
_of("inertial_parameters", lambda: call(arm()))
_of("base_parameters", lambda: call(arm(), seed=0, tolerance=1e-10))
_of("jvp vjp", lambda: call(mass @ vdot, "q"))
_of("differentiate", lambda: call(mass @ vdot + bias, wrt="q"))
_of("coriolis_product", lambda: call(arm(), q(), v(), w=v(seed=3)))
_of("mass_matrix_inverse_product", lambda: call(arm(), q(), x=v()))
_of("mass_matrix_inverse_block", lambda: call(arm(), q(), rows="pin_1", columns=["pin_2"]))
_of(
    "jacobian jacobian_gram",
    lambda: call(arm(), q(), node="tip", frame="world", about=None),
)
_of("jacobian_dot jacobian_bias", lambda: call(arm(), q(), v(), node="tip", frame="world"))
_of("node_velocity", lambda: call(arm(), q(), v(), node="tip", frame="world"))
_of("operational_inertia", lambda: call(six(), q(six()), node="tip", frame="node"))
_of("operational_inertia_inverse", lambda: call(arm(), q(), node="tip", frame="node"))
_of("operational_space", lambda: call(arm(), q(), node="tip", length=1.0, tolerance=1e-9))
_of("relative_pose", lambda: call(arm(), q(), node="tip", seen_from="link_1"))
_of("tip_force_correction", lambda: call(arm(), q(), forces=FORCE, forces_frame="node"))
_of("equivalent_force compensating_force", lambda: call(arm(), q(), forces=FORCE, frame="node"))
_of(
    "body_accelerations hinge_forces",
    lambda: call(arm(), q(), v(), tau=v(seed=3), forces=FORCE, forces_frame="node"),
)
_of("node_acceleration", lambda: call(arm(), q(), v(), node="tip", tau=v(seed=3), kind="rate"))
_of("scatter gather", lambda: call(arm(), q(), x=spatial(arm()), strict=False, through="rigid"))
_of(
    "hybrid_dynamics",
    lambda: call(arm(), q(), v(), tau={"pin_1": 1.0}, vdot={"pin_2": 0.5}, forces=FORCE),
)
_of("computed_torque", lambda: call(arm(), q(), v(), q(), v(), v(), kp=1.0, kv=2.0))
_of(
    "wen_bayard",
    lambda: call(arm(), q(), v(), q_d=q(), v_d=v(), vdot_d=v(), kp=1.0, kv=2.0, at="actual"),
)
_of("tracking_energy", lambda: call(arm(), q(), v(), q_d=q(), v_d=v(), kp=1.0))
_of("pd_gravity", lambda: call(arm(), q(), v(), q_d=q(), v_d=v(), kp=1.0, kv=2.0))
_of("integrate", lambda: call(arm(), q(), v(), dt=0.1))
_of("difference", lambda: call(arm(), q(), q(seed=5)))
_of("with_hinge_frames tree_of", lambda: call(arm()))
_of("renumbering", lambda: call(arm(), order="tips first"))
_of(
    "inverse_kinematics",
    lambda: call(
        arm(), {"tip": (0.3, 0.0, -1.5)}, q0=q(), hold=(), limits=True, tolerance=1e-6,
        iterations=20, restarts=2, seed=0,
    ),
)  # fmt: skip

# Closed chains.
_of(
    "constraint_error constraint_jacobian constraint_inertia_inverse loop_coordinates "
    "blocked_directions",
    lambda: call(linkage(), crank()[0]),
)
_of("constraint_names closure_nodes constraint_sizes", lambda: call(linkage()))
_of("constraint_bias loop_velocities loop_drive_forces", lambda: call(linkage(), *crank()))
_of(
    "forward_dynamics constraint_forces",
    lambda: call(linkage(), *crank(), tau=v(linkage()), forces_frame="node"),
)
_of(
    "drive_forces",
    lambda: call(linkage(), *crank(), vdot=swing(), actuated=["crank_pin"], tolerance=1e-9),
)
_of("holding_forces", lambda: call(linkage(), crank()[0], actuated=["crank_pin"], tolerance=1e-9))
_of("loop_forces", lambda: call(linkage(), crank()[0], lam=np.ones(5)))
_of("closed_expression", lambda: call(linkage(), name="forward_dynamics", plain=True))
_of("mobility", lambda: call(linkage(), crank()[0], nearby=2, seed=0, tolerance=1e-9))
_of(
    "project_position",
    lambda: call(linkage(), crank()[0], weight=None, tolerance=1e-12, iterations=10),
)
_of("project_velocity", lambda: call(linkage(), *crank(), weight="mass", tolerance=1e-9))
_of("independent_coordinates", lambda: call(linkage(), crank()[0], prefer=(), tolerance=1e-9))
_of(
    "assemble",
    lambda: call(
        linkage(), crank()[0], hold=(), limits=True, tolerance=1e-12, iterations=20, restarts=2,
        seed=0,
    ),
)  # fmt: skip
_of("embed", lambda: call(linkage(), at=crank()[0], independent=()))
_of("full_velocity", lambda: call(lw.loops.embed(linkage()), crank()[0], u=np.ones(1)))
_of(
    "full_acceleration", lambda: call(lw.loops.embed(linkage()), crank()[0], np.ones(1), np.ones(1))
)
_of("independent_force", lambda: call(lw.loops.embed(linkage()), crank()[0], tau=v(linkage())))
_of("independent_velocity", lambda: call(lw.loops.embed(linkage()), v=crank()[1]))
_of("close_loop", lambda: call(arm(), q(), "new", "tip", "world", hinge=lw.hinges.Pin()))
_of("multi_arm_parts", lambda: call(held(), body="bar"))
_of("augmented_object", lambda: call(held(), q(held()), v(held()) * 0, tolerance=1e-9))
_of("reflected_load", lambda: call(held(), q(held()), arm="arm_1_cart", tolerance=1e-9))

# Tasks.
TASK = lw.Task.joints(["pin_1"])
_of("task_jacobian", lambda: call(arm(), q(), tasks=TASK))
_of("task_space", lambda: call(arm(), q(), TASK, tolerance=1e-9, length=1.0))
_of("task_bias task_velocity", lambda: call(arm(), q(), v(), tasks=TASK))
_of("task_dynamics_derivatives", lambda: call(arm(), q(), v(), TASK))
_of("task_dynamics", lambda: call(arm(), q(), v(), TASK, tolerance=1e-9, length=1.0))
_of("task_position", lambda: call(arm(), q(), task=TASK))
_of("task_error", lambda: call(arm(), q(), task=TASK, goal=[0.1]))
_of("task_torque", lambda: call(arm(), q(), v(), TASK, acceleration=[1.0], tolerance=1e-9))
_of(
    "task_coordinates coordinate_dynamics",
    lambda: call(six(), q(six()), v(six()), lw.Task.pose("tip"), orientation="quaternion"),
)
_of("control_law", lambda: call(arm(), TASK, kp=1.0, kv=1.0, compensate="joints", also=()))
_of("smallest_mini", lambda: call(six(), q(six()), lw.Task.position("tip"), tolerance=1e-9))
_of("macro_mini", lambda: call(six(), split="hand", node="tip"))
_of("reduced_inertia", lambda: call(six(), q(six()), lw.Task.orientation("tip"), split="hand"))
_of(
    "effective_mass",
    lambda: call(six(), q(six()), "tip", direction=(0.0, 0.0, 1.0), tolerance=1e-9),
)
_of("inertial_properties", lambda: call(six(), q(six()), "tip", frame="world", tolerance=1e-9))
_of("directional_inertia", lambda: call(np.eye(3), direction=(0.0, 0.0, 1.0), tolerance=1e-13))
_of(
    "ellipsoid",
    lambda: call(np.eye(3), what="mass", resolution=12),
)
DOG = lw.models.quadruped()
SURFACE = lw.tasks.CompliantSurface((0, 0, 0), (0, 0, 1), 1e4)
_of("impact_estimate", lambda: call(six(), q(six()), v(six()), node="tip", surface=SURFACE))
LOAD = lw.SpatialInertia.solid_box(1.0, (1, 2, 3))
_of("load_effect", lambda: call(six(), q(six()), LOAD, node="tip", frame="node", tolerance=1e-9))
_of("load_inertia", lambda: call(LOAD, pose=(0.0, 0.0, 0.1)))

# Algebra.
_of("compile", lambda: call(mass, arm(), nodes=(), target="cpu", parameters=(), blocks=False))
_of("derive", lambda: call(mass.inv))
_of("plan", lambda: call(phi @ M))
_of("prove", lambda: call(mass.inv, mass.inv))
_of("algebra.diagonal", lambda: call(vdot))
_of("algebra.memoryless", lambda: call("A", BODY, BODY, symmetric=True))
_of("algebra.named", lambda: call("A", definition=H @ M))
_of("algebra.shift", lambda: call("E"))
_of("algebra.vector", lambda: call("x", space=JOINT))


@cache
def simulators() -> lw.Simulator:
    return lw.Simulator(arm(), batch=2, integrator="euler")


# Files, motion, viewer.
_of("load", lambda: call(robot_file(), base="auto", strict=False, keep_fixed=False, roots=()))
_of("save", lambda: call(arm(), folder() / "saved.urdf", format="urdf"))
_of("load_recording", lambda: call(recording_file(), mech=arm()))
_of(
    "simulate",
    lambda: call(arm(), q(), v(), duration=0.002, step=1e-3, integrator="rk4", tau=0.0),
)
_of(
    "rollout",
    lambda: call(
        arm(),
        q(),
        v(),
        duration=0.002,
        step=1e-3,
        tau=v(),
        integrator="rk4",
        parameters={"gravity": [0.0, 0.0, -9.8]},
    ),
)
_of("VectorEnv", lambda: call(simulators(), reward=lambda sim, action: sim["q"][:, 0]))
_of("Simulator", lambda: call(arm(), q=q(), v=v(), step=1e-3, substeps=1, integrator="euler"))
_of("viewer.export_html", lambda: call(arm(), folder() / "page.html", q(), fps=30.0, detail=100))
_of("viewer.export_video", lambda: call(recording(), folder() / "a.gif", fps=30.0, size=(32, 24)))
_of("viewer.picture", lambda: call(arm(), q(), size=(32, 24), detail=100))
_of("viewer.html_page", lambda: call(arm(), q(), fps=30.0, detail=100))
_of("viewer.scene_of", lambda: call(arm(), roots=()))

# Estimation.
_of("estimation.RandomField", lambda: call(arm(), q(), noise="armature"))

# Quantities.
_of("expression", lambda: call("mass_matrix", frame="node"))
_of("hybrid_expression", lambda: call(driven=["a"], prescribed=["b"]))
_of("hybrid_kernel", lambda: call(arm(), prescribed=["pin_1"], nodes=(), forces_frame="node"))
_of("kernel", lambda: call(arm(), "mass_matrix", nodes=(), frame="node"))

# Models.
for _name in ("biped", "delta", "four_bar", "free_flyer", "handover", "humanoid", "peaucellier",
              "planar_macro_mini", "planar_rpp", "quadruped", "stewart", "ur_arm"):  # fmt: skip
    _of(f"models.{_name}", call)
_of("models.macro_mini", lambda: call(wrist=True))
_of("models.puma560", lambda: call(as_printed=False))
_of("models.seven_dof_arm", lambda: call(posture=[0.0] * 7))
_of("models.chain", lambda: call(3, length=0.1, mass=0.1, damping=0.0, armature=0.0))
_of("models.rod", lambda: call(3, length=0.5, radius=0.01, density=900.0, damping=0.1))
_of("models.pendulum", lambda: call(2, length=1.0, mass=1.0, point_masses=False))
_of("models.dual_arm", lambda: call(arm="seven_dof", mass=4.0))
_of("models.multi_arm", lambda: call(2, arm="seven_dof", mass=4.0, radius=0.25))
_of("models.random_tree", lambda: call(3, 1, hinges=["pin"], branching=0.4, mass_ratio=10.0))

# What mechanisms are made of.
_of("Pin Prismatic Cylindrical", lambda: call(axis=(0.0, 0.0, 1.0)))
_of("Planar SoftFinger", lambda: call(normal=(0.0, 0.0, 1.0)))
_of("PointOnPlane", lambda: call(height=0.1, normal=(0.0, 0.0, 1.0)))
_of("Helical", lambda: call(axis=(0.0, 0.0, 1.0), pitch=0.01))
_of("RollingBall", lambda: call(radius=0.1))
_of("Gimbal", lambda: call(axes=((1.0, 0, 0), (0, 1.0, 0), (0, 0, 1.0))))
_of("Geared", lambda: call((0.0, 0, 1.0), ratio=50.0))
_of("Modal", lambda: call(np.full((6, 2), 0.1), second=np.zeros((3, 2, 2))))
_of("Universal", lambda: call(axis_1=(1.0, 0, 0), axis_2=(0, 1.0, 0)))
_of("Screws", lambda: call(rows=((1.0, 0, 0, 0, 0, 0),)))
_of("Free Spherical Translation", call)
_of("Locked", lambda: call(of=lw.hinges.Pin(), q=(0.1,)))
_of(
    "CustomHinge",
    lambda: call("slide", (("x", "m"),), lambda x: (np.eye(3), x * np.array([1.0, 0, 0]))),
)
_of("Pose", lambda: call(np.eye(3), np.zeros(3)))
_of("SpatialInertia", lambda: call(1.0, np.zeros(3), np.eye(3)))
_of("Drive", lambda: call(armature=0.1, damping=0.1, lower=-1.0, upper=1.0))
_of("Actuator", lambda: call("motor", (("pin_1", 2.0),), gain=(1.0, 0.0, 0.0), control=(-1.0, 1.0)))
_of("Ground", lambda: call((0.0, 0.0, 0.0), (0.0, 0.0, 1.0), friction=0.5, restitution=0.1))
_of("HeightField", lambda: call(np.zeros((3, 4)), (2.0, 1.0), friction=0.5))
_of("implicit_step", lambda: call(arm(), 0.01))
_of("ContactPoint", lambda: call("toe", "foot", (0.0, 0.0, 0.1), radius=0.02))
_of("Surface", lambda: call(0.5, 0.01, 0.001, condim=4, margin=0.01))
_of("ContactPair", lambda: call("toe", "floor", lw.simulation.Surface()))
_of("ContactRules", lambda: call((), (("toe", "floor"),)))
_of("Collisions", lambda: call(lw.simulation.Ground(), 0.5, restitution=0.1))
_of("hold_commands", lambda: call(arm(), q(arm())))
_of("put_on_ground", lambda: call(DOG, None, [lw.simulation.ContactPoint("toe", "trunk")]))
_of("contact_points", lambda: call(arm(), lw.simulation.Ground()))
_of("ground_contacts", lambda: call(arm(), lw.simulation.Ground(), bodies=["tip"]))
_of("Body", lambda: call("link", "world", lw.hinges.Pin(), "pin"))
_of("Node", lambda: call("tip", "link"))
_of("Loop", lambda: call("loop", "a", "b", hinge=lw.hinges.Pin()))
_of("Coupling", lambda: call("mimic", "a", (("b", (1.0,)),), offset=0.1))
_of("Geometry", lambda: call("box", "box", (1.0, 1.0, 1.0), lw.Pose.identity()))
_of("Mechanism", lambda: call("robot", arm().bodies, nodes=arm().nodes, gravity=(0.0, 0.0, -1.0)))
_of("Builder", lambda: call("robot", gravity=(0.0, 0.0, -9.81)))

# Parts of controllers and tasks.
_of("Task", lambda: call("reach", "position", "tip"))
_of("NodeGoal", lambda: call(position=(0.0, 0.0, 1.0), weight=1.0, orientation_weight=1.0))
_of("Contact", lambda: call("point", friction=0.5))
_of(
    "Grasp", lambda: call(contacts={"a": lw.grasp.Contact("point"), "b": lw.grasp.Contact("point")})
)
_of("CompliantSurface", lambda: call((0, 0, 0), (0, 0, 1), stiffness=1e4, damping=1.0))
_of("ContactTransition", lambda: call(approach_speed=0.1, impact_damping=1.0))
_of("ForceServo", lambda: call(kf=1.0, kv=1.0, ki=0.0))
_of("JointLimits", lambda: call(margin=0.1, gain=1.0))
_of("LimitSpring", lambda: call(stiffness=10.0, damping=1.0))
_of("Posture", lambda: call(position=[0.0], kp=1.0, kv=1.0))
_of("Selection", lambda: call((True, True, False, True, True, True)))
_of("Servo", lambda: call(TASK, kp=1.0, kv=1.0))
_of("SingularStrategy", lambda: call(threshold=0.02, remaining="goal"))
_of("Goal", lambda: call([0.1], velocity=[0.0]))
_of("TaskController", lambda: call(arm(), lw.tasks.Servo(TASK, 1.0, 1.0), damping=0.1))
_of(
    "MotionForceController",
    lambda: call(
        six(), lw.Task.pose("tip"), lw.tasks.Selection.along_normal((0, 0, 1)), kp=1.0, kv=1.0,
        servo=lw.tasks.ForceServo(1.0, 1.0),
    ),
)  # fmt: skip
_of("ObjectController", lambda: call(held(), kp=1.0, kv=1.0, grasp=moving_grasp()))
_of(
    "DextrousCoordination",
    lambda: call(six().with_drive("hand", lower=-1.0, upper=1.0), "hand", kd=1.0),
)

# Flexible bodies.
STEEL = {"young": 2e11, "density": 7800.0, "modes": 1}


def bent() -> Any:
    """A beam."""
    return lw.flexible.beam(1.0, area=1e-4, bending=1e-9, lumps=3, directions=("y", "rz"), **STEEL)


_of(
    "flexible.beam",
    lambda: call(
        1.0, area=1e-4, bending=1e-9, torsion=1e-9, shear_modulus=8e10, shear_factor=0.8, lumps=3,
        directions=("y", "rz"), tip=lw.SpatialInertia.point(0.1), boundary="free", damping=0.01,
        **STEEL,
    ),
)  # fmt: skip
_of(
    "flexible.frame",
    lambda: call(
        [(0, 0, 0), (1, 0, 0), (1, 1, 0)], [(0, 1), (1, 2)], sections=(1e-4, 1e-9, 1e-9, 1e-9),
        shear_modulus=8e10, shear_factor=0.8, tip_node=-1, boundary="free", damping=0.01, **STEEL,
    ),
)  # fmt: skip
_of(
    "flexible.FlexibleBody",
    lambda: call(
        *(bent().positions, bent().modes, bent().stiffness, bent().masses), tip=-1,
        damping=bent().damping,
    ),
)  # fmt: skip
_of("vibrations", lambda: call(six(), q(six()), size=0.1))
_of("flexible.separate", lambda: call(bending()))
_of("flexible.separate_q", lambda: call(bending(), q(bending())))
_of("flexible.save", lambda: call(bent(), folder() / "beam.npz"))
_of("flexible.load", lambda: call(saved_beam()))


def bending() -> Any:
    """A mechanism with that beam."""
    return bent().add_to(lw.Builder("bending"), "beam", "world", lw.hinges.Pin()).build()


def saved_beam() -> Path:
    """A file."""
    file = folder() / "saved_beam.npz"
    lw.flexible.save(bent(), file)
    return file


# Pictures.
_of("plot.belted_ellipsoid", lambda: call(six(), q(six()), "tip", scale=1.0, resolution=12))
_of("plot.energy_budget", lambda: call(recording(), theme="dark", events=True))
_of("plot.history", lambda: call(recording(), channels=["q"], lines=4))
_of("plot.mass_matrix", lambda: call(arm(), q(), decades=6.0))
_of("plot.operator", lambda: call(arm(), q(), mass, v=v(), nodes=["tip"], decades=6.0))
_of("plot.panels", lambda: call(1, 2, dimension=2, theme="light", size=(3.0, 2.0)))
_of("plot.shape", lambda: call(lw.inertial.ellipsoid(np.eye(3)), centre=(0, 0, 0), scale=1.0))
_of("plot.skeleton", lambda: call(arm(), q(), plane="xz", nodes=["tip"], width=2.0))
_of("plot.Theme", lambda: call("mine", "#ffffff", "#000000", "#888888", ("#ff0000",), "viridis",
                               "#eeeeee"))  # fmt: skip
_of("view", lambda: call(arm(), q(), quiet=True, open_browser=False, port=0, speed=1.0))
_of("viewer.embedded", lambda: call(arm(), q(), height=480))

# The ledger.
_of("ledger.cases", lambda: call("chains"))
_of(
    "ledger.counts",
    lambda: call(list(linkwise_ledger.run(linkwise_ledger.entries("jpl_88_11")[:2]))),
)
_of("ledger.document ledger.entries", lambda: call("jpl_88_11"))
_of("ledger.run", lambda: call(linkwise_ledger.entries("jpl_88_11")[:1]))
_of("ledger.Entry", lambda: call("(1)", "title", "a = a", "a = a", "holds", check=len))
_of("ledger.Case", lambda: call("arm", arm(), seed=1))

# Made by users and by the library.
_of("Channel", lambda: call("height", "m", "of the tip", np.zeros(3)))
_of("ContactPhase", lambda: call("approach", since=0.0))
_of("algebra.Space", lambda: call("mine"))

RECORDS = frozenset(
    "Aggregate Assembly AugmentedArm AugmentedObject AugmentedPart DriveForces "
    "ContactState ControlLaw ControlReport CoordinateDynamics "
    "Embedded Energy Event ForceClosure ForwardDynamicsDerivatives "
    "ForwardDynamicsSecondDerivatives InverseDynamicsSecondDerivatives MomentumDerivatives "
    "TaskDynamicsDerivatives "
    "BaseParameters InverseDynamicsDerivatives Linearization ForceLoop ForceSpace GraspEffort "
    "GraspMargins Hinge HybridMotion Impact IndependentCoordinates InertialProperties "
    "InertialShape InnovationsFactors InternalForces LevelReport LoadDistribution LoadEffect "
    "MacroMini MacroMiniState Mobility MotionForceCommand MultiArm ObjectTorque "
    "OperationalSpace Projection Recording ReducedInertia ReflectedLoad Renumbering Rollout "
    "RolloutGradient Regulator Cost Bound Progress Trajectory StateFeedback NonlinearProgram "
    "History Identification SmoothMotion "
    "SmallestMini Solution TaskCoordinates TaskDynamics TaskSpace Touch viewer.Viewer "
    "VirtualLinkage WholeInertia algebra.Expr convert.Layout convert.Symbolic "
    "convert.TorchFunction "
    "estimation.Covariance "
    "estimation.BatchEstimate estimation.KalmanFilter estimation.Smoother "
    "estimation.Draws estimation.Operator Report Consistency Estimate Filter Filtered "
    "MomentumObserver Observation CrossValidation Measurements RolloutFit "
    "ImplicitStep Vibration viewer.Part viewer.Scene ledger.Document ledger.Verdict".split()
)
"""Classes that the library fills in, results for the most part: nobody else makes them."""

LEFT_OUT: dict[str, str] = dict.fromkeys(
    "Study plot.study_band plot.study_design plot.study_distribution plot.study_indices "
    "plot.study_probability plot.study_rare_event plot.study_scatter".split(),
    "takes a study, whose calls tests/study checks",
) | {"flexible.load_nastran": "reads files of another program, in tests/flexible"}
"""Public functions that are not walked, each with the reason."""

FLAT = (
    "hinges",
    "dynamics",
    "loops",
    "grasp",
    "tasks",
    "inertial",
    "papers",
    "simulation",
    "control",
    "identification",
    "filtering",
)
"""Namespaces whose names are known here without the namespace."""


def named(name: str) -> Any:
    """A public function or class by its name, wherever it is."""
    for place in (lw, *(getattr(lw, space) for space in FLAT)):
        if name in place.__all__:
            return getattr(place, name)
    raise AttributeError(name)


NAMESPACES = ("algebra", "convert", "estimation", "flexible", "models", "plot", "viewer")
"""Namespaces that are walked."""
