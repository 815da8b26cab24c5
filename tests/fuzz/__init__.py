"""Fuzzers of everything that reads: model files, meshes, recordings, kernels on disk, commands."""
