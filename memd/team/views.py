"""What is told of a directory's team memory. Blocks; no server is asked but for versions."""

from collections import Counter

from memd.core.names import TEAM
from memd.core.team import REMOVED
from memd.core.values import Project
from memd.state.tables import TeamTable
from memd.store.service import DirectoryReader
from memd.team import requests, sharing, wire
from memd.team.exchange import Exchange
from memd.team.joining import Prospect
from memd.team.local import LocalFiles
from memd.team.results import (
    JoinPreview,
    NewestEntry,
    TeamMember,
    TeamStatus,
    TeamVersion,
    TextDiff,
)
from memd.team.values import Bases
from memd.text import unified

_NEWEST = 10


def status(exchange: Exchange, off: str, *, review: bool) -> TeamStatus:
    """Return where a sync stands; ``off`` says which switch it is off by, "" for none."""
    state, table, place = exchange.state, exchange.table, exchange.membership
    bases = table.bases(exchange.directory)
    outgoing = tuple(f"{TEAM}{item.key}" for item in exchange.outgoing())
    unanswered = table.batch(exchange.directory) is not None
    paused = off or state.paused
    states = {
        "off": off,
        "waits": state.waits,
        "paused": paused,
        "unanswered": unanswered,
        "changed": outgoing,
    }
    return TeamStatus(
        server=place.server,
        remote=place.remote,
        member=place.member,
        device=place.device,
        state=next((name for name, true in states.items() if true), "equal"),
        entries=sum(base.hash != REMOVED for base in bases.values()),
        outgoing=outgoing,
        held=tuple(table.held(exchange.directory).values()),
        conflicts=tuple(table.conflicts(exchange.directory).values()),
        left_out=tuple(table.left_out(exchange.directory).values()),
        mark=state.mark,
        pulled_at=state.pulled_at,
        pushed_at=state.pushed_at,
        paused=paused,
        until=state.paused_until if state.paused else state.until,
        waits=state.waits,
        review=review,
    )


def diff(exchange: Exchange, path: str) -> tuple[TextDiff, ...]:
    """Return what a push would send, and both texts of each conflict; of one path, if named."""
    bases, results = exchange.table.bases(exchange.directory), []
    texts = {key: text for key, _, text in exchange.ports.files.read(_keys(exchange, path))}
    for key, text in texts.items():
        base = bases.get(key)
        before = exchange.table.body(exchange.directory, base.hash) if base and base.hash else None
        shown = unified.bounded(f"{TEAM}{key}", before, text)
        results.append(TextDiff(f"{TEAM}{key}", "changed" if before is not None else "new", shown))
    for key, conflict in exchange.table.conflicts(exchange.directory).items():
        if path in ("", f"{TEAM}{key}"):
            both = (conflict.ours, conflict.theirs)
            ours, theirs = (exchange.table.body(exchange.directory, each) or b"" for each in both)
            shown = unified.bounded(f"{TEAM}{key}", theirs, ours)
            texts_of = (ours.decode(errors="replace"), theirs.decode(errors="replace"))
            results.append(TextDiff(f"{TEAM}{key}", "conflict", shown, *texts_of))
    return tuple(results)


def log(exchange: Exchange, key: str, before: int | None, limit: int) -> tuple[TeamVersion, ...]:
    """Return a key's versions on the server, newest first."""
    request = requests.history(exchange.repository, key, before=before, limit=limit)
    versions = exchange.read(wire.history, exchange.answer(request).body, key)
    return tuple(
        TeamVersion(
            path=f"{TEAM}{key}",
            revision=each.revision,
            at=each.at,
            member=each.member,
            device=each.device,
            hash=each.hash,
            size=len(each.content or b""),
            reason=each.reason,
        )
        for each in versions
    )


def members(bases: Bases) -> tuple[TeamMember, ...]:
    """Return whose entries stand here, those with the most first."""
    live = [base for base in bases.values() if base.hash != REMOVED]
    rows = []
    for member in {base.member for base in live}:
        own = [base for base in live if base.member == member]
        devices = tuple(sorted({base.device for base in own}))
        rows.append(TeamMember(member, devices, len(own), max(base.at for base in own)))
    return tuple(sorted(rows, key=lambda row: (-row.entries, row.member)))


def summary(
    reading: DirectoryReader, table: TeamTable, directory: str
) -> tuple[dict[str, int], tuple[NewestEntry, ...]]:
    """Return for a new member how many entries there are by type, and the newest ones."""
    bases, types, newest = table.bases(directory), Counter[str](), []
    for header in reading.listed(directory):
        base = bases.get(header.path.removeprefix(TEAM)) if header.path.startswith(TEAM) else None
        if base is not None and base.hash:
            types[str(header.type or "")] += 1
            newest.append(NewestEntry(header.path, header.description, base.member, base.at))
    newest.sort(key=lambda entry: entry.at, reverse=True)
    return dict(types), tuple(newest[:_NEWEST])


def preview(project: Project, prospect: Prospect, files: LocalFiles, now: float) -> JoinPreview:
    """Return what joining would send, and what it would not."""
    sends, size, left = [], 0, []
    for key, file_hash, content in files.read(sorted(files.files(now))):
        refused = sharing.refusal(key, file_hash, content)
        if refused is not None:
            left.append(refused)
        else:
            sends.append(f"{TEAM}{key}")
            size += len(content)
    return JoinPreview(
        server=prospect.server,
        remote=prospect.remote,
        root=project.root,
        directory=project.memory_dir,
        device=prospect.device,
        sends=tuple(sends),
        bytes=size,
        left=tuple(left),
        code_needed=prospect.known is None,
    )


def _keys(exchange: Exchange, path: str) -> list[str]:
    keys = [item.key for item in exchange.outgoing()]
    return [key for key in keys if path in ("", f"{TEAM}{key}")]
