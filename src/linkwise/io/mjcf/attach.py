"""Which parts of other files do the `<attach>` elements of an MJCF file bring?

    <asset>  <model name="foot" file="foot.xml"/>  </asset>
    <body>   <attach model="foot" body="sole" prefix="left_"/>  </body>

The body and all below it take the place of the element; without `body` everything in the world of
that file does. What refers to them in the other sections comes along. All names get the prefix,
default classes too, which keep what their file says. The settings of `<compiler>` belong to a file
(`Compiler.of`); its `<option>`s are left out, as in MuJoCo.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from linkwise.errors import ParseError, unknown_name
from linkwise.io.mjcf.compiler import MAIN, Compiler, read_compiler
from linkwise.io.mjcf.geom import stem
from linkwise.io.mjcf.ignored import Ignored
from linkwise.io.mjcf.include import MAX_ELEMENTS, MAX_INCLUDES, Files, expand_includes
from linkwise.io.report import Reporter
from linkwise.io.xml import MAX_DEPTH, Element, read_xml, required, shorten

OF_PARTS: Final = {
    **dict.fromkeys(("joint", "joint1", "joint2", "jointinparent"), "joint"),
    **dict.fromkeys(("site", "site1", "site2", "refsite", "slidersite"), "site"),
    **dict.fromkeys(("cranksite", "sidesite"), "site"),
    **dict.fromkeys(("geom", "geom1", "geom2"), "geom"),
    **dict.fromkeys(("body", "body1", "body2"), "body"),
    **dict.fromkeys(("tendon", "tendon1", "tendon2"), "tendon"),
}
"""Attributes that name a part of a model, and its kind."""

REFERENCES: Final = frozenset(
    (*OF_PARTS, *"name class childclass mesh material hfield texture actuator objname".split())
)
"""Attributes that hold a name."""

COPIED: Final = ("asset", "default", "contact", "equality", "tendon", "actuator", "sensor")
"""Sections of which an attached model brings what is needed."""

CHOSEN: Final = ("contact", "equality", "tendon", "actuator", "sensor")
"""Those whose elements come along only with the parts that they name."""


@dataclass(slots=True)
class Attached:
    """What attached models bring besides elements.

    Attributes:
        mains: Names of classes that take nothing from others: "main" of each model.
        compilers: Settings by file.
    """

    files: Files
    reporter: Reporter
    ignored: Ignored
    mains: set[str] = field(default_factory=lambda: {MAIN})
    compilers: dict[str, Compiler] = field(default_factory=lambda: {})
    count: int = 0
    size: int = 0

    def within(self, compiler: Compiler) -> Compiler:
        """The settings of the main file, which know those of others."""
        return replace(compiler, others=self.compilers)


def expand_attached(root: Element, files: Files, reporter: Reporter, ignored: Ignored) -> Attached:
    """Put attached models in place of each `<attach>`; the tree is changed in place.

    Raises:
        ParseError: A missing or escaping file, an unknown model or body, or too many of them.
    """
    attached = Attached(files, reporter, ignored)
    before = {root.file, *(x.file for x in root.walk())}
    attached.mains |= _expand(root, attached, (root.file,))
    for file in before & attached.compilers.keys():
        raise root.error(f"the file '{shorten(file)}' is both a part of the model and attached")
    return attached


def _expand(root: Element, attached: Attached, above: tuple[str, ...]) -> set[str]:
    """Expand a model, which the files `above` attach; the main classes of what it attaches."""
    mains, used = set[str](), set[str]()
    models = {
        x.attrib.get("name") or stem(x.attrib.get("file", "")): x
        for section in root.findall("asset")
        for x in section.findall("model")
    }
    for section in root.findall("worldbody"):
        stack = [section]
        while stack:
            parent = stack.pop()
            children = list[Element]()
            for child in parent.children:
                if child.tag == "attach":
                    parts, classes = _parts(child, root, models, attached, above)
                    children += parts
                    mains |= classes
                    used.add(child.attrib["model"])
                else:
                    children.append(child)
            stack.extend(x for x in children if x.tag in _PARENTS)
            parent.children = children
    for name in models.keys() - used:
        attached.reporter.note(models[name], "ignored", "no <attach> names it", "other")
    return mains


_PARENTS: Final = ("body", "frame", "replicate")


def _parts(
    element: Element,
    root: Element,
    models: dict[str, Element],
    attached: Attached,
    above: tuple[str, ...],
) -> tuple[list[Element], set[str]]:
    """What takes the place of an `<attach>`, and main classes; other sections go to the root."""
    if "frame" in element.attrib:
        raise element.error("the attribute 'frame' of an attached model is not supported")
    for attr in element.attrib:
        if attr not in ("model", "body", "prefix"):
            raise element.error(f"unknown attribute '{shorten(attr)}' of an attached model")
    name, prefix = required(element, "model"), element.attrib.get("prefix", "")
    if name not in models:
        raise element.error(str(unknown_name("model", name, models, owner="the assets")))
    model, mains = _model(models[name], attached, above)
    parts = [x for section in model.findall("worldbody") for x in section.children]
    chosen = element.attrib.get("body")
    if chosen is not None:
        bodies = {x.attrib.get("name"): x for part in parts for x in part.walk() if x.tag == "body"}
        if chosen not in bodies:
            known = [x for x in bodies if x]
            raise element.error(str(unknown_name("body", chosen, known, owner=f"model '{name}'")))
        parts = [bodies[chosen]]
    named = [x for part in parts for x in part.walk() if "name" in x.attrib]
    kept = {_kind(x) + x.attrib["name"] for x in named} | {"bodyworld"}
    sections = list[Element]()
    for section in model.children:
        if section.tag == "option":
            reason = "options of an attached model do not act, as in MuJoCo"
            attached.reporter.note(section, "ignored", reason, "motion")
        elif section.tag in COPIED:
            each = section.children
            if section.tag in CHOSEN and chosen is not None:
                each = _with_parts(section, kept, attached)
            sections.append(replace(section, children=each))
    main = prefix + MAIN
    mains = {main, *(prefix + x for x in mains)}
    for section in sections:
        _rename(section, prefix)
        _give_class(section, main)
    for part in parts:
        _rename(part, prefix)
    root.children += sections
    if chosen is not None:
        parts[0].attrib.setdefault("childclass", main)
        return parts, mains
    frame = {"childclass": main}
    return [Element("frame", frame, parts, "", element.line, element.file)], mains


def _kind(element: Element) -> str:
    return "joint" if element.tag == "freejoint" else element.tag


def _model(asset: Element, attached: Attached, above: tuple[str, ...]) -> tuple[Element, set[str]]:
    """The root of a new copy of a model, expanded, and the main classes of what it attaches."""
    name, files = required(asset, "file"), attached.files
    for attr in asset.attrib:
        if attr not in ("name", "file", "content_type"):
            raise asset.error(f"unknown attribute '{shorten(attr)}' of a model")
    path = files.find(asset, [(files.model_dir, name)])
    if path is None:
        raise asset.error(f"the model file '{shorten(name)}' does not exist; check the path")
    if path in above or len(above) > MAX_DEPTH:
        raise asset.error(f"the model '{shorten(name)}' attaches itself")
    attached.count += 1
    if attached.count > MAX_INCLUDES:
        raise asset.error(f"more than {MAX_INCLUDES} models are attached, the most allowed")
    try:
        root = expand_includes(read_xml(path), files)
    except ParseError as problem:
        problem.add_note(f"attached from {asset.file}:{asset.line}")
        raise
    attached.size += sum(1 for _ in root.walk())
    if attached.size > MAX_ELEMENTS:
        raise asset.error(f"attached models have more than {MAX_ELEMENTS} elements")
    compiler = read_compiler(root, attached.reporter, attached.ignored)
    if compiler.settotalmass > 0.0:
        raise asset.error("'settotalmass' of an attached model is not supported")
    for file in {x.file for x in root.walk()}:
        if attached.compilers.setdefault(file, compiler) != compiler:
            raise asset.error(f"the file '{shorten(file)}' is part of several models")
    return root, _expand(root, attached, (*above, path))


def _with_parts(section: Element, kept: set[str], attached: Attached) -> list[Element]:
    """The elements of a section all of whose parts are attached; tendons that are, are kept too."""
    result = list[Element]()
    for element in section.children:
        missing = [f"{a} '{x}'" for a, x in _named(element) if OF_PARTS[a] + x not in kept]
        if missing:
            reason = f"{shorten(missing[0])} is not attached"
            attached.reporter.note(element, "ignored", reason, "motion")
            continue
        result.append(element)
        if section.tag == "tendon" and "name" in element.attrib:
            kept.add("tendon" + element.attrib["name"])
    return result


def _named(element: Element) -> Iterator[tuple[str, str]]:
    for part in element.walk():
        yield from ((attr, x) for attr, x in part.attrib.items() if attr in OF_PARTS)


def _rename(top: Element, prefix: str) -> None:
    """Put the prefix before all names of a copy that belongs to nobody else."""
    for element in top.walk():
        if element.tag in ("mesh", "hfield") and "file" in element.attrib:
            element.attrib.setdefault("name", stem(element.attrib["file"].replace("\\", "/")))
        for attr in REFERENCES & element.attrib.keys():
            text = element.attrib[attr]
            if not (OF_PARTS.get(attr) == "body" and text == "world"):
                element.attrib[attr] = prefix + text


def _give_class(section: Element, main: str) -> None:
    """The main class of a model, where an element outside of bodies has none."""
    if section.tag == "default":
        section.attrib.setdefault("class", main)
    elif section.tag != "sensor":
        for element in section.children:
            if element.tag not in ("texture", "model", "exclude", "hfield", "skin"):
                element.attrib.setdefault("class", main)
