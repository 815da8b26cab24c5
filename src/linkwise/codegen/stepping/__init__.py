"""A step of time as straight code: segments over named registers, and loops around them."""
