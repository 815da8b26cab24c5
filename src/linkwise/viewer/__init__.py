"""A mechanism or a recording in a web page, in three dimensions: the extra `viewer`."""
