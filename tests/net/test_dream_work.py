"""What a dream does: duplicates, the index, daily logs, its phases, its bounds and its report."""

import json
import os
import re
import signal
import threading
import time
from functools import partial
from typing import Any

import pytest

from tests.net.extract_talk import memory, suggestions
from tests.net.kit import Home, Project, until
from tests.net.recorder import Blocks, Recorder, text, tool

RAN = ("completed", "done", "finished")
FACT = "Deploys run from main at 18:00 UTC.\n\n**Why:** quiet hours."
RULE = "Never mock the database in tests."
TODAY = time.strftime("logs/%Y/%m/%Y-%m-%d.md")


def dream(project: Project) -> Any:
    """Dream and return the result."""
    return project.call("dream", force=True, wait=True)


def fill(project: Project) -> None:
    """Lay out two equal memories, a rule, others and a hand-written index."""
    project.put("deploy.md", memory("deploy", FACT), days_old=3)
    copy = memory("release", FACT).replace("about release", "about deploy")
    project.put("release.md", copy, days_old=2)
    project.put("rule.md", memory("rule", RULE, "feedback"), days_old=2)
    for number in range(4):
        words = f"The part {number} takes {number + 3} minutes to build."
        project.put(f"part-{number}.md", memory(f"part-{number}", words), days_old=5)
    lines = "".join(f"- [{n}]({n}.md) — about {n}\n" for n in ("deploy", "rule"))
    project.put("MEMORY.md", f"# Index\nmy hand-written line\n{lines}- [Gone](gone.md) — gone\n")


def replayed(*turns: Blocks) -> Any:
    """Return a model that plays these turns, then says that it is done."""
    remaining = list(turns)
    return lambda _: remaining.pop(0) if remaining else [text("Done.")]


def test_exact_duplicates_are_merged(project: Project) -> None:
    """Without a model equal memories become one, no sentence is lost, and one undo gives both."""
    fill(project)
    before = project.tree()
    done = dream(project)
    after = project.tree()
    assert (done["status"] in RAN, len(done["merged"])) == (True, 1)
    assert len([words for words in after.values() if "18:00 UTC" in words]) == 1
    assert after["rule.md"] == before["rule.md"]
    assert "my hand-written line" in after["MEMORY.md"]
    assert all(f"({path})" in after["MEMORY.md"] for path in after if path != "MEMORY.md")
    project.call("memory.undo", change=done["change"])
    assert set(project.tree()) == set(before)


def test_a_second_pass_changes_nothing(project: Project) -> None:
    """Right after a dream another one finds nothing to do, to the byte."""
    fill(project)
    dream(project)
    before = project.tree()
    again = dream(project)
    assert (again["change"], project.tree()) == (None, before)


def test_each_memory_is_there_or_named(project: Project) -> None:
    """Whatever a dream removed is named as merged or removed with its reason."""
    fill(project)
    before = set(project.tree())
    done = dream(project)
    gone = before - set(project.tree())
    assert gone
    assert all(path in json.dumps([done["merged"], done["removed"]]) for path in gone)


def test_a_credential_is_quoted_by_no_report(project: Project) -> None:
    """Copies that hold a credential stay, and no answer quotes it."""
    key = "ghp_x7Kq2Lm9Vb4Nc8Rt1Yw6Zp3Hd5Jf0Sg2UeTa"
    for name in ("a", "b"):
        project.put(f"{name}.md", memory(name, f"The token of the runner is {key}."))
    done = dream(project)
    assert key not in json.dumps(done) + json.dumps(project.call("dream.status"))
    assert {"a.md", "b.md"} <= set(project.tree())


@pytest.mark.full
def test_nothing_is_lost_over_ten_nights(project: Project) -> None:
    """Ten dreams in a row leave every fact where some memory has it."""
    fill(project)
    for _ in range(10):
        assert dream(project)["status"] in RAN
    words = "\n".join(project.tree().values())
    assert all(f"The part {number} takes" in words for number in range(4))
    assert RULE in words
    assert FACT in words


def test_the_prompt_has_four_phases(project: Project, model: Recorder) -> None:
    """A model is told the phases, the bounds of the index, and logs before transcripts."""
    fill(project)
    project.put(TODAY, "- 09:00 the staging host moved\n")
    dream(project)
    words = json.dumps(model.requests[0])
    for pattern in (
        "orient",
        "gather",
        "consolidat",
        "prune",
        "absolute",
        "200",
        "25,000",
        "logs/",
    ):
        assert re.search(pattern, words, re.IGNORECASE), pattern
    assert re.search("narrow|never whole|not whole", words, re.IGNORECASE)


def test_a_dream_can_be_watched(project: Project, model: Recorder) -> None:
    """Its phases, texts, tool calls and files come to subscribers while it runs."""
    fill(project)
    moved = "\n\nThe part 0 takes 3 minutes to build."
    read = [tool("Read", file_path=f"{n}.md") for n in ("part-0", "part-1")]
    edit = {"old_string": "5 minutes to build.", "new_string": f"5 minutes to build.{moved}"}
    read2 = tool("Read", file_path="part-2.md")
    model.script = replayed(
        [text("I look around."), *read, read2],
        [text("I put it together."), tool("Edit", file_path="part-2.md", **edit)],
    )
    with project.home.connect() as watcher:
        watcher.call("subscribe", topics=["job.progress", "job.done"], cwd=project.cwd)
        job = project.call("dream", force=True)["job"]
        watcher.event("job.done", lambda params: bool(params["job"] == job))
        seen = [e["params"] for e in watcher.events if e["method"] == "job.progress"]
    phases = [params["phase"] for params in seen if params.get("phase")]
    assert phases[0] == "starting"
    assert "updating" in phases
    assert "I look around." in json.dumps(seen)
    assert "part-2.md" in json.dumps(seen)
    assert 1 <= len(record(project, job)) <= 30


def record(project: Project, job: str) -> Any:
    """Return the turns of a job's model."""
    return project.home.call("job.list", job=job, record=True)["jobs"][0]["record"]


def test_a_cancelled_dream_has_done_nothing(project: Project, model: Recorder) -> None:
    """A dream that is cancelled after its writes leaves every file as it was."""
    fill(project)
    before = project.tree()
    model.gate = threading.Event()
    job = project.call("dream", force=True)["job"]
    until(lambda: model.requests, "the model is asked")
    assert project.home.call("job.cancel", job=job)["cancelled"]
    ended = project.home.call("job.wait", job=job)
    model.gate.set()
    assert ended["state"] in ("killed", "cancelled")
    assert project.tree() == before


def looping(request: dict[str, Any]) -> Blocks:
    """Merge once and then read for ever."""
    turns = sum(message["role"] == "assistant" for message in request["messages"])
    if turns == 0:
        return [tool("Read", file_path=f"{n}.md") for n in ("deploy", "release")]
    if turns == 1:
        return [tool("Merge", into="deploy.md", **{"from": ["release.md"]})]
    return [tool("Read", file_path=f"part-{turns % 4}.md")]


def is_over(model: Recorder, job: str, project: Project) -> bool:
    """Tell whether a job has ended or asked more than 31 times."""
    (found,) = [each for each in project.home.call("job.list")["jobs"] if each["job"] == job]
    return found["ended"] is not None or len(model.requests) > 31


@pytest.mark.full
def test_a_dream_has_thirty_turns(project: Project, model: Recorder) -> None:
    """No run of a dream asks its model more than 30 times."""
    fill(project)
    model.script = looping
    job = project.call("dream", force=True)["job"]
    until(partial(is_over, model, job, project), "the first run is over")
    project.home.call("job.cancel", job=job)
    turns = [sum(m["role"] == "assistant" for m in q["messages"]) for q in model.requests]
    assert max(turns) <= 30


@pytest.mark.full
def test_a_dream_that_used_its_turns_is_an_end(project: Project, model: Recorder) -> None:
    """After 30 turns what is valid is judged and kept, and nothing is asked again."""
    fill(project)
    model.script = looping
    job = project.call("dream", force=True)["job"]
    until(partial(is_over, model, job, project), "the first run is over")
    project.home.call("job.cancel", job=job)
    assert len(model.requests) <= 31
    assert "release.md" not in project.tree()


def test_a_dream_chooses_by_its_tools(project: Project, model: Recorder) -> None:
    """A dream's model has Merge, Supersede, Expire and Keep beside its reading tools."""
    fill(project)
    dream(project)
    names = {given["name"] for given in model.requests[0]["tools"]}
    assert {"Read", "Grep", "Glob", "Merge", "Supersede", "Expire", "Keep"} <= names


def test_a_failing_model_costs_no_dream(project: Project, model: Recorder) -> None:
    """Where the model answers with an error the memories stay or the fixed pass does its work."""
    fill(project)
    model.script = lambda _: 400
    job = project.call("dream", force=True)["job"]
    project.home.call("job.wait", job=job)
    words = "\n".join(project.tree().values())
    assert FACT in words
    assert all(f"The part {number} takes" in words for number in range(4))


def test_the_report_is_for_people(project: Project) -> None:
    """The command waits for the dream and ends with what was done."""
    fill(project)
    done = project.memctl("dream", "--force", "--wait")
    assert done.returncode == 0, done.stderr
    assert re.search("1 memory merged|merged", done.stdout)


def test_logs_are_no_memories(project: Project) -> None:
    """Daily logs are in no list and no prompt, and a search finds their words."""
    project.home.configure("[prompt]\ndaily_log = true\n")
    project.put(TODAY, "- 10:40 the api gateway moved to gw-3.internal port 8443\n")
    assert [m for m in project.call("memory.list")["memories"] if "logs" in m["path"]] == []
    assert "logs/YYYY/MM/YYYY-MM-DD.md" in project.call("load_prompt")["prompt"]


def test_logs_are_recalled_until_they_are_distilled(project: Project) -> None:
    """What only a log of today says is found."""
    project.put(TODAY, "- 10:40 the api gateway moved to gw-3.internal port 8443\n")
    hits = project.call("memory.search", query="api gateway gw-3.internal")["hits"]
    assert [hit["path"] for hit in hits] == [TODAY]


def test_a_log_without_a_model_is_suggested(project: Project) -> None:
    """Without a model the person's words in a log become suggestions."""
    talk = project.conversation("s1").user("never deploy on Fridays, please").assistant("Ok.")
    os.utime(talk.path)
    project.put(TODAY, '- 11:00 user said: "never deploy on Fridays, please"\n')
    dream(project)
    assert any("deploy on Fridays" in words for words in suggestions(project))


def test_words_in_a_log_that_are_not_the_persons_are_not_suggested(project: Project) -> None:
    """Neither words that no transcript has, nor those of a message that asks not to remember."""
    talk = project.conversation("s1").user("My locker is number 12, but do not remember that.")
    os.utime(talk.assistant("Ok.").path)
    lines = ("My locker is number 12", "always skip the tests")
    project.put(TODAY, "".join(f'- 11:00 user said: "{line}"\n' for line in lines))
    dream(project)
    assert suggestions(project) == []


LINE = "the api gateway moved to gw-3.internal port 8443"
DISTILLED = {
    "the usual form": (
        "project",
        f"T{LINE[1:]}.\n\n**Why:** It is in the log.\n\n**How to apply:** Use this address.",
    ),
    "the log's words": ("reference", LINE),
}


@pytest.mark.parametrize("form", DISTILLED)
def test_a_log_is_distilled_by_a_model(project: Project, model: Recorder, form: str) -> None:
    """A fact of a daily log becomes a memory."""
    project.put(TODAY, f"- 10:40 {LINE}\n")
    kind, words = DISTILLED[form]
    model.script = replayed(
        [tool("Read", file_path=TODAY)],
        [tool("Write", file_path="gateway.md", content=memory("gateway", words, kind))],
    )
    dream(project)
    assert LINE[1:] in project.tree().get("gateway.md", "")


def test_the_persons_words_in_a_log_become_a_rule(project: Project, model: Recorder) -> None:
    """A line `user said` is the person's word where a transcript has it, and no other line is."""
    said = "never deploy on Fridays, please, unless the desk agrees"
    project.conversation("s1").user(f"Ok. {said}").assistant("Ok.")
    lines = ('user said: "never deploy on Fridays"', 'user said: "always skip the tests"')
    project.put(TODAY, "".join(f"- 11:00 {line}\n" for line in lines))
    keep = {"log": TODAY, "type": "feedback"}
    model.script = replayed(
        [
            tool("Keep", fact=lines[0], into="fridays.md", **keep),
            tool("Keep", fact=lines[1], into="tests.md", **keep),
        ]
    )
    done = dream(project)
    assert (done["created"], done.get("problems")) == (["fridays.md"], None)
    found = project.call("memory.read", path="fridays.md")
    assert (found["type"], found["origin"]) == ("feedback", "user")
    assert f'**Said:** "{said}"' in found["content"]


def test_a_distilled_log_is_not_shown_again(project: Project, model: Recorder) -> None:
    """A log that a dream has read is no source of the next one, until it says more."""
    project.put(TODAY, f"- 10:40 {LINE}\n")
    keep = tool("Keep", log=TODAY, fact=LINE, into="gateway.md")
    model.script = replayed([tool("Read", file_path=TODAY)], [keep])
    dream(project)
    assert LINE in project.read("gateway.md")
    hits = project.call("memory.search", query="api gateway gw-3.internal")["hits"]
    assert [hit["path"] for hit in hits] == ["gateway.md"]
    model.requests.clear()
    dream(project)
    assert TODAY not in json.dumps(model.requests[0]["messages"])
    project.put(TODAY, f"- 10:40 {LINE}\n- 11:00 and port 8444 too\n")
    model.requests.clear()
    dream(project)
    assert TODAY in json.dumps(model.requests[0]["messages"])


def test_a_proposal_waits_for_the_person(project: Project, model: Recorder) -> None:
    """What a dream may not do by itself waits with its diff; rejected, it is gone."""
    fill(project)
    old, new = "takes 3 minutes", "takes 9 minutes"
    model.script = replayed(
        [tool("Read", file_path="part-0.md")],
        [tool("Edit", file_path="part-0.md", old_string=old, new_string=new)],
    )
    done = dream(project)
    assert old in project.read("part-0.md")
    assert project.call("dream.status")["proposals"] == 1
    (proposal,) = project.call("review.list")["items"]
    assert proposal["id"] == done["proposal"]
    assert new in json.dumps(proposal["files"])
    project.call("review.decide", id=proposal["id"], choice="reject", reason="it is no better")
    assert project.call("dream.status")["proposals"] == 0


@pytest.mark.full
def test_ten_thousand_memories_are_looked_at(own: Home) -> None:
    """Without a model 10,000 memories are gone through at once, and another client is served."""
    own.configure("[dream]\nauto = false\n")
    project = own.start().project()
    for number in range(10_000):
        words = f"The service {number} listens on port {10_000 + number}."
        project.put(f"service-{number}.md", memory(f"service-{number}", words))
    job = project.call("dream", force=True)["job"]
    assert own.project().call("memory.list")["count"] == 0
    assert own.call("job.wait", job=job)["state"] in RAN
    assert len([path for path in project.tree() if path.startswith("service")]) == 10_000


@pytest.mark.full
def test_a_killed_dream_is_whole_or_nothing(own: Home) -> None:
    """After kill -9 in the midst of a dream the memories are as before or as after it."""
    own.configure("[dream]\nauto = false\n")
    project = own.start().project()
    fill(project)
    before = set(project.tree())
    for _ in range(5):
        project.call("dream", force=True)
        own.stop(signal.SIGKILL)
        own.start()
        until(lambda: not project.call("dream.status")["running"], "no dream runs")
        after = project.tree()
        assert set(after) in (before, before - {"release.md"}, before - {"deploy.md"})
        assert FACT in "\n".join(after.values())
