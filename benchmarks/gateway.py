"""How much later a reply begins through the gateway: ``make bench-gateway``.

One agent's conversation goes to the scripted server directly and through ``memd gateway``, in
turn, with a daemon behind it. The first byte of each reply is timed, of requests that pass and of
those whose new result is stored.
"""

import json
import statistics
import time
from http.client import HTTPConnection
from typing import Any

from tests.gateway.gateways import gateway
from tests.support.daemon import daemon_process, throw_away_home
from tests.support.messages import messages_server, text

TURNS = 200
LARGE = "a line of the log\n" * 3_000
TOOLS = [
    {"name": name, "description": name, "input_schema": {"type": "object"}}
    for name in ("run", "Read")
]
ROWS = ("other requests", "messages that pass", "a new result is stored")


def run() -> None:
    """Measure and print a table in milliseconds."""
    late: dict[str, list[float]] = {row: [] for row in ROWS}
    with (
        throw_away_home() as home,
        daemon_process(home),
        messages_server(text("ok")) as server,
        gateway(home, server.url, "--cwd", home.project()) as running,
    ):
        direct, through = _Timed(server.url), _Timed(running.url)
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Look."}]
        for number in range(TURNS):
            stored = number % 20 == 19
            messages += _turn(number, LARGE if stored else "small\n" * 50)
            body = json.dumps({"model": "m", "max_tokens": 9, "tools": TOOLS, "messages": messages})
            base = direct.post("/v1/messages", body)
            row = ROWS[2] if stored else ROWS[1]
            late[row].append(through.post("/v1/messages", body) - base)
            late[ROWS[0]].append(through.post("/v1/other", "{}") - direct.post("/v1/other", "{}"))
    print(f"milliseconds that a reply begins later, {TURNS} turns of one conversation")
    for row, values in late.items():
        figures = statistics.quantiles([value * 1000 for value in values], n=100)
        print(f"{row:24} p50 {figures[49]:6.2f}  p95 {figures[94]:6.2f}  p99 {figures[98]:6.2f}")


def _turn(number: int, result: str) -> list[dict[str, Any]]:
    call = f"toolu_{number}"
    used = {"type": "tool_use", "id": call, "name": "run", "input": {}}
    answered = {"type": "tool_result", "tool_use_id": call, "content": f"{number}\n{result}"}
    return [{"role": "assistant", "content": [used]}, {"role": "user", "content": [answered]}]


class _Timed:
    """A connection that stays open, and the time until a reply begins, in seconds."""

    def __init__(self, url: str) -> None:
        host, _, self._path = url.removeprefix("http://").partition("/")
        self._connection = HTTPConnection(host)

    def post(self, path: str, body: str) -> float:
        """Send a request and return when its reply began."""
        prefix = f"/{self._path}" if self._path else ""
        begun = time.perf_counter()
        self._connection.request("POST", prefix + path, body, {"x-api-key": "k"})
        response = self._connection.getresponse()
        result = time.perf_counter() - begun
        response.read()
        return result


if __name__ == "__main__":
    run()
