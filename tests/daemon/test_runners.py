"""What a job does."""

from pathlib import Path

import pytest

from memd.client.aio import AsyncClient
from memd.testing.clock import FakeClock
from memd.testing.daemon import Home, daemon_here, throw_away_home

pytestmark = pytest.mark.anyio
WORDS = "From now on, always run the integration tests against a real database."


def configure(home: Home, text: str) -> None:
    """Write the user's settings."""
    config = Path(home.places.config)
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(text)
    config.chmod(0o600)


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        ("min_sessions = 0", {"extract", "dream"}),
        ("min_sessions = 0\nauto = false", {"extract"}),
        ("min_sessions = 1", {"extract"}),
    ],
)
async def test_a_due_dream_follows_an_extraction(options: str, kinds: set[str]) -> None:
    """A dream begins by itself only when it is allowed and its gates are open."""
    with throw_away_home() as home:
        configure(home, f"[dream]\n{options}\n")
        params = {
            "cwd": home.project(),
            "session_id": "s",
            "messages": [{"role": "user", "content": WORDS}],
            "wait": True,
        }
        async with (
            daemon_here(home, FakeClock()),
            AsyncClient(home.places.socket, name="t") as client,
        ):
            assert (await client.call("extract", params))["saved"]
            assert {job["kind"] for job in (await client.call("job.list"))["jobs"]} == kinds


async def test_nothing_saved_starts_nothing() -> None:
    """An extraction that found nothing leaves the store alone."""
    with throw_away_home() as home:
        configure(home, "[dream]\nmin_sessions = 0\n")
        params = {
            "cwd": home.project(),
            "session_id": "s",
            "messages": [{"role": "user", "content": "What time is it?"}],
            "wait": True,
        }
        async with (
            daemon_here(home, FakeClock()),
            AsyncClient(home.places.socket, name="t") as client,
        ):
            done = await client.call("extract", params)
            assert (done["status"], done["saved"]) == ("completed", [])
            assert len((await client.call("job.list"))["jobs"]) == 1
