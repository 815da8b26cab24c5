"""Loads every model file of some public packages and writes the table docs/evidence/corpus.md.

Each file either loads and agrees with an outside reference, or its row says why it is refused.

    python tools/corpus.py                       writes docs/evidence/corpus.md
    python tools/corpus.py --check               only prints the table; fails if a file disagrees
    python tools/corpus.py --menagerie FOLDER    with the robots of MuJoCo Menagerie in that folder

Menagerie is a repository, not a package: clone it, and give the folder by the option or in the
environment variable LINKWISE_MENAGERIE. Without it the page keeps the section it has.
A format is one `Corpus`: where its files are, and how one file is judged.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True)
class Row:
    """One file of the corpus.

    Attributes:
        format: "URDF" or "MJCF".
        file: Package and path of the file.
        dof: Degrees of freedom of the tree; None where it was refused.
        bodies: Moving bodies.
        mass: Their mass [kg].
        reported: Elements that the load report lists.
        verdict: "agrees", with the largest deviations, or the text of the error.
        good: Whether the row is as it should be: agreement, or a refusal that names the cause.
    """

    format: str
    file: str
    dof: int | None
    bodies: int | None
    mass: float | None
    reported: int | None
    verdict: str
    good: bool


@dataclass(frozen=True, slots=True)
class Corpus:
    """Files of one format and the judge of one file."""

    title: str
    versions: Callable[[], str]
    files: Callable[[], dict[str, str]]
    judge: Callable[[str, str], Row]


def find_urdf() -> dict[str, str]:
    """The URDF files of example-robot-data by a short name; none where it is not installed."""
    result: dict[str, str] = {}
    try:
        files = importlib.metadata.files("example-robot-data") or []
    except importlib.metadata.PackageNotFoundError:
        return result
    for file in files:
        path = str(file)
        if path.endswith(".urdf"):
            result[path.partition("/example-robot-data/robots/")[2] or path] = str(file.locate())
    return dict(sorted(result.items()))


def judge_urdf(name: str, path: str) -> Row:
    """Load a URDF, compare it with Pinocchio, save it and compare with what is read back."""
    from linkwise.errors import LinkwiseError
    from linkwise.io.load import load
    from linkwise.io.save import save
    from tests.io.round_trip import differences
    from tests.oracles.pinocchio_oracle import agreement

    try:
        mech = load(path)
    except LinkwiseError as error:
        reason = getattr(error, "reason", str(error))
        line = getattr(error, "line", None)
        return Row("URDF", name, None, None, None, None, f"refused, line {line}: {reason}", True)
    rows = agreement(mech, path)
    with tempfile.TemporaryDirectory() as folder:
        save(mech, Path(folder) / "saved.urdf")
        back = max(differences(mech, load(Path(folder) / "saved.urdf")).values())
    good = rows.dof[0] == rows.dof[1] and max(rows.worst, back) < TOLERANCE
    verdict = (
        f"{'agrees' if good else 'DISAGREES'}: mass {rows.mass:.0e}, centre of mass "
        f"{rows.com:.0e}, pose {rows.pose:.0e}, round trip {back:.0e}"
    )
    mass = float(mech.total_mass)
    return Row("URDF", name, mech.nv, mech.n_bodies, mass, len(mech.load_report), verdict, good)


def find_mjcf() -> dict[str, str]:
    """The MJCF files of gymnasium and dm_control: each .xml whose root element is <mujoco>."""
    result: dict[str, str] = {}
    for package in ("gymnasium", "dm_control"):
        try:
            files = importlib.metadata.files(package) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in files:
            if str(file).endswith(".xml"):
                path = str(file.locate())
                head = Path(path).read_text("utf-8", errors="replace")
                if re.match(r"(\s|<\?.*?\?>|<!--.*?-->)*<mujoco\b", head, re.DOTALL):
                    result[str(file)] = path
    return dict(sorted(result.items()))


def mjcf_roots(name: str, path: str) -> list[str]:
    """The package a file belongs to: some models take their meshes from a neighbour's folder."""
    package = name.partition("/")[0]
    return [path[: len(path) - len(name)] + package]


def judge_mjcf(name: str, path: str, roots: Sequence[str] | None = None) -> Row:
    """Load an MJCF, compare it with MuJoCo, save it and compare with what is read back."""
    from linkwise.errors import LinkwiseError
    from linkwise.io.load import load
    from linkwise.io.save import save
    from tests.io.round_trip import differences
    from tests.oracles.mujoco_inertia import AXES, ROUNDING
    from tests.oracles.mujoco_oracle import agreement, read_what_is_there

    try:
        mech = load(path, roots=mjcf_roots(name, path) if roots is None else roots)
    except LinkwiseError as error:
        reason, line = getattr(error, "reason", str(error)), getattr(error, "line", None)
        return Row("MJCF", name, None, None, None, None, f"refused, line {line}: {reason}", True)
    with tempfile.TemporaryDirectory() as folder:
        save(mech, Path(folder) / "saved.xml")
        back = max(differences(mech, load(Path(folder) / "saved.xml")).values())
    try:
        model, missing = read_what_is_there(path)
    except ValueError as error:
        good = back < TOLERANCE
        reason = " ".join(str(error).split())
        verdict = f"loads, round trip {back:.0e}; MuJoCo refuses it: {reason}"
    else:
        rows = agreement(mech, model)
        good = rows.dof[0] == rows.dof[1] and max(rows.worst, back) < TOLERANCE
        good = good and rows.inertia < ROUNDING and rows.axes < AXES
        verdict = (
            f"{'agrees' if good else 'DISAGREES'}: mass {rows.mass:.0e}, centre of mass "
            f"{rows.com:.0e}, pose {rows.pose:.0e}, inertias {rows.inertia:.0e}, tensors "
            f"{rows.axes:.0e}, round trip {back:.0e}"
        )
        if missing:
            verdict += f"; {len(missing)} mesh files are not there, which no inertia depends on"
    mass = float(mech.total_mass)
    return Row("MJCF", name, mech.nv, mech.n_bodies, mass, len(mech.load_report), verdict, good)


def version(package: str) -> str:
    """`package x.y.z` of an installed package."""
    return f"{package} {importlib.metadata.version(package)}"


URDF = Corpus(
    "URDF: example-robot-data, against Pinocchio",
    lambda: f"{version('example-robot-data')}, {version('pin')}",
    find_urdf,
    judge_urdf,
)

MJCF = Corpus(
    "MJCF: gymnasium and dm_control, against MuJoCo",
    lambda: f"{version('gymnasium')}, {version('dm_control')}, {version('mujoco')}",
    find_mjcf,
    judge_mjcf,
)

CORPORA: list[Corpus] = [URDF, MJCF]

MENAGERIE = "MJCF: MuJoCo Menagerie, against MuJoCo"


def menagerie(folder: str) -> Corpus:
    """The robots of MuJoCo Menagerie; scenes around them and fragments are left out."""
    root = Path(folder)

    def files() -> dict[str, str]:
        result: dict[str, str] = {}
        for path in sorted(root.glob("*/*.xml")):
            text = path.read_text("utf-8", errors="replace")
            if "scene" not in path.name and re.search(r"<worldbody\b", text):
                result[str(path.relative_to(root))] = str(path)
        return result

    def versions() -> str:
        request = ["git", "-C", folder, "log", "-1", "--format=commit %h"]
        done = subprocess.run(request, capture_output=True, text=True, check=False)
        commit = done.stdout.strip() or os.environ.get(
            "LINKWISE_MENAGERIE_COMMIT", "unknown commit"
        )
        return f"{commit}, {version('mujoco')}"

    def judge(name: str, path: str) -> Row:
        return judge_mjcf(name, path, roots=[folder])

    return Corpus(MENAGERIE, versions, files, judge)


def table(corpus: Corpus, rows: Iterable[Row]) -> str:
    """The section of one corpus in markdown."""
    listed = list(rows)
    agree = sum(row.verdict.startswith("agrees") for row in listed)
    refused = sum(row.dof is None for row in listed)
    alone = sum(row.good for row in listed) - agree - refused
    counts = [f"{agree} load and agree to {TOLERANCE:.0e}", f"{refused} are refused"]
    if alone:
        counts.append(f"{alone} load here and are refused by the reference")
    counts.append(f"{sum(not row.good for row in listed)} disagree")
    lines = [
        f"## {corpus.title}",
        "",
        f"{len(listed)} files: {', '.join(counts)}. Versions: {corpus.versions()}.",
        "",
        "| file | dof | bodies | mass [kg] | reported | verdict |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for row in listed:
        numbers = ["" if x is None else f"{x:.6g}" for x in (row.dof, row.bodies, row.mass)]
        verdict = row.verdict.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
        reported = "" if row.reported is None else str(row.reported)
        lines.append(f"| `{row.file}` | {' | '.join(numbers)} | {reported} | {verdict} |")
    return "\n".join(lines) + "\n"


INTRODUCTION = """# Corpus

This page loads every model file of some public packages and compares it with an outside reference:
degrees of freedom of the tree, total mass, centre of mass and the pose of every link at random
configurations. With MuJoCo it also compares the inertia of every body. *Inertias* is the largest
relative difference in the mass, the centre of mass and the trace of the inertia tensor of a body,
at most 1e-11; *tensors* is that of all entries of the tensor, at most 1.5e-6, since MuJoCo rotates
a body to its principal axes with an accuracy of 1.4e-6 rad. *Reported* counts the elements that the
load report lists. *Round trip* is the largest difference in masses, inertias, poses, drives and
couplings after saving and loading again. A refused file contradicts itself or uses the feature
named in its row. `tools/corpus.py` writes this page; the robots of [MuJoCo
Menagerie](https://github.com/google-deepmind/mujoco_menagerie) come from a copy of that repository
(`--menagerie FOLDER`), without textures.

"""


def main() -> int:
    """Judge all files; write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="print only; fail on a disagreement")
    parser.add_argument(
        "--menagerie",
        metavar="FOLDER",
        default=os.environ.get("LINKWISE_MENAGERIE"),
        help="a copy of MuJoCo Menagerie (LINKWISE_MENAGERIE)",
    )
    arguments = parser.parse_args()
    sections: list[str] = []
    bad = 0
    page_file = ROOT / "docs" / "evidence" / "corpus.md"
    given = [] if arguments.menagerie is None else [menagerie(arguments.menagerie)]
    for corpus in CORPORA + given:
        rows = [corpus.judge(name, path) for name, path in corpus.files().items()]
        bad += sum(not row.good for row in rows)
        sections.append(table(corpus, rows))
    _, there, kept = page_file.read_text("utf-8").partition(f"## {MENAGERIE}")
    if not given and there:
        sections.append(there + kept)
    page = INTRODUCTION + "\n".join(sections)
    if arguments.check:
        print(page)
    else:
        page_file.write_text(page, encoding="utf-8")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "src")]
    sys.exit(main())
