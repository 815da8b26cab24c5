"""Loops over bodies: one traced step for each class of bodies."""
