"""Random fields, sections 1-5: state space, boundary-value problem, spatially random model.

Random quantities are linear in the white noise W, whose covariance is M: x = A W for an operator A,
so that E[x y*] is A M B*, and equations between random quantities are equations between operators.
"""

from __future__ import annotations

import numpy as np

from linkwise.algebra.expr import Expr
from linkwise.algebra.space import BODY, JOINT
from linkwise.algebra.symbols import D, E_phi, H, I, K, M, Omega, V, b, mass, phi, psi, tau
from linkwise.spatial.array import Array
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import blocks
from linkwise_ledger.case import Case, apart
from linkwise_ledger.recursion import (
    accelerations,
    drawn,
    forces,
    inward,
    kinetic_energy,
    split,
    stacked,
)
from linkwise_ledger.section import Section, same
from linkwise_ledger.standard import (
    check_inertia,
    check_mass_by_energy,
    check_resolvent,
    check_shift,
    check_transition,
)

KAPPA = H @ phi @ K
"""𝒦 of the paper."""

ELL = H @ psi @ K
"""ℒ of the paper."""

S_OF_X = phi @ M @ phi.T
"""S, covariance of the state."""

GAIN = S_OF_X @ H.T @ mass.inv
"""𝒢, the gain of the batch estimate."""

STATE, OUTPUT = phi, H @ phi
ESTIMATE = GAIN @ OUTPUT
FILTERED = psi @ K @ OUTPUT
INNOVATIONS = (I - ELL) @ OUTPUT
RESIDUALS = D.inv @ INNOVATIONS
FILTER_ERROR, SMOOTHER_ERROR = STATE - FILTERED, STATE - ESTIMATE

RANDOM: dict[str, Expr] = {
    "W": I,
    "X": STATE,
    "T": OUTPUT,
    "f": ESTIMATE,  # E(X/T) = 𝒢 T
    "Ŵ": M @ phi.T @ H.T @ mass.inv @ OUTPUT,  # E(W/T)
    "z": FILTERED,
    "ε": INNOVATIONS,
    "ν": RESIDUALS,
    "α": psi.T @ H.T @ RESIDUALS,
    "v̇": (I - ELL).T @ RESIDUALS,
    "e_s": FILTER_ERROR,
    "S": S_OF_X,
    "Q": M - M @ Omega @ M,
    "𝒢": GAIN,
    "𝒦": KAPPA,
    "ℒ": ELL,
}
"""The random quantities of the paper, as operators on W, and its operators."""


def covariance(x: Expr, y: Expr | None = None) -> Expr:
    """E[x y*], or E[x x*], of quantities given as operators on W."""
    return x @ M @ (x if y is None else y).T


def sigma_points(case: Case) -> Array:
    """Columns ± √n m_i of a square root of M: their mean is 0 and their covariance exactly M."""
    root = np.linalg.cholesky(case.matrix(M) + 0.0)
    return np.sqrt(len(root)) * np.concatenate([root, -root], axis=1)


def simulated(case: Case, noise: Array) -> tuple[Array, Array]:
    """(X, T) of the state-space model (5.1), (5.2) driven by the columns of `noise`."""
    X: dict[int, Array] = {}
    W = split(case, noise, BODY)
    for k in case.inward:
        steps = (case.block(E_phi, k, c) @ X[c] for c in case.children(k))
        X[k] = sum(steps, W[k])
    T = {k: case.block(H, k) @ X[k] for k in case.outward}
    return np.concatenate(list(X[k] for k in case.outward)), np.concatenate(
        [T[k] for k in case.outward]
    )


def check_simulated_covariance(case: Case) -> float:
    """Covariance of the outputs of (5.1), (5.2), over the sigma points, against 𝓜."""
    T = simulated(case, sigma_points(case))[1]
    return apart(T @ T.T / T.shape[1], case.matrix(mass))


def _particles(case: Case, k: int) -> list[tuple[float, Array]]:
    """Six particles (mass, position) with the mass, the centre and the inertia of body k."""
    inertia = case.mech.inertias[k]
    m, J_com = float(inertia.mass), inertia.J_com
    second = 0.5 * np.trace(J_com) * np.eye(3) - J_com  # ∫ r r* dm
    spread, axes = np.linalg.eigh(second)
    arms = np.sqrt(3.0 * np.clip(spread, 0.0, None) / m) * axes
    return [(m / 6.0, inertia.com + s * arm) for arm in arms.T for s in (1.0, -1.0)]


MODEL = Section()
MODEL("""sec. 1, equations of motion  the inverse solves the equations of motion
    printed  𝓜 θ̈ = T,  θ̈ = 𝓜⁻¹ T
    holds    𝓜 v̇ = τ,  v̇ = (I - H ψ K)* D⁻¹ (I - H ψ K) τ
    note     Without bias forces, as the paper says. The inverse is the recursive one.
""")(same(mass @ (I - ELL).T @ D.inv @ (I - ELL) @ tau, tau))
MODEL("""sec. 3, φ(k, i)  transition matrix of spatial forces
    printed  φ(k,i) = [[I, l̃(k,i)], [0, I]]
    holds    rot_k φ(k,i) rot_i* = [[I, l̃], [0, I]], l from frame k to frame i in world axes
    note     Ours carries the rotation between the axes of the two bodies too.
""")(check_shift)
MODEL("""sec. 3, properties of φ(k, i)  φ(k, i) is a transition matrix
    printed  φ(k,i) = φ(k,m) φ(m,i);  φ⁻¹(k,i) = φ(i,k);  φ(k,k) = I
    holds    φ(k,i) = φ(k,m) φ(m,i), φ⁻¹(k,i) the shift back, φ(k,k) = I, for bodies on one path to
             the base
""")(check_transition)
MODEL("""sec. 3, M(k)  spatial inertia
    printed  M(k) = [[𝒥(k), m(k) p̃(k)], [-m(k) p̃(k), m(k) I]]
    means    M(k) about the body frame: p the centre of mass, 𝒥 the inertia about the frame
    note     The paper's body frame is at the inner joint; ours may be anywhere on the body.
""")(check_inertia)


@MODEL("""sec. 4, boundary-value problem  equations of motion as two loops
    printed  α(N+1) = 0; for k = N … 1: α(k) = φ*(k+1,k) α(k+1) + H*(k) θ̈(k);  f(0) = 0; for k = 1
             … N: f(k) = φ(k,k-1) f(k-1) + M(k) α(k) + b(k), T(k) = H(k) f(k)
    holds    τ = 𝓜 v̇ + H φ b
    note     The loops are run as printed, k-1 being the children. No velocity-dependent
             acceleration a(k) is in the loop of α.
""")
def _(case: Case) -> float:
    vdot_ = drawn(case, JOINT)
    alpha, f = accelerations(case, vdot_), dict[int, Array]()
    moments: dict[int, Array] = {}
    for k in case.inward:
        f[k] = inward(case, E_phi, k, f) + case.block(M, k) @ alpha[k] + case.block(b, k)
        moments[k] = case.block(H, k) @ f[k]
    expected = case.matrix(mass) @ vdot_ + case.matrix(H @ phi @ b)
    return apart(stacked(case, moments), expected)


MODEL.algebra("""sec. 4, sweep  state from filtered state and costate
    printed  f(k) = z(k) + P(k) α(k)
    holds    φ M φ* H* 𝓜⁻¹ = ψ K + P φ* H* 𝓜⁻¹
""")
MODEL("""sec. 4, E_φ and φ  φ is the resolvent of the shift
    printed  φ = (I - E_φ)⁻¹, with the blocks φ(k,i)
    holds    φ = (I - E_φ)⁻¹; φ(k,i) is the product of the steps from i to k
    note     Lower triangular there, since bodies are numbered from the tip; upper triangular here.
             Printed n and N are the same number.
""")(check_resolvent)
MODEL.unchecked("""sec. 4, H  state-to-output map
    printed  H = diag[H(1) … H(N)]
    means    H is memoryless
""")
MODEL("""sec. 4, V  spatial velocities
    printed  V = φ* H* θ̇
    holds    V(k) = φ*(p,k) V(p) + H*(k) v(k)
""")(lambda case: (stacked(case, accelerations(case, case.v)), case.matrix(V)))


@MODEL("""sec. 4, α  spatial accelerations
    printed  α = φ* H* θ̈
    holds    α(k) = φ*(p,k) α(p) + H*(k) v̇(k)
""")
def _(case: Case) -> float:
    vdot_ = drawn(case, JOINT)
    return apart(stacked(case, accelerations(case, vdot_)), case.matrix(phi.T @ H.T) @ vdot_)


@MODEL("""sec. 4, f  spatial forces
    printed  f = φ M α = φ M φ* H* θ̈
    holds    f(k) = Σ_c φ(k,c) f(c) + M(k) α(k)
""")
def _(case: Case) -> float:
    vdot_ = drawn(case, JOINT)
    f = forces(case, accelerations(case, vdot_))
    return apart(stacked(case, f), case.matrix(phi @ M @ phi.T @ H.T) @ vdot_)


@MODEL("""sec. 4, T  joint moments
    printed  T = H f = 𝓜 θ̈
    holds    τ(k) = H(k) f(k), with f of the loop, gives 𝓜 v̇
""")
def _(case: Case) -> float:
    vdot_ = drawn(case, JOINT)
    f = forces(case, accelerations(case, vdot_))
    moments = {k: case.block(H, k) @ f[k] for k in case.outward}
    return apart(stacked(case, moments), case.matrix(mass) @ vdot_)


MODEL("""sec. 4, 𝓜  inertia matrix of the robot
    printed  𝓜 = H φ M φ* H*
    means    v* 𝓜 w from kinetic energies, ½ Σ V*(k) M(k) V(k), of v + w and v - w
""")(check_mass_by_energy)


@MODEL("""sec. 4, kinetic energy by bodies  kinetic energy, body by body and stacked
    printed  K.E. = ½ Σ V*(k) M(k) V(k) = ½ V* M V
    holds    ½ Σ V*(k) M(k) V(k) = ½ V* M V
""")
def _(case: Case) -> float:
    V_ = case.matrix(V)
    return apart(kinetic_energy(case, case.v), 0.5 * V_ @ case.matrix(M) @ V_)


MODEL("""sec. 4, kinetic energy at the joints  kinetic energy in joint velocities
    printed  K.E. = ½ θ̇* 𝓜 θ̇
    holds    ½ Σ V*(k) M(k) V(k) = ½ v* 𝓜 v
""")(lambda case: (kinetic_energy(case, case.v), 0.5 * case.v @ case.matrix(mass) @ case.v))


@MODEL("""(5.1)  state equation of the random model
    printed  X(k) = φ(k,k-1) X(k-1) + W(k)
    holds    the loop gives X = φ W
""")
def _(case: Case) -> float:
    noise = sigma_points(case)
    return apart(simulated(case, noise)[0], case.matrix(phi) @ noise)


@MODEL("""(5.2)  output equation of the random model
    printed  T(k) = H(k) X(k)
    holds    the loop gives T = H φ W
""")
def _(case: Case) -> float:
    noise = sigma_points(case)
    return apart(simulated(case, noise)[1], case.matrix(H @ phi) @ noise)


@MODEL("""(5.3)  inertial forces as white noise
    printed  E[W(k)] = 0;  E[W(k) W*(k)] = M(k)
    means    E[W] = 0, E[W W*] = M
    note     In checks, W takes 2·6n values with exactly this mean and covariance.
""")
def _check_noise(case: Case) -> float:
    noise = sigma_points(case)
    mean = float(np.abs(noise.mean(axis=1)).max())
    return mean + apart(noise @ noise.T / noise.shape[1], case.matrix(M))


@MODEL("""(5.4)  the model, stacked
    printed  X = φ W;  T = H X
    holds    covariance of the X of the loop over all values of W = φ M φ*
""")
def check_simulated_state(case: Case) -> float:
    """Covariance of the states of (5.1), over the sigma points, against S."""
    X = simulated(case, sigma_points(case))[0]
    return apart(X @ X.T / X.shape[1], case.matrix(S_OF_X))


MODEL("""sec. 5, W  mean and covariance of the stacked noise
    printed  E(W) = 0;  E[W W*] = M
    means    E[W] = 0, E[W W*] = M
""")(_check_noise)


@MODEL("""sec. 5, random field  joint moments from a field of inertial forces
    printed  T(k) = ∫_Ω H(k) φ(k,x) B w(x) dx,  T = H φ B w;  E[w(x)] = 0, E[w(x) w*(y)] = ρ(x) δ(x
             - y),  E[w w*] = ρ I
    holds    ∫ H φ(x) B ρ(x) B* φ*(x) H* dx = 𝓜
    note     Each body is made of six particles with its mass, centre and inertia.
sec. 5, B  from forces at points to spatial forces
    printed  B is the 3 × 6 matrix B = [0, I]*
    instead  B = [0, I]* is 6 × 3
    note     B w(x) is wanted, with w(x) a force of three components: the size is wrong, the matrix
             is right.
""")
def _(case: Case) -> float:
    B = np.vstack([np.zeros((3, 3)), np.eye(3)])
    total = np.zeros_like(case.matrix(mass))
    to_joints, rows = case.matrix(H @ phi), case.dense.slices(BODY)
    for k in case.outward:
        for m, x in _particles(case, k):
            at_body = blocks(np.eye(3), skew(x), np.zeros((3, 3)), np.eye(3))  # φ(k, x)
            kernel = to_joints[:, rows[k]] @ at_body @ B
            total += m * kernel @ kernel.T
    return apart(total, case.matrix(mass))


@MODEL.as_printed
def _(case: Case) -> float:
    B = np.hstack([np.zeros((3, 3)), np.eye(3)])  # 3 x 6
    try:
        np.matmul(np.eye(6), B @ np.ones(3))
    except ValueError:
        return float("inf")
    return 0.0
