"""Closed chains in motion: steps on the manifold, loops kept closed, margins watched."""

from linkwise.closed.motion.close_loop import close_loop
from linkwise.closed.motion.recording import ConstrainedMotion, Drift
from linkwise.closed.motion.run import constrained_motion
from linkwise.closed.motion.step import rk4_step
from linkwise.closed.motion.watch import Crossing

__all__ = [
    "ConstrainedMotion",
    "Crossing",
    "Drift",
    "close_loop",
    "constrained_motion",
    "rk4_step",
]
