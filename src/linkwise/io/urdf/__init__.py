"""URDF: one file for reading, one for writing, and one for each kind of element."""
