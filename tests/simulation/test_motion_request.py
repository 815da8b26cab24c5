"""Kernels of motions are filed by their requests: other requests, other kernels."""

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.stepping.chance import Chance
from linkwise.codegen.stepping.processor import file_of
from linkwise.simulation import Ground, ground_contacts
from linkwise.simulation.episode import Episode, checked_stop
from linkwise.simulation.motion_request import MotionRequest
from linkwise.simulation.observation import checked_observations
from linkwise.simulation.rollout_kernel import motion_kernel


def robot():
    """A quadruped whose feet may touch the ground."""
    return lw.models.quadruped()


def plain(mech):
    return MotionRequest(mech, "implicit")


CHANGES = {
    "integrator": lambda mech: {"integrator": "euler"},
    "passive": lambda mech: {"passive": False},
    "itemsize": lambda mech: {"itemsize": 4},
    "parameters": lambda mech: {"parameters": ("gravity",)},
    "contacts": lambda mech: {"contacts": tuple(ground_contacts(mech, Ground(friction=0.5)))},
    "noise": lambda mech: {"episode": Episode((Chance("tau", mech.nv, 1, 1),))},
    "stop": lambda mech: {"episode": Episode((), checked_stop(mech, {"q": (-1.0, 1.0)}, 8))},
    "sweeps": lambda mech: {"sweeps": 7},
    "observed": lambda mech: {"observed": True},
    "observations": lambda mech: {"observations": checked_observations(mech, ("q",), itemsize=8)},
    "reverse": lambda mech: {"reverse": ("tau",)},
}


def test_equal_requests_have_one_file_and_others_have_their_own():
    mech = robot()
    keys = {name: file_of(replace(plain(mech), **make(mech))) for name, make in CHANGES.items()}
    assert None not in keys.values() and file_of(plain(mech)) not in keys.values()
    assert len(set(keys.values())) == len(CHANGES)
    assert file_of(plain(robot())) == file_of(plain(mech))
    assert file_of(plain(mech.with_gravity((0.0, 0.0, -3.7)))) != file_of(plain(mech))


def test_a_law_is_part_of_the_request():
    arm, hand = lw.models.seven_dof_arm(), lw.Task.position("hand")
    laws = [lw.control_law(arm, hand, kp=100.0, kv=20.0, compensate=x) for x in ("joints", "task")]
    keys = {file_of(MotionRequest(arm, law=law.kernel.request)) for law in laws}
    assert len({*keys, file_of(MotionRequest(arm))}) == 3 and None not in keys


def test_the_kernel_of_an_equal_request_is_the_same():
    mech = lw.models.pendulum(2)
    kernel = motion_kernel(MotionRequest(mech, "euler"))
    assert motion_kernel(MotionRequest(mech, "euler")) is kernel
    assert motion_kernel(MotionRequest(mech, "euler", passive=False)) is not kernel


@pytest.mark.parametrize("shape", [(2, 3), (1, 2, 2), ()])
def test_arrays_that_do_not_fit_a_kernel_are_refused(shape):
    mech = lw.models.pendulum(2)
    kernel = motion_kernel(MotionRequest(mech, "euler"))
    with pytest.raises(lw.errors.ShapeError, match="tau has shape"):
        kernel(np.zeros(2), np.zeros(2), {"tau": np.zeros(shape)}, step=1e-3, steps=5, every=1)
    with pytest.raises(lw.errors.ShapeError, match="batches differ"):
        kernel(
            np.zeros((3, 2)), np.zeros((2, 2)), {"tau": np.zeros(2)}, step=1e-3, steps=5, every=1
        )
