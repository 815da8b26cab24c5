"""Sweeps as associative scans: all bodies at once, in O(log N) levels."""
