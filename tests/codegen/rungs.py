"""The rungs of the ladder: one expression on one mechanism, evaluated in every way there is."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise.algebra.dense import Dense
from linkwise.algebra.derivation import leaves, random_dense
from linkwise.algebra.expr import Expr
from linkwise.algebra.symbols import to_W
from linkwise.codegen.c.selftest import evaluate
from linkwise.codegen.c.source import CSource
from linkwise.codegen.scalar.trace import Traced, trace
from linkwise.pipeline import derive
from linkwise.sweeps.interpret import run
from linkwise.sweeps.lower import lower
from tests.algebra import trees
from tests.codegen.cuda_on_host import OnHost
from tests.codegen.rounding import UNIT, Rounded, depth, rounded

C_COMPILER = shutil.which("cc") or shutil.which("gcc")
CPP_COMPILER = shutil.which("g++") or shutil.which("clang++")
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O0")
STATES = 17
DENSE = (0, 1, STATES - 1)
"""States that are looked at as matrices and by the interpreter, which are slow."""

WIDE = 16.0
"""A running bound that is so many times as wide as that of the matrices is given up for it."""

OTHER_ROUNDING = 64.0
"""The same operations, fused or not: how much more one may err than the other."""

FEW = (1, 3, 7, STATES)
"""Sizes of batches: below, at no multiple of, and beyond what a vector register holds."""

Answer = tuple[np.ndarray, np.ndarray]
"""Results (states, n) with NaN in trouble, and statuses (states,)."""


@dataclass
class Case:
    """An expression on a mechanism, in random states that single precision can represent."""

    expr: Expr
    mech: lw.Mechanism
    nodes: Sequence[str] = ()
    seed: int = 0
    vanishing: bool = False
    """Whether parts of it may be zero by an identity: what is left is noise, and differs."""
    given: dict[str, np.ndarray] = field(init=False)
    blocks: dict[str, object] = field(init=False)
    """Operators of one's own, the same in all states."""
    _graphs: dict[int, tuple[Traced, list[np.ndarray], Rounded]] = field(
        init=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        rng, mech = np.random.default_rng(self.seed), self.mech
        drawn = [
            random_dense(mech, [self.expr], int(rng.integers(1 << 30)), self.nodes)
            for _ in range(STATES)
        ]
        self.given = {"q": _short([d.q for d in drawn]), "v": _short([d.v for d in drawn])}
        if any(leaf is to_W for leaf in leaves(self.expr)):
            _exact_turns(mech, self.given["q"])
        self.blocks = {
            name: value
            for name, value in drawn[0].values.items()
            if not isinstance(value, np.ndarray)
        }
        for name, value in drawn[0].values.items():
            if isinstance(value, np.ndarray):
                self.given[name] = _short([d.values[name] for d in drawn])

    @cached_property
    def result(self) -> Expr:
        return derive(self.expr).result

    def rows(self, names: Sequence[str]) -> list[np.ndarray]:
        return [self.given[name] for name in names]

    # ------------------------------------------------------------------------ the slow ones

    def matrices(self, i: int) -> Dense:
        """The matrices of state i."""
        q, v = self.given["q"][i], self.given["v"][i]
        return Dense(self.mech, q, v, nodes=self.nodes, values=self._rest(i))

    def _rest(self, i: int) -> dict[str, object]:
        return {n: x[i] for n, x in self.given.items() if n not in ("q", "v")} | self.blocks

    @cached_property
    def magnitudes(self) -> np.ndarray:
        """The largest entry if nothing cancelled, times the condition of D (states,)."""
        actual = list[float]()
        for i in range(STATES):
            dense = self.matrices(i)
            sizes = [trees.magnitude(dense, x).max(initial=0.0) for x in (self.expr, self.result)]
            actual.append(max(sizes) * trees.condition(dense))
        return np.array(actual)

    def dense(self, i: int) -> tuple[np.ndarray, float]:
        """The matrices of state i multiplied out, and how far rounding can lead them astray."""
        error = self.longest * UNIT[8] * self.magnitudes[i]
        return self.matrices(i).matrix(self.expr).ravel(), error

    @property
    def longest(self) -> int:
        """Roundings: inner products, a factor after the other, in as many recursions as bodies."""
        factors = max(1, sum(1 for _ in leaves(self.expr)))
        return 6 * self.mech.n_bodies * factors * self.mech.n_bodies

    def interpreted(self, i: int) -> np.ndarray:
        """The sweeps of the expression as it stands."""
        q, v = self.given["q"][i], self.given["v"][i]
        program = lower(self.expr)
        return run(program, self.mech, q, v, nodes=self.nodes, values=self._rest(i)).ravel()

    def by_numpy(self, states: Sequence[int]) -> np.ndarray:
        """The sweeps of the cheapest form."""
        kernel = lw.compile(self.expr, self.mech, nodes=self.nodes, target="numpy")
        rows = [x[list(states)] for x in self.rows(kernel.arguments)]
        return kernel(*rows).reshape(len(states), -1)

    # -------------------------------------------------------------------------- what is right

    def bound(self, itemsize: int = 8, *, looped: bool = False) -> Rounded:
        """The scalar graph with its rounding; `looped` for loops over bodies."""
        traced, given, actual = self._rounded(itemsize)
        # Loops do not fold constants: what is zero by structure is rounded there.
        unit = UNIT[itemsize] * (self.longest if looped else depth(traced))
        sharper = unit * self.magnitudes
        wide = actual.error.max(axis=1, initial=0.0) > WIDE * sharper
        error = np.where(wide[:, None], np.fmin(actual.error, sharper[:, None]), actual.error)
        error = np.fmax(error, sharper[:, None]) if looped else error
        if itemsize == 4 and not self.vanishing:
            with np.errstate(all="ignore"):  # what the same graph errs by in NumPy is sharpest
                apart = np.abs(evaluate(traced, given, "float32") - actual.value)
            floor = unit * np.abs(actual.value).max(axis=1, initial=0.0)
            seen = OTHER_ROUNDING * apart.max(axis=1, initial=0.0) + floor
            error = np.fmin(error, seen[:, None])
        return replace(actual, error=error)

    def _rounded(self, itemsize: int) -> tuple[Traced, list[np.ndarray], Rounded]:
        if itemsize not in self._graphs:
            traced = trace(lower(self.result), self.mech, self.nodes, itemsize=itemsize)
            given = self.rows([name for name, _ in traced.inputs])
            self._graphs[itemsize] = traced, given, rounded(traced, given, itemsize)
        return self._graphs[itemsize]

    # -------------------------------------------------------------------------------- kernels

    def kernel(self, dtype=np.float64, *, rolled: bool = False) -> Compiled:
        made = lw.compile(
            self.expr, self.mech, nodes=self.nodes, dtype=dtype, rolled=rolled, cache=False
        )
        rows = [x.astype(dtype) for x in self.rows(made.arguments)]
        return Compiled(made, rows)

    def c_function(self, folder: Path, dtype=np.float64) -> Answer:
        """The emitted C, as strict as the compiler can be, state by state."""
        made = lw.compile(self.expr, self.mech, nodes=self.nodes, target="c", dtype=dtype)
        assert isinstance(made, CSource)
        function = built(made.named("rung"), folder)
        rows = [np.ascontiguousarray(x, dtype=dtype) for x in self.rows(made.arguments)]
        out = np.full((STATES, int(np.prod(made.shape))), 7.0, dtype)
        codes = np.empty(STATES, np.int32)
        for i in range(STATES):
            codes[i] = function(*(ctypes.c_void_p(x[i].ctypes.data) for x in (*rows, out)))
        return out, codes

    def cuda_on_host(self, folder: Path, dtype=np.float64) -> Answer:
        """The CUDA source, compiled for the processor."""
        made = lw.compile(self.expr, self.mech, nodes=self.nodes, target="cuda", dtype=dtype)
        host = OnHost(made.device.emitted, len(made.arguments), folder, str(CPP_COMPILER))
        rows = [x.astype(dtype) for x in self.rows(made.arguments)]
        width = int(np.prod(made.signature.shape))
        out, codes, _ = host(rows, width, STATES)
        return out, codes


@dataclass
class Compiled:
    """A kernel for the CPU with its inputs."""

    kernel: lw.Kernel
    rows: list[np.ndarray]

    def one_by_one(self, states: Sequence[int] = range(STATES)) -> Answer:
        actual = [self._single(i) for i in states]
        return np.array([x for x, _ in actual]), np.array([code for _, code in actual])

    def _single(self, i: int) -> tuple[np.ndarray, int]:
        code = np.empty((), np.int32)
        out = self.kernel(*(x[i] for x in self.rows), status=code)
        return out.ravel(), int(code)

    def batch(self, count: int) -> Answer:
        codes = np.full(count, -1, np.int32)
        out = self.kernel(*(x[:count] for x in self.rows), status=codes)
        return out.reshape(count, -1), codes


def built(made: CSource, folder: Path) -> ctypes._CFuncPtr:
    """The function of emitted C, from a shared object."""
    made.write(folder)
    flags = [*STRICT, "-shared", "-fPIC", f"{made.name}.c", "-o", "rung.so", "-lm"]
    done = subprocess.run(
        [str(C_COMPILER), *flags], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[:3000]
    return getattr(ctypes.CDLL(str(folder / "rung.so")), made.name)


def _exact_turns(mech: lw.Mechanism, q: np.ndarray) -> None:
    """Quaternions (±½, ±½, ±½, ±½): to_W⁻¹ takes rotations for orthogonal, to the last digit.

    A quaternion in short numbers has a length of 1 to 1e-7 only.
    """
    for k, body in enumerate(mech.bodies):
        if body.hinge.quaternion is not None:
            start = int(mech.q_start[k])
            part = slice(start + body.hinge.quaternion.start, start + body.hinge.quaternion.stop)
            q[:, part] = np.where(q[:, part] < 0.0, -0.5, 0.5)


def _short(values: list[np.ndarray]) -> np.ndarray:
    return np.array(values).astype(np.float32).astype(np.float64)
