"""Words that others plant into conversations, and a model that does whatever it reads."""

import os
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from memd.base.values import MemoryType
from memd.extract.service import ExtractionResult, ExtractRequest
from memd.store.memory import parse
from memd.store.past import Filter
from tests.agent.home import TOKEN
from tests.extract.bench import Bench, opened, quiet
from tests.promises.learning import MODEL, WISH, desk, memory
from tests.promises.planted import CARRIERS, QUESTION, Case, cases, obedient
from tests.promises.transcripts import Conversation
from tests.scripted_model import says
from tests.stores import projects_in
from tests.support.messages import text, tools
from tests.support.steps import ReceivedMessage

pytestmark = pytest.mark.anyio
GUARDED = (MemoryType.FEEDBACK, MemoryType.USER)
OLD = memory("rule", "Short lines", "feedback", "Keep lines short")
INDEX = "- [Rule](rule.md) \u2014 Short lines\n"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Set up a store with one rule."""
    with opened(tmp_path) as made:
        made.memory.mkdir()
        (made.memory / "rule.md").write_text(OLD)
        (made.memory / "MEMORY.md").write_text(INDEX, encoding="utf-8")
        (tmp_path / "repo" / ".git").mkdir(parents=True)
        (tmp_path / "repo" / "CLAUDE.md").write_text("# P\n")
        yield made


def outside(bench: Bench) -> list[str]:
    """Return paths that lie outside, or are nobody's to write."""
    home = bench.folder
    return [
        f"{home}/planted.md", f"{home}/repo/CLAUDE.md", f"{home}/repo/planted.md", "../planted.md",
        f"{bench.memory}/../planted.md", "team/planted.md", ".hidden.md", "/etc/memd-planted.md",
        "~/planted.md", f"{bench.memory}-other/planted.md",
    ]  # fmt: skip


def around(bench: Bench) -> dict[str, tuple[int, int]]:
    """Return every file but the memories, the transcripts and the state file, as it is."""
    files = (path for path in bench.folder.rglob("*") if path.is_file())
    ours = (bench.memory, bench.folder / ".claude")
    return {
        str(path): (os.stat(path).st_mtime_ns, os.stat(path).st_size)
        for path in files
        if not any(path.is_relative_to(folder) for folder in ours)
        and not path.name.startswith("state.db")
    }


async def extract(bench: Bench, said: Conversation) -> ExtractionResult:
    """Run one extraction of a conversation."""
    requested = ExtractRequest(session=said.session, transcript_path=said.path)
    settings, _ = await projects_in(bench.folder, bench.database).settings(bench.project)
    return await bench.extract.run(
        bench.project, settings, requested, job="", client="test", progress=quiet
    )


async def learn(bench: Bench, case: Case) -> ExtractionResult:
    """Hold a case's conversation and extract from it, twice where its words came before."""
    said = Conversation(str(bench.folder), bench.project.cwd, f"case{case.number}")
    bench.model.then(says("nothing new"))
    if case.carrier == "earlier":
        said.user(QUESTION)
        case.plant(said)
        await extract(bench, said)
        said.user(QUESTION if case.number % 3 else f"{QUESTION} {WISH}")
    else:
        case.plant(said)
    flood = 40 if case.number % 50 == 0 else 0
    bench.model.then(obedient(case, outside(bench), flood))
    return await extract(bench, said)


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.soak)])
async def test_planted_texts_rule_nobody(bench: Bench, carrier: str, step: int) -> None:
    """Nothing is written outside, no rule and no person is made up, and all of it has an origin."""
    before = around(bench)
    saved: list[str] = []
    wished: list[str] = []
    for case in sampled(carrier, step):
        done = await learn(bench, case)
        own = [path for path in done.saved if path.startswith("pnpm_")]
        assert len(own) == (case.number % 3 == 0), case
        assert len(bench.model.requested) <= 5
        assert (done.engine, done.updated) == ("small-extract", ()), case
        assert (f"project_{case.number}.md" in done.saved) is (case.believed and not case.wish), (
            case
        )
        assert (len(done.passed_over) > 5) is case.shown, case
        assert case.believed or list(done.saved) == own, case
        saved += done.saved
        wished += own
    assert around(bench) == before
    assert len(saved) == len(set(saved))
    assert guarded(bench, saved) == wished
    assert (bench.memory / "rule.md").read_text() == OLD
    everything = "".join(path.read_text("utf-8") for path in bench.memory.rglob("*.md"))
    assert TOKEN not in everything
    assert "# Rules" not in (bench.memory / "MEMORY.md").read_text("utf-8")
    changes = await to_thread.run_sync(
        partial(bench.store.history, str(bench.memory), only=Filter(), limit=1000)
    )
    made = {file.path: change.by for change in changes for file in change.files}
    assert {(made[path].model, made[path].session[:4]) for path in saved} <= {
        ("small-extract", "case")
    }
    assert {made[path].origin for path in set(saved) - set(wished)} <= {"outside"}
    assert {made[path].origin for path in wished} <= {"outside", "user"}


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.soak)])
async def test_memories_of_others_words_rule_nobody(bench: Bench, step: int) -> None:
    """What once came from outside as a fact makes no rule when a later run is shown it."""
    for case in sampled("web", step):
        fact = memory("fact", case.words, "reference")
        (bench.memory / "fact.md").write_text(fact, encoding="utf-8")
        said = Conversation(str(bench.folder), bench.project.cwd, f"case{case.number}")
        said.user(QUESTION)
        bench.teach(obedient(case, outside(bench)))
        done = await extract(bench, said)
        assert len(bench.model.requested) == 3
        rules = [path for path in guarded(bench, done.saved) if path != f"pnpm_{case.number}.md"]
        assert (rules, done.updated) == ([], ()), case
        assert len(done.passed_over) > 5
    assert (bench.memory / "rule.md").read_text() == OLD


def sampled(carrier: str, step: int) -> Iterator[Case]:
    """Return every ``step``-th of a carrier's cases; each carrier begins at another."""
    return islice(cases(carrier), CARRIERS.index(carrier) % step, None, step)


def guarded(bench: Bench, saved: Iterable[str]) -> list[str]:
    """Return the memories of the two types that only the person can ask for."""
    kinds = {path: parse((bench.memory / path).read_bytes(), path).type for path in saved}
    return [path for path, kind in kinds.items() if kind in GUARDED]


@pytest.mark.xdist_group("sdk")
async def test_a_sample_through_daemon_and_server() -> None:
    """The same on the wire: a server's model obeys, what comes of it is marked and no rule."""
    sample = [case for carrier in CARRIERS for case in cases(carrier) if case.number % 19 == 0]
    now: list[Case] = []

    def script(request: ReceivedMessage) -> Any:
        (case,) = now
        requested = request.body.decode()
        if len(request.json["messages"]) > 1 or case.mark not in requested:
            return text("done")
        results = obedient(case, [f"{here.home.path}/planted.md"])
        reply = results(_Step(request))  # type: ignore[arg-type]
        return tools(*((call.name, call.input) for call in reply.calls))

    async with desk(script) as here:
        for case in sample:
            now[:] = [case]
            said = here.conversation(f"case{case.number}")
            case.plant(said)
            said.user(QUESTION)
            done = await here.extract(said)
            assert done["engine"] == MODEL, case
            listed = (await here.call("memory.list"))["memories"]
            kinds = {m["type"] for m in listed if not m["path"].startswith("pnpm_")}
            assert kinds <= {"project", "reference"}
            for path in (path for path in done["saved"] if not path.startswith("pnpm_")):
                why = await here.call("memory.why", path=path)
                assert why["first"]["origin"] == "outside"
        assert not Path(here.home.path, "planted.md").exists()
        assert len(listed) >= len(sample)


class _Step:
    """A request as the second of a run, so that the obedient model writes at once."""

    def __init__(self, request: ReceivedMessage) -> None:
        self.system = request.json["system"]
        self.messages = [*request.json["messages"], {}, {}]
