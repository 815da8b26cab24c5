"""Studies as TOML files, for `linkwise study run FILE`; an error gives the line.

    [study]                         cases, seed, sampler, folder, chunk, workers, keep
                                    table = "rows.csv" instead of [vary]: rows that are given
    [mechanism]                     robot = "arm.urdf", a built-in name, or "file.py:function"; base
    [run]                           kind = "rollout" | "simulate" | "function", and its options;
                                    setup = "file.py:function" for what names cannot express
    [run.law]                       a control law: task, node, kp, kv, goal or move
    [run.ground]                    what may touch: bodies, and laws of `lw.simulation.Ground`;
                                    without q the robot begins on it
    [vary."payload:hand"]           distribution = "uniform", and its parameters by name
    [propose.NAME]                  likewise, to draw from instead
    [[correlate]]                   pair = ["a", "b"], value = 0.5

Distributions are those of `scipy.stats` by name, with its parameters; `uniform` has low and high,
`normal` mean and deviation. `values = [...]` is a list, `start`, `stop`, `count` a grid.
"""

from __future__ import annotations

import csv
import importlib.util
import math
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, cast

import numpy as np

from linkwise.arguments import count, number
from linkwise.errors import LinkwiseError, MissingFileError, ParseError, unknown_name
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.implicit.ground import Ground
from linkwise.simulation.implicit.steps import put_on_ground
from linkwise.simulation.implicit.touching import ground_contacts
from linkwise.spatial.array import Array, floats
from linkwise.spatial.pose import Pose
from linkwise.study.calls import Calls, Simulations
from linkwise.study.rollouts import Rollouts
from linkwise.study.study import Study
from linkwise.study.variable import extra, variable
from linkwise.tasks.law import control_law
from linkwise.tasks.measure import task_position
from linkwise.tasks.task import Task

KEYS: dict[str, tuple[str, ...]] = {
    "": ("study", "mechanism", "run", "vary", "propose", "correlate"),
    "study": (
        "cases",
        "seed",
        "sampler",
        "folder",
        "chunk",
        "workers",
        "scheduler",
        "keep",
        "table",
    ),
    "mechanism": ("robot", "base"),
    "run.ground": ("bodies", *(x.name for x in fields(Ground))),
    "run.law": ("task", "node", "kp", "kv", "goal", "move", "hinges"),
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


def load_file(
    path: Path, robot: Callable[[str, str], Mechanism], *, trial: bool = True
) -> StudyFile:
    """Read a study from a TOML file.

    Args:
        path: The file.
        robot: Function from the name and the base of a mechanism to it.
        trial: Whether to compute one case: then what cannot run has its line too.

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
    return _Reader(path, content, lines_of(text)).study(robot, trial)


def lines_of(text: str) -> dict[tuple[str, ...], int]:
    """The line of each key of a TOML file, by its path; the last one where a table repeats."""
    lines, table = dict[tuple[str, ...], int](), ()
    for at, line in enumerate(text.splitlines(), start=1):
        if match := _TABLE.match(line):
            table = _parts(match["path"])
            lines[table] = at
        elif match := _KEY.match(line):
            path = (*table, *_parts(match["path"]))
            for k in range(len(table) + 1, len(path) + 1):
                lines.setdefault(path[:k], at)
            lines[path] = at
    return lines


def _parts(path: str) -> tuple[str, ...]:
    return tuple(a or b or c for a, b, c in _PART.findall(path))


@dataclass(frozen=True, slots=True)
class _Reader:
    """The content of a file, with places for messages."""

    path: Path
    content: Mapping[str, Any]
    lines: Mapping[tuple[str, ...], int] = field(default_factory=dict[tuple[str, ...], int])
    modules: dict[Path, Any] = field(default_factory=dict[Path, Any])

    def error(self, where: tuple[str, ...], reason: str) -> ParseError:
        """An error with the line of a key, or of the nearest table around it."""
        line = next((self.lines[where[:k]] for k in range(len(where), 0, -1)
                     if where[:k] in self.lines), None)  # fmt: skip
        return ParseError(reason, file=str(self.path), line=line)

    def table(self, *where: str, needed: bool = False, any_kind: bool = False) -> dict[str, Any]:
        """A table; {} where there is none, or with `any_kind` something else."""
        table: Any = self.content
        for name in where:
            table = cast("dict[str, Any]", table).get(name, {}) if isinstance(table, dict) else {}
        if any_kind and not isinstance(table, dict):
            return {}
        if not isinstance(table, dict):
            raise self.error(where, f"{'.'.join(where)} must be a table: [{'.'.join(where)}]")
        if needed and not table:
            reason = f"the table [{'.'.join(where)}] is missing"
            raise ParseError(reason, file=str(self.path), line=self.lines.get(where, 1))
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
        except (LinkwiseError, TypeError, ValueError, AttributeError, ImportError) as error:
            text = str(error)
            for key, given in self.table(*where, any_kind=True).items():  # the key it is about
                about = re.match(rf"(no \w+ called )?'?{re.escape(key)}\b", text)
                if about or (isinstance(given, str) and f"called {given!r}" in text):
                    raise self.error((*where, key), text) from None
            raise self.error(where, text) from None

    # ------------------------------------------------------------------------------- parts

    def study(self, robot: Callable[[str, str], Mechanism], trial: bool) -> StudyFile:
        """The study."""
        self.check((), KEYS[""])
        self.check(("study",), KEYS["study"])
        main = self.table("study", needed=True)
        vary = self._table() if "table" in main else self._variables("vary", needed=True)
        propose = self._variables("propose")
        correlate = dict[tuple[str, str], float]()
        for row in self.content.get("correlate", []):
            try:
                (a, b), value = row["pair"], number(row["value"], "value")
                correlate[(str(a), str(b))] = value
                self.at(("correlate",), lambda row=row: _only(row, ("pair", "value"), "correlate"))
            except (KeyError, TypeError, ValueError):
                reason = 'a correlation is [[correlate]] with pair = ["a", "b"] and value = 0.5'
                raise self.error(("correlate",), reason) from None
        work = self._work(robot)
        options = {k: main[k] for k in ("cases", "seed", "sampler") if k in main}
        if "table" in main:
            options["sampler"] = "table"
        study = self._checked(work, vary, main.get("keep"), correlate, propose, options)
        for key in ("chunk", "workers"):
            if key in main:
                self.at(("study",), lambda key=key: count(main[key], key, least=1))
        for key in ("folder", "scheduler"):
            if not isinstance(main.get(key, ""), str):
                raise self.error(("study", key), f"{key} is {main[key]!r}; it must be a text")
        try:
            if trial:
                study.trial()
        except LinkwiseError as error:
            raise self.error(self._place(str(error), study.names), str(error)) from None
        folder = self.path.parent / (main.get("folder") or self.path.stem)
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
            raise self.error(self._place(str(error), vary), str(error)) from None

    def _place(self, text: str, names: Iterable[str]) -> tuple[str, ...]:
        """The table or key that a message is about."""
        main, run = self.table("study"), self.table("run")
        if "channel called" in text or "result called" in text:
            return "study", "keep"
        if "parameter called" in text:
            return "run", "parameters"
        for key in ("correlate", "propose"):
            if text.startswith(f"{key} ") or f"{key}[" in text:
                return (key,)
        for table, keys in (("study", main), ("run", run)):
            for key in keys:
                if re.match(rf"(no |each of )?{key}\b", text):
                    return table, key
        unknown = re.match(r"no \w+ called '([^']*)'", text)
        if unknown and unknown[1] in self.table("propose"):
            return "propose", unknown[1]
        if unknown and any(
            unknown[1] in row.get("pair", ()) for row in self.content.get("correlate", ())
        ):
            return ("correlate",)
        for name in names:
            if repr(name) in text or repr(name.split("[")[-1].rstrip("]")) in text:
                return "vary", name
        return ("study",) if "cases" in text.split()[:3] else ("run",)

    def _variables(self, name: str, *, needed: bool = False) -> dict[str, Any]:
        result = dict[str, Any]()
        for key, given in self.table(name, needed=needed).items():
            result[key] = self.at((name, key), lambda given=given: _variable(given))
            self.at((name, key), lambda key=key: variable(key, result[key]))
        return result

    def _table(self) -> dict[str, Array]:
        """Columns of a file of comma-separated values, whose first row has their names."""
        where, main = ("study", "table"), self.table("study")
        if "vary" in self.content or main.get("sampler", "table") != "table":
            reason = "table gives all values; remove [vary] and sampler, or table"
            raise self.error(where, reason)
        path = self.path.parent / str(main["table"])
        try:
            rows = [x for x in csv.reader(path.read_text("utf-8").splitlines()) if x]
        except (OSError, UnicodeDecodeError) as error:
            raise self.error(where, f"{path} cannot be read: {error}") from None
        names, given = [x.strip() for x in rows[0]] if rows else [], rows[1:]
        if not given or len(set(names)) != len(names):
            reason = f"{path} needs a row of different names and rows of numbers, with commas"
            raise self.error(where, reason)
        for place, row in enumerate(given, start=2):
            if len(row) != len(names) or not all(map(_is_number, row)):
                reason = f"row {place} of {path} must have {len(names)} finite numbers: {row}"
                raise self.error(where, reason)
        return {x: np.array([float(row[i]) for row in given]) for i, x in enumerate(names)}

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
        near, where = self.path.parent / name, ("mechanism", "robot")
        if ".py:" in name:
            mech = self.at(where, self._loaded(where, name))
            if not isinstance(mech, Mechanism):
                raise self.error(where, f"{name} returned {type(mech).__name__}, not a Mechanism")
        else:
            try:
                mech = robot(str(near) if near.is_file() else name, base)
            except LinkwiseError as error:
                raise self.error(where, str(error)) from None
        if "setup" in run:
            run["setup"] = self._loaded(("run", "setup"), run["setup"])
        if "contacts" in run and run["contacts"] != []:
            reason = (
                "contacts can be [] for none; give [run.ground] for a plane, or leave it out for "
                "what the file of the robot describes"
            )
            raise self.error(("run", "contacts"), reason)
        if ground := run.pop("ground", None):
            run["contacts"] = self._ground(mech, ground)
        q = run.pop("q", None)
        if q is None and ground:
            q = self.at(("run", "ground"), lambda: put_on_ground(mech, None, run["contacts"]))
        q = mech.couple(mech.neutral()) if q is None else q
        q = self.at(("run",), lambda: mech.check_q(q))
        v = run.pop("v", None)
        if v is not None:
            v = self.at(("run",), lambda v=v: mech.check_v(v))
        if law := run.pop("law", None):
            run["controller"] = self._law(mech, q, law)
        make: Any = Rollouts if kind == "rollout" else Simulations
        if "duration" not in run:
            raise self.error(("run",), "[run] needs 'duration', in seconds")
        return self.at(("run",), lambda: make(mech, q, v, **run))

    def _ground(self, mech: Mechanism, ground: Any) -> Any:
        where = ("run", "ground")
        self.table(*where)  # it must be one
        self.check(where, KEYS["run.ground"])
        bodies = ground.pop("bodies", None)
        plane = self.at(where, lambda: Ground(**ground))
        return self.at(where, lambda: ground_contacts(mech, plane, bodies=bodies))

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
            move = _three(law, "move")
            goal = None if goal is None else _three(law, "goal")
            if kind == "position":
                return made, place + move if goal is None else goal
            return made, Pose(place.rot, place.p + move if goal is None else goal)

        for key in ("node", "kp", "kv"):
            if key not in law:
                raise self.error(where, f"[run.law] needs {key!r}")
        if "goal" in law and "move" in law:
            raise self.error((*where, "move"), "[run.law] has both goal and move; give one")
        return self.at(where, made)

    def _function(self, run: dict[str, Any]) -> Calls:
        where = ("run", "function")
        function = self._loaded(where, run.get("function", ""))
        return Calls(function, batched=bool(run.get("batched", False)))

    def _loaded(self, where: tuple[str, ...], text: Any) -> Callable[..., Any]:
        """A function of a Python file, from "file.py:name"."""
        file, _, name = str(text).partition(":")
        place = (self.path.parent / file).resolve()
        if not name or not place.is_file():
            reason = f'{where[-1]} = "file.py:name" must name a function in a file next to this one'
            raise self.error(where, reason)
        module: Any = self.modules.get(place)
        if module is None:
            spec: Any = importlib.util.spec_from_file_location(place.stem, place)
            self.modules[place] = module = importlib.util.module_from_spec(spec)
            self.at(where, lambda: spec.loader.exec_module(module))
            sys.modules.setdefault(place.stem, module)  # as an import would do
            extra("cloudpickle", "cloudpickle", "a study").register_pickle_by_value(module)
        function = getattr(module, name, None)
        if not callable(function):
            raise self.error(where, f"{file} has no function {name!r}")
        return cast("Callable[..., Any]", function)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _three(law: Mapping[str, Any], key: str) -> Array:
    """A vector of three numbers, zeros where it is not given."""
    vector = floats(law.get(key, (0.0, 0.0, 0.0)), key)
    if vector.shape != (3,):
        raise ValueError(f"{key} is {law[key]!r}; it must be three numbers [x, y, z]")
    return vector


def _only(table: Mapping[str, Any], allowed: tuple[str, ...], kind: str) -> None:
    for key in table:
        if key not in allowed:
            raise unknown_name("key", key, allowed, owner=kind)


def _numbers(table: Mapping[str, Any], needed: tuple[str, ...], kind: str) -> list[float]:
    """Numbers of a table that has these keys and no others."""
    _only(table, needed, kind)
    for key in needed:
        if key not in table:
            raise ValueError(f"{kind} needs {key!r}; its keys are {', '.join(needed)}")
    return [number(table[key], key) for key in needed]


def _variable(given: Any) -> Any:
    """What varies, from a table, a list or a number."""
    if not isinstance(given, dict):
        return given
    table = dict(cast("dict[str, Any]", given))
    if "values" in table:
        values = table.pop("values")
        _numbers(table, (), "a list of values")
        return values
    if "start" in table:
        start, stop, points = _numbers(table, ("start", "stop", "count"), "a grid")
        return np.linspace(start, stop, count(int(points), "count", least=1))
    kind = str(table.pop("distribution", "uniform"))
    if kind == "uniform" and not {"loc", "scale"} & set(table):
        low, high = _numbers(table, ("low", "high"), "'uniform'")
        return low, high
    stats: Any = extra("scipy", "scipy.stats", "a distribution")
    if kind == "normal":
        return stats.norm(*_numbers(table, ("mean", "deviation"), "'normal'"))
    made: Any = getattr(stats, kind, None)
    if not hasattr(made, "ppf") or not hasattr(made, "freeze"):
        raise ValueError(
            f"distribution is {kind!r}; give 'uniform', 'normal' or one of scipy.stats"
        )
    shapes = tuple(x.strip() for x in (made.shapes or "").split(",") if x.strip())
    scale = () if not hasattr(made, "logpdf") else ("scale",)  # discrete ones have none
    shift = {"loc": 0.0} | ({"scale": 1.0} if scale else {})
    names = (*shapes, "loc", *scale)
    return made(**dict(zip(names, _numbers(shift | table, names, repr(kind)), strict=True)))
