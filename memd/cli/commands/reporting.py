"""report and usage: a summary of memd's work, and how often memories are used."""

from collections.abc import Iterable, Mapping
from typing import Any

from memd.cli import output
from memd.cli.invocation import Invocation
from memd.core.errors import MemdError

_MAX_MEMORIES = 3  # memories of one list; --json has ten
_HEADINGS = ("SURFACED", "SESSIONS", "READ", "ACTED", "LAST", "", "MEMORY")
_LAST_MEMBERS = ("last_surfaced", "last_read", "last_acted")
_WEEK_DAYS = 7


class TwoSpansError(MemdError):
    """A week and another number of days were asked for."""

    exit_status = 2

    def __init__(self) -> None:
        super().__init__("--week is seven days: leave it or --days out")


def report(invocation: Invocation) -> None:
    """Print a summary of memd's work, without the lines for which there is nothing."""
    options = invocation.options
    if options.week and options.days not in (None, _WEEK_DAYS):
        raise TwoSpansError
    answer = invocation.request(cwd=invocation.cwd if options.here else None)
    days = "day" if answer["days"] == 1 else f"{answer['days']} days"
    span = f"{days} since {answer['since'][:16]}Z"
    pairs = [("the last", span), *_memory_pairs(answer), *_use_pairs(answer), *_work_pairs(answer)]
    invocation.screen.answer(answer, output.facts(pairs))


def usage(invocation: Invocation) -> None:
    """Print how often each memory was used."""
    names, screen = invocation.options.path, invocation.screen
    paths = [invocation.memory(name) for name in names]
    answer = invocation.request(paths=paths or None)
    missing = {*paths} - {memory["path"] for memory in answer["memories"]}
    # Only an answer with all memories can show that one does not exist.
    has_all = not invocation.options.unused and not answer.get("next")
    if missing and has_all:
        raise invocation.no_memory(min(missing))
    since = answer["since"]
    note = f"counted since {since[:10]}" if since else "nothing was counted here yet"
    rows = [_usage_row(memory) for memory in answer["memories"]]
    lines = []
    if rows:
        lines = [output.table([_HEADINGS, *rows], screen.width).rstrip("\n"), note]
    else:
        screen.note("no memory is unused" if invocation.options.unused and since else note)
    if answer.get("next"):
        lines.append("there are more: --limit, --order and --unused say which are shown")
    screen.answer(answer, "\n".join(lines))


def _memory_pairs(answer: Mapping[str, Any]) -> Iterable[tuple[str, object]]:
    """Yield the pairs about what happened to memories: learnt, changed, merged, removed, unused."""
    for name in ("learnt", "changed", "merged", "removed"):
        yield name, _count_and_names(answer[name])
    yield "unused", _count_and_names(answer["unused"])
    if answer["unused"]["count"]:
        yield "", "in 90 days on which memd ran: memctl usage --unused"


def _use_pairs(answer: Mapping[str, Any]) -> Iterable[tuple[str, object]]:
    """Yield the pairs about how often memories were shown, read and acted on."""
    surfaced = answer["surfaced"]
    if surfaced["times"]:
        memories, sessions = surfaced["memories"], surfaced["sessions"]
        words = f"{_count_noun(memories, 'memory')} in {_count_noun(sessions, 'session')}"
        yield "surfaced", f"{_count_noun(surfaced['times'], 'time')}: {words}"
    for name, words in (("read", "read"), ("acted", "acted on")):
        yield words, _count_noun(answer[name], "time") if answer[name] else ""
    for number, memory in enumerate(answer["most"][:_MAX_MEMORIES]):
        times = memory["surfaced"] + memory["read"] + memory["acted"]
        yield "" if number else "most used", f"{_memory_name(memory)}, {_count_noun(times, 'time')}"


def _work_pairs(answer: Mapping[str, Any]) -> Iterable[tuple[str, object]]:
    """Yield the pairs about suggestions, dreams, cost and questions to the person."""
    counts = [(count, name) for name, count in answer["suggestions"].items() if count]
    yield "suggestions", ", ".join(f"{count} {name}" for count, name in counts)
    if answer["suggestions"]["open"]:
        yield "", "those that are open wait for you: memctl suggestions"
    yield "dreams", answer["dreams"] or ""
    if answer["tokens"]:
        yield "spent", f"${answer['dollars']:.4f}, {answer['tokens']:,} tokens"
    for question in answer["questions"]:
        place = question["cwd"] or question["directory"]
        waits = f"{_count_noun(question['proposals'], 'proposal')} for you in {place}"
        yield "questions", f"{waits}: memctl dream review"


def _count_and_names(counted: Mapping[str, Any]) -> str:
    """Return the count of memories and the first few names, or "" if there are none."""
    names = [_memory_name(memory) for memory in counted["memories"][:_MAX_MEMORIES]]
    more_count = counted["count"] - len(names)
    more = [f"and {more_count} more"] if more_count > 0 else []
    return f"{counted['count']}: {', '.join([*names, *more])}" if names else ""


def _memory_name(memory: Mapping[str, Any]) -> str:
    """Return a memory's path with its project."""
    return f"{memory['path']} ({memory['project']})"


def _count_noun(count: int, noun: str) -> str:
    """Return a count with a noun, in the plural unless it is 1."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def _usage_row(memory: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of a memory in the table of usage."""
    last = max((memory[name] for name in _LAST_MEMBERS if memory[name]), default=None)
    counts = (str(memory[name]) for name in ("surfaced", "sessions", "read", "acted"))
    unused = "unused" if memory["unused"] else ""
    return (*counts, output.ago(last) if last else "never", unused, memory["path"])
