"""The change set of a page: what a plan of a pull writes, and what moves with it. Pure.

Rules of this file
- The plan runs on the live tree, under the directory's lock. Each edit names the hash that the plan
  saw, so nothing that somebody saved meanwhile is overwritten.
- A text that is replaced by a conflict, or that a merge is made of, is kept before the set exists.
- What cannot be read here, or breaks a rule of ours, is left out; the rest comes in.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields

from memd.core.errors import MemdError
from memd.core.names import TEAM, clash
from memd.core.team import Base, Conflict, HeldEntry, LeftOut, moved
from memd.core.text import sha256
from memd.core.values import Draft, FileEdit, Tree
from memd.documents import document
from memd.team import sharing
from memd.team.planning import KeyPlan
from memd.team.values import Act

# The plan of some keys, from what stands here (hashes by key).
Planned = Callable[[Mapping[str, str]], Iterable[KeyPlan]]


@dataclass(slots=True)
class PagePlan:
    """What becomes of some keys; after the commit it says what was done.

    ``body`` returns a text that is kept, ``keep`` keeps texts; both block.
    """

    keys: tuple[str, ...]
    planned: Planned
    now: float
    body: Callable[[str], bytes | None]
    keep: Callable[[Mapping[str, bytes]], None]
    taken: list[str] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    held: list[HeldEntry] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    _edits: list[FileEdit] = field(default_factory=list)
    _bodies: dict[str, bytes] = field(default_factory=dict)
    _gone: list[str] = field(default_factory=list)
    _bases: list[Base] = field(default_factory=list)

    def __call__(self, tree: Tree) -> Draft:
        """Return the draft for a directory as it is now; a plan may be asked again."""
        for part in fields(self):
            if isinstance(value := getattr(self, part.name), list | dict):
                value.clear()
        live, troubles = self._live(tree)
        here = {key: sha256(content) for key, content in live.items()}
        for plan in self.planned(here):
            rule = troubles.get(plan.key) or self._carry_out(plan, live.get(plan.key))
            if rule and plan.remote:
                there = plan.remote
                self.left_out.append(LeftOut(plan.key, there.revision, there.hash, rule))
        if self._bodies:
            self.keep(self._bodies)
        effect = moved(self._bases, self._gone, self.held, self.conflicts)
        return Draft(tuple(self._edits), effects=(effect,))

    def _live(self, tree: Tree) -> tuple[dict[str, bytes], dict[str, str]]:
        """Return the texts that stand here by key, and why a key's file cannot be used."""
        live: dict[str, bytes] = {}
        troubles: dict[str, str] = {}
        new = []
        for key in self.keys:
            try:
                file = tree.read(f"{TEAM}{key}")
            except MemdError as error:
                troubles[key] = error.sentence
                continue
            if file is None:
                new.append(f"{TEAM}{key}")
            else:
                live[key] = file.content
        spelled = {*new, *(header.path for header in tree.headers())}
        while new and (result := clash(new, spelled)):
            new.remove(result[0])
            spelled.discard(result[0])
            troubles[result[0].removeprefix(TEAM)] = f"it differs from {result[1]} only in case"
        return live, troubles

    def _carry_out(self, plan: KeyPlan, ours: bytes | None) -> str:
        """Add what one key's plan does; return the rule against it, "" for none."""
        path, act = f"{TEAM}{plan.key}", plan.act
        if act in (Act.TAKE, Act.RESTORE, Act.CONFLICT, Act.MERGE):
            theirs = self._theirs(plan)
            if theirs is None:
                return "its text is not to be had"
            refused = sharing.refusal(plan.key, sha256(theirs), theirs)
            if refused is not None:
                return refused.detail
            if ours is not None and act in (Act.CONFLICT, Act.MERGE):
                self._both(plan, ours, theirs)
            else:
                self._write(plan, theirs)
                self.taken.append(path)
        elif act is Act.REMOVE:
            self._edits.append(FileEdit(path, None, plan.local))
            self.removed.append(path)
        elif act is Act.HOLD:
            reason = plan.remote.reason if plan.remote else ""
            self.held.append(HeldEntry(plan.key, plan.local or "", plan.reason, reason))
        elif act is Act.ADOPT and ours is not None:
            self._bodies[sha256(ours)] = ours
        elif act is Act.PUSH and plan.remote and plan.remote.content is not None:
            self._bodies[plan.remote.hash] = plan.remote.content  # what a merge will begin with
        if plan.after is None:
            self._gone.append(plan.key)
        else:
            self._bases.append(plan.after)
        return ""

    def _both(self, plan: KeyPlan, ours: bytes, theirs: bytes) -> None:
        """Merge two texts, or let theirs stand and list ours."""
        path, base = f"{TEAM}{plan.key}", plan.base.hash if plan.base else ""
        common = self.body(base) if base and plan.act is Act.MERGE else None
        merged = None if common is None else document.merge(common, ours, theirs, path)
        if merged is not None and not sharing.refusal(plan.key, sha256(merged), merged):
            self._bodies[sha256(theirs)] = theirs
            self._edits.append(FileEdit(path, merged, plan.local))
            self.merged.append(path)
            return
        self._bodies |= {sha256(ours): ours, sha256(theirs): theirs}
        self._write(plan, theirs)
        member = plan.remote.member if plan.remote else ""
        conflict = Conflict(plan.key, sha256(ours), sha256(theirs), base, member, at=self.now)
        self.conflicts.append(conflict)

    def _theirs(self, plan: KeyPlan) -> bytes | None:
        if plan.remote is not None and plan.remote.content is not None:
            return plan.remote.content
        return self.body(plan.base.hash) if plan.base else None

    def _write(self, plan: KeyPlan, theirs: bytes) -> None:
        """Write the server's text with the time at which it was saved there."""
        at = plan.remote.at if plan.remote else 0.0
        mtime = int(at * 1e9) if 0 < at <= self.now else None
        self._edits.append(FileEdit(f"{TEAM}{plan.key}", theirs, plan.local or "", mtime))
