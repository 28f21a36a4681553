"""Show the state of a directory's team memory. Blocks; only ``log`` asks the server."""

from collections.abc import Iterator
from functools import partial

from memd.base.inbox import Answer, InboxItem, ItemFile, ItemKind, PlacedItem
from memd.base.names import TEAM, printable
from memd.base.team import REMOVED
from memd.base.text import iso_time
from memd.base.values import Project
from memd.state.teams import TeamTable
from memd.team import requests, sharing, wire
from memd.team.exchange import Exchange
from memd.team.joining import Prospect
from memd.team.local import LocalFiles
from memd.team.membership import Memberships
from memd.team.results import (
    JoinPreview,
    TeamMember,
    TeamStatus,
    TeamVersion,
    TextDiff,
)
from memd.team.values import Bases, Membership
from memd.text import unified


def status(exchange: Exchange, off: str, path: str) -> TeamStatus:
    """Return the state of a directory's sync; ``off`` says why it does not sync, or is "".

    With a ``path`` it has how that file differs.
    """
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
        files=_differences(exchange, path) if path else (),
    )


def waiting(table: TeamTable, memberships: Memberships, directory: str) -> list[PlacedItem]:
    """Return what waits for a person in one team directory or in all, with the directory."""
    every = memberships.all()
    if directory:
        one = memberships.of(directory)
        every = (one,) if one else ()
    return [(each.directory, item) for each in every for item in _waiting_in(table, each)]


def _waiting_in(table: TeamTable, place: Membership) -> Iterator[InboxItem]:
    """Yield the conflicts and held files of a directory, and the server that waits."""
    directory, state = place.directory, table.state(place.directory)
    make = partial(InboxItem, kind=ItemKind.TEAM, project=place.root, text="", origin=place.remote)
    if state.waits:
        yield make(
            id=TEAM.rstrip("/"),
            at=iso_time(state.pulled_at),
            title="The team's server has to be accepted.",
            why=(state.waits,),
            choices=(Answer.ACCEPT,),
            person_only=True,
        )
    sides = (Answer.OURS, Answer.THEIRS, Answer.EDIT)
    conflicts = table.conflicts(directory)
    for key, conflict in conflicts.items():
        path, bodies = f"{TEAM}{key}", (conflict.theirs, conflict.ours)
        theirs, ours = (table.body(directory, body) for body in bodies)
        diff = unified.bounded(printable(path), theirs, ours)
        title = f"{conflict.member or 'Another member'} and you changed the same lines."
        files = (ItemFile(path, "changed", diff),)
        yield make(id=path, at=iso_time(conflict.at), title=title, choices=sides, files=files)
    for key, held in table.held(directory).items():
        if key in conflicts:
            continue
        path, why = f"{TEAM}{key}", (": ".join(filter(None, (held.reason, held.detail))),)
        files = (ItemFile(path, "changed", ""),)
        yield make(id=path, at="", title="It is not sent.", why=why, choices=sides, files=files)


def _differences(exchange: Exchange, path: str) -> tuple[TextDiff, ...]:
    """Return how a file differs that a push would send, and both texts of a conflict about it."""
    table, directory, key = exchange.table, exchange.directory, path.removeprefix(TEAM)
    results = []
    if any(item.key == key for item in exchange.outgoing()):
        base = table.bases(directory).get(key)
        # The server's text, as far as it is known here.
        server_text = table.body(directory, base.hash) if base and base.hash else None
        state = "new" if server_text is None else "changed"
        for _, _, text in exchange.ports.files.read([key]):
            results.append(TextDiff(path, state, unified.bounded(path, server_text, text)))
    conflict = table.conflicts(directory).get(key)
    if conflict is not None:
        ours = table.body(directory, conflict.ours) or b""
        theirs = table.body(directory, conflict.theirs) or b""
        texts = (ours.decode(errors="replace"), theirs.decode(errors="replace"))
        results.append(TextDiff(path, "conflict", unified.bounded(path, theirs, ours), *texts))
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


def preview(project: Project, prospect: Prospect, files: LocalFiles) -> JoinPreview:
    """Return which files joining would send, and which not with the reasons."""
    paths, size, unsent = [], 0, []
    for key, file_hash, content in files.read(sorted(files.files())):
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
