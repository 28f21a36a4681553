"""Test data that others made: read where it lies, never copied; a test without it skips."""

import os
from pathlib import Path

import pytest

PLACE = Path(
    os.environ.get("MEMD_CORPORA")
    or Path(__file__).resolve().parents[2].joinpath("shared", "corpora")
)


def folder(name: str) -> Path:
    """Return one corpus, or skip the test that asks with the reason."""
    results = PLACE / name
    if not results.is_dir():
        pytest.skip(f"the corpus {name} is not at {PLACE}; set MEMD_CORPORA")
    return results
