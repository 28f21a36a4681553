"""Whom memd asks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base.settings import ModelSettings
from memd.model.endpoint import Endpoint, endpoint, environment

SECRET = "sk-very-secret"  # noqa: S105 - no secret, but looked for as one


def test_the_environment_counts_where_the_settings_say_nothing() -> None:
    """Address, key or token and further headers come from the daemon's environment."""
    environ = {
        "ANTHROPIC_BASE_URL": "https://gate.example/v1/",
        "ANTHROPIC_AUTH_TOKEN": SECRET,
        "ANTHROPIC_CUSTOM_HEADERS": "X-Team: blue\nnonsense",
    }
    results = endpoint(ModelSettings(), environ)
    assert results == Endpoint(
        "https://gate.example", auth_token=SECRET, headers=(("X-Team", "blue"),)
    )
    assert endpoint(ModelSettings(), {"ANTHROPIC_API_KEY": SECRET}) == Endpoint(
        "https://api.anthropic.com", SECRET
    )


def test_an_endpoint_comes_whole_from_one_source() -> None:
    """A key of the environment never goes to an address of the settings, and the other way."""
    environ = {"ANTHROPIC_BASE_URL": "https://gate.example", "ANTHROPIC_API_KEY": SECRET}
    local = endpoint(ModelSettings(base_url="http://localhost:11434"), environ)
    assert local == Endpoint("http://localhost:11434")
    own = endpoint(ModelSettings(api_key="mine", auth_token="unused"), environ)  # noqa: S106 - no secret
    assert own == Endpoint("https://api.anthropic.com", "mine")


@pytest.mark.parametrize(
    ("address", "word"),
    [
        ("http://example.com", "https"),
        ("http://10.0.0.1:8080", "https"),
        ("http://localhost.evil.example", "https"),
        ("http://127.0.0.1.nip.io", "https"),
        ("ftp://localhost", "https"),
        ("localhost:8000", "https"),
        ("https://", "host"),
        ("https://me:pw@example.com", "user"),
        ("https://example.com/?key=1", "query"),
        ("https://example.com:port", "URL"),
        ("http://[::1", "URL"),
        ("http://localhost:0", "host"),
    ],
)
def test_an_address_that_is_not_safe_is_refused(address: str, word: str) -> None:
    """Plain http leaves this machine never, and an address is no place for credentials."""
    problem = endpoint(ModelSettings(base_url=address, api_key=SECRET), {})
    assert isinstance(problem, str)
    assert word in problem
    assert "pw" not in problem


@given(st.text(min_size=1, max_size=8))
def test_a_key_that_no_header_can_hold_is_refused(key: str) -> None:
    """Control characters and what is not ASCII never reach a header."""
    results = endpoint(ModelSettings(api_key=key), {})
    assert isinstance(results, Endpoint) is (key.isascii() and key.isprintable())


def test_nothing_shows_a_credential() -> None:
    """Neither an endpoint's nor the settings' text form holds a key."""
    environ = {"ANTHROPIC_API_KEY": SECRET, "ANTHROPIC_CUSTOM_HEADERS": f"X-Key: {SECRET}"}
    settings = ModelSettings(api_key=SECRET, auth_token=SECRET)
    shown = f"{endpoint(ModelSettings(), environ)} {endpoint(settings, {})} {settings}"
    assert SECRET not in shown


def test_the_env_file_goes_before_the_environment_as_a_whole() -> None:
    """A key of the one never goes to an address of the other; without a name it only adds."""
    started = {"ANTHROPIC_API_KEY": SECRET, "ANTHROPIC_MODEL": "a", "HOME": "/h"}
    own = {"ANTHROPIC_BASE_URL": "https://gate.example", "HTTPS_PROXY": "p"}
    assert environment(started, own) == ({"HOME": "/h", **own}, True)
    assert environment(started, {"HTTPS_PROXY": "p"}) == ({**started, "HTTPS_PROXY": "p"}, False)
