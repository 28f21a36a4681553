"""config and logs: the files that say what a daemon was told and what it did."""

import json
import os
import tomllib
from operator import attrgetter

from memd.cli import output
from memd.cli.invocation import Invocation
from memd.core import settings
from memd.core.options import Layer
from memd.core.text import read_object

_LOG_LINES = 50


def config(invocation: Invocation) -> int:
    """Print the user's settings file and what it changes; 1 where something in it is wrong."""
    path = invocation.places.config
    try:
        options = tomllib.loads(invocation.read(path)) if os.path.exists(path) else {}
    except tomllib.TOMLDecodeError as error:
        invocation.screen.error(f"{path} is no TOML: {error}")
        return 1
    chosen, problems = settings.parse([Layer(path, options)])
    rows = []
    for name, default, _ in settings.declared():
        value = attrgetter(name)(chosen)
        secret = value and name.endswith(("api_key", "auth_token"))
        if value != default or invocation.options.all:
            rows.append((name, "(set)" if secret else json.dumps(value, ensure_ascii=False)))
    for problem in problems:
        invocation.screen.error(problem)
    invocation.screen.note(path if options else f"{path}: nothing is set, the defaults hold")
    answer = {"file": path, "settings": dict(rows), "problems": list(problems)}
    invocation.screen.answer(answer, output.table(rows, invocation.screen.width))
    return 1 if problems else 0


def logs(invocation: Invocation) -> None:
    """Print the last lines of the log of a daemon that a client started."""
    path, screen = invocation.places.log, invocation.screen
    if not os.path.exists(path):
        screen.note(f"{path} is not there: no client started a daemon yet")
        return
    lines = invocation.read(path).splitlines()[-(invocation.options.lines or _LOG_LINES) :]
    if screen.as_json:
        screen.data({"file": path, "lines": lines})
        return
    screen.note(path)
    for line in lines:
        facts = read_object(line)
        at, level, event = (str(facts.pop(key, "")) for key in ("timestamp", "level", "event"))
        rest = " ".join(f"{key}={value}" for key, value in facts.items())
        screen.line(f"{at[:19]} {level:<8}{event} {rest}".rstrip() if event else line)
