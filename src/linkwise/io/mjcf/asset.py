"""Which meshes, height fields and colours may geoms refer to?"""

from __future__ import annotations

import os

from linkwise.io.mjcf.compiler import Compiler
from linkwise.io.mjcf.defaults import MAIN, Defaults
from linkwise.io.mjcf.geom import Assets
from linkwise.io.mjcf.ignored import ASSET_AFFECTS, Ignored, ignore
from linkwise.io.mjcf.mesh import read_meshes
from linkwise.io.mjcf.path import Files
from linkwise.io.report import Reporter
from linkwise.io.xml import Element, numbers


def read_assets(
    root: Element,
    defaults: Defaults,
    files: Files,
    compiler: Compiler,
    reporter: Reporter,
    ignored: Ignored,
) -> Assets:
    """Meshes, height fields and colours of the sections `<asset>`."""
    meshes: list[Element] = []
    hfields: dict[str, tuple[float, float, float]] = {}
    colours: dict[str, tuple[float, float, float, float]] = {}
    for section in root.findall("asset"):
        for element in section.children:
            name = element.attrib.get("name", "")
            if element.tag in ("mesh", "material"):
                ignored.check(element)
                merged = defaults.apply(element, MAIN)
                if element.tag == "mesh":
                    meshes.append(merged)
                elif "rgba" in merged.attrib and "texture" not in merged.attrib:
                    r, g, b, a = numbers(merged, "rgba", 4).tolist()
                    colours[name] = (r, g, b, a)
            elif element.tag == "hfield":
                ignored.check(element)
                x, y, top, bottom = numbers(element, "size", 4).tolist()
                if min(x, y, top, bottom) <= 0.0:
                    raise element.error("'size' of a height field takes 4 positive numbers")
                file = element.attrib.get("file", "").replace("\\", "/")
                # For its mass MuJoCo takes a box of half the elevation on top of the base.
                hfields[name or stem(file)] = (x, y, 0.25 * top + 0.5 * bottom)
            elif element.tag in ASSET_AFFECTS:
                ignore(reporter, element, ASSET_AFFECTS[element.tag])
            else:
                reporter.note(element, "ignored", "unknown kind of asset", "motion")
    return Assets(read_meshes(meshes, files, compiler, reporter), hfields, colours)


def stem(path: str) -> str:
    """Name of a file without its directory and suffix."""
    return os.path.splitext(os.path.basename(path))[0] or "mechanism"
