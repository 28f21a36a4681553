"""The log keeps every text, whatever else leaves it."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.base.text import sha256
from memd.store.forget import prune
from memd.store.log import DEPTH
from memd.store.packing import pack, unpack
from memd.store.past import Filter
from tests.store.bench import Bench, open_bench, topic

TEXTS = st.binary(max_size=300) | st.lists(st.sampled_from([b"a\n", b"bc", b"\0"])).map(b"".join)


@given(TEXTS, TEXTS)
def test_what_is_packed_comes_back(text: bytes, base: bytes) -> None:
    """Any text is unpacked to the same bytes, with any text before it and with none."""
    assert unpack(pack(text, base), base) == text
    assert unpack(pack(text)) == text


@given(st.binary(max_size=60), TEXTS)
def test_damaged_bytes_harm_nobody(packed: bytes, base: bytes) -> None:
    """What is no packed text gives some bytes or ``None``, never an error."""
    unpack(packed, base)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Open a bench."""
    with open_bench(tmp_path) as opened:
        yield opened


def versions(bench: Bench, count: int) -> list[bytes]:
    """Write many versions of a memory that have much in common, and return them."""
    draw = random.Random(3)  # noqa: S311 - made-up words, the same in every run
    lines = [f"line {draw.random()}" for _ in range(40)]
    texts = []
    for number in range(count):
        lines[number % 40] = f"new {draw.random()}"
        texts.append(topic("a", "\n".join(lines)))
        bench.write("a.md", texts[-1])
    return texts


def test_versions_are_packed_against_each_other(bench: Bench) -> None:
    """Versions that differ in a line cost little, and no chain is longer than its bound."""
    texts = versions(bench, 2 * DEPTH)
    assert [bench.log.body(sha256(text)) for text in texts] == texts
    rows = bench.database.read("SELECT depth, length(text) AS size FROM body")
    assert max(row["depth"] for row in rows) == DEPTH
    assert sum(row["size"] for row in rows) < sum(map(len, texts)) / 4


@settings(max_examples=8, deadline=None)
@given(st.sets(st.integers(0, 19), min_size=1), st.sampled_from(["purge", "delete"]))
def test_a_text_outlives_what_it_was_packed_against(
    tmp_path_factory: pytest.TempPathFactory, gone: set[int], how: str
) -> None:
    """Whichever bodies are purged or deleted, every other one can still be read."""
    with open_bench(tmp_path_factory.mktemp("bodies")) as bench:
        texts = versions(bench, 20)
        hashes = {bytes.fromhex(sha256(texts[number])) for number in gone}
        rows = bench.database.read("SELECT id, hash FROM body")
        ids = [row["id"] for row in rows if row["hash"] in hashes]
        remove = bench.log.empty_bodies if how == "purge" else bench.log.delete_bodies
        with bench.database.transaction() as cursor:
            remove(cursor, ids)
        for number, text in enumerate(texts):
            assert bench.log.body(sha256(text)) == (None if number in gone else text)


def test_the_oldest_changes_go_and_no_text_is_lost(bench: Bench) -> None:
    """After each batch that is deleted, all texts that a change names can still be read."""
    texts = versions(bench, 60)
    bench.write("b.md", topic("b"))
    while prune(bench.log, 1) != (0, 0):
        changes = bench.past.changes(Filter(bench.directory), limit=1000)
        for change in changes:
            for file in change.files:
                assert file.before is None or bench.log.body(file.before) is not None
                assert file.after is None or bench.log.body(file.after) is not None
        if not changes:
            break
    assert bench.log.body(sha256(texts[0])) is None
    assert bench.log.body(sha256(texts[-1])) == texts[-1]  # the live file's


def test_the_same_text_is_kept_anew_after_a_purge(bench: Bench) -> None:
    """What is written again after a purge has a text again, by a change and by a look."""
    text = topic("a")
    bench.write("a.md", text)
    ways: tuple[Callable[[str, bytes], object], ...] = (bench.write, bench.save)
    for number, save in enumerate(ways):
        with bench.database.transaction() as cursor:
            bench.log.empty_bodies(cursor, bench.log.bodies(lambda _: True))
        assert bench.log.body(sha256(text)) is None
        save(f"b{number}.md", text)
        bench.look()
        assert bench.log.body(sha256(text)) == text
