"""The words of memories in their rows."""

from pathlib import Path

import pytest

from memd.daemon.app import SCHEMAS
from memd.state.database import open_database
from memd.state.docs import Docs
from memd.state.search import WordSearch
from memd.store.words import Analysis
from tests.stores import store_in
from tests.support.clock import FakeClock

pytestmark = pytest.mark.anyio


async def test_words_of_another_analysis_are_made_anew(tmp_path: Path) -> None:
    """A start of a memd that splits words otherwise finds every memory by its new words."""
    folder = tmp_path / "memory"
    folder.mkdir()
    (folder / "freeze.md").write_text("---\nname: freeze\ndescription: merges\n---\n\nThursday.\n")
    database = open_database(str(tmp_path / "state.db"), SCHEMAS)
    store = store_in(database, FakeClock(folder.stat().st_mtime + 60))
    await store.recover()
    store.reading.snapshot(str(folder))
    search, words = WordSearch(database), ["freez", "merg", "thursday"]
    everything = {word: [1] for word in words}
    assert search.find(str(folder), words) == everything
    database.write("UPDATE file SET words = ' old '")
    await store.recover()
    assert search.find(str(folder), [*words, "old"]) == {"old": [1]}
    Docs(database).put(Analysis(0))
    await store.recover()
    assert search.find(str(folder), [*words, "old"]) == everything
    database.close()
