"""Each view, on nothing and on 60 memories, and on texts that would like to be more than texts."""

import pytest

from memd.ui.routes import VIEWS
from tests.ui.pages import Browser, words

pytestmark = pytest.mark.anyio

PLAIN = sorted(set(VIEWS) - {"", "memory", "change", "proposal", "note"})


@pytest.mark.parametrize("view", PLAIN)
async def test_a_view_of_nothing_says_what_to_do(page: Browser, view: str) -> None:
    """A view of a project without memories is a page that explains itself."""
    shown = await page.shown(view)
    assert "<h1>" in shown
    assert "not counted" in words(shown).lower() or "empty" in shown or "notice" in shown


async def test_the_way_from_the_projects_to_a_memory(page: Browser) -> None:
    """A project leads to its memories, a memory shows its text, its origin and its history."""
    await page.caller.write(body="Never mock the database.")
    await page.caller.write(body="Never mock a database.")
    projects = (await page.get()).text
    assert f"project?cwd={page.caller.cwd.replace('/', '%2F')}" in projects
    listed = await page.shown("project")
    assert "memory?cwd=" in listed
    assert "Integration tests hit a real database" in words(listed)
    shown = words(await page.shown("memory", path="feedback_tests.md"))
    assert "Never mock a database." in shown
    assert "First written" in shown
    assert "Never mock the database." in shown  # in the diff
