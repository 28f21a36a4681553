"""The real programs: where ``install.sh`` put them, and how one is run with a home of its own."""

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.daemon import Home

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
INSTALLED = Path(os.environ.get("MEMD_E2E_PREFIX") or ROOT / ".venv" / "e2e")
MEMCTL = str(ROOT / ".venv" / "bin" / "memctl")
_VERSION = re.compile(r"\d+(?:\.\d+)+")


class ProgramFailedError(AssertionError):
    """A program ended in another way than with status 0."""

    def __init__(self, command: Sequence[str], status: int | None, words: str) -> None:
        super().__init__(f"{command[0]} ended with {status}: {words[-4000:]}")


def program(name: str) -> str:
    """Return the path of a program, or skip the test where it could not be had."""
    path = INSTALLED / "bin" / name
    if not path.exists():
        pytest.skip(f"{name} is not there: tests/e2e/install.sh could not bring it")
    return str(path)


def environ(home: Home, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a program: all its places below the home, memctl on its path."""
    node = INSTALLED / "node24" / "node_modules" / "node" / "bin"
    path = f"{Path(MEMCTL).parent}:{node}:/usr/local/bin:/usr/bin:/bin:{INSTALLED}/bin"
    cache = {"XDG_CACHE_HOME": f"{home.path}/.cache", "XDG_DATA_HOME": f"{home.path}/.local/share"}
    return {**home.environ, **cache, "PATH": path, "TERM": "xterm", **(extra or {})}


def run(
    command: Sequence[str],
    home: Home,
    extra: Mapping[str, str] | None = None,
    *,
    given: str = "",
    cwd: str = "",
    seconds: float = 120,
) -> str:
    """Return what a program printed. Nothing that it started in its group is left.

    Raises ProgramFailedError where it did not end with 0, or not in time.
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(
            command,
            env=environ(home, extra),
            cwd=cwd or home.path,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=errors,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                process.communicate(given, timeout=seconds)
            except subprocess.TimeoutExpired:
                pass
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        out.seek(0)
        errors.seek(0)
        printed, failure = out.read(), errors.read()
    if process.returncode:
        raise ProgramFailedError(command, process.returncode, printed + failure)
    return printed


def memctl(home: Home, *arguments: str, cwd: str = "") -> str:
    """Return what memctl printed."""
    return run([MEMCTL, *arguments], home, cwd=cwd)


def learn_from_scripts(home: Home) -> None:
    """Let memd learn from programs in front of which nobody sits, as in these tests."""
    settings = Path(home.places.config)
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("[extract]\nallow_remote = true\n")
    settings.chmod(0o600)


def version(home: Home, command: Sequence[str]) -> str:
    """Return the version that a program prints of itself, "" where it prints none."""
    both = ("sh", "-c", '"$@" 2>&1', "sh")  # nc says it among its errors
    match = _VERSION.search(run([*both, *command], home))
    return match[0] if match else ""
