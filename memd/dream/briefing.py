"""What a dream asks a model: its rules, the state of the memory, and once what is wrong. Pure.

Rules of this file
- The system text depends on the directory alone and bears a mark for the cache, as the task does.
  A dream takes many turns, so a mark on the request itself moves along with the conversation.
- Whatever comes from files or people stands between tags that it cannot close.
- A mending goes on in the same conversation, with what is left of the same budget.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
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
_BUDGET = Budget(
    turns=0,  # the settings say how many
    reply_tokens=16_000,
    output_tokens=120_000,
    total_tokens=2_000_000,
    calls_per_turn=64,
    calls=800,
    # Of 30 turns a model may well look at a file before and after a change, and once more at the
    # end.
    same_call=4,
    repeats=10,
    malformed=10,
)
_MARK: Mapping[str, Any] = {"cache_control": {"type": "ephemeral"}}
_OPTIONS: Mapping[str, Any] = {"thinking": {"type": "between_tools"}, **_MARK}
_PACKAGE = "memd.dream"
_SYSTEM, _TASK, _MEND, _SINGLE = "system", "task", "mend", "single"
NEWEST = 100  # memories, of which one request shows those that have room
_SHOWN_BYTES = 60_000


@dataclass(frozen=True, slots=True)
class Brief:
    """What any model is told of a dream.

    ``model`` is its name, ``now`` is seconds since 1970, ``refusals`` are what the person did not
    want of earlier dreams.
    """

    project: Project
    settings: DreamSettings
    seen: Snapshot
    model: str
    now: float
    refusals: Sequence[RefusedEdits]

    @property
    def seconds(self) -> float:
        """How long the model may take."""
        return self.settings.max_minutes * _MINUTE * _PART

    def filled(self, name: str, flags: Mapping[str, bool], **more: str) -> str:
        """Return a template with the flags that are set and all values in place."""
        values = {
            "directory": self.project.memory_dir,
            "today": iso_time(self.now)[:10],
            "count": str(len(self.seen.headers)),
            "refused": prose.inert(_listed(map(_refusal, self.refusals), "- ")),
            "index_lines": str(limits.INDEX_LINES),
            "types": prose.fill(prose.template("types"), (), {}),
            "never": prose.template("never"),
            **more,
        }
        values["saving"] = prose.fill(prose.template("saving"), ("index",), values)
        given = [flag for flag, true in flags.items() if true]
        given += ["refused"] if self.refusals else []
        return prose.fill(prose.template(name, _PACKAGE), given, values)


def task(brief: Brief, last: float | None, log_days: Sequence[str]) -> Task:
    """Return what a model that calls tools is asked.

    ``last`` is the time of the last dream in seconds since 1970, ``log_days`` are the daily logs to
    look at, below the memory directory.
    """
    headers, settings = brief.seen.headers, brief.settings
    text = brief.filled(
        _TASK,
        {
            "last": last is not None,
            "logs": bool(log_days),
            "more": len(headers) > limits.MANIFEST_ENTRIES,
        },
        last="" if last is None else iso_time(last)[:10],
        logs=prose.inert(_listed(log_days, "     - ")),
        transcripts=_listed(transcript_folders(brief.project), "     - "),
        manifest=prose.inert(manifest(headers)) or "(nothing yet)",
        listed=str(limits.MANIFEST_ENTRIES),
        index=prose.inert(decode(brief.seen.index or b"")[: limits.INDEX_BYTES])
        or "(there is none)",
        turns=str(settings.max_turns),
        minutes=f"{settings.max_minutes:g}",
        files=str(workspace.FILES),
        index_bytes=f"{limits.INDEX_BYTES:,}",
        line_characters=str(limits.INDEX_LINE_CHARACTERS),
    )
    return Task(
        kind=KIND,
        model=brief.model,
        messages=({"role": "user", "content": [{"type": "text", "text": text, **_MARK}]},),
        tools=tools.definitions(),
        runs=tools.NAMES,
        system=({"type": "text", "text": brief.filled(_SYSTEM, {}), **_MARK},),
        budget=replace(_BUDGET, turns=settings.max_turns),
        seconds=brief.seconds,
        ask_seconds=ASK_SECONDS,
        project=brief.project.memory_dir,
        extra=_OPTIONS,
    )


def single(brief: Brief, files: Sequence[MemoryFile]) -> Task:
    """Return what a model that calls no tools is asked, in one request.

    ``files`` are the newest memories; those that have room are shown whole.
    """
    shown, room = [], _SHOWN_BYTES
    for file in files:
        room -= len(file.content)
        if room >= 0:
            shown.append((file.header.path, decode(file.content)))
    flags = {_SINGLE: True, "more": len(brief.seen.headers) > len(shown)}
    request = f"{brief.filled(_SYSTEM, flags)}\n\n{brief.filled(_SINGLE, flags)}"
    directory, seconds = brief.project.memory_dir, brief.seconds
    return single_shot.task(
        KIND, brief.model, request, directory=directory, shown=shown, seconds=seconds
    )


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


def _listed(lines: Iterable[str], lead: str) -> str:
    return "\n".join(f"{lead}{' '.join(line.split())}" for line in lines)


def _refusal(refusal: RefusedEdits) -> str:
    because = f" because: {refusal.reason}" if refusal.reason else ""
    return f"on {iso_time(refusal.at)[:10]}, {', '.join(refusal.paths)}: {refusal.wanted}{because}"


MOST = 31  # a month of them; a dream a night reads one or two
_LEVELS = 3  # logs, logs/YYYY and logs/YYYY/MM
_ENTRIES = 1_000  # of a folder
_NS = 1_000_000_000


def changed_logs(memory: str, since: float | None) -> tuple[str, ...]:
    """Return the logs below a memory directory that changed since a time, the newest first.

    ``since`` is seconds since 1970, ``None`` for ever. What cannot be looked at has none.
    """
    after = -1.0 if since is None else since * _NS
    names, result = [LOGS], list[str]()
    with suppress(MemdError), Confined(memory) as folder:
        for _ in range(_LEVELS):
            seen = {f"{n}/{one.name}": one for n in names for one in folder.entries(n, _ENTRIES)}
            names = [path for path, one in seen.items() if one.folder]
            files = (path for path in seen.keys() - set(names) if path.endswith(SUFFIX))
            result += [path for path in files if seen[path].mtime_ns > after]
    return tuple(sorted(result, reverse=True)[:MOST])
