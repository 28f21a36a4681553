"""export and import: write memories as plain files, and read those of memd or another tool."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Annotated

import msgspec
from anyio import to_thread

from memd.api.services import Services
from memd.base.errors import Invalid, MemdError
from memd.base.names import printable
from memd.base.text import one_line, sha256
from memd.methods.method import method
from memd.portable.errors import kind_unknown
from memd.portable.service import (
    ImportReading,
    ImportRequest,
    ImportResult,
    ImportTarget,
    ReadProject,
)
from memd.portable.values import ExportPart, ExportRequest, ExportResult, SourceKind
from memd.projects.known import known_project
from memd.projects.remotes import repository_of
from memd.rpc.call import Call

_KIND_CHARACTERS = 40  # of an unknown kind in an error
Places = Annotated[tuple[str, ...], msgspec.Meta(max_length=1000)]


def place_unknown(name: str, known: Sequence[str]) -> Invalid:
    """Return the error that an import names a project that the source does not have."""
    listed = ", ".join(map(printable, known)) or "none that has a name"
    return Invalid(f"the source has no project {printable(name)!r}; it has {listed}", project=name)


@method("export", "read")
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

    ``dest`` is an absolute path that does not exist yet, outside of memory directories. The
    memories are those of the project of ``cwd``, of the directory ``project``, or of ``all``
    projects. Only private memories are exported, and the parts in ``with``. Texts that look like a
    credential are left out and listed. Progress has the number of ``projects`` done, ``of`` how
    many. docs/export-format.md describes the format.
    """
    if project and all_:
        raise Invalid(
            "an export takes one project or all of them",
            hint="name a project, or leave it out with all",
        )
    if all_:
        projects = await services.exports.projects()
    else:
        here = await services.callers.project(call, project or cwd)
        projects = (await to_thread.run_sync(known_project, here),)
    request = ExportRequest(dest, projects, frozenset(with_), whole=all_)
    return await services.exports.export(request, partial(_report, call))


@method("import", "write")
async def import_(
    services: Services,
    call: Call,
    *,
    cwd: str,
    source: str,
    kind: str | None = None,
    project: Places = (),
    dry_run: bool = False,
    accept: bool = False,
) -> ImportResult:
    """Import memories from an export of memd, or from another tool's files.

    ``source`` is the absolute path of a folder, a file, a .tar, .tar.gz or .zip; its ``kind`` is
    recognised unless given: memd, claude-code, codex or text. A ``project`` is the absolute path of
    a target directory, or ``id=path`` for one of several projects in the source; by default it is
    ``cwd``. Without ``accept``, or with ``dry_run``, the result says what would be done and nothing
    changes. With it each memory directory gets one change. Progress has the number of ``projects``
    done, ``of`` how many.
    """
    if kind and kind not in tuple(SourceKind):
        why = f"{one_line(kind, _KIND_CHARACTERS)} is no kind of source"
        raise kind_unknown(source, why)
    known_kind = SourceKind(kind) if kind else None
    request = ImportRequest(source, known_kind, accept and not dry_run, call.caller.client)
    destinations = {"": cwd} | dict(map(_parse_destination, project))
    find = partial(_targets, services, call, destinations)
    return await services.imports.run(request, find, partial(_report, call))


def _parse_destination(text: str) -> tuple[str, str]:
    """Return the id of a project in the source, "" for any other, and its target directory."""
    name, equals, directory = text.partition("=")
    if not equals or text.startswith("/"):  # a path, which may have an equals sign
        return "", text
    return name, directory


async def _targets(
    services: Services, call: Call, destinations: dict[str, str], reading: ImportReading
) -> dict[str, ImportTarget]:
    """Return the target of each project in the source by id, and under "" that of the rest.

    If ``destinations`` names no project, the only one goes to that of ""; of several, each goes to
    the one project here with the same repository, if there is exactly one. Raises
    Invalid, and what ``writable`` raises.
    """
    source_ids = [project.id for project in reading.projects]
    for key in destinations:
        if key not in ("", *source_ids):
            raise place_unknown(key, source_ids)
    names_no_project = len(destinations) == 1
    targets: dict[str, ImportTarget] = {}
    for key, directory in destinations.items():
        try:
            targets[key] = await _target(services, call, directory)
        except MemdError:
            if key or names_no_project:
                raise  # else "" is only the default ``cwd``, which need not be usable
    if names_no_project and len(source_ids) == 1:
        return targets | {source_ids[0]: targets[""]}
    if names_no_project:
        every = await services.exports.projects()
        roots = (targets[""].project.root, *(each.root for each in every if each.root))
        matches = await to_thread.run_sync(_roots_by_repository, reading.projects, roots)
        targets |= {key: await _target(services, call, root) for key, root in matches.items()}
    return targets


async def _target(services: Services, call: Call, directory: str) -> ImportTarget:
    """Return the project of a directory as a target. Raises what ``writable`` raises."""
    project = await services.callers.writable(call, directory)
    joined = await to_thread.run_sync(services.memberships.joined, project.memory_dir)
    return ImportTarget(project, call.caller.environment, joined)


def _roots_by_repository(projects: Sequence[ReadProject], roots: Iterable[str]) -> dict[str, str]:
    """Return the one of ``roots`` that has a project's repository, by project id. Blocks.

    A repository that several projects of the source or several roots have is left out.
    """
    by_remote: defaultdict[str, set[str]] = defaultdict(set)
    for root in roots:
        repository = repository_of(root)
        if repository:
            by_remote[sha256(repository.encode())].add(root)
    counts = Counter(each.remote for each in projects)
    return {
        each.id: min(by_remote[each.remote])  # a set of one
        for each in projects
        if counts[each.remote] == len(by_remote[each.remote]) == 1
    }


async def _report(call: Call, done: int, total: int) -> None:
    """Report how many projects are done."""
    await call.progress({"projects": done, "of": total})
