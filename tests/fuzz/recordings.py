"""Damaged recordings: a load gives the channels to the last bit, or an error of our own tree."""

from __future__ import annotations

import io
import json
import random
import re
import zipfile
from functools import cache
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise.simulation import Channel, Event, Recording
from linkwise.simulation.files.content import content_of
from linkwise.simulation.files.load import format_of
from tests.fuzz.damage import damaged

FORMATS = ("csv", "npz", "parquet", "h5")


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
def whole(suffix: str) -> bytes:
    """The file of that recording."""
    kind = format_of(Path(f"x.{suffix}"), "")
    return b"".join(kind.encoded(content_of(recording())))


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


def edited_header(rng: random.Random, data: bytes) -> bytes:
    """A number or a word of the header of a CSV is another one: well-formed, but not as saved."""
    places = list(re.finditer(rb'(?<=": )(-?\d[\d.e+-]*|"[^"]*"|null|\[)', data.split(b"\n")[0]))
    place = rng.choice(places)
    new = rng.choice(
        [b"0", b"-1", b"1e400", b"99999999999", b"null", b'"x"', b"[]", b"{}", b"true"]
    )
    return data[: place.start()] + new + data[place.end() :]


def edited_archive(rng: random.Random, data: bytes) -> bytes:
    """Members of an NPZ change places, get lost, or have other heads; all CRCs are right."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    names = list(members)
    a, b = rng.sample(names, 2)
    what = rng.randrange(5)
    if what == 0:
        members[a], members[b] = members[b], members[a]
    elif what == 1:
        del members[a]
    elif what == 2:
        shape = rng.choice([b"(1000000000000,)", b"(0,)", b"(24, 24)", b"(-1,)", b"()"])
        members[a] = re.sub(rb"\([^)]*\)", shape, members[a], count=1)
    elif what == 3:
        members[a] = members[a].replace(b"<f8", rng.choice([b"<i8", b">f8", b"<c8", b"|O8"]), 1)
    else:
        members[a] = damaged(rng, members[a])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_BZIP2])) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def made(number: int) -> tuple[str, bytes]:
    """The suffix and the bytes of one case."""
    rng = random.Random(number)
    suffix = rng.choice(FORMATS)
    data = whole(suffix)
    special = {"csv": edited_header, "npz": edited_archive}.get(suffix)
    if special is not None and rng.random() < 0.3:
        return suffix, special(rng, data)
    return suffix, damaged(rng, data)


def use(number: int, folder: Path) -> str:
    """Load the file of a case, with and without its mechanism, checked and unchecked."""
    suffix, data = made(number)
    path = folder / f"case.{suffix}"
    path.write_bytes(data)
    mech = recording().mech if number % 3 == 0 else None
    try:
        found = facts(lw.load_recording(path, mech))
    finally:
        if number % 5 == 0:  # as it is: any numbers, but no surprise
            try:
                lw.load_recording(path, verify=False)
            except lw.LinkwiseError as error:
                assert str(path) in str(error), f"the file is not named: {error}"
    if found != channels():
        raise ArithmeticError("other numbers were loaded, and nothing was said")
    return "as saved"


def describe(number: int) -> str:
    """What a case is, for its report."""
    suffix, data = made(number)
    return json.dumps({"suffix": suffix, "bytes": len(data), "whole": len(whole(suffix))})
