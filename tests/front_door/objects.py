"""One object of every public class, and one right call of each of its methods.

A method that needs no argument is called without one. A public method that needs some and has no
line here is a failure of `test_front_door.py`: add a line for a new one.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from functools import cache, wraps
from typing import Any

import numpy as np

import linkwise as lw
import linkwise_ledger
from linkwise.algebra import mass, phi
from tests.front_door import samples
from tests.front_door.samples import Call, arm, bending, call, held, q, recording, six, v

X6 = np.arange(6.0)
POINT = (0.0, 0.0, 0.1)
PART = lw.SpatialInertia.solid_box(1.0, (1, 1, 1))


# ------------------------------------------------------------------------------------ objects

OBJECTS: dict[str, Callable[[], Any]] = {}
"""How one object of each class is made."""


def _made(names: str, make: Callable[[], Any]) -> None:
    for name in names.split():
        OBJECTS[name] = cache(make)


def right(name: str) -> Any:
    """What the right call of a public function returns."""
    args, options = samples.SAMPLES[name]()
    space, _, ours = name.rpartition(".")
    function = getattr(getattr(lw, space), ours) if space else samples.named(ours)
    return function(*args, **options)


for _name, _function in {
    "Assembly": "assemble",
    "AugmentedObject": "augmented_object",
    "DriveForces": "drive_forces",
    "ControlLaw": "control_law",
    "CoordinateDynamics": "coordinate_dynamics",
    "Embedded": "embed",
    "Energy": "energy",
    "BaseParameters": "base_parameters",
    "Consistency": "consistency",
    "CrossValidation": "cross_validate",
    "Measurements": "load_measurements",
    "RolloutFit": "identify_rollout",
    "Filter": "kalman_filter",
    "MomentumObserver": "momentum_observer",
    "ForwardDynamicsDerivatives": "forward_dynamics_derivatives",
    "ForwardDynamicsSecondDerivatives": "forward_dynamics_second_derivatives",
    "HybridMotion": "hybrid_dynamics",
    "Identification": "identify",
    "Impact": "impact_estimate",
    "IndependentCoordinates": "independent_coordinates",
    "InertialProperties": "inertial_properties",
    "InertialShape": "ellipsoid",
    "InnovationsFactors": "innovations_factors",
    "InverseDynamicsDerivatives": "inverse_dynamics_derivatives",
    "InverseDynamicsSecondDerivatives": "inverse_dynamics_second_derivatives",
    "Linearization": "linearize",
    "LoadEffect": "load_effect",
    "LoadReport": "save",
    "MacroMini": "macro_mini",
    "Mobility": "mobility",
    "MomentumDerivatives": "momentum_derivatives",
    "MultiArm": "multi_arm_parts",
    "OperationalSpace": "operational_space",
    "Projection": "project_position",
    "Recording": "simulate",
    "ReducedInertia": "reduced_inertia",
    "ReflectedLoad": "reflected_load",
    "Regulator": "lqr",
    "Renumbering": "renumbering",
    "Rollout": "rollout",
    "SmallestMini": "smallest_mini",
    "SmoothMotion": "smoothed",
    "Solution": "inverse_kinematics",
    "TaskCoordinates": "task_coordinates",
    "TaskDynamics": "task_dynamics",
    "TaskDynamicsDerivatives": "task_dynamics_derivatives",
    "TaskSpace": "task_space",
    "WholeInertia": "whole_inertia",
    "viewer.Scene": "viewer.scene_of",
    "Kernel": "compile",
    "Derivation": "derive",
    "Program": "plan",
    "Proof": "prove",
}.items():
    _made(_name, lambda name=_function: right(name))

for _name in samples.SAMPLES:
    if _name.rpartition(".")[2][0].isupper():
        _made(_name, lambda name=_name: right(name))

_made("Mechanism", lambda: lw.loops.close_loop(arm(), q(), "new", "tip", "link_1", lw.hinges.Pin()))
_made("Builder", lambda: (lw.Builder("robot")
                          .body("p", "world", lw.hinges.Pin(), inertia=PART).node("n", "p")
                          .body("s", "p", lw.hinges.Pin(), inertia=PART)
                          .node("m", "s")))  # fmt: skip
_made("Study", lambda: lw.Study(lambda a: a, {"a": (0.0, 1.0)}, cases=2))
_made("RolloutGradient", lambda: right("rollout").gradient(q=np.ones(arm().nq)))
_made("StateFeedback", lambda: right("lqr").law)
_made("Cost", lambda: lw.control.Cost.effort(weight=1.0))
_made("Bound", lambda: lw.control.Bound.on_velocity(-1.0, 1.0))
_made("Trajectory", lambda: right("optimize"))
_made("History", lambda: right("optimize").history)
_made("Grasp", samples.moving_grasp)
_made("Estimate", lambda: _with_bias().start(q()))
_made("Filtered", lambda: _with_bias().run(OBJECTS["Estimate"](), [[0.0, 0.0]] * 2, MEASURED))
_made("Observation", lambda: right("momentum_observer").start(q(), v()))
_made("ObjectTorque", lambda: OBJECTS["ObjectController"]().torque(q(held()), v(held()) * 0, X6))
_made("ForceClosure", lambda: samples.grasp().force_closure())
_made("ForceSpace", lambda: samples.grasp().force_space())
_made("GraspEffort", lambda: samples.moving_grasp().effort(q(held())))
_made("GraspMargins", lambda: samples.grasp().margins(samples.PRESS))
_made("InternalForces", lambda: samples.grasp().internal_forces(samples.PRESS))
_made("LoadDistribution", lambda: samples.grasp().load_distribution(np.zeros(6)))
_made("VirtualLinkage", lambda: samples.grasp().virtual_linkage())
_made("ContactState", lambda: samples.moving_grasp().contact_state(q(held()), v(held()) * 0))
_made("Selection", lambda: lw.tasks.Selection.along_normal((0, 0, 1)))
_made("AugmentedArm", lambda: next(iter(OBJECTS["AugmentedObject"]().arms.values())))
_made("AugmentedPart", lambda: OBJECTS["AugmentedObject"]().object)
_made("ControlReport", lambda: OBJECTS["TaskController"]().explain(q(), v(), [0.1]))
_made("LevelReport", lambda: OBJECTS["ControlReport"]().levels[0])
_made("Channel", lambda: recording().channel("q"))
_made("ForceLoop", lambda: OBJECTS["ForceServo"]().loop(1e4))
_made("Touch", lambda: samples.SURFACE.touch(six(), q(six()), v(six()), "tip"))
_made("MotionForceCommand", lambda: OBJECTS["MotionForceController"]().command(
    q(six()), v(six()), goal=lw.Pose.translation(POINT)))  # fmt: skip
_made("Report", lambda: recording().report)
_made("algebra.Expr", lambda: mass)
_made("algebra.Space", lambda: lw.algebra.BODY)
_made("viewer.Part", lambda: OBJECTS["viewer.Scene"]().parts[0])
_made("MacroMiniState", lambda: OBJECTS["MacroMini"]().at(q(six())))
_made("plot.Theme", lambda: lw.plot.LIGHT)
_made("ledger.Document", lambda: linkwise_ledger.document("jpl_88_11"))
_made("ledger.Entry", lambda: linkwise_ledger.entries("jpl_88_11")[0])
_made("ledger.Verdict", lambda: next(linkwise_ledger.run(linkwise_ledger.entries("jpl_88_11")[:1])))
_made("ledger.Case", lambda: linkwise_ledger.cases()[0])
_made("viewer.Viewer", lambda: lw.view(arm(), quiet=True, open_browser=False))
_made("estimation.Draws", lambda: OBJECTS["estimation.RandomField"]().draw(3, seed=0))
_made("estimation.KalmanFilter", lambda: OBJECTS["estimation.RandomField"]().filter(v()))
_made("estimation.Smoother", lambda: OBJECTS["estimation.RandomField"]().smooth(v()))
_made("estimation.BatchEstimate", lambda: OBJECTS["estimation.RandomField"]().batch(v()))
_made("estimation.Covariance", lambda: next(iter(lw.estimation.COVARIANCES.values())))
_made("estimation.Operator", lambda: next(iter(lw.estimation.OPERATORS.values())))
_made("convert.Layout", lambda: lw.convert.mujoco_layout(boxes(), mujoco_model()))
_made("convert.TorchFunction", lambda: lw.convert.to_torch({"M": mass}, arm()))
_made("convert.Symbolic", lambda: lw.convert.to_sympy({"M": mass}, arm()))
_made("ImplicitStep", lambda: right("implicit_step"))
_made("HeightField", lambda: right("HeightField"))
_made("Vibration", lambda: lw.simulation.vibrations(bending(), q(bending()))[0])
_made("NonlinearProgram", lambda: right("nonlinear_program"))
_made("CSource", lambda: lw.compile(mass, arm(), target="c"))


MEASURED = {"encoders": [[0.1, 0.2], [0.1, 0.2]]}


def _with_bias() -> lw.filtering.Filter:
    sensor = lw.filtering.encoders(arm(), noise=0.01, bias=0.1)
    return lw.filtering.kalman_filter(arm(), [sensor], step=0.01)


@cache
def boxes() -> lw.Mechanism:
    """Two boxes on pins, which every library takes."""
    b = lw.Builder("boxes").body("one", "world", lw.hinges.Pin(), hinge_name="pin_1", inertia=PART)
    return b.body(
        "two", "one", lw.hinges.Pin(), hinge_name="pin_2", inboard=POINT, inertia=PART
    ).build()


@cache
def boxes_file() -> str:
    path = samples.folder() / "boxes.urdf"
    lw.save(boxes(), path)
    return str(path)


@cache
def mujoco_model() -> Any:
    import mujoco

    return mujoco.MjModel.from_xml_path(boxes_file())


@cache
def pinocchio_model() -> Any:
    import pinocchio

    return pinocchio.buildModelFromUrdf(boxes_file())


@cache
def drake_plant() -> Any:
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant

    plant = MultibodyPlant(0.0)
    Parser(plant).AddModels(boxes_file())
    plant.Finalize()
    return plant


def twice(name: str) -> Any:
    """What a public function returns for two states: something that can be indexed."""
    args, options = samples.SAMPLES[name]()
    both = [np.stack([x, x]) if isinstance(x, np.ndarray) else x for x in args]
    return samples.named(name)(*both, **options)


for _name, _function in {
    "Assembly": "assemble",
    "AugmentedObject": "augmented_object",
    "DriveForces": "drive_forces",
    "InertialProperties": "inertial_properties",
    "OperationalSpace": "operational_space",
    "ReducedInertia": "reduced_inertia",
    "TaskDynamics": "task_dynamics",
    "TaskSpace": "task_space",
}.items():
    _made(f"{_name}(batch)", lambda name=_function: twice(name))
_made("ObjectTorque(batch)", lambda: OBJECTS["ObjectController"]().torque(
    np.stack([q(held())] * 2), np.zeros((2, held().nv)), X6))  # fmt: skip
_made("AugmentedPart(batch)", lambda: OBJECTS["AugmentedObject(batch)"]().object)
_made("AugmentedArm(batch)", lambda: next(iter(OBJECTS["AugmentedObject(batch)"]().arms.values())))
_made("ControlReport(batch)", lambda: OBJECTS["TaskController"]().explain(
    np.stack([q(), q()]), np.stack([v(), v()]), goals=[0.1]))  # fmt: skip
_made("LevelReport(batch)", lambda: OBJECTS["ControlReport(batch)"]().levels[0])
BOTH = {"tip": lw.dynamics.NodeGoal(position=[[0.3, 0, -1.5], [0.2, 0, -1.4]])}
_made("Solution(batch)", lambda: lw.inverse_kinematics(arm(), BOTH, q0=q(), seed=0))
_made("Pose(batch)", lambda: arm().poses(q()))
_made("SpatialInertia(batch)", lambda: arm().bodies[0].inertia.moved(arm().poses(q())))


samples.SAMPLES["convert.mujoco_layout"] = lambda: call(boxes(), mujoco_model())
samples.SAMPLES["convert.pinocchio_layout"] = lambda: call(boxes(), pinocchio_model())
samples.SAMPLES["convert.to_sympy"] = lambda: call(
    mass, arm(), given={"q": [0, 1]}, named=True, simplify=True
)
samples.SAMPLES["convert.to_casadi"] = lambda: call(mass, arm(), compiled=False, order=1)
samples.SAMPLES["convert.casadi_c"] = lambda: call(mass, arm(), name="f", order=1)
samples.SAMPLES["convert.to_jax"] = lambda: call("forward_dynamics", arm(), status=True)
samples.SAMPLES["convert.to_torch"] = lambda: call("forward_dynamics", arm(), status=True)
samples.SAMPLES["convert.drake_layout"] = lambda: call(boxes(), drake_plant())


# ------------------------------------------------------------------------------------ methods

METHODS: dict[str, Callable[[Any], Call]] = {}
"""Arguments of a right call of each method, for the object that has it."""


def _of(names: str, make: Callable[[Any], Call]) -> None:
    for name in names.split():
        METHODS[name] = make


OPERATORS = ("__matmul__", "__add__", "__sub__", "__mul__", "__rmul__", "__truediv__")
SPECIAL = ("__call__", "__getitem__", "__contains__", *OPERATORS)
"""Methods that Python calls, and that take arguments of the user."""


FRESH = ("Builder", "Tracker")
"""Objects that a call changes: each call has its own."""


def methods(name: str) -> Iterator[tuple[str, Any]]:
    """The public methods of a class, bound to its object or to the class itself."""
    it = OBJECTS[name]()
    for key in methods_of(type(it)):
        if key == "__getitem__" or not name.endswith("(batch)"):
            bound = fresh(name, key) if name in FRESH else getattr(it, key)
            yield f"{name}.{key}", kernel_call(bound) if (name, key) in KERNELS else bound


def methods_of(kind: type) -> Iterator[str]:
    """Names of the public methods of a class, and of those that Python calls."""
    for key in sorted(set(dir(kind))):
        member = inspect.getattr_static(kind, key)
        inner = member.__func__ if isinstance(member, staticmethod | classmethod) else member
        public = not key.startswith("_") or key in SPECIAL
        if public and inspect.isfunction(inner) and inner.__module__.startswith("linkwise"):
            yield key


def is_single(name: str) -> bool:
    """Whether it is an index into what holds one state: always an error."""
    owner, _, method = name.rpartition(".")
    return method == "__getitem__" and f"{owner}(batch)" in OBJECTS


def kernel_call(bound: Any) -> Any:
    """The call of a kernel with its arguments named: it takes any number of arrays."""

    def function(q: Any, *, out: Any = None, status: Any = None, threads: Any = None) -> Any:
        given = {"out": out, "status": status, "threads": threads}
        return bound(q, **{name: x for name, x in given.items() if x is not None})

    return function


KERNELS = tuple((name, "__call__") for name in ("Kernel",))


def fresh(name: str, key: str) -> Any:
    """A method of a new object each time."""

    @wraps(getattr(OBJECTS[name](), key))
    def function(*args: Any, **options: Any) -> Any:
        return getattr(copy.deepcopy(OBJECTS[name]()), key)(*args, **options)

    return function


def sample(name: str, bound: Any) -> Call | None:
    """The right arguments of a method; None where they are not known."""
    owner, _, method = name.rpartition(".")
    it = OBJECTS[owner]()
    kind = "Hinge" if isinstance(it, lw.hinges.Hinge) else owner
    make = METHODS.get(name) or METHODS.get(f"{kind}.{method}") or METHODS.get(f"*.{method}")
    if make is not None:
        return make(it)
    needed = [
        p
        for p in inspect.signature(bound).parameters.values()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    return None if needed else call()


_of("*.__getitem__", lambda it: call(0))

# Optimal control.
_TIP = lw.Task.position("tip")
_of("Cost.of_task", lambda it: call(_TIP, [0.1, 0.0, 0.2], weight=1.0, final=2.0))
_of("Cost.posture Cost.velocity", lambda it: call([0.1, 0.2], weight=1.0, final=2.0))
_of("Cost.force", lambda it: call(weight=1.0))
_of("Cost.effort", lambda it: call([0.1, 0.2], weight=1.0))
_of("Cost.of_function", lambda it: call(_speed, weight=1.0, final=2.0))
_of("Bound.on_task", lambda it: call(_TIP, [0.1, 0.0, 0.2], -0.1, 0.1, when="final"))
_of("Bound.on_position Bound.on_velocity", lambda it: call(-1.0, 1.0, when="all"))
_of("Bound.on_function", lambda it: call(_speed, -1.0, 1.0, when="all"))
_of("RecedingHorizon.__call__", lambda it: call(0.0, q(), v()))
_of("RecedingHorizon.set_goal", lambda it: call(0, [0.0, 0.0]))
_of("ImplicitStep.__call__", lambda it: call(q(), v()))
_of("Ground.of", lambda it: call(lw.grasp.Contact("point"), restitution=0.1))
_of(
    "HeightField.of",
    lambda it: call(lw.grasp.Contact("point"), heights=np.zeros((3, 4)), size=(2.0, 1.0)),
)
_of("NonlinearProgram.solve", lambda it: call("ipopt", print_time=False, ipopt={"print_level": 0}))
_of("NonlinearProgram.trajectory", lambda it: call(np.zeros(it.problem["x"].numel())))


def _speed(at: Any) -> Any:
    return at.v


# Hinges, poses, inertias, parts of mechanisms.
_of(
    "Hinge.pose Hinge.hinge_map Hinge.normalise Hinge.map_derivative", lambda it: call(it.neutral())
)
_of(
    "Hinge.bias Hinge.hinge_map_rate Hinge.qdot Hinge.bias_derivative",
    lambda it: call(it.neutral(), np.full(it.nv, 0.1)),
)
_of("Hinge.integrate", lambda it: call(it.neutral(), np.full(it.nv, 0.1), dt=0.5))
_of("Hinge.difference", lambda it: call(it.neutral(), it.neutral()))
_of(
    "Hinge.random",
    lambda it: call(np.random.default_rng(1), np.full(it.nq, -1.0), np.full(it.nq, 1.0)),
)
_of(
    "flexible.FlexibleBody.add_to",
    lambda it: call(lw.Builder("robot"), "beam", "world", lw.hinges.Pin(), inboard=POINT),
)
_of("flexible.FlexibleBody.shape", lambda it: call(np.zeros(len(it.stiffness))))
_of("Builder.motor", lambda it: call("p", PART, ratio=5.0, axis=(0, 0, 1), mount=POINT))
_of("Body.pose", lambda it: call(np.zeros(1)))
_of("Pose.translation", lambda it: call(POINT))
_of("Pose.rotation Pose.nearest", lambda it: call(np.eye(3), POINT))
_of("Pose.rpy", lambda it: call((0.1, 0.2, 0.3), POINT))
_of("Pose.from_matrix", lambda it: call(np.eye(4)))
_of("Pose.of", lambda it: call(POINT))
_of("Pose.__matmul__", lambda it: call(lw.Pose.translation(POINT)))
_of("Pose.apply", lambda it: call(np.array(POINT)))
_of("Pose.shift_velocity Pose.shift_force", lambda it: call(X6))
_of("SpatialInertia.from_com", lambda it: call(1.0, POINT, np.eye(3), np.eye(3)))
_of("SpatialInertia.point", lambda it: call(1.0, POINT))
_of("SpatialInertia.solid_box SpatialInertia.solid_ellipsoid", lambda it: call(1.0, (1, 2, 3)))
_of("SpatialInertia.solid_sphere", lambda it: call(1.0, 0.1))
_of("SpatialInertia.solid_cylinder SpatialInertia.solid_capsule", lambda it: call(1.0, 0.1, 1.0))
_of("SpatialInertia.__add__ Recording.__add__", lambda it: call(it))
_of("SpatialInertia.moved", lambda it: call(lw.Pose.translation(POINT)))
_of("SpatialInertia.scaled", lambda it: call(2.0))
_of("SpatialInertia.apply SpatialInertia.coriolis_factor", lambda it: call(X6))
_of("Coupling.value Coupling.slopes Coupling.curvatures", lambda it: call({"b": np.zeros(1)}))
_of("Drive.array", lambda it: call("armature", lw.hinges.Pin()))
_of("Actuator.motor", lambda it: call("motor", "pin_1", gear=2.0, control=(-1.0, 1.0)))
_of("Actuator.position", lambda it: call("servo", "pin_1", kp=10.0, kv=1.0))
_of("Actuator.velocity", lambda it: call("servo", "pin_1", kv=1.0, force=(-1.0, 1.0)))
_of("Drive.check", lambda it: call(lw.hinges.Pin()))
_of("Drive.has_spring", lambda it: call(lw.hinges.Pin()))
_of("Builder.body", lambda it: call("a", "p", lw.hinges.Pin(), inertia=PART, inboard=POINT))
_of("Builder.joint", lambda it: call("j", "p", "s", lw.hinges.Pin(), at_a=POINT))
_of("Builder.node", lambda it: call("k", "s", POINT, inertia=PART))
_of("Builder.loop", lambda it: call("l", "n", "m", lw.hinges.Pin()))
_of("Builder.couple", lambda it: call("c", "p", {"s": 1.0}, offset=0.1))

# Mechanisms.
_of("Mechanism.body Mechanism.inertia", lambda it: call("link_1"))
_of("Mechanism.hinge Mechanism.q_slice Mechanism.v_slice", lambda it: call("pin_1"))
_of("Mechanism.coordinate", lambda it: call("pin_1"))
_of("Mechanism.node", lambda it: call("tip"))
_of("Mechanism.loop", lambda it: call("new"))
_of("Mechanism.random Mechanism.random_velocity", lambda it: call(1))
_of("Mechanism.integrate", lambda it: call(q(), v(), 0.5))
_of("Mechanism.difference", lambda it: call(q(), q(seed=3)))
_of("Mechanism.qdot", lambda it: call(q(), v()))
_of(
    "Mechanism.normalise Mechanism.couple Mechanism.check_q Mechanism.poses "
    "Mechanism.center_of_mass",
    lambda it: call(q()),
)
_of("Mechanism.check_v", lambda it: call(v()))
_of("Mechanism.pose", lambda it: call(q(), "tip"))
_of("Mechanism.lock", lambda it: call({"pin_1": 0.1}))
_of("Mechanism.release", lambda it: call(()))
_of("Mechanism.with_payload", lambda it: call("tip", PART, name="load", pose=POINT))
_of("Mechanism.with_node", lambda it: call("there", "link_1", POINT))
_of("Mechanism.with_drive", lambda it: call("pin_1", lw.Drive(armature=0.1)))
_of("Mechanism.with_gravity", lambda it: call((0.0, 0.0, -1.0)))
_of("Mechanism.mount", lambda it: call(it, at="tip", prefix="second_"))
_of("Mechanism.extract", lambda it: call("link_1"))
_of("Mechanism.renumber", lambda it: call([b.name for b in it.bodies]))
_of("LoadReport.affecting", lambda it: call("motion"))
_of("Embedded.node", lambda it: call("coupler_end"))
_of("Embedded.check_q", lambda it: call(samples.crank()[0]))
_of("Embedded.check_v", lambda it: call(np.ones(1)))
_of("Renumbering.q Renumbering.joint_vector", lambda it: call(q()))
_of("Renumbering.joint_matrix", lambda it: call(np.eye(2)))
_of("Renumbering.body_vector", lambda it: call(samples.spatial(arm())))
_of("Renumbering.body_matrix", lambda it: call(np.eye(12)))
_of("Renumbering.columns", lambda it: call(np.ones((6, 2))))

# Closed chains and grasps.
_of("Grasp.of", lambda it: call(held(), lw.grasp.Contact("point"), q(held())))
_of("GraspEffort.of", lambda it: call(samples.PRESS))
_of(
    "Grasp.check_forces Grasp.margins Grasp.object_force Grasp.internal_forces",
    lambda it: call(np.tile([0.0, 0.0, 0.0, 1.0, 0.0, 4.0], (len(it), 1))),
)
_of("Grasp.mechanism", lambda it: call("contact_forces"))
_of("Grasp.map Grasp.virtual_linkage Grasp.force_space", lambda it: call(point=(0.0, 0.0, 0.0)))
_of("Grasp.force_closure", lambda it: call(point=(0.0, 0.0, 0.0), sides=4, length=0.1))
_of("Grasp.load_distribution", lambda it: call(X6 * 0, reserve=0.0, most=100.0, length=0.1))
_of("Grasp.effort Grasp.needed_wrench", lambda it: call(q(held()), v(held()) * 0))
_of("Grasp.contact_forces", lambda it: call(q(held()), v(held()) * 0, tau=v(held())))
_of("Grasp.contact_state", lambda it: call(q(held()), v(held()) * 0))
_of("Grasp.watch", lambda it: call(reserve=0.1))
_of("GraspMargins.of", lambda it: call(it.names[0], it.limits[0]))
_of("Contact.margins Contact.slopes", lambda it: call(X6))
_of("IndependentCoordinates.velocity", lambda it: call(np.ones(1)))
_of("IndependentCoordinates.bias", lambda it: call(samples.crank()[1]))
_of("IndependentCoordinates.acceleration", lambda it: call(samples.crank()[1], np.ones(1)))
_of("VirtualLinkage.split", lambda it: call(samples.PRESS))
_of("VirtualLinkage.contact_forces", lambda it: call(X6, np.zeros(6)))
_of("AugmentedArm.force AugmentedArm.null_torque", lambda it: call(np.ones(3)))
_of("AugmentedArm.torque", lambda it: call(X6))
_of("AugmentedObject.force AugmentedObject.acceleration", lambda it: call(X6))
_of("AugmentedObject.total_force", lambda it: call(v(held())))
_of("AugmentedObject.arm", lambda it: call(next(iter(it.arms))))
_of("ReflectedLoad.null_torque", lambda it: call(np.ones(3)))
GOAL = lw.Goal(lw.Pose.translation((0.75, 0, 0)))
_of(
    "ObjectController.__call__ ObjectController.explain",
    lambda it: call(q(held()), v(held()) * 0, GOAL, applied=np.zeros(6)),
)
_of("ObjectController.torque", lambda it: call(q(held()), v(held()) * 0, X6, tau0=v(held())))
_of("ObjectController.pose", lambda it: call(q(held())))
_of("ObjectController.error", lambda it: call(q(held()), lw.Pose.identity()))

# Motion.
_of("Channel.columns_of", lambda it: call(np.zeros((3, 2))))
_of("Channel.of", lambda it: call("height [m]", np.zeros(3), about="of the tip"))
_of("Channel.taken", lambda it: call(slice(0, 2)))
_of("Channel.column", lambda it: call(it.labels[0]))
_of(
    "Recording.of",
    lambda it: call(arm(), [0.0, 0.1], np.stack([q(), q()]), np.stack([v(), v()]), step=0.1),
)
_of("VectorEnv.step", lambda it: call(np.stack([v(), v()])))
_of("Simulator.step", lambda it: call(v()))
_of("Simulator.reset", lambda it: call(q=q(), v=v()))
_of("Simulator.__getitem__", lambda it: call("q") if it.reset() is not None else None)
_of("Recording.channel Recording.__getitem__ Recording.__contains__", lambda it: call("q"))
_of("Recording.at", lambda it: call(0.001))
_of("Recording.save", lambda it: call(samples.folder() / "saved.npz"))
_of("Recording.with_channel", lambda it: call("height [m]", np.zeros(len(it.t))))

# Tasks.
_of("Task.pose Task.orientation", lambda it: call("tip", coordinates=None, name="a"))
_of("Task.position", lambda it: call("tip", "xy", relative_to="world", name="a"))
_of("Task.direction", lambda it: call("tip", (0, 0, 1), name="a"))
_of("Task.joints", lambda it: call("pin_1", name="a"))
_of("NodeGoal.of", lambda it: call(POINT, "tip"))
_of("TaskController.__call__ TaskController.explain", lambda it: call(q(), v(), goals=[0.1]))
_of("Identification.in_terms_of", lambda it: call(it))
_of("Identification.interval", lambda it: call(level=0.9))
_of("Identification.forces", lambda it: call(*samples.measured()[:3]))
_of("Identification.validate", lambda it: call(*samples.measured()))
_of("Identification.compared", lambda it: call(*samples.measured()))
_of("Filter.start", lambda it: call(q(), v(), position=0.1, velocity=0.1))
_of("Filter.tick", lambda it: call(it.start(q()), v(), {"encoders": q()}, step=0.01))
_of("Filter.run", lambda it: call(it.start(q()), np.ones((2, 2)), {"encoders": np.ones((2, 2))}))
_of("Filter.kernel", lambda it: call(smoothing=False))
_of("Filter.with_noise", lambda it: call(variance=[0.1, 0.1]))
_of("Filter.export_c MomentumObserver.export_c", lambda it: call("state_filter"))
_of("Filtered.errors Filtered.nees", lambda it: call(it.q, it.v))
_of("Estimate.part Filtered.part", lambda it: call("encoders"))
_of("MomentumObserver.start", lambda it: call(q(), v()))
_of("MomentumObserver.tick", lambda it: call(it.start(q(), v()), q(), v(), tau=v()))
_of("Tracker.tick", lambda it: call(v(), {"encoders": q()}))
_of("Tracker.late", lambda it: call({"encoders": q()}, ago=0) if it.tick(v()) is not None else None)
_of("StateFeedback.__call__", lambda it: call(q(), v(), goal=q()))
_of("StateFeedback.goal", lambda it: call(q()))
_of("StateFeedback.export_c", lambda it: call("law"))
_of("StateFeedback.of", lambda it: call(it.mech, it.gain, q(), v(), v()))
_of("ControlLaw.__call__", lambda it: call(q(), v(), goal=[0.1], acceleration=[0.0]))
_of("ControlLaw.goal", lambda it: call([0.1]))
_of("ControlLaw.export_c", lambda it: call("law"))
_of(
    "TaskCoordinates.error TaskCoordinates.acceleration TaskCoordinates.basic_force",
    lambda it: call(it.x),
)
_of("TaskCoordinates.basic_velocity", lambda it: call(it.velocity))
_of("TaskCoordinates.sized", lambda it: call(it.x, "x"))
_of("CoordinateDynamics.force", lambda it: call(np.ones(7)))
_of("TaskSpace.null_torque", lambda it: call(v()))
_of("TaskDynamics.force TaskDynamics.acceleration", lambda it: call(np.ones(it.inertia.shape[-1])))
_of(
    "CompliantSurface.clearance CompliantSurface.normal_at",
    lambda it: call(np.array(POINT)),
)
_of("CompliantSurface.sphere", lambda it: call((0, 0, 0), 0.1, 1e4, 1.0, friction=0.1))
_of("CompliantSurface.cylinder", lambda it: call((0, 0, 0), (0, 0, 1), 0.1, 1e4, 1.0))
_of(
    "CompliantSurface.following CompliantSurface.touch_at",
    lambda it: call(np.array(POINT), np.ones(3)),
)
_of(
    "CompliantSurface.touch CompliantSurface.force",
    lambda it: call(six(), q(six()), v(six()), "tip"),
)
_of("CompliantSurface.energy", lambda it: call(six(), q(six()), "tip"))
_of(
    "CompliantSurface.forces CompliantSurface.touching CompliantSurface.leaving",
    lambda it: call(six(), "tip"),
)
_of("ContactTransition.after", lambda it: call(lw.tasks.ContactPhase(), 0.1, 1.0, 0.1))
_of("ContactTransition.watch", lambda it: call("approach", six(), "tip", samples.SURFACE))
_of("ForceServo.for_surface", lambda it: call(1e4, 10.0, damping_ratio=1.0))
_of("ForceServo.loop", lambda it: call(1e4, mass=1.0, step=1e-3))
_of("MotionForceCommand.integral_after", lambda it: call(1e-3))
_of(
    "MotionForceController.command MotionForceController.torque",
    lambda it: call(q(six()), v(six()), goal=lw.Pose.translation(POINT), force=1.0, velocity=X6),
)
_of("MotionForceController.sense", lambda it: call(q(six()), v(six()), samples.SURFACE))
_of("JointLimits.places", lambda it: call(limited()))
_of("JointLimits.push", lambda it: call(limited(), q(six()), v(six())))
_of("JointLimits.nearness", lambda it: call(limited(), q(six())))
_of("Posture.damping", lambda it: call(1.0, hinges=["pin_1"]))
_of("Posture.mid_range", lambda it: call(limited(), 1.0, 1.0, hinges=["hand"]))
_of("Posture.columns Posture.drawn Posture.numbers", lambda it: call(lw.models.pendulum(1)))
_of("SingularStrategy.speeds", lambda it: call(np.ones(2)))
_of("Posture.torque", lambda it: call(lw.models.pendulum(1), [0.1], [0.2]))
_of("Selection.along_normal", lambda it: call((0, 0, 1)))
_of("Selection.from_axes", lambda it: call(None, motion="x y"))
_of("Selection.from_matrices", lambda it: call(np.diag([1.0, 1, 0])))
_of("Selection.matrices", lambda it: call(six(), q(six()), lw.Task.pose("tip")))
_of("Selection.normal", lambda it: call(six(), q(six()), lw.Task.pose("tip")))
_of("Selection.constant", lambda it: call(lw.Task.pose("tip")))
_of("Selection.axis", lambda it: call(six(), q(six()), lw.Task.pose("tip"), 2))
_of("InertialShape.placed", lambda it: call(POINT, 2.0))
_of("ReducedInertia.along", lambda it: call((0, 0, 1)))
_of("MacroMini.mini_at MacroMini.at", lambda it: call(q(six())))
_of(
    "DextrousCoordination.tuned",
    lambda it: call(limited(), q(six()), lw.Task.position("tip"), split="hand", frequency=1.0),
)
_of("DextrousCoordination.potential DextrousCoordination.share", lambda it: call(q(six())))
_of("DextrousCoordination.torque", lambda it: call(q(six()), v(six())))
_of(
    "DextrousCoordination.null_torque",
    lambda it: call(q(six()), v(six()), lw.Task.position("tip")),
)
_of("DextrousCoordination.frequencies", lambda it: call(q(six()), lw.Task.position("tip")))

# The algebra and its kernels.
_of("algebra.Expr.__matmul__ algebra.Expr.__add__ algebra.Expr.__sub__", lambda it: call(it))
_of("algebra.Expr.__mul__ algebra.Expr.__rmul__ algebra.Expr.__truediv__", lambda it: call(2.0))
_of("Kernel.__call__", lambda it: call(q()))
_of("Derivation.then", lambda it: call(it.reversed()))
_of("Derivation.check", lambda it: call(arm(), seed=0))
_of("CSource.write", lambda it: call(samples.folder()))
_of("CSource.named", lambda it: call("law"))
_of("Kernel.nominal", lambda it: call("gravity"))
_of("Kernel.describe", lambda it: call(0))
_of("Kernel.warn", lambda it: call(np.zeros(2, np.int32)))

# Layouts of other libraries.
_of("convert.Layout.q_to convert.Layout.q_from", lambda it: call(q()))
_of("convert.Layout.v_to convert.Layout.v_from", lambda it: call(q(), v()))
_of("convert.Layout.force_to convert.Layout.force_from", lambda it: call(q(), v()))
_of("convert.Layout.vdot_to convert.Layout.vdot_from", lambda it: call(q(), v(), v()))
_of(
    "convert.Layout.spatial_velocity_to convert.Layout.spatial_velocity_from "
    "convert.Layout.spatial_force_to convert.Layout.spatial_force_from",
    lambda it: call(X6),
)

_of("convert.TorchFunction.__call__", lambda it: call(q()))
_of("convert.Symbolic.latex convert.Symbolic.__getitem__", lambda it: call("M"))

# The random field.
_of(
    "estimation.RandomField.draw estimation.RandomField.draw_measurements",
    lambda it: call(3, seed=0),
)
_of(
    "estimation.RandomField.filter estimation.RandomField.smooth estimation.RandomField.batch "
    "estimation.RandomField.log_likelihood estimation.RandomField.measurement",
    lambda it: call(v()),
)
_of(
    "estimation.RandomField.expression estimation.RandomField.blocks",
    lambda it: call(next(iter(lw.estimation.OPERATORS))),
)
_of("estimation.RandomField.apply", lambda it: call("z", v()))
_of(
    "estimation.RandomField.covariance estimation.RandomField.covariance_blocks "
    "estimation.RandomField.deviation",
    lambda it: call(next(iter(lw.estimation.COVARIANCES))),
)

# Pictures and the ledger.
_of("viewer.Scene.bounds", lambda it: call(q()))
_of("viewer.Viewer.set", lambda it: call(q()))
_of("viewer.Viewer.dial", lambda it: call("pin_1", lambda x: x))
_of("viewer.Viewer.random", lambda it: call(1))
_of("viewer.Viewer.play", lambda it: call(recording()))
_of("viewer.Viewer.seek", lambda it: call(0.0))
_of("viewer.Viewer.has viewer.Viewer.shows viewer.Viewer.show", lambda it: call("shapes"))
_of("viewer.Viewer.export", lambda it: call(samples.folder() / "viewer.html"))
_of("plot.Theme.color", lambda it: call(1))
_of("ledger.Case.matrix", lambda it: call(mass))
_of("ledger.Case.block", lambda it: call(phi, 1, 0))
_of("ledger.Case.residual", lambda it: call(mass, mass))
_of("ledger.Case.parent ledger.Case.children", lambda it: call(1))


@cache
def limited() -> lw.Mechanism:
    return six().with_drive(["cart", "hand"], lower=-1.0, upper=1.0)


NO_OBJECT = {
    "Progress": "how far an optimisation is, without methods",
    "Aggregate": "a part of an Embedded, without methods",
    "Event": "what happened in a motion, without methods",
    "Hinge": "abstract: the methods of each hinge are walked",
}
"""Classes of which no object is made, each with the reason."""

PLAIN = ("Embedded3D", "Formula")
"""Kinds of results that nothing can be asked."""

LEFT_OUT = {
    **dict.fromkeys(
        [f"Study.{x}" for x in "case chunk_size evaluate run trial values with_cases".split()],
        "tests/study checks its calls, which write files",
    ),
    "viewer.Viewer.block": "waits until the page is closed",
    "viewer.Viewer.open": "opens a browser",
    "viewer.Viewer.close": "is called by the walk at its end",
    **dict.fromkeys(
        ("RecedingHorizon.compiled_into", "RecedingHorizon.planned_for"),
        "lw.rollout calls it, with what it has checked",
    ),
    **dict.fromkeys(("HeightField.frame", "HeightField.under"), "a formula of implicit steps"),
    "Channel.columns_of": "counts columns of what a channel has checked",
    **dict.fromkeys(
        ("JointLimits.nearness Posture.drawn Posture.numbers SingularStrategy.speeds").split(),
        "a formula of TaskController, which checks its arguments once for all of them",
    ),
}
"""Methods that are not walked, each with the reason."""
