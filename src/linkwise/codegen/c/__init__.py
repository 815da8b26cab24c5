"""C99 source for a robot's controller."""
