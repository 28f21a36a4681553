"""Which repository a checkout belongs to."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.projects.remotes import normalised, origin, repository_of

APP = "github.com/acme/app"


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/acme/app",
        "https://github.com/acme/app/",
        "https://github.com/acme/app.git",
        "http://GitHub.com:80/Acme/App.git/",
        "https://anna:secret@github.com:443/acme/app",
        "https://github.com./acme//app",
        "https://github.com/acme/app.git?ref=main#readme",
        "https://github.com/%61cme/app",
        "ssh://git@github.com/acme/app.git",
        "ssh://git@github.com:22/acme/app.git",
        "git+ssh://git@github.com/acme/app",
        "git://github.com:9418/acme/app.git",
        "git@github.com:acme/app.git",
        "git@github.com:/acme/app.git/",
        "github.com:Acme/App",
        "  https://github.com/acme/app\n",
    ],
)
def test_each_way_to_a_repository_is_one_name(url: str) -> None:
    """Scheme, user, default port, case, ending, query and fragment make no other repository."""
    assert normalised(url) == APP


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("ssh://git@host:2222/app.git", "host:2222/app"),
        ("ssh://git@host:02222/app", "host:2222/app"),
        ("https://bücher.example/a", "xn--bcher-kva.example/a"),
        ("https://BÜCHER。example/a", "xn--bcher-kva.example/a"),
        ("https://xn--bcher-kva.example/a", "xn--bcher-kva.example/a"),
        ("ssh://git@[2001:DB8::0:1]:22/a", "[2001:db8::1]/a"),
        ("git@[::1]:a/b", "[::1]/a/b"),
        ("https://host/a%2520b", "host/a%20b"),  # decoded once
        ("https://host/a%20b", "host/a b"),
        ("https://host/app.git.git", "host/app.git"),
        ("host:~anna/app", "host/~anna/app"),
    ],
)
def test_an_address_has_one_spelling(url: str, name: str) -> None:
    """Hosts are in ASCII and lower case, other ports stay, paths are decoded once."""
    assert normalised(url) == name


@pytest.mark.parametrize(
    "url",
    [
        *("", ".", "..", "/srv/app.git", "./app", "../app", "app", "~/app", "./a:b", "dir/a:b"),
        *("C:\\app", "C:/app", "c:app", "\\\\server\\share", "file:///srv/app", "FILE://h/a"),
        *("ext::sh -c id", "fd::3", "https::x", "javascript://h/a", "ftp://h/a"),
        *("https://", "https://host", "https://host/", "https:///a", "https://host/.git"),
        *("https://host/a/../b", "https://host/%2e%2e/b", "https://host/a/./b", "h:../b"),
        *("https://ho st/a", "https://host/a%0ab", "https://host/a\nb", "https://h\0/a"),
        *("https://host/%ff", "https://ho%73t/a", "https://host:x/a", "https://host:1:2/a"),
        *("https://a..b/c", "https://[::1/a", "https://[x]/a", "https://" + "a" * 254 + "/b"),
        *("https://h/\u202ea", "https://h/" + "a" * 3_000, "\u00fc" * 5_000 + ":a"),
        *(
            "https://-\u00fc" + "a" * 80 + "/b",
            "ssh://u@v@/a",
            "@:a",
            ":a",
            "a:",
            "https://h/%"[:10],
        ),
    ],
)
def test_what_is_no_address_of_a_server_is_none(url: str) -> None:
    """Local paths, helpers, and what only resembles an address have no name."""
    assert normalised(url) == ""


@given(st.text(max_size=80) | st.from_regex(r"[a-z+]{0,5}:?/{0,2}[^\n]{0,30}[:/][^\n]{0,30}"))
def test_a_name_is_clean_and_stays_itself(url: str) -> None:
    """Of any text: a printable name without user or scheme, and its own name as an address."""
    name = normalised(url)
    if not name:
        return
    host, _, path = name.partition("/")
    assert host.isascii()
    assert "@" not in host
    assert name.isprintable()
    assert path
    assert not {"", ".", ".."} & set(path.split("/"))
    if not path.endswith(".git") and not {"%", "?", "#"} & set(path):
        assert normalised(f"https://{name}") == name


CONFIG = """[core]
\trepositoryformatversion = 0
\tworktree = "/home/anna/a"
[remote "upstream"]
\turl = https://example.com/up
[remote "origin"]
\turl = git@github.com:acme/app.git
\turl = https://example.com/second
\tpushurl = https://example.com/push
\tfetch = +refs/heads/*:refs/remotes/origin/*
[url "https://elsewhere/"]
\tinsteadOf = git@github.com:
[include]
\tpath = /etc/other
[branch "main"]
\tremote = origin
"""


@pytest.mark.parametrize(
    ("config", "url"),
    [
        (CONFIG, "git@github.com:acme/app.git"),
        (CONFIG.replace("\n", "\r\n"), "git@github.com:acme/app.git"),
        ('[remote "one"]\nurl = "https://h/a#b"', "https://h/a#b"),
        ('[remote "one"]\nurl=a\n[remote "two"]\nurl=b', ""),
        ('[remote "one"]\nurl=a\n[remote "two"]\nurl=b\n[remote "origin"]\nfetch=x', ""),
        ('[remote "origin"]\nurl', ""),
        ("[remote]\nurl = a", ""),
        ("url = a", ""),
        ("", ""),
    ],
)
def test_origin_is_read_as_git_writes_it(config: str, url: str) -> None:
    """The first address of origin, else of the only remote."""
    assert origin(config) == url


@given(st.text(alphabet='[]"\\=#;\n\r\t aurlremoteorigin.\0-', max_size=200) | st.text())
def test_any_text_has_an_origin_or_none(config: str) -> None:
    """No text of a configuration raises, and a name is made of whatever it holds."""
    assert normalised(origin(config)) == normalised(origin(config).strip())


@pytest.mark.parametrize("piece", ['"', "[", '[remote "', "url=", "url=\n", " ", "a:"])
def test_long_nonsense_takes_no_long_time(piece: str) -> None:
    """A hostile file of the greatest length is read at once, whatever it repeats."""
    text = piece * (1_000_000 // len(piece))
    assert normalised(origin(text)) == normalised(text) == ""


def test_each_way_to_a_repository_names_the_same_one(tmp_path: Path) -> None:
    """A checkout names its origin in one form, whichever way it is reached by."""
    config = tmp_path / ".git" / "config"
    config.parent.mkdir()
    for url in ("git@github.com:Acme/App.git", "https://anna@github.com/acme/app/"):
        config.write_text(f'[remote "origin"]\n\turl = {url}\n')
        assert repository_of(str(tmp_path)) == APP
    config.unlink()
    assert repository_of(str(tmp_path)) == ""


def test_a_link_names_no_repository(tmp_path: Path) -> None:
    """A checkout cannot borrow another's repository through a link, nor hang or fill the daemon."""
    real, linked, whole = (tmp_path / name for name in ("real", "linked", "whole"))
    for folder in (real, linked):
        (folder / ".git").mkdir(parents=True)
    config = real / ".git" / "config"
    config.write_text('[remote "origin"]\n\turl = git@github.com:acme/app\n')
    assert repository_of(str(real)) == APP
    borrowed = linked / ".git" / "config"
    borrowed.symlink_to(config)
    assert repository_of(str(linked)) == ""
    whole.mkdir()
    (whole / ".git").symlink_to(real / ".git")
    assert repository_of(str(whole)) == ""
    borrowed.unlink()
    os.mkfifo(borrowed)
    assert repository_of(str(linked)) == ""
    (whole / ".git").unlink()
    (whole / ".git").write_text("gitdir: elsewhere\n")
    assert repository_of(str(whole)) == ""
    assert repository_of("/no\0where") == ""
