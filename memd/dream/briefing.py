"""What a dream asks a model: its rules, the state of the memory, and once what is wrong. Pure.

Rules of this file
- The system text depends on the directory alone and bears a mark for the cache, as the task does.
  A dream takes many turns, so a mark on the request itself moves along with the conversation.
- Whatever comes from files or people stands between tags that it cannot close.
- A mending goes on in the same conversation, with what is left of the same budget.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from memd.agent import step, tools, workspace
from memd.agent.service import Ended, Task
from memd.agent.step import Budget
from memd.core import limits, prose
from memd.core.text import decode, iso_time
from memd.core.values import Header, Project
from memd.documents.index import manifest
from memd.model.port import Block
from memd.projects.project import transcript_folders

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
_SYSTEM, _TASK, _MEND = "system", "task", "mend"


def task(
    project: Project,
    headers: Sequence[Header],
    index: bytes | None,
    *,
    model: str,
    now: float,
    last: float | None,
    refused: Sequence[str],
    minutes: float,
    turns: int,
    log_days: Sequence[str],
) -> Task:
    """Return the run of a dream.

    ``now`` and ``last``, the time of the last dream, are seconds since 1970. ``refused`` says what
    the person did not want of earlier ones, a sentence each. ``log_days`` are the daily logs to
    look at, below the memory directory.
    """
    directory = project.memory_dir
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
        "index": prose.inert(decode(index or b"")[: limits.INDEX_BYTES]) or "(there is none)",
        "refused": prose.inert(_listed(refused, "- ")),
        "turns": str(turns),
        "minutes": f"{minutes:g}",
        "files": str(workspace.FILES),
        "index_lines": str(limits.INDEX_LINES),
        "index_bytes": f"{limits.INDEX_BYTES:,}",
        "line_characters": str(limits.INDEX_LINE_CHARACTERS),
    }
    said = {
        "last": last is not None,
        "logs": bool(log_days),
        "more": len(headers) > limits.MANIFEST_ENTRIES,
        "refused": bool(refused),
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
        budget=_budget(turns),
        seconds=minutes * _MINUTE * _PART,
        ask_seconds=ASK_SECONDS,
        project=directory,
        extra=_OPTIONS,
    )


def mend(asked: Task, ended: Ended, problems: Sequence[str]) -> Task:
    """Return the run that goes on where one ended, told what is wrong with its work."""
    budget = asked.budget
    left = replace(
        budget,
        turns=budget.turns - ended.turns,
        output_tokens=budget.output_tokens - ended.usage.output,
        total_tokens=budget.total_tokens - step.total(ended.usage),
        calls=budget.calls - ended.calls,
    )
    values = {"problems": prose.inert(_listed(problems, "- ")), "turns": str(left.turns)}
    text = prose.fill(prose.template(_MEND, _PACKAGE), (), values)
    told: Block = {"type": "text", "text": text}
    said = [*asked.messages, *ended.messages]
    if ended.text.strip():
        said += [
            {"role": "assistant", "content": [{"type": "text", "text": ended.text}]},
            {"role": "user", "content": [told]},
        ]
    else:  # it ended without a word: what follows belongs to what it was told last
        said[-1] = {**said[-1], "content": [*said[-1]["content"], told]}
    return replace(asked, messages=tuple(said), budget=left)


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


def _listed(lines: Sequence[str], lead: str) -> str:
    return "\n".join(f"{lead}{' '.join(line.split())}" for line in lines)
