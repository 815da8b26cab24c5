"""Inertia emerges as covariance: the mass matrix of a PUMA 560 from random forces.

    python examples/mass_matrix_as_covariance.py [figure.png]

Noise whose covariance is the spatial inertia pushes every body. The joint forces that hold the arm
are recorded, and their covariance becomes the mass matrix. With a file name, and the extra `plot`
installed, the convergence is drawn.
"""

from __future__ import annotations

import sys

import numpy as np

import linkwise as lw


def main() -> None:
    """Draw, compare, and check the error against what chance allows."""
    puma = lw.models.puma560()
    q = puma.random(seed=0)
    field = lw.estimation.RandomField(puma, q)

    print("  draws   error   expected")
    sample = field.sample_mass_matrix(200_000, seed=0, progress=report)
    exact = lw.mass_matrix(puma, q)

    # Inside the band that the Wishart distribution allows, and entry by entry inside 5 sigmas.
    lower, upper = sample.band(0.999)
    assert lower[-1] < sample.error < upper[-1]
    assert (np.abs(sample.estimate - exact) < 5.0 * sample.deviation).all()

    # And the best estimate of the accelerations from joint forces is forward dynamics.
    tau, v = np.ones(6), np.zeros(6)
    smoother = field.smooth(tau - lw.bias_force(puma, q, v))
    assert np.allclose(smoother.vdot, lw.forward_dynamics(puma, q, v, tau), rtol=1e-12)

    if len(sys.argv) > 1:
        plot(sample, sys.argv[1])


def report(sample: lw.estimation.MassMatrixSample) -> None:
    """One line."""
    print(f"{sample.count:7d}  {sample.error:6.3f}     {sample.expected[-1]:6.3f}")


def plot(sample: lw.estimation.MassMatrixSample, file: str) -> None:
    """The error over the number of draws, and the band it should be in."""
    import matplotlib.pyplot as plt

    lower, upper = sample.band(0.95)
    plt.fill_between(sample.counts, lower, upper, alpha=0.2, label="95 % band")
    plt.loglog(sample.counts, sample.errors, "o-", label="error")
    plt.xlabel("draws")
    plt.legend()
    plt.savefig(file)


if __name__ == "__main__":
    main()
