"""Unified control of motion and force: selections, servos, compliant surfaces, impacts."""

from linkwise.front_door import open_front_door
from linkwise.task.force.force_servo import ForceLoop, ForceServo
from linkwise.task.force.impact import Impact, impact_estimate
from linkwise.task.force.motion_force import MotionForceCommand, MotionForceController
from linkwise.task.force.selection import Selection
from linkwise.task.force.surface import CompliantSurface, Touch
from linkwise.task.force.transition import ContactPhase, ContactTransition

__all__ = [
    "CompliantSurface",
    "ContactPhase",
    "ContactTransition",
    "ForceLoop",
    "ForceServo",
    "Impact",
    "MotionForceCommand",
    "MotionForceController",
    "Selection",
    "Touch",
    "impact_estimate",
]

open_front_door(globals(), __all__)
