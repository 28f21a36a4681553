"""The model's state and what it cost, over the socket."""

from pathlib import Path

import pytest

from memd.daemon.app import SCHEMAS
from memd.state.caps import Sum
from memd.state.database import open_database
from memd.state.spend import Account, SpendTable
from tests.api.caller import Caller

pytestmark = pytest.mark.anyio
DAY = 24 * 3600.0
RECALL = Account("recall", "/m", "claude-sonnet-5-5")
DREAM = Account("dream", "/other", "claude-opus-5-5")


def book(caller: Caller, account: Account, money: float, days_ago: int = 0) -> None:
    """Write into the daemon's books, as its own requests do."""
    database = open_database(caller.home.places.database, SCHEMAS)
    used = Sum(2, 100, 10, 1000, 50, money)
    SpendTable(database).add(account, used, caller.clock.now() - days_ago * DAY)
    database.close()


def configure(caller: Caller, text: str) -> None:
    """Write the user's settings."""
    path = Path(caller.home.places.config)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)


async def test_status_names_the_model_without_its_key(caller: Caller) -> None:
    """The host and the models by kind are told, the key never is."""
    configure(caller, '[model]\napi_key = "sk-hidden"\ndream = "claude-opus-5-5"\n')
    results = await caller.plain("status")
    assert results["model"] == {
        "configured": True,
        "problem": "",
        "host": "api.anthropic.com",
        "source": "model.api_key of memd.toml",
        "names": {
            "recall": "claude-sonnet-5-5",
            "extract": "claude-sonnet-5-5",
            "dream": "claude-opus-5-5",
            "notes": "claude-sonnet-5-5",
            "compact": "claude-sonnet-5-5",
            "progress": "claude-sonnet-5-5",
        },
    }
    assert "sk-hidden" not in str(results)


async def test_spending_adds_up_by_what_was_asked(caller: Caller) -> None:
    """Rows, total and today come by day unless another column is named."""
    book(caller, RECALL, 0.25)
    book(caller, DREAM, 0.5, days_ago=1)
    book(caller, DREAM, 1.0, days_ago=30)
    results = await caller.plain("spend")
    assert (results["days"], results["by"]) == (7, "day")
    assert [row["dollars"] for row in results["rows"]] == [0.25, 0.5]
    assert results["total"]["dollars"] == 0.75
    assert results["today"]["used"]["cache_read"] == 1000
    by_kind = await caller.plain("spend", days=60, by="kind")
    assert [(row["label"], row["dollars"]) for row in by_kind["rows"]] == [
        ("dream", 1.5),
        ("recall", 0.25),
    ]
    assert by_kind["total"]["requests"] == 6


@pytest.mark.parametrize("params", [{"days": 0}, {"days": 401}, {"by": "session"}, {"of": 1}])
async def test_what_cannot_be_asked_is_refused(
    caller: Caller, params: dict[str, int | str]
) -> None:
    """Days and columns have bounds, and the error names them."""
    error = await caller.refused("spend", **params)
    assert error.code == -32602
