"""The discrete mechanics behind the integrator "variational": coordinates, equations, steps."""
