"""Task space: the dynamics of what a mechanism does, rather than of its joints."""

from linkwise.front_door import open_front_door
from linkwise.task.coordinates import (
    CoordinateDynamics,
    TaskCoordinates,
    coordinate_dynamics,
    task_coordinates,
)
from linkwise.task.dynamics import TaskDynamics, task_dynamics, task_torque
from linkwise.task.law import ControlLaw, control_law
from linkwise.task.measure import (
    task_bias,
    task_error,
    task_jacobian,
    task_position,
    task_velocity,
)
from linkwise.task.space import TaskSpace, task_space
from linkwise.task.task import Task

__all__ = [
    "ControlLaw",
    "CoordinateDynamics",
    "Task",
    "TaskCoordinates",
    "TaskDynamics",
    "TaskSpace",
    "control_law",
    "coordinate_dynamics",
    "task_bias",
    "task_coordinates",
    "task_dynamics",
    "task_error",
    "task_jacobian",
    "task_position",
    "task_space",
    "task_torque",
    "task_velocity",
]

open_front_door(globals(), __all__, records=("Task",))
