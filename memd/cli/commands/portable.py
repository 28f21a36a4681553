"""export: what goes into an archive, and what of it is left out."""

import os
from typing import Any

from memd.cli import output
from memd.cli.invocation import JOB_SECONDS, Invocation
from memd.core.names import printable

_FEW = 20  # of what is left out; --json has them all


def export(invocation: Invocation) -> None:
    """Write an archive and say what is in it."""
    options, screen = invocation.options, invocation.screen
    project = os.path.abspath(options.project) if options.project else None
    invocation.progress = lambda value: screen.passing(_progress(value))
    destination = os.path.abspath(options.dest)
    try:
        answer = invocation.request(seconds=JOB_SECONDS, dest=destination, project=project)
    finally:
        screen.passing("")
    for each in answer["left_out"][:_FEW]:
        screen.note(f"left out: {printable(each['name'])}: {printable(each['reason'])}")
    more = len(answer["left_out"][_FEW:]) + answer["left_out_more"]
    if more:
        screen.note(f"left out: {more} more; --json names them")
    for problem in answer["problems"]:
        screen.note(problem)
    names = ", ".join(f"{printable(each['name'])} ({each['files']})" for each in answer["projects"])
    pairs = [
        ("written", printable(answer["path"])),
        ("files", f"{answer['files']}, {output.size(answer['bytes'])}"),
        ("projects", names or "none"),
    ]
    screen.answer(answer, output.facts(pairs))


def _progress(value: dict[str, Any]) -> str:
    """Return which project is next."""
    done, total = value.get("projects", 0), value.get("of", 0)
    return f"project {min(done + 1, total)} of {total}"
