"""Mutated URDF and MJCF files: a case loads one and, if it loads, asks what a user would ask next.

Findings, poses, centre of mass, both formats saved and loaded again: all numbers are finite.
"""

from __future__ import annotations

import random
import re
from functools import cache
from importlib import metadata
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise.errors import LinkwiseError
from tests.fuzz.damage import Damage

SEEDS = Path(__file__).parent / "seeds"

HOSTILE = [
    *(
        "nan",
        "inf",
        "-inf",
        "1e999",
        "-1",
        "0",
        "1e308",
        "-1e308",
        "1e-320",
        "1_0",
        "0x10",
        "",
        " ",
    ),
    *("1 2", "1 2 3 4 5 6 7 8 9", "../../../../etc/passwd", "/etc/passwd", "file:///etc/passwd"),
    *("package://../../x.stl", "a" * 5000, "١٢٣", "−1", "\u0000x", "&lt;", "%s%n", "true", "world"),
    *(
        "9" * 400,
        "1 " * 4000,
        "none",
        "mesh",
        "free",
        "ball",
        "fixed",
        "floating",
        "planar",
        "\ud7ff",
    ),
]
TAGS = [
    *("link", "joint", "body", "geom", "inertial", "inertia", "mass", "origin", "axis", "limit"),
    *("mimic", "parent", "child", "default", "compiler", "include", "equality", "connect", "weld"),
    *("worldbody", "site", "freejoint", "frame", "replicate", "attach", "mesh", "asset", "robot"),
    *("mujoco", "transmission", "composite", "flexcomp", "tendon", "keyframe", "option", "x"),
]
ATTRIBUTES = [
    *("name", "link", "joint", "type", "xyz", "rpy", "value", "mass", "pos", "quat", "euler"),
    *("fromto", "size", "axis", "range", "class", "childclass", "file", "mesh", "body1", "body2"),
    *("joint1", "joint2", "anchor", "polycoef", "ixx", "ixy", "diaginertia", "fullinertia"),
    *("density", "angle", "eulerseq", "ref", "lower", "upper", "multiplier", "offset", "armature"),
]


# -------------------------------------------------------------------------------- mutations


def flip_bytes(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice([1, 2, 8, 50])):
        if out:
            out[rng.randrange(len(out))] = rng.randrange(256)
    return bytes(out)


def cut(rng: random.Random, data: bytes) -> bytes:
    a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[:a] if rng.random() < 0.4 else data[:a] + data[b:]


def repeat(rng: random.Random, data: bytes) -> bytes:
    a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[:b] + data[a:b][:20000] * rng.choice([1, 2, 5]) + data[b:]


def hostile_value(rng: random.Random, data: bytes) -> bytes:
    places = list(re.finditer(rb'="([^"]*)"', data))
    for _ in range(rng.choice([1, 1, 2, 5])):
        if places:
            place = rng.choice(places)
            new = rng.choice(HOSTILE).encode("utf-8", "surrogatepass")
            data = data[: place.start(1)] + new + data[place.end(1) :]
            places = list(re.finditer(rb'="([^"]*)"', data))
    return data


def other_number(rng: random.Random, data: bytes) -> bytes:
    places = list(re.finditer(rb"-?\d+\.?\d*(?:[eE][-+]?\d+)?", data))
    if not places:
        return data
    place = rng.choice(places)
    value = rng.choice(
        [float(place.group()) * -1, 0.0, rng.gauss(0, 1), 10.0 ** rng.uniform(-320, 308), 1e17]
    )
    return data[: place.start()] + repr(value).encode() + data[place.end() :]


def exchange_values(rng: random.Random, data: bytes) -> bytes:
    """Two attribute values change places: names meet numbers, children meet parents."""
    places = list(re.finditer(rb'="([^"]*)"', data))
    if len(places) < 2:
        return data
    a, b = sorted(rng.sample(places, 2), key=lambda m: m.start())
    middle = data[a.end(1) : b.start(1)]
    return data[: a.start(1)] + b.group(1) + middle + a.group(1) + data[b.end(1) :]


def rename(rng: random.Random, data: bytes) -> bytes:
    pattern, names = rng.choice([(rb"</?([\w.:-]+)", TAGS), (rb'\s([\w.:-]+)="', ATTRIBUTES)])
    places = list(re.finditer(pattern, data))
    if not places:
        return data
    place = rng.choice(places)
    return data[: place.start(1)] + rng.choice(names).encode() + data[place.end(1) :]


def move_element(rng: random.Random, data: bytes) -> bytes:
    """An element without children is copied or moved to some other place."""
    places = list(re.finditer(rb"<[\w.:-]+[^<>]*/>", data))
    gaps = [m.end() for m in re.finditer(rb">", data)]
    if not places or not gaps:
        return data
    place, to = rng.choice(places), rng.choice(gaps)
    if rng.random() < 0.5:
        return data[:to] + place.group() + data[to:]
    return data[: place.start()] + data[place.end() :]


def new_attribute(rng: random.Random, data: bytes) -> bytes:
    places = list(re.finditer(rb"<[\w.:-]+", data))
    if not places:
        return data
    at = rng.choice(places).end()
    text = f' {rng.choice(ATTRIBUTES)}="{rng.choice([*HOSTILE[:9], "0 0 1", "1", "a"])}"'
    return data[:at] + text.encode() + data[at:]


def nest(rng: random.Random, data: bytes) -> bytes:
    tag = rng.choice(TAGS).encode()
    depth = rng.choice([3, 150, 1000, 30000])
    at = rng.choice([m.end() for m in re.finditer(rb">", data)] or [0])
    return data[:at] + b"<" + tag + b">" + (b"<%s>" % tag) * depth + data[at:]


def doctype(rng: random.Random, data: bytes) -> bytes:
    bomb = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))
    head = rng.choice(
        [
            f'<!DOCTYPE r [<!ENTITY l0 "ha">{bomb}]>',
            '<!DOCTYPE r [<!ENTITY e SYSTEM "file:///etc/passwd">]>',
            '<!DOCTYPE r SYSTEM "http://127.0.0.1:9/x.dtd">',
            '<!DOCTYPE r [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]>',
            "<!DOCTYPE r>",
        ]
    )
    body = re.sub(rb"<\?xml[^>]*\?>", b"", data)
    use = rng.choice([b"&l11;", b"&e;", b"&undefined;", b""])
    at = rng.choice([m.end() for m in re.finditer(rb">", body)] or [0])
    return head.encode() + body[:at] + use + body[at:]


def encoding(rng: random.Random, data: bytes) -> bytes:
    body = re.sub(rb"<\?xml[^>]*\?>", b"", data)
    name = rng.choice(["utf-16", "latin-1", "utf-7", "ebcdic-xml", "UTF-8", "cp037", "\x00"])
    mixed = rng.choice([body, body.decode("latin-1").encode("utf-16"), b"\xff\xfe" + body])
    return f'<?xml version="1.0" encoding="{name}"?>'.encode() + mixed


CAREFUL: tuple[Damage, ...] = (
    *(hostile_value, other_number, exchange_values, rename, move_element, new_attribute),
)
"""After which XML is XML still."""

MUTATIONS: tuple[Damage, ...] = (flip_bytes, cut, repeat, nest, doctype, encoding, *CAREFUL * 3)


@cache
def seeds() -> tuple[bytes, ...]:
    """Our own small files, and small ones of the public packages where those are installed."""
    files = sorted(SEEDS.glob("*"))
    expected = {
        "example-robot-data": ("panda.urdf", "solo12.urdf", "double_pendulum.urdf"),
        "gymnasium": ("ant.xml", "humanoid.xml", "reacher.xml"),
        "dm_control": ("quadruped.xml", "walker.xml", "stacker.xml"),
    }
    for package, names in expected.items():
        try:
            listed = metadata.files(package) or []
        except metadata.PackageNotFoundError:
            continue
        files += [Path(str(f.locate())) for f in listed if f.name in names]
    return tuple(f.read_bytes() for f in files if f.is_file() and f.stat().st_size < 60_000)


def made(number: int) -> bytes:
    """The file of one case: the same for the same number and sources."""
    rng = random.Random(number)
    data = rng.choice(seeds())
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        data = rng.choice(MUTATIONS)(rng, data)
    return data


def use(number: int, folder: Path) -> str:
    """Load the file of a case, and do what a user would do next."""
    path = folder / "case.xml"
    path.write_bytes(made(number))
    mech = lw.load(path)
    mech.validate()
    q = mech.random(0)
    if not np.isfinite(mech.poses(q).matrix).all():
        raise ArithmeticError("a pose is not finite and nothing was said")
    if mech.total_mass > 0 and not np.isfinite(mech.center_of_mass(q)).all():
        raise ArithmeticError("the centre of mass is not finite and nothing was said")
    for ending in ("urdf", "xml"):
        try:
            lw.save(mech, path.with_name(f"again.{ending}"))
        except LinkwiseError:
            continue
        lw.load(path.with_name(f"again.{ending}"))
    return "loaded"
