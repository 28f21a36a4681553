"""Team memory of one member: what is sent, taken, merged, held and listed (9.2 to 9.4)."""

import shutil
import uuid
from collections.abc import Iterator

import pytest

from tests.net.clocked_home import clocked_home
from tests.net.kit import Home, Project
from tests.net.team_server import Device, Member, TeamServer, entry, memory, serving
from tests.net.wire import RpcError

LINES = "Tag the release.\n\nBuild the wheel.\n\nPublish the notes."

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


def conflict(anna: Member, bert: Device, key: str) -> None:
    """Let both change the same words; Bert's come first."""
    revision = anna.share(bert, key, "Freeze on Monday.")
    bert.change(key, revision, "Monday", "Tuesday")
    anna.put(key, "Freeze on Friday.")
    anna.sync()


def test_a_preview_sends_nothing(own: Home, server: TeamServer) -> None:
    """Joining shows server, repository and files before anything is asked of the server."""
    member = Member(own.start(), "ssh://git@GitHub.com:22/Acme/App.git/")
    member.put("a.md", "Text.")
    before = server.log.read_text()
    shown = member.call("team.join", url=server.url, preview=True)
    assert shown.get("joined") is None
    text = str(shown["preview"])
    assert "github.com/acme/app" in text
    assert server.url in text
    assert "a.md" in text
    assert server.log.read_text() == before
    assert not list((own.path / "h/.config").rglob("*.token"))


@pytest.mark.full
@pytest.mark.parametrize(
    "remote",
    [
        "git@github.com:Acme/App.git",
        "https://user@GITHUB.com:443/acme/app/?x=1#y",
        "git://github.com:9418/acme/app.git",
    ],
)
def test_each_way_to_write_origin_is_one_repository(project: Project, remote: str) -> None:
    """Scheme, user, default port, query, fragment, slash, .git and case do not count."""
    (project.path / ".git/config").write_text(f'[remote "origin"]\n\turl = {remote}\n')
    shown = project.call("team.join", url="http://127.0.0.1:9", preview=True)
    assert "github.com/acme/app" in str(shown["preview"])


def test_nothing_in_a_checkout_joins(home: Home, project: Project, server: TeamServer) -> None:
    """Whatever files a repository brings along, the project has not joined, and nothing is sent."""
    text = f'[team]\nenabled = true\nurl = "{server.url}"\nserver = "{server.url}"\n'
    for name in (".memd.toml", "memd.toml", "team.toml", ".claude/settings.json"):
        (project.path / name).parent.mkdir(exist_ok=True)
        (project.path / name).write_text(text)
    project.put("team/team.toml", text)
    project.put("team/a.md", memory("Text."))
    before = server.log.read_text()
    for method in ("team.status", "team.sync"):
        with pytest.raises(RpcError) as caught:
            project.call(method)
        assert (caught.value.code, caught.value.kind) == (1010, "team_not_joined")
    project.call("load_prompt")
    assert server.log.read_text() == before
    assert home.call("status")


def test_a_membership_is_the_users_own_file(anna: Member) -> None:
    """Membership and token are files below ~/.config, mode 0600."""
    files = [
        path
        for path in (anna.home.path / "h/.config/memd").iterdir()
        if path.suffix == ".token" or path.name == "team.toml"
    ]
    assert len(files) == 2
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_what_a_member_writes_the_server_has(anna: Member, bert: Device, key: str) -> None:
    """A new memory is sent as it is, and the next push sends nothing."""
    anna.put(key, LINES)
    anna.sync()
    assert bert.row(key)["content"] == anna.text(key)
    before = bert.page().json["revision"]
    anna.sync()
    assert bert.page().json["revision"] == before
    assert bert.row("MEMORY.md") is None


def test_what_another_writes_is_taken(anna: Member, bert: Device, key: str) -> None:
    """A pull writes what the server has, with its line in the team's own index."""
    content = memory("Bert's text.", name=key.removesuffix(".md"))
    bert.put(entry(key, content))
    anna.sync()
    assert anna.text(key) == content
    assert key in (anna.team / "MEMORY.md").read_text()


def test_only_what_changed_is_sent(anna: Member, bert: Device, key: str) -> None:
    """A push leaves the other entries' revisions as they are."""
    anna.share(bert, key, LINES)
    bert.put(entry("other.md", memory("Other.", name="other")))
    anna.sync()
    other = bert.row("other.md")
    anna.put(key, LINES.replace("Tag", "Sign"))
    anna.sync()
    assert "Sign" in bert.row(key)["content"]
    assert bert.row("other.md") == other


def test_an_unchanged_text_is_replaced(anna: Member, bert: Device, key: str) -> None:
    """Where nothing was changed here the server's newer text is taken."""
    bert.change(key, anna.share(bert, key, LINES), "Tag", "Sign")
    anna.sync()
    assert "Sign the release." in anna.text(key)


def test_edits_of_different_lines_are_merged(anna: Member, bert: Device, key: str) -> None:
    """Two edits of one memory are both in the text that all have in the end."""
    bert.change(key, anna.share(bert, key, LINES), "Tag", "Sign")
    anna.put(key, LINES.replace("Publish", "Announce"))
    anna.sync()
    for text in (anna.text(key), bert.row(key)["content"]):
        assert "Sign the release." in text
        assert "Announce the notes." in text
    assert not anna.lists("conflicts", key)


def test_a_conflict_keeps_both_texts(anna: Member, bert: Device, key: str) -> None:
    """The file gets the server's text; one's own is listed, and whole in history."""
    conflict(anna, bert, key)
    assert "Tuesday" in anna.text(key)
    assert "Tuesday" in bert.row(key)["content"]
    assert anna.lists("conflicts", key)
    changes = anna.call("memory.history", path=f"team/{key}")["changes"]
    diffs = [anna.call("memory.diff", change=change["id"]) for change in changes]
    assert "Freeze on Friday." in str(diffs)


DECISIONS: dict[str, tuple[dict[str, str], str]] = {
    "ours": ({"how": "ours"}, "Friday"),
    "theirs": ({"how": "theirs"}, "Tuesday"),
    "edit": ({"how": "edit", "text": memory("Freeze on Sunday.")}, "Sunday"),
}


@pytest.mark.parametrize("name", DECISIONS)
def test_a_person_decides_a_conflict(anna: Member, bert: Device, key: str, name: str) -> None:
    """What is decided is what all have, and the conflict is listed no more."""
    given, word = DECISIONS[name]
    conflict(anna, bert, key)
    anna.call("team.resolve", path=f"team/{key}", **given)
    assert word in anna.text(key)
    assert word in bert.row(key)["content"]
    assert not anna.lists("conflicts", key)


def test_without_a_conflict_there_is_nothing_to_decide(anna: Member, key: str) -> None:
    """A decision about a path that waits for none is NotFound."""
    with pytest.raises(RpcError) as caught:
        anna.call("team.resolve", path=f"team/{key}", how="ours")
    assert caught.value.code == 1001


@pytest.mark.parametrize("equal", [True, False])
def test_one_key_written_twice(anna: Member, bert: Device, key: str, equal: bool) -> None:  # noqa: FBT001
    """Equal new texts are adopted, different ones are a conflict with the server's in the file."""
    anna.put(key, "Text.")
    bert.put(entry(key, anna.text(key) if equal else memory("Of Bert.")))
    anna.sync()
    assert anna.lists("conflicts", key) != equal
    assert anna.text(key) == bert.row(key)["content"]


def test_a_deleted_file_comes_back(anna: Member, bert: Device, key: str) -> None:
    """Deleting a file removes it for nobody: it stays on the server, and the next pull restores."""
    revision = anna.share(bert, key, LINES)
    (anna.team / key).unlink()
    anna.sync()
    assert "Tag the release." in anna.text(key)
    assert bert.row(key)["revision"] == revision


def test_a_deleted_folder_comes_back(anna: Member, bert: Device) -> None:
    """A folder that vanishes is restored by the next pull, and nothing is removed."""
    bert.put(entry("sub/one.md", memory("One.", name="one")))
    anna.sync()
    shutil.rmtree(anna.team / "sub")
    anna.sync()
    assert "One." in anna.text("sub/one.md")
    assert bert.row("sub/one.md")


def test_delete_names_what_removes_for_all(anna: Member, bert: Device, key: str) -> None:
    """``memory.delete`` of a team memory is refused and names ``team.remove``."""
    anna.share(bert, key, LINES)
    with pytest.raises(RpcError) as caught:
        anna.call("memory.delete", path=f"team/{key}")
    assert "team remove" in caught.value.data["hint"]
    assert anna.text(key)


def test_a_removed_memory_goes_everywhere(anna: Member, bert: Device, key: str) -> None:
    """``team.remove`` leaves a tombstone with the reason; the file goes and does not return."""
    anna.share(bert, key, LINES)
    anna.call("team.remove", path=f"team/{key}", reason="outdated")
    assert (anna.text(key), bert.row(key)) == ("", None)
    (stone,) = [each for each in bert.page().json["removed"] if each["key"] == key]
    assert (stone["member"], stone["reason"]) == ("anna", "outdated")
    anna.sync()
    assert (anna.text(key), bert.row(key)) == ("", None)


def test_a_removal_by_another_removes_the_file(anna: Member, bert: Device, key: str) -> None:
    """What is as it was last equal goes with the server's tombstone, and is in the history."""
    revision = anna.share(bert, key, LINES)
    assert bert.remove(key, revision).status == 200
    anna.sync()
    assert anna.text(key) == ""
    assert anna.call("memory.history", path=f"team/{key}")["changes"]


def test_a_change_of_what_was_removed_is_held(anna: Member, bert: Device, key: str) -> None:
    """The file stays here unsent and is listed, until a person has it sent."""
    revision = anna.share(bert, key, LINES)
    assert bert.remove(key, revision, "outdated").status == 200
    anna.put(key, "Newer.")
    anna.sync()
    assert (bert.row(key), "Newer." in anna.text(key)) == (None, True)
    assert anna.lists("held", key)
    anna.call("team.resolve", path=f"team/{key}", how="ours")
    assert "Newer." in bert.row(key)["content"]
    assert not anna.lists("held", key)
