"""Show the state of a directory's team memory. Blocks; only ``log`` asks the server."""

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

_NEWEST = 10  # the most entries that a new member is shown


def status(exchange: Exchange, off: str) -> TeamStatus:
    """Return the state of a directory's sync; ``off`` says why it does not sync, or is ""."""
    state, table, place = exchange.state, exchange.table, exchange.membership
    bases = table.bases(exchange.directory)
    outgoing = tuple(f"{TEAM}{item.key}" for item in exchange.outgoing())
    unanswered = table.batch(exchange.directory) is not None
    paused = off or state.paused
    states = {  # the first that applies is shown
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
        state=next((name for name, applies in states.items() if applies), "equal"),
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
    )


def diff(exchange: Exchange, path: str) -> tuple[TextDiff, ...]:
    """Return a diff for each file that a push would send, and for each conflict with both texts.

    With ``path``, only those of that path are returned.
    """
    table, directory = exchange.table, exchange.directory
    bases, results = table.bases(directory), []
    outgoing = list(exchange.ports.files.read(_outgoing_keys(exchange, path)))
    for key, _, text in outgoing:
        base, file_path = bases.get(key), f"{TEAM}{key}"
        # The server's text, as far as it is known here.
        server_text = table.body(directory, base.hash) if base and base.hash else None
        diff_text = unified.bounded(file_path, server_text, text)
        state = "new" if server_text is None else "changed"
        results.append(TextDiff(file_path, state, diff_text))
    for key, conflict in table.conflicts(directory).items():
        file_path = f"{TEAM}{key}"
        if path not in ("", file_path):
            continue
        ours = table.body(directory, conflict.ours) or b""
        theirs = table.body(directory, conflict.theirs) or b""
        diff_text = unified.bounded(file_path, theirs, ours)
        our_text, their_text = ours.decode(errors="replace"), theirs.decode(errors="replace")
        results.append(TextDiff(file_path, "conflict", diff_text, our_text, their_text))
    return tuple(results)


def log(exchange: Exchange, key: str, before: int | None, limit: int) -> tuple[TeamVersion, ...]:
    """Return up to ``limit`` versions of a key on the server, newest first.

    With ``before`` they are older than that revision.
    """
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
            size=each.size,
            reason=each.reason,
        )
        for each in versions
    )


def members(bases: Bases) -> tuple[TeamMember, ...]:
    """Return the members that wrote the entries here; the one with the most entries comes first."""
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
    """Return how many entries of each type a directory has, and the ten newest entries."""
    bases, types, newest = table.bases(directory), Counter[str](), []
    for header in reading.listed(directory):
        if not header.path.startswith(TEAM):
            continue
        base = bases.get(header.path.removeprefix(TEAM))
        if base is not None and base.hash:
            types[str(header.type or "")] += 1
            newest.append(NewestEntry(header.path, header.description, base.member, base.at))
    newest.sort(key=lambda entry: entry.at, reverse=True)
    return dict(types), tuple(newest[:_NEWEST])


def preview(project: Project, prospect: Prospect, files: LocalFiles, now: float) -> JoinPreview:
    """Return which files joining would send, and which not with the reasons.

    ``now`` is seconds since 1970.
    """
    paths, size, unsent = [], 0, []
    for key, file_hash, content in files.read(sorted(files.files(now))):
        refusal = sharing.refusal(key, file_hash, content)
        if refusal is not None:
            unsent.append(refusal)
        else:
            paths.append(f"{TEAM}{key}")
            size += len(content)
    return JoinPreview(
        server=prospect.server,
        remote=prospect.remote,
        root=project.root,
        directory=project.memory_dir,
        device=prospect.device,
        sends=tuple(paths),
        bytes=size,
        left=tuple(unsent),
        code_needed=prospect.known is None,
        joined=prospect.joined,
    )


def _outgoing_keys(exchange: Exchange, path: str) -> list[str]:
    """Return the keys of the files to send; with ``path`` only that of this path."""
    keys = [item.key for item in exchange.outgoing()]
    return [key for key in keys if path in ("", f"{TEAM}{key}")]
