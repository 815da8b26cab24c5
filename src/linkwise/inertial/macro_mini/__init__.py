"""A mini on a macro: how it reduces the inertia at the tip, and how to keep it within range."""
