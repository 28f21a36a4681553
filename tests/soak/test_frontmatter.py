"""G11: hostile frontmatter in every place, and a minute of fuzz.

Places: a topic, the index, a file that is in nobody's catalogue, a blob of the journal (by undo,
diff and merge), and the content of a write. A daemon must answer all of it with results or typed
errors, and still be the same process at the end.
"""

import base64
import json
import os
import random
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import psutil
import pytest

from memd.client.blocking import Client
from memd.client.errors import RemoteError
from memd.core.errors import MemdError
from memd.core.values import Pointer
from memd.documents import document, index
from memd.memories import tool_files
from memd.testing.daemon import client, daemon_process, throw_away_home
from tests import corpora
from tests.documents.test_document import BOMBS
from tests.soak.figures import FIGURE

Record = Callable[[str, object], None]
INTERNAL = -32603
SAMPLE = 1_000
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
        except RemoteError as error:
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


@pytest.mark.parametrize("seconds", [0, pytest.param(60, marks=pytest.mark.soak)])
def test_a_minute_of_fuzz_finds_nothing(seconds: float, record_property: Record) -> None:
    """Whatever bytes come, reading and rewriting end in a value or a typed error."""
    # The sample is the same inputs in each run, the minute others.
    new = str(random.SystemRandom().getrandbits(32)) if seconds else "sample"
    seed = os.environ.get("MEMD_FUZZ_SEED") or new
    chance = random.Random(seed)  # noqa: S311 - the seed is told, so that a failure repeats
    until = time.monotonic() + seconds
    count = 0
    content = b""
    for content in islice(mutants(chance), None if seconds else SAMPLE):
        try:
            use(content)
        except MemdError:
            pass
        except BaseException as error:
            error.add_note(f"MEMD_FUZZ_SEED={seed}, input {count}: {content!r}")
            raise
        count += 1
        if seconds and time.monotonic() > until:
            break
    record_property(FIGURE, f"G11 fuzz: {count} inputs in {seconds:g} s, seed {seed}, 0 untyped")


def mutants(chance: random.Random) -> Iterator[bytes]:
    """Yield files that were changed at random, each from a seed or from an earlier one."""
    head = b"name: a\ndescription: d\nmetadata:\n  type: user\n  modified: 2026-01-01T00:00:00.000Z"
    seeds = [b"---\n" + head + b"\n---\n\ntext\n", b"- [A](a.md) \xe2\x80\x94 hook\n# Mine\r\n"]
    seeds += [b"---\n" + bomb.encode()[:300] + b"\n---\n" for bomb in BOMBS]
    tokens = [b"---\n", b"\n", b"\r\n", b": ", b"metadata:", b"  type: ", b"](", b")", b"- [", b"|"]
    tokens += [b"&a ", b"*a", b"<<: ", b"!!bool x", b"\xef\xbb\xbf", b"\x00", b"\xff", b"'", b'"']
    while True:
        content = bytearray(chance.choice(seeds))
        for _ in range(chance.randint(1, 6)):
            at = chance.randint(0, len(content))
            what = chance.randrange(4)
            if what == 0:
                content[at:at] = chance.choice(tokens)
            elif what == 1:
                content[at : at + chance.randint(1, 8)] = b""
            elif what == 2:
                content[at : at + 1] = bytes([chance.randrange(256)])
            else:
                other = chance.choice(seeds)
                content[at:at] = other[chance.randint(0, len(other)) :]
        yield bytes(content[:20_000])


def use(content: bytes) -> None:
    """Do with a file all that memd does with one, on its pure side."""
    document.parse(content, "a.md")
    index.load(content)
    index.entries(content)
    once = index.reconcile(content, {"a.md"}, {"a.md": Pointer("t", "h")})
    assert index.reconcile(once, {"a.md"}, {}) == once
    index.with_pointer(content, "a.md", Pointer("new", "hook"))
    text = content.decode(errors="replace")
    made = tool_files.stored("a.md", text, None, session="", modified="2026-01-01T00:00:00.000Z")
    assert tool_files.shown(made) == text
    document.with_body(content, "body")
    for function in (
        lambda: document.validate(content, "a.md"),
        lambda: document.with_fields(content, {"metadata.modified": "now", "description": "x: y"}),
    ):
        try:
            function()
        except MemdError:
            continue
