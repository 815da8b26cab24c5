"""The request for a kernel of motions: everything its steps depend on, and the steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from linkwise.codegen.request import Request
from linkwise.codegen.scalar.trace import Traced
from linkwise.codegen.stages import MOST_BODIES, is_rolled, traced
from linkwise.codegen.stepping.stepping import Sketch, Stepping
from linkwise.dynamics.derivative_formula import INVERSE
from linkwise.dynamics.kernels import check_mechanism, require_open
from linkwise.dynamics.passive import Passive, passive
from linkwise.dynamics.quantity import Frame, expression
from linkwise.errors import LoweringError, ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.actuation import actuate, with_actuators
from linkwise.simulation.episode import NOTHING, Episode, with_noise, with_stop
from linkwise.simulation.implicit.equality import check_formulas
from linkwise.simulation.implicit.ground import ContactPoint
from linkwise.simulation.implicit.joint import joints_with_rows
from linkwise.simulation.implicit.reverse import implicit_reverse
from linkwise.simulation.implicit.segments import ON_A_GPU, SWEEPS, implicit_stepping
from linkwise.simulation.integrators import INTEGRATORS
from linkwise.simulation.integrators.command import command, held_inputs
from linkwise.simulation.integrators.reverse import Dynamics, reverse_stepping
from linkwise.simulation.integrators.traced import traced_stepping
from linkwise.simulation.lasting_state import continued
from linkwise.simulation.motion_parameters import ACTING, OF_ACTUATORS
from linkwise.simulation.observation import Observed, observing
from linkwise.simulation.planned import Planner
from linkwise.simulation.rates import is_traceable, velocities
from linkwise.simulation.variational.equations import SOLUTION
from linkwise.simulation.variational.reverse import variational_reverse
from linkwise.simulation.variational.segments import variational_stepping

EXPLICIT = tuple(
    x.name for x in INTEGRATORS.values() if x.step and x.compiled and x.takes == "acceleration"
)
"""Integrators whose steps need accelerations only, by name."""

COMPILED = (*EXPLICIT, "implicit", "variational")
"""Integrators that can be compiled, by name."""


@dataclass(frozen=True)
class MotionRequest:
    """What a kernel of motions does: equal requests, equal kernels.

    Attributes:
        mech: The mechanism.
        integrator: Name of the integrator.
        passive: Whether dampers and springs of drives act, and with "implicit" Coulomb friction.
        itemsize: Bytes of a number.
        parameters: Numbers of the mechanism that are held over each step (`scalar/parameters.py`).
        law: The kernel's request of a control law that gives the joint forces at the beginning of
            each step (`rollout_input.checked_law`).
        contacts: Points that may touch the ground, in implicit steps.
        actuated: Whether the actuators of the mechanism act.
        episode: What is random, and what ends a motion.
        sweeps: Sweeps over the impulses of an implicit step, at most; None for the usual number.
        nodes: Nodes with external forces, held over each step like joint forces.
        forces_frame: Axes of these.
        observed: Whether implicit steps show what a recording needs (`implicit/segments.py`).
        observations: What a simulator shows after each call; its steps go on where the last call
            ended (`lasting_state.py`).
        reverse: For the gradient of such a motion (`integrators/reverse.py`), the inputs whose
            gradients are added up over all steps; None for the motion itself.
        planner: What plans the joint forces anew in each step.

    Raises:
        ModelError: An unknown integrator, or parameters that do not work with it.
    """

    mech: Mechanism
    integrator: str = "rk4"
    passive: bool = True
    itemsize: int = 8
    parameters: tuple[str, ...] = ()
    law: Request | None = None
    contacts: tuple[ContactPoint, ...] = ()
    actuated: bool = False
    episode: Episode = NOTHING
    sweeps: int | None = None
    nodes: tuple[str, ...] = ()
    forces_frame: Frame = "node"
    observed: bool = False
    observations: tuple[Observed, ...] = ()
    reverse: tuple[str, ...] | None = None
    planner: Planner | None = None

    def __post_init__(self) -> None:
        check_mechanism(self.mech)
        if self.integrator not in COMPILED:
            known = ", ".join(repr(name) for name in COMPILED)
            raise ModelError(
                f"integrator={self.integrator!r} cannot be compiled; use one of {known}."
            )
        if self.parameters and self.integrator == "variational":
            known = ", ".join(repr(name) for name in COMPILED[:-1])
            raise ModelError(f"parameters work with {known}, not with {self.integrator!r}.")
        if "locked" in self.parameters and self.integrator == "implicit":
            raise ModelError("parameters has 'locked', which does not work with 'implicit'.")

    @property
    def alone(self) -> bool:
        """False: motions fill the lanes."""
        return False

    @property
    def content(self) -> Any:
        """Everything that the steps depend on: itself, with what it says of a planner."""
        if self.planner is None:
            return self
        return replace(self, planner=None), self.planner.planned_for(self.mech)[1]

    def stepping(self, target: str) -> Stepping:
        """The segments, for "cpu" or "cuda".

        Raises:
            LoweringError: A hinge without a formula for its steps, or too many bodies for
                straight-line code; says which.
        """
        plain, mech = self._steps(target), self.mech
        plain = plain if self.planner is None else self.planner.compiled_into(plain)
        episode, points, size = self.episode, self.contacts, self.itemsize
        if self.reverse is not None:
            return plain
        plain = with_noise(plain, mech, episode.noise, size)
        if self.law is not None:
            plain = _with_law(plain, mech, traced(self.law))
        if not self.observations:
            return with_stop(plain, mech, episode.stop, points, size)
        watched = [replace(x.watched, name=f"stop:{x.watched.name}") for x in episode.stop]
        seen = observing(mech, plain, (*self.observations, *watched), points, size)
        return continued(plain, *seen, [one.name for one in watched])

    def _steps(self, target: str) -> Stepping:
        """The integrator alone, with what acts on the mechanism."""
        mech, size, implicit = self.mech, self.itemsize, self.integrator == "implicit"
        if implicit:
            check_formulas(mech)
        else:
            require_open(mech, "closed", "the kernel of a rollout", "lw.simulate holds them.")
        acts = [x for x in self.parameters if x in ACTING]
        numbers = tuple(x for x in self.parameters if x not in ACTING)
        varied = tuple((x, mech.nv) for x in acts if x in ("damping", "stiffness"))
        forces = passive(mech) if self.passive or varied else None
        forces = forces if forces is not None and (forces.any or varied) else None
        name = "forward_dynamics_with_forces" if self.nodes else "forward_dynamics"
        quantity = expression(name, frame=self.forces_frame)
        request = Request((quantity,), mech, self.nodes, numbers, size)
        if not is_traceable(mech):
            raise LoweringError(
                f"a motion of {mech.name!r} cannot be compiled: a hinge has a rule for its steps "
                "that cannot be traced on graph nodes. lw.simulate moves it step by step."
            )
        if is_rolled(request) or (implicit and mech.n_bodies > MOST_BODIES):
            raise LoweringError(
                f"a step of {mech.name!r} would be straight-line code of {mech.n_bodies} bodies, "
                "too long to compile. lw.rollout and lw.simulate move it step by step."
            )
        law = None if self.law is None or self.reverse is None else traced(self.law)
        if implicit:
            friction = self.passive
            joints = joints_with_rows(mech, friction=friction, given="friction" in acts)
            acting = mech, size, forces, joints, self.contacts
            options: dict[str, Any] = {"actuated": self.actuated, "numbers": self.parameters}
            if self.reverse is not None:
                return implicit_reverse(*acting, self.reverse, law=law, **options)
            most = self.sweeps or (ON_A_GPU if target == "cuda" else SWEEPS)
            # on a GPU memory is the limit, not work: no branches
            options |= {"branches": target == "cpu", "sweeps": most, "observed": self.observed}
            return implicit_stepping(*acting, **options)
        if self.integrator == "variational":
            if self.reverse is not None:
                return variational_reverse(mech, size, forces, self.reverse)
            return variational_stepping(mech, self.nodes, self.forces_frame, size, forces)
        scheme = INTEGRATORS[self.integrator]
        motor = tuple(x for x in acts if x in OF_ACTUATORS)
        if self.reverse is not None:
            motors = actuate(mech, size, slopes=False, numbers=motor) if self.actuated else None
            dynamics = replace(
                _dynamics(request, forces, law),
                actuate=motors.traced if motors is not None else None,
                more=varied,
            )
            return reverse_stepping(scheme, mech, dynamics, self.reverse)
        plain = traced_stepping(scheme, mech, traced(request), forces, varied)
        return with_actuators(plain, mech, size, motor) if self.actuated else plain


def _dynamics(request: Request, forces: Passive | None, law: Traced | None) -> Dynamics:
    """What a step in reverse is made of."""
    numbers = request.parameters
    falling = tuple(x for x in numbers if x != "locked")
    inverse = replace(request, quantity=(INVERSE,), parameters=falling)
    moved = tuple(x for x in numbers if x != "gravity")
    solve = replace(request, quantity=(SOLUTION,), parameters=moved)
    return Dynamics(traced(request), traced(inverse), traced(solve), forces, law)


def _with_law(stepping: Stepping, mech: Mechanism, law: Traced) -> Stepping:
    """An explicit step whose joint forces come from a law at its beginning, and are then held.

    The law becomes one more segment in front of those of the step. Its inputs besides the state
    (goals, gains) are held in place of the joint forces.
    """
    s = Sketch("command")
    q, u = s.read("q0", mech.nq), s.read("u0", mech.nv)
    first = command(s, law, q, velocities(mech, q, u))
    held = held_inputs(stepping.held, law)
    return replace(stepping, held=held, step=(first, *stepping.step))
