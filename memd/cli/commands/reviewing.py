"""review: what waits for the person, and their decisions.

Texts of conversations, models and agents are printed as quotations or behind words of memd's, made
harmless: an assistant may read them too.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from memd.base.errors import Invalid
from memd.base.text import one_line
from memd.cli import output
from memd.cli.commands.conflicts import edited_conflict
from memd.cli.commands.editing import edited_text
from memd.cli.invocation import Invocation
from memd.text.quoting import neutralise

_LINE_CHARACTERS = 400  # characters of one text in the list; show and --json have all of it
_SECONDS = 30 * 60.0  # a decision about a team's file waits for its server
_STYLES = {"created": "green", "changed": "cyan", "removed": "red"}
_OPTIONS = ("all", "kind")
_CANNOT_COMBINE = "--{} cannot stand before {}"


def review(invocation: Invocation) -> None:
    """Print what waits for the person."""
    answer = invocation.request()
    if not answer["items"]:
        everywhere = "" if invocation.options.all else " in this project; --all looks in every one"
        invocation.screen.note(f"nothing waits for you{everywhere}")
    pages = ("".join(_item_lines(item, invocation)) for item in answer["items"])
    invocation.screen.answer(answer, "\n".join(pages))


def show(invocation: Invocation) -> None:
    """Print one item with its whole text."""
    item = _item(invocation)
    invocation.screen.answer(item, "".join(_item_lines(item, invocation, whole=True)))


def decide(invocation: Invocation) -> int:
    """Decide an item; return 1 if a file was left because somebody changed it."""
    answer, params = invocation.options.run.words[-1], dict[str, Any]()
    _check_options(invocation)
    if answer != "edit":
        return _decide(invocation, answer)
    if invocation.options.file:
        params["text"] = invocation.read(invocation.options.file)
    item = _item(invocation)
    if item["kind"] == "suggestion":
        answer = "accept"
    if params or answer not in item["choices"]:
        return _decide(invocation, answer, **params)
    if item["kind"] == "team":
        with edited_conflict(invocation, item["id"]) as text:
            return _decide(invocation, answer, text=text)
    with edited_text(invocation, "suggestion.md", item["text"]) as edited:
        if edited.saved:
            return _decide(invocation, answer, text=edited.text)
    invocation.screen.note("nothing was done")
    return 1


def _decide(invocation: Invocation, answer: str, **params: Any) -> int:
    """Call the method that decides, print its result, and return the status."""
    result = invocation.request(seconds=_SECONDS, choice=answer, **params)
    screen = invocation.screen
    for file in result["left"]:
        screen.error(f"stays: {_line(file['path'])}: {_line(file['reason'])}")
    lines = [f"{answer} {_line(path)}" for path in result["paths"]]
    lines += [f"saved as {_line(result['path'])}"] if result["path"] else []
    if result["change"]:
        lines.append(f"undo with: {invocation.command('undo', result['change'])}")
    words = {"open": "still open", "partly": "decided, accepted in part"}
    lines.append(f"{_line(result['id'])} is {words.get(result['state'], result['state'])}")
    screen.answer(result, "\n".join(lines))
    return 1 if result["left"] else 0


def _item(invocation: Invocation) -> Mapping[str, Any]:
    """Return the item that the command names."""
    _check_options(invocation)
    answer = invocation.ask("review.list", id=invocation.options.id)
    item: Mapping[str, Any] = answer["items"][0]
    return item


def _check_options(invocation: Invocation) -> None:
    """Raise Invalid for options of ``review`` before a verb."""
    for name in _OPTIONS:
        if getattr(invocation.options, name, None):
            raise Invalid(_CANNOT_COMBINE.format(name, invocation.options.run.words[-1]))


def _item_lines(
    item: Mapping[str, Any], invocation: Invocation, *, whole: bool = False
) -> Iterator[str]:
    """Yield the lines about one item: what it is, its text, its files, and how to decide it."""
    screen = invocation.screen
    facts = [output.ago(item["at"]) if item["at"] else "", item["type"], _line(item["origin"])]
    if item["state"] != "open":
        facts.append(item["state"])
    if getattr(invocation.options, "all", False):
        facts.append(f"in {_line(item['project'])}" if item["project"] else "")
    about = ", ".join(filter(None, facts))
    yield f"{screen.paint(_line(item['id']), 'bold')}  {_line(item['title'])} ({about})\n"
    if whole:
        # First all that is hidden becomes visible: a person decides by what they see.
        lines = item["text"].split("\n") if item["text"] else ()
        yield from (f"  > {neutralise(output.escape(line))}".rstrip() + "\n" for line in lines)
    elif item["text"]:
        yield f'"{_line(item["text"])}"\n'
    yield from (f"why: {_line(reason)}\n" for reason in item["why"])
    for file in item["files"]:
        yield from _file_lines(file, screen)
    if item["choices"]:
        first, *others = item["choices"]
        command = invocation.command("review", first, item["id"])
        yield f"decide with: {command}{', or ' if others else ''}{', '.join(others)}\n"


def _file_lines(file: Mapping[str, Any], screen: output.Screen) -> Iterator[str]:
    """Yield the lines about one file of an item, and its diff."""
    action = screen.paint(file["action"], _STYLES.get(file["action"], "bold"))
    reason = f": {_line(file['reason'])}" if file["reason"] else ""
    notes = [file["state"]] if file["state"] != "open" else []
    notes += ["stale: somebody changed it since"] if file["stale"] else []
    painted_notes = screen.paint(f" ({', '.join(notes)})", "yellow") if notes else ""
    yield f"\n{action} {_line(file['path'])}{reason}{painted_notes}\n"
    if file["diff"]:
        yield screen.diff(file["diff"])


def _line(text: str) -> str:
    """Return a text on one line, made harmless."""
    return neutralise(one_line(neutralise(text), _LINE_CHARACTERS))
