"""G17: a state machine over the real store against a model, for Hypothesis.

Real files, a real state file, a fake clock. Every memory has two lines that change, far enough
apart that a three-way merge keeps both; so the model knows how an edit of an old version ends.
After each step: the files are the model's, no temporary name is left, and after each commit the
index has every memory exactly once.
"""

import errno
import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.crash.core import CONFLICT, REFUSED, Store
from tests.crash.kit import INDEX, Edit, is_temporary, listed, sha256, tree
from tests.support.clock import FakeClock
from tests.support.countdown import Countdown

NAMES = st.sampled_from(["a.md", "b.md", "c.md", "f/d.md", "f/g/e.md"])
SLOTS = st.integers(0, 1)
NOTHING = "nothing.md"  # a person's line points there, and memd never had it
_SHARED = "/dev/shm"  # where steps are cheap, for nothing waits for a medium
_FILLER = "\n\nlines\n\nthat\n\nnobody\n\nchanges\n\n"


class Killed(BaseException):
    """The process is dead from here on."""


class Deadly(Countdown):
    """Calls that fail or never return, as a test says."""

    def __init__(self) -> None:
        super().__init__()
        self.kill_at = 0
        self.faults = Countdown()

    def step(self, name: str) -> None:
        """Count one call, and die or fail when it is its turn."""
        if self.kill_at:
            self.kill_at -= 1
            if not self.kill_at:
                self.kill_at = -1  # dead: nothing works any more
        if self.kill_at < 0:
            raise Killed
        self.faults.step(name)


def body(name: str, slots: tuple[int, int]) -> bytes:
    """Return a memory whose two slots hold these numbers."""
    head = f"---\nname: n\ndescription: about {name}\nmetadata:\n  type: user\n---\n\n"
    return f"{head}first {slots[0]}{_FILLER}second {slots[1]}\n".encode()


class StoreMachine(RuleBasedStateMachine):
    """The store and its model: per path the two numbers, and what each file has ever held."""

    steps = 0

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        place = _SHARED if os.path.isdir(_SHARED) else None
        self.root = tempfile.mkdtemp(prefix="memd-machine-", dir=place)
        self._stack.callback(shutil.rmtree, self.root)
        self.directory = f"{self.root}/memory"
        self.clock = FakeClock()
        self.model: dict[str, tuple[int, int]] = {}
        self.known: dict[str, list[tuple[int, int]]] = {}
        self.undoable: tuple[str, dict[str, tuple[int, int]]] | None = None
        self.index_is_true = True
        self.strays = False
        self.counter = 0
        self._open()

    def teardown(self) -> None:
        """See that no replaced file is left, close and remove everything."""
        if not self.strays:
            self.clock.advance(1)
            self.core.sync()
            names = (name for _, _, files in os.walk(self.directory) for name in files)
            assert [name for name in names if is_temporary(name)] == []
        self.core.close()
        self._stack.close()

    @initialize()
    def first(self) -> None:
        """Begin with one memory that a person wrote by hand."""
        self.foreign_save("a.md", self._fresh())

    @rule(name=NAMES)
    def write(self, name: str) -> None:
        """Write a memory without saying what it was based on."""
        self._commit({name: self._fresh()})

    @rule(name=NAMES, slot=SLOTS, choice=st.integers(0, 5))
    def edit(self, name: str, slot: int, choice: int) -> None:
        """Change one slot of a version that is the live one or an older one."""
        versions = self.known.get(name, [])
        if not versions:
            return
        base = versions[-1 - choice % len(versions)]
        live = self.model.get(name)
        number = self._number()
        wanted = _with(base, slot, number)
        edit = Edit(name, body(name, wanted), base=sha256(body(name, base)))
        if live is not None and (live == base or live[slot] == base[slot]):
            self._run([edit], {name: _with(live, slot, number)})
            return
        try:
            self.core.commit([edit])
        except CONFLICT:
            self.index_is_true = self.index_is_true and self._index_holds()
        else:
            self._fail("an edit of what is not there was not refused")

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        """Delete a memory."""
        if name in self.model:
            self._commit({name: None})

    @rule()
    def dream(self) -> None:
        """Merge two memories into the first and delete the second, as one change."""
        names = sorted(self.model)
        if len(names) > 1:
            self._commit({names[0]: self._fresh(), names[1]: None})

    @rule(name=NAMES)
    def foreign(self, name: str) -> None:
        """Let a person save a memory with an editor that renames."""
        self.foreign_save(name, self._fresh())

    @rule(name=NAMES)
    def foreign_delete(self, name: str) -> None:
        """Let a person remove a memory."""
        if self.model.pop(name, None) is not None:
            os.unlink(f"{self.directory}/{name}")
            self._others_wrote()

    @rule()
    def foreign_index(self) -> None:
        """Let a person spoil the index."""
        os.makedirs(self.directory, exist_ok=True)
        with open(f"{self.directory}/{INDEX}", "a", encoding="utf-8") as file:
            file.write(f"- [Nothing]({NOTHING}) — not there\nA line of mine\n")
        self._others_wrote()

    @precondition(lambda self: self.undoable is not None)
    @rule()
    def undo(self) -> None:
        """Take the newest change back: everything is as before it."""
        change, before = self.undoable or ("", {})
        self.undoable = None
        assert self.core.undo(change) == ()
        self.model = before
        self.index_is_true = False  # it is what it was before the change, true or not

    @rule()
    def inspect(self) -> None:
        """Let the store look at what others did."""
        self.core.sync()

    @rule()
    def restart(self) -> None:
        """Stop in order and start again."""
        self.core.close()
        self._open()

    @rule(name=NAMES, calls=st.integers(1, 14))
    def kill(self, name: str, calls: int) -> None:
        """Die in the middle of a commit; afterwards it has happened, or it has not."""
        before, wanted = dict(self.model), self._fresh()
        self.calls.kill_at = calls
        try:
            self.core.commit([Edit(name, body(name, wanted))])
        except Killed:
            self.core.close()
            self._open()
            after = {**before, name: wanted}
            self.model = after if self._files() == _bodies(after) else before
            self._forget(name, wanted if self.model is after else None)
        else:
            self.calls.kill_at = 0
            self._happened({name: wanted})

    @rule(name=NAMES, calls=st.integers(1, 14), ever=st.booleans())
    def no_space(self, name: str, calls: int, ever: bool) -> None:  # noqa: FBT001 - Hypothesis calls it by name
        """Let the disk be full in the middle of a commit: nothing changed, and it works again."""
        wanted = self._fresh()
        self.calls.faults = Countdown(calls, errno.ENOSPC, ever=ever)
        try:
            self.core.commit([Edit(name, body(name, wanted))])
        except REFUSED:
            self.strays = True  # what could not be removed goes at the next start
            self.calls.faults = Countdown()
            self.clock.advance(2)
            if self.core.is_open():  # it is completed before the next one
                after = {**self.model, name: wanted}
                self.core.recover()
                if self._files() == _bodies(after):
                    self.model = after
                    self._forget(name, wanted)
            self.index_is_true = False
            self.undoable = None
            self.write(name)
        else:
            self.strays = self.strays or self.calls.faults.reached
            self.calls.faults = Countdown()
            self._happened({name: wanted})

    @invariant()
    def the_tree_is_the_models(self) -> None:
        """Compare the files with the model, and the index with the files."""
        StoreMachine.steps += 1
        assert self._files() == _bodies(self.model)
        if self.index_is_true:
            assert self._index_holds()

    def foreign_save(self, name: str, slots: tuple[int, int]) -> None:
        """Save a file as an editor does."""
        path = f"{self.directory}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        temp = f"{self.root}/editor"
        with open(temp, "wb") as file:
            file.write(body(name, slots))
        os.replace(temp, path)
        self.model[name] = slots
        self._others_wrote()

    def _commit(self, wanted: dict[str, tuple[int, int] | None]) -> None:
        self._run([Edit(name, body(name, s) if s else None) for name, s in wanted.items()], wanted)

    def _run(self, edits: list[Edit], wanted: dict[str, tuple[int, int] | None]) -> None:
        before = dict(self.model)
        change = self.core.commit(edits)
        self._happened(wanted)
        self.undoable = (change, before) if change else None

    def _happened(self, wanted: dict[str, tuple[int, int] | None]) -> None:
        for name, slots in wanted.items():
            self._forget(name, slots)
            if slots is None:
                self.model.pop(name, None)
            else:
                self.model[name] = slots
        self.index_is_true = True

    def _forget(self, name: str, slots: tuple[int, int] | None) -> None:
        """Note a version that went through memd; what was to be undone is not the newest now."""
        self.undoable = None
        if slots is not None:
            self.known.setdefault(name, []).append(slots)

    def _others_wrote(self) -> None:
        self.undoable = None
        self.index_is_true = False

    def _open(self) -> None:
        self.calls = Deadly()
        self.core = Store(Path(self.root), self.clock, self.calls)
        self.core.recover()
        self.index_is_true = self.strays = False

    def _files(self) -> dict[str, bytes]:
        files = tree(Path(self.directory))
        files.pop(INDEX, None)
        return {path: text for path, text in files.items() if not _is_temporary(path)}

    def _index_holds(self) -> bool:
        if not self.model and not os.path.exists(f"{self.directory}/{INDEX}"):
            return True
        with open(f"{self.directory}/{INDEX}", "rb") as file:
            paths = listed(file.read())
        return sorted(path for path in paths if path != NOTHING) == sorted(self.model)

    def _fresh(self) -> tuple[int, int]:
        return self._number(), self._number()

    def _number(self) -> int:
        self.counter += 1
        return self.counter

    def _fail(self, why: str) -> None:
        raise AssertionError(why)


def _is_temporary(path: str) -> bool:
    return is_temporary(os.path.basename(path))


def _with(slots: tuple[int, int], slot: int, number: int) -> tuple[int, int]:
    return (number, slots[1]) if slot == 0 else (slots[0], number)


def _bodies(model: dict[str, tuple[int, int]]) -> dict[str, bytes]:
    return {name: body(name, slots) for name, slots in model.items()}
