"""A throw-away HOME for the tests of the command line."""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memd.core.places import Places, find


@dataclass(frozen=True)
class Home:
    """A HOME, an environment that points there, its places and a project below it."""

    path: str
    environ: Mapping[str, str]
    places: Places
    cwd: str

    def fake_daemon(self, code: str) -> Callable[[], Any]:
        """Put a program called memd on PYTHONPATH; the answer returns what it left in ``out``.

        The two meet in a FIFO, so that nobody has to wait for a clock.
        """
        fifo = f"{self.path}/told"
        os.mkfifo(fifo)
        package = Path(self.path) / "memd"
        package.mkdir()
        (package / "__init__.py").touch()
        tell = f"\nimport json\nwith open({fifo!r}, 'w') as told: json.dump(out, told)\n"
        (package / "__main__.py").write_text(code + tell)

        def told() -> Any:
            with open(fifo) as stream:
                return json.load(stream)

        return told


@contextmanager
def throw_away_home() -> Iterator[Home]:
    """Make a HOME with a short path (a socket's path must fit) and remove it afterwards."""
    with tempfile.TemporaryDirectory(prefix="memctl-", ignore_cleanup_errors=True) as path:
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
        yield Home(path=path, environ=environ, places=find(environ, path, sys.platform), cwd=cwd)
