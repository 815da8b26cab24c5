"""Long chains on GPUs: scans of runs of bodies."""
