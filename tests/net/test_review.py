"""What waits for the person: words that may be worth remembering, accepted or dismissed once."""

import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.net.kit import Home, Project
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


def test_an_id_counts_in_every_project(project: Project) -> None:
    """What --all shows can be decided from anywhere; the memory goes to its own project."""
    _heard(project)
    elsewhere = project.home.project()
    (item,) = [each for each in _all(elsewhere) if each["project"] == project.cwd]
    done = elsewhere.memctl("review", "accept", item["id"])
    assert done.returncode == 0, done.stderr
    assert any(SAID in text for text in project.tree().values())
    assert elsewhere.tree() == {}


def _all(project: Project) -> list[dict[str, Any]]:
    return list(project.call("review.list", all=True)["items"])


def test_of_two_clients_one_decides(project: Project) -> None:
    """When many clients decide at once, one of them does it and the others get the conflict."""
    _heard(project)
    (item,) = _waiting(project)

    def decide(choice: str) -> str:
        try:
            return str(_decide(project, item, choice)["state"])
        except RpcError as error:
            return error.kind

    with ThreadPoolExecutor(8) as pool:
        ends = list(pool.map(decide, [ACCEPT, DISMISS] * 4))
    assert ends.count("conflict") == 7
    changes = project.call("memory.history")["changes"]
    assert len(changes) == ("accepted" in ends)


def test_a_kill_loses_no_decision(own: Home) -> None:
    """A decision that was answered holds after a kill -9, and what waits still waits."""
    project = own.start().project()
    _heard(project)
    _heard(project, "Never use tabs in this repository, always four spaces please.")
    first, second = sorted(_waiting(project), key=lambda item: item["id"])
    _decide(project, first, DISMISS)
    own.stop(signal.SIGKILL)
    own.start()
    assert [item["id"] for item in _waiting(project)] == [second["id"]]
    _decide(project, second, ACCEPT)
    own.stop(signal.SIGKILL)
    own.start()
    assert _waiting(project) == []
    assert any(second["text"] in text for text in project.tree().values())


def test_memctl_edits_and_dismisses(project: Project) -> None:
    """What is saved in the editor becomes the memory; a decision again is refused with status 1."""
    _heard(project)
    (item,) = _waiting(project)
    done = project.memctl("review", "edit", item["id"], environ={"VISUAL": "sed -i s/diff/patch/"})
    assert done.returncode == 0, done.stderr
    assert any(SAID.replace("diff", "patch") in text for text in project.tree().values())
    again = project.memctl("review", "dismiss", item["id"])
    assert (again.returncode, "before" in again.stderr) == (1, True)


@pytest.mark.parametrize("choice", ["reject", "refuse", "ours", "edit"])
def test_a_choice_of_another_kind_is_refused(project: Project, choice: str) -> None:
    """A suggestion is accepted or dismissed; anything else is refused, and it waits on."""
    _heard(project)
    (item,) = _waiting(project)
    with pytest.raises(RpcError) as error:
        _decide(project, item, choice, text="x")
    assert error.value.kind == "invalid_params"
    assert [each["id"] for each in _waiting(project)] == [item["id"]]


def test_an_empty_id_decides_nothing(project: Project) -> None:
    """An empty id names no item, not the first one."""
    _heard(project)
    with pytest.raises(RpcError) as error:
        project.call("review.decide", id="", choice="accept")
    assert error.value.kind == "invalid_params"
    assert len(_waiting(project)) == 1


@pytest.mark.parametrize("name", ["s9999", "p9999", "m9999", "team/none.md", "x"])
def test_an_unknown_id_is_not_found(project: Project, name: str) -> None:
    """An id that names nothing is not found, whatever its kind."""
    with pytest.raises(RpcError) as error:
        project.call("review.decide", id=name, choice="accept")
    assert error.value.kind == "not_found"
