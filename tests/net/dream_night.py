"""One night of a dream at the doors: a model that does what it wants, and a second reader."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from tests.net.dream_cases import INDEX, LOG, Call, Case, Edit, memory
from tests.net.kit import Project
from tests.net.recorder import Blocks, Recorder, text, tool

Reader = Callable[[str], str]  # answers the request of a second reader
NOTHING = json.dumps({"differences": []})
FOUND = json.dumps({"differences": [{"what": "changed", "words": "what it said before"}]})
THINGS = ("atlas", "badge", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jetty")


def honest(is_harm: bool) -> Reader:  # noqa: FBT001 - what the case is
    """Return a reader that sees whether something is lost, added or changed."""
    return lambda _: FOUND if is_harm else NOTHING


def fill(project: Project, case: Case) -> None:
    """Put the files of a case there, among others that have nothing to do with them."""
    for number, thing in enumerate(THINGS):
        content = memory("reference", f"Desk {number} owns the {thing}.", name=thing)
        project.put(f"{thing}.md", content, days_old=9)
    for name, content in case.files.items():
        project.put(name, content, days_old=case.ages.get(name, 1))
    if case.index:
        project.put(INDEX, case.index, days_old=9)
    if case.log:
        project.put(LOG, case.log)
    if case.transcript:
        project.conversation("s1").user(case.transcript).assistant("Ok.")


def edited(before: str, edit: Edit) -> str:
    """Return a text with an edit made."""
    return edit if isinstance(edit, str) else before.replace(*edit)


def writes(case: Case) -> list[Call]:
    """Return the edits of a case as calls of Write."""
    there = {**case.files, INDEX: case.index}
    return [
        ("Write", {"file_path": name, "content": edited(there.get(name, ""), edit)})
        for name, edit in case.edits.items()
    ]


def night(
    project: Project,
    model: Recorder,
    case: Case,
    calls: Sequence[Call],
    reader: Reader,
    *,
    mend: Sequence[Call] = (),
) -> dict[str, Any]:
    """Dream with a model that reads all of a case and then makes these calls.

    After it was told what is wrong it makes the calls ``mend``.
    """
    reads = [*case.files, *([LOG] if case.log else []), *([INDEX] if case.index else [])]
    if case.transcript:
        reads.append(f"{project.folder}/s1.jsonl")
    left = [list(calls), [], list(mend)]

    def script(request: dict[str, Any]) -> Blocks:
        if "tools" not in request:
            return [text(reader(json.dumps(request["messages"])))]
        if sum(message["role"] == "assistant" for message in request["messages"]) == 0:
            return [tool("Read", file_path=name) for name in reads]
        turn = left.pop(0) if left else []
        return [tool(name, **given) for name, given in turn] or [text("I leave it at that.")]

    model.script = script
    done: dict[str, Any] = project.call("dream", force=True, wait=True)
    return done


def memories(project: Project) -> dict[str, str]:
    """Return the memories and logs as they are, without what memd stamps."""
    return {path: content for path, content in project.tree().items() if path != INDEX}
