"""A member's sync by itself: when it sends, and what it does when the server fails (9.3)."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.net.clocked_home import clocked_home, pass_until
from tests.net.kit import Home, until
from tests.net.team_server import Device, Member, TeamServer, entry, memory, serving
from tests.net.wire import RpcError

pytestmark = pytest.mark.full
Fault = tuple[int, dict[str, str], bytes]


class Sent(NamedTuple):
    """A request of the member's."""

    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes


class Relay:
    """Stands before a server, notes each request, and answers some itself.

    ``fault(request)`` returns an answer, or ``None`` to pass the request on; with ``loses`` an
    answer of a PUT is thrown away after the server has given it.
    """

    def __init__(self, server: TeamServer) -> None:
        self.seen: list[Sent] = []
        self.fault: Callable[[Sent], Fault | None] = lambda _: None
        self.loses = False
        handler = type("Handler", (_Handler,), {"relay": self, "device": Device(server, "")})
        self._listener = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._listener.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._listener.server_port}"
        threading.Thread(target=self._listener.serve_forever, args=(0.05,), daemon=True).start()

    def puts(self) -> list[Sent]:
        return [each for each in self.seen if each.method == "PUT"]

    def fail(self, status: int, *methods: str, kind: str = "x", **headers: str) -> None:
        """Answer requests of these methods, or all, with an error."""
        body = json.dumps({"error": {"kind": kind, "message": "no", "retryable": status >= 500}})
        answer = (status, headers, body.encode())
        self.fault = lambda sent: answer if not methods or sent.method in methods else None

    def heal(self) -> None:
        self.fault = lambda _: None
        self.loses = False

    def close(self) -> None:
        self._listener.shutdown()
        self._listener.server_close()


class _Handler(BaseHTTPRequestHandler):
    relay: Relay
    device: Device

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        sent = Sent(self.command, self.path, headers, body)
        self.relay.seen.append(sent)
        fault = self.relay.fault(sent)
        if fault is None:
            dropped = {"host", "connection", "accept-encoding", "content-length"}
            given = {name.title(): value for name, value in headers.items() if name not in dropped}
            answer = self.device.ask(self.command, self.path, body or None, **given)
            if self.relay.loses and self.command == "PUT":
                return
            kept = {"etag", "content-type", "retry-after"}
            passed = {name: value for name, value in answer.headers.items() if name in kept}
            fault = (answer.status, passed, answer.body)
        status, out, content = fault
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **out}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if status not in {204, 304}:
            self.wfile.write(content)

    def do_GET(self) -> None:
        self._pass_on()

    def do_PUT(self) -> None:
        self._pass_on()

    def do_POST(self) -> None:
        self._pass_on()

    def do_DELETE(self) -> None:
        self._pass_on()


class Line(NamedTuple):
    """A member whose daemon reaches the server through a relay."""

    server: TeamServer
    relay: Relay
    anna: Member
    bert: Device


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    """Let Anna join through a relay; Bert asks the server himself."""
    with serving(tmp_path) as server, clocked_home() as home:
        relay, anna = Relay(server), Member(home)
        anna.join(relay.url, server.code("anna"))
        relay.seen.clear()
        yield Line(server, relay, anna, server.device("bert", "maintainer"))
        relay.close()


def calm(home: Home, seconds: float, steps: int = 10) -> None:
    """Let time pass in steps, with a call to the daemon after each."""
    for _ in range(steps):
        home.pass_time(seconds=seconds / steps)
        home.call("status")


def test_nothing_but_the_entry_leaves_the_machine(line: Line) -> None:
    """A request has key, bytes, hash, base, id and version, and nothing of person or place."""
    line.anna.project.write("private.md", "Private words.")
    line.anna.put("a.md", "One.")
    line.anna.sync()
    (put,) = line.relay.puts()
    (sent,) = json.loads(put.body)["entries"]
    assert set(sent) == {"key", "content", "hash", "base"}
    text = "\n".join(
        f"{each.path} {value} {each.body.decode()}"
        for each in line.relay.seen
        for name, value in each.headers.items()
        if name != "host"
    )
    for word in ("Private words", line.anna.home.path.name, line.anna.project.cwd):
        assert word not in text
    known = {
        "host", "accept", "accept-encoding", "connection", "user-agent", "authorization",
        "content-type", "content-length", "idempotency-key", "if-none-match", "if-match",
    }  # fmt: skip
    assert {name for each in line.relay.seen for name in each.headers} <= known


def test_a_session_that_starts_pulls(line: Line) -> None:
    """What others wrote is here soon after a session began."""
    line.bert.put(entry("a.md", memory("Of Bert.", name="a")))
    line.anna.call("session", session_id="s1", event="start")
    pass_until(line.anna.home, lambda: line.anna.text("a.md"))


def test_a_session_pulls_every_five_minutes(line: Line) -> None:
    """While a session goes on, others' writes come within six minutes."""
    line.anna.call("session", session_id="s1", event="start")
    pass_until(line.anna.home, lambda: line.relay.seen)
    calm(line.anna.home, 5)
    line.bert.put(entry("a.md", memory("Of Bert.", name="a")))
    calm(line.anna.home, 360, 36)
    until(lambda: line.anna.text("a.md"))


@pytest.mark.parametrize("status", [401, 404])
def test_after_a_permanent_failure_no_event_asks(line: Line, status: int) -> None:
    """Edits, sessions and restarts make no request; a deletion in team/ begins anew."""
    line.anna.put("kept.md", "Kept.")
    line.anna.sync()
    line.relay.fail(status, kind="unauthorised")
    line.anna.put("a.md", "One.")
    with pytest.raises(RpcError):
        line.anna.sync()
    calm(line.anna.home, 10)
    count = len(line.relay.seen)
    for number in range(5):
        line.anna.put("a.md", f"Edit {number}.")
        line.anna.call("session", session_id=f"s{number}", event="start")
        calm(line.anna.home, 600, 6)
    line.anna.home.stop()
    line.anna.home.start(clock=True)
    line.anna.call("session", session_id="after", event="start")
    calm(line.anna.home, 600, 6)
    assert len(line.relay.seen) == count
    assert line.anna.status()["paused"]
    line.relay.heal()
    (line.anna.team / "kept.md").unlink()
    pass_until(line.anna.home, lambda: len(line.relay.seen) > count)


def test_after_403_of_a_push_pulls_go_on(line: Line) -> None:
    """Who may not write sends nothing more by itself, and still takes what others write."""
    line.relay.fail(403, "PUT", kind="role")
    line.anna.put("a.md", "One.")
    with pytest.raises(RpcError):
        line.anna.sync()
    count = len(line.relay.puts())
    line.bert.put(entry("b.md", memory("Of Bert.", name="b")))
    line.anna.put("a.md", "Two.")
    calm(line.anna.home, 60)
    line.anna.call("session", session_id="s1", event="start")
    pass_until(line.anna.home, lambda: "Of Bert." in line.anna.text("b.md"))
    assert len(line.relay.puts()) == count


def test_a_write_between_pull_and_push_is_no_loss(line: Line) -> None:
    """After 412 what differs is fetched and planned anew, under a new id."""
    line.anna.put("a.md", "One line.\n\nTwo lines.\n\nThree lines.")
    line.anna.sync()
    revision = line.bert.row("a.md")["revision"]
    done: list[int] = []

    def sneak(sent: Sent) -> None:
        if sent.method == "PUT" and not done:
            done.append(line.bert.change("a.md", revision, "One", "First"))

    line.relay.fault = sneak
    line.anna.put("a.md", "One line.\n\nTwo lines.\n\nThird lines.")
    line.anna.sync()
    content = line.bert.row("a.md")["content"]
    assert ("First line." in content, "Third lines." in content) == (True, True)
    assert line.anna.text("a.md") == content
    ids = [put.headers["idempotency-key"] for put in line.relay.puts()[1:]]
    assert len(ids) == len(set(ids)) == 2


def test_an_older_server_changes_nothing_before_it_is_accepted(line: Line) -> None:
    """A server that is behind takes nothing away; accepted, it is offered what it lost."""
    line.anna.put("a.md", "Old.")
    line.anna.sync()
    line.server.stop()
    copies = {path: path.read_bytes() for path in line.server.data.iterdir() if path.is_file()}
    line.server.start()
    line.anna.put("a.md", "New.")
    line.anna.put("later.md", "Later.")
    line.anna.sync()
    line.server.stop()
    for path in line.server.data.iterdir():
        path.unlink()
    for path, content in copies.items():
        path.write_bytes(content)
    line.server.start()
    assert line.anna.sync()["waits"]
    assert ("New." in line.anna.text("a.md"), "Later." in line.anna.text("later.md")) == (True,) * 2
    (item,) = line.anna.call("review.list", kind="team")["items"]
    assert (item["id"], item["choices"], item["person_only"]) == ("team", ["accept"], True)
    line.anna.call("review.decide", id="team", choice="accept")
    assert "New." in line.anna.text("a.md")
    assert "Later." in line.bert.row("later.md")["content"]


HOSTILE = [
    "../../pwn.md",
    "..%2fpwn.md",
    "/tmp/net-pwn.md",
    "link/pwn.md",
    "MEMORY.md",
    "a/../b.md",
]


@pytest.mark.parametrize("key", HOSTILE)
def test_no_key_of_a_server_leads_outside(line: Line, key: str) -> None:
    """A hostile server's key is left out; the other entries of its page come."""
    outside = line.anna.home.path / "outside"
    outside.mkdir()
    line.anna.team.mkdir(parents=True, exist_ok=True)
    (line.anna.team / "link").symlink_to(outside)
    line.bert.put(entry("good.md", memory("Good.", name="good")))

    def lie(sent: Sent) -> Fault | None:
        if sent.method != "GET" or "/entries" not in sent.path:
            return None
        page = line.bert.page().json
        words = entry(key, memory("pwn", name="pwn"))
        page["entries"].append({**page["entries"][0], **words, "size": len(words["content"])})
        return 200, {}, json.dumps(page).encode()

    line.relay.fault = lie
    with suppress(RpcError):  # a page may be refused as a whole
        line.anna.sync()
    found = [path for path in line.anna.home.path.rglob("*pwn*") if "state" not in str(path)]
    assert (found, list(outside.iterdir()), Path("/tmp/net-pwn.md").exists()) == ([], [], False)


@pytest.mark.parametrize("remove", [False, True])
def test_leaving_revokes_the_token(line: Line, remove: bool) -> None:  # noqa: FBT001 - a case
    """After ``team.leave`` nothing is sent; the files stay, or go as a change to undo."""
    line.anna.put("a.md", "One.")
    line.anna.sync()
    left = line.anna.call("team.leave", remove=remove)
    assert left["revoked"]
    assert (line.anna.text("a.md") != "") != remove
    tokens = {row["member"]: row["revoked"] for row in line.server.command("token", "list")}
    assert tokens["anna"]
    count = len(line.relay.seen)
    line.anna.put("b.md", "Two.")
    calm(line.anna.home, 60)
    assert len(line.relay.seen) == count
    if remove:
        line.anna.call("memory.undo", change=left["change"])
        assert "One." in line.anna.text("a.md")


def test_files_cost_no_descriptors(line: Line) -> None:
    """300 team memories leave the daemon's open files as many as they were."""
    line.anna.sync()
    assert line.anna.home.process is not None
    folder = Path(f"/proc/{line.anna.home.process.pid}/fd")
    before = len(list(folder.iterdir()))
    for number in range(300):
        line.anna.put(f"many/m{number}.md", f"Fact {number}.")
    line.anna.sync()
    assert len(list(folder.iterdir())) - before < 20
