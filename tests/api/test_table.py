"""The table of methods."""

from memd.api.table import methods

SPECIFIED = {
    "hello", "load_prompt", "prefetch", "extract", "dream", "dream.status", "dream.last",
    "memory.list", "memory.read", "memory.write", "memory.delete", "memory.search",
    "memory.history", "memory.diff", "memory.undo", "memory.tool",
    "memory.why", "memory.restore",
    "session.start", "session.compacted", "session.end",
    "job.get", "job.list", "job.wait", "job.cancel", "job.retry", "pause", "resume",
    "dream.review", "dream.accept", "dream.reject",
    "memory.purge",
    "subscribe", "unsubscribe", "status", "spend", "doctor", "shutdown", "rpc.discover",
}  # fmt: skip


def test_names_are_unique_and_complete() -> None:
    """Every specified method of this release is there once, and hook besides."""
    names = [row.name for row in methods()]
    assert len(names) == len(set(names))
    assert set(names) == SPECIFIED | {"hook"}


def test_permissions_are_known() -> None:
    """A method reads, writes or operates."""
    assert {row.permission for row in methods()} == {"read", "write", "operate"}
