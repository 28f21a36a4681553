"""A throw-away HOME for the tests of the command line."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from memd.base.places import Places, find


@dataclass(frozen=True)
class Home:
    """A HOME, an environment that points there, its places and a project below it."""

    path: str
    environ: Mapping[str, str]
    places: Places
    cwd: str


@contextmanager
def throw_away_home() -> Iterator[Home]:
    """Make a HOME with a short path (a socket's path must fit) and remove it afterwards.

    No daemon may be left there.
    """
    with tempfile.TemporaryDirectory(prefix="memctl-") as path:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        kept |= {n: v for n, v in os.environ.items() if n.startswith("COVERAGE_")}
        environ = kept | {
            "HOME": path,
            "XDG_RUNTIME_DIR": f"{path}/run",
            "XDG_STATE_HOME": f"{path}/.local/state",
            "XDG_CONFIG_HOME": f"{path}/.config",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        cwd = f"{path}/project"
        os.makedirs(f"{cwd}/.git")
        os.makedirs(f"{path}/run/memd", mode=0o700)
        home = Home(path=path, environ=environ, places=find(environ, path, sys.platform), cwd=cwd)
        yield home
        if os.path.exists(home.places.lock):  # a daemon that was told to end still writes a little
            subprocess.run(["flock", home.places.lock, "true"], check=True, timeout=60)
