"""The stations of the tour, one file each."""
