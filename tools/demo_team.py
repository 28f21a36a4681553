"""Team memory in plain view (``make demo-team``): a server, and two people with three devices.

The server listens on this machine; each device has a HOME, a daemon and a clone of its own. Every
line that shows something comes from an answer; each check compares one with what must hold. It
ends by itself, in less than a minute.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from memd.client.errors import RemoteError
from memd.client.launch import Client
from tests.support.daemon import Home, client, daemon_process, memctl, throw_away_home
from tests.support.team import ORIGIN, REMOTE, invited, operate, team_server
from tools.demo import Demo, finished, play

_FREEZE = ("Merges freeze on 2026-03-05.", "", "Kim is the release manager.", "", "Ask Kim.")
_QUESTION = "when do the merges freeze for the release?"
_PATH = "team/freeze.md"
_DONE = ("taken", "merged", "removed", "sent", "held", "conflicts")


class Device(Demo):
    """One device of a member: its daemon's client and its clone."""

    def __init__(self, client: Client, home: Home, name: str) -> None:
        super().__init__(client, home)
        self.name = name
        (Path(self.cwd) / ".git" / "config").write_text(ORIGIN, encoding="utf-8")

    def tell(self, words: object) -> None:
        """Print what happened on this device."""
        print(f"   {self.name}: {words}")

    def join(self, url: str, code: str) -> None:
        """Join with the code of an invitation, after a look at what that would do."""
        preview = self.call("team.join", url=url, preview=True)["preview"]
        self.tell(f"{preview['remote']} at {preview['server']} would get {preview['sends']}")
        joined = self.call("team.join", url=url, code=code)["joined"]
        self.tell(f"joined as {joined['member']}, {joined['role']}; entries {joined['types']}")

    def write(self, lines: Sequence[str]) -> str:
        """Save the shared memory and return the change."""
        about = "When merges freeze for the release, and whom to ask"
        facts = {"name": "freeze", "description": about, "type": "project"}
        text = "\n".join(lines)
        done = self.call("memory.write", scope="team", path="freeze.md", body=text, **facts)
        return str(done["change"])

    def sync(self, act: str = "pull") -> None:
        """Pull or push now, and tell what that did."""
        done = self.call(f"team.{act}")
        did = [f"{name} {_named(done[name])}" for name in _DONE if done[name]]
        self.tell(f"{act}: {'; '.join(did) or 'nothing to do'}")

    def text(self) -> str:
        """Return the shared memory's text, "" where there is none."""
        try:
            return str(self.call("memory.read", path=_PATH)["content"])
        except RemoteError:
            return ""


class Team:
    """The server's data and address, and the devices of its members."""

    def __init__(self, data: str, url: str, anna: Device, ben: Device, old: Home) -> None:
        self.data, self.url, self.anna, self.ben, self.old = data, url, anna, ben, old
        self.devices = [anna, ben]

    @contextmanager
    def laptop(self) -> Iterator[Device]:
        """Open Ben's old laptop until the end of the block."""
        with daemon_process(self.old), client(self.old, "laptop") as connection:
            self.devices.append(Device(connection, self.old, "ben's old laptop"))
            yield self.devices[-1]


def main() -> int:
    """Run the demo; 0 when every check held."""
    with ExitStack() as stack:
        homes = [stack.enter_context(throw_away_home()) for _ in range(4)]
        data = f"{homes[3].path}/data"
        url = stack.enter_context(team_server("--data", data)).url
        devices = []
        for home, name in zip(homes, ("anna", "ben"), strict=False):
            stack.enter_context(daemon_process(home))
            devices.append(Device(stack.enter_context(client(home, name)), home, name))
        team = Team(data, url, devices[0], devices[1], homes[2])
        play(_STEPS, team)
    return finished([check for device in team.devices for check in device.checks], _SUMMARY)


def _named(items: Sequence[Any]) -> list[str]:
    """Return paths, and of what is held or in conflict the key and whom or why."""
    return [
        i if isinstance(i, str) else f"{i['key']} ({i.get('reason') or i['member']})" for i in items
    ]


def _join(team: Team) -> None:
    print(f"   memd-team listens on {team.url}")
    team.anna.show(operate(team.data, "repo", "add", REMOTE))
    for device in (team.anna, team.ben):
        device.join(team.url, invited(team.data, device.name))
    with team.laptop() as laptop:
        laptop.join(team.url, invited(team.data, "ben"))
    team.ben.show(memctl(team.ben.home, team.ben.cwd, "team", "status"))
    state = team.ben.call("team.status")
    team.ben.check("who joined has the same as the server", state["state"] == "equal")


def _save(team: Team) -> None:
    team.anna.write(_FREEZE)
    team.anna.sync("push")
    team.ben.sync()
    answer = team.ben.call("prefetch", session_id="s1", query=_QUESTION)
    team.ben.show(answer["block"])
    headers = [memory["header"] for memory in answer["memories"]]
    named = any(header.startswith("Team memory by anna (saved today)") for header in headers)
    team.ben.check("a prompt of Ben's brings Anna's memory, under her name", named)
    prompts = [team.ben.call("load_prompt")["prompt"] for _ in range(2)]
    team.ben.check("his prompt has its line, and is the same twice", prompts[0] == prompts[1])
    team.ben.check("the line is in the index", "](freeze.md)" in prompts[0])
    shared = team.ben.call("memory.why", path=_PATH)["shared"]
    team.ben.tell(f"memory.why: {shared}")
    team.ben.check("asked why, memd names Anna", shared["member"] == "anna")


def _merge(team: Team) -> None:
    team.anna.write(("Merges freeze on 2026-03-06.", *_FREEZE[1:]))
    team.ben.write((*_FREEZE[:-1], "Ask Kim, or in #release."))
    team.anna.sync("push")
    team.ben.sync("push")
    team.anna.sync()
    team.anna.show(team.anna.text())
    both = all(words in team.anna.text() for words in ("2026-03-06", "#release"))
    team.anna.check("both edits are in the text", both)
    team.anna.check("both have the same bytes", team.anna.text() == team.ben.text())


def _conflict(team: Team) -> None:
    team.anna.write(("Merges freeze on 2026-03-07.", *_FREEZE[1:]))
    team.ben.write(("Merges freeze on 2026-03-09.", *_FREEZE[1:]))
    team.anna.sync("push")
    team.ben.sync("push")
    listed = team.ben.call("team.status")["conflicts"]
    team.ben.tell(f"waiting for him: {_named(listed)}")
    team.ben.check("the server's text stands in the file", "03-07" in team.ben.text())
    for file in team.ben.call("team.diff")["files"]:
        team.ben.show(file["diff"])
    team.ben.call("team.resolve", path=_PATH, how="ours")
    team.ben.sync("push")
    team.anna.sync()
    team.anna.check("Ben's text was kept, and he put it on top", "03-09" in team.anna.text())


def _undo(team: Team) -> None:
    before = team.anna.text()
    change = team.anna.write(("Merges are free again.", *_FREEZE[1:]))
    team.anna.sync("push")
    team.ben.sync()
    arrived = team.ben.text()
    team.anna.tell(f"undo: {team.anna.call('memory.undo', change=change)}")
    team.anna.sync("push")
    team.ben.sync()
    team.ben.check("what was undone is undone for Ben too", team.ben.text() == before != arrived)


def _remove(team: Team) -> None:
    with team.laptop() as laptop:
        laptop.sync()
        folder = Path(laptop.call("memory.list")["memory_dir"])
    file = folder / _PATH
    file.write_bytes(file.read_bytes() + b"Noted while offline.\n")
    try:
        team.ben.call("memory.delete", path=_PATH)
    except RemoteError as error:
        team.ben.tell(error)
    team.anna.call("team.remove", path=_PATH, reason="the release is out")
    team.ben.sync()
    team.ben.check("what Anna removed is removed for Ben", not team.ben.text())
    for version in team.ben.call("team.log", path=_PATH)["versions"][:2]:
        team.ben.tell(f"revision {version['revision']} by {version['member']} {version['reason']}")
    with team.laptop() as laptop:
        laptop.sync("push")
        held = laptop.call("team.status")["held"]
        laptop.tell(f"held: {_named(held)}")
        laptop.check("an edit of an old device is held, not lost", "offline" in laptop.text())
    team.anna.sync()
    team.anna.check("it brought nothing back", not team.anna.text())


def _end(team: Team) -> None:
    team.anna.show(operate(team.data, "audit", "--limit", "5"))
    problems = operate(team.data, "check")
    team.anna.check("the server's storage is whole", not problems)


_STEPS: Sequence[tuple[str, Callable[[Team], None]]] = (
    ("Anna and Ben join, Ben with two devices", _join),
    ("What Anna's assistant saved, Ben's assistant knows", _save),
    ("Both edit one memory: it is merged", _merge),
    ("Both edit one line: a person decides", _conflict),
    ("An undo reaches everybody", _undo),
    ("A removal reaches everybody, and an old device brings nothing back", _remove),
    ("What the server's operator sees", _end),
)
_SUMMARY = """Checked: what one member's assistant learnt, every member's assistant knows, under the
member's name; edits merge or wait for a person; nothing is lost, and what was removed stays so."""

if __name__ == "__main__":
    sys.exit(main())
