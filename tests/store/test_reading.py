"""Reading memory directories, and knowing whether there is news."""

from pathlib import Path

import pytest

from memd.store.names import INDEX, NameRefusedError
from memd.store.reading import Reading
from tests.store.bench import topic


def test_news_is_what_differs_from_the_last_snapshot(tmp_path: Path) -> None:
    """The first sight, a memory, the index and the directory's end are news; nothing else is."""
    reading, real = Reading(), tmp_path / "real"
    link = tmp_path / "link"
    link.symlink_to(real)

    def news() -> bool:
        glance = reading.snapshot(str(link))
        assert glance.real == str(real)
        return glance.news

    assert not news()
    real.mkdir()
    assert news()
    assert not news()
    for name in ("a.md", INDEX):
        (real / name).write_bytes(topic("a"))
        assert news()
        assert not news()
    for name in ("a.md", INDEX):
        (real / name).unlink()
    real.rmdir()
    assert news()
    assert not news()


def test_what_a_scan_has_met_may_have_any_name(tmp_path: Path) -> None:
    """A person's own name can be read after a scan; before, the name rule refuses it."""
    reading, here = Reading(), str(tmp_path)
    (tmp_path / "über uns.md").write_bytes(b"us")
    with pytest.raises(NameRefusedError):
        reading.live(here, "über uns.md")
    assert reading.read_many(here, ["über uns.md"]) == ()
    reading.snapshot(here)
    assert list(reading.known(here)) == ["über uns.md"]
    assert reading.live(here, "über uns.md") == b"us"
    assert reading.live(here, "none.md") is None
    assert reading.live(f"{here}/none", "a.md") is None


def test_a_catalogue_tells_what_changed_since_a_mark(tmp_path: Path) -> None:
    """Without a mark everything comes; with one what changed and what went away, once."""
    told: list[tuple[str, str]] = []
    reading, here = Reading(lambda *news: told.append(news)), str(tmp_path)
    for name in ("a", "b"):
        (tmp_path / f"{name}.md").write_bytes(topic(name))
    first = reading.catalogue(here)
    assert (first.whole, first.count, first.gone) == (True, 2, ())
    assert sorted(header.path for header in first.changed) == ["a.md", "b.md"]
    assert told == [(here, here)]
    same = reading.catalogue(here, first.mark)
    assert (same.mark, same.whole, same.changed, same.gone) == (first.mark, False, (), ())
    (tmp_path / "a.md").unlink()
    (tmp_path / "c.md").write_bytes(topic("c"))
    news = reading.catalogue(here, first.mark)
    assert ([header.path for header in news.changed], news.gone) == (["c.md"], ("a.md",))
    assert (news.whole, news.count) == (False, 2)
    assert reading.header(here, "c.md") == news.changed[0]
    assert reading.header(here, "a.md") is None
    assert len(told) == 2
