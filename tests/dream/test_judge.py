"""What a model wants of a night: sensible work is done, harm waits, each group by itself."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.base.names import INDEX
from memd.base.values import FileEdit
from memd.dream.values import Wanted
from memd.model.port import Reply
from memd.store.memory import parse
from memd.text.statements import statements
from tests.dream.bench import DAY, Bench
from tests.dream.cases import (
    DEPLOY,
    RELEASE,
    STRICT,
    USER,
    WISHES,
    Case,
    memory,
    project,
    reference,
)
from tests.dream.nights import bench_in, fill, night, put, texts
from tests.scripted_model import calls, says

pytestmark = pytest.mark.anyio


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Set up an empty store."""
    with bench_in(tmp_path) as made:
        yield made


STAMP = re.compile(r"\n  (?:modified|origin|originSessionId): .*")


def plain(text: str) -> str:
    """Return a memory without what memd stamps into its head."""
    return STAMP.sub("", text)


@pytest.mark.parametrize("case", WISHES, ids=lambda case: case.name)
async def test_sensible_work_is_done(tmp_path: Path, case: Case) -> None:
    """Each edit of a sensible night stands afterwards, and nothing waits."""
    with bench_in(tmp_path) as bench:
        fill(bench, case)
        before = texts(bench, case)
        report = await night(bench, case)
        assert report.problems == ()
        after = texts(bench, case)
        for name, edit in case.edits.items():
            gone = isinstance(edit, str) and edit.startswith("removed:")
            assert (name in after) is not gone
            if not gone and isinstance(edit, str):
                assert plain(after[name]) == plain(edit)
            elif not gone:
                assert edit[1] in after[name]
        assert before != after
        again = await bench.run(bench.dreams())
        assert not again.problems


async def test_a_memory_does_not_erode(tmp_path: Path) -> None:
    """Ten nights that each take a little: every fact and every denial stands at the end."""
    said = (
        "The import of the price list runs every night at 03:10 on the host `feeder-2` and never "
        "on Sundays, because the supplier rotates the file by hand before the office opens."
    )
    nights = (
        (" of the price list", ""),
        (", because the supplier rotates the file by hand before the office opens", ""),
        (" and never on Sundays", ""),
        (" on the host `feeder-2`", ""),
        (" every night", ""),
        ("The import", "It"),
        (" at 03:10", ""),
        ("by hand ", ""),
        ("before the office opens", ""),
        ("the supplier rotates", "someone moves"),
    )
    with bench_in(tmp_path) as bench:
        case = Case("erosion", {"import.md": project(said)}, {})
        fill(bench, case)
        for old, new in nights:
            bench.clock.advance(DAY)
            text = texts(bench, case)["import.md"]
            if old in text:
                await night(bench, Case("", case.files, {"import.md": (old, new)}))
        after = texts(bench, case)["import.md"]
    words = {"03:10", "feeder-2", "never", "Sundays"}
    assert all(word in after for word in words)
    assert 2 * len(after.split("---")[2].split()) >= len(said.split())


async def test_reasons_alone_take_few(tmp_path: Path) -> None:
    """Six memories with good reasons wait in one night; five go, and a third in a month."""
    files = {f"o{n}.md": project(f"Party {n} is on 2026-02-1{n}.") for n in range(10)}

    def gone(names: list[str]) -> Case:
        over = {n: f"removed: the party of 2026-02-1{n[1]} is over" for n in names}
        return Case("gone", files, dict(over))

    names = list(files)
    with bench_in(tmp_path) as bench:
        fill(bench, gone(names[:6]))
        report = await night(bench, gone(names[:6]))
        assert (report.removed, len(report.problems)) == ((), 1)
        report = await night(bench, gone(names[:5]))
        assert len(report.removed) == 5
        for thing in sorted(bench.memory.glob("*-*.md"))[:14]:
            thing.unlink()
        bench.clock.advance(DAY)
        report = await night(bench, Case("more", {}, dict(gone(names[5:9]).edits)))
        assert (report.removed, "lately" in str(report.problems)) == ((), True)
        bench.clock.advance(31 * DAY)
        report = await night(bench, Case("more", {}, dict(gone(names[5:9]).edits)))
        assert len(report.removed) == 4


@pytest.mark.parametrize("claim", ["user", "outside", ""])
async def test_the_least_trusted_origin_stays(tmp_path: Path, claim: str) -> None:
    """What takes in text of outside is marked so, whatever a model writes into the head."""
    outside = RELEASE.replace("  modified:", "  origin: outside\n  modified:")
    mine = DEPLOY.replace("  modified:", "  origin: user\n  modified:")
    both = mine.rstrip("\n") + "\n\nReleases are tagged `v2.x` on the branch `release` by Ben.\n"
    wanted = both.replace("origin: user", f"origin: {claim}") if claim else both
    case = Case(
        "origin",
        {"deploy.md": mine, "release.md": outside},
        {"deploy.md": wanted, "release.md": "removed: merged into deploy.md"},
    )
    with bench_in(tmp_path) as bench:
        fill(bench, case)
        report = await night(bench, case)
        assert report.problems == ()
        after = texts(bench, case)
        assert parse(after["deploy.md"].encode(), "").metadata["origin"] == "outside"
        tight = (
            after["deploy.md"]
            .replace("Releases are tagged", "Tagged")
            .replace("origin: outside", "origin: user")
        )
        await night(bench, Case("", {"deploy.md": ""}, {"deploy.md": tight}))
        after = texts(bench, case)
        assert parse(after["deploy.md"].encode(), "").metadata["origin"] == "outside"


async def test_text_of_a_transcript_alone_is_marked(tmp_path: Path) -> None:
    """What only a transcript says may be anybody's; what a daily log says is the assistant's."""
    fact = "The queue for macOS builds is `mac-m2`."
    for where, origin in (("transcript", "outside"), ("log", "assistant")):
        folder = tmp_path / where
        folder.mkdir()
        edits = {"queue.md": project(fact, "The queue for macOS")}
        case = Case("new", {}, edits, transcript=fact)
        if where == "log":
            case = Case("new", {}, edits, log=f"- 10:00 {fact}\n")
        with bench_in(folder) as bench:
            fill(bench, case)
            report = await night(bench, case)
            assert report.created == ("queue.md",), report.problems
            written = (bench.memory / "queue.md").read_bytes()
            assert parse(written, "").metadata["origin"] == origin


async def test_a_credential_is_kept_nowhere(bench: Bench) -> None:
    """A pass that would write a credential waits, and neither proposal nor report quotes it."""
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    bench.write("deploy.md", "Deploys go out.")
    content = project(f"The token is {token}.").encode()
    wanted = Wanted((FileEdit("deploy.md", content), FileEdit("new.md", content)))
    report = await bench.run(bench.dreams(lambda _tree: wanted))
    assert len(report.problems) >= 2
    (proposal,) = bench.proposals.of_directory(str(bench.memory))
    assert token not in f"{proposal}{report}"
    assert proposal.edits == ()


BODIES = st.sampled_from(
    [STRICT, memory(USER, "I live in Oslo.\r\nAnd *work* there.  \n"), "No head at all.\n"]
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    before=BODIES, at=st.floats(0.3, 1), cut=st.integers(0, 8), put=st.text("aZ 0.\n-", max_size=8)
)
def test_no_byte_of_a_rule_changes(
    tmp_path_factory: pytest.TempPathFactory, before: str, at: float, cut: int, put: str
) -> None:
    """Whatever a dream makes of a person's text, it stands byte for byte or as a proposal."""
    place = int(len(before) * at)
    after = before[:place] + put + before[place + cut :]
    kind = parse(before.encode(), "").type
    wanted = after if parse(after.encode(), "").type == kind else before

    async def dream() -> None:
        with bench_in(tmp_path_factory.mktemp("rule")) as bench:
            case = Case("rule", {"r.md": before}, {})
            fill(bench, case)
            path = bench.memory / "r.md"
            replies: list[Reply] = [calls(("Read", {"file_path": "r.md"}))]
            replies.append(calls(("Write", {"file_path": "r.md", "content": wanted}), first=5))
            dreaming, _ = bench.taught(*replies, says("Done."), says("No."))
            await bench.run(dreaming)
            now = path.read_bytes()
            assert parse(now, "").body.encode() == parse(before.encode(), "").body.encode()

    anyio.run(dream)


async def test_a_removed_memory_s_links_and_types_do_not_matter(tmp_path: Path) -> None:
    """A reference may go into a project memory that says it, and its line goes from the index."""
    case = Case(
        "types",
        {"a.md": project("The board is OPS."), "b.md": reference("The board is OPS.")},
        {"b.md": "removed: merged into a.md"},
        index="- [A](a.md) — the board\n- [B](b.md) — the board\n",
    )
    with bench_in(tmp_path) as bench:
        fill(bench, case)
        report = await night(bench, case)
        assert [merge.source for merge in report.merged] == ["b.md"]
        assert "b.md" not in texts(bench, case)[INDEX]


FORMS = ("S{}. ", "Port {} is open in Oslo. ", "- a{}\n", "| a | {} |\n", "`x{}` and ", "甲{}。")


@pytest.mark.parametrize("form", FORMS)
async def test_a_long_memory_takes_bounded_work(bench: Bench, form: str) -> None:
    """A memory of 60 KB of whatever form, changed all over, is judged within its time."""
    count = 50_000 // len(form.format(10_000).encode())
    before, after = ("".join(form.format(n + more) for n in range(count)) for more in (0, 70_000))
    put(bench, "long.md", project(before), 1)
    wanted = Wanted((FileEdit("long.md", project(after).encode()),))
    with anyio.fail_after(60):
        report = await bench.run(bench.dreams(lambda _tree: wanted))
    assert report.problems


@pytest.mark.parametrize("piece", ["1.", "1.1.", "\u4e0d", "a:\n"])
def test_no_text_takes_quadratic_time(piece: str) -> None:
    """A hostile memory of 20 kB is read as statements before anybody notices."""
    began = time.process_time()
    for one in statements(piece * (20_000 // len(piece))):
        assert one.clauses or not one.words
    assert time.process_time() - began < 5
