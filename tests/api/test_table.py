"""The table of methods."""

from pathlib import Path

from memd.api.table import methods

SPECIFIED = {
    "agent.register", "agent.list", "agent.end",
    "message.send", "message.receive", "message.ack", "message.status", "message.log",
    "message.held", "message.decide",
    "hello", "load_prompt", "prefetch", "extract", "dream", "dream.status", "dream.last",
    "memory.list", "memory.read", "memory.write", "memory.delete", "memory.search",
    "memory.history", "memory.diff", "memory.undo", "memory.tool",
    "memory.why",
    "memory.take_over",
    "session.start", "session.compacted", "session.end",
    "job.list", "job.wait", "job.cancel", "pause", "resume",
    "dream.review", "dream.accept", "dream.reject",
    "memory.purge",
    "suggestion.list", "suggestion.accept", "suggestion.dismiss",
    "suggestion.offer",
    "rule.add", "rule.list", "rule.test", "rule.off",
    "notes.read", "notes.update", "notes.list", "notes.delete",
    "context.plan", "context.spill", "context.compact",
    "instructions",
    "team.join", "team.leave", "team.status", "team.sync", "team.log",
    "team.share", "team.remove", "team.resolve",
    "export", "import",
    "report",
    "subscribe", "status", "doctor", "shutdown",
    "rpc.discover",
}  # fmt: skip


def test_names_are_unique_and_complete() -> None:
    """Every specified method of this release is there once, and hook besides."""
    names = [row.name for row in methods()]
    assert len(names) == len(set(names))
    assert set(names) == SPECIFIED | {"hook", "hook.printed"}


def test_every_method_is_tested_at_a_door() -> None:
    """Some other test than this one calls each method by its name."""
    here = Path(__file__)
    texts = [file.read_text() for file in here.parents[1].rglob("test_*.py") if file != here]
    assert [name for name in sorted(SPECIFIED) if not any(f'"{name}"' in t for t in texts)] == []
