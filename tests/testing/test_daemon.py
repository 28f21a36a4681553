"""Daemons to test against."""

import os
from pathlib import Path

from memd.testing.daemon import throw_away_home


def test_a_home_leaves_nothing_behind() -> None:
    """A throw-away HOME is gone after its block, with all that lay in it."""
    with throw_away_home() as home:
        assert home.environ["HOME"] == home.path
        assert home.places.socket.startswith(home.path)
        assert os.path.isdir(f"{home.project('x')}/.git")
    assert not Path(home.path).exists()
