"""Compare every quantity with Pinocchio, MuJoCo and dense algebra: docs/evidence/agreement.md.

    python tools/agreement.py [--workers 2]     writes docs/evidence/agreement.md
    python tools/agreement.py --check           only prints it; fails where something disagrees
    python tools/agreement.py --menagerie FOLDER    with the robots of MuJoCo Menagerie there

The tables of quantities are in tests/oracles: `pinocchio_quantity.py`, `mujoco_quantity.py` and
`dense_quantity.py`. Models are those of tools/corpus.py and random trees. All but a few are run by
the interpreter, which needs no compiler; those few run as machine code too.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tools.corpus import find_mjcf, find_urdf, menagerie, version  # noqa: E402

PAGE = ROOT / "docs" / "evidence" / "agreement.md"
TREES = {"Pinocchio": 40, "MuJoCo": 40, "dense algebra": 20}
TREE = "random tree"
COMPILED = {
    "panda_description/urdf/panda.urdf": False,
    "solo_description/robots/solo12.urdf": True,
    "talos_data/robots/talos_reduced.urdf": True,
    "gymnasium/envs/mujoco/assets/humanoid.xml": False,
    "gymnasium/envs/mujoco/assets/half_cheetah.xml": False,
}
"""Robots that run as machine code too, on a free base or as they are."""


@dataclass(frozen=True)
class Job:
    """One model to compare.

    Attributes:
        reference: "Pinocchio", "MuJoCo" or "dense algebra".
        model: Its name on the page.
        path: Its file; "" for a random tree.
        seed: Of a random tree.
        root: Folder that its other files may be in; "" for that of its package.
        free: Whether its base is put on a free hinge.
        compiled: Whether kernels run as machine code.
    """

    reference: str
    model: str
    path: str = ""
    root: str = ""
    seed: int = 0
    free: bool = False
    compiled: bool = False


@dataclass(frozen=True)
class Judged:
    """What came out of a job.

    Attributes:
        job: The job.
        comparisons: A `Comparison` for each quantity; empty where the model was left out.
        why: Why it was left out.
        given: Bodies of which MuJoCo was given our inertia.
        before: Difference of the mass matrices before that.
    """

    job: Job
    comparisons: tuple[Any, ...] = ()
    why: str = ""
    given: int = 0
    before: float = 0.0


def jobs(folder: str | None = None) -> list[Job]:
    """Every file of the corpus and of the Menagerie in a folder, and every tree."""
    urdf, mjcf = find_urdf(), find_mjcf()
    result = [
        Job("Pinocchio", name + (", free base" if free else ""), path, free=free)
        for name, path in urdf.items()
        for free in (False, True)
    ]
    result += [Job("MuJoCo", name, path) for name, path in mjcf.items()]
    if folder is not None:
        robots = menagerie(folder).files()
        result += [Job("MuJoCo", name, path, folder) for name, path in robots.items()]
    for reference, count in TREES.items():
        result += [Job(reference, f"{TREE} {seed}", seed=seed) for seed in range(count)]
    for name, free in COMPILED.items():
        reference, path = "Pinocchio" if name in urdf else "MuJoCo", (urdf | mjcf).get(name)
        if path:
            result.append(Job(reference, name, path, free=free, compiled=True))
    return result


def judge(job: Job) -> Judged:
    """Compare one model."""
    from linkwise.errors import LinkwiseError
    from tests.oracles import agreement_case, dense_quantity, mujoco_quantity, pinocchio_quantity
    from tests.oracles.compared_quantity import apart, compared
    from tests.oracles.interpreted import interpreted

    given, before = 0, 0.0
    with nullcontext() if job.compiled else interpreted():
        try:
            if job.reference == "Pinocchio":
                table = pinocchio_quantity.TABLE
                it: Any = (
                    agreement_case.urdf_case(job.path, free=job.free)
                    if job.path
                    else agreement_case.pinocchio_tree(job.seed)
                )
            elif job.reference == "MuJoCo":
                table = mujoco_quantity.TABLE
                it = (
                    agreement_case.mjcf_case(job.model, job.path, job.root)
                    if job.path
                    else agreement_case.mujoco_tree(job.seed)
                )
                given = it.given
                before = apart(it.before, it.after) if given else 0.0
            else:
                table, it = dense_quantity.TABLE, agreement_case.dense_tree(job.seed)
        except LinkwiseError as error:
            reason, line = getattr(error, "reason", str(error)), getattr(error, "line", None)
            return Judged(job, why=f"refused, line {line}: {reason}")
        except agreement_case.NoCaseError as error:
            return Judged(job, why=str(error))
        return Judged(job, tuple(compared(table, it, job.model)), given=given, before=before)


# --------------------------------------------------------------------------------------- the page


def largest(result: Iterable[Any]) -> tuple[str, str]:
    """The largest difference and its model, as text."""
    compared = [one for one in result if not np.isnan(one.apart)]
    if not compared:
        return "", ""
    worst = max(compared, key=lambda one: one.apart)
    name = worst.model if worst.model.startswith(TREE) else f"`{worst.model}`"
    return f"{worst.apart:.0e}", name


def table(reference: str, judged: Sequence[Judged]) -> str:
    """The quantities of one reference, one a row."""
    from tests.oracles import dense_quantity, mujoco_quantity, pinocchio_quantity

    tables = {
        "Pinocchio": pinocchio_quantity.TABLE,
        "MuJoCo": mujoco_quantity.TABLE,
        "dense algebra": dense_quantity.TABLE,
    }
    plain = [one for j in judged if not j.job.compiled for one in j.comparisons]
    code = [one for j in judged if j.job.compiled for one in j.comparisons]
    named = reference != "dense algebra"  # there it is the name of the quantity
    head = ["quantity", *(["Linkwise"] if named else []), reference, "models", "difference"]
    head += ["largest in", *(["machine code"] if code else [])]
    rule = ["---:" if name in ("models", "difference", "machine code") else "---" for name in head]
    lines = [_row(head), _row(rule)]
    for quantity in tables[reference]:
        direct = [one for one in plain if one.quantity == quantity.name]
        count = sum(not np.isnan(one.apart) for one in direct)
        ours = [f"`{quantity.ours}`"] if named else []
        row = [quantity.name, *ours, f"`{quantity.theirs}`", str(count), *largest(direct)]
        if code:
            row.append(largest(one for one in code if one.quantity == quantity.name)[0])
        lines.append(_row(row))
    return "\n".join(lines)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def left_out(judged: Sequence[Judged]) -> str:
    """Models and single quantities that were not compared, by reason."""
    models = dict[tuple[str, str], list[str]]()
    for j in judged:
        reasons = {one.why: 0 for one in j.comparisons if one.why}
        for why in [j.why] if j.why else reasons:
            names = [one.quantity for one in j.comparisons if one.why == why]
            what = ", ".join(names) if len(names) <= 3 else f"{len(names)} quantities"
            models.setdefault((_plain(why), what or "everything"), []).append(j.job.model)
    if not models:
        return "Nothing was left out."
    lines = [_row(("because", "left out", "of")), _row(("---", "---", "---"))]
    for (why, what), names in models.items():
        files = [f"`{name}`" for name in names if not name.startswith(TREE)]
        trees = [name.removeprefix(TREE).strip() for name in names if name.startswith(TREE)]
        numbers = [f"{TREE}s {', '.join(trees)}"] if trees else []
        lines.append(_row((why, what, ", ".join(files + numbers))))
    return "\n".join(lines)


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def disagreements(judged: Sequence[Judged]) -> tuple[str, int]:
    """Differences above the bound; and of how many the reference is not the one to blame."""
    from tests.oracles.compared_quantity import BOUND

    over = [one for j in judged for one in j.comparisons if one.apart > BOUND]
    ours = sum(one.off is None or one.off[0] > BOUND for one in over)
    if not over:
        return f"None differs by more than {BOUND:.0e}.", 0
    heads = ("model", "quantity", "difference", "Linkwise is off by", "the reference by")
    lines = [_row(heads), _row(("---", "---", "---:", "---:", "---:"))]
    for one in over:
        off = [f"{x:.0e}" for x in one.off] if one.off else ["not known", "not known"]
        lines.append(_row((f"`{one.model}`", one.quantity, f"{one.apart:.0e}", *off)))
    return "\n".join(lines), ours


def section(reference: str, judged: Sequence[Judged]) -> tuple[str, int]:
    """What a reference said of all models."""
    direct = [j for j in judged if j.job.reference == reference]
    compared = [j for j in direct if j.comparisons and not j.job.compiled]
    files, trees = (sum(bool(j.job.path) is kind for j in compared) for kind in (True, False))
    over, ours = disagreements(direct)
    values = sum(not np.isnan(one.apart) for j in direct for one in j.comparisons)
    counted = f"{files} models from files and {trees} random trees" if files else f"{trees} trees"
    parts = [f"## {TITLES[reference]()}", "", f"{counted}; {values} values compared."]
    text = TEXTS[reference].strip()
    given = [j for j in compared if j.given]
    if given:
        before, trees = max(j.before for j in given), sum(not j.job.path for j in given)
        names = ", ".join(f"`{j.job.model}`" for j in given if j.job.path)
        text += f"""

MuJoCo stores inertias in principal axes, which it determines, mostly for meshes, up to products of
inertia of 1e-12. In {len(given)} models it therefore uses the inertias that Linkwise has for the
same file; without that the mass matrices differ by up to {before:.0e}. They are {names} and
{trees} of the random trees."""
    parts += ["", text, "", table(reference, direct), "", "### Beyond the bound", "", over]
    parts += ["", "### Left out", "", left_out([j for j in direct if not j.job.compiled]), ""]
    return "\n".join(parts), ours


MUJOCO = ", ".join(map(version, ("mujoco", "gymnasium", "dm_control")))

TITLES = {
    "Pinocchio": lambda: f"Pinocchio ({version('pin')}, {version('example-robot-data')})",
    "MuJoCo": lambda: f"MuJoCo ({MUJOCO})",
    "dense algebra": lambda: "Dense algebra",
}

TEXTS = {
    "Pinocchio": """
Every URDF of example-robot-data, as it is and on a free base; mimic joints move independently on
both sides. Random trees have armature, and every hinge that Pinocchio has, alone or as a sequence
of joints: all except rolling balls and welds. Their joints are added there branch by branch: its
`crba` and `computeMinverse` assume that the degrees of freedom of a subtree are contiguous, and
silently return another matrix where they are not.
""",
    "MuJoCo": """
Every MJCF of gymnasium and dm_control, and with `--menagerie` the robots of MuJoCo Menagerie. Only
the tree is compared: in MuJoCo, contacts, equality constraints, limits, actuators, springs, damping
and fluids are switched off. Bodies that do not move are excluded from its energies and centres of
mass. Random trees are written as MJCF and read by both; hinges that MuJoCo does not have become
sequences of joints. They have armature, but not on a free base: armature acts on a library's choice
of velocities, and for a free body those are in world axes there and in body axes here.
""",
    "dense algebra": """
For quantities that neither library has, and for all thirteen kinds of hinge, this section compares
every named expression, derived and run in sweeps, with the product of explicit matrices. The
matrices follow from the definitions of the operators; inverses are matrix inverses.
""",
}

INTRODUCTION = """# Agreement

This page compares every quantity of open chains with Pinocchio, MuJoCo and dense algebra, at a
random state of every model. `make agreement` (`tools/agreement.py`) writes it: no number here was
typed by hand.

*Difference* is the largest difference of two entries over the largest entry of the quantity, the
largest of all models. If a value is a difference of large terms (a Coriolis force, a momentum), its
error is relative to those terms: a sliding hinge has no J̇, and rounding must not count as one. The
bound is 1e-10. The interpreter runs the models; those in the column *machine code*, {compiled},
compiled.

{verdict}

Where two differ by more, the value was computed again with a 64-bit mantissa, and the table shows
the error of each.

"""


def page(judged: Sequence[Judged], folder: str | None) -> tuple[str, int]:
    """The page, and how many disagreements are not explained."""
    if folder is not None:
        TITLES["MuJoCo"] = lambda: f"MuJoCo ({MUJOCO}, Menagerie {menagerie(folder).versions()})"
    sections = [section(reference, judged) for reference in TREES]
    bad = sum(count for _, count in sections)
    values = [one.apart for j in judged for one in j.comparisons if not np.isnan(one.apart)]
    within = sum(x <= 1e-10 for x in values)
    verdict = f"**{within} of {len(values)} values agree to 1e-10, half of them to " + (
        f"{np.median(values):.0e}; {len(values) - within} do not, and of those {bad} are not "
        "accounted for by the rounding of the reference.**"
    )
    compiled = ", ".join(f"`{Path(name).name}`" for name in COMPILED)
    head = INTRODUCTION.format(compiled=compiled, verdict=verdict)
    return head + "\n".join(text for text, _ in sections), bad


def main() -> int:
    """Judge all models; write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="print only; fail on a disagreement")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--menagerie", metavar="FOLDER", help="a copy of MuJoCo Menagerie")
    arguments = parser.parse_args()
    folder: str | None = arguments.menagerie
    todo = jobs(folder)
    elsewhere = (tempfile.gettempdir(),)  # MuJoCo writes a log file into the current folder
    with ProcessPoolExecutor(arguments.workers, initializer=os.chdir, initargs=elsewhere) as pool:
        judged = list(pool.map(judge, todo))
    text, bad = page(judged, folder)
    if arguments.check:
        print(text)
    else:
        PAGE.write_text(text, encoding="utf-8")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
