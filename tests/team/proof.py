"""What must hold of team memory whatever happened, by what was done and what can be seen.

The proof is told what people did, and is shown each member's files and the server's history after
each step. It knows nothing of how a sync works. Texts are told apart by their hashes, so every text
that somebody writes has to be another one.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

Files = Mapping[str, str]  # the hash of each file by its key


class BrokenPromiseError(AssertionError):
    """Something happened that must not."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version as the server's history has it; a tombstone's hash is ""."""

    key: str
    revision: int
    hash: str
    member: str


@dataclass(frozen=True, slots=True)
class Held:
    """What a member's daemon says of its files: those not sent, and those in conflict."""

    held: frozenset[str] = frozenset()
    conflicts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Act:
    """What a person did with a key when the server was at a revision, in which step."""

    member: str
    key: str
    kind: str
    revision: int
    step: int


# Acts that may bring an older text to the server again.
_DECIDING = frozenset({"keep", "restore", "resolve", "undo", "accept", "replace"})
# Acts that take a file away here.
_TAKING = frozenset({"delete", "drop", "remove", "resolve", "undo"})


@dataclass
class Proof:
    """All that was done and seen so far."""

    step: int = 0
    acts: list[Act] = field(default_factory=list)
    live: dict[str, dict[str, str]] = field(default_factory=dict)
    written: dict[str, set[str]] = field(default_factory=dict)
    versions: dict[tuple[str, int], Version] = field(default_factory=dict)
    ever: set[tuple[str, str]] = field(default_factory=set)
    revision: int = 0
    _births: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def wrote(self, member: str, hash_: str) -> None:
        """Note a text that somebody saved at a member's."""
        self.written.setdefault(member, set()).add(hash_)

    def unseen(self, member: str, hash_: str) -> None:
        """Forget a text that was replaced by its own writer before anybody could look at it."""
        self.written.get(member, set()).discard(hash_)

    def acted(self, member: str, key: str, kind: str) -> None:
        """Note what a person did; "" is every key."""
        self.acts.append(Act(member, key, kind, self.revision, self.step))

    def replaced(self, versions: Iterable[Version]) -> None:
        """Note that the server was replaced by a backup: its history is another one."""
        self.versions = {(each.key, each.revision): each for each in versions}
        self.revision = max((revision for _, revision in self.versions), default=0)
        self.acted("", "", "replace")

    def history(self, versions: Iterable[Version]) -> None:
        """Look at the server's history: nothing left it, and what came in had a reason."""
        now = {(each.key, each.revision): each for each in versions}
        for place, version in self.versions.items():
            if now.get(place) != version:
                raise BrokenPromiseError(f"{version} left the server's history")
        for version in sorted(now.values(), key=lambda each: each.revision):
            place = (version.key, version.revision)
            if place not in self.versions:
                self._came(version)
                self.versions[place] = version
                self.ever.add((version.key, version.hash))
                self.revision = max(self.revision, version.revision)

    def _came(self, new: Version) -> None:
        earlier = sorted(
            (each for each in self.versions.values() if each.key == new.key),
            key=lambda each: each.revision,
        )
        if not new.hash:
            own = (new.member, new.key)
            removed = Counter((e.member, e.key) for e in earlier if not e.hash)
            asked = sum((a.member, a.key) == own and a.kind == "remove" for a in self.acts)
            if removed[own] >= asked:
                self._broken(new, "nobody removed it")
            return
        before = earlier[-1] if earlier else None
        if before is not None and not before.hash:
            born = self._births.get((new.member, new.key, new.hash), 0)
            if born < before.revision and not self._decided(new, before.revision, new.member):
                self._broken(new, f"it was removed at {before.revision} and came back by itself")
        same = [each.revision for each in earlier if each.hash == new.hash]
        if same and not self._decided(new, same[-1], ""):
            self._broken(new, f"it is the text of {same[-1]} once more")

    def _decided(self, new: Version, since: int, member: str) -> bool:
        return any(
            act.kind in _DECIDING
            and act.key in {"", new.key}
            and act.member in {"", member or act.member}
            and act.revision >= since
            for act in self.acts
        )

    def files(self, member: str, live: Files, *, knows: int, stored: Collection[str]) -> None:
        """Look at a member's files and journal; ``knows`` is the newest revision it was told."""
        before = self.live.get(member, {})
        for key, old in before.items():
            if key not in live and not self._taken(member, key, old, knows):
                self._broken(Version(key, knows, old, member), "nobody took this file away")
        for key, new in live.items():
            if before.get(key) != new:
                self._births[member, key, new] = knows
        self.live[member] = dict(live)
        lost = self.written.get(member, set()) - set(live.values()) - set(stored)
        if lost:
            raise BrokenPromiseError(f"{member} wrote {lost}, which is nowhere")

    def _taken(self, member: str, key: str, old: str, knows: int) -> bool:
        here = any(
            (act.member, act.step) == (member, self.step)
            and act.key in {"", key}
            and act.kind in _TAKING
            for act in self.acts
        )
        there = any(
            each.key == key and not each.hash and each.revision <= knows
            for each in self.versions.values()
        )
        return here or (there and (key, old) in self.ever)

    def conflicts(self, member: str, others: Mapping[str, str]) -> None:
        """Look at a member's conflicts: whose the server's text is, by key.

        One's own text stands against oneself only where a backup brought an older one of it back.
        """
        replaced = any(act.kind == "replace" for act in self.acts)
        own = [key for key, other in others.items() if other == member]
        if own and not replaced:
            self._broken(Version(own[0], 0, "", member), "it is in conflict with its own writer")

    def rest(self, members: Mapping[str, Held]) -> None:
        """Look at all once nothing is on its way: the files are equal but for what is held."""
        newest: dict[str, Version] = {}
        for version in sorted(self.versions.values(), key=lambda each: each.revision):
            newest[version.key] = version
        server = {key: each.hash for key, each in newest.items() if each.hash}
        for member, said in members.items():
            here = self.live.get(member, {})
            for key in sorted({*server, *here}):
                equal = here.get(key) == server.get(key)
                if not equal and key not in said.held:
                    words = f"it is {server.get(key)} on the server and not held"
                    self._broken(Version(key, 0, str(here.get(key)), member), words)

    def _broken(self, version: Version, why: str) -> None:
        raise BrokenPromiseError(f"{version}: {why}")
