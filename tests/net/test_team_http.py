"""memd-team by HTTP: joining, reading, writing, removing (9.5)."""

import hashlib
import json
import uuid
from collections.abc import Iterator

import pytest

from tests.net.kit import differs
from tests.net.team_server import LIMITS, Device, TeamServer, entry, memory, serving
from tests.net.wire import Json


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    """Serve one repository, and another one of other people."""
    with serving(tmp_path_factory.mktemp("team")) as made:
        yield made


@pytest.fixture(scope="module")
def anna(server: TeamServer) -> Device:
    """Return a member."""
    return server.device("anna")


@pytest.fixture(scope="module")
def bert(server: TeamServer) -> Device:
    """Return another member."""
    return server.device("bert")


@pytest.fixture(scope="module")
def mara(server: TeamServer) -> Device:
    """Return a maintainer."""
    return server.device("mara", "maintainer")


@pytest.fixture(scope="module")
def rita(server: TeamServer) -> Device:
    """Return a reader."""
    return server.device("rita", "reader")


def new() -> str:
    """Return a key that no test has."""
    return f"k{uuid.uuid4().hex[:10]}.md"


def written(device: Device, key: str, content: str = "", base: int | None = None) -> int:
    """Write an entry and return its revision."""
    answer = device.put(entry(key, content, base))
    assert answer.status == 200, answer.body
    return int(answer.json["entries"][0]["revision"])


def found(device: Device, key: str) -> Json:
    """Return the entry of a key."""
    return {row["key"]: row for row in device.page().json["entries"]}[key]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_whether_the_server_lives_needs_no_token(server: TeamServer, path: str) -> None:
    """Whoever asks whether process and storage answer hears that they do."""
    assert Device(server, "").ask("GET", path).status == 200


def test_a_code_joins_one_device_once(server: TeamServer) -> None:
    """A code is answered with a token and the member's name, the second time with 401."""
    given = {"code": server.code("cleo"), "device": "laptop"}
    first, second = (Device(server, "").ask("POST", "/v1/join", given) for _ in range(2))
    assert (first.status, first.json["member"], second.status) == (201, "cleo", 401)
    assert len(first.json["token"]) >= 43  # 256 bits
    assert Device(server, first.json["token"]).ask("GET", "/v1/repos").status == 200
    assert len(given["code"]) >= 22  # 128 bits


def test_a_repository_is_listed_with_its_limits(server: TeamServer, anna: Device) -> None:
    """A member sees the repositories it has a role in, with epoch, revision and limits."""
    for query, number in {"": 1, "?remote=github.com/acme/app": 1, "?remote=x.org/a/b": 0}.items():
        repositories = anna.ask("GET", f"/v1/repos{query}").json["repos"]
        assert len(repositories) == number
    (row,) = anna.ask("GET", "/v1/repos").json["repos"]
    assert (row["id"], row["remote"]) == (server.repository, "github.com/acme/app")
    assert (row["role"], row["limits"]) == ("member", LIMITS)
    assert row["epoch"]
    assert row["revision"] >= 0


def test_a_written_entry_is_read(anna: Device, bert: Device) -> None:
    """What one member wrote another reads, with hash, size, author and device."""
    key, content = new(), memory("Grüße: the broker listens on 9911.")
    revision = written(anna, key, content)
    row = found(bert, key)
    assert (row["content"], row["member"], row["device"]) == (content, "anna", "laptop")
    assert (row["revision"], row["size"]) == (revision, len(content.encode()))
    assert row["hash"] == hashlib.sha256(content.encode()).hexdigest()
    assert row["at"]


def test_each_accepted_write_is_the_next_revision(anna: Device) -> None:
    """A revision grows by one per write, and the ETag is epoch and revision."""
    before = anna.page().json["revision"]
    answer = anna.put(entry(new()), entry(new()))
    assert answer.json["revision"] == before + 1
    assert [row["status"] for row in answer.json["entries"]] == ["created", "created"]
    page = anna.page()
    assert page.headers["etag"] == f'"{page.json["epoch"]}.{before + 1}"'


def test_equal_bytes_match_any_base(anna: Device, bert: Device) -> None:
    """A write of what is there already is unchanged, whatever its base."""
    key = new()
    revision = written(anna, key)
    for base in (None, 0, 999_999, revision):
        answer = bert.put(entry(key, base=base))
        assert (answer.status, answer.json["entries"][0]["status"]) == (200, "unchanged")
    assert found(anna, key)["revision"] == revision


@pytest.mark.parametrize("base", [None, 1, 999_999])
def test_a_write_on_another_base_applies_nothing(
    anna: Device, bert: Device, base: int | None
) -> None:
    """412 lists the key with revision and hash; other entries of the write are not written."""
    key, other = new(), new()
    written(anna, new())  # so that no revision is 1
    revision = written(anna, key)
    answer = bert.put(entry(other), entry(key, memory("Another text."), base))
    assert (answer.status, answer.error["retryable"]) == (412, False)
    content = str(entry(key)["hash"])
    assert answer.error["entries"] == [{"key": key, "revision": revision, "hash": content}]
    keys = [row["key"] for row in anna.page().json["entries"]]
    assert (key in keys, other in keys) == (True, False)


def test_an_update_on_its_base_replaces_one_key(anna: Device, bert: Device) -> None:
    """An entry that is based on the newest revision is updated; other keys stay."""
    key, other = new(), new()
    revision = written(anna, key)
    written(anna, other)
    answer = bert.put(entry(key, memory("It begins on Friday."), revision))
    assert answer.json["entries"][0]["status"] == "updated"
    assert "Friday" in str(found(anna, key)["content"])
    assert "Thursday" in str(found(anna, other)["content"])


def test_a_removed_entry_is_a_tombstone(anna: Device, bert: Device) -> None:
    """A removal leaves who removed the key, when and why; the key is no entry any more."""
    key = new()
    revision = written(anna, key)
    answer = anna.remove(key, revision, "the freeze is over")
    assert answer.status == 200
    page = bert.page().json
    (row,) = [row for row in page["removed"] if row["key"] == key]
    assert (row["member"], row["reason"]) == ("anna", "the freeze is over")
    assert row["revision"] == answer.json["revision"]
    assert key not in [row["key"] for row in page["entries"]]


def test_only_a_write_based_on_the_tombstone_brings_a_key_back(anna: Device, bert: Device) -> None:
    """A write on an older base, or on none, is 412; one on the tombstone is accepted."""
    key = new()
    revision = written(anna, key)
    tombstone = anna.remove(key, revision).json["revision"]
    for base in (None, revision):
        assert bert.put(entry(key, memory("Again."), base)).status == 412
    assert bert.put(entry(key, memory("Again."), tombstone)).status == 200
    assert "Again." in str(found(anna, key)["content"])


def test_a_removal_names_the_revision(server: TeamServer, anna: Device) -> None:
    """Without If-Match a removal is 428, on an older revision 412, and nothing is removed."""
    key = new()
    revision = written(anna, key)
    newer = written(anna, key, memory("Newer."), revision)
    assert anna.ask("DELETE", f"{server.entries}/{key}?reason=x").status == 428
    assert anna.remove(key, revision).status == 412
    assert found(anna, key)["revision"] == newer


def test_bodies_of_removed_entries_are_for_maintainers(anna: Device, mara: Device) -> None:
    """The history lists each version; what a removed one said only a maintainer reads."""
    key = new()
    first = written(anna, key, memory("The first text."))
    second = written(anna, key, memory("The second text."), first)
    assert ["second" in row["content"] for row in anna.history(key)] == [True, False]
    anna.remove(key, second)
    told = [json.dumps(device.history(key)) for device in (mara, anna)]
    assert ["second text" in each for each in told] == [True, False]
    assert [len(device.history(key)) for device in (anna, mara)] == [3, 3]


def test_since_a_mark_only_what_changed_comes(anna: Device, bert: Device) -> None:
    """A page since an ETag has what was written and removed later, and nothing else."""
    gone, stays = new(), new()
    revision = written(anna, gone)
    written(anna, stays)
    mark = anna.page().headers["etag"].strip('"')
    key = new()
    written(bert, key)
    anna.remove(gone, revision)
    page = anna.page(f"?since={mark}").json
    assert [row["key"] for row in page["entries"]] == [key]
    assert [row["key"] for row in page["removed"]] == [gone]


def test_a_mark_of_another_epoch_is_gone(anna: Device) -> None:
    """A mark from before the repository's epoch is 410."""
    assert anna.page("?since=0123456789abcdef.1").status == 410


def test_an_unchanged_repository_is_304(anna: Device) -> None:
    """Who names the newest ETag gets no page."""
    etag = anna.page("?limit=1").headers["etag"]
    assert anna.page(If_None_Match=etag).status == 304
    written(anna, new())
    assert anna.page(If_None_Match=etag).status == 200


def test_hashes_come_without_content(anna: Device) -> None:
    """``view=hashes`` names key, revision and hash and no text."""
    key = new()
    written(anna, key)
    (row,) = [row for row in anna.page("?view=hashes").json["entries"] if row["key"] == key]
    assert not row.get("content")
    assert row["hash"]


def test_pages_follow_their_cursor(server: TeamServer) -> None:
    """Page by page each key comes once, also one that is written meanwhile."""
    device = server.device("paul")
    device.put(*(entry(new()) for _ in range(7)))
    keys: list[str] = []
    query, late = "?limit=3", new()
    while True:
        page = device.page(query).json
        assert len(page["entries"]) + len(page["removed"]) <= 3
        keys += [row["key"] for row in page["entries"]]
        if late not in keys and len(keys) <= 3:
            written(device, late)
        if page["next"] is None:
            break
        query = f"?limit=3&cursor={page['next']}"
    live = [row["key"] for row in device.page().json["entries"]]
    assert sorted(keys) == sorted(live)
    assert late in keys


def test_one_request_id_has_one_effect(anna: Device, bert: Device) -> None:
    """A resent write gets its first answer, also after others wrote; nothing else happens."""
    key, number = new(), str(uuid.uuid4())
    first = anna.put(entry(key), Idempotency_Key=number)
    newest = written(bert, key, memory("Of Bert."), first.json["revision"])
    again = anna.put(entry(key), Idempotency_Key=number)
    assert (again.status, again.json) == (200, first.json)
    assert found(anna, key)["revision"] == newest
    other = anna.put(entry(new()), Idempotency_Key=number)
    assert (other.status, other.error["kind"]) == (422, "refused")


def test_a_resent_removal_removes_once(server: TeamServer, anna: Device, bert: Device) -> None:
    """A removal under the same id is answered as the first, also once the key is back."""
    key, number = new(), str(uuid.uuid4())
    revision = written(anna, key)
    epoch = anna.page("?limit=1").json["epoch"]
    path = f"{server.entries}/{key}?reason=stale"
    given = {"If_Match": f'"{epoch}.{revision}"', "Idempotency_Key": number}
    first = anna.ask("DELETE", path, **given)
    written(bert, key, memory("Again."), first.json["revision"])
    again = anna.ask("DELETE", path, **given)
    assert (again.status, again.json) == (first.status, first.json)
    assert "Again." in str(found(anna, key)["content"])


def test_what_is_not_granted_is_not_there(server: TeamServer, anna: Device) -> None:
    """Another team's repository and ids that are none are 404 on every route, to read or write."""
    other = server.command("repo", "add", "github.com/other/app")["id"]
    for number in (other, "0" * 16, "x", "%2e%2e", "a%2Fb"):
        path = f"/v1/repos/{number}"
        answers = [
            anna.ask("GET", f"{path}/entries"),
            anna.ask("GET", f"{path}/history?key=a.md"),
            anna.ask("PUT", f"{path}/entries", {"entries": [entry("a.md")]}),
            anna.ask("DELETE", f"{path}/entries/a.md?reason=x", If_Match='"a.1"'),
        ]
        assert [answer.status for answer in answers] == [404] * 4
        assert {answer.error["kind"] for answer in answers} == {"not_found"}


def test_roles_bound_what_a_device_does(anna: Device, bert: Device, rita: Device) -> None:
    """A reader writes and removes nothing, a member removes no entry of another."""
    key = new()
    revision = written(anna, key)
    assert found(rita, key)["member"] == "anna"
    refused = [rita.put(entry(new())), rita.remove(key, revision), bert.remove(key, revision)]
    assert [answer.status for answer in refused] == [403] * 3


def test_a_maintainer_removes_what_others_wrote(anna: Device, mara: Device) -> None:
    """A maintainer may remove every entry."""
    key = new()
    assert mara.remove(key, written(anna, key)).status == 200


def test_a_token_is_given_back(server: TeamServer) -> None:
    """After DELETE /v1/token the token is worth nothing."""
    device = server.device("dora")
    assert device.ask("DELETE", "/v1/token").status == 204
    assert device.ask("GET", "/v1/repos").status == 401


def test_answers_are_packed_for_who_takes_that(anna: Device) -> None:
    """A page comes as gzip where the client accepts it, and plain otherwise."""
    anna.put(*(entry(new()) for _ in range(20)))
    packed, plain = anna.page(Accept_Encoding="gzip"), anna.page()
    assert packed.headers.get("content-encoding") == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.json == plain.json


@pytest.mark.full
def test_a_member_removes_five_a_day(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The sixth removal of a small repository is 422 ``too_much`` and waits for a maintainer."""
    with serving(tmp_path_factory.mktemp("small")) as server:
        anna = server.device("anna")
        answer = anna.put(*(entry(f"k{number}.md") for number in range(10)))
        revision = answer.json["revision"]
        answers = [anna.remove(f"k{number}.md", revision) for number in range(6)]
        assert [answer.status for answer in answers] == [200] * 5 + [422]
        assert answers[-1].error["kind"] == "too_much"


@pytest.mark.full
@differs("9.6", "a member replaces any number of others' texts")
def test_a_member_replaces_five_texts_of_others_a_day(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The sixth replaced text of another member is 422 ``too_much``, step by step too."""
    with serving(tmp_path_factory.mktemp("small")) as server:
        anna, bert = server.device("anna"), server.device("bert")
        keys = [f"k{number}.md" for number in range(10)]
        answer = anna.put(*(entry(key, memory("one\ntwo\nthree\nfour")) for key in keys))
        revision = answer.json["revision"]
        words = memory("other\ntexts\nstand\nhere")
        answers = [bert.put(entry(key, words, revision)) for key in keys[:6]]
        assert [answer.status for answer in answers] == [200] * 5 + [422]
        assert answers[-1].error["kind"] == "too_much"
