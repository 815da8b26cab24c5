"""Several arms that hold one object: the algorithms of JPL 88-11, Part II, by name."""
