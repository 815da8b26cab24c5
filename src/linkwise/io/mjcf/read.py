"""How does an MJCF file become a mechanism? One stage a line, in `_read`."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from linkwise.errors import LinkwiseError, MissingExtraError, ModelError, ParseError
from linkwise.io.mjcf.actuator import Actuators
from linkwise.io.mjcf.assemble import Assembly, Base
from linkwise.io.mjcf.attach import expand_attached
from linkwise.io.mjcf.compiler import Compiler, Options, read_compiler, read_defaults, read_options
from linkwise.io.mjcf.contact import read_contact_rules, report_contacts
from linkwise.io.mjcf.equality import Equalities, read_paths, read_tendons
from linkwise.io.mjcf.geom import Geom, read_assets, read_geom, stem
from linkwise.io.mjcf.ignored import (
    SECTION_AFFECTS,
    WHOLE_SECTIONS,
    Ignored,
    ignore,
)
from linkwise.io.mjcf.include import Files, expand_includes
from linkwise.io.mjcf.inertia import Inference, set_total_mass
from linkwise.io.mjcf.joint import (
    VELOCITIES,
    Joint,
    mass_matrix,
    read_joint,
    read_rotors,
    resolve_springdampers,
)
from linkwise.io.mjcf.tree import BodyRecord, Names, read_tree
from linkwise.io.report import Reporter, report_drives
from linkwise.io.xml import Element, number, shorten
from linkwise.model.builder import Builder
from linkwise.model.hinges import Hinge
from linkwise.model.mechanism import Mechanism
from linkwise.model.report import LoadReport
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose


def read_mjcf(
    root: Element,
    path: str | os.PathLike[str],
    reporter: Reporter,
    *,
    base: Base = "auto",
    keep_fixed: bool = False,
    roots: Sequence[str | os.PathLike[str]] = (),
) -> Mechanism:
    """The mechanism of an MJCF file. Coordinates keep the meaning they have in MuJoCo.

    Raises:
        ParseError: The file is broken, or has a feature on which tree or masses depend and that
            is not supported.
        ModelError: `base` is none of the above.
        MissingExtraError: The inertia of a mesh needs its convex hull, and SciPy is missing.
    """
    if not isinstance(base, Hinge) and base not in ("auto", "fixed", "free"):
        raise ModelError(f"base is {base!r}; allowed are 'auto', 'fixed', 'free' or a Hinge")
    with np.errstate(all="ignore"):  # overflow is checked where it can occur
        try:
            mech = _read(root, path, reporter, base, roots)
            return mech if keep_fixed else mech.merge_locked()
        except (ParseError, MissingExtraError):
            raise
        except LinkwiseError as problem:
            raise ParseError(str(problem), file=os.fspath(path)) from problem


def _read(
    root: Element,
    path: str | os.PathLike[str],
    reporter: Reporter,
    base: Base,
    roots: Sequence[str | os.PathLike[str]],
) -> Mechanism:
    files = Files.of(path, roots)
    ignored = Ignored(reporter)
    root = expand_includes(root, files)
    attached = expand_attached(root, files, reporter, ignored)
    ignored.check(root)
    compiler = attached.within(read_compiler(root, reporter, ignored))
    options = read_options(root, reporter, ignored)
    defaults = read_defaults(root, reporter, ignored, attached.mains)
    assets = read_assets(root, defaults, files, compiler, reporter, ignored)
    records = read_tree(root, defaults, compiler, reporter, ignored)
    joints = _read_joints(records, compiler, options, reporter)
    geoms = [
        [read_geom(part.element, part.frame, compiler, assets) for part in record.geoms]
        for record in records
    ]
    inertias = _read_inertias(records, geoms, compiler, reporter)
    poses = _world_poses(records)
    tendons = read_tendons(root, defaults, reporter, ignored)
    by_name = {joint.name: joint for group in joints for joint in group}
    read_rotors(root, defaults, options, by_name, reporter)
    resolve_springdampers(records, joints, inertias, poses, options)
    report_drives(((j.element, j.name, j.hinge, j.drive) for x in joints for j in x), reporter)
    rules = read_contact_rules(root, defaults, records, options, reporter, ignored)
    report_contacts(records, geoms, rules, reporter)
    model = Assembly(records, joints, geoms, inertias, compiler, assets, reporter)
    builder = Builder(root.attrib.get("model") or stem(os.fspath(path)), gravity=options.gravity)
    model.fill(builder, base)
    equalities = Equalities(
        builder,
        reporter,
        {record.name: pose for record, pose in zip(records, poses, strict=True)},
        model.sites,
        model.hinges,
        tendons,
        model.taken,
    )
    equalities.read(root, defaults, ignored, options.equality)

    def mobility(pulled: Sequence[tuple[str, float]]) -> float:
        """c* M⁻¹ c in the pose that the file describes."""
        each = [j for group in joints for j in group for _ in range(VELOCITIES[j.kind])]
        c, gears = np.zeros(len(each)), dict(pulled)
        for i, joint in enumerate(each):
            c[i] = gears.get(joint.name, 0.0)
        return float(c @ np.linalg.solve(mass_matrix(records, joints, inertias, poses), c))

    motors = Actuators(
        compiler,
        defaults,
        by_name,
        tendons,
        read_paths(root),
        model.sites,
        mobility,
        reporter,
        ignored,
    )
    builder.actuator(*motors.read(root))
    _report_sections(root, reporter)
    ignored.flush()
    report = _in_file_order(reporter.report())
    carried = [(x.name, number(x.element, "gravcomp", 0.0)) for x in records[1:]]
    carried = [x for x in carried if x[1] != 0.0]
    return builder.build(load_report=report, contact_rules=rules, gravity_compensation=carried)


def _in_file_order(report: LoadReport) -> LoadReport:
    """Items of the main file first, then those of included files, each by line."""
    items = sorted(report.items, key=lambda i: (i.file != report.source, i.file, i.line or 0))
    return LoadReport(report.source, tuple(items))


def _read_joints(
    records: Sequence[BodyRecord], compiler: Compiler, options: Options, reporter: Reporter
) -> list[list[Joint]]:
    """Joints of each body, in order; one without a name is called `body:i`."""
    joints: list[list[Joint]] = []
    names = Names()
    for record in records:
        group: list[Joint] = []
        for i, part in enumerate(record.joints):
            if part.name in names:
                raise part.element.error(f"the joint name '{shorten(part.name)}' is used twice")
            name = names.fresh(part.name or f"{record.name}:{i}")
            joint = read_joint(part.element, name, part.frame, compiler, options, reporter)
            if joint.kind == "free" and (record.parent != 0 or len(record.joints) > 1):
                raise part.element.error(
                    "a free joint has to be the only joint of a body on the world"
                )
            group.append(joint)
        joints.append(group)
    return joints


def _read_inertias(
    records: Sequence[BodyRecord],
    geoms: Sequence[list[Geom]],
    compiler: Compiler,
    reporter: Reporter,
) -> list[SpatialInertia]:
    inference = Inference(compiler, reporter)
    inertias = [SpatialInertia.zero()]
    for record, group in zip(records[1:], geoms[1:], strict=True):
        inertias.append(inference.body(record, group))
    if compiler.settotalmass > 0.0:
        inertias = set_total_mass(inertias, compiler.settotalmass)
    return inertias


def _world_poses(records: Sequence[BodyRecord]) -> list[Pose]:
    """World pose of each body at the configuration the file describes."""
    poses: list[Pose] = []
    for record in records:
        poses.append(record.pose if record.parent < 0 else poses[record.parent] @ record.pose)
        if not np.isfinite(poses[-1].p).all():
            raise record.element.error("the position exceeds the range of numbers")
    return poses


def _report_sections(root: Element, reporter: Reporter) -> None:
    used = {"compiler", "option", "default", "asset", "worldbody", "contact"}
    used |= {"equality", "tendon", "actuator"}
    for section in root.children:
        if section.tag in ("asset", "equality", "tendon", "actuator"):
            for attr in section.attrib:
                reporter.note(section, "ignored", f"unknown attribute '{attr}'", "motion")
        if section.tag in WHOLE_SECTIONS:
            ignore(reporter, section, WHOLE_SECTIONS[section.tag])
        elif section.tag in SECTION_AFFECTS:
            for child in section.children:
                ignore(reporter, child, SECTION_AFFECTS[section.tag])
        elif section.tag == "deformable":
            for child in section.children:
                if child.tag != "skin":
                    raise child.error("deformable objects are not supported; the model needs them")
                ignore(reporter, child, "appearance")
        elif section.tag not in used:
            reporter.note(section, "ignored", "unknown section", "motion")
