"""Turn the plans for a page of server entries into one change set. Pure.

A plan says what a sync does about one key; a page is a part of the server's entries.

Rules of this file
- The plan runs on the live tree, under the directory's lock. Each edit names the hash of the file
  that the plan saw, so nothing that was saved meanwhile is overwritten.
- Both texts of a conflict or merge are stored before the change set is.
- Entries that cannot be read here or break a rule are left out; the others are written.
"""

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import asdict

from memd.base.errors import MemdError
from memd.base.names import TEAM, clash
from memd.base.team import Base, Conflict, HeldEntry, LeftOut
from memd.base.text import sha256
from memd.base.values import Draft, FileEdit, Tree
from memd.state.teams import bases_moved
from memd.store.merge import merge_memory
from memd.team import sharing
from memd.team.planning import KeyPlan
from memd.team.values import Act

# Returns the plans for some keys; it gets the hashes of the files here, by key.
PlanKeys = Callable[[Mapping[str, str]], Iterable[KeyPlan]]


class PagePlan(Struct):
    """A plan for the store that carries out the plans for some keys; afterwards it has the results.

    ``body`` returns a stored text by its hash, and ``store_texts`` stores texts by their hashes;
    both block. ``now`` is seconds since 1970. The results ``taken``, ``merged`` and ``removed`` are
    paths.
    """

    directory: str
    keys: tuple[str, ...]
    plan_keys: PlanKeys
    now: float
    body: Callable[[str], bytes | None]
    store_texts: Callable[[Mapping[str, bytes]], None]
    taken: list[str] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    held: list[HeldEntry] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    _edits: list[FileEdit] = field(default_factory=list)
    _texts: dict[str, bytes] = field(default_factory=dict)  # to be stored, by their hashes
    _deleted_bases: list[str] = field(default_factory=list)  # keys
    _bases: list[Base] = field(default_factory=list)  # the new ones

    def __call__(self, tree: Tree) -> Draft:
        """Return the draft of the changes for a directory as it is now."""
        for value in asdict(self).values():  # the store may call a plan again
            if isinstance(value, list | dict):
                value.clear()
        live, problems = self._read_files(tree)
        local = {key: sha256(content) for key, content in live.items()}
        for plan in self.plan_keys(local):
            rule = problems.get(plan.key) or self._carry_out(plan, live.get(plan.key))
            remote = plan.remote
            if rule and remote:
                self.left_out.append(LeftOut(plan.key, remote.revision, remote.hash, rule))
        if self._texts:
            self.store_texts(self._texts)
        effect = bases_moved(
            self.directory, self._bases, self._deleted_bases, self.held, self.conflicts
        )
        return Draft(tuple(self._edits), effects=(effect,))

    def _read_files(self, tree: Tree) -> tuple[dict[str, bytes], dict[str, str]]:
        """Return the contents of the files here by key, and by key why a file cannot be used."""
        live: dict[str, bytes] = {}
        problems: dict[str, str] = {}
        new_paths = []
        for key in self.keys:
            try:
                file = tree.read(f"{TEAM}{key}")
            except MemdError as error:
                problems[key] = error.sentence
                continue
            if file is None:
                new_paths.append(f"{TEAM}{key}")
            else:
                live[key] = file.content
        all_paths = {*new_paths, *(header.path for header in tree.headers())}
        # On some disks two names that differ only in case are one file.
        while new_paths and (path_and_other := clash(new_paths, all_paths)):
            path, other = path_and_other
            new_paths.remove(path)
            all_paths.discard(path)
            problems[path.removeprefix(TEAM)] = f"it differs from {other} only in case"
        return live, problems

    def _carry_out(self, plan: KeyPlan, ours: bytes | None) -> str:
        """Add the edit, base or hold of one plan; return the rule that forbids it, or ""."""
        path, act = f"{TEAM}{plan.key}", plan.act
        if act in (Act.TAKE, Act.RESTORE, Act.CONFLICT, Act.MERGE):
            theirs = self._server_text(plan)
            if theirs is None:
                return "its text is not to be had"
            refusal = sharing.refusal(plan.key, sha256(theirs), theirs)
            if refusal is not None:
                return refusal.detail
            if ours is not None and act in (Act.CONFLICT, Act.MERGE):
                self._merge_or_list(plan, ours, theirs)
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
            self._texts[sha256(ours)] = ours
        elif act is Act.PUSH and plan.remote and plan.remote.content is not None:
            self._texts[plan.remote.hash] = plan.remote.content  # the base of a later merge
        if plan.base_after is None:
            self._deleted_bases.append(plan.key)
        else:
            self._bases.append(plan.base_after)
        return ""

    def _merge_or_list(self, plan: KeyPlan, ours: bytes, theirs: bytes) -> None:
        """Write the merge of two texts; if they do not merge, write theirs and add a conflict."""
        path, base_hash = f"{TEAM}{plan.key}", plan.base.hash if plan.base else ""
        base_text = self.body(base_hash) if base_hash and plan.act is Act.MERGE else None
        merged = None if base_text is None else merge_memory(base_text, ours, theirs, path)
        if merged is not None and not sharing.refusal(plan.key, sha256(merged), merged):
            self._texts[sha256(theirs)] = theirs
            self._edits.append(FileEdit(path, merged, plan.local))
            self.merged.append(path)
            return
        self._texts |= {sha256(ours): ours, sha256(theirs): theirs}
        self._write(plan, theirs)
        member = plan.remote.member if plan.remote else ""
        conflict = Conflict(plan.key, sha256(ours), sha256(theirs), base_hash, member, at=self.now)
        self.conflicts.append(conflict)

    def _server_text(self, plan: KeyPlan) -> bytes | None:
        """Return the server's text from the page, or the stored one of the base; else ``None``."""
        if plan.remote is not None and plan.remote.content is not None:
            return plan.remote.content
        return self.body(plan.base.hash) if plan.base else None

    def _write(self, plan: KeyPlan, theirs: bytes) -> None:
        """Add the edit that writes the server's text, with the time at which it was saved there."""
        at = plan.remote.at if plan.remote else 0.0
        # A time ahead of the clock here is not used.
        mtime_ns = int(at * 1e9) if 0 < at <= self.now else None
        self._edits.append(FileEdit(f"{TEAM}{plan.key}", theirs, plan.local or "", mtime_ns))
