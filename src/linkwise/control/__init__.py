"""Optimal control: regulators, and trajectories that cost least.

regulator = lw.lqr(cart_pole, upright, Q=1.0, R=0.1, driven=["slide"])
lw.simulate(cart_pole, start, controller=(regulator.law, upright), ...)

reach = lw.control.Cost.of_task(lw.Task.pose("hand"), goal, final=100.0)
motion = lw.optimize(arm, q, costs=[reach, lw.control.Cost.effort(weight=1e-3)], ...)
"""

from linkwise.control.cost import (
    Bound as Bound,
    Cost as Cost,
)
from linkwise.control.lqr import (
    Regulator as Regulator,
    lqr as lqr,
)
from linkwise.control.nonlinear_program import (
    NonlinearProgram as NonlinearProgram,
    nonlinear_program as nonlinear_program,
)
from linkwise.control.optimize import (
    History as History,
    Progress as Progress,
    Trajectory as Trajectory,
    optimize as optimize,
)
from linkwise.control.phase import (
    Foothold as Foothold,
    Phase as Phase,
)
from linkwise.control.receding_horizon import (
    RecedingHorizon as RecedingHorizon,
)
from linkwise.front_door import open_front_door

open_front_door(globals(), records=("Cost", "Bound", "Foothold", "Phase"))
