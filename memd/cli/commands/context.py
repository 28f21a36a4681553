"""context show|list|forget: the sizes of conversations, and the results stored for them."""

from typing import Any

from memd.cli import output
from memd.cli.invocation import Invocation
from memd.core.errors import MemdError
from memd.core.text import iso_time

_MAX_RESULTS = 5  # of the stored results; --json has more


class NoContextError(MemdError):
    """memd has planned no conversation of the project."""

    hint = "docs/context.md says how a program begins to"

    def __init__(self, cwd: str) -> None:
        super().__init__(f"no conversation in {cwd} was planned by memd", cwd=cwd)


def show(invocation: Invocation) -> int:
    """Print a session's conversations and stored results; return 1 if memd knows none of them."""
    session = getattr(invocation.options, "session", None) or _newest_session(invocation)
    view = invocation.request(session_id=session)
    pairs: list[tuple[str, object]] = [("session", view["session"])]
    for conversation in view["conversations"]:
        pairs += _conversation_pairs(conversation)
    decisions = ", ".join(f"{count} {action}" for action, count in view["decisions"].items())
    pairs += [
        ("decided", decisions),
        ("stored", output.size(view["stored"]) if view["stored"] else ""),
    ]
    for result in view["largest"][:_MAX_RESULTS]:
        pairs.append(("", f"{output.size(result['size'])}  {result['path']}"))
    invocation.screen.answer(view, output.facts(pairs))
    if view["conversations"] or view["decisions"] or view["stored"]:
        return 0
    invocation.screen.error("memd has nothing of this session; memctl context list shows them all")
    return 1


def list_(invocation: Invocation) -> None:
    """Print the project's conversations, the ones planned most recently first."""
    listed, screen = invocation.request(), invocation.screen
    rows = [
        (
            screen.paint(conversation["session"], "bold"),
            conversation["conversation"],
            output.ago(iso_time(conversation["at"])),
            f"{conversation['tokens']:,} tokens",
            conversation["level"],
            conversation["model"],
        )
        for conversation in listed["contexts"]
    ]
    if not rows:
        screen.note(str(NoContextError(invocation.cwd)))
    screen.answer(listed, output.table(rows, screen.width))


def forget(invocation: Invocation) -> int:
    """Forget a session's decisions and stored results; return 1 if there are none."""
    answer = invocation.request(session_id=invocation.options.session)
    words = "forgotten" if answer["forgotten"] else "there was nothing to forget"
    invocation.screen.answer(answer, words)
    return 0 if answer["forgotten"] else 1


def _newest_session(invocation: Invocation) -> str:
    """Return the project's session that was planned last. Raises NoContextError."""
    for newest in invocation.ask("context.list", limit=1)["contexts"]:
        return str(newest["session"])
    raise NoContextError(invocation.cwd)


def _conversation_pairs(row: dict[str, Any]) -> list[tuple[str, object]]:
    """Return the name and value pairs that describe one conversation of a session."""
    limits = row["thresholds"]
    steps = ", ".join(f"{name} {limits[name]:,}" for name in ("warn", "urgent", "auto", "block"))
    lost = f"{row['breaks']}; {row['missed']:,} tokens paid again" if row["breaks"] else ""
    return [
        (row["conversation"] or "conversation", output.ago(iso_time(row["at"]))),
        ("model", row["model"]),
        ("size", f"{row['tokens']:,} of {limits['window']:,} tokens, {row['level'] or 'ok'}"),
        ("", f"{row['messages']:,} messages; by {row['source'] or 'nothing yet'}"),
        ("levels", steps),
        ("caches lost", lost),
    ]
