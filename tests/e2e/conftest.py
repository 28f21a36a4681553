"""The figures of the real programs are told as those of the long proofs are."""

from tests.soak.conftest import pytest_terminal_summary

__all__ = ["pytest_terminal_summary"]
