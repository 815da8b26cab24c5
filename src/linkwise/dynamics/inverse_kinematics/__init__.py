"""Inverse kinematics: joint positions that take nodes to their targets.

`descent.py` has the mathematics: a step is the acceleration of a weightless mechanism whose nodes
are pulled to their targets, and has the recursion of forward dynamics.
"""

from linkwise.dynamics.inverse_kinematics.search import inverse_kinematics as inverse_kinematics
from linkwise.dynamics.inverse_kinematics.solution import Solution as Solution
from linkwise.dynamics.inverse_kinematics.target import Target as Target
