"""rule add|list|test|off: rules that refuse a tool's call or have the person asked."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from memd.base.text import iso_time, read_object
from memd.cli import output
from memd.cli.invocation import Invocation
from memd.cli.output import Screen

_TEXT_MEMBERS = ("command", "file_path", "url")  # a tool's input has its text in one of them
_STYLES = {"on": "green", "off": "dim", "changed": "yellow", "gone": "yellow"}
_WORDS_BY_STATE = {
    "changed": "it does not hold: the memory says something else than what you agreed to",
    "gone": "it does not hold: the memory is gone",
}


def add(invocation: Invocation) -> None:
    """Switch a rule on and print the words that the person agrees to."""
    result = invocation.request(path=invocation.memory(invocation.options.memory))
    rule = result["rule"]
    lines = [
        *_rule_lines(rule, invocation.screen),
        f"switch it off with: memctl rule off {rule['id']}",
    ]
    invocation.screen.answer(result, "\n".join(lines))
    if result["change"]:
        undo = invocation.command("undo", result["change"])
        invocation.screen.note(f"its line was written: {undo} takes it back")
    invocation.screen.note("it is asked where memctl setup CLIENT --rules was run")


def list_(invocation: Invocation) -> None:
    """Print the rules, and the memories that could be one."""
    answer, screen = invocation.request(), invocation.screen
    if not (answer["rules"] or answer["candidates"]):
        screen.note("there are no rules here, and no memory that could be one")
    pages = ["\n".join(_rule_lines(rule, screen)) for rule in answer["rules"]]
    pages += ["\n".join(_candidate_lines(each)) for each in answer["candidates"]]
    screen.answer(answer, "\n\n".join(pages))


def test(invocation: Invocation) -> int:
    """Print the rules' answer to a call; return 1 unless it is allowed."""
    tool, text = invocation.options.tool or "Bash", invocation.options.input
    tool_input = read_object(text) or dict.fromkeys(_TEXT_MEMBERS, text)
    result = invocation.request(tool=tool, input=tool_input)
    words = "allow"
    if result["rule"]:
        words = f"{result['answer']}: {result['words']} ({result['rule']})"
    invocation.screen.answer(result, words)
    return int(result["answer"] != "allow")


def off(invocation: Invocation) -> None:
    """Switch a rule off."""
    rule = invocation.request()
    words = f"is off; memctl rule add {rule['path']} turns it on"
    if rule["state"] == "gone":
        words = "is forgotten"
    invocation.screen.answer(rule, f"{rule['id']} {words}")


def _rule_lines(rule: Mapping[str, Any], screen: Screen) -> Iterator[str]:
    """Yield the lines about a rule: its state and check, its memory, and how often it answered."""
    state = screen.paint(rule["state"], _STYLES.get(rule["state"], "dim"))
    name, check = screen.paint(rule["id"], "bold"), _check_words(rule["check"])
    yield f"{name}  {state}  {rule['answer']}  {check}"
    yield f"    {rule['path']}: {rule['words']}" if rule["words"] else f"    {rule['path']}"
    if rule["state"] in _WORDS_BY_STATE:
        yield f"    {_WORDS_BY_STATE[rule['state']]}"
    if rule["state"] == "changed":
        yield f"    agree to what it says now: memctl rule add {shlex.quote(rule['path'])}"
    if rule["answered"]:
        when = output.ago(iso_time(rule["last_at"]))
        yield f"    answered {rule['answered']} times, last {when}"


def _candidate_lines(candidate: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines about a memory that could be a rule, with the command that adds it."""
    path = candidate["path"]
    yield f"{path} could be a rule: {_check_words(candidate['check'])}"
    yield f"    memctl rule add {shlex.quote(path)}"


def _check_words(check: str) -> str:
    """Return a check with the code points of its non-ASCII letters, which may look like others."""
    codes = dict.fromkeys(f"U+{ord(letter):04X}" for letter in check if not letter.isascii())
    return f"{check} (with {', '.join(codes)})" if codes else check
