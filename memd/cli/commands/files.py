"""config and logs: the user's settings file and the daemon's log."""

import argparse
import json
import os
from collections import deque
from collections.abc import Iterable
from itertools import chain
from operator import attrgetter

from memd.cli import output
from memd.cli.following import GrowingFile
from memd.cli.invocation import Invocation
from memd.cli.output import Screen
from memd.core import settings, settings_file
from memd.core.events import LOG_LEVELS
from memd.core.instants import written
from memd.core.options import Layer
from memd.core.places import SYSTEM_POLICY
from memd.core.text import read_object

_LOG_LINES = 50  # without the option --lines


def config(invocation: Invocation) -> int:
    """Print the socket and the settings that differ from their defaults; 1 if they have problems.

    With ``--socket`` print only the socket's path.
    """
    path, socket = invocation.places.config, invocation.places.socket
    if invocation.options.socket_path:
        invocation.screen.answer({"socket": socket}, socket)
        return 0
    sources = [_load(path), _load(SYSTEM_POLICY)]
    options = sources[0][0].options
    parsed_settings, problems = settings.parse([layer for layer, _ in sources])
    problems = tuple(problem for _, problem in sources if problem) + problems
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


def _load(path: str) -> tuple[Layer, str]:
    """Return the options of a settings file that hold, and why others do not, "" if all do."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return Layer(path, {}), ""
    except OSError as error:
        return Layer(path, {}), f"{path} cannot be read: {error.strerror}"
    options, problem = settings_file.read(path, status, private=True)
    return Layer(path, options), problem


def logs(invocation: Invocation) -> None:
    """Print the last lines of a log, and follow it if asked to. Raises InputUnreadableError."""
    options, screen = invocation.options, invocation.screen
    path, log_filter = options.file or invocation.places.log, LogFilter(options)
    # Standard input is never rotated, so it is read below like a file.
    if options.follow and path != "-":
        log = GrowingFile(path)
        last_lines = deque(filter(log_filter.passes, log.lines()), options.lines or _LOG_LINES)
        for line in chain(last_lines, filter(log_filter.passes, log.follow(screen))):
            _print_line(screen, line)
        return
    if path != "-" and not os.path.exists(path):
        screen.note(f"{path} is not there: no client started a daemon yet")
        return
    source = invocation.surroundings.stdin if path == "-" else invocation.read(path).splitlines()
    lines: Iterable[str] = (line.rstrip("\n") for line in filter(log_filter.passes, source))
    if not options.follow:
        lines = deque(lines, options.lines or _LOG_LINES)
        if screen.as_json:
            screen.data({"file": path, "lines": [*lines]})
            return
        screen.note(path)
    for line in lines:
        _print_line(screen, line)


class LogFilter:
    """Filters lines of a log by the options; without any of them, every line passes."""

    def __init__(self, options: argparse.Namespace) -> None:
        # The levels that pass, the given one and those above it; all levels pass if it is empty.
        self._levels = LOG_LEVELS[LOG_LEVELS.index(options.level) :] if options.level else ()
        self._facts = {"event": options.event, "client": options.client}  # values that must match
        self._since = options.since  # seconds since 1970
        self._passes_all = not (self._levels or self._since or any(self._facts.values()))

    def passes(self, line: str) -> bool:
        """Return whether a line matches; a line that is no JSON object matches no option."""
        if self._passes_all:
            return True
        facts = read_object(line)
        if not facts or (self._levels and facts.get("level") not in self._levels):
            return False
        if any(facts.get(name) != value for name, value in self._facts.items() if value):
            return False
        timestamp = written(str(facts.get("timestamp"))) or 0
        return not self._since or timestamp >= self._since


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
