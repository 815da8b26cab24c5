"""Recordings in files: Parquet, HDF5, CSV and NumPy's archives, all with the same content."""

from linkwise.simulation.files.load import load_recording, save_recording

__all__ = ["load_recording", "save_recording"]
