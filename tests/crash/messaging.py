"""A daemon that dies, or is refused a system call, at every one of an operation on messages.

Usage: ``messaging.py <folder> <operation> <how> <stride>``; ``how`` is ``kill`` or the name of an
error, with which the kernel refuses a call and all later ones of that name; only every
``stride``-th point is tried. One process imports everything once and forks a child per daemon; it
stops once it is ready for the operation, ``strace`` takes hold of it and then kills or refuses the
k-th call of a name in each thread. Afterwards a daemon begins anew, and what there is is judged.
Prints ``{"points": …, "died": …, "bad": […]}``.
"""

import json
import os
import re
import signal
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
from anyio.from_thread import start_blocking_portal

from tests.crash.cases import restore
from tests.crash.kill import CHANGING, Point
from tests.crash.teaming import Say, ended, hold, in_child
from tests.messages.office import Office, home_in

_LINE = re.compile(r"^(\d+) +(\w+)\((.*)$")
OPERATIONS = ("register", "send", "broadcast", "receive", "ack", "expire")
REQUEST = {"request_id": "r1"}
_ROUNDS = 300


def begin(office: Office) -> dict[str, str]:
    """Register three agents; two messages wait for Bert and one, not for long, for Cleo."""
    for name in ("anna", "bert", "cleo"):
        office.register(name, session_id=f"session of {name}")
    sent = {body: office.send("anna", "bert", body)["id"] for body in ("1", "2")}
    sent["3"] = office.send("anna", "cleo", "3", ttl=60)["id"]
    return sent | {f"key of {name}": key for name, key in office.keys.items()}


def operate(office: Office, operation: str, before: dict[str, str]) -> Any:
    """Do an operation; return its answer."""
    if operation == "register":
        return office.register("anna", session_id="session of anna") and office.keys["anna"]
    if operation == "send":
        return office.send("anna", "bert", "new", **REQUEST)["id"]
    if operation == "broadcast":
        return office.send("anna", "*", "new", **REQUEST)["id"]
    if operation == "receive":
        return [row["id"] for row in office.receive("bert", limit=1)]
    if operation == "ack":
        office.receive("bert", limit=1)
        return office.ack("bert", before["1"])
    office.advance(61.0)
    states = (office.states(before["3"])["cleo"] for _ in range(_ROUNDS))
    return next((state for state in states if state == "expired"), "")


def judge(office: Office, operation: str, before: dict[str, str], answer: Any) -> str:
    """Return what is not as promised, "" for nothing. ``answer`` is ``None`` if there was none."""
    bad = {}
    if operation == "register":
        if answer is not None:
            office.keys["anna"] = answer
            bad["the new key is void"] = not works(office, "anna")
        else:
            office.register("anna", session_id="session of anna")
        listed = office.call("status", "agent.list", cwd=office.project)["agents"]
        bad["not three agents"] = sorted(r["agent"] for r in listed) != ["anna", "bert", "cleo"]
    if operation in {"send", "broadcast"}:
        to = "bert" if operation == "send" else "*"
        again = office.send("anna", to, "new", **REQUEST)["id"]
        bad["the request is a second message"] = answer is not None and again != answer
    if operation == "expire":
        office.advance(61.0 if answer is None else 0.0)
        bad["it is not told to be expired"] = not office.reaches(before["3"], "expired")
    rows = {name: read(office, name) for name in ("bert", "cleo", "anna")}
    new = ["new"] * (operation in {"send", "broadcast"})
    reads = [["1", "2", *new]]
    if operation == "ack":
        reads = [["2"]] if answer is not None else [["2"], ["1", "2"]]
    theirs = [] if operation == "expire" else ["3"]
    bad[f"bert read {rows['bert']}"] = rows["bert"] not in reads
    wanted = [*theirs, *(["new"] if operation == "broadcast" else [])]
    bad[f"cleo read {rows['cleo']}"] = rows["cleo"] != wanted
    told = [f"notice of {before['3']}"] * (operation == "expire")
    bad[f"anna read {rows['anna']}"] = rows["anna"] != told
    return "; ".join(words for words, wrong in bad.items() if wrong)


def works(office: Office, name: str) -> bool:
    """Say whether an agent's key is good."""
    with suppress(MemdError):
        office.receive(name, limit=1)
        office.hang_up(name)
        return True
    return False


def read(office: Office, name: str) -> list[str]:
    """Read and acknowledge all that an agent has; return its bodies, notices by their message."""
    results = []
    for _ in range(_ROUNDS):
        rows = office.receive(name)
        if not rows:
            break
        for row in rows:
            notice = row["kind"] == "notice"
            results.append(f"notice of {row['reply_to']}" if notice else row["body"])
        office.ack(name, *[row["id"] for row in rows])
    return results


@dataclass
class Sweep:
    """The folder of all trials, and what came of them."""

    folder: Path
    operation: str
    died: int = 0
    points: list[Point] = field(default_factory=list)
    bad: list[Any] = field(default_factory=list)
    before: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root, self.template = self.folder / "r", self.folder / "template"
        self.root.mkdir()
        (self.before,) = ended(*in_child(self.prepare))
        for left in self.root.rglob("*.sock"):
            left.unlink()  # no copy can be made of it
        restore(self.root, self.template)

    @contextmanager
    def office(self) -> Iterator[Office]:
        """Begin with the daemon; who is registered has the keys from before."""
        with start_blocking_portal() as portal:
            portal.call(_one_thread)
            made = Office(home_in(str(self.root)), portal)
            names = ("anna", "bert", "cleo")
            made.keys = {n: self.before[f"key of {n}"] for n in names if self.before}
            made.start()
            yield made
            made.stop()

    def prepare(self, say: Say) -> None:
        """Make what all operations start from."""
        with self.office() as office:
            say(begin(office))

    def operate(self, say: Say, *, stop: bool) -> None:
        """Do the operation, and say what was answered."""
        with self.office() as office:
            for name in ("anna", "bert", "cleo", "status"):
                office.call(name, "agent.list", cwd=office.project)
            if stop:
                os.kill(os.getpid(), signal.SIGSTOP)
            say({"answer": operate(office, self.operation, self.before)})

    def run(self, *strace: str) -> list[Any]:
        """Do the operation in a daemon that is held by strace; return what was said."""
        child, reader = in_child(lambda say: self.operate(say, stop=True))
        tracer = hold(child, strace)
        said = ended(child, reader)
        tracer.communicate(timeout=60)
        return said

    def every(self) -> list[Point]:
        """Return each call that changes something, by its name and number in its thread."""
        restore(self.template, self.root)
        log = self.folder / "trace"
        said = self.run("-e", f"trace={','.join(CHANGING)}", "-o", str(log))
        assert isinstance(said[0], dict), said
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
        """Let the daemon die at the points, and judge each time."""
        fault = "signal=SIGKILL" if how == "kill" else f"error={how}"
        ever = "" if how == "kill" else "+"
        for point in self.every()[::stride]:
            restore(self.template, self.root)
            inject = f"inject={point.call}:{fault}:when={point.number}{ever}"
            said = self.run("-e", f"trace={point.call}", "-e", inject, "-o", os.devnull)
            answers = [each["answer"] for each in said if isinstance(each, dict)]
            self.died += not answers
            self.points.append(point)
            judged = self.judged(answers[0] if answers else None)
            wrong = ended(*in_child(judged))
            if wrong != [""]:
                self.bad.append([point, wrong])

    def judged(self, answer: Any) -> Callable[[Say], None]:
        """Return what begins anew and judges what there is after an answer."""

        def look(say: Say) -> None:
            with self.office() as office:
                say(judge(office, self.operation, self.before, answer))

        return look


async def _one_thread() -> None:
    """Do all that blocks in one thread, so that a count says whose call it is."""
    anyio.to_thread.current_default_thread_limiter().total_tokens = 1


def main() -> None:
    """Do what the arguments say."""
    folder, operation, how, stride = sys.argv[1:]
    anyio.run(anyio.sleep, 0)  # imported before the forks
    sweep = Sweep(Path(folder), operation)
    sweep.tries(how, int(stride))
    answer = {"points": len(sweep.points), "died": sweep.died, "bad": sweep.bad}
    print(json.dumps(answer, default=str))  # noqa: T201 - its answer


if __name__ == "__main__":
    main()
