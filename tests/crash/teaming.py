"""A member's daemon and the team's server that die, or are refused a system call, at every one.

Usage: ``teaming.py <folder> <who> <operation> <how> <stride>``. ``who`` is ``memd`` or
``memd-team``; the operation is ``pull``, ``push``, ``remove`` or ``restore``; ``how`` is ``kill``
or the name of an error, with which the kernel refuses a call and all later ones of that name; only
every ``stride``-th point is tried. One process imports everything once and forks a child per
server and daemon; no thread is there when it forks. Who is to die stops once it is ready for the
operation, ``strace`` takes hold of it and then kills or refuses the k-th call of a name in each
thread. Afterwards both begin again, and what there is is judged.
Prints ``{"points": …, "died": …, "bad": […]}``.
"""

import io
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memd.base.errors import MemdError

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from memd.base.places import find
from memd.base.text import sha256
from memd.server.app import application
from memd.server.log import ServingLog
from memd.server.serving import configured
from memd.server.storage import open_storage
from memd.server.values import Role
from tests.crash.cases import restore as put_back
from tests.crash.kill import CHANGING, Point
from tests.server.servers import REMOTE
from tests.support.daemon import Home, home_environ
from tests.team.desks import Desk
from tests.team.machine import body
from tests.team.relay import Relay
from tests.team.worlds import NAMES, ServerClock

_LINE = re.compile(r"^(\d+) +(\w+)\((.*)$")
Say = Callable[[Any], None]
_HOUR = 3600.0
_LOOK_SECONDS = 0.05
_ROUNDS = 6
OPERATIONS: dict[str, tuple[str, dict[str, str]]] = {
    "pull": ("team.sync", {}),
    "push": ("team.sync", {}),
    "remove": ("team.remove", {"path": "team/b.md", "reason": "outdated"}),
    "restore": ("team.resolve", {"path": "team/e.md", "how": "restore"}),
}


def begin(desks: dict[str, Desk], operation: str) -> None:
    """Make what an operation of Anna's starts from; Bert has seen all that she has."""
    anna, bert = desks.values()
    for key in ("a.md", "b.md", "d.md", "e.md"):
        anna.write(key, body(key, (1, 1)))
    anna.call("team.sync")
    anna.call("team.remove", path="team/e.md", reason="outdated")
    bert.call("team.sync")
    if operation == "pull":
        bert.write("a.md", body("a.md", (1, 2)))
        bert.write("c.md", body("c.md", (1, 1)))
        bert.call("team.sync")
        bert.call("team.remove", path="team/d.md", reason="outdated")
    if operation in {"pull", "push"}:
        anna.write("a.md", body("a.md", (2, 1)))
        anna.write("f.md", body("f.md", (1, 1)))


def expected(operation: str, *, done: bool) -> dict[str, bytes]:
    """Return what both have at the end."""
    slots = {"a.md": (1, 1), "b.md": (1, 1), "d.md": (1, 1)}
    if operation in {"pull", "push"}:
        slots |= {"a.md": (2, 1), "f.md": (1, 1)}
    if operation == "pull":
        slots |= {"a.md": (2, 2), "c.md": (1, 1)}
        del slots["d.md"]
    if operation == "remove" and done:
        del slots["b.md"]
    if operation == "restore" and done:
        slots["e.md"] = (1, 1)
    return {key: body(key, pair) for key, pair in slots.items()}


def judge(desks: dict[str, Desk], database: str, operation: str, *, said: bool) -> str:
    """Let both sync until they rest; return what is not as promised, "" for nothing."""
    for _ in range(_ROUNDS):
        for desk in desks.values():
            desk.clock.advance(_HOUR)
            with suppress(MemdError):
                desk.call("team.sync")
    anna, bert = desks.values()
    sides = [expected(operation, done=done) for done in (False, True)]
    status = {who: desk.call("team.status") for who, desk in desks.items()}
    checks = {
        f"anna has {sorted(anna.texts())}": anna.texts() not in sides,
        f"bert has {sorted(bert.texts())}": bert.texts() != anna.texts(),
        "acknowledged and lost": said and anna.texts() != sides[1],
        "a text left the journal": not set(map(sha256, sides[0].values()))
        <= anna.stored() | bert.stored() | set(anna.hashes().values()),
    }
    for who, each in status.items():
        checks[f"{who} is not equal: {each}"] = each["state"] != "equal"
        checks[f"{who} has to decide: {each}"] = bool(each["held"] or each["conflicts"])
    checks.update(_history(database, operation))
    return "; ".join(words for words, wrong in checks.items() if wrong)


def _history(database: str, operation: str) -> dict[str, bool]:
    """Return what is wrong with the server's history: one request has one effect."""
    storage = open_storage(database)
    (repository,) = storage.all_repositories()
    checks = {}
    for key in ("a.md", "b.md", "c.md", "d.md", "e.md", "f.md"):
        hashes = [each.hash for each in storage.history(repository.id, key, maintainer=True)]
        again = Counter(hashes)
        if (operation, key) == ("restore", "e.md"):
            again[sha256(body(key, (1, 1)))] -= 1
        checks[f"{key} was written twice: {hashes}"] = max(again.values(), default=0) > 1
    storage.close()
    return checks


def in_child(work: Callable[[Say], None]) -> tuple[int, int]:
    """Fork a child that works; return its id and the pipe on which it says what came of it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)

        def say(answer: Any) -> None:
            os.writev(writer, [f"{json.dumps(answer)}\n".encode()])  # no call that is refused

        try:
            work(say)
        except MemdError as error:
            say(f"failed: {error}")
        os._exit(0)
    os.close(writer)
    return child, reader


def ended(child: int, reader: int) -> list[Any]:
    """Wait for a child and return what it said."""
    with open(reader, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return [json.loads(line) for line in said.splitlines()]


def hold(child: int, strace: tuple[str, ...]) -> "subprocess.Popen[bytes]":
    """Take hold of a child once it stopped, and let it go on."""
    os.waitpid(child, os.WUNTRACED)
    command = ["strace", "-f", "-p", str(child), *strace]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert tracer.stderr is not None
    assert b"attached" in tracer.stderr.readline()
    os.kill(child, signal.SIGCONT)
    return tracer


@dataclass
class Sweep:
    """The folder of all trials, and what came of them."""

    folder: Path
    who: str
    operation: str
    died: int = 0
    points: list[Point] = field(default_factory=list)
    bad: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.root, self.template = self.folder / "r", self.folder / "template"
        self.database = f"{self.root}/data/team.db"
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.root.mkdir()
        with self.server():
            assert ended(*in_child(self.prepare)) == ["prepared"]
        for left in self.root.rglob("*.sock"):
            left.unlink()  # no copy can be made of it
        put_back(self.root, self.template)

    def home(self, name: str) -> Home:
        """Return the home of a member below the root."""
        path = f"{self.root}/{name}"
        os.makedirs(f"{path}/run", mode=0o700, exist_ok=True)
        environ = home_environ(path)
        return Home(path, environ, find(environ, path))

    @contextmanager
    def desks(self, *names: str) -> Iterator[dict[str, Desk]]:
        """Begin with the daemons of some members."""
        with start_blocking_portal() as portal:
            portal.call(_one_thread)
            made = {name: self.desk(name, portal) for name in names}
            for desk in made.values():
                desk.start()
            yield made
            for desk in made.values():
                desk.stop()

    def desk(self, name: str, portal: BlockingPortal) -> Desk:
        """Return a member's desk, whose daemon reaches the server without a relay."""
        return Desk(name, self.home(name), Relay("", url=self.url), portal)

    def prepare(self, say: Say) -> None:
        """Let both join, and make what the operation starts from."""
        storage = open_storage(self.database)
        now = ServerClock()()
        repository = storage.add_repository(REMOTE).id
        with self.desks(*NAMES) as desks:
            for name, desk in desks.items():
                code = storage.invite(name, {repository: Role.MAINTAINER}, now=now)
                desk.call("team.join", url=self.url, code=code)
            begin(desks, self.operation)
        storage.close()
        say("prepared")

    def serve(self, *, stop: bool) -> None:
        """Serve until SIGTERM."""
        log = ServingLog(io.StringIO())
        served = application(open_storage(self.database), ServerClock(), log)
        if stop:
            os.kill(os.getpid(), signal.SIGSTOP)
        with suppress(KeyboardInterrupt, SystemExit):
            configured(served).run(sockets=[self.listener.dup()])

    @contextmanager
    def server(self, *strace: str) -> Iterator[Callable[[], None]]:
        """Serve for the length of the block, held by strace if wanted.

        Yields what serves again, unheld, where the server has died: its socket is still open.
        """
        child, reader = in_child(lambda _: self.serve(stop=bool(strace)))
        tracer = hold(child, strace) if strace else None

        def revive() -> None:
            nonlocal child
            if os.waitpid(child, os.WNOHANG)[0]:
                child, _ = in_child(lambda _: self.serve(stop=False))

        try:
            yield revive
        finally:
            revive()
            os.kill(child, signal.SIGTERM)
            os.waitpid(child, 0)
            os.close(reader)
            if tracer is not None:
                tracer.communicate(timeout=60)

    def operate(self, say: Say, *, stop: bool) -> None:
        """Do the operation at Anna's."""
        method, params = OPERATIONS[self.operation]
        with self.desks("anna") as desks:
            if stop:
                os.kill(os.getpid(), signal.SIGSTOP)
            desks["anna"].call(method, **params)
            say("acknowledged")

    def run(self, *strace: str) -> bool:
        """Do the operation while who is to die is held; return whether it was acknowledged."""
        client = strace if self.who == "memd" else ()
        with self.server(*(() if client else strace)) as revive:
            child, reader = in_child(lambda say: self.operate(say, stop=bool(client)))
            tracer = hold(child, client) if client else None
            while not select.select([reader], [], [], _LOOK_SECONDS)[0]:
                revive()
            said = ended(child, reader)
            if tracer is not None:
                tracer.communicate(timeout=60)
        return "acknowledged" in said

    def every(self) -> list[Point]:
        """Return each call that changes something, by its name and number in its thread."""
        put_back(self.template, self.root)
        log = self.folder / "trace"
        assert self.run("-e", f"trace={','.join(CHANGING)}", "-o", str(log))
        seen: dict[str, Counter[str]] = {}
        results: dict[Point, None] = {}
        for line in log.read_text(errors="replace").splitlines():
            match = _LINE.match(line)
            if match is not None:
                thread = seen.setdefault(match[1], Counter())
                thread[match[2]] += 1
                if match[2] != "openat" or "O_CREAT" in match[3]:
                    results[Point(match[2], thread[match[2]])] = None
        log.unlink()
        return list(results)

    def tries(self, how: str, stride: int) -> None:
        """Let who is to die die at the points, and judge each time."""
        fault = "signal=SIGKILL" if how == "kill" else f"error={how}"
        ever = "" if how == "kill" else "+"
        for point in self.every()[::stride]:
            put_back(self.template, self.root)
            inject = f"inject={point.call}:{fault}:when={point.number}{ever}"
            said = self.run("-e", f"trace={point.call}", "-e", inject, "-o", os.devnull)
            self.died += not said
            self.points.append(point)
            with self.server():
                wrong = ended(*in_child(lambda say: self.look(say, said=said)))  # noqa: B023 - it runs now
            if wrong != [""]:
                self.bad.append([point, wrong])

    def look(self, say: Say, *, said: bool) -> None:
        """Judge what there is."""
        with self.desks(*NAMES) as desks:
            say(judge(desks, self.database, self.operation, said=said))


async def _one_thread() -> None:
    """Do all that blocks in one thread, so that a count says whose call it is."""
    anyio.to_thread.current_default_thread_limiter().total_tokens = 1


def main() -> None:
    """Do what the arguments say."""
    folder, who, operation, how, stride = sys.argv[1:]
    anyio.run(anyio.sleep, 0)  # imported before the forks
    sweep = Sweep(Path(folder), who, operation)
    sweep.tries(how, int(stride))
    answer = {"points": len(sweep.points), "died": sweep.died, "bad": sweep.bad}
    print(json.dumps(answer, default=str))  # noqa: T201 - its answer


if __name__ == "__main__":
    main()
