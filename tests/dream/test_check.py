"""What a model's choices become: each group by itself, no word of the person's changes."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.base.errors import Busy
from memd.base.names import INDEX
from memd.dream.joining import CannotJoinError, joined
from memd.model.port import Ask, Reply
from memd.store.memory import parse
from memd.text.statements import keys, statements
from tests.dream.bench import DAY, Bench
from tests.dream.nights import (
    SAME,
    USER,
    Call,
    bench_in,
    fill,
    memory,
    night,
    project,
    put,
    rule,
    texts,
)
from tests.scripted_model import HANG, calls, says

pytestmark = pytest.mark.anyio
LOG = "logs/2026/03/2026-03-02.md"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Set up an empty store."""
    with bench_in(tmp_path) as made:
        yield made


def merge(into: str, *sources: str) -> Call:
    """Return the call that merges memories."""
    return "Merge", {"into": into, "from": list(sources)}


def write(path: str, text: str) -> Call:
    """Return the call that writes a memory."""
    return "Write", {"file_path": path, "content": text}


WHY = "**Why:** a push broke the build in May."
JOINED = [
    ("One.\n\nTwo.", "Two.\n\nThree.", ["One.", "Two.", "Three."]),
    (f"Push.\n\n{WHY}", f"Pull.\n\n{WHY}", ["Push.", WHY, "Pull.", WHY]),
    (f"Push.\n\n{WHY}", f"push\n\n{WHY}", ["Push.", WHY]),
    ("Push.", f"Push.\n\n{WHY}", ["Push.", WHY]),
    ("It is on. It is old.", "It is old. It is slow.", ["It is on. It is old.", "It is slow."]),
    ("# A\nport 8080", "port 9090", ["port 9090", "# A\nport 8080"]),
    ("# A\nport 8080", "# B\nport 9090", ["# A\nport 8080", "# B\nport 9090"]),
    ("- one\n- two", "- two\n- one", ["- one\n- two"]),
    ("```\nrm x\n\nrm y\n```", "Run it.", ["```\nrm x\n\nrm y\n```", "Run it."]),
    ("Is it on?", "It is on.", ["Is it on?", "It is on."]),
    ("X is never cut.", "X is cut.", ["X is never cut.", "X is cut."]),
    (
        "系统甲的端口是8080。",
        "系统乙的端口是9090。",
        ["系统甲的端口是8080。", "系统乙的端口是9090。"],
    ),
]


@pytest.mark.parametrize(("one", "two", "body"), JOINED)
def test_whole_sentences_move(one: str, two: str, body: list[str]) -> None:
    """Each sentence of both is there once, in its place and under what it stood under."""
    result = joined(project(one).encode(), project(two).encode())
    assert parse(result, "").body == "\n\n".join(body) + "\n"
    assert joined(result, project(two).encode()) == result


def test_heads_are_joined() -> None:
    """The descriptions and what memories are needed for are said by the one that stays."""
    one = project("One.", "When we deploy").replace("  modified", "  when: a deploy\n  modified")
    two = project("Two.", "How we release").replace("  modified", "  when: a tag\n  modified")
    read = parse(joined(one.encode(), two.encode()), "")
    assert (read.description, read.metadata["when"]) == (
        "When we deploy; How we release",
        "a deploy; a tag",
    )
    words = "How releases of the old branch reach the mirror " * 4
    long = parse(joined(one.encode(), project("Two.", words.strip()).encode()), "")
    assert (long.description, words.strip() in long.body) == ("When we deploy", True)
    with pytest.raises(CannotJoinError):
        joined(one.encode(), two.replace("  modified", "  tags: [a]\n  modified").encode())


WORDS = st.sampled_from(("cache", "never", "is", "flushed", "by", "Ana", "`x`", "8080", "9090"))
SENTENCES = st.lists(WORDS, min_size=1, max_size=5).map(" ".join).map("{}.".format)
BODIES = st.lists(
    st.sampled_from(["# Ports", "- a list", "1. first", f"{WHY}"]) | SENTENCES, max_size=5
).map("\n\n".join)


@settings(max_examples=200, deadline=None)
@given(BODIES, BODIES)
def test_no_statement_is_lost_or_made(one: str, two: str) -> None:
    """Joined memories say what both said, each under what it stood under, or are not joined."""
    try:
        result = parse(joined(project(one).encode(), project(two).encode()), "").body
    except CannotJoinError:
        return
    assert keys(result) == keys(parse(project(one).encode(), "").body) | keys(two)


async def test_the_limit_of_a_month_shrinks_again(tmp_path: Path) -> None:
    """Five may go a night, a third in thirty nights; what went longer ago counts no more."""
    files = {f"o{n}.md": project(f"The party {n} is on 2026-02-2{n}.") for n in range(9)}
    over = [("Expire", {"path": f"o{n}.md", "reason": f"2026-02-2{n} is over"}) for n in range(9)]
    with bench_in(tmp_path) as bench:
        fill(bench, files)
        report = await night(bench, *over[:6])
        assert (len(report.removed), len(report.problems)) == (5, 1)
        bench.clock.advance(DAY)
        report = await night(bench, *over[5:])
        assert (len(report.removed), "30 nights" in str(report.problems)) == (2, True)
        bench.clock.advance(31 * DAY)
        report = await night(bench, *over[7:])
        assert len(report.removed) == 2


async def test_the_least_trusted_origin_stays(bench: Bench) -> None:
    """What takes in text of outside is marked so; a rule takes in none, and gives none away."""
    outside, user = "  origin: outside\n  modified:", "  origin: user\n  modified:"
    files = {
        "a.md": project("Deploys are tagged."),
        "b.md": project("Releases are tagged.").replace("  modified:", outside),
        "r.md": rule("Use tabs.").replace("  modified:", user),
        "s.md": rule("Use spaces.").replace("  modified:", outside),
    }
    fill(bench, files)
    report = await night(bench, merge("a.md", "b.md"))
    assert report.problems == ()
    assert parse(texts(bench)["a.md"].encode(), "").origin == "outside"
    for into, source in (("r.md", "s.md"), ("r.md", "a.md"), ("a.md", "r.md")):
        before = texts(bench)
        with pytest.raises(AssertionError, match="was not written"):
            await night(bench, merge(into, source))
        assert texts(bench) == before


async def test_text_of_tools_in_a_transcript_is_no_source(tmp_path: Path) -> None:
    """What the person typed is a source; what a log says is the assistant's."""
    fact = "The queue for macOS builds is `mac-m2`."
    with bench_in(tmp_path) as bench:
        put(bench, LOG, f"- 10:00 {fact}\n", 0)
        log = {"log": LOG, "fact": "mac-m2", "into": "queue.md"}
        report = await night(bench, ("Keep", log))
        assert report.created == ("queue.md",), report
        assert parse(texts(bench)["queue.md"].encode(), "").origin == "assistant"
        report = await night(bench, write("x.md", project("The queue is `mac-m9`.")))
        assert "which stands nowhere" in str(report.problems)


async def test_a_credential_is_kept_nowhere(bench: Bench) -> None:
    """A text with a credential is refused, and neither proposal nor report quotes it."""
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    fill(bench, {"a.md": project("Deploys go out.")})
    dreaming, _ = bench.taught(
        calls(write("new.md", project(f"The token is {token}."))), says(f"I saw {token}.")
    )
    report = await bench.run(dreaming)
    assert bench.proposals.of_directory(str(bench.memory)) == ()
    assert token not in str(report)
    assert not any(token in text for text in texts(bench).values())


RULES = st.sampled_from(
    [
        rule(f"Never push to `main` without a review.\n\n{WHY}"),
        memory(USER, "I live in Oslo.\r\nAnd *work* there.  \n"),
        "No head at all.\n",
    ]
)


CHOICES: dict[str, Call] = {
    "Merge": merge("s.md", "r.md"),
    "Supersede": ("Supersede", {"old": "r.md", "by": "s.md"}),
    "Expire": ("Expire", {"path": "r.md", "reason": "2026-01-01 is over"}),
}


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    RULES,
    st.tuples(st.floats(0.3, 1), st.integers(0, 8), st.text("aZ 0.\n-", max_size=8)),
    st.sampled_from([*CHOICES, ""]),
)
def test_no_byte_of_a_rule_changes(
    tmp_path_factory: pytest.TempPathFactory,
    before: str,
    change: tuple[float, int, str],
    choice: str,
) -> None:
    """Whatever a dream makes of a person's text, it stays byte for byte, or moves whole."""
    at, cut, more = change
    place = int(len(before) * at)
    after = before[:place] + more + before[place + cut :]

    async def dream() -> None:
        with bench_in(tmp_path_factory.mktemp("rule")) as bench:
            second = before.replace("Never push", "Never pull")
            fill(bench, {"r.md": before, "s.md": second})
            wanted: list[Call] = [("Read", {"file_path": "r.md"}), write("r.md", after)]
            wanted += [CHOICES[choice]] if choice else []
            dreaming, _ = bench.taught(calls(*wanted), says("Done."), says("No."))
            await bench.run(dreaming)
            bodies = [parse(text.encode(), "").body for text in texts(bench).values()]
            for text in (before, second):
                body = parse(text.encode(), "").body.replace("\r\n", "\n").strip()
                assert any(body in each for each in bodies)

    anyio.run(dream)


async def test_a_rule_goes_only_into_what_says_it(bench: Bench) -> None:
    """A rule stays where the memory that took it in is written back, or it was cut before."""
    rules = {"r.md": rule("Use tabs."), "s.md": rule("Sign commits.")}
    fill(bench, rules)
    read: list[Call] = [("Read", {"file_path": name}) for name in rules]
    for calls_of_night in (
        [*read, merge("s.md", "r.md"), write("s.md", rules["s.md"])],
        [*read, write("r.md", rule("Sign commits.")), merge("s.md", "r.md")],
    ):
        report = await night(bench, *calls_of_night)
        assert "r.md would go" in str(report.problems)
        assert (texts(bench)["r.md"], texts(bench)["s.md"]) == tuple(rules.values())


OPERATIONS = [
    {"op": "merge", "paths": ["a.md", "b.md"]},
    {"op": "supersede", "paths": ["old.md", "new.md"], "said": ["It is kept in `vault-3`."]},
    {"op": "expire", "paths": ["party.md"], "reason": "2026-02-26 is over"},
    {"op": "keep", "paths": [LOG, "queue.md"], "said": "The queue is `mac-m2`."},
    {"op": "merge", "paths": ["a.md", "rule.md"]},
]


async def test_a_model_without_tools_chooses_by_operations(bench: Bench) -> None:
    """One answer has all of it, what is refused is named once, and the reader is asked as well."""
    newer = project("The backup runs at 03:15.").replace("02-20T", "02-27T")
    files = {
        "a.md": project("Deploys are tagged."),
        "b.md": project("Releases are signed."),
        "old.md": project("The backup runs at 01:00.\n\nIt is kept in `vault-3`."),
        "new.md": newer,
        "party.md": project("The party is on 2026-02-26."),
        "rule.md": rule("Use tabs."),
    }
    fill(bench, files)
    put(bench, LOG, "- 10:00 The queue is `mac-m2`.\n", 0)
    put(bench, "old.md", files["old.md"], 9)
    dreaming, model = bench.taught(says(json.dumps(OPERATIONS)), says("[]"), SAME)
    model.calls_tools = False
    report = await bench.run(dreaming)
    assert report.problems == ()
    assert "only a memory of the same type" in str(model.requested[1].messages)
    assert "mac-m2" in str(model.requested[0].messages)
    assert {merge.source for merge in report.merged} == {"b.md"}
    assert {removal.path for removal in report.removed} == {"old.md", "party.md"}
    assert "vault-3" in texts(bench)["new.md"]
    assert "mac-m2" in texts(bench)["queue.md"]
    assert texts(bench)["rule.md"] == files["rule.md"]


WRONG = calls(
    ("Read", {"file_path": "a.md"}), write("a.md", project("The worker restarts 9 times."))
)


async def test_a_cancelled_dream_proposes_nothing(bench: Bench) -> None:
    """A proposal becomes true with the dream's end; until then the lock's time is the old one."""
    fill(bench, {"a.md": project("The worker restarts 3 times.")})
    path = bench.lock(bench.clock.now() - 9 * DAY)
    before = path.stat().st_mtime_ns
    dreaming, model = bench.taught(WRONG, says("Done."), HANG)
    async with anyio.create_task_group() as group:
        group.start_soon(bench.run, dreaming)
        while len(model.requested) < 3:
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    assert bench.proposals.of_directory(str(bench.memory)) == ()
    assert path.stat().st_mtime_ns == before


async def test_a_dream_without_its_lock_proposes_nothing(bench: Bench) -> None:
    """Where another program took the lock meanwhile there is neither a change nor a proposal."""
    fill(bench, {"a.md": project("The worker restarts 3 times."), "b.md": project("It is old.")})
    path = bench.lock(bench.clock.now() - 9 * DAY)

    def lose(_: Ask) -> Reply:
        """Have another program take the lock, and say that all is done."""
        path.write_text("1\n")
        return says("Done.")

    dreaming, _ = bench.taught(WRONG, lose)
    before = texts(bench)
    with pytest.raises(Busy):
        await bench.run(dreaming)
    assert bench.proposals.of_directory(str(bench.memory)) == ()
    assert (texts(bench), path.read_text()) == (before, "1\n")


def said(bench: Bench, name: str) -> str:
    """Return the body of a memory."""
    return parse(texts(bench)[name].encode(), "").body


async def test_nothing_is_lost_over_ten_nights(bench: Bench) -> None:
    """Ten nights of merges and splits: each sentence is where a memory has it."""
    files = {
        f"n{n}.md": project(f"Box {n}7 is in the cellar {n}3.\n\nAna counts box {n}7 on day {n}.")
        for n in range(10)
    }
    fill(bench, files)
    before = {name: keys(said(bench, name)) for name in texts(bench) if name != INDEX}
    for turn in range(10):
        bench.clock.advance(DAY)
        there = [name for name in texts(bench) if name.startswith("n")]
        if turn % 2:
            report = await night(bench, merge(there[0], there[1]))
            assert report.merged
            continue
        path = next(name for name in there if "\n\n" in said(bench, name).strip())
        first, rest = said(bench, path).strip().split("\n\n", 1)
        split = (write(path, project(first)), write(f"n{turn}x.md", project(rest)))
        report = await night(bench, ("Read", {"file_path": path}), *split)
        assert report.created
    after = frozenset[str]().union(*(keys(said(bench, name)) for name in texts(bench)))
    assert all(sentences <= after for sentences in before.values())


FORMS = ("S{}. ", "Port {} is open in Oslo. ", "- a{}\n", "| a | {} |\n", "`x{}` and ", "甲{}。")


@pytest.mark.parametrize("form", FORMS)
async def test_a_long_memory_takes_bounded_work(bench: Bench, form: str) -> None:
    """A memory of 50 KB of whatever form, changed all over, is judged within its time."""
    count = 50_000 // len(form.format(10_000).encode())
    before, after = ("".join(form.format(n + more) for n in range(count)) for more in (0, 70_000))
    put(bench, "long.md", project(before), 1)
    began = time.process_time()
    report = await night(
        bench, ("Read", {"file_path": "long.md"}), write("long.md", project(after))
    )
    assert report.problems
    assert time.process_time() - began < 20


@pytest.mark.parametrize("piece", ["1.", "1.1.", "\u4e0d", "a:\n", "`", "**a:**"])
def test_no_text_takes_quadratic_time(piece: str) -> None:
    """A hostile memory of 20 kB is read as statements before anybody notices."""
    began = time.process_time()
    for one in statements(piece * (20_000 // len(piece))):
        assert isinstance(one.key, str)
        assert one.limits is not None
    assert time.process_time() - began < 5
