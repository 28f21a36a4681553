"""A disk and a state file that fail, at every call: a typed error, before or after, and it goes on.

The calls that a core counts fail in this process (``make test`` takes a
part of the points, ``make crash`` all); real system calls fail in a process under strace.
"""

import errno
import os
import resource
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.crash import kill
from tests.crash.cases import Case, decision, make_case, restore, state
from tests.crash.conftest import FIGURE
from tests.crash.core import FAILED, Core, open_core
from tests.crash.kit import Edit, topic, tree, visible
from tests.crash.operation import OPERATIONS, REQUEST
from tests.support.countdown import Countdown

FULL = ("create", "write", "fsync", "sync_folder", "transaction")
OPENING = ("create", "sync_folder")


@dataclass(frozen=True)
class Fault:
    """What fails: one call, or from one on all of some names; ``portion`` bounds each write."""

    code: int
    ever: bool = False
    only: tuple[str, ...] = ()
    portion: int | None = None


FAULTS = {
    "EIO once": Fault(errno.EIO),
    "EIO for ever": Fault(errno.EIO, ever=True),
    "fsync fails for ever": Fault(errno.EIO, ever=True, only=("fsync", "sync_folder")),
    "ENOSPC": Fault(errno.ENOSPC, ever=True, only=FULL),
    "ENOSPC after a short write": Fault(errno.ENOSPC, ever=True, only=FULL, portion=700),
    "EDQUOT": Fault(errno.EDQUOT, ever=True, only=FULL),
    "EROFS": Fault(errno.EROFS, ever=True),
    "EMFILE": Fault(errno.EMFILE, ever=True, only=OPENING),
}
MOVING = ("EIO for ever", "EROFS")  # where nothing can be put right before the fault has ended
KINDS = ("write", "extraction", "dream", "undo", "delete", "import")


class Trial:
    """One operation on a core of which one call fails."""

    def __init__(self, case: Case, fault: Fault, number: int, core: Core) -> None:
        self.case = case
        self.countdown = Countdown(number, fault.code, ever=fault.ever, only=fault.only)
        self.core = core.through(self.countdown, fault.portion)

    def ask(self) -> bool:
        """Ask for the operation; say whether it was done."""
        try:
            OPERATIONS[self.case.name](self.core)
        except FAILED:
            return False
        return True

    def readable(self) -> bool:
        """Say whether memories and history can be read just now."""
        return all(self.core.read().values()) and bool(self.core.history())

    def wrong(self, *, moving: bool) -> str:
        """Run it, end the fault, and say what is not as promised."""
        self.core.pause = 1 / 3
        sides = (self.case.before[0], self.case.after[0])
        done, seen = list[bool](), list[object]()
        for _ in range(3):
            done.append(self.ask())
            seen.append(visible(self.core.path))
        checks = {"reads fail": not self.readable()}
        if not moving:
            checks["seen in between"] = any(each not in sides for each in seen)
        if any(done):
            checks["acknowledged and lost"] = visible(self.core.path) != sides[1]
        reached, self.countdown.fail_at = self.countdown.reached, 0
        self.core.pause = 1.0
        self.core.undo(self.core.commit([Edit("z.md", topic("z"))]))
        checks["neither before nor after"] = visible(self.core.path) not in sides
        checks["recovery finds something"] = self.core.recover()
        checks["something is left over"] = tree(self.core.path) not in sides
        OPERATIONS[self.case.name](self.core)
        checks["the retry did not end in after"] = (
            state(self.core, self.case.name) != self.case.after
        )
        self.countdown.fail_at = int(reached)
        return "; ".join(words for words, bad in checks.items() if bad)


def sweep(name: str, folder: Path, stride: int) -> tuple[int, list[tuple[str, int, str]]]:
    """Try every fault at every ``stride``-th call; return how many, and what went wrong."""
    case = make_case(name, folder)
    tried, bad = 0, []
    for offset, (words, fault) in enumerate(FAULTS.items()):
        number, reached = 1 + offset % stride, True
        while reached:
            restore(case.template, case.root)
            with open_core(case.root) as core:
                trial = Trial(case, fault, number, core)
                wrong = trial.wrong(moving=words in MOVING)
                reached = bool(trial.countdown.fail_at)
            tried += 1
            if wrong:
                bad.append((words, number, wrong))
            number += stride
    return tried, bad


@pytest.mark.parametrize("name", KINDS)
def test_any_call_may_fail(name: str, tmp_path: Path) -> None:
    """Of each kind of fault a part of the points: typed, whole, and a second later all works."""
    tried, bad = sweep(name, tmp_path, 25)
    assert bad == []
    assert tried > len(FAULTS)


@pytest.mark.crash
@pytest.mark.parametrize("name", KINDS)
def test_every_call_may_fail(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Every fault at every call: typed, whole, and a second later all works."""
    tried, bad = sweep(name, tmp_path, 1)
    record_property(FIGURE, f"G2 {name}: {tried} faults in the process, {len(bad)} bad")
    assert bad == []


@pytest.mark.crash
@pytest.mark.skipif(bool(kill.missing()), reason=kill.missing() or "strace works")
@pytest.mark.parametrize(("code", "stride"), [("EIO", 1), ("ENOSPC", 2)])
@pytest.mark.parametrize("name", KINDS)
def test_any_system_call_may_fail(
    name: str,
    code: str,
    stride: int,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    """The kernel refuses a call, once or from then on: typed, whole; after it, the retry works."""
    when = "+" if code == "ENOSPC" else ""
    case = make_case(name, tmp_path)
    restore(case.template, case.root)
    points = kill.points(case.root, name, "run", output=False)[::stride]
    bad = []
    for point in points:
        restore(case.template, case.root)
        inject = f"inject={point.call}:error={code}:when={point.number}{when}"
        done = kill.run(case.root, name, "faulty", "-o", os.devnull, "-e", inject)
        said = done.stdout.split("\n")[:-1]
        opened = len(said) == 2
        wrong = decision(case, acknowledged="acknowledged" in said or "next" in said)
        if done.returncode or not said or done.stderr:
            wrong = f"{wrong}; it died: {done.stderr[-300:]}"
        if opened and not when and said[1] != "next":
            wrong = f"{wrong}; the next write failed: {said}"
        if wrong:
            bad.append((point, wrong))
    figure = f"G2 {name}: {len(points)} system calls with {code}{when and ' for ever'}"
    record_property(FIGURE, f"{figure}, {len(bad)} bad")
    assert bad == []


def test_a_file_may_not_grow_further(tmp_path: Path) -> None:
    """A real short write and EFBIG after it: typed, nothing changed, and then it works."""
    body = topic("big", "the same words again\n" * 2900)  # small when packed, so the record passes
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with open_core(tmp_path) as core:
        core.commit([Edit("a.md", topic("a"))])
    with open_core(tmp_path) as core:  # with an empty log of the state file
        files = visible(core.path)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(body) - 1000, before[1]))
            with pytest.raises(FAILED, match="large"):
                core.commit([Edit("big.md", body)], REQUEST)
            assert visible(core.path) == files  # a later look removes the rest
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
            with pytest.raises(FAILED):
                core.commit([Edit("big.md", body)], REQUEST)
            assert visible(core.path) == files  # a later look removes the rest
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        core.pause = 2.0
        core.commit([Edit("big.md", body)], REQUEST)
        assert tree(core.path)["big.md"] == body
