"""export and import: write memories into an archive, and import them from one."""

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

from memd.base.names import printable
from memd.cli import output
from memd.cli.invocation import JOB_SECONDS, Invocation
from memd.client.errors import AnswerTimeoutError

_MAX_LISTED = 20  # of each list; --json has them all
_INTERRUPTED = (
    "memd stops the import, but completes a change that it writes already: "
    "memctl history shows it, and memctl undo takes it back"
)
_ACTIONS = {
    "created": "created",
    "updated": "updated",
    "beside": "put beside another of its name",
}


def export(invocation: Invocation) -> None:
    """Write memories into an archive and print what it contains."""
    options, screen = invocation.options, invocation.screen
    project = os.path.abspath(options.project) if options.project else None
    invocation.progress = lambda value: screen.show_temporary(_progress_words(value))
    destination = os.path.abspath(options.dest)
    try:
        answer = invocation.request(seconds=JOB_SECONDS, dest=destination, project=project)
    finally:
        screen.show_temporary("")
    _print_left_out(invocation, answer)
    names = ", ".join(f"{printable(each['name'])} ({each['files']})" for each in answer["projects"])
    pairs = [
        ("written", printable(answer["path"])),
        ("files", f"{answer['files']}, {output.size(answer['bytes'])}"),
        ("projects", names or "none"),
    ]
    screen.answer(answer, output.facts(pairs))


def import_(invocation: Invocation) -> int:
    """Import memories and print what happened to each; return 1 if nothing could be taken."""
    options, screen = invocation.options, invocation.screen
    invocation.progress = lambda value: screen.show_temporary(_progress_words(value))
    source = os.path.abspath(options.source)
    directories = [_with_absolute_path(place) for place in options.project or ()]
    try:
        answer = invocation.request(seconds=JOB_SECONDS, source=source, project=directories or None)
    except (KeyboardInterrupt, AnswerTimeoutError):
        screen.show_temporary("")
        if options.accept:
            screen.note(_INTERRUPTED)
        raise
    finally:
        screen.show_temporary("")
    _print_left_out(invocation, answer)
    screen.answer(answer, "\n".join(_import_lines(invocation, answer)))
    if answer["dry_run"] or _has_taken(answer):
        return 0
    screen.error("nothing was taken")
    return 1


def _has_taken(answer: dict[str, Any]) -> bool:
    """Return whether an import took something or found it here already."""
    folders = [*answer["projects"], *answer["agents"]]
    return bool(answer["notes"]) or any(folder["files"] or folder["same"] for folder in folders)


def _project_directory(invocation: Invocation, name: str) -> str:
    """Return the directory that ``--project`` gives for a project of the source, "" for none."""
    for place in invocation.options.project or ():
        given_name, equals, directory = _with_absolute_path(place).partition("=")
        if not equals or "/" in given_name:  # one directory for all that is imported
            return _with_absolute_path(place)
        if given_name == name:
            return directory
    return ""


def _with_absolute_path(place: str) -> str:
    """Return ``DIR`` or ``ID=DIR`` with an absolute path."""
    name, equals, directory = place.partition("=")
    # A directory may contain "=" too; an id of a project has no slash before it.
    if equals and "/" not in name:
        return f"{name}={os.path.abspath(directory)}"
    return os.path.abspath(place)


def _import_lines(invocation: Invocation, answer: dict[str, Any]) -> Iterator[str]:
    """Yield lines that say what an import did, or in a dry run would do."""
    for folder in answer["projects"]:
        yield from _folder_lines(invocation, folder, answer["dry_run"], ())
    for folder in answer["agents"]:
        scope, _, agent = folder["id"].partition("/")
        options = ("--agent", agent, "--scope", scope)
        yield from _folder_lines(invocation, folder, answer["dry_run"], options)
    if answer["notes"]:
        yield f"session notes: {answer['notes']}"
    if answer["dry_run"]:
        yield "nothing is changed yet; take it with --accept"


def _folder_lines(
    invocation: Invocation,
    folder: dict[str, Any],
    dry_run: bool,  # noqa: FBT001 - a member of the answer
    options: tuple[str, ...],
) -> Iterator[str]:
    """Yield the lines about one project or agent; ``options`` select it in other commands."""
    directory = _project_directory(invocation, folder["id"])
    would = "would be " if dry_run else ""
    counts = Counter(file["action"] for file in folder["files"])
    words = [f"{count} {would}{_ACTIONS[action]}" for action, count in sorted(counts.items())]
    words += [f"{folder['files_more']} more"] if folder["files_more"] else []
    words += [f"{folder['same']} here already"] if folder["same"] else []
    name = printable(folder["id"]) or "memories"
    yield f"{name} in {printable(folder['directory'])}: {', '.join(words) or 'nothing new'}"
    for file in folder["files"][:_MAX_LISTED]:
        source = f", from {printable(file['name'])}" if file["name"] else ""
        yield f"  {would}{_ACTIONS[file['action']]}: {printable(file['path'])}{source}"
    if folder["change"]:
        undo = invocation.command("undo", folder["change"], *options, directory=directory)
        yield f"  take it back with: {undo}"


def _print_left_out(invocation: Invocation, answer: dict[str, Any]) -> None:
    """Print the files left out, with reasons, and the problems on standard error."""
    screen = invocation.screen
    for file in answer["left_out"][:_MAX_LISTED]:
        screen.note(f"left out: {printable(file['name'])}: {printable(file['reason'])}")
    more_count = len(answer["left_out"][_MAX_LISTED:]) + answer["left_out_more"]
    if more_count:
        screen.note(f"left out: {more_count} more; --json names them")
    for problem in answer["problems"]:
        screen.note(problem)


def _progress_words(value: dict[str, Any]) -> str:
    """Return the progress in words: the number of the current project."""
    finished, total = value.get("projects", 0), value.get("of", 0)
    return f"project {min(finished + 1, total)} of {total}"
