"""log, undo and why: the journal of a project; and the diffs of a change."""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from memd.base.errors import Invalid, MemdError, NotFound
from memd.base.names import INDEX, printable
from memd.base.recent import Recent
from memd.cli import output
from memd.cli.following import follow
from memd.cli.grammar import CHANGE_ID
from memd.cli.invocation import Invocation

_METHODS = ("", "memory.write", "memory.delete")  # reasons that say no more than the files
_WHAT_COLUMN = 2  # of a row
_SHOWN_FILES = 3  # of a change in a row; --json and -p have all
_PAST_CHANGES = 10  # that --follow shows first
_PAGE_LIMIT = 100  # changes
_MAX_REMEMBERED = 2_000  # printed changes, so that none is printed twice
_OTHER_WRITERS = ("external", "assistant")  # who wrote past memd
_TOPIC = "memory.changed"
_FOLLOW_OR_BEFORE = "--follow shows what comes, and --before what was: give one of them"


def log(invocation: Invocation) -> None:
    """List changes, newest first, or with ``--follow`` print each new one below the last."""
    screen = invocation.screen
    if invocation.options.follow:
        if invocation.options.before:
            raise Invalid(_FOLLOW_OR_BEFORE)
        follow(invocation, [_TOPIC], _FollowedChanges(invocation).step)
        return
    answer = invocation.request()
    sentence_of = {} if screen.as_json else _sentences(invocation, answer["changes"])
    rows = [
        _change_row(invocation, change, output.ago(change["at"]), sentence_of)
        for change in answer["changes"]
    ]
    text = output.table(rows, screen.width, _WHAT_COLUMN)
    if invocation.options.patch and not screen.as_json:
        lines = text.splitlines(keepends=True)
        ids = [change["id"] for change in answer["changes"]]
        text = "\n".join(
            line + (change_diff(invocation, each)[1] if each else "")
            for line, each in zip(lines, ids, strict=True)
        )
    if not rows:
        nothing, path = NotFound("no changes"), invocation.options.path
        screen.note(str(invocation.no_memory(path, nothing) if path else nothing))
    if answer["former"]:
        former = printable(answer["former"])
        screen.note(f"more is kept for {former}, from where these memories were moved;")
        screen.note("memctl doctor --fix takes it over")
    screen.answer(answer, text)


class _FollowedChanges:
    """Prints each change once, also after a restart of the daemon."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation
        # The id and the time of each printed change.
        self._printed: Recent[tuple[str, str], None] = Recent(_MAX_REMEMBERED)
        self._has_started = False  # whether ``step`` was called before

    def step(self) -> None:
        """Print the new changes, oldest first; the first call prints only the newest few."""
        new = self._unprinted_changes()
        for change in new:
            self._printed[change["id"], change["at"]] = None
        if not self._has_started:
            new = new[-(self._invocation.options.limit or _PAST_CHANGES) :]
        self._has_started = True
        screen = self._invocation.screen
        sentence_of = {} if screen.as_json else _sentences(self._invocation, new)
        for change in new:
            if screen.as_json:
                screen.record(change)
            else:  # an age would be wrong a minute later
                at = output.local_time(change["at"])
                row = _change_row(self._invocation, change, at, sentence_of)
                line = output.table([row], screen.width, _WHAT_COLUMN)
                screen.line(line.removesuffix("\n"))

    def _unprinted_changes(self) -> list[dict[str, Any]]:
        """Return the changes not printed yet, oldest first; the first call reads one page."""
        result: list[dict[str, Any]] = []
        before = None
        while True:
            page = self._invocation.request(limit=_PAGE_LIMIT, before=before)["changes"]
            page = [change for change in page if change["id"]]  # an imported one has none
            new = [change for change in page if (change["id"], change["at"]) not in self._printed]
            result += new
            # A page with a printed change ends the search: all older changes were printed too.
            is_last_page = not page or len(new) < len(page)
            if is_last_page or not self._has_started:
                return result[::-1]
            before = page[-1]["id"]


def _sentences(invocation: Invocation, changes: list[dict[str, Any]]) -> dict[str, str]:
    """Return the descriptions of memories by path, for a list of some changes.

    A page of the newest memories is asked for: these are the ones that the newest changes made.
    """
    if not changes or invocation.options.all:  # paths of other projects may be the same
        return {}
    with suppress(MemdError):  # the history is there also where the directory cannot be read
        memories = invocation.ask("memory.list")["memories"]
        return {each["path"]: each["description"] for each in memories}
    return {}


def _change_row(
    invocation: Invocation, change: dict[str, Any], at: str, sentence_of: dict[str, str]
) -> tuple[str, ...]:
    """Return the cells of a change in the list: id, time, what it did, and who did it."""
    where = [change["directory"]] if invocation.options.all else []
    name = invocation.screen.paint(change["id"] or "-", "bold")
    reason = "" if change["reason"] in _METHODS else f"{printable(change['reason'])}: "
    return (name, at, reason + _what(change["files"], sentence_of), _author(change), *where)


def _what(files: list[dict[str, Any]], sentence_of: dict[str, str]) -> str:
    """Return what a change did to memories; the index is named where nothing else changed."""
    shown = [file for file in files if file["path"] != INDEX] or files
    words = [_file_words(file, sentence_of) for file in shown[:_SHOWN_FILES]]
    more = [f"and {len(shown) - _SHOWN_FILES} more"] if len(shown) > _SHOWN_FILES else []
    return ", ".join([*words, *more])


def change_diff(invocation: Invocation, change: str) -> tuple[dict[str, Any], str]:
    """Return the answer of ``memory.diff`` for a change, and its unified diffs as text."""
    answer = invocation.ask("memory.diff", change=change)
    return answer, "".join(invocation.screen.diff(file["diff"]) for file in answer["files"])


def undo(invocation: Invocation) -> int:
    """Undo changes, by default the newest; return 1 if a file was left as newer work is in it.

    What is no id of a change is a memory, which gets its last version back.
    """
    options = invocation.options
    if options.as_of is not None:
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(options.as_of))
        invocation.screen.note(f"everything after {moment}")
    if options.what == "":  # an empty variable of a script is no wish to undo the newest
        raise Invalid("undo needs a change or a memory", hint="see memctl undo --help")
    change, path = options.change, None
    if options.what and CHANGE_ID.fullmatch(options.what):
        change = options.what
    elif options.what:
        path = options.what
    result = invocation.request(change=change, path=path, request_id=os.urandom(16).hex())
    if result.get("undone"):
        would = "would take" if invocation.options.dry_run else "takes"
        invocation.screen.note(f"{would} back {result['undone']}")
    return _print_undone(invocation, result, f"{path} is so already" if path else "nothing to undo")


def why(invocation: Invocation) -> None:
    """Print where a memory comes from and when it was last used."""
    answer = invocation.request()
    pairs = [
        ("memory", answer["path"] + ("" if answer["exists"] else " (not there any more)")),
        ("words of", _origin_words(answer)),
        ("shared by", _shared_words(answer.get("shared"))),
        ("first", _version_words(answer["first"])),
        ("last", _version_words(answer["last"]) if answer["last"] != answer["first"] else ""),
        ("changes", " ".join(answer["changes"])),
        ("surfaced", _surfaced_words(answer["surfaced"])),
    ]
    if answer["first"] is None:
        invocation.screen.note("the journal knows no change of it")
    invocation.screen.answer(answer, output.facts(pairs))


def _origin_words(answer: dict[str, Any]) -> str:
    """Return whose words a memory holds, and what that is worth where another program wrote it."""
    origin = str(answer.get("origin", ""))
    last = answer["last"]
    if origin != "user" or last is None or last["actor"] not in _OTHER_WRITERS:
        return origin
    return f"{origin}, it says; a note in prompts, since memd did not write it last (memctl edit)"


def _shared_words(version: dict[str, Any] | None) -> str:
    """Return in words which member a team memory is from, or "" for ``None``."""
    if version is None:
        return ""
    author = f"{version['member']} by {version['device']}"
    return f"{author}, {output.ago(version['at'])}, revision {version['revision']}"


def _surfaced_words(sighting: dict[str, Any] | None) -> str:
    """Return in words when a memory was last added to a prompt."""
    if sighting is None:
        return "never, as far back as memd remembers"
    return f"last {output.ago(sighting['at'])}, in session {sighting['session']}"


def _print_undone(invocation: Invocation, result: dict[str, Any], empty_text: str) -> int:
    """Print the result of an undo; return 1 if a file was left alone.

    ``empty_text`` is printed if no file was changed.
    """
    would = "would be " if invocation.options.dry_run else ""
    lines = [f"{would}{file['action']} {file['path']}" for file in result["files"]]
    lines += [f"merged with newer work: {path}" for path in result.get("merged") or ()]
    if result.get("change"):
        lines.append(f"undo the undo with: {invocation.command('undo', result['change'])}")
    for conflict in result["conflicts"]:
        invocation.screen.error(f"left alone: {conflict}")
    invocation.screen.answer(result, "\n".join(lines) or empty_text)
    return 1 if result["conflicts"] else 0


def _file_words(file: dict[str, Any], sentence_of: Mapping[str, str]) -> str:
    """Return what a change did to a file, as "updated Lines have 100 columns"."""
    purged = " (purged)" if file.get("purged") else ""
    return f"{file['action']} {sentence_of.get(file['path']) or file['path']}{purged}"


def _author(change: dict[str, Any]) -> str:
    """Return who made a change, made printable since an imported history may hold any text."""
    actor, client = printable(change["actor"]), printable(change.get("client") or "")
    if actor == "client":
        return client or actor
    return f"{actor} ({client})" if client and actor not in ("undo", "assistant") else actor


def _version_words(version: dict[str, Any] | None) -> str:
    """Return in words who wrote a version and when, or "" for ``None``."""
    if version is None:
        return ""
    action = f"{version['action']} by {_author(version)}"
    parts = [f"{version['change']}, {output.ago(version['at'])}: {action}"]
    names = ("session", "model", "message", "transcript", "reason")
    parts += [f"{name} {version[name]}" for name in names if version.get(name)]
    return ", ".join(parts)
