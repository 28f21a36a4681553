"""Where things lie for a user."""

import pytest

from memd.core import places


def test_without_xdg_everything_lies_below_the_home() -> None:
    """The defaults of the XDG specification hold where the variables are missing."""
    found = places.find({}, "/home/you", "linux")
    assert found.socket == "/home/you/.local/state/memd/run/memd.sock"
    assert found.database == "/home/you/.local/state/memd/state.db"
    assert found.lock == "/home/you/.local/state/memd/memd.lock"
    assert found.log == "/home/you/.local/state/memd/memd.log"
    assert found.headers == "/home/you/.local/state/memd/headers"
    assert found.config == "/home/you/.config/memd/memd.toml"


def test_xdg_variables_count_when_they_are_absolute() -> None:
    """A relative XDG variable is ignored, an absolute one is used."""
    environ = {
        "XDG_RUNTIME_DIR": "/run/user/7/",
        "XDG_STATE_HOME": "state",
        "XDG_CONFIG_HOME": "/c",
    }
    found = places.find(environ, "/home/you", "linux")
    assert found.socket == "/run/user/7/memd/memd.sock"
    assert found.state_dir == "/home/you/.local/state/memd"
    assert found.config == "/c/memd/memd.toml"


def test_memds_own_variables_win() -> None:
    """MEMD_SOCKET, MEMD_STATE_DIR and MEMD_CONFIG decide wherever they are set."""
    environ = {"MEMD_SOCKET": "/s", "MEMD_STATE_DIR": "/st", "MEMD_CONFIG": "/c.toml"}
    found = places.find(environ, "/home/you", "linux")
    assert (found.socket, found.state_dir, found.config) == ("/s", "/st", "/c.toml")


def test_macos_keeps_to_application_support() -> None:
    """On macOS socket, state and settings lie in Application Support."""
    found = places.find({"XDG_RUNTIME_DIR": "/run"}, "/Users/you", "darwin")
    assert found.state_dir == "/Users/you/Library/Application Support/memd"
    assert found.socket == "/Users/you/Library/Application Support/memd/run/memd.sock"
    assert found.config == "/Users/you/Library/Application Support/memd/memd.toml"


@pytest.mark.parametrize(("platform", "limit"), [("linux", 107), ("darwin", 103)])
def test_a_long_socket_path_is_refused_in_words(platform: str, limit: int) -> None:
    """A path that the kernel could not take names the variable that helps."""
    fits = "/" + "x" * (limit - 1)
    assert places.find({"MEMD_SOCKET": fits}, "/h", platform).socket == fits
    with pytest.raises(places.SocketPathTooLongError, match="set MEMD_SOCKET") as caught:
        places.find({"MEMD_SOCKET": fits + "x"}, "/h", platform)
    assert caught.value.facts["limit"] == limit


def test_only_the_recognised_variables_are_forwarded() -> None:
    """A client hands on nothing but what choosing a directory needs."""
    environ = {"MEMD_DISABLE": "1", "ANTHROPIC_API_KEY": "secret", "PATH": "/bin"}
    assert places.forwarded(environ) == {"MEMD_DISABLE": "1"}


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
