"""What a session was given: nothing comes twice, and no session gets too much (3.1, 3.4)."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.net.kit import Home, Project

QUERY = "which port has the zebra broker"


def of(project: Project, session: str) -> str:
    """Return the id of a session of a project; what a session was given counts over projects."""
    return f"{session} of {project.path.name}"


def ask(project: Project, session: str, query: str = QUERY, **params: Any) -> Any:
    """Return the answer of prefetch."""
    given = {"session_id": of(project, session), "deadline_ms": 10_000, **params}
    return project.call("prefetch", query=query, **given)


def given(project: Project, session: str, query: str = QUERY) -> list[str]:
    """Return the file name of each memory that a prompt of a session brings."""
    return [Path(memory["path"]).name for memory in ask(project, session, query)["memories"]]


def tell(project: Project, session: str, event: str) -> None:
    """Tell memd what happened to a session."""
    project.call("session", session_id=of(project, session), event=event)


def port(project: Project, body: str = "It is port 9911.", name: str = "port") -> Path:
    """Let another program write a memory that fits the query."""
    head = f"---\nname: {name}\ndescription: the zebra broker's port\ntype: project\n---\n\n"
    return project.put(f"{name}.md", f"{head}{body}\n")


def test_a_memory_comes_once(project: Project) -> None:
    """A session gets a memory once; another session, and another project, get it as well."""
    port(project)
    assert [given(project, each) for each in "aab"] == [["port.md"], [], ["port.md"]]


def test_the_answer_says_when_all_was_given(project: Project) -> None:
    """When each memory that fits was given before, the gate is no candidates."""
    port(project)
    ask(project, "s")
    assert ask(project, "s")["skipped"] == "no_candidates"


def test_a_changed_memory_may_come_again(project: Project) -> None:
    """When a file has changed since a session got it, it may come again."""
    port(project)
    assert given(project, "s") == ["port.md"]
    port(project, "It is port 9912 now.")
    assert given(project, "s") == ["port.md"]
    project.write("port.md", "It is port 9913.", description="the zebra broker's port")
    assert given(project, "s") == ["port.md"]
    assert given(project, "s") == []


def test_a_compaction_empties_what_was_given(project: Project) -> None:
    """After a compaction the memory may come again; a session's end and start change nothing."""
    port(project)
    assert given(project, "s") == ["port.md"]
    for event in ("end", "start"):
        tell(project, "s", event)
        assert given(project, "s") == []
    tell(project, "s", "compacted")
    assert given(project, "s") == ["port.md"]


@pytest.mark.parametrize("event", ["compacted", "cleared"])
def test_one_method_tells_of_a_session(project: Project, event: str) -> None:
    """After session with the event compacted or cleared a memory may come again."""
    port(project)
    ask(project, "s")
    project.call("session", session_id=of(project, "s"), event=event)
    assert given(project, "s") == ["port.md"]


def test_a_fork_begins_with_what_its_parent_was_given(project: Project) -> None:
    """A session that was forked from another does not get what stands in its context."""
    port(project)
    ask(project, "parent")
    parent, fork = of(project, "parent"), of(project, "fork")
    project.call("session", session_id=fork, event="start", parent=parent)
    assert given(project, "fork") == []
    assert given(project, "stranger") == ["port.md"]


def test_two_prompts_at_once_get_a_memory_once(project: Project) -> None:
    """Of prompts of one session that come at once, exactly one gets a memory."""
    for number in range(4):
        name = f"port{number}"
        port(project, f"It is port 991{number}.", name)
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: given(project, "s"), range(6)))
    names = [name for answer in answers for name in answer]
    assert sorted(names) == sorted(set(names))
    assert len(names) == 4


def big(project: Project, size: int) -> None:
    """Write 20 memories each of which comes with so many bytes."""
    for number in range(20):
        words = f"stage {number} of the marmot pipeline "
        port(project, words + "z" * (size - len(words)), f"big{number}")


def fill(project: Project, session: str) -> list[Any]:
    """Ask until nothing comes any more; return the answers."""
    answers = [ask(project, session, f"stage {n} of the zebra broker pipeline") for n in range(5)]
    assert not answers[-1]["memories"]
    return answers


def test_a_session_gets_at_most_60000_bytes(project: Project) -> None:
    """At the cap nothing comes, and skipped names it; another session has a budget of its own."""
    big(project, 4000)
    answers = fill(project, "s")
    assert answers[-1]["skipped"] == "session_budget"
    assert [answer["session_bytes"] for answer in answers][2:] == [60_000] * 3
    contents = [m["content"] for answer in answers for m in answer["memories"]]
    assert sum(len(content.encode()) for content in contents) == 60_000
    assert ask(project, "t", "stage 3 of the zebra broker pipeline")["memories"]
    tell(project, "s", "compacted")
    assert ask(project, "s", "stage 3 of the zebra broker pipeline")["memories"]


def test_what_does_not_fit_in_the_rest_does_not_come(project: Project) -> None:
    """The budget is never exceeded by a memory that is larger than its rest."""
    big(project, 4090)
    assert max(answer["session_bytes"] for answer in fill(project, "s")) <= 60_000


def test_a_rest_in_which_nothing_fits_is_named(project: Project) -> None:
    """When nothing that was chosen fits in the rest, the gate is the session's budget."""
    big(project, 4090)
    assert fill(project, "s")[-1]["skipped"] == "session_budget"


@pytest.mark.full
def test_restarts_keep_what_was_given(own: Home) -> None:
    """A resumed session gets nothing twice after memd ended and began again, nor after a kill."""
    project = own.start().project()
    port(project)
    assert given(project, "s") == ["port.md"]
    own.stop()
    own.start()
    assert given(project, "s") == []
    assert given(project, "t") == ["port.md"]


@pytest.mark.full
def test_a_thousand_sessions_are_remembered(own: Home) -> None:
    """After 990 other sessions the first still gets nothing twice."""
    project = own.start().project()
    port(project)
    for number in range(991):
        assert given(project, f"s{number}") == ["port.md"]
    assert given(project, "s0") == []


@pytest.mark.full
def test_years_do_not_bring_a_memory_again(own: Home) -> None:
    """A session that is resumed weeks later gets nothing twice."""
    project = own.start(clock=True).project()
    port(project)
    assert given(project, "s") == ["port.md"]
    own.pass_time(days=21)
    assert given(project, "s") == []


READS: list[tuple[str, dict[str, Any]]] = [
    ("memory.list", {}),
    ("memory.search", {"query": QUERY}),
    ("memory.read", {"path": "port.md"}),
    ("memory.history", {}),
    ("memory.why", {"path": "port.md"}),
    ("load_prompt", {}),
    ("status", {}),
    ("rpc.discover", {}),
]


def test_what_only_reads_marks_nothing(project: Project) -> None:
    """After lists, searches, reads and explanations a prompt gets the memory."""
    project.write("port.md", "It is port 9911.", description="the zebra broker's port")
    before = project.tree()
    for method, params in READS:
        about = {} if method in {"status", "rpc.discover"} else {"cwd": project.cwd}
        project.home.call(method, **about, **params)
    assert ask(project, "s", explain=True)["explanation"]["rows"]
    assert given(project, "s") == ["port.md"]
    assert project.tree() == before
    assert len(project.call("memory.history")["changes"]) == 1


RULE = "Never restart the zebra broker by hand, its port would change."


def start(project: Project, session: str, source: str = "startup") -> str:
    """Return what the hook of a session's start gives Claude Code."""
    payload = {"session_id": of(project, session), "cwd": project.cwd, "source": source}
    payload |= {"hook_event_name": "SessionStart", "transcript_path": "/s.jsonl"}
    given = {"client": "claude-code", "event": "SessionStart", "deadline_ms": 10_000}
    return str(project.home.call("hook", payload=payload, **given))


def test_rules_of_a_start_do_not_come_with_a_prompt(project: Project) -> None:
    """The person's rules come whole at the start, and no prompt of the session brings one again."""
    project.write("rule.md", RULE, type="feedback", description="restarts of the zebra broker")
    assert RULE in project.call("load_prompt", session_id=of(project, "a"))["prompt"]
    assert RULE in start(project, "b")
    query = "how do I restart the zebra broker by hand"
    assert [given(project, each, query) for each in "abc"] == [[], [], ["rule.md"]]


def test_rules_come_again_after_a_compaction_and_not_with_a_resumed_session(
    project: Project,
) -> None:
    """A context that was compacted or cleared gets them anew; a resumed one has them."""
    project.write("rule.md", RULE, type="feedback", description="restarts of the zebra broker")
    shown = {s: RULE in start(project, "a", s) for s in ("startup", "compact", "clear", "resume")}
    assert shown == {"startup": True, "compact": True, "clear": True, "resume": False}


def test_rules_of_a_start_are_bounded(project: Project) -> None:
    """At most some 1,500 tokens of rules come, the newest first; the others come with prompts."""
    for number in range(30):
        project.write(f"r{number}.md", f"Rule {number}. {RULE * 5}", type="feedback")
    text = project.call("load_prompt", session_id=of(project, "a"))["prompt"]
    numbers = [number for number in range(30) if f"Rule {number}." in text]
    assert numbers
    assert numbers == list(range(30 - len(numbers), 30))
    assert len(text.split("## The user's own rules")[1]) <= 6_000
