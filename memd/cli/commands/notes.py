"""notes show|list|path|edit|rm: a person's commands for the notes of conversations."""

from collections.abc import Sequence
from typing import Any

from memd.base.errors import MemdError, NotFound
from memd.base.text import iso_time, one_line
from memd.cli import output
from memd.cli.commands.editing import run_editor
from memd.cli.invocation import Invocation

_LINE_CHARACTERS = 400  # of a title; --json has all of it
_MAX_SESSIONS = 1000  # whose notes are deleted at a time
_FOREIGN_NOTES = "foreign_notes"  # the error for another program's notes, which memd never writes


def _no_notes(cwd: str) -> NotFound:
    return NotFound(
        f"no conversation in {cwd} has notes",
        hint="they are written once a conversation has grown; memctl doctor says what hinders them",
        cwd=cwd,
    )


def show(invocation: Invocation) -> None:
    """Print the notes of a session, or one section of them."""
    read, screen = _read_notes(invocation), invocation.screen
    section = invocation.options.section
    if section:
        title = _find_title(section, read)
        read["content"] = _split_sections(read["content"], _titles(read))[title]
        read["sections"] = [each for each in read["sections"] if each["title"] == title]
    if read["stale"]:
        screen.note("the conversation has gone on since these notes were written")
    screen.text(read, read["content"])


def list_(invocation: Invocation) -> None:
    """List the sessions of the project that have notes."""
    listed, screen = invocation.request(), invocation.screen
    rows = [
        (
            screen.paint(notes["session"], "bold"),
            output.ago(iso_time(notes["at"])),
            f"{notes['tokens']:,} tokens",
            one_line(notes["title"], _LINE_CHARACTERS),
        )
        for notes in listed["notes"]
    ]
    if not rows:
        screen.note(str(_no_notes(invocation.cwd)))
    screen.answer(listed, output.table(rows, screen.width))


def path(invocation: Invocation) -> None:
    """Print the path of a session's notes."""
    read = _read_notes(invocation)
    invocation.screen.answer({"path": read["path"]}, read["path"])


def edit(invocation: Invocation) -> None:
    """Open the file of a session's notes in an editor; once it is changed memd never writes it."""
    session = _chosen_session(invocation)
    path = invocation.ask("notes.read", session_id=session)["path"]
    run_editor(invocation, path)
    words = f"{path}: if you changed it, memd leaves it to you and writes it no more"
    invocation.screen.answer({"session": session, "path": path}, words)


def remove(invocation: Invocation) -> int:
    """Delete the notes of a session, or of all of the project; return 1 if the session has none."""
    all_sessions, deleted = invocation.options.all, list[str]()
    if all_sessions:
        sessions = [str(notes["session"]) for notes in _list_notes(invocation, _MAX_SESSIONS)]
    else:
        sessions = [_chosen_session(invocation)]
    for session in sessions:
        try:
            if invocation.request(session_id=session)["deleted"]:
                deleted.append(session)
        except MemdError as error:
            if not all_sessions or error.kind != _FOREIGN_NOTES:
                raise
            invocation.screen.note(str(error))
    words = "\n".join(f"deleted the notes of {session}" for session in deleted)
    invocation.screen.answer({"deleted": deleted}, words or "nothing was deleted")
    return 0 if deleted or all_sessions else 1


def _read_notes(invocation: Invocation) -> dict[str, Any]:
    """Return the notes of the chosen session, as ``notes.read`` answers."""
    read: dict[str, Any] = invocation.request(session_id=_chosen_session(invocation))
    return read


def _chosen_session(invocation: Invocation) -> str:
    """Return the session of the command line, or the newest one. Raises NotFound."""
    session: str | None = getattr(invocation.options, "session", None)
    if session:
        return session
    for newest in _list_notes(invocation, 1):
        return str(newest["session"])
    raise _no_notes(invocation.cwd)


def _list_notes(invocation: Invocation, limit: int) -> list[dict[str, Any]]:
    """Return the newest sessions with notes, at most ``limit``."""
    listed: list[dict[str, Any]] = invocation.ask("notes.list", limit=limit)["notes"]
    return listed


def _find_title(section: str, read: dict[str, Any]) -> str:
    """Return the title that equals or alone begins with ``section``. Raises NotFound."""
    titles = _titles(read)
    folded = section.casefold()
    exact = [title for title in titles if title.casefold() == folded]
    matches = exact or [title for title in titles if title.casefold().startswith(folded)]
    if len(matches) != 1:
        raise NotFound(f"no section is {section}; there are: {', '.join(titles)}")
    return matches[0]


def _titles(read: dict[str, Any]) -> list[str]:
    """Return the titles of the sections in notes."""
    return [each["title"] for each in read["sections"]]


def _split_sections(content: str, titles: Sequence[str]) -> dict[str, str]:
    """Return the text of each section by its title; "" has the text above the first one.

    Titles count in their order; any other heading belongs to the text.
    """
    parts = dict.fromkeys(("", *titles), "")
    next_titles, title = [*titles, ""], ""
    for line in content.splitlines(keepends=True):
        if line.rstrip() == f"# {next_titles[0]}":
            title = next_titles.pop(0)
        parts[title] += line
    return parts
