"""JPL 88-11, Part I: its groups of identities, and what its algorithms depend on."""

from dataclasses import replace

import numpy as np
import pytest

from linkwise_ledger import cases, entries
from linkwise_ledger.case import apart
from linkwise_ledger.jpl_88_11 import GROUPS
from linkwise_ledger.jpl_88_11.links import Links, body_axes, sliding
from linkwise_ledger.jpl_88_11.motion import pins
from linkwise_ledger.jpl_88_11.sweeps import fd1, fd3, fd4


def test_every_group_of_identities_has_entries() -> None:
    titles = [entry.title for entry in entries("jpl_88_11")]
    for group in GROUPS:
        assert any(title.startswith(f"{group}: ") for title in titles), group


def _fd(algorithm: str, links: Links) -> float:
    result = {"fd1": fd1, "fd3": fd3, "fd4": fd4}[algorithm](links)
    return apart(np.concatenate(result), np.concatenate(links.theta_ddot))


@pytest.mark.parametrize("algorithm", ["fd1", "fd3", "fd4"])
def test_algorithms_need_all_that_they_are_given(algorithm: str) -> None:
    # A loop that left a bias or the environment out would still look like forward dynamics.
    for case in cases():
        for links in (body_axes(case), sliding(case)):
            assert _fd(algorithm, links) < 1e-9
            for without in (
                replace(links, a=[0.0 * x for x in links.a]),
                replace(links, b=[0.0 * x for x in links.b]),
                replace(links, f_tip=0.0 * links.f_tip),
            ):
                assert _fd(algorithm, without) > 1e-6, case.name


def test_motion_is_that_of_the_joints() -> None:
    # The differences that all of section 2 is held against, against plain turns about the axes.
    for case in cases():
        x = pins(case)
        for k in range(x.n):
            relative = x.w[k] - x.up(x.w)[k]
            assert np.allclose(relative, x.h[k] * x.qdot[k], atol=1e-10)
            assert np.isclose(np.linalg.norm(x.h[k]), 1.0)
