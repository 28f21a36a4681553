"""team resolve: decide what waits for a person; a conflict also in the editor."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from memd.base.errors import Conflict, Invalid
from memd.cli.commands.editing import edited_text
from memd.cli.commands.team import accept, call_and_print, named_path, team_path
from memd.cli.invocation import Invocation

_FILE_NEEDS_EDIT = "--file goes with edit, not with {}"
_PATH_NEEDED = "{} needs the path of a memory"
_CONFLICT_MARKS = ("<<<<<<< yours\n", "=======\n", ">>>>>>> the team's\n")


def _undecided(path: str) -> Conflict:
    return Conflict(
        f"{path} still has marks of the conflict; nothing was written",
        hint="leave one text, or both put together, and none of the marks",
        path=path,
    )


def resolve(invocation: Invocation) -> int:
    """Decide a conflict or a held file, restore a version, or accept a server."""
    options = invocation.options
    if options.file and options.how != "edit":
        raise Invalid(_FILE_NEEDS_EDIT.format(options.how))
    if options.how == "accept":
        return accept(invocation)
    if not options.path:
        raise Invalid(_PATH_NEEDED.format(options.how))
    if options.how == "restore":
        return call_and_print(invocation)
    if options.how != "edit":
        return call_and_print(invocation, done=_decided(invocation))
    if options.file:
        return call_and_print(invocation, text=invocation.read(options.file))
    with edited_conflict(invocation, options.path) as text:
        return call_and_print(invocation, text=text)


@contextmanager
def edited_conflict(invocation: Invocation, path: str) -> Iterator[str | None]:
    """Open both texts of a conflict in an editor and yield the text that was saved.

    Without a conflict it is ``None``, which the daemon refuses. If the block raises MemdError, the
    text is saved in the state directory. Raises Conflict while marks are left.
    """
    files = invocation.ask("team.status", path=path)["files"]
    conflict = next((file for file in files if file["state"] == "conflict"), None)
    if conflict is None:
        yield None
        return
    both = _with_conflict_marks(conflict["ours"], conflict["theirs"])
    with edited_text(invocation, os.path.basename(conflict["path"]), both) as (text, _):
        if any(mark in text for mark in _CONFLICT_MARKS):
            raise _undecided(conflict["path"])
        yield text


def _decided(invocation: Invocation) -> str:
    """Return in words what a decision for one side does, with where a dropped text is shown."""
    path = named_path(invocation)
    if invocation.options.how == "ours":
        return f"resolved: {path} has your text"
    conflicts = invocation.ask("team.status")["conflicts"]
    # The change set that put the team's text in the place of the person's.
    change = next((each["change"] for each in conflicts if team_path(each) == path), "")
    shown = f"; yours is shown by: {invocation.command('diff', change)}" if change else ""
    return f"resolved: {path} is as the team has it{shown}"


def _with_conflict_marks(ours: str, theirs: str) -> str:
    """Return both texts as one, with conflict marks around the lines that differ."""
    our_lines, their_lines = ours.splitlines(keepends=True), theirs.splitlines(keepends=True)
    start_mark, middle_mark, end_mark = _CONFLICT_MARKS
    from difflib import SequenceMatcher  # noqa: PLC0415 - only an editor of a conflict needs it

    matcher = SequenceMatcher(None, our_lines, their_lines, autojunk=False)
    lines: list[str] = []
    for tag, our_start, our_end, their_start, their_end in matcher.get_opcodes():
        our_part, their_part = our_lines[our_start:our_end], their_lines[their_start:their_end]
        if tag == "equal":
            lines += our_part
        else:
            lines += [start_mark, *_end_with_newline(our_part)]
            lines += [middle_mark, *_end_with_newline(their_part), end_mark]
    return "".join(lines)


def _end_with_newline(lines: list[str]) -> list[str]:
    """Return lines that all end with a newline."""
    return [line if line.endswith("\n") else f"{line}\n" for line in lines]
