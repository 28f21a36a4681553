"""Change sets of a bounded size from what the fixed extractor found."""

from memd.core.values import CursorMove, Header, JobEnd, MemoryFile, Message
from memd.extract import requests
from memd.extract.requests import Unread
from memd.extract.slices import SLICE, Slices

CURSOR = CursorMove("s", "t.jsonl", 7, "m")


class Empty:
    """A directory without memories."""

    def headers(self) -> tuple[Header, ...]:
        """Return none."""
        return ()

    def read(self, path: str) -> MemoryFile | None:  # noqa: ARG002 - nothing is there
        """Return nothing."""
        return None

    def index(self) -> bytes | None:
        """Return nothing."""
        return None


EMPTY = Empty()


def slices(count: int, job: str = "j1") -> Slices:
    """Return the run over a conversation with so many wishes."""
    said = tuple(
        Message(str(n), "user", f"Never call service{n} from module{n} because it broke.", "user")
        for n in range(count)
    )
    run = Slices(Unread(said, CURSOR), 1_772_528_400.0, job)
    run.find()
    return run


def test_the_last_slice_brings_the_cursor() -> None:
    """Each set is bounded, and only with the last one the conversation counts as read."""
    run = slices(SLICE + 5)
    first = run.plan(EMPTY)
    assert first.effects == ()
    run.committed("c1")
    assert (run.done, run.extracted.earlier_changes) == (False, ("c1",))
    last = run.plan(EMPTY)
    assert last.effects[0] == CURSOR
    assert isinstance(last.effects[1], JobEnd)
    run.committed("c2")
    assert (run.done, run.extracted.change) == (True, "c2")
    assert len(run.extracted.saved) == SLICE + 5


def test_nothing_found_still_moves_the_cursor() -> None:
    """Without candidates, or skipped, one empty set brings the cursor; without a job that alone."""
    run = slices(0, job="")
    run.note("")
    run.skip(requests.NOTHING_NEW)
    assert run.plan(EMPTY).effects == (CURSOR,)
    run.committed(None)
    assert (run.done, run.extracted.reason) == (True, "nothing_new")
    run.note("no model today")
    assert run.extracted.problem == "no model today"
