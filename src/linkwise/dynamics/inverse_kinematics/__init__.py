"""Inverse kinematics: joints that take nodes where they are wanted, one file for each part of it.

`step.py` has the mathematics: a step is the acceleration of a weightless mechanism whose nodes are
pulled to their targets, and has the recursion of forward dynamics.
"""

from linkwise.dynamics.inverse_kinematics.search import inverse_kinematics
from linkwise.dynamics.inverse_kinematics.solution import Solution
from linkwise.dynamics.inverse_kinematics.target import Target

__all__ = ["Solution", "Target", "inverse_kinematics"]
