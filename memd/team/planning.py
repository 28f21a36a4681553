"""What a sync does about each key: decided from here, the base and the server, by values alone.

Rules of this file
- Only a tombstone removes: a key that a page does not have is a key that nothing is known about
  (tests/team/test_planning.py::test_only_a_tombstone_removes).
- What a page says a second time changes nothing: a revision that the base has is passed over
  (tests/team/test_planning.py::test_a_page_can_come_twice).
- A text that the server has not acknowledged is never overwritten without being listed
  (tests/team/test_model.py).
"""

from collections.abc import Container, Iterable, Mapping

from msgspec import Struct

from memd.core.team import REMOVED, Base, HeldEntry, Outgoing
from memd.team.values import Act, Bases, RemoteEntry

_REMOVED_FILES = 5
_REMOVED_SHARE = 5  # one in five
# Why a text is not sent that another text of the same key might be.
_OF_THE_TEXT = ("secret", "type", "refused", "too_large")


class KeyPlan(Struct, frozen=True):
    """What is done about one key, and the base that it has then (``None``: it has none).

    ``local`` is the live file's hash, ``base`` the base until now (a merge is on its text).
    Without ``remote`` a text is written from ``base``: the server has nothing newer.
    """

    key: str
    act: Act
    local: str | None
    base: Base | None
    remote: RemoteEntry | None
    after: Base | None

    @property
    def reason(self) -> str:
        """Why a key is held whose act is ``HOLD``, as in ``HeldEntry``."""
        return "removed" if self.remote else "only_here"


def act(local: str | None, base: Base | None, remote: RemoteEntry | None) -> Act:
    """Return what is done about a key.

    ``local`` is the live file's hash. ``remote`` is ``None`` when the server told nothing about the
    key since the base, and without a base when it never told anything. An entry that is no newer
    than the base says nothing either. A restore without a newer entry takes the base's text.
    """
    here, before = local or REMOVED, base.hash if base else REMOVED
    if remote is None or (base and remote.revision <= base.revision):
        return Act.NOTHING if here == before else Act.PUSH if here else Act.RESTORE
    there = remote.hash
    if here == there:
        return Act.ADOPT if here else Act.FORGET
    if not there:
        return Act.REMOVE if here == before else Act.HOLD
    if here == before:
        return Act.TAKE
    if not here:
        return Act.RESTORE
    return Act.PUSH if there == before else Act.MERGE if before else Act.CONFLICT


def pulled(
    local: Mapping[str, str], bases: Bases, entries: Iterable[RemoteEntry]
) -> tuple[KeyPlan, ...]:
    """Return what a page of a server's entries does; ``local`` maps keys to live files' hashes."""
    plans = []
    for entry in entries:
        base, here = bases.get(entry.key), local.get(entry.key)
        after = base if base and base.revision > entry.revision else entry.base
        plans.append(KeyPlan(entry.key, act(here, base, entry), here, base, entry, after))
    return _that_do_something(plans)


def deleted(local: Mapping[str, str], bases: Bases) -> tuple[KeyPlan, ...]:
    """Return the restoring of what was deleted here alone, for the end of each pull."""
    return tuple(
        KeyPlan(key, Act.RESTORE, None, base, None, base)
        for key, base in bases.items()
        if base.hash and key not in local
    )


def after_accept(
    local: Mapping[str, str], bases: Bases, entries: Iterable[RemoteEntry]
) -> tuple[KeyPlan, ...]:
    """Return what a page does of a server that came back from a backup and was accepted.

    A server gives no revision twice, not even then: a smaller one than the base's is an older text
    on which ours is based, and ours is sent. Any other text is a conflict; tombstones remove.
    """
    plans = []
    for entry in entries:
        base, here = bases.get(entry.key), local.get(entry.key)
        remote: RemoteEntry | None = entry
        if base and (base.revision, base.hash) == (entry.revision, entry.hash):
            decided = act(here, base, None)
        elif base and base.hash and entry.revision < base.revision and here != entry.hash:
            decided = Act.PUSH if here else Act.RESTORE
            remote = entry if here else None  # the newer text of the two is written again
        else:  # a text is not based on the base; what was written before a tombstone is held
            based = base if base and base.hash and not entry.hash else None
            decided = act(here, based, entry)
        plans.append(KeyPlan(entry.key, decided, here, base, remote, entry.base))
    return _that_do_something(plans)


def all_pulled(
    local: Mapping[str, str],
    bases: Bases,
    held: Container[str],
    seen: Container[str],
    *,
    accepted: bool = False,
) -> tuple[KeyPlan, ...]:
    """Return what is done about keys that the server lacks, after a pull of all entries or hashes.

    ``seen`` are the keys of all its pages, tombstones too. A server that was ``accepted`` lost
    them, and they are sent as new. Any other has forgotten that they were removed: what stands here
    is held, and what was written after the removal is sent.
    """
    plans = []
    for key, base in bases.items():
        here = local.get(key)
        if key in seen or (here and not base.hash and key in held):
            continue
        if accepted or not base.hash:
            decided = Act.PUSH if here else Act.RESTORE if base.hash else Act.FORGET
        else:
            decided = Act.HOLD if here else Act.FORGET
        plans.append(KeyPlan(key, decided, here, base, None, None))
    return tuple(plans)


def removes_too_much(removed: int, entries: int) -> bool:
    """Return whether a pull removes so many of the entries that stand here that a person decides.

    Both count the whole pull and not a page, and nothing of it is carried out before.
    """
    return removed > _REMOVED_FILES and removed * _REMOVED_SHARE > entries


def outgoing(
    local: Mapping[str, str],
    bases: Bases,
    held: Container[str],
    times: Mapping[str, float],
) -> tuple[Outgoing, ...]:
    """Return what is to be sent: updates before new entries, the oldest file first.

    ``held`` are the keys that are not sent, for whichever reason. ``times`` are the files' times
    of change.
    """
    changed = []
    for key, here in local.items():
        base = bases.get(key)
        if key not in held and act(here, base, None) is Act.PUSH:
            new = not (base and base.hash)
            entry = Outgoing(key, here, base.revision if base else None)
            changed.append((new, times.get(key, 0.0), key, entry))
    return tuple(entry for *_, entry in sorted(changed, key=lambda each: each[:3]))


def released(
    local: Mapping[str, str], bases: Bases, held: Mapping[str, HeldEntry], *, room: bool = False
) -> tuple[str, ...]:
    """Return the held keys that need nobody's decision any more.

    The file is gone, or is what the server has, or its text is another than the one that was
    refused. With ``room`` the server announced that it takes more.
    """
    return tuple(
        key
        for key, entry in held.items()
        if (here := local.get(key)) is None
        or ((base := bases.get(key)) and base.hash == here)
        or (entry.reason in _OF_THE_TEXT and entry.hash != here)
        or (entry.reason == "full" and room)
    )


def _that_do_something(plans: Iterable[KeyPlan]) -> tuple[KeyPlan, ...]:
    """Return the plans without those after which file and base are as they were."""
    idle = (Act.NOTHING, Act.PUSH)
    return tuple(plan for plan in plans if plan.act not in idle or plan.after != plan.base)
