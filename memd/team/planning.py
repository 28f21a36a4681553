"""Decide what a sync does about each key from the file here, the base and the server's entry. Pure.

A base is the last version that was the same here and on the server. A tombstone is the server's
entry for a removed file.

Rules of this file
- Only a tombstone removes a file; a key that is not on a page is left alone
  (tests/soak/test_team_machine.py).
- An entry whose revision the base has already changes nothing
  (tests/soak/test_team_machine.py).
- A text that the server has not acknowledged is only overwritten if a conflict lists it
  (tests/soak/test_team_machine.py).
"""

from collections.abc import Container, Iterable, Mapping

from msgspec import Struct

from memd.base.team import REMOVED, Base, HeldEntry, Outgoing
from memd.team.values import Act, Bases, RemoteEntry

# Reasons for holding an entry that end if its text changes.
_TEXT_REASONS = ("secret", "type", "refused", "too_large")


class KeyPlan(Struct, frozen=True):
    """The act for one key, and the key's base after the act, ``None`` for no base.

    ``local`` is the hash of the file here, ``None`` if there is none. ``base`` is the base before
    the act, on whose text a merge is made. Without ``remote`` the server has nothing newer, and a
    text that is written is that of ``base``.
    """

    key: str
    act: Act
    local: str | None
    base: Base | None
    remote: RemoteEntry | None
    base_after: Base | None

    @property
    def reason(self) -> str:
        """Why the key is held, if the act is ``HOLD``: a reason of ``HeldEntry``."""
        return "removed" if self.remote else "only_here"


def act_for(local: str | None, base: Base | None, remote: RemoteEntry | None) -> Act:
    """Return what a sync does about one key.

    ``local`` is the hash of the file here, ``None`` if there is none. ``remote`` is the server's
    entry, ``None`` if it sent none since the base; an entry that is no newer than the base is
    ignored. A restore without a newer entry writes the base's text.
    """
    local_hash, base_hash = local or REMOVED, base.hash if base else REMOVED
    if remote is None or (base and remote.revision <= base.revision):  # nothing new there
        if local_hash == base_hash:
            return Act.NOTHING
        return Act.PUSH if local_hash else Act.RESTORE
    if local_hash == remote.hash:
        return Act.ADOPT if local_hash else Act.FORGET
    if local_hash == base_hash:  # changed there alone
        return Act.TAKE if remote.hash else Act.REMOVE
    return _act_if_both_changed(local_hash, base_hash, remote.hash)


def _act_if_both_changed(local_hash: str, base_hash: str, remote_hash: str) -> Act:
    """Return what a sync does about a key that has changed here and has a newer entry there."""
    if not remote_hash:
        return Act.HOLD
    if not local_hash:
        return Act.RESTORE
    if remote_hash == base_hash:  # the newer entry has the base's text again
        return Act.PUSH
    return Act.MERGE if base_hash else Act.CONFLICT


def plan_pull(
    local: Mapping[str, str], bases: Bases, entries: Iterable[RemoteEntry]
) -> tuple[KeyPlan, ...]:
    """Return the plans for a page of the server's entries, without those that change nothing.

    ``local`` has the hashes of the files here, by key.
    """
    plans = []
    for entry in entries:
        base, local_hash = bases.get(entry.key), local.get(entry.key)
        base_after = base if base and base.revision > entry.revision else entry.base
        act = act_for(local_hash, base, entry)
        plans.append(KeyPlan(entry.key, act, local_hash, base, entry, base_after))
    return _with_effect(plans)


def plan_restores(local: Mapping[str, str], bases: Bases) -> tuple[KeyPlan, ...]:
    """Return the plans that restore files which were deleted here but not on the server.

    A pull ends with them.
    """
    return tuple(
        KeyPlan(key, Act.RESTORE, None, base, None, base)
        for key, base in bases.items()
        if base.hash and key not in local
    )


def plan_after_accept(
    local: Mapping[str, str], bases: Bases, entries: Iterable[RemoteEntry]
) -> tuple[KeyPlan, ...]:
    """Return the plans for a page of an accepted server that was restored from a backup.

    Such a server does not use a revision again. So an entry with a smaller revision than the base's
    is an older version of our text, and our text is sent. Any other text is a conflict, and
    tombstones remove files.
    """
    plans = []
    for entry in entries:
        base, local_hash = bases.get(entry.key), local.get(entry.key)
        remote: RemoteEntry | None = entry
        is_older = base and base.hash and entry.revision < base.revision
        if base and (base.revision, base.hash) == (entry.revision, entry.hash):
            act = act_for(local_hash, base, None)
        elif is_older and local_hash != entry.hash:
            act = Act.PUSH if local_hash else Act.RESTORE
            remote = entry if local_hash else None  # restore the base's text, which is newer
        else:
            # The base counts only for a tombstone: files changed since then are held.
            tombstone_base = base if base and base.hash and not entry.hash else None
            act = act_for(local_hash, tombstone_base, entry)
        plans.append(KeyPlan(entry.key, act, local_hash, base, remote, entry.base))
    return _with_effect(plans)


def plan_missing(
    local: Mapping[str, str],
    bases: Bases,
    held: Container[str],
    seen: Container[str],
    *,
    accepted: bool = False,
) -> tuple[KeyPlan, ...]:
    """Return the plans for keys that have a base but are not on the server, after a full pull.

    ``held`` are the keys of held files. ``seen`` are the keys of all pages, with tombstones. If the
    server was ``accepted`` after a backup, it lost the entries, and they are sent as new. Otherwise
    it no longer has the tombstones of removed entries: files here are held, but those written after
    the removal are sent.
    """
    plans = []
    for key, base in bases.items():
        local_hash = local.get(key)
        is_held = local_hash and not base.hash and key in held  # removed there before
        if key in seen or is_held:
            continue
        if local_hash:
            act = Act.PUSH if accepted or not base.hash else Act.HOLD
        else:
            act = Act.RESTORE if accepted and base.hash else Act.FORGET
        plans.append(KeyPlan(key, act, local_hash, base, None, None))
    return tuple(plans)


def entries_to_send(
    local: Mapping[str, str],
    bases: Bases,
    held: Container[str],
    times: Mapping[str, float],
) -> tuple[Outgoing, ...]:
    """Return the entries to send: updates before new entries, and the oldest file first.

    ``held`` are the keys that are not sent for any reason. ``times`` has when each file changed, in
    seconds since 1970.
    """
    result = []
    for key, local_hash in local.items():
        base = bases.get(key)
        if key not in held and act_for(local_hash, base, None) is Act.PUSH:
            result.append(Outgoing(key, local_hash, base.revision if base else None))

    def order(entry: Outgoing) -> tuple[bool, float, str]:
        base = bases.get(entry.key)
        is_new = not (base and base.hash)
        return is_new, times.get(entry.key, 0.0), entry.key

    return tuple(sorted(result, key=order))


def keys_to_release(
    local: Mapping[str, str], bases: Bases, held: Mapping[str, HeldEntry], *, room: bool = False
) -> tuple[str, ...]:
    """Return the keys that need not be held any more.

    The file is deleted or equal to the server's entry, its refused text has changed, or the
    repository was full and has more ``room`` now.
    """
    result = []
    for key, entry in held.items():
        local_hash, base = local.get(key), bases.get(key)
        is_on_server = base is not None and base.hash == local_hash
        is_changed = entry.reason in _TEXT_REASONS and entry.hash != local_hash
        has_room = entry.reason == "full" and room
        if local_hash is None or is_on_server or is_changed or has_room:
            result.append(key)
    return tuple(result)


def _with_effect(plans: Iterable[KeyPlan]) -> tuple[KeyPlan, ...]:
    """Return the plans that change a file or a base; a push is left to the push itself."""
    no_effect = (Act.NOTHING, Act.PUSH)
    return tuple(
        plan for plan in plans if plan.act not in no_effect or plan.base_after != plan.base
    )
