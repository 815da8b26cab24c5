"""The same problem as a nonlinear programme of CasADi: multiple shooting, for IPOPT and others."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.arguments import constant, name
from linkwise.codegen.formula import Formula
from linkwise.control.optimize import optimize, problem_of
from linkwise.control.problem import FAR
from linkwise.control.residual import rows_of
from linkwise.control.shooting import Structure, step_of
from linkwise.convert.casadi import casadi_module, to_casadi
from linkwise.dynamics.configuration import missing
from linkwise.errors import ModelError, TroubleWarning, caller, unknown_name
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


@dataclass(frozen=True, slots=True, eq=False)
class NonlinearProgram:
    """min f(x) with bounds on x and g(x), in CasADi's symbols.

    Attributes:
        mech: The mechanism.
        problem: "x", "f" and "g", for `casadi.nlpsol`.
        arguments: "x0", "lbx", "ubx", "lbg" and "ubg" of the solver.
        steps: N.
        driven: Places of joint forces in v.
    """

    mech: Mechanism
    problem: dict[str, Any]
    arguments: dict[str, Array]
    steps: int
    driven: tuple[int, ...]

    def solve(
        self, solver: str = "ipopt", **options: Any
    ) -> tuple[dict[str, Array], float, dict[str, Any]]:
        """Solve it.

        Args:
            solver: Name of a solver of CasADi.
            options: Of `casadi.nlpsol`, such as `print_time=False`.

        Returns:
            "q" (N + 1, nq), "v" (N + 1, nv) and "tau" (N, nv), which `lw.optimize` takes as a
            guess; the cost; and what the solver reports.
        """
        ca = casadi_module()
        if not ca.has_nlpsol(name(solver, "solver")):
            raise ModelError(
                f"CasADi has no solver {solver!r} on this machine; 'ipopt' comes with it, others "
                "are found once they are installed."
            )
        try:
            call = ca.nlpsol("program", solver, self.problem, options)
        except (RuntimeError, NotImplementedError, TypeError) as error:
            # CasADi raises the second for options of a type that it cannot convert.
            reason = str(error).strip().splitlines()[-1].rpartition(".cpp:")[2]
            raise ModelError(
                f"the solver {solver!r} does not take the options {options}: {reason}. Options of "
                f"the solver itself are written {{'{solver}.NAME': value}}."
            ) from error
        result = call(**self.arguments)
        stats = dict(call.stats())
        if not stats.get("success", True):
            warnings.warn(
                f"{self.mech.name!r}: the program is not solved: {solver} ends with "
                f"{stats.get('return_status')!r}. The values are its last ones, and may violate "
                "dynamics and bounds. Widen or remove bounds, allow a longer horizon or more "
                "iterations, or give another guess.",
                TroubleWarning,
                stacklevel=caller(),
            )
        return self.trajectory(result["x"].full()[:, 0]), float(result["f"]), stats

    def trajectory(self, x: ArrayLike) -> dict[str, Array]:
        """Positions, velocities and joint forces of a solution x, by name.

        Args:
            x: The variables.
        """
        nq, nv, m, n = self.mech.nq, self.mech.nv, len(self.driven), self.steps
        flat = constant(x, ((n + 1) * (nq + nv) + n * m,), "x")
        states, forces = flat[: (n + 1) * (nq + nv)], flat[(n + 1) * (nq + nv) :]
        rows, tau = states.reshape(n + 1, nq + nv), np.zeros((n, nv))
        tau[:, list(self.driven)] = forces.reshape(n, m)
        return {"q": rows[:, :nq], "v": rows[:, nq:], "tau": tau}


def nonlinear_program(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    compiled: bool = False,
    **given: Any,
) -> NonlinearProgram:
    """The problem that `lw.optimize` solves, for a solver of CasADi.

        program = lw.control.nonlinear_program(arm, q, costs=..., step=0.02, horizon=50)
        motion, cost, stats = program.solve("ipopt")

    States and joint forces of all knots are variables, and steps are equations (multiple shooting).
    Costs, bounds, limits, phases and loops are the same, and so are the steps.

    Args:
        mech: The mechanism.
        q: Positions at the start (nq,) [m or rad].
        v: Velocities at the start (nv,); default: at rest.
        compiled: Whether steps and rows are compiled, see `lw.convert.to_casadi`.
        given: `costs`, `step` and what else `lw.optimize` takes to describe a problem: `horizon`,
            `phases`, `bounds`, `limits`, `driven`, `guess`, `parameters`, `integrator`, `passive`
            and `loops`.

    Raises:
        MissingExtraError: CasADi is not installed: the extra `casadi`.
        ModelError: A batch of problems, or an option of `lw.optimize` that is not about the
            problem.
    """
    ca = casadi_module()
    _check_given(given)
    p = problem_of(mech, q, v, **given)
    if p.shape.batch is not None:
        raise ModelError(
            f"a nonlinear programme is of one problem; these are {p.shape.batch}: q, v, a goal, "
            "the guess or parameters have an axis in front. Give one of each, or use lw.optimize."
        )
    s, data, n = p.program.structure, p.data, p.shape.steps
    nq, nv, m = p.mech.nq, p.mech.nv, len(s.driven)
    knot = to_casadi(Formula(_knot, (s,), ("gap", "rows")), p.program.mech, name="knot",
                     parameters=s.parameters, compiled=compiled)  # fmt: skip
    held = {k: np.broadcast_to(a, (1, n + 1, a.shape[-1]))[0] for k, a in data.held.items()}
    held["h"] = np.full((n + 1, 1), p.step)
    names = [knot.name_in(i) for i in range(knot.n_in())]
    x, u = ca.MX.sym("x", nq + nv, n + 1), ca.MX.sym("u", m, n)
    cost: Any = 0.0
    equations, lower, upper = list[Any](), list[Array](), list[Array]()
    for k in range(n + 1):
        after, force = x[:, min(k + 1, n)], u[:, k] if k < n else ca.MX.zeros(m)
        state = {"q": x[:nq, k], "v": x[nq:, k], "u": force, "q_next": after[:nq],
                 "v_next": after[nq:]}  # fmt: skip
        call = {i: state[i] if i in state else held[i][k] for i in names}
        out = knot(**call)
        cost = cost + 0.5 * ca.dot(held["weight"][k], out["rows"] ** 2)
        if k < n:
            equations.append(out["gap"])
            lower.append(np.zeros(2 * nv))
            upper.append(np.zeros(2 * nv))
        on = np.flatnonzero(held["active"][k] > 0.0) if s.bounds else ()
        if len(on):
            equations.append(out["rows"][[s.rows - s.bounds + int(i) for i in on]])
            lower.append(_infinite(held["low"][k, on]))
            upper.append(_infinite(held["high"][k, on]))
    guess = data.guess[0]
    states = guess[:, : nq + nv].copy()
    states[0] = data.start[0]
    least, most = np.full((n + 1, nq + nv), -np.inf), np.full((n + 1, nq + nv), np.inf)
    least[0] = most[0] = states[0]
    box = [np.full((n, m), sign * np.inf) for sign in (-1.0, 1.0)]
    if s.boxed:
        box = [_infinite(np.broadcast_to(held[i][:n], (n, m))) for i in ("u_low", "u_high")]
    arguments = {
        "x0": np.concatenate([states.ravel(), guess[:-1, nq + nv :].ravel()]),
        "lbx": np.concatenate([least.ravel(), box[0].ravel()]),
        "ubx": np.concatenate([most.ravel(), box[1].ravel()]),
        "lbg": np.concatenate(lower),
        "ubg": np.concatenate(upper),
    }
    problem = {"x": ca.veccat(x, u), "f": cost, "g": ca.vertcat(*equations)}
    return NonlinearProgram(p.mech, problem, arguments, n, s.driven)


def _check_given(given: Mapping[str, Any]) -> None:
    """Raise for names that are not part of a problem."""
    known = list(signature(problem_of).parameters)[3:]
    of_solver = signature(optimize).parameters.keys() - {"mech", "q", "v", *known}
    for option in given:
        if option in of_solver:
            raise ModelError(
                f"{option!r} says how lw.optimize solves a problem, and is no part of one. "
                "Give options of the solver to solve: solve('ipopt', **{'ipopt.max_iter': 100})."
            )
        if option not in known:
            raise unknown_name("option", option, known, owner="a nonlinear programme")
    for option in ("costs", "step"):
        if option not in given:
            raise ModelError(f"{option} is missing; a problem needs costs, a step and a horizon.")


def _infinite(x: Array) -> Array:
    """Bounds that are far away are none."""
    return np.where(np.abs(x) >= FAR, np.copysign(np.inf, x), x)


def _knot(at: Writing, s: Structure) -> Any:
    """The gap to the next knot (2 nv,), and the rows of costs and constraints."""
    mech = at.mech
    u, q_to, v_to, pull = step_of(at, s)
    after = at.read("q_next", mech.nq), at.read("v_next", mech.nv)
    gap = np.concatenate([missing(mech, after[0], q_to), v_to - after[1]])
    r, _, _ = rows_of(at, s.terms, u, derivatives=False, bare=True, pull=(pull, None))
    return gap, r
