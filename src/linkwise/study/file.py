"""Studies as TOML files, for `linkwise study run FILE`; an error gives the line.

    [study]                         cases, seed, sampler, folder, chunk, workers, keep
    [mechanism]                     robot = "arm.urdf", or a built-in name; base
    [run]                           kind = "rollout" | "simulate" | "function", and its options
    [run.law]                       a control law: task, node, kp, kv, goal or move
    [vary."payload:hand"]           distribution = "uniform", and its parameters by name
    [propose.NAME]                  likewise, to draw from instead
    [[correlate]]                   pair = ["a", "b"], value = 0.5

Distributions are those of `scipy.stats` by name, with its parameters; `uniform` has low and high,
`normal` mean and deviation. `values = [...]` is a list, `start`, `stop`, `count` a grid.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from linkwise.errors import LinkwiseError, MissingFileError, ParseError, unknown_name
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.pose import Pose
from linkwise.study.calls import Calls, Simulations
from linkwise.study.rollouts import Rollouts
from linkwise.study.study import Study
from linkwise.study.variable import extra
from linkwise.tasks.law import control_law
from linkwise.tasks.measure import task_position
from linkwise.tasks.task import Task

KEYS: dict[str, tuple[str, ...]] = {
    "": ("study", "mechanism", "run", "vary", "propose", "correlate"),
    "study": ("cases", "seed", "sampler", "folder", "chunk", "workers", "scheduler", "keep"),
    "mechanism": ("robot", "base"),
    "run.law": ("task", "node", "kp", "kv", "goal", "move", "hinges"),
    "correlate": ("pair", "value"),
}
"""What each table of a file may have."""

KINDS = ("rollout", "simulate", "function")
LAW = {"pose", "position"}

_TABLE = re.compile(r"^\s*\[\[?\s*(?P<path>(\"[^\"]*\"|'[^']*'|[^\]\"'])+)\]")
_KEY = re.compile(
    r"^\s*(?P<path>(\"[^\"]*\"|'[^']*'|[\w-]+)(\s*\.\s*(\"[^\"]*\"|'[^']*'|[\w-]+))*)\s*="
)
_PART = re.compile(r"\"([^\"]*)\"|'([^']*)'|([\w-]+)")


@dataclass(frozen=True, slots=True, eq=False)
class StudyFile:
    """A study from a file, with what its run needs.

    Attributes:
        study: The study.
        folder: Where results go.
        chunk: Cases of a chunk, or None.
        workers: Processes, the address of a scheduler of Dask, or None.
    """

    study: Study
    folder: Path
    chunk: int | None
    workers: int | str | None


def load_file(path: Path, robot: Callable[[str, str], Mechanism]) -> StudyFile:
    """Read a study from a TOML file.

    Args:
        path: The file.
        robot: Function from the name and the base of a mechanism to it.

    Raises:
        ParseError: Gives the line of what is wrong.
    """
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise MissingFileError("no such file", file=str(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ParseError(f"cannot be read: {error}", file=str(path)) from None
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        reason = f"not TOML: {error}"
        raise ParseError(reason, file=str(path), line=int(line[1]) if line else None) from None
    return _Reader(path, content, lines_of(text)).study(robot)


def lines_of(text: str) -> dict[tuple[str, ...], int]:
    """The line of each key of a TOML file, by its path; the last one where a table repeats."""
    lines, table = dict[tuple[str, ...], int](), ()
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _TABLE.match(line):
            table = _parts(match["path"])
            lines[table] = number
        elif match := _KEY.match(line):
            path = (*table, *_parts(match["path"]))
            for k in range(len(table) + 1, len(path) + 1):
                lines.setdefault(path[:k], number)
            lines[path] = number
    return lines


def _parts(path: str) -> tuple[str, ...]:
    return tuple(a or b or c for a, b, c in _PART.findall(path))


@dataclass(frozen=True, slots=True)
class _Reader:
    """The content of a file, with places for messages."""

    path: Path
    content: Mapping[str, Any]
    lines: Mapping[tuple[str, ...], int] = field(default_factory=dict[tuple[str, ...], int])

    def error(self, where: tuple[str, ...], reason: str) -> ParseError:
        """An error with the line of a key, or of the nearest table around it."""
        line = next((self.lines[where[:k]] for k in range(len(where), 0, -1)
                     if where[:k] in self.lines), None)  # fmt: skip
        return ParseError(reason, file=str(self.path), line=line)

    def table(self, *where: str, needed: bool = False) -> dict[str, Any]:
        """A table; {} where there is none."""
        table: Any = self.content
        for name in where:
            table = cast("dict[str, Any]", table).get(name, {})
        if not isinstance(table, dict):
            raise self.error(where, f"{'.'.join(where)} must be a table: [{'.'.join(where)}]")
        if needed and not table:
            raise self.error(where, f"the table [{'.'.join(where)}] is missing")
        return cast("dict[str, Any]", table)

    def check(self, where: tuple[str, ...], allowed: tuple[str, ...]) -> None:
        """Refuse unknown keys."""
        for key in self.table(*where):
            if key not in allowed:
                owner = f"[{'.'.join(where)}]" if where else "the file"
                raise self.error((*where, key), str(unknown_name("key", key, allowed, owner=owner)))

    def at(self, where: tuple[str, ...], work: Callable[[], Any]) -> Any:
        """Do something; errors get the line of a key."""
        try:
            return work()
        except ParseError:
            raise
        except KeyError as error:
            raise self.error(where, f"{error.args[0]!r} is missing") from None
        except (LinkwiseError, TypeError, ValueError, AttributeError) as error:
            raise self.error(where, str(error)) from None

    # ------------------------------------------------------------------------------- parts

    def study(self, robot: Callable[[str, str], Mechanism]) -> StudyFile:
        """The study."""
        self.check((), KEYS[""])
        self.check(("study",), KEYS["study"])
        main = self.table("study", needed=True)
        vary = self._variables("vary", needed=True)
        propose = self._variables("propose")
        correlate = dict[tuple[str, str], float]()
        for row in self.content.get("correlate", []):
            pair = row.get("pair", [])
            if len(pair) != 2 or not isinstance(row.get("value"), int | float):
                reason = 'a correlation is pair = ["a", "b"] and value = 0.5'
                raise self.error(("correlate",), reason)
            correlate[(str(pair[0]), str(pair[1]))] = float(row["value"])
        work = self._work(robot)
        options = {k: main[k] for k in ("cases", "seed", "sampler") if k in main}
        study = self._checked(work, vary, main.get("keep"), correlate, propose, options)
        folder = Path(main.get("folder") or self.path.with_suffix(""))
        folder = folder if folder.is_absolute() else self.path.parent / folder
        return StudyFile(
            study, folder, main.get("chunk"), main.get("scheduler", main.get("workers"))
        )

    def _checked(
        self, work: Any, vary: Any, keep: Any, correlate: Any, propose: Any, options: Any
    ) -> Study:
        """The study; an error names the line of the part that causes it."""
        try:
            return Study(work, vary, keep=keep, correlate=correlate, propose=propose, **options)
        except LinkwiseError as error:
            where: tuple[str, ...] = ("study",)
            for name in vary:
                if repr(name) in str(error) or repr(name.split("[")[-1].rstrip("]")) in str(error):
                    where = ("vary", name)
            for key in ("cases", "seed", "sampler", "keep"):
                if str(error).startswith(f"{key} ") and key in self.table("study"):
                    where = ("study", key)
            raise self.error(where, str(error)) from None

    def _variables(self, name: str, *, needed: bool = False) -> dict[str, Any]:
        result = dict[str, Any]()
        for key, given in self.table(name, needed=needed).items():
            result[key] = self.at((name, key), lambda given=given: _variable(given))
        return result

    def _work(self, robot: Callable[[str, str], Mechanism]) -> Any:
        run = dict(self.table("run", needed=True))
        kind = run.pop("kind", "rollout")
        if kind not in KINDS:
            raise self.error(("run", "kind"), f"kind is {kind!r}; allowed: {', '.join(KINDS)}")
        if kind == "function":
            return self._function(run)
        self.check(("mechanism",), KEYS["mechanism"])
        about = self.table("mechanism", needed=True)
        name, base = str(about.get("robot", "")), str(about.get("base", "auto"))
        near = self.path.parent / name
        name = str(near) if near.is_file() else name
        mech = self.at(("mechanism", "robot"), lambda: robot(name, base))
        q = run.pop("q", None)
        q = mech.couple(mech.neutral()) if q is None else q
        q = self.at(("run", "q"), lambda: mech.check_q(q))
        if law := run.pop("law", None):
            run["controller"] = self._law(mech, q, law)
        make: Any = Rollouts if kind == "rollout" else Simulations
        return self.at(("run",), lambda: make(mech, q, run.pop("v", None), **run))

    def _law(self, mech: Mechanism, q: Any, law: dict[str, Any]) -> Any:
        where = ("run", "law")
        self.check(where, KEYS["run.law"])
        kind = law.get("task", "pose")
        if kind not in LAW:
            raise self.error(
                (*where, "task"), f"task is {kind!r}; allowed: {', '.join(sorted(LAW))}"
            )

        def made() -> Any:
            task: Task = getattr(Task, kind)(law["node"])
            made = control_law(mech, task, kp=law["kp"], kv=law["kv"])
            place: Any = task_position(mech, q, task)
            goal: Any = law.get("goal")
            move = np.array(law.get("move", (0.0, 0.0, 0.0)), np.float64)
            if kind == "position":
                return made, np.asarray(goal, np.float64) if goal is not None else place + move
            if goal is not None:
                return made, Pose(place.rot, np.asarray(goal, np.float64))
            return made, Pose(place.rot, place.p + move)

        for key in ("node", "kp", "kv"):
            if key not in law:
                raise self.error(where, f"[run.law] needs {key!r}")
        return self.at(where, made)

    def _function(self, run: dict[str, Any]) -> Calls:
        where = ("run", "function")
        file, _, name = str(run.get("function", "")).partition(":")
        place = self.path.parent / file
        if not name or not place.is_file():
            reason = 'function = "file.py:name" must name a function in a file next to this one'
            raise self.error(where, reason)
        spec: Any = importlib.util.spec_from_file_location(place.stem, place)
        module: Any = importlib.util.module_from_spec(spec)
        self.at(where, lambda: spec.loader.exec_module(module))
        function = getattr(module, name, None)
        if not callable(function):
            raise self.error(where, f"{file} has no function {name!r}")
        sys.modules.setdefault(place.stem, module)  # as an import would do
        extra("cloudpickle", "cloudpickle", "a study").register_pickle_by_value(module)
        return Calls(function, batched=bool(run.get("batched", False)))


def _variable(given: Any) -> Any:
    """What varies, from a table, a list or a number."""
    if not isinstance(given, dict):
        return given
    table = dict(cast("dict[str, Any]", given))
    if "values" in table:
        return table["values"]
    if "start" in table:
        return np.linspace(float(table["start"]), float(table["stop"]), int(table["count"]))
    kind = str(table.pop("distribution", "uniform"))
    if kind == "uniform" and "low" in table:
        return float(table["low"]), float(table["high"])
    stats: Any = extra("scipy", "scipy.stats", "a distribution")
    if kind == "normal":
        return stats.norm(float(table["mean"]), float(table["deviation"]))
    made: Any = getattr(stats, kind, None)
    if made is None or not hasattr(made, "ppf"):
        raise ValueError(
            f"distribution is {kind!r}; give 'uniform', 'normal' or one of scipy.stats"
        )
    return made(**table)
