"""Mechanisms and quantities in the terms of other libraries.

Layouts convert q, v, forces and spatial vectors to and from Pinocchio, MuJoCo and Drake: each
function takes a mechanism and the other library's model of the same robot, matches hinges by name,
and gives a `Layout`. The other library is not imported; only its model is read. `to_sympy` makes
formulas of what a kernel computes, `to_jax` and `to_torch` functions that JAX and Torch compile and
differentiate, `to_casadi` functions for optimization.
"""

from linkwise.convert.casadi import casadi_c as casadi_c, to_casadi as to_casadi
from linkwise.convert.jax_function import to_jax as to_jax
from linkwise.convert.layout import Layout as Layout
from linkwise.convert.libraries import (
    drake_layout as drake_layout,
    mujoco_layout as mujoco_layout,
    pinocchio_layout as pinocchio_layout,
)
from linkwise.convert.symbolic import Symbolic as Symbolic, to_sympy as to_sympy
from linkwise.convert.torch_function import TorchFunction as TorchFunction, to_torch as to_torch
from linkwise.documented import OF_CONVERSIONS
from linkwise.front_door import open_front_door

open_front_door(globals(), texts=OF_CONVERSIONS)
