"""Write a dream's requests to a model: the task, and once the problems to correct. Pure.

Rules of this file
- The system text depends only on the directory. It and the task have a cache mark; a third one on
  the request moves along with the conversation, since a dream takes many turns.
- Text from files or people stands between tags that it cannot close.
- Correcting continues the same conversation with the rest of its budget.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

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
_PART = 0.95  # the model's share of the dream's time; judging and writing need the rest
_MINUTE = 60.0
_BUDGET = Budget(
    turns=0,  # set from the settings
    reply_tokens=16_000,
    output_tokens=120_000,
    total_tokens=2_000_000,
    calls_per_turn=64,
    calls=800,
    # A model may read one file before and after a change, and again at the end.
    same_call=4,
    repeats=10,
    malformed=10,
)
_MARK: Mapping[str, Any] = {"cache_control": {"type": "ephemeral"}}
_OPTIONS: Mapping[str, Any] = {"thinking": {"type": "between_tools"}, **_MARK}
_PACKAGE = "memd.dream"
_SYSTEM, _TASK, _MEND, _SINGLE = "system", "task", "mend", "single"
NEWEST = 100  # memories that a request without tools chooses from
_SHOWN_BYTES = 60_000


class Brief(Struct, frozen=True):
    """The facts about a dream that go into its requests.

    ``seen`` is the memory directory as it is. ``model`` is the model's name, ``now`` is in seconds
    since 1970, and ``refusals`` are edits of earlier dreams that the person refused.
    """

    project: Project
    settings: DreamSettings
    seen: Snapshot
    model: str
    now: float
    refusals: Sequence[RefusedEdits]

    @property
    def seconds(self) -> float:
        """How many seconds the model may take."""
        return self.settings.max_minutes * _MINUTE * _PART

    def filled(self, name: str, flags: Mapping[str, bool], **more: str) -> str:
        """Return the template ``name`` with its values filled in.

        ``flags`` say which optional parts to include; ``more`` are further values.
        """
        values = {
            "directory": self.project.memory_dir,
            "today": iso_time(self.now)[:10],
            "count": str(len(self.seen.headers)),
            "refused": prose.inert(_list_lines(map(_refusal_line, self.refusals), "- ")),
            "index_lines": str(limits.INDEX_LINES),
            "types": prose.fill(prose.template("types"), (), {}),
            "never": prose.template("never"),
            **more,
        }
        values["saving"] = prose.fill(prose.template("saving"), ("index",), values)
        included = [flag for flag, is_set in flags.items() if is_set]
        if self.refusals:
            included.append("refused")
        return prose.fill(prose.template(name, _PACKAGE), included, values)


def task(brief: Brief, last: float | None, log_days: Sequence[str]) -> Task:
    """Return the agent task of a dream for a model that calls tools.

    ``last`` is the time of the last dream in seconds since 1970. ``log_days`` are the paths of the
    daily logs to read, below the memory directory.
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
        logs=prose.inert(_list_lines(log_days, "     - ")),
        transcripts=_list_lines(transcript_folders(brief.project), "     - "),
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
    """Return the agent task of a dream for a model that calls no tools, as one request.

    ``files`` are the newest memories; the first 60,000 bytes of them are shown, as whole files.
    """
    shown, bytes_left = [], _SHOWN_BYTES
    for file in files:
        # A file that does not fit uses up the rest, so only the newest files are shown.
        bytes_left -= len(file.content)
        if bytes_left >= 0:
            shown.append((file.header.path, decode(file.content)))
    flags = {_SINGLE: True, "more": len(brief.seen.headers) > len(shown)}
    request = f"{brief.filled(_SYSTEM, flags)}\n\n{brief.filled(_SINGLE, flags)}"
    directory, seconds = brief.project.memory_dir, brief.seconds
    return single_shot.task(
        KIND, brief.model, request, directory=directory, shown=shown, seconds=seconds
    )


def mend(request: Task, ended: RunEnd, problems: Sequence[str]) -> Task:
    """Return the task that continues an ended run and asks the model to correct problems.

    It has the rest of the run's budget.
    """
    budget = request.budget
    remaining = replace(
        budget,
        turns=budget.turns - ended.turns,
        output_tokens=budget.output_tokens - ended.usage.output,
        total_tokens=budget.total_tokens - total(ended.usage),
        calls=budget.calls - ended.calls,
    )
    values = {"problems": prose.inert(_list_lines(problems, "- ")), "turns": str(remaining.turns)}
    flags = () if request.tools else (_SINGLE,)
    text = prose.fill(prose.template(_MEND, _PACKAGE), flags, values)
    reported: Block = {"type": "text", "text": text}
    messages = [*request.messages, *ended.messages]
    if ended.text.strip():
        messages += [
            {"role": "assistant", "content": [{"type": "text", "text": ended.text}]},
            {"role": "user", "content": [reported]},
        ]
    else:  # it ended without text, so the last message is a user message and takes the problems
        messages[-1] = {**messages[-1], "content": [*messages[-1]["content"], reported]}
    return replace(request, messages=tuple(messages), budget=remaining)


def _list_lines(lines: Iterable[str], lead: str) -> str:
    """Return texts as a list with one line for each, which begins with ``lead``."""
    return "\n".join(f"{lead}{' '.join(line.split())}" for line in lines)


def _refusal_line(refusal: RefusedEdits) -> str:
    """Return when a person refused which edits, and why."""
    because = f" because: {refusal.reason}" if refusal.reason else ""
    return f"on {iso_time(refusal.at)[:10]}, {', '.join(refusal.paths)}: {refusal.wanted}{because}"


MOST = 31  # logs, as for a month; a nightly dream reads one or two
_LEVELS = 3  # logs, logs/YYYY and logs/YYYY/MM
_ENTRIES = 1_000  # of a folder
_NS = 1_000_000_000


def changed_logs(memory: str, since: float | None) -> tuple[str, ...]:
    """Return the paths of the logs in a memory directory that changed since a time, newest first.

    ``since`` is in seconds since 1970; ``None`` returns all of them, up to 31. A directory that
    cannot be read has none.
    """
    after = -1.0 if since is None else since * _NS
    folders, result = [LOGS], list[str]()
    with suppress(MemdError), Confined(memory) as directory:
        for _ in range(_LEVELS):
            entries = {
                f"{folder}/{entry.name}": entry
                for folder in folders
                for entry in directory.entries(folder, _ENTRIES)
            }
            folders = [path for path, entry in entries.items() if entry.folder]
            files = (path for path in entries.keys() - set(folders) if path.endswith(SUFFIX))
            result += [path for path in files if entries[path].mtime_ns > after]
    return tuple(sorted(result, reverse=True)[:MOST])
