"""Parameters of every method."""

import pytest

from memd.base.errors import Invalid
from memd.daemon.table import methods
from memd.methods.method import IDENTIFIERS, moment, seconds
from tests.support.caller import Caller
from tests.traces import traces

pytestmark = pytest.mark.anyio


async def test_wrong_parameters_are_named(caller: Caller) -> None:
    """A missing, an unknown and a wrong member are each named in the error."""
    missing = await caller.refused("memory.read")
    assert (missing.code, "path" in str(missing)) == (-32602, True)
    unknown = await caller.refused("memory.read", path="a.md", colour="red")
    assert "colour" in str(unknown)
    wrong = await caller.refused("memory.read", path=3)
    assert str(wrong) == "memory.read: path: expected str, got int"


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"days": 400}, "report: days: expected int <= 365"),
        ({"days": "x"}, "report: days: expected int, got str"),
        ({"weeks": 1}, "report: object contains unknown field weeks"),
    ],
)
async def test_a_wrong_parameter_is_told_in_words(
    caller: Caller, params: dict[str, object], sentence: str
) -> None:
    """The parameter comes first, without the notation of the library that found it."""
    error = await caller.refused("report", **params)
    assert str(error) == sentence


async def test_an_error_never_repeats_a_credential(caller: Caller) -> None:
    """What looks like a credential in a caller's own words does not come back in the error."""
    token = "ghp_" + "16C7e42F292c6912" + "E7710c838347Ae178B4a"
    error = await caller.refused("memory.read", path=f"{token}.md")
    assert error.code == 1001
    assert token not in f"{error} {error.facts}"
    assert "[secret:" in str(error)


async def test_optional_members_may_be_null(caller: Caller) -> None:
    """Null stands for a member that was left out, in every method about a project."""
    for row in methods():
        fields = row.params.__struct_fields__
        written = row.params.__struct_encode_fields__
        named = zip(fields, written, strict=True)
        optional = {name: None for field, name in named if field not in _required(row.params)}
        if "cwd" in fields and row.permission == "read" and not _required(row.params) - {"cwd"}:
            params = {k: v for k, v in optional.items() if k != "cwd"}
            if row.name.startswith("team."):  # understood, and refused: nothing was joined
                assert (await caller.refused(row.name, **params)).kind == "team_not_joined"
            else:
                await caller.call(row.name, **params)


async def test_an_identifier_that_is_a_credential_is_not_stored(caller: Caller) -> None:
    """A token as a client's, a request's or a session's name is hidden, and does what it did."""
    token = "ghp_" + "16C7e42F292c6912" + "E7710c838347Ae178B4a"
    await caller.plain(
        "hello", client=token, version=token, environment={"MEMD_EXTRA_GUIDELINES": token}
    )
    written = await caller.write(session_id=token, request_id=token)
    assert (await caller.write(session_id=token, request_id=token))["change"] == written["change"]
    await caller.call("memory.tool", command={"command": "view", "path": "/"}, session_id=token)
    await caller.call("session", session_id=token, event="start")
    await caller.call("prefetch", session_id=token, query="may I mock the database in tests?")
    await caller.call("extract", session_id=token, messages=[], wait=True)
    payload = {"session_id": token, "prompt_id": token, "cwd": caller.cwd, "prompt": "the tests?"}
    for event in ("SessionStart", "UserPromptSubmit", "SessionEnd"):
        await caller.plain("hook", client="claude-code", event=event, payload=payload)
    results = await caller.call("memory.history", session=token)
    assert [change["id"] for change in results["changes"]] == [written["change"]]
    assert results["changes"][0]["session"].startswith("hidden-")
    await caller.call("session", session_id=token, event="end")
    assert traces(caller.home.places.state_dir, token) == []


def test_every_name_of_a_parameter_is_known() -> None:
    """A parameter that is plain text is an identifier, or one of those known to be none."""
    # Whoever adds one decides here: what names a caller is hidden where it is a credential.
    plain = {
        "agent",
        "body",
        "change",
        "content",
        "cwd",
        "description",
        "dest",
        "event",
        "extra_guidelines",
        "feedback",
        "summary",
    }
    plain |= {
        "after",
        "hook",
        "instructions",
        "into",
        "job",
        "name",
        "path",
        "pattern",
        "project",
        "proposal",
        "rule",
        "tool",
        "query",
        "reason",
        "section",
        "source",
        "suggestion",
        "text",
        "title",
    }
    plain |= {
        "after",
        "as_of",
        "at",
        "base_hash",
        "before",
        "from",
        "hash",
        "kind",
        "model",
        "reader",
        "since",
        "source_path",
        "to",
        "transcript_path",
        "until",
    }
    fields = {
        name.strip("_")
        for row in methods()
        for name, kind in row.params.__annotations__.items()
        if kind in {str, str | None}
    }
    assert fields <= plain | IDENTIFIERS


def test_times_are_texts_or_numbers() -> None:
    """ISO 8601 without a zone is UTC; a number is seconds; nothing is nothing."""
    assert seconds("since", "1970-01-01 00:01") == seconds("since", 60.0) == 60.0
    assert seconds("since", 1_772_539_200.25) == 1_772_539_200.25
    assert seconds("since", None) is None


def test_a_version_is_a_change_or_a_time() -> None:
    """What looks like the id of a change is one."""
    assert moment("at", "c12") == "c12"
    assert moment("at", "60") == 60.0
    assert moment("at", None) is None
    with pytest.raises(Invalid):
        moment("at", "c")


def _required(params: type) -> set[str]:
    fields: tuple[str, ...] = getattr(params, "__struct_fields__", ())
    defaults = getattr(params, "__struct_defaults__", ())
    return set(fields[: len(fields) - len(defaults)]) if defaults else set(fields)
