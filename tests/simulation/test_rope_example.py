"""A shorter motion of a shorter rope than that of examples/rope_two_arms.py."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw

EXAMPLE = Path(__file__).parents[2] / "examples" / "rope_two_arms.py"


@pytest.mark.prove
def test_rope_stays_in_both_hands() -> None:
    names = runpy.run_path(str(EXAMPLE))
    mech, q = names["cell"](70)
    rec = names["move"](mech, q, 0.3)
    assert np.abs(lw.loops.constraint_error(mech, rec.q)).max() < 1e-4
    sag = names["shape"](mech, rec.q[-1])[:, 2]
    assert sag[0] - sag.min() > 0.05
