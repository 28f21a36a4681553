"""What memctl debug bundle packs holds no text of a person, whatever was planted where."""

import getpass
import gzip
import io
import json
import os
import socket
import stat
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from memd.client.aio import AsyncClient
from memd.client.errors import RemoteError
from memd.core.places import find
from memd.testing.clock import FakeClock
from memd.testing.daemon import (
    Home,
    daemon_here,
    home_environ,
    memctl_command,
    memctl_ended,
)
from tests.canaries import CANARY, files, plant
from tests.metrics_text import parsed

PARTS = {
    "README.txt",
    "versions.json",
    "settings.json",
    "service.json",
    "clients.json",
    "doctor.json",
    "status.json",
    "metrics.txt",
    "debug.json",
    "log.jsonl",
}
OF_THE_DAEMON = {"doctor.json", "status.json", "metrics.txt", "debug.json"}
FAULT = (
    "Traceback (most recent call last):\n"
    '  File "/home/canary/memd/api/status.py", line 75, in status\n    canary()\n'
    '  File "/home/canary/memd/canary.py", line 7, in canary\n'
    "memd.store.changes.BeingWrittenError: canary.md is being written\n"
    "CanaryError: the canary died\n"
)


class Anyhow:
    """Calls methods, whether or not they fail."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def any(self, method: str, **params: Any) -> Any:
        """Call a method; a failure is no answer."""
        try:
            return await self._client.call(method, params)
        except RemoteError:
            return None


@pytest.fixture(name="home")
def _home() -> Iterator[Home]:
    """Make a HOME whose name is a canary, with all that a person may have there."""
    with tempfile.TemporaryDirectory(prefix="canary-") as path:
        environ = home_environ(path) | {"USER": "canary", "LOGNAME": "canary"}
        os.makedirs(f"{path}/run", mode=0o700)
        home = Home(path=path, environ=environ, places=find(environ, path))
        files(path, home.places.config)
        claude = Path(path) / ".claude"
        (claude / "settings.json").write_text('{"canary": "canary"}')
        (claude / "CLAUDE.md").write_text("Feed the canary.")
        os.makedirs(home.places.state_dir, mode=0o700)
        lines = [
            {"event": "fault", "level": "error", "client": "canary", "traceback": FAULT, "pid": 3},
            {"event": "canary", "canary": "canary"},
            {"event": "recovered", "level": "warning", "detail": "/home/canary/x was canary"},
            {"event": "ready", "level": "info", "version": "1.2.3", "socket": "192.0.2.7"},
        ]
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        Path(home.places.log).write_text(f"{FAULT}memd: the canary died\n{text}")
        yield home


def unpacked(path: Path) -> dict[str, str]:
    """Return the parts of a bundle, none of whose bytes is a canary's."""
    packed = path.read_bytes()
    content = gzip.decompress(packed)
    names = {CANARY, socket.gethostname().lower(), getpass.getuser().lower()}
    for name in (each.encode() for each in names if len(each) > 4):
        assert name not in content.lower()
        assert name not in packed.lower()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        members = archive.getmembers()
        assert {(each.uname, each.gname, each.uid) for each in members} == {("", "", 0)}
        texts = {each.name.partition("/")[2]: archive.extractfile(each) for each in members}
        return {name: file.read().decode() for name, file in texts.items() if file}


def bundled(home: Home, cwd: str, name: str) -> tuple[dict[str, str], str]:
    """Make a bundle; return its parts, and what was printed."""
    done = memctl_ended(home, cwd, "debug", "bundle", "-o", name)
    assert done.returncode == 0, done.stderr
    return unpacked(Path(cwd) / name), done.stdout


@pytest.mark.anyio
async def test_no_word_of_a_person_is_in_the_bundle(home: Home) -> None:
    """Memories, names, prompts, paths, settings, errors and the log leave numbers and hashes."""
    cwd = home.project("canary-project")
    async with (
        daemon_here(home, FakeClock()),
        AsyncClient(home.places.socket, name="canary-client") as client,
    ):
        await plant(Anyhow(client), cwd)
        for method in ("status", "doctor"):  # what is packed is not what the daemon tells
            assert CANARY in json.dumps(await client.call(method, {})).lower()
        parts, printed = await to_thread.run_sync(bundled, home, cwd, "one.tar.gz")
        again, _ = await to_thread.run_sync(bundled, home, cwd, "two.tar.gz")
    assert set(parts) == PARTS
    assert all(f"  {name}" in printed for name in PARTS - {"README.txt"})
    assert "Nothing was sent" in printed
    status, debug = json.loads(parts["status.json"]), json.loads(parts["debug.json"])
    (project,) = status["projects"]
    assert project.startswith("path-")
    assert json.loads(again["status.json"])["projects"] == [project]  # the same text, one hash
    assert (status["version"], status["last_dream"]["state"]) == (
        debug["versions"]["memd"],
        "completed",
    )
    assert status["sessions"][0]["session"].startswith("text-")
    assert debug["state"]["rows"]["changes"] > 0
    assert "memd_request_seconds" in parsed(parts["metrics.txt"])
    assert json.loads(parts["doctor.json"])["settings"] == "warning"
    assert json.loads(parts["clients.json"])["claude-code"] == {
        "state": "absent",
        "messages": False,
    }
    chosen = json.loads(parts["settings.json"])
    assert (chosen["problems"], chosen["model.enabled"], chosen["model.api_key"]) == (
        2,
        False,
        "(set)",
    )


def test_the_log_s_places_in_the_program_stay(home: Home) -> None:
    """Without a daemon there is less; a traceback has memd's own lines and the class alone."""
    cwd = home.project("canary-project")
    parts, printed = bundled(home, cwd, "none.tar.gz")
    assert set(parts) == PARTS - OF_THE_DAEMON
    assert "missing: status.json: daemon_unavailable" in printed
    lines = [json.loads(line) for line in parts["log.jsonl"].splitlines()]
    places = ["memd/api/status.py:75 status", "memd.store.changes.BeingWrittenError"]
    assert [place for line in lines[:6] for place in line.get("trace", ())] == places
    fault, foreign, recovered, ready = lines[-4:]
    assert (fault["event"], fault["pid"], fault["trace"]) == ("fault", 3, places)
    assert list(foreign) == ["text"]
    assert recovered["detail"].startswith("path-")
    assert (ready["version"], ready["socket"][:5]) == ("1.2.3", "text-")  # an address is none


def test_nothing_is_replaced(home: Home) -> None:
    """A file that is there stays, and so does what a link leads to."""
    cwd = home.project("canary-project")
    Path(cwd, "mine").write_text("mine")
    Path(cwd, "link").symlink_to("elsewhere")
    for name in ("mine", "link"):
        done = memctl_ended(home, cwd, "debug", "bundle", "-o", name)
        assert (done.returncode, "cannot be written" in done.stderr) == (1, True)
    assert Path(cwd, "mine").read_text() == "mine"
    assert not Path(cwd, "elsewhere").exists()


def test_a_full_disk_leaves_no_part_of_a_bundle(home: Home) -> None:
    """Where the archive has no room it is not there at all, and memctl says so."""
    cwd = home.project("canary-project")
    command = ["sh", "-c", 'ulimit -f 1; exec "$0" "$@"', *memctl_command("debug", "bundle")]
    done = subprocess.run(
        [*command, "-o", "none.tar.gz"],
        env=home.environ,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "cannot be written" in done.stderr) == (1, True)
    assert not Path(cwd, "none.tar.gz").exists()
