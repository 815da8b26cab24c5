"""Printed plans of the recursions of the papers, kept as text; the same plans are also run.

`pytest tests/sweeps/test_golden.py --update-golden` writes the files anew.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import (
    B,
    D,
    Expr,
    H,
    I,
    J,
    K,
    M,
    a,
    b,
    bias,
    f,
    mass,
    phi,
    psi,
    tau,
    v,
    vdot,
)
from linkwise.algebra.derivation import random_dense
from linkwise.pipeline import derive, plan
from linkwise.spatial.array import Array
from linkwise.spatial.vector import cross_force, cross_velocity
from linkwise.sweeps.interpret import run
from tests.algebra import trees
from tests.algebra.test_derive import FD4, balanced

FOLDER = Path(__file__).parent / "golden"
W = I - H @ psi @ K

FD = W.T @ D.inv @ W @ (tau - H @ phi @ (M @ phi.T @ a + b + B @ f))  # 000 (4.7), (4.8)

PLANS: dict[str, Expr] = {
    "forward_dynamics": FD,
    "forward_dynamics_derived": derive(mass.inv @ (tau - bias - J.T @ f)).result,
    "forward_dynamics_fd4": FD4,
    "inverse_dynamics": H @ phi @ (M @ phi.T @ (H.T @ vdot + a) + b),
    "tip_force_acceleration": -(W.T @ D.inv @ H @ psi @ B @ f),
    "operational_space": B.T @ psi.T @ H.T @ D.inv @ H @ psi @ B,
    "kinetic_energy": 0.5 * (v.T @ mass @ v),
}


def compared(path: Path, text: str, *, update: bool) -> None:
    if update:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    assert path.exists(), f"{path.name} is missing: run with --update-golden and read what it says"
    kept = path.read_text(encoding="utf-8")
    assert text + "\n" == kept, f"{path.name} has changed; run with --update-golden if it is right"


@pytest.mark.parametrize("name", PLANS)
def test_printed_plan(name, request):
    text = str(plan(PLANS[name]))
    compared(FOLDER / f"{name}.txt", text, update=request.config.getoption("--update-golden"))


def test_printed_derivation(request):
    derivation = derive(J @ mass.inv @ J.T)
    update = request.config.getoption("--update-golden")
    compared(FOLDER / "derivation.txt", str(derivation), update=update)
    compared(FOLDER / "derivation.tex", derivation.latex(), update=update)


@pytest.mark.parametrize("name", PLANS)
def test_latex_of_plans(name):
    balanced(plan(PLANS[name]).latex())


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("seed", [2, 5, 9])
def test_kept_plans_are_run(name, seed):
    mech = trees.floating(seed)
    nodes = [mech.bodies[-1].name, mech.bodies[1].name]
    dense = random_dense(mech, [PLANS[name]], seed, nodes)
    got = run(plan(PLANS[name]), mech, dense.q, dense.v, nodes=nodes, values=dense.values)
    want = dense(PLANS[name])
    assert np.abs(got - want).max() < 1e-9 * np.abs(want).max()


# --------------------------------------------------------------- the recursion, line by line


FD_LINES = (
    "V(k) = φ*(p,k) V(p) + H*(k) v(k)",
    "α(k) = φ*(p,k) α(p) + a(k)",
    "P(k) = Σ_c φ(k,c) P⁺(c) φ*(k,c) + M(k)",
    "D(k) = H(k) P(k) H*(k) + N(k)",
    "G(k) = P(k) H*(k) D⁻¹(k)",
    "P⁺(k) = P(k) - G(k) H(k) P(k)",
    "ψ(p,k) = φ(p,k) Π̄(k)",
    "K(p,k) = φ(p,k) G(k)",
    "τ′(k) = τ(k) - H(k) f₂(k)",
    "z(k) = Σ_c ψ(k,c) z(c) + Σ_c K(k,c) τ′(c)",
    "ε(k) = τ′(k) - H(k) z(k)",
    "ν(k) = D⁻¹(k) ε(k)",
    "λ(k) = ψ*(p,k) λ(p) + H*(k) ν(k)",
    "y(k) = ν(k) - K*(p,k) λ(p)",
)
"""000, section 4: filter and smoother of (4.8), after the Newton-Euler recursion of (4.7)."""


def test_forward_dynamics_has_the_lines_of_the_paper():
    lines = [line.strip() for line in str(plan(FD)).splitlines()]
    for line in FD_LINES:
        assert line in lines
    order = [lines.index(line) for line in FD_LINES[8:]]
    assert order == sorted(order)
    loops = [line for line in lines if line.startswith("for k")]
    assert loops == ["for k = base … tips", "for k = tips … base", "for k = base … tips"]


def by_hand(mech: lw.Mechanism, q: Array, qd: Array, torque: Array, force: Array, nodes) -> Array:
    """Those lines, written out in NumPy without any of the algebra."""
    n, parent = mech.n_bodies, mech.parent.tolist()
    step, H_, v_s = [], [], [mech.v_slice(body.hinge_name) for body in mech.bodies]
    V, acc, bk = np.zeros((n, 6)), np.zeros((n, 6)), np.zeros((n, 6))
    for k, body in enumerate(mech.bodies):
        q_k, v_k = q[mech.q_slice(body.hinge_name)], qd[v_s[k]]
        step.append(body.pose(q_k).shift)
        H_.append(body.hinge.hinge_map(q_k) @ body.outboard.shift)
        V[k] = H_[k].T @ v_k + (step[k].T @ V[parent[k]] if parent[k] >= 0 else 0.0)
        a_k = cross_velocity(V[k], H_[k].T @ v_k)
        a_k = a_k + body.outboard.shift.T @ body.hinge.bias(q_k, v_k)
        base = np.concatenate([np.zeros(3), -mech.gravity]) if parent[k] < 0 else acc[parent[k]]
        acc[k] = step[k].T @ base + a_k
        bk[k] = cross_force(V[k], mech.inertias[k].matrix @ V[k])
    P, F, z = [m.copy() for m in mech.inertias.matrix], np.zeros((n, 6)), np.zeros((n, 6))
    psi_, K_, nu = [None] * n, [None] * n, np.zeros(mech.nv)
    for i, name in enumerate(nodes):
        node = mech.node(name)
        F[mech.body_index[node.body]] += node.pose.shift @ force[6 * i : 6 * i + 6]
    for k in reversed(range(n)):
        D_k = H_[k] @ P[k] @ H_[k].T + np.diag(mech.armature[v_s[k]])
        G_k = P[k] @ H_[k].T @ np.linalg.inv(D_k)
        F[k] += mech.inertias[k].matrix @ acc[k] + bk[k]
        free = torque[v_s[k]] - H_[k] @ F[k]
        nu[v_s[k]] = np.linalg.solve(D_k, free - H_[k] @ z[k])
        psi_[k], K_[k] = step[k] @ (np.eye(6) - G_k @ H_[k]), step[k] @ G_k
        p = parent[k]
        if p >= 0:
            P[p] += step[k] @ (P[k] - G_k @ H_[k] @ P[k]) @ step[k].T
            F[p] += step[k] @ F[k]
            z[p] += psi_[k] @ z[k] + K_[k] @ free
    out, lam = np.zeros(mech.nv), np.zeros((n, 6))
    for k in range(n):
        before = lam[parent[k]] if parent[k] >= 0 else np.zeros(6)
        lam[k] = psi_[k].T @ before + H_[k].T @ nu[v_s[k]]
        out[v_s[k]] = nu[v_s[k]] - K_[k].T @ before
    return out


@pytest.mark.parametrize("seed", range(8))
def test_the_lines_are_the_recursion(seed):
    mech = (trees.branched if seed % 2 else trees.floating)(seed)
    rng = np.random.default_rng(seed)
    q, qd = mech.random(rng), mech.random_velocity(rng)
    torque, nodes = rng.standard_normal(mech.nv), [mech.bodies[-1].name, mech.bodies[0].name]
    force = rng.standard_normal(12)
    values = {"tau": torque, "f": force}
    want = by_hand(mech, q, qd, torque, force, nodes)
    for form in (FD, FD4, mass.inv @ (tau - bias - J.T @ f)):
        got = run(plan(form), mech, q, qd, nodes=nodes, values=values)
        assert np.abs(got - want).max() < 1e-9 * np.abs(want).max()
