"""Control in task space: servos, priorities, postures, joint limits, singularities."""

from linkwise.front_door import open_front_door
from linkwise.task.control.controller import TaskController
from linkwise.task.control.goal import Goal
from linkwise.task.control.joint_limits import JointLimits
from linkwise.task.control.posture import Posture
from linkwise.task.control.report import ControlReport, LevelReport
from linkwise.task.control.servo import Servo
from linkwise.task.control.singular import SingularStrategy

__all__ = [
    "ControlReport",
    "Goal",
    "JointLimits",
    "LevelReport",
    "Posture",
    "Servo",
    "SingularStrategy",
    "TaskController",
]

open_front_door(globals(), __all__, records=("Goal",))
