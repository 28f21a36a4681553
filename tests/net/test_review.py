"""What waits for the person: words that may be worth remembering, accepted or dismissed once."""

from typing import Any

import pytest

from tests.net.kit import Project
from tests.net.wire import RpcError

SAID = "Stop summarizing what you just did at the end of every response, I can read the diff."
ACCEPT, DISMISS = "accept", "dismiss"


def _heard(project: Project, words: str = SAID) -> None:
    """Let somebody say something in a conversation that memd learns from."""
    talk = project.conversation().user(words).assistant("ok")
    place = {"session_id": talk.session, "transcript_path": str(talk.path)}
    assert project.call("extract", **place, wait=True)["status"] == "completed"


def _waiting(project: Project) -> list[dict[str, Any]]:
    return list(project.call("review.list")["items"])


def _decide(project: Project, item: dict[str, Any], choice: str, **more: Any) -> Any:
    return project.call("review.decide", id=item["id"], choice=choice, **more)


def test_a_suggestion_has_the_words_and_who_said_them(project: Project) -> None:
    """What may be worth remembering waits with its words, session and time, and is no memory."""
    _heard(project)
    (item,) = _waiting(project)
    assert item["text"] == SAID
    assert item["origin"] == "user"
    assert item["at"]
    assert set(project.tree()) <= {"MEMORY.md"}


def test_what_is_accepted_is_one_change(project: Project) -> None:
    """An accepted suggestion is a memory, one change, and gone after one undo."""
    _heard(project)
    (item,) = _waiting(project)
    before = project.tree()
    _decide(project, item, ACCEPT)
    assert any(SAID in text for text in project.tree().values())
    assert _waiting(project) == []
    (change,) = project.call("memory.history")["changes"]
    project.call("memory.undo", change=change["id"])
    assert not any(SAID in text for text in project.tree().values())
    assert set(project.tree()) - {"MEMORY.md"} == set(before) - {"MEMORY.md"}


@pytest.mark.parametrize("first", [ACCEPT, DISMISS])
def test_nothing_is_decided_twice(project: Project, first: str) -> None:
    """After a decision another one is refused and changes nothing."""
    _heard(project)
    (item,) = _waiting(project)
    _decide(project, item, first)
    before = project.tree()
    for second in (ACCEPT, DISMISS):
        with pytest.raises(RpcError):
            _decide(project, item, second)
    assert project.tree() == before


def test_what_was_dismissed_is_never_offered_again(project: Project) -> None:
    """The same words in another session are no suggestion any more."""
    _heard(project)
    (item,) = _waiting(project)
    _decide(project, item, DISMISS)
    _heard(project)
    assert _waiting(project) == []


def test_memctl_lists_and_decides(project: Project) -> None:
    """The command line shows what waits, and accepts it in other words."""
    _heard(project)
    (item,) = _waiting(project)
    assert SAID in project.memctl("review").stdout
    words = "The staging database is db.stage.example."
    done = project.memctl("review", "accept", item["id"], "--text", words)
    assert done.returncode == 0, done.stderr
    assert any(words in text for text in project.tree().values())


def test_the_review_has_one_shape_of_item(project: Project) -> None:
    """An item has id, kind, project, time, a title, its text, and the choices."""
    _heard(project)
    (item,) = project.call("review.list")["items"]
    assert item["kind"] == "suggestion"
    assert item["project"] == project.cwd
    assert item["title"]
    assert item["text"] == SAID
    assert item["choices"] == ["accept", "dismiss"]


def test_the_review_decides(project: Project) -> None:
    """A choice is accepted once, and another one is a conflict."""
    _heard(project)
    (item,) = project.call("review.list")["items"]
    project.call("review.decide", id=item["id"], choice="accept")
    with pytest.raises(RpcError) as error:
        project.call("review.decide", id=item["id"], choice="dismiss")
    assert error.value.kind == "conflict"


def test_memctl_review_shows_what_waits(project: Project) -> None:
    """The command review shows what waits here, and with --all in every project."""
    _heard(project)
    assert SAID in project.memctl("review").stdout
    elsewhere = project.home.project()
    assert SAID in elsewhere.memctl("review", "--all").stdout
    assert SAID not in elsewhere.memctl("review").stdout
