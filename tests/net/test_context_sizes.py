"""How large a conversation is: window, thresholds, what a server counted and what is estimated."""

import json

import pytest

from tests.net.context_talk import Talk, call, reply, result, user
from tests.net.kit import Home, Project, differs

IMAGE = {"type": "base64", "media_type": "image/png", "data": "A" * 4_000}
DOCUMENT = {"type": "base64", "media_type": "application/pdf", "data": "A" * 4_000}
OBJECT = json.dumps({"k": ["v" * 10] * 2_000})


@pytest.mark.parametrize(
    ("given", "window"),
    [
        ({}, 200_000),
        ({"model": "claude-sonnet-5-5[1m]"}, 1_000_000),
        ({"model": "claude-sonnet-4-5", "betas": ["context-1m-2025-08-07"]}, 1_000_000),
        ({"model": "claude-sonnet-5-5[1m]", "window": 64_000}, 64_000),
    ],
)
def test_the_window_is_the_first_that_is_known(
    project: Project, given: dict[str, object], window: int
) -> None:
    """The client's figure counts before the model's suffix, and a beta before 200,000."""
    talk = Talk(project).add(user("Hello."))
    assert talk.plan(**given)["thresholds"]["window"] == window


def test_the_clients_environment_has_a_window(home: Home, project: Project) -> None:
    """MEMD_CONTEXT_WINDOW of the client counts where nothing else is known."""
    given = {"cwd": project.cwd, "session_id": "s1", "messages": [user("Hello.")]}
    with home.connect(environ={"MEMD_CONTEXT_WINDOW": "90000"}) as client:
        assert client.call("context.plan", **given)["thresholds"]["window"] == 90_000
        found = client.call("context.plan", window=64_000, **given)
        assert found["thresholds"]["window"] == 64_000


def test_thresholds_of_the_usual_window(project: Project) -> None:
    """Of 200,000 tokens 147,000, 162,000, 167,000 and 177,000 are thresholds."""
    assert Talk(project).add(user("Hello.")).plan()["thresholds"] == {
        "window": 200_000,
        "warn": 147_000,
        "urgent": 162_000,
        "auto": 167_000,
        "block": 177_000,
    }


def test_smaller_windows_have_smaller_margins(project: Project) -> None:
    """In a window of any size the thresholds stand in their order, above nothing."""
    for window in (8_000, 20_000, 64_000, 1_000_000):
        found = Talk(project, f"s{window}").add(user("Hello.")).plan(window=window)["thresholds"]
        sizes = [found[name] for name in ("warn", "urgent", "auto", "block", "window")]
        assert sizes == sorted(sizes)
        assert sizes[0] > 0


@pytest.mark.parametrize(
    ("tokens", "level", "is_due"),
    [
        (146_000, "ok", False),
        (148_000, "warn", False),
        (163_000, "urgent", False),
        (168_000, "auto", True),
        (178_000, "block", True),
    ],
)
def test_a_size_has_a_level(project: Project, tokens: int, level: str, *, is_due: bool) -> None:
    """A size has the name of the highest threshold that it reaches; from auto on work is due."""
    usage = {"input_tokens": tokens - 10, "output_tokens": 10}
    talk = Talk(project).add(user("a"), reply("b", id="m1", usage=usage), user("c"))
    answer = talk.plan()
    assert (answer["level"], answer["compact"]["due"]) == (level, is_due)


def test_compaction_has_a_switch(home: Home, project: Project) -> None:
    """With context.compact off, and for a sub-agent, no compaction is due."""
    usage = {"input_tokens": 170_000, "output_tokens": 10}
    talk = Talk(project).add(user("a"), reply("b", id="m1", usage=usage), user("c"))
    assert talk.plan(conversation="agent-1")["compact"]["due"] is False
    home.configure("[context]\ncompact = false\n")
    assert talk.plan()["compact"]["due"] is False


@pytest.mark.parametrize(
    ("messages", "tokens"),
    [
        ([user("x" * 30_000)], 7_500),
        ([user("ä" * 15_000)], 7_500),
        ([user("x"), reply(call("t1", "Write", content="k" * 20_000))], 10_000),
        pytest.param(
            [user("x"), reply(call("t1", "Read")), user([result("t1", OBJECT)])],
            len(OBJECT) / 2,
            marks=differs("12.1", "JSON in results is estimated like text"),
        ),
        ([user("x"), reply(call("t1", "Read")), user([result("t1", "y" * 30_000)])], 7_500),
        ([user([{"type": "image", "source": IMAGE}])], 2_000),
        ([user([{"type": "document", "source": DOCUMENT}])], 2_000),
    ],
)
def test_a_size_is_estimated(
    project: Project, messages: list[dict[str, object]], tokens: float
) -> None:
    """Text has 4 bytes a token, JSON 2, images and documents 2,000 tokens; then comes a third."""
    count = Talk(project, reader="").add(*messages).plan()["count"]
    assert count["source"] == "estimate"
    assert count["tokens"] * 3 / 4 == pytest.approx(tokens, abs=100)


def test_what_a_server_counted_counts(project: Project) -> None:
    """The last reply's usage and an estimate of what came after are the size."""
    usage = {
        "input_tokens": 500,
        "cache_read_input_tokens": 50_000,
        "cache_creation_input_tokens": 1_000,
        "output_tokens": 500,
    }
    talk = Talk(project).add(user("Hello. " * 9_000), reply("Hi.", id="m1", usage=usage))
    count = talk.add(user("y" * 4_000)).plan()["count"]
    assert (count["source"], count["tokens"]) == ("usage", pytest.approx(53_000, abs=40))


def test_parallel_calls_count_from_their_first_record(project: Project) -> None:
    """Records of one reply are one reply: results between them come on top of its usage."""
    usage = {"input_tokens": 50_000, "output_tokens": 0}
    talk = Talk(project, reader="").add(user("a"))
    for name in ("t1", "t2"):
        talk.add(reply(call(name), id="m1", usage=usage), user([result(name, "y" * 8_000)]))
    assert talk.plan()["count"]["tokens"] == pytest.approx(54_000, abs=100)


def test_the_last_iteration_counts(project: Project) -> None:
    """Of a usage with iterations the last message's is the size of the conversation."""
    message = {"type": "message", "input_tokens": 30_000, "output_tokens": 100}
    compaction = {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500}
    usage = {"input_tokens": 30_000, "output_tokens": 100, "iterations": [compaction, message]}
    talk = Talk(project).add(user("a"), reply("b", id="m1", usage=usage), user("c"))
    assert talk.plan()["count"]["tokens"] == pytest.approx(30_100, abs=40)


def test_usage_may_come_beside(project: Project) -> None:
    """The usage that comes with a plan is that of the last reply."""
    talk = Talk(project).add(user("a"), reply("b"), user("c"))
    count = talk.plan(usage={"input_tokens": 60_000, "output_tokens": 500})["count"]
    assert (count["source"], count["tokens"]) == ("usage", pytest.approx(60_500, abs=40))
