"""A tick of a receding horizon as a C function, with a self-test."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.codegen.c.emit import fused
from linkwise.codegen.c.header import MARK, version
from linkwise.codegen.c.source import write_files
from linkwise.codegen.c.statements import Statements
from linkwise.codegen.c.text import check_identifier, comment, number, plain_name
from linkwise.control.tick import Plan, Tick
from linkwise.front_door import open_front_door
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

TICKS = 6
"""Ticks of the self-test."""

ALLOWED = 1e-8
"""Difference of joint forces that the self-test allows, relative to the largest one. Compilers
round differently, and iterations carry that on."""

HEADER = """{about}
#ifndef {macro}_H
#define {macro}_H

#define {macro}_NQ {nq}
#define {macro}_NV {nv}
#define {macro}_GOALS {goals}
#define {macro}_MEMORY {memory}

#ifdef __cplusplus
extern "C" {{
#endif

/* Forget the plan, and set goals, weights and all other numbers of the problem. */
void {name}_reset(double *memory);

/* The goals of all costs, {goals} numbers; {name}_reset sets those of the problem. */
double *{name}_goal(double *memory);

/*
 * A tick: joint forces tau for the measured q and v. The plan moves on by `advance` steps of
 * {step} s before, 0 or 1; the first tick after {name}_reset begins a plan. It makes as many
 * iterations as given, fewer where nothing is left to gain.
 * Returns 0, or 1 where q or v is not finite, 2 where the plan is not; tau is NaN then.
 */
int {name}(double *memory, const double *q, const double *v, int advance, int iterations,
    double *tau);

#ifdef __cplusplus
}}
#endif

#endif
"""

MAIN = """
void {name}_reset(double *memory)
{{
    int i;
    for (i = 0; i < {macro}_MEMORY; ++i) {{
        memory[i] = 0.0;
    }}
    memory[{h}] = {step};
{fills}
    memory[{begun}] = 0.0;
}}

double *{name}_goal(double *memory)
{{
    return memory + {goal};
}}

int {name}(double *memory, const double *q, const double *v, int advance, int iterations,
    double *tau)
{{
    double *const m = memory;
    int i, status = 0;
    for (i = 0; i < {nq}; ++i) {{
        m[{now} + i] = q[i];
        status |= !isfinite(q[i]);
    }}
    for (i = 0; i < {nv}; ++i) {{
        m[{now} + {nq} + i] = v[i];
        status |= !isfinite(v[i]);
    }}
    if (status == 0) {{
        m[{advance}] = m[{begun}] > 0.0 ? (double)(advance > 0) : -1.0;
        m[{begun}] = 1.0;
        m[{most}] = (double)iterations;
        {name}_tick(m);
        for (i = 0; i < {nv}; ++i) {{
            tau[i] = m[{tau} + i];
            status = isfinite(tau[i]) ? status : 2;
        }}
    }}
    for (i = 0; status != 0 && i < {nv}; ++i) {{
        tau[i] = (double)NAN;
    }}
    return status;
}}

#ifdef {macro}_SELFTEST

#include <stdio.h>

/* States of some ticks, and the joint forces that the kernel of Linkwise gives there. */
{tables}

int main(void)
{{
    static double memory[{macro}_MEMORY];
    double tau[{nv}], worst = 0.0;
    int i, j, failed = 0;
    {name}_reset(memory);
    for (i = 0; i < {ticks}; ++i) {{
        const double *x = selftest_state[i];
        const int status = {name}(memory, x, x + {nq}, i % 2, i == 0 ? {first} : {later}, tau);
        for (j = 0; j < {nv}; ++j) {{
            worst = fmax(worst, fabs(tau[j] - selftest_tau[i][j]));
            failed |= !(fabs(tau[j] - selftest_tau[i][j]) <= {allowed});
        }}
        failed |= status;
    }}
    tau[0] = NAN;
    failed |= {name}(memory, tau, selftest_state[0], 0, 1, tau) != 1 || !isnan(tau[0]);
    printf("{name}: {ticks} ticks, largest difference %.1e, allowed is %.1e: %s\\n", worst,
        {allowed}, failed ? "FAILED" : "ok");
    return failed;
}}

#endif
"""


@dataclass(frozen=True)
class HorizonSource:
    """A receding horizon in C: one header and one source that need nothing but math.h.

    Attributes:
        name: Of the function and the files.
        header: The text of NAME.h.
        source: The text of NAME.c, with the self-test behind #ifdef NAME_SELFTEST.
        memory: Numbers of the memory that a call takes.
    """

    name: str
    header: str
    source: str
    memory: int

    def __repr__(self) -> str:
        return f"<C source {self.name!r} of a receding horizon, {self.memory} numbers of memory>"

    def write(self, folder: str | os.PathLike[str] = ".", *, force: bool = False) -> list[Path]:
        """Write NAME.h and NAME.c, and give their paths.

        Args:
            folder: The folder; created if it does not exist.
            force: Whether files of other origin may be replaced.

        Raises:
            LinkwiseError: A file of other origin is there already, or nothing can be written.
        """
        paths = [Path(folder, f"{self.name}{ending}") for ending in (".h", ".c")]
        write_files(paths, (self.header, self.source), force=force)
        return paths


def export(
    tick: Tick, held: dict[str, Any], step: float, name: str, first: int, later: int
) -> HorizonSource:
    """The C function of a tick.

    Args:
        tick: The tick.
        held: Numbers of the problem, by name.
        step: Length of a step [s].
        name: Of the function and the files.
        first: Iterations of the first tick of the self-test.
        later: Those of the others.
    """
    check_identifier(name)
    mech, stepping = tick.routine.program.mech, tick.stepping()
    registers = stepping.registers | {"begun": 1}
    made = Statements(name, registers, stepping.step)
    at, macro = made.offset, name.upper()
    fills, tables = list[str](), list[str]()
    for register, size in tick.routine.inputs.items():
        values = np.broadcast_to(held[register].reshape(1, -1), (1, size))[0]
        table = f"given_{len(tables)}"
        tables.append(_table(table, values[None]))
        fills.append(f"    for (i = 0; i < {size}; ++i) {{")
        fills.append(
            f"        memory[{at[register]} + i] = {table}[0][i];  /* {plain_name(register)} */"
        )
        fills.append("    }")
    states, forces = _ticks(tick, held, step, first, later)
    numbers = {
        "name": name, "macro": macro, "nq": mech.nq, "nv": mech.nv, "memory": made.size,
        "goals": registers.get("goal", 0), "step": number(step, "float64"), "h": at["h"],
        "fills": "\n".join(fills), "begun": at["begun"], "now": at["now"],
        "goal": at.get("goal", 0),
        "advance": at["advance"], "most": at["most"], "tau": at["tau"], "ticks": TICKS,
        "first": first, "later": later, "allowed": repr(ALLOWED * float(np.abs(forces).max())),
        "tables": _table("selftest_state", states) + "\n" + _table("selftest_tau", forces),
    }  # fmt: skip
    source = "\n".join([
        comment([f"{MARK} {version()}; do not edit.", "", f"{name}: see {name}.h."]),
        f'#include "{name}.h"\n\n#include <math.h>\n', fused("float64"), *tables,
        *made.functions(),
        "\n".join([f"static void {name}_tick(double *m)", "{", *made.calls(), "}"]),
        MAIN.format(**numbers),
    ])  # fmt: skip
    header = HEADER.format(about=_about(mech, tick, name, step), **numbers)
    return HorizonSource(name, header, source, made.size)


def _about(mech: Mechanism, tick: Tick, name: str, step: float) -> str:
    return comment([
        f"{MARK} {version()}; do not edit.", "",
        f"{name}: model predictive control of {mech.name!r}, {tick.routine.knots - 1} steps of "
        f"{step:g} s.", "",
        "All memory is given by the caller: NAME_MEMORY numbers, one array for each robot. Nothing "
        "is allocated, and nothing is kept elsewhere.", "",
        "q: " + ", ".join(body.hinge_name for body in mech.bodies if body.hinge.nv),
    ])  # fmt: skip


def _ticks(
    tick: Tick, held: dict[str, Any], step: float, first: int, later: int
) -> tuple[Array, Array]:
    """States of some ticks, and the joint forces of the kernel (ticks, .)."""
    mech, plan, rng = tick.routine.program.mech, Plan(tick, held, step), np.random.default_rng(0)
    states, forces = list[Array](), list[Array]()
    x = np.concatenate([mech.neutral(), np.zeros(mech.nv)])
    for i in range(TICKS):
        plan.advance(x, i % 2 if i else -1, first if i == 0 else later)
        states.append(x)
        forces.append(plan.tau.copy())
        x = plan.trajectory[(i + 1) % 2, : tick.routine.nx].copy()
        x[mech.nq :] += 0.01 * rng.standard_normal(mech.nv)
    return np.array(states), np.array(forces)


def _table(name: str, values: Array) -> str:
    """Constants, four in a line."""
    rows = list[str]()
    for row in values.tolist():
        lines = [", ".join(repr(x) for x in row[i : i + 4]) for i in range(0, len(row), 4)]
        rows.append("    {" + ",\n     ".join(lines) + "}")
    head = f"static const double {name}[{len(values)}][{values.shape[1]}] = {{"
    return "\n".join([head, ",\n".join(rows), "};"])


open_front_door(globals(), ("HorizonSource",))
