"""Kernels for graphics cards."""
