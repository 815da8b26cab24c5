"""Run every robot of MuJoCo Menagerie for 10 s: docs/evidence/menagerie.md.

    python tools/menagerie_runs.py FOLDER               writes docs/evidence/menagerie.md
    python tools/menagerie_runs.py FOLDER --robot NAME  runs one file and prints its row

Each robot moves by implicit steps of the length that its file says, from its first keyframe, with
the commands of that keyframe (zeros without one), and touches the planes of its world as the file
describes. A robot runs in a separate process, which is given up after a time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

PAGE = ROOT / "docs/evidence/menagerie.md"

DURATION = 10.0
LONGEST = 400
"""Seconds of processor time for one robot, mostly its compiler's."""

DIGITS = 1e-7
"""Loops of a file are closed to this [m or rad]: some have numbers of eight digits."""

LARGEST = 1e3
"""Speed [m/s or rad/s] that a robot does not reach."""


HEAD = f"""\
# Robots of MuJoCo Menagerie in motion

A scene of each robot of Menagerie for 10 s, written by `tools/menagerie_runs.py`: implicit steps of
the length that the file says, from its first keyframe and with its commands, on the planes of its
world. A robot *runs* if nothing fails and no speed reaches {LARGEST:g} m/s or rad/s. Contacts
between bodies do not act."""


def files(folder: Path, every: bool) -> list[Path]:
    """A scene of each robot, or every one; a model where it has no scene. Small ones first."""
    result = list[Path]()
    for robot in sorted(x for x in folder.iterdir() if x.is_dir() and x.name != "test"):
        models = [x for x in sorted(robot.glob("*.xml")) if "<worldbody" in x.read_text()]
        scenes = [x for x in models if x.stem.startswith("scene")] or models
        result += scenes if every else scenes[:1]

    def size(path: Path) -> int:
        return sum("joint" in x.tag for section in expanded(path) for x in section.iter())

    return sorted(result, key=size)


def expanded(path: Path) -> list[ElementTree.Element]:
    """All sections of a file and of those that it includes."""
    sections = list[ElementTree.Element]()
    for element in ElementTree.parse(path).getroot():
        if element.tag == "include":
            sections += expanded(path.parent / element.attrib["file"])
        else:
            sections.append(element)
    return sections


def numbers(text: str) -> list[float]:
    """Those of an attribute."""
    return [float(x) for x in text.split()]


def beginning(mech: Any, sections: list[ElementTree.Element]) -> tuple[np.ndarray, np.ndarray]:
    """q and commands of the first keyframe, or where the file puts the robot."""
    from linkwise.model.hinges import Free

    controls = np.zeros(len(mech.actuators))
    q = mech.neutral().copy()
    free = [k for k, body in enumerate(mech.bodies) if isinstance(body.hinge, Free)]
    keys = [k for s in sections if s.tag == "keyframe" for k in s if "qpos" in k.attrib]
    if keys and len(numbers(keys[0].attrib["qpos"])) == mech.nq:
        q = np.array(numbers(keys[0].attrib["qpos"]))
        for k in free:
            start = int(mech.q_start[k])
            q[start : start + 7] = np.roll(q[start : start + 7], 4)  # quaternion first
        if len(given := numbers(keys[0].attrib.get("ctrl", ""))) == len(controls):
            controls = np.array(given)
        return mech.normalise(q), controls
    bodies = [b for s in sections if s.tag == "worldbody" for b in s.iter("body")]
    places = {b.attrib.get("name", ""): b.attrib for b in bodies}
    for k in free:
        start, attrib = int(mech.q_start[k]), places.get(mech.bodies[k].name, {})
        q[start : start + 4] = numbers(attrib.get("quat", "1 0 0 0"))
        q[start + 4 : start + 7] = numbers(attrib.get("pos", "0 0 0"))
    return mech.normalise(q), controls


def run(path: Path) -> dict[str, Any]:
    """The row of one file."""
    import linkwise as lw
    from linkwise.simulation import contact_points

    row: dict[str, Any] = {}
    try:
        mech = lw.load(path)
        row |= {"bodies": mech.n_bodies, "nv": mech.nv, "actuators": len(mech.actuators)}
        row["closures"] = len(mech.loops) + len(mech.couplings)
        sections = expanded(path)
        q, controls = beginning(mech, sections)
        options = [s.attrib for s in sections if s.tag == "option" and "timestep" in s.attrib]
        step = float(options[-1]["timestep"]) if options else 0.002
        points = contact_points(mech)
        row |= {"points": len(points), "step": step}
        if mech.loops or mech.couplings:
            q = lw.loops.assemble(mech, q, tolerance=DIGITS).required()
        given = {"controls": controls} if mech.actuators else {}
        every = max(1, round(0.01 / step))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            duration = round(DURATION / step) * step
            motion = lw.rollout(
                mech, q, duration=duration, step=step, integrator="implicit", contacts=points,
                record_every=every, **given,
            )  # fmt: skip
        row["ops"] = sum(motion.kernel.ops.values()) if motion.kernel is not None else None
        row["speed"] = float(np.abs(motion.v).max())
        row["last"] = float(np.abs(motion.v[-1]).max())
        if motion.penetration is not None:
            row["penetration"] = float(motion.penetration[-1])
        if motion.residual is not None:
            row["residual"] = float(np.median(motion.residual))
        row["verdict"] = "runs" if row["speed"] < LARGEST else f"speeds up to {row['speed']:.0e}"
    except Exception as error:
        text = str(error).replace(f"{path.parent.parent}/", "")
        row["verdict"] = f"{type(error).__name__}: {text}"
    return row


def separately(path: Path) -> dict[str, Any]:
    """The row of one file, computed in a separate process."""
    command = [sys.executable, __file__, str(path.parent.parent), "--robot", str(path)]
    limit = ["bash", "-c", f'ulimit -t {LONGEST}; exec "$0" "$@"']
    done = subprocess.run([*limit, *command], capture_output=True, text=True, check=False)
    lines = [x for x in done.stdout.splitlines() if x.startswith("{")]
    if lines:
        return json.loads(lines[-1])
    return {"verdict": f"not finished within {LONGEST} s of processor time"}


def page(rows: dict[str, dict[str, Any]]) -> str:
    """The page, from rows by file."""
    good = [x for x in rows.values() if x["verdict"] == "runs"]
    missing = [x for x in rows.values() if "does not exist" in x["verdict"]]
    counts = (
        f"{len(good)} of {len(rows)} files run; {len(missing)} need mesh files that are missing"
    )
    columns = "file, bodies, velocities, actuators, loops and couplings, contact points, "
    columns += "operations a step, largest speed, last speed, penetration [mm], residual, verdict"
    heads = columns.split(", ")
    lines = [*HEAD.splitlines(), "", f"{counts} in the copy at hand. Version: {version()}.", ""]
    lines += ["| " + " | ".join(heads) + " |", "| --- " * len(heads) + "|"]
    for name, row in rows.items():
        depth = row.get("penetration")
        cells = [
            *(row.get(x, "") for x in ("bodies", "nv", "actuators", "closures", "points", "ops")),
            *(f"{row[x]:.2g}" if x in row else "" for x in ("speed", "last")),
            "" if depth is None else f"{1e3 * depth:.2g}",
            f"{row['residual']:.0e}" if "residual" in row else "",
            " ".join(row["verdict"].replace("|", "/").replace("<", "&lt;").split())[:300],
        ]
        lines.append(f"| {name} | " + " | ".join(str(x) for x in cells) + " |")
    return "\n".join(lines) + "\n"


def version() -> str:
    """The commit of the tree that ran, and whether it had changes."""
    described = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude", "*"]
    return subprocess.run(described, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    """Run all robots, or one of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="a copy of MuJoCo Menagerie")
    parser.add_argument("--robot", type=Path, help="one file; prints its row")
    parser.add_argument("--out", type=Path, default=PAGE)
    parser.add_argument("--every", action="store_true", help="every scene, not one of each robot")
    parser.add_argument("--only", default="", help="a part of the names of files to run")
    options = parser.parse_args()
    if options.robot:
        print(json.dumps(run(options.robot)))
        return
    paths = {str(x.relative_to(options.folder)): x for x in files(options.folder, options.every)}
    paths = {name: path for name, path in paths.items() if options.only in name}
    if options.out == PAGE and len(paths) < (rows_before := PAGE.read_text().count(".xml |")):
        parser.error(
            f"{len(paths)} files would replace the {rows_before} rows of {PAGE.name}: give --out"
        )
    rows = dict[str, dict[str, Any]]()
    for name, path in paths.items():
        rows[name] = separately(path)
        print(name, json.dumps(rows[name])[:300], flush=True)
    options.out.write_text(page(dict(sorted(rows.items()))))


if __name__ == "__main__":
    main()
