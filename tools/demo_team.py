"""The part of the demo about a team: a server on this machine, and two people.

Each has a HOME, a daemon and a clone of a repository.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.support.daemon import client, daemon_process, throw_away_home
from tests.support.team import ORIGIN, REMOTE, invited, operate, team_server
from tools.demo_stage import Checks, Demo

_FREEZE = ("Merges freeze on 2026-03-05.", "", "Kim is the release manager.", "", "Ask Kim.")
_QUESTION = "when do the merges freeze for the release?"
_PATH = "team/freeze.md"


class Member(Demo):
    """A member of the team, with a daemon and a clone."""

    def write(self, lines: Sequence[str]) -> None:
        """Save the shared memory."""
        about = "When merges freeze for the release, and whom to ask"
        facts = {"name": "freeze", "description": about, "type": "project"}
        body = "\n".join(lines)
        self.call("memory.write", scope="team", path="freeze.md", body=body, **facts)

    @property
    def text(self) -> str:
        """The shared memory's text."""
        return str(self.call("memory.read", path=_PATH)["content"])


def show_team() -> Checks:
    """Show the part; return its checks."""
    print("\n== A team shares memory through its own server")
    with ExitStack() as stack:
        data = f"{stack.enter_context(throw_away_home()).path}/data"
        url = stack.enter_context(team_server("--data", data)).url
        members = []
        for name in ("anna", "ben"):
            home = stack.enter_context(throw_away_home())
            stack.enter_context(daemon_process(home))
            member = Member(stack.enter_context(client(home, name)), home)
            (Path(member.cwd) / ".git" / "config").write_text(ORIGIN, encoding="utf-8")
            members.append(member)
        anna, ben = members
        anna.show(operate(data, "repo", "add", REMOTE))
        for member, name in ((anna, "anna"), (ben, "ben")):
            joined = member.call("team.join", url=url, code=invited(data, name))["joined"]
            print(f"   {joined['member']} joined {url} as {joined['role']}")
        _save(anna, ben)
        _edit(anna, ben)
    return [*anna.checks, *ben.checks]


def _save(anna: Member, ben: Member) -> None:
    anna.write(_FREEZE)
    anna.call("team.sync")
    ben.call("team.sync")
    answer = ben.call("prefetch", session_id="s1", query=_QUESTION)
    ben.show(answer["block"])
    headers = [memory["header"] for memory in answer["memories"]]
    named = any(header.startswith("Team memory by anna (saved today)") for header in headers)
    ben.check("a prompt of Ben's brings Anna's memory, under her name", named)


def _edit(anna: Member, ben: Member) -> None:
    anna.write(("Merges freeze on 2026-03-06.", *_FREEZE[1:]))
    ben.write((*_FREEZE[:-1], "Ask Kim, or in #release."))
    for member in (anna, ben, anna):
        member.call("team.sync")
    both = all(words in anna.text for words in ("2026-03-06", "#release"))
    anna.check("edits of different lines are merged", both and anna.text == ben.text)
    anna.write(("Merges freeze on 2026-03-07.", *_FREEZE[1:]))
    ben.write(("Merges freeze on 2026-03-09.", *_FREEZE[1:]))
    anna.call("team.sync")
    ben.call("team.sync")
    conflicts = ben.call("team.status")["conflicts"]
    ben.check("two edits of one line wait for a person", conflicts)
    ben.call("team.resolve", path=_PATH, how="ours")
    anna.call("team.sync")
    anna.check("Ben's text was kept, and he put it on top", "03-09" in anna.text)
