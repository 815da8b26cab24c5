"""Exudyn's side of `flexible.py`, run by the Python of an environment with Exudyn.

Reads cases from standard input, prints paths of points and processor times. Beams are planar
ANCF cables with bending and stretch, which deform without limits.
"""

import json
import sys
import time

import exudyn as exu
import numpy as np
from exudyn.beams import GenerateStraightLineANCFCable2D
from exudyn.utilities import (
    CoordinateConstraint,
    MarkerBodyPosition,
    MarkerNodeCoordinate,
    MarkerNodePosition,
    MassPoint2D,
    NodePoint2D,
    NodePointGround,
    ObjectANCFCable2D,
    RevoluteJoint2D,
    SensorNode,
)


def hub_angle(t, speed, T):
    """Of Kane's spin-up: speed / T (t - T / 2π sin 2π t / T), then at constant speed."""
    if t < T:
        return speed / T * (0.5 * t**2 + (T / (2 * np.pi)) ** 2 * (np.cos(2 * np.pi * t / T) - 1.0))
    return speed * (t - 0.5 * T)


def run(case):
    """One motion: times, the sensor's places, and seconds of the processor."""
    system = exu.SystemContainer()
    mbs = system.AddSystem()
    beam, kind, n = case["beam"], case["kind"], case["elements"]
    line, length = beam["density"] * beam["area"], beam["length"]
    cable = ObjectANCFCable2D(
        massPerLength=line,
        bendingStiffness=beam["young"] * beam["bending"],
        axialStiffness=beam["young"] * beam["area"],
        useReducedOrderIntegration=1,
    )
    gravity = case.get("gravity", 0.0)
    start = (0.0, 0.0)
    if kind == "slider_crank":
        start = (case["crank"], 0.0)
    end = (start[0] + length, 0.0, 0.0)
    made = GenerateStraightLineANCFCable2D(
        mbs, (*start, 0.0), end, n, cable, massProportionalLoad=[0.0, -gravity, 0.0],
        fixedConstraintsNode0=[1, 1, 0, 0] if kind == "pendulum" else [0, 0, 0, 0],
        fixedConstraintsNode1=[0, 0, 0, 0],
    )  # fmt: skip
    nodes = made[0]
    ground = mbs.AddMarker(
        MarkerNodeCoordinate(nodeNumber=mbs.AddNode(NodePointGround()), coordinate=0)
    )

    def hold(node, coordinate, path):
        marker = mbs.AddMarker(MarkerNodeCoordinate(nodeNumber=node, coordinate=coordinate))
        at_rest = path(0.0)
        mbs.AddObject(
            CoordinateConstraint(
                markerNumbers=[ground, marker],
                offset=0.0,
                offsetUserFunction=lambda mbs, t, item, offset: path(t) - at_rest,
            )
        )

    if kind == "spin_up":
        angle = lambda t: hub_angle(t, case["speed"], case["rise"])  # noqa: E731
        hold(nodes[0], 0, lambda t: 0.0)
        hold(nodes[0], 1, lambda t: 0.0)
        # A slope along the hub: its component across is zero, in the fixed axes of the node.
        hold(nodes[0], 2, lambda t: np.cos(angle(t)))
        hold(nodes[0], 3, lambda t: np.sin(angle(t)))
    if kind == "slider_crank":
        r, w = case["crank"], case["speed"]
        hold(nodes[0], 0, lambda t: r * np.cos(w * t))
        hold(nodes[0], 1, lambda t: r * np.sin(w * t))
        hold(nodes[-1], 1, lambda t: 0.0)
        mass = mbs.AddNode(NodePoint2D(referenceCoordinates=list(end[:2])))
        body = mbs.AddObject(MassPoint2D(mass=case["slider"], nodeNumber=mass))
        a = mbs.AddMarker(MarkerBodyPosition(bodyNumber=body))
        b = mbs.AddMarker(MarkerNodePosition(nodeNumber=nodes[-1]))
        mbs.AddObject(RevoluteJoint2D(markerNumbers=[a, b]))
        # Of the undeformed rod: the crank turns with w, the rod with -w r / L about the slider.
        for i, node in enumerate(nodes):
            part = 1.0 - i / n
            mbs.SetNodeParameter(
                node, "initialVelocities", [0.0, r * w * part, 0.0, -r * w / length]
            )
    watched = {
        name: mbs.AddSensor(
            SensorNode(
                nodeNumber=nodes[i], storeInternal=True,
                outputVariableType=exu.OutputVariableType.Position,
            )
        )
        for name, i in (("start", 0), ("middle", n // 2), ("tip", -1))
    }  # fmt: skip
    mbs.Assemble()
    settings = exu.SimulationSettings()
    integration = settings.timeIntegration
    integration.numberOfSteps = round(case["duration"] / case["step"])
    integration.endTime = case["duration"]
    integration.generalizedAlpha.spectralRadius = case.get("radius", 0.9)
    integration.generalizedAlpha.computeInitialAccelerations = True
    integration.newton.useModifiedNewton = True
    settings.solution.sensors.writePeriod = case["sample"]
    settings.solution.file.write = False
    settings.linearSolver.solverType = exu.LinearSolverType.EigenSparse
    integration.verboseMode = 0
    began = time.process_time()
    mbs.SolveDynamic(settings)
    spent = time.process_time() - began
    data = {name: mbs.GetSensorStoredData(x) for name, x in watched.items()}
    paths = {name: x[:, 1:3].tolist() for name, x in data.items()}
    return {"t": data["tip"][:, 0].tolist(), "paths": paths, "time": spent}


if __name__ == "__main__":
    cases = json.load(sys.stdin)
    sys.stdout.flush()
    print(json.dumps({"version": exu.__version__, "results": [run(case) for case in cases]}))
