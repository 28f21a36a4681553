"""Dreams for people: proposals with their diffs, and when the next dream is due.

What comes from memories and models stands on one line behind a word of ours, or in a diff, whose
every line begins with a mark.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from memd.cli import output
from memd.core.text import iso_time, one_line

Paint = Callable[[str, str], str]
Diff = Callable[[str], str]

_LINE = 400  # characters of one sentence; --json has all of it
_STYLES = {"created": "green", "changed": "cyan", "removed": "red"}


def review(proposals: Sequence[Mapping[str, Any]], paint: Paint, diff: Diff) -> str:
    """Return proposals one after the other; ``diff`` colours a unified diff."""
    return "\n".join("".join(_proposal(found, paint, diff)) for found in proposals)


def accepted(done: Mapping[str, Any]) -> str:
    """Return what was accepted and how to take it back."""
    lines = [f"accepted {path}" for path in done["accepted"]]
    if done.get("change"):
        lines.append(f"undo with: memctl undo {done['change']}")
    return "\n".join([*lines, _stands(done)])


def rejected(done: Mapping[str, Any]) -> str:
    """Return what was rejected."""
    return "\n".join([*(f"rejected {path}" for path in done["rejected"]), _stands(done)])


def status(found: Mapping[str, Any], paint: Paint, now: float, width: int | None = None) -> str:
    """Return when the next dream is due, what each gate says, and what waits."""
    waiting = found["proposals"]
    look = f"{waiting} wait{'s' * (waiting == 1)} for you: memctl dream review"
    pairs: list[tuple[str, object]] = [
        ("last", _moment(found["last"], now) or "never"),
        ("due", _moment(found["due"], now)),
        ("sessions", f"{found['sessions']} of {found['min_sessions']} since then"),
        ("by itself", "yes" if found["auto"] else "no: dream.auto is off"),
        ("engine", found["engine"]),
        ("closed gate", found["gate"] or "none"),
        ("waits", found["waits"]),
        ("running", f"{found['running']}: memctl job wait {found['running']}"),
        ("proposals", look),
    ]
    shown = {"running": found["running"], "proposals": waiting}
    pairs = [(name, value) for name, value in pairs if shown.get(name, True)]
    rows = [
        (
            paint("open", "green") if gate["open"] else paint("closed", "yellow"),
            gate["name"],
            gate["says"],
        )
        for gate in found["gates"]
    ]
    return f"{output.facts(pairs)}\n{output.table(rows, width)}"


def _stands(done: Mapping[str, Any]) -> str:
    known = {"open": "still open", "partly": "decided, accepted in part"}
    return f"{done['proposal']} is {known.get(done['state'], done['state'])}"


def _moment(seconds: float | None, now: float) -> str:
    """Return a time as a person reads it, "" for none."""
    if seconds is None:
        return ""
    passed = now - seconds
    near = output.duration(abs(passed))
    words = "just now" if abs(passed) < 1 else f"{near} ago" if passed > 0 else f"in {near}"
    return f"{words} ({iso_time(seconds)})"


def _proposal(found: Mapping[str, Any], paint: Paint, diff: Diff) -> Iterator[str]:
    name = found["id"]
    by = f", by {one_line(found['engine'], _LINE)}" if found["engine"] else ""
    yield f"{paint(name, 'bold')}  {output.ago(found['at'])}{by}, {found['state']}\n"
    yield from (f"kept back: {one_line(problem, _LINE)}\n" for problem in found["problems"])
    for words, text in (("the model said", found["said"]), ("rejected since", found["reason"])):
        if text:
            yield f"{words}: {one_line(text, _LINE)}\n"
    for file in found["files"]:
        yield from _file(file, paint, diff)
    if found["state"] == "open":
        yield f"\naccept with: memctl dream accept {name} [FILE...]\n"
        yield f"reject with: memctl dream reject {name} [FILE...] --reason TEXT\n"


def _file(file: Mapping[str, Any], paint: Paint, diff: Diff) -> Iterator[str]:
    action = paint(file["action"], _STYLES.get(file["action"], "bold"))
    into = f" into {file['merged_into']}" if file["merged_into"] else ""
    why = f": {one_line(file['reason'], _LINE)}" if file["reason"] and not into else ""
    marks = [file["state"]] if file["state"] != "open" else []
    marks += ["stale: somebody changed it since"] if file["stale"] else []
    mark = paint(f" ({', '.join(marks)})", "yellow") if marks else ""
    yield f"\n{action} {one_line(file['path'], _LINE)}{into}{why}{mark}\n"
    text = file["diff"]
    if text:
        yield diff(text if text.endswith("\n") else f"{text}\n")
