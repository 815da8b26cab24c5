"""Which tests are near to a mutant: those that speak of its function, or of what calls it.

A name counts more the nearer it is (the mutant's function, its class, the lines around it, others
of its module, those of modules that import it) and the fewer files of tests contain it. Where names
did not lead to a test that notices a mistake, one was looked for by hand: `noticed_by.json`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tools.mutation.operators import Mutant

FAR = (
    "example",
    "browser",
    "corpus",
    "monte_carlo",
    "trajectories",
    "docs",
    "fuzz",
    "long_chains",
    "oracles",
    "pinocchio",
)
"""Files of tests whose names contain one of these take long and are seldom nearest."""

APART = ("tour", "cli", "viewer", "plot", "convert")
"""Folders of tests that are near to their own package alone."""

FOLDERS = {
    "model": ("model", "models"),
    "algebra": ("algebra", "sweeps"),
    "codegen": ("codegen", "simulation"),
    "grasp": ("grasp", "loops"),
    "inertial": ("inertial", "tasks"),
}
"""Folders of tests besides the one of the package's own name."""

CLOSED = ("tests/loops/test_closure_quantity.py", "tests/loops/test_random_loops.py")
EMBEDDED = ("tests/loops/test_embedding.py", "tests/loops/test_embedding_identities.py")
LADDER = ("tests/codegen/test_ladder.py", "tests/codegen/test_kernel.py")
KNOWN = {
    "model/closure.py": CLOSED,
    "model/task_rows.py": CLOSED,
    "sweeps/closure_statement.py": CLOSED,
    "model/hinges/": ("tests/model/test_hinges.py",),
    "io/urdf/loop.py": ("tests/io/test_urdf_loops.py", "tests/loops/test_files_urdf.py"),
    "sweeps/aggregate": EMBEDDED,
    "model/embedded.py": EMBEDDED,
    "codegen/scalar": LADDER,
    "codegen/cpu": LADDER,
    "codegen/rolled": ("tests/codegen/test_rolled.py", *LADDER),
    "codegen/cuda": ("tests/codegen/test_cuda.py", "tests/codegen/test_cuda_motion.py"),
    "codegen/stepping": ("tests/simulation/test_rollout.py",),
    "simulation/variational": ("tests/simulation/test_variational.py",),
    "simulation/interpolation.py": ("tests/simulation/test_recording.py",),
    "tasks/control/": ("tests/tasks/test_control.py", "tests/tasks/test_control_posture.py"),
    "algebra/dense.py": ("tests/algebra/test_dense.py", "tests/sweeps/test_interpret.py"),
    "algebra/search.py": ("tests/algebra/test_derive.py",),
    "algebra/symbols.py": ("tests/algebra/test_rules.py",),
    "algebra/armature.py": ("tests/algebra/test_dense.py", "tests/algebra/test_conditions.py"),
    "algebra/rules": ("tests/algebra/test_rules.py",),
}
"""Files of tests that come first, where names do not tell: for files that begin so."""

NOTICED_BY = Path(__file__).with_name("noticed_by.json")
"""Of some mutants, by their keys, the test to begin with."""

DEFINED = re.compile(r"^(?:def|class) ([A-Za-z]\w+)|^([A-Z][A-Z_0-9]+)\b.*=", re.MULTILINE)
IMPORTED = re.compile(r"^from linkwise\.([\w.]+) import|^import linkwise\.([\w.]+)", re.MULTILINE)


@dataclass
class Nearest:
    """The files of tests and of the source, by what they contain.

    Attributes:
        root: The repository.
    """

    root: Path

    @cached_property
    def tests(self) -> dict[str, frozenset[str]]:
        """The words of each file of tests."""
        paths = sorted((self.root / "tests").rglob("test_*.py"))
        return {
            path.relative_to(self.root).as_posix(): words(path.read_text(encoding="utf-8"))
            for path in paths
            if not any(word in path.name for word in FAR)
        }

    @cached_property
    def frequency(self) -> Counter[str]:
        """How many files of tests contain a word."""
        return Counter(word for result in self.tests.values() for word in result)

    @cached_property
    def modules(self) -> dict[str, str]:
        """The text of each module, by its file."""
        source = self.root / "src" / "linkwise"
        return {
            path.relative_to(source).as_posix(): path.read_text(encoding="utf-8")
            for path in sorted(source.rglob("*.py"))
        }

    @cached_property
    def noticed_by(self) -> dict[str, str]:
        """Of some mutants, by their keys, the test to begin with."""
        return json.loads(NOTICED_BY.read_text(encoding="utf-8"))

    def names(self, mutant: Mutant) -> dict[str, float]:
        """What a test near to a mutant speaks of, with weights."""
        module = mutant.file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        result = dict.fromkeys(self._defined(mutant.file), 2.0)
        for file, text in self.modules.items():
            users = (a or b for a, b in IMPORTED.findall(text))
            if module in users and not file.endswith("__init__.py"):
                for name in self._defined(file):
                    result.setdefault(name, 0.3)
        result |= {part: 9.0 for part in mutant.scope.split(".") if not part.startswith("_")}
        result[module.rsplit(".", 1)[-1]] = 4.0
        around = self.modules[mutant.file].splitlines()[max(0, mutant.line - 6) : mutant.line + 5]
        for name in words("\n".join(around)):
            result[name] = max(result.get(name, 0.0), 2.0)
        weights = {x: w / self.frequency[x] for x, w in result.items() if x in self.frequency}
        near = "\n".join(around[2:7])  # a text, such as the name of a rule, may be a parameter
        return weights | dict.fromkeys(re.findall(r'"([^"\n]+)"', near), 6.0)

    def files(self, mutant: Mutant, count: int) -> list[str]:
        """The nearest files of tests; where the test to begin with is known, its file alone."""
        if mutant.key in self.noticed_by:
            return [self.noticed_by[mutant.key].split("::")[0]]
        names, folder = self.names(mutant), mutant.file.split("/")[0]
        starts = [start for start in KNOWN if mutant.file.startswith(start)]
        known = KNOWN[max(starts, key=len)] if starts else ()
        folders = tuple(f"tests/{x}/" for x in FOLDERS.get(folder, (folder,)))

        def score(file: str) -> float:
            hits = (w for x, w in names.items() if x in self.tests[file])
            return sum(hits) + 4.0 * file.startswith(folders) + 9.0 * (file in known)

        apart = tuple(f"tests/{x}/" for x in APART if x != folder)
        near = [file for file in self.tests if not file.startswith(apart)]
        return sorted(near, key=lambda file: (-score(file), file))[:count]

    def _defined(self, file: str) -> list[str]:
        return [a or b for a, b in DEFINED.findall(self.modules[file])]


def words(text: str) -> frozenset[str]:
    """The names that a text contains, whole and without the marks of a test."""
    result = set(re.findall(r"[A-Za-z_]\w+", text))
    return frozenset(result | {part for x in result for part in x.split(".")})
