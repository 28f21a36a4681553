"""What a test at the doors needs: a person's home, the programs in it, and clients of the socket.

Nothing of memd is imported. ``MEMD_BIN`` names the folder with memd, memctl and memd-team; without
it that of the running Python is used.
"""

import json
import os
import select
import shlex
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.net.wire import BIN, SECONDS, Client, Json, Mcp, RpcError, connect

PYTHON = f"{BIN}/python"


def differs(chapter: str, reason: str) -> pytest.MarkDecorator:
    """Mark what the specification asks for in a chapter and memd does not do yet.

    The mark is strict: once the test passes, the run fails until the mark is removed.
    """
    expected = (AssertionError, RpcError, pytest.fail.Exception)
    return pytest.mark.xfail(strict=True, raises=expected, reason=f"chapter {chapter}: {reason}")


def until(condition: Callable[[], Any], what: str = "it is true") -> Any:
    """Return the first true value of a condition, looked at every 10 ms; fail after a minute."""
    end = time.monotonic() + SECONDS
    while not (value := condition()):
        assert time.monotonic() < end, f"in vain until {what}"
        select.select([], [], [], 0.01)
    return value


class Home:
    """The home of one person on one machine, with at most one daemon."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.socket = f"{path}/r/memd/memd.sock"
        self.state = path / "h/.local/state/memd"
        self.claude = path / "h/.claude"  # Claude Code's folder, where memories are kept
        places = {"HOME": f"{path}/h", "XDG_RUNTIME_DIR": f"{path}/r", "TMPDIR": f"{path}/t"}
        self.environ = {**places, "PATH": f"{BIN}:/usr/bin:/bin", "LANG": "C.UTF-8"}
        for name in ("h", "r", "t"):
            (path / name).mkdir(mode=0o700)
        self.process: subprocess.Popen[bytes] | None = None
        self.log = path / "log"  # what the daemon printed
        self._clock = path / "clock"
        self._clients: list[Client] = []

    def project(self, name: str = "") -> "Project":
        """Make a project (a folder with a .git) of a new name or of this one."""
        return Project(self, self.path / "h/w" / (name or f"p{uuid.uuid4().hex[:8]}"))

    def configure(self, text: str) -> None:
        """Write the person's settings, memd.toml; settings are read at each use."""
        path = self.path / "h/.config/memd/memd.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o600)

    def start(self, *, clock: bool = False, environ: Mapping[str, str] | None = None) -> "Home":
        """Start a daemon and wait until it answers; with ``clock`` ``pass_time`` works."""
        options = ["--test-clock", str(self._clock)] if clock else []
        command = [f"{BIN}/memd", "serve", *options]
        given = {**self.environ, **(environ or {})}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, env=given, cwd=self.path, stderr=log)
        until(self.answers, "memd answers")
        return self

    def answers(self) -> bool:
        """Return whether a daemon answers here."""
        with suppress(OSError), self.connect():
            return True
        assert self.process is None or self.process.poll() is None, self.log.read_text()
        return False

    def pass_time(self, *, days: float = 0, hours: float = 0, seconds: float = 0) -> None:
        """Let the daemon's clock go forward; for one that was started with ``clock``."""
        before = float(self._clock.read_text()) if self._clock.exists() else 0.0
        new = self._clock.with_suffix(".new")
        new.write_text(f"{before + days * 86400 + hours * 3600 + seconds}")
        new.rename(self._clock)

    def connect(
        self, framing: str = "line", *, name: str = "net", environ: Mapping[str, str] | None = None
    ) -> Client:
        """Return a client that has said hello with these variables of its environment."""
        client = Client(connect(self.socket), framing)
        self._clients.append(client)
        client.call("hello", client=name, environment=dict(environ or {}))
        return client

    def call(self, method: str, **params: Json) -> Any:
        """Return the result of one call on a connection of its own."""
        with self.connect() as client:
            return client.call(method, **params)

    def run(self, *command: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        """Run a program of this home; ``environ`` adds variables, ``input`` is its input."""
        environ = {**self.environ, **options.pop("environ", {})}
        given = {"cwd": self.path, "capture_output": True, "text": True, "timeout": SECONDS}
        if "input" not in options:
            given["stdin"] = subprocess.DEVNULL
        return subprocess.run(command, env=environ, check=False, **{**given, **options})

    def memctl(self, *arguments: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        """Run memctl; its output, error output and status are in the result."""
        return self.run(f"{BIN}/memctl", *arguments, **options)

    def hook(self, event: str, payload: Json, client: str = "claude-code", **options: Any) -> str:
        """Run a client's hook as ``memctl hook`` does; return what it prints."""
        options.setdefault("environ", {}).setdefault("MEMD_HOOK_DEADLINE_MS", "10000")
        done = self.memctl("hook", client, event, input=json.dumps(payload), **options)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    def close_clients(self) -> None:
        while self._clients:
            self._clients.pop().close()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End the daemon by a signal, as with SIGKILL a power cut would; return its status."""
        self.close_clients()
        daemon, self.process = self.process, None
        if daemon is None:
            return 0
        daemon.send_signal(number)
        return daemon.wait(90)

    def end_launched(self) -> None:
        """End a daemon that a client of this home has started, if one runs."""
        with suppress(OSError), self.connect() as client:
            process = client.call("hello")["pid"]
            os.kill(process, signal.SIGTERM)
            until(lambda: not os.path.exists(f"/proc/{process}"), "the launched daemon has ended")


class Project:
    """A project of a person: a checkout, its memory directory, its conversations."""

    def __init__(self, home: Home, path: Path) -> None:
        self.home = home
        self.path = path
        (path / ".git").mkdir(parents=True, exist_ok=True)
        (path / ".git/HEAD").write_text("ref: refs/heads/main\n")
        self.cwd = str(path)
        slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in self.cwd)
        self.folder = home.claude / "projects" / slug  # transcripts lie here
        self.memory = self.folder / "memory"

    def call(self, method: str, **params: Json) -> Any:
        """Return the result of a method about this project."""
        return self.home.call(method, cwd=self.cwd, **params)

    def memctl(self, *arguments: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        return self.home.memctl(*arguments, cwd=self.cwd, **options)

    def json(self, *arguments: str, **options: Any) -> Any:
        """Run memctl with ``--json`` and return its result; it must succeed."""
        done = self.memctl("--json", *arguments, **options)
        assert done.returncode == 0, f"{shlex.join(arguments)}: {done.stderr}"
        return json.loads(done.stdout)

    def write(self, path: str, body: str, **members: Json) -> Any:
        """Write a memory through the socket; name and description follow from the path."""
        name = path.removesuffix(".md").replace("/", "-")
        given = {"name": name, "description": f"about {name}", "type": "project", **members}
        return self.call("memory.write", path=path, body=body, **given)

    def put(self, path: str, text: str | bytes, *, days_old: float = 0) -> Path:
        """Write a file of the memory directory as another program does."""
        file = self.memory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        if days_old:
            then = time.time() - days_old * 86400
            os.utime(file, (then, then))
        return file

    def read(self, path: str = "MEMORY.md") -> str:
        """Return a file of the memory directory, by default the index."""
        return (self.memory / path).read_text()

    def tree(self) -> dict[str, str]:
        """Return what each visible file of the memory directory holds."""
        return {
            str(path.relative_to(self.memory)): path.read_text(errors="surrogateescape")
            for path in sorted(self.memory.rglob("*"))
            if path.is_file() and not path.name.startswith(".")
        }

    def mcp(self, environ: Mapping[str, str] | None = None) -> Mcp:
        """Run ``memctl mcp`` in this project; close it at the end."""
        return Mcp({**self.home.environ, **(environ or {})}, self.cwd)

    def conversation(self, session: str = "") -> "Conversation":
        return Conversation(self, session or str(uuid.uuid4()))


class Conversation:
    """A transcript as Claude Code records it."""

    def __init__(self, project: Project, session: str) -> None:
        self.project = project
        self.session = session
        self.path = project.folder / f"{session}.jsonl"
        project.folder.mkdir(parents=True, exist_ok=True)
        self._last: str | None = None
        place = {"cwd": project.cwd, "transcript_path": str(self.path)}
        self.payload = {"session_id": session, **place}

    def user(self, content: Json, **members: Json) -> "Conversation":
        """Add what the person said, or blocks such as results of tools."""
        return self._add("user", {"content": content}, members)

    def assistant(self, content: Json, **members: Json) -> "Conversation":
        """Add a reply of the assistant: a text, or blocks."""
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        usage = {"input_tokens": 10, "output_tokens": 10}
        reply = {"id": f"msg_{uuid.uuid4().hex[:12]}", "model": "claude-sonnet-5-5"}
        message = {**reply, "content": blocks, "stop_reason": "end_turn", "usage": usage}
        return self._add("assistant", message, members)

    def _add(self, kind: str, message: Json, members: Mapping[str, Json]) -> "Conversation":
        line: dict[str, Json] = {
            "type": kind,
            "uuid": str(uuid.uuid4()),
            "parentUuid": self._last,
            "message": {"role": kind, **message},
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()),
            "cwd": self.project.cwd,
            "sessionId": self.session,
            **members,
        }
        self._last = line["uuid"]
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        return self


def as_nobody(*command: str, **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run a program as another user of this machine, where root runs the tests."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    options |= {"user": 65534, "group": 65534, "extra_groups": [], "capture_output": True}
    return subprocess.run(command, text=True, timeout=SECONDS, check=False, **options)
