"""A state machine over two real daemons and a real server of a team, for Hypothesis.

Real sockets, files and state files, and a relay between each daemon and the server that loses,
halves, doubles and keeps messages. Each memory has two lines that change, far enough apart that a
three-way merge keeps both. After each step the proof looks at all files, journals and the server's
history; once nothing is on its way all must be equal.
"""

import re
from collections.abc import Collection
from contextlib import ExitStack, suppress
from typing import Any, ClassVar

from anyio.from_thread import start_blocking_portal
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from memd.base.errors import MemdError
from memd.base.text import sha256
from tests.team.proof import Held, Proof
from tests.team.relay import FAULTS
from tests.team.worlds import World, world

WHO = st.sampled_from(["anna", "bert"])
KEYS = st.sampled_from(["a.md", "sub/b.md"])
SLOTS = st.integers(0, 1)
NUMBERS = st.integers(0, 2)
_CLASHES = ["team.sync", "team.status", "remove", "delete", "unheard"]
_FILLER = "\n\nlines\n\nthat\n\nnobody\n\nchanges\n\n"
_SLOTS = re.compile(rb"first (\d+)\n.*second (\d+)\n", re.DOTALL)
_ROUNDS = 8
_HOUR = 3600.0


def body(key: str, slots: tuple[int, int]) -> bytes:
    """Return a memory whose two slots hold these numbers."""
    head = f"---\nname: n\ndescription: about {key}\nmetadata:\n  type: project\n---\n\n"
    return f"{head}first {slots[0]}{_FILLER}second {slots[1]}\n".encode()


class TeamMachine(RuleBasedStateMachine):
    """Two members, three keys, a server; ``steps`` counts over all runs."""

    steps = 0
    postgres: ClassVar[str] = ""  # the address of a cluster, for a server on it

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        portal = self._stack.enter_context(start_blocking_portal())
        self.world: World = self._stack.enter_context(world(portal, self.postgres))
        self.desks = self.world.desks
        self.proof = Proof()
        self.counter = 0
        self.unnoticed: dict[tuple[str, str], str] = {}
        self.backup = ""

    @initialize()
    def begin(self) -> None:
        """Join, and begin with a memory that both have."""
        self.world.join_all()
        self.write("anna", "a.md", 0)
        for who in ("anna", "bert"):
            self._ask(who, "team.sync")

    @rule(who=WHO, key=KEYS, slot=SLOTS)
    def write(self, who: str, key: str, slot: int) -> None:
        """Change a line of a memory through memd, or make it."""
        text = self._changed(who, key, slot)
        desk = self.desks[who]
        desk.write(key, text)
        self.proof.wrote(who, sha256(text))
        self.unnoticed.pop((who, key), None)

    @rule(who=WHO, key=KEYS, slot=SLOTS, noticed=st.booleans())
    def save(self, who: str, key: str, slot: int, noticed: bool) -> None:  # noqa: FBT001 - Hypothesis calls it by name
        """Change a line of a memory with an editor."""
        text = self._changed(who, key, slot)
        self._replaced_unseen(who, key)
        self.desks[who].save(key, text)
        self.proof.wrote(who, sha256(text))
        self.unnoticed[who, key] = sha256(text)
        if noticed:
            self._notice(who)

    @rule(who=WHO, key=KEYS)
    def delete(self, who: str, key: str) -> None:
        """Remove a file by hand, which is nobody's wish but this machine's."""
        if key in self.desks[who].hashes():
            self._replaced_unseen(who, key)
            self.proof.acted(who, key, "delete")
            (self.desks[who].team / key).unlink()
            self._notice(who)

    @rule(who=WHO)
    def sync(self, who: str) -> None:
        """Sync."""
        self._ask(who, "team.sync")

    @rule(who=WHO, seconds=st.sampled_from([3.0, 40.0, _HOUR]))
    def wait(self, who: str, seconds: float) -> None:
        """Let time go by, so that what waits for a while is done."""
        self.desks[who].clock.advance(seconds)
        self._ask(who, "team.status")

    @rule(who=WHO, number=NUMBERS)
    def remove(self, who: str, number: int) -> None:
        """Remove a memory for all."""
        if key := self._one(who, self.desks[who].hashes(), number):
            self.proof.acted(who, key, "remove")
            self._ask(who, "team.remove", path=f"team/{key}", reason="outdated")

    @rule(who=WHO, number=NUMBERS)
    def restore(self, who: str, number: int) -> None:
        """Bring a removed memory back."""
        gone = [each.key for each in self.proof.versions.values() if not each.hash]
        if key := self._one(who, gone, number):
            self.proof.acted(who, key, "restore")
            self._ask(who, "team.resolve", path=f"team/{key}", how="restore")

    @rule(who=WHO, number=NUMBERS, how=st.sampled_from(["ours", "theirs"]))
    def resolve(self, who: str, number: int, how: str) -> None:
        """Decide a conflict."""
        if key := self._one(who, self._said(who).conflicts, number):
            self.proof.acted(who, key, "resolve")
            self._ask(who, "team.resolve", path=f"team/{key}", how=how)

    @rule(who=WHO, number=NUMBERS, how=st.sampled_from(["ours", "theirs"]))
    def decide(self, who: str, number: int, how: str) -> None:
        """Send what is held, or give it up."""
        if key := self._one(who, self._said(who).held, number):
            self.proof.acted(who, key, "keep" if how == "ours" else "drop")
            self._ask(who, "team.resolve", path=f"team/{key}", how=how)

    @rule(who=WHO)
    def undo(self, who: str) -> None:
        """Take the newest change back."""
        changes = self.desks[who].call("memory.history", limit=1)["changes"]
        if changes:
            self.proof.acted(who, "", "undo")
            self._ask(who, "memory.undo", change=changes[0]["id"])

    @rule(who=WHO, key=KEYS, slots=st.tuples(SLOTS, SLOTS), how=st.sampled_from(_CLASHES))
    def clash(self, who: str, key: str, slots: tuple[int, int], how: str) -> None:
        """Let both do something with one memory before either hears of the other."""
        other = "bert" if who == "anna" else "anna"
        self._ask(who, "team.sync")
        self.write(other, key, slots[0])
        self.look()
        if how == "remove":
            self.proof.acted(who, key, how)
            self._ask(who, "team.remove", path=f"team/{key}", reason="outdated")
        elif how == "delete":
            self.delete(who, key)
        elif how == "unheard":
            self.desks[who].relay.plan.append(how)
            self.write(who, key, slots[0])
            self.look()
            self._ask(who, "team.sync")
            self.write(who, key, slots[1])
        else:
            self.write(who, key, slots[1])
        self.look()
        self._ask(who, "team.sync")
        self._ask(other, how if how == "team.status" else "team.sync")

    @rule(who=WHO, words=st.lists(st.sampled_from(FAULTS), min_size=1, max_size=3))
    def fault(self, who: str, words: list[str]) -> None:
        """Let something happen to the next messages."""
        self.desks[who].relay.plan.extend(words)

    @rule(who=WHO, how=st.sampled_from(["cut", "release", "replay"]), number=st.integers(0, 9))
    def line(self, who: str, how: str, number: int) -> None:
        """Cut the line or mend it; let what was kept, or an old request once more, arrive."""
        between = self.desks[who].relay
        if how == "cut":
            between.gone = not between.gone
        elif how == "release":
            between.release()
        else:
            writes = [sent for sent, _ in between.seen if sent.method in {"PUT", "DELETE"}]
            if writes:
                with suppress(OSError):
                    between.ask(writes[-1 - number % len(writes)])

    @rule(who=WHO, message=st.integers(0, 4), word=st.sampled_from(["lose", "mute", ""]))
    def die(self, who: str, message: int, word: str) -> None:
        """Let a daemon end in order, or die in the middle of a push at one of its messages."""
        desk = self.desks[who]
        plan = desk.relay.plan
        plan.clear()
        if word:
            plan.extend([*["pass"] * message, *[word] * 5])
            self._ask(who, "team.sync")
        desk.restart(crash=bool(word))
        plan.clear()

    @rule(how=st.sampled_from(["restart", "backup", "restore"]))
    def server(self, how: str) -> None:
        """Start the server again, take a backup, or put the last one in its place."""
        if how == "backup":
            self.backup = self.world.backup()
        elif how == "restore" and self.backup:
            self.world.restore(self.backup)
            self.proof.replaced(self.world.versions())
        else:
            self.world.restart()

    @rule()
    def settle(self) -> None:
        """Let everything arrive; then all are equal but for what is held."""
        for desk in self.desks.values():
            desk.relay.plan.clear()
            desk.relay.gone = False
            desk.relay.release()
        for _ in range(_ROUNDS):
            for who, desk in self.desks.items():
                desk.clock.advance(_HOUR)
                if desk.call("team.status")["waits"]:
                    self.proof.acted(who, "", "accept")
                    self._ask(who, "team.resolve", how="accept")
            done = [self._ask(who, "team.sync") for who in self.desks]
            self.look()
            # A sync in the background may have sent what another member has not heard of yet.
            marks = {desk.call("team.status")["mark"] for desk in self.desks.values()}
            if all(each and not any(each.values()) for each in done) and len(marks) == 1:
                break
        self.proof.rest({who: self._said(who) for who in self.desks})

    @invariant()
    def look(self) -> None:
        """Show the proof what there is."""
        TeamMachine.steps += 1
        self.world.tick()
        self.proof.history(self.world.versions())
        for who, desk in self.desks.items():
            stored = desk.stored() | set(self.unnoticed.values())
            self.proof.files(who, desk.hashes(), knows=desk.knows, stored=stored)
            conflicts = desk.call("team.status")["conflicts"]
            self.proof.conflicts(who, {row["key"]: row["member"] for row in conflicts})
        self.proof.step += 1

    def teardown(self) -> None:
        """See that all come to rest, and remove everything."""
        try:
            if self.proof.step:
                self.settle()
        finally:
            self._stack.close()

    def _ask(self, who: str, method: str, **params: Any) -> Any:
        try:
            return self.desks[who].call(method, **params)
        except MemdError as error:
            if error.kind not in _EXPECTED:
                raise
            return None

    def _one(self, who: str, keys: Collection[str], number: int) -> str:
        """Return one of some keys; where there is none sync, which makes some in the end."""
        if not keys:
            self._ask(who, "team.sync")
            return ""
        return sorted(keys)[number % len(keys)]

    def _changed(self, who: str, key: str, slot: int) -> bytes:
        self.counter += 1
        live = _SLOTS.search(self.desks[who].texts().get(key, b""))
        slots = [int(live[1]), int(live[2])] if live else [self.counter, 0]
        slots[slot] = self.counter
        return body(key, (slots[0], slots[1]))

    def _replaced_unseen(self, who: str, key: str) -> None:
        """Forget what an editor saved if nobody has seen it."""
        before = self.unnoticed.pop((who, key), None)
        if before is not None and before not in self.desks[who].stored():
            self.proof.unseen(who, before)

    def _notice(self, who: str) -> None:
        self.desks[who].call("memory.history", limit=1)
        for place in [place for place in self.unnoticed if place[0] == who]:
            del self.unnoticed[place]

    def _said(self, who: str) -> Held:
        status = self.desks[who].call("team.status")
        held, conflicts = (
            frozenset(row["key"] for row in status[what]) for what in ("held", "conflicts")
        )
        return Held(held, conflicts)


_EXPECTED = {
    "team_unreachable",
    "team_refused",
    "not_found",
    "conflict",
}
