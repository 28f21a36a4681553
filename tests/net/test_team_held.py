"""Team memory of one member: what is held, listed, quoted and renamed (9.3, 9.4, 9.7)."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.net.clocked_home import clocked_home
from tests.net.team_server import Device, Member, TeamServer, entry, memory, serving
from tests.net.wire import Json, RpcError

LINES = "Tag the release.\n\nBuild the wheel.\n\nPublish the notes."
TOKEN = "token: ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"

pytestmark = pytest.mark.full  # a server, two members and their daemons


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    """Serve one repository."""
    with serving(tmp_path_factory.mktemp("team")) as made:
        yield made


@pytest.fixture(scope="module")
def anna(server: TeamServer) -> Iterator[Member]:
    """Return a member with a daemon."""
    with clocked_home() as home:
        member = Member(home)
        member.join(server.url, server.code("anna"))
        yield member


@pytest.fixture(scope="module")
def bert(server: TeamServer) -> Device:
    """Return a maintainer who talks to the server himself."""
    return server.device("bert", "maintainer")


@pytest.fixture
def key() -> str:
    """Return a new key."""
    return f"k{uuid.uuid4().hex[:8]}.md"


HELD: dict[str, str] = {
    "a credential": memory(TOKEN),
    "a person": memory("Anna is a beginner.", "user"),
    "no type": "---\nname: a\ndescription: b\n---\n\nText.\n",
}


@pytest.mark.parametrize("name", HELD)
def test_what_is_not_shared_is_held_and_the_rest_goes(
    anna: Member, bert: Device, key: str, name: str
) -> None:
    """A file with a credential, about a person or without a type stays here; the others go."""
    anna.project.put(f"team/{key}", HELD[name])
    other = f"x{key}"
    anna.put(other, "Fine.")
    anna.sync()
    assert bert.row(key) is None
    assert bert.row(other)
    assert anna.lists("held", key)
    assert TOKEN[-20:] not in str(anna.status())
    anna.call("team.resolve", path=f"team/{key}", how="theirs")
    assert anna.text(key) == ""


@pytest.mark.parametrize("target", ["/etc/passwd", "/nowhere/x", "../private.md"])
def test_a_link_is_neither_sent_nor_replaced(
    anna: Member, bert: Device, key: str, target: str
) -> None:
    """A link below team/, dangling too, stays; what the server has under its name is left out."""
    anna.put("../private.md", "Private words.")
    (anna.team / key).symlink_to(target)
    anna.sync()
    assert bert.row(key) is None
    bert.put(entry(key, memory("Of Bert.")))
    anna.sync()
    assert (anna.team / key).is_symlink()
    assert anna.lists("left_out", key)
    assert "Private words." in anna.project.read("private.md")


def test_a_private_memory_is_never_sent(anna: Member, bert: Device) -> None:
    """What lies beside team/ is no entry."""
    anna.project.write("beside.md", "Private words of Anna.")
    anna.sync()
    assert "Private words of Anna" not in bert.page().body.decode()


def test_a_memory_is_shared_as_one_change(anna: Member, key: str) -> None:
    """``team.share`` moves a private memory below team/, as one change that undo takes back."""
    anna.project.write(key, "A convention.")
    shared_as = anna.call("team.share", path=key)
    assert shared_as["path"] == f"team/{key}"
    assert (anna.text(key) != "", (anna.project.memory / key).exists()) == (True, False)
    anna.call("memory.undo", change=shared_as["change"])
    assert (anna.text(key), (anna.project.memory / key).exists()) == ("", True)
    anna.call("memory.delete", path=key)


def test_a_colleagues_text_is_quoted(anna: Member, bert: Device, key: str) -> None:
    """A prompt shows whose words they are, as the server names the author."""
    words = "The zebra cluster restarts at midnight."
    bert.put(entry(key, memory(f"{words}\n", name="zebra-cluster")))
    anna.sync()
    given: dict[str, Json] = {"query": "when does the zebra cluster restart", "deadline_ms": 10000}
    block = anna.call("prefetch", session_id=key, **given)["block"]
    assert "Team memory by bert (saved " in block
    why = anna.call("memory.why", path=f"team/{key}")
    assert why["origin"].startswith("team")
    assert "bert" in str(why)


def test_the_log_is_the_servers(anna: Member, bert: Device, key: str) -> None:
    """``team.log`` lists the versions of a key with author and revision, newest first."""
    revision = anna.share(bert, key, LINES)
    newest = bert.change(key, revision, "Tag", "Sign")
    versions = anna.call("team.log", path=f"team/{key}")["versions"]
    assert [(each["member"], each["revision"]) for each in versions] == [
        ("bert", newest),
        ("anna", revision),
    ]


def test_another_origin_pauses_the_sync(anna: Member, bert: Device, key: str) -> None:
    """A checkout that names another repository now sends and takes nothing, and says so."""
    before = bert.page().json["revision"]
    anna.put(key, "Text.")
    anna.origin("https://github.com/other/app")
    try:
        with pytest.raises(RpcError, match=r"origin|repository"):
            anna.sync()
        assert anna.status()["paused"]
        assert bert.page().json["revision"] == before
    finally:
        anna.origin("git@github.com:Acme/App.git")
    anna.sync()
    assert bert.row(key)


RENAMED: dict[str, Callable[[Member, str], Any]] = {
    "sync": lambda anna, _: anna.call("team.sync"),
    "status with a path": lambda anna, key: anna.call("team.status", path=f"team/{key}"),
    "log without a path": lambda anna, _: anna.call("team.log"),
}


@pytest.mark.parametrize("name", RENAMED)
def test_new_names(anna: Member, bert: Device, key: str, name: str) -> None:
    """One method syncs; status has differences, log the members."""
    anna.share(bert, key, LINES)
    RENAMED[name](anna, key)


def test_the_review_has_what_waits(anna: Member, bert: Device, key: str) -> None:
    """What waits for a decision is in ``review.list`` too."""
    revision = anna.share(bert, key, LINES)
    anna.put(key, LINES.replace("Tag", "Sign"))
    bert.change(key, revision, "Tag", "Mark")
    anna.sync()
    (item,) = [each for each in anna.call("review.list", kind="team")["items"] if key in each["id"]]
    assert (item["id"], item["choices"]) == (f"team/{key}", ["ours", "theirs", "edit"])
    assert "Sign the release." in item["files"][0]["diff"]
    anna.call("review.decide", id=item["id"], choice="ours")
    assert "Sign the release." in bert.row(key)["content"]
    assert item["id"] not in str(anna.call("review.list"))
    with pytest.raises(RpcError):
        anna.call("review.decide", id=item["id"], choice="theirs")


def test_memctl_edits_a_conflict(anna: Member, bert: Device, key: str) -> None:
    """Both texts of a conflict are opened in the editor, and what is saved is sent."""
    revision = anna.share(bert, key, LINES)
    anna.put(key, LINES.replace("Tag", "Sign"))
    bert.change(key, revision, "Tag", "Mark")
    anna.sync()
    editor = {"VISUAL": "sed -i -E -e /^[<=>]{7}/d -e /Mark/d"}
    done = anna.project.memctl("review", "edit", f"team/{key}", environ=editor)
    assert done.returncode == 0, done.stderr
    assert "Sign the release." in bert.row(key)["content"]
    assert "Mark" not in bert.row(key)["content"]


def test_a_held_file_is_decided_in_the_review(anna: Member, key: str) -> None:
    """A file that is not sent waits in the review without its secret, and goes by a decision."""
    anna.project.put(f"team/{key}", HELD["a credential"])
    anna.sync()
    (item,) = [each for each in anna.call("review.list")["items"] if key in each["id"]]
    assert TOKEN[-20:] not in str(item)
    anna.call("review.decide", id=item["id"], choice="theirs")
    assert anna.text(key) == ""


def test_a_write_for_the_team(anna: Member, key: str) -> None:
    """``memory.write`` with ``scope: team`` writes below team/."""
    given = {"name": "x", "description": "about x", "type": "project", "body": "Text."}
    written = anna.call("memory.write", path=key, scope="team", **given)
    assert written["path"] == f"team/{key}"
