"""memd is replaced under load, again and again: the new version takes over between two requests."""

import json
import os
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memd.client.launch import connect
from tests.installed import installed, upgrade
from tests.soak.figures import FIGURE
from tests.soak.rounds import delay
from tests.soak.upgrading import Load
from tests.support.daemon import Home, throw_away_home

RUN = "import sys; from memd.cli.main import main; sys.exit(main())"
SECONDS = 120
ROUNDS = int(os.environ.get("ROUNDS", "200"))  # of the full run


@pytest.fixture(name="home")
def _home() -> Iterator[Home]:
    with throw_away_home() as home:
        yield home


def restart(home: Home, python: str) -> dict[str, str]:
    """Run an installation's ``memctl restart`` and return what it says."""
    done = subprocess.run(
        [python, "-P", "-c", RUN, "restart", "--json"],
        env=dict(home.environ),
        cwd="/",
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, str] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize("rounds", [1, pytest.param(ROUNDS, marks=pytest.mark.soak)])
def test_no_request_is_lost_by_an_upgrade(
    home: Home, rounds: int, record_property: Callable[[str, object], None]
) -> None:
    """Each new version serves; nothing is lost, done twice, or refused."""
    folder, chance = Path(home.path, "memd"), random.Random(rounds)  # noqa: S311 - repeatable
    python = installed(folder, "1.0")
    assert restart(home, python) == {"before": "", "version": "1.0"}
    load = Load(home, home.project())
    try:
        with load.running():
            for number in range(1, rounds + 1):
                load.wait(delay(chance, rounds))
                upgrade(folder, f"1.{number}")
                said = restart(home, python)
                assert said == {"before": f"1.{number - 1}", "version": f"1.{number}"}
                assert load.failed == []
        assert load.lost() == []
    finally:
        with connect(home.places, home.environ, name="end") as client:
            client.call("shutdown")
    record_property(FIGURE, f"{rounds} upgrades under load: {load.figures()}")
