"""G11: hostile frontmatter in every place; ``make fuzz TARGET=memory`` looks for more of it.

Places: a topic, the index, a file that is in nobody's catalogue, a blob of the journal (by undo,
diff and merge), and the content of a write. A daemon must answer all of it with results or typed
errors, and still be the same process at the end.
"""

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from memd.base.errors import MemdError
from memd.client.blocking import Client
from tests import corpora
from tests.soak.figures import FIGURE
from tests.store.test_memory import BOMBS
from tests.support.daemon import client, daemon_process, throw_away_home

Record = Callable[[str, object], None]
INTERNAL = -32603
_LONGEST = 2.0  # seconds of work for one call; a bomb that goes off takes minutes
_PARTS = {"name": "other", "description": "d", "type": "user", "body": "b"}


class Daemon:
    """A client that counts calls, typed errors and everything that must not be.

    How slow a call is goes by the time that the daemon's process has worked, which is the same on
    a busy machine.
    """

    def __init__(self, connection: Client, cwd: str, pid: int) -> None:
        self.connection = connection
        self.cwd = cwd
        self._process = psutil.Process(pid)
        self.calls = 0
        self.wrong: list[str] = []
        self.slowest = 0.0

    def call(self, method: str, **params: Any) -> Any:
        """Call a method; a typed error is as good as a result."""
        self.calls += 1
        begun = self._worked()
        try:
            return self.connection.call(method, {"cwd": self.cwd, **params})
        except MemdError as error:
            if error.code == INTERNAL:
                self.wrong.append(f"{method}: {error}")
            return None
        finally:
            self.slowest = max(self.slowest, self._worked() - begun)

    def _worked(self) -> float:
        times = self._process.cpu_times()
        return times.user + times.system

    def inspect(self) -> None:
        """Use every method that reads what lies in the directory."""
        self.call("memory.list")
        self.call("load_prompt", session_id="s")
        self.call("prefetch", session_id="s", query="body of a memory", strategy="local")
        self.call("memory.search", query="body")
        self.call("memory.tool", command={"command": "view", "path": "/memories"})


def heads(step: int) -> list[bytes]:
    """Return the cases of the YAML test suite and the bombs, each as a file."""
    cases = json.loads((corpora.folder("yaml") / "yaml_cases.json").read_bytes())
    raw = [base64.b64decode(case["yaml_b64"]) for case in cases[::step]]
    raw += [bomb.encode() for bomb in BOMBS]
    return [b"---\n" + text + b"\n---\n\nbody\n" for text in raw]


def plant(daemon: Daemon, folder: Path, content: bytes) -> None:
    """Bring one file to every place, and use the directory after each."""
    topic, stray = folder / "b.md", folder / ".memd-1-0-0badf00d.tmp"
    topic.write_bytes(content)
    daemon.inspect()
    daemon.call("memory.read", path="b.md")
    daemon.call("memory.write", path="other.md", **_PARTS)
    # It is journalled as somebody else's work: now it is a blob.
    daemon.call("memory.write", path="b.md", body="new text")
    daemon.call("memory.write", path="b.md", **_PARTS)
    for change in (daemon.call("memory.history", limit=3) or {"changes": []})["changes"]:
        daemon.call("memory.diff", change=change["id"])
        daemon.call("memory.undo", change=change["id"])
    (folder / "MEMORY.md").write_bytes(content)
    stray.write_bytes(content)
    daemon.inspect()
    daemon.call("memory.write", path="other.md", **(_PARTS | {"body": "again"}))
    text = content.decode(errors="replace")
    daemon.call("memory.write", path="c.md", content=text)
    create = {"command": "create", "path": "/memories/d.md", "file_text": text}
    daemon.call("memory.tool", command=create)
    for path in (topic, stray, folder / "MEMORY.md", folder / "c.md", folder / "d.md"):
        path.unlink(missing_ok=True)


@pytest.mark.parametrize("step", [40, pytest.param(1, marks=pytest.mark.soak)])
def test_no_file_harms_the_daemon(step: int, record_property: Record) -> None:
    """No case and no bomb, wherever it lies, ends a call in anything but an answer."""
    every = heads(step)
    if step > 1:
        every = every[:: len(every) // 8]
    with throw_away_home() as home, daemon_process(home) as process, client(home) as connection:
        daemon = Daemon(connection, home.project(), process.pid)
        folder = Path(daemon.call("memory.list")["memory_dir"])
        os.makedirs(folder, exist_ok=True)
        for content in every:
            plant(daemon, folder, content)
        assert connection.call("status")["pid"] == process.pid
    record_property(
        FIGURE,
        f"G11 frontmatter: {len(every)} files x 5 places, {daemon.calls} calls,"
        f" {len(daemon.wrong)} untyped, slowest {daemon.slowest * 1e3:.0f} ms, 0 crashes",
    )
    assert daemon.wrong == []
    assert daemon.slowest < _LONGEST
