"""Outside references, one file each: conversions of their conventions live here only."""
