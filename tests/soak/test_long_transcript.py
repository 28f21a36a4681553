"""A transcript of 500 MB: what learning from it reads, and what that takes of memory."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memd.client.blocking import Client
from tests.promises.transcripts import Conversation
from tests.soak.figures import FIGURE
from tests.support.daemon import Home, client, daemon_process, throw_away_home
from tests.support.messages import MessagesServer, messages_server, text

pytestmark = pytest.mark.soak
MEGABYTE = 1_000_000
LENGTH = 500 * MEGABYTE
WORDS = "what the parser keeps of a record is written down before the next one is read; "


def grow(said: Conversation, bytes_: int) -> None:
    """Let a conversation grow to a length: turns with long outputs, files, copies of requests."""
    said.user("The first turn of a long day.")
    while os.path.getsize(said.path) < 8 * MEGABYTE:
        said.user(f"Question {said.lines}: {WORDS * 2}")
        said.tool("Bash", {"command": "make"}, f"line {said.lines}: {WORDS * 700}")
        said.tool("Read", {"file_path": f"/p/f{said.lines}.py"}, f"{WORDS * 200}")
        said.assistant(f"Answer {said.lines}: {WORDS * 10}")
        with open(said.path, "a", encoding="utf-8") as file:
            noise = {"type": "attachment", "uuid": f"a{said.lines}", "data": WORDS * 300}
            file.write(json.dumps(noise) + "\n")
    block = Path(said.path).read_bytes()
    with open(said.path, "ab") as file:
        while file.tell() < bytes_:
            file.write(block)


def configure(home: Home, server: MessagesServer) -> None:
    """Name the server as the model's."""
    config = Path(home.places.config)
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f'[model]\nbase_url = "{server.url}"\n[spend]\ndollars_per_day = 100\n')
    config.chmod(0o600)


def extract(daemon: Client, said: Conversation) -> float:
    """Extract from a conversation and return the seconds that it took."""
    begun = time.perf_counter()
    params = {"session_id": said.session, "transcript_path": said.path, "wait": True}
    done = daemon.call("extract", {"cwd": said.cwd, **params})
    assert (done["status"], done["turns"]) == ("completed", 1), done
    return time.perf_counter() - begun


def read_by(pid: int) -> int:
    """Return the bytes that a process has read so far, by any call."""
    lines = Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines()
    return int(dict(line.split(": ") for line in lines)["rchar"])


def memory_of(pid: int) -> tuple[float, float]:
    """Return the resident memory of a process and its peak since the last call, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    said = dict(line.split(":", 1) for line in lines)
    now, peak = (int(said[name].split()[0]) * 1024 / MEGABYTE for name in ("VmRSS", "VmHWM"))
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
    return now, peak


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs Linux's /proc")
def test_a_transcript_of_half_a_gigabyte(record_property: Callable[[str, object], None]) -> None:
    """The first extraction reads the end alone, the next the new turn alone, both in 50 MB."""
    with throw_away_home() as home, messages_server(text("nothing new")) as server:
        configure(home, server)
        with daemon_process(home) as process, client(home) as daemon:
            cwd = home.project()
            small = Conversation(home.path, cwd, "small")
            small.user("A first turn, after which the daemon has loaded what it needs.")
            extract(daemon, small)
            said = Conversation(home.path, cwd, "long")
            grow(said, LENGTH)
            length = os.path.getsize(said.path)
            idle, _ = memory_of(process.pid)
            before = read_by(process.pid)
            first_seconds = extract(daemon, said)
            first = read_by(process.pid) - before
            _, first_peak = memory_of(process.pid)
            said.user("One more turn.")
            said.assistant("Understood.")
            new = os.path.getsize(said.path) - length
            before = read_by(process.pid)
            next_seconds = extract(daemon, said)
            then = read_by(process.pid) - before
            _, next_peak = memory_of(process.pid)
    figure = (
        f"a transcript of {length / MEGABYTE:.0f} MB: first extraction read {first / MEGABYTE:.1f} "
        f"MB in {first_seconds:.2f} s, {first_peak - idle:.1f} MB above idle ({idle:.0f} MB); "
        f"a turn of {new} bytes read {then / 1000:.1f} kB in {next_seconds:.3f} s, "
        f"{next_peak - idle:.1f} MB above idle"
    )
    record_property(FIGURE, figure)
    assert first < 12 * MEGABYTE
    assert then < 500_000
    assert max(first_peak, next_peak) - idle < 50
