"""load-prompt and prefetch: a client's calls around a prompt."""

import os
from typing import Any

from memd.cli import output
from memd.cli.invocation import Invocation

_MAX_WORDS = 8  # that matched, in one row of an explanation
_HEADINGS = ("SCORE", "MEMORY", "PARTS", "WORDS", "SURFACED", "OUTCOME")


def load_prompt(invocation: Invocation) -> None:
    """Print the memory section of a system prompt, with the instruction files if asked for."""
    loaded = invocation.request()
    if loaded["prompt"] is None:
        invocation.screen.note(f"memory is off here: {loaded.get('reason') or 'no reason given'}")
    files = loaded.get("instructions") or {"text": "", "problems": ()}
    for problem in (*(loaded.get("problems") or ()), *files["problems"]):
        invocation.screen.note(problem)
    texts = filter(None, (loaded["prompt"], files["text"]))
    invocation.screen.answer(loaded, "\n".join(texts))


def prefetch(invocation: Invocation) -> None:
    """Print the block of memories for a prompt, or the explanation of how it was chosen."""
    options = invocation.options
    answer = invocation.request(
        session_id=options.session or f"memctl-{os.urandom(6).hex()}",
        query=" ".join(options.query),
        read_paths=[os.path.abspath(path) for path in options.read] if options.read else None,
    )
    if not answer["memories"]:
        reason = answer.get("skipped")
        invocation.screen.note(f"skipped: {reason}" if reason else "no memory fits")
    explanation = answer.get("explanation")
    if answer.get("note") and explanation is None:  # an explanation has the note in its own lines
        invocation.screen.note(answer["note"])
    text = answer["block"]
    if explanation is not None:
        text = explanation_text(invocation, explanation)
    invocation.screen.answer(answer, text)


def explanation_text(invocation: Invocation, explanation: dict[str, Any]) -> str:
    """Return an explanation as text: a line about the whole choice, then a row per memory."""
    surfaced, cap = explanation["surfaced_bytes"], explanation["cap"]
    strategy = f"{explanation['strategy']} strategy, {explanation['candidates']:,} candidates"
    lines = [f"{strategy}, session at {surfaced:,} of {cap:,} bytes"]
    lines += [explanation["note"]] if explanation["note"] else []
    rows = [_row(invocation, row) for row in explanation["rows"]]
    table = output.table([_HEADINGS, *rows], invocation.screen.width) if rows else ""
    return "\n".join(lines) + f"\n{table}"


def _row(invocation: Invocation, row: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of one memory in an explanation: score, path, parts, words and result."""
    paint = invocation.screen.paint
    last_surfaced = row["last_surfaced"]
    return (
        f"{row['score']:.2f}",
        paint(row["path"], "bold" if row["kept"] else "dim"),
        " + ".join(f"{name} {part:.2f}" for name, part in row["parts"].items()) or "-",
        _term_words(row["terms"]),
        output.ago(last_surfaced) if last_surfaced else "never",
        paint("brought", "green") if row["kept"] else row["reason"],
    )


def _term_words(terms: list[str]) -> str:
    """Return the first words that matched, with ``…`` if there are more; "-" for none."""
    if not terms:
        return "-"
    more = " …" if len(terms) > _MAX_WORDS else ""
    return " ".join(terms[:_MAX_WORDS]) + more
