"""What jobs tell of themselves."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from memd.core.events import JOB_DONE, JOB_PROGRESS, Event
from memd.jobs.progress import FACT_BYTES, FACTS, TEXT_CHARACTERS, TEXTS, Progress
from memd.state.jobs import Job, JobState
from tests.jobs.bench import Sink

JOB = Job("j1", "dream", "/m", "/m", "", {}, JobState.RUNNING, "", None, None, 1, 1.0, 2.0, None)


def test_the_newest_facts_stand_beside_what_was_said() -> None:
    """Who asks gets the newest value of each fact and the turns in order; all is published."""
    sink = Sink()
    progress = Progress(sink)
    assert (progress.of("j1"), progress.phase("j1"), progress.with_phase(JOB)) == (None, "", JOB)
    tell = progress.reporter(JOB)
    tell("starting")
    tell("starting", turn=1, text="I look.", tools=["Read"] * 40, touched=[], tokens=10)
    tell("updating", turn=2, text="", tools=["Write"], touched=["a.md"])
    tell("judging")
    assert progress.of("j1") == {
        "phase": "judging",
        "turn": 2,
        "text": "",
        "tools": ["Write"],
        "touched": ["a.md"],
        "tokens": 10,
        "texts": [
            {"turn": 1, "tools": ["Read"] * 40, "text": "I look."},
            {"turn": 2, "tools": ["Write"], "text": ""},
        ],
    }
    assert progress.with_phase(JOB).phase == "judging"
    assert sink.events[-1] == Event(
        JOB_PROGRESS, "/m", {"job": "j1", "kind": "dream", "phase": "judging"}
    )
    assert len(sink.events) == 4


def test_an_ended_job_is_told_and_forgotten() -> None:
    """The end is published once, with the error where there is one, and nothing is kept."""
    sink = Sink()
    progress = Progress(sink)
    for error in (None, {"kind": "never"}):
        progress.reporter(JOB)("working")
        ended = Job(
            "j1", "dream", "/m", "/m", "", {}, JobState.FAILED, "p", None, error, 1, 1.0, 2.0, 3.0
        )
        progress.end(ended)
        assert progress.of("j1") is None
        assert progress.with_phase(ended) is ended
        facts = {"job": "j1", "kind": "dream", "state": "failed", "result": None}
        reported = facts | ({"error": error} if error else {})
        assert sink.events[-1] == Event(JOB_DONE, "/m", reported)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=40) | st.just("x" * 9000),
    lambda inner: st.lists(inner, max_size=50) | st.dictionaries(st.text(), inner, max_size=20),
    max_leaves=20,
)


def _check_bounds(progress: Progress) -> None:
    kept = progress.of("j1") or {"texts": []}
    texts = kept.pop("texts")
    assert len(texts) <= TEXTS
    assert all(len(said["text"]) <= TEXT_CHARACTERS for said in texts)
    assert all(len(json.dumps(said)) <= 3 * FACT_BYTES for said in texts)
    assert len(kept) <= FACTS + 1
    # A character of the text of a fact takes at most six bytes of JSON.
    assert all(len(json.dumps(value)) <= 6 * FACT_BYTES + 2 for value in kept.values())


@settings(max_examples=60)
@given(st.lists(st.dictionaries(st.sampled_from(["text", "tools", "turn", "x"]), VALUES)))
def test_whatever_is_told_is_kept_within_bounds(reported: list[dict[str, Any]]) -> None:
    """Facts of any size and shape take a bounded place, and telling them never fails."""
    progress = Progress(Sink())
    for facts in reported:
        progress.reporter(JOB)("working", **facts)
    _check_bounds(progress)


def test_a_job_that_tells_much_takes_a_bounded_place() -> None:
    """Of many facts the first are kept, of many texts the last."""
    progress = Progress(Sink())
    tell = progress.reporter(JOB)
    tell("working", **{f"f{number}": "é" * 9000 for number in range(FACTS + 9)})
    for turn in range(TEXTS + 5):
        tell("working", text="é" * 9000, turn=turn)
    for _ in range(2):
        tell("working", text="é" * 9000, tools=["Read"] * 900)
    kept = progress.of("j1")
    assert kept is not None
    assert "f0" in kept
    assert len(kept["texts"]) == TEXTS
    assert kept["texts"][0]["turn"] == 7
    _check_bounds(progress)
