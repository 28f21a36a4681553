"""config and logs: the user's settings file and the daemon's log."""

import json
import os
from collections import deque
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter

from memd.base import settings, settings_file
from memd.base.limits import LOG_LEVELS
from memd.base.places import SYSTEM_POLICY
from memd.base.text import read_object
from memd.cli import output
from memd.cli.following import GrowingFile
from memd.cli.invocation import Invocation
from memd.cli.output import Screen

_LOG_LINES = 50  # without the option --lines


def config(invocation: Invocation) -> int:
    """Print the socket and the settings that differ from their defaults; 1 if they have problems.

    With ``--socket`` print only the socket's path.
    """
    path, socket = invocation.places.config, invocation.places.socket
    if invocation.options.socket_path:
        invocation.screen.answer({"socket": socket}, socket)
        return 0
    options, _ = settings_file.read(path)
    parsed_settings, problems = settings_file.load(path, SYSTEM_POLICY)
    rows = [("socket", socket)]
    for name, default, _ in settings.declared():
        value = attrgetter(name)(parsed_settings)
        # Keys and tokens are not printed, only that they are set.
        is_secret = value and name.endswith(("api_key", "auth_token"))
        if value != default or invocation.options.all:
            shown_value = "(set)" if is_secret else json.dumps(value, ensure_ascii=False)
            rows.append((name, shown_value))
    for problem in problems:
        invocation.screen.error(problem)
    invocation.screen.note(path if options else f"{path}: nothing is set, the defaults hold")
    answer = {"file": path, "socket": socket, "settings": dict(rows[1:])}
    answer["problems"] = list(problems)
    invocation.screen.answer(answer, output.table(rows, invocation.screen.width))
    return 1 if problems else 0


def logs(invocation: Invocation) -> None:
    """Print the last lines of a log, and follow it if asked to. Raises Refused."""
    options, screen = invocation.options, invocation.screen
    path = options.file or invocation.places.log
    levels = LOG_LEVELS[LOG_LEVELS.index(options.level) :] if options.level else ()
    passes = partial(_passes, levels)
    # Standard input is never rotated, so it is read below like a file.
    if options.follow and path != "-":
        log = GrowingFile(path)
        last_lines = deque(filter(passes, log.lines()), options.lines or _LOG_LINES)
        for line in chain(last_lines, filter(passes, log.follow(screen))):
            _print_line(screen, line)
        return
    if path != "-" and not os.path.exists(path):
        screen.note(f"{path} is not there: no client started a daemon yet")
        return
    source = invocation.surroundings.stdin if path == "-" else invocation.read(path).splitlines()
    lines: Iterable[str] = (line.rstrip("\n") for line in filter(passes, source))
    if not options.follow:
        lines = deque(lines, options.lines or _LOG_LINES)
        if screen.as_json:
            screen.data({"file": path, "lines": [*lines]})
            return
        screen.note(path)
    for line in lines:
        _print_line(screen, line)


def _passes(levels: Sequence[str], line: str) -> bool:
    """Return whether a line has one of the levels; every line passes if there are none."""
    return not levels or read_object(line).get("level") in levels


def _print_line(screen: Screen, line: str) -> None:
    """Print one line of a log, with ``--json`` as a JSON object."""
    facts = read_object(line)
    if screen.as_json:
        screen.record(facts or {"text": line})
        return
    at, level, event = (str(facts.pop(name, "")) for name in ("timestamp", "level", "event"))
    if not event:  # a line that memd's log did not write
        screen.line(line)
        return
    other_facts = " ".join(f"{name}={value}" for name, value in facts.items())
    screen.line(f"{at[:19]} {level:<8}{event} {other_facts}".rstrip())
