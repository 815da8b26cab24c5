"""Derivatives of inverse and forward dynamics, and the linearised equations of motion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from linkwise.arguments import flag
from linkwise.bare_call import begins_bare
from linkwise.brief import brief
from linkwise.codegen.formula import Formula
from linkwise.dynamics.actuator_force import NamedCommands, instant_commands
from linkwise.dynamics.closed_derivatives import held, held_call
from linkwise.dynamics.constrained import obeyed
from linkwise.dynamics.derivative_formula import (
    DRIVEN,
    FORWARD_DERIVATIVES,
    INVERSE_DERIVATIVES,
    LINEARIZED,
    PUSHED,
    WITH_PASSIVE,
)
from linkwise.dynamics.joint_force import (
    has_passive_force,
    require_passive_slopes,
)
from linkwise.dynamics.kernels import (
    HELD,
    Forces,
    Loops,
    RecordOptions,
    acting,
    check_mechanism,
    is_closed,
    no_call,
    pushed_nodes,
    recorded,
    side_by_side,
    tree_of,
    written,
)
from linkwise.dynamics.path_dependent import path_dependent, require_rest
from linkwise.dynamics.quantity import NODE_AXES, Frame, check_frame
from linkwise.errors import ModelError, ShapeError
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import keep_bare_call, once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    pass


@brief
class InverseDynamicsDerivatives(NamedTuple):
    """How τ of inverse dynamics changes: δτ = q δq + v δv + vdot δv̇.

    Attributes:
        q: ∂τ/∂q (nv, nv) or (batch, nv, nv), in the tangent space of `mech.integrate`.
        v: ∂τ/∂v.
        vdot: ∂τ/∂v̇, the mass matrix 𝓜.
    """

    q: Array
    v: Array
    vdot: Array


@brief
class ForwardDynamicsDerivatives(NamedTuple):
    """How v̇ of forward dynamics changes: δv̇ = q δq + v δv + tau δτ.

    Attributes:
        q: ∂v̇/∂q (nv, nv) or (batch, nv, nv), in the tangent space of `mech.integrate`.
        v: ∂v̇/∂v.
        tau: ∂v̇/∂τ, the inverse 𝓜⁻¹ of the mass matrix; with loops or couplings
            𝓜⁻¹ − 𝓜⁻¹ J_c* Ω⁻¹ J_c 𝓜⁻¹.
    """

    q: Array
    v: Array
    tau: Array


@brief
class Linearization(NamedTuple):
    """The equations of motion about a state x = (q, v): δẋ = A δx + B δτ, or one step of them.

    With activations of actuators x = (q, v, a).

    Attributes:
        A: (2 nv, 2 nv) or (batch, 2 nv, 2 nv); δq is in the tangent space of `mech.integrate`.
        B: (2 nv, nv) or (batch, 2 nv, nv).
    """

    A: Array
    B: Array


@begins_bare()
def inverse_dynamics_derivatives(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    v: ArrayLike,
    vdot: ArrayLike,
    *,
    forces: Forces | None = None,
    forces_frame: Frame = "node",
    loops: Loops = "closed",
    **options: Unpack[RecordOptions],
) -> InverseDynamicsDerivatives:
    """Derivatives of joint forces by positions, velocities and accelerations.

    Expression:
        `lw.differentiate(mass @ vdot + bias, "q")`, and by "v" and "vdot". With V⁻ = φ̃* H* v,
        α⁻ = a_g + φ̃* (a + H* v̇), F = φ (b + M φ* (a + H* v̇)) and hinge maps constant in q:
        ∂τ/∂q = H φ̃ [F ×̄] H* + H φ (2 B_V φ* [V⁻ ×] + M φ* ([α⁻ ×] + [V⁻ ×] [V⁻ ×])) H*
        ∂τ/∂v = H φ (2 B_V φ* + M φ* [V⁻ + V ×]) H*,   ∂τ/∂v̇ = 𝓜
        O(n · depth) operations.

    With loops or couplings these are the derivatives of the joint forces with which loops carry no
    load, as in `lw.inverse_dynamics`; accelerations that break a loop or coupling raise.

    Forces at nodes add −∂(J* f)/∂q to ∂τ/∂q, with f constant in the axes of `forces_frame`.

    Args:
        out: A record of three arrays, such as an earlier result, that receives the matrices.

    Returns:
        The three matrices, from one kernel.

    Raises:
        ClosureError: v̇ breaks a loop or coupling, which is named. In a batch its matrices are NaN
            instead, reported by a warning or by `status`.
    """
    plain = forces is None and forces_frame is NODE_AXES and loops is HELD
    if plain and not options:  # most calls: one state
        bare = _one_state(mech, INVERSE_DERIVATIVES)
        keep_bare_call(mech, "inverse_dynamics_derivatives", (), bare)
        if (quick := bare(q, v, vdot)) is not None:
            return quick
    check_mechanism(mech)
    formula, nodes, given = _with_forces(INVERSE_DERIVATIVES, forces, forces_frame)
    arrays = {"q": q, "v": v, "vdot": vdot, **given}

    def of_tree(**some: Any) -> dict[str, Array]:
        return _called(written(tree_of(mech), formula, nodes), arrays, some)

    def computed(some: dict[str, Any]) -> dict[str, Array]:
        if is_closed(mech, loops):
            return obeyed(mech, q, v, vdot, of_tree, some)
        return of_tree(**some)

    return InverseDynamicsDerivatives(**recorded(computed, options))


@begins_bare()
def forward_dynamics_derivatives(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    forces: Forces | None = None,
    forces_frame: Frame = "node",
    passive: bool = False,
    controls: NamedCommands | None = None,
    activations: NamedCommands | None = None,
    loops: Loops = "closed",
    **options: Unpack[RecordOptions],
) -> ForwardDynamicsDerivatives:
    """Derivatives of joint accelerations by positions, velocities and joint forces.

    Expression:
        `lw.differentiate(mass.inv @ (tau - bias), "q")`, and by "v" and "tau":
        ∂v̇/∂q = −𝓜⁻¹ ∂τ/∂q,   ∂v̇/∂v = −𝓜⁻¹ ∂τ/∂v,   ∂v̇/∂τ = 𝓜⁻¹
        with the derivatives of inverse dynamics at v̇ = 𝓜⁻¹ (τ − C). The kernel factors 𝓜 from
        the tips to the base, which keeps the zeros between branches.

    With loops or couplings, with λ the forces that hold them and v̇, λ held on the right:
        𝓜 δv̇ − J_c* δλ = δτ − δ(𝓜 v̇ + C − J_c* λ),   J_c δv̇ = −δ(J_c v̇ + γ)

    With forces at nodes, v̇ = 𝓜⁻¹ (τ − C + J* f) and f is constant in the axes of `forces_frame`.

    Args:
        passive: Whether `lw.passive_force` acts as well, as in `lw.forward_dynamics`.
        controls: Commands of the actuators, which act as in `lw.forward_dynamics`; default: they do
            not act.
        activations: Activations of the actuators that have one, likewise, which are held.
        out: A record of three arrays, such as an earlier result, that receives the matrices.

    Returns:
        The three matrices, from one kernel.

    Raises:
        ClosureError: Loops are singular in this state, or their rows depend on each other only
            while they are closed: there are no such derivatives. In a batch the matrices are NaN
            instead, reported by a warning or by `status`.
    """
    formula = FORWARD_DERIVATIVES
    if passive is not False and flag(passive, "passive"):
        formula = _with_passive(mech, formula)
    plain = forces is controls is activations is None
    plain = plain and forces_frame is NODE_AXES and loops is HELD
    if plain and not options:  # most calls: one state
        bare = _one_state(mech, formula)
        if passive is False:
            keep_bare_call(mech, "forward_dynamics_derivatives", (), bare)
        if (quick := bare(q, v, tau)) is not None:
            return quick
    arrays = {"q": q, "v": v, "tau": tau}
    if controls is not None:
        commands = instant_commands(mech, controls, activations)
        formula, arrays["control"] = DRIVEN[formula], commands
    elif activations is not None:
        raise ModelError("activations were given without controls, without which none act.")
    parts = _moved(mech, formula, arrays, forces, forces_frame, loops, options)
    return ForwardDynamicsDerivatives(**parts)


def linearized(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    forces: Forces | None = None,
    forces_frame: Frame = "node",
    passive: bool = False,
    controls: NamedCommands | None = None,
    loops: Loops = "closed",
    **options: Unpack[RecordOptions],
) -> Linearization:
    """The equations of motion linearised in continuous time: see `lw.linearize`."""
    formula = _with_passive(mech, LINEARIZED) if passive else LINEARIZED
    plain = forces is controls is None and forces_frame is NODE_AXES and loops is HELD
    if plain and not options:  # most calls: one state
        quick = _one_state(mech, formula)(q, v, tau)
        if quick is not None:
            return quick
    arrays = {"q": q, "v": v, "tau": tau}
    if controls is not None:
        formula, arrays["control"] = DRIVEN[formula], instant_commands(mech, controls)
    if isinstance(mech, Mechanism):
        require_rest(mech, v, "lw.linearize")
    parts = _moved(mech, formula, arrays, forces, forces_frame, loops, options)
    return Linearization(**parts)


@once_per_mechanism
def _with_passive(mech: Mechanism | Embedded, formula: Formula) -> Formula:
    """The formula with passive forces, where there are any."""
    check_mechanism(mech)
    if not has_passive_force(mech):
        return formula
    require_passive_slopes(mech)
    return WITH_PASSIVE[formula]


def _moved(
    mech: Mechanism | Embedded,
    formula: Formula,
    arrays: Mapping[str, Any],
    forces: Forces | None,
    frame: Frame,
    loops: Loops,
    options: RecordOptions,
) -> dict[str, Array]:
    """Derivatives of accelerations, with loops and couplings held."""
    check_mechanism(mech)
    formula, nodes, given = _with_forces(formula, forces, frame)
    arrays = {**arrays, **given}
    if is_closed(mech, loops):
        closed = mech
        return recorded(lambda some: held(closed, formula, arrays, some, nodes), options)
    kernel = written(tree_of(mech), formula, nodes)
    return recorded(lambda some: _called(kernel, arrays, some), options)


def _with_forces(
    formula: Formula, forces: Forces | None, frame: Frame
) -> tuple[Formula, tuple[str, ...], dict[str, Array]]:
    """The formula with forces at nodes, these nodes, and the forces as its input."""
    check_frame(frame, "forces_frame")
    if not acting(forces):
        return formula, (), {}
    nodes = pushed_nodes(forces)
    return PUSHED[formula, frame], nodes, {"f": side_by_side(forces, nodes)}


def _called(kernel: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    try:
        return kernel(*(arrays[name] for name in kernel.arguments), **options)
    except ShapeError as error:
        words = str(error)
        raise ShapeError(f"forces {words[2:]}" if words.startswith("f ") else words) from None


@once_per_mechanism
def _one_state(mech: Mechanism | Embedded, formula: Formula) -> Callable[..., Any]:
    """The bare call for one state, with loops and couplings held: a record, or None."""
    check_mechanism(mech)
    if RECORDS[formula] is Linearization and isinstance(mech, Mechanism) and path_dependent(mech):
        return no_call
    if is_closed(mech):
        closed = formula is not INVERSE_DERIVATIVES
        return held_call(mech, formula, RECORDS[formula]) if closed else no_call
    device = written(mech, formula).device
    if device.fast is None:
        return no_call
    device.machine.return_as(RECORDS[formula])
    return device.fast


RECORDS: dict[Formula, Any] = {
    INVERSE_DERIVATIVES: InverseDynamicsDerivatives,
    FORWARD_DERIVATIVES: ForwardDynamicsDerivatives,
    LINEARIZED: Linearization,
    WITH_PASSIVE[FORWARD_DERIVATIVES]: ForwardDynamicsDerivatives,
    WITH_PASSIVE[LINEARIZED]: Linearization,
    DRIVEN[FORWARD_DERIVATIVES]: ForwardDynamicsDerivatives,
    DRIVEN[LINEARIZED]: Linearization,
    DRIVEN[WITH_PASSIVE[FORWARD_DERIVATIVES]]: ForwardDynamicsDerivatives,
    DRIVEN[WITH_PASSIVE[LINEARIZED]]: Linearization,
}
