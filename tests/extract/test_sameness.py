"""When a statement is said again, corrected, or something else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.extract.sameness import Sameness, compare

DATABASE = "Integration tests must hit a real database"
MAIN = "Never push to main, always push to develop."
REVIEW = "Never merge without a review, always squash."
COMPOSITION = "Always prefer composition over inheritance."
PORT = "The port of the staging database is 5432"


@pytest.mark.parametrize(
    ("old", "new", "decision"),
    [
        (DATABASE, "the integration tests hit a real database", "nothing"),
        (DATABASE, f"{DATABASE} on the CI server", "update"),
        (f"{DATABASE} on the CI server", DATABASE, "nothing"),
        (DATABASE, "Integration tests must never hit a real database", "update"),
        (PORT, "The port of the staging database is 5433", "add"),
        (PORT, "Actually the port of the staging database is 5433", "update"),
        ("We use Redis for the queue", "We no longer use Redis for the queue", "update"),
        ("Use black", "Use ruff instead of black", "update"),
        ("Service 3 uses Postgres", "Service 4 now uses Postgres", "add"),
        ("Alice owns the billing service", "Alice owns the search service", "add"),
        ("Alice pays Bob and Carol", "Carol pays Bob and Alice", "add"),
        ("Use tabs in Go files", "Never use tabs in YAML files", "add"),
        ("集成测试必须连接真实数据库", "集成测试必须连接真实数据库", "nothing"),
        ("Wir deployen am Dienstag", "Wir deployen nicht am Dienstag", "update"),
        ("Never use emojis in commits", "Never use emojis", "add"),
        ("Never use emojis", "Never use emojis in commits", "add"),
        ("Run tests before each commit", "Run tests after each commit", "add"),
        ("Copy the backups from Oslo", "Copy the backups to Oslo", "add"),
        ("It belongs in the header area", "Think of what a header is", "add"),
        ("Client A pays monthly", "Client B now pays monthly", "add"),
        ("отвечай на русском", "никогда не отвечай на русском", "update"),
        ("", "!", "add"),
        (MAIN, "Always push to main, never push to develop.", "update"),
        (MAIN, "Always push to develop, never push to main.", "nothing"),
        ("Always use pnpm, never npm.", "Never use pnpm, always use npm.", "update"),
        ("Use pnpm not npm", "Use npm not pnpm", "update"),
        ("Use port 443, not 80", "Use port 80, not 443", "update"),
        ("Use ruff instead of black", "Use black instead of ruff", "update"),
        (REVIEW, "Always merge without a review, never squash.", "update"),
        (COMPOSITION, "Always prefer inheritance over composition.", "update"),
        ("用pnpm，不要用npm", "不要用pnpm，用npm", "update"),
        ("Sign and squash commits", "Squash and sign commits", "nothing"),
        ("Lint the code before the tests", "Test the code before the lint", "add"),
        ("Never push to main or develop", "Never push to main, or develop", "nothing"),
    ],
)
def test_a_statement_adds_updates_or_repeats(old: str, new: str, decision: str) -> None:
    """Restatements and corrections are told from statements about something else."""
    assert compare(new, old).value == decision


@given(st.text())
def test_the_same_again_is_nothing_new(text: str) -> None:
    """Whatever a statement is, said twice it is known."""
    assert compare(text, text) is Sameness.NOTHING


@given(st.text(), st.text())
def test_any_two_texts_can_be_compared(one: str, other: str) -> None:
    """A comparison never fails, whatever the words."""
    assert compare(one, other) in Sameness
