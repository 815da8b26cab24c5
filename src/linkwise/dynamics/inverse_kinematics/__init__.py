"""Inverse kinematics: joint positions that take nodes to their goals.

`descent.py` has the mathematics: a step is the acceleration of a weightless mechanism whose nodes
are pulled to their goals, and has the recursion of forward dynamics.
"""

from linkwise.dynamics.inverse_kinematics.goal import NodeGoal as NodeGoal
from linkwise.dynamics.inverse_kinematics.search import inverse_kinematics as inverse_kinematics
from linkwise.dynamics.inverse_kinematics.solution import Solution as Solution
