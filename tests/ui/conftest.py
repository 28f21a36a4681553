"""A daemon in this process with a client, and a page in front of it."""

from collections.abc import AsyncIterator

import pytest

from tests.api.caller import Caller
from tests.api.conftest import caller, clock, home
from tests.ui.pages import Browser, browser

__all__ = ["caller", "clock", "home"]


@pytest.fixture
async def page(caller: Caller) -> AsyncIterator[Browser]:
    """Enter a page that only reads."""
    async with browser(caller) as entered:
        yield entered


@pytest.fixture
async def writer(caller: Caller) -> AsyncIterator[Browser]:
    """Enter a page that may write."""
    async with browser(caller, write=True) as entered:
        yield entered
