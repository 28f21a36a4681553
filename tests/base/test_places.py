"""Where things lie for a user."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base import places
from memd.base.errors import Refused


def test_macos_keeps_to_application_support() -> None:
    """On macOS socket, state and settings lie in Application Support."""
    results = places.find({"XDG_RUNTIME_DIR": "/run"}, "/Users/you", "darwin")
    assert results.state_dir == "/Users/you/Library/Application Support/memd"
    assert results.socket == "/Users/you/Library/Application Support/memd/run/memd.sock"
    assert results.config == "/Users/you/Library/Application Support/memd/memd.toml"


@pytest.mark.parametrize(("platform", "limit"), [("linux", 107), ("darwin", 103)])
def test_a_long_socket_path_is_refused_in_words(platform: str, limit: int) -> None:
    """A path that the kernel could not take names the variable that helps."""
    fits = "/" + "x" * (limit - 1)
    assert places.find({"MEMD_SOCKET": fits}, "/h", platform).socket == fits
    with pytest.raises(Refused, match="set MEMD_SOCKET") as caught:
        places.find({"MEMD_SOCKET": fits + "x"}, "/h", platform)
    assert caught.value.facts["limit"] == limit


def test_a_daemon_does_not_inherit_one_clients_session() -> None:
    """A daemon that a client starts gets its places, not what switches that client's memory."""
    environ = {
        "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
        "MEMD_MEMORY_PATH": "/x/y",
        "NOTIFY_SOCKET": "/n",
        "LISTEN_FDS": "1",
        "MEMD_BASE_DIR": "/b",
        "PATH": "/bin",
    }
    assert places.for_daemon(environ) == {"MEMD_BASE_DIR": "/b", "PATH": "/bin"}


KEYS = st.from_regex(
    r"(ANTHROPIC|CLAUDE|AWS|GITHUB|OPENAI|PYTHON|LD|HTTPS?)_[A-Z_]{0,12}", fullmatch=True
)
OWN = ("HOME", "PATH", "LANG", "LC_ALL", "TMPDIR", "TZ", "XDG_STATE_HOME", "MEMD_CONFIG")


@given(st.dictionaries(KEYS, st.text()), st.dictionaries(st.sampled_from(OWN), st.text()))
def test_a_daemon_inherits_what_is_on_the_list_alone(
    session: dict[str, str], own: dict[str, str]
) -> None:
    """Whatever else a client has in its environment, tokens and loaders too, stays with it."""
    assert places.for_daemon(session | own) == own


def test_no_key_is_forwarded() -> None:
    """Among what a client forwards with each request there is no variable that names a model."""
    assert not [name for name in places.FORWARDED if re.search("ANTHROPIC|KEY|TOKEN|MODEL", name)]
