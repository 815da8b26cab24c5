"""Task space: tasks, their dynamics, hierarchies of controllers, motion and force control."""

from linkwise.front_door import open_front_door
from linkwise.tasks.control.controller import TaskController as TaskController
from linkwise.tasks.control.goal import Goal as Goal
from linkwise.tasks.control.joint_limits import JointLimits as JointLimits
from linkwise.tasks.control.posture import Posture as Posture
from linkwise.tasks.control.report import (
    ControlReport as ControlReport,
    LevelReport as LevelReport,
)
from linkwise.tasks.control.servo import Servo as Servo
from linkwise.tasks.control.singular import SingularStrategy as SingularStrategy
from linkwise.tasks.coordinates import (
    CoordinateDynamics as CoordinateDynamics,
    TaskCoordinates as TaskCoordinates,
    coordinate_dynamics as coordinate_dynamics,
    task_coordinates as task_coordinates,
)
from linkwise.tasks.derivatives import (
    TaskDynamicsDerivatives as TaskDynamicsDerivatives,
    task_dynamics_derivatives as task_dynamics_derivatives,
)
from linkwise.tasks.dynamics import (
    TaskDynamics as TaskDynamics,
    task_dynamics as task_dynamics,
    task_torque as task_torque,
)
from linkwise.tasks.force.force_servo import (
    ForceLoop as ForceLoop,
    ForceServo as ForceServo,
)
from linkwise.tasks.force.impact import (
    Impact as Impact,
    impact_estimate as impact_estimate,
)
from linkwise.tasks.force.motion_force import (
    MotionForceCommand as MotionForceCommand,
    MotionForceController as MotionForceController,
)
from linkwise.tasks.force.selection import Selection as Selection
from linkwise.tasks.force.surface import (
    CompliantSurface as CompliantSurface,
    Touch as Touch,
)
from linkwise.tasks.force.transition import (
    ContactPhase as ContactPhase,
    ContactTransition as ContactTransition,
)
from linkwise.tasks.law import (
    ControlLaw as ControlLaw,
    control_law as control_law,
)
from linkwise.tasks.measure import (
    task_bias as task_bias,
    task_error as task_error,
    task_jacobian as task_jacobian,
    task_position as task_position,
    task_velocity as task_velocity,
)
from linkwise.tasks.space import (
    TaskSpace as TaskSpace,
    task_space as task_space,
)
from linkwise.tasks.task import Task as Task

open_front_door(globals(), records=("Task", "Goal"))
