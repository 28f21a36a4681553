"""An installation of memd that can be broken, with its hook set up in a client's settings."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import memd
from tests.support.daemon import Home, throw_away_home

PROMPT = {"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": "hello"}
_MEMCTL = "import sys; from memd.cli.main import main; sys.exit(main())"


@dataclass(frozen=True)
class Installed:
    """A home, the installation in it, and the command that the client's settings have."""

    home: Home
    command: str

    @property
    def venv(self) -> Path:
        """The installation."""
        return Path(self.home.path) / "venv"

    @property
    def package(self) -> Path:
        """The package in it."""
        return _site(self.venv) / "memd"

    @property
    def hook(self) -> Path:
        """The hook in its own place."""
        return Path(self.home.places.data_dir) / "hook.py"

    def run(
        self, *, environ: Mapping[str, str] | None = None, before: str = "", user: int | None = None
    ) -> "subprocess.CompletedProcess[bytes]":
        """Run the hook as a client's shell does, after some shell commands."""
        given = {"MEMD_HOOK_NO_START": "1", "MEMD_HOOK_DEADLINE_MS": "10000"}
        command = ["/bin/sh", "-c", self.command]
        if before:
            command = ["/bin/sh", "-c", f'{before}; exec "$@"', "sh", *command]
        return run_with_launch(
            command,
            input=json.dumps(PROMPT | {"cwd": self.home.project()}).encode(),
            env={**self.home.environ, **given, **(environ or {})},
            capture_output=True,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
            timeout=60,
        )


@contextmanager
def installed() -> Iterator[Installed]:
    """Install memd into a home of its own and set up its hook."""
    with throw_away_home() as home:
        venv.create(f"{home.path}/venv", symlinks=True)
        site = _site(Path(home.path) / "venv")
        (site / "libraries.pth").write_text(sysconfig.get_path("purelib"))
        (site / "memd").symlink_to(Path(memd.__file__).parent)
        subprocess.run(
            [f"{home.path}/venv/bin/python", "-c", _MEMCTL, "setup", "claude-code"],
            env=dict(home.environ),
            capture_output=True,
            check=True,
        )
        settings = json.loads(Path(home.path, ".claude", "settings.json").read_bytes())
        (entry,) = settings["hooks"]["UserPromptSubmit"][0]["hooks"]
        yield Installed(home, entry["command"])


def run_with_launch(command: list[str], **how: Any) -> "subprocess.CompletedProcess[bytes]":
    """Run a command and wait until what it left to launch a daemon has ended too.

    These inherit a pipe, which a daemon does not.
    """
    end, held = os.pipe()
    try:
        done = subprocess.run(command, pass_fds=[held], check=False, **how)
    finally:
        os.close(held)
    with open(end, "rb") as pipe:
        assert pipe.read() == b""
    return done


def _site(folder: Path) -> Path:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return folder / "lib" / version / "site-packages"


def package_gone(what: Installed) -> None:
    """Do what ``pip uninstall`` does."""
    what.package.unlink()


def installation_gone(what: Installed) -> None:
    """Do what ``pipx uninstall`` does."""
    shutil.rmtree(what.venv)


def interpreter_gone(what: Installed) -> None:
    """Remove the Python that the installation was made with."""
    for name in os.listdir(what.venv / "bin"):
        if name.startswith("python"):
            (what.venv / "bin" / name).unlink()
            (what.venv / "bin" / name).symlink_to("/nowhere/python")


def interpreter_broken(what: Installed) -> None:
    """Put something in the interpreter's place that no system can run."""
    link = what.hook.with_name("python")
    link.unlink()
    link.write_bytes(b"\x7fELF nonsense")
    link.chmod(0o755)


def file_gone(what: Installed) -> None:
    """Remove the hook's file alone."""
    what.hook.unlink()


def folder_gone(what: Installed) -> None:
    """Remove the hook's whole place."""
    shutil.rmtree(what.hook.parent)


def file_is_a_folder(what: Installed) -> None:
    """Leave something that cannot be read as a file."""
    what.hook.unlink()
    what.hook.mkdir()


def file_closed(what: Installed) -> None:
    """Take away the right to read it; root does not need that right."""
    what.hook.chmod(0)


def file_torn(what: Installed) -> None:
    """Leave half of it, as a copy that a full disk cut short."""
    content = what.hook.read_bytes()
    what.hook.write_bytes(content[: len(content) // 2])


def file_empty(what: Installed) -> None:
    """Leave nothing in it."""
    what.hook.write_bytes(b"")


def state_is_a_file(what: Installed) -> None:
    """Leave no room for logs and marks."""
    shutil.rmtree(what.home.places.state_dir, ignore_errors=True)
    Path(what.home.places.state_dir).parent.mkdir(parents=True, exist_ok=True)
    Path(what.home.places.state_dir).touch()


BREAKAGES: tuple[Callable[[Installed], None], ...] = (
    package_gone,
    installation_gone,
    interpreter_gone,
    interpreter_broken,
    file_gone,
    folder_gone,
    file_is_a_folder,
    file_closed,
    file_torn,
    file_empty,
    state_is_a_file,
)
# What a shell can take from the process before the hook's command runs.
SHORTAGES = (
    "",
    "ulimit -f 0",  # a full disk: nothing may grow
    "ulimit -n 4",
    "ulimit -v 30000",
    "exec <&-",
    "exec >&-",
    "exec >/dev/full",
    "exec 2>&-",
    "unset HOME",
    "PATH=/nowhere; export PATH",
    "cd /; umask 0777",
)


def break_quietly(what: Installed, breakage: Callable[[Installed], None]) -> None:
    """Break something that may be broken already."""
    with suppress(OSError):
        breakage(what)
