"""What the SDK's middleware adds to each request of an agent (``make bench-keeper``).

An agent of 300 turns sends its growing conversation to a scripted server; the time is taken between
a middleware before memd's and one behind it, so it is memd's share alone. Aim: half of the requests
within 5 ms, none above 150 ms, also where the daemon is away or hangs.
"""

import os
import random
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
from anthropic import Anthropic, APIRequest, AsyncAnthropic, Middleware

from benchmarks.measures import Series, table
from memd.client.context import Keeper
from tests.support.daemon import Home, daemon_process, throw_away_home
from tests.support.messages import messages_server, text

TURNS = 300
HUNG_TURNS = 20  # a bound is met the same way each time
AIMS = (5.0, 150.0)  # ms: of half the requests, of all
_LARGE_SHARE = 0.1  # of the results are stored
_LINE = "src/harbour/tide.py:204:        return self._height(at) + self._surge(at)\n"


class Clock(Middleware):
    """Takes the time when a request passes, and when its answer does."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def handle(self, request: APIRequest, call_next: Callable[[APIRequest], Any]) -> Any:
        """Pass a request on."""
        self.times.append(time.perf_counter())
        response = call_next(request)
        self.times.append(time.perf_counter())
        return response

    async def handle_async(
        self, request: APIRequest, call_next: Callable[[APIRequest], Awaitable[Any]]
    ) -> Any:
        """Pass a request on."""
        self.times.append(time.perf_counter())
        response = await call_next(request)
        self.times.append(time.perf_counter())
        return response


def requests(keeper: Keeper, turns: int) -> Iterator[dict[str, Any]]:
    """Yield the requests of an agent; the list of messages is one and grows."""
    chance = random.Random(5)  # noqa: S311 - the same agent each time
    tools = [keeper.reader_tool().to_dict()]
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Find out why it floods."}]
    for turn in range(turns):
        yield {"model": "claude-haiku-5-5", "max_tokens": 9, "messages": messages, "tools": tools}
        lines = chance.randrange(10, 60) if chance.random() > _LARGE_SHARE else 900
        call = {"type": "tool_use", "id": f"toolu_{turn}", "name": "Grep", "input": {"n": turn}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{turn}", "content": _LINE * lines}
        messages += [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ]


def blocking(url: str, keeper: Keeper, turns: int) -> Series:
    """Return what memd added to each request of a blocking agent, in milliseconds."""
    before, behind = Clock(), Clock()
    with Anthropic(base_url=url, api_key="k", middleware=[before, keeper, behind]) as client:
        for request in requests(keeper, turns):
            client.messages.create(**request)
    return _between(before, behind)


def asynchronous(url: str, keeper: Keeper, turns: int) -> Series:
    """Return what memd added to each request of an async agent, in milliseconds."""
    before, behind = Clock(), Clock()

    async def send() -> None:
        middleware = [before, keeper, behind]
        async with AsyncAnthropic(base_url=url, api_key="k", middleware=middleware) as client:
            for request in requests(keeper, turns):
                await client.messages.create(**request)

    anyio.run(send)
    return _between(before, behind)


def _between(before: Clock, behind: Clock) -> Series:
    outer, inner = (zip(c.times[::2], c.times[1::2], strict=True) for c in (before, behind))
    pairs = zip(outer, inner, strict=True)
    return Series(tuple((b - a - (d - c)) * 1000 for (a, b), (c, d) in pairs))


@contextmanager
def _hung(home: Home) -> Iterator[None]:
    with daemon_process(home) as process:
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)


def main() -> int:
    """Measure and print."""
    rows: list[tuple[str, ...]] = [("", "p50 ms", "p99 ms", "most ms")]
    with throw_away_home() as home, messages_server(text("I see.")) as server:
        cwd = home.project()
        # The server is in this process: what it keeps would be collected at the agent's cost.
        server.on_end = lambda _: server.requests.clear()

        def keeper(session: str) -> Keeper:
            return Keeper(cwd, session, socket=home.places.socket)

        with daemon_process(home):
            rows.append(_row("blocking", blocking(server.url, keeper("a"), TURNS)))
            rows.append(_row("async", asynchronous(server.url, keeper("b"), TURNS)))
        rows.append(_row("no daemon", blocking(server.url, keeper("c"), TURNS)))
        with _hung(home):
            rows.append(_row("a daemon that hangs", blocking(server.url, keeper("d"), HUNG_TURNS)))
    half, most = AIMS
    print(f"what memd adds to a request, {TURNS} turns; aim {half:g} ms for half, {most:g} for all")
    print(table(rows))
    return 0


def _row(name: str, series: Series) -> tuple[str, ...]:
    return (name, *(f"{value:.1f}" for value in (series.p50, series.p99, max(series.times))))


if __name__ == "__main__":
    os.environ.pop("ANTHROPIC_BASE_URL", None)
    sys.exit(main())
