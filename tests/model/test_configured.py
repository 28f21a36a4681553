"""The model that the settings name."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from memd.base.settings import ModelSettings, Settings, SpendSettings
from memd.model.configured import Models
from memd.model.errors import CapReachedError
from memd.state.database import Database, open_database
from memd.state.spend import SCHEMA, SpendTable
from tests.model.asks import ask
from tests.support.clock import FakeClock
from tests.support.messages import messages_server, text
from tests.support.steps import Failure

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("sdk")]
CLOCK = FakeClock()
CAPS = SpendSettings()


@pytest.fixture
def table(tmp_path: Path) -> Iterator[SpendTable]:
    """Open empty books."""
    database: Database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    yield SpendTable(database)
    database.close()


@pytest.fixture
async def models(table: SpendTable) -> AsyncIterator[Models]:
    """Hold an owner of models whose environment says nothing."""
    models = Models({}, CLOCK, table)
    yield models
    await models.aclose()


def at(url: str, caps: SpendSettings = CAPS) -> Settings:
    """Return settings with an address and caps."""
    return Settings(model=ModelSettings(base_url=url), spend=caps)


async def test_without_configuration_there_is_no_model(models: Models) -> None:
    """Nothing to ask is told in words; warming does nothing."""
    assert models.for_(Settings()) is None
    assert models.problem(Settings()) == "memctl help models"
    assert models.host(Settings()) == ""
    await models.warm(Settings())


async def test_a_model_tries_again_counts_and_stops(models: Models, table: SpendTable) -> None:
    """The whole works together: a busy server is asked again, all is booked, the cap holds."""
    with messages_server([Failure(429, retry_after=0), text("hi")]) as server:
        settings = at(server.url, SpendSettings(requests_per_day=2))
        await models.warm(settings)
        model = models.for_(settings)
        assert model is not None
        assert (await model.ask(ask(retries=1))).text == "hi"
        used = table.today(CLOCK.now(), "recall")
        assert (used.requests, used.output > 0) == (2, True)
        with pytest.raises(CapReachedError):
            await model.ask(ask())
    assert models.problem(settings) == ""


async def test_a_kind_of_work_may_have_its_own_model(models: Models) -> None:
    """All use the model named, or their own; notes none that is asked in plain text."""
    named = ModelSettings(base_url="http://127.0.0.1:1", name="a", by_kind={"notes": "b"})
    names = models.state(Settings(model=named)).names
    assert (names["recall"], names["dream"], names["notes"]) == ("a", "a", "b")
    plain = replace(named, provider="openai")
    assert "notes" not in models.state(Settings(model=plain)).names


async def test_lines_of_progress_go_to_the_cheapest_model(models: Models) -> None:
    """It is the cheapest that is named for any work, unless one is named for this."""
    settings = at("http://localhost:1")
    assert models.name(settings, "progress") == "claude-sonnet-5-5"
    cheap = replace(settings, model=replace(settings.model, by_kind={"recall": "claude-haiku-5-5"}))
    assert models.name(cheap, "progress") == "claude-haiku-5-5"
    named = replace(settings, model=replace(cheap.model, by_kind={"progress": "mine"}))
    assert models.name(named, "progress") == "mine"
    assert models.name(replace(settings, model=ModelSettings(provider="openai")), "progress") == ""
