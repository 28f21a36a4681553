"""Decide what a sync does about each key from the file here, the base and the server's entry. Pure.

A base is the last version that was the same here and on the server. A tombstone is the server's
entry for a removed file.

Rules of this file
- Only a tombstone removes a file; a key that is not on a page is left alone
  (tests/team/test_planning.py::test_only_a_tombstone_removes).
- An entry whose revision the base has already changes nothing
  (tests/team/test_planning.py::test_a_page_can_come_twice).
- A text that the server has not acknowledged is only overwritten if a conflict lists it
  (tests/team/test_model.py).
"""

from collections.abc import Container, Iterable, Mapping

from msgspec import Struct

from memd.core.team import REMOVED, Base, HeldEntry, Outgoing
from memd.team.values import Act, Bases, RemoteEntry

_REMOVED_FILES = 5
_REMOVED_SHARE = 5  # one in five
# Reasons for holding an entry that end if its text changes.
_TEXT_REASONS = ("secret", "type", "refused", "too_large")


class KeyPlan(Struct, frozen=True):
    """The act for one key, and its base ``after`` the act, ``None`` for no base.

    ``local`` is the hash of the file here, and ``base`` the base before, on whose text a merge is
    made. Without ``remote`` the server has nothing newer, and a written text is that of ``base``.
    """

    key: str
    act: Act
    local: str | None
    base: Base | None
    remote: RemoteEntry | None
    after: Base | None

    @property
    def reason(self) -> str:
        """Why the key is held, if the act is ``HOLD``: a reason of ``HeldEntry``."""
        return "removed" if self.remote else "only_here"


def act(local: str | None, base: Base | None, remote: RemoteEntry | None) -> Act:
    """Return what a sync does about one key.

    ``local`` is the hash of the file here, ``None`` if there is none. ``remote`` is the server's
    entry, ``None`` if it sent none since the base; an entry that is no newer than the base is
    ignored. A restore without a newer entry writes the base's text.
    """
    local_hash, base_hash = local or REMOVED, base.hash if base else REMOVED
    if remote is None or (base and remote.revision <= base.revision):
        changed_here = Act.PUSH if local_hash else Act.RESTORE
        return Act.NOTHING if local_hash == base_hash else changed_here
    if local_hash == remote.hash:
        return Act.ADOPT if local_hash else Act.FORGET
    if not remote.hash:  # removed there; a file that has changed here stays and is held
        return Act.REMOVE if local_hash == base_hash else Act.HOLD
    if local_hash == base_hash:
        return Act.TAKE
    if not local_hash:
        return Act.RESTORE
    both_changed = Act.MERGE if base_hash else Act.CONFLICT
    return Act.PUSH if remote.hash == base_hash else both_changed


def pulled(
    local: Mapping[str, str], bases: Bases, entries: Iterable[RemoteEntry]
) -> tuple[KeyPlan, ...]:
    """Return the plans for a page of the server's entries, without those that change nothing.

    ``local`` has the hashes of the files here, by key.
    """
    plans = []
    for entry in entries:
        base, file_hash = bases.get(entry.key), local.get(entry.key)
        after = base if base and base.revision > entry.revision else entry.base
        decided = act(file_hash, base, entry)
        plans.append(KeyPlan(entry.key, decided, file_hash, base, entry, after))
    return _with_effect(plans)


def deleted(local: Mapping[str, str], bases: Bases) -> tuple[KeyPlan, ...]:
    """Return the plans that restore files which were deleted here but not on the server.

    A pull ends with them.
    """
    return tuple(
        KeyPlan(key, Act.RESTORE, None, base, None, base)
        for key, base in bases.items()
        if base.hash and key not in local
    )


def after_accept(
    local: Mapping[str, str], bases: Bases, entries: Iterable[RemoteEntry]
) -> tuple[KeyPlan, ...]:
    """Return the plans for a page of an accepted server that was restored from a backup.

    Such a server does not use a revision again. So an entry with a smaller revision than the base's
    is an older version of our text, and our text is sent. Any other text is a conflict, and
    tombstones remove files.
    """
    plans = []
    for entry in entries:
        base, file_hash = bases.get(entry.key), local.get(entry.key)
        remote: RemoteEntry | None = entry
        if base and (base.revision, base.hash) == (entry.revision, entry.hash):
            decided = act(file_hash, base, None)
        elif base and base.hash and entry.revision < base.revision and file_hash != entry.hash:
            decided = Act.PUSH if file_hash else Act.RESTORE
            remote = entry if file_hash else None  # restore the base's text, which is newer
        else:
            # The base counts only for a tombstone: files changed since then are held.
            tombstone_base = base if base and base.hash and not entry.hash else None
            decided = act(file_hash, tombstone_base, entry)
        plans.append(KeyPlan(entry.key, decided, file_hash, base, remote, entry.base))
    return _with_effect(plans)


def missing_on_server(
    local: Mapping[str, str],
    bases: Bases,
    held: Container[str],
    seen: Container[str],
    *,
    accepted: bool = False,
) -> tuple[KeyPlan, ...]:
    """Return the plans for keys that have a base but are not on the server, after a full pull.

    ``seen`` are the keys of all its pages, with tombstones. If the server was ``accepted`` after a
    backup, it lost the entries, and they are sent as new. Otherwise it no longer has the tombstones
    of removed entries: files here are held, but those written after the removal are sent.
    """
    plans = []
    for key, base in bases.items():
        file_hash = local.get(key)
        if key in seen or (file_hash and not base.hash and key in held):
            continue
        if accepted or not base.hash:
            decided = Act.PUSH if file_hash else Act.RESTORE if base.hash else Act.FORGET
        else:
            decided = Act.HOLD if file_hash else Act.FORGET
        plans.append(KeyPlan(key, decided, file_hash, base, None, None))
    return tuple(plans)


def removes_too_much(removed: int, entries: int) -> bool:
    """Return whether a pull removes so many files here that a person has to accept it.

    These are more than five files and more than a fifth of the entries. Both numbers count the
    whole pull, before any page of it is carried out.
    """
    return removed > _REMOVED_FILES and removed * _REMOVED_SHARE > entries


def outgoing(
    local: Mapping[str, str],
    bases: Bases,
    held: Container[str],
    times: Mapping[str, float],
) -> tuple[Outgoing, ...]:
    """Return the entries to send: updates before new entries, and the oldest file first.

    ``held`` are the keys that are not sent for any reason. ``times`` has when each file changed, in
    seconds since 1970.
    """
    changed = []
    for key, file_hash in local.items():
        base = bases.get(key)
        if key not in held and act(file_hash, base, None) is Act.PUSH:
            is_new = not (base and base.hash)
            entry = Outgoing(key, file_hash, base.revision if base else None)
            changed.append((is_new, times.get(key, 0.0), key, entry))
    # No two rows have the same key, so entries are never compared.
    return tuple(entry for *_, entry in sorted(changed))


def released(
    local: Mapping[str, str], bases: Bases, held: Mapping[str, HeldEntry], *, room: bool = False
) -> tuple[str, ...]:
    """Return the keys that need not be held any more.

    The file is deleted or equal to the server's entry, its refused text has changed, or the
    repository was full and has more ``room`` now.
    """
    result = []
    for key, entry in held.items():
        file_hash, base = local.get(key), bases.get(key)
        same_as_server = base is not None and base.hash == file_hash
        changed = entry.reason in _TEXT_REASONS and entry.hash != file_hash
        if file_hash is None or same_as_server or changed or (entry.reason == "full" and room):
            result.append(key)
    return tuple(result)


def _with_effect(plans: Iterable[KeyPlan]) -> tuple[KeyPlan, ...]:
    """Return the plans that change a file or a base; a push is left to the push itself."""
    no_effect = (Act.NOTHING, Act.PUSH)
    return tuple(plan for plan in plans if plan.act not in no_effect or plan.after != plan.base)
