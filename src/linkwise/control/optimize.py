"""Trajectories that cost least: differential dynamic programming on a mechanism."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import all_are, count, flag, function, mapping, names, number, option
from linkwise.codegen import arrays
from linkwise.control.batch import batch_of
from linkwise.control.cost import Bound, Cost, checked_bounds, checked_costs
from linkwise.control.failure import WORDS, advice, row_names, start_off, worst_row
from linkwise.control.phase import Phase, schedule, steps_of
from linkwise.control.place import Place
from linkwise.control.problem import LIMITS, Shape, data_of, limits_of, structure_of
from linkwise.control.program import Program, program
from linkwise.control.routine import Routine, routine
from linkwise.control.side_by_side import solved
from linkwise.control.solver import (
    RUNNING,
    SOLVED,
    Data,
    Iteration,
    Limits,
    at_knots,
)  # fmt: skip
from linkwise.control.transition import INTEGRATED
from linkwise.dynamics.closure import constraint_error, constraint_names
from linkwise.dynamics.kernels import Loops, check_mechanism, is_closed, tree_of
from linkwise.errors import (
    ClosureError,
    LoweringError,
    ModelError,
    ShapeError,
    TroubleWarning,
    caller,
)
from linkwise.model.closure import is_traceable
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.holding import contact_rows
from linkwise.spatial.array import Array, ArrayLike

OPEN = 1e-3
"""Largest error of a loop at the start [m or rad]."""


@dataclass(frozen=True, slots=True, eq=False)
class Progress:
    """How far an optimisation is.

    Attributes:
        iteration: Iterations so far.
        cost: The mean cost, with penalties of violated bounds.
        violation: The largest violation of a bound of any problem.
        solved: Problems that have ended.
        problems: All problems.
        elapsed: Time since the beginning [s].
        left: Time that the remaining iterations take at most [s].
    """

    iteration: int
    cost: float
    violation: float
    solved: int
    problems: int
    elapsed: float
    left: float

    def __str__(self) -> str:
        return (
            f"iteration {self.iteration}: cost {self.cost:.6g}, violation {self.violation:.2g}, "
            f"{self.solved} of {self.problems} ended, at most {self.left:.1f} s left"
        )


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """How an optimisation converged: a number at the beginning of each iteration.

    Those of a batch are (batch, iterations), NaN where a problem has ended.

    Attributes:
        cost: With penalties of violated bounds (iterations,).
        gap: Length of the gaps between the knots (iterations,).
        violation: The largest violation of a bound (iterations,).
    """

    cost: Array
    gap: Array
    violation: Array


@dataclass(frozen=True, slots=True, eq=False)
class Trajectory:
    """A trajectory that costs least, or one for each problem of a batch, with (batch,) in front.

    Attributes:
        mech: The mechanism.
        q: Joint positions (N + 1, nq) [m or rad].
        v: Joint velocities (N + 1, nv) [m/s or rad/s].
        tau: Joint forces, each held for a step (N, nv) [N or N m].
        gain: K (N, nv, 2 nv) of the feedback τ + K (q ⊖ q_k, v − v_k) about it.
        cost: What it costs, without penalties of violated bounds, ().
        violation: The largest violation of a bound, ().
        iterations: How many were made, ().
        status: 0 where it is solved, else a code, (); `message` explains it.
        history: How it converged.
        step: Length of a step [s].
        integrator: Name of the integrator.
        forces: Force on each node of a contact, by its name (N, 3), in axes of the world [N].
    """

    mech: Mechanism
    q: Array
    v: Array
    tau: Array
    gain: Array
    cost: Array
    violation: Array
    iterations: NDArray[np.int64]
    status: NDArray[np.int64]
    history: History
    step: float
    integrator: str
    forces: Mapping[str, Array] = field(default_factory=dict[str, Array])

    @property
    def time(self) -> Array:
        """Time of each knot (N + 1,) [s]."""
        return np.arange(self.q.shape[-2], dtype=np.float64) * self.step

    @property
    def message(self) -> str:
        """How it ended; for a batch, how most of those ended that are not solved."""
        codes = np.atleast_1d(self.status)
        bad = codes[codes != 0]
        worst = int(np.bincount(bad).argmax()) if len(bad) else 0
        return _message(worst)

    @property
    def inputs(self) -> dict[str, Array]:
        """`inputs` of `lw.rollout` with `controller=(feedback, q)`, see `feedback`."""
        lead = self.gain.shape[:-2]
        return {"velocity": self.v[..., :-1, :], "tau0": self.tau,
                "gain": -self.gain.reshape(*lead, -1)}  # fmt: skip

    @property
    def feedback(self) -> Any:
        """The law of the first step, for `lw.rollout` together with `inputs`.

        lw.rollout(mech, q, v, controller=(t.feedback, t.q[:-1]), inputs=t.inputs, ...)
        """
        from linkwise.dynamics.state_feedback import StateFeedback

        if self.q.ndim > 2:
            raise ShapeError(
                "feedback belongs to one trajectory, and this result holds a batch; optimise the "
                "problem alone."
            )
        first = -self.gain[0], self.q[0], self.v[0], self.tau[0]
        return StateFeedback.of(self.mech, *first)

    def __str__(self) -> str:
        if self.q.ndim == 2:
            return (
                f"trajectory of {self.mech.name!r}, {len(self.tau)} steps of {self.step:g} s: "
                f"{self.message}, {int(self.iterations)} iterations, cost {float(self.cost):.6g}, "
                f"violation {float(self.violation):.2g}"
            )
        solved = int(np.sum(self.status == 0))
        return (
            f"{len(self.q)} trajectories of {self.mech.name!r}, {self.tau.shape[-2]} steps of "
            f"{self.step:g} s: {solved} solved, {float(self.iterations.mean()):.1f} iterations on "
            f"average, mean cost {float(self.cost.mean()):.6g}"
        )


def _message(status: int) -> str:
    return WORDS[SOLVED if status == 0 else status]


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A problem that is ready to be solved.

    Attributes:
        program: Its kernels.
        data: Its numbers.
        shape: How many problems and knots there are.
        step: Length of a step [s].
        mech: The mechanism, without loops for contacts.
        contacts: Nodes of contacts.
    """

    program: Program
    data: Data
    shape: Shape
    step: float
    mech: Mechanism
    contacts: tuple[str, ...] = ()


def optimize(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    costs: Cost | Sequence[Cost],
    step: float,
    horizon: int | None = None,
    phases: Phase | Sequence[Phase] = (),
    bounds: Bound | Sequence[Bound] = (),
    limits: Sequence[str] = LIMITS,
    driven: Sequence[str] | None = None,
    guess: Trajectory | Mapping[str, ArrayLike] | None = None,
    parameters: Mapping[str, ArrayLike] | None = None,
    integrator: str = "euler",
    passive: bool = True,
    loops: Loops = "closed",
    iterations: int = 200,
    tolerance: float = 1e-7,
    violation: float = 1e-5,
    threads: int | None = None,
    target: str = "cpu",
    progress: Callable[[Progress], None] | None = None,
) -> Trajectory:
    """The motion and the joint forces that cost least, from a state on.

    Expression:
        min Σ h l(x_k, u_k) + l_N(x_N),   x_{k+1} = f(x_k, u_k),   l = Σ ½ w |r|²
    by differential dynamic programming with Gauss-Newton Hessians: all knots are expanded, the
    Riccati recursion of `lw.lqr` runs from the last one to the first, and a rollout with its gains
    follows. The guess need not be a motion: gaps between its knots are closed by full steps
    (multiple shooting, as in FDDP). Limits of joint forces hold in each step exactly (a quadratic
    programme with bounds in the recursion). Other bounds are held by an augmented Lagrangian: it
    needs no start that meets them, and reaches them without weights that grow without end.

    A batch of problems runs side by side in the lanes and cores of the processor; each has its
    own step lengths, regularisation, multipliers and end. It has as many problems as starts, or
    for a single start as goals, parameters or guesses.

    Args:
        q: Positions at the start (nq,) or (batch, nq) [m or rad].
        v: Velocities at the start, likewise; default: at rest.
        costs: What is weighed, such as `Cost.of_task`, `Cost.posture` and `Cost.effort`.
        step: h, the length of a step [s].
        horizon: N, the number of steps; default: that of all phases.
        phases: Which contacts hold, phase by phase; default: none. Contacts slip and pull as
            little as bounds are violated, and swinging feet stay above the ground.
        bounds: What must hold, such as `Bound.on_task`.
        limits: Which limits of the mechanism hold: "position", "velocity", "effort".
        driven: Names of the hinges that have a motor; default: all.
        guess: An earlier result, or "q" (N + 1, nq), "v" (N + 1, nv) and "tau" (N, nv), each
            optional, with (batch,) in front for a batch; default: the start, held with no force.
        parameters: Numbers of the mechanism that replace its values, by name, as for `lw.rollout`
            ("inertia", "payload:hand" ...), with (batch,) in front where problems differ.
        integrator: "euler" (semi-implicit) or "rk4", as in `lw.rollout`.
        passive: Whether dampers and springs act.
        loops: "open" optimises the tree of a mechanism that has loops or couplings; they are held
            otherwise, by steps of "euler" only.
        iterations: Sweeps at most.
        tolerance: Expected decrease of the cost, relative to it, at which a problem is solved.
        violation: Largest violation of a bound that is accepted [m, rad, ...].
        threads: Processor cores; default: all, for a batch.
        target: "cpu", or "cuda" for a GPU, where the knots of all problems are expanded at the same
            time, and the warps of a block share the recursions of its problems. Where q is an
            array of CuPy, Torch or JAX on the GPU, q, v, tau, gain, cost, violation and forces of
            the result are such arrays too; goals, parameters and guesses may be in either memory.
        progress: Called after each iteration with a `Progress`; for a batch about ten times a
            second, if iterations are faster.

    Returns:
        The trajectory, with feedback gains. A single problem that is not solved, and those of a
        batch, are reported by a warning; `status` has a code for each.

    Raises:
        ModelError: A cost, bound or limit that does not fit.
        ClosureError: Loops are open at the start, or the integrator cannot hold them.
        LoweringError: A mechanism whose steps cannot be compiled.
    """
    place = Place.of(option(target, ("cpu", "cuda"), "target"), q, v)
    problem = problem_of(
        mech, *place.here(q, v), costs=place.each(costs), step=step, horizon=horizon,
        phases=phases, bounds=place.each(bounds), limits=limits, driven=driven,
        guess=place.named(guess), parameters=place.named(parameters), integrator=integrator,
        passive=passive, loops=loops,
    )  # fmt: skip
    _check_closed(problem.mech, problem.data.start[:, : problem.mech.nq])
    ends = Limits(
        count(iterations, "iterations", least=1),
        number(tolerance, "tolerance", above=0.0),
        number(violation, "violation", above=0.0),
    )
    inform = None if progress is None else function(progress, "progress")
    cores = None if threads is None else count(threads, "threads", least=1)
    _check_start(problem, ends.violation)
    if place.target == "cpu" and (problem.shape.batch is None or len(problem.data.start) == 1):
        result = _alone(problem, ends, inform)
    else:
        with place.entered():
            result = _together(problem, ends, place, cores, inform)
    _report(problem, result, ends.violation)
    return replace(result, **place.returned(result))


def problem_of(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike | None,
    *,
    costs: Any,
    step: float,
    horizon: int | None = None,
    phases: Any = (),
    bounds: Any = (),
    limits: Sequence[str] = LIMITS,
    driven: Sequence[str] | None = None,
    guess: Any = None,
    parameters: Any = None,
    integrator: str = "euler",
    passive: bool = True,
    loops: Loops = "closed",
) -> Problem:
    """A problem, checked; the arguments are those of `optimize`."""
    check_mechanism(mech)
    mech = mech if is_closed(mech, loops) else tree_of(mech)
    if not mech.nv:
        raise ModelError(f"{mech.name!r} has no degrees of freedom; there is no motion to choose.")
    given = checked_costs(costs)
    h, parts = number(step, "step", above=0.0), all_are(
        Phase, (phases,) if isinstance(phases, Phase) else phases, "phases"
    )  # fmt: skip
    steps = _steps(horizon, parts)
    held = tuple(option(x, LIMITS, "limits") for x in names(limits, "limits"))
    scheme = option(integrator, INTEGRATED, "integrator")
    numbers = {} if parameters is None else dict(
        mapping(parameters, "parameters", "{'payload:hand': ...}")
    )  # fmt: skip
    q0 = mech.check_q(q)
    v0 = mech.check_v(np.zeros(mech.nv) if v is None else v)
    lead = np.broadcast_shapes(q0.shape[:-1], v0.shape[:-1])
    if len(lead) > 1:
        raise ShapeError(f"q has shape {q0.shape}; it must be ({mech.nq},) or (batch, {mech.nq}).")
    if isinstance(guess, Trajectory):
        guess = {"q": guess.q, "v": guess.v, "tau": guess.tau}
    elif guess is not None:
        guess = mapping(guess, "guess", "{'q': ..., 'tau': ...}")
    bounded = checked_bounds(bounds)
    if not lead:
        batch = batch_of(mech, (*given, *bounded), numbers, guess, steps + 1)
        lead = () if batch is None else (batch,)
    shape = Shape(lead[0] if lead else None, steps)
    start = np.concatenate(
        [np.broadcast_to(x, (*lead, x.shape[-1])).reshape(-1, x.shape[-1]) for x in (q0, v0)], -1
    )
    plan = schedule(mech, parts, start[:, : mech.nq], shape.batch is None)
    _check_held(plan.mech, scheme)
    every = bounded + limits_of(mech, held) + plan.bounds
    tree, mech = mech, plan.mech
    structure = structure_of(
        mech, given, every, driven=driven, integrator=scheme, passive=flag(passive, "passive"),
        boxed="effort" in held and bool(np.isfinite(mech.effort_limit).any()),
        parameters=tuple(numbers),
    )  # fmt: skip
    first = _guess(mech, guess, start, steps, list(structure.driven))
    data = data_of(mech, structure, given, every, shape, h, start, first, numbers, plan.held)
    return Problem(program(mech, structure), data, shape, h, tree, plan.nodes)


def _steps(horizon: int | None, phases: tuple[Phase, ...]) -> int:
    if horizon is None and phases:
        return steps_of(phases)
    if horizon is None:
        raise ModelError("horizon is missing; give the number of steps, or phases.")
    steps = count(horizon, "horizon", least=1)
    if phases and steps != steps_of(phases):
        raise ModelError(
            f"horizon is {steps} and the phases have {steps_of(phases)} steps; leave out horizon."
        )
    return steps


def _check_held(mech: Mechanism, integrator: str) -> None:
    """Raise unless the loops, couplings and contacts of a mechanism can be held."""
    if (mech.loops or mech.couplings) and integrator != "euler":
        raise ClosureError(
            f"lw.optimize was called for {mech.name!r} with integrator={integrator!r}; only steps "
            "of 'euler' hold loops, couplings and contacts."
        )
    for loop in mech.loops:
        if not is_traceable(loop):
            raise LoweringError(
                f"loop {loop.name!r} of {mech.name!r} has a hinge without a formula for the "
                "directions it blocks; lw.optimize holds loops with hinges of the library."
            )


def _check_closed(mech: Mechanism, q: Array) -> None:
    """Raise unless loops are closed in all states (batch, nq)."""
    error = np.abs(constraint_error(mech, q))
    if error.max(initial=0.0) > OPEN:
        i, row = np.unravel_index(int(error.argmax()), error.shape)
        raise ClosureError(
            f"q{f' of problem {i}' if len(q) > 1 else ''} leaves {constraint_names(mech)[row]!r} "
            f"of {mech.name!r} open by {error.max():.3g} m or rad; a motion starts with closed "
            f"loops, up to {OPEN:g}. Close them first: lw.loops.assemble(mech, q)."
        )


def _guess(mech: Mechanism, given: Any, start: Array, steps: int, driven: list[int]) -> Array:
    """q, v and u of all knots (batch, N + 1, nq + nv + nu)."""
    shape = len(start), steps + 1, mech.nq + mech.nv + len(driven)
    first = np.zeros((len(start), 1, shape[2]))
    first[:, 0, : mech.nq] = start[:, : mech.nq]
    if given is None:
        return np.broadcast_to(first, shape)  # the velocities of the start are its own
    out = np.array(np.broadcast_to(first, shape))
    out[:, :, mech.nq : mech.nq + mech.nv] = start[:, None, mech.nq :]
    parts = {"q": slice(mech.nq), "v": slice(mech.nq, mech.nq + mech.nv), "tau": None}
    for name, value in given.items():
        if name not in parts:
            raise ModelError(f"guess has {name!r}; it takes 'q', 'v' and 'tau'.")
        what = f"{name} of the guess"
        array = mech.check_q(value) if name == "q" else mech.check_v(value, what)
        rows = steps if name == "tau" else steps + 1
        if array.shape[:-1] not in ((), (rows,), (len(start), rows)):
            raise ShapeError(
                f"guess {name!r} has shape {array.shape}; it must be ({rows}, {array.shape[-1]}), "
                "or with (batch,) in front."
            )
        if name == "tau":
            out[:, :-1, mech.nq + mech.nv :] = array[..., driven]
        else:
            out[..., parts[name]] = array
    return out


def _alone(problem: Problem, ends: Limits, inform: Any) -> Trajectory:
    """A single problem, whose knots fill the lanes."""
    begun, p = time.monotonic(), problem.program
    iteration, first = Iteration(p, problem.data, problem.step, ends), list[float]()

    def report(i: int) -> None:
        now = time.monotonic() - begun
        first.append(now)  # the first iteration may compile; those that follow do not
        each = (now - first[0]) / i if i else now
        left = each * (ends.iterations - i - 1)
        over = int(iteration.ended != RUNNING)
        inform(Progress(i + 1, iteration.cost, iteration.violation, over, 1, now, left))

    iteration.run(None if inform is None else report)
    iteration.price()
    gains = iteration.gains[problem.shape.steps :: -1][: problem.shape.steps, : p.m * p.n].copy()
    cost, violation = np.full(1, iteration.cost), np.full(1, iteration.violation)
    count, code = np.full(1, iteration.count), np.full(1, iteration.ended)
    notes = np.array(iteration.history)[None]
    return _trajectory(
        problem, iteration.states[None], gains, cost, violation, count, code, notes
    )  # fmt: skip


def _together(
    problem: Problem, ends: Limits, place: Place, threads: int | None, inform: Any
) -> Trajectory:
    """A batch side by side."""

    def report(*numbers: Any) -> None:
        inform(Progress(*numbers))

    done = solved(
        routine_of(problem, spread=place.target == "cuda"), problem.data, problem.step, ends,
        target=place.target, threads=threads, inform=None if inform is None else report,
    )  # fmt: skip
    kept = place.kept
    return _trajectory(
        problem, kept(done.x), kept(done.gain), kept(done.cost), kept(done.violation),
        done.count, done.ended, done.notes, threads,
    )  # fmt: skip


def routine_of(problem: Problem, *, spread: bool = False) -> Routine:
    """The iterations of a problem as statements; `spread` where knots are made at the same time."""
    timed = tuple(x for x, a in problem.data.held.items() if a.shape[1] > 1)
    return routine(problem.program, problem.shape.steps + 1, timed, spread=spread)


def _trajectory(
    problem: Problem,
    x: Any,
    gains: Any,
    cost: Any,
    violation: Any,
    count: Any,
    codes: Any,
    notes: Array,
    threads: int | None = 1,
) -> Trajectory:
    """Results from rows of q, v and u (batch, N + 1, .) and K (batch, N, nu 2 nv)."""
    mech, p = problem.program.mech, problem.program
    total, N, nq, nx = len(x), problem.shape.steps, mech.nq, mech.nq + mech.nv
    driven = list(p.structure.driven)
    tau, gain = x[:, :N, nx : nx + p.m], gains.reshape(total, N, p.m, p.n)
    if driven != list(range(mech.nv)):
        tau, gain = _padded(tau, 2, driven, mech.nv), _padded(gain, 2, driven, mech.nv)
    status = np.where(codes == SOLVED, 0, codes)
    parts: list[Any] = [x[..., :nq], x[..., nq:nx], tau, gain, cost, violation, count, status]
    forces = dict[str, Array]()
    if problem.contacts:
        here = arrays.copied("x", x)
        pulls = at_knots(p.forces, mech, problem.data, here, problem.step, threads)[:, :N]
        pulls = pulls[..., contact_rows(mech)].reshape(total, N, -1, 3)
        pulls = pulls if here is x else arrays.cupy().asarray(pulls)
        forces = {name: pulls[..., i, :] for i, name in enumerate(problem.contacts)}
    if problem.shape.batch is None:
        parts, notes = [a[0] for a in parts], notes[0]
        forces = {name: a[0] for name, a in forces.items()}
    return Trajectory(
        problem.mech, *parts, history=History(*np.moveaxis(notes, -1, 0)), step=problem.step,
        integrator=p.structure.integrator, forces=forces,
    )  # fmt: skip


def _padded(x: Any, axis: int, places: list[int], size: int) -> Any:
    """An array with zeros at all other places of an axis."""
    shape = list(x.shape)
    shape[axis] = size
    out = (arrays.cupy() if arrays.is_on_gpu(x) else np).zeros(shape)
    out[(slice(None),) * axis + (places,)] = x
    return out


def _check_start(problem: Problem, allowed: float) -> None:
    """Warn at once about bounds that hold at no motion."""
    names = row_names(problem.program, problem.contacts)
    said = start_off(problem.program, problem.data, problem.step, names, allowed) if names else ""
    if said:
        warnings.warn(f"{problem.mech.name!r}: {said}", TroubleWarning, stacklevel=caller())


def _report(problem: Problem, result: Trajectory, allowed: float) -> None:
    """Warn about problems that are not solved."""
    codes = np.atleast_1d(result.status)
    bad = np.flatnonzero(codes)
    if not len(bad):
        return
    worst = int(np.bincount(codes[bad]).argmax())
    offs = np.atleast_1d(arrays.copied("violation", result.violation))
    single = codes.size == 1
    which = "the trajectory is" if single else f"{len(bad)} of {codes.size} trajectories are"
    same = bad[codes[bad] == worst]
    i = int(same[np.argmax(offs[same])])
    note = ""
    if offs[i] > allowed:
        said = _worst_bound(problem, result, i)
        note = f": {said}{'' if single else f' in problem {i}'}" if said else ""
        note = f" (largest violation {float(offs[i]):.3g}{note})"
    warnings.warn(
        f"{result.mech.name!r}: {which} not solved: {WORDS[worst]}{note}. "
        f"{advice(worst, bool(note))}",
        TroubleWarning,
        stacklevel=caller(),
    )


def _worst_bound(problem: Problem, result: Trajectory, i: int) -> str:
    """The bound that problem i violates most, in words."""
    program, p = problem.program, problem.program.structure
    parts = (result.q, result.v, result.tau)
    one = (x if problem.shape.batch is None else x[i] for x in parts)
    q, v, tau = (arrays.copied("x", x) for x in one)
    u = np.zeros((len(q), program.m))
    u[:-1] = tau[:, list(p.driven)]
    x, data = np.concatenate([q, v, u], axis=-1), problem.data.part(np.array([i]))
    return worst_row(program, data, x, problem.step, row_names(program, problem.contacts))
