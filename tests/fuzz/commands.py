"""The command line with odd arguments and files: it answers, or says in a line what is wrong.

Allowed exit statuses are 0, 1 (a check failed) and 2 (an error, with a message); never a traceback.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
from pathlib import Path

from linkwise import models as builtin
from linkwise.cli import main
from tests.fuzz import meshes, models, recordings

ROBOTS = (
    *("pendulum", "chain(3)", "four_bar", "pendulum(2)", "planar_rpp", "random_tree(2)"),
    *("", "nothing", "chain(0)", "chain(-1)", "chain(10**30)", "chain(1e9)", "chain("),
    *("chain(99999999999999999999)", "chain(1,2)", "pendulum(x)", "puma560()", "../..", "/"),
    *("/dev/null", ".", "x.urdf", "\0"),
    *("-", "--", "a" * 5000, "__import__('os')", "models", "φ"),
)
EXPRESSIONS = (
    *("mass", "mass^-1", "H phi M phi* H*", "J mass^-1 J*", "mass^-1 (tau - bias)"),
    *("phi = I", "psi^-1 = phi^-1 + K H", "J* f", "tau", "(I - H psi K) H phi = H psi"),
    *("", " ", "(", ")", "mass +", "mass^", "mass^-", "* mass", "mass = ", "= mass", "a = b = c"),
    *("J J", "tau tau", "1e999 mass", "0 mass", "mass^99", "mass^-1^-1", "H H", "M tau", "𝓜⁻¹"),
    *("(" * 300, "mass " * 12, "-" * 100 + "mass", r"\phi", r"\frac{1}{2} mass", "mass\0"),
    *("H P' Υ' = H", "N", "P_plus", "mass**2", "__class__", "lambda: 0", "mass; tau", "J^-1 J"),
    *("x" * 5000, "φ M φ*", "mass mass^-1"),
)
NUMBERS = (
    *("0", "1", "0.1,0.2", "0.1 0.2", "", "nan", "inf", "-1", "1e400", "a", "1,,2", "1 2 3 4 5 6"),
    *("9" * 500, "-0.0", "1e-320", "0x1", "½", "1_0", "1;2", "[1,2]"),
)
WORDS = (
    *("auto", "fixed", "free", "", "x", "none", "gravity", "hold", "stop", "spring", "rk4"),
    "euler",
)


class _Text(io.StringIO):
    """A stream for text, as a terminal is one."""

    def reconfigure(self, **_: object) -> None:
        """Terminals are asked to replace letters that they do not have."""


def _robot(rng: random.Random, folder: Path) -> str:
    roll = rng.random()
    if roll < 0.45:
        return rng.choice(ROBOTS)
    path = folder / rng.choice(["robot.urdf", "robot.xml", "robot", "robot.txt"])
    if roll < 0.85:
        path.write_bytes(models.made(rng.randrange(10**6)))
    elif roll < 0.95:
        kind, data = meshes.made(rng.randrange(10**6))
        mesh = folder / f"mesh.{kind}"
        mesh.write_bytes(data)
        path.write_text(
            f'<mujoco><asset><mesh name="m" file="{mesh.name}"/></asset><worldbody><body>'
            '<freejoint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
        )
    else:
        path.write_bytes(rng.randbytes(rng.choice([0, 10, 1000])))
    return str(path)


def _place(rng: random.Random, folder: Path, name: str) -> str:
    odd = ("", ".", "/", "/dev/full", "/dev/null", "nowhere/x", "\0", "x" * 300, name + ".xyz")
    return rng.choice([str(folder / name), str(folder / name), *odd])


def made(number: int, folder: Path = Path("/tmp")) -> list[str]:
    """The arguments of one case; files are written into the folder."""
    rng = random.Random(number)
    command = rng.choices(
        [
            *("info", "derive", "ledger", "export-c", "view"),
            *("tour", "bench", "?"),
        ],
        [40, 26, 6, 6, 4, 2, 2, 5],
    )[0]

    def some(*options: list[str]) -> list[str]:
        return [word for option in options if rng.random() < 0.3 for word in option]

    base = ["--base", rng.choice(WORDS)]
    if command == "info":
        flags = some(["--strict"], ["--nodes"], ["--report"], ["--json"], ["--check"], base)
        return [command, _robot(rng, folder), *flags]
    if command == "derive":
        check = some(["--to", rng.choice(EXPRESSIONS)], ["--latex"], ["--plan"])
        return [command, rng.choice(EXPRESSIONS), *check]
    if command == "ledger":
        numbers = ("(2.3)", "1", "", "x", "(", "Lemma 7", "\0", "9" * 300)
        documents = ("000", "005", "", "x", "001-III")
        return [command, rng.choice(documents), *some(["--misprints"]), rng.choice(numbers)]
    if command == "export-c":
        robot = rng.choice(["pendulum", "pendulum(2)", _robot(rng, folder)])
        what = rng.choice([["--quantity", "mass_matrix"], ["--expr", rng.choice(EXPRESSIONS)]])
        flags = some(["--node", rng.choice(WORDS)], ["--name", rng.choice(WORDS)], base,
                     ["--parameter", rng.choice(WORDS)], ["--force"])  # fmt: skip
        return [command, robot, *what, *flags, "-o", _place(rng, folder, "generated")]
    if command in ("tour", "bench"):  # of robots that there are they take long
        option = {"tour": "--report", "bench": "--batch"}[command]
        known = (*dir(builtin), "--")  # after which there is no name, and puma560 is meant
        missing = [x for x in ROBOTS if x.partition("(")[0] not in known]
        return [command, rng.choice(missing), *some([option, rng.choice(NUMBERS)], base)]
    if command == "view":
        file = folder / "run.npz"
        file.write_bytes(recordings.made(rng.randrange(10**6)))
        return [command, str(file), "--robot", "pendulum", "--html", ""]
    return [rng.choice(["", "x", "--help", "--version", "info", "derive", "-h", "\0", *NUMBERS])
            for _ in range(rng.randrange(4))]  # fmt: skip


def use(number: int, folder: Path) -> str:
    """Run a command in this process."""
    out, err, here = _Text(), _Text(), os.getcwd()
    arguments = made(number, folder)
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = main(arguments)
            except SystemExit as end:  # of argparse
                status = end.code
    finally:
        os.chdir(here)
    if status not in (0, 1, 2):
        raise AssertionError(f"exit status {status!r} of {arguments}")
    said = [x for x in err.getvalue().splitlines() if not x.startswith("note: ")]
    caret = len(said) == 3 and not said[2].strip(" ^")  # where in an expression
    if status == 2 and not (said[0].startswith("linkwise") and (len(said) == 1 or caret)):
        raise AssertionError(f"an error is one line, and points to its place: {arguments}")
    if "Traceback" in err.getvalue() + out.getvalue():
        raise AssertionError(f"a traceback: {arguments}")
    return f"exit {status}"
