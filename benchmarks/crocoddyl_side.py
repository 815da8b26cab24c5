"""Crocoddyl's side of `optimize.py`, run by the Python of an environment with Crocoddyl.

Reads the problem from standard input, prints iterations, cost and processor times.
"""

import json
import sys
import time
from importlib import metadata

import crocoddyl
import numpy as np
import pinocchio as pin

given = json.load(sys.stdin)
files = metadata.files("example-robot-data")
path = next(str(f.locate()) for f in files if str(f).endswith("/panda.urdf"))
full = pin.buildModelFromUrdf(path)
fingers = [full.getJointId(f"panda_finger_joint{i}") for i in (1, 2)]
model = pin.buildReducedModel(full, fingers, pin.neutral(full))
model.armature[:] = 0.0
state = crocoddyl.StateMultibody(model)
actuation = crocoddyl.ActuationModelFull(state)
hand = model.getFrameId(given["node"])
q, weights = np.array(given["q"]), given["weights"]
x0 = np.concatenate([q, np.zeros(7)])


def node(goal, terminal):
    """One knot."""
    costs = crocoddyl.CostModelSum(state)

    def add(name, residual, weight):
        costs.addCost(name, crocoddyl.CostModelResidual(state, residual), weight)

    add("state", crocoddyl.ResidualModelState(state, x0), weights["state"])
    if not terminal:
        add("control", crocoddyl.ResidualModelControl(state, 7), weights["effort"])
    reach = weights["final"] if terminal else weights["reach"]
    R, p = np.array(goal["R"]), np.array(goal["p"])
    add("way", crocoddyl.ResidualModelFrameTranslation(state, hand, p, 7), reach)
    add("turn", crocoddyl.ResidualModelFrameRotation(state, hand, R, 7), reach)
    action = crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, costs)
    return crocoddyl.IntegratedActionModelEuler(action, 0.0 if terminal else given["step"])


results = []
for goal in given["goals"]:
    knots = [node(goal, False)] * given["horizon"]
    problem = crocoddyl.ShootingProblem(x0, knots, node(goal, True))
    problem.nthreads = 1
    solver = crocoddyl.SolverFDDP(problem)
    solver.th_stop = given["tolerance"]
    xs, us = [x0] * (given["horizon"] + 1), [np.zeros(7)] * given["horizon"]
    best = float("inf")
    for _ in range(given["rounds"]):
        begun = time.process_time()
        solver.solve(xs, us, given["iterations"])
        best = min(best, time.process_time() - begun)
    results.append({"iterations": solver.iter + 1, "cost": solver.cost, "time": best})
versions = {name: metadata.version(name) for name in ("crocoddyl", "pin", "numpy")}
print(json.dumps({"results": results, "versions": versions}))
