"""A memd-team of a test's own, requests to it, and members' homes that join it."""

import gzip
import hashlib
import http.client
import json
import os
import signal
import socket
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from tests.net.kit import Home, Project
from tests.net.wire import BIN, SECONDS, Json

REMOTE = "github.com/acme/app"
LIMITS = {
    "entry_bytes": 65536,
    "put_bytes": 524288,
    "put_entries": 100,
    "max_entries": 5000,
    "max_bytes": 64 << 20,
}


class Answer(NamedTuple):
    """What the server answered."""

    status: int
    headers: dict[str, str]  # names in lower case
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> Any:
        return self.json["error"]


class UnixConnection(http.client.HTTPConnection):
    """A connection to a server on a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(SECONDS)
        self.sock.connect(self._path)


class TeamServer:
    """memd-team on a folder of data, with one repository."""

    def __init__(self, path: Path, database: str = "") -> None:
        self.path = path
        self.data = path / "data"
        self.log = path / "log"
        self.process: subprocess.Popen[str] | None = None
        self.port = 0
        place = {"MEMD_TEAM_DATABASE": database} if database else {"MEMD_TEAM_DATA": str(self.data)}
        self.environ = {"PATH": f"{BIN}:/usr/bin:/bin", "HOME": str(path), **place}
        self.repository: str = self.command("repo", "add", REMOTE)["id"]

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of memd-team on the data."""
        command = [f"{BIN}/memd-team", *arguments]
        given: dict[str, Any] = {"env": self.environ, "capture_output": True, "text": True}
        return subprocess.run(command, check=False, timeout=SECONDS, **given)

    def command(self, *arguments: str) -> Any:
        """Run a command that must succeed; return what it prints as JSON."""
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def start(self, *options: str) -> "TeamServer":
        """Serve, by default on a free port of loopback, and wait until it listens."""
        listen = options or ("--listen", f"127.0.0.1:{self.port}")
        command = [f"{BIN}/memd-team", "serve", *listen]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, env=self.environ, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.process.stdout is not None
        address = self.process.stdout.readline().strip()
        assert address, self.log.read_text()
        if not options:
            self.port = int(address.rpartition(":")[2])
        return self

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End the server by a signal; return its status."""
        served, self.process = self.process, None
        if served is None:
            return 0
        served.send_signal(number)
        try:
            return served.wait(SECONDS)
        finally:
            served.kill()
            assert served.stdout is not None
            served.stdout.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def entries(self) -> str:
        """The path of the repository's entries."""
        return f"/v1/repos/{self.repository}/entries"

    def code(self, member: str, role: str = "member", remote: str = REMOTE) -> str:
        """Return the code of an invitation."""
        invitation = self.command("invite", member, "--repo", remote, "--role", role)
        return str(invitation["code"])

    def device(self, member: str, role: str = "member", remote: str = REMOTE) -> "Device":
        """Return a new device of a member, which has joined."""
        given = {"code": self.code(member, role, remote), "device": "laptop"}
        answer = Device(self, "").ask("POST", "/v1/join", given)
        assert answer.status == 201, answer.body
        return Device(self, answer.json["token"])


class Device:
    """Whoever talks to the server by HTTP, with a token or an empty one."""

    def __init__(self, server: TeamServer, token: str, uds: str = "") -> None:
        self.server = server
        self.token = token
        self.uds = uds

    def ask(self, method: str, path: str, body: Json = None, **headers: str) -> Answer:
        """Send a request; ``_`` in the name of a header stands for ``-``.

        A body that is no bytes is sent as JSON, with an Idempotency-Key unless one is given.
        """
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            given["Authorization"] = f"Bearer {self.token}"
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        if data is not None:
            given = {"Content-Type": "application/json", **given}
        if method in {"PUT", "DELETE"}:
            given = {"Idempotency-Key": str(uuid.uuid4()), **given}
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=SECONDS)
        if self.uds:
            connection = UnixConnection(self.uds)
        try:
            connection.request(method, path, data, given)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            content = answer.read()
        finally:
            connection.close()
        if found.get("content-encoding") == "gzip":
            content = gzip.decompress(content)
        return Answer(answer.status, found, content)

    def put(self, *entries: Json, **headers: str) -> Answer:
        """Write entries."""
        return self.ask("PUT", self.server.entries, {"entries": list(entries)}, **headers)

    def page(self, query: str = "", **headers: str) -> Answer:
        """Read a page of entries."""
        return self.ask("GET", self.server.entries + query, **headers)

    def remove(self, key: str, revision: int, reason: str = "stale") -> Answer:
        """Remove an entry as it is at a revision."""
        epoch = self.page("?view=hashes&limit=1").json["epoch"]
        path = f"{self.server.entries}/{key}?reason={quote(reason)}"
        return self.ask("DELETE", path, If_Match=f'"{epoch}.{revision}"')

    def row(self, key: str) -> Json:
        """Return an entry of the server's, ``None`` without one."""
        return {each["key"]: each for each in self.page().json["entries"]}.get(key)

    def change(self, key: str, base: int | None, old: str, new: str) -> int:
        """Change words of an entry; return the new revision."""
        answer = self.put(entry(key, self.row(key)["content"].replace(old, new), base))
        assert answer.status == 200, answer.body
        return int(answer.json["revision"])

    def history(self, key: str) -> Any:
        """Return the versions of a key."""
        return self.ask("GET", f"/v1/repos/{self.server.repository}/history?key={key}").json[
            "versions"
        ]


def memory(words: str, kind: str = "project", name: str = "fact") -> str:
    """Return a memory file."""
    return f"---\nname: {name}\ndescription: about {name}\ntype: {kind}\n---\n\n{words}\n"


def entry(key: str, content: str = "", base: int | None = None, **members: Json) -> Json:
    """Return an entry of a PUT."""
    content = content or memory("The freeze begins on Thursday.")
    digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
    return {"key": key, "content": content, "hash": digest, "base": base, **members}


@contextmanager
def serving(path: Path) -> Iterator[TeamServer]:
    """Serve from a folder for the length of the block."""
    server = TeamServer(path)
    try:
        yield server.start()
    finally:
        server.stop()


class Member:
    """A person's home, one checkout of the team's repository, and the daemon."""

    def __init__(self, home: Home, remote: str = "git@github.com:Acme/App.git") -> None:
        self.home = home
        self.project: Project = home.project("app")
        self.team = self.project.memory / "team"
        self.origin(remote)

    def origin(self, remote: str) -> None:
        """Let origin name a repository."""
        text = f'[remote "origin"]\n\turl = {remote}\n' if remote else ""
        (self.project.path / ".git/config").write_text(text)

    def call(self, method: str, **params: Json) -> Any:
        return self.project.call(method, **params)

    def join(self, url: str, code: str) -> Any:
        return self.call("team.join", url=url, code=code)

    def put(self, key: str, words: str, kind: str = "project") -> None:
        """Write a team memory as another program does."""
        self.project.put(f"team/{key}", memory(words, kind, key.removesuffix(".md")))

    def text(self, key: str) -> str:
        """Return a team memory's file, "" without one."""
        path = self.team / key
        return path.read_text() if os.path.exists(path) else ""

    def keys(self) -> set[str]:
        """Return the keys of the team memories that are here."""
        found = (path for path in self.team.rglob("*.md") if path.name != "MEMORY.md")
        return {str(path.relative_to(self.team)) for path in found}

    def sync(self) -> Any:
        """Fetch what the others wrote and send what differs, now."""
        return self.call("team.sync")

    def status(self) -> Any:
        return self.call("team.status")

    def lists(self, part: str, key: str) -> bool:
        """Return whether a list of the status names a key."""
        return any(key in str(each) for each in self.status()[part])

    def share(self, other: Device, key: str, words: str) -> int:
        """Write and send a memory; return its revision as another reads it."""
        self.put(key, words)
        self.sync()
        return int(other.row(key)["revision"])
