"""list, show, search and add: a person's commands for memories."""

import os
from typing import Any

from memd.base.errors import Conflict, Invalid, Refused
from memd.base.names import SUFFIX, TEAM
from memd.cli import output
from memd.cli.commands.journal import change_diff
from memd.cli.grammar import CHANGE_ID
from memd.cli.invocation import Invocation

_NOTHING_TO_ADD = "add needs what to remember"
_TWO_TEXTS = "the words and --body are both the text"
_ADD_HINT = 'memctl add "Never deploy on a Friday", or memctl add PATH.md --description … --body …'
_EXISTS = "there is a memory {} already"
_EXISTS_HINT = "memctl edit {0}, or memctl add {0} --update with the parts to change"
_FILE_AND_PARTS = (
    "--file is the whole memory and needs its path; leave --name, --type and the like out"
)


def _origin(memory: dict[str, Any]) -> str:
    """Return the origin in parentheses, or "" for the person's or the assistant's words."""
    origin = memory.get("origin", "")
    return "" if origin in {"", "user", "assistant"} else f" ({origin})"


def _description_words(memory: dict[str, Any]) -> str:
    """Return a memory's description with its origin, and whether the memory is damaged."""
    damage = "damaged: " if memory["damaged"] else ""
    return f"{damage}{memory['description']}{_origin(memory)}"


def list_memories(invocation: Invocation) -> None:
    """List the memories of the project."""
    listed = _list_all_pages(invocation)
    screen = invocation.screen
    rows = [
        (
            _description_words(memory),
            memory["age"],
            screen.paint(output.cut(memory["name"] or memory["path"], screen.share), "bold"),
        )
        for memory in listed["memories"]
    ]
    if not rows:
        screen.note(f"no memories in {listed['memory_dir']}")
    for problem in listed.get("problems") or ():
        screen.note(problem)
    cut = listed["index"]["cut"]
    if cut:
        screen.note(f"the index is longer than a prompt takes: it is cut by {cut}")
    screen.answer(listed, output.table(rows, screen.width, cut_column=0))


def _list_all_pages(invocation: Invocation) -> dict[str, Any]:
    """Return the last answer of ``memory.list``, with the memories of all pages."""
    answer: dict[str, Any] = invocation.request()
    while answer.get("next"):
        page = invocation.request(after=answer["next"])
        page["memories"] = [*answer["memories"], *page["memories"]]
        answer = page
    return answer


def show(invocation: Invocation) -> None:
    """Print one memory as it is, or what one change did."""
    what = invocation.options.what
    if CHANGE_ID.fullmatch(what):
        invocation.screen.answer(*change_diff(invocation, what))
        return
    read = invocation.request()
    invocation.screen.text(read, read["content"])


def search(invocation: Invocation) -> int:
    """Search the memories of the project; return 1 when nothing was found, as grep does."""
    answer = invocation.request(query=" ".join(invocation.options.query))
    screen = invocation.screen
    lines = []
    for hit in answer["hits"]:
        row = (hit["description"], screen.paint(hit["path"], "bold"))
        lines.append(output.table([row], screen.width, cut_column=0).removesuffix("\n"))
        snippet = [line for line in hit["snippet"].splitlines() if line.strip()]
        if [line.strip(" .") for line in snippet] != [hit["description"].strip(" .")]:
            lines += [output.cut(f"    {line}", screen.width) for line in snippet]
    screen.answer(answer, "\n".join(lines))
    if not answer["hits"]:
        screen.note("no memory has these words")
        return 1
    return 0


def add(invocation: Invocation) -> None:
    """Write a memory from a sentence, from its parts or from a file."""
    options = invocation.options
    path, sentence = _path_and_sentence(options.word)
    params = _text_params(invocation, sentence)
    if not path and options.name and not sentence:
        path = f"{options.name}{SUFFIX}"
    if not path and not params.get("body"):
        raise Invalid(_NOTHING_TO_ADD, hint=_ADD_HINT)
    base_hash = options.base_hash
    if base_hash is None and not options.update:
        base_hash = ""  # the write fails if the file exists
    scope = options.scope or None
    if not scope and not options.agent:
        scope = scope_of(path)
    try:
        written = invocation.request(
            path=path or None,
            base_hash=base_hash,
            scope=scope,
            request_id=os.urandom(16).hex(),
            **params,
        )
    except Conflict as error:
        if base_hash == "" or sentence:
            known = path or str(error.facts.get("path", ""))
            hint = _EXISTS_HINT.format(known)
            raise Refused(_EXISTS.format(known), hint=hint) from error
        raise
    invocation.screen.answer(written, write_sentence(invocation, written))


def _path_and_sentence(words: list[str]) -> tuple[str, str]:
    """Return the path and the sentence that the words of ``add`` are; "" for each that is not."""
    if len(words) == 1 and words[0].endswith(SUFFIX) and not any(map(str.isspace, words[0])):
        return words[0], ""
    return "", " ".join(words)


def scope_of(path: str) -> str | None:
    """Return ``"team"`` for a path of the team's folder, else ``None``, the default scope."""
    return "team" if path.startswith(TEAM) else None


def write_sentence(invocation: Invocation, written: dict[str, Any]) -> str:
    """Return the line that reports a write, with how to undo it."""
    if not written.get("change"):
        return f"{written['status']} {written['path']}"
    changed = f"{written['status']} {written['path']}"
    if written["status"] == "unchanged":  # the text stayed, and the change is that of the index
        changed = f"updated the line of {written['path']} in the index"
    return f"{changed}; undo with: {invocation.command('undo', written['change'])}"


def _text_params(invocation: Invocation, sentence: str) -> dict[str, Any]:
    """Return the parameters for the text: ``content`` of ``--file``, or the ``body``.

    The body is the sentence or ``--body``; it is read from standard input if it is ``-``, and from
    a pipe if neither these nor ``--update`` are given. Raises Invalid.
    """
    options = invocation.options
    if options.file:
        if any((options.name, options.description, options.type, options.body, sentence)):
            raise Invalid(_FILE_AND_PARTS)
        return {"content": invocation.read(options.file)}
    body = options.body
    if sentence:
        if body is not None:
            raise Invalid(_TWO_TEXTS, hint=_ADD_HINT)
        body = sentence
    is_piped = body is None and not options.update and not invocation.surroundings.stdin.isatty()
    if is_piped or body == "-":
        body = invocation.read("-")
    return {"body": body}
