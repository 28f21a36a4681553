"""How often whom: tokens, addresses, proxies."""

from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.server.admission import Rate, client_address
from memd.server.errors import RoleMissingError
from tests.server.servers import TeamServer, team_server

PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))
texts = st.text(st.characters(max_codepoint=255), max_size=40)


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def clock() -> Hand:
    """Return a clock."""
    return Hand()


@pytest.fixture
def server(tmp_path: Path, clock: Hand) -> Iterator[TeamServer]:
    """Return a server that believes a proxy of this machine, on a clock set by hand."""
    proxies = (ip_network("127.0.0.0/8"),)
    with team_server(tmp_path / "team.db", clock=clock, proxies=proxies) as running:
        yield running


def waits(answer: httpx2.Response) -> int | None:
    """Return what a client is told to wait, ``None`` where it may go on."""
    if answer.status_code != 429:
        return None
    assert answer.json()["error"]["retryable"]
    return int(answer.headers["retry-after"])


def test_a_token_has_120_requests_a_minute(server: TeamServer, clock: Hand) -> None:
    """The next one is told how long to wait, others are not, and after that it goes on."""
    busy, other = server.client("anna"), server.client("bert")
    clock.now += 0.5
    assert [waits(busy.get("/v1/repos")) for _ in range(120)] == [None] * 120
    clock.now += 20
    assert waits(busy.get("/v1/repos")) == 40
    assert waits(other.get("/v1/repos")) is None
    clock.now += 40
    assert waits(busy.get("/v1/repos")) is None


def test_a_token_sends_20_mib_an_hour(server: TeamServer, clock: Hand) -> None:
    """Bytes of bodies count, also of those that are refused."""
    client, body = server.client("anna"), b" " * (512 * 1024)
    path = f"/v1/repos/{server.repository}/entries"
    headers = {"Content-Type": "application/json"}
    statuses = [client.put(path, content=body, headers=headers).status_code for _ in range(41)]
    assert statuses == [400] * 40 + [429]
    assert waits(client.get("/v1/repos")) == 3600
    clock.now += 3600
    assert waits(client.get("/v1/repos")) is None


def test_an_address_fails_ten_logins_a_minute(server: TeamServer, clock: Hand) -> None:
    """Then it joins with no code and its wrong tokens wait; right ones of others go on."""
    good, bad = server.client("anna"), server.client()
    for number in range(10):
        wrong = {"Authorization": f"Bearer wrong{number}"}
        join = {"code": f"wrong{number}", "device": "x"}
        answer = (
            bad.get("/v1/repos", headers=wrong) if number % 2 else bad.post("/v1/join", json=join)
        )
        assert answer.status_code == 401
    code = {"code": server.invite("cleo"), "device": "laptop"}
    assert waits(bad.get("/v1/repos", headers={"Authorization": "Bearer wrong"})) == 60
    assert waits(bad.post("/v1/join", json=code)) == 60
    assert good.get("/v1/repos").status_code == 200
    elsewhere = {"X-Forwarded-For": "192.0.2.7", "Authorization": "Bearer wrong"}
    assert bad.get("/v1/repos", headers=elsewhere).status_code == 401
    clock.now += 60
    assert bad.post("/v1/join", json=code).status_code == 201


def test_one_network_of_ipv6_is_one_address(server: TeamServer) -> None:
    """Who has a network of IPv6 has no more guesses by that."""
    client = server.client()
    statuses = [
        client.get(
            "/v1/repos",
            headers={
                "Authorization": "Bearer x",
                "X-Forwarded-For": f"2001:db8::{number:x}",
            },
        ).status_code
        for number in range(12)
    ]
    assert statuses == [401] * 10 + [429] * 2


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("127.0.0.1", "192.0.2.7", "127.0.0.1"),
        ("10.1.1.1", "", "10.1.1.1"),
        ("10.1.1.1", "192.0.2.7", "192.0.2.7"),
        ("10.1.1.1", "6.6.6.6, 192.0.2.7, 10.9.9.9", "192.0.2.7"),
        ("10.1.1.1", "192.0.2.7, nonsense", "10.1.1.1"),
        ("10.1.1.1", "10.2.2.2", "10.2.2.2"),
        ("::ffff:10.1.1.1", "::ffff:192.0.2.7", "192.0.2.7"),
        ("fd00::1", "2001:db8::1", "2001:db8::1"),
        (None, "192.0.2.7", "192.0.2.7"),
        (None, "", "127.0.0.1"),
    ],
)
def test_the_last_address_that_is_no_proxy_counts(
    peer: str | None, forwarded: str, expected: str
) -> None:
    """What a proxy says is believed, what its clients say is not."""
    assert client_address(peer, forwarded, PROXIES) == expected


def test_nobody_comes_past_the_proxy() -> None:
    """Where there is a proxy, a peer from elsewhere is refused; without one, it says nothing."""
    with pytest.raises(RoleMissingError):
        client_address("192.0.2.7", "10.1.1.1", PROXIES)
    assert client_address("192.0.2.7", "10.1.1.1", ()) == "192.0.2.7"


@given(peer=texts, forwarded=texts)
def test_any_header_gives_an_address(peer: str, forwarded: str) -> None:
    """Whatever a header holds, an address comes out, or the peer is refused."""
    try:
        assert client_address(peer, forwarded, PROXIES)
    except RoleMissingError:
        assert peer


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-100, 100))))
def test_no_rate_locks_anybody_out_for_longer_than_its_span(steps: list[tuple[int, int]]) -> None:
    """Whatever the clock does, nobody waits longer than the span."""
    rate, now = Rate(3, 60.0), 1000.0
    for amount, step in steps:
        now += step
        rate.spend("a", amount, now)
        assert 0 <= rate.wait("a", now) <= 60
    assert rate.wait("a", now + 60) == 0
