"""export and import: memories and what belongs to them as plain files, where the caller says."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import msgspec
from anyio import to_thread

from memd.api.memory import MemoryOffError, project_of, writable
from memd.api.method import method
from memd.api.services import Services
from memd.api.work import submit
from memd.core.errors import MemdError, WrongParameterError
from memd.core.names import printable
from memd.core.text import iso_time, sha256
from memd.files.directory import DirectoryUnusableError, UnwrittenFileError
from memd.portable.errors import (
    DestinationError,
    KindUnknownError,
    SourceDamagedError,
    SourceMissingError,
    SourceRefusedError,
    VersionTooNewError,
)
from memd.portable.service import (
    ChatSession,
    ImportReading,
    ImportRequest,
    ImportResult,
    ImportTarget,
    ReadProject,
)
from memd.portable.values import ExportPart, ExportRequest, ExportResult, SourceKind
from memd.projects.project import NoProjectError
from memd.projects.projects import known_project, repository_of
from memd.rpc.connection import Call
from memd.state.database import StateUnusableError
from memd.store.service import StorageFailedError

Places = Annotated[tuple[str, ...], msgspec.Meta(max_length=1000)]
_SESSIONS = 200  # that are learned from after one import; each is a job of its own
_SESSION_BYTES = 2 * 1024 * 1024  # of what is said in one; the end of a longer one is taken
_MORE = "{} more conversations were not learned from yet: import the archive again later"


class PlaceUnknownError(WrongParameterError):
    """A project of a source was to go somewhere, and the source has no such project."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        listed = ", ".join(map(printable, known)) or "none that has a name"
        super().__init__(
            f"the source has no project {printable(name)!r}; it has {listed}", project=name
        )


class OneOrAllError(WrongParameterError):
    """An export of one project was asked for, and of all of them."""

    hint = "name a project, or leave it out with all"

    def __init__(self) -> None:
        super().__init__("an export takes one project or all of them")


@method(
    "export",
    "read",
    NoProjectError,
    OneOrAllError,
    DestinationError,
    DirectoryUnusableError,
    StateUnusableError,
)
async def export(
    services: Services,
    call: Call,
    *,
    cwd: str,
    dest: str,
    project: str = "",
    all_: bool = False,
    with_: tuple[ExportPart, ...] = (),
) -> ExportResult:
    """Write memories as an archive: a new folder, or a file that ends in .tar.gz.

    ``dest`` is absolute and nothing is there yet; it lies in no memory directory. Of the project of
    ``cwd``, of another directory's ``project``, or of ``all``. The private memories alone are
    taken, and what ``with`` names. What looks like a credential is left out and listed. Progress
    says how many ``projects`` are done ``of`` how many. docs/export-format.md is the format.
    """
    if project and all_:
        raise OneOrAllError
    if all_:
        projects = await services.exports.projects()
    else:
        here = await project_of(services, call, project or cwd)
        projects = (await to_thread.run_sync(known_project, here),)
    request = ExportRequest(dest, projects, frozenset(with_), whole=all_)
    return await services.exports.export(request, partial(_report, call))


@method(
    "import",
    "write",
    NoProjectError,
    MemoryOffError,
    PlaceUnknownError,
    SourceMissingError,
    SourceDamagedError,
    SourceRefusedError,
    KindUnknownError,
    VersionTooNewError,
    UnwrittenFileError,
    StorageFailedError,
    StateUnusableError,
)
async def import_(
    services: Services,
    call: Call,
    *,
    cwd: str,
    source: str,
    kind: SourceKind | None = None,
    project: Places = (),
    dry_run: bool = False,
    accept: bool = False,
    learn: bool = False,
) -> ImportResult:
    """Bring memories in: an export of memd, or what another tool kept.

    ``source`` is the absolute path of a folder, a file, a .tar, .tar.gz or .zip; its ``kind`` is
    recognised unless it is given. A ``project`` is the absolute path of a directory, or ``id=path``
    for one of several in the source; without any it is that of ``cwd``. Each becomes a proposal,
    which ``dream.accept`` takes, or with ``accept`` one change; then agents' memories, session
    notes and history come as well. With ``learn`` conversations in the source are learned from.
    Progress says how many ``projects`` are done ``of`` how many.
    """
    client = call.caller.client
    request = ImportRequest(source, kind, dry_run, accept, learn, client)
    named = {"": cwd} | dict(map(_place, project))
    find = partial(_targets, services, call, named)
    result, talks = await services.imports.run(request, find, partial(_report, call))
    if dry_run or not (learn and talks):
        return result
    return await _learn(services, call, named[""], result, talks)


def _place(text: str) -> tuple[str, str]:
    """Return the project of a source, "" for any, and the directory where it goes."""
    name, equals, directory = text.partition("=")
    return (name, directory) if equals and not text.startswith("/") else ("", text)


async def _targets(
    services: Services, call: Call, named: dict[str, str], reading: ImportReading
) -> dict[str, ImportTarget]:
    """Return where the projects of a source go, and under "" where everything else goes.

    Where no project is named, the only one goes there; of several each goes where its repository
    is, if that is clear. Raises PlaceUnknownError, and what ``writable`` raises.
    """
    known = [project.id for project in reading.projects]
    for key in named:
        if key not in ("", *known):
            raise PlaceUnknownError(key, known)
    targets: dict[str, ImportTarget] = {}
    for key, directory in named.items():
        try:
            targets[key] = await _target(services, call, directory)
        except MemdError:
            if key or len(named) == 1:
                raise  # else nobody asked for anything to go there
    if len(named) == 1 and len(known) == 1:
        return targets | {known[0]: targets[""]}
    if len(named) == 1:
        every = await services.exports.projects()
        roots = (targets[""].project.root, *(each.root for each in every if each.root))
        meant = await to_thread.run_sync(_meant, reading.projects, roots)
        targets |= {key: await _target(services, call, root) for key, root in meant.items()}
    return targets


async def _target(services: Services, call: Call, directory: str) -> ImportTarget:
    """Return a project as a target. Raises what ``writable`` raises."""
    project = await writable(services, call, directory)
    joined = await to_thread.run_sync(services.memberships.joined, project.memory_dir)
    return ImportTarget(project, call.caller.environment, joined)


def _meant(projects: Sequence[ReadProject], roots: Iterable[str]) -> dict[str, str]:
    """Return by id the roots of projects of a source that have one repository there and here."""
    by_remote: defaultdict[str, set[str]] = defaultdict(set)
    for root in roots:
        if repository := repository_of(root):
            by_remote[sha256(repository.encode())].add(root)
    counts = Counter(each.remote for each in projects)
    return {
        each.id: min(by_remote[each.remote])
        for each in projects
        if counts[each.remote] == len(by_remote[each.remote]) == 1
    }


async def _learn(
    services: Services, call: Call, cwd: str, result: ImportResult, talks: Sequence[ChatSession]
) -> ImportResult:
    """Have conversations learned from, as sessions that are over; the oldest first."""
    project, settings, _ = await services.store.where(cwd, call.caller.environment)
    jobs: list[str] = []
    more, problems = 0, list(result.problems)
    for talk in sorted(talks, key=_began):
        session = f"import-{sha256(f'{result.kind} {talk.id}'.encode())[:24]}"
        if await services.extract.has_read(project.memory_dir, session):
            continue
        if len(jobs) >= _SESSIONS:
            more += 1
            continue
        about = {"cwd": cwd, "session": session, "transcript_path": None, "cache": None}
        said = {"messages": _messages(talk)}
        submitted = await submit(services, call, project, settings, about | said)
        if submitted.job is None:
            problems.append(f"nothing is learned: {submitted.reason}")
            break
        jobs.append(submitted.job)
    problems += [_MORE.format(more)] if more else []
    return replace(result, learning=tuple(jobs), problems=tuple(problems))


def _began(talk: ChatSession) -> float:
    return min((message.at or 0.0 for message in talk.messages), default=0.0)


def _messages(talk: ChatSession) -> list[dict[str, Any]]:
    """Return the last messages of a conversation as the Messages API has them."""
    messages: list[dict[str, Any]] = []
    room = _SESSION_BYTES
    for each in reversed(talk.messages):
        room -= len(each.text.encode())
        if room < 0:
            break
        message = {"id": each.id, "role": each.role, "content": each.text}
        messages.append(message | ({"timestamp": iso_time(each.at)} if each.at else {}))
    return messages[::-1]


async def _report(call: Call, done: int, total: int) -> None:
    """Report how many projects are done."""
    await call.progress({"projects": done, "of": total})


METHODS = (export, import_)
