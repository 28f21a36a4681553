"""An upgrade: the new version takes over, and what cannot serve does not."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd import __version__
from memd.client.errors import DaemonUnavailableError
from tests.installed import installed, package, upgrade
from tests.support.daemon import Home, client, throw_away_home

RUN = "import sys; from memd.cli.main import main; sys.exit(main())"
SECONDS = 60
NOTE = {"path": "a.md", "name": "a", "description": "d", "type": "user", "body": "b"}
BROKEN = "raise RuntimeError('half installed')\n"


@pytest.fixture(name="home")
def _home() -> Iterator[Home]:
    with throw_away_home() as home:
        yield home
        try:
            with client(home) as connection:
                connection.call("shutdown")
        except DaemonUnavailableError:
            return
        subprocess.run(["flock", home.places.lock, "true"], check=True, timeout=SECONDS)


def memctl(
    home: Home, folder: Path, *arguments: str, python: str = "python"
) -> "subprocess.CompletedProcess[str]":
    """Run memctl of an installation."""
    return subprocess.run(
        [f"{folder}/bin/{python}", "-P", "-c", RUN, *arguments],
        env=dict(home.environ),
        cwd="/",
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def serving(home: Home) -> dict[str, Any]:
    """Return what the daemon says of itself."""
    with client(home) as connection:
        result: dict[str, Any] = connection.call("hello")
    return result


def test_what_would_not_start_takes_nothing_over(home: Home) -> None:
    """The one that runs goes on and the command says why; mended, the new one takes over."""
    folder = Path(home.path, "memd")
    installed(folder, "1.0")
    assert memctl(home, folder, "restart").stdout == "memd 1.0 was started\n"
    before = serving(home)
    module = package(folder) / "daemon" / "agents.py"
    whole = module.read_text()
    upgrade(folder, "1.1")
    module.write_text(BROKEN)
    done = memctl(home, folder, "restart")
    assert (done.returncode, done.stdout) == (1, "")
    assert "would not start: RuntimeError: half installed" in done.stderr
    assert "the memd that runs goes on" in done.stderr
    assert serving(home) == before
    module.write_text(whole)
    done = memctl(home, folder, "restart", python="python3")  # another name of the same
    assert (done.stdout, done.stderr) == ("memd 1.1 took over from 1.0\n", "")
    assert serving(home)["version"] == "1.1"


def test_a_broken_program_is_told_and_comes_back(home: Home) -> None:
    """A memd that cannot start is told with its log; mended, the next command starts it."""
    folder, cwd = Path(home.path, "memd"), home.project()
    installed(folder, "1.0")
    memctl(home, folder, "restart")
    module = package(folder) / "daemon" / "agents.py"
    whole = module.read_text()
    with client(home) as connection:
        connection.call("memory.write", {"cwd": cwd, **NOTE})
        module.write_text(BROKEN)
        connection.call("shutdown")
    done = memctl(home, folder, "--cwd", cwd, "list")
    assert (done.returncode, home.places.log in done.stderr) == (69, True)
    assert "half installed" in Path(home.places.log).read_text()
    module.write_text(whole)
    done = memctl(home, folder, "--cwd", cwd, "list")
    assert (done.returncode, done.stdout.split()[0]) == (0, NOTE["description"])


def test_another_installation_takes_over(home: Home) -> None:
    """Where memctl is not of the installation that runs, its own memd is started in its place."""
    old, new = Path(home.path, "old"), Path(home.path, "new")
    for folder, version in ((old, "1.0"), (new, "2.0")):
        installed(folder, version)
    memctl(home, old, "restart")
    pid = serving(home)["pid"]
    assert "memctl restart" in memctl(home, new, "doctor").stdout
    said = json.loads(memctl(home, new, "restart", "--json").stdout)
    assert said == {"before": "1.0", "version": "2.0"}
    assert serving(home)["pid"] != pid
    assert memctl(home, old, "restart").stdout == "memd 1.0 took over from 2.0\n"


def test_a_memd_that_could_start_says_so(home: Home) -> None:
    """``memd check`` starts nothing and makes nothing."""
    check = subprocess.run(
        [sys.executable, "-m", "memd", "check"],
        env=home.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (check.returncode, check.stdout) == (0, f"memd {__version__} can start\n")
    assert os.listdir(home.path) == ["run"]
