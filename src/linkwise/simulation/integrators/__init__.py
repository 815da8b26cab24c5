"""Ways to go from one state to the next, one file each, by name."""

from __future__ import annotations

from linkwise.simulation.integrators import euler, rk4, rk4_mujoco, rosenbrock, variational
from linkwise.simulation.integrators.integrator import Integrator, integrator

_CLASSICAL = (1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0)

INTEGRATORS: dict[str, Integrator] = {
    x.name: x
    for x in (
        Integrator("euler", 1, euler.step, "semi-implicit Euler"),
        Integrator("rk4", 4, rk4.step, "Runge-Kutta, commutator-free", weights=_CLASSICAL),
        Integrator(
            "rk4_mujoco",
            4,
            rk4_mujoco.step,
            "Runge-Kutta after Munthe-Kaas, as in MuJoCo",
            weights=_CLASSICAL,
        ),
        Integrator("variational", 2, variational.step, "midpoint rule of least action", "force"),
        Integrator(
            "rosenbrock",
            2,
            rosenbrock.step,
            "linearly implicit, for stiff forces",
            weights=(0.5, 0.5),
            compiled=False,
        ),
        Integrator("adaptive", 8, None, "Dormand-Prince 8(5,3) with adaptive steps"),
    )
}
"""All of them by their names, which `lw.simulate(..., integrator=...)` takes."""

__all__ = ["INTEGRATORS", "Integrator", "integrator"]
