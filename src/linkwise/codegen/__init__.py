"""Which instructions? Sweeps of one mechanism as a scalar graph, and that as machine code."""
