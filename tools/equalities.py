"""Compares MJCF files that have equalities with MuJoCo and writes docs/evidence/closed_files.md.

    python tools/equalities.py                                   files of the installed packages
    python tools/equalities.py "a collection, version=FOLDER"    and those below some folders

Each file is put into a state in which its equalities hold, found by MuJoCo, with random velocities
that they allow and random joint forces; see tests/oracles/mujoco_equality.py.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

INTRODUCTION = """# Closed chains in files

Model files with `<equality>`, loaded as [loops and couplings](../how_to/close_a_loop.md) and
compared with MuJoCo, in a state computed by MuJoCo: joint positions at which its residuals vanish,
random velocities that its equalities allow, random joint forces. The columns are:

- *rank* of the constraints' Jacobian, and how many *rows* it has here; the rank is the same in
  MuJoCo. Planar linkages that are closed in space have redundant rows.
- *closes to*: the largest remaining residual [m or rad] in this state. Some files have numbers with
  few digits, so that an overconstrained linkage closes no better.
- *J_c*: sine of the largest angle between the velocities that the two Jacobians allow.
- *rigid*: largest difference in accelerations, relative to the largest acceleration (with or
  without the equalities), from M v̇ + C = τ + J\\* λ, J v̇ + J̇ v = 0 solved densely with MuJoCo's
  M, C, J and J̇ v. (For a `joint` equality with a polynomial, MuJoCo omits J̇ v; it is then taken
  from differences of its J.)
- *solver*: the same, from MuJoCo's own Newton solver, with the regularisation R of its constraints
  scaled by 1e-9.
- *soft*: the same with R as small as `solimp` can make it, 1e-4 of the diagonal of J M⁻¹ J\\*: the
  smallest effect that MuJoCo's softness can have on the accelerations.

Contacts, limits, friction, actuators, springs and damping are switched off. `tools/equalities.py`
writes this page.

"""

HEAD = (
    "| file | dof | loops | couplings | rows | rank | closes to | J_c | rigid | solver | soft |",
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
)


def in_packages() -> dict[str, Path]:
    """Files of gymnasium, dm_control and mujoco."""
    result: dict[str, Path] = {}
    for package in ("gymnasium", "dm_control", "mujoco"):
        try:
            files = importlib.metadata.files(package) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        result |= {str(f): Path(str(f.locate())) for f in files if str(f).endswith(".xml")}
    return result


def in_folder(folder: Path) -> dict[str, Path]:
    """Files below a folder."""
    return {str(path.relative_to(folder)): path for path in folder.rglob("*.xml")}


def with_equality(files: dict[str, Path]) -> dict[str, Path]:
    """Those that are models and have equalities, but for scenes around another one."""
    result: dict[str, Path] = {}
    for name, path in sorted(files.items()):
        text = path.read_text("utf-8", errors="replace")
        model = re.search(r"<mujoco\b(?!include)", text) and re.search(r"<worldbody\b", text)
        if model and "scene" not in path.name and any(map(_equality, _with_included(path))):
            result[name] = path
    return result


def _equality(text: str) -> bool:
    return re.search(r"<equality\b[^/>]*>\s*(<!--.*?-->\s*)*<\w", text, re.DOTALL) is not None


def _with_included(path: Path) -> list[str]:
    """The text of a file and of those that it includes."""
    seen, texts, waiting = set[Path](), list[str](), [path]
    while waiting:
        here = waiting.pop()
        if here in seen or not here.exists():
            continue
        seen.add(here)
        texts.append(here.read_text("utf-8", errors="replace"))
        names = re.findall(r'<include\s+file="([^"]+)"', texts[-1])
        waiting += [folder / name for name in names for folder in (here.parent, path.parent)]
    return texts


def row(name: str, path: Path, root: Path) -> tuple[str, bool]:
    """One line of the table, and whether it is a comparison."""
    import linkwise as lw
    from tests.oracles.mujoco_equality import EqualityCase, equality_gap
    from tests.oracles.mujoco_oracle import read_what_is_there

    try:
        mech = lw.load(path, roots=[root])
    except lw.LinkwiseError as error:
        reason = " ".join(str(getattr(error, "reason", error)).split()).replace("<", "&lt;")
        return f"| `{name}` | refused: {reason} |", False
    try:
        model, _ = read_what_is_there(path)
    except ValueError as error:
        reason = " ".join(str(error).split()).replace(str(root), "")[:100]
        return f"| `{name}` | loads; MuJoCo refuses it: {reason} |", False
    if not mech.loops and not mech.couplings:
        return f"| `{name}` | its equalities are disabled or not active, as reported |", False
    gap = equality_gap(EqualityCase(mech, model))
    assert gap.rank[0] == gap.rank[1], (name, gap)
    counts = (mech.nv, len(mech.loops), len(mech.couplings), gap.rows[0], gap.rank[0])
    numbers = (gap.residual, gap.span, gap.rigid, gap.solver, gap.soft)
    cells = [*map(str, counts), *(f"{x:.0e}" for x in numbers)]
    return f"| `{name}` | {' | '.join(cells)} |", True


def summary(lines: list[str]) -> str:
    """How many files, and the largest difference of those that close to 1e-11 and of the others."""
    cells = [line.split("|") for line in lines]
    good = [float(c[9]) for c in cells if float(c[7]) < 1e-11]
    rest = [float(c[9]) for c in cells if float(c[7]) >= 1e-11]
    text = f"{len(lines)} files; accelerations differ by {max(good, default=0.0):.0e} at most"
    if rest:
        text += f", and by {max(rest):.0e} in the {len(rest)} whose loops close no better than 1e-8"
    return f"{text}."


def section(title: str, files: dict[str, Path], root: Path) -> str:
    """The table of one collection, and what could not be compared below it."""
    compared, others = list[str](), list[str]()
    for name, path in with_equality(files).items():
        line, good = row(name, path, root)
        print(line, flush=True)
        (compared if good else others).append(line)
    text = [f"## {title}", "", summary(compared), "", *HEAD, *compared, ""]
    if others:
        text += ["Not compared:", "", "| file | why |", "| --- | --- |", *others, ""]
    return "\n".join(text)


def main() -> int:
    """Compare all files; write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="*", help="TITLE=FOLDER")
    versions = ", ".join(
        f"{p} {importlib.metadata.version(p)}" for p in ("gymnasium", "dm_control", "mujoco")
    )
    packages = in_packages()
    root = Path(os.path.commonpath([str(p) for p in packages.values()]))
    sections = [section(f"Installed packages: {versions}", packages, root)]
    for argument in parser.parse_args().folders:
        title, _, folder = argument.rpartition("=")
        sections.append(section(title, in_folder(Path(folder)), Path(folder)))
    page = INTRODUCTION + "\n".join(sections)
    (ROOT / "docs" / "evidence" / "closed_files.md").write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "src")]
    sys.exit(main())
