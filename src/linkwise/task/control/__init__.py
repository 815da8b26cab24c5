"""Control in task space: servos, priorities, postures, joint limits, singularities."""

from linkwise.task.control.posture import Posture

__all__ = ["Posture"]
