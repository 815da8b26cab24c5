"""FIGAROH's side of `identification.py`, run by the Python of an environment with FIGAROH.

Reads a robot's file and arrays from the .npz file named on the command line. Prints predicted joint
forces of a second motion and the best processor time.
"""

import json
import sys
import time
import warnings
from types import SimpleNamespace

warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import pinocchio as pin  # noqa: E402
from figaroh.tools.qrdecomposition import QRDecomposer  # noqa: E402
from figaroh.tools.regressor import build_regressor_basic, get_index_eliminate  # noqa: E402

given = np.load(sys.argv[1])
model = pin.buildModelFromUrdf(str(given["urdf"]))
model.armature[:] = 0.0
robot = SimpleNamespace(model=model, data=model.createData())
CONFIG = {"has_friction": True, "is_joint_torques": True, "act_idxv": list(range(model.nv))}


def columns(q, v, vdot):
    """All columns, samples of one joint after the other."""
    return build_regressor_basic(robot, q, v, vdot, CONFIG)


best = np.inf
for _ in range(int(given["rounds"])):
    begun = time.process_time()
    W = columns(given["q"], given["v"], given["vdot"])
    names = {f"p{i}": 0.0 for i in range(W.shape[1])}
    idle, left = get_index_eliminate(W, names)
    reduced = np.delete(W, idle, axis=1)
    tau = given["tau"].T.ravel()
    W_b, _, _, b = QRDecomposer().double_decomposition(tau, reduced, left)[:4]
    best = min(best, time.process_time() - begun)
# What the estimate says of a second motion: the same columns of its regressor.
places = []
for column in W_b.T:
    gaps = np.abs(W - column[:, None]).max(axis=0)
    places.append(int(np.argmin(gaps)))
    assert gaps[places[-1]] < 1e-9
there = columns(given["q_other"], given["v_other"], given["vdot_other"])[:, places] @ b
out = {"time": best, "count": len(b), "tau": there.reshape(model.nv, -1).T.tolist()}
json.dump(out, sys.stdout)
