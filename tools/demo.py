"""The main job on three sample conversations, a team and agents, in plain view (``make demo``).

A throw-away HOME, a real daemon on its own socket, no key. Every line that shows something comes
from the daemon's answers; each check compares an answer with what must hold. Ends by itself.
"""

import json
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from memd.base.errors import MemdError
from tests.support import samples
from tests.support.daemon import client, daemon_process, memctl, throw_away_home
from tools.demo_agents import show_agents
from tools.demo_stage import Demo
from tools.demo_team import show_team

_WRITES = 10
_PROMPTS = (
    "Can I mock the database in the new ingest tests?",
    "When do the merges freeze for the release branch?",
    "Explain how useEffect works in this component",
    "thanks, looks good",
)


def main() -> int:
    """Run the demo; 0 when every check held."""
    with throw_away_home() as home, daemon_process(home), client(home, "demo") as connection:
        demo = Demo(connection, home)
        for title, step in _STEPS:
            print(f"\n== {title}")
            step(demo)
    checks = [*demo.checks, *show_team(), *show_agents()]
    failed = [sentence for sentence, holds in checks if not holds]
    print(f"\n{len(checks)} checks, {len(failed)} failed.")
    print("\n".join(f"   failed: {sentence}" for sentence in failed) or _SUMMARY)
    return 1 if failed else 0


def _start(demo: Demo) -> None:
    hello = demo.client.call("hello", {"client": "demo"})
    status = demo.client.call("status", {})
    print(f"   {hello['name']} {hello['version']}, pid {hello['pid']}, on {status['socket']}")
    empty = demo.call("memory.list")
    print(f"   {len(empty['memories'])} memories in {empty['memory_dir']}")
    demo.check("a fresh project has no memory", not empty["memories"])


def _extract(demo: Demo) -> None:
    for number, name in enumerate(samples.NAMES, start=1):
        session = f"session-{number}"
        transcript = samples.place(demo.home.path, demo.cwd, session)
        samples.write(name, transcript, cwd=demo.cwd, session=session)
        done = demo.call("extract", session_id=session, transcript_path=transcript, wait=True)
        print(
            f"   {name}: {done['status']} by the {done['engine']} extractor, "
            f"saved {done['saved']}, updated {done['updated']}, refused {done['refused']}"
        )
    demo.check("the conversation with a secret had something refused", done["refused"] >= 1)
    again = demo.call(
        "extract",
        session_id="session-1",
        wait=True,
        transcript_path=samples.place(demo.home.path, demo.cwd, "session-1"),
    )
    demo.check("reading the first one again finds nothing new", not again["saved"])


def _suggestions(demo: Demo) -> None:
    waiting = demo.call("review.list", kind="suggestion")["items"]
    for each in waiting:
        print(f"   [{each['type']}] {each['text']}")
    demo.check("what sounds lasting and was not marked is a suggestion", waiting)
    for each in waiting:
        is_lasting = "engineer" in each["text"] or "From now on" in each["text"]
        choice = "accept" if is_lasting else "dismiss"
        demo.call("review.decide", id=each["id"], choice=choice)
    demo.check("none is left undecided", not demo.call("review.list", kind="suggestion")["items"])


def _files(demo: Demo) -> None:
    listed = demo.call("memory.list")
    bodies = []
    for memory in listed["memories"]:
        read = demo.call("memory.read", path=memory["path"])
        bodies.append(read["content"])
        print(f"   [{memory['type']}] {memory['path']}: {memory['description']}")
    demo.show(bodies[-1], 16)
    everything = "\n".join(bodies)
    types = {memory["type"] for memory in listed["memories"]}
    demo.check("a fact and the accepted suggestions are there", types >= _TYPES)
    demo.check("the merge freeze has an absolute date", "2026-" in everything)
    demo.check("the secret is nowhere", samples.secret() not in everything)
    demo.check("what tool output asked to remember is nowhere", "deploy key" not in everything)
    demo.check("the folder structure was not saved", "src/handlers" not in everything)


def _prompt(demo: Demo) -> None:
    loaded = demo.call("load_prompt", session_id="session-3")
    index = loaded["prompt"].split("\n- [", 1)
    demo.show(loaded["prompt"], 6)
    demo.show("- [" + index[-1] if len(index) > 1 else "", 12)
    print(f"   {len(loaded['prompt'])} characters, index {loaded['index']}, etag {loaded['etag']}")
    again = demo.call("load_prompt", session_id="session-4")
    demo.check("the same inputs give the same bytes", again["prompt"] == loaded["prompt"])
    demo.check("the person's rules come whole", "must hit a real database" in loaded["prompt"])
    demo.check(
        "every memory has its line in the index",
        loaded["index"]["lines"] >= len(demo.call("memory.list")["memories"]),
    )


def _prefetch(demo: Demo) -> None:
    result = []
    for query in _PROMPTS:
        answer = demo.call("prefetch", session_id="session-5", query=query)
        names = [memory["name"] for memory in answer["memories"]]
        result.append(names)
        print(f"   «{query}» → {names or answer['skipped'] or 'nothing'} ({answer['strategy']})")
    demo.check("a question about tests brings the test policy", any("test" in n for n in result[0]))
    demo.check(
        "a question about merging brings the freeze",
        any("merge" in n or "freez" in n for n in result[1]),
    )
    demo.check("small talk brings nothing", not result[3])
    again = demo.call("prefetch", session_id="session-5", query=_PROMPTS[0])
    demo.check(
        "a memory comes once per session",
        not {m["name"] for m in again["memories"]} & set(result[0]),
    )


def _two_clients(demo: Demo) -> None:
    before = len(demo.call("memory.list")["memories"])
    acknowledged: list[str] = []

    def write(who: str) -> None:
        with client(demo.home, who) as own:
            for number in range(_WRITES):
                answer = own.call(
                    "memory.write",
                    {
                        "cwd": demo.cwd,
                        "path": f"{who}_{number}.md",
                        "name": f"{who}-note-{number}",
                        "description": f"Note {number} of {who}",
                        "type": "project",
                        "body": f"{who} learnt thing number {number} while working alone.",
                    },
                )
                acknowledged.append(answer["path"])

    threads = [threading.Thread(target=write, args=(who,)) for who in ("alice", "editor")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    listed = demo.call("memory.list")
    retained = {memory["path"] for memory in listed["memories"]}
    print(
        f"   {len(acknowledged)} writes acknowledged, {len(retained) - before} kept, "
        f"{listed['index']['lines']} lines in the index"
    )
    demo.check("every acknowledged write is kept", set(acknowledged) <= retained)
    refused = ""
    try:
        demo.call(
            "memory.write",
            path="user_key.md",
            name="key",
            type="user",
            description="a key",
            body=f"my key is {samples.secret()}",
        )
    except MemdError as error:
        refused = str(error)
        print(f"   a write with a secret: {refused}")
    demo.check(
        "a secret is refused, and the refusal does not show it",
        refused and samples.secret() not in refused,
    )


def _dream(demo: Demo) -> None:
    twin = demo.call("memory.read", path="alice_0.md")
    demo.call(
        "memory.write",
        path="alice_copy.md",
        name="alice-copy",
        type="project",
        description="Note 0 of alice",
        body="alice learnt thing number 0 while working alone.",
    )
    before = _state(demo)
    report = demo.call("dream", force=True, wait=True)
    print(f"   {report['status']}: merged {report['merged']}, removed {report['removed']}")
    demo.check("the duplicate was merged", report["merged"])
    after = _state(demo)
    for change in demo.call("memory.history", limit=4)["changes"]:
        files = ", ".join(f"{file['action']} {file['path']}" for file in change["files"])
        print(f"   {change['id']} by {change['actor']}: {files}")
    diffs = demo.call("memory.diff", change=report["change"])["files"]
    demo.show("\n".join(part["diff"] for part in diffs), 10)
    undone = demo.call("memory.undo", change=report["change"])
    print(f"   undo: {undone}")
    demo.check("undo restored every byte and every time", _state(demo) == before != after)
    demo.check(
        "the older twin was never touched",
        demo.call("memory.read", path="alice_0.md")["content"] == twin["content"],
    )


def _notes(demo: Demo) -> None:
    for session, name in (("session-1", samples.NAMES[0]), ("session-5", samples.LONG)):
        path = samples.place(demo.home.path, demo.cwd, session)
        samples.write(name, path, cwd=demo.cwd, session=session)
        done = demo.call("notes.update", session_id=session, transcript_path=path, wait=True)
        print(f"   {name}: {done['status']} {done.get('gate') or done.get('engine')}")
        if name == samples.NAMES[0]:
            demo.check("a short conversation needs no notes yet", done.get("gate") == "young")
    printed = memctl(demo.home, demo.cwd, "notes", "show", "session-5")
    print("   $ memctl notes show session-5")
    demo.show(printed, 90)
    sections = re.split(r"^# (.+)\n", printed, flags=re.MULTILINE)[1:]
    filled = [body for body in sections[1::2] if body.strip()]
    demo.check("ten sections have something to say", len(filled) == len(sections[::2]) == _SECTIONS)
    lines = Path(path).read_text("utf-8").splitlines()
    said = _folded(" ".join(_texts([json.loads(line) for line in lines])))
    quoted = [part for span in re.findall(r"(`+)(.+?)\1", printed) for part in span[1].split("…")]
    demo.check(
        "every path, command, error and word quoted is in the conversation",
        len(quoted) >= _QUOTED and all(_folded(part) in said for part in quoted),
    )
    print(f"   {len(quoted)} quotations; {len(printed):,} characters of {len(said):,}")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def _folded(text: str) -> str:
    return " ".join(text.split())


def _stop(demo: Demo) -> None:
    for check in demo.call("doctor")["checks"]:
        print(f"   {check['state']:8}{check['name']}: {check['detail']}")
    stopping = demo.client.call("shutdown", {})
    demo.check("the daemon drains and ends", stopping["stopping"])


def _state(demo: Demo) -> list[tuple[str, str, str]]:
    result = []
    for memory in demo.call("memory.list")["memories"]:
        read = demo.call("memory.read", path=memory["path"])
        result.append((read["path"], read["hash"], read["mtime"]))
    return sorted(result)


_STEPS: Sequence[tuple[str, Callable[[Demo], None]]] = (
    ("A daemon starts on a fresh home", _start),
    ("Two conversations are read for what is worth keeping", _extract),
    ("What was suggested is decided by the person", _suggestions),
    ("What lies on the disk now", _files),
    ("The memory section of a system prompt", _prompt),
    ("The memories that matter for a prompt", _prefetch),
    ("Two clients write into one project at the same time", _two_clients),
    ("A dream tightens the store, history shows it, undo takes it back", _dream),
    ("A long conversation has notes, without a model", _notes),
    ("The daemon checks itself and stops", _stop),
)
_SECTIONS, _QUOTED = 10, 50
_TYPES = {"user", "feedback", "project"}
_SUMMARY = """Checked: extraction keeps what was worth keeping and refuses the rest; the prompt is
stable; prefetch is right or silent; two clients lose nothing; a dream can be taken back to the
byte; notes of a session hold what was said and nothing else; what one member's assistant learnt,
another's knows; a message between agents is read once, and is nobody's order."""

if __name__ == "__main__":
    sys.exit(main())
