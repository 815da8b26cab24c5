"""Several arms that hold one object: loads, the augmented object, its control."""
