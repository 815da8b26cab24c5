"""Optimal control: regulators from the linearised equations of motion.

regulator = lw.lqr(cart_pole, upright, Q=1.0, R=0.1, driven=["slide"])
lw.simulate(cart_pole, start, controller=(regulator.law, upright), ...)
"""

from linkwise.control.lqr import (
    Regulator as Regulator,
    lqr as lqr,
)
from linkwise.front_door import open_front_door

open_front_door(globals())
