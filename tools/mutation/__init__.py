"""The parts of tools/mutants.py."""
