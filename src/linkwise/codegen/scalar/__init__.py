"""The scalar graph: sweeps run on symbols, with checks and run-time parameters."""
