"""Figures of the long proofs: recorded by a test, told at the end of the run."""

FIGURE = "soak figure"
