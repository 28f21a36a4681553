"""The settings files."""

import os
from pathlib import Path

import pytest

from memd.base.settings import Settings
from memd.projects.configuration import Configuration


def write(path: Path, text: str) -> str:
    """Write one file with the mode of a user's own settings."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def test_policy_wins_over_the_user(tmp_path: Path) -> None:
    """The system policy has the last word, the user's file the rest."""
    user = write(tmp_path / "memd.toml", "[recall]\nlimit = 3\nenabled = true\n")
    policy = write(tmp_path / "policy.toml", "[recall]\nenabled = false\n")
    settings, problems = Configuration(user, policy).current()
    assert (settings.recall.limit, settings.recall.enabled, problems) == (3, False, ())


def test_a_repository_may_only_switch_off(tmp_path: Path) -> None:
    """A project's own file can turn memory off and sets nothing else."""
    root = tmp_path / "hostile"
    write(root / ".memd.toml", 'enabled = false\nbase_dir = "/home/you/.ssh"\n')
    configuration = Configuration(str(tmp_path / "no"), str(tmp_path / "none"))
    settings, problems = configuration.current(str(root))
    assert (settings.enabled, settings.base_dir) == (False, "")
    assert "base_dir" in problems[0]
    assert configuration.current()[0].enabled


def test_a_repository_cannot_switch_on(tmp_path: Path) -> None:
    """What the user switched off stays off whatever a repository says."""
    user = write(tmp_path / "memd.toml", "enabled = false\n")
    write(tmp_path / "root" / ".memd.toml", "enabled = true\n")
    configuration = Configuration(user, str(tmp_path / "none"))
    assert not configuration.current(str(tmp_path / "root"))[0].enabled


@pytest.mark.parametrize("value", ["0", "1.0", '"no"'])
def test_a_repository_switches_memory_off_by_false_alone(tmp_path: Path, value: str) -> None:
    """Another value is ignored, and a sentence says so."""
    write(tmp_path / ".memd.toml", f"enabled = {value}\n")
    settings, problems = Configuration("/nowhere", "/nowhere").current(str(tmp_path))
    assert settings.enabled
    assert "must be true or false" in problems[0]


@pytest.mark.parametrize("content", [b"x = [", b"\xff\xfe", b"a = " + b"[" * 5000, b"= 1"])
def test_a_broken_file_is_reported_and_ignored(tmp_path: Path, content: bytes) -> None:
    """What is not TOML is named in a sentence, and the defaults stand."""
    (tmp_path / "memd.toml").write_bytes(content)
    (tmp_path / "memd.toml").chmod(0o600)
    settings, problems = Configuration(str(tmp_path / "memd.toml"), "/nowhere").current()
    assert settings == Settings()
    assert "is not valid TOML" in problems[0]


def test_a_file_that_others_may_write_is_ignored(tmp_path: Path) -> None:
    """A group-writable settings file could name another's endpoint: it does not count."""
    user = write(tmp_path / "memd.toml", "enabled = false\n")
    os.chmod(user, 0o620)
    settings, problems = Configuration(user, "/nowhere").current()
    assert settings.enabled
    assert "chmod go-w" in problems[0]


def test_what_is_no_file_is_ignored(tmp_path: Path) -> None:
    """A FIFO, a directory or a huge file as settings neither hangs nor counts."""
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path):
        settings, problems = Configuration(str(path), "/nowhere").current()
        assert settings == Settings()
        assert "not a regular file" in problems[0]
    (tmp_path / "huge").write_bytes(b"#" * (1024 * 1024 + 1))
    assert "at most 1 MiB" in Configuration(str(tmp_path / "huge"), "/nowhere").current()[1][0]


def test_an_unreadable_place_is_a_problem(tmp_path: Path) -> None:
    """A path that cannot be looked at is reported in words."""
    (tmp_path / "loop").symlink_to("loop")
    settings, problems = Configuration(str(tmp_path / "loop"), "/nowhere").current()
    assert settings == Settings()
    assert "cannot be read" in problems[0]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_foreign_file_is_ignored(tmp_path: Path) -> None:
    """A settings file of another user does not count, nor one that cannot be opened."""
    user = write(tmp_path / "memd.toml", "enabled = false\n")
    os.chown(user, 65534, 65534)
    assert "another user" in Configuration(user, "/nowhere").current()[1][0]


def test_a_repository_sets_neither_model_nor_caps(tmp_path: Path) -> None:
    """No file of a project says whom memd asks, with which key, or what may be spent."""
    root = tmp_path / "hostile"
    write(
        root / ".memd.toml",
        '[model]\nbase_url = "https://evil.example"\n[spend]\ndollars_per_day = 99\n',
    )
    configuration = Configuration(str(tmp_path / "no"), str(tmp_path / "none"))
    settings, problems = configuration.current(str(root))
    assert settings == Settings()
    assert "model, spend" in problems[0]


def test_a_repository_makes_incoming_messages_stricter_only(tmp_path: Path) -> None:
    """A project may have messages held or refused; what it would loosen stays, and is named."""
    root = tmp_path / "hostile"
    write(
        root / ".memd.toml",
        '[messages]\ninbound = "refuse"\ninbound_across = "accept"\n'
        'inbound_unregistered = ["accept"]\nenabled = true\n',
    )
    configuration = Configuration(str(tmp_path / "no"), str(tmp_path / "none"))
    messages = configuration.current(str(root))[0].messages
    assert (messages.inbound, messages.inbound_across) == ("refuse", "hold")
    assert messages.inbound_unregistered == "hold"
    (problem,) = configuration.current(str(root))[1]
    names = ("enabled", "inbound_across", "inbound_unregistered")
    assert problem.endswith(", ".join(f"messages.{name}" for name in names))
    assert configuration.current()[0].messages.inbound == "accept"
    write(root / ".memd.toml", 'messages = "accept"\n')
    assert configuration.current(str(root))[0].messages.inbound == "accept"


def test_a_key_that_others_may_read_is_ignored(tmp_path: Path) -> None:
    """The rest of the file counts, the problem does not show the key, and chmod is enough."""
    text = '[model]\nbase_url = "https://gate.example"\napi_key = "sk-hidden"\nauth_token = "tok"\n'
    user = write(tmp_path / "memd.toml", text)
    os.chmod(user, 0o644)
    configuration = Configuration(user, str(tmp_path / "none"))
    settings, problems = configuration.current()
    assert (settings.model.base_url, settings.model.api_key) == ("https://gate.example", "")
    assert settings.model.auth_token == ""
    assert "model.api_key and model.auth_token" in problems[0]
    assert "chmod 600" in problems[0]
    assert "sk-hidden" not in problems[0]
    os.chmod(user, 0o600)
    assert configuration.current()[0].model.api_key == "sk-hidden"


def test_a_file_that_others_may_read_is_fine_without_a_key(tmp_path: Path) -> None:
    """Only keys are secret."""
    user = write(tmp_path / "memd.toml", '[model]\nbase_url = "http://localhost:1"\n')
    os.chmod(user, 0o644)
    settings, problems = Configuration(user, str(tmp_path / "none")).current()
    assert (settings.model.base_url, problems) == ("http://localhost:1", ())
