"""A mini on a macro: how it reduces the inertia at the tip, and how to keep it within range.

`parts.py` has the two mechanisms, `reduced_inertia.py` Lemmas 1 and 2 and Theorem 2,
`smallest_mini.py` its general form, `dextrous.py` the coordination.
"""
