"""What a dream asks a model: its rules, the state of the memory, and once what is wrong. Pure.

Rules of this file
- The system text depends on the directory alone and bears a mark for the cache, as the task does.
  A dream takes many turns, so a mark on the request itself moves along with the conversation.
- Whatever comes from files or people stands between tags that it cannot close.
- A mending goes on in the same conversation, with what is left of the same budget.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memd.agent import workspace
from memd.agent.service import Budget, RunEnd, Task, single_shot, tools, total
from memd.core import limits, prose
from memd.core.errors import MemdError
from memd.core.names import LOGS, SUFFIX
from memd.core.settings import DreamSettings
from memd.core.text import decode, iso_time
from memd.core.values import MemoryFile, Project, Snapshot
from memd.documents.index import manifest
from memd.files.confined import Confined
from memd.model.port import Block
from memd.projects.project import transcript_folders
from memd.state.changes import RefusedEdits

KIND = "dream"
ASK_SECONDS = 180.0
_PART = 0.95  # of the time is the model's; the rest is for judging and writing
_MINUTE = 60.0
_REPLY_TOKENS = 16_000
_OUTPUT_TOKENS = 120_000
_TOTAL_TOKENS = 2_000_000
_CALLS_PER_TURN = 64
_CALLS = 800
# Of 30 turns a model may well look at a file before and after a change, and once more at the end.
_SAME_CALL = 4
_MISTAKES = 10
_MARK: Mapping[str, Any] = {"cache_control": {"type": "ephemeral"}}
_OPTIONS: Mapping[str, Any] = {"thinking": {"type": "between_tools"}, **_MARK}
_PACKAGE = "memd.dream"
_SYSTEM, _TASK, _MEND, _SINGLE = "system", "task", "mend", "single"
NEWEST = 100  # memories, of which one request shows those that have room
_SHOWN_BYTES = 60_000


def task(
    project: Project,
    seen: Snapshot,
    *,
    model: str,
    now: float,
    last: float | None,
    refusals: Sequence[RefusedEdits],
    settings: DreamSettings,
    log_days: Sequence[str],
) -> Task:
    """Return what a model is asked.

    ``now`` and ``last``, the time of the last dream, are seconds since 1970. ``refusals`` are what
    the person did not want of earlier ones, ``log_days`` the daily logs to look at, below the
    memory directory.
    """
    directory, headers = project.memory_dir, seen.headers
    system = prose.fill(
        prose.template(_SYSTEM, _PACKAGE), (), {"directory": directory, **_guidance()}
    )
    values = {
        "directory": directory,
        "today": iso_time(now)[:10],
        "last": "" if last is None else iso_time(last)[:10],
        "logs": prose.inert(_listed(log_days, "     - ")),
        "transcripts": _listed(transcript_folders(project), "     - "),
        "manifest": prose.inert(manifest(headers)) or "(nothing yet)",
        "listed": str(limits.MANIFEST_ENTRIES),
        "count": str(len(headers)),
        "index": prose.inert(decode(seen.index or b"")[: limits.INDEX_BYTES]) or "(there is none)",
        "refused": prose.inert(_listed(map(_refusal, refusals), "- ")),
        "turns": str(settings.max_turns),
        "minutes": f"{settings.max_minutes:g}",
        "files": str(workspace.FILES),
        "index_lines": str(limits.INDEX_LINES),
        "index_bytes": f"{limits.INDEX_BYTES:,}",
        "line_characters": str(limits.INDEX_LINE_CHARACTERS),
    }
    said = {
        "last": last is not None,
        "logs": bool(log_days),
        "more": len(headers) > limits.MANIFEST_ENTRIES,
        "refused": bool(refusals),
    }
    flags = [name for name, true in said.items() if true]
    text = prose.fill(prose.template(_TASK, _PACKAGE), flags, values)
    return Task(
        kind=KIND,
        model=model,
        messages=({"role": "user", "content": [{"type": "text", "text": text, **_MARK}]},),
        tools=tools.definitions(),
        runs=tools.NAMES,
        system=({"type": "text", "text": system, **_MARK},),
        budget=_budget(settings.max_turns),
        seconds=settings.max_minutes * _MINUTE * _PART,
        ask_seconds=ASK_SECONDS,
        project=directory,
        extra=_OPTIONS,
    )


def single(
    project: Project,
    files: Sequence[MemoryFile],
    *,
    count: int,
    model: str,
    now: float,
    refusals: Sequence[RefusedEdits],
    settings: DreamSettings,
) -> Task:
    """Return what a model that calls no tools is asked, in one request.

    ``files`` are the newest of ``count`` memories; those that have room are shown whole.
    """
    shown, room = [], _SHOWN_BYTES
    for file in files:
        room -= len(file.content)
        if room >= 0:
            shown.append((file.header.path, decode(file.content)))
    directory = project.memory_dir
    values = {
        "directory": directory,
        "today": iso_time(now)[:10],
        "count": str(count),
        "refused": prose.inert(_listed(map(_refusal, refusals), "- ")),
        **_guidance(),
    }
    said = {_SINGLE: True, "refused": bool(refusals), "more": count > len(shown)}
    flags = [name for name, true in said.items() if true]
    parts = (
        prose.fill(prose.template(name, _PACKAGE), flags, values) for name in (_SYSTEM, _SINGLE)
    )
    seconds = settings.max_minutes * _MINUTE * _PART
    request = "\n\n".join(parts)
    return single_shot.task(KIND, model, request, directory=directory, shown=shown, seconds=seconds)


def mend(request: Task, ended: RunEnd, problems: Sequence[str]) -> Task:
    """Return the run that goes on where one ended, told what is wrong with its work."""
    budget = request.budget
    left = replace(
        budget,
        turns=budget.turns - ended.turns,
        output_tokens=budget.output_tokens - ended.usage.output,
        total_tokens=budget.total_tokens - total(ended.usage),
        calls=budget.calls - ended.calls,
    )
    values = {"problems": prose.inert(_listed(problems, "- ")), "turns": str(left.turns)}
    flags = () if request.tools else (_SINGLE,)
    text = prose.fill(prose.template(_MEND, _PACKAGE), flags, values)
    reported: Block = {"type": "text", "text": text}
    said = [*request.messages, *ended.messages]
    if ended.text.strip():
        said += [
            {"role": "assistant", "content": [{"type": "text", "text": ended.text}]},
            {"role": "user", "content": [reported]},
        ]
    else:  # it ended without a word: what follows belongs to what it was told last
        said[-1] = {**said[-1], "content": [*said[-1]["content"], reported]}
    return replace(request, messages=tuple(said), budget=left)


def _budget(turns: int) -> Budget:
    return Budget(
        turns=turns,
        reply_tokens=_REPLY_TOKENS,
        output_tokens=_OUTPUT_TOKENS,
        total_tokens=_TOTAL_TOKENS,
        calls_per_turn=_CALLS_PER_TURN,
        calls=_CALLS,
        same_call=_SAME_CALL,
        repeats=_MISTAKES,
        malformed=_MISTAKES,
    )


def _guidance() -> dict[str, str]:
    values = {"index_lines": str(limits.INDEX_LINES)}
    return {
        "types": prose.fill(prose.template("types"), (), {}),
        "never": prose.template("never"),
        "saving": prose.fill(prose.template("saving"), ("index",), values),
    }


def _listed(lines: Iterable[str], lead: str) -> str:
    return "\n".join(f"{lead}{' '.join(line.split())}" for line in lines)


def _refusal(refusal: RefusedEdits) -> str:
    because = f" because: {refusal.reason}" if refusal.reason else ""
    return f"on {iso_time(refusal.at)[:10]}, {', '.join(refusal.paths)}: {refusal.wanted}{because}"


MOST = 31  # a month of them; a dream a night reads one or two
_LEVELS = 2  # logs/YYYY/MM
_ENTRIES = 1_000  # of a folder
_NS = 1_000_000_000


def changed_logs(memory: str, since: float | None) -> tuple[str, ...]:
    """Return the logs below a memory directory that changed since a time, the newest first.

    ``since`` is seconds since 1970, ``None`` for ever. What cannot be looked at has none.
    """
    result: list[str] = []
    after = -1.0 if since is None else since * _NS
    try:
        with Confined(memory) as folder:
            waiting = [(0, LOGS)]
            while waiting:
                level, name = waiting.pop()
                for seen in folder.entries(name, _ENTRIES):
                    path = f"{name}/{seen.name}"
                    if seen.folder and level < _LEVELS:
                        waiting.append((level + 1, path))
                    elif seen.name.endswith(SUFFIX) and seen.mtime_ns > after and not seen.folder:
                        result.append(path)
    except MemdError:
        return ()
    return tuple(sorted(result, reverse=True)[:MOST])
