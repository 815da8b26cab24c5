"""Constraint embedding: loops and couplings built into a tree of aggregate bodies."""
