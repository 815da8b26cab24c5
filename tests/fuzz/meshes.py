"""Mutated mesh files: a mass and an inertia that a body can have, or an error of our own tree.

Each is read as the mesh of a body in MJCF, in every way in which its inertia can be meant, and as
the viewer reads it.
"""

from __future__ import annotations

import random
import re
import struct
from functools import cache
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise.io.mjcf.mesh_file import read_mesh_file
from linkwise.model.geometry import Geometry
from linkwise.viewer.mesh_file import MeshFiles
from tests.fuzz import models
from tests.fuzz.damage import damaged

KINDS = ("stl", "text.stl", "obj", "msh", "dae")
MODES = ("legacy", "exact", "convex", "shell")
WORDS = (
    *(b"nan", b"inf", b"-inf", b"1e999", b"0", b"-1", b"-9", b"99999999999999999999", b"1e38"),
    *(b"1e-320", b"1_0", b"0x1", b"", b"/", b"1//", b"2147483648", b"-2147483649", b"\xff\xfe"),
    *(b"9" * 5000, b"f", b"v", b"o", b"g", b"1e300"),
)


def _box() -> tuple[np.ndarray, np.ndarray]:
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 2) for z in (0, 3)], np.float32)
    quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    return corners, np.array(quads)


@cache
def seed(kind: str) -> bytes:
    """A box of 1 x 2 x 3 m."""
    corners, quads = _box()
    triangles = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    if kind == "stl":
        facets = [struct.pack("<12fH", 0, 0, 0, *corners[t].ravel(), 0) for t in triangles]
        return bytes(80) + struct.pack("<I", len(facets)) + b"".join(facets)
    if kind == "text.stl":
        facets = [
            "facet normal 0 0 0\n outer loop\n"
            + "".join(f"  vertex {x} {y} {z}\n" for x, y, z in corners[t])
            + " endloop\nendfacet\n"
            for t in triangles
        ]
        return ("solid box\n" + "".join(facets) + "endsolid box\n").encode()
    if kind == "obj":
        lines = ["# a box and more", "o box", *(f"v {x} {y} {z}" for x, y, z in corners)]
        lines += ["vt 0 0", "vn 0 0 1"]
        lines += [f"f {a + 1}/1/1 {b + 1}//1 {c + 1} {d - 8}" for a, b, c, d in quads]
        return "\n".join([*lines, "o second", "f 1 2 3 5 7", ""]).encode()
    if kind == "msh":
        head = struct.pack("<4i", len(corners), 0, 0, len(triangles))
        return head + corners.tobytes() + triangles.astype("<i4").tobytes()
    numbers = " ".join(str(x) for x in corners.ravel())
    index = " ".join(str(x) for x in triangles.ravel())
    return f"""<?xml version="1.0"?><COLLADA
xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit meter="1"/><up_axis>Z_UP</up_axis></asset>
<library_geometries><geometry id="g"><mesh><source id="p"><float_array id="a" count="24">{numbers}
</float_array><technique_common><accessor source="#a" count="8" stride="3">
<param name="X" type="float"/><param name="Y" type="float"/><param name="Z" type="float"/>
</accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices><triangles count="12">
<input semantic="VERTEX" source="#v" offset="0"/><p>{index}</p></triangles></mesh></geometry>
</library_geometries><library_visual_scenes><visual_scene id="s"><node><matrix>1 0 0 0 0 1 0 0 0 0 1
0 0 0 0 1</matrix><instance_geometry url="#g"/></node></visual_scene></library_visual_scenes><scene>
<instance_visual_scene url="#s"/></scene></COLLADA>""".encode()


def other_words(rng: random.Random, data: bytes) -> bytes:
    """Some numbers of a text are others."""
    for _ in range(rng.choice([1, 1, 2, 5])):
        places = list(re.finditer(rb"[^\s<>=\"/]+", data))
        if places:
            place = rng.choice(places)
            data = data[: place.start()] + rng.choice(WORDS) + data[place.end() :]
    return data


def other_counts(rng: random.Random, data: bytes) -> bytes:
    """A count or an index of a binary file is another."""
    value = rng.choice([0, 1, 2**31 - 1, 2**32 - 1, 10**6, rng.randrange(2**32)])
    at = rng.choice([0, 4, 8, 12, 80, 4 * rng.randrange(max(1, len(data) // 4))])
    return data[:at] + struct.pack("<I", value) + data[at + 4 :]


def many(rng: random.Random, data: bytes) -> bytes:
    """One face of very many corners, or very many faces."""
    if rng.random() < 0.5:
        return data + b"f " + b"1 2 3 " * rng.choice([10, 50, 2000]) + b"\n"
    return data + b"f 1 2 3 4\n" * rng.choice([100, 3000])


def made(number: int) -> tuple[str, bytes]:
    """The kind and the bytes of one case."""
    rng = random.Random(number)
    kind = rng.choice(KINDS)
    data = seed(kind)
    text = kind in ("text.stl", "obj")
    for _ in range(rng.choice([1, 1, 2])):
        roll = rng.random()
        if roll < 0.1 and kind == "obj":
            data = many(rng, data)
        elif roll < 0.7 and kind == "dae":
            data = rng.choice(models.CAREFUL)(rng, data)
        elif roll < 0.6:
            data = (other_words if text else other_counts)(rng, data)
        else:
            data = damaged(rng, data)
    return kind, data


def use(number: int, folder: Path) -> str:
    """Read the mesh of a case in all ways."""
    kind, data = made(number)
    path = folder / f"case.{kind}"
    path.write_bytes(data)
    files = MeshFiles(str(folder / "model.xml"), most=2000)
    shown = files.load(Geometry("", "mesh", (), lw.Pose.identity(), file=path.name))
    if not shown and path.name not in files.missing:
        raise ArithmeticError("the viewer shows nothing and says nothing")
    if kind == "dae":
        return "shown" if shown else "not shown"
    result = read_mesh_file(str(path))
    if not np.isfinite(result.vertices).all():
        raise ArithmeticError("a vertex is not finite and nothing was said")
    mode = MODES[number % len(MODES)]
    model = folder / "model.xml"
    model.write_text(
        f'<mujoco><asset><mesh name="m" file="{path.name}" inertia="{mode}"/></asset><worldbody>'
        '<body><freejoint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    )
    mech = lw.load(model)
    inertia = mech.inertias
    if not (np.isfinite(inertia.mass).all() and np.isfinite(inertia.J).all()):
        raise ArithmeticError("an inertia is not finite and nothing was said")
    if not mech.total_mass > 0.0:
        raise ArithmeticError("a mass is not positive and nothing was said")
    return "loaded"
