"""The table of methods."""

from pathlib import Path

from memd.daemon.table import methods
from memd.methods.discover import ORDER


def test_every_method_has_its_place() -> None:
    """The methods in the table are those of the order in which they are listed, each once."""
    assert len(ORDER) == len(set(ORDER))
    assert [row.name for row in methods()] == ORDER


def test_every_method_is_tested_at_a_door() -> None:
    """Some other test than this one calls each method by its name."""
    here = Path(__file__)
    texts = [file.read_text() for file in here.parents[1].rglob("test_*.py") if file != here]
    assert [name for name in ORDER if not any(f'"{name}"' in t for t in texts)] == []
