"""The chain: shared parts, linear memory, a hundred thousand links."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

from linkwise import models


def test_links_share_their_parts():
    bodies = models.chain(50).bodies
    assert len({id(body.hinge) for body in bodies}) == 2
    for part in ("inboard", "inertia", "drive"):
        assert len({id(getattr(body, part)) for body in bodies[1:]}) == 1, part


def test_neighbouring_pins_are_perpendicular():
    mech = models.chain(6, length=0.3)
    np.testing.assert_allclose(mech.pose(mech.neutral(), "tip").p, (1.8, 0.0, 0.0), atol=1e-14)
    for inner, outer in zip(mech.bodies, mech.bodies[1:], strict=False):
        assert np.dot(inner.hinge.axis, outer.hinge.axis) == 0.0


def memory(n: int) -> int:
    """Bytes that a chain of n links keeps."""
    gc.collect()
    tracemalloc.start()
    mech = models.chain(n)
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert mech.n_bodies == n
    return kept


@pytest.mark.prove
def test_memory_is_linear():
    small, large = memory(2_000), memory(8_000)
    assert large / small == pytest.approx(4.0, rel=0.15)
    assert large / 8_000 < 3_000  # bytes a link


@pytest.mark.nightly
@pytest.mark.prove
def test_a_hundred_thousand_links():
    mech = models.chain(100_000)
    assert mech.nv == mech.nq == 100_000
    assert mech.total_mass == pytest.approx(1e4, rel=1e-9)
    assert mech.bodies[-1].name == "link_100000" and mech.parent[-1] == 99_998
