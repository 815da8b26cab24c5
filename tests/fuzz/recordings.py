"""Damaged recordings: a load gives the channels to the last bit, or an error of our own tree."""

from __future__ import annotations

import json
import random
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise.simulation import Channel, Event, Recording
from tests.fuzz.damage import damaged


@cache
def recording() -> Recording:
    """A short one with all that a recording can have."""
    mech = lw.models.pendulum(2)
    rng = np.random.default_rng(3)
    t = np.cumsum(rng.random(24))
    q, v = rng.normal(size=(24, 2)), rng.normal(size=(24, 2))
    extra = [
        Channel(
            "height", "m", "a probe", np.array([np.nan, np.inf, -0.0, 1e-308, *rng.random(20)])
        ),
        Channel("map", "", "more than a thousand numbers", np.round(rng.normal(size=(24, 50)), 1)),
    ]
    return Recording.of(
        mech, t, q, v, integrator="rk4", step=1e-3, channels=extra,
        events=[Event(float(t[3]), "contact", "foot", "touched", 2.5)], not_modelled=("wind",),
    )  # fmt: skip


@cache
def file_bytes() -> bytes:
    """The file of that recording."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.npz"
        recording().save(path)
        return path.read_bytes()


@cache
def channels() -> tuple[tuple[object, ...], ...]:
    """All that must come back."""
    return facts(recording())


def facts(rec: Recording) -> tuple[tuple[object, ...], ...]:
    listed = [
        (x.name, x.units, x.about, x.labels, x.values.shape, x.values.tobytes())
        for x in rec.channels.values()
    ]
    about = (rec.name, rec.t.tobytes(), rec.integrator, rec.step, rec.steps, str(rec.events))
    return (about, *listed)


def made(number: int) -> bytes:
    """The bytes of one case."""
    return damaged(random.Random(number), file_bytes())


def use(number: int, folder: Path) -> str:
    """Load the file of a case, with and without its mechanism."""
    path = folder / "case.npz"
    path.write_bytes(made(number))
    mech = recording().mech if number % 3 == 0 else None
    if facts(lw.load_recording(path, mech)) != channels():
        raise ArithmeticError("other numbers were loaded, and nothing was said")
    return "as saved"


def describe(number: int) -> str:
    """What a case is, for its report."""
    return json.dumps({"bytes": len(made(number)), "whole": len(file_bytes())})
