"""A store with memories, and a model that wants one thing of them for one night."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from memd.base.names import INDEX
from memd.daemon.app import SCHEMAS
from memd.dream.values import DreamReport
from memd.model.port import Reply
from memd.projects.project import slug
from memd.state.database import open_database
from tests.dream.bench import DAY, NOW, Bench
from tests.dream.cases import Case, Edit, reference
from tests.scripted_model import calls, says

LOG = "logs/2026/03/2026-03-02.md"
THINGS = "atlas badge cedar delta ember fjord grove haven inlet jetty kiosk latch"
PARTS = ("owns the rack of", "names the colour of")


@contextmanager
def bench_in(folder: Path) -> Iterator[Bench]:
    """Set up an empty store for the length of the block."""
    database = open_database(str(folder / "state.db"), SCHEMAS)
    made = Bench(folder, database)
    try:
        yield made
    finally:
        database.close()


def fill(bench: Bench, case: Case) -> None:
    """Put the files of a case there, among others that have nothing to do with them."""
    for number, thing in enumerate(THINGS.split()):
        for turn, part in enumerate(PARTS):
            name = f"{thing}-{turn}.md"
            put(bench, name, reference(f"Desk {number}{turn} {part} the {thing}."), 9)
    for name, text in case.files.items():
        put(bench, name, text, case.ages.get(name, 1))
    if case.index:
        put(bench, INDEX, case.index, 9)
    if case.log:
        put(bench, LOG, case.log, 0)
    if case.transcript:
        path = transcript(bench)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{{"type":"user","message":{{"content":"{case.transcript}"}}}}\n')
        os.utime(path, (NOW, NOW))


def put(bench: Bench, name: str, text: str, age: int) -> None:
    """Write a file that is so many days old."""
    path = bench.memory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (NOW - age * DAY, NOW - age * DAY))


def transcript(bench: Bench) -> Path:
    """Return where the transcript of a case is."""
    return Path(bench.project.transcripts, slug(bench.project.root), "s.jsonl")


def edited(before: str, edit: Edit) -> str:
    """Return a text with an edit made."""
    if isinstance(edit, str):
        return edit
    assert edit[0] in before, edit
    return before.replace(*edit)


def script(bench: Bench, case: Case) -> tuple[Reply, ...]:
    """Return what a model says that reads all of a case and then does what it wants."""
    here = {name: (bench.memory / name) for name in (*case.files, *case.edits)}
    there = {name: path.read_text() for name, path in here.items() if path.exists()}
    reads = [*there, *([LOG] if case.log else ()), *([INDEX] if case.index else ())]
    reads += [str(transcript(bench))] if case.transcript else []
    writes = [(name, edited(there.get(name, ""), edit)) for name, edit in case.edits.items()]
    return (
        calls(*(("Read", {"file_path": name}) for name in dict.fromkeys(reads))),
        calls(*(("Write", {"file_path": n, "content": text}) for n, text in writes), first=50),
        says("Done."),
        says("I leave it at that."),
    )


async def night(bench: Bench, case: Case) -> DreamReport:
    """Let a model do what a case wants."""
    dreaming, model = bench.taught(*script(bench, case))
    report = await bench.run(dreaming)
    answers = [
        block["content"]
        for message in model.requested[-1].messages
        for block in message["content"]
        if isinstance(block, Mapping)
        and block.get("type") == "tool_result"
        and block.get("is_error")
    ]
    assert not answers, answers
    return report


def texts(bench: Bench, case: Case) -> dict[str, str]:
    """Return what stands now in the files that a case names."""
    names = dict.fromkeys((*case.files, *case.edits, INDEX))
    there = ((name, bench.memory / name) for name in names)
    return {name: path.read_text() for name, path in there if path.exists()}
