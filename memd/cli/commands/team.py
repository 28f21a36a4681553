"""team …: join a team, sync with it, and decide what waits for a person (not conflicts).

Colleagues' texts are printed in diffs, where each line begins with a mark, or on one line behind a
word of memd's.
"""

import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

from memd.base.errors import Invalid
from memd.base.text import iso_time, one_line
from memd.cli import output
from memd.cli.asking import can_ask, person_agrees, read_secret
from memd.cli.invocation import Invocation

_IDLE = "nothing to do: equal with the team"
_IDLE_BUT = "nothing to do, but {} held or in conflict wait for you: memctl team status"
_SYNC_SECONDS = 3600.0  # a first pull of 5,000 entries over a slow line
_LINE_CHARACTERS = 200
_MAX_PATHS = 10  # on one line
_CODE_HINT, _YES_HINT = "--code-file FILE brings the code", "--yes does it without asking"
_NOBODY_TO_ASK = "nothing was done: nobody is here to ask; {}"
_NO_CODE = "nothing was done: the code is empty"
_JOINED = "nothing was done: the project has joined this team already"
_NEW_CODE_HINT = "if its token is no good any more, --code-file FILE brings a new code"
_REVOKE = "an administrator of the server ends it: memd-team token list, memd-team token revoke"
_NO_REASON = "team remove needs --reason: the others want to know why"
# The server's last answer in words, by its HTTP status.
_REFUSALS = {
    "401": "the server does not take this device's token; memctl team join with a new code",
    "403": "the server does not let this member do that, as a reader who changed a file",
    "404": "the server does not know the repository, or this member in it",
}
_EQUAL_BUT = "equal with the team, but for what waits for you"
_STATES = {
    "equal": "equal with the team",
    "changed": "changes wait to be sent",
    "unanswered": "changes are sent, and the server has not answered yet",
    "paused": "paused",
    "waits": "nothing is done until: memctl team resolve accept",
    "off": "off",
}


def join(invocation: Invocation) -> int:
    """Show what joining does, ask, and join; return 1 if declined or if something waits."""
    options, screen = invocation.options, invocation.screen
    preview = invocation.request(preview=True)["preview"]
    if preview["joined"] and not options.code_file and not can_ask(invocation):
        raise Invalid(_JOINED, hint=_NEW_CODE_HINT)
    if not screen.as_json:
        screen.line(output.facts(_preview_pairs(preview)))
    if not _confirmed(invocation, "join?"):
        return 1
    code = _code(invocation, needed=preview["code_needed"])
    result = _call_with_progress(invocation, code=code)
    joined = result["joined"]
    pairs = [
        ("joined", f"{joined['remote']} on {joined['server']}"),
        ("as", f"{joined['member']} by {joined['device']}, {joined['role']}"),
    ]
    screen.answer(result, output.facts(pairs) + "\n".join(_sync_lines(invocation, joined["sync"])))
    return _print_waiting(invocation, joined["sync"])


def _code(invocation: Invocation, *, needed: bool) -> str:
    """Return the invitation code from the file or the terminal, "" if none is needed."""
    if invocation.options.code_file:
        code = invocation.read(invocation.options.code_file).strip()
    elif not needed:
        return ""
    elif can_ask(invocation):
        code = read_secret(invocation, "invitation code: ")
    else:
        raise Invalid(_NOBODY_TO_ASK.format(_CODE_HINT))
    if not code:
        raise Invalid(_NO_CODE)
    return code


def leave(invocation: Invocation) -> None:
    """Leave the team."""
    result = invocation.request()
    lines = [f"left {result['remote']} on {result['server']}"]
    if not result["revoked"]:
        lines += [f"the token is still good on the server: {result['why']}", _REVOKE]
    if result["change"]:
        lines.append(f"undo the removal with: {invocation.command('undo', result['change'])}")
    invocation.screen.answer(result, "\n".join(lines))


def status(invocation: Invocation) -> None:
    """Print how the project differs from its team's memories, and what waits."""
    answer = invocation.request()
    if invocation.options.path:
        if not answer["files"]:
            invocation.screen.note("it does not differ from what the team has")
        text = "".join(invocation.screen.diff(file["diff"]) for file in answer["files"])
        invocation.screen.answer(answer, text)
        return
    state = _STATES.get(answer["state"], answer["state"])
    if answer["state"] == "equal" and (answer["held"] or answer["conflicts"]):
        state = _EQUAL_BUT
    seconds = answer["until"] - time.time()
    is_waiting = answer["until"] and seconds > 0
    retry = f"; tried again in {output.duration(seconds)}" if is_waiting else ""
    pairs = [
        ("team", f"{answer['remote']} on {answer['server']}"),
        ("member", f"{answer['member']} by {answer['device']}"),
        ("state", f"{state}{_why_waiting(answer)}{retry}"),
        ("entries", answer["entries"]),
        ("taken", _age(answer["pulled_at"])),
        ("sent", _age(answer["pushed_at"])),
        ("goes out", _first_paths(answer["outgoing"])),
        *(
            ("conflict", f"{team_path(entry)}: memctl team resolve")
            for entry in answer["conflicts"]
        ),
        *(("held", _held_words(entry)) for entry in answer["held"]),
        *(("left out", f"{team_path(entry)}: {entry['rule']}") for entry in answer["left_out"]),
    ]
    invocation.screen.answer(answer, output.facts(pairs))


def log(invocation: Invocation) -> None:
    """List the versions of one memory on the server, or the members."""
    answer, screen = invocation.request(), invocation.screen
    rows = [
        (
            screen.paint(_one_line(member["member"]), "bold"),
            f"{member['entries']} entries",
            f"last {_age(member['at'])}",
            ", ".join(map(_one_line, member["devices"])),
        )
        for member in answer["members"]
    ]
    rows += [
        (
            screen.paint(str(version["revision"]), "bold"),
            _age(version["at"]),
            _author(version),
            _size_or_removal(version),
        )
        for version in answer["versions"]
    ]
    screen.answer(answer, output.table(rows, screen.width))


def _author(version: Mapping[str, Any]) -> str:
    """Return the member who wrote a version, with the device if the server knows it."""
    member: str = version["member"]
    return f"{member} by {version['device']}" if version["device"] else member


def _size_or_removal(version: Mapping[str, Any]) -> str:
    """Return the size of a version, or why it removed the memory."""
    if version["hash"]:
        return output.size(version["size"])
    return "removed: " + _one_line(version["reason"])


def share(invocation: Invocation) -> int:
    """Show a private memory, ask, and move it to the team."""
    options, screen = invocation.options, invocation.screen
    if not options.yes:
        read = invocation.ask("memory.read", path=options.path)
        screen.note(f"{read['path']}, which everybody in the team will read:\n\n{read['content']}")
    if not _confirmed(invocation, "share this?"):
        return 1
    result = invocation.request(request_id=os.urandom(16).hex())
    undo = invocation.command("undo", result["change"])
    screen.answer(result, f"shared as {result['path']}; undo with: {undo}")
    return 0


def remove(invocation: Invocation) -> int:
    """Remove a memory for all members."""
    if not invocation.options.reason:
        raise Invalid(_NO_REASON)
    return call_and_print(invocation)


def accept(invocation: Invocation) -> int:
    """Accept a server that may have lost data, after asking the person."""
    waits = invocation.ask("team.status")["waits"]
    if not waits:
        invocation.screen.note("nothing waits to be accepted")
        return 0
    invocation.screen.note(waits)
    if not _confirmed(invocation, "go on with this server?"):
        return 1
    return call_and_print(invocation)


def _confirmed(invocation: Invocation, question: str) -> bool:
    """Return whether ``--yes`` or the person confirms. Raises Invalid if nobody can."""
    if invocation.options.yes:
        return True
    if not can_ask(invocation):
        raise Invalid(_NOBODY_TO_ASK.format(_YES_HINT))
    if person_agrees(invocation, question):
        return True
    invocation.screen.note("nothing was done")
    return False


def _call_with_progress(invocation: Invocation, **overrides: object) -> Any:
    """Call the command's method, showing its progress, and return the result."""
    screen = invocation.screen
    invocation.progress = lambda value: screen.show_temporary(f"{value['files']} files of the team")
    try:
        return invocation.request(seconds=_SYNC_SECONDS, **overrides)
    finally:
        screen.show_temporary("")


def call_and_print(invocation: Invocation, done: str = "", **overrides: object) -> int:
    """Call the command's method and print the result; return 1 if something waits for a person.

    ``done`` says in words what the command has done beside the sync.
    """
    result = _call_with_progress(invocation, **overrides)
    waiting = result["waiting"]
    idle = _IDLE_BUT.format(waiting) if waiting else _IDLE
    text = "\n".join(_sync_lines(invocation, result, done))
    invocation.screen.answer(result, text or idle)
    return _print_waiting(invocation, result)


def _print_waiting(invocation: Invocation, result: Mapping[str, Any]) -> int:
    """Print the conflicts and the question that a sync left; return 1 if there are any."""
    for conflict in result["conflicts"]:
        path = team_path(conflict)
        invocation.screen.error(f"conflict: {path}: memctl team resolve {path} HOW")
    if result["waits"]:
        invocation.screen.error(f"{result['waits']}: memctl team resolve accept")
    return 1 if result["conflicts"] or result["waits"] else 0


def _sync_lines(invocation: Invocation, sync: Mapping[str, Any], done: str = "") -> Iterator[str]:
    """Yield the lines that report what a sync took, merged, removed, sent and left."""
    for words in ("taken", "merged", "removed", "sent"):
        if sync[words]:
            yield f"{words}: {_first_paths(sync[words])}"
    yield from (f"held: {_held_words(file)}" for file in sync["held"])
    yield from (f"left out: {team_path(file)}: {file['rule']}" for file in sync["left_out"])
    if done:
        yield done
    if sync["left"]:
        yield f"{sync['left']} more go out later"
    if sync["change"]:
        what = "undo" if done else "undo what came"
        yield f"{what} with: {invocation.command('undo', sync['change'])}"


def _preview_pairs(preview: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Yield the pairs that tell the person what joining will do."""
    yield "server", preview["server"]
    yield "repository", preview["remote"]
    yield "project", preview["root"]
    yield "device", preview["device"]
    sends = preview["sends"]
    size = output.size(preview["bytes"])
    words = f"{len(sends)} files, {size}: {_first_paths(sends)}"
    yield "sends", words if sends else "nothing yet"
    yield from (("keeps back", _held_words(file)) for file in preview["left"])
    if preview["joined"]:
        yield "code", "a new one replaces the token: the project has joined this team already"
    elif not preview["code_needed"]:
        yield "code", "none is needed: this device has a token"


def _held_words(entry: Mapping[str, Any]) -> str:
    """Return a held file's path and why it is not sent."""
    detail = f" ({_one_line(entry['detail'])})" if entry["detail"] else ""
    return f"{team_path(entry)}: {entry['reason'].replace('_', ' ')}{detail}"


def _why_waiting(answer: Mapping[str, Any]) -> str:
    """Return why a sync waits, from the server's last answer, or "" if it does not."""
    status = answer["paused"].removeprefix("push ")
    reason = answer["waits"] or _REFUSALS.get(status, answer["paused"])
    return f": {_one_line(reason)}" if reason else ""


def named_path(invocation: Invocation) -> str:
    """Return the path that the command line names, below ``team/``, for display."""
    return _one_line(f"team/{invocation.options.path.removeprefix('team/')}")


def team_path(entry: Mapping[str, Any]) -> str:
    """Return a team memory's path for display."""
    return _one_line(f"team/{entry['key']}")


def _first_paths(paths: list[str]) -> str:
    """Return the first paths with commas, and how many more there are."""
    more = f" and {len(paths) - _MAX_PATHS} more" if len(paths) > _MAX_PATHS else ""
    return ", ".join(paths[:_MAX_PATHS]) + more


def _age(at: float) -> str:
    """Return how long ago a time in seconds since 1970 was, "never" for 0."""
    return output.ago(iso_time(at)) if at else "never"


def _one_line(text: str) -> str:
    """Return a colleague's text on one line of at most _LINE_CHARACTERS."""
    return one_line(text, _LINE_CHARACTERS)
