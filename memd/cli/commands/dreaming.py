"""dream, its reports, and dream review|accept|reject: consolidation and a person's say in it."""

import time
from functools import partial

from memd.cli import dream_page
from memd.cli.commands.journal import painted
from memd.cli.commands.learning import work
from memd.cli.invocation import Invocation
from memd.core.errors import MemdError

_ALONE = ("last", "status")
_OF_DREAM = ("force", "wait", *_ALONE)


class OptionsExcludeError(MemdError):
    """Options of dream were given that do not go together."""

    exit_status = 2

    def __init__(self, option: str, other: str) -> None:
        super().__init__(f"--{option} cannot stand beside {other}")


def dream(invocation: Invocation) -> int:
    """Consolidate the memories of the project, or say what a dream did or when one is due."""
    options = invocation.options
    given = [name for name in _OF_DREAM if getattr(options, name)]
    for name in set(given) & set(_ALONE):
        if len(given) > 1:
            others = " ".join(f"--{other}" for other in given if other != name)
            raise OptionsExcludeError(name, others)
    if options.last:
        return _last(invocation)
    if options.status:
        return _status(invocation)
    return work(invocation, "dream", {"force": options.force or None})


def review(invocation: Invocation) -> None:
    """Print what dreams wanted and were not let do."""
    options = _of_verb(invocation).options
    found = invocation.ask("dream.review", proposal=options.proposal, all=options.all or None)
    if not found["proposals"]:
        invocation.screen.note("no proposals" if options.all else "no open proposals")
    diff = partial(painted, invocation)
    page = dream_page.review(found["proposals"], invocation.screen.paint, diff)
    invocation.screen.answer(found, page)


def accept(invocation: Invocation) -> int:
    """Do what a proposal wants; 1 when a file was left because somebody changed it."""
    options = _of_verb(invocation).options
    done = invocation.ask("dream.accept", proposal=options.proposal, paths=options.file or None)
    for left in done["left"]:
        invocation.screen.error(f"left alone: {left['path']}: {left['reason']}")
    invocation.screen.answer(done, dream_page.accepted(done))
    return 1 if done["left"] else 0


def reject(invocation: Invocation) -> None:
    """Drop what a proposal wants."""
    options = _of_verb(invocation).options
    done = invocation.ask(
        "dream.reject",
        proposal=options.proposal,
        paths=options.file or None,
        reason=options.reason,
    )
    invocation.screen.answer(done, dream_page.rejected(done))


def _last(invocation: Invocation) -> int:
    found = invocation.ask("dream.last")
    if not found["job"]:
        invocation.screen.note("no dream has run here")
    invocation.screen.answer(found, found["markdown"])
    return 0


def _status(invocation: Invocation) -> int:
    found = invocation.ask("dream.status")
    screen = invocation.screen
    screen.answer(found, dream_page.status(found, screen.paint, time.time(), screen.width))
    return 0


def _of_verb(invocation: Invocation) -> Invocation:
    """Return the invocation unless it has options of ``dream`` before the verb."""
    for name in _OF_DREAM:
        if getattr(invocation.options, name):
            raise OptionsExcludeError(name, invocation.options.run.words[-1])
    return invocation
