"""Write a dream's requests to a model: the task, and once the problems to correct. Pure.

Rules of this file
- The system text depends only on the directory. It and the task have a cache mark; a third one on
  the request moves along with the conversation, since a dream takes many turns.
- Text from files or people stands between tags that it cannot close.
- Correcting continues the same conversation with the rest of its budget.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memd.agent import workspace
from memd.agent.service import Budget, RunEnd, Task, single_shot, total
from memd.base import limits, prose
from memd.base.errors import MemdError
from memd.base.names import LOGS
from memd.base.text import decode, iso_time, sha256
from memd.base.values import MemoryFile, Project, Snapshot
from memd.dream import workspace as choosing
from memd.dream.run import MINUTES
from memd.model.port import Block
from memd.projects.project import transcript_folders
from memd.state.proposals import ProposedEdit
from memd.store.directory import Directory
from memd.store.index import manifest

KIND = "dream"
ASK_SECONDS = 180.0
_SECONDS = 0.95 * 60 * MINUTES  # of the model; judging and writing need the rest
_BUDGET = Budget(
    turns=30,
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
_CACHE_MARK: Mapping[str, Any] = {"cache_control": {"type": "ephemeral"}}
_OPTIONS: Mapping[str, Any] = {"thinking": {"type": "between_tools"}, **_CACHE_MARK}
_PACKAGE = "memd.dream"
_SYSTEM, _TASK, _CORRECTION, _SINGLE = "system", "task", "mend", "single"  # names of templates
MEMORIES_OF_ONE_REQUEST = 100  # the newest; a request without tools shows those that fit
_SHOWN_LOG_BYTES = 20_000  # of daily logs in a request without tools
_SHOWN_BYTES = 60_000  # of the memories in a request without tools


class Brief(Struct, frozen=True):
    """The facts about a dream that go into its requests.

    ``seen`` is the memory directory as it is. ``model`` is the model's name, ``now`` is in seconds
    since 1970, and ``refusals`` are edits of earlier dreams that the person refused.
    """

    project: Project
    seen: Snapshot
    model: str
    now: float
    refusals: Sequence[ProposedEdit]

    def fill_template(self, name: str, flags: Mapping[str, bool], **further_values: str) -> str:
        """Return the template ``name`` with its values filled in.

        ``flags`` say which optional parts to include; ``further_values`` are further values.
        """
        values = {
            "directory": self.project.memory_dir,
            "today": iso_time(self.now)[:10],
            "count": str(len(self.seen.headers)),
            "refused": prose.inert(_list_lines(map(_refusal_line, self.refusals), "- ")),
            "index_lines": str(limits.INDEX_LINES),
            "types": prose.fill(prose.template("types"), (), {}),
            "never": prose.template("never"),
            **further_values,
        }
        values["saving"] = prose.fill(prose.template("saving"), ("index",), values)
        included_parts = [flag for flag, is_set in flags.items() if is_set]
        if self.refusals:
            included_parts.append("refused")
        return prose.fill(prose.template(name, _PACKAGE), included_parts, values)


def agent_task(brief: Brief, last: float | None, log_days: Sequence[str]) -> Task:
    """Return the agent task of a dream for a model that calls tools.

    ``last`` is the time of the last dream in seconds since 1970. ``log_days`` are the paths of the
    daily logs to read, below the memory directory.
    """
    headers = brief.seen.headers
    index_text = decode(brief.seen.index or b"")[: limits.INDEX_BYTES]
    text = brief.fill_template(
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
        index=prose.inert(index_text) or "(there is none)",
        turns=str(_BUDGET.turns),
        minutes=str(MINUTES),
        files=str(workspace.FILES),
        index_bytes=f"{limits.INDEX_BYTES:,}",
        line_characters=str(limits.INDEX_LINE_CHARACTERS),
    )
    return Task(
        kind=KIND,
        model=brief.model,
        messages=({"role": "user", "content": [{"type": "text", "text": text, **_CACHE_MARK}]},),
        tools=choosing.definitions(),
        runs=choosing.NAMES,
        system=({"type": "text", "text": brief.fill_template(_SYSTEM, {}), **_CACHE_MARK},),
        budget=_BUDGET,
        seconds=_SECONDS,
        ask_seconds=ASK_SECONDS,
        project=brief.project.memory_dir,
        extra=_OPTIONS,
    )


def single_request_task(brief: Brief, files: Sequence[MemoryFile], logs: Mapping[str, str]) -> Task:
    """Return the agent task of a dream for a model that calls no tools, as one request.

    ``files`` are the newest memories; the first 60,000 bytes of them are shown, as whole files, and
    so are the first 20,000 of the daily ``logs``.
    """
    log_texts, bytes_left = list[str](), _SHOWN_LOG_BYTES
    for path, text in logs.items():
        bytes_left -= len(text.encode())
        if bytes_left >= 0:
            log_texts.append(f'<log path="{path}">\n{prose.inert(text)}\n</log>')
    shown, bytes_left = [], _SHOWN_BYTES
    for file in files:
        # A file that does not fit uses up the rest, so only the newest files are shown.
        bytes_left -= len(file.content)
        if bytes_left >= 0:
            shown.append((file.header.path, decode(file.content)))
    flags = {
        _SINGLE: True,
        "more": len(brief.seen.headers) > len(shown),
        "logs": bool(log_texts),
    }
    task = brief.fill_template(_SINGLE, flags, logs="\n\n".join(log_texts))
    request = f"{brief.fill_template(_SYSTEM, flags)}\n\n{task}"
    directory = brief.project.memory_dir
    return single_shot.task(
        KIND, brief.model, request, directory=directory, shown=shown, seconds=_SECONDS
    )


def correction_task(request: Task, ended: RunEnd, problems: Sequence[str]) -> Task:
    """Return the task that continues an ended run and asks the model to correct problems.

    ``request`` is the task of the ended run; the new task has the rest of its budget.
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
    text = prose.fill(prose.template(_CORRECTION, _PACKAGE), flags, values)
    report: Block = {"type": "text", "text": text}
    messages = [*request.messages, *ended.messages]
    if ended.text.strip():
        messages += [
            {"role": "assistant", "content": [{"type": "text", "text": ended.text}]},
            {"role": "user", "content": [report]},
        ]
    else:  # it ended without text, so the last message is a user message and takes the problems
        messages[-1] = {**messages[-1], "content": [*messages[-1]["content"], report]}
    return replace(request, messages=tuple(messages), budget=remaining)


def _list_lines(lines: Iterable[str], lead: str) -> str:
    """Return texts as a list with one line for each; every line begins with ``lead``."""
    return "\n".join(f"{lead}{' '.join(line.split())}" for line in lines)


def _refusal_line(edit: ProposedEdit) -> str:
    """Return when a person refused which edit, and why."""
    verb = "remove" if edit.content is None else "change" if edit.base else "create"
    wanted = f"merge {edit.path} into {edit.merged_into}" if edit.merged_into else ""
    wanted = wanted or f"{verb} {edit.path}{f': {edit.reason}' if edit.reason else ''}"
    because = f" because: {edit.refusal}" if edit.refusal else ""
    return f"on {iso_time(edit.decided or 0.0)[:10]}: {wanted}{because}"


MOST_LOGS = 31  # daily logs of a month; a nightly dream reads one or two
_DAYS = 400  # whose logs are looked for


def new_logs(memory: str, distilled: Mapping[str, str], now: float) -> dict[str, str]:
    """Return the texts of the logs in a memory directory that are not distilled, newest first.

    ``distilled`` are the hashes of those that are, by path; ``now`` is in seconds since 1970. There
    are 31 at most; a directory that cannot be read has none.
    """
    tomorrow = datetime.fromtimestamp(now, UTC) + timedelta(days=1)  # it has begun elsewhere
    result: dict[str, str] = {}
    with suppress(MemdError), Directory(memory) as directory:
        for days in range(_DAYS):
            path = f"{tomorrow - timedelta(days):{LOGS}/%Y/%m/%Y-%m-%d.md}"
            with suppress(MemdError):  # one that is too large is no source
                read = directory.read(path, limits.LOG_BYTES)
                if read and distilled.get(path) != sha256(decode(read[0]).encode()):
                    result[path] = decode(read[0])
            if len(result) == MOST_LOGS:
                break
    return result
