"""Fuzzer of the model readers: mutated URDF and MJCF files, none may surprise.

A case loads a mutated file and, if it loads, asks what a user would ask next: findings, poses,
centre of mass, both formats saved. Allowed are a result with finite numbers and an error of our own
tree. Anything else (another exception, a NaN, a case slower than two seconds) is a failure, printed
with the number that reproduces it:

    python tests/fuzz/models.py --cases 20000
    python tests/fuzz/models.py --only 1234        the file of that case, and its traceback
"""

from __future__ import annotations

import argparse
import random
import re
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise.errors import LinkwiseError

SLOW = 2.0
"""No case may take longer [s]."""

HANG = 20
"""After this long a case is cut off [s]."""

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


MUTATIONS: list[Callable[[random.Random, bytes], bytes]] = [
    *(flip_bytes, cut, repeat, nest, doctype, encoding),
    *(hostile_value, other_number, exchange_values, rename, move_element, new_attribute) * 3,
]


def seeds() -> list[bytes]:
    """Our own small files, and small ones of the public packages where those are installed."""
    files = sorted(SEEDS.glob("*"))
    wanted = {
        "example-robot-data": ("panda.urdf", "solo12.urdf", "double_pendulum.urdf"),
        "gymnasium": ("ant.xml", "humanoid.xml", "reacher.xml"),
        "dm_control": ("quadruped.xml", "walker.xml", "stacker.xml"),
    }
    for package, names in wanted.items():
        try:
            listed = metadata.files(package) or []
        except metadata.PackageNotFoundError:
            continue
        files += [Path(str(f.locate())) for f in listed if f.name in names]
    return [f.read_bytes() for f in files if f.is_file() and f.stat().st_size < 60_000]


def mutated(number: int, sources: list[bytes]) -> bytes:
    """The file of one case: the same for the same number and sources."""
    rng = random.Random(number)
    data = rng.choice(sources)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        data = rng.choice(MUTATIONS)(rng, data)
    return data


# -------------------------------------------------------------------------------------- run


@dataclass
class Outcome:
    """What one case did: its verdict, how long it took and what was wrong, if anything."""

    number: int
    verdict: str
    seconds: float
    trouble: str = ""


def use(path: Path) -> str:
    """Load a file and do what a user would do next."""
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


def run_case(number: int, sources: list[bytes], folder: Path) -> Outcome:
    path = folder / "case.xml"
    path.write_bytes(mutated(number, sources))
    verdict, trouble = "", ""

    def too_long(*_: object) -> None:
        raise TimeoutError(f"still running after {HANG} s")

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(HANG)
    started = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a NumPy warning is an overflow nobody looked at
            warnings.filterwarnings("ignore", "'again.* does not move like")  # said by `save`
            verdict = use(path)
    except LinkwiseError as error:
        verdict = type(error).__name__
        if not str(error).strip():
            trouble = "an error without a message"
    except BaseException:
        verdict, trouble = "FAILED", traceback.format_exc(limit=-12)
    finally:
        signal.alarm(0)
    seconds = time.perf_counter() - started
    if seconds > SLOW and not trouble:
        trouble = f"took {seconds:.1f} s"
    return Outcome(number, verdict, seconds, trouble)


def run_range(first: int, count: int) -> list[Outcome]:
    """Cases first ... first + count - 1, in one process."""
    sources = seeds()
    with tempfile.TemporaryDirectory() as folder:
        return [run_case(first + i, sources, Path(folder)) for i in range(count)]


def main() -> int:
    """Run many cases over the cores and say what was seen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", type=int, help="one case: print its file and what happens")
    options = parser.parse_args()
    if options.only is not None:
        sys.stdout.buffer.write(mutated(options.only, seeds()) + b"\n")
        (outcome,) = run_range(options.only, 1)
        print(outcome.verdict, f"{outcome.seconds:.3f} s", outcome.trouble, sep="\n")
        return 1 if outcome.trouble else 0
    started, chunk = time.perf_counter(), 250
    starts = range(options.first, options.first + options.cases, chunk)
    sizes = [min(chunk, options.first + options.cases - s) for s in starts]
    outcomes = list[Outcome]()
    with ProcessPoolExecutor(options.workers) as pool:
        for done in pool.map(run_range, starts, sizes):
            outcomes += done
            print(f"\r{len(outcomes)} of {options.cases} cases", end="", file=sys.stderr)
    print(file=sys.stderr)
    failures = [o for o in outcomes if o.trouble]
    for failure in failures[:20]:
        print(f"case {failure.number}: {failure.trouble}")
    counts = Counter(o.verdict for o in outcomes)
    slowest = max(outcomes, key=lambda o: o.seconds)
    print(f"{len(outcomes)} cases in {time.perf_counter() - started:.0f} s: {dict(counts)}")
    print(f"slowest: case {slowest.number}, {slowest.seconds:.2f} s; failures: {len(failures)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
