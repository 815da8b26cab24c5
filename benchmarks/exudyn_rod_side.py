"""A cantilever of ANCF cable elements in exudyn: called by rod.py, in an environment with exudyn.

    python exudyn_rod_side.py RESULTS.json CASE.json

CASE has the numbers of the rod, a list of (elements, step), and times of the records.
"""

import itertools
import json
import sys
import time

import exudyn as exu
import numpy as np
from exudyn.itemInterface import (
    Cable2D,
    CoordinateConstraint,
    LoadMassProportional,
    MarkerBodyMass,
    MarkerNodeCoordinate,
    NodePoint2DSlope1,
    NodePointGround,
    SensorNode,
)


def moved(rod: dict, elements: int, step: float, times: list[float]) -> tuple[list, float]:
    """Tip (x, z) at some times, and the time of the solver [s]."""
    container = exu.SystemContainer()
    mbs = container.AddSystem()
    each = rod["length"] / elements
    nodes = [
        mbs.AddNode(NodePoint2DSlope1(referenceCoordinates=[i * each, 0.0, 1.0, 0.0]))
        for i in range(elements + 1)
    ]
    for a, b in itertools.pairwise(nodes):
        cable = mbs.AddObject(
            Cable2D(
                physicsLength=each,
                physicsMassPerLength=rod["mass"],
                physicsBendingStiffness=rod["EI"],
                physicsAxialStiffness=rod["EA"],
                physicsBendingDamping=rod["damping"] * rod["EI"],
                physicsAxialDamping=rod["damping"] * rod["EA"],
                nodeNumbers=[a, b],
            )
        )
        marker = mbs.AddMarker(MarkerBodyMass(bodyNumber=cable))
        mbs.AddLoad(LoadMassProportional(markerNumber=marker, loadVector=[0.0, -9.81, 0.0]))
    ground = mbs.AddNode(NodePointGround())
    fixed = mbs.AddMarker(MarkerNodeCoordinate(nodeNumber=ground, coordinate=0))
    for coordinate in (0, 1, 3):
        marker = mbs.AddMarker(MarkerNodeCoordinate(nodeNumber=nodes[0], coordinate=coordinate))
        mbs.AddObject(CoordinateConstraint(markerNumbers=[fixed, marker]))
    sensor = mbs.AddSensor(
        SensorNode(
            nodeNumber=nodes[-1],
            storeInternal=True,
            outputVariableType=exu.OutputVariableType.Position,
        )
    )
    mbs.Assemble()
    settings = exu.SimulationSettings()
    settings.timeIntegration.numberOfSteps = round(times[-1] / step)
    settings.timeIntegration.endTime = times[-1]
    settings.timeIntegration.verboseMode = 0
    settings.timeIntegration.newton.useModifiedNewton = True
    settings.solutionSettings.writeSolutionToFile = False
    settings.solutionSettings.sensorsWritePeriod = step
    settings.linearSolver.solverType = exu.LinearSolverType.EigenSparse
    began = time.process_time()
    mbs.SolveDynamic(settings)
    spent = time.process_time() - began
    rows = np.array(mbs.GetSensorStoredData(sensor))
    path = [[float(np.interp(t, rows[:, 0], rows[:, k])) for k in (1, 2)] for t in times]
    return path, spent


if __name__ == "__main__":
    with open(sys.argv[2]) as file:
        case = json.load(file)
    out = []
    for elements, step in case["runs"]:
        path, spent = moved(case["rod"], elements, step, case["times"])
        out.append({"elements": elements, "step": step, "path": path, "spent": spent})
    with open(sys.argv[1], "w") as file:
        json.dump({"version": exu.config.Version(), "runs": out}, file)
